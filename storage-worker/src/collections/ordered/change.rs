//! Adding and removing records, and freeing whole trees.

use super::array::{Array, level_at};
use super::{Branch, LEVELS_MAX, Record, Tree};

/// The inner nodes from the root to a leaf, and the number of the child that was taken in each.
struct Path {
    steps: [(u64, usize); LEVELS_MAX],
    len: usize,
}

impl Path {
    fn new() -> Self {
        Self {
            steps: [(0, 0); LEVELS_MAX],
            len: 0,
        }
    }

    fn push(&mut self, node: u64, child: usize) {
        self.steps[self.len] = (node, child);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<(u64, usize)> {
        self.len = self.len.checked_sub(1)?;
        Some(self.steps[self.len])
    }
}

impl<R: Record> Tree<R> {
    /// Walks to the leaf that has, or would have, a key.
    fn descend(&self, key: R::Key) -> (Path, Array<R>) {
        self.walk(|branches| {
            branches
                .partition_point(|branch| branch.key <= key)
                .saturating_sub(1)
        })
    }

    fn walk(&self, choose: impl Fn(&[Branch<R::Key>]) -> usize) -> (Path, Array<R>) {
        let mut path = Path::new();
        let mut address = self.root;
        while level_at(address) > 0 {
            let branches = Array::<Branch<R::Key>>::at(address).items();
            let child = choose(branches);
            path.push(address, child);
            address = branches[child].child;
        }
        (path, Array::at(address))
    }

    /// Adds a record, unless there is one with its key; says whether it did. A record that was not
    /// added is forgotten.
    pub fn insert(&mut self, record: R) -> bool {
        let key = record.key();
        if self.root == 0 {
            let leaf = Array::create(0, 1);
            leaf.insert(0, record);
            self.root = leaf.address();
            self.len = 1;
            return true;
        }
        let (mut path, leaf) = self.descend(key);
        let at = leaf.items().partition_point(|other| other.key() < key);
        if leaf.items().get(at).is_some_and(|other| other.key() == key) {
            return false;
        }
        self.len += 1;
        if at == 0 {
            // Only the first of all leaves takes a record in front of its first one (O2).
            for &(node, child) in &path.steps[..path.len] {
                debug_assert_eq!(child, 0);
                Array::<Branch<R::Key>>::at(node).items_mut()[child].key = key;
            }
        }
        let is_at_end = path.steps[..path.len]
            .iter()
            .all(|&(node, child)| child + 1 == Array::<Branch<R::Key>>::at(node).len());
        let (leaf, right) = leaf.insert_or_split(at, record, is_at_end);
        let mut below = leaf.address();
        let mut right = right.map(Array::address);
        while let Some((node, child)) = path.pop() {
            let node = Array::<Branch<R::Key>>::at(node);
            node.items_mut()[child].child = below;
            let Some(child_address) = right else {
                return true;
            };
            let branch = Branch {
                key: Self::first_key(child_address),
                child: child_address,
            };
            let (node, split) = node.insert_or_split(child + 1, branch, is_at_end);
            below = node.address();
            right = split.map(Array::address);
        }
        self.root = match right {
            None => below,
            Some(right) => Self::new_root(below, right),
        };
        true
    }

    fn new_root(left: u64, right: u64) -> u64 {
        let root = Array::<Branch<R::Key>>::create(level_at(left) + 1, 2);
        for (at, child) in [left, right].into_iter().enumerate() {
            let key = Self::first_key(child);
            root.insert(at, Branch { key, child });
        }
        root.address()
    }

    /// Takes out the record with this key.
    pub fn remove(&mut self, key: R::Key) -> Option<R> {
        if self.root == 0 {
            return None;
        }
        let (mut path, leaf) = self.descend(key);
        let at = leaf.items().partition_point(|other| other.key() < key);
        if leaf.items().get(at)?.key() != key {
            return None;
        }
        let record = leaf.remove(at);
        self.len -= 1;
        while let Some((node, child)) = path.pop() {
            Self::settle(Array::at(node), child);
        }
        self.settle_root();
        Some(record)
    }

