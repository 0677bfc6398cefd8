//! A set to be looked at, in whatever form it is kept.

use crate::collections::intset::{self, Intset};
use crate::collections::listpack::{self, Listpack};
use crate::collections::set_table::{self, SetTable};
use crate::collections::{StringRef, Structure};
use crate::commands::prelude::*;
use crate::keyspace::{Form, Found, Key, Keyspace};
use crate::random::Random;
use proto::time::UnixMillis;

/// The set is an intset.
pub(super) const INTSET: Form = Form::SET_INTSET;
/// The set is a listpack.
pub(super) const LISTPACK: Form = Form::SET_LISTPACK;
/// The set is a table.
pub(super) const TABLE: Form = Form::SET_TABLE;

/// A set. It borrows the keyspace, so that nothing can change under it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetRef<'a> {
    Intset(Intset<'a>),
    Listpack(Listpack<'a>),
    Table(&'a SetTable),
}

impl<'a> SetRef<'a> {
    /// The value of a set key.
    ///
    /// # Errors
    /// `WrongType` for a key of another type.
    #[inline]
    pub(crate) fn of(found: &Found<'a>) -> Result<SetRef<'a>, CommandError> {
        if found.kind() != ValueKind::Set {
            return Err(CommandError::WrongType);
        }
        Ok(if found.is_structure() {
            SetRef::Table(found.structure())
        } else {
            SetRef::packed(found.form(), found.packed())
        })
    }

    /// The set of a key, if it exists.
    ///
    /// # Errors
    /// `WrongType` for a key of another type.
    #[inline]
    pub(crate) fn find(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        now: UnixMillis,
        access: Access,
    ) -> Result<Option<SetRef<'a>>, CommandError> {
        match keyspace.find(key, now, access) {
            Some(found) => SetRef::of(&found).map(Some),
            None => Ok(None),
        }
    }

    /// The set that is packed in these bytes.
    #[inline]
    pub(super) fn packed(form: Form, bytes: &'a [u8]) -> SetRef<'a> {
        if form == INTSET {
            SetRef::Intset(Intset::new(bytes))
        } else {
            SetRef::Listpack(Listpack::new(bytes))
        }
    }

    /// Number of members.
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            SetRef::Intset(intset) => intset.len(),
            SetRef::Listpack(listpack) => listpack.len(),
            SetRef::Table(table) => table.len(),
        }
    }

    /// Whether the member is there.
    #[inline]
    pub(crate) fn contains(self, member: StringRef<'_>) -> bool {
        match self {
            SetRef::Intset(intset) => {
                number_of(member).is_some_and(|number| intset.contains(number))
            }
            SetRef::Listpack(listpack) => {
                with_bytes(member, |member| position(listpack, member).is_some())
            }
            SetRef::Table(table) => with_bytes(member, |member| table.contains(member)),
        }
    }

    /// All members: integers ascending, those of a listpack in the order in which they came.
    #[inline]
    pub(crate) fn iter(self) -> Members<'a> {
        match self {
            SetRef::Intset(intset) => Members::Intset(intset.iter()),
            SetRef::Listpack(listpack) => Members::Listpack(listpack.iter()),
            SetRef::Table(table) => Members::Table(table.iter()),
        }
    }

    /// A random member, each equally likely. A set is never empty.
    pub(super) fn random(self, rng: &mut Random) -> Option<StringRef<'a>> {
        match self {
            SetRef::Intset(intset) => {
                let index = rng.below(intset.len() as u64) as usize;
                (index < intset.len()).then(|| StringRef::Int(intset.get(index)))
            }
            SetRef::Listpack(listpack) => listpack
                .seek(rng.below(listpack.len() as u64) as i64)
                .map(|position| listpack.get(position)),
            SetRef::Table(table) => table.random(|| rng.next_u64()).map(StringRef::Bytes),
        }
    }
}

/// Where a listpack has this member.
#[inline]
pub(super) fn position(listpack: Listpack<'_>, member: &[u8]) -> Option<listpack::Position> {
    listpack.find(listpack.first()?, member, 0)
}

/// The integer that a member is the text of.
#[inline]
pub(super) fn number_of(member: StringRef<'_>) -> Option<i64> {
    match member {
        StringRef::Int(number) => Some(number),
        StringRef::Bytes(bytes) => parse_i64(bytes),
    }
}

/// All members of a set.
#[derive(Debug)]
pub(crate) enum Members<'a> {
    Intset(intset::Iter<'a>),
    Listpack(listpack::Iter<'a>),
    Table(set_table::Members<'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = StringRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<StringRef<'a>> {
        match self {
            Members::Intset(integers) => integers.next().map(StringRef::Int),
            Members::Listpack(elements) => elements.next(),
            Members::Table(members) => members.next().map(StringRef::Bytes),
        }
    }
}
