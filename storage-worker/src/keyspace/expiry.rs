//! Expiry: times of single keys, removal on access, and removal in the background.

use proto::slot::slot_of;
use proto::time::UnixMillis;

use super::dictionary::Place;
use super::entry::Entry;
use super::times::{ExpiringFields, Times};
use super::wheel::{Due, Wheel};
use super::{Key, Keyspace, address, hash, pointer};

impl Keyspace {
    /// Puts an entry that just got an expiry into the wheel (K2).
    pub(super) fn note_expiry(&mut self, db: u16, entry: Entry, at: UnixMillis) {
        if self.database(usize::from(db)).wheel == 0 {
            let wheel = Wheel::<Entry>::create(self.now);
            self.database_mut(usize::from(db)).wheel = address(wheel);
        }
        self.database_mut(usize::from(db)).expires += 1;
        self.note_time(at);
        if let Some(wheel) = self.wheel(db) {
            wheel.insert(entry, at);
        }
    }

    #[inline]
    pub(super) fn note_time(&mut self, at: UnixMillis) {
        self.noted_expiry = Some(self.noted_expiry.map_or(at, |noted| noted.min(at)));
    }

    /// The earliest time that a key or field got since the last call.
    #[inline]
    pub fn take_noted_expiry(&mut self) -> Option<UnixMillis> {
        self.noted_expiry.take()
    }

    /// Takes an entry that has an expiry out of the wheel.
    pub(super) fn forget_expiry(&mut self, db: u16, entry: Entry) {
        self.database_mut(usize::from(db)).expires -= 1;
        if let Some(wheel) = self.wheel(db) {
            wheel.remove(entry);
        }
    }

    /// Gives the entry at `place` another expiry; the entry moves if that changes its size.
    pub(super) fn change_expiry(&mut self, db: u16, place: Place, expiry: Option<UnixMillis>) {
        let entry = Entry::new(place.element());
        let times = Times {
            expiry,
            ..entry.times()
        };
        if let Some(at) = expiry
            && times.bytes() == entry.times_bytes()
        {
            entry.set_expiry(at);
            if let Some(wheel) = self.wheel(db) {
                wheel.retime(entry, at);
            }
            return;
        }
        if expiry.is_some() || entry.has_expiry() {
            let moved = Entry::create(entry.key(), times, entry.value());
            self.replace(db, place, moved);
        }
    }

    /// Puts an entry with the same key into the place of another one: clock and expiry index follow,
    /// and the old object (not a buffer outside) is freed.
    pub(super) fn replace(&mut self, db: u16, place: Place, new: Entry) {
        let old = Entry::new(place.element());
        new.set_clock(old.clock());
        match (old.expiry(), new.expiry()) {
            (None, None) => {}
            (Some(_), None) => self.forget_expiry(db, old),
            (None, Some(at)) => self.note_expiry(db, new, at),
            (Some(before), Some(at)) => {
                Wheel::moved(old, new);
                if before != at
                    && let Some(wheel) = self.wheel(db)
                {
                    wheel.retime(new, at);
                }
            }
        }
        if old.has_field_expiry() || new.has_field_expiry() {
            self.replace_fields(db, old, new);
        }
        place.replace(new.object());
        old.free_object();
    }

    /// Sets or (with `None`) removes the expiry of a key; says whether the key is there. A time that
    /// has passed already is allowed: the key is then gone with the next access.
    pub fn set_expiry(&mut self, key: &Key<'_>, expiry: Option<UnixMillis>) -> bool {
        let Some(place) = self.live_place_of(key) else {
            return false;
        };
        self.change_expiry(key.db, place, expiry);
        true
    }

    /// Removes a key whose time has come, inside a bracket of its own.
    #[cold]
    pub(super) fn expire_bracketed(&mut self, key: &Key<'_>, place: Place) {
        self.hook.begin_write(key.db, key.slot);
        self.expire(key.db, key.slot, key.hash, place);
        self.hook.end_write();
    }

