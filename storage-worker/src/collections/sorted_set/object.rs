//! A member with its score, and the order of members.
//!
//! ```text
//!  | score, 8 bytes | length < 255       | bytes |
//!  | score, 8 bytes | 255 | length, 4 B  | bytes |
//! ```
//!
//! A member of 7 bytes takes 16, one of 15 bytes 24. Members are ordered by score, those of the same
//! score by their bytes.

use std::cmp::Ordering;
use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

/// Bytes of the score.
const SCORE_BYTES: usize = 8;
/// Stands in the place of a short length when four bytes with a long one follow.
const LONG: u8 = 255;

/// A member of a sorted set, by address. Whoever holds one knows that it is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object(NonNull<u8>);

impl Object {
    /// The object at an address that a tree or a dictionary holds.
    #[inline]
    pub(super) fn at(address: u64) -> Object {
        let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
        Object(NonNull::new(pointer).expect("words of a sorted set name objects (Z1)"))
    }

    /// The object that a dictionary names.
    #[inline]
    pub(super) fn of(element: NonNull<u8>) -> Object {
        Object(element)
    }

    /// What a dictionary names.
    #[inline]
    pub(super) fn element(self) -> NonNull<u8> {
        self.0
    }

    #[inline]
    pub(super) fn address(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Puts a member into the arena. It has less than 4 GiB, as every argument.
    pub(super) fn create(score: f64, member: &[u8]) -> Object {
        let head = head_bytes(member.len());
        let object = Object(Arena.take(head + member.len()));
        object.set_score(score);
        // SAFETY: the object has room for score, length and bytes.
        unsafe {
            if member.len() < usize::from(LONG) {
                object.0.add(SCORE_BYTES).write(member.len() as u8);
            } else {
                object.0.add(SCORE_BYTES).write(LONG);
                let long = object.0.add(SCORE_BYTES + 1).cast::<u32>();
                long.write_unaligned(member.len() as u32);
            }
            let bytes = object.0.add(head).as_ptr();
            bytes.copy_from_nonoverlapping(member.as_ptr(), member.len());
        }
        object
    }

    /// Gives its memory back.
    pub(super) fn free(self) {
        let size = self.size();
        // SAFETY: taken by `create` with this size; the caller forgets it.
        unsafe { Arena.give(self.0, size) }
    }

    #[inline]
    pub(super) fn score(self) -> f64 {
        // SAFETY: a live object begins with its score, aligned to 8.
        unsafe { self.0.cast::<f64>().read() }
    }

    #[inline]
    pub(super) fn set_score(self, score: f64) {
        // SAFETY: as above.
        unsafe { self.0.cast::<f64>().write(score) }
    }

    /// The bytes of the member. The caller keeps the set from changing as long as it uses them.
    #[inline]
    pub(super) fn member<'a>(self) -> &'a [u8] {
        // SAFETY: a live object holds its length and then its bytes.
        unsafe {
            let short = self.0.add(SCORE_BYTES).read();
            let (head, len) = if short < LONG {
                (SCORE_BYTES + 1, usize::from(short))
            } else {
                let long = self.0.add(SCORE_BYTES + 1).cast::<u32>().read_unaligned();
                (SCORE_BYTES + 5, long as usize)
            };
            std::slice::from_raw_parts(self.0.add(head).as_ptr(), len)
        }
    }

    /// Bytes that it asked the arena for.
    fn size(self) -> usize {
        let len = self.member().len();
        head_bytes(len) + len
    }

    /// Bytes that it takes in the arena.
    pub(super) fn memory_bytes(self) -> usize {
        usable_size(self.size())
    }

    /// Where it stands in the order compared with a member.
    #[inline]
    pub(super) fn compare(self, score: f64, member: &[u8]) -> Ordering {
        let by_score = self.score().total_cmp_by_value(score);
        by_score.then_with(|| self.member().cmp(member))
    }

    /// Asks the processor for its first cache line.
    #[inline]
    pub(super) fn prefetch(address: u64) {
        crate::keyspace::dictionary::prefetch(address as *const u8);
    }
}

fn head_bytes(len: usize) -> usize {
    SCORE_BYTES + if len < usize::from(LONG) { 1 } else { 5 }
}

/// Comparison of scores: never NaN, and both zeros are the same.
trait ByValue {
    fn total_cmp_by_value(self, other: f64) -> Ordering;
}

impl ByValue for f64 {
    #[inline]
    fn total_cmp_by_value(self, other: f64) -> Ordering {
        self.partial_cmp(&other).unwrap_or(Ordering::Equal)
    }
}

/// A number that orders as the score does.
#[inline]
pub(super) fn ordered(score: f64) -> u64 {
    // Adding zero makes -0 into 0.
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

/// A place between members. What [`Bound::is_behind`] says yes to comes first in every set.
#[derive(Clone, Copy, Debug)]
pub enum Bound<'a> {
    /// Before this member with this score, if it is there.
    At(f64, &'a [u8]),
    /// Before all members with this score.
    Below(f64),
    /// Behind all members with this score.
    Above(f64),
    /// Before this member; the set's scores are all the same.
    MemberBelow(&'a [u8]),
    /// Behind this member; the set's scores are all the same.
    MemberAbove(&'a [u8]),
    /// Before everything.
    First,
    /// Behind everything.
    Last,
}

impl Bound<'_> {
    /// Whether the bound stands behind a member; `compare` orders that with other bytes.
    #[inline]
    pub fn is_behind(&self, score: f64, compare: impl FnOnce(&[u8]) -> Ordering) -> bool {
        match *self {
            Bound::At(at, wanted) => score < at || (score == at && compare(wanted).is_lt()),
            Bound::Below(at) => score < at,
            Bound::Above(at) => score <= at,
            Bound::MemberBelow(wanted) => compare(wanted).is_lt(),
            Bound::MemberAbove(wanted) => compare(wanted).is_le(),
            Bound::First => false,
            Bound::Last => true,
        }
    }

    /// Whether the bound stands at or behind the member that a subtree begins with, so that its place
    /// is in that subtree or further on.
    #[inline]
    pub(super) fn reaches(&self, score: f64, compare: impl FnOnce(&[u8]) -> Ordering) -> bool {
        match *self {
            Bound::At(at, wanted) => score < at || (score == at && compare(wanted).is_le()),
            _ => self.is_behind(score, compare),
        }
    }

    /// The score that decides, as an ordered number, if there is one.
    #[inline]
    pub(super) fn ordered(&self) -> Option<u64> {
        match *self {
            Bound::At(score, _) | Bound::Below(score) | Bound::Above(score) => Some(ordered(score)),
            _ => None,
        }
    }
}
