//! Changing a list away from its ends: where nodes are cut, joined, removed and compressed.

use crate::collections::listpack::{self, EMPTY, Listpack, Position, Wanted};
use crate::collections::{Buffer, Splice, StringRef};

use super::{List, Node, Place};

impl List {
    /// Adds a node that will have the number `rank`.
    pub(super) fn insert_node(&mut self, rank: usize, node: Node) {
        self.directory.insert(rank, node);
        self.settle(rank);
    }

    pub(super) fn remove_node(&mut self, rank: usize) {
        drop(self.directory.remove(rank));
        self.settle_ends();
    }

    /// Compresses and decompresses around a place where nodes have come, gone or changed.
    pub(super) fn settle(&mut self, rank: usize) {
        if self.depth == 0 {
            return;
        }
        self.settle_ends();
        let nodes = self.directory.len();
        let depth = self.depth as usize;
        // A change reaches two nodes away at most.
        for rank in rank.saturating_sub(3)..(rank + 4).min(nodes) {
            if rank >= depth && rank + depth < nodes {
                self.directory.edit(rank, Node::compress);
            }
        }
    }

    /// Keeps the nodes at both ends as they are, and compresses the first ones behind.
    fn settle_ends(&mut self) {
        if self.depth == 0 {
            return;
        }
        let nodes = self.directory.len();
        let depth = self.depth as usize;
        for distance in 0..depth.min(nodes) {
            self.directory.edit(distance, Node::decompress);
            self.directory.edit(nodes - 1 - distance, Node::decompress);
        }
        if nodes > depth * 2 {
            self.directory.edit(depth, Node::compress);
            self.directory.edit(nodes - 1 - depth, Node::compress);
        }
    }

    fn place_of(&self, index: usize) -> Option<Place> {
        let (rank, offset) = self.directory.find(index)?;
        Some(Place { rank, offset })
    }

    /// Lets `change` edit the listpack of a node from the element number `offset` on, and counts
    /// `more` and `fewer` elements.
    fn edit_pack(
        &mut self,
        place: Place,
        (more, fewer): (usize, usize),
        change: impl FnOnce(&mut Buffer, Position),
    ) {
        self.directory.edit(place.rank, |node| {
            let buffer = node.buffer_mut();
            let position = Listpack::new(buffer.bytes())
                .seek(place.offset as i64)
                .expect("the directory has counted the elements");
            change(buffer, position);
            node.add_count(more, fewer);
        });
    }

    /// Overwrites the element number `index`; says whether there is one.
    pub fn set(&mut self, index: usize, element: &[u8]) -> bool {
        let Some(place) = self.place_of(index) else {
            return false;
        };
        let is_large = self.is_large(element.len());
        let node = self.directory.node(place.rank);
        match (node.is_plain(), is_large) {
            (false, false) => {
                self.edit_pack(place, (0, 0), |pack, position| {
                    listpack::replace(pack, position, element);
                });
                self.settle(place.rank);
            }
            (true, true) => {
                self.directory
                    .edit(place.rank, |node| *node = large(element));
                self.settle(place.rank);
            }
            (true, false) => {
                self.insert_at(place, element, true);
                self.remove_node(place.rank);
            }
            (false, true) => self.replace_by_large(place, element),
        }
        true
    }

    /// Puts a large element into the place of a packed one, between the two halves of its node.
    fn replace_by_large(&mut self, place: Place, element: &[u8]) {
        let Place { rank, offset } = place;
        let count = self.directory.node(rank).len();
        let right = (offset + 1 < count).then(|| self.cut(rank, offset + 1));
        self.directory.insert(rank + 1, large(element));
        if let Some(right) = right {
            self.directory.insert(rank + 2, right);
        }
        if offset == 0 {
            drop(self.directory.remove(rank));
            self.settle(rank);
            return;
        }
        self.edit_pack(place, (0, 1), |pack, position| {
            listpack::delete(pack, position, 1);
        });
        let center = self.join_around(rank + 1);
        self.settle(center);
    }

    /// Adds an element in front of the element number `index`, or behind it; says whether there is
    /// one.
    pub fn insert(&mut self, index: usize, element: &[u8], behind: bool) -> bool {
        match self.place_of(index) {
            Some(place) => {
                self.insert_at(place, element, behind);
                true
            }
            None => false,
        }
    }

    fn insert_at(&mut self, place: Place, element: &[u8], behind: bool) {
        let Place { rank, offset } = place;
        let node = self.directory.node(rank);
        let is_border = if behind {
            offset + 1 == node.len()
        } else {
            offset == 0
        };
        let is_plain = self.is_large(element.len());
        if self.has_room(node, element.len()) {
            self.edit_pack(place, (1, 0), |pack, position| {
                if behind {
                    listpack::insert_after(pack, position, element);
                } else {
                    listpack::insert_before(pack, position, element);
                }
            });
            self.settle(rank);
        } else if is_border {
            self.insert_at_border(rank, element, behind, is_plain);
        } else if is_plain {
            // Both halves keep what they have, whichever side the new element is on.
            let right = self.cut(rank, offset + usize::from(behind));
            self.directory.insert(rank + 1, large(element));
            self.directory.insert(rank + 2, right);
            self.settle(rank + 1);
        } else {
            let right = self.cut(rank, offset + usize::from(behind));
            self.directory.insert(rank + 1, right);
            // The half with the neighbour stays as it is; the other one takes the element.
            let (taker, center) = if behind {
                (rank + 1, rank)
            } else {
                (rank, rank + 1)
            };
            self.push_into(taker, element, behind);
            let center = self.join_around(center);
            self.settle(center);
        }
    }

