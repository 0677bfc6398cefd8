//! A storage worker dies: its successor maps the same memory and goes on.

use std::time::{Duration, Instant};

use harness::{PATIENCE, Setup, eventually, sirocco};
use nix::sys::signal::Signal;

use crate::{announced_losses, check_keys, kill_role, write_keys};

const KEYS: usize = 20_000;

#[test]
fn an_idle_worker_is_replaced_with_all_its_keys() {
    for workers in [1, 2, 4] {
        let server = Setup::sirocco(sirocco!(), workers).with_deaths().start();
        let mut client = server.connect();
        write_keys(&mut client, KEYS);
        client.run("SET timed x EX 1000");
        client.run("SET number 41");
        for _ in 0..3 {
            kill_role(&server, "storage-worker");
            // The same connection goes on, and sees everything.
            assert_eq!(client.run("INCR number").render(), ":42");
            assert_eq!(client.run("DEL timed").render(), ":1");
            client.run("SET timed x EX 1000");
            client.run("DEL number timed");
            check_keys(&mut client, KEYS);
            client.run("SET timed x EX 1000");
            client.run("SET number 41");
        }
        assert_eq!(announced_losses(&server), 0, "{}", server.log());
    }
}

#[test]
fn expiries_and_other_databases_survive() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    client.run("SELECT 7");
    client.run("SET long x EX 1000");
    client.run("SET short x PX 600");
    client.run("SETBIT bits 100000 1");
    client.run("APPEND text abc");
    kill_role(&server, "storage-worker");
    let left = client.run("TTL long").int().expect("a time");
    assert!((990..=1000).contains(&left), "{left}");
    assert_eq!(client.run("BITCOUNT bits").render(), ":1");
    assert_eq!(client.run("APPEND text def").render(), ":6");
    eventually("the short one ends", || {
        client.run("EXISTS short").render() == ":0"
    });
    assert_eq!(client.run("DBSIZE").render(), ":3");
    client.run("SELECT 0");
    assert_eq!(client.run("DBSIZE").render(), ":0");
}

#[test]
fn a_command_that_reads_much_before_it_writes_loses_nothing() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut client = server.connect();
    for first in (0..100_000).step_by(1000) {
        let numbers = || first..first + 1000;
        let mut push = vec!["RPUSH".to_owned(), "list".to_owned()];
        push.extend(numbers().map(|number| format!("element {}", number * 7919 % 100_000)));
        client.call(&push).expect("a reply to RPUSH");
        let mut add = vec!["ZADD".to_owned(), "places".to_owned()];
        add.extend(numbers().flat_map(|number| [number.to_string(), format!("m{number}")]));
        client.call(&add).expect("a reply to ZADD");
    }
    for command in [
        "SORT list ALPHA LIMIT 0 1",
        "SORT list ALPHA LIMIT 0 1 STORE first",
        "ZDIFFSTORE none 2 places places",
        "GEORADIUS places 0 0 20000 km COUNT 1",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let mut bytes = Vec::new();
        harness::client::encode_command(&words, &mut bytes);
        client.send_raw(&bytes).expect("the connection is open");
        harness::pause(Duration::from_millis(15));
        kill_role(&server, "storage-worker");
        client.read(PATIENCE).expect("a reply, perhaps an error");
        assert_eq!(client.run("LLEN list").render(), ":100000", "{command}");
        assert_eq!(client.run("ZCARD places").render(), ":100000", "{command}");
    }
    assert_eq!(announced_losses(&server), 0, "{}", server.log());
}

#[test]
fn commands_that_were_queued_are_answered_by_the_successor() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    write_keys(&mut client, 1000);
    let workers = server.role("storage-worker");
    // Stopped workers answer nothing, so all of this waits in the rings and behind them ...
    for worker in &workers {
        worker.signal(Signal::SIGSTOP);
    }
    let mut bytes = Vec::new();
    for number in 0..5000 {
        let key = format!("key:{}", number % 1000);
        harness::client::encode_command(&["GET", &key], &mut bytes);
    }
    client.send_raw(&bytes).expect("the connection is open");
    harness::pause(Duration::from_millis(50));
    // ... and a stopped process is idle, so nothing is uncertain when it dies.
    for worker in &workers {
        worker.signal(Signal::SIGKILL);
    }
    for number in 0..5000 {
        let reply = client
            .read(PATIENCE)
            .unwrap_or_else(|error| panic!("reply {number}: {error}"));
        assert_eq!(
            reply.text_lossy(),
            format!("value {}", number % 1000),
            "reply {number}"
        );
    }
}

#[test]
fn a_stopped_worker_is_replaced() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    write_keys(&mut client, 1000);
    let old = server.role("storage-worker");
    old[0].signal(Signal::SIGSTOP);
    let start = Instant::now();
    eventually("the stopped one is replaced", || {
        let now = server.role("storage-worker");
        now.len() == 2 && !now.contains(&old[0])
    });
    assert!(
        start.elapsed() > Duration::from_secs(3),
        "replaced after {:?}",
        start.elapsed()
    );
    check_keys(&mut client, 1000);
    assert!(
        server.role("storage-worker").contains(&old[1]),
        "the other one was replaced too"
    );
}

