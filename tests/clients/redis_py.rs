//! redis-py: the script beside this file, in both protocols, sync and asyncio.
//!
//! `SIROCCO_PYTHON` names an interpreter that has the package (`.ci/run` makes one in a virtual environment);
//! otherwise `python3` is tried.

use std::process::Command;

use harness::{Setup, sirocco, skip};

#[test]
fn the_script_runs_through() {
    let python = std::env::var("SIROCCO_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python).args(["-c", "import redis"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip::report(
            "redis-py",
            &format!("{python} does not have the package redis"),
        );
        return;
    }
    let server = Setup::sirocco(sirocco!(), 2).start();
    let script = harness::workspace().join("tests/clients/redis_py.py");
    let output = Command::new(&python)
        .arg(script)
        .arg(server.port().to_string())
        .arg(server.folder().join("server.sock"))
        .output()
        .expect("python runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("all went well"),
        "{text}"
    );
}
