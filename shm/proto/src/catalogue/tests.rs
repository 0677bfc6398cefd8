//! The tables as a whole, lookup by name, and keys of arbitrary requests.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

/// Every row, also the internal ones.
fn rows() -> impl Iterator<Item = &'static Spec> {
    gateway::SPECS
        .iter()
        .chain(&storage::SPECS)
        .chain(&containers::SPECS)
}

/// Looks a full name up, its words as a client sends them.
fn find_full(name: &str) -> Option<&'static Spec> {
    let (first, second) = match name.split_once('|') {
        Some((first, second)) => (first, Some(second.as_bytes())),
        None => (name, None),
    };
    match find(first.as_bytes(), second) {
        Lookup::Found(spec, _) => Some(spec),
        Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) => None,
    }
}

#[test]
fn names_are_unique_over_all_tables_and_in_lower_case() {
    let mut names = HashSet::new();
    for spec in rows() {
        assert!(names.insert(spec.name), "{}", spec.name);
        assert_eq!(spec.name, spec.name.to_ascii_lowercase());
    }
}

#[test]
fn every_name_is_found_in_any_case_and_no_internal_one_is() {
    for spec in rows() {
        let alternating: String = spec
            .name
            .char_indices()
            .map(|(at, letter)| {
                if at % 2 == 0 {
                    letter.to_ascii_uppercase()
                } else {
                    letter
                }
            })
            .collect();
        for name in [spec.name, &spec.name.to_ascii_uppercase(), &alternating] {
            let found = find_full(name).map(|found| found.name);
            let wanted = (!spec.flags.has(flag::INTERNAL)).then_some(spec.name);
            assert_eq!(found, wanted, "{name}");
        }
    }
}

#[test]
fn an_id_leads_back_to_its_row() {
    for command in StorageCommand::ALL {
        assert_eq!(StorageCommand::from_u16(command as u16), Some(command));
        assert_eq!(command.spec().command, CommandRef::Storage(command));
    }
    for command in GatewayCommand::ALL {
        assert_eq!(GatewayCommand::from_u16(command as u16), Some(command));
        assert_eq!(command.spec().command, CommandRef::Gateway(command));
    }
    assert_eq!(StorageCommand::from_u16(u16::MAX), None);
    assert_ne!(fingerprint(), 0);
}

#[test]
fn names_that_are_nearly_right_are_unknown() {
    for name in [
        "",
        "GE",
        "GETT",
        "G\u{5}T",
        "BITFIELD\u{7f}RO",
        "GET|x",
        "_export",
        "\0",
        "ge\0",
    ] {
        assert!(
            matches!(find(name.as_bytes(), None), Lookup::UnknownCommand),
            "{name:?}"
        );
    }
    assert!(matches!(
        find(b"client", Some(b"no\revict")),
        Lookup::UnknownSubcommand(_)
    ));
    assert!(matches!(
        find(b"OBJECT", Some(b"GET")),
        Lookup::UnknownSubcommand(_)
    ));
    assert!(matches!(
        find(b"config", None),
        Lookup::Found(_, CommandRef::Container(_))
    ));
    let lookup = find(b"OBJECT", Some(b"foo"));
    let error = unknown(lookup, b"OBJECT", [b"foo".as_slice()].into_iter());
    assert_eq!(
        error.to_string(),
        "ERR unknown subcommand 'foo'. Try OBJECT HELP."
    );
    let error = unknown(find(b"foo", None), b"foo", [b"a".as_slice()].into_iter());
    assert_eq!(
        error.to_string(),
        "ERR unknown command 'foo', with args beginning with: 'a' "
    );
}

#[test]
fn routes_fit_keys() {
    for spec in rows() {
        let has_keys = spec.keys != KeySpec::None;
        match spec.route {
            Route::Scatter(_) | Route::Together | Route::Script => {
                assert!(has_keys, "{}", spec.name);
            }
            Route::Every(_) | Route::Cursor | Route::RandomWorker => {
                assert!(!has_keys, "{}", spec.name);
            }
            // The gateway itself sends the keys of WATCH to their owners. Channels are no keys.
            Route::Gateway => {
                let is_known = spec.name == "watch" || spec.flags.has(flag::PUBSUB);
                assert!(!has_keys || is_known, "{}", spec.name);
            }
            Route::Owner => assert!(has_keys || spec.flags.has(flag::INTERNAL), "{}", spec.name),
        }
        assert_eq!(
            has_keys,
            spec.details().areas().next().is_some(),
            "{}",
            spec.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lookup_equals_a_walk_over_the_rows(name in "[a-zA-Z_\\-|]{1,12}") {
        let wanted = rows().find(|spec| {
            spec.name.eq_ignore_ascii_case(&name) && !spec.flags.has(flag::INTERNAL)
        });
        prop_assert_eq!(find_full(&name).map(|spec| spec.name), wanted.map(|spec| spec.name));
    }

    #[test]
    fn keys_of_any_request_lie_within_it(
        row in 0..StorageCommand::COUNT,
        arguments in proptest::collection::vec("[a-z0-9]{0,3}|GET|SET|OVERFLOW", 0..8),
    ) {
        let spec = StorageCommand::ALL[row].spec();
        let argc = arguments.len() + 1;
        let argument = |at: usize| match at {
            0 => spec.name.as_bytes(),
            at => arguments[at - 1].as_bytes(),
        };
        let mut keys = Vec::new();
        if spec.arity_fits(argc) && extract(spec, argc, argument, &mut keys).is_ok() {
            prop_assert!(keys.iter().all(|key| (1..argc).contains(&(key.position as usize))));
            if let Some((first, last, step)) = spec.keys.range(argc) {
                let positions: Vec<_> = keys.iter().map(|key| key.position as usize).collect();
                let wanted: Vec<_> = (first..=last).step_by(step).collect();
                prop_assert_eq!(positions, wanted);
            }
        } else if !spec.arity_fits(argc) {
            // What comes out is of no interest, but it must come out.
            let _ = extract(spec, argc, argument, &mut keys);
        }
    }
}
