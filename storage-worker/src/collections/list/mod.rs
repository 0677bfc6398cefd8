//! Long lists: nodes of packed elements, and a directory that counts them.
//!
//! Why: a list is pushed and popped at its ends, and read, cut and changed anywhere. Packed nodes of
//! 4 to 64 KiB cost two bytes per short element and nothing to walk over; the directory finds any of
//! them in a few steps, so that the middle of a list of millions is as near as its ends.
//!
//! ```text
//!   List --> Directory --> Node: listpack of up to `list-max-listpack-size`
//!                          Node: one element that is larger than that, as it is ("plain")
//! ```
//!
//! Where a node ends is visible (OBJECT ENCODING after shrinking, DEBUG OBJECT), so nodes are cut and
//! joined by the rules of Redis:
//!   - a push goes into the node at the end if that has room, and else into a new one;
//!   - an insertion goes into the node of its neighbour, else into a neighbouring node with room if it
//!     is at the border, else the node is cut in two there;
//!   - after a cut, the nodes around it are joined where two fit into one;
//!   - a node that becomes empty is removed; removing never joins.
//!
//! With `list-compress-depth` n, all but n nodes at each end are kept compressed.
//!
//! Invariants
//!   Q1  no node is empty.
//!   Q2  the directory's sums are right (L1 to L3 there).
//!   Q3  the first and the last node are never compressed.
//!
//! Cost: push and pop O(1) but for the few steps down the directory; LINDEX, LSET, insertion and
//! removal O(log n) plus a walk in one node.
//! Not here: short lists, which are one listpack in their entry (`commands::list`).

mod change;
mod directory;
mod limits;
mod node;
#[cfg(test)]
mod tests;

use std::ptr::NonNull;

use allocator_api2::boxed::Box;
use shm::arena::Arena;

pub use directory::Directory;
pub use limits::Fill;
pub use node::Node;

use super::listpack::{self, Listpack, Wanted};
use super::{Buffer, Splice, StringRef, Structure};

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The left one, where index 0 is.
    Head,
    /// The right one.
    Tail,
}

/// See the module.
#[derive(Debug)]
pub struct List {
    directory: Directory,
    fill: Fill,
    /// Nodes at each end that are never compressed; 0: none is.
    depth: u32,
    /// Elements from this length on are plain whatever the fill says; 0: the fill says it. For tests.
    plain_from: u32,
}

/// Where an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    rank: usize,
    offset: usize,
}

impl List {
    /// An empty list. `depth` is `list-compress-depth`.
    #[must_use]
    pub fn new(fill: Fill, depth: u32) -> Self {
        Self {
            directory: Directory::default(),
            fill,
            depth,
            plain_from: 0,
        }
    }

    /// Moves the list into the arena.
    #[must_use]
    pub fn into_arena(self) -> NonNull<Self> {
        NonNull::from(Box::leak(Box::new_in(self, Arena)))
    }

    /// From what length on elements get a node of their own; 0: as the fill says. For tests.
    pub fn set_plain_from(&mut self, bytes: u32) {
        self.plain_from = bytes;
    }

    /// The bound of its nodes.
    #[must_use]
    pub fn fill(&self) -> Fill {
        self.fill
    }

