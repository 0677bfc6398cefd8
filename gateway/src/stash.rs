//! Replies of one connection that came before their turn.
//!
//! ```text
//!   slots  [ . | 9: 2 replies | . | . | 12: 1 reply | own | . | . ]    by sequence, modulo the length
//!                |                      |
//!                |                      +--> a reply ring: lent, not copied
//!   bytes  [ bytes of 7 | bytes of 9, 10 | ... ]                       in the order of their copying
//! ```
//!
//! Why not a queue of owned replies: with several workers nearly every reply of a pipeline comes
//! early once, so a reply costs a note of 16 bytes here, and allocates nothing. Replies of workers stay
//! in their ring, which is not released meanwhile; what stays long is copied (`settle`), and so are
//! replies of the gateway itself.
//!
//! Invariants
//!   T1  sequences are less than `slots.len()` apart, a power of two, so each has a slot of its own.
//!   T2  `waiting` counts the slots that are not `MISSING`; if it is 0, all of them are `MISSING`.
//!   T3  a slot of `n` replies stands at its first sequence; the slots of the others are `MISSING`.
//!   T4  `copied` counts those of them that do not refer to rings, `lent_bytes` the bytes of those that do.
//!
//! Not here: what is the next sequence (`order`), when rings are released (`answers`).

use crate::limits;

/// Slots of a new stash: a pipeline of usual depth.
const SLOTS_MIN: usize = 64;

/// Value of `Slot::count`: nothing here.
const MISSING: u16 = 0;
/// Value of `Slot::count`: the reply has an entry in `own`.
const OWN: u16 = u16::MAX;

/// Value of `Slot::lane`: the bytes are in the stash.
const COPIED: u16 = u16::MAX;

/// Where replies lie in a reply ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InRing {
    /// Number of the worker.
    pub(crate) lane: u16,
    pub(crate) len: u32,
    pub(crate) position: u64,
}

/// The reply rings of a thread.
pub(crate) trait Rings {
    /// Bytes that have not been released; none if there is no such place.
    fn bytes(&self, place: InRing) -> &[u8];
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// In the ring of `lane`, or in `bytes`.
    position: u64,
    len: u32,
    /// Consecutive replies in it, [`MISSING`] or [`OWN`].
    count: u16,
    /// Or [`COPIED`], also for replies in `own`.
    lane: u16,
}

impl Slot {
    const OWN: Self = Self {
        position: 0,
        len: 0,
        count: OWN,
        lane: COPIED,
    };

    /// Where its replies lie if there are some and that is in a ring.
    #[inline]
    fn in_ring(&self) -> Option<InRing> {
        (self.lane != COPIED).then_some(InRing {
            lane: self.lane,
            len: self.len,
            position: self.position,
        })
    }
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
    copied: u32,
    lent_bytes: usize,
}

impl Stash {
    /// Whether nothing waits here.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Replies, or runs of them, that lie in rings.
    #[inline]
    pub(crate) fn lent(&self) -> u32 {
        self.waiting - self.copied
    }

