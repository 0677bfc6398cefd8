//! The entries of a stream: nodes in the order of their ids, and what is counted about them.
//!
//! ```text
//!   nodes: tree of (id, listpack)                                   tail: (id, listpack)
//!   [ 1-0 ...100 entries ] [ 5-0 ...100 entries ] [ 9-3 ... ]       [ 12-0 ... 17 entries, room ]
//! ```
//!
//! The last node is kept outside of the tree, so that adding at the end looks nothing up; a stream of
//! few entries has no tree at all.
//!
//! Invariants
//!   L1  there is a tail unless there are no nodes; its id is behind those in the tree.
//!   L2  `length` is the sum of the live entries of all nodes; `first_id` is the first of them, or 0-0.
//!   L3  `radix_nodes` is how many nodes a radix tree over the 16-byte ids of the nodes would have.

use crate::collections::listpack::{BYTES_MAX, Position};
use crate::collections::ordered::Tree;
use crate::collections::{Buffer, Splice};

use super::StreamId;
use super::group::free_tree;
use super::node::{Node, Size, View};

/// Up to here the last node doubles.
const ROOM_DOUBLED_MAX: usize = 8192;

/// When a node is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// `stream-node-max-bytes`; 0 for no limit but that of a listpack.
    pub bytes: u64,
    /// `stream-node-max-entries`; 0 for none.
    pub entries: u64,
}

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct Log {
    pub(super) nodes: Tree<Node>,
    pub(super) tail: Node,
    pub(super) length: u64,
    /// Entries ever added; XSETID changes it.
    pub entries_added: u64,
    /// Id of the entry that was added last; XSETID changes it.
    pub last_id: StreamId,
    /// Id of the first entry.
    pub(super) first_id: StreamId,
    /// Greatest id that XDEL ever deleted.
    pub max_deleted_id: StreamId,
    pub(super) radix_nodes: u64,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            nodes: Tree::new(),
            tail: Node::default(),
            length: 0,
            entries_added: 0,
            last_id: StreamId::MIN,
            first_id: StreamId::MIN,
            max_deleted_id: StreamId::MIN,
            radix_nodes: 1,
        }
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Id of the first entry; 0-0 if there is none.
    #[must_use]
    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len() + usize::from(self.tail().is_some())
    }

    /// Nodes that the radix tree of the reference would have for these nodes.
    #[must_use]
    pub fn radix_nodes(&self) -> u64 {
        self.radix_nodes
    }

    /// The last node.
    pub(super) fn tail(&self) -> Option<&Node> {
        (!self.tail.bytes.is_empty()).then_some(&self.tail)
    }

    /// The first node.
    pub(super) fn first_node(&self) -> Option<&Node> {
        self.nodes.first().or(self.tail())
    }

    /// The node that has an entry if there is one: the last node whose id is at most this one.
    pub(super) fn node_at_or_before(&self, id: StreamId) -> Option<&Node> {
        match self.tail() {
            Some(tail) if tail.id <= id => Some(tail),
            _ => self.nodes.at_or_before(id),
        }
    }

    /// The node in front of an id.
    pub(super) fn node_before(&self, id: StreamId) -> Option<&Node> {
        match self.tail() {
            Some(tail) if tail.id < id => Some(tail),
            _ => self.nodes.before(id),
        }
    }

    /// The node behind an id.
    pub(super) fn node_after(&self, id: StreamId) -> Option<&Node> {
        self.nodes
            .after(id)
            .or(self.tail().filter(|tail| tail.id > id))
    }

    /// A node, by its own id.
    pub(super) fn node_mut(&mut self, id: StreamId) -> Option<&mut Node> {
        if self.tail.id == id && !self.tail.bytes.is_empty() {
            return Some(&mut self.tail);
        }
        self.nodes.get_mut(id)
    }

    /// Adds an entry, whose id is greater than all others.
    pub fn append<'v>(
        &mut self,
        id: StreamId,
        pairs: impl Iterator<Item = (&'v [u8], &'v [u8])> + Clone,
        limits: NodeLimits,
    ) {
        debug_assert!(id > self.last_id);
        let size = Size::of(pairs.clone());
        let tail = self.tail().map(Node::view);
        let open = tail.filter(|tail| !is_full(tail, size.bytes, limits));
        if let Some(tail) = open {
            let live = tail.live;
            let is_same = tail.has_fields(pairs.clone().map(|(field, _)| field), size);
            make_room(&mut self.tail.bytes, size.room);
            self.tail.append(id, pairs, size, live, is_same);
        } else {
            if self.tail().is_some() {
                self.close_tail();
            }
            self.radix_nodes += self.radix_gain(id);
            self.tail = Node::new(id, pairs, size);
        }
        self.length += 1;
        self.entries_added = self.entries_added.wrapping_add(1);
        self.last_id = id;
        if self.length == 1 {
            self.first_id = id;
        }
    }

    /// All nodes in order, with their ids, as the bytes that they are kept in.
    pub fn nodes(&self) -> impl Iterator<Item = (StreamId, &[u8])> {
        let nodes = self.nodes.iter().chain(self.tail());
        nodes.map(|node| (node.id, node.bytes.bytes()))
    }

    /// Adds a node that [`super::is_node`] has found whole, and counts what is in it; says whether it
    /// is behind all others. `entries_added` is the caller's.
    pub fn push_node(&mut self, id: StreamId, bytes: &[u8]) -> bool {
        if self.tail().is_some() && id <= self.last_id {
            return false;
        }
        if self.tail().is_some() {
            self.close_tail();
        }
        self.radix_nodes += self.radix_gain(id);
        self.tail = Node {
            id,
            bytes: Buffer::from(bytes),
        };
        let view = self.tail.view();
        let (live, last_id) = (view.live, view.last_id());
        let first = view.entries().find(|entry| !entry.is_deleted);
        let first_id = first.map(|entry| entry.id);
        if let Some(first_id) = first_id.filter(|_| self.length == 0) {
            self.first_id = first_id;
        }
        self.length += live as u64;
        self.last_id = last_id;
        true
    }

    /// Puts the last node into the tree.
    fn close_tail(&mut self) {
        let mut node = std::mem::take(&mut self.tail);
        node.bytes.shrink();
        self.nodes.insert(node);
    }

    /// Removes a whole node, by its own id.
    pub(super) fn remove_node(&mut self, id: StreamId) {
        if self.tail.id == id && self.tail().is_some() {
            self.tail = self.nodes.pop_last().unwrap_or_default();
        } else {
            self.nodes.remove(id);
        }
        self.radix_nodes -= self.radix_gain(id);
    }

    /// Deletes entries, whether they exist or not; returns how many did.
    pub fn delete(&mut self, ids: &[StreamId]) -> u64 {
        let before = self.length;
        let mut is_first_gone = false;
        for &id in ids {
            if self.delete_one(id) {
                is_first_gone |= id == self.first_id;
                self.max_deleted_id = self.max_deleted_id.max(id);
            }
        }
        if is_first_gone {
            self.find_first_id();
        }
        before - self.length
    }

    fn delete_one(&mut self, id: StreamId) -> bool {
        let Some(node) = self.node_at_or_before(id) else {
            return false;
        };
        let (node_id, view) = (node.id, node.view());
        let found = view.entries_from(id).next();
        let Some(entry) = found.filter(|entry| entry.id == id && !entry.is_deleted) else {
            return false;
        };
        self.delete_in(node_id, view.live, &[entry.at]);
        true
    }

    /// Deletes some entries of a node that has `live` ones; with the last one goes the node.
    fn delete_in(&mut self, node_id: StreamId, live: i64, entries: &[Position]) {
        if live == entries.len() as i64 {
            self.remove_node(node_id);
        } else if let Some(node) = self.node_mut(node_id) {
            node.delete(entries);
        }
        self.length -= entries.len() as u64;
    }

    /// Restores L2 when entries at the beginning are gone.
    pub(super) fn find_first_id(&mut self) {
        let first = self.range(StreamId::MIN, StreamId::MAX).next();
        self.first_id = first.map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Frees about `budget` nodes and counts them down; true if more is left.
    pub(super) fn free_some(&mut self, budget: &mut usize) -> bool {
        self.tail = Node::default();
        free_tree(&mut self.nodes, budget, drop)
    }

    /// Bytes that the nodes take, from the sizes of the first `samples` of them (0: of all).
    pub(super) fn memory_bytes(&self, samples: usize) -> usize {
        let count = self.nodes.len();
        let looked_at = if samples == 0 {
            count
        } else {
            samples.min(count)
        };
        let nodes = self.nodes.iter().take(looked_at);
        let bytes: usize = nodes.map(|node| node.bytes.capacity()).sum();
        let all = (bytes * count).checked_div(looked_at).unwrap_or(0);
        all + self.nodes.memory_bytes() + self.tail.bytes.capacity()
    }

    /// A log with the same entries and counts that shares nothing with this one.
    pub(super) fn copy(&self) -> Self {
        let copy = |node: &Node| Node {
            id: node.id,
            bytes: Buffer::from(node.view().bytes()),
        };
        Self {
            nodes: self.nodes.map(copy),
            tail: self.tail().map(copy).unwrap_or_default(),
            ..*self
        }
    }
}

/// Whether an entry whose fields and values have `size` bytes goes into another node.
fn is_full(node: &View<'_>, size: usize, limits: NodeLimits) -> bool {
    let most = BYTES_MAX as u64;
    let bytes = if limits.bytes == 0 {
        most
    } else {
        limits.bytes.min(most)
    };
    if (node.bytes_len() + size) as u64 >= bytes {
        return true;
    }
    limits.entries != 0 && (node.live + node.deleted) as u64 >= limits.entries
}

/// Makes room for `size` bytes. A node grows by doubling: it soon gets more entries.
fn make_room(bytes: &mut Buffer, size: usize) {
    let needed = bytes.len() + size;
    if needed > bytes.capacity() {
        let doubled = (bytes.len() * 2).min(ROOM_DOUBLED_MAX);
        let mut larger = Buffer::with_capacity(needed.max(doubled));
        larger
            .splice(0, 0, bytes.len())
            .copy_from_slice(bytes.bytes());
        *bytes = larger;
    }
}
