//! A walk over everything that compares indexes, counts and memory with each other.

use shm::arena::Arena;

use super::entry::{Entry, Storage};
use super::field_expiry::next_of;
use super::kind::ValueKind;
use super::times::ExpiringFields;
use super::wheel::{Timed, Wheel};
use super::{Database, GROUP, Keyspace, Root, SlotTable, pointer};

impl Keyspace {
    /// Checks K1 to K3, the dictionaries, the wheels and the allocator's books.
    ///
    /// # Errors
    /// A sentence that names the first contradiction.
    pub fn check_invariants(&self) -> Result<(), String> {
        let root = self.root();
        let databases = root.database_count as usize * size_of::<Database>();
        if !Arena.contains(Arena.root(), size_of::<Root>())
            || !Arena.contains(root.databases, databases)
        {
            return Err("the root lies outside the arena (K3)".to_owned());
        }
        for db in 0..self.database_count() {
            self.check_database(db)
                .map_err(|why| format!("database {db}: {why}"))?;
        }
        Arena.check()
    }

    fn check_database(&self, db: usize) -> Result<(), String> {
        let database = self.database(db);
        let Some(slots) = pointer::<SlotTable>(database.slots) else {
            let is_blank = database.keys == 0 && database.expires == 0;
            return if is_blank {
                Ok(())
            } else {
                Err("keys without a slot table".to_owned())
            };
        };
        if !Arena.contains(database.slots, size_of::<SlotTable>()) {
            return Err("the slot table lies outside the arena (K3)".to_owned());
        }
        // SAFETY: the table is live, and this handle, its only user, is borrowed.
        let slots = unsafe { slots.as_ref() };
        let (mut keys, mut expires, mut hashes) = (0, 0, 0);
        for (group, &sum) in slots.sums.iter().enumerate() {
            let mut here = 0;
            for slot in group * GROUP..(group + 1) * GROUP {
                let dictionary = &slots.dictionaries[slot];
                dictionary
                    .check(self.hasher())
                    .map_err(|why| format!("slot {slot}: {why}"))?;
                here += dictionary.len();
                let mut wrong = None;
                dictionary.for_each(|element| {
                    let entry = Entry::new(element);
                    expires += u64::from(entry.has_expiry());
                    hashes += u64::from(entry.has_field_expiry());
                    wrong = wrong.take().or_else(|| check_entry(entry, slot).err());
                });
                wrong.map_or(Ok(()), |why| Err(format!("slot {slot}: {why}")))?;
            }
            if here != sum as usize {
                return Err(format!(
                    "group {group} has {here} keys and a sum of {sum} (K1)"
                ));
            }
            keys += here as u64;
        }
        if keys != database.keys || expires != database.expires {
            return Err(format!(
                "{keys} keys, {expires} expire, but the counts differ (K1, K2)"
            ));
        }
        check_wheel::<Entry>(database.wheel, expires, "K2")?;
        check_wheel::<ExpiringFields>(database.fields, hashes, "K5")
    }
}

/// Checks the wheel at an address, which names so many entries.
fn check_wheel<T: Timed>(wheel: u64, count: u64, label: &str) -> Result<(), String> {
    match pointer::<Wheel<T>>(wheel) {
        None if count == 0 => Ok(()),
        None => Err(format!("entries with a time, but no wheel ({label})")),
        Some(wheel) => {
            // SAFETY: the wheel is live, and its only user is borrowed by the caller.
            let wheel = unsafe { wheel.as_ref() };
            wheel.check()?;
            if wheel.len() == count {
                Ok(())
            } else {
                Err(format!("a wheel lacks an entry ({label})"))
            }
        }
    }
}

fn check_entry(entry: Entry, slot: usize) -> Result<(), String> {
    let at = entry.object().addr().get() as u64;
    if !Arena.contains(at, entry.size()) {
        return Err(format!(
            "the entry at {at:#x} reaches outside the arena (K3)"
        ));
    }
    if usize::from(proto::slot::slot_of(entry.key())) != slot {
        return Err(format!("the entry at {at:#x} is in the wrong slot"));
    }
    if entry.kind() == ValueKind::String && entry.storage() == Storage::Structure
        || entry.kind() != ValueKind::String && entry.storage() == Storage::Integer
    {
        return Err(format!(
            "the entry at {at:#x} has a value that no {:?} has",
            entry.kind()
        ));
    }
    if entry.storage() == Storage::Structure {
        super::structure::check(entry.kind(), entry.structure())
            .map_err(|why| format!("the value of the entry at {at:#x}: {why}"))?;
    }
    if entry.kind() == ValueKind::Hash {
        let (bound, next) = (entry.field_expiry(), next_of(entry));
        if next.is_some_and(|next| bound.is_none_or(|bound| next < bound)) {
            return Err(format!(
                "fields of the hash at {at:#x} expire unnoticed (K5)"
            ));
        }
    } else if entry.has_field_expiry() {
        return Err(format!("the entry at {at:#x} has no fields (K5)"));
    }
    if entry.storage() == Storage::Outside {
        let outside = entry.outside();
        if outside.length > outside.capacity || !Arena.contains(outside.address, outside.capacity) {
            return Err(format!("the buffer of the entry at {at:#x} is broken (E3)"));
        }
    }
    Ok(())
}
