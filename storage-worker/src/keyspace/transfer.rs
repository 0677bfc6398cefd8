//! Moving and copying a key to another name, inside one worker.

use super::entry::{Content, Entry, Outside, Value};
use super::{Key, Keyspace, structure};

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
        // Only the name changes: a buffer or structure outside goes along.
        let new = Entry::create(to.bytes, old.times(), old.value());
        new.set_clock(old.clock());
        old.free_object();
        self.make_way(to);
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
        let Value { label, content } = old.value();
        let content = match content {
            Content::Outside(_) => Content::Outside(Outside::filled(old.bytes())),
            Content::Structure(address) => Content::Structure(structure::copy(label.kind, address)),
            Content::Integer(_) | Content::Inline(_) | Content::Blank(_) => content,
        };
        let new = Entry::create(to.bytes, old.times(), Value { label, content });
        self.make_way(to);
        self.insert_new(to, new);
        true
    }
}

impl Keyspace {
    /// Removes a key whose name another value takes.
    fn make_way(&mut self, key: &Key<'_>) {
        if let Some(place) = self.live_place_of(key) {
            let entry = self.remove_at(key.db, key.slot, key.hash, place);
            self.free_entry(entry, self.lazy_free.overwritten);
        }
    }

    /// Exchanges two databases with all that belongs to them.
    pub fn swap(&mut self, one: u16, other: u16) {
        let (one, other) = (
            self.database_at(usize::from(one)),
            self.database_at(usize::from(other)),
        );
        // SAFETY: both name live databases, which may be the same one.
        unsafe { std::ptr::swap(one.as_ptr(), other.as_ptr()) };
        self.pool.clear();
        self.touched = u64::MAX;
    }
}

fn is_same(one: &Key<'_>, other: &Key<'_>) -> bool {
    one.db == other.db && one.bytes == other.bytes
}
