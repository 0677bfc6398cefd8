//! Deaths at the steps of a lease: what the supervisor and whoever waits find, and that a change
//! that was begun by a dead visitor never looks whole.

use std::time::Duration;

use shm::fault::FaultPoint;
use shm::{Journal, Lease, Party};

use super::process::{Fault, Plan, start};

const PATIENCE: Duration = Duration::from_secs(20);
/// Changes that one visitor makes in its life, unless it is to die before.
const ROUNDS: u64 = 200;

/// Changes of one that must meet another one for certain, some seconds at most.
const MANY_ROUNDS: u64 = 3_000_000;

/// An "arena" of two counters that are equal when no change is half done, and its lease.
struct Stage {
    journal: Journal,
    arena: Party,
}

impl Stage {
    fn new() -> Self {
        Self {
            journal: Journal::create("test-journal", 1 << 16, 1).unwrap(),
            arena: Party::create("test-arena", 0, 0, 2, 1).unwrap(),
        }
    }

    fn lease(&self, me: u32) -> Lease {
        Lease::open(self.journal.fd().try_clone_to_owned().unwrap(), 1, me).unwrap()
    }

    fn start(&self, me: u32, fault: Option<Fault>) -> super::process::Child {
        let rounds = fault.map_or(ROUNDS, |_| u64::MAX >> 8);
        self.start_for(rounds, me, fault)
    }

    fn start_for(&self, rounds: u64, me: u32, fault: Option<Fault>) -> super::process::Child {
        let fds = [self.journal.fd(), self.arena.fd()];
        start("visitor", fault, rounds << 8 | u64::from(me), &fds)
    }

    fn counters(&self) -> [u64; 2] {
        [0, 1].map(|index| self.arena.counters().get(index))
    }
}

/// Changes the arena, which must be whole.
fn change(lease: &Lease, arena: &Party) {
    let counters = arena.counters();
    assert!(!lease.is_torn());
    assert_eq!(counters.get(0), counters.get(1), "a whole arena");
    lease.begin_visit();
    counters.set(0, counters.get(0) + 1);
    counters.set(1, counters.get(1) + 1);
    lease.end_visit();
}

/// Child: takes the lease, changes the arena, gives it up, again and again.
pub fn visitor(mut plan: Plan) {
    let me = (plan.number & 0xff) as u32;
    let lease = Lease::open(plan.take(), 1, me).unwrap();
    let arena = Party::open(plan.take(), 1).unwrap();
    for _ in 0..plan.number >> 8 {
        assert!(lease.acquire(PATIENCE));
        change(&lease, &arena);
        lease.release();
    }
}

#[test]
fn a_holder_that_dies_outside_of_a_change_leaves_a_whole_arena() {
    for point in [FaultPoint::LeaseTaken, FaultPoint::VisitEnded] {
        let stage = Stage::new();
        let lease = stage.lease(0);
        stage.start(1, Some((point, 3))).died();
        assert_eq!(lease.holder(), Some(1), "{point:?}");
        assert!(!lease.is_torn(), "{point:?}");
        assert!(!lease.acquire(Duration::from_millis(10)));
        lease.forget(1);
        assert!(lease.acquire(Duration::ZERO));
        change(&lease, &stage.arena);
        lease.release();
    }
}

#[test]
fn a_visitor_that_dies_inside_a_change_leaves_a_torn_arena_until_it_is_made_anew() {
    let stage = Stage::new();
    let lease = stage.lease(0);
    stage.start(1, Some((FaultPoint::VisitBegun, 3))).died();
    assert_eq!((lease.holder(), lease.visits()), (Some(1), 5));
    assert!(lease.is_torn());
    assert_eq!(stage.counters(), [2, 2], "killed right after the mark");
    lease.renew();
    lease.forget(1);
    assert!(lease.acquire(Duration::ZERO));
    assert!(!lease.is_torn());
    assert_eq!(lease.arena_generation(), 1);
    lease.release();
}

#[test]
fn a_waiter_that_dies_is_handed_nothing_once_it_is_forgotten() {
    let stage = Stage::new();
    let lease = stage.lease(0);
    assert!(lease.acquire(Duration::ZERO));
    stage.start(1, Some((FaultPoint::LeaseAsked, 1))).died();
    assert!(lease.is_wanted());
    lease.forget(1);
    assert!(!lease.is_wanted());
    lease.release();
    assert_eq!(lease.holder(), None);
    // Forgotten too late: it was handed the lease, and is forgotten as its holder.
    assert!(lease.acquire(Duration::ZERO));
    stage.start(1, Some((FaultPoint::LeaseAsked, 1))).died();
    lease.release();
    assert_eq!(lease.holder(), Some(1));
    lease.forget(1);
    assert_eq!(lease.holder(), None);
}

#[test]
fn a_holder_that_dies_before_it_wakes_the_next_one_is_made_up_for() {
    let stage = Stage::new();
    let lease = stage.lease(0);
    let dying = stage.start(1, Some((FaultPoint::LeasePassed, 1)));
    // Long enough to be in its way for certain.
    let other = stage.start_for(MANY_ROUNDS, 2, None);
    dying.died();
    lease.forget(1);
    other.succeeded();
    let [first, second] = stage.counters();
    assert_eq!(first, second);
    assert_eq!(lease.holder(), None);
}

#[test]
fn several_processes_never_work_in_one_arena_at_once() {
    let stage = Stage::new();
    let children = [1, 2, 3].map(|me| stage.start(me, None));
    let lease = stage.lease(0);
    for _ in 0..ROUNDS {
        assert!(lease.acquire(PATIENCE));
        change(&lease, &stage.arena);
        lease.release();
    }
    for child in children {
        child.succeeded();
    }
    assert_eq!(stage.counters(), [4 * ROUNDS; 2]);
    assert_eq!((lease.holder(), lease.visits()), (None, 8 * ROUNDS));
}
