//! Fields of hashes that expire: when the next one of each hash does, removal on access, and removal in
//! the background.
//!
//! Each database has a second wheel, which names the hashes whose fields expire. The time by which it
//! does so is a lower bound: a field that is removed or loses its time leaves it as it is, and when the
//! time has come, the hash is looked at and put where its next field belongs. So most commands do not
//! touch the wheel, and a hash with thousands of times is in it once.
//!
//! `INFO` counts what is in the wheel (`subexpiry`), as Redis does, with the same lower bounds.
//!
//! Not here: the times of the fields (`collections::hash`), who sees an expired field (`commands::hash`).

use proto::slot::slot_of;
use proto::time::UnixMillis;

use super::dictionary::Place;
use super::entry::Entry;
use super::kind::ValueKind;
use super::structure;
use super::times::{ExpiringFields, Times};
use super::wheel::{Due, Wheel};
use super::{Key, Keyspace, address, hash, pointer};
use crate::collections::Structure;
use crate::collections::hash::{Packed, Table, form, packed};

impl Keyspace {
    /// The wheel of the fields of a database, if it has one.
    fn fields_wheel(&mut self, db: u16) -> Option<&mut Wheel<ExpiringFields>> {
        let mut wheel = pointer::<Wheel<ExpiringFields>>(self.database(usize::from(db)).fields)?;
        // SAFETY: it is live, and this handle is its only user.
        Some(unsafe { wheel.as_mut() })
    }

    /// Hashes of a database that have, or had, fields which expire.
    #[must_use]
    pub fn expiring_hashes(&self, db: u16) -> u64 {
        let database = self.existing(db);
        let wheel = database.and_then(|database| pointer::<Wheel<ExpiringFields>>(database.fields));
        // SAFETY: it is live, and this handle is its only user.
        wheel.map_or(0, |wheel| unsafe { wheel.as_ref() }.len())
    }

    /// Puts an entry that just got a time for its fields into the wheel (K5).
    pub(super) fn note_fields(&mut self, db: u16, entry: Entry, at: UnixMillis) {
        if self.database(usize::from(db)).fields == 0 {
            let wheel = Wheel::<ExpiringFields>::create(self.now);
            self.database_mut(usize::from(db)).fields = address(wheel);
        }
        self.note_time(at);
        if let Some(wheel) = self.fields_wheel(db) {
            wheel.insert(entry.expiring_fields(), at);
        }
    }

    /// Takes an entry that has a time for its fields out of the wheel.
    pub(super) fn forget_fields(&mut self, db: u16, entry: Entry) {
        if let Some(wheel) = self.fields_wheel(db) {
            wheel.remove(entry.expiring_fields());
        }
    }

    /// The part of `replace` that concerns the fields.
    pub(super) fn replace_fields(&mut self, db: u16, old: Entry, new: Entry) {
        match (old.field_expiry(), new.field_expiry()) {
            (None, None) => {}
            (Some(_), None) => self.forget_fields(db, old),
            (None, Some(at)) => self.note_fields(db, new, at),
            (Some(before), Some(at)) => {
                Wheel::moved(old.expiring_fields(), new.expiring_fields());
                if before != at
                    && let Some(wheel) = self.fields_wheel(db)
                {
                    wheel.retime(new.expiring_fields(), at);
                }
            }
        }
    }

    /// Gives the entry at `place` another time for its fields; it moves if that changes its size.
    pub(super) fn change_field_expiry(
        &mut self,
        db: u16,
        place: Place,
        fields: Option<UnixMillis>,
    ) {
        let entry = Entry::new(place.element());
        let before = entry.field_expiry();
        match fields {
            _ if before == fields => {}
            Some(at) if before.is_some() => {
                entry.set_field_expiry(at);
                if let Some(wheel) = self.fields_wheel(db) {
                    wheel.retime(entry.expiring_fields(), at);
                }
            }
            _ => {
                let times = Times {
                    fields,
                    ..entry.times()
                };
                let moved = Entry::create(entry.key(), times, entry.value());
                self.replace(db, place, moved);
            }
        }
    }

    /// Puts a hash that was just made into the wheel if fields of it expire.
    #[inline]
    pub(super) fn note_new_fields(&mut self, db: u16, place: Place) {
        let entry = Entry::new(place.element());
        if entry.kind() == ValueKind::Hash && entry.label().form().0 != form::PAIRS {
            self.change_field_expiry(db, place, next_of(entry));
        }
    }

    /// Says when the first field of a hash expires, or that none does. The time may be too early, but
    /// not too late.
    pub fn set_field_expiry(&mut self, key: &Key<'_>, next: Option<UnixMillis>) {
        if let Some(place) = self.place_of(key) {
            self.change_field_expiry(key.db, place, next);
        }
    }

    /// Counts fields that a command removed because their time had come.
    pub fn count_expired_fields(&mut self, count: u64) {
        self.counters.expired_fields += count;
    }

