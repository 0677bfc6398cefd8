//! Finding and removing keys, and the stages of prefetching.
//!
//! A lookup costs three dependent cache misses: the slot's dictionary, the bucket, the entry. A batch
//! of commands hides them: for the commands ahead, the worker calls the three stages below in turn,
//! some commands apart; each reads only what the stage before has brought. Two more stages do the same
//! inside a big collection for the element that a command names.

use super::dictionary::{Dictionary, Place, prefetch};
use super::entry::{Entry, Storage};
use super::{Access, Found, Freeing, Key, Keyspace, ValueKind, clock, structure};
use proto::time::UnixMillis;
use std::ptr::NonNull;

/// Cache lines of an element that are fetched: most are names and short values.
const INNER_LINES: usize = 2;

/// The table of a collection's elements, between two stages of prefetching.
#[derive(Clone, Copy, Debug)]
pub struct Inner(NonNull<Dictionary>);

impl Keyspace {
    /// First stage: the header of the slot's dictionary.
    #[inline]
    pub fn prefetch_slot(&self, key: &Key<'_>) {
        if let Some(dictionary) = self.dictionary_at(key.db, key.slot) {
            prefetch(dictionary.as_ptr().cast());
        }
    }

    /// Second stage: the bucket.
    #[inline]
    pub fn prefetch_bucket(&self, key: &Key<'_>) {
        if let Some(dictionary) = self.dictionary_at(key.db, key.slot) {
            // SAFETY: it is live, and this handle is its only user.
            unsafe { dictionary.as_ref() }.prefetch_bucket(key.hash);
        }
    }

    /// Third stage: the entry.
    #[inline]
    pub fn prefetch_entry(&self, key: &Key<'_>) {
        if let Some(dictionary) = self.dictionary_at(key.db, key.slot) {
            // SAFETY: it is live, and this handle is its only user.
            unsafe { dictionary.as_ref() }.prefetch_element(key.hash, self.entry_lines);
        }
    }

    /// Fourth stage, for commands that name an element of a collection: the table of the elements, if
    /// the key probably has one, and the bucket that the element's hash leads to. Good until the next
    /// change.
    #[inline]
    pub fn prefetch_inner_bucket(&self, key: &Key<'_>, element_hash: u64) -> Option<Inner> {
        let dictionary = self.dictionary_at(key.db, key.slot)?;
        // SAFETY: it is live, and this handle is its only user.
        let entry = Entry::new(unsafe { dictionary.as_ref() }.likely(key.hash)?);
        if entry.storage() != Storage::Structure {
            return None;
        }
        let inner = structure::dictionary(entry.kind(), entry.structure())?;
        // SAFETY: E4: the entry names a live structure, and this handle is its only user.
        unsafe { inner.as_ref() }.prefetch_home(element_hash);
        Some(Inner(inner))
    }

    /// Fifth stage: the element.
    #[inline]
    pub fn prefetch_inner_element(&self, inner: Inner, element_hash: u64) {
        // SAFETY: nothing has changed since the fourth stage.
        unsafe { inner.0.as_ref() }.prefetch_likely(element_hash, INNER_LINES);
    }

    /// The place of a key, dead or alive.
    #[inline]
    pub(super) fn place_of(&mut self, key: &Key<'_>) -> Option<Place> {
        let mut dictionary = self.dictionary_at(key.db, key.slot)?;
        // SAFETY: it is live, and this handle is its only user.
        let dictionary = unsafe { dictionary.as_mut() };
        dictionary.find(key.hash, |element| Entry::new(element).key() == key.bytes)
    }

    /// The place of a live key; a dead one is removed on the way (inside the caller's bracket).
    #[inline]
    pub(super) fn live_place_of(&mut self, key: &Key<'_>) -> Option<Place> {
        let place = self.place_of(key)?;
        let entry = Entry::new(place.element());
        if self.is_dead(entry) {
            self.expire(key.db, key.slot, key.hash, place);
            return None;
        }
        Some(place)
    }

    #[inline]
    pub(super) fn is_dead(&self, entry: Entry) -> bool {
        entry.expiry().is_some_and(|at| at.has_passed(self.now))
    }

