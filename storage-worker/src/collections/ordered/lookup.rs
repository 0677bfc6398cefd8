//! Finding records: by key, the nearest ones, and all of them from a place on.
//!
//! Everything goes through two searches over a predicate that holds for the records in front of a
//! place and not for those behind it, so keys can be compared with whatever the caller has.

use std::slice;

use super::array::{Array, level_at};
use super::{Branch, Record, Tree};

/// A record in a leaf.
pub(super) struct Place<R> {
    pub(super) leaf: Array<R>,
    pub(super) at: usize,
}

impl<R: Record> Tree<R> {
    /// The first record that `is_before` does not hold for.
    pub(super) fn first_not(&self, is_before: impl Fn(R::Key) -> bool) -> Option<Place<R>> {
        let mut address = self.root;
        if address == 0 {
            return None;
        }
        // The subtree behind the one that is searched, if there is any.
        let mut behind = 0;
        while level_at(address) > 0 {
            let branches = Array::<Branch<R::Key>>::at(address).items();
            let child = branches
                .partition_point(|branch| is_before(branch.key))
                .saturating_sub(1);
            if let Some(next) = branches.get(child + 1) {
                behind = next.child;
            }
            address = branches[child].child;
        }
        let leaf = Array::<R>::at(address);
        let at = leaf
            .items()
            .partition_point(|record| is_before(record.key()));
        if at < leaf.len() {
            return Some(Place { leaf, at });
        }
        (behind != 0).then(|| Place {
            leaf: Self::first_leaf(behind),
            at: 0,
        })
    }

    /// The last record that `is_before` holds for.
    pub(super) fn last_of(&self, is_before: impl Fn(R::Key) -> bool) -> Option<Place<R>> {
        let mut address = self.root;
        if address == 0 {
            return None;
        }
        while level_at(address) > 0 {
            let branches = Array::<Branch<R::Key>>::at(address).items();
            let child = branches.partition_point(|branch| is_before(branch.key));
            address = branches[child.checked_sub(1)?].child;
        }
        let leaf = Array::<R>::at(address);
        let at = leaf
            .items()
            .partition_point(|record| is_before(record.key()));
        Some(Place {
            leaf,
            at: at.checked_sub(1)?,
        })
    }

    fn first_leaf(mut address: u64) -> Array<R> {
        while level_at(address) > 0 {
            address = Array::<Branch<R::Key>>::at(address).items()[0].child;
        }
        Array::at(address)
    }

    fn show(&self, place: Option<Place<R>>) -> Option<&R> {
        place.map(|place| &place.leaf.items()[place.at])
    }

    /// The first record.
    #[must_use]
    pub fn first(&self) -> Option<&R> {
        self.show(self.first_not(|_| false))
    }

    /// The last record.
    #[must_use]
    pub fn last(&self) -> Option<&R> {
        self.show(self.last_of(|_| true))
    }

    /// The first record whose key is at least this one.
    #[must_use]
    pub fn at_or_after(&self, key: R::Key) -> Option<&R> {
        self.show(self.first_not(|other| other < key))
    }

    /// The first record whose key is greater than this one.
    #[must_use]
    pub fn after(&self, key: R::Key) -> Option<&R> {
        self.show(self.first_not(|other| other <= key))
    }

    /// The last record whose key is at most this one.
    #[must_use]
    pub fn at_or_before(&self, key: R::Key) -> Option<&R> {
        self.show(self.last_of(|other| other <= key))
    }

    /// The last record whose key is less than this one.
    #[must_use]
    pub fn before(&self, key: R::Key) -> Option<&R> {
        self.show(self.last_of(|other| other < key))
    }

    /// The first record that `is_before` does not hold for: for keys that are compared with something
    /// else than a key. It must hold for all records up to a place and for none behind it.
    #[must_use]
    pub fn first_from(&self, is_before: impl Fn(R::Key) -> bool) -> Option<&R> {
        self.show(self.first_not(is_before))
    }

    /// The record with this key.
    #[must_use]
    pub fn get(&self, key: R::Key) -> Option<&R> {
        self.at_or_after(key).filter(|record| record.key() == key)
    }

    /// The record with this key, to be changed; its key must stay.
    #[must_use]
    pub fn get_mut(&mut self, key: R::Key) -> Option<&mut R> {
        let place = self.first_not(|other| other < key)?;
        let record = &mut place.leaf.items_mut()[place.at];
        (record.key() == key).then_some(record)
    }

    /// All records in order.
    #[must_use]
    pub fn iter(&self) -> Forward<'_, R> {
        self.forward(self.first_not(|_| false))
    }

    /// The records whose keys are at least this one, in order.
    #[must_use]
    pub fn iter_from(&self, key: R::Key) -> Forward<'_, R> {
        self.forward(self.first_not(|other| other < key))
    }

    fn forward(&self, place: Option<Place<R>>) -> Forward<'_, R> {
        let rest = place.map(|place| &place.leaf.items()[place.at..]);
        Forward {
            tree: self,
            rest: rest.unwrap_or_default().iter(),
        }
    }

    /// The records whose keys are at most this one, in descending order.
    #[must_use]
    pub fn iter_back_from(&self, key: R::Key) -> Backward<'_, R> {
        Backward {
            tree: self,
            rest: Self::up_to(self.last_of(|other| other <= key)),
        }
    }

    fn up_to<'a>(place: Option<Place<R>>) -> slice::Iter<'a, R> {
        let rest = place.map(|place| &place.leaf.items()[..=place.at]);
        rest.unwrap_or_default().iter()
    }
}

/// Records in ascending order. See [`Tree::iter`].
#[derive(Debug)]
pub struct Forward<'a, R> {
    tree: &'a Tree<R>,
    /// What is left of a leaf.
    rest: slice::Iter<'a, R>,
}

impl<'a, R: Record> Iterator for Forward<'a, R> {
    type Item = &'a R;

    #[inline]
    fn next(&mut self) -> Option<&'a R> {
        let record = self.rest.next()?;
        if self.rest.len() == 0 {
            let key = record.key();
            *self = self.tree.forward(self.tree.first_not(|other| other <= key));
        }
        Some(record)
    }
}

/// Records in descending order. See [`Tree::iter_back_from`].
#[derive(Debug)]
pub struct Backward<'a, R> {
    tree: &'a Tree<R>,
    rest: slice::Iter<'a, R>,
}

impl<'a, R: Record> Iterator for Backward<'a, R> {
    type Item = &'a R;

    #[inline]
    fn next(&mut self) -> Option<&'a R> {
        let record = self.rest.next_back()?;
        if self.rest.len() == 0 {
            let key = record.key();
            self.rest = Tree::up_to(self.tree.last_of(|other| other < key));
        }
        Some(record)
    }
}
