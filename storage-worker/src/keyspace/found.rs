//! What a lookup finds: a view of one entry, and what OBJECT and MEMORY say about it.

use std::marker::PhantomData;

use proto::time::UnixMillis;

use super::clock::{self, ClockMode};
use super::entry::{Entry, Storage};
use super::kind::{Form, ValueKind};
use super::structure::{self, Encoding, Held};
pub use crate::collections::StringRef;

/// Longest string that Redis keeps in one piece with its object, and shows as `embstr`.
const EMBEDDED_MAX: usize = 44;

/// A live key. It borrows the keyspace, so that nothing can change under it.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    entry: Entry,
    mode: ClockMode,
    now: UnixMillis,
    keyspace: PhantomData<&'a ()>,
}

impl<'a> Found<'a> {
    pub(super) fn new(entry: Entry, mode: ClockMode, now: UnixMillis) -> Found<'a> {
        Found {
            entry,
            mode,
            now,
            keyspace: PhantomData,
        }
    }

    /// The name of the key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.entry.key()
    }

    /// Type of the value.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        self.entry.kind()
    }

    /// How the type keeps the value.
    #[inline]
    #[must_use]
    pub fn form(&self) -> Form {
        self.entry.label().form()
    }

    /// Whether the value is a structure; otherwise it is packed bytes.
    #[inline]
    #[must_use]
    pub fn is_structure(&self) -> bool {
        self.entry.storage() == Storage::Structure
    }

    /// The packed bytes of a collection that is no structure.
    ///
    /// # Panics
    /// If it is one.
    #[inline]
    #[must_use]
    pub fn packed(&self) -> &'a [u8] {
        assert!(!self.is_structure(), "a structure is not packed");
        self.entry.bytes()
    }

    /// The structure that the value is.
    ///
    /// # Panics
    /// If it is none, or one of another kind.
    #[inline]
    #[must_use]
    pub fn structure<T: Held>(&self) -> &'a T {
        // SAFETY: E4; what is found borrows the keyspace, so nobody changes it.
        unsafe { structure::of::<T>(self.entry).as_ref() }
    }

    /// The value of a string.
    #[inline]
    #[must_use]
    pub fn string(&self) -> StringRef<'a> {
        match self.entry.storage() {
            Storage::Integer => StringRef::Int(self.entry.integer()),
            _ => StringRef::Bytes(self.packed()),
        }
    }

    /// How Redis would say that the value is kept.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        if self.kind() != ValueKind::String {
            return structure::encoding(self.kind(), self.form());
        }
        match self.entry.storage() {
            Storage::Integer => Encoding::Int,
            Storage::Inline if !self.entry.is_raw() && self.entry.bytes().len() <= EMBEDDED_MAX => {
                Encoding::Embstr
            }
            _ => Encoding::Raw,
        }
    }

    /// When the key will be gone.
    #[must_use]
    pub fn expiry(&self) -> Option<UnixMillis> {
        self.entry.expiry()
    }

    /// Seconds since the last use: OBJECT IDLETIME, meaningful while clocks count recency.
    #[must_use]
    pub fn idle_seconds(&self) -> u32 {
        clock::idle_seconds(self.entry.clock(), self.now)
    }

    /// The use counter, decayed to now: OBJECT FREQ, meaningful while clocks count frequency.
    #[must_use]
    pub fn frequency(&self) -> u8 {
        clock::frequency(self.mode, self.entry.clock(), self.now)
    }

    /// Bytes that the key takes in the arena, with its share of the dictionary and, if it expires,
    /// of the wheel: MEMORY USAGE. Of a large collection about `samples` elements are looked at where
    /// their sum is not known; 0: all.
    #[must_use]
    pub fn memory_bytes(&self, samples: usize) -> usize {
        // A word at the average load of the tables takes ten bytes, one in the wheel eight.
        let index = if self.entry.has_expiry() { 18 } else { 10 };
        self.entry.memory_bytes(samples) + index
    }
}
