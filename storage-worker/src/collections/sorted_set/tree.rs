//! The order of a sorted set: a B+tree that counts.
//!
//! ```text
//!                 [ inner: children with counts, first members ]          height 2
//!                   /             |            \
//!          [ inner ]          [ inner ]         [ inner ]
//!          /   |   \            ...                                       height 1
//!     [leaf] [leaf] [leaf]                                                height 0: a leaf alone
//! ```
//!
//! There are no links between neighbours: a walk keeps its path. A node that is full splits in the
//! middle, except at the ends of the tree, where it is left full: members that come in order fill the
//! nodes completely. A node that is nearly empty joins a neighbour if both leave room then.
//!
//! Invariants
//!   T1  all leaves have the same distance from the root; no node is empty.
//!   T2  `len` is the number of members; a tree without members has the root 0.
//!   and those of leaves (L1, L2) and inner nodes (I1, I2).
//!
//! Cost: about 8 / 0.7 + 0.9 bytes per member. A million members have a height of 3; a search looks
//! at 4 nodes and at few members, a rank comes from the counts on the way.

use super::inner::{CHILDREN, Child, Inner};
use super::leaf::{CAPACITY, Leaf};
use super::object::{Bound, Object};

/// Levels above the leaves at most. Nodes have at least four members or children on average, and
/// there are less than 2^32 members.
const HEIGHT_MAX: usize = 16;
/// A leaf with fewer members looks for a neighbour to join.
const LEAF_MIN: usize = CAPACITY / 4;
const LEAF_JOINED_MAX: usize = CAPACITY * 3 / 4;
const INNER_MIN: usize = CHILDREN / 4;
const INNER_JOINED_MAX: usize = CHILDREN * 3 / 4;

/// See the module. All zeroes is an empty tree.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Tree {
    root: u64,
    len: u32,
    height: u32,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    node: u64,
    index: usize,
}

impl Step {
    #[inline]
    fn inner(self) -> Inner {
        Inner::at(self.node)
    }
}

/// A place in the tree: the nodes from a leaf up to the root, and the index in each. It is good until
/// the next change.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Number 0 is the parent of the leaf.
    steps: [Step; HEIGHT_MAX],
    height: usize,
    pub leaf: Leaf,
    pub index: usize,
}

impl Path {
    #[inline]
    fn steps(&self) -> &[Step] {
        &self.steps[..self.height]
    }

    /// Whether the leaf is the first one of the tree.
    fn is_first(&self) -> bool {
        self.steps().iter().all(|step| step.index == 0)
    }

    /// Whether the leaf is the last one of the tree.
    fn is_last(&self) -> bool {
        self.is_last_from(0)
    }

    /// Whether the node below step `level` is the last one of its level.
    fn is_last_from(&self, level: usize) -> bool {
        let above = &self.steps()[level..];
        above
            .iter()
            .all(|step| step.index + 1 == step.inner().len())
    }

    /// The number of the place.
    #[inline]
    pub(super) fn rank(&self) -> usize {
        let before = |step: &Step| step.inner().count_before(step.index);
        self.index + self.steps().iter().map(before).sum::<usize>()
    }

    /// Goes to the next member; the caller knows that there is one.
    #[inline]
    pub(super) fn next(&mut self) {
        self.index += 1;
        if self.index == self.leaf.len() {
            let index = self.turn(|step| step.index + 1 < step.inner().len(), 1);
            self.index = index;
        }
    }

    /// Goes to the member before; the caller knows that there is one.
    #[inline]
    pub(super) fn previous(&mut self) {
        if self.index > 0 {
            self.index -= 1;
        } else {
            let index = self.turn(|step| step.index > 0, -1);
            self.index = index;
        }
    }

    /// Goes to the neighbouring leaf and returns the index to begin with.
    fn turn(&mut self, can_move: impl Fn(&Step) -> bool, direction: isize) -> usize {
        let Some(level) = self.steps().iter().position(can_move) else {
            return self.index;
        };
        let step = &mut self.steps[level];
        step.index = step.index.wrapping_add_signed(direction);
        let mut address = step.inner().child(step.index);
        let end = |len: usize| if direction > 0 { 0 } else { len - 1 };
        for step in self.steps[..level].iter_mut().rev() {
            step.node = address;
            step.index = end(step.inner().len());
            address = step.inner().child(step.index);
        }
        self.leaf = Leaf::at(address);
        end(self.leaf.len())
    }
}