    /// Looks a key up at the time `now`. A key whose time has come is removed and not found.
    #[inline]
    pub fn find(&mut self, key: &Key<'_>, now: UnixMillis, access: Access) -> Option<Found<'_>> {
        self.now = now;
        let is_read = u64::from(access != Access::Write);
        let Some(place) = self.place_of(key) else {
            self.counters.misses += is_read;
            return None;
        };
        let entry = Entry::new(place.element());
        if self.is_dead(entry) {
            self.counters.misses += is_read;
            self.expire_bracketed(key, place);
            return None;
        }
        self.counters.hits += is_read;
        if access != Access::Peek {
            self.touch(entry);
        }
        Some(Found::new(entry, self.clock_mode, now))
    }

    /// Looks at a key that was found at this time already, together with others: nothing changes.
    pub fn look(&self, key: &Key<'_>, now: UnixMillis) -> Option<Found<'_>> {
        let dictionary = self.dictionary_at(key.db, key.slot)?;
        // SAFETY: it is live, and this handle, its only user, is borrowed.
        let dictionary = unsafe { dictionary.as_ref() };
        let element = dictionary.get(key.hash, |element| Entry::new(element).key() == key.bytes)?;
        let entry = Entry::new(element);
        let is_dead = entry.expiry().is_some_and(|at| at.has_passed(now));
        (!is_dead).then(|| Found::new(entry, self.clock_mode, now))
    }

    /// Counts a use of the entry.
    #[inline]
    pub(super) fn touch(&mut self, entry: Entry) {
        let old = entry.clock();
        let random = match self.clock_mode {
            clock::ClockMode::Recency => 0,
            clock::ClockMode::Frequency { .. } => self.next_random(),
        };
        let new = clock::touched(self.clock_mode, old, self.now, random);
        // A line that is only read stays clean: reads of a hot key write once per second.
        if new != old {
            entry.set_clock(new);
        }
    }

    /// Removes a key; says whether it was there and alive.
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        let Some(place) = self.live_place_of(key) else {
            return false;
        };
        let entry = self.remove_at(key.db, key.slot, key.hash, place);
        self.free_entry(entry, Freeing::Plain);
        true
    }

    /// Removes a key, as lazily as a client can ask for; says whether it was there and alive.
    pub fn unlink(&mut self, key: &Key<'_>) -> bool {
        let Some(place) = self.live_place_of(key) else {
            return false;
        };
        let entry = self.remove_at(key.db, key.slot, key.hash, place);
        self.free_entry(entry, Freeing::Lazy);
        true
    }

    /// Takes an entry out of dictionary, wheel and counts, without freeing it.
    pub(super) fn remove_at(&mut self, db: u16, slot: u16, hash: u64, place: Place) -> Entry {
        let entry = Entry::new(place.element());
        if entry.has_expiry() {
            self.forget_expiry(db, entry);
        }
        if entry.has_field_expiry() {
            self.forget_fields(db, entry);
        }
        if entry.kind() == ValueKind::Stream {
            self.hook.stream_removed(db, entry.key());
        }
        self.dictionary_mut(db, slot).remove(hash, place);
        self.count_key(db, slot, false);
        entry
    }

    /// Adds an entry under a name that is not there.
    pub(super) fn insert_new(&mut self, key: &Key<'_>, entry: Entry) {
        entry.set_clock(clock::fresh(self.clock_mode, self.now));
        self.insert_kept(key, entry);
    }

    /// Adds an entry, as it is, under a name that is not there.
    pub(super) fn insert_kept(&mut self, key: &Key<'_>, entry: Entry) {
        if let Some(at) = entry.expiry() {
            self.note_expiry(key.db, entry, at);
        }
        if let Some(at) = entry.field_expiry() {
            self.note_fields(key.db, entry, at);
        }
        let hasher = self.hasher();
        self.dictionary_mut(key.db, key.slot)
            .insert(key.hash, entry.object(), hasher);
        self.count_key(key.db, key.slot, true);
    }
}
