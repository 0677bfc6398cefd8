//! The keyspace: all keys of one storage worker, kept in its arena.
//!
//! Why one object: everything that a command can ask of keys (find, set, expire, scan, evict, flush)
//! has to keep four things in step: the dictionary of the slot, the expiry wheel of the database, the
//! counts, and the memory. They are changed here and nowhere else.
//!
//! ```text
//!  arena root -> Root -> Database 0, 1 ... (32 bytes each; nothing more until first used)
//!                          | slots  -> SlotTable: 16384 dictionaries of 16 bytes, sums per 64 slots
//!                          | wheel  -> expiry index, from the first expiry on
//!                          | fields -> the same for hashes whose fields expire
//!                          +-- dictionary -> bucket -> Entry (key, value, expiry, clock)
//! ```
//!
//! The [`Keyspace`] value itself is a handle in the process' own memory: it may be dropped at any
//! time, and another process that maps the arena makes one with [`Keyspace::attach`] and goes on.
//!
//! Invariants
//!   K1  the sum for a group of 64 slots is the number of keys in them, and all sums are `keys`.
//!   K2  an entry has an expiry if and only if the wheel of its database names it; `expires` counts
//!       them.
//!   K3  nothing in the arena points outside it.
//!   K4  every change of the arena that is not the touch of a clock happens between `begin_write` and
//!       `end_write` of the journal; whoever calls a changing method has begun, reads that find a dead
//!       key begin themselves through [`Hook`]. A torn clock is harmless.
//!   K5  an entry has a time for its fields if and only if the second wheel of its database names it;
//!       it is a hash then, and none of its fields expires before that time. A hash with a field
//!       that expires has one.
//!
//! Time, randomness and the settings that matter are arguments; the same calls give the same keyspace.
//! Not here: commands and replies (`commands`), the journal (`shm`), what a slot is (`proto`).

mod check;
mod clock;
pub mod dictionary;
mod entry;
mod eviction;
mod expiry;
mod field_expiry;
#[cfg(test)]
mod field_expiry_tests;
mod found;
mod graveyard;
mod hook;
mod kind;
mod lookup;
mod scan;
mod string;
mod structure;
#[cfg(test)]
mod tests;
mod times;
mod transfer;
mod usage;
mod value;
#[cfg(test)]
mod value_tests;
mod visit;
mod wheel;

use std::fmt;
use std::ptr::NonNull;

use proto::time::UnixMillis;
use shm::arena::{self, Arena};
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub use clock::ClockMode;
pub use eviction::{Evicted, EvictionPolicy};
pub use found::{Found, StringRef};
pub use graveyard::{Freeing, LazyFree};
pub use hook::{Hook, NoHook, Pause};
pub use kind::{Form, ValueKind};
pub use lookup::Inner;
pub use scan::SlotRange;
pub use string::{Expiry, StringValue};
pub use structure::{Encoding, Held};
pub use usage::Usage;
pub use value::ValueMut;

use dictionary::{Dictionary, Element};
use entry::Entry;
use eviction::Pool;
use wheel::Wheel;

/// Slots of a database, as in Redis Cluster.
pub(crate) const SLOTS: usize = 16_384;
/// Slots whose keys are summed up together.
const GROUP: usize = 64;
const GROUPS: usize = SLOTS / GROUP;

const MAGIC: u64 = u64::from_le_bytes(*b"SIRKEYS\0");
/// Raised with every change of meaning that sizes and offsets do not show.
const LAYOUT_VERSION: usize = 3;

/// A key with what is derived from it once: its slot (by the gateway) and its hash.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Database number.
    pub db: u16,
    /// Slot, 0 ..= 16383.
    pub slot: u16,
    /// The name itself.
    pub bytes: &'a [u8],
    /// Hash of the name under the system's seed.
    pub hash: u64,
}

impl<'a> Key<'a> {
    /// Hashes `bytes`. The slot must be that of the name; `db` below the number of databases.
    #[inline]
    #[must_use]
    pub fn new(seed: u64, db: u16, slot: u16, bytes: &'a [u8]) -> Key<'a> {
        Key {
            db,
            slot,
            bytes,
            hash: hash(seed, bytes),
        }
    }
}

#[inline]
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// What a lookup is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A command reads the value: the clock is touched, a dead key is removed.
    Read,
    /// A command is about to change the key: as for reading, within the caller's own bracket.
    Write,
    /// Somebody looks at the key (OBJECT, TTL, NO-TOUCH connections): the clock stays.
    Peek,
}

