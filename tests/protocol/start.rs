//! Starting with bad input: a port in use, unknown settings, too few descriptors.

use std::net::TcpListener;
use std::process::Command;

use harness::{Setup, sirocco};

#[test]
fn a_port_in_use_is_reported_and_nothing_is_left_behind() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let mut second = Setup::sirocco(sirocco!(), 1)
        .with("port", &server.port().to_string())
        .start_unchecked();
    let status = second.wait_for_exit();
    assert!(!status.success(), "{}", second.log());
    let log = second.log();
    assert!(
        log.contains(&server.port().to_string()) && log.to_lowercase().contains("in use"),
        "{log}"
    );
    assert!(second.processes().is_empty(), "{:?}", second.processes());
    assert_eq!(server.connect().run("PING").render(), "+PONG");
}

#[test]
fn a_port_of_another_program_is_reported_too() {
    let other = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = other.local_addr().expect("an address").port();
    let mut server = Setup::sirocco(sirocco!(), 1)
        .with("port", &port.to_string())
        .start_unchecked();
    assert!(!server.wait_for_exit().success());
    assert!(
        server.log().to_lowercase().contains("in use"),
        "{}",
        server.log()
    );
}

#[test]
fn bad_arguments_are_reported_all_at_once() {
    let setup = Setup::sirocco(sirocco!(), 1)
        .with("nonsense", "1")
        .with("maxmemory", "much")
        .with("hz", "abc");
    let mut server = setup.start_unchecked();
    assert!(!server.wait_for_exit().success());
    let log = server.log();
    for name in ["nonsense", "maxmemory", "hz"] {
        assert!(log.contains(name), "{name} is not mentioned: {log}");
    }
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn help_and_version_are_answered() {
    for (arg, wanted) in [
        ("--help", "sirocco"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let output = Command::new(sirocco!()).arg(arg).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains(wanted),
            "{arg}: {text}"
        );
    }
}

#[test]
fn few_descriptors_are_raised_or_said() {
    let server = Setup::sirocco(sirocco!(), 1);
    // 64 is too few for 10000 clients; the hard limit stays, so the server can raise it.
    let mut server = server.with("maxclients", "10000").start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.role("gateway")[0].pid));
    let limits = limits.expect("the process is there");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap_or_default();
    let soft: u64 = line
        .split_whitespace()
        .nth(3)
        .and_then(|text| text.parse().ok())
        .unwrap_or(u64::MAX);
    let said = server.log().contains("descriptors") || server.log().contains("open files");
    assert!(soft >= 10_000 || said, "{line}\n{}", server.log());
    assert!(server.exit_status().is_none());
}

#[test]
fn the_banner_says_how_to_connect() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let log = server.log();
    assert!(log.contains(&server.port().to_string()), "{log}");
    assert!(log.contains("redis-cli"), "{log}");
}