    /// Bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len() - self.dead + self.own_bytes + self.lent_bytes
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
        (self.copied, self.lent_bytes) = (0, 0);
    }

    /// The slot for what is `distance` behind the head `emit` and `count` long; `None` if there is
    /// something already.
    #[inline]
    fn free_slot(&mut self, emit: u32, distance: u32, count: u32) -> Option<&mut Slot> {
        let last = distance as usize + count as usize;
        if last > self.slots.len() {
            self.extend(emit, last);
        }
        let place = self.place(emit.wrapping_add(distance));
        self.slots
            .get_mut(place)
            .filter(|slot| slot.count == MISSING)
    }

    /// Notes `count` complete replies, the first of them `distance` behind the head `emit`, that stay
    /// in their ring until they are taken or settled. False, and no effect, if there is something for
    /// it already.
    #[inline]
    pub(crate) fn lend(&mut self, emit: u32, distance: u32, count: u32, place: InRing) -> bool {
        let Some(slot) = self.free_slot(emit, distance, count) else {
            return false;
        };
        *slot = Slot {
            position: place.position,
            len: place.len,
            count: count as u16, // fits: no more are in flight
            lane: place.lane,
        };
        self.waiting += 1;
        self.lent_bytes += place.len as usize;
        true
    }

    /// Copies `count` complete replies, the first of them `distance` behind the head `emit`. False,
    /// and no effect, if there is something for it already.
    pub(crate) fn insert(&mut self, emit: u32, distance: u32, count: u32, bytes: &[u8]) -> bool {
        let position = self.bytes.len() as u64;
        let Some(slot) = self.free_slot(emit, distance, count) else {
            return false;
        };
        if count == 1 && bytes.len() > limits::STASH_INLINE_BYTES {
            *slot = Slot::OWN;
            self.add_own(emit.wrapping_add(distance), bytes, true);
        } else {
            *slot = Slot {
                position,
                len: bytes.len() as u32,
                count: count as u16, // fits: no more are in flight
                lane: COPIED,
            };
            self.bytes.extend_from_slice(bytes);
        }
        self.waiting += 1;
        self.copied += 1;
        true
    }

    /// Copies everything that lies in rings; `emit` is the head.
    #[cold]
    pub(crate) fn settle(&mut self, emit: u32, rings: &impl Rings) {
        for distance in 0..self.slots.len() as u32 {
            if self.lent() == 0 {
                break;
            }
            let sequence = emit.wrapping_add(distance);
            let place = self.place(sequence);
            let slot = self.slots.get_mut(place);
            let Some(slot) = slot.filter(|slot| slot.count != MISSING) else {
                continue;
            };
            let Some(place) = slot.in_ring() else {
                continue;
            };
            let (count, bytes) = (u32::from(slot.count), rings.bytes(place));
            slot.count = MISSING;
            self.waiting -= 1;
            self.lent_bytes -= place.len as usize;
            self.insert(emit, distance, count, bytes);
        }
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
                *slot = Slot::OWN;
                self.waiting += 1;
                self.copied += 1;
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
            self.copied -= 1;
        }
    }

    /// Whether there is something for the head `emit`.
    #[inline]
    pub(crate) fn has(&self, emit: u32) -> bool {
        let slot = self.slots.get(self.place(emit));
        slot.is_some_and(|slot| slot.count != MISSING)
    }

    /// Takes out the replies for the head `emit` if they lie in a ring: where, and how many.
    #[inline]
    pub(crate) fn take_lent(&mut self, emit: u32) -> Option<(InRing, u32)> {
        let place = self.place(emit);
        let slot = self.slots.get_mut(place)?;
        let count = slot.count;
        if count == MISSING {
            return None;
        }
        let place = slot.in_ring()?;
        slot.count = MISSING;
        self.waiting -= 1;
        self.lent_bytes -= place.len as usize;
        Some((place, u32::from(count)))
    }

    /// Takes out what is there for the head `emit` and does not lie in a ring.
    pub(crate) fn take_copied(&mut self, emit: u32) -> Early<'_> {
        let place = self.place(emit);
        let slot = self.slots.get_mut(place);
        let Some(slot) = slot.filter(|slot| slot.count != MISSING && slot.lane == COPIED) else {
            return Early::Missing;
        };
        let taken = *slot;
        slot.count = MISSING;
        self.waiting -= 1;
        self.copied -= 1;
        if taken.count == OWN {
            return self.take_own(emit);
        }
        let (start, len) = (taken.position as usize, taken.len as usize);
        self.dead += len;
        Early::Run(
            self.bytes.get(start..start + len).unwrap_or_default(),
            u32::from(taken.count),
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
            if slot.count != MISSING && slot.count != OWN && slot.lane == COPIED {
                let start = slot.position as usize;
                let bytes = self.bytes.get(start..start + slot.len as usize);
                slot.position = kept.len() as u64;
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
