//! The sender's side of "nobody ever blocks on a full ring": frames that do not fit yet wait in
//! private memory, and frames too big for the ring travel in parts.
//!
//! ```text
//!   place(len) ─┬─ nothing waits and it fits ──► slice of the ring      the common case
//!               └─ otherwise ──────────────────► private memory, in line
//!   commit      ── counts it
//!   flush       ── moves waiting frames into the ring, oldest first, while they fit
//!
//!   frame of n bytes, bigger than a quarter of the ring:
//!     | part header | bytes 0 .. k | part header | bytes k .. 2k | ... | last part |
//! ```
//!
//! Why parts wait for the consumer: a frame in parts counts as received with its last part. The
//! sender keeps it until the consumer has released that part, and lets nothing else into the ring
//! behind it until then. So when the consumer dies half-way, the ring holds nothing but leftover
//! parts, which the successor skips, and [`Outbox::resend`] sends the frame again from its start;
//! the order of frames stays what it was.
//!
//! Invariants
//!   O1  The ring holds a prefix of all frames placed; what waits comes after it, in order.
//!   O2  While a frame in parts is not released by the consumer, it is the first that waits.
//!
//! Cost: the common case is one compare more than writing to the ring directly. A frame that waits
//! costs one allocation and one copy.
//! Not here: who is told to stop sending (the caller looks at `len_bytes`), the part header's
//! format (the caller's [`Fragments`]).

use std::collections::VecDeque;
use std::marker::PhantomData;

use crate::RingProducer;

/// How a part of a frame looks; implemented once for each direction of a link.
pub trait Fragments {
    /// Bytes of a part's header, a multiple of 8.
    const HEADER_BYTES: usize;

    /// Writes the header of the part that carries `len` bytes of `frame` from `offset` on.
    /// `out` has [`Fragments::HEADER_BYTES`] bytes.
    fn write_header(frame: &[u8], offset: usize, len: usize, out: &mut [u8]);
}

/// Frames on their way into one ring.
#[derive(Debug)]
pub struct Outbox<F> {
    waiting: VecDeque<Vec<u8>>,
    /// Bytes in `waiting`.
    bytes: usize,
    /// The first waiting frame is being sent in parts: this much of it is in the ring.
    sent: usize,
    /// Ring position behind its last part, once that is in the ring.
    last_part_end: Option<u64>,
    /// The last `place` went to private memory.
    placed_privately: bool,
    fragments: PhantomData<fn() -> F>,
}

