//! The writing end of a ring: reserve, fill, commit; publish once per batch.
//!
//! Invariants
//!   P1  `published <= tail <= limit`, and `limit` is a head that was really seen plus the
//!       capacity. So `tail..limit` is ours to write (S4) and `limit - tail` never underflows.

#![expect(unsafe_code, reason = "slices of the ring and of its control words")]

use super::{RingControl, RingMemory, is_aligned, published_positions};
use crate::ShmError;
use crate::fault::{FaultPoint, point};
use crate::sync::{Ordering, fence};

/// The writing end. There is one per ring (S5).
#[derive(Debug)]
pub struct RingProducer {
    memory: RingMemory,
    mask: u64,
    /// End of what was committed here; published up to `published`.
    tail: u64,
    /// First position that may not be written: the last head seen, plus the capacity.
    limit: u64,
    published: u64,
    /// A head that made no sense, kept for [`RingProducer::check`].
    corrupt_head: Option<u64>,
}

// SAFETY: the pointers go to a mapping that every thread sees (S1), and the value is the only
// producer (S5), so moving it to another thread moves the right to write.
unsafe impl Send for RingProducer {}

impl RingProducer {
    /// Attaches at the published tail, or at `resume` if that is further.
    pub(crate) fn attach(memory: RingMemory, resume: Option<u64>) -> Result<Self, ShmError> {
        // SAFETY: S1, S6: `control` points to a live RingControl.
        let control = unsafe { memory.control.as_ref() };
        let (head, published) = published_positions(control, memory.capacity)?;
        let limit = head + memory.capacity;
        let tail = published.max(resume.unwrap_or(0));
        // Not aligned if a frame was open at the last commit: whoever resumes closes it first.
        if tail > limit {
            return Err(ShmError::CorruptPosition {
                what: "position to resume writing at",
                found: tail,
                low: published,
                high: limit,
            });
        }
        let mask = memory.capacity - 1;
        Ok(Self {
            memory,
            mask,
            tail,
            limit,
            published,
            corrupt_head: None,
        })
    }

