//! Leaves of the tree: members in order, as words.
//!
//! ```text
//!  +------+-------+-------+-----+----------+------+------+- ... -+
//!  | base | shift | start | len | capacity | word | word |       |   word = digest << 48 | address
//!  +------+-------+-------+-----+----------+------+------+- ... -+
//!                    the words in use stand from `start` on, so that both ends can grow and shrink
//! ```
//!
//! The digest of a score is `(ordered(score) - base) >> shift`, clamped to 16 bits. It never orders two
//! scores the wrong way round, so a search looks at words first and at members only where digests are
//! equal: mostly at none, and a leaf of 62 members costs the misses of its own 8 lines, fetched
//! together. `base` and `shift` follow the scores: they are chosen anew when a score comes that lies
//! outside of what they can tell apart, with as much room again on both sides.
//!
//! Invariants
//!   L1  start + len <= capacity; words in use name live objects in order.
//!   L2  the digest in a word is that of its object's score.
//!
//! Cost: 16 bytes and 8 per member; the first leaf of a tree begins small and doubles.

use std::ops::{Range, RangeFrom};
use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::object::{Bound, Object, ordered};

/// Members of a leaf at most: with the header exactly 512 bytes.
pub(super) const CAPACITY: usize = 62;
/// Capacities that a leaf grows through, all of them whole size classes.
const STEPS: [usize; 4] = [6, 14, 30, CAPACITY];
const HEAD_BYTES: usize = 16;
const DIGEST_SHIFT: u32 = 48;
const ADDRESS_MASK: u64 = (1 << DIGEST_SHIFT) - 1;
const DIGEST_MAX: u64 = 0xffff;

#[repr(C)]
#[derive(Debug)]
struct Head {
    base: u64,
    shift: u8,
    start: u8,
    len: u8,
    capacity: u8,
    reserved: u32,
}

const _: () = assert!(size_of::<Head>() == HEAD_BYTES);

/// A leaf by address. Whoever holds one knows that it is live and that nobody else changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf(NonNull<u8>);

impl Leaf {
    #[inline]
    pub(super) fn at(address: u64) -> Leaf {
        let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
        Leaf(NonNull::new(pointer).expect("a tree names its nodes (Z2)"))
    }

