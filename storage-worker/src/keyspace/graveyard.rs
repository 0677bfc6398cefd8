//! Flushing databases, at once or lazily.
//!
//! A lazy flush takes slot table and wheel of the database as they are and puts them into the
//! graveyard, a list in the arena; the database is empty at once. Slices between batches free it,
//! one small table at a time, so that no slice takes long. A successor goes on with the list.

use std::ptr::NonNull;

use shm::arena::Arena;

use super::entry::Entry;
use super::wheel::Wheel;
use super::{Database, Keyspace, SLOTS, SlotTable, address, pointer};

/// A flushed database.
#[repr(C)]
#[derive(Debug)]
struct Grave {
    /// Address of the next one, or 0.
    next: u64,
    /// Address of the slot table.
    slots: u64,
    /// Address of the wheel, or 0.
    wheel: u64,
    /// First slot that is not freed yet.
    slot: u64,
}

impl Keyspace {
    /// Removes all keys of a database; returns how many. With `lazily` their memory is freed by
    /// later calls of [`Keyspace::free_slice`], otherwise before this returns.
    pub fn flush_db(&mut self, db: u16, lazily: bool) -> u64 {
        let flushed = std::mem::take(self.database_mut(usize::from(db)));
        self.pool.clear();
        if flushed.slots == 0 {
            return 0;
        }
        let Database {
            slots, wheel, keys, ..
        } = flushed;
        let grave = Arena.take(size_of::<Grave>()).cast::<Grave>();
        let next = if lazily {
            std::mem::replace(&mut self.root_mut().graveyard, address(grave))
        } else {
            0
        };
        // SAFETY: the object has the size of a grave.
        unsafe {
            grave.write(Grave {
                next,
                slots,
                wheel,
                slot: 0,
            });
        };
        if lazily {
            self.root_mut().graveyard_keys += keys;
        } else {
            while free_some(grave, usize::MAX).1 {}
        }
        keys
    }

    /// Removes all keys of all databases; returns how many.
    pub fn flush_all(&mut self, lazily: bool) -> u64 {
        (0..self.database_count())
            .map(|db| self.flush_db(db as u16, lazily))
            .sum()
    }

    /// Frees about `budget` keys of flushed databases (0.1 us each; at least one small table, so up
    /// to 0.1 ms). The caller brackets it as a write. Says whether there is more to do.
    pub fn free_slice(&mut self, budget: usize) -> bool {
        let Some(grave) = pointer::<Grave>(self.root().graveyard) else {
            return false;
        };
        // SAFETY: graves in the list are live.
        let next = unsafe { grave.as_ref() }.next;
        let (freed, more) = free_some(grave, budget);
        self.counters.lazily_freed += freed;
        let root = self.root_mut();
        root.graveyard_keys -= freed;
        if !more {
            root.graveyard = next;
        }
        root.graveyard != 0
    }
}

/// Frees about `budget` keys of a grave; returns how many, and whether any are left. When none are,
/// the grave itself is gone.
fn free_some(mut grave: NonNull<Grave>, budget: usize) -> (u64, bool) {
    // SAFETY: the grave is live and its content belongs to nobody else.
    let (grave_ref, slots) = unsafe {
        let grave_ref = grave.as_mut();
        let slots = std::ptr::with_exposed_provenance_mut::<SlotTable>(grave_ref.slots as usize);
        (grave_ref, &mut *slots)
    };
    let mut freed = 0;
    // Empty slots cost little, but not nothing.
    let mut steps = 0;
    while (grave_ref.slot as usize) < SLOTS {
        if steps >= budget {
            return (freed, true);
        }
        let more = slots.dictionaries[grave_ref.slot as usize].drain_some(budget, |element| {
            // Places in the wheel mean nothing any more: it is freed as a whole.
            Entry::new(element).free();
            freed += 1;
        });
        steps = freed as usize + grave_ref.slot as usize / 64;
        grave_ref.slot += u64::from(!more);
    }
    if let Some(wheel) = pointer::<Wheel>(grave_ref.wheel) {
        if !Wheel::destroy(wheel, budget) {
            return (freed, true);
        }
        grave_ref.wheel = 0;
    }
    // SAFETY: taken with these sizes; nothing names them any more.
    unsafe {
        Arena.give(NonNull::from(slots).cast(), size_of::<SlotTable>());
        Arena.give(grave.cast(), size_of::<Grave>());
    }
    (freed, false)
}