    /// Adds an element between a full node and the one behind it, or in front of it.
    fn insert_at_border(&mut self, rank: usize, element: &[u8], behind: bool, is_plain: bool) {
        let neighbour = if behind {
            Some(rank + 1).filter(|&next| next < self.directory.len())
        } else {
            rank.checked_sub(1)
        };
        match neighbour {
            Some(neighbour) if self.has_room(self.directory.node(neighbour), element.len()) => {
                self.push_into(neighbour, element, behind);
                self.settle(neighbour);
            }
            _ => {
                let node = Node::of(StringRef::Bytes(element), is_plain);
                self.insert_node(rank + usize::from(behind), node);
            }
        }
    }

    /// Adds an element to a node, at its beginning or at its end.
    fn push_into(&mut self, rank: usize, element: &[u8], front: bool) {
        self.directory.edit(rank, |node| {
            node.add_count(1, 0);
            if front {
                listpack::push_front(node.buffer_mut(), element);
            } else {
                listpack::push_back(node.buffer_mut(), element);
            }
        });
    }

    /// Cuts the elements from number `offset` on off a node, and returns them as one.
    fn cut(&mut self, rank: usize, offset: usize) -> Node {
        let mut right = Buffer::from(&EMPTY[..]);
        let count = self.directory.node(rank).len() - offset;
        let place = Place { rank, offset };
        self.edit_pack(place, (0, count), |pack, position| {
            listpack::split_off(pack, position, count, &mut right);
            pack.shrink();
        });
        Node::packed(right, count)
    }

    /// Joins nodes around the number `center` where two fit into one; returns its new number.
    fn join_around(&mut self, center: usize) -> usize {
        let mut center = center;
        if center >= 2 && self.join(center - 2) {
            center -= 1;
        }
        self.join(center + 1);
        if center >= 1 && self.join(center - 1) {
            center -= 1;
        }
        self.join(center);
        center
    }

    /// Joins a node with the next one if they fit into one.
    fn join(&mut self, left: usize) -> bool {
        if left + 1 >= self.directory.len() {
            return false;
        }
        let (a, b) = (self.directory.node(left), self.directory.node(left + 1));
        let bytes = a.bytes_len() + b.bytes_len() - EMPTY.len();
        if a.is_plain() || b.is_plain() || self.fill.is_exceeded(bytes, a.len() + b.len()) {
            return false;
        }
        let right = self.directory.remove(left + 1);
        self.directory.edit(left, |node| {
            node.add_count(right.len(), 0);
            let right = right.bytes();
            listpack::append(node.buffer_mut(), Listpack::new(&right));
        });
        true
    }

    /// Removes up to `count` elements from number `index` on.
    pub fn delete_range(&mut self, index: usize, count: usize) {
        let Some(Place {
            mut rank,
            mut offset,
        }) = self.place_of(index)
        else {
            return;
        };
        let mut rest = count;
        while rest > 0 && rank < self.directory.len() {
            let len = self.directory.node(rank).len();
            let removed = rest.min(len - offset);
            if removed == len {
                drop(self.directory.remove(rank));
            } else {
                let place = Place { rank, offset };
                self.edit_pack(place, (0, removed), |pack, position| {
                    listpack::delete(pack, position, removed);
                    pack.shrink();
                });
                rank += 1;
            }
            rest -= removed;
            offset = 0;
        }
        if !self.directory.is_empty() {
            self.settle(rank.min(self.directory.len() - 1));
        }
    }

    /// Removes elements that are `what`: all, or the first `limit` ones, or the last ones. Returns how
    /// many.
    pub fn remove_equal(&mut self, what: &[u8], limit: Option<usize>, last: bool) -> usize {
        let wanted = Wanted::new(what);
        let mut rest = limit.unwrap_or(usize::MAX);
        let mut removed = 0;
        let mut rank = if last { self.directory.len() } else { 0 };
        while rest > 0 {
            if last {
                match rank.checked_sub(1) {
                    Some(previous) => rank = previous,
                    None => break,
                }
            } else if rank == self.directory.len() {
                break;
            }
            let fewer = self.remove_equal_in(rank, &wanted, rest, last);
            removed += fewer;
            rest -= fewer;
            if self.directory.node(rank).is_empty() {
                drop(self.directory.remove(rank));
            } else if !last {
                rank += 1;
            }
        }
        if removed > 0 {
            self.settle_ends();
        }
        removed
    }

    /// The same within one node, which may become empty.
    fn remove_equal_in(
        &mut self,
        rank: usize,
        wanted: &Wanted<'_>,
        limit: usize,
        last: bool,
    ) -> usize {
        let node = self.directory.node(rank);
        let count = {
            let bytes = node.bytes();
            if node.is_plain() {
                usize::from(wanted.is(StringRef::Bytes(&bytes)))
            } else {
                Listpack::new(&bytes).count_equal(wanted)
            }
        };
        let removed = count.min(limit);
        if removed == 0 {
            return 0;
        }
        let kept = if last { count - removed } else { 0 };
        self.directory.edit(rank, |node| {
            let was_compressed = node.is_compressed();
            if !node.is_plain() {
                listpack::remove_equal(node.buffer_mut(), wanted, kept, removed);
                node.shrink();
                if was_compressed {
                    node.compress();
                }
            }
            node.add_count(0, removed);
        });
        removed
    }
}

/// A node for an element that is too large for any other.
fn large(element: &[u8]) -> Node {
    Node::of(StringRef::Bytes(element), true)
}
