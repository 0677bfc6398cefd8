//! Streams: entries under ascending ids, and groups of consumers that share them out.
//!
//! ```text
//!   Stream
//!   +- log      entries in nodes of about a hundred (`node`), found by id (`log`, `ordered`)
//!   +- groups   what each group has been given and who has it (`group`)
//! ```
//!
//! The nodes are literally those of Redis, with the same limits, so that dumps copy them, and trimming
//! that stops at whole nodes stops at the same ones.
//!
//! Cost: an entry with the fields of the entries around it takes its values, 2 bytes for each of them
//! and about 10 for its id; a node about 40 more. An entry that is pending takes 52 bytes. Adding at
//! the end looks at the last node only; finding an id is a search in the index and a walk over half
//! a node at most.
//!
//! Not here: which ids a client may give, time-outs, names of keys (`commands`).

mod check;
mod group;
mod id;
mod log;
mod named;
mod node;
mod progress;
mod radix;
mod range;
#[cfg(test)]
mod tests;
mod trim;

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::{Owned, Structure};

pub use check::is_node;
pub use group::{Consumer, ConsumerAt, Group, Groups, Pending, UNKNOWN};
pub use id::{IdText, StreamId};
pub use log::{Log, NodeLimits};
pub use node::{Entry, Pairs};
pub use range::{Range, RangeBack};
pub use trim::Trim;

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct Stream {
    /// The entries.
    pub log: Log,
    /// The groups.
    pub groups: Groups,
}

/// Sizes that a successor must agree about.
pub const LAYOUT: [usize; 4] = [
    size_of::<Stream>(),
    size_of::<Group>(),
    size_of::<Consumer>(),
    size_of::<Pending>(),
];

impl Stream {
    /// An empty stream in the arena.
    #[must_use]
    pub fn create() -> Owned<Self> {
        Owned::new(Self::place(Self {
            log: Log::new(),
            groups: Groups::default(),
        }))
    }

    fn place(self) -> NonNull<Self> {
        let stream = Arena.take(size_of::<Self>()).cast::<Self>();
        // SAFETY: the object has the size of a stream.
        unsafe { stream.write(self) };
        stream
    }
}

impl Structure for Stream {
    fn free(this: NonNull<Self>) {
        while Self::free_some(this, usize::MAX) {}
    }

    fn free_some(mut this: NonNull<Self>, budget: usize) -> bool {
        // SAFETY: the caller hands the stream over: nobody else uses it.
        let stream = unsafe { this.as_mut() };
        let mut budget = budget;
        if stream.log.free_some(&mut budget) || stream.groups.free_some(&mut budget) {
            return true;
        }
        // SAFETY: taken by `place`; all that it owned is gone.
        unsafe { Arena.give(this.cast(), size_of::<Self>()) };
        false
    }

    fn copy(&self) -> NonNull<Self> {
        Self::place(Self {
            log: self.log.copy(),
            groups: self.groups.copy(),
        })
    }

    /// Nodes, and what is pending: what freeing it has to touch.
    fn len(&self) -> usize {
        const GROUPS_LOOKED_AT: usize = 64;
        let groups = self.groups.iter().take(GROUPS_LOOKED_AT);
        let of_group = |(_, group): (_, &Group)| group.pending().len() + group.consumer_count();
        self.log.node_count() + self.groups.len() + groups.map(of_group).sum::<usize>()
    }

    fn memory_bytes(&self, samples: usize) -> usize {
        usable_size(size_of::<Self>()) + self.log.memory_bytes(samples) + self.groups.memory_bytes()
    }

    fn check(&self) -> Result<(), String> {
        self.log.check()?;
        self.groups.check()
    }
}