/// The root object of an arena that holds a keyspace.
#[repr(C)]
#[derive(Debug)]
struct Root {
    magic: u64,
    seed: u64,
    /// Address of the databases.
    databases: u64,
    database_count: u64,
    /// What is to be freed in slices: address of the first grave, or 0.
    graveyard: u64,
    /// Keys in graves, as far as they are counted.
    graveyard_keys: u64,
    /// Address of the latest note of another worker, or 0.
    notes: u64,
    /// Other than 0: there may be copies of foreign values.
    guests: u64,
}

/// One database.
#[repr(C)]
#[derive(Debug, Default)]
struct Database {
    /// Address of the slot table, or 0 before the first key.
    slots: u64,
    /// Address of the expiry wheel, or 0 before the first expiry.
    wheel: u64,
    /// Address of the wheel of hashes whose fields expire, or 0 before the first one.
    fields: u64,
    keys: u64,
    expires: u64,
}

/// The dictionaries of a database, one per slot.
#[repr(C)]
#[derive(Debug)]
struct SlotTable {
    dictionaries: [Dictionary; SLOTS],
    /// Keys per group of 64 slots: for finding a random key, and skipping what is empty.
    sums: [u32; GROUPS],
}

/// Changes whenever the layout of anything that the keyspace keeps in an arena does.
#[must_use]
pub const fn fingerprint() -> u64 {
    use std::mem::offset_of;
    arena::fingerprint(&[
        LAYOUT_VERSION,
        size_of::<Root>(),
        offset_of!(Root, graveyard),
        size_of::<Database>(),
        offset_of!(Database, expires),
        size_of::<SlotTable>(),
        align_of::<SlotTable>(),
        offset_of!(SlotTable, sums),
        size_of::<Dictionary>(),
        size_of::<Wheel<Entry>>(),
        entry::INLINE_MAX,
        arena::fingerprint(structure::SIZES) as usize,
        arena::fingerprint(&crate::collections::stream::LAYOUT) as usize,
    ])
}

/// Why an arena holds no keyspace that can be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachError {
    /// The arena has no root object: nothing was ever created in it.
    Empty,
    /// The root object is something else.
    BadMagic(u64),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Empty => f.write_str("the arena holds no keyspace"),
            AttachError::BadMagic(found) => {
                write!(
                    f,
                    "the arena's root is not a keyspace: it begins with {found:#x}"
                )
            }
        }
    }
}

impl std::error::Error for AttachError {}

/// Sums that the keyspace keeps since it was created or attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyspaceCounters {
    /// Keys removed because their time had come.
    pub expired: u64,
    /// Fields of hashes removed because their time had come.
    pub expired_fields: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Keys freed in the background.
    pub lazily_freed: u64,
    /// Lookups for reading that found their key.
    pub hits: u64,
    /// Lookups for reading that did not.
    pub misses: u64,
}

/// Handle of the keyspace in the arena that this thread has entered. See the module.
pub struct Keyspace {
    root: NonNull<Root>,
    seed: u64,
    /// The time of the command or slice that is being worked on.
    now: UnixMillis,
    clock_mode: ClockMode,
    /// For the counters of `ClockMode::Frequency` only; everything else gets its randomness.
    random: u64,
    hook: Box<dyn Hook>,
    pool: Pool,
    lazy_free: LazyFree,
    counters: KeyspaceCounters,
    /// Where the next slice of expiry begins.
    expiry_database: usize,
    /// Databases whose counts have changed, by number modulo 64.
    touched: u64,
    /// Cache lines that an average key takes: so many are fetched ahead of a lookup.
    entry_lines: usize,
    /// The earliest time that keys or fields got since the last look at it.
    noted_expiry: Option<UnixMillis>,
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace")
            .field("databases", &self.database_count())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

fn address<T>(pointer: NonNull<T>) -> u64 {
    pointer.as_ptr().expose_provenance() as u64
}

fn pointer<T>(address: u64) -> Option<NonNull<T>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))
}

impl Keyspace {
    /// Makes an empty keyspace in the arena that this thread has entered. `seed` is the hash seed of
    /// the whole system.
    #[must_use]
    pub fn create(databases: u16, seed: u64) -> Keyspace {
        let count = usize::from(databases.max(1));
        let memory = Arena.take(count * size_of::<Database>()).cast::<Database>();
        let root = Arena.take(size_of::<Root>()).cast::<Root>();
        for number in 0..count {
            // SAFETY: the object has room for `count` databases.
            unsafe { memory.add(number).write(Database::default()) };
        }
        let content = Root {
            magic: MAGIC,
            seed,
            databases: address(memory),
            database_count: count as u64,
            graveyard: 0,
            graveyard_keys: 0,
            notes: 0,
            guests: 0,
        };
        // SAFETY: the object has room for the root.
        unsafe { root.write(content) };
        Arena.set_root(address(root));
        Keyspace::over(root, seed)
    }

