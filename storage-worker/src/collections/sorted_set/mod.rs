//! Sorted sets: the big form, members by name and by rank. The small one is `packed`.
//!
//! Why two indexes: ZSCORE and ZADD know the name, ranges and ranks know the order. Each member is one
//! object of the arena; a dictionary finds it by name, a counted B+tree keeps it in order.
//!
//! ```text
//!  SortedSet (48 bytes)
//!    members: Dictionary --> word --+
//!    order:   Tree -> inner -> leaf --> word --> | score | length | bytes |
//!    seed of the dictionary's hash, sum of the objects' sizes
//! ```
//!
//! Redis uses a skip list and a hash table: 37 bytes per member for nodes with 1.33 levels, 24 and a
//! table slot for the hash entry, and the string. Here a member costs 9 bytes and its name, rounded up
//! to 8, about 10 in the dictionary and 12 in the tree; a rank is known after 4 nodes.
//!
//! Everything about order is a number: a bound (a score, a member, a member of equal scores) is turned
//! into a rank, and a walk goes from a rank to a rank. So ZCOUNT needs two searches and no walk.
//!
//! Invariants
//!   Z1  dictionary and tree name the same live objects.
//!   Z2  addresses of nodes in the tree are live nodes of the right kind.
//!
//! Cost: O(log n) for everything by score or rank, with about four cache misses for a million members.
//! Not here: replies, keys, when a set is packed.

mod inner;
mod leaf;
mod object;
pub mod packed;
#[cfg(test)]
mod tests;
mod tree;

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Owned, Structure};
use crate::keyspace::dictionary::{Dictionary, Element, Position};

pub use object::Bound;
use object::Object;
use tree::{Path, Tree};

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct SortedSet {
    members: Dictionary,
    order: Tree,
    seed: u64,
    /// Of the objects of all members.
    bytes: u64,
}

/// A member that was found; good until the next change of the set.
#[derive(Clone, Copy, Debug)]
pub struct Member(Object);

impl Member {
    /// Its score.
    #[inline]
    #[must_use]
    pub fn score(self) -> f64 {
        self.0.score()
    }
}

fn hash(seed: u64, member: &[u8]) -> u64 {
    xxh3_64_with_seed(member, seed)
}

fn hasher(seed: u64) -> impl Fn(Element) -> u64 {
    move |element| hash(seed, Object::of(element).member())
}

impl SortedSet {
    /// What finds elements by the system-wide hash of their names.
    #[inline]
    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.members
    }

    /// An empty set in the arena. `seed` is the hash seed of the whole system.
    #[must_use]
    pub fn create(seed: u64) -> Owned<SortedSet> {
        let set = Arena.take(size_of::<SortedSet>()).cast::<SortedSet>();
        let empty = SortedSet {
            members: Dictionary::default(),
            order: Tree::default(),
            seed,
            bytes: 0,
        };
        // SAFETY: the object has the size of a set, and nobody else knows it.
        unsafe { set.write(empty) };
        Owned::new(set)
    }

    /// Looks a member up.
    #[inline]
    #[must_use]
    pub fn find(&self, member: &[u8]) -> Option<Member> {
        let is_it = |element| Object::of(element).member() == member;
        let found = self.members.get(hash(self.seed, member), is_it);
        found.map(|element| Member(Object::of(element)))
    }

    /// Adds a member that is not there yet.
    pub fn insert(&mut self, score: f64, member: &[u8]) {
        let object = Object::create(score, member);
        self.bytes += object.memory_bytes() as u64;
        let hash = hash(self.seed, member);
        self.members
            .insert(hash, object.element(), hasher(self.seed));
        self.order.insert(object);
    }

    /// Gives a member another score.
    pub fn set_score(&mut self, member: Member, score: f64) {
        if let Some(path) = self.path_of(member) {
            self.order.rescore(&path, score);
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, member: Member) {
        if let Some(path) = self.path_of(member) {
            self.forget(&path);
        }
    }

    /// Takes the members from number `first` on out, `count` of them or as many as there are; `visit`
    /// sees each one first.
    pub fn remove_ranks(&mut self, first: usize, count: usize, mut visit: impl FnMut(f64, &[u8])) {
        for _ in 0..count {
            let Some(path) = self.order.seek(first) else {
                return;
            };
            let object = path.leaf.get(path.index);
            path.leaf.prefetch_member(path.index + 2);
            visit(object.score(), object.member());
            self.forget(&path);
        }
    }

    /// Takes the member at a place out of both indexes and frees it.
    fn forget(&mut self, path: &Path) {
        let object = self.order.remove(path);
        let hash = hash(self.seed, object.member());
        let place = self
            .members
            .find(hash, |element| element == object.element())
            .expect("the dictionary names all members (Z1)");
        self.members.remove(hash, place);
        self.bytes -= object.memory_bytes() as u64;
        object.free();
    }

    fn path_of(&self, member: Member) -> Option<Path> {
        let bound = Bound::At(member.0.score(), member.0.member());
        let path = self.order.locate(&bound);
        debug_assert!(
            path.as_ref()
                .is_some_and(|path| path.leaf.get(path.index) == member.0)
        );
        path
    }

    /// The number of a member in the order, 0 for the lowest.
    #[must_use]
    pub fn rank(&self, member: Member) -> usize {
        self.count_before(&Bound::At(member.0.score(), member.0.member()))
    }

    /// How many members stand before a bound.
    #[must_use]
    pub fn count_before(&self, bound: &Bound<'_>) -> usize {
        match bound {
            Bound::First => 0,
            Bound::Last => self.len(),
            _ => self.order.locate(bound).map_or(0, |path| path.rank()),
        }
    }

    /// Score and name of the members from number `rank` on, upwards.
    #[must_use]
    pub fn walk(&self, rank: usize) -> Walk<'_> {
        Walk {
            path: self.order.seek(rank),
            left: self.len().saturating_sub(rank),
            backwards: false,
            set: std::marker::PhantomData,
        }
    }

    /// Score and name of the members from number `rank` on, downwards.
    #[must_use]
    pub fn walk_back(&self, rank: usize) -> Walk<'_> {
        let path = self.order.seek(rank);
        Walk {
            left: if path.is_some() { rank + 1 } else { 0 },
            path,
            backwards: true,
            set: std::marker::PhantomData,
        }
    }

    /// Visits about `count` members from `from` on, in no order, and says where to go on; `None` at the
    /// end. Members that are there all the time are visited whatever changes meanwhile.
    pub fn scan(
        &self,
        from: Position,
        count: usize,
        mut visit: impl FnMut(f64, &[u8]),
    ) -> Option<Position> {
        self.members.scan(from, count, |element| {
            let object = Object::of(element);
            visit(object.score(), object.member());
        })
    }
}