    #[inline]
    pub(super) fn address(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// An empty leaf with room for at least `members`.
    pub(super) fn create(members: usize) -> Leaf {
        let capacity = STEPS.into_iter().find(|&step| step >= members);
        let capacity = capacity.unwrap_or(CAPACITY);
        let leaf = Leaf(Arena.take(bytes(capacity)));
        let head = Head {
            base: 0,
            shift: 0,
            start: 0,
            len: 0,
            capacity: capacity as u8,
            reserved: 0,
        };
        // SAFETY: the object has room for a head and `capacity` words.
        unsafe { leaf.0.cast::<Head>().write(head) };
        leaf
    }

    pub(super) fn free(self) {
        let size = bytes(usize::from(self.head().capacity));
        // SAFETY: taken by `create` with this size; the caller forgets it.
        unsafe { Arena.give(self.0, size) }
    }

    pub(super) fn memory_bytes(self) -> usize {
        usable_size(bytes(usize::from(self.head().capacity)))
    }

    /// Asks the processor for all of a full leaf.
    #[inline]
    pub(super) fn prefetch(address: u64) {
        for line in 0..bytes(CAPACITY) / 64 {
            crate::keyspace::dictionary::prefetch((address + line as u64 * 64) as *const u8);
        }
    }

    #[inline]
    fn head<'a>(self) -> &'a Head {
        // SAFETY: a live leaf begins with its head.
        unsafe { self.0.cast().as_ref() }
    }

    #[inline]
    fn head_mut<'a>(self) -> &'a mut Head {
        // SAFETY: as above; the caller changes one leaf at a time.
        unsafe { self.0.cast().as_mut() }
    }

    /// Where the word at `slot`, counted from the beginning of the room, stands.
    #[inline]
    fn slot(self, slot: usize) -> *mut u64 {
        debug_assert!(slot <= usize::from(self.head().capacity));
        // SAFETY: the leaf has room for `capacity` words behind its head.
        unsafe { self.0.add(HEAD_BYTES).cast::<u64>().add(slot).as_ptr() }
    }

    #[inline]
    fn words<'a>(self) -> &'a [u64] {
        let head = self.head();
        // SAFETY: L1; the caller does not change the leaf as long as it uses them.
        unsafe {
            let first = self.slot(usize::from(head.start));
            std::slice::from_raw_parts(first, usize::from(head.len))
        }
    }

    #[inline]
    fn words_mut<'a>(self) -> &'a mut [u64] {
        let head = self.head();
        // SAFETY: as above.
        unsafe {
            let first = self.slot(usize::from(head.start));
            std::slice::from_raw_parts_mut(first, usize::from(head.len))
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        usize::from(self.head().len)
    }

    /// Whether the leaf cannot take one more, even if it grows.
    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.len() == CAPACITY
    }

    #[inline]
    pub(super) fn get(self, index: usize) -> Object {
        Object::at(self.words()[index] & ADDRESS_MASK)
    }

    /// Asks for the member at `index`, if there is one.
    #[inline]
    pub(super) fn prefetch_member(self, index: usize) {
        if let Some(word) = self.words().get(index) {
            Object::prefetch(word & ADDRESS_MASK);
        }
    }

    #[inline]
    fn digest(self, ordered: u64) -> u64 {
        let head = self.head();
        (ordered.saturating_sub(head.base) >> head.shift).min(DIGEST_MAX)
    }

    /// How many members stand before the bound.
    #[inline]
    pub(super) fn search(self, bound: &Bound<'_>) -> usize {
        self.search_in(0..self.len(), bound)
    }

    /// As `search`, among some of them.
    #[inline]
    pub(super) fn search_in(self, range: Range<usize>, bound: &Bound<'_>) -> usize {
        let words = &self.words()[range];
        let (from, to) = match bound.ordered() {
            Some(ordered) => {
                let digest = self.digest(ordered);
                let from = words.partition_point(|word| word >> DIGEST_SHIFT < digest);
                let equal = words[from..].partition_point(|word| word >> DIGEST_SHIFT <= digest);
                (from, from + equal)
            }
            None => (0, words.len()),
        };
        let before = words[from..to].partition_point(|word| {
            let object = Object::at(word & ADDRESS_MASK);
            bound.is_behind(object.score(), |to| object.member().cmp(to))
        });
        from + before
    }

    /// Puts a member at `index`. The leaf is not full; it may move, and its address is returned.
    pub(super) fn insert(self, index: usize, object: Object) -> Leaf {
        let leaf = if self.len() == usize::from(self.head().capacity) {
            self.grown()
        } else {
            self
        };
        leaf.open_gap(index);
        let ordered = ordered(object.score());
        leaf.words_mut()[index] = leaf.digest(ordered) << DIGEST_SHIFT | object.address();
        if !leaf.tells_apart(ordered) {
            leaf.choose_digests();
        }
        leaf
    }

    /// Takes the word at `index` out.
    pub(super) fn remove(self, index: usize) {
        let words = self.words_mut();
        if index < words.len() / 2 {
            words.copy_within(..index, 1);
            self.head_mut().start += 1;
        } else {
            words.copy_within(index + 1.., index);
        }
        let head = self.head_mut();
        head.len -= 1;
        if head.len == 0 {
            head.start = 0;
        }
    }

    /// Moves the word at `from` to where `object`, whose score has changed, belongs: to `to`, counted
    /// without it.
    pub(super) fn shift(self, from: usize, to: usize, object: Object) {
        let words = self.words_mut();
        if from < to {
            words.copy_within(from + 1..=to, from);
        } else {
            words.copy_within(to..from, to + 1);
        }
        let ordered = ordered(object.score());
        words[to] = self.digest(ordered) << DIGEST_SHIFT | object.address();
        if !self.tells_apart(ordered) {
            self.choose_digests();
        }
    }

    /// Moves the members from `at` on to a new leaf.
    pub(super) fn split(self, at: usize) -> Leaf {
        let right = Leaf::create(CAPACITY);
        right.take_over(self.words(), at.., self);
        self.head_mut().len = at as u8;
        self.sharpen();
        right.sharpen();
        right
    }

    /// Takes all members of the leaf that follows, and frees that. There is room.
    pub(super) fn absorb(self, next: Leaf) -> Leaf {
        let (before, more) = (self.len(), next.len());
        let leaf = if usize::from(self.head().capacity) < before + more {
            self.resized(before + more)
        } else {
            self
        };
        leaf.settle(0);
        leaf.head_mut().len += more as u8;
        leaf.words_mut()[before..].copy_from_slice(next.words());
        leaf.choose_digests();
        next.free();
        leaf
    }

    fn take_over(self, words: &[u64], range: RangeFrom<usize>, from: Leaf) {
        let words = &words[range];
        let head = self.head_mut();
        (head.base, head.shift) = (from.head().base, from.head().shift);
        head.len = words.len() as u8;
        head.start = 0;
        self.words_mut().copy_from_slice(words);
    }

    fn grown(self) -> Leaf {
        self.resized(self.len() + 1)
    }

    /// The same leaf with room for `members`; the old one is gone.
    fn resized(self, members: usize) -> Leaf {
        let leaf = Leaf::create(members);
        leaf.take_over(self.words(), 0.., self);
        self.free();
        leaf
    }

    /// Moves the words so that they begin at `start`.
    fn settle(self, start: usize) {
        let len = self.len();
        let from = usize::from(self.head().start);
        // SAFETY: both ranges are inside the room: the caller has checked `start`.
        unsafe { self.slot(start).copy_from(self.slot(from), len) };
        self.head_mut().start = start as u8;
    }

    /// Makes room for one word at `index`, on the side where fewer words have to move.
    fn open_gap(self, index: usize) {
        let head = self.head();
        let (start, len) = (usize::from(head.start), usize::from(head.len));
        let has_room_behind = start + len < usize::from(head.capacity);
        if start > 0 && (index < len / 2 || !has_room_behind) {
            self.head_mut().start -= 1;
            self.head_mut().len += 1;
            self.words_mut().copy_within(1..=index, 0);
        } else {
            if index == 0 && len > 0 && len + 1 < usize::from(head.capacity) {
                // Members that come in falling order: all room goes to the front.
                self.settle(usize::from(head.capacity) - len);
                return self.open_gap(index);
            }
            self.head_mut().len += 1;
            self.words_mut().copy_within(index..len, index + 1);
        }
    }

    /// Whether digests tell scores like this one from their neighbours.
    #[inline]
    fn tells_apart(self, ordered: u64) -> bool {
        let head = self.head();
        ordered >= head.base && (ordered - head.base) >> head.shift <= DIGEST_MAX
    }

    /// Chooses digests anew if the leaf's scores use only a small part of them, as after some splits.
    fn sharpen(self) {
        const USED_MIN: u64 = 1024;
        let words = self.words();
        if let (Some(first), Some(last)) = (words.first(), words.last())
            && (last >> DIGEST_SHIFT) - (first >> DIGEST_SHIFT) < USED_MIN
        {
            self.choose_digests();
        }
    }

    /// Chooses base and shift for the scores that the leaf holds, and writes all digests anew.
    #[cold]
    fn choose_digests(self) {
        let words = self.words_mut();
        let score_of = |word: u64| ordered(Object::at(word & ADDRESS_MASK).score());
        let (Some(&first), Some(&last)) = (words.first(), words.last()) else {
            return;
        };
        let (low, high) = (score_of(first), score_of(last));
        // As much room on both sides as the scores take now.
        let width = (high - low).max(1);
        let base = low.saturating_sub(width);
        let top = high.saturating_add(width);
        let bits = 64 - (top - base).leading_zeros();
        let head = self.head_mut();
        head.base = base;
        head.shift = bits.saturating_sub(16) as u8;
        for word in words {
            let digest = self.digest(score_of(*word));
            *word = digest << DIGEST_SHIFT | *word & ADDRESS_MASK;
        }
    }

    /// Checks L1 and L2.
    pub(super) fn check(self) -> Result<(), String> {
        let head = self.head();
        if !Arena.contains(self.address(), bytes(usize::from(head.capacity))) {
            return Err("a leaf lies outside the arena".to_owned());
        }
        if !STEPS.contains(&usize::from(head.capacity))
            || usize::from(head.start) + usize::from(head.len) > usize::from(head.capacity)
        {
            return Err("a leaf has more members than room (L1)".to_owned());
        }
        for &word in self.words() {
            let address = word & ADDRESS_MASK;
            if !Arena.contains(address, 1) {
                return Err("a member lies outside the arena".to_owned());
            }
            let object = Object::at(address);
            if word >> DIGEST_SHIFT != self.digest(ordered(object.score())) {
                return Err(format!(
                    "the digest of score {} is wrong (L2)",
                    object.score()
                ));
            }
        }
        Ok(())
    }
}

const fn bytes(capacity: usize) -> usize {
    HEAD_BYTES + capacity * size_of::<u64>()
}
