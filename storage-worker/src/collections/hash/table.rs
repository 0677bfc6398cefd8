//! A large hash: its fields in a dictionary, and the schedule of those that expire.
//!
//! ```text
//!   Table (56 bytes) -> dictionary -> Field (name, value)
//!                    -> schedule  -> entry (time) <-> Field
//! ```
//!
//! Invariants
//!   T1  a field knows a number if and only if the schedule names it under that number.
//!   T2  `bytes` is the sum of what the fields take.
//!   T3  the dictionary finds a field by the hash of its name under `seed`.
//!
//! Cost: about 13 bytes per field besides name and value, 16 more for one that expires. Finding a
//! field touches three cache lines: header, bucket, field.
//! Not here: small hashes (`packed`), what a command makes of an expired field (`commands::hash`).

use std::ptr::NonNull;

use proto::time::UnixMillis;
use shm::arena::{Arena, usable_size};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Ttl;
use super::field::Field;
use super::schedule::Schedule;
use crate::collections::{Owned, Structure};
use crate::keyspace::dictionary::{Dictionary, Element, Place, Position};

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    dictionary: Dictionary,
    seed: u64,
    /// What all fields take in the arena.
    bytes: u64,
    schedule: Schedule,
}

/// A field that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// When it expires.
    pub expiry: Option<UnixMillis>,
}

fn hash(seed: u64, name: &[u8]) -> u64 {
    xxh3_64_with_seed(name, seed)
}

impl Table {
    /// What finds elements by the system-wide hash of their names.
    #[inline]
    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// An empty table in the arena. `seed` is the hash seed of the whole system.
    #[must_use]
    pub fn create(seed: u64) -> NonNull<Self> {
        let table = Arena.take(size_of::<Self>()).cast::<Self>();
        // SAFETY: the object has the size of a table.
        unsafe {
            table.write(Self {
                dictionary: Dictionary::default(),
                seed,
                bytes: 0,
                schedule: Schedule::default(),
            });
        }
        table
    }

    /// An empty table that is nobody's yet.
    #[must_use]
    pub fn create_owned(seed: u64) -> Owned<Self> {
        Owned::new(Self::create(seed))
    }

    /// A table that `fill` fills.
    #[must_use]
    pub fn build(seed: u64, fill: impl FnOnce(&mut Self)) -> NonNull<Self> {
        let mut table = Self::create(seed);
        // SAFETY: it was just made, and nobody else knows it.
        fill(unsafe { table.as_mut() });
        table
    }

    /// When the first field expires.
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<UnixMillis> {
        self.schedule.next()
    }

    #[inline]
    fn found<'a>(&self, field: Field) -> Found<'a> {
        Found {
            name: field.name(),
            value: field.value(),
            expiry: field.number().map(|number| self.schedule.time(number)),
        }
    }

