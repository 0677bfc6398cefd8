//! A storage worker dies before, inside and behind transactions: each is done whole, not at all, or one has an
//! unknown outcome and then the worker says that it starts empty.
//!
//! Method: the worker kills itself at a step of its protocols, somewhere within a row of transactions that count
//! two keys up together. Those that watch are refused by a successor, which knows of nobody who watches.

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
