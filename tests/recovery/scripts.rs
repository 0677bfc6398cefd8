//! Scripts and deaths: what was loaded outlives workers and gateways, a script is done whole or has an unknown
//! outcome, and one that does not end holds nobody but the clients of its worker.

use std::time::{Duration, Instant};

use harness::{Client, PATIENCE, Server, Setup, sirocco};
use shm::fault::FaultPoint;

use crate::{announced_losses, kill_role};

/// Counts two keys up, reads in between.
const COUNT: [&str; 5] = [
    "EVAL",
    "redis.call('incr',KEYS[1]) redis.call('get',KEYS[1]) return redis.call('incr',KEYS[2])",
    "2",
    "{t}a",
    "{t}b",
];

/// The reply to a command, as a transcript shows it.
fn ask(client: &mut Client, words: &[&str]) -> String {
    client.call(words).expect("a reply").render()
}

#[test]
fn a_script_is_done_whole_or_not_at_all() {
    for point in [
        FaultPoint::CommitFilled,
        FaultPoint::CommitSwitched,
        FaultPoint::WriteBegun,
        FaultPoint::WriteEnded,
        FaultPoint::RingAfterPublish,
    ] {
        let setup = Setup::sirocco(sirocco!(), 1).with_deaths();
        let server = setup.dying_at(&format!("{}:9", point.name())).start();
        let mut client = server.connect();
        let mut done = 0;
        let mut uncertain = 0;
        for _ in 0..30 {
            let text = ask(&mut client, &COUNT);
            if text.starts_with('-') {
                assert!(text.contains("outcome unknown"), "{text}");
                uncertain = 1;
                break;
            }
            done += 1;
            assert_eq!(text, format!(":{done}"));
        }
        let a = client.run("GET {t}a").render();
        assert_eq!(
            a,
            client.run("GET {t}b").render(),
            "{}: a half",
            point.name()
        );
        if announced_losses(&server) == 0 {
            let is = |number: i32| a == format!("\"{number}\"");
            assert!(is(done) || is(done + uncertain), "{}: {a}", point.name());
        }
    }
}

#[test]
fn what_was_loaded_outlives_workers_and_gateways() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    let sha1 = ask(&mut client, &["SCRIPT", "LOAD", "return 5"]);
    let library = "#!lua name=l\nredis.register_function('f',function() return 6 end)";
    assert_eq!(ask(&mut client, &["FUNCTION", "LOAD", library]), "\"l\"");
    assert_eq!(
        ask(&mut client, &["EVAL", "return 7", "1", "somewhere"]),
        ":7"
    );
    let called_by_sha1 = "EVALSHA 59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9 1 elsewhere-17";
    let check = |client: &mut Client| {
        for key in ["a", "b", "c", "d"] {
            let sha1 = sha1.trim_matches('"');
            assert_eq!(
                client.run(&format!("EVALSHA {sha1} 1 {key}")).render(),
                ":5"
            );
            assert_eq!(client.run(&format!("FCALL f 1 {key}")).render(), ":6");
        }
        assert_eq!(client.run(called_by_sha1).render(), ":7");
    };
    check(&mut client);
    kill_role(&server, "storage-worker");
    check(&mut client);
    kill_role(&server, "gateway");
    check(&mut server.connect());
}

/// Asks again until the reply contains a text.
fn ask_until(client: &mut Client, command: &str, text: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = client.run(command).render();
        if reply.contains(text) {
            return;
        }
        assert!(Instant::now() < until, "{command}: {reply}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn busy_server(workers: usize) -> Server {
    Setup::sirocco(sirocco!(), workers)
        .with("busy-reply-threshold", "20")
        .start()
}

#[test]
fn a_script_that_does_not_end_can_be_ended() {
    let server = busy_server(1);
    let (mut runner, mut client) = (server.connect(), server.connect());
    let endless = "while true do pcall(function() while true do end end) end";
    runner
        .send(&["EVAL", endless, "0"])
        .expect("the connection is open");
    ask_until(&mut client, "PING", "BUSY Redis is busy running a script");
    assert!(client.run("FUNCTION KILL").render().contains("SCRIPT KILL"));
    assert_eq!(client.run("SCRIPT KILL").render(), "+OK");
    let reply = runner.read(PATIENCE).expect("a reply").render();
    assert!(
        reply.contains("Script killed by user with SCRIPT KILL."),
        "{reply}"
    );
    assert_eq!(client.run("PING").render(), "+PONG");
    assert!(client.run("SCRIPT KILL").render().contains("NOTBUSY"));
}

#[test]
fn one_that_has_written_is_not_ended() {
    let server = busy_server(1);
    let (mut runner, mut client) = (server.connect(), server.connect());
    let long = "redis.call('set',KEYS[1],1) for i=1,3e8 do end return 1";
    runner
        .send(&["EVAL", long, "1", "k"])
        .expect("the connection is open");
    ask_until(&mut client, "SCRIPT KILL", "UNKILLABLE");
    assert_eq!(
        runner
            .read(Duration::from_secs(60))
            .expect("a reply")
            .render(),
        ":1"
    );
}

#[test]
fn workers_without_it_go_on() {
    let server = busy_server(2);
    let (mut runner, mut client) = (server.connect(), server.connect());
    runner
        .send(&["EVAL", "while true do end", "1", "{1}"])
        .expect("the connection is open");
    ask_until(&mut client, "FUNCTION KILL", "SCRIPT KILL");
    // What is sent before the threshold waits for the script.
    std::thread::sleep(Duration::from_millis(100));
    assert!(client.run("GET {1}").render().contains("BUSY"));
    let free = (0..20).filter(|tag| !client.run(&format!("GET {{{tag}}}")).is_error());
    assert!(free.count() > 0, "the other worker serves");
    assert_eq!(client.run("PING").render(), "+PONG");
    assert_eq!(client.run("SCRIPT KILL").render(), "+OK");
    assert!(runner.read(PATIENCE).expect("a reply").is_error());
}
