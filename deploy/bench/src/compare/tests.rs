//! A whole comparison with real processes: the test executable starts itself as the servers.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: CompareArgs,
}

/// Start line of the responder of the tests, as a process of its own.
fn responder() -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "env SIROCCO_BENCH_RESPONDER={{port}} '{}' --exact responder::answers_as_a_process",
        program.display()
    )
}

/// Outcome of a comparison of two responders, its JSON and its CSV.
fn compare(words: &[&str]) -> (Result<ExitCode, BenchError>, serde_json::Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let (json, csv, svg) = (file("r.json"), file("r.csv"), file("r.svg"));
    let mut line = vec!["compare".to_owned(), "--server".into(), responder()];
    line.extend(["--peer".into(), format!("other={}", responder())]);
    line.extend(words.iter().map(|&word| word.to_owned()));
    for (name, path) in [("--json", &json), ("--csv", &csv), ("--svg", &svg)] {
        line.extend([name.to_owned(), path.display().to_string()]);
    }
    let args = Line::try_parse_from(line).unwrap().args;
    let outcome = run_guarded(&args, Interrupt::default());
    let text = std::fs::read_to_string(&json).unwrap_or_else(|_| "null".into());
    let drawing = std::fs::read_to_string(&svg).unwrap_or_default();
    assert_eq!(drawing.is_empty(), text == "null");
    let rows = std::fs::read_to_string(&csv).unwrap_or_default();
    (outcome, serde_json::from_str(&text).unwrap(), rows)
}

#[test]
fn two_servers_take_turns_and_are_judged() {
    let words = [
        "--suite",
        "p30",
        "--only",
        "GET P=30",
        "--only",
        "MGET",
        "--only",
        "SETNX",
        "--repetitions",
        "2",
    ];
    let sizes = ["--duration", "0.2", "--keys", "500", "--value-size", "20"];
    let (outcome, json, csv) = compare(&[&words[..], &sizes].concat());
    outcome.unwrap();
    let samples = json["samples"].as_array().unwrap();
    let servers: Vec<&str> = samples
        .iter()
        .map(|sample| sample["server"].as_str().unwrap())
        .collect();
    // SETNX is not served and leaves no sample.
    assert_eq!(servers, ["sirocco", "other"].repeat(4));
    for sample in samples {
        assert!(sample["requests_per_second"].as_f64().unwrap() > 0.0);
        assert!(sample["server_cpu_us"].as_f64().unwrap() > 0.0);
        for fault in ["errors", "wrong", "misses"] {
            assert_eq!(sample[fault], 0, "{fault}");
        }
    }
    assert_eq!(csv.lines().count(), 9);
    let other = &json["servers"]["other"];
    assert_eq!(other["family"], "redis");
    assert_eq!(other["config"]["dir"], "data");
    let line = other["start_line"].as_str().unwrap();
    assert!(
        line.starts_with("env SIROCCO_BENCH_RESPONDER={port} bench-"),
        "{line}"
    );
    // Against Redis only: throughput and CPU of two works.
    assert_eq!(json["verdicts"].as_array().unwrap().len(), 4);
}

#[test]
fn memory_and_rates_run_through() {
    let words = [
        "--suite",
        "memory",
        "rates",
        "--only",
        "memory, values of 8 B",
        "--only",
        "GET c=48",
    ];
    let sizes = [
        "--duration",
        "0.1",
        "--search-duration",
        "0.1",
        "--keys",
        "500",
    ];
    let (outcome, json, _) = compare(&[&words[..], &sizes, &["--repetitions", "1"]].concat());
    outcome.unwrap();
    assert_eq!(json["memory"].as_array().unwrap().len(), 2);
    assert!(json["memory"][0]["used_per_key"].as_f64().unwrap() > 10.0);
    let samples = json["samples"].as_array().unwrap();
    let has = |work: &str| samples.iter().any(|sample| sample["work"] == work);
    assert!(has("GET c=48 highest sustained") && has("GET c=48 10.0k/s"));
}

#[test]
fn what_cannot_be_compared_is_said() {
    let refused = |words: &[&str]| compare(words).0.unwrap_err().to_string();
    assert!(refused(&["--only", "no such work"]).contains("no work"));
    assert!(refused(&["--peer", "other=x {port}"]).contains("two servers"));
    assert!(refused(&["--peer", "third=no-such-program {port}"]).contains("cannot start third"));
    assert!(refused(&["--key-size", "5"]).contains("--key-size"));
}

#[test]
fn nothing_is_left_running() {
    let server = Server::start("one", &responder(), None, &Interrupt::default()).unwrap();
    let process = format!("/proc/{}", server.root());
    assert!(std::path::Path::new(&process).exists());
    drop(server);
    assert!(!std::path::Path::new(&process).exists());
}

#[test]
fn a_paused_server_answers_nothing_until_it_is_resumed() {
    use std::io::{Read, Write};
    let mut server = Server::start("two", &responder(), None, &Interrupt::default()).unwrap();
    server.pause();
    // The signal takes effect when the process next leaves the kernel, within moments.
    let stat = format!("/proc/{}/stat", server.root());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
    let address = ("127.0.0.1", server.target().port);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    server.resume().unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
}
