//! Starting where something is missing or taken: descriptors, memory, directories, locks.

use std::path::Path;
use std::process::{Command, Output};

use harness::{Setup, sirocco};

use crate::{run, stderr};

/// Runs the executable from a shell that sets limits first.
fn limited(limit: &str, words: &str, folder: &Path) -> Output {
    let program = sirocco!().display();
    Command::new("sh")
        .arg("-c")
        .arg(format!("{limit} && exec {program} {words}"))
        .current_dir(folder)
        .output()
        .expect("the shell runs")
}

#[test]
fn too_few_descriptors_are_refused_or_reduce_the_clients() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = limited("ulimit -n 20", "--port 0 --unixsocket s", folder.path());
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("ulimit -n"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn rings_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words = [
        "--port",
        "0",
        "--unixsocket",
        "s",
        "--ring-size",
        "1gb",
        "--storage-workers",
        "56",
        "--gateway-threads",
        "64",
    ];
    let output = run(&words, folder.path());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("shared memory"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_directory_and_port_have_one_server() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let dir = server.folder().display().to_string();
    let output = run(
        &["--dir", &dir, "--port", &server.port().to_string()],
        server.folder(),
    );
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let missing = run(&["--dir", "/nonexistent", "--port", "1"], server.folder());
    assert_eq!(missing.status.code(), Some(1), "{}", stderr(&missing));
    assert!(
        stderr(&missing).contains("No such file or directory"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn nothing_to_listen_on_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run(&["--port", "0"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let output = run(&["--port", "1", "--bind", "203.0.113.7"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn changes_of_settings_are_in_force_everywhere_when_they_are_answered() {
    let server = Setup::sirocco(sirocco!(), 4).start();
    let mut client = server.connect();
    // With a limit below what is used, every worker refuses writes from the reply on.
    for number in 0..400 {
        client.run(&format!("SET key:{number} {}", "v".repeat(1000)));
    }
    for _ in 0..20 {
        assert_eq!(client.run("CONFIG SET maxmemory 1").render(), "+OK");
        for number in 0..20 {
            let reply = client.run(&format!("SET key:{number} w"));
            assert!(reply.is_error(), "{}", reply.render());
        }
        assert_eq!(client.run("CONFIG SET maxmemory 0").render(), "+OK");
        for number in 0..20 {
            assert_eq!(client.run(&format!("SET key:{number} w")).render(), "+OK");
        }
    }
}