impl Structure for SortedSet {
    fn free(this: NonNull<SortedSet>) {
        while SortedSet::free_some(this, usize::MAX) {}
    }

    fn free_some(mut this: NonNull<SortedSet>, budget: usize) -> bool {
        // SAFETY: the caller owns the set.
        let set = unsafe { this.as_mut() };
        let free = |element| Object::of(element).free();
        if set.members.drain_some(budget, free) || set.order.free_some(budget) {
            return true;
        }
        // SAFETY: taken by `create`; nothing names it any more.
        unsafe { Arena.give(this.cast(), size_of::<SortedSet>()) }
        false
    }

    fn copy(&self) -> NonNull<SortedSet> {
        let mut copy = SortedSet::create(self.seed);
        for (score, member) in self.walk(0) {
            copy.insert(score, member);
        }
        copy.release()
    }

    #[inline]
    fn len(&self) -> usize {
        self.order.len()
    }

    fn memory_bytes(&self, _samples: usize) -> usize {
        usable_size(size_of::<SortedSet>())
            + self.members.table_bytes()
            + self.order.memory_bytes()
            + self.bytes as usize
    }

    fn check(&self) -> Result<(), String> {
        self.members.check(hasher(self.seed))?;
        self.order.check()?;
        if self.members.len() != self.order.len() {
            return Err("dictionary and tree have not as many members (Z1)".to_owned());
        }
        let (mut wrong, mut bytes) = (None, 0);
        self.members.for_each(|element| {
            let object = Object::of(element);
            bytes += object.memory_bytes() as u64;
            let bound = Bound::At(object.score(), object.member());
            let path = self.order.locate(&bound);
            let found = path.filter(|path| path.index < path.leaf.len());
            if found.is_none_or(|path| path.leaf.get(path.index) != object) {
                wrong = Some(format!(
                    "a member with score {} is not in the tree (Z1)",
                    object.score()
                ));
            }
        });
        if bytes != self.bytes {
            wrong.get_or_insert_with(|| "the sum of the members' sizes is wrong".to_owned());
        }
        wrong.map_or(Ok(()), Err)
    }
}

/// Members in order, or against it.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    path: Option<Path>,
    left: usize,
    backwards: bool,
    set: std::marker::PhantomData<&'a SortedSet>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (f64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        /// Members asked for ahead.
        const AHEAD: usize = 6;
        let path = self.path.as_mut().filter(|_| self.left > 0)?;
        let object = path.leaf.get(path.index);
        self.left -= 1;
        if self.backwards {
            path.leaf.prefetch_member(path.index.wrapping_sub(AHEAD));
        } else {
            path.leaf.prefetch_member(path.index + AHEAD);
        }
        if self.left > 0 {
            if self.backwards {
                path.previous();
            } else {
                path.next();
            }
        }
        Some((object.score(), object.member()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