impl<F: Fragments> Default for Outbox<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Fragments> Outbox<F> {
    /// An outbox with nothing in it. Allocates with the first frame that waits.
    #[must_use]
    pub fn new() -> Self {
        const {
            assert!(
                F::HEADER_BYTES.is_multiple_of(8),
                "parts keep the ring 8-aligned"
            );
        };
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            sent: 0,
            last_part_end: None,
            placed_privately: false,
            fragments: PhantomData,
        }
    }

    /// A place for a frame of exactly `len` bytes (padded to 8 by the caller), in the ring if
    /// possible. Fill all of it, then [`Outbox::commit`].
    #[inline]
    pub fn place<'a>(&'a mut self, ring: &'a mut RingProducer, len: usize) -> &'a mut [u8] {
        debug_assert!(len.is_multiple_of(8), "frames are padded to 8 bytes");
        self.placed_privately =
            !self.waiting.is_empty() || len > ring.largest() || ring.reserve(len).is_none();
        if self.placed_privately {
            return self.place_privately(len);
        }
        // Known to fit: this second look is a compare.
        ring.reserve(len).unwrap_or_default()
    }

    /// Counts the frame that was placed last, whose length is `len`.
    #[inline]
    pub fn commit(&mut self, ring: &mut RingProducer, len: usize) {
        if self.placed_privately {
            self.bytes += len;
        } else {
            ring.commit(len);
        }
    }

    /// Sends a frame given in pieces; the padding to 8 bytes is added here.
    #[inline]
    pub fn send(&mut self, ring: &mut RingProducer, pieces: &[&[u8]]) {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let padded = len.next_multiple_of(8);
        let mut place = &mut self.place(ring, padded)[..];
        for piece in pieces {
            let (front, rest) = place.split_at_mut(piece.len());
            front.copy_from_slice(piece);
            place = rest;
        }
        place.fill(0);
        self.commit(ring, padded);
    }

    /// Bytes that wait in private memory, a frame in parts with all of its bytes.
    #[inline]
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Moves what fits into the ring; true if nothing waits any more. If false, the consumer has
    /// been asked to ring when there is space (or when the last part was taken): call again then.
    /// The caller publishes and rings, as after any commit: always after `flush`, whatever it
    /// returns.
    #[inline]
    pub fn flush(&mut self, ring: &mut RingProducer) -> bool {
        self.waiting.is_empty() || self.flush_waiting(ring)
    }

    #[cold]
    fn flush_waiting(&mut self, ring: &mut RingProducer) -> bool {
        self.move_what_fits(ring);
        if self.waiting.is_empty() {
            return true;
        }
        ring.want_space();
        // The space may have come between the last look and the question.
        self.move_what_fits(ring);
        self.waiting.is_empty()
    }

    fn move_what_fits(&mut self, ring: &mut RingProducer) {
        while let Some(frame) = self.waiting.front() {
            let len = frame.len();
            if len > ring.largest() {
                if !self.move_parts(ring) {
                    return;
                }
            } else if let Some(place) = ring.reserve(len) {
                place.copy_from_slice(frame);
                ring.commit(len);
            } else {
                return;
            }
            self.waiting.pop_front();
            self.bytes -= len;
        }
        if self.waiting.capacity() > WAITING_KEPT {
            self.waiting = VecDeque::new();
        }
    }

    /// Moves parts of the first frame; true once the consumer has taken the last one.
    fn move_parts(&mut self, ring: &mut RingProducer) -> bool {
        let Some(frame) = self.waiting.front() else {
            return true;
        };
        if let Some(end) = self.last_part_end {
            ring.free();
            let taken = ring.consumed() >= end;
            if taken {
                self.last_part_end = None;
                self.sent = 0;
            }
            return taken;
        }
        let most = ring.largest() - F::HEADER_BYTES;
        while self.sent < frame.len() {
            let len = most.min(frame.len() - self.sent);
            let padded = len.next_multiple_of(8);
            let Some(place) = ring.reserve(F::HEADER_BYTES + padded) else {
                return false;
            };
            let (header, body) = place.split_at_mut(F::HEADER_BYTES);
            F::write_header(frame, self.sent, len, header);
            body[..len].copy_from_slice(&frame[self.sent..][..len]);
            body[len..].fill(0);
            ring.commit(F::HEADER_BYTES + padded);
            self.sent += len;
        }
        self.last_part_end = Some(ring.position());
        false
    }

    /// The consumer was replaced and its successor has attached (not earlier: attaching is what
    /// shows how far the dead one really came): a frame in parts that was not wholly taken is sent
    /// again from its start. Nothing else is: whole frames are still in the ring for the successor.
    pub fn resend(&mut self, ring: &mut RingProducer) {
        ring.free();
        if self.last_part_end.is_none_or(|end| ring.consumed() < end) {
            self.sent = 0;
            self.last_part_end = None;
        }
    }

    /// The link is gone: forgets everything that waits.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    #[cold]
    fn place_privately(&mut self, len: usize) -> &mut [u8] {
        let frame = self.waiting.push_back_mut(vec![0; len]);
        frame.as_mut_slice()
    }
}

/// Empty places for waiting frames that are kept after a jam: enough for the next small one.
const WAITING_KEPT: usize = 1024;

/// The receiver's side of frames in parts: collects them in order.
#[derive(Debug, Default)]
pub struct Reassembly {
    bytes: Vec<u8>,
    /// Length of the whole frame; 0 = none is being collected.
    total: usize,
}

impl Reassembly {
    /// Nothing collected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the part with `bytes` at `offset` of a frame of `total` bytes. Returns the frame when
    /// this was its last part. A part that does not continue what is collected is dropped (the
    /// leftover of a dead predecessor's conversation), except that one at offset 0 starts anew.
    pub fn accept(&mut self, offset: usize, total: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        if offset == 0 {
            self.bytes.clear();
            self.total = total;
        }
        let fits = self
            .bytes
            .len()
            .checked_add(bytes.len())
            .is_some_and(|end| end <= total);
        if self.total != total || self.bytes.len() != offset || !fits {
            self.clear();
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < total {
            return None;
        }
        self.total = 0;
        Some(std::mem::take(&mut self.bytes))
    }

    /// Whether a frame has begun and not ended.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Forgets the begun frame.
    pub fn clear(&mut self) {
        self.bytes = Vec::new();
        self.total = 0;
    }
}