#[test]
fn a_short_stop_is_only_a_pause() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut client = server.connect();
    write_keys(&mut client, 1000);
    let old = server.role("storage-worker");
    old[0].signal(Signal::SIGSTOP);
    client
        .send(&["GET", "key:1"])
        .expect("the connection is open");
    harness::pause(Duration::from_millis(800));
    old[0].signal(Signal::SIGCONT);
    assert_eq!(
        client.read(PATIENCE).expect("a reply").text_lossy(),
        "value 1"
    );
    assert_eq!(server.role("storage-worker"), old);
}

#[test]
fn a_busy_worker_is_not_taken_for_dead() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut client = server.connect();
    let old = server.role("storage-worker");
    // Longer than a stopped process would be left alone, and quadratic work.
    assert_eq!(client.run("DEBUG SLEEP 6").render(), "+OK");
    let text = "xy".repeat(5000);
    client.call(&["SET", "{t}1", &text]).expect("a reply");
    client
        .call(&["SET", "{t}2", &text.replace("xyxy", "xzy")])
        .expect("a reply");
    let reply = client
        .call(&["LCS", "{t}1", "{t}2", "LEN"])
        .expect("a reply");
    assert_eq!(reply.render(), ":5000");
    assert_eq!(server.role("storage-worker"), old, "{}", server.log());
}

#[test]
fn a_worker_that_keeps_dying_is_restarted_with_delays_and_the_rest_serves() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    write_keys(&mut client, 2000);
    // Which keys live where is found out by stopping one worker: those of the other are still answered.
    let workers = server.role("storage-worker");
    let (victim, survivor) = (&workers[0], &workers[1]);
    victim.signal(Signal::SIGSTOP);
    let of_survivor = (0..2000)
        .map(|number| format!("key:{number}"))
        .find(|key| {
            let mut probe = server.connect();
            probe.send(&["GET", key]).is_ok() && probe.read(Duration::from_millis(100)).is_ok()
        })
        .expect("the survivor has some of the keys");
    victim.signal(Signal::SIGCONT);
    // Whoever takes the victim's place is killed, for four seconds.
    let (start, mut deaths) = (Instant::now(), 0);
    let mut other = server.connect();
    while start.elapsed() < Duration::from_secs(4) {
        for process in server.role("storage-worker") {
            if process != *survivor {
                process.signal(Signal::SIGKILL);
                deaths += 1;
            }
        }
        assert!(
            other
                .run(&format!("GET {of_survivor}"))
                .text_lossy()
                .starts_with("value")
        );
        harness::pause(Duration::from_millis(5));
    }
    // Without delays it would have been some hundred.
    assert!(
        (3..60).contains(&deaths),
        "{deaths} deaths in 4 s\n{}",
        server.log()
    );
    eventually("all keys are served again", || {
        let mut probe = server.connect();
        probe
            .call(&["DBSIZE"])
            .is_ok_and(|reply| reply.render() == ":2000")
    });
    if announced_losses(&server) == 0 {
        check_keys(&mut server.connect(), 2000);
    }
}

#[test]
fn a_value_that_travels_in_pieces_survives_the_death_of_its_reader() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut watcher = server.connect();
    watcher.run("SET here still");
    for round in 0..6_u64 {
        let value = vec![b'0' + u8::try_from(round).unwrap_or(0); 30_000_000];
        let reply = std::thread::scope(|scope| {
            let mut client = server.connect();
            let value = &value;
            let writer = scope.spawn(move || client.call(&[b"SET", b"big", value.as_slice()]));
            // Somewhere inside the transfer, another place each time.
            harness::pause(Duration::from_millis(4 + 9 * round));
            for worker in server.role("storage-worker") {
                worker.signal(Signal::SIGKILL);
            }
            writer.join().expect("the writer went through")
        });
        let reply = reply.unwrap_or_else(|error| panic!("round {round}: {error}"));
        if announced_losses(&server) > 0 {
            // Killed while it copied the value: said, and nothing more to see.
            return;
        }
        let length = watcher.run("STRLEN big").int().expect("a length");
        if reply.is_error() {
            assert!(
                length == 30_000_000 || length == 0,
                "round {round}: {length}"
            );
        } else {
            assert_eq!(reply.render(), "+OK", "round {round}");
            let got = watcher.run("GET big");
            assert!(
                got.text() == Some(value.as_slice()),
                "round {round}: another value"
            );
        }
        assert_eq!(watcher.run("GET here").render(), "\"still\"");
    }
}

/// The last piece of a large request is refused by a worker that never saw the first: the error must
/// find its command, also when that is one part of a command over several workers.
#[test]
fn a_large_write_that_killed_its_worker_is_answered() {
    let value = vec![b'v'; 8_000_000];
    for workers in [1, 2] {
        let setup = Setup::sirocco(sirocco!(), workers)
            .with_deaths()
            .dying_at("write-begun:1");
        let server = setup.start();
        let mut client = server.connect();
        let mut words: Vec<&[u8]> = vec![b"MSET"];
        for key in [b"a", b"b", b"c", b"d"] {
            words.extend([key.as_slice(), value.as_slice()]);
        }
        let reply = client.call(&words).expect("a reply");
        assert!(
            reply.render().contains("outcome unknown"),
            "{workers} workers: {}",
            reply.render()
        );
        assert_eq!(client.run("PING").render(), "+PONG");
        // Whoever runs it dies before it has begun to change another keyspace.
        assert_eq!(announced_losses(&server), 1);
    }
}