    /// The field with this name, expired or not.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Found<'_>> {
        let is_it = |element| Field::new(element).name() == name;
        let element = self.dictionary.get(hash(self.seed, name), is_it)?;
        Some(self.found(Field::new(element)))
    }

    /// Asks for the memory that `get` will look at first.
    #[inline]
    pub fn prefetch(&self, name: &[u8]) {
        self.dictionary.prefetch_bucket(hash(self.seed, name));
    }

    fn place(&mut self, name: &[u8]) -> Option<(u64, Place)> {
        let hash = hash(self.seed, name);
        let is_it = |element| Field::new(element).name() == name;
        self.dictionary.find(hash, is_it).map(|place| (hash, place))
    }

    /// Writes a field; says whether it is new.
    pub fn set(&mut self, name: &[u8], value: &[u8], ttl: Ttl) -> bool {
        let Some((_, place)) = self.place(name) else {
            self.insert(name, value, ttl.of_new());
            return true;
        };
        let field = Field::new(place.element());
        self.bytes -= field.memory_bytes() as u64;
        let written = field.with_value(value);
        self.bytes += written.memory_bytes() as u64;
        if written != field {
            place.replace(written.object());
            if let Some(number) = written.number() {
                self.schedule.moved(number, written);
            }
        }
        match ttl {
            Ttl::Keep => {}
            Ttl::Clear => self.change_expiry(place, None),
            Ttl::At(at) => self.change_expiry(place, Some(at)),
        }
        false
    }

    /// Adds a field that is not there.
    pub fn insert(&mut self, name: &[u8], value: &[u8], expiry: Option<UnixMillis>) {
        let field = Field::create(name, value, expiry.map(|_| 0));
        self.bytes += field.memory_bytes() as u64;
        if let Some(at) = expiry {
            self.schedule.insert(field, at);
        }
        let seed = self.seed;
        self.dictionary
            .insert(hash(seed, name), field.object(), move |element| {
                hash(seed, Field::new(element).name())
            });
    }

    /// Gives a field another expiry; says whether the field is there.
    pub fn set_expiry(&mut self, name: &[u8], expiry: Option<UnixMillis>) -> bool {
        let Some((_, place)) = self.place(name) else {
            return false;
        };
        self.change_expiry(place, expiry);
        true
    }

    fn change_expiry(&mut self, place: Place, expiry: Option<UnixMillis>) {
        let field = Field::new(place.element());
        match (field.number(), expiry) {
            (None, None) => {}
            (Some(number), Some(at)) => self.schedule.set_time(number, at),
            (Some(number), None) => {
                self.schedule.remove(number);
                self.renumber(place, None);
            }
            (None, Some(at)) => {
                let moved = self.renumber(place, Some(0));
                self.schedule.insert(moved, at);
            }
        }
    }

    fn renumber(&mut self, place: Place, number: Option<u32>) -> Field {
        let field = Field::new(place.element());
        self.bytes -= field.memory_bytes() as u64;
        let moved = field.with_number(number);
        self.bytes += moved.memory_bytes() as u64;
        place.replace(moved.object());
        moved
    }

    /// Removes a field; says whether it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some((hash, place)) = self.place(name) else {
            return false;
        };
        self.remove_at(hash, place);
        true
    }

    fn remove_at(&mut self, hash: u64, place: Place) {
        let field = Field::new(place.element());
        if let Some(number) = field.number() {
            self.schedule.remove(number);
        }
        self.dictionary.remove(hash, place);
        self.bytes -= field.memory_bytes() as u64;
        field.free();
    }

    /// Removes up to `budget` fields whose time has come, and calls `gone` with their names; returns
    /// how many.
    pub fn remove_expired(
        &mut self,
        now: UnixMillis,
        budget: usize,
        mut gone: impl FnMut(&[u8]),
    ) -> usize {
        let mut removed = 0;
        while removed < budget && self.next_expiry().is_some_and(|at| at.has_passed(now)) {
            let field = self.schedule.first();
            let field = field.expect("a schedule with a next time has a first field (S1)");
            gone(field.name());
            let hash = hash(self.seed, field.name());
            let place = self
                .dictionary
                .find(hash, |element| element == field.object());
            let place = place.expect("a field of the schedule is in the dictionary (T1)");
            self.remove_at(hash, place);
            removed += 1;
        }
        removed
    }

    /// All fields, expired or not.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Found<'_>> {
        self.dictionary
            .iter()
            .map(|element| self.found(Field::new(element)))
    }

    /// Visits about `want` fields from a position on; returns where to go on, or `None` at the end.
    pub fn scan(
        &self,
        from: Position,
        want: usize,
        mut visit: impl FnMut(Found<'_>),
    ) -> Option<Position> {
        self.dictionary.scan(from, want, |element| {
            visit(self.found(Field::new(element)));
        })
    }

    /// A field by chance, each equally likely.
    pub fn random(&self, random: impl FnMut() -> u64) -> Option<Found<'_>> {
        let element = self.dictionary.random(random)?;
        Some(self.found(Field::new(element)))
    }

    fn free_object(this: NonNull<Self>) {
        // SAFETY: taken by `create` with this size; the caller forgets it.
        unsafe { Arena.give(this.cast(), size_of::<Self>()) }
    }

    fn hash_of(&self, element: Element) -> u64 {
        hash(self.seed, Field::new(element).name())
    }
}

impl Structure for Table {
    fn free(this: NonNull<Self>) {
        while Self::free_some(this, usize::MAX) {}
    }

    fn free_some(mut this: NonNull<Self>, budget: usize) -> bool {
        // SAFETY: the caller owns the table and gives it up.
        let table = unsafe { this.as_mut() };
        // Numbers mean nothing any more: the schedule goes first, as a whole (12 bytes per field).
        table.schedule.free();
        let is_more = table
            .dictionary
            .drain_some(budget, |element| Field::new(element).free());
        if !is_more {
            Self::free_object(this);
        }
        is_more
    }

    fn copy(&self) -> NonNull<Self> {
        Self::build(self.seed, |table| {
            for field in self.iter() {
                table.insert(field.name, field.value, field.expiry);
            }
        })
    }

    fn len(&self) -> usize {
        self.dictionary.len()
    }

    fn memory_bytes(&self, _samples: usize) -> usize {
        usable_size(size_of::<Self>())
            + self.dictionary.table_bytes()
            + self.schedule.memory_bytes()
            + self.bytes as usize
    }

    fn check(&self) -> Result<(), String> {
        self.dictionary.check(|element| self.hash_of(element))?;
        let (mut bytes, mut expiring) = (0, 0);
        for element in self.dictionary.iter() {
            let field = Field::new(element);
            field.check()?;
            bytes += field.memory_bytes() as u64;
            expiring += usize::from(field.expires());
        }
        if bytes != self.bytes {
            return Err(format!(
                "the fields of a hash take {bytes} bytes, not {} (T2)",
                self.bytes
            ));
        }
        if expiring != self.schedule.len() {
            return Err("fields of a hash are missing in its schedule (T1)".to_owned());
        }
        self.schedule.check()
    }
}
