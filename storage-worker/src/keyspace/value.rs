//! A live key that is being changed, whatever its kind: packed bytes that are edited in place, or a
//! structure.
//!
//! Packed bytes live in the entry up to 1 KiB and in a buffer outside above, as strings do. Inside, an
//! edit that changes the size class of the entry moves it. The buffer has what its size class has, or,
//! from 28 KiB on, an eighth more than it needs, so that a collection that grows element by element is
//! copied once per eighth; it is given back when less than half of it is used.

use proto::time::UnixMillis;
use shm::arena::usable_size;

use super::dictionary::Place;
use super::entry::{Content, Entry, INLINE_MAX, Outside, Storage, Value};
use super::kind::{Form, Label, ValueKind};
use super::structure::{self, Held};
use super::{Freeing, Key, Keyspace};
use crate::collections::{COARSE_MAX, Splice};
use std::ptr::NonNull;

/// See the module.
#[derive(Debug)]
pub struct ValueMut<'a> {
    keyspace: &'a mut Keyspace,
    place: Place,
    db: u16,
    slot: u16,
    hash: u64,
}

fn packed(kind: ValueKind, form: Form, bytes: &[u8]) -> Value<'_> {
    let content = if bytes.len() <= INLINE_MAX {
        Content::Inline(bytes)
    } else {
        Content::Outside(Outside::filled(bytes))
    };
    Value {
        label: Label::collection(kind, form),
        content,
    }
}

fn structured<T: Held>(form: Form, structure: NonNull<T>) -> Value<'static> {
    Value {
        label: Label::collection(T::KIND, form),
        content: Content::Structure(super::address(structure)),
    }
}

impl Keyspace {
    /// A live key that is to be changed; a dead one is removed and not found. The caller brackets it
    /// as a write.
    #[inline]
    pub fn value_mut(&mut self, key: &Key<'_>, now: UnixMillis) -> Option<ValueMut<'_>> {
        self.now = now;
        let place = self.live_place_of(key)?;
        self.touch(Entry::new(place.element()));
        Some(self.value_at(key, place))
    }

    /// Adds a key, which must not be there, with packed bytes.
    pub fn create_packed(
        &mut self,
        key: &Key<'_>,
        kind: ValueKind,
        form: Form,
        bytes: &[u8],
    ) -> ValueMut<'_> {
        self.create_value(key, packed(kind, form, bytes))
    }

    /// Adds a key, which must not be there, with a structure.
    pub fn create_structure<T: Held>(
        &mut self,
        key: &Key<'_>,
        form: Form,
        structure: NonNull<T>,
    ) -> ValueMut<'_> {
        self.create_value(key, structured(form, structure))
    }

    /// Sets a key to packed bytes, whatever was there before; it has no expiry then.
    pub fn replace_with_packed(
        &mut self,
        key: &Key<'_>,
        kind: ValueKind,
        form: Form,
        bytes: &[u8],
    ) -> ValueMut<'_> {
        self.replace_value(key, packed(kind, form, bytes))
    }

    /// Sets a key to a structure, whatever was there before; it has no expiry then.
    pub fn replace_with_structure<T: Held>(
        &mut self,
        key: &Key<'_>,
        form: Form,
        structure: NonNull<T>,
    ) -> ValueMut<'_> {
        self.replace_value(key, structured(form, structure))
    }

    fn replace_value(&mut self, key: &Key<'_>, value: Value<'_>) -> ValueMut<'_> {
        let Some(place) = self.live_place_of(key) else {
            return self.create_value(key, value);
        };
        self.touch(Entry::new(place.element()));
        self.put_value(key.db, place, value);
        self.change_expiry(key.db, place, None);
        self.note_new_fields(key.db, place);
        self.value_at(key, place)
    }

    fn create_value(&mut self, key: &Key<'_>, value: Value<'_>) -> ValueMut<'_> {
        debug_assert!(self.place_of(key).is_none(), "the key is there already");
        self.insert_new(key, Entry::create(key.bytes, None, value));
        let place = self.place_of(key).expect("it was just inserted");
        self.note_new_fields(key.db, place);
        self.value_at(key, place)
    }

    pub(super) fn value_at(&mut self, key: &Key<'_>, place: Place) -> ValueMut<'_> {
        ValueMut {
            keyspace: self,
            place,
            db: key.db,
            slot: key.slot,
            hash: key.hash,
        }
    }
}

impl<'a> ValueMut<'a> {
    /// The structure, for as long as the keyspace is borrowed.
    ///
    /// # Panics
    /// As [`ValueMut::structure`].
    #[inline]
    #[must_use]
    pub fn into_structure<T: Held>(self) -> &'a mut T {
        // SAFETY: E4; this handle holds the keyspace exclusively, and ends.
        unsafe { structure::of::<T>(self.entry()).as_mut() }
    }
}

