//! Replies of one connection that came before their turn.
//!
//! ```text
//!   slots  [ . | 9: 2 replies | . | . | 12: 1 reply | own | . | . ]    by sequence, modulo the length
//!   bytes  [ bytes of 12 | bytes of 9, 10 | ... ]                      in the order of their coming
//! ```
//!
//! Why not a queue of owned replies: with several workers nearly every reply of a pipeline comes
//! early once, so a reply costs two copies and about 60 instructions here, and allocates nothing.
//!
//! Invariants
//!   T1  sequences are less than `slots.len()` apart, a power of two, so each has a slot of its own.
//!   T2  `waiting` counts the slots that are not `MISSING`; if it is 0, all of them are `MISSING`.
//!   T3  a slot of `n` replies stands at its first sequence; the slots of the others are `MISSING`.
//!
//! Not here: what is the next sequence (`order`).

use crate::limits;

/// Slots of a new stash: a pipeline of usual depth.
const SLOTS_MIN: usize = 64;

/// Value of `Slot::count`: nothing here.
const MISSING: u32 = 0;
/// Value of `Slot::count`: the reply has an entry in `own`.
const OWN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    offset: u32,
    len: u32,
    /// Consecutive replies in it, [`MISSING`] or [`OWN`].
    count: u32,
}

/// A large reply, or one that comes in pieces.
#[derive(Debug)]
struct Own {
    sequence: u32,
    bytes: Vec<u8>,
    is_whole: bool,
}

