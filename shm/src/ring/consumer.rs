//! The reading end of a ring: refresh, read in place, consume; release once per batch.
//!
//! Invariants
//!   C1  `released <= head <= tail <= released + capacity`, and `tail` is one that was really seen.
//!       So `released..tail` is ours to read (S4).

#![expect(unsafe_code, reason = "slices of the ring and of its control words")]

use super::{RingControl, RingMemory, is_aligned, published_positions};
use crate::ShmError;
use crate::fault::{FaultPoint, point};
use crate::sync::{Ordering, fence};

/// The reading end. There is one per ring (S5).
#[derive(Debug)]
pub struct RingConsumer {
    memory: RingMemory,
    mask: u64,
    /// Next byte to read; released up to `released`.
    head: u64,
    /// The last tail seen.
    tail: u64,
    released: u64,
    /// Attached and not released yet: the producer may wait for an answer that a predecessor owed.
    owes_ring: bool,
}

// SAFETY: the pointers go to a mapping that every thread sees (S1), and the value is the only
// consumer (S5), so moving it to another thread moves the right to read.
unsafe impl Send for RingConsumer {}

impl RingConsumer {
    /// Attaches at the published head, or at `resume` if that is further, and publishes that head:
    /// what a predecessor has committed is never read again.
    pub(crate) fn attach(memory: RingMemory, resume: Option<u64>) -> Result<Self, ShmError> {
        // SAFETY: S1, S6: `control` points to a live RingControl.
        let control = unsafe { memory.control.as_ref() };
        let (released, tail) = published_positions(control, memory.capacity)?;
        let head = released.max(resume.unwrap_or(0));
        if head > tail || !is_aligned(head) {
            return Err(ShmError::CorruptPosition {
                what: "position to resume reading at",
                found: head,
                low: released,
                high: tail,
            });
        }
        control.head.word.store(head, Ordering::Release); // pairs with R2: head visible
        let mask = memory.capacity - 1;
        Ok(Self {
            memory,
            mask,
            head,
            tail,
            released: head,
            owes_ring: true,
        })
    }

    /// Bytes in the ring, a power of two.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory.capacity as usize
    }

    /// Looks at the producer's tail; returns the number of readable bytes.
    ///
    /// # Errors
    /// [`ShmError::CorruptPosition`] if the tail went backwards or too far or lies inside a frame's
    /// padding: detach this peer. What
    /// was readable before still is.
    #[inline]
    pub fn refresh(&mut self) -> Result<usize, ShmError> {
        let tail = self.control().tail.word.load(Ordering::Acquire); // pairs with R1: tail visible
        let high = self.released + self.memory.capacity;
        if tail < self.tail || tail > high || !is_aligned(tail) {
            return Err(self.corrupt(tail));
        }
        self.tail = tail;
        Ok((tail - self.head) as usize)
    }

    /// Bytes seen by the last `refresh` and not consumed yet, contiguous.
    #[inline]
    #[must_use]
    pub fn readable(&self) -> &[u8] {
        self.slice_at(self.head, (self.tail - self.head) as usize)
    }

    /// The `len` bytes at `position`, which were seen and, consumed or not, not released since: nobody
    /// overwrites them. `None` for any others.
    #[inline]
    #[must_use]
    pub fn kept(&self, position: u64, len: usize) -> Option<&[u8]> {
        // A position before `released` becomes one far behind the tail.
        let skipped = position.wrapping_sub(self.released);
        let seen = self.tail - self.released;
        let is_ours = skipped <= seen && len as u64 <= seen - skipped;
        is_ours.then(|| self.slice_at(position, len))
    }

    /// Bytes consumed and not released.
    #[inline]
    #[must_use]
    pub fn unreleased(&self) -> usize {
        (self.head - self.released) as usize
    }

    /// Sets bits of the readable byte `offset` bytes behind the private head: a note to a successor
    /// that will read the same frame again. Without effect beyond what is readable.
    pub fn mark(&mut self, offset: usize, bits: u8) {
        if offset as u64 >= self.tail - self.head {
            return;
        }
        let place = ((self.head + offset as u64) & self.mask) as usize;
        // SAFETY: S1, S2: the place is below the capacity. S4: it is the consumer's part, and no
        // slice of it is lent out while `self` is borrowed exclusively.
        unsafe {
            let byte = self.memory.data.as_ptr().add(place);
            byte.write(byte.read() | bits);
        }
    }

    /// Moves the private head over `len` bytes that were used.
    ///
    /// # Panics
    /// If more is consumed than was readable.
    #[inline]
    pub fn consume(&mut self, len: usize) {
        assert!(
            len as u64 <= self.tail - self.head,
            "consumed more than was readable"
        );
        self.head += len as u64;
    }

    /// The private head: where the next byte is read.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// The head that the producer can see.
    #[inline]
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Gives everything consumed back to the producer. True if the producer asked to be rung for
    /// space: then ring it. The first call after attaching always says so, because a predecessor
    /// may have died before it rang: make it right after attaching.
    #[inline]
    pub fn release(&mut self) -> bool {
        if self.head == self.released {
            return std::mem::take(&mut self.owes_ring);
        }
        debug_assert!(is_aligned(self.head), "frames are padded to 8 bytes");
        point(FaultPoint::RingBeforeRelease);
        self.control().head.word.store(self.head, Ordering::Release); // pairs with R2: head visible
        self.released = self.head;
        point(FaultPoint::RingAfterRelease);
        fence(Ordering::SeqCst); // pairs with R3: space asked
        let asked = self.control().want_space.word.load(Ordering::Relaxed) != 0;
        if asked {
            self.control().want_space.word.store(0, Ordering::Relaxed);
            point(FaultPoint::RingTookWant);
        }
        asked | std::mem::take(&mut self.owes_ring)
    }

    /// `len` bytes from `position` on; the caller has checked that they lie in `released..tail`.
    #[inline]
    fn slice_at(&self, position: u64, len: usize) -> &[u8] {
        debug_assert!(position >= self.released && position + len as u64 <= self.tail);
        #[cfg(loom)]
        self.memory.keep.track_read(position, len);
        let offset = (position & self.mask) as usize;
        // SAFETY: S1, S2: the offset is below the capacity and `len` is at most the capacity (C1),
        // and the data is mapped twice, so the range lies inside. S4: it is the consumer's part,
        // and the borrow ends before anything of it can be released.
        unsafe {
            let start = self.memory.data.as_ptr().add(offset);
            std::slice::from_raw_parts(start, len)
        }
    }

    #[cold]
    fn corrupt(&self, tail: u64) -> ShmError {
        ShmError::CorruptPosition {
            what: "tail of a ring",
            found: tail,
            low: self.tail,
            high: self.released + self.memory.capacity,
        }
    }

    #[inline]
    fn control(&self) -> &RingControl {
        // SAFETY: S1, S6: the control words live as long as `memory.keep`, and are atomics.
        unsafe { self.memory.control.as_ref() }
    }
}
