//! Inner nodes of the tree: children with their counts, and the members that separate them.
//!
//! ```text
//!  +-----+--------------+---------------+----------------+--------------+
//!  | len | 36 scores    | 36 members    | 36 children    | 36 counts    |   1016 bytes
//!  +-----+--------------+---------------+----------------+--------------+
//!    score and member number i belong to the first member below child i
//! ```
//!
//! Scores stand in the node, so that a search looks at members only where scores are equal.
//!
//! Invariants
//!   I1  count i is the number of members below child i, and not 0.
//!   I2  for i > 0, member i is the first one below child i, and score i is its score. Number 0 is not
//!       looked at: what is smaller than everything belongs to child 0 anyway.

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::object::{Bound, Object};

/// Children of a node at most: the most that 1 KiB holds.
pub(super) const CHILDREN: usize = 36;

#[repr(C)]
#[derive(Debug)]
struct Node {
    len: u32,
    reserved: u32,
    scores: [f64; CHILDREN],
    members: [u64; CHILDREN],
    children: [u64; CHILDREN],
    counts: [u32; CHILDREN],
}

const _: () = assert!(size_of::<Node>() <= 1024);

/// A child with what its parent knows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    pub address: u64,
    pub count: u32,
    /// The first member below it.
    pub first: Object,
}

/// An inner node by address. Whoever holds one knows that it is live and that nobody else changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inner(NonNull<Node>);

impl Inner {
    #[inline]
    pub(super) fn at(address: u64) -> Inner {
        let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
        Inner(NonNull::new(pointer).expect("a tree names its nodes (Z2)"))
    }

    #[inline]
    pub(super) fn address(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// A node without children.
    pub(super) fn create() -> Inner {
        let inner = Inner(Arena.take(size_of::<Node>()).cast());
        let node = Node {
            len: 0,
            reserved: 0,
            scores: [0.0; CHILDREN],
            members: [0; CHILDREN],
            children: [0; CHILDREN],
            counts: [0; CHILDREN],
        };
        // SAFETY: the object has the size of a node.
        unsafe { inner.0.write(node) };
        inner
    }

    pub(super) fn free(self) {
        // SAFETY: taken by `create`; the caller forgets it.
        unsafe { Arena.give(self.0.cast(), size_of::<Node>()) }
    }

    /// Bytes of a node in the arena.
    pub(super) const fn memory_bytes() -> usize {
        usable_size(size_of::<Node>())
    }

    /// Asks the processor for the scores of a node.
    #[inline]
    pub(super) fn prefetch(address: u64) {
        for line in 0..5 {
            crate::keyspace::dictionary::prefetch((address + line * 64) as *const u8);
        }
    }

    #[inline]
    fn node<'a>(self) -> &'a Node {
        // SAFETY: whoever holds an `Inner` knows that it is live.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn node_mut<'a>(mut self) -> &'a mut Node {
        // SAFETY: as above; the caller changes one node at a time.
        unsafe { self.0.as_mut() }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.node().len as usize
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.len() == CHILDREN
    }

    #[inline]
    pub(super) fn child(self, index: usize) -> u64 {
        self.node().children[index]
    }

    #[inline]
    pub(super) fn count(self, index: usize) -> u32 {
        self.node().counts[index]
    }

    /// The first member below a child; known for all but the first child of the first node of a level.
    #[inline]
    pub(super) fn first(self, index: usize) -> Object {
        Object::at(self.node().members[index])
    }

    /// The address under which the first member below a child is known, whatever it is.
    pub(super) fn first_address(self, index: usize) -> (f64, u64) {
        (self.node().scores[index], self.node().members[index])
    }

    #[inline]
    pub(super) fn set_first(self, index: usize, object: Object) {
        let node = self.node_mut();
        node.scores[index] = object.score();
        node.members[index] = object.address();
    }

    #[inline]
    pub(super) fn set_child(self, index: usize, address: u64) {
        self.node_mut().children[index] = address;
    }

    #[inline]
    pub(super) fn set_count(self, index: usize, count: u32) {
        self.node_mut().counts[index] = count;
    }

    /// Members below all children.
    pub(super) fn total(self) -> u32 {
        self.node().counts[..self.len()].iter().sum()
    }

    /// Members below the first `children` children.
    #[inline]
    pub(super) fn count_before(self, children: usize) -> usize {
        let counts = &self.node().counts[..children];
        counts.iter().map(|&count| count as usize).sum()
    }

    /// The child that the bound is in.
    #[inline]
    pub(super) fn search(self, bound: &Bound<'_>) -> usize {
        let node = self.node();
        let (mut low, mut high) = (1, node.len as usize);
        while low < high {
            let middle = usize::midpoint(low, high);
            if bound.reaches(node.scores[middle], |to| {
                self.first(middle).member().cmp(to)
            }) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low - 1
    }

    /// The child that holds the member number `rank`, and its number there.
    #[inline]
    pub(super) fn seek(self, mut rank: usize) -> (usize, usize) {
        let counts = &self.node().counts[..self.len()];
        for (index, &count) in counts.iter().enumerate() {
            if rank < count as usize {
                return (index, rank);
            }
            rank -= count as usize;
        }
        // Behind the last one.
        let last = counts.len() - 1;
        (last, rank + counts[last] as usize)
    }

    /// Puts a child at `index`; the node is not full.
    pub(super) fn insert(self, index: usize, child: Child) {
        let node = self.node_mut();
        let len = node.len as usize;
        node.scores.copy_within(index..len, index + 1);
        node.members.copy_within(index..len, index + 1);
        node.children.copy_within(index..len, index + 1);
        node.counts.copy_within(index..len, index + 1);
        node.scores[index] = child.first.score();
        node.members[index] = child.first.address();
        node.children[index] = child.address;
        node.counts[index] = child.count;
        node.len += 1;
    }

    /// Puts the very first child into an empty node; its first member need not be known.
    pub(super) fn begin(self, address: u64, count: u32) {
        let node = self.node_mut();
        node.children[0] = address;
        node.counts[0] = count;
        node.len = 1;
    }

    /// Forgets the child at `index`.
    pub(super) fn remove(self, index: usize) {
        let node = self.node_mut();
        let len = node.len as usize;
        node.scores.copy_within(index + 1..len, index);
        node.members.copy_within(index + 1..len, index);
        node.children.copy_within(index + 1..len, index);
        node.counts.copy_within(index + 1..len, index);
        node.len -= 1;
    }

    /// Forgets the last child.
    pub(super) fn drop_last(self) {
        self.node_mut().len -= 1;
    }

    /// Moves the children from `at` on to a new node.
    pub(super) fn split(self, at: usize) -> Inner {
        let right = Inner::create();
        right.copy_behind(0, self, at);
        self.node_mut().len = at as u32;
        right
    }

    /// Takes all children of the node that follows, and frees that. There is room. `first` is the
    /// first member below it.
    pub(super) fn absorb(self, next: Inner, first: Object) {
        next.set_first(0, first);
        self.copy_behind(self.len(), next, 0);
        next.free();
    }

    /// Copies the children of `other` from `from` on to the places from `at` on.
    fn copy_behind(self, at: usize, other: Inner, from: usize) {
        let (node, source) = (self.node_mut(), other.node());
        let end = source.len as usize;
        let to = at..at + (end - from);
        node.scores[to.clone()].copy_from_slice(&source.scores[from..end]);
        node.members[to.clone()].copy_from_slice(&source.members[from..end]);
        node.children[to.clone()].copy_from_slice(&source.children[from..end]);
        node.counts[to.clone()].copy_from_slice(&source.counts[from..end]);
        node.len = to.end as u32;
    }
}