    /// Removes a key whose time has come.
    #[cold]
    pub(super) fn expire(&mut self, db: u16, slot: u16, hash: u64, place: Place) {
        self.counters.expired += 1;
        let entry = self.remove_at(db, slot, hash, place);
        self.hook.expired(db, slot, entry.key());
        self.free_entry(entry, self.lazy_free.expired);
    }

    /// Removes keys whose time has come. A step is one key removed, or one moved down the wheel;
    /// at most `budget` of them are done (about 0.2 us each; 500 took 20 us, at most 0.4 ms). The
    /// slice is bracketed, and each removal reported to the hook. Says whether there is more to do.
    pub fn expire_slice(&mut self, now: UnixMillis, budget: usize) -> bool {
        self.now = now;
        let mut budget = budget;
        let count = self.database_count();
        for _ in 0..count {
            let db = self.expiry_database % count;
            if self.expire_database(db as u16, now, &mut budget) {
                return true;
            }
            self.expiry_database = (db + 1) % count;
        }
        false
    }

    /// One database's part of `expire_slice`. With both, fields get half of the budget, and keys what
    /// is left of all.
    fn expire_database(&mut self, db: u16, now: UnixMillis, budget: &mut usize) -> bool {
        let has_fields = self.expiring_hashes(db) > 0;
        let has_keys = self.database(usize::from(db)).expires > 0;
        if !has_keys && !has_fields {
            return false;
        }
        self.hook.begin_write(db, 0);
        let mut part = if has_keys {
            (*budget).div_ceil(2)
        } else {
            *budget
        };
        *budget -= part;
        let is_more = has_fields && self.expire_hashes(db, now, &mut part);
        *budget += part;
        let is_more = self.expire_keys(db, now, budget) || is_more;
        self.hook.end_write();
        is_more
    }

    fn expire_keys(&mut self, db: u16, now: UnixMillis, budget: &mut usize) -> bool {
        loop {
            let Some(wheel) = self.wheel(db) else {
                return false;
            };
            match wheel.advance(now, budget) {
                Due::Nothing => return false,
                Due::Later => return true,
                Due::Entry(_) if *budget == 0 => return true,
                Due::Entry(entry) => {
                    *budget -= 1;
                    self.expire_entry(db, entry);
                }
            }
        }
    }

    /// When the next key or field expires, or something has to be moved towards it; none is due before.
    #[must_use]
    pub fn next_expiry(&self) -> Option<UnixMillis> {
        let databases = (0..self.database_count()).map(|db| self.database(db));
        databases
            .flat_map(|database| {
                let keys = pointer::<Wheel<Entry>>(database.wheel);
                let fields = pointer::<Wheel<ExpiringFields>>(database.fields);
                // SAFETY: wheels of databases are live, and nobody changes them meanwhile.
                [
                    keys.and_then(|wheel| unsafe { wheel.as_ref() }.next_stop()),
                    fields.and_then(|wheel| unsafe { wheel.as_ref() }.next_stop()),
                ]
            })
            .flatten()
            .min()
            .map(UnixMillis)
    }

    fn expire_entry(&mut self, db: u16, entry: Entry) {
        let bytes = entry.key();
        let key = Key {
            db,
            slot: slot_of(bytes),
            bytes,
            hash: hash(self.seed, bytes),
        };
        let place = self
            .place_of(&key)
            .expect("an entry of the wheel is in the dictionary (K2)");
        self.expire(db, key.slot, key.hash, place);
    }

    /// Average time to live of the keys of a database that expire, in milliseconds, estimated from
    /// a sample.
    pub fn average_ttl(
        &mut self,
        db: u16,
        now: UnixMillis,
        mut random: impl FnMut() -> u64,
    ) -> u64 {
        const SAMPLES: u64 = 16;
        if self.expires(db) == 0 {
            return 0;
        }
        let Some(wheel) = self.wheel(db) else {
            return 0;
        };
        // Divided before they are added: times to live may be as long as numbers go.
        let share = |entry: Entry| entry.expiry().map_or(0, |at| at.since(now)) / SAMPLES;
        (0..SAMPLES)
            .filter_map(|_| wheel.random(&mut random))
            .map(share)
            .sum()
    }
}
