//! Words on the command line: tools, texts, and the settings they end up as.

use crate::{run, stderr, stdout};

#[test]
fn the_printed_configuration_is_a_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words = [
        "--print-config",
        "--maxmemory",
        "1gb",
        "--save",
        "900",
        "1",
        "300",
        "10",
        "--requirepass",
        "a b",
    ];
    let first = run(&words, folder.path());
    assert!(first.status.success(), "{}", stderr(&first));
    let text = stdout(&first);
    for line in [
        "maxmemory 1gb",
        "save 900 1",
        "save 300 10",
        "requirepass \"a b\"",
        "unixsocket \"\"",
    ] {
        assert!(
            text.lines().any(|known| known == line),
            "{line} is missing in:\n{text}"
        );
    }
    std::fs::write(folder.path().join("all.conf"), &text).expect("the folder can be written");
    let second = run(&["--print-config", "all.conf"], folder.path());
    assert_eq!(stdout(&second), text, "{}", stderr(&second));
}

#[test]
fn packagers_get_completions_and_a_manual_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&run(&["completions", shell], folder.path()));
        assert!(
            text.contains("maxmemory-policy") && text.contains("status"),
            "{shell}"
        );
    }
    let manual = stdout(&run(&["man"], folder.path()));
    assert!(
        manual.contains(".TH sirocco") && manual.contains("maxmemory"),
        "{manual}"
    );
}

#[test]
fn roles_are_for_the_supervisor_only() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for role in ["gateway", "storage-worker"] {
        let output = run(&[role], folder.path());
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("supervisor"),
            "{}",
            stderr(&output)
        );
    }
}
