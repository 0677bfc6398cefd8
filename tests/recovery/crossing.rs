//! Whoever runs a command over several workers dies at a step of it: what others see is all of it, or nothing, or an
//! emptied worker that is announced, and nobody is left waiting.

use std::thread;

use harness::{Client, Setup, sirocco};

use crate::announced_losses;

const PAIRS: usize = 12;
const ROUNDS: usize = 120;

/// Where a worker dies, and at which passing.
const STEPS: [&str; 16] = [
    "lease-taken:2",
    "lease-taken:30",
    "lease-asked:1",
    "lease-asked:3",
    "lease-passed:1",
    "lease-passed:3",
    "visit-begun:1",
    "visit-begun:7",
    "visit-begun:40",
    "visit-ended:1",
    "visit-ended:2",
    "visit-ended:25",
    "write-ended:9",
    "commit-filled:60",
    "commit-switched:60",
    "bell-taken:20",
];

fn key(side: char, pair: usize) -> String {
    format!("{side}:{pair}")
}

/// Gives both keys of a pair one value, in one of three ways. False if nobody knows whether that has happened, or it
/// was refused.
fn set_both(client: &mut Client, pair: usize, way: usize, value: &str) -> bool {
    let (one, other) = (key('a', pair), key('b', pair));
    let reply = match way {
        0 => client.call(&["MSET", &one, value, &other, value]),
        1 => {
            let body =
                "redis.call('set', KEYS[1], ARGV[1]) redis.call('set', ARGV[2], ARGV[1]) return 1";
            client.call(&["EVAL", body, "1", &one, value, &other])
        }
        _ => {
            client.run("MULTI");
            client.run(&format!("SET {one} {value}"));
            client.run(&format!("SET {other} {value}"));
            client.call(&["EXEC"])
        }
    };
    let reply = reply.expect("a reply");
    let text = reply.render();
    let is_known = !reply.is_error();
    assert!(
        is_known || text.contains("outcome unknown") || text.contains("not available"),
        "{text}"
    );
    is_known
}

#[test]
fn all_of_it_or_nothing_wherever_a_worker_dies() {
    for step in STEPS {
        let mut setup = Setup::sirocco(sirocco!(), 3).with_deaths().dying_at(step);
        if let harness::Kind::Sirocco {
            gateway_threads, ..
        } = &mut setup.kind
        {
            *gateway_threads = 2;
        }
        let server = setup.start();
        thread::scope(|scope| {
            for name in 0..3_usize {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    for round in 0..ROUNDS {
                        let pair = (round * 7 + name * 5) % PAIRS;
                        set_both(
                            &mut client,
                            pair,
                            (round + name) % 3,
                            &format!("{name}.{round}"),
                        );
                    }
                });
            }
        });
        let mut client = server.connect();
        let losses = announced_losses(&server);
        for pair in 0..PAIRS {
            let values = client.call(&["MGET", &key('a', pair), &key('b', pair)]);
            let harness::Reply::Many(_, values) = values.expect("a reply") else {
                panic!("{step}: no values")
            };
            let is_lost = losses > 0 && values.iter().any(|value| value.text().is_none());
            assert!(
                values[0] == values[1] || is_lost,
                "{step}: half of a write: {values:?}\n{}",
                server.log()
            );
        }
        // Nothing is held any more.
        for pair in 0..PAIRS {
            assert!(set_both(&mut client, pair, 0, "end"), "{step}");
        }
        // How often a lease must be asked for is a matter of luck.
        let is_certain = shm::fault::ENABLED && step.starts_with("visit");
        let is_any_dead = server.log().contains("SIGKILL");
        assert!(is_any_dead || !is_certain, "{step}: nobody died");
    }
}
