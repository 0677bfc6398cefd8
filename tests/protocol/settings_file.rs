//! The configuration file: redis.conf lines, and all mistakes at once with their line numbers.

use harness::{Setup, sirocco};

fn with_lines(lines: &[&str]) -> Setup {
    let mut setup = Setup::sirocco(sirocco!(), 1);
    setup.file = lines.iter().map(|line| (*line).to_owned()).collect();
    setup
}

#[test]
fn a_file_of_redis_is_understood() {
    let server = with_lines(&[
        "# a comment",
        "",
        "maxmemory 100mb",
        "maxmemory-policy allkeys-lru",
        "  timeout   30  ",
        "requirepass \"se cret\"",
        "save \"\"",
        "appendonly no",
        "client-output-buffer-limit pubsub 32mb 8mb 60",
        "MaxClients 123",
    ])
    .start();
    let mut client = server.connect();
    assert_eq!(
        client.call(&["AUTH", "se cret"]).expect("a reply").render(),
        "+OK"
    );
    for (name, value) in [
        ("maxmemory", "104857600"),
        ("maxmemory-policy", "allkeys-lru"),
        ("timeout", "30"),
        ("maxclients", "123"),
    ] {
        let reply = client.run(&format!("CONFIG GET {name}")).render();
        assert_eq!(reply, format!("*[\"{name}\" \"{value}\"]"));
    }
}

#[test]
fn arguments_win_over_the_file() {
    let server = with_lines(&["timeout 30"]).with("timeout", "40").start();
    assert_eq!(
        server.connect().run("CONFIG GET timeout").render(),
        r#"*["timeout" "40"]"#
    );
}

#[test]
fn all_mistakes_are_reported_with_their_lines() {
    let mut server = with_lines(&[
        "timeout 30",
        "maxmemory lots",
        "# fine",
        "nonsense yes",
        "appendonly maybe",
        "maxmemory-policy \"unbalanced",
        "databases 0",
    ])
    .start_unchecked();
    assert!(!server.wait_for_exit().success());
    let log = server.log();
    for (number, text) in [
        (2, "maxmemory lots"),
        (4, "nonsense yes"),
        (5, "appendonly maybe"),
        (6, "unbalanced"),
        (7, "databases 0"),
    ] {
        let place = format!("server.conf:{number}: ");
        let line = log.lines().find(|line| line.contains(&place));
        let line = line.unwrap_or_else(|| panic!("line {number} is missing in:\n{log}"));
        assert!(line.contains(text), "{line}");
    }
    assert!(
        !log.contains("server.conf:1:") && !log.contains("server.conf:3:"),
        "{log}"
    );
    assert!(!log.contains("panicked"), "{log}");
    assert!(server.processes().is_empty());
}

#[test]
fn a_file_that_is_missing_is_said() {
    let output = std::process::Command::new(sirocco!())
        .arg("/nonexistent/sirocco.conf")
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/nonexistent/sirocco.conf"), "{text}");
}

#[test]
fn config_rewrite_writes_what_was_changed() {
    let server = with_lines(&["# my settings", "timeout 30"]).start();
    let mut client = server.connect();
    assert_eq!(
        client
            .run("CONFIG SET timeout 60 maxmemory-samples 7")
            .render(),
        "+OK"
    );
    assert_eq!(client.run("CONFIG REWRITE").render(), "+OK");
    let text =
        std::fs::read_to_string(server.folder().join("server.conf")).expect("the file is there");
    for line in ["# my settings", "timeout 60", "maxmemory-samples 7"] {
        assert!(
            text.lines().any(|known| known == line),
            "{line} is missing in:\n{text}"
        );
    }
}
