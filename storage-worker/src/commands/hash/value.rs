//! A hash as commands see it: both forms behind one handle, and the limits at which they change.
//!
//! ```text
//!   pairs  --first time of a field-->  triples
//!     |                                   |      a name or value longer than `hash-max-listpack-value`,
//!     +----------->  table  <-------------+      or more fields than `hash-max-listpack-entries`
//! ```
//!
//! No form ever changes back.

use crate::collections::Structure;
use crate::collections::hash::{Packed, Table, Ttl, Width, form, packed};
use crate::collections::listpack;
use crate::commands::prelude::*;
use crate::keyspace::{Form, Found, Key, Keyspace, ValueMut};
use crate::settings::EngineSettings;
use proto::time::UnixMillis;

/// Where a hash stops being packed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    fields_max: usize,
    bytes_max: usize,
}

impl Limits {
    #[inline]
    pub(super) fn new(settings: &EngineSettings) -> Self {
        Self {
            fields_max: settings.limits.hash_entries,
            bytes_max: settings.limits.hash_value_bytes,
        }
    }

    #[inline]
    fn allow(self, bytes: &[u8]) -> bool {
        bytes.len() <= self.bytes_max
    }
}

/// A hash to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HashRef<'a> {
    Packed(Packed<'a>),
    Table(&'a Table),
}

/// A field's value and when it expires.
pub(crate) type Field<'a> = (StringRef<'a>, Option<UnixMillis>);

impl<'a> HashRef<'a> {
    /// The hash at a key.
    #[inline]
    pub(super) fn find(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        now: UnixMillis,
        access: Access,
    ) -> Result<Option<Self>, CommandError> {
        match keyspace.find(key, now, access) {
            None => Ok(None),
            Some(found) => Self::of(&found).map(Some),
        }
    }

    #[inline]
    pub(crate) fn of(found: &Found<'a>) -> Result<Self, CommandError> {
        if found.kind() != ValueKind::Hash {
            return Err(CommandError::WrongType);
        }
        Ok(match form::width(found.form().0) {
            Some(width) => Self::Packed(Packed::new(found.packed(), width)),
            None => Self::Table(found.structure::<Table>()),
        })
    }

    /// Number of fields, expired or not.
    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Self::Packed(packed) => packed.len(),
            Self::Table(table) => table.len(),
        }
    }

    /// The field with this name, expired or not.
    #[inline]
    pub(crate) fn get(self, name: &[u8]) -> Option<Field<'a>> {
        match self {
            Self::Packed(packed) => packed.get(name),
            Self::Table(table) => {
                let found = table.get(name)?;
                Some((StringRef::Bytes(found.value), found.expiry))
            }
        }
    }

    /// When the first field expires.
    pub(super) fn next_expiry(self) -> Option<UnixMillis> {
        match self {
            Self::Packed(packed) => packed.next_expiry(),
            Self::Table(table) => table.next_expiry(),
        }
    }

    /// Whether a field has expired.
    #[inline]
    pub(super) fn has_expired(self, now: UnixMillis) -> bool {
        is_over(self.next_expiry(), now)
    }

    /// Number of fields that have not expired.
    pub(super) fn live_len(self, now: UnixMillis) -> usize {
        if !self.has_expired(now) {
            return self.len();
        }
        let mut live = 0;
        self.for_each(now, |_, _| live += 1);
        live
    }

    /// Calls `visit` with name and value of every field that has not expired.
    pub(super) fn for_each(
        self,
        now: UnixMillis,
        mut visit: impl FnMut(StringRef<'a>, StringRef<'a>),
    ) {
        match self {
            Self::Packed(packed) => {
                for field in packed.iter().filter(|field| !is_over(field.expiry, now)) {
                    visit(field.name, field.value);
                }
            }
            Self::Table(table) => {
                for field in table.iter().filter(|field| !is_over(field.expiry, now)) {
                    visit(StringRef::Bytes(field.name), StringRef::Bytes(field.value));
                }
            }
        }
    }
}

/// Whether a field with this expiry is gone.
#[inline]
pub(crate) fn is_over(expiry: Option<UnixMillis>, now: UnixMillis) -> bool {
    expiry.is_some_and(|at| at.has_passed(now))
}

/// A hash to be changed. A caller that takes the last field out calls [`HashMut::finish`].
#[derive(Debug)]
pub(super) struct HashMut<'a> {
    value: ValueMut<'a>,
    limits: Limits,
    seed: u64,
}

impl<'a> HashMut<'a> {
    /// The hash at a key.
    #[inline]
    pub(super) fn find(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        now: UnixMillis,
        limits: Limits,
    ) -> Result<Option<Self>, CommandError> {
        let seed = keyspace.seed();
        match keyspace.value_mut(key, now) {
            None => Ok(None),
            Some(value) if value.kind() != ValueKind::Hash => Err(CommandError::WrongType),
            Some(value) => Ok(Some(Self {
                value,
                limits,
                seed,
            })),
        }
    }

