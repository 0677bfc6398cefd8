//! A storage worker dies before, inside and behind transactions: each is done whole, not at all, or one has an
//! unknown outcome and then the worker says that it starts empty.
//!
//! Method: the worker kills itself at a step of its protocols, somewhere within a row of transactions that count
//! two keys up together. Those that watch are refused by a successor, which knows of nobody who watches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::{PATIENCE, Server, Setup, sirocco};
use shm::fault::FaultPoint;

use crate::announced_losses;

/// What a worker passes on its way through a command that writes.
const POINTS: [FaultPoint; 8] = [
    FaultPoint::RingBeforePublish,
    FaultPoint::RingAfterPublish,
    FaultPoint::RingBeforeRelease,
    FaultPoint::RingAfterRelease,
    FaultPoint::CommitFilled,
    FaultPoint::CommitSwitched,
    FaultPoint::WriteBegun,
    FaultPoint::WriteEnded,
];

/// Counts both keys up by transactions until one has an error, or they are many; the number that was
/// acknowledged, and whether one is uncertain.
fn count_up(server: &Server) -> (i64, bool) {
    let mut client = server.connect();
    let mut done = 0;
    for _ in 0..60 {
        for command in ["MULTI", "INCR {t}a", "GET {t}a", "INCR {t}b"] {
            client.run(command);
        }
        client.send(&["EXEC"]).expect("the connection is open");
        let reply = client.read(PATIENCE).expect("a reply");
        if reply.is_error() {
            assert!(
                reply.render().contains("outcome unknown"),
                "{}",
                reply.render()
            );
            return (done, true);
        }
        done += 1;
        assert_eq!(reply.render(), format!("*[:{done} \"{done}\" :{done}]"));
    }
    (done, false)
}

#[test]
fn a_transaction_is_done_whole_or_not_at_all() {
    for point in POINTS {
        for count in [3, 20] {
            let setup = Setup::sirocco(sirocco!(), 1).with_deaths();
            let server = setup.dying_at(&format!("{}:{count}", point.name())).start();
            let (done, is_uncertain) = count_up(&server);
            assert!(
                is_uncertain || point != FaultPoint::WriteBegun,
                "it never died"
            );
            let mut client = server.connect();
            let (a, b) = (
                client.run("GET {t}a").render(),
                client.run("GET {t}b").render(),
            );
            assert_eq!(a, b, "{} {count}: half a transaction", point.name());
            if announced_losses(&server) > 0 {
                continue;
            }
            let is = |number: i64| a == format!("\"{number}\"");
            assert!(
                is(done) || is_uncertain && is(done + 1),
                "{} {count}: {done} done, {a}",
                point.name()
            );
        }
    }
}

#[test]
fn a_successor_takes_watched_keys_for_changed() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut client = server.connect();
    client.run("SET a 1");
    client.run("WATCH a");
    crate::kill_role(&server, "storage-worker");
    client.run("MULTI");
    client.run("INCR a");
    assert_eq!(client.run("EXEC").render(), "*-1");
    client.run("WATCH a");
    client.run("MULTI");
    client.run("INCR a");
    crate::kill_role(&server, "storage-worker");
    client.run("GET a");
    assert_eq!(client.run("EXEC").render(), "*-1");
    client.run("MULTI");
    client.run("INCR a");
    assert_eq!(client.run("EXEC").render(), "*[:2]");
}

#[test]
fn one_that_is_half_sent_is_not_done() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let value = "v".repeat(3_000_000);
    for bytes in [100, 1_000_000, 5_000_000] {
        let mut client = server.connect();
        let mut all = Vec::new();
        harness::client::encode_command(&["MULTI"], &mut all);
        harness::client::encode_command(&["SET", "{t}a", &value], &mut all);
        harness::client::encode_command(&["SET", "{t}b", &value], &mut all);
        harness::client::encode_command(&["EXEC"], &mut all);
        client
            .send_raw(&all[..bytes])
            .expect("the connection is open");
        drop(client);
        let mut other = server.connect();
        assert_eq!(other.run("EXISTS {t}a {t}b").render(), ":0");
    }
    let mut client = server.connect();
    client.run("WATCH {t}a");
    client.run("MULTI");
    client.call(&["SET", "{t}a", &value]).expect("a reply");
    client.call(&["SET", "{t}b", &value]).expect("a reply");
    assert_eq!(client.run("EXEC").render(), "*[+OK +OK]");
    assert_eq!(client.run("STRLEN {t}b").render(), ":3000000");
}

/// Clients set and get keys of all workers at once while workers are killed: whoever is answered without an error
/// was served whole, and nobody waits for ever.
#[test]
fn keys_of_several_workers_are_served_whatever_dies() {
    let server = Setup::sirocco(sirocco!(), 3).with_deaths().start();
    let is_over = AtomicBool::new(false);
    let words = |name: &str, value: Option<usize>| {
        let mut words = vec![name.to_owned()];
        for number in 0..6 {
            words.push(format!("key:{number}"));
            words.extend(value.map(|value| value.to_string()));
        }
        words
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4_usize)
            .map(|seed| {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    let mut client = server.connect();
                    let (mut done, mut errors, mut value) = (0, 0, seed);
                    while !is_over.load(Ordering::Relaxed) {
                        value += 10;
                        for words in [words("MSET", Some(value)), words("MGET", None)] {
                            let reply = client.call(&words).expect("a reply, whatever died");
                            errors += usize::from(reply.is_error());
                            done += 1;
                        }
                    }
                    (done, errors)
                })
            })
            .collect();
        for _ in 0..8 {
            harness::pause(Duration::from_millis(120));
            crate::kill_role(&server, "storage-worker");
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            let (done, errors) = client.join().expect("the client went through");
            assert!(done > 100 && errors <= 24, "{done} done, {errors} errors");
        }
    });
    // All locks are gone.
    let mut client = server.connect();
    assert_eq!(
        client
            .call(&words("MSET", Some(1)))
            .expect("a reply")
            .render(),
        "+OK"
    );
    let values = client.call(&words("MGET", None)).expect("a reply").render();
    assert_eq!(values.matches("\"1\"").count(), 6, "{values}");
}

/// A gateway dies while its clients hold locks: they are gone with it.
#[test]
fn locks_of_a_dead_gateway_are_gone() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    for _ in 0..5 {
        let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
        let mut bytes = Vec::new();
        for _ in 0..200 {
            harness::client::encode_command(
                &["MSET", "a", "1", "b", "2", "c", "3", "d", "4"],
                &mut bytes,
            );
        }
        clients
            .iter_mut()
            .for_each(|client| client.send_raw(&bytes).expect("it is open"));
        harness::pause(Duration::from_millis(3));
        crate::kill_role(&server, "gateway");
        let mut client = harness::Client::connect_patiently(&server.tcp());
        assert_eq!(client.run("MSET a 5 b 5 c 5 d 5").render(), "+OK");
        assert_eq!(
            client.run("MGET a b c d").render().matches("\"5\"").count(),
            4
        );
    }
}
