//! Every interleaving of ring, doorbell, news and lease, as loom sees them.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p shm --test loom --release`. The models use the
//! very producer, consumer, doorbell, news and lease words that run over mapped memory, on the heap
//! double of the ring. Loom reports a race on ring bytes, a lost wake-up (as a deadlock: everybody sleeps)
//! and any broken assertion.
//!
//! Sizes are as small as the protocol allows: capacities of 2 or 4 words and two or three frames
//! already wrap, fill up and empty the ring; preemptions are bounded where a model would not finish.

#![cfg(loom)]

use loom::thread;
use shm::sync::{AtomicU32, AtomicU64, Ordering};
use shm::{
    Bell, Doorbell, LeaseWords, News, RingConsumer, RingProducer, ShmError, Versioned, heap,
};
use std::sync::Arc;
use std::time::Duration;

/// Explores the model, with at most `preemptions` forced switches per run (`None`: all).
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

fn write(out: &mut RingProducer, value: u8) -> bool {
    let Some(place) = out.reserve(8) else {
        return false;
    };
    place.fill(value);
    out.commit(8);
    out.publish();
    true
}

/// Takes whole frames and checks that they are the next ones; returns the number taken.
fn read(inn: &mut RingConsumer, next: &mut u8) -> usize {
    let bytes = inn.refresh().expect("the producer is sane");
    assert!(bytes.is_multiple_of(8));
    for frame in inn.readable().chunks_exact(8) {
        assert_eq!(frame, [*next; 8]);
        *next += 1;
    }
    inn.consume(bytes);
    bytes / 8
}

