//! SCAN and random keys.
//!
//! ```text
//!  cursor:  slot (14 bits) | prefix and its length (32 bits) | tag (16 bits)     0 = start, end
//! ```
//!
//! A scan goes slot by slot, and through the dictionary of a slot as `dictionary::scan` describes:
//! what is there all the time is returned, whatever splits or goes meanwhile. The cursor means the
//! same in any process that holds the slot, so a scan that reaches a slot of another worker returns
//! a cursor at that slot, and the gateway asks its owner next.

use proto::cursor;
use proto::time::UnixMillis;

use super::dictionary::{Dictionary, Position};
use super::entry::Entry;
use super::kind::ValueKind;
use super::{Found, GROUP, Keyspace, SLOTS, SlotTable, pointer};

/// Consecutive slots, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRange {
    /// First slot.
    pub first: u16,
    /// Last slot.
    pub last: u16,
}

impl SlotRange {
    /// All slots: of a system with one worker.
    pub const ALL: SlotRange = SlotRange {
        first: 0,
        last: SLOTS as u16 - 1,
    };
}

const _: () = assert!(Position::BITS == cursor::REST_BITS);

/// The cursor of a place; 0 behind the last slot.
fn cursor_at(slot: usize, position: Position) -> u64 {
    if slot >= SLOTS {
        0
    } else {
        cursor::of(slot as u16, position.pack())
    }
}

impl Keyspace {
    /// Goes on with a scan at the cursor `from` (0 to start): calls `visit` with about `count` live keys of
    /// the slots in `owned` and returns the cursor to go on with, 0 at the end. Dead keys are passed
    /// over. A cursor outside `owned` comes back as it is.
    pub fn scan(
        &self,
        db: u16,
        from: u64,
        count: usize,
        now: UnixMillis,
        owned: SlotRange,
        mut visit: impl FnMut(&[u8], ValueKind),
    ) -> u64 {
        let mut slot = usize::from(cursor::slot(from));
        let (first, last) = (usize::from(owned.first), usize::from(owned.last));
        if slot < first || slot > last {
            return from;
        }
        let slots = self
            .existing(db)
            .and_then(|database| pointer::<SlotTable>(database.slots));
        let Some(slots) = slots else {
            return cursor_at(last + 1, Position::default());
        };
        // SAFETY: the table is live, and this handle, its only user, is borrowed.
        let slots = unsafe { slots.as_ref() };
        let mut position = Position::unpack(cursor::rest(from));
        let mut visited = 0;
        while slot <= last {
            if slot.is_multiple_of(GROUP) && slots.sums[slot / GROUP] == 0 {
                slot += GROUP;
                position = Position::default();
                continue;
            }
            if visited >= count {
                return cursor_at(slot, position);
            }
            let next = slots.dictionaries[slot].scan(position, count - visited, |element| {
                let entry = Entry::new(element);
                visited += 1;
                if !entry.expiry().is_some_and(|at| at.has_passed(now)) {
                    visit(entry.key(), entry.kind());
                }
            });
            match next {
                Some(next) => return cursor_at(slot, next),
                None => slot += 1,
            }
            position = Position::default();
        }
        cursor_at(last + 1, Position::default())
    }

    /// Calls `visit` with every live key of a database, in no order.
    pub fn for_each(&self, db: u16, now: UnixMillis, mut visit: impl FnMut(&Found<'_>)) {
        let slots = self
            .existing(db)
            .and_then(|database| pointer::<SlotTable>(database.slots));
        let Some(slots) = slots else {
            return;
        };
        // SAFETY: as in `scan`.
        let slots = unsafe { slots.as_ref() };
        for dictionary in &slots.dictionaries {
            dictionary.for_each(|element| {
                let entry = Entry::new(element);
                if !entry.expiry().is_some_and(|at| at.has_passed(now)) {
                    visit(&Found::new(entry, self.clock_mode, now));
                }
            });
        }
    }

    /// A random live key of a database, each about equally likely.
    pub fn random_key(
        &self,
        db: u16,
        now: UnixMillis,
        mut random: impl FnMut() -> u64,
    ) -> Option<&[u8]> {
        // With most keys dead and not removed yet, give up and take a dead one's neighbour in order.
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            let entry = self.random_entry(db, &mut random)?;
            if !entry.expiry().is_some_and(|at| at.has_passed(now)) {
                return Some(entry.key());
            }
        }
        let mut found = None;
        let mut cursor = 0;
        loop {
            cursor = self.scan(db, cursor, 64, now, SlotRange::ALL, |key, _| {
                found.get_or_insert_with(|| key.to_vec());
            });
            if cursor == 0 || found.is_some() {
                break;
            }
        }
        self.entry_named(db, &found?).map(Entry::key)
    }

    /// A random entry, dead or alive: a slot with the chance of its number of keys, then one of it.
    fn random_entry(&self, db: u16, random: &mut impl FnMut() -> u64) -> Option<Entry> {
        let dictionary = self.random_dictionary(db, random)?;
        dictionary.random(random).map(Entry::new)
    }

    /// The dictionary of a slot, with the chance of its number of keys.
    pub(super) fn random_dictionary(
        &self,
        db: u16,
        random: &mut impl FnMut() -> u64,
    ) -> Option<&Dictionary> {
        let database = self.existing(db)?;
        let slots = pointer::<SlotTable>(database.slots)?;
        // SAFETY: as in `scan`.
        let slots = unsafe { slots.as_ref() };
        let mut left =
            u64::try_from((u128::from(random()) * u128::from(database.keys)) >> 64).ok()?;
        for (group, &sum) in slots.sums.iter().enumerate() {
            if left >= u64::from(sum) {
                left -= u64::from(sum);
                continue;
            }
            for dictionary in &slots.dictionaries[group * GROUP..(group + 1) * GROUP] {
                let keys = dictionary.len() as u64;
                if left < keys {
                    return Some(dictionary);
                }
                left -= keys;
            }
        }
        None
    }

    fn entry_named(&self, db: u16, name: &[u8]) -> Option<Entry> {
        let mut dictionary = self.dictionary_at(db, proto::slot::slot_of(name))?;
        // SAFETY: it is live; finding changes nothing.
        let dictionary = unsafe { dictionary.as_mut() };
        let hash = super::hash(self.seed, name);
        let place = dictionary.find(hash, |element| Entry::new(element).key() == name)?;
        Some(Entry::new(place.element()))
    }
}
