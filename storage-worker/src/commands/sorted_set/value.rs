//! A sorted set in either of its forms.
//!
//! ```text
//!   packed   a listpack of member, score ...     up to zset-max-listpack-entries members,
//!                                                none longer than zset-max-listpack-value
//!   table    dictionary and counted tree         from then on, and for good
//! ```
//!
//! Not here: what the two forms are made of (`collections::sorted_set`).

use crate::collections::Owned;
use crate::collections::listpack;
use crate::collections::sorted_set::packed::{self, Packed};
use crate::collections::sorted_set::{self, Bound, SortedSet};
use crate::commands::prelude::*;
use crate::keyspace::{Form, Found, Key, Keyspace, ValueMut};
use crate::settings::Limits;
use proto::time::UnixMillis;

/// A listpack.
pub(crate) const PACKED: Form = Form::SORTED_SET_LISTPACK;
/// A structure of its own.
pub(crate) const TABLE: Form = Form::SORTED_SET_TABLE;

/// A sorted set to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    Packed(Packed<'a>),
    Table(&'a SortedSet),
}

impl<'a> View<'a> {
    /// The sorted set at a key, if there is one.
    ///
    /// # Errors
    /// As for `of`.
    #[inline]
    pub(crate) fn find(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        now: UnixMillis,
        access: Access,
    ) -> Result<Option<Self>, CommandError> {
        let found = keyspace.find(key, now, access);
        found.map(|found| Self::of(&found)).transpose()
    }

    /// The sorted set that was found.
    ///
    /// # Errors
    /// `WrongType` for a key of another type.
    #[inline]
    pub(crate) fn of(found: &Found<'a>) -> Result<View<'a>, CommandError> {
        if found.kind() != ValueKind::SortedSet {
            return Err(CommandError::WrongType);
        }
        Ok(if found.is_structure() {
            View::Table(found.structure())
        } else {
            View::Packed(Packed::new(found.packed()))
        })
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            View::Packed(packed) => packed.len(),
            View::Table(table) => crate::collections::Structure::len(table),
        }
    }

    #[inline]
    pub(crate) fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            View::Packed(packed) => packed.find(member).map(|found| packed.score(found)),
            View::Table(table) => table.find(member).map(sorted_set::Member::score),
        }
    }

    /// The number of a member, from the lowest one, and its score.
    pub(crate) fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            View::Packed(packed) => packed.rank(member),
            View::Table(table) => {
                let found = table.find(member)?;
                Some((table.rank(found), found.score()))
            }
        }
    }

    pub(crate) fn count_before(self, bound: &Bound<'_>) -> usize {
        match self {
            View::Packed(packed) => packed.count_before(bound),
            View::Table(table) => table.count_before(bound),
        }
    }

    /// Score and name of the members from number `rank` on, upwards.
    pub(crate) fn walk(self, rank: usize) -> Walk<'a> {
        match self {
            View::Packed(packed) => Walk::Packed(packed.walk(rank)),
            View::Table(table) => Walk::Table(table.walk(rank)),
        }
    }

    /// Score and name of the members from number `rank` on, downwards.
    pub(crate) fn walk_back(self, rank: usize) -> Walk<'a> {
        match self {
            View::Packed(packed) => Walk::Packed(packed.walk_back(rank)),
            View::Table(table) => Walk::Table(table.walk_back(rank)),
        }
    }

    /// The member number `rank` with its score.
    pub(crate) fn at(self, rank: usize) -> Option<(f64, StringRef<'a>)> {
        self.walk(rank).next()
    }
}

/// Members in order, or against it.
#[expect(
    clippy::large_enum_variant,
    reason = "a walk lives on the stack, and there is one at a time"
)]
#[derive(Debug)]
pub(crate) enum Walk<'a> {
    Packed(packed::Walk<'a>),
    Table(sorted_set::Walk<'a>),
}

impl<'a> Iterator for Walk<'a> {
    type Item = (f64, StringRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Walk::Packed(walk) => walk.next(),
            Walk::Table(walk) => {
                let (score, member) = walk.next()?;
                Some((score, StringRef::Bytes(member)))
            }
        }
    }
}

/// A member that was found; good until the next change of the set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Packed(packed::Member),
    Table(sorted_set::Member),
}

/// Whether a listpack of `bytes` may have this many members, one of them of `member_len` bytes.
fn fits(limits: &Limits, members: usize, member_len: usize, bytes: usize) -> bool {
    members <= limits.sorted_set_entries
        && member_len <= limits.sorted_set_value_bytes
        && bytes.saturating_add(member_len) < listpack::BYTES_MAX
}

/// A sorted set to be changed.
#[derive(Debug)]
pub(crate) struct Edit<'a> {
    value: ValueMut<'a>,
    limits: Limits,
    seed: u64,
}