#[test]
fn frames_arrive_whole_and_in_order_through_a_ring_that_wraps() {
    explore(None, || {
        let (mut out, mut inn) = heap::ring(16);
        let producer = thread::spawn(move || {
            for value in 0..3 {
                while !write(&mut out, value) {
                    thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < 3 {
            if read(&mut inn, &mut next) == 0 {
                thread::yield_now();
            }
            inn.release();
        }
        producer.join().expect("no panic");
    });
}

#[test]
fn a_batch_becomes_visible_with_one_publish() {
    explore(None, || {
        let (mut out, mut inn) = heap::ring(32);
        let producer = thread::spawn(move || {
            for value in 0..3 {
                out.reserve(8).expect("space for three").fill(value);
                out.commit(8);
            }
            let last = out.position();
            out.reserve(8).expect("space for a fourth").fill(9);
            out.commit(8);
            out.unpublished_mut(last).expect("not published").fill(3);
            out.publish();
        });
        let mut next = 0;
        let seen = read(&mut inn, &mut next);
        assert!(seen == 0 || seen == 4, "all or nothing, not {seen}");
        producer.join().expect("no panic");
    });
}

#[test]
fn a_sleeping_consumer_is_woken_for_every_frame() {
    explore(None, || {
        let (mut out, mut inn) = heap::ring(16);
        let bell = Arc::new(Doorbell::new());
        let ringer = Arc::clone(&bell);
        let producer = thread::spawn(move || {
            for value in 0..2 {
                assert!(write(&mut out, value), "two frames fit");
                ringer.ring(&Bell::Futex);
            }
        });
        let mut next = 0;
        while next < 2 {
            bell.prepare_sleep();
            if read(&mut inn, &mut next) == 0 {
                bell.wait(None);
            } else {
                bell.cancel_sleep();
            }
        }
        producer.join().expect("no panic");
    });
}

#[test]
fn two_producers_wake_one_consumer_of_two_rings() {
    explore(Some(3), || {
        let bell = Arc::new(Doorbell::new());
        let mut consumers = Vec::new();
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let (mut out, inn) = heap::ring(8);
                consumers.push((inn, 0));
                let ringer = Arc::clone(&bell);
                thread::spawn(move || {
                    assert!(write(&mut out, 0), "one frame fits");
                    ringer.ring(&Bell::Futex);
                })
            })
            .collect();
        let mut seen = 0;
        while seen < 2 {
            bell.prepare_sleep();
            let found: usize = consumers
                .iter_mut()
                .map(|(inn, next)| read(inn, next))
                .sum();
            seen += found;
            if found == 0 {
                bell.wait(None);
            } else {
                bell.cancel_sleep();
            }
        }
        producers
            .into_iter()
            .for_each(|producer| producer.join().expect("no panic"));
    });
}

#[test]
fn a_producer_that_waits_for_space_is_rung() {
    explore(Some(4), || {
        let (mut out, mut inn) = heap::ring(8);
        let (news, space) = (Arc::new(Doorbell::new()), Arc::new(Doorbell::new()));
        let (to_consumer, to_producer) = (Arc::clone(&news), Arc::clone(&space));
        let producer = thread::spawn(move || {
            for value in 0..2 {
                while !write(&mut out, value) {
                    space.prepare_sleep();
                    out.want_space();
                    if out.free() == 0 {
                        space.wait(None);
                    } else {
                        space.cancel_sleep();
                    }
                }
                to_consumer.ring(&Bell::Futex);
            }
        });
        // The answer that a fresh consumer owes is not the one under test.
        assert!(inn.release());
        let mut next = 0;
        while next < 2 {
            news.prepare_sleep();
            if read(&mut inn, &mut next) == 0 {
                news.wait(None);
            } else {
                news.cancel_sleep();
            }
            if inn.release() {
                to_producer.ring(&Bell::Futex);
            }
        }
        producer.join().expect("no panic");
    });
}

#[test]
fn news_taken_is_never_lost() {
    explore(None, || {
        let (mut out, mut inn) = heap::ring(16);
        let word = || [AtomicU32::new(0)];
        let words = Arc::new((word(), word(), AtomicU32::new(1)));
        let bell = Arc::new(Doorbell::new());
        let (board, ringer) = (Arc::clone(&words), Arc::clone(&bell));
        let producer = thread::spawn(move || {
            for value in 0..2 {
                assert!(write(&mut out, value), "two frames fit");
                News::new(&board.0, &board.1, &board.2).announce(0);
                ringer.ring(&Bell::Futex);
            }
        });
        let news = News::new(&words.0, &words.1, &words.2);
        let mut next = 0;
        while next < 2 {
            bell.prepare_sleep();
            if news.any() {
                bell.cancel_sleep();
            } else {
                bell.wait(None);
            }
            if news.take(0) {
                read(&mut inn, &mut next);
            }
        }
        producer.join().expect("no panic");
    });
}

#[test]
fn an_alarm_wakes_a_sleeper_whose_ringer_died_with_the_word() {
    explore(None, || {
        let bell = Arc::new(Doorbell::new());
        let flag = Arc::new(AtomicU32::new(0));
        let (supervisor, done) = (Arc::clone(&bell), Arc::clone(&flag));
        let alarmer = thread::spawn(move || {
            done.store(1, Ordering::Release);
            supervisor.alarm(&Bell::Futex);
        });
        bell.prepare_sleep();
        // The dead ringer's swap: it took the word and never made the call.
        while flag.load(Ordering::Acquire) == 0 {
            bell.wait(None);
            bell.prepare_sleep();
        }
        alarmer.join().expect("no panic");
    });
}

#[test]
fn a_reader_of_a_changing_registry_sees_one_version_or_none() {
    explore(None, || {
        let word = |_| AtomicU64::new(0);
        let words = Arc::new((word(0), [0, 0].map(word), [0; 4].map(word)));
        let written = Arc::clone(&words);
        let writer = thread::spawn(move || {
            let registry = Versioned::new(&written.0, &written.1, &written.2);
            for version in 1..=3u8 {
                let content = [version; 16];
                let len = 8 + usize::from(version);
                assert_eq!(registry.publish(&content[..len]), Ok(u64::from(version)));
            }
        });
        match Versioned::new(&words.0, &words.1, &words.2).read() {
            Ok((0, content)) => assert!(content.is_empty()),
            Ok((version, content)) => {
                assert_eq!(content, vec![version as u8; 8 + version as usize]);
            }
            Err(error) => assert_eq!(error, ShmError::Contended),
        }
        writer.join().expect("no panic");
    });
}

/// Sleeps for as long as it takes: a lost wake-up is a deadlock.
const PATIENT: Duration = Duration::from_secs(3600);
/// Asks, and gives up without sleeping.
const HASTY: Duration = Duration::from_nanos(1);

/// What a lease guards: loom reports two who are in here at once.
type Arena = loom::cell::UnsafeCell<u32>;

/// A lease and the arena that belongs to it, between threads.
struct Leased {
    lease: LeaseWords,
    arena: Arena,
}

// SAFETY: the arena is touched by the holder of the lease only; that this is so is what is tested.
#[expect(unsafe_code, reason = "loom watches the accesses")]
unsafe impl Sync for Leased {}

impl Leased {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            lease: LeaseWords::new(),
            arena: Arena::new(0),
        })
    }

    /// One change of the arena; true if the lease was got.
    fn work(&self, me: u32, patience: Duration) -> bool {
        let is_got = self.lease.acquire(me, patience);
        if is_got {
            self.change();
            self.lease.release(me);
        }
        is_got
    }

    fn change(&self) {
        self.lease.begin_visit();
        self.arena.with_mut(|place| {
            // SAFETY: as for the whole value.
            #[expect(unsafe_code, reason = "loom watches the accesses")]
            unsafe {
                *place += 1;
            }
        });
        self.lease.end_visit();
    }

    /// Nobody holds or wants it, and as many changes were made.
    fn check(&self, changes: u32) {
        assert_eq!((self.lease.holder(), self.lease.is_wanted()), (None, false));
        // SAFETY: as for the whole value.
        #[expect(unsafe_code, reason = "loom watches the accesses")]
        let seen = self.arena.with(|place| unsafe { *place });
        assert_eq!(
            (seen, self.lease.visits()),
            (changes, u64::from(changes) * 2)
        );
    }
}