impl Tree {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Goes down from the root; `choose` says which child to take and, at last, the index in the leaf.
    #[inline]
    fn descend(
        &self,
        mut choose_child: impl FnMut(Inner) -> usize,
        choose_member: impl FnOnce(Leaf) -> usize,
    ) -> Option<Path> {
        if self.root == 0 {
            return None;
        }
        let height = self.height as usize;
        let mut steps = [Step { node: 0, index: 0 }; HEIGHT_MAX];
        let mut node = self.root;
        for level in (0..height).rev() {
            let index = choose_child(Inner::at(node));
            steps[level] = Step { node, index };
            node = Inner::at(node).child(index);
            if level > 0 {
                Inner::prefetch(node);
            } else {
                Leaf::prefetch(node);
            }
        }
        let leaf = Leaf::at(node);
        Some(Path {
            steps,
            height,
            leaf,
            index: choose_member(leaf),
        })
    }

    /// The place of a bound; `None` if the tree is empty.
    #[inline]
    pub(super) fn locate(&self, bound: &Bound<'_>) -> Option<Path> {
        self.descend(|inner| inner.search(bound), |leaf| leaf.search(bound))
    }

    /// The place of the member number `rank`; `None` if there are not so many.
    pub(super) fn seek(&self, rank: usize) -> Option<Path> {
        if rank >= self.len() {
            return None;
        }
        let left = std::cell::Cell::new(rank);
        let choose = |inner: Inner| {
            let (index, rest) = inner.seek(left.get());
            left.set(rest);
            index
        };
        self.descend(choose, |_| left.get())
    }

    /// Adds a member that is not there yet.
    pub(super) fn insert(&mut self, object: Object) {
        let Some(path) = self.locate(&Bound::At(object.score(), object.member())) else {
            self.root = Leaf::create(1).insert(0, object).address();
            self.len = 1;
            return;
        };
        self.len += 1;
        for step in path.steps() {
            let inner = step.inner();
            inner.set_count(step.index, inner.count(step.index) + 1);
        }
        if path.leaf.is_full() {
            self.insert_into_full(&path, object);
        } else {
            let leaf = path.leaf.insert(path.index, object);
            if leaf != path.leaf {
                self.replace_child(&path, 0, leaf.address());
            }
        }
    }

    fn insert_into_full(&mut self, path: &Path, object: Object) {
        let at = if path.index == CAPACITY && path.is_last() {
            CAPACITY
        } else if path.index == 0 && path.is_first() {
            0
        } else {
            CAPACITY / 2
        };
        let right = path.leaf.split(at);
        if path.index > at || at == CAPACITY {
            right.insert(path.index - at, object);
        } else {
            path.leaf.insert(path.index, object);
        }
        self.add_behind(
            path,
            Child {
                address: right.address(),
                count: right.len() as u32,
                first: right.get(0),
            },
        );
    }

    /// Hangs a node into the tree behind the leaf of the path; its members are counted there already.
    fn add_behind(&mut self, path: &Path, mut child: Child) {
        for (level, step) in path.steps().iter().enumerate() {
            let (inner, index) = (step.inner(), step.index + 1);
            inner.set_count(step.index, inner.count(step.index) - child.count);
            if !inner.is_full() {
                inner.insert(index, child);
                return;
            }
            let at = if index == CHILDREN && path.is_last_from(level + 1) {
                CHILDREN
            } else {
                CHILDREN / 2
            };
            let right = inner.split(at);
            if index > at || at == CHILDREN {
                right.insert(index - at, child);
            } else {
                inner.insert(index, child);
            }
            child = Child {
                address: right.address(),
                count: right.total(),
                first: right.first(0),
            };
        }
        assert!(
            path.height < HEIGHT_MAX,
            "no sorted set has so many members"
        );
        let root = Inner::create();
        root.begin(self.root, self.len - child.count);
        root.insert(1, child);
        self.root = root.address();
        self.height += 1;
    }