    /// Restores O2 and O3 for a child of `node` that has lost something, and merges it with a
    /// neighbour if both are small.
    fn settle(node: Array<Branch<R::Key>>, child: usize) {
        let address = node.items()[child].child;
        let (len, few) = Self::sizes(address);
        if len == 0 {
            Self::free_node(address);
            node.remove(child);
            return;
        }
        node.items_mut()[child].key = Self::first_key(address);
        if len >= few {
            return;
        }
        if child + 1 < node.len() && Self::merge(node, child) {
            return;
        }
        if child > 0 {
            Self::merge(node, child - 1);
        }
    }

    /// Number of items of a node, and below which number it counts as small.
    fn sizes(address: u64) -> (usize, usize) {
        if level_at(address) == 0 {
            (Array::<R>::at(address).len(), Array::<R>::FEW)
        } else {
            let node = Array::<Branch<R::Key>>::at(address);
            (node.len(), Array::<Branch<R::Key>>::FEW)
        }
    }

    fn free_node(address: u64) {
        if level_at(address) == 0 {
            Array::<R>::at(address).free();
        } else {
            Array::<Branch<R::Key>>::at(address).free();
        }
    }

    /// Merges a child of `node` with the one behind it, if they are small enough.
    fn merge(node: Array<Branch<R::Key>>, child: usize) -> bool {
        let (left, right) = (node.items()[child].child, node.items()[child + 1].child);
        let merged = if level_at(left) == 0 {
            merge_arrays(Array::<R>::at(left), Array::at(right))
        } else {
            merge_arrays(Array::<Branch<R::Key>>::at(left), Array::at(right))
        };
        let Some(merged) = merged else { return false };
        node.items_mut()[child].child = merged;
        node.remove(child + 1);
        true
    }

    /// Drops levels with a single child, and the root of an empty tree; a root that is mostly empty
    /// moves to a smaller object.
    fn settle_root(&mut self) {
        if self.len == 0 {
            // Inner nodes have been freed with their last child, up to this one.
            Self::free_node(self.root);
            self.root = 0;
            return;
        }
        while level_at(self.root) > 0 {
            let node = Array::<Branch<R::Key>>::at(self.root);
            if node.len() > 1 {
                return;
            }
            self.root = node.items()[0].child;
            node.free();
        }
        let leaf = Array::<R>::at(self.root);
        if leaf.len() <= leaf.capacity() / 4 {
            self.root = leaf.resized(leaf.len() * 2).address();
        }
    }

    /// Takes out the last record.
    pub fn pop_last(&mut self) -> Option<R> {
        let key = self.last()?.key();
        self.remove(key)
    }

    /// Frees about `budget` records, from the end, after handing each to `each`; true if more is left.
    /// At least one leaf goes per call, so it is at most some 100 records more.
    pub fn free_some(&mut self, budget: usize, mut each: impl FnMut(R)) -> bool {
        let mut freed = 0;
        while self.root != 0 {
            if freed >= budget {
                return true;
            }
            let (mut path, leaf) = self.walk(|branches| branches.len() - 1);
            freed += leaf.len();
            self.len -= leaf.len() as u64;
            while leaf.len() > 0 {
                each(leaf.remove(leaf.len() - 1));
            }
            leaf.free();
            self.root = loop {
                let Some((node, child)) = path.pop() else {
                    break 0;
                };
                let node = Array::<Branch<R::Key>>::at(node);
                node.remove(child);
                if node.len() > 0 {
                    break self.root;
                }
                node.free();
            };
        }
        false
    }

    /// Frees all records after handing each to `each`.
    pub fn clear(&mut self, each: impl FnMut(R)) {
        self.free_some(usize::MAX, each);
    }

    /// A tree of what `each` makes of the records; their keys must stay in the same order.
    #[must_use]
    pub fn map(&self, each: impl FnMut(&R) -> R) -> Self {
        let mut copy = Self::new();
        for record in self.iter().map(each) {
            copy.insert(record);
        }
        copy
    }
}

/// Moves the items of the right node to the left one, if they are few enough; returns its address.
fn merge_arrays<T>(left: Array<T>, right: Array<T>) -> Option<u64> {
    let len = left.len() + right.len();
    if len > Array::<T>::MERGED {
        return None;
    }
    let left = if len > left.capacity() {
        left.resized(Array::<T>::MAX)
    } else {
        left
    };
    right.move_to(0, left);
    right.free();
    Some(left.address())
}