    /// Makes a hash of names and values at a key that is not there; returns how many fields it has.
    pub(super) fn create<'p>(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        limits: Limits,
        pairs: impl ExactSizeIterator<Item = (&'p [u8], &'p [u8])> + Clone,
        ttl: Ttl,
    ) -> (Self, usize) {
        let seed = keyspace.seed();
        let is_small = pairs.len() <= limits.fields_max
            && pairs
                .clone()
                .all(|(name, value)| limits.allow(name) && limits.allow(value));
        let mut created = 0;
        let value = if is_small {
            let (width, form) = match ttl {
                Ttl::At(_) => (Width::Triples, form::TRIPLES),
                Ttl::Keep | Ttl::Clear => (Width::Pairs, form::PAIRS),
            };
            let mut bytes = listpack::EMPTY.to_vec();
            for (name, value) in pairs {
                created += usize::from(packed::set(&mut bytes, width, name, value, ttl));
            }
            keyspace.create_packed(key, ValueKind::Hash, Form(form), &bytes)
        } else {
            let table = Table::build(seed, |table| {
                for (name, value) in pairs {
                    created += usize::from(table.set(name, value, ttl));
                }
            });
            keyspace.create_structure(key, Form(form::TABLE), table)
        };
        let hash = Self {
            value,
            limits,
            seed,
        };
        (hash, created)
    }

    #[inline]
    fn width(&self) -> Option<Width> {
        form::width(self.value.form().0)
    }

    #[inline]
    pub(super) fn view(&self) -> HashRef<'_> {
        match self.width() {
            Some(width) => HashRef::Packed(Packed::new(self.value.packed(), width)),
            None => HashRef::Table(self.value.structure::<Table>()),
        }
    }

    /// Becomes a table if so many names and values, or one so long, would make it one: decided
    /// beforehand as Redis does it, whether or not the names are there already.
    pub(super) fn prepare<'p>(
        &mut self,
        mut pairs: impl ExactSizeIterator<Item = (&'p [u8], &'p [u8])>,
    ) {
        let limits = self.limits;
        if self.width().is_some()
            && (pairs.len() > limits.fields_max
                || pairs.any(|(name, value)| !limits.allow(name) || !limits.allow(value)))
        {
            self.become_table();
        }
    }

    #[cold]
    fn become_table(&mut self) {
        let HashRef::Packed(packed) = self.view() else {
            return;
        };
        let table = Table::build(self.seed, |table| {
            for field in packed.iter() {
                with_bytes(field.name, |name| {
                    with_bytes(field.value, |value| table.insert(name, value, field.expiry));
                });
            }
        });
        self.value.set_structure(Form(form::TABLE), table);
    }

    /// Gets room for the times of fields, whether or not one gets a time.
    pub(super) fn become_timed(&mut self) {
        if self.width() == Some(Width::Pairs) {
            let triples = packed::widened(Packed::new(self.value.packed(), Width::Pairs));
            self.value.set_packed(Form(form::TRIPLES), &triples);
        }
    }

    /// Writes a field; says whether it is new.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8], ttl: Ttl) -> bool {
        if self.width().is_some() && !(self.limits.allow(name) && self.limits.allow(value)) {
            self.become_table();
        }
        if matches!(ttl, Ttl::At(_)) {
            self.become_timed();
        }
        let Some(width) = self.width() else {
            return self.table().set(name, value, ttl);
        };
        let is_new = packed::set(&mut self.value, width, name, value, ttl);
        if is_new && self.view().len() > self.limits.fields_max {
            self.become_table();
        }
        is_new
    }

    #[inline]
    fn table(&mut self) -> &mut Table {
        self.value.structure_mut::<Table>()
    }

    /// Removes a field, expired or not; says whether it was there.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        match self.width() {
            Some(width) => packed::remove(&mut self.value, width, name),
            None => self.table().remove(name),
        }
    }

    /// Gives a field another expiry; it is there, and there is room for times.
    pub(super) fn set_expiry(&mut self, name: &[u8], expiry: Option<UnixMillis>) {
        match self.width() {
            Some(Width::Pairs) => debug_assert!(expiry.is_none(), "pairs have no times"),
            Some(Width::Triples) => {
                packed::set_expiry(&mut self.value, name, expiry);
            }
            None => {
                self.table().set_expiry(name, expiry);
            }
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.view().len() == 0
    }

    /// Removes the key if no field is left; says whether it did.
    pub(super) fn finish(self) -> bool {
        let is_empty = self.is_empty();
        if is_empty {
            self.value.remove();
        }
        is_empty
    }
}
