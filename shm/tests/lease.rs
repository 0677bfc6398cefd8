//! A lease in one process: who gets it, in which order, and what a death and a new arena change.

#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shm::{Journal, LEASE_WORKERS_MAX, Lease, ShmError};

const AT_ONCE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(30);

fn journal() -> Journal {
    Journal::create("test-journal", 1 << 16, 1).unwrap()
}

fn lease(journal: &Journal, me: u32) -> Lease {
    Lease::open(journal.fd().try_clone_to_owned().unwrap(), 1, me).unwrap()
}

/// Waits until something holds.
fn until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "never happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_free_lease_is_taken_and_a_held_one_is_not() {
    let journal = journal();
    let (own, visitor) = (lease(&journal, 0), lease(&journal, 1));
    assert_eq!(own.holder(), None);
    assert!(own.acquire(AT_ONCE));
    assert_eq!(visitor.holder(), Some(0));
    assert!(!visitor.acquire(AT_ONCE));
    assert!(!visitor.acquire(Duration::from_millis(20)));
    assert!(!own.is_wanted(), "who gives up wants it no longer");
    own.release();
    assert_eq!(own.holder(), None);
    assert!(visitor.acquire(AT_ONCE));
    visitor.release();
}

#[test]
fn an_index_without_a_bit_is_refused() {
    let journal = journal();
    let open = |me| Lease::open(journal.fd().try_clone_to_owned().unwrap(), 1, me);
    assert!(open(LEASE_WORKERS_MAX - 1).is_ok());
    assert!(matches!(
        open(LEASE_WORKERS_MAX),
        Err(ShmError::BadSize { found: 56, .. })
    ));
}

#[test]
fn one_holder_at_a_time_whoever_else_wants_it() {
    const ROUNDS: u64 = 2_000;
    let journal = journal();
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for me in 0..4 {
            let (lease, total) = (lease(&journal, me), &total);
            scope.spawn(move || {
                let mut done = 0;
                while done < ROUNDS {
                    // Some are impatient: giving up and being handed the lease meet.
                    let patience = Duration::from_micros(u64::from(me) * 40);
                    if lease.acquire(patience) {
                        let seen = total.load(Ordering::Relaxed);
                        total.store(seen + 1, Ordering::Relaxed);
                        lease.release();
                        done += 1;
                    }
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 4 * ROUNDS);
    assert_eq!(lease(&journal, 0).holder(), None);
}

#[test]
fn a_forgotten_holder_makes_way_and_a_forgotten_waiter_gets_nothing() {
    let journal = journal();
    let (dead, supervisor) = (lease(&journal, 1), lease(&journal, 0));
    assert!(dead.acquire(AT_ONCE));
    supervisor.forget(0);
    assert_eq!(supervisor.holder(), Some(1));
    supervisor.forget(1);
    assert_eq!(supervisor.holder(), None);
    supervisor.forget(LEASE_WORKERS_MAX);

    let own = lease(&journal, 0);
    assert!(own.acquire(AT_ONCE));
    std::thread::scope(|scope| {
        let waiter = lease(&journal, 2);
        let waiting = scope.spawn(move || {
            assert!(waiter.acquire(LONG));
            waiter.release();
        });
        until(|| own.is_wanted());
        // As if it were dead: it asks again, because it is not.
        supervisor.forget(2);
        until(|| own.is_wanted());
        own.release();
        waiting.join().unwrap();
    });
    assert_eq!(supervisor.holder(), None);
}

#[test]
fn a_successor_does_not_take_what_its_predecessor_held_for_its_own() {
    let journal = journal();
    let supervisor = lease(&journal, 0);
    assert!(lease(&journal, 1).acquire(AT_ONCE));
    let successor = lease(&journal, 1);
    assert!(!successor.acquire(AT_ONCE));
    assert!(!successor.acquire(Duration::from_millis(20)));
    assert!(!successor.acquire(Duration::from_millis(20)));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            assert!(successor.acquire(LONG));
            successor.release();
        });
        until(|| supervisor.is_wanted());
        supervisor.forget(1);
        waiting.join().unwrap();
    });
    assert_eq!(supervisor.holder(), None);
}

#[test]
fn a_change_that_did_not_end_tears_the_arena_until_it_is_made_anew() {
    let journal = journal();
    let (visitor, supervisor) = (lease(&journal, 1), lease(&journal, 0));
    assert!(visitor.acquire(AT_ONCE));
    assert_eq!((visitor.visits(), visitor.arena_generation()), (0, 0));
    visitor.end_visit();
    assert_eq!(visitor.visits(), 0);
    visitor.begin_visit();
    visitor.begin_visit();
    assert_eq!(supervisor.visits(), 1);
    assert!(supervisor.is_torn());
    assert!(supervisor.is_torn_by_dead(|worker| worker != 1));
    assert!(!supervisor.is_torn_by_dead(|worker| worker == 1));
    visitor.end_visit();
    assert!(!supervisor.is_torn_by_dead(|_| false));
    assert_eq!(supervisor.visits(), 2);
    assert!(!supervisor.is_torn());

    visitor.begin_visit();
    supervisor.renew();
    assert_eq!((supervisor.visits(), supervisor.arena_generation()), (4, 1));
    assert!(!supervisor.is_torn());
    visitor.end_visit();
    assert_eq!(visitor.visits(), 4, "a visitor that lives on tears nothing");
    visitor.release();

    journal.begin_write(0, 7);
    assert!(supervisor.is_torn());
    journal.end_write();
    assert!(!supervisor.is_torn());
    assert_eq!((journal.writing(), journal.write_place()), (2, (0, 7)));
}
