//! The nodes of a list in order, found by their number and by the number of an element.
//!
//! A tree of short vectors: leaves hold nodes, branches hold how many nodes and elements are below.
//!
//! ```text
//!                     [ 700 el., 64 nodes | 812 el., 64 nodes | 9 el., 2 nodes ]
//!                            |                    |                  |
//!                    [node node ... node]    [node ...]         [node node]
//! ```
//!
//! Invariants
//!   L1  a branch's numbers are the sums of what is below it.
//!   L2  all leaves are equally deep; no vector but that of an empty root is empty.
//!   L3  a vector has at most `WIDTH` items; two neighbours that shrink far below it become one.
//!
//! Cost: every step is O(log n) with a base between 16 and 64; at both ends the way down is one step
//! per level. A list that is only pushed to has full vectors.

use allocator_api2::vec::Vec;
use shm::arena::Arena;

use super::node::Node;

/// Most items in one vector.
const WIDTH: usize = 64;
/// A vector with fewer items looks for a neighbour to join ...
const NARROW: usize = WIDTH / 4;
/// ... if both together have at most so many.
const JOINED_MAX: usize = WIDTH * 3 / 4;

#[derive(Debug)]
enum Kids {
    Nodes(Vec<Node, Arena>),
    Branches(Vec<Branch, Arena>),
}

#[derive(Debug)]
struct Branch {
    elements: usize,
    nodes: usize,
    kids: Kids,
}

/// See the module.
#[derive(Debug)]
pub struct Directory {
    root: Branch,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            root: Branch::of(Kids::Nodes(Vec::new_in(Arena))),
        }
    }
}

impl Directory {
    /// Number of nodes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.root.nodes
    }

    /// Whether there are no nodes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of elements in all nodes.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> usize {
        self.root.elements
    }

    /// The node number `rank`.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn node(&self, rank: usize) -> &Node {
        let mut branch = &self.root;
        let mut rank = rank;
        loop {
            match &branch.kids {
                Kids::Nodes(nodes) => return &nodes[rank],
                Kids::Branches(_) => {
                    let (kid, before) = branch.kid_with_node(rank);
                    rank -= before;
                    branch = branch.branch(kid);
                }
            }
        }
    }

    /// Number of the node with the element number `index`, and the number of the element in it.
    #[must_use]
    pub fn find(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.elements() {
            return None;
        }
        let (mut branch, mut index, mut rank) = (&self.root, index, 0);
        loop {
            match &branch.kids {
                Kids::Nodes(nodes) => {
                    let (kid, before) = position_of(nodes, index, branch.elements, Node::len);
                    return Some((rank + kid, index - before));
                }
                Kids::Branches(branches) => {
                    let (kid, before) =
                        position_of(branches, index, branch.elements, |branch| branch.elements);
                    rank += branches[..kid].iter().map(|kid| kid.nodes).sum::<usize>();
                    index -= before;
                    branch = &branches[kid];
                }
            }
        }
    }

    /// Lets `change` edit the node number `rank`; whatever happens to the number of its elements.
    #[inline]
    pub fn edit<R>(&mut self, rank: usize, change: impl FnOnce(&mut Node) -> R) -> R {
        self.root.edit(rank, change)
    }

    /// As [`Directory::edit`], for the last node or the first one; `None` if there are no nodes.
    #[inline]
    pub fn edit_end<R>(&mut self, last: bool, change: impl FnOnce(&mut Node) -> R) -> Option<R> {
        let node = self.root.end_mut(last)?;
        let before = node.len();
        let result = change(node);
        let after = node.len();
        if before != after {
            self.root.recount_end(last, before, after);
        }
        Some(result)
    }

    /// Adds a node that will have the number `rank`.
    pub fn insert(&mut self, rank: usize, node: Node) {
        debug_assert!(rank <= self.len());
        if let Some(right) = self.root.insert(rank, node) {
            let mut branches = Vec::new_in(Arena);
            let left =
                std::mem::replace(&mut self.root, Branch::of(Kids::Nodes(Vec::new_in(Arena))));
            branches.push(left);
            branches.push(right);
            self.root = Branch::of(Kids::Branches(branches));
        }
    }

    /// Takes the node number `rank` out.
    pub fn remove(&mut self, rank: usize) -> Node {
        let node = self.root.remove(rank);
        while let Kids::Branches(branches) = &mut self.root.kids {
            match branches.len() {
                0 => self.root.kids = Kids::Nodes(Vec::new_in(Arena)),
                1 => self.root = branches.remove(0),
                _ => break,
            }
        }
        node
    }

    /// Calls `each` with every node from number `from` on, or backwards from there, until it says
    /// false.
    pub fn visit(&self, from: usize, backward: bool, mut each: impl FnMut(&Node) -> bool) {
        if from < self.len() {
            self.root.visit(from, backward, &mut each);
        }
    }

    /// Bytes that the tree itself takes in the arena.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.root.memory_bytes()
    }

    /// Compares everything that must agree.
    ///
    /// # Errors
    /// A sentence that names the first contradiction.
    pub fn check(&self) -> Result<(), String> {
        self.root.check(true).map(|_| ())
    }
}