    /// Removes those of the named fields of a hash whose time has come, and the key with the last one,
    /// inside a bracket of its own.
    #[cold]
    pub fn expire_fields<'n>(&mut self, key: &Key<'_>, names: impl Iterator<Item = &'n [u8]>) {
        self.hook.begin_write(key.db, key.slot);
        for name in names {
            self.expire_field(key, name);
        }
        self.hook.end_write();
    }

    fn expire_field(&mut self, key: &Key<'_>, name: &[u8]) {
        let now = self.now;
        // The key may be gone with an earlier field.
        let Some(mut value) = self.hash_at(key) else {
            return;
        };
        let width = form::width(value.form().0);
        let expiry = match width {
            Some(width) => {
                let found = Packed::new(value.packed(), width).get(name);
                found.and_then(|(_, expiry)| expiry)
            }
            None => {
                let found = value.structure::<Table>().get(name);
                found.and_then(|field| field.expiry)
            }
        };
        if !expiry.is_some_and(|at| at.has_passed(now)) {
            return;
        }
        let left = match width {
            Some(width) => {
                packed::remove(&mut value, width, name);
                Packed::new(value.packed(), width).len()
            }
            None => {
                let table = value.structure_mut::<Table>();
                table.remove(name);
                table.len()
            }
        };
        if left == 0 {
            value.remove();
        }
        self.counters.expired_fields += 1;
        self.hook.field_expired(key.db, key.slot, key.bytes, name);
    }

    /// The hash at a key, without touching its clock.
    fn hash_at(&mut self, key: &Key<'_>) -> Option<super::ValueMut<'_>> {
        let place = self.place_of(key)?;
        let is_hash = Entry::new(place.element()).kind() == ValueKind::Hash;
        is_hash.then(|| self.value_at(key, place))
    }

    /// Removes all fields of a hash whose time has come, and the key with the last one, inside a
    /// bracket of its own.
    #[cold]
    pub fn expire_all_fields(&mut self, key: &Key<'_>) {
        self.hook.begin_write(key.db, key.slot);
        self.expire_some_fields(key, usize::MAX);
        self.hook.end_write();
    }

    /// Removes up to `budget` fields of a hash whose time has come, and the key with the last one;
    /// returns how many.
    fn expire_some_fields(&mut self, key: &Key<'_>, budget: usize) -> usize {
        let now = self.now;
        let Some(place) = self.place_of(key) else {
            return 0;
        };
        let entry = Entry::new(place.element());
        let hook = &mut self.hook;
        let mut gone = |name: &[u8]| hook.field_expired(key.db, key.slot, key.bytes, name);
        let (removed, left) = match form::width(entry.label().form().0) {
            None => {
                let mut table = structure::of::<Table>(entry);
                // SAFETY: E4; this handle is the only user of the keyspace.
                let table = unsafe { table.as_mut() };
                (table.remove_expired(now, budget, gone), table.len())
            }
            Some(width) => {
                let hash = Packed::new(entry.bytes(), width);
                let is_over = |at: UnixMillis| at.has_passed(now);
                let expired = hash
                    .iter()
                    .take_while(|field| field.expiry.is_some_and(is_over));
                let (mut count, len) = (0, hash.len());
                for field in expired.take(budget) {
                    field.name.with_bytes(&mut gone);
                    count += 1;
                }
                if count < len {
                    packed::remove_first(&mut self.value_at(key, place), count);
                }
                (count, len - count)
            }
        };
        self.counters.expired_fields += removed as u64;
        if left == 0 {
            self.value_at(key, place).remove();
        }
        removed
    }

    /// Removes fields of a database whose time has come: part of `expire_slice`. A step is one field
    /// removed, one hash looked at, or one moved down the wheel.
    pub(super) fn expire_hashes(&mut self, db: u16, now: UnixMillis, budget: &mut usize) -> bool {
        let mut name = Vec::new();
        loop {
            let Some(wheel) = self.fields_wheel(db) else {
                return false;
            };
            match wheel.advance(now, budget) {
                Due::Nothing => return false,
                Due::Later => return true,
                Due::Entry(_) if *budget == 0 => return true,
                Due::Entry(ExpiringFields(entry)) => {
                    // The entry may move.
                    name.clear();
                    name.extend_from_slice(entry.key());
                    *budget -= 1;
                    self.expire_hash(db, &name, budget);
                }
            }
        }
    }

    /// Removes fields of a hash that the wheel found, and puts it where its next field belongs.
    fn expire_hash(&mut self, db: u16, name: &[u8], budget: &mut usize) {
        let key = Key {
            db,
            slot: slot_of(name),
            bytes: name,
            hash: hash(self.seed, name),
        };
        let place = self.place_of(&key);
        let place = place.expect("an entry of the wheel is in the dictionary (K5)");
        if self.is_dead(Entry::new(place.element())) {
            return self.expire(db, key.slot, key.hash, place);
        }
        // At least one, so that a slice always gets on.
        let removed = self.expire_some_fields(&key, (*budget).max(1));
        *budget = budget.saturating_sub(removed);
        if let Some(place) = self.place_of(&key) {
            let next = next_of(Entry::new(place.element()));
            self.change_field_expiry(db, place, next);
        }
    }
}

/// When the first field of a hash expires.
pub(super) fn next_of(entry: Entry) -> Option<UnixMillis> {
    match form::width(entry.label().form().0) {
        Some(width) => Packed::new(entry.bytes(), width).next_expiry(),
        // SAFETY: E4; the keyspace is borrowed by the caller, and nothing changes meanwhile.
        None => unsafe { structure::of::<Table>(entry).as_ref() }.next_expiry(),
    }
}
