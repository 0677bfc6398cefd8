//! A storage worker dies while it works in the arena of another one: who is replaced, and what is lost.
//!
//! Method: the test takes the lease of worker 1 in the name of worker 0, through the journal that worker 1 has open,
//! and then kills one of the two.

use std::fs::{self, OpenOptions};

use harness::{PATIENCE, Server, Setup, eventually, process::Process, sirocco};
use nix::sys::signal::Signal;
use shm::Lease;

use crate::{announced_losses, check_keys, write_keys};

const KEYS: usize = 2_000;

fn worker(server: &Server, index: usize) -> Process {
    let workers = server.role("storage-worker");
    let found = workers.into_iter().find(|process| process.index() == index);
    found.expect("the worker runs")
}

/// The lease of worker 1, in the hands of worker 0.
fn lease_of_one(server: &Server) -> Lease {
    let folder = format!("/proc/{}/fd", worker(server, 1).pid);
    let is_it = |path: &std::path::PathBuf| {
        let target = fs::read_link(path).unwrap_or_default();
        target.to_string_lossy().contains("sirocco-journal-1")
    };
    let open = fs::read_dir(folder).expect("the worker lives");
    let mut open = open.flatten().map(|entry| entry.path());
    let path = open.find(is_it).expect("its journal");
    let file = OpenOptions::new().read(true).write(true).open(path);
    let journal = file.expect("a journal of ours").into();
    Lease::open(journal, proto::catalogue::fingerprint(), 0).expect("a lease")
}

fn kill(server: &Server, index: usize) {
    let old = worker(server, index);
    old.signal(Signal::SIGKILL);
    eventually("the dead one is replaced", || {
        let now = server.role("storage-worker");
        now.len() == 2 && !now.contains(&old)
    });
}

fn start() -> Server {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    write_keys(&mut server.connect(), KEYS);
    server
}

/// Whether a worker has an arena of this name, open or mapped.
fn has_arena(process: &Process, name: &str) -> bool {
    let maps = fs::read_to_string(format!("/proc/{}/maps", process.pid)).unwrap_or_default();
    let open = fs::read_dir(format!("/proc/{}/fd", process.pid));
    let mut open = open.into_iter().flatten().flatten();
    let is_it = |path| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains(name));
    maps.contains(name) || open.any(|entry| is_it(entry.path()))
}

#[test]
fn a_visitor_that_dies_between_changes_frees_the_lease_and_costs_nothing() {
    let server = start();
    let lease = lease_of_one(&server);
    assert!(lease.acquire(PATIENCE));
    lease.begin_visit();
    lease.end_visit();
    kill(&server, 0);
    eventually("the lease is freed", || lease.holder() != Some(0));
    check_keys(&mut server.connect(), KEYS);
    assert_eq!(announced_losses(&server), 0, "{}", server.log());
    assert_eq!(lease.arena_generation(), 0);
}

#[test]
fn a_visitor_that_dies_inside_a_change_costs_the_arena_that_it_changed() {
    let server = start();
    let owner = worker(&server, 1);
    let lease = lease_of_one(&server);
    assert!(lease.acquire(PATIENCE));
    lease.begin_visit();
    kill(&server, 0);
    eventually("the owner is replaced", || {
        let now = server.role("storage-worker");
        now.len() == 2 && !now.contains(&owner)
    });
    eventually("the lease is freed", || lease.holder() != Some(0));
    assert!(lease.visits().is_multiple_of(2));
    assert_eq!(lease.arena_generation(), 1);
    let mut client = server.connect();
    let left = client.run("DBSIZE").int().expect("a number");
    assert!(0 < left && left < KEYS as i64, "{left}");
    assert_eq!(announced_losses(&server), 1, "{}", server.log());
    let cause = "its arena was torn by storage-worker 0";
    assert!(server.log().contains(cause), "{}", server.log());
    // All of it works again.
    write_keys(&mut client, KEYS);
    check_keys(&mut client, KEYS);
    eventually("the visitor's successor knows the new arena", || {
        has_arena(&worker(&server, 0), "sirocco-arena-1")
    });
}

#[test]
fn an_owner_that_dies_under_a_living_visitor_keeps_its_arena() {
    let server = start();
    let lease = lease_of_one(&server);
    assert!(lease.acquire(PATIENCE));
    lease.begin_visit();
    kill(&server, 1);
    assert_eq!(lease.holder(), Some(0));
    lease.end_visit();
    lease.release();
    check_keys(&mut server.connect(), KEYS);
    assert_eq!(announced_losses(&server), 0, "{}", server.log());
}
