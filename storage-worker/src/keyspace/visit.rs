//! What other workers leave behind when they have worked in this keyspace.
//!
//! A command over keys of several workers is run by one of them, which works in the arenas of the
//! others while it holds their leases. Two things of it outlast its visit
//!   notes    what the owner must hear of: its clients that wait for a key, or watch one, are known only
//!            to the owner. A list in the arena, so that no death loses it; the owner reads it before it
//!            does anything else.
//!   guests   copies of foreign values that a command needed beside each other. They lie in slots that
//!            the owner of the arena does not own. A visitor takes them away again; the count says whether one
//!            has died before it could, and then whoever comes next does it.
//!
//! Everything here changes the arena: call it inside a bracket.

use std::ptr::NonNull;

use proto::slot::slot_of;
use proto::time::UnixMillis;
use shm::arena::Arena;

use super::entry::Entry;
use super::{AttachError, GROUP, Key, Keyspace, MAGIC, Root, SLOTS, SlotTable, address, pointer};

/// A note in the arena; its bytes follow.
#[repr(C)]
#[derive(Debug)]
struct Note {
    /// Address of the one that was left before it, or 0.
    before: u64,
    /// Bytes.
    len: u64,
}

impl Keyspace {
    /// Looks up the root again: the owner may have begun anew since the last visit.
    ///
    /// # Errors
    /// When the arena holds no keyspace.
    pub fn look_again(&mut self) -> Result<(), AttachError> {
        let root = pointer::<Root>(Arena.root()).ok_or(AttachError::Empty)?;
        // SAFETY: K3: the arena's root is a live object; the arena's fingerprint vouches for types.
        let magic = unsafe { root.as_ref().magic };
        if magic != MAGIC {
            return Err(AttachError::BadMagic(magic));
        }
        self.root = root;
        self.pool.clear();
        Ok(())
    }

    /// Leaves a note for the owner.
    pub fn leave_note(&mut self, bytes: &[u8]) {
        let note = Arena.take(size_of::<Note>() + bytes.len()).cast::<Note>();
        let before = std::mem::replace(&mut self.root_mut().notes, address(note));
        let content = Note {
            before,
            len: bytes.len() as u64,
        };
        // SAFETY: the object has room for a note and its bytes.
        unsafe {
            note.write(content);
            let text = note.add(1).cast::<u8>();
            text.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
    }

    /// Whether somebody has left notes.
    #[inline]
    #[must_use]
    pub fn has_notes(&self) -> bool {
        self.root().notes != 0
    }

    /// Takes all notes, in the order in which they were left.
    pub fn take_notes(&mut self) -> Vec<Box<[u8]>> {
        let mut notes = Vec::new();
        let mut next = std::mem::take(&mut self.root_mut().notes);
        while let Some(note) = pointer::<Note>(next) {
            // SAFETY: notes are live until they are taken, each with its bytes behind it.
            let (before, bytes) = unsafe {
                let Note { before, len } = note.read();
                let text = note.add(1).cast::<u8>();
                let text = std::slice::from_raw_parts(text.as_ptr(), len as usize);
                (before, Box::<[u8]>::from(text))
            };
            // SAFETY: it was taken with this size, and nothing names it any more.
            unsafe { Arena.give(note.cast(), size_of::<Note>() + bytes.len()) };
            notes.push(bytes);
            next = before;
        }
        notes.reverse();
        notes
    }

    /// Whether there are, or may be, copies of foreign values.
    #[inline]
    #[must_use]
    pub fn has_guests(&self) -> bool {
        self.root().guests != 0
    }

    /// There will be copies of foreign values.
    pub fn expect_guests(&mut self) {
        self.root_mut().guests = 1;
    }

    /// There are none any more.
    pub fn guests_have_gone(&mut self) {
        self.root_mut().guests = 0;
    }

    /// Takes away all keys in slots that are not the owner's.
    pub fn remove_guests(&mut self, is_owned: impl Fn(u16) -> bool) {
        let now = std::mem::replace(&mut self.now, UnixMillis(0));
        for db in 0..self.database_count() {
            for name in self.names_where(db, |slot| !is_owned(slot)) {
                let db = u16::try_from(db).unwrap_or(u16::MAX);
                let key = Key::new(self.seed, db, slot_of(&name), &name);
                self.remove(&key);
            }
        }
        self.now = now;
        self.guests_have_gone();
    }

    /// The keys of a database in some slots.
    fn names_where(&self, db: usize, is_meant: impl Fn(u16) -> bool) -> Vec<Box<[u8]>> {
        let mut names = Vec::new();
        let Some(slots) = pointer::<SlotTable>(self.database(db).slots) else {
            return names;
        };
        // SAFETY: the table is live, and this handle, its only user, is borrowed.
        let slots = unsafe { slots.as_ref() };
        for slot in 0..SLOTS {
            if slots.sums[slot / GROUP] == 0 || !is_meant(slot as u16) {
                continue;
            }
            slots.dictionaries[slot]
                .for_each(|element| names.push(Entry::new(element).key().into()));
        }
        names
    }
}