    /// Names another node in the place of the one below step `level`.
    fn replace_child(&mut self, path: &Path, level: usize, address: u64) {
        match path.steps().get(level) {
            Some(step) => step.inner().set_child(step.index, address),
            None => self.root = address,
        }
    }

    /// The node below step `level` begins with another member: tells the one that knows (I2).
    fn set_first(path: &Path, level: usize, object: Object) {
        let knows = path.steps()[level..].iter().find(|step| step.index > 0);
        if let Some(step) = knows {
            step.inner().set_first(step.index, object);
        }
    }

    /// Takes the member at a place out and returns it.
    pub(super) fn remove(&mut self, path: &Path) -> Object {
        let leaf = path.leaf;
        let object = leaf.get(path.index);
        self.len -= 1;
        for step in path.steps() {
            let inner = step.inner();
            inner.set_count(step.index, inner.count(step.index) - 1);
        }
        leaf.remove(path.index);
        if leaf.len() == 0 {
            leaf.free();
            self.remove_child(path, 0);
            return object;
        }
        if path.index == 0 {
            Tree::set_first(path, 0, leaf.get(0));
        }
        if leaf.len() < LEAF_MIN {
            self.join_leaf(path);
        }
        object
    }

    /// Forgets the node below step `level`, which has been freed.
    fn remove_child(&mut self, path: &Path, level: usize) {
        let Some(step) = path.steps().get(level) else {
            self.root = 0;
            self.height = 0;
            return;
        };
        let inner = step.inner();
        if inner.len() == 1 {
            inner.free();
            return self.remove_child(path, level + 1);
        }
        inner.remove(step.index);
        if step.index == 0 {
            Tree::set_first(path, level + 1, inner.first(0));
        }
        self.join_inner(path, level);
    }

    /// Joins the leaf of a path with a neighbour if that leaves room.
    fn join_leaf(&mut self, path: &Path) {
        let Some(step) = path.steps().first() else {
            return;
        };
        let inner = step.inner();
        let Some(left) = joinable(inner, step.index, |left| {
            let len = |index| Leaf::at(inner.child(index)).len();
            len(left) + len(left + 1) <= LEAF_JOINED_MAX
        }) else {
            return;
        };
        let joined = Leaf::at(inner.child(left)).absorb(Leaf::at(inner.child(left + 1)));
        inner.set_child(left, joined.address());
        inner.set_count(left, joined.len() as u32);
        inner.remove(left + 1);
        self.join_inner(path, 0);
    }

    /// Looks whether the inner node of step `level`, which has lost a child, should join a neighbour.
    fn join_inner(&mut self, path: &Path, level: usize) {
        let inner = path.steps()[level].inner();
        let Some(above) = path.steps().get(level + 1) else {
            return self.lower();
        };
        if inner.len() >= INNER_MIN {
            return;
        }
        let parent = above.inner();
        let Some(left) = joinable(parent, above.index, |left| {
            let len = |index| Inner::at(parent.child(index)).len();
            len(left) + len(left + 1) <= INNER_JOINED_MAX
        }) else {
            return;
        };
        let count = parent.count(left) + parent.count(left + 1);
        let next = Inner::at(parent.child(left + 1));
        Inner::at(parent.child(left)).absorb(next, parent.first(left + 1));
        parent.set_count(left, count);
        parent.remove(left + 1);
        self.join_inner(path, level + 1);
    }

    /// A root with one child is not needed.
    fn lower(&mut self) {
        while self.height > 0 && Inner::at(self.root).len() == 1 {
            let root = Inner::at(self.root);
            self.root = root.child(0);
            self.height -= 1;
            root.free();
        }
    }

    /// Gives the member at a place another score and moves it to where it then belongs.
    pub(super) fn rescore(&mut self, path: &Path, score: f64) {
        let (leaf, from) = (path.leaf, path.index);
        let object = leaf.get(from);
        let bound = Bound::At(score, object.member());
        let to = if score >= object.score() {
            let passed = leaf.search_in(from + 1..leaf.len(), &bound);
            // Behind the last one of the leaf there may be others that come before it.
            let stays = from + passed + 1 < leaf.len() || path.is_last();
            stays.then_some(from + passed)
        } else {
            let to = leaf.search_in(0..from, &bound);
            (to > 0 || path.is_first()).then_some(to)
        };
        match to {
            Some(to) => {
                object.set_score(score);
                leaf.shift(from, to, object);
                if from == 0 || to == 0 {
                    Tree::set_first(path, 0, leaf.get(0));
                }
            }
            None => {
                self.remove(path);
                object.set_score(score);
                self.insert(object);
            }
        }
    }

