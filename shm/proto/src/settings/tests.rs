//! Tests of settings as a whole: defaults, files, CONFIG SET and GET, command lines, rewriting.

use super::*;
use proptest::prelude::*;

fn no_includes(name: &str) -> Result<Vec<Source>, String> {
    Err(format!("cannot read {name}"))
}

#[track_caller]
fn problems(text: &str) -> Vec<String> {
    let source = Source {
        name: "test.conf".to_string(),
        text: text.to_string(),
    };
    let mut settings = Settings::default();
    let found = apply_files(&mut settings, &[source], &mut no_includes);
    found.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn from_text(text: &str) -> Settings {
    let source = Source {
        name: "test.conf".to_string(),
        text: text.to_string(),
    };
    let mut settings = Settings::default();
    let found = apply_files(&mut settings, &[source], &mut no_includes);
    assert_eq!(found, []);
    settings
}

#[track_caller]
fn set(settings: &mut Settings, pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .collect();
    match settings.set_many(&pairs, false) {
        Ok(_) => "OK".to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn rows_are_in_order_with_unique_lower_case_names_and_defaults_that_parse() {
    let mut names = std::collections::BTreeSet::new();
    for (position, row) in TABLE.iter().enumerate() {
        assert_eq!(row.setting as usize, position);
        for name in std::iter::once(&row.name).chain(row.aliases) {
            assert_eq!(name.to_ascii_lowercase(), *name);
            assert!(names.insert(*name), "{name} twice");
        }
        let value = row.default_value();
        let mut settings = Settings::default();
        settings
            .set_text(row.setting, &row.kind.print(&value))
            .unwrap();
        assert_eq!(*settings.value(row.setting), value, "{}", row.name);
    }
}

#[test]
fn every_problem_of_a_file_is_found_with_its_line() {
    let found = problems(
        "# a comment\nport abc\n\nnosuch 1\nmaxmemory 1xb\nhz 20\nsave 900\ndir \"x\nport\n\
         appendonly yes\ninclude other.conf\nport 1 2\n",
    );
    assert_eq!(
        found,
        [
            "test.conf, line 2: argument couldn't be parsed into an integer: 'port abc'",
            "test.conf, line 4: Bad directive or wrong number of arguments: 'nosuch 1'",
            "test.conf, line 5: argument must be a memory value: 'maxmemory 1xb'",
            "test.conf, line 7: Invalid save parameters: 'save 900'",
            "test.conf, line 8: Unbalanced quotes in configuration line: 'dir \"x'",
            "test.conf, line 9: wrong number of arguments: 'port'",
            "test.conf, line 10: this version cannot do that yet: 'appendonly yes'",
            "test.conf, line 11: cannot read other.conf: 'include other.conf'",
            "test.conf, line 12: wrong number of arguments: 'port 1 2'",
        ]
    );
}

#[test]
fn files_give_typed_values() {
    assert_eq!(from_text("save \"900 1 300 10\"").save().len(), 2);
    assert_eq!(from_text("bind \"* -::*\"").bind().len(), 2);
    let settings = from_text(
        "PORT 7000\nbind 127.0.0.1 -::1\nmaxmemory 1gb\nmaxmemory-policy allkeys-lfu\n\
         save 900 1\nsave 300 10\nunixsocketperm 700\nclient-output-buffer-limit replica 1mb 2 3\n\
         lua-time-limit 7\nrequirepass \"a b\"\nshutdown-on-sigterm now force\nhz 1000\n",
    );
    assert_eq!(settings.port(), 7000);
    assert_eq!(settings.bind(), ["127.0.0.1", "-::1"]);
    assert_eq!(settings.maxmemory(), 1 << 30);
    assert_eq!(settings.maxmemory_policy(), MaxmemoryPolicy::AllkeysLfu);
    assert_eq!(settings.get("save").unwrap(), "900 1 300 10");
    assert_eq!(settings.unixsocketperm(), 0o700);
    assert_eq!(settings.get("unixsocketperm").unwrap(), "700");
    assert_eq!(settings.client_output_buffer_limit()[1].hard_bytes, 1 << 20);
    assert_eq!(settings.client_output_buffer_limit()[2].soft_seconds, 60);
    assert_eq!(settings.busy_reply_threshold(), 7);
    assert_eq!(settings.requirepass(), "a b");
    assert_eq!(settings.shutdown_on_sigterm() & SHUTDOWN_NOW, SHUTDOWN_NOW);
    assert_eq!(settings.hz(), 500);
    assert_eq!(
        Settings::from_changed(&settings.changed()).unwrap(),
        settings
    );
}

#[test]
fn config_set_changes_all_or_nothing_with_the_known_texts() {
    let mut settings = Settings::default();
    let failed = |name: &str, reason: &str| {
        format!("CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    };
    assert_eq!(
        set(&mut settings, &[("maxmemory", "10mb"), ("HZ", "20")]),
        "OK"
    );
    assert_eq!((settings.maxmemory(), settings.hz()), (10 << 20, 20));
    assert_eq!(
        set(&mut settings, &[("hz", "30"), ("nosuch", "1")]),
        "Unknown option or number of arguments for CONFIG SET - 'nosuch'"
    );
    assert_eq!(
        set(&mut settings, &[("hz", "30"), ("timeout", "x")]),
        failed("timeout", "argument couldn't be parsed into an integer")
    );
    assert_eq!(settings.hz(), 20);
    for (name, text, reason) in [
        ("port", "1", "can't set immutable config"),
        ("dir", "/tmp", "can't set protected config"),
        ("appendonly", "maybe", "argument must be 'yes' or 'no'"),
        (
            "timeout",
            "+5",
            "argument couldn't be parsed into an integer",
        ),
        (
            "timeout",
            "05",
            "argument couldn't be parsed into an integer",
        ),
        (
            "timeout",
            "-1",
            "argument must be between 0 and 2147483647 inclusive",
        ),
        ("maxmemory", "-1", "argument must be a memory value"),
        (
            "maxmemory-clients",
            "101%",
            "percentage argument must be less or equal to 100",
        ),
        (
            "appendfsync",
            "z",
            "argument(s) must be one of the following: everysec, always, no",
        ),
        ("save", "0 1", "Invalid save parameters"),
        ("oom-score-adj-values", "1 2", "wrong number of arguments"),
        (
            "notify-keyspace-events",
            "?",
            "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
        ),
    ] {
        assert_eq!(
            set(&mut settings, &[(name, text)]),
            failed(name, reason),
            "{name}"
        );
    }
    assert_eq!(
        set(&mut settings, &[("hz", "1"), ("hz", "2")]),
        failed("hz", "duplicate parameter")
    );
    assert_eq!(
        set(
            &mut settings,
            &[("notify-keyspace-events", "Kg$lshzxetdmn")]
        ),
        "OK"
    );
    assert_eq!(settings.get("notify-keyspace-events").unwrap(), "AKm");
    assert_eq!(
        set(
            &mut settings,
            &[("latency-tracking-info-percentiles", "50 99.99")]
        ),
        "OK"
    );
    assert_eq!(
        settings.get("latency-tracking-info-percentiles").unwrap(),
        "50 99.99"
    );
    assert_eq!(set(&mut settings, &[("save", "")]), "OK");
}

#[test]
fn config_get_matches_patterns_once_and_echoes_plain_names() {
    let settings = Settings::default();
    let names = |patterns: &[&str]| -> Vec<String> {
        settings
            .matching(patterns)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(names(&["hZ"]), ["hZ"]);
    assert_eq!(names(&["nosuch"]), [""; 0]);
    assert_eq!(
        names(&["hash-max-*-value", "HASH-MAX-listpack-value"]),
        ["hash-max-listpack-value", "hash-max-ziplist-value"]
    );
    assert!(names(&["*"]).len() > 200);
}

#[test]
fn command_lines_become_lines() {
    let parse = |words: &[&str]| {
        parse_command_line(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let line = parse(&[
        "a.conf",
        "--port",
        "7000",
        "--save",
        "--bind",
        "::1",
        "127.0.0.1",
    ]);
    assert_eq!(line.file.as_deref(), Some("a.conf"));
    assert_eq!(line.lines, "port 7000\nsave \"\"\nbind ::1 127.0.0.1");
    let line = parse(&["--requirepass", "a b", "--save", "", "-"]);
    assert_eq!((line.file, line.stdin), (None, true));
    assert_eq!(line.lines, "requirepass \"a b\"\nsave \"\"");
    assert_eq!(parse(&["--save"]).lines, "save \"\"");
    assert_eq!(parse(&["--port"]).lines, "port");
}

#[test]
fn rewriting_keeps_the_file_and_changes_what_changed() {
    let old = "# mine\nport 7000\n\nmaxmemory 1gb # odd\nhz 20\nsave 900 1\nsave 300 10\n";
    let old = old.replace(" # odd", "");
    let mut settings = from_text(&old);
    assert_eq!(rewrite(&old, &settings), old);
    assert_eq!(
        set(
            &mut settings,
            &[
                ("maxmemory", "5mb"),
                ("requirepass", "a b"),
                ("timeout", "9")
            ]
        ),
        "OK"
    );
    let new = rewrite(&old, &settings);
    assert_eq!(
        new,
        "# mine\nport 7000\n\nmaxmemory 5mb\nhz 20\nsave 900 1\nsave 300 10\n\
         # Generated by CONFIG REWRITE\ntimeout 9\nrequirepass \"a b\"\n"
    );
    assert_eq!(from_text(&new), settings);
    assert_eq!(rewrite(&new, &settings), new);
}

/// Texts that are near to what settings accept, and others.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "-?[0-9]{1,20}(kb|mb|gb|%|b)?",
        "[KEAg$lshzxetdmn]{0,6}",
        "(normal|replica|pubsub) [0-9]{1,4} [0-9]{1,4}mb [0-9]{1,3}",
        "[0-9]{1,4} [0-9]{1,4}( [0-9]{1,4} [0-9]{1,4})?",
        prop::sample::select(vec![
            "yes",
            "no",
            "always",
            "allkeys-lfu",
            "now force",
            "save",
            ""
        ])
        .prop_map(str::to_string),
    ]
}

fn changes() -> impl Strategy<Value = Vec<(usize, String)>> {
    prop::collection::vec((0..TABLE.len(), texts()), 0..60)
}

/// The defaults with every change that is accepted.
fn changed(changes: &[(usize, String)]) -> Settings {
    let mut settings = Settings::default();
    for (row, text) in changes {
        let before = settings.clone();
        if settings.set_text(TABLE[*row].setting, text).is_err() {
            assert_eq!(settings, before, "S2: a refused change left traces");
        }
    }
    settings
}

proptest! {
    #[test]
    fn what_was_accepted_prints_as_something_that_gives_it_back(changes in changes()) {
        let settings = changed(&changes);
        prop_assert_eq!(&Settings::from_changed(&settings.changed()).unwrap(), &settings);
    }

    #[test]
    fn a_rewritten_file_gives_the_settings_it_was_written_from(
        first in changes(),
        second in changes(),
    ) {
        let old = rewrite("# mine\n\nport 7000\nsave 900 1\n", &changed(&first));
        let mut settings = from_text(&old);
        prop_assert_eq!(&settings, &changed(&first));
        for (row, text) in &second {
            let _ = settings.set_text(TABLE[*row].setting, text);
        }
        let new = rewrite(&old, &settings);
        prop_assert_eq!(&from_text(&new), &settings);
        prop_assert!(new.starts_with("# mine\n\nport "));
        prop_assert_eq!(rewrite(&new, &settings), new);
    }

    #[test]
    fn no_file_makes_the_parser_panic(text in "([a-z-]{1,20}|[ -~\t\"'\\\\]{0,10}|\n){0,40}") {
        let _ = problems(&text);
    }

    #[test]
    fn quoted_words_always_split_back(word in "\\PC{0,20}") {
        prop_assert_eq!(words::split(&words::quote(&word)).unwrap(), [word]);
    }
}