impl ValueMut<'_> {
    #[inline]
    fn entry(&self) -> Entry {
        Entry::new(self.place.element())
    }

    /// Type of the value.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        self.entry().kind()
    }

    /// How the type keeps it.
    #[inline]
    #[must_use]
    pub fn form(&self) -> Form {
        self.entry().label().form()
    }

    /// When the key will be gone.
    #[must_use]
    pub fn expiry(&self) -> Option<UnixMillis> {
        self.entry().expiry()
    }

    /// Says that the value, as it is, has this form.
    pub fn set_form(&mut self, form: Form) {
        self.entry().set_label(Label::collection(self.kind(), form));
    }

    /// Whether the value is a structure; otherwise it is packed bytes.
    #[inline]
    #[must_use]
    pub fn is_structure(&self) -> bool {
        self.entry().storage() == Storage::Structure
    }

    /// The packed bytes.
    ///
    /// # Panics
    /// If the value is a structure.
    #[inline]
    #[must_use]
    pub fn packed(&self) -> &[u8] {
        assert!(!self.is_structure(), "a structure is not packed");
        self.entry().bytes()
    }

    /// The structure.
    ///
    /// # Panics
    /// If the value is none, or one of another kind.
    #[inline]
    #[must_use]
    pub fn structure<T: Held>(&self) -> &T {
        // SAFETY: E4; this handle holds the keyspace.
        unsafe { structure::of::<T>(self.entry()).as_ref() }
    }

    /// The structure, to be changed.
    ///
    /// # Panics
    /// As [`ValueMut::structure`].
    #[inline]
    #[must_use]
    pub fn structure_mut<T: Held>(&mut self) -> &mut T {
        // SAFETY: E4; this handle holds the keyspace exclusively.
        unsafe { structure::of::<T>(self.entry()).as_mut() }
    }

    /// Gives the key other packed bytes of the same kind. A structure that was there is the caller's
    /// to free.
    pub fn set_packed(&mut self, form: Form, bytes: &[u8]) {
        self.set(packed(self.kind(), form, bytes));
    }

    /// Gives the key a structure in place of what it was. A structure that was there is the caller's
    /// to free.
    pub fn set_structure<T: Held>(&mut self, form: Form, structure: NonNull<T>) {
        debug_assert!(self.kind() == T::KIND);
        self.set(structured(form, structure));
    }

    fn set(&mut self, value: Value<'_>) {
        let entry = self.entry();
        if entry.storage() == Storage::Outside {
            entry.outside().free();
        }
        self.keyspace
            .put_value_keeping_outside(self.db, self.place, value);
    }

    /// Removes the key: its collection became empty.
    pub fn remove(self) {
        let entry = self
            .keyspace
            .remove_at(self.db, self.slot, self.hash, self.place);
        self.keyspace.free_entry(entry, Freeing::Plain);
    }

    /// Moves the bytes into a new place with `length` bytes, with a gap of `inserted` bytes at `at` in
    /// place of `removed` ones.
    fn move_bytes(&mut self, at: usize, removed: usize, inserted: usize, length: usize) {
        let old = self.entry();
        let bytes = old.bytes();
        let (head, tail) = (&bytes[..at], &bytes[at + removed..]);
        let label = old.label();
        let fill = |room: &mut [u8]| {
            room[..at].copy_from_slice(head);
            room[at + inserted..length].copy_from_slice(tail);
        };
        if length > INLINE_MAX {
            let wanted = if length < COARSE_MAX {
                length
            } else {
                length + length / 8
            };
            let buffer = Outside::create(length, wanted, usize::MAX);
            fill(buffer.rest(0));
            self.set(Value {
                label,
                content: Content::Outside(buffer),
            });
            return;
        }
        let value = Value {
            label,
            content: Content::Blank(length),
        };
        let new = Entry::create(old.key(), old.times(), value);
        fill(new.bytes_mut());
        if old.storage() == Storage::Outside {
            old.outside().free();
        }
        self.keyspace.replace(self.db, self.place, new);
    }

    /// Whether the bytes can stay where they are with another length.
    fn fits(&self, length: usize) -> bool {
        let entry = self.entry();
        if entry.storage() == Storage::Outside {
            let capacity = entry.outside().capacity;
            return length <= capacity && length >= capacity / 2 && length > INLINE_MAX / 2;
        }
        let value = Value {
            label: entry.label(),
            content: Content::Blank(length),
        };
        length <= INLINE_MAX && usable_size(entry.size()) == usable_size(entry.size_with(value))
    }
}

impl Splice for ValueMut<'_> {
    fn bytes(&self) -> &[u8] {
        self.packed()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_structure(), "a structure is not packed");
        self.entry().bytes_mut()
    }

    fn splice(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        let old_length = self.packed().len();
        let tail = at + removed;
        assert!(tail <= old_length, "a splice stays within the bytes");
        let length = old_length - removed + inserted;
        if length != old_length {
            if self.fits(length) {
                self.entry().resplice(at, removed, inserted);
            } else {
                self.move_bytes(at, removed, inserted, length);
            }
        }
        &mut self.bytes_mut()[at..at + inserted]
    }
}
