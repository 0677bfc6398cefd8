//! redis-cli: one command, a script on standard input, RESP3, --scan, --bigkeys, --stat, --pipe, a unix socket.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::{Server, Setup, sirocco, skip};

fn tool() -> Option<PathBuf> {
    skip::program("redis-cli", "redis-cli")
}

fn run(tool: &PathBuf, server: &Server, args: &[&str], input: &str) -> String {
    let mut child = Command::new(tool)
        .args(["-p", &server.port().to_string()])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("redis-cli runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes())
        .expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "redis-cli {args:?}: {text}");
    text
}

#[test]
fn commands_scripts_and_resp3() {
    let Some(tool) = tool() else { return };
    let server = Setup::sirocco(sirocco!(), 2).start();
    assert_eq!(run(&tool, &server, &["PING"], "").trim(), "PONG");
    assert_eq!(run(&tool, &server, &["SET", "a", "b c"], "").trim(), "OK");
    assert_eq!(run(&tool, &server, &["-3", "GET", "a"], "").trim(), "b c");
    let text = run(
        &tool,
        &server,
        &[],
        "INCR n\nINCR n\nGET n\nMGET a n x\nNONSENSE\n",
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[..3], ["1", "2", "2"]);
    assert!(text.contains("ERR unknown command 'NONSENSE'"), "{text}");
    assert_eq!(run(&tool, &server, &["-n", "5", "DBSIZE"], "").trim(), "0");
    let socket = server.folder().join("server.sock");
    assert_eq!(
        run(
            &tool,
            &server,
            &["-s", &socket.display().to_string(), "GET", "n"],
            ""
        )
        .trim(),
        "2"
    );
}

#[test]
fn a_password_on_the_command_line() {
    let Some(tool) = tool() else { return };
    let server = Setup::sirocco(sirocco!(), 1)
        .with("requirepass", "secret")
        .start();
    assert!(run(&tool, &server, &["GET", "a"], "").contains("NOAUTH"));
    let text = run(
        &tool,
        &server,
        &["--no-auth-warning", "-a", "secret", "SET", "a", "1"],
        "",
    );
    assert_eq!(text.trim(), "OK");
}

#[test]
fn scanning_tools() {
    let Some(tool) = tool() else { return };
    let server = Setup::sirocco(sirocco!(), 2).start();
    let script: String = (0..500)
        .map(|number| format!("SET key:{number} {number}\n"))
        .collect();
    run(&tool, &server, &[], &script);
    let text = run(&tool, &server, &["--scan", "--pattern", "key:*"], "");
    assert_eq!(text.lines().count(), 500);
    let text = run(&tool, &server, &["--bigkeys"], "");
    assert!(text.contains("Sampled 500 keys"), "{text}");
    let text = run(&tool, &server, &["--memkeys"], "");
    assert!(text.contains("Sampled 500 keys"), "{text}");
    let text = run(&tool, &server, &["--latency", "-i", "1"], "QUIT\n");
    assert!(!text.to_lowercase().contains("error"), "{text}");
}

#[test]
fn mass_insertion_with_pipe() {
    let Some(tool) = tool() else { return };
    let server = Setup::sirocco(sirocco!(), 2).start();
    let mut bytes = Vec::new();
    for number in 0..10_000 {
        harness::client::encode_command(&["SET", &format!("k{number}"), "x"], &mut bytes);
    }
    let text = run(
        &tool,
        &server,
        &["--pipe"],
        &String::from_utf8(bytes).expect("ASCII"),
    );
    assert!(text.contains("errors: 0, replies: 10000"), "{text}");
    assert_eq!(run(&tool, &server, &["DBSIZE"], "").trim(), "10000");
}
