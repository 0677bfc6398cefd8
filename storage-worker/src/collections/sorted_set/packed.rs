//! The small form of a sorted set: a listpack of member, score, member, score ... in order.
//!
//! Scores are written as Redis writes them: whole numbers as integers, which loses the sign of -0, all
//! others as the text that reads back as the same number.
//!
//! Cost: everything is a walk over the listpack, about 1 ns per element.

use std::cmp::Ordering;

use proto::number::DoubleText;

use super::Bound;
use crate::collections::listpack::{self, Listpack, Position, Wanted};
use crate::collections::{Splice, StringRef};

/// Whole numbers up to here are written as integers.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

/// A packed set to be read.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a>(Listpack<'a>);

/// A member of a packed set; good until the next change of the set.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    position: Position,
    score: Position,
}

impl<'a> Packed<'a> {
    /// Reads bytes that are known to be a packed set.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Packed<'a> {
        Packed(Listpack::new(bytes))
    }

    /// Number of members.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len() / 2
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the listpack.
    #[inline]
    #[must_use]
    pub fn bytes_len(self) -> usize {
        self.0.bytes_len()
    }

    /// Looks a member up.
    #[inline]
    #[must_use]
    pub fn find(self, member: &[u8]) -> Option<Member> {
        let position = self.0.find(self.0.first()?, member, 1)?;
        let score = self.0.next(position)?;
        Some(Member { position, score })
    }

    /// The score of a member.
    #[inline]
    #[must_use]
    pub fn score(self, member: Member) -> f64 {
        score_of(self.0.get(member.score))
    }

    /// The number of a member in the order and its score.
    #[must_use]
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        let wanted = Wanted::new(member);
        let found = self.walk(0).enumerate();
        let mut found = found.filter(|(_, (_, name))| wanted.is(*name));
        found.next().map(|(rank, (score, _))| (rank, score))
    }

    /// How many members stand before a bound.
    #[must_use]
    pub fn count_before(self, bound: &Bound<'_>) -> usize {
        match bound {
            Bound::First => 0,
            Bound::Last => self.len(),
            _ => self
                .walk(0)
                .take_while(|&(score, member)| bound.is_behind(score, |to| compare(member, to)))
                .count(),
        }
    }

    /// Score and name of the members from number `rank` on, upwards.
    #[must_use]
    pub fn walk(self, rank: usize) -> Walk<'a> {
        let mut elements = self.0.iter();
        if rank > 0 {
            elements.nth(2 * rank - 1);
        }
        Walk {
            elements,
            backwards: false,
        }
    }

    /// Score and name of the members from number `rank` on, downwards.
    #[must_use]
    pub fn walk_back(self, rank: usize) -> Walk<'a> {
        let mut elements = self.0.iter();
        let behind = self.len().saturating_sub(rank.saturating_add(1));
        if behind > 0 {
            elements.nth_back(2 * behind - 1);
        }
        Walk {
            elements,
            backwards: true,
        }
    }

    /// Where the member number `rank` begins.
    fn seek(self, rank: usize) -> Option<Position> {
        self.0.seek(i64::try_from(2 * rank).ok()?)
    }

    /// The first member that a bound does not stand behind, by position.
    fn position_behind(self, bound: &Bound<'_>) -> Option<Position> {
        let mut position = self.0.first()?;
        loop {
            let score = self.0.next(position)?;
            let member = self.0.get(position);
            if !bound.is_behind(score_of(self.0.get(score)), |to| compare(member, to)) {
                return Some(position);
            }
            position = self.0.next(score)?;
        }
    }
}

/// Members in order, or against it.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    elements: listpack::Iter<'a>,
    backwards: bool,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (f64, StringRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.backwards {
            let score = self.elements.next_back()?;
            let member = self.elements.next_back()?;
            return Some((score_of(score), member));
        }
        let member = self.elements.next()?;
        let score = self.elements.next()?;
        Some((score_of(score), member))
    }
}

/// The number that an element stands for.
#[inline]
fn score_of(element: StringRef<'_>) -> f64 {
    match element {
        StringRef::Int(number) => number as f64,
        StringRef::Bytes(text) => parse(text),
    }
}

/// Reads the text of a score; what no score has as its text counts as 0.
fn parse(text: &[u8]) -> f64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let score = text.parse::<f64>().unwrap_or(0.0);
    if score.is_nan() { 0.0 } else { score }
}

/// Calls `write` with the element that stands for a score.
fn with_score<R>(score: f64, write: impl FnOnce(StringRef<'_>) -> R) -> R {
    if score.trunc() == score && score.abs() <= WHOLE_MAX {
        write(StringRef::Int(score as i64))
    } else {
        write(StringRef::Bytes(DoubleText::new().format(score)))
    }
}

/// How a member orders with other bytes.
fn compare(member: StringRef<'_>, other: &[u8]) -> Ordering {
    match member {
        StringRef::Bytes(bytes) => bytes.cmp(other),
        StringRef::Int(number) => itoa::Buffer::new().format(number).as_bytes().cmp(other),
    }
}

/// Bytes that a member with its score adds to a listpack at most.
#[must_use]
pub fn pair_bytes(member: &[u8]) -> usize {
    // The longest text of a score has 24 bytes.
    listpack::encoded_len(StringRef::Bytes(member)) + 32
}

/// Adds a member that is not there yet.
pub fn insert(target: &mut impl Splice, score: f64, member: &[u8]) {
    let packed = Packed::new(target.bytes());
    let behind = packed.position_behind(&Bound::At(score, member));
    with_score(score, |score| {
        let pair = [StringRef::Bytes(member), score];
        match behind {
            Some(position) => listpack::insert_all_before(target, position, pair.into_iter()),
            None => listpack::push_back_all(target, pair.into_iter()),
        }
    });
}

/// Adds a member behind all others, where it belongs.
pub fn push_last(target: &mut impl Splice, score: f64, member: &[u8]) {
    with_score(score, |score| {
        listpack::push_back_all(target, [StringRef::Bytes(member), score].into_iter());
    });
}

/// Gives a member another score and moves it to where it then belongs.
pub fn set_score(target: &mut impl Splice, member: Member, name: &[u8], score: f64) {
    let packed = Packed::new(target.bytes());
    if stays(packed, member, name, score) {
        with_score(score, |score| {
            listpack::replace(target, member.score, score);
        });
    } else {
        remove(target, member);
        insert(target, score, name);
    }
}

/// Whether a member with another score would still stand between its neighbours.
fn stays(packed: Packed<'_>, member: Member, name: &[u8], score: f64) -> bool {
    let bound = Bound::At(score, name);
    let list = packed.0;
    let is_behind_previous = match list.prev(member.position) {
        None => true,
        Some(before) => list.prev(before).is_some_and(|previous| {
            bound.is_behind(score_of(list.get(before)), |to| {
                compare(list.get(previous), to)
            })
        }),
    };
    let is_before_next = match list.next(member.score) {
        None => true,
        Some(next) => list.next(next).is_some_and(|behind| {
            !bound.is_behind(score_of(list.get(behind)), |to| compare(list.get(next), to))
        }),
    };
    is_behind_previous && is_before_next
}

/// Takes a member out.
pub fn remove(target: &mut impl Splice, member: Member) {
    listpack::delete(target, member.position, 2);
}

/// Takes `count` members from number `first` on out.
pub fn remove_ranks(target: &mut impl Splice, first: usize, count: usize) {
    if let Some(position) = Packed::new(target.bytes()).seek(first) {
        listpack::delete(target, position, count.saturating_mul(2));
    }
}