    /// Nodes at each end that are never compressed; 0: none is.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.directory.elements()
    }

    /// Whether there are no elements.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &Directory {
        &self.directory
    }

    /// The only node, if there is one and it is a listpack.
    #[must_use]
    pub fn single_pack(&self) -> Option<&Node> {
        (self.directory.len() == 1)
            .then(|| self.directory.node(0))
            .filter(|node| !node.is_plain())
    }

    /// Calls `look` with the element number `index`.
    pub fn get<R>(&self, index: usize, look: impl FnOnce(StringRef<'_>) -> R) -> Option<R> {
        let (rank, offset) = self.directory.find(index)?;
        let mut look = Some(look);
        let mut result = None;
        self.directory.node(rank).visit(offset, false, |element| {
            result = look.take().map(|look| look(element));
            false
        });
        result
    }

    /// Calls `each` with every element from number `from` on, or backwards from there, until it says
    /// false.
    #[inline]
    pub fn visit(&self, from: usize, backward: bool, mut each: impl FnMut(StringRef<'_>) -> bool) {
        let Some((rank, offset)) = self.directory.find(from) else {
            return;
        };
        let mut start = Some(offset);
        self.directory.visit(rank, backward, |node| {
            let whole = if backward { node.len() - 1 } else { 0 };
            node.visit(start.take().unwrap_or(whole), backward, &mut each)
        });
    }

    /// Appends a listpack of `count` elements as a node, as a short list that has become long does.
    pub fn push_pack(&mut self, pack: &[u8], count: usize) {
        if count == 0 {
            return;
        }
        let node = Node::packed(Buffer::from(pack), count);
        let rank = self.directory.len();
        self.insert_node(rank, node);
    }

    /// Appends one element as a node of its own, as a snapshot says that it was.
    pub fn push_plain(&mut self, element: &[u8]) {
        let rank = self.directory.len();
        self.insert_node(rank, Node::of(StringRef::Bytes(element), true));
    }

    /// Adds an element at an end.
    pub fn push(&mut self, end: End, element: StringRef<'_>) {
        let len = text_len(element);
        let (fill, is_large) = (self.fill, self.is_large(len));
        let is_pushed = self.directory.edit_end(end == End::Tail, |node| {
            let has_room = has_room(fill, is_large, node, len);
            if has_room {
                node.push(end, element);
            } else {
                // What a full node has not used is given back.
                node.shrink();
            }
            has_room
        });
        if is_pushed == Some(true) {
            return;
        }
        let rank = match end {
            End::Head => 0,
            End::Tail => self.directory.len(),
        };
        self.insert_node(rank, Node::of(element, is_large));
    }

    /// Removes the element at an end; nothing if there is none.
    pub fn pop(&mut self, end: End) {
        let is_last = self.directory.edit_end(end == End::Tail, |node| {
            if node.len() == 1 {
                return true;
            }
            node.add_count(0, 1);
            let buffer = node.buffer_mut();
            let pack = Listpack::new(buffer.bytes());
            let position = match end {
                End::Head => pack.first(),
                End::Tail => pack.last(),
            };
            listpack::delete(buffer, position.expect("Q1: no node is empty"), 1);
            false
        });
        if is_last == Some(true) {
            let rank = match end {
                End::Head => 0,
                End::Tail => self.directory.len() - 1,
            };
            self.remove_node(rank);
        }
    }

    /// Number of the first element that is `what`.
    #[must_use]
    pub fn position_of(&self, what: &[u8]) -> Option<usize> {
        let wanted = Wanted::new(what);
        let mut index = 0;
        let mut found = None;
        self.visit(0, false, |element| {
            if wanted.is(element) {
                found = Some(index);
            }
            index += 1;
            found.is_none()
        });
        found
    }

    /// The listpack of the only node, and an empty list.
    pub fn take_pack(&mut self) -> Option<Buffer> {
        self.single_pack()?;
        Some(self.directory.remove(0).into_buffer())
    }

    #[inline]
    fn is_large(&self, len: usize) -> bool {
        match self.plain_from {
            0 => self.fill.is_large(len),
            from => len >= from as usize,
        }
    }

    #[inline]
    fn has_room(&self, node: &Node, len: usize) -> bool {
        has_room(self.fill, self.is_large(len), node, len)
    }
}

/// Whether an element of `len` bytes goes into a node.
#[inline]
fn has_room(fill: Fill, is_large: bool, node: &Node, len: usize) -> bool {
    !node.is_plain() && !is_large && fill.has_room(node.bytes_len(), node.len(), len)
}

/// Bytes that an element prints as.
fn text_len(element: StringRef<'_>) -> usize {
    match element {
        StringRef::Int(number) => itoa::Buffer::new().format(number).len(),
        StringRef::Bytes(bytes) => bytes.len(),
    }
}

impl Structure for List {
    fn free(this: NonNull<Self>) {
        while Self::free_some(this, usize::MAX) {}
    }

    fn free_some(mut this: NonNull<Self>, budget: usize) -> bool {
        // SAFETY: the caller gives the list up, and nobody else uses it.
        let list = unsafe { this.as_mut() };
        // Freeing a node costs as much as freeing one element of other structures.
        for _ in 0..budget {
            match list.directory.len() {
                0 => break,
                nodes => drop(list.directory.remove(nodes - 1)),
            }
        }
        if !list.directory.is_empty() {
            return true;
        }
        // SAFETY: it came from `into_arena`, and nothing names it any more.
        drop(unsafe { Box::from_non_null_in(this, Arena) });
        false
    }

    fn copy(&self) -> NonNull<Self> {
        let mut copy = Self::new(self.fill, self.depth);
        copy.plain_from = self.plain_from;
        self.directory.visit(0, false, |node| {
            let rank = copy.directory.len();
            copy.directory.insert(rank, node.copy());
            true
        });
        copy.into_arena()
    }

    /// Nodes, since these are what freeing costs.
    fn len(&self) -> usize {
        self.directory.len()
    }

    fn memory_bytes(&self, samples: usize) -> usize {
        let (mut seen, mut bytes) = (0, 0);
        let nodes = self.directory.len();
        self.directory.visit(0, false, |node| {
            bytes += node.memory_bytes();
            seen += 1;
            samples == 0 || seen < samples
        });
        let average_of_all = (bytes as u128 * nodes as u128)
            .checked_div(seen as u128)
            .unwrap_or(0);
        size_of::<Self>() + self.directory.memory_bytes() + average_of_all as usize
    }

    fn check(&self) -> Result<(), String> {
        self.directory.check()?;
        if self.is_empty() {
            return Err("a list is empty".to_owned());
        }
        for end in [End::Head, End::Tail] {
            let rank = match end {
                End::Head => 0,
                End::Tail => self.directory.len() - 1,
            };
            if self.directory.node(rank).is_compressed() {
                return Err(format!("the node at the {end:?} of a list is compressed"));
            }
        }
        Ok(())
    }
}