/// Number of the item that the thing number `index` of `total` falls into, when every item has
/// `len` of them, and how many are in front of that item. Looked for from the nearer end.
fn position_of<T>(
    items: &[T],
    index: usize,
    total: usize,
    len: impl Fn(&T) -> usize,
) -> (usize, usize) {
    if index <= total / 2 {
        let mut before = 0;
        for (position, item) in items.iter().enumerate() {
            let after = before + len(item);
            if index < after {
                return (position, before);
            }
            before = after;
        }
    } else {
        let mut after = total;
        for (position, item) in items.iter().enumerate().rev() {
            let before = after - len(item);
            if index >= before {
                return (position, before);
            }
            after = before;
        }
    }
    unreachable!("L1: the number is below the sum");
}

/// Cuts a vector in two at `at`, so that what is whole stays where it is.
fn split<T>(items: &mut Vec<T, Arena>, at: usize) -> Vec<T, Arena> {
    if at == items.len() {
        return Vec::new_in(Arena);
    }
    let mut right = Vec::with_capacity_in(WIDTH, Arena);
    if at == 0 {
        std::mem::swap(items, &mut right);
        items.shrink_to_fit();
    } else {
        right.extend(items.drain(at..));
    }
    right
}

impl Branch {
    fn of(kids: Kids) -> Self {
        let mut branch = Self {
            elements: 0,
            nodes: 0,
            kids,
        };
        branch.sum_up();
        branch
    }

    /// Makes the sums right (L1).
    fn sum_up(&mut self) {
        (self.elements, self.nodes) = match &self.kids {
            Kids::Nodes(nodes) => (nodes.iter().map(Node::len).sum(), nodes.len()),
            Kids::Branches(branches) => branches.iter().fold((0, 0), |(elements, nodes), kid| {
                (elements + kid.elements, nodes + kid.nodes)
            }),
        };
    }

    fn branch(&self, kid: usize) -> &Branch {
        match &self.kids {
            Kids::Branches(branches) => &branches[kid],
            Kids::Nodes(_) => unreachable!("only branches are looked into"),
        }
    }

    /// Number of the kid that node `rank` is below, and how many nodes are in front of that kid.
    #[inline]
    fn kid_with_node(&self, rank: usize) -> (usize, usize) {
        match &self.kids {
            Kids::Nodes(_) => (rank, rank),
            Kids::Branches(branches) => position_of(branches, rank, self.nodes, |kid| kid.nodes),
        }
    }

    fn edit<R>(&mut self, rank: usize, change: impl FnOnce(&mut Node) -> R) -> R {
        let (kid, before) = self.kid_with_node(rank);
        match &mut self.kids {
            Kids::Nodes(nodes) => {
                let node = &mut nodes[rank];
                let count = node.len();
                let result = change(node);
                self.elements = self.elements - count + node.len();
                result
            }
            Kids::Branches(branches) => {
                let branch = &mut branches[kid];
                let count = branch.elements;
                let result = branch.edit(rank - before, change);
                self.elements = self.elements - count + branch.elements;
                result
            }
        }
    }

    /// The node at an end.
    #[inline]
    fn end_mut(&mut self, last: bool) -> Option<&mut Node> {
        let mut branch = self;
        loop {
            match &mut branch.kids {
                Kids::Nodes(nodes) => return end_of(nodes, last),
                Kids::Branches(branches) => branch = end_of(branches, last)?,
            }
        }
    }

    /// Makes the sums right (L1) when the node at an end has got `after` elements instead of `before`.
    #[inline]
    fn recount_end(&mut self, last: bool, before: usize, after: usize) {
        let mut branch = Some(self);
        while let Some(at) = branch {
            at.elements = at.elements - before + after;
            branch = match &mut at.kids {
                Kids::Nodes(_) => None,
                Kids::Branches(branches) => end_of(branches, last),
            };
        }
    }

    /// Adds a node; if this needs another vector, that is returned, and belongs behind this one.
    fn insert(&mut self, rank: usize, node: Node) -> Option<Branch> {
        // Behind the last node is a place, too.
        let (kid, before) = if rank == self.nodes {
            let kids = self.width();
            match &self.kids {
                Kids::Nodes(_) => (kids, kids),
                Kids::Branches(branches) => (kids - 1, self.nodes - branches[kids - 1].nodes),
            }
        } else {
            self.kid_with_node(rank)
        };
        let overflow = match &mut self.kids {
            Kids::Nodes(nodes) => insert_item(nodes, kid, node).map(Kids::Nodes),
            Kids::Branches(branches) => {
                let (elements, count) = (node.len(), 1);
                match branches[kid].insert(rank - before, node) {
                    None => {
                        self.elements += elements;
                        self.nodes += count;
                        return None;
                    }
                    Some(right) => insert_item(branches, kid + 1, right).map(Kids::Branches),
                }
            }
        };
        self.sum_up();
        overflow.map(Branch::of)
    }