#[test]
fn a_lease_has_one_holder_and_passes_on_to_everybody_who_waits() {
    explore(Some(3), || {
        let shared = Leased::new();
        let others: Vec<_> = [0, 2]
            .map(|me| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || assert!(shared.work(me, PATIENT)))
            })
            .into();
        assert!(shared.work(1, PATIENT));
        others
            .into_iter()
            .for_each(|other| other.join().expect("no panic"));
        shared.check(3);
    });
}

#[test]
fn who_gives_up_while_the_lease_is_handed_over_has_it_or_has_left_no_trace() {
    explore(None, || {
        let shared = Leased::new();
        let other = Arc::clone(&shared);
        let hasty = thread::spawn(move || u32::from(other.work(1, HASTY)));
        assert!(shared.work(0, PATIENT));
        assert!(shared.work(0, PATIENT));
        let got = hasty.join().expect("no panic");
        shared.check(2 + got);
    });
}

#[test]
fn a_forgotten_holder_keeps_nobody_waiting() {
    explore(Some(3), || {
        let shared = Leased::new();
        assert!(
            shared.lease.acquire(1, HASTY),
            "the one that dies holding it"
        );
        let (waiter, supervisor) = (Arc::clone(&shared), Arc::clone(&shared));
        let waiter = thread::spawn(move || assert!(waiter.work(2, PATIENT)));
        let supervisor = thread::spawn(move || supervisor.lease.forget(1));
        assert!(shared.work(0, PATIENT));
        waiter.join().expect("no panic");
        supervisor.join().expect("no panic");
        shared.check(2);
    });
}

#[test]
fn a_forgotten_waiter_is_not_left_with_the_lease() {
    explore(None, || {
        let shared = Leased::new();
        assert!(shared.lease.acquire(0, HASTY));
        // The one that dies: it has asked, and is never seen again.
        shared.lease.ask_and_die(1);
        let supervisor = Arc::clone(&shared);
        let supervisor = thread::spawn(move || supervisor.lease.forget(1));
        shared.change();
        shared.lease.release(0);
        supervisor.join().expect("no panic");
        shared.check(1);
    });
}

#[test]
fn a_successor_that_waits_already_survives_that_its_predecessor_is_forgotten() {
    explore(None, || {
        let shared = Leased::new();
        assert!(shared.lease.acquire(1, HASTY), "the predecessor");
        let supervisor = Arc::clone(&shared);
        let supervisor = thread::spawn(move || supervisor.lease.forget(1));
        assert!(shared.work(1, PATIENT), "the successor");
        supervisor.join().expect("no panic");
        shared.check(1);
    });
}

#[test]
fn the_heap_ring_follows_the_script_that_the_mapped_ring_follows() {
    loom::model(|| {
        let (out, inn) = heap::ring(64);
        script::run(out, inn);
    });
}

#[path = "script/mod.rs"]
mod script;
