//! Deaths at the steps of ring, doorbell and news: what the survivor and the successor see.

use std::sync::atomic::{AtomicU64, Ordering};

use shm::fault::FaultPoint;
use shm::{Bell, LinkSegment, Party, RingConsumer, RingProducer};

use super::process::{DEADLINE, Plan, eventually, start};

const RING: usize = 64 * 1024;
/// Every frame is its number, eight times.
const FRAME: usize = 64;
const FRAMES_PER_RING: u64 = (RING / FRAME) as u64;

/// A link and the parties at its ends.
struct Stage {
    link: LinkSegment,
    producer: Party,
    consumer: Party,
}

impl Stage {
    fn new() -> Self {
        let party = |index| Party::create("test-party", 0, index, 0, 1).unwrap();
        let link = LinkSegment::create("test-link", RING, 1).unwrap();
        Self {
            link,
            producer: party(0),
            consumer: party(1),
        }
    }

    fn from(plan: &mut Plan) -> Self {
        let link = LinkSegment::open(plan.take(), 1).unwrap();
        let producer = Party::open(plan.take(), 1).unwrap();
        Self {
            link,
            producer,
            consumer: Party::open(plan.take(), 1).unwrap(),
        }
    }

    fn start(
        &self,
        role: &str,
        fault: Option<(FaultPoint, u32)>,
        frames: u64,
    ) -> super::process::Child {
        let fds = [self.link.fd(), self.producer.fd(), self.consumer.fd()];
        start(role, fault, frames, &fds)
    }

    fn requester(&self) -> (RingProducer, RingConsumer) {
        self.link.try_clone().unwrap().requester().unwrap()
    }

    fn responder(&self) -> (RingConsumer, RingProducer) {
        self.link.try_clone().unwrap().responder(None).unwrap()
    }

    /// What the supervisor does after every death.
    fn alarm(&self) {
        self.producer.doorbell().alarm(&Bell::Futex);
        self.consumer.doorbell().alarm(&Bell::Futex);
    }
}

fn write(out: &mut RingProducer, number: u64) -> bool {
    let Some(place) = out.reserve(FRAME) else {
        return false;
    };
    place.copy_from_slice(&number.to_le_bytes().repeat(FRAME / 8));
    out.commit(FRAME);
    out.publish();
    true
}

/// The next frame's number, if there is a frame; whole, or the test fails.
fn read(inn: &mut RingConsumer) -> Option<u64> {
    if inn.refresh().unwrap() == 0 {
        return None;
    }
    let frame = &inn.readable()[..FRAME];
    let number = u64::from_le_bytes(frame[..8].try_into().unwrap());
    assert_eq!(frame, number.to_le_bytes().repeat(FRAME / 8));
    inn.consume(FRAME);
    Some(number)
}

/// Child: writes frames until `plan.number` of them were published, by whomever.
pub fn producer(mut plan: Plan) {
    let stage = Stage::from(&mut plan);
    let (mut out, _) = stage.requester();
    let bell = stage.producer.doorbell();
    bell.cancel_sleep();
    for number in out.position() / FRAME as u64..plan.number {
        while !write(&mut out, number) {
            bell.prepare_sleep();
            out.want_space();
            if out.free() < FRAME {
                assert!(bell.wait(Some(DEADLINE)), "nobody rang for space");
            } else {
                bell.cancel_sleep();
            }
        }
        stage.consumer.news().announce(0);
        stage.consumer.doorbell().ring(&Bell::Futex);
    }
}

/// Child: reads frames one by one, echoes each, until `plan.number` of them were released.
pub fn consumer(mut plan: Plan) {
    let stage = Stage::from(&mut plan);
    let (mut inn, mut out) = stage.responder();
    let bell = stage.consumer.doorbell();
    bell.cancel_sleep();
    if inn.release() {
        stage.producer.doorbell().ring(&Bell::Futex);
    }
    while inn.released() < plan.number * FRAME as u64 {
        let Some(number) = read(&mut inn) else {
            bell.prepare_sleep();
            if inn.refresh().unwrap() == 0 {
                assert!(bell.wait(Some(DEADLINE)), "nobody rang for a frame");
            } else {
                bell.cancel_sleep();
            }
            continue;
        };
        // The parent reads the echoes, perhaps slowly.
        eventually("there is room for the echo", || write(&mut out, number));
        if inn.release() {
            stage.producer.doorbell().ring(&Bell::Futex);
        }
    }
}

