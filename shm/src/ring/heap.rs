//! A ring on the heap instead of in a segment, for loom: same producer, same consumer, same control
//! words, but every atomic is constructed inside the model.
//!
//! Why not over mapped memory: a loom atomic is a handle to loom's bookkeeping, not the value.
//!
//! What differs from the mapped ring: the second half of the data is no second view of the first,
//! so `commit` copies what was written into the other half. And each 8-byte word of the ring has a
//! tracked cell that is written with every slice given to the producer and read with every slice
//! given to the consumer: a missing ordering is reported as a race on that cell.

#![expect(unsafe_code, reason = "shared bytes, tracked by loom's cells")]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

use loom::cell::UnsafeCell as TrackedUnsafeCell;

use super::{Line, RingConsumer, RingControl, RingMemory, RingProducer};
use crate::sync::AtomicU64;

/// Bytes, control words and tracking cells of one ring.
#[derive(Debug)]
pub(crate) struct HeapMemory {
    control: RingControl,
    data: UnsafeCell<Box<[u8]>>,
    words: Box<[TrackedUnsafeCell<()>]>,
    capacity: usize,
}

// SAFETY: producer and consumer touch disjoint bytes (S4), which the tracked cells verify.
unsafe impl Send for HeapMemory {}
// SAFETY: as above.
unsafe impl Sync for HeapMemory {}

/// An empty ring of `capacity` bytes (a power of two, at least 8), inside a model.
///
/// # Panics
/// If the capacity is none of these.
#[must_use]
pub fn ring(capacity: usize) -> (RingProducer, RingConsumer) {
    assert!(
        capacity.is_power_of_two() && capacity >= 8,
        "not a ring's capacity"
    );
    let line = || Line {
        word: AtomicU64::new(0),
    };
    let keep = Arc::new(HeapMemory {
        control: RingControl {
            tail: line(),
            head: line(),
            want_space: line(),
            note: line(),
        },
        data: UnsafeCell::new(vec![0; 2 * capacity].into_boxed_slice()),
        words: (0..capacity / 8)
            .map(|_| TrackedUnsafeCell::new(()))
            .collect(),
        capacity,
    });
    let producer = RingProducer::attach(memory(&keep), None);
    let consumer = RingConsumer::attach(memory(&keep), None);
    (
        producer.expect("an empty ring is valid"),
        consumer.expect("an empty ring is valid"),
    )
}

fn memory(keep: &Arc<HeapMemory>) -> RingMemory {
    RingMemory {
        control: NonNull::from(&keep.control),
        data: keep.start(),
        capacity: keep.capacity as u64,
        keep: Arc::clone(keep),
    }
}

impl HeapMemory {
    fn start(&self) -> NonNull<u8> {
        // SAFETY: only the pointer to the box's bytes is read; nobody replaces the box.
        let bytes = unsafe { &mut *self.data.get() };
        NonNull::from(&mut **bytes).cast()
    }

    /// Copies what was written at `position` into the other half.
    pub(crate) fn mirror(&self, position: u64, len: usize) {
        for offset in 0..len {
            let from = (position as usize % self.capacity) + offset;
            let to = (from + self.capacity) % (2 * self.capacity);
            // SAFETY: both lie inside of twice the capacity, in the producer's part (S4).
            unsafe { *self.start().as_ptr().add(to) = *self.start().as_ptr().add(from) };
        }
    }

    /// Tells loom that these bytes are about to be written.
    pub(crate) fn track_write(&self, position: u64, len: usize) {
        for word in self.covered(position, len) {
            self.words[word].with_mut(|_| ());
        }
    }

    /// Tells loom that these bytes are about to be read.
    pub(crate) fn track_read(&self, position: u64, len: usize) {
        for word in self.covered(position, len) {
            self.words[word].with(|_| ());
        }
    }

    fn covered(&self, position: u64, len: usize) -> impl Iterator<Item = usize> + use<> {
        let words = self.capacity / 8;
        let (first, last) = (position as usize / 8, (position as usize + len).div_ceil(8));
        (first..last).map(move |word| word % words)
    }
}
