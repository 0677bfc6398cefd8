//! Deaths under load: nothing that was acknowledged is lost, and at most one command is uncertain.
//!
//! Method: writers with a ledger each pipeline SETs and GETs; a worker is killed in the middle; then everything
//! that was acknowledged is read back. A worker that dies inside a write starts empty and says so; such a turn
//! proves only the announcement, so turns go on until enough of the other kind have been seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::ledger::Ledger;
use harness::{Client, Server, Setup, sirocco};
use nix::sys::signal::Signal;

use crate::announced_losses;

/// Writes until told to stop. The connection must stay open all the time.
fn writer(server: &Server, name: usize, stop: &AtomicBool) -> Ledger {
    let mut client = server.connect();
    let mut ledger = Ledger::default();
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        let pairs: Vec<(String, String)> = (0..20)
            .map(|place| {
                (
                    format!("w{name}:{}", (round * 7 + place) % 3000),
                    format!("{round}.{place}"),
                )
            })
            .collect();
        ledger
            .write_batch(&mut client, &pairs)
            .unwrap_or_else(|error| panic!("writer {name}: {error}"));
        read_some(&mut client, name);
        round += 1;
    }
    ledger
}

/// Reads leave a worker's data alone, so most deaths happen outside of writes.
fn read_some(client: &mut Client, name: usize) {
    let mut bytes = Vec::new();
    for place in 0..200 {
        harness::client::encode_command(&["GET", &format!("w{name}:{place}")], &mut bytes);
    }
    client.send_raw(&bytes).expect("the connection is open");
    for _ in 0..200 {
        client.read(harness::PATIENCE).expect("a reply to GET");
    }
}

fn turn(workers: usize, deaths: usize) -> bool {
    let server = Setup::sirocco(sirocco!(), workers).with_deaths().start();
    let stop = AtomicBool::new(false);
    let ledgers: Vec<Ledger> = thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|name| {
                let (server, stop) = (&server, &stop);
                scope.spawn(move || writer(server, name, stop))
            })
            .collect();
        for _ in 0..deaths {
            harness::pause(Duration::from_millis(250));
            if let Some(victim) = server.role("storage-worker").first() {
                victim.signal(Signal::SIGKILL);
            }
        }
        harness::pause(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .map(|writer| writer.join().expect("the writer went through"))
            .collect()
    });
    let errors: Vec<&String> = ledgers.iter().flat_map(Ledger::errors).collect();
    assert!(
        errors.len() <= deaths,
        "{deaths} deaths and {errors:#?}\n{}",
        server.log()
    );
    if announced_losses(&server) > 0 {
        return false;
    }
    let mut client = server.connect();
    for ledger in &ledgers {
        assert!(ledger.keys() > 100, "hardly anything was written");
        ledger.check(&mut client);
    }
    true
}

#[test]
fn nothing_acknowledged_is_lost_when_a_worker_is_killed_under_load() {
    for workers in [1, 2] {
        let mut proven = 0;
        for _ in 0..12 {
            proven += usize::from(turn(workers, 2));
            if proven == 3 {
                break;
            }
        }
        assert!(
            proven > 0,
            "every death was inside a write: the load of this test must have changed"
        );
    }
}
