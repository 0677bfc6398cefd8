//! Freeing: at once, or in slices where that would take long.
//!
//! A lazy flush takes slot table and wheel of a database as they are and puts them into the
//! graveyard, a list in the arena; the database is empty at once. So does the removal of a large
//! collection with its structure. Slices between batches free both, so that none takes long. A
//! successor goes on with the list.
//!
//! What clients see of it (`lazyfreed_objects`) is as in Redis: a removal counts as lazy if it was asked to
//! be, by UNLINK or a `lazyfree-*` setting, and has more than 64 elements to free. What nobody asked
//! for is freed in slices all the same once it is a giant, but not counted.

use std::ptr::NonNull;

use shm::arena::Arena;

use super::entry::{Entry, Storage};
use super::kind::ValueKind;
use super::times::ExpiringFields;
use super::wheel::{Timed, Wheel};
use super::{Database, Keyspace, SLOTS, SlotTable, address, pointer, structure};

/// Elements from which a value that is to be freed lazily really is.
const LAZY_ABOVE: usize = 64;
/// Elements from which any value is: freeing as many takes about 0.4 ms.
const GIANT_ABOVE: usize = 4096;
/// Slices free at least this part of what waits, so that it cannot grow without end.
const PART_OF_PENDING: u64 = 64;
/// But not more than so many elements.
const SLICE_MAX: usize = 20_000;

/// How a value is freed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Freeing {
    /// At once unless it is a giant.
    #[default]
    Plain,
    /// In slices unless it is small, and counted.
    Lazy,
}

/// How values are freed whose removal no client asked for (`lazyfree-lazy-*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LazyFree {
    /// Those that another value takes the place of.
    pub overwritten: Freeing,
    /// Those whose time has come.
    pub expired: Freeing,
    /// Those that make room.
    pub evicted: Freeing,
}

/// Something that is to be freed: a flushed database, or a structure.
#[repr(C)]
#[derive(Debug)]
struct Grave {
    /// Address of the next one, or 0.
    next: u64,
    /// Address of the slot table of a database, or 0.
    slots: u64,
    /// Addresses of its wheels, or 0.
    wheel: u64,
    fields: u64,
    /// First slot that is not freed yet.
    slot: u64,
    /// Address of a structure, or 0.
    structure: u64,
    /// Its kind.
    kind: u32,
    /// Whether it counts as a key.
    is_counted: u32,
}

const EMPTY: Grave = Grave {
    next: 0,
    slots: 0,
    wheel: 0,
    fields: 0,
    slot: 0,
    structure: 0,
    kind: 0,
    is_counted: 0,
};

fn dig(content: Grave) -> NonNull<Grave> {
    let grave = Arena.take(size_of::<Grave>()).cast::<Grave>();
    // SAFETY: the object has the size of a grave.
    unsafe { grave.write(content) };
    grave
}

fn grave_of(kind: ValueKind, structure: u64, is_counted: bool) -> NonNull<Grave> {
    dig(Grave {
        structure,
        kind: kind as u32,
        is_counted: u32::from(is_counted),
        ..EMPTY
    })
}

impl Keyspace {
    fn bury(&mut self, mut grave: NonNull<Grave>) {
        let next = std::mem::replace(&mut self.root_mut().graveyard, address(grave));
        // SAFETY: the grave is live and ours.
        unsafe { grave.as_mut() }.next = next;
    }

    /// Frees an entry that nothing names any more.
    pub(super) fn free_entry(&mut self, entry: Entry, freeing: Freeing) {
        self.free_outside(entry, freeing);
        entry.free_object();
    }

    /// Frees what an entry has outside its object.
    #[inline]
    pub(super) fn free_outside(&mut self, entry: Entry, freeing: Freeing) {
        match entry.storage() {
            Storage::Integer | Storage::Inline => {}
            // One step of the allocator, even of 512 MB: the pages go back in the background.
            Storage::Outside => entry.outside().free(),
            Storage::Structure => self.free_structure(entry.kind(), entry.structure(), freeing),
        }
    }

    #[cold]
    fn free_structure(&mut self, kind: ValueKind, structure: u64, freeing: Freeing) {
        let elements = structure::len(kind, structure);
        let is_counted = freeing == Freeing::Lazy && elements > LAZY_ABOVE;
        if is_counted || elements > GIANT_ABOVE {
            self.bury(grave_of(kind, structure, is_counted));
            self.root_mut().graveyard_keys += u64::from(is_counted);
        } else {
            structure::free(kind, structure);
        }
    }

