//! The mapped ring against a queue of bytes: the fixed walk that the heap ring also follows, and
//! random walks.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "script/mod.rs"]
mod script;

use std::collections::VecDeque;

use proptest::prelude::*;
use shm::{Fragments, Journal, LinkSegment, Outbox, RegistrySegment, RingConsumer, RingProducer};

const RING: usize = 64 * 1024;

fn ring() -> (RingProducer, RingConsumer) {
    let link = LinkSegment::create("test-link", RING, 1).unwrap();
    let (out, _) = link.try_clone().unwrap().requester().unwrap();
    let (inn, _) = link.responder(None).unwrap();
    (out, inn)
}

#[test]
fn the_mapped_ring_follows_the_script_that_the_heap_ring_follows() {
    let (out, inn) = ring();
    script::run(out, inn);
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Publish,
    Rewind,
    Read(usize),
    Release,
    ReplaceConsumer,
    ReplaceProducer,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..RING / 8).prop_map(|words| Step::Write(words * 8)),
        3 => Just(Step::Publish),
        1 => Just(Step::Rewind),
        4 => (1..RING / 8).prop_map(|words| Step::Read(words * 8)),
        2 => Just(Step::Release),
        1 => Just(Step::ReplaceConsumer),
        1 => Just(Step::ReplaceProducer),
    ]
}

/// Both ends and what they should hold: published bytes not released, and private ones.
struct Walk {
    link: LinkSegment,
    out: RingProducer,
    inn: RingConsumer,
    published: VecDeque<u8>,
    private: Vec<u8>,
    consumed: usize,
    stamp: u8,
}

impl Walk {
    fn new() -> Self {
        let link = LinkSegment::create("test-link", RING, 1).unwrap();
        let (out, _) = link.try_clone().unwrap().requester().unwrap();
        let (inn, _) = link.try_clone().unwrap().responder(None).unwrap();
        let (published, private) = (VecDeque::new(), Vec::new());
        Self {
            link,
            out,
            inn,
            published,
            private,
            consumed: 0,
            stamp: 0,
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Write(len) => self.write(*len),
            Step::Publish => {
                assert_eq!(self.out.publish(), !self.private.is_empty());
                self.published.extend(self.private.drain(..));
            }
            Step::Rewind => {
                assert!(self.out.rewind(self.out.published()));
                self.private.clear();
            }
            Step::Read(len) => {
                let readable = self.inn.refresh().unwrap();
                assert_eq!(readable, self.published.len() - self.consumed);
                assert!(
                    self.inn
                        .readable()
                        .iter()
                        .eq(self.published.iter().skip(self.consumed))
                );
                self.inn.consume(readable.min(*len));
                self.consumed += readable.min(*len);
            }
            Step::Release => {
                self.inn.release();
                self.published.drain(..self.consumed);
                self.consumed = 0;
            }
            // Whoever comes after a death sees what was published, and no more.
            Step::ReplaceConsumer => {
                self.inn = self.link.try_clone().unwrap().responder(None).unwrap().0;
                self.consumed = 0;
            }
            Step::ReplaceProducer => {
                self.out = self.link.try_clone().unwrap().requester().unwrap().0;
                self.private.clear();
            }
        }
    }

    fn write(&mut self, len: usize) {
        let fits = self.published.len() + self.private.len() + len <= RING;
        self.stamp = self.stamp.wrapping_add(1);
        let stamp = self.stamp;
        match self.out.reserve(len) {
            None => assert!(!fits),
            Some(place) => {
                assert!(fits);
                place.fill(stamp);
                self.out.commit(len);
                self.private.extend(std::iter::repeat_n(stamp, len));
            }
        }
    }
}

struct Parts;

impl Fragments for Parts {
    const HEADER_BYTES: usize = 16;

    fn write_header(_frame: &[u8], offset: usize, len: usize, out: &mut [u8]) {
        out[..8].copy_from_slice(&(offset as u64 | 1 << 63).to_le_bytes());
        out[8..].copy_from_slice(&(len as u64).to_le_bytes());
    }
}

