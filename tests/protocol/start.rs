//! The program from outside: a port in use, unknown settings, too few descriptors, too little memory, `status`.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use harness::ports::Port;
use harness::{Client, Setup, sirocco};

#[test]
fn a_port_in_use_is_reported_and_nothing_is_left_behind() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let mut second = Setup::sirocco(sirocco!(), 1)
        .with("port", &server.port().to_string())
        .start_unchecked();
    let status = second.wait_for_exit();
    assert_eq!(status.code(), Some(3), "{}", second.log());
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
fn the_limit_of_descriptors_is_raised() {
    let mut server = Setup::sirocco(sirocco!(), 1)
        .with("maxclients", "3000")
        .start();
    let gateway = server.role("gateway").remove(0);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.pid)).expect("it runs");
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
    assert!(soft >= 3000 || said, "{line}\n{}", server.log());
    assert!(server.exit_status().is_none());
}

/// Under a limit that cannot be raised the server serves, or says what is missing; it neither panics nor hangs.
fn under_limit(limit: &str, words: &[&str]) {
    let (port, folder) = (
        Port::take(),
        tempfile::tempdir().expect("a temporary folder"),
    );
    let log = folder.path().join("log");
    let output = std::fs::File::create(&log).expect("the folder can be written");
    let command = format!(
        "ulimit {limit} && exec \"$0\" --storage-workers 1 --port {}",
        port.number()
    );
    let mut child = Command::new("sh")
        .args(["-c", &command])
        .arg(sirocco!())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("a descriptor"))
        .stderr(output)
        .spawn()
        .expect("sh runs");
    let (mut ended, mut served) = (None, false);
    harness::eventually("it serves or ends", || {
        ended = child.try_wait().expect("it is ours");
        served = Client::connect(&harness::Address::Tcp(port.number())).is_ok_and(|mut client| {
            client
                .call(&["PING"])
                .is_ok_and(|reply| reply.render() == "+PONG")
        });
        ended.is_some() || served
    });
    if ended.is_none() {
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid")),
            nix::sys::signal::Signal::SIGTERM,
        )
        .expect("it runs");
        ended = Some(child.wait().expect("it is ours"));
    }
    let text = std::fs::read_to_string(&log).expect("the log is there");
    assert!(!text.contains("panicked"), "{limit}: {text}");
    let status = ended.expect("it has ended");
    assert!(
        served || !status.success(),
        "{limit}: {status} without having served: {text}"
    );
    if !served {
        let lower = text.to_lowercase();
        assert!(
            words.iter().any(|word| lower.contains(word)),
            "{limit}: {status}: {text}"
        );
    }
}

#[test]
fn too_few_descriptors_are_said() {
    for limit in ["-n 16", "-n 40", "-n 200"] {
        under_limit(limit, &["descriptor", "open files"]);
    }
}

#[test]
fn too_little_memory_is_said() {
    // Address space in kilobytes, size of a file (which a memfd is) in blocks.
    for limit in ["-v 500000", "-v 3000000", "-f 100"] {
        under_limit(
            limit,
            &["memory", "mapping", "segment", "too large", "space"],
        );
    }
}

#[test]
fn the_first_command_is_served() {
    for _ in 0..10 {
        let server = Setup::sirocco(sirocco!(), 4).start_unchecked();
        // As soon as somebody listens: nothing may be answered with "not yet".
        let mut client = Client::connect_patiently(&server.tcp());
        for key in 0..50 {
            assert_eq!(
                client.run(&format!("SET key:{key} x")).render(),
                "+OK",
                "{}",
                server.log()
            );
        }
        assert_eq!(client.run("DBSIZE").render(), ":50");
    }
}

#[test]
fn the_banner_says_how_to_connect() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let log = server.log();
    assert!(log.contains(&server.port().to_string()), "{log}");
    assert!(log.contains("redis-cli"), "{log}");
}

#[test]
fn status_shows_every_process() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    server.connect().run("SET a 1");
    let ask = |arg: &[&str]| {
        let port = server.port().to_string();
        let output = Command::new(sirocco!())
            .args(["status", "--port", &port])
            .args(arg)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    };
    let table = ask(&[]);
    for name in ["gateway", "storage-worker", "supervisor"] {
        assert!(table.contains(name), "{table}");
    }
    let report: serde_json::Value = serde_json::from_str(&ask(&["--json"])).expect("JSON");
    // One system, by itself or as the only one of a list.
    let system = report.get(0).unwrap_or(&report);
    assert_eq!(system["port"], server.port(), "{report}");
    let processes = system["processes"].as_array().expect("a list");
    assert_eq!(processes.len(), 4, "{report}");
    let mut pids: Vec<i64> = processes
        .iter()
        .filter_map(|process| process["pid"].as_i64())
        .collect();
    pids.sort_unstable();
    let parts = ["gateway", "storage-worker", "pubsub-broker"]
        .iter()
        .flat_map(|role| server.role(role));
    let mut wanted: Vec<i64> = parts.map(|process| i64::from(process.pid)).collect();
    wanted.sort_unstable();
    assert_eq!(pids, wanted, "{report}");
}

#[test]
fn without_a_server_status_says_so() {
    let port = Port::take();
    let output = Command::new(sirocco!())
        .args(["status", "--port", &port.number().to_string()])
        .output()
        .expect("it runs");
    assert!(!output.status.success());
}