/// Kills a producer at `fault` while a consumer thread reads (or, with `read_at_once` false, only
/// afterwards), and lets a successor write the rest. `published` is what the dead one must have left.
fn producer_dies(fault: (FaultPoint, u32), read_at_once: bool, published: impl Fn(u64) -> bool) {
    const TOTAL: u64 = 3000;
    let stage = Stage::new();
    let seen = AtomicU64::new(0);
    let survivor = || {
        let (mut inn, _) = stage.responder();
        let bell = stage.consumer.doorbell();
        while seen.load(Ordering::Relaxed) < TOTAL {
            while let Some(number) = read(&mut inn) {
                assert_eq!(number, seen.load(Ordering::Relaxed), "in order, none twice");
                seen.fetch_add(1, Ordering::Relaxed);
            }
            if inn.release() {
                stage.producer.doorbell().ring(&Bell::Futex);
            }
            bell.prepare_sleep();
            if inn.refresh().unwrap() == 0 && seen.load(Ordering::Relaxed) < TOTAL {
                assert!(bell.wait(Some(DEADLINE)), "neither rung nor alarmed");
            } else {
                bell.cancel_sleep();
            }
        }
    };
    std::thread::scope(|scope| {
        if read_at_once {
            scope.spawn(survivor);
        }
        stage.start("producer", Some(fault), TOTAL).died();
        let left = stage.requester().0.published() / FRAME as u64;
        assert!(published(left), "{fault:?} left {left} frames");
        if !read_at_once {
            scope.spawn(survivor);
        }
        stage.alarm();
        eventually("the survivor sees what was published", || {
            seen.load(Ordering::Relaxed) == left
        });
        stage.start("producer", None, TOTAL).succeeded();
        eventually("the survivor sees everything", || {
            seen.load(Ordering::Relaxed) == TOTAL
        });
    });
}

#[test]
fn a_frame_written_but_not_published_never_existed() {
    for nth in [1, 2, 700] {
        producer_dies((FaultPoint::RingBeforePublish, nth), true, |left| {
            left == u64::from(nth) - 1
        });
    }
}

#[test]
fn a_published_frame_arrives_even_if_nobody_rang() {
    for nth in [1, 2, 700] {
        producer_dies((FaultPoint::RingAfterPublish, nth), true, |left| {
            left == u64::from(nth)
        });
        producer_dies((FaultPoint::NewsAnnounced, nth), true, |left| {
            left == u64::from(nth)
        });
    }
}

#[test]
fn a_bell_taken_to_the_grave_is_answered_by_the_alarm() {
    producer_dies((FaultPoint::BellTaken, 1), true, |left| left >= 1);
}

#[test]
fn a_producer_that_died_waiting_for_space_leaves_a_full_ring_of_whole_frames() {
    producer_dies((FaultPoint::RingWantsSpace, 1), false, |left| {
        left == FRAMES_PER_RING
    });
}

#[test]
fn frames_used_but_not_released_are_given_to_the_successor_again() {
    const TOTAL: u64 = 20;
    for nth in 1..=5 {
        for (point, again) in [
            (FaultPoint::RingBeforeRelease, 1),
            (FaultPoint::RingAfterRelease, 0),
        ] {
            let stage = Stage::new();
            let (mut out, mut echoes) = stage.requester();
            (0..TOTAL).for_each(|number| assert!(write(&mut out, number)));
            stage.start("consumer", Some((point, nth)), TOTAL).died();
            stage.alarm();
            let released = u64::from(nth) - again;
            assert_eq!(
                out.free() as u64,
                RING as u64 - (TOTAL - released) * FRAME as u64
            );
            stage.start("consumer", None, TOTAL).succeeded();
            let seen: Vec<u64> = std::iter::from_fn(|| read(&mut echoes)).collect();
            let want: Vec<u64> = (0..u64::from(nth)).chain(released..TOTAL).collect();
            assert_eq!(seen, want, "{point:?} {nth}");
            assert!(out.is_empty());
        }
    }
}

#[test]
fn a_question_for_space_taken_to_the_grave_is_answered() {
    let stage = Stage::new();
    let (mut out, mut echoes) = stage.requester();
    let mut written = 0;
    while write(&mut out, written) {
        written += 1;
    }
    assert_eq!(written, FRAMES_PER_RING);
    stage.producer.doorbell().prepare_sleep();
    out.want_space();
    assert_eq!(out.free(), 0);
    let total = FRAMES_PER_RING + 1;
    stage
        .start("consumer", Some((FaultPoint::RingTookWant, 1)), total)
        .died();
    stage.alarm();
    assert!(
        stage.producer.doorbell().wait(Some(DEADLINE)),
        "the alarm wakes the producer"
    );
    assert_eq!(out.free(), FRAME);
    assert!(write(&mut out, written));
    let successor = stage.start("consumer", None, total);
    let mut seen = Vec::new();
    eventually("everything is echoed once", || {
        while let Some(number) = read(&mut echoes) {
            seen.push(number);
            echoes.release();
        }
        seen.len() as u64 == total
    });
    assert!(seen.into_iter().eq(0..total));
    successor.succeeded();
}

#[test]
fn a_consumer_that_died_going_to_sleep_costs_one_useless_call() {
    let stage = Stage::new();
    let (mut out, mut echoes) = stage.requester();
    stage
        .start("consumer", Some((FaultPoint::BellBeforeSleep, 1)), 1)
        .died();
    assert!(write(&mut out, 0));
    assert!(
        stage.consumer.doorbell().ring(&Bell::Futex),
        "the word says that it sleeps"
    );
    assert!(
        !stage.consumer.doorbell().ring(&Bell::Futex),
        "but only once"
    );
    stage.start("consumer", None, 1).succeeded();
    assert_eq!(read(&mut echoes), Some(0));
}