/// Reads one frame: `length | number | zeros`, or a part of one.
fn read_frame(inn: &mut RingConsumer, partial: &mut Vec<u8>) -> Option<Vec<u8>> {
    let bytes = inn.readable();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    if word(0) >> 63 == 0 {
        let frame = bytes[..word(0) as usize].to_vec();
        inn.consume(frame.len());
        return Some(frame);
    }
    assert_eq!(word(0) & !(1 << 63), partial.len() as u64);
    let len = word(8) as usize;
    partial.extend_from_slice(&bytes[16..16 + len]);
    inn.consume(16 + len.next_multiple_of(8));
    let whole = partial.len() as u64 == u64::from_le_bytes(partial[..8].try_into().unwrap());
    whole.then(|| std::mem::take(partial))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_ring_equals_a_queue(steps in prop::collection::vec(step(), 1..200)) {
        let mut walk = Walk::new();
        for step in &steps {
            walk.apply(step);
        }
    }

    #[test]
    fn an_outbox_delivers_every_frame_once_and_in_order(
        frames in prop::collection::vec((2usize..30_000, 0u8..4), 1..60),
    ) {
        let (mut out, mut inn) = ring();
        let mut outbox = Outbox::<Parts>::new();
        let (mut partial, mut received) = (Vec::new(), Vec::new());
        let mut pending = frames.iter().enumerate();
        while received.len() < frames.len() {
            for (number, (words, _)) in pending.by_ref().take(3) {
                let mut frame = vec![0; words * 8];
                frame[..8].copy_from_slice(&(*words as u64 * 8).to_le_bytes());
                frame[8..16].copy_from_slice(&(number as u64).to_le_bytes());
                outbox.send(&mut out, &[&frame]);
            }
            outbox.flush(&mut out);
            out.publish();
            let burst = frames[received.len()].1;
            for _ in 0..=burst {
                if inn.refresh().unwrap() > 0 {
                    received.extend(read_frame(&mut inn, &mut partial));
                }
            }
            inn.release();
        }
        for (number, (frame, (words, _))) in received.iter().zip(&frames).enumerate() {
            prop_assert_eq!(frame.len(), words * 8);
            prop_assert_eq!(&frame[8..16], &(number as u64).to_le_bytes()[..]);
        }
        inn.release();
        prop_assert!(outbox.flush(&mut out));
        prop_assert_eq!(outbox.len_bytes(), 0);
    }

    #[test]
    fn a_journal_log_equals_a_queue(steps in prop::collection::vec((0usize..9000, 0usize..9000), 1..80)) {
        let mut journal = Journal::create("test-journal", 1 << 14, 1).unwrap();
        let (mut model, mut offset) = (VecDeque::<u8>::new(), 0);
        for (number, (append, write)) in steps.into_iter().enumerate() {
            let record = vec![number as u8; append];
            let fits = model.len() + append <= 1 << 14;
            prop_assert_eq!(journal.append(&record).is_ok(), fits);
            if fits {
                model.extend(record);
            }
            if number % 3 == 0 {
                journal = Journal::open(journal.fd().try_clone_to_owned().unwrap(), 1).unwrap();
            }
            prop_assert!(journal.unwritten().iter().eq(model.iter()));
            let written = write.min(model.len());
            journal.mark_written(written);
            model.drain(..written);
            offset += written as u64;
            prop_assert_eq!(journal.file_offset(), offset);
        }
    }

    #[test]
    fn a_registry_gives_back_what_was_published(content in prop::collection::vec(any::<u8>(), 0..5000)) {
        let registry = RegistrySegment::create(8192, 1).unwrap();
        registry.publish(b"another version").unwrap();
        prop_assert_eq!(registry.publish(&content).unwrap(), 2);
        prop_assert_eq!(registry.read().unwrap(), (2, content));
    }
}
