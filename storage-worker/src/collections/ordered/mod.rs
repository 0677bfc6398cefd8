//! An ordered tree of small records of fixed size in the arena: a B-tree.
//!
//! Why: a stream finds its nodes, and what is pending of them, by a 128-bit id, in order, from any
//! place on. A tree of records packed into nodes of up to 1 KiB takes hardly more than the records
//! themselves, and most of its uses add at one end and take away at the other.
//!
//! ```text
//!   Tree (16 bytes)      inner node                                leaf
//!   +------+-----+       +------+-----------+-----------+- -+      +------+--------+--------+- -+
//!   | root | len | ----> | head | key child | key child |   | ---> | head | record | record |   |
//!   +------+-----+       +------+-----------+-----------+- -+      +------+--------+--------+- -+
//! ```
//!
//! A node is as large as what it holds (it doubles), until it has 1 KiB and splits: in halves, or,
//! when the record comes behind all others, into the full node and a new one. So a tree that only
//! grows at its end is full.
//!
//! Invariants
//!   O1  records are in ascending order of their keys, and all keys differ.
//!   O2  the key in front of a child is that of the first record below it.
//!   O3  all leaves are equally deep; only a tree without records has no root; no node is empty.
//!   O4  the addresses that a tree keeps are those of live nodes, which nothing else knows.
//!
//! A record's key may live outside of it (a name), as long as it stays where it is: O2 is exact, so no
//! node ever names a record that is gone.
//!
//! Cost: records x 1 to 2, never worse than x 4; lookup is a binary search in each of 1 to 4 nodes.
//! Not here: what the records own; a tree does not drop them.

mod array;
mod change;
mod lookup;
#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;

use shm::arena::Arena;

use array::{Array, level_at};
pub use lookup::{Backward, Forward};

/// Something that a [`Tree`] keeps.
pub trait Record {
    /// What it is ordered by.
    type Key: Copy + Ord;

    /// Its own.
    fn key(&self) -> Self::Key;
}

/// Nobody builds a tree of more levels: each has at least several times as many nodes as the one above.
const LEVELS_MAX: usize = 24;

/// A child of an inner node.
#[repr(C)]
struct Branch<K> {
    key: K,
    child: u64,
}

/// See the module.
#[repr(C)]
pub struct Tree<R> {
    /// Address of the root, or 0.
    root: u64,
    len: u64,
    records: PhantomData<R>,
}

impl<R> fmt::Debug for Tree<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<R> Default for Tree<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Tree<R> {
    /// A tree without records, which takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            root: 0,
            len: 0,
            records: PhantomData,
        }
    }

    /// Number of records.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<R: Record> Tree<R> {
    /// Bytes that the nodes take in the arena.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        if self.root == 0 {
            0
        } else {
            Self::bytes_below(self.root)
        }
    }

    fn bytes_below(address: u64) -> usize {
        if level_at(address) == 0 {
            return Array::<R>::at(address).bytes();
        }
        let node = Array::<Branch<R::Key>>::at(address);
        let below = node
            .items()
            .iter()
            .map(|branch| Self::bytes_below(branch.child));
        node.bytes() + below.sum::<usize>()
    }

    /// Compares everything that must agree.
    ///
    /// # Errors
    /// A sentence that names the first contradiction.
    pub fn check(&self) -> Result<(), String> {
        if self.root == 0 {
            return if self.len == 0 {
                Ok(())
            } else {
                Err("records without a root (O3)".to_owned())
            };
        }
        if !Arena.contains(self.root, 8) {
            return Err("the root of a tree lies outside the arena (O4)".to_owned());
        }
        let mut last = None;
        let count = Self::check_below(self.root, level_at(self.root), &mut last)?;
        if count == self.len {
            Ok(())
        } else {
            Err(format!(
                "a tree has {count} records and a length of {} (O3)",
                self.len
            ))
        }
    }

    fn check_below(address: u64, level: u8, last: &mut Option<R::Key>) -> Result<u64, String> {
        if !Arena.contains(address, 8) || level_at(address) != level {
            return Err("a node of a tree is not where it should be (O3, O4)".to_owned());
        }
        if level == 0 {
            let leaf = Array::<R>::at(address);
            if !Arena.contains(address, leaf.bytes())
                || leaf.len() == 0
                || leaf.len() > leaf.capacity()
            {
                return Err("a leaf of a tree is broken (O3, O4)".to_owned());
            }
            for record in leaf.items() {
                let key = record.key();
                if last.is_some_and(|last| last >= key) {
                    return Err("records of a tree are out of order (O1)".to_owned());
                }
                *last = Some(key);
            }
            return Ok(leaf.len() as u64);
        }
        let node = Array::<Branch<R::Key>>::at(address);
        if !Arena.contains(address, node.bytes()) || node.len() == 0 || node.len() > node.capacity()
        {
            return Err("an inner node of a tree is broken (O3, O4)".to_owned());
        }
        let mut count = 0;
        for branch in node.items() {
            count += Self::check_below(branch.child, level - 1, last)?;
            if Self::first_key(branch.child) != branch.key {
                return Err(
                    "a key of an inner node is not that of its first record (O2)".to_owned(),
                );
            }
        }
        Ok(count)
    }

    /// Key of the first record below a node.
    fn first_key(address: u64) -> R::Key {
        if level_at(address) == 0 {
            Array::<R>::at(address).items()[0].key()
        } else {
            Array::<Branch<R::Key>>::at(address).items()[0].key
        }
    }
}
