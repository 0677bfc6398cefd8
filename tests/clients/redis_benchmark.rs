//! redis-benchmark: its own tests run through without an error, plain, pipelined and with many connections.

use std::process::Command;

use harness::{Server, Setup, sirocco, skip};

fn run(server: &Server, args: &[&str]) -> Option<String> {
    let tool = skip::program("redis-benchmark", "redis-benchmark")?;
    let output = Command::new(tool)
        .args(["-p", &server.port().to_string(), "--csv"])
        .args(args)
        .output()
        .expect("redis-benchmark runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "redis-benchmark {args:?}: {text}");
    assert!(!text.contains("Error"), "{text}");
    Some(text)
}

#[test]
fn its_tests_of_strings_run_through() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let Some(text) = run(&server, &["-n", "5000", "-t", "ping,set,get,incr,mset"]) else {
        return;
    };
    for name in [
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
        "MSET (10 keys)",
    ] {
        assert!(
            text.contains(&format!("\"{name}\"")),
            "{name} is missing in {text}"
        );
    }
    let mut client = server.connect();
    assert_eq!(client.run("GET counter:__rand_int__").render(), "\"5000\"");
}

#[test]
fn pipelined_with_random_keys_and_many_connections() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let wide = [
        "-n", "40000", "-P", "30", "-r", "10000", "-c", "20", "-d", "256", "-t", "set,get",
    ];
    if run(&server, &wide).is_none() {
        return;
    }
    let _ = run(&server, &["-n", "5000", "-c", "300", "-t", "get"]);
    let _ = run(&server, &["-n", "2000", "-3", "-t", "set,get"]);
    let keys = server.connect().run("DBSIZE").int().expect("a count");
    assert!((9000..=10_001).contains(&keys), "{keys} keys");
}
