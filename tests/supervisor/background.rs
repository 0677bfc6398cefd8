//! `daemonize`, `pidfile`, `logfile`, and the end of a supervisor that leaves its parts behind.

use std::path::Path;
use std::time::Duration;

use harness::ports::Port;
use harness::{Address, Client, Setup, eventually, sirocco};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{run, stderr};

fn supervisor_of(folder: &Path) -> Pid {
    let text = std::fs::read_to_string(folder.join("pid")).expect("the pid file is there");
    Pid::from_raw(text.trim().parse().expect("a number"))
}

#[test]
fn a_daemon_serves_when_its_parent_returns_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port = Port::take();
    let number = port.number().to_string();
    let words = [
        "--daemonize",
        "yes",
        "--port",
        &number,
        "--pidfile",
        "pid",
        "--logfile",
        "log",
        "--bind",
        "127.0.0.1",
    ];
    let output = run(&words, folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let address = Address::Tcp(port.number());
    let mut client = Client::connect(&address).expect("it serves");
    assert_eq!(client.run("PING").render(), "+PONG");
    // A second one is refused, with its reason and code, by the parent.
    let second = run(
        &["--daemonize", "yes", "--port", &number, "--dir", "/tmp"],
        folder.path(),
    );
    assert_eq!(second.status.code(), Some(3), "{}", stderr(&second));
    assert!(stderr(&second).contains("in use"), "{}", stderr(&second));
    kill(supervisor_of(folder.path()), Signal::SIGTERM).expect("it runs");
    eventually("its files are gone", || {
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .expect("the folder is there")
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        names == ["log"]
    });
    let log = std::fs::read_to_string(folder.path().join("log")).expect("the log is there");
    assert!(
        log.contains("ready to accept connections") && log.contains("good bye"),
        "{log}"
    );
}

#[test]
fn parts_without_a_supervisor_end_after_their_time() {
    let mut server = Setup::sirocco(sirocco!(), 2)
        .with("supervisor-timeout", "2")
        .with_deaths()
        .start();
    let mut client = server.connect();
    server.main_process().signal(Signal::SIGKILL);
    eventually("the supervisor is gone", || server.exit_status().is_some());
    harness::pause(Duration::from_millis(500));
    assert_eq!(client.run("PING").render(), "+PONG");
    eventually("the parts have ended", || server.processes().is_empty());
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn a_stopped_supervisor_is_in_nobodys_way() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let mut client = server.connect();
    server.main_process().signal(Signal::SIGSTOP);
    assert_eq!(client.run("SET a 1").render(), "+OK");
    assert_eq!(server.connect().run("GET a").render(), "\"1\"");
    server.main_process().signal(Signal::SIGCONT);
    assert_eq!(client.run("CONFIG SET timeout 5").render(), "+OK");
}
