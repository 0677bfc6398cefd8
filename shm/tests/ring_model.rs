//! The mapped ring against a queue of bytes: the fixed walk that the heap ring also follows, and
//! random walks.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "script/mod.rs"]
mod script;

use std::collections::VecDeque;

use proptest::prelude::*;
use shm::{Journal, LinkSegment, RegistrySegment, RingConsumer, RingProducer};

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
                self.write_over();
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
                self.look_back();
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

    /// What is not released can be seen again, in any portion, and nothing else.
    fn look_back(&self) {
        let (inn, start) = (&self.inn, self.inn.released());
        assert_eq!(inn.unreleased(), self.consumed);
        let len = self.published.len();
        for (skipped, cut) in [(0, 0), (0, 8), (8, 0), (len / 2, len / 4)] {
            let wanted = len.saturating_sub(skipped + cut);
            let skipped = len - wanted - cut.min(len - wanted);
            let seen = inn.kept(start + skipped as u64, wanted).unwrap();
            assert!(
                seen.iter()
                    .eq(self.published.iter().skip(skipped).take(wanted))
            );
        }
        assert_eq!(inn.kept(start, len + 1), None);
        assert_eq!(inn.kept(start + len as u64, 1), None);
        assert_eq!(inn.kept(start.wrapping_sub(1), 1), None);
        assert_eq!(inn.kept(u64::MAX, usize::MAX), None);
    }

    /// The producer sees what it has written and may change a byte, as long as that is not released.
    fn write_over(&mut self) {
        let (position, bytes) = self.out.unreleased();
        assert!(bytes.iter().eq(&self.published));
        let len = bytes.len() as u64;
        self.stamp = self.stamp.wrapping_add(1);
        self.out.rewrite(position + len, self.stamp);
        self.out.rewrite(position.wrapping_sub(1), self.stamp);
        if let Some(last) = self.published.back_mut() {
            self.out.rewrite(position + len - 1, self.stamp);
            *last = self.stamp;
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