    /// Frees about `budget` members' worth of nodes, from the end, without looking at members; says
    /// whether any are left. Nothing else may be done with the tree after the first call.
    pub(super) fn free_some(&mut self, budget: usize) -> bool {
        let mut freed = 0;
        while self.root != 0 && freed < budget {
            let (mut node, mut parent, mut level) = (self.root, None, self.height);
            while level > 0 && Inner::at(node).len() > 0 {
                let inner = Inner::at(node);
                parent = Some(inner);
                node = inner.child(inner.len() - 1);
                level -= 1;
            }
            if level == 0 {
                Leaf::at(node).free();
            } else {
                Inner::at(node).free();
            }
            match parent {
                Some(parent) => parent.drop_last(),
                None => self.root = 0,
            }
            freed += CAPACITY;
        }
        self.len = 0;
        self.root != 0
    }

    /// Bytes of the nodes.
    pub(super) fn memory_bytes(&self) -> usize {
        fn below(node: u64, height: u32) -> usize {
            if height == 0 {
                return Leaf::at(node).memory_bytes();
            }
            let inner = Inner::at(node);
            // Below a root there are only full-sized leaves.
            let children = (0..inner.len()).map(|index| below(inner.child(index), height - 1));
            Inner::memory_bytes() + children.sum::<usize>()
        }
        if self.root == 0 {
            0
        } else {
            below(self.root, self.height)
        }
    }

    /// Checks T1, T2 and the nodes.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.root == 0 {
            let is_empty = self.len == 0 && self.height == 0;
            return is_empty
                .then_some(())
                .ok_or_else(|| "an empty tree has members (T2)".to_owned());
        }
        let (count, _) = check_node(self.root, self.height)?;
        if count != self.len {
            return Err(format!(
                "a tree counts {} members and has {count} (T2)",
                self.len
            ));
        }
        let mut before: Option<Object> = None;
        let mut path = self.seek(0);
        for rank in 0..self.len() {
            let Some(path) = &mut path else { break };
            if rank > 0 {
                path.next();
            }
            let object = path.leaf.get(path.index);
            if before.is_some_and(|before| before.compare(object.score(), object.member()).is_ge())
            {
                return Err(format!("members {} and {rank} are not in order", rank - 1));
            }
            before = Some(object);
        }
        Ok(())
    }
}

/// The left one of two neighbouring children that `fits` allows to join, one of them being `index`.
fn joinable(parent: Inner, index: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    if index > 0 && fits(index - 1) {
        Some(index - 1)
    } else if index + 1 < parent.len() && fits(index) {
        Some(index)
    } else {
        None
    }
}

/// Checks a subtree; returns its number of members and the first one.
fn check_node(node: u64, height: u32) -> Result<(u32, Object), String> {
    if height == 0 {
        let leaf = Leaf::at(node);
        leaf.check()?;
        if leaf.len() == 0 {
            return Err("a leaf is empty (T1)".to_owned());
        }
        return Ok((leaf.len() as u32, leaf.get(0)));
    }
    let inner = Inner::at(node);
    if !shm::arena::Arena.contains(node, Inner::memory_bytes()) {
        return Err("an inner node lies outside the arena".to_owned());
    }
    if inner.len() == 0 {
        return Err("an inner node is empty (T1)".to_owned());
    }
    let mut total = 0;
    let mut first_of_all = None;
    for index in 0..inner.len() {
        let (count, first) = check_node(inner.child(index), height - 1)?;
        if count != inner.count(index) {
            return Err(format!(
                "a child has {count} members, not {} (I1)",
                inner.count(index)
            ));
        }
        let known = inner.first_address(index);
        if index > 0 && (known.1 != first.address() || known.0 != first.score()) {
            return Err("a child begins with another member than its parent says (I2)".to_owned());
        }
        first_of_all.get_or_insert(first);
        total += count;
    }
    first_of_all
        .map(|first| (total, first))
        .ok_or_else(|| "an inner node is empty (T1)".to_owned())
}
