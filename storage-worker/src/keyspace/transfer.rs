//! Moving and copying a key to another name, inside one worker.

use super::entry::{Entry, Outside, Storage, Value};
use super::{Key, Keyspace};

impl Keyspace {
    /// Gives the value of `from`, with expiry and clock, the name `to`; what `to` was before is gone.
    /// Says whether `from` was there. The names may be equal.
    pub fn rename(&mut self, from: &Key<'_>, to: &Key<'_>) -> bool {
        let Some(place) = self.live_place_of(from) else {
            return false;
        };
        if is_same(from, to) {
            return true;
        }
        let old = self.remove_at(from.db, from.slot, from.hash, place);
        // Only the name changes: a buffer outside goes along.
        let new = Entry::create(to.bytes, old.expiry(), old.value());
        new.set_clock(old.clock());
        old.free_object();
        self.remove(to);
        self.insert_kept(to, new);
        true
    }

    /// Gives `to` a copy of the value and the expiry of `from`; what `to` was before is gone. Says
    /// whether `from` was there. With equal names nothing happens.
    pub fn copy(&mut self, from: &Key<'_>, to: &Key<'_>) -> bool {
        let Some(place) = self.live_place_of(from) else {
            return false;
        };
        if is_same(from, to) {
            return true;
        }
        let old = Entry::new(place.element());
        let value = match old.storage() {
            Storage::Outside => Value::Outside(Outside::filled(old.bytes())),
            _ => old.value(),
        };
        let new = Entry::create(to.bytes, old.expiry(), value);
        self.remove(to);
        self.insert_new(to, new);
        true
    }
}

fn is_same(one: &Key<'_>, other: &Key<'_>) -> bool {
    one.db == other.db && one.bytes == other.bytes
}