    /// Goes on with the keyspace that a predecessor left in the arena.
    ///
    /// # Errors
    /// When the arena is fresh or holds something else. Whether it can be trusted is not known here:
    /// the journal says so.
    pub fn attach() -> Result<Keyspace, AttachError> {
        let root = pointer::<Root>(Arena.root()).ok_or(AttachError::Empty)?;
        // SAFETY: K3: the arena's root is a live object; the arena's fingerprint vouches for types.
        let (magic, seed) = unsafe { (root.as_ref().magic, root.as_ref().seed) };
        if magic != MAGIC {
            return Err(AttachError::BadMagic(magic));
        }
        Ok(Keyspace::over(root, seed))
    }

    fn over(root: NonNull<Root>, seed: u64) -> Keyspace {
        Keyspace {
            root,
            seed,
            now: UnixMillis(0),
            clock_mode: ClockMode::Recency,
            random: seed | 1,
            hook: Box::new(NoHook),
            pool: Pool::default(),
            lazy_free: LazyFree::default(),
            counters: KeyspaceCounters::default(),
            expiry_database: 0,
            touched: 0,
            entry_lines: 2,
            noted_expiry: None,
        }
    }

    /// Who hears of removals that no command asked for.
    pub fn set_hook(&mut self, hook: Box<dyn Hook>) {
        self.hook = hook;
    }

    /// Takes a command out of its bracket until the pause is dropped: for long parts of a writing command
    /// that call only what a reading one may call.
    pub fn pause_write(&mut self, db: u16, slot: u16) -> Pause {
        Pause::new(self.hook.pause_write(db, slot))
    }

    /// The arena is about to change: a bracket around several commands, which those of the commands lie in.
    pub fn begin_write(&mut self, db: u16, slot: u16) {
        self.hook.begin_write(db, slot);
    }

    /// The end of a bracket that `begin_write` began.
    pub fn end_write(&mut self) {
        self.hook.end_write();
    }

    /// How the eviction clocks are to be read and written from now on.
    pub fn set_clock_mode(&mut self, mode: ClockMode) {
        self.clock_mode = mode;
    }

    /// How the eviction clocks are read and written.
    #[must_use]
    pub fn clock_mode(&self) -> ClockMode {
        self.clock_mode
    }

    /// Which removals count as lazy from now on.
    pub fn set_lazy_free(&mut self, lazy_free: LazyFree) {
        self.lazy_free = lazy_free;
    }

    /// The time that setting methods go by; lookups set it too.
    #[inline]
    pub fn set_now(&mut self, now: UnixMillis) {
        self.now = now;
    }

    /// Looks how large keys are on average, for prefetching: with too few lines, copying a value
    /// waits for memory (a third of a GET of 256 bytes), with too many, small keys waste bandwidth.
    pub fn note_average_size(&mut self) {
        const LINES_MAX: u64 = 6;
        let databases = u16::try_from(self.database_count()).unwrap_or(u16::MAX);
        let keys: u64 = (0..databases).map(|db| self.len(db)).sum();
        let lines = (self.used_bytes() / keys.max(1)).div_ceil(64);
        self.entry_lines = lines.clamp(2, LINES_MAX) as usize;
    }

    /// The hash seed, for [`Key::new`].
    #[inline]
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of databases.
    #[must_use]
    pub fn database_count(&self) -> usize {
        self.root().database_count as usize
    }

    /// Keys of a database, dead ones that nobody has found yet included; 0 if there is none such.
    #[must_use]
    pub fn len(&self, db: u16) -> u64 {
        self.existing(db).map_or(0, |database| database.keys)
    }

