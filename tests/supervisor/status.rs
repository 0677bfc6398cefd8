//! `sirocco status`: what it shows, how it finds a server, what it costs the server to be idle.

use std::time::Duration;

use harness::{Server, Setup, eventually, sirocco};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{run, stderr, stdout};

fn status(server: &Server) -> Value {
    let dir = server.folder().display().to_string();
    let output = run(&["status", "--json", "--dir", &dir], server.folder());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("the answer is JSON")
}

#[test]
fn every_process_is_shown_with_its_number_state_and_work() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let mut client = server.connect();
    for number in 0..100 {
        client.run(&format!("SET key:{number} value"));
    }
    let status = status(&server);
    assert_eq!(status["state"], "running");
    assert_eq!(status["port"], server.port());
    assert_eq!(status["connections"], 1);
    let processes = status["processes"].as_array().expect("a list");
    assert_eq!(processes.len(), 4, "gateway, two workers, broker");
    let mut pids: Vec<u64> = Vec::new();
    for process in processes {
        assert_eq!(process["state"], "ready", "{process}");
        assert_eq!(process["restarts"], 0, "{process}");
        assert!(
            process["resident_bytes"].as_u64() > Some(1 << 20),
            "{process}"
        );
        pids.extend(process["pid"].as_u64());
    }
    for process in server.processes() {
        let pid = u64::try_from(process.pid).expect("a number of a process");
        assert!(
            pids.contains(&pid) || status["pid"] == pid,
            "{pid} is missing: {status}"
        );
    }
    let commands = |name: &str| {
        let of_role = processes
            .iter()
            .filter(|process| process["name"].as_str() == Some(name));
        of_role
            .filter_map(|process| process["commands"].as_u64())
            .sum::<u64>()
    };
    assert!(commands("gateway 0") >= 100);
    assert!(commands("storage-worker 0") + commands("storage-worker 1") >= 100);
}

#[test]
fn a_death_is_shown_with_its_cause() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    server.role("storage-worker")[0].signal(Signal::SIGKILL);
    eventually("the successor serves", || {
        let worker = &status(&server)["processes"][1];
        worker["restarts"] == 1 && worker["state"] == "ready" && worker["generation"] == 2
    });
    let dir = server.folder().display().to_string();
    let table = stdout(&run(&["status", "--dir", &dir], server.folder()));
    assert!(
        table.contains("storage-worker 0: signal 9, SIGKILL"),
        "{table}"
    );
    assert!(table.contains("OPS/S"), "{table}");
}

#[test]
fn a_stopped_process_is_shown_as_stopped() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let worker = &server.role("storage-worker")[0];
    worker.signal(Signal::SIGSTOP);
    eventually("it is seen", || {
        status(&server)["processes"][1]["state"] == "stopped"
    });
    worker.signal(Signal::SIGCONT);
    eventually("it is seen again", || {
        status(&server)["processes"][1]["state"] == "ready"
    });
}

#[test]
fn a_server_is_found_by_its_port_from_anywhere() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let port = server.port().to_string();
    let found = run(&["status", "--json", "--port", &port], elsewhere.path());
    assert!(
        stdout(&found).contains(&server.folder().display().to_string()),
        "{}",
        stderr(&found)
    );
    let dir = elsewhere.path().display().to_string();
    let nothing = run(&["status", "--dir", &dir], elsewhere.path());
    assert_eq!(nothing.status.code(), Some(5));
    assert!(
        stderr(&nothing).contains("no running sirocco"),
        "{}",
        stderr(&nothing)
    );
}

#[test]
fn an_idle_system_hardly_uses_the_processor() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let _connected: Vec<_> = (0..20).map(|_| server.connect()).collect();
    harness::pause(Duration::from_secs(1));
    let used = || {
        server
            .processes()
            .iter()
            .map(|process| process.cpu_time())
            .sum::<Duration>()
    };
    let before = used();
    harness::pause(Duration::from_secs(5));
    let spent = used() - before;
    // One percent of a core is 50 ms; the system counts in steps of 10 ms per process. A debug build does the same
    // little work in about twice the time.
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 50 });
    assert!(spent <= limit, "{spent:?} in 5 s");
}