impl<'a> Edit<'a> {
    /// The sorted set at a key, if there is one.
    ///
    /// # Errors
    /// `WrongType` for a key of another type.
    #[inline]
    pub(crate) fn open(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        now: UnixMillis,
        limits: Limits,
    ) -> Result<Option<Edit<'a>>, CommandError> {
        let seed = keyspace.seed();
        let Some(value) = keyspace.value_mut(key, now) else {
            return Ok(None);
        };
        if value.kind() != ValueKind::SortedSet {
            return Err(CommandError::WrongType);
        }
        Ok(Some(Edit {
            value,
            limits,
            seed,
        }))
    }

    /// A new sorted set at a key that is absent. `members` and `first_len` say how many members are
    /// to come at most and how long the first one is: that decides about the form.
    pub(crate) fn create(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        limits: Limits,
        members: usize,
        first_len: usize,
    ) -> Edit<'a> {
        let seed = keyspace.seed();
        let kind = ValueKind::SortedSet;
        let value = if fits(&limits, members, first_len, 0) {
            keyspace.create_packed(key, kind, PACKED, &listpack::EMPTY)
        } else {
            let table = SortedSet::create(seed).release();
            keyspace.create_structure(key, TABLE, table)
        };
        Edit {
            value,
            limits,
            seed,
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        if self.value.is_structure() {
            View::Table(self.value.structure())
        } else {
            View::Packed(Packed::new(self.value.packed()))
        }
    }

    #[inline]
    fn table(&mut self) -> &mut SortedSet {
        self.value.structure_mut()
    }

    /// Looks a member up.
    #[inline]
    pub(crate) fn find(&self, member: &[u8]) -> Option<(Place, f64)> {
        match self.view() {
            View::Packed(packed) => {
                let found = packed.find(member)?;
                Some((Place::Packed(found), packed.score(found)))
            }
            View::Table(table) => {
                let found = table.find(member)?;
                Some((Place::Table(found), found.score()))
            }
        }
    }

    /// Adds a member that is not there yet.
    pub(crate) fn insert(&mut self, score: f64, member: &[u8]) {
        if let View::Packed(packed) = self.view() {
            if fits(
                &self.limits,
                packed.len() + 1,
                member.len(),
                packed.bytes_len(),
            ) {
                return packed::insert(&mut self.value, score, member);
            }
            self.make_table();
        }
        self.table().insert(score, member);
    }

    /// Says how many members a command brings: a listpack that could not hold so many is given up at
    /// once.
    pub(crate) fn expect(&mut self, members: usize) {
        if !self.value.is_structure() && members > self.limits.sorted_set_entries {
            self.make_table();
        }
    }

    fn make_table(&mut self) {
        let table = unpack(Packed::new(self.value.packed()), self.seed);
        self.value.set_structure(TABLE, table.release());
    }

    /// Gives a member another score.
    pub(crate) fn set_score(&mut self, place: Place, member: &[u8], score: f64) {
        match place {
            Place::Packed(found) => packed::set_score(&mut self.value, found, member, score),
            Place::Table(found) => self.table().set_score(found, score),
        }
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, place: Place) {
        match place {
            Place::Packed(found) => packed::remove(&mut self.value, found),
            Place::Table(found) => self.table().remove(found),
        }
    }

    /// Takes `count` members from number `first` on out.
    pub(crate) fn remove_ranks(&mut self, first: usize, count: usize) {
        if self.value.is_structure() {
            self.table().remove_ranks(first, count, |_, _| {});
        } else {
            packed::remove_ranks(&mut self.value, first, count);
        }
    }

    /// Ends the change: a set without members is no key.
    pub(crate) fn finish(self) {
        if self.view().len() == 0 {
            self.value.remove();
        }
    }
}

/// The table of the members of a packed set.
fn unpack(packed: Packed<'_>, seed: u64) -> Owned<SortedSet> {
    let mut table = SortedSet::create(seed);
    for (score, member) in packed.walk(0) {
        with_bytes(member, |member| table.insert(score, member));
    }
    table
}

/// A sorted set that is put together before it gets a key: members come one by one, each once, best in
/// order.
#[derive(Debug)]
pub(crate) struct Builder {
    limits: Limits,
    seed: u64,
    members: Members,
}

#[derive(Debug)]
enum Members {
    Packed(Vec<u8>),
    Table(Owned<SortedSet>),
}

impl Builder {
    /// `expected` members come at least, one of them `longest` bytes long. Where the reference knows that in
    /// advance matters: what was in a listpack before has lost the sign of -0.
    pub(crate) fn new(limits: Limits, seed: u64, expected: usize, longest: usize) -> Builder {
        let members = if fits(&limits, expected, longest, 0) {
            Members::Packed(listpack::EMPTY.to_vec())
        } else {
            Members::Table(SortedSet::create(seed))
        };
        Builder {
            limits,
            seed,
            members,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.members {
            Members::Packed(bytes) => Packed::new(bytes).len(),
            Members::Table(table) => crate::collections::Structure::len(&**table),
        }
    }

    /// Adds a member that did not come before.
    pub(crate) fn add(&mut self, score: f64, member: &[u8]) {
        match &mut self.members {
            Members::Table(table) => table.insert(score, member),
            Members::Packed(bytes) => {
                let packed = Packed::new(bytes);
                if fits(
                    &self.limits,
                    packed.len() + 1,
                    member.len(),
                    packed.bytes_len(),
                ) {
                    packed::insert(bytes, score, member);
                } else {
                    let mut table = unpack(packed, self.seed);
                    table.insert(score, member);
                    self.members = Members::Table(table);
                }
            }
        }
    }

    /// Puts the set at a key in the place of whatever is there; a set without members only removes
    /// that. Says how many changes this is.
    pub(crate) fn store(self, ctx: &mut Context<'_>, key: &Key<'_>) -> u64 {
        let kind = ValueKind::SortedSet;
        if self.len() == 0 {
            return u64::from(ctx.keyspace.remove(key));
        }
        match self.members {
            Members::Packed(bytes) => {
                ctx.keyspace.replace_with_packed(key, kind, PACKED, &bytes);
            }
            Members::Table(table) => {
                ctx.keyspace
                    .replace_with_structure(key, TABLE, table.release());
            }
        }
        ctx.signal_ready(key);
        1
    }
}