    /// Removes all keys of a database; returns how many. With `lazily` their memory is freed by
    /// later calls of [`Keyspace::free_slice`], otherwise before this returns.
    pub fn flush_db(&mut self, db: u16, lazily: bool) -> u64 {
        let flushed = std::mem::take(self.database_mut(usize::from(db)));
        self.pool.clear();
        if flushed.slots == 0 {
            return 0;
        }
        let Database {
            slots,
            wheel,
            fields,
            keys,
            ..
        } = flushed;
        let grave = dig(Grave {
            slots,
            wheel,
            fields,
            ..EMPTY
        });
        if lazily {
            self.bury(grave);
            self.root_mut().graveyard_keys += keys;
        } else {
            while free_database(grave, usize::MAX, &mut Vec::new()).1 {}
        }
        keys
    }

    /// Removes all keys of all databases; returns how many.
    pub fn flush_all(&mut self, lazily: bool) -> u64 {
        (0..self.database_count())
            .map(|db| self.flush_db(db as u16, lazily))
            .sum()
    }

    /// Frees about `budget` keys or elements that wait for it (0.1 us each; at least one small table,
    /// so up to 0.1 ms), more if very many do. The caller brackets it as a write. Says whether there
    /// is more to do.
    pub fn free_slice(&mut self, budget: usize) -> bool {
        let Some(grave) = pointer::<Grave>(self.root().graveyard) else {
            return false;
        };
        // SAFETY: graves in the list are live.
        let Grave {
            next,
            structure,
            kind,
            is_counted,
            ..
        } = unsafe { grave.read() };
        let part = self.root().graveyard_keys / PART_OF_PENDING;
        let budget = budget.max(usize::try_from(part).unwrap_or(SLICE_MAX).min(SLICE_MAX));
        let mut giants = Vec::new();
        let (freed, is_more) = if structure == 0 {
            free_database(grave, budget, &mut giants)
        } else {
            let is_more = structure::free_some(ValueKind::numbered(kind as u8), structure, budget);
            if !is_more {
                free_grave(grave);
            }
            (u64::from(is_counted) * u64::from(!is_more), is_more)
        };
        self.counters.lazily_freed += freed;
        self.root_mut().graveyard_keys -= freed;
        if !is_more {
            self.root_mut().graveyard = next;
        }
        for (kind, structure) in giants {
            self.bury(grave_of(kind, structure, false));
        }
        self.has_graves()
    }
}

/// Frees about `budget` keys of a flushed database; returns how many, and whether any are left. When
/// none are, the grave itself is gone. With a bound, giants are left to the caller.
fn free_database(
    mut grave: NonNull<Grave>,
    budget: usize,
    giants: &mut Vec<(ValueKind, u64)>,
) -> (u64, bool) {
    // SAFETY: the grave is live and its content belongs to nobody else.
    let (grave_ref, slots) = unsafe {
        let grave_ref = grave.as_mut();
        let slots = std::ptr::with_exposed_provenance_mut::<SlotTable>(grave_ref.slots as usize);
        (grave_ref, &mut *slots)
    };
    let mut freed = 0;
    // Elements of collections, and what empty slots cost: little, but not nothing.
    let (mut elements, mut steps) = (0, 0);
    while (grave_ref.slot as usize) < SLOTS {
        if steps >= budget {
            return (freed, true);
        }
        let more = slots.dictionaries[grave_ref.slot as usize].drain_some(budget, |element| {
            // Places in the wheel mean nothing any more: it is freed as a whole.
            let entry = Entry::new(element);
            freed += 1;
            if entry.storage() == Storage::Structure {
                let (kind, structure) = (entry.kind(), entry.structure());
                let len = structure::len(kind, structure);
                if len > LAZY_ABOVE && budget != usize::MAX {
                    giants.push((kind, structure));
                    return entry.free_object();
                }
                elements += len;
            }
            entry.free();
        });
        steps = freed as usize + elements + grave_ref.slot as usize / 64;
        grave_ref.slot += u64::from(!more);
    }
    if !destroy_wheel::<Entry>(&mut grave_ref.wheel, budget)
        || !destroy_wheel::<ExpiringFields>(&mut grave_ref.fields, budget)
    {
        return (freed, true);
    }
    // SAFETY: taken with this size; nothing names it any more.
    unsafe { Arena.give(NonNull::from(slots).cast(), size_of::<SlotTable>()) };
    free_grave(grave);
    (freed, false)
}

/// Frees the wheel at an address if there is one, and then clears the address; says whether it is gone.
fn destroy_wheel<T: Timed>(wheel: &mut u64, budget: usize) -> bool {
    let is_gone = pointer::<Wheel<T>>(*wheel).is_none_or(|wheel| Wheel::destroy(wheel, budget));
    if is_gone {
        *wheel = 0;
    }
    is_gone
}

fn free_grave(grave: NonNull<Grave>) {
    // SAFETY: taken by `dig`; nothing names it any more.
    unsafe { Arena.give(grave.cast(), size_of::<Grave>()) }
}