/// What is there for a sequence.
#[derive(Debug)]
pub(crate) enum Early<'a> {
    /// Nothing.
    Missing,
    /// So many complete replies.
    Run(&'a [u8], u32),
    /// One complete reply.
    Whole(Vec<u8>),
    /// The beginning of a reply; the rest has not come.
    Begun(Vec<u8>),
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Stash {
    slots: Vec<Slot>,
    waiting: u32,
    bytes: Vec<u8>,
    /// Bytes of `bytes` that no slot refers to any more.
    dead: usize,
    own: Vec<Own>,
    own_bytes: usize,
}

impl Stash {
    /// Whether nothing waits here.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len() - self.dead + self.own_bytes
    }

    /// Bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.own_bytes + self.slots.capacity() * size_of::<Slot>()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        if self.waiting > 0 {
            self.slots.fill(Slot::default());
        }
        self.waiting = 0;
        self.bytes.clear();
        self.dead = 0;
        self.own.clear();
        self.own_bytes = 0;
    }

    /// Takes `count` complete replies, the first of them `distance` behind the head `emit`. False,
    /// and no effect, if there is something for it already.
    #[inline]
    pub(crate) fn insert(&mut self, emit: u32, distance: u32, count: u32, bytes: &[u8]) -> bool {
        let last = distance as usize + count as usize;
        if last > self.slots.len() {
            self.extend(emit, last);
        }
        let place = self.place(emit.wrapping_add(distance));
        let Ok(offset) = u32::try_from(self.bytes.len()) else {
            return false;
        };
        let Some(slot) = self.slots.get_mut(place) else {
            return false;
        };
        if slot.count != MISSING {
            return false;
        }
        self.waiting += 1;
        if count == 1 && bytes.len() > limits::STASH_INLINE_BYTES {
            slot.count = OWN;
            self.add_own(emit.wrapping_add(distance), bytes, true);
            return true;
        }
        *slot = Slot {
            offset,
            len: bytes.len() as u32,
            count,
        };
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// Takes a piece of the reply that is `distance` behind the head. False if there is a complete
    /// one already.
    pub(crate) fn grow(&mut self, emit: u32, distance: u32, bytes: &[u8], is_last: bool) -> bool {
        if distance as usize >= self.slots.len() {
            self.extend(emit, distance as usize + 1);
        }
        let sequence = emit.wrapping_add(distance);
        let place = self.place(sequence);
        match self.slots.get_mut(place) {
            Some(slot) if slot.count == MISSING => {
                slot.count = OWN;
                self.waiting += 1;
                self.add_own(sequence, bytes, is_last);
                true
            }
            Some(slot) if slot.count == OWN => {
                let own = self.own.iter_mut().find(|own| own.sequence == sequence);
                match own {
                    Some(own) if !own.is_whole => {
                        own.bytes.extend_from_slice(bytes);
                        own.is_whole = is_last;
                        self.own_bytes += bytes.len();
                        true
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Drops what is there of the reply for `sequence` if it is not complete.
    #[cold]
    pub(crate) fn forget_begun(&mut self, sequence: u32) {
        let is_it = |own: &Own| own.sequence == sequence && !own.is_whole;
        let Some(at) = self.own.iter().position(is_it) else {
            return;
        };
        let own = self.own.swap_remove(at);
        self.own_bytes -= own.bytes.len();
        let place = self.place(sequence);
        if let Some(slot) = self.slots.get_mut(place) {
            slot.count = MISSING;
            self.waiting -= 1;
        }
    }

    /// Takes out what is there for the head `emit`.
    #[inline]
    pub(crate) fn take(&mut self, emit: u32) -> Early<'_> {
        let place = self.place(emit);
        let Some(slot) = self.slots.get_mut(place) else {
            return Early::Missing;
        };
        let Slot { offset, len, count } = *slot;
        if count == MISSING {
            return Early::Missing;
        }
        slot.count = MISSING;
        self.waiting -= 1;
        if count == OWN {
            return self.take_own(emit);
        }
        let (offset, len) = (offset as usize, len as usize);
        self.dead += len;
        Early::Run(
            self.bytes.get(offset..offset + len).unwrap_or_default(),
            count,
        )
    }

    /// Drops bytes that have been taken once they outweigh those that wait.
    #[inline]
    pub(crate) fn compact(&mut self) {
        if self.dead >= limits::COMPACT_BYTES && self.dead * 2 >= self.bytes.len() {
            self.move_together();
        }
    }

    #[cold]
    fn move_together(&mut self) {
        let mut kept = Vec::with_capacity(self.bytes.len() - self.dead);
        for slot in &mut self.slots {
            if slot.count != MISSING && slot.count != OWN {
                let start = slot.offset as usize;
                let bytes = self.bytes.get(start..start + slot.len as usize);
                // Fits: it fitted before, and there were more bytes in front of it.
                slot.offset = kept.len() as u32;
                kept.extend_from_slice(bytes.unwrap_or_default());
            }
        }
        self.bytes = kept;
        self.dead = 0;
    }

    #[inline]
    fn place(&self, sequence: u32) -> usize {
        sequence as usize & self.slots.len().wrapping_sub(1)
    }

    /// Makes the slots at least `len`; `emit` is the head, before which nothing waits.
    #[cold]
    fn extend(&mut self, emit: u32, len: usize) {
        let old = std::mem::take(&mut self.slots);
        let len = len.next_power_of_two().max(SLOTS_MIN);
        self.slots = vec![Slot::default(); len];
        for distance in 0..old.len() as u32 {
            let sequence = emit.wrapping_add(distance);
            let place = self.place(sequence);
            self.slots[place] = old[sequence as usize & (old.len() - 1)];
        }
    }

    #[cold]
    fn add_own(&mut self, sequence: u32, bytes: &[u8], is_whole: bool) {
        self.own_bytes += bytes.len();
        self.own.push(Own {
            sequence,
            bytes: bytes.to_vec(),
            is_whole,
        });
    }

    #[cold]
    fn take_own(&mut self, sequence: u32) -> Early<'_> {
        let Some(place) = self.own.iter().position(|own| own.sequence == sequence) else {
            return Early::Missing;
        };
        let own = self.own.swap_remove(place);
        self.own_bytes -= own.bytes.len();
        if own.is_whole {
            Early::Whole(own.bytes)
        } else {
            Early::Begun(own.bytes)
        }
    }
}