    /// Bytes in the ring, a power of two.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory.capacity as usize
    }

    /// Largest frame that may be written in one piece: a quarter of the ring, so that one frame
    /// never keeps all others out. Anything bigger travels in parts.
    #[inline]
    #[must_use]
    pub fn largest(&self) -> usize {
        (self.memory.capacity / 4) as usize
    }

    /// `len` contiguous free bytes at the private tail, or `None` if there is not enough space.
    /// Looks at the consumer's head only when the last one seen is not enough. The content is what
    /// was there before; nothing is visible to the consumer before `commit` and `publish`.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<&mut [u8]> {
        if len as u64 > self.limit - self.tail && !self.refresh_for(len) {
            return None;
        }
        Some(self.slice_at(self.tail, len))
    }

    /// All free bytes at the private tail, at most `wish`. May be empty. Looks at the consumer's
    /// head only if fewer than `wish` are known to be free.
    #[inline]
    pub fn reserve_up_to(&mut self, wish: usize) -> &mut [u8] {
        if wish as u64 > self.limit - self.tail {
            self.refresh_for(wish);
        }
        let len = (self.limit - self.tail).min(wish as u64) as usize;
        self.slice_at(self.tail, len)
    }

    /// Moves the private tail over `len` bytes that were reserved and filled. Frames are padded by
    /// the caller so that the tail is a multiple of 8 when it is published.
    ///
    /// # Panics
    /// If more is committed than is free.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        assert!(
            len as u64 <= self.limit - self.tail,
            "commit of more than was reserved"
        );
        #[cfg(loom)]
        self.memory.keep.mirror(self.tail, len);
        self.tail += len as u64;
    }

    /// Makes everything committed visible to the consumer. True if there was something.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.tail == self.published {
            return false;
        }
        debug_assert!(is_aligned(self.tail), "frames are padded to 8 bytes");
        point(FaultPoint::RingBeforePublish);
        self.control().tail.word.store(self.tail, Ordering::Release); // pairs with R1: tail visible
        point(FaultPoint::RingAfterPublish);
        self.published = self.tail;
        true
    }

    /// The private tail: where the next byte goes.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// The tail that the consumer can see.
    #[inline]
    #[must_use]
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Bytes from `position` to the private tail, to complete a frame that is committed but not
    /// published yet. `None` if the position was published already or lies ahead of the tail.
    #[inline]
    pub fn unpublished_mut(&mut self, position: u64) -> Option<&mut [u8]> {
        if position < self.published || position > self.tail {
            return None;
        }
        let len = (self.tail - position) as usize;
        Some(self.slice_at(position, len))
    }

    /// Drops everything committed from `position` on. False, and no effect, if it was published
    /// already or lies ahead of the tail.
    pub fn rewind(&mut self, position: u64) -> bool {
        let possible = (self.published..=self.tail).contains(&position);
        if possible {
            self.tail = position;
        }
        possible
    }

    /// Free bytes now, after a look at the consumer's head.
    #[inline]
    pub fn free(&mut self) -> usize {
        self.refresh();
        (self.limit - self.tail) as usize
    }

    /// The last head of the consumer that was seen. A look at it costs nothing.
    #[inline]
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.limit - self.memory.capacity
    }

    /// What was written and has not been released, after a look at the consumer's head, and the
    /// position of its first byte. The consumer may set bits there meanwhile
    /// ([`super::RingConsumer::mark`]).
    pub fn unreleased(&mut self) -> (u64, &[u8]) {
        self.refresh();
        let position = self.consumed();
        let offset = (position & self.mask) as usize;
        let len = (self.tail - position) as usize;
        // SAFETY: S1, S2: the offset is below the capacity, `len` is at most the capacity (P1) and
        // the data is mapped twice, so the range lies inside. S4: the producer wrote it, and writes
        // no more into it while `self` is borrowed.
        let bytes = unsafe {
            let start = self.memory.data.as_ptr().add(offset);
            std::slice::from_raw_parts(start, len)
        };
        (position, bytes)
    }

    /// Writes another byte over one at `position` that has not been released. The consumer may have
    /// read the old one, and reads it or the new one; if it reads the new one, it reads those of
    /// later positions that were written over earlier as well. Without effect elsewhere.
    pub fn rewrite(&mut self, position: u64, byte: u8) {
        if !(self.consumed()..self.tail).contains(&position) {
            return;
        }
        let offset = (position & self.mask) as usize;
        fence(Ordering::Release); // behind what was written over before
        // SAFETY: S1, S2: the offset is below the capacity. A byte is written as a whole, and the
        // consumer copes with either.
        unsafe {
            self.memory.data.as_ptr().add(offset).write_volatile(byte);
        }
    }

    /// Asks the consumer to ring when it has released something. Afterwards look at
    /// [`RingProducer::free`] once more: the space may just have come. Whenever rung, try again
    /// and, if it is still not enough, ask again.
    pub fn want_space(&mut self) {
        self.control().want_space.word.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst); // pairs with R3: space asked
        point(FaultPoint::RingWantsSpace);
    }

    /// Leaves a number for a successor at this end; the consumer does not look at it.
    pub fn set_note(&mut self, note: u64) {
        self.control().note.word.store(note, Ordering::Release); // after what it tells about
        point(FaultPoint::NoteSet);
    }

    /// The number that was left last, perhaps by a predecessor; 0 at first.
    #[must_use]
    pub fn note(&self) -> u64 {
        self.control().note.word.load(Ordering::Acquire)
    }

    /// Whether the consumer has released everything that was published, after a look at its head.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.refresh();
        self.consumed() == self.published
    }

    /// The reason if the consumer's head was found damaged; such a ring only looks full.
    ///
    /// # Errors
    /// [`ShmError::CorruptPosition`]: detach this peer.
    pub fn check(&self) -> Result<(), ShmError> {
        match self.corrupt_head {
            None => Ok(()),
            Some(found) => Err(ShmError::CorruptPosition {
                what: "head of a ring",
                found,
                low: self.consumed(),
                high: self.published,
            }),
        }
    }

    #[cold]
    fn refresh_for(&mut self, len: usize) -> bool {
        self.refresh();
        len as u64 <= self.limit - self.tail
    }

    fn refresh(&mut self) {
        let head = self.control().head.word.load(Ordering::Acquire); // pairs with R2: head visible
        if (self.consumed()..=self.published).contains(&head) && is_aligned(head) {
            self.limit = head + self.memory.capacity;
        } else {
            self.corrupt_head = Some(head);
        }
    }

    #[inline]
    fn control(&self) -> &RingControl {
        // SAFETY: S1, S6: the control words live as long as `memory.keep`, and are atomics.
        unsafe { self.memory.control.as_ref() }
    }

    /// `len` bytes from `position` on; the caller has checked that they lie in
    /// `published..limit`.
    #[inline]
    fn slice_at(&mut self, position: u64, len: usize) -> &mut [u8] {
        debug_assert!(position >= self.published && position + len as u64 <= self.limit);
        #[cfg(loom)]
        self.memory.keep.track_write(position, len);
        let offset = (position & self.mask) as usize;
        // SAFETY: S1, S2: the offset is below the capacity and `len` is at most the capacity, and
        // the data is mapped twice, so the range lies inside. S4, P1: it is the producer's part,
        // and the exclusive borrow ends before the tail can move.
        unsafe {
            let start = self.memory.data.as_ptr().add(offset);
            std::slice::from_raw_parts_mut(start, len)
        }
    }
}