    /// Whether no database has a key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        (0..self.database_count()).all(|db| self.database(db).keys == 0)
    }

    /// Keys of a database that have an expiry.
    #[must_use]
    pub fn expires(&self, db: u16) -> u64 {
        self.existing(db).map_or(0, |database| database.expires)
    }

    /// Bytes in use in the arena, everything included.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        Arena.used_bytes()
    }

    /// Keys that were removed lazily and still wait to be freed.
    #[must_use]
    pub fn lazily_pending(&self) -> u64 {
        self.root().graveyard_keys
    }

    /// Whether [`Keyspace::free_slice`] has anything to do.
    #[inline]
    #[must_use]
    pub fn has_graves(&self) -> bool {
        self.root().graveyard != 0
    }

    /// Sums since this handle was made.
    #[must_use]
    pub fn counters(&self) -> KeyspaceCounters {
        self.counters
    }

    /// Hits and misses of lookups for reading since the last call.
    #[inline]
    pub fn take_lookups(&mut self) -> (u64, u64) {
        let counters = &mut self.counters;
        (
            std::mem::take(&mut counters.hits),
            std::mem::take(&mut counters.misses),
        )
    }

    /// Databases whose counts may have changed since the last call: bit n stands for n, n + 64 ...
    #[inline]
    pub fn take_touched(&mut self) -> u64 {
        std::mem::take(&mut self.touched)
    }

    #[inline]
    fn root(&self) -> &Root {
        // SAFETY: K3: the root is a live object, and this handle is its only user.
        unsafe { self.root.as_ref() }
    }

    fn root_mut(&mut self) -> &mut Root {
        // SAFETY: as above.
        unsafe { self.root.as_mut() }
    }

    #[inline]
    fn database_at(&self, db: usize) -> NonNull<Database> {
        let root = self.root();
        assert!(
            db < root.database_count as usize,
            "the gateway checks database numbers"
        );
        let databases = std::ptr::with_exposed_provenance_mut::<Database>(root.databases as usize);
        // SAFETY: the array has `database_count` databases.
        unsafe { NonNull::new_unchecked(databases.add(db)) }
    }

    #[inline]
    fn database(&self, db: usize) -> &Database {
        // SAFETY: `database_at` names a live object, and this handle is its only user.
        unsafe { self.database_at(db).as_ref() }
    }

    #[inline]
    fn database_mut(&mut self, db: usize) -> &mut Database {
        self.touched |= 1 << (db % 64);
        // SAFETY: as above.
        unsafe { self.database_at(db).as_mut() }
    }

    fn existing(&self, db: u16) -> Option<&Database> {
        (usize::from(db) < self.database_count()).then(|| self.database(usize::from(db)))
    }

    /// The dictionary of a slot; `None` before the first key of the database.
    #[inline]
    fn dictionary_at(&self, db: u16, slot: u16) -> Option<NonNull<Dictionary>> {
        let slots = pointer::<SlotTable>(self.database(usize::from(db)).slots)?;
        let slot = usize::from(slot) % SLOTS;
        // SAFETY: the table is live and has 16384 dictionaries.
        Some(unsafe {
            NonNull::new_unchecked((&raw mut (*slots.as_ptr()).dictionaries[slot]).cast())
        })
    }

    /// The dictionary of a slot, for changing it.
    #[inline]
    fn dictionary_mut(&mut self, db: u16, slot: u16) -> &mut Dictionary {
        if self.database(usize::from(db)).slots == 0 {
            self.create_slots(usize::from(db));
        }
        let mut dictionary = self
            .dictionary_at(db, slot)
            .expect("the slot table exists: it was just made");
        // SAFETY: it is live, and this handle is its only user.
        unsafe { dictionary.as_mut() }
    }

    #[cold]
    fn create_slots(&mut self, db: usize) {
        // Zeroes are empty dictionaries (D5); pages of slots without keys stay untouched.
        let slots = Arena
            .take_zeroed(size_of::<SlotTable>(), 0)
            .cast::<SlotTable>();
        self.database_mut(db).slots = address(slots);
    }

    /// Counts a key that came to or went from a slot (K1).
    #[inline]
    fn count_key(&mut self, db: u16, slot: u16, came: bool) {
        let database = self.database_mut(usize::from(db));
        let slots = pointer::<SlotTable>(database.slots).expect("a slot with a key has a table");
        // SAFETY: the table is live, and this handle is its only user.
        let sum = unsafe { &mut (*slots.as_ptr()).sums[usize::from(slot) % SLOTS / GROUP] };
        if came {
            database.keys += 1;
            *sum += 1;
        } else {
            database.keys -= 1;
            *sum -= 1;
        }
    }

    /// The wheel of a database, if it has one.
    fn wheel(&mut self, db: u16) -> Option<&mut Wheel<Entry>> {
        let mut wheel = pointer::<Wheel<Entry>>(self.database(usize::from(db)).wheel)?;
        // SAFETY: it is live, and this handle is its only user.
        Some(unsafe { wheel.as_mut() })
    }

    fn hasher(&self) -> impl Fn(Element) -> u64 + use<> {
        let seed = self.seed;
        move |element| hash(seed, Entry::new(element).key())
    }

    /// A pseudo-random number of the handle's own (xorshift).
    #[inline]
    fn next_random(&mut self) -> u64 {
        let mut state = self.random;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random = state;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
