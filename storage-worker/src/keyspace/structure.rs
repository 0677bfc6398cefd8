//! Which structure stands behind the values of which kind: the one place that knows all of them.
//!
//! An entry has kind and address. What is done with any structure (free, copy, measure, check) is
//! sent to the right type here; a handle that asks for a type gets it only if the kind fits.

use std::ptr::NonNull;

use super::dictionary::Dictionary;
use super::entry::{Entry, Storage};
use super::kind::{Form, ValueKind};
use crate::collections::Structure;
use crate::collections::hash::Table;
use crate::collections::list::List;
use crate::collections::set_table::SetTable;
use crate::collections::sorted_set::SortedSet;
use crate::collections::stream::Stream;

/// A structure that keys can hold.
pub trait Held: Structure {
    /// The kind of the values that are kept in it.
    const KIND: ValueKind;
}

/// The structure at an address that an entry or a grave holds.
fn at<T>(address: u64) -> NonNull<T> {
    super::pointer(address).expect("a value's structure has an address")
}

/// The structure of an entry, if its kind is kept in a `T`.
#[inline]
pub(super) fn of<T: Held>(entry: Entry) -> NonNull<T> {
    assert!(
        entry.kind() == T::KIND && entry.storage() == Storage::Structure,
        "the value is not the structure that is asked for"
    );
    at(entry.structure())
}

/// The table that finds the elements of a structure by name, if its kind has one.
#[inline]
pub(super) fn dictionary(kind: ValueKind, address: u64) -> Option<NonNull<Dictionary>> {
    // SAFETY: E4: the entry names a live structure of its kind.
    unsafe {
        match kind {
            ValueKind::Set => Some(NonNull::from(at::<SetTable>(address).as_ref().dictionary())),
            ValueKind::Hash => Some(NonNull::from(at::<Table>(address).as_ref().dictionary())),
            ValueKind::SortedSet => Some(NonNull::from(
                at::<SortedSet>(address).as_ref().dictionary(),
            )),
            _ => None,
        }
    }
}

macro_rules! structures {
    ($( $kind:ident => $structure:ty, )*) => {
        $( impl Held for $structure {
            const KIND: ValueKind = ValueKind::$kind;
        } )*

        /// Sizes that the layout of an arena depends on.
        pub(super) const SIZES: &[usize] = &[ $( size_of::<$structure>(), )* ];

        /// Frees a structure.
        pub(super) fn free(kind: ValueKind, address: u64) {
            match kind {
                $( ValueKind::$kind => <$structure>::free(at(address)), )*
                _ => none(kind),
            }
        }

        /// Frees about `budget` elements; true if more is left.
        pub(super) fn free_some(kind: ValueKind, address: u64, budget: usize) -> bool {
            match kind {
                $( ValueKind::$kind => <$structure>::free_some(at(address), budget), )*
                _ => none(kind),
            }
        }

        /// A copy that shares nothing with the original.
        pub(super) fn copy(kind: ValueKind, address: u64) -> u64 {
            match kind {
                // SAFETY: E4: the entry names a live structure of its kind.
                $( ValueKind::$kind => super::address(unsafe { at::<$structure>(address).as_ref() }.copy()), )*
                _ => none(kind),
            }
        }

        /// How much there is to free.
        pub(super) fn len(kind: ValueKind, address: u64) -> usize {
            match kind {
                // SAFETY: as in `copy`.
                $( ValueKind::$kind => unsafe { at::<$structure>(address).as_ref() }.len(), )*
                _ => none(kind),
            }
        }

        /// Bytes in the arena.
        pub(super) fn memory_bytes(kind: ValueKind, address: u64, samples: usize) -> usize {
            match kind {
                // SAFETY: as in `copy`.
                $( ValueKind::$kind => unsafe { at::<$structure>(address).as_ref() }.memory_bytes(samples), )*
                _ => none(kind),
            }
        }

        /// Compares everything that must agree.
        pub(super) fn check(kind: ValueKind, address: u64) -> Result<(), String> {
            match kind {
                $( ValueKind::$kind => {
                    if !shm::arena::Arena.contains(address, size_of::<$structure>()) {
                        return Err(format!("a {kind:?} lies outside the arena (K3)"));
                    }
                    // SAFETY: as in `copy`; it lies in the arena.
                    unsafe { at::<$structure>(address).as_ref() }.check()
                } )*
                _ => Err(format!("a {kind:?} has no structure")),
            }
        }
    };
}

structures! {
    List => List,
    Set => SetTable,
    SortedSet => SortedSet,
    Hash => Table,
    Stream => Stream,
}

#[cold]
fn none<R>(kind: ValueKind) -> R {
    panic!("a {kind:?} has no structure (E4)")
}

/// What OBJECT ENCODING shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A number.
    Int,
    /// A short string that was never modified in place.
    Embstr,
    /// Any other string.
    Raw,
    /// Packed elements.
    Listpack,
    /// Packed fields of a hash, some of which expire.
    ListpackEx,
    /// Sorted integers.
    Intset,
    /// A large set or hash.
    Hashtable,
    /// A large list.
    Quicklist,
    /// A large sorted set.
    Skiplist,
    /// A stream.
    Stream,
}

impl Encoding {
    /// The name that Redis gives it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Int => "int",
            Encoding::Embstr => "embstr",
            Encoding::Raw => "raw",
            Encoding::Listpack => "listpack",
            Encoding::ListpackEx => "listpackex",
            Encoding::Intset => "intset",
            Encoding::Hashtable => "hashtable",
            Encoding::Quicklist => "quicklist",
            Encoding::Skiplist => "skiplist",
            Encoding::Stream => "stream",
        }
    }
}

/// What a collection in this form is shown as.
pub(super) fn encoding(kind: ValueKind, form: Form) -> Encoding {
    match (kind, form.0) {
        (ValueKind::String, _) => Encoding::Raw,
        (ValueKind::List | ValueKind::SortedSet | ValueKind::Hash, 0) | (ValueKind::Set, 1) => {
            Encoding::Listpack
        }
        (ValueKind::List, _) => Encoding::Quicklist,
        (ValueKind::Set, 0) => Encoding::Intset,
        (ValueKind::Hash, 1) => Encoding::ListpackEx,
        (ValueKind::Set | ValueKind::Hash, _) => Encoding::Hashtable,
        (ValueKind::SortedSet, _) => Encoding::Skiplist,
        (ValueKind::Stream, _) => Encoding::Stream,
    }
}