    fn remove(&mut self, rank: usize) -> Node {
        let (kid, before) = self.kid_with_node(rank);
        let node = match &mut self.kids {
            Kids::Nodes(nodes) => nodes.remove(kid),
            Kids::Branches(branches) => {
                let node = branches[kid].remove(rank - before);
                join(branches, kid);
                node
            }
        };
        self.elements -= node.len();
        self.nodes -= 1;
        node
    }

    fn width(&self) -> usize {
        match &self.kids {
            Kids::Nodes(nodes) => nodes.len(),
            Kids::Branches(branches) => branches.len(),
        }
    }

    /// Moves everything of the right neighbour into this one.
    fn absorb(&mut self, right: Branch) {
        self.elements += right.elements;
        self.nodes += right.nodes;
        match (&mut self.kids, right.kids) {
            (Kids::Nodes(to), Kids::Nodes(from)) => to.extend(from),
            (Kids::Branches(to), Kids::Branches(from)) => to.extend(from),
            _ => unreachable!("L2: neighbours are equally high"),
        }
    }

    fn visit(&self, from: usize, backward: bool, each: &mut impl FnMut(&Node) -> bool) -> bool {
        let (first, before) = self.kid_with_node(from);
        match &self.kids {
            Kids::Nodes(nodes) if backward => nodes[..=first].iter().rev().all(each),
            Kids::Nodes(nodes) => nodes[first..].iter().all(each),
            Kids::Branches(branches) => {
                let mut from = from - before;
                let mut kid = first;
                loop {
                    if !branches[kid].visit(from, backward, each) {
                        return false;
                    }
                    let next = if backward {
                        kid.checked_sub(1)
                    } else {
                        Some(kid + 1).filter(|&next| next < branches.len())
                    };
                    match next {
                        Some(next) => kid = next,
                        None => return true,
                    }
                    from = if backward { branches[kid].nodes - 1 } else { 0 };
                }
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        match &self.kids {
            Kids::Nodes(nodes) => nodes.capacity() * size_of::<Node>(),
            Kids::Branches(branches) => {
                let below: usize = branches.iter().map(Branch::memory_bytes).sum();
                below + branches.capacity() * size_of::<Branch>()
            }
        }
    }

    /// The height of a branch whose invariants hold.
    fn check(&self, is_root: bool) -> Result<usize, String> {
        if self.width() > WIDTH || self.width() == 0 && !is_root {
            return Err(format!("a vector of a list has {} items", self.width()));
        }
        let height = match &self.kids {
            Kids::Nodes(nodes) => {
                nodes.iter().try_for_each(Node::check)?;
                0
            }
            Kids::Branches(branches) => {
                let mut heights = branches.iter().map(|kid| kid.check(false));
                let first = heights.next().ok_or("a branch has no kids")??;
                for height in heights {
                    if height? != first {
                        return Err("leaves of a list are not equally deep".to_owned());
                    }
                }
                first + 1
            }
        };
        let (nodes, elements) = match &self.kids {
            Kids::Nodes(nodes) => (nodes.len(), nodes.iter().map(Node::len).sum()),
            Kids::Branches(branches) => (
                branches.iter().map(|kid| kid.nodes).sum(),
                branches.iter().map(|kid| kid.elements).sum::<usize>(),
            ),
        };
        if (nodes, elements) != (self.nodes, self.elements) {
            return Err(format!(
                "a branch says {} nodes with {} elements and has {nodes} with {elements}",
                self.nodes, self.elements
            ));
        }
        Ok(height)
    }
}

#[inline]
fn end_of<T>(items: &mut [T], last: bool) -> Option<&mut T> {
    if last {
        items.last_mut()
    } else {
        items.first_mut()
    }
}

/// Inserts an item. A full vector is split: what is behind the cut is returned. At the ends nothing
/// but the new item goes to the side that grows, so that vectors that are only pushed to stay full.
fn insert_item<T>(items: &mut Vec<T, Arena>, position: usize, item: T) -> Option<Vec<T, Arena>> {
    if items.len() < WIDTH {
        items.insert(position, item);
        return None;
    }
    let at = match position {
        0 | 1 => position,
        WIDTH => WIDTH,
        _ => WIDTH / 2,
    };
    let mut right = split(items, at);
    if position < at || position == 0 {
        items.insert(position, item);
    } else {
        right.insert(position - at, item);
    }
    Some(right)
}

/// Removes the branch `kid` if it is empty, or joins it with a neighbour if both are narrow.
fn join(branches: &mut Vec<Branch, Arena>, kid: usize) {
    let width = branches[kid].width();
    if width == 0 {
        branches.remove(kid);
        return;
    }
    if width >= NARROW {
        return;
    }
    let fits = |neighbour: Option<&Branch>| {
        neighbour.is_some_and(|neighbour| neighbour.width() + width <= JOINED_MAX)
    };
    let left = if fits(branches.get(kid + 1)) {
        kid
    } else if kid > 0 && fits(branches.get(kid - 1)) {
        kid - 1
    } else {
        return;
    };
    let right = branches.remove(left + 1);
    branches[left].absorb(right);
}
