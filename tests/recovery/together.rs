//! Storage workers die, all at once or one shortly after the other, while commands over all of them are under way.
//!
//! Everybody gets a reply. What only reads is repeated until it has the right one; what writes may be told that its
//! outcome is unknown. Two gateway threads matter: a successor hears from one of them while the other still tells
//! it who waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::{Client, PATIENCE, Reply, Server, Setup, eventually, sirocco};
use nix::sys::signal::Signal;

const KEYS: usize = 24;
const CLIENTS: usize = 6;
const DEATHS: usize = 12;

fn start(workers: usize) -> Server {
    let mut setup = Setup::sirocco(sirocco!(), workers).with_deaths();
    if let harness::Kind::Sirocco {
        gateway_threads, ..
    } = &mut setup.kind
    {
        *gateway_threads = 2;
    }
    setup.start()
}

/// A command with the keys of a client, and what follows each of them.
fn words(name: &str, client: usize, value: Option<&str>) -> Vec<String> {
    let mut words = vec![name.to_owned()];
    for place in 0..KEYS {
        words.push(format!("{client}:{place}"));
        words.extend(value.map(str::to_owned));
    }
    words
}

/// Lets clients work in turns while workers die; every client takes some turns between two deaths.
fn work_and_die(server: &Server, turn: impl Fn(&mut Client, usize, usize) + Sync) {
    let stop = AtomicBool::new(false);
    let done: [AtomicUsize; CLIENTS] = std::array::from_fn(|_| AtomicUsize::new(0));
    thread::scope(|scope| {
        for (name, done) in done.iter().enumerate() {
            let (stop, turn) = (&stop, &turn);
            scope.spawn(move || {
                let mut client = server.connect();
                while !stop.load(Ordering::Relaxed) {
                    let number = done.fetch_add(1, Ordering::Relaxed);
                    turn(&mut client, name, number);
                }
            });
        }
        let counts = || done.each_ref().map(|done| done.load(Ordering::Relaxed));
        for round in 0..=DEATHS {
            let before = counts();
            let start = Instant::now();
            let is_slow = || {
                counts()
                    .iter()
                    .zip(before)
                    .any(|(now, then)| *now < then + 3)
            };
            while is_slow() && start.elapsed() < 2 * PATIENCE {
                harness::pause(Duration::from_millis(1));
            }
            if round == DEATHS || is_slow() {
                break; // who got no reply says so
            }
            // Longer than a life that counts as none.
            harness::pause(Duration::from_millis(150));
            let mut victims = server.role("storage-worker");
            victims.rotate_left(round % 2);
            for victim in victims {
                victim.signal(Signal::SIGKILL);
                harness::pause(Duration::from_millis([0, 2, 5, 9][round / 2 % 4]));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn reads_over_all_workers_are_answered_whoever_dies() {
    for workers in [2, 3] {
        let server = start(workers);
        let mut client = server.connect();
        for name in 0..CLIENTS {
            let value = format!("value of {name}");
            let reply = client.call(&words("MSET", name, Some(&value)));
            assert_eq!(reply.expect("a reply to MSET").render(), "+OK");
        }
        work_and_die(&server, |client, name, number| {
            let reply = client.call(&words("MGET", name, None));
            let reply = reply.unwrap_or_else(|error| panic!("MGET {number} of {name}: {error}"));
            let Reply::Many(_, items) = &reply else {
                panic!("{}", reply.render())
            };
            assert_eq!(items.len(), KEYS);
            for item in items {
                assert_eq!(item.text_lossy(), format!("value of {name}"));
            }
            let reply = client.call(&words("EXISTS", name, None));
            let reply = reply.unwrap_or_else(|error| panic!("EXISTS {number} of {name}: {error}"));
            assert_eq!(reply.render(), format!(":{KEYS}"));
        });
    }
}

#[test]
fn writes_over_all_workers_are_answered_whoever_dies() {
    let server = start(2);
    work_and_die(&server, |client, name, number| {
        let value = format!("value {number}");
        let commands = [words("MSET", name, Some(&value)), words("DEL", name, None)];
        for command in &commands {
            let reply = client.call(command);
            let reply = reply.unwrap_or_else(|error| panic!("{number} of {name}: {error}"));
            let text = reply.render();
            let is_known = !reply.is_error() || text.contains("outcome unknown");
            assert!(is_known, "{name}: {text}");
        }
    });
    // Nothing is locked for ever.
    let mut client = server.connect();
    for name in 0..CLIENTS {
        let reply = client.call(&words("MSET", name, Some("last")));
        assert_eq!(reply.expect("a reply to MSET").render(), "+OK");
        let reply = client.call(&words("DEL", name, None));
        assert_eq!(reply.expect("a reply to DEL").render(), format!(":{KEYS}"));
    }
    eventually("both workers are there", || {
        server.role("storage-worker").len() == 2
    });
}
