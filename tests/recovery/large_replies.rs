//! A storage worker dies while it sends a reply that does not fit into its ring at once.
//!
//! A reply that has begun is continued byte for byte if the value is still the same. If it cannot be, the client is
//! disconnected; it never gets the beginning of one reply and the end of another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::client::encode_command;
use harness::{Client, PATIENCE, Setup, sirocco};
use nix::sys::signal::Signal;

use crate::{announced_losses, kill_role};

/// Bytes of which every stretch looks different.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len / 8 + 1)
        .flat_map(|place| format!("{:08x}", place * 31 + seed).into_bytes())
        .take(len)
        .collect()
}

/// Asks for everything in one pipeline and compares the bytes.
fn read_all(client: &mut Client, values: &[Vec<u8>], name: &str) {
    let mut bytes = Vec::new();
    for number in 0..values.len() {
        encode_command(&["GET", &format!("value:{number}")], &mut bytes);
        encode_command(&["LRANGE", "list", "0", "-1"], &mut bytes);
    }
    encode_command(&["MGET", "value:0", "value:1", "value:2"], &mut bytes);
    client.send_raw(&bytes).expect("the connection is open");
    let mut next = |what: &str| {
        client
            .read(PATIENCE)
            .unwrap_or_else(|error| panic!("{name}, {what}: {error}"))
    };
    for (number, value) in values.iter().enumerate() {
        let got = next("GET");
        assert!(
            got.text() == Some(value.as_slice()),
            "{name}: value {number} differs"
        );
        let list = next("LRANGE");
        let harness::Reply::Many(_, items) = &list else {
            panic!("{name}: {}", list.render())
        };
        assert_eq!(items.len(), 300, "{name}");
        for (place, item) in items.iter().enumerate() {
            assert!(
                item.text() == Some(pattern(3000, place).as_slice()),
                "{name}: element {place}"
            );
        }
    }
    let all = next("MGET");
    let harness::Reply::Many(_, items) = &all else {
        panic!("{name}: {}", all.render())
    };
    for (item, value) in items.iter().zip(values) {
        assert!(
            item.text() == Some(value.as_slice()),
            "{name}: MGET differs"
        );
    }
}

fn values() -> Vec<Vec<u8>> {
    [5_000_000, 300_000, 2_000_000, 70_000]
        .into_iter()
        .enumerate()
        .map(|(number, len)| pattern(len, number))
        .collect()
}

fn fill(client: &mut Client, values: &[Vec<u8>]) {
    for (number, value) in values.iter().enumerate() {
        let key = format!("value:{number}");
        let reply = client
            .call(&[b"SET", key.as_bytes(), value])
            .expect("a reply");
        assert_eq!(reply.render(), "+OK");
    }
    for place in 0..300 {
        let element = pattern(3000, place);
        let words: [&[u8]; 3] = [b"RPUSH", b"list", &element];
        let reply = client.call(&words).expect("a reply");
        assert_eq!(reply.render(), format!(":{}", place + 1));
    }
}

#[test]
fn a_large_reply_goes_on_where_the_dead_worker_stopped() {
    let values = values();
    for workers in [1, 2] {
        for nth in 1..7 {
            // The point is passed only when a reply has filled its ring.
            let label = format!("ring-wants-space:{nth}");
            let server = Setup::sirocco(sirocco!(), workers).dying_at(&label).start();
            let first = server.role("storage-worker");
            let mut client = server.connect();
            fill(&mut client, &values);
            read_all(&mut client, &values, &label);
            read_all(&mut client, &values, &label);
            assert_eq!(client.run("DBSIZE").render(), ":5");
            if shm::fault::ENABLED {
                assert_ne!(server.role("storage-worker"), first, "{label}: nobody died");
            }
        }
    }
}

/// The outcome of the write is unknown. Who has got nothing of the reply is told so; who has got something, and
/// cannot be told, is disconnected.
#[test]
fn a_write_whose_large_reply_was_cut_off_is_an_error_or_the_end() {
    let value = pattern(6_000_000, 1);
    for nth in 1..5 {
        let label = format!("ring-wants-space:{nth}");
        let server = Setup::sirocco(sirocco!(), 1).dying_at(&label).start();
        let mut client = server.connect();
        client
            .call::<&[u8]>(&[b"SET", b"value", &value])
            .expect("a reply");
        match client.call(&["GETDEL", "value"]) {
            Ok(reply) if reply.is_error() => {
                assert!(
                    reply.render().contains("outcome unknown"),
                    "{}",
                    reply.render()
                );
                assert_eq!(client.run("PING").render(), "+PONG");
            }
            Ok(reply) => assert!(
                reply.text() == Some(value.as_slice()),
                "{label}: another value"
            ),
            Err(harness::ReadError::Closed) => {}
            Err(error) => panic!("{label}: {error}"),
        }
        let mut other = server.connect();
        assert_eq!(other.run("EXISTS value").render(), ":0");
        assert_eq!(announced_losses(&server), 0);
    }
}

#[test]
fn large_replies_survive_many_deaths() {
    let values = values();
    let mut setup = Setup::sirocco(sirocco!(), 2).with_deaths();
    if let harness::Kind::Sirocco {
        gateway_threads, ..
    } = &mut setup.kind
    {
        *gateway_threads = 2;
    }
    let server = setup.start();
    fill(&mut server.connect(), &values);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in 0..3 {
            let (server, stop, values) = (&server, &stop, &values);
            scope.spawn(move || {
                let mut client = server.connect();
                while !stop.load(Ordering::Relaxed) {
                    read_all(&mut client, values, &format!("reader {name}"));
                }
            });
        }
        for round in 0..12 {
            harness::pause(Duration::from_millis(120 + 37 * (round % 5)));
            if round % 4 == 3 {
                kill_role(&server, "storage-worker");
            } else if let Some(victim) = server.role("storage-worker").first() {
                victim.signal(Signal::SIGKILL);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    // Reads leave the data alone.
    assert_eq!(announced_losses(&server), 0);
    read_all(&mut server.connect(), &values, "afterwards");
}
