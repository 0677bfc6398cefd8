//! Chunks of an expiry wheel's buckets, and the table of all chunks.

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::Timed;
use crate::keyspace::dictionary::{Element, prefetch};

/// Entries of a chunk.
pub(super) const WORDS: usize = 62;
const CHUNK_BYTES: usize = 512;

/// A piece of a bucket. Aligned to its size, so that a word's address leads to it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Chunk {
    /// Address of the next chunk of the bucket, or 0.
    next: u64,
    /// Its number in the table of all chunks.
    number: u32,
    len: u8,
    level: u8,
    bucket: u8,
    reserved: u8,
    words: [u64; WORDS],
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

/// A chunk by address; the functions are associated ones because two handles may name one chunk.
pub(super) type ChunkAt = NonNull<Chunk>;

impl Chunk {
    /// The chunk at an address from the wheel's books.
    #[inline]
    pub(super) fn at(address: u64) -> Option<ChunkAt> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    #[inline]
    pub(super) fn address(chunk: ChunkAt) -> u64 {
        chunk.as_ptr().expose_provenance() as u64
    }

    /// The chunk that a word belongs to.
    #[inline]
    pub(super) fn of_place(place: u64) -> ChunkAt {
        let address = place & !(CHUNK_BYTES as u64 - 1);
        Chunk::at(address).expect("an entry with an expiry knows its place in the wheel (E2)")
    }

    pub(super) fn create(level: usize, bucket: usize, next: Option<ChunkAt>) -> ChunkAt {
        let chunk = Arena.take(CHUNK_BYTES).cast::<Chunk>();
        debug_assert!(Chunk::address(chunk).is_multiple_of(CHUNK_BYTES as u64));
        let next = next.map_or(0, Chunk::address);
        let (level, bucket) = (level as u8, bucket as u8);
        // SAFETY: the object has the size of a chunk.
        unsafe {
            chunk.write(Chunk {
                next,
                number: 0,
                len: 0,
                level,
                bucket,
                reserved: 0,
                words: [0; WORDS],
            });
        }
        chunk
    }

    pub(super) fn free(chunk: ChunkAt) {
        // SAFETY: taken by `create`; the caller forgets it.
        unsafe { Arena.give(chunk.cast(), CHUNK_BYTES) }
    }

    #[inline]
    pub(super) fn len(chunk: ChunkAt) -> usize {
        // SAFETY: chunks named by the wheel's books are live.
        usize::from(unsafe { chunk.as_ref() }.len)
    }

    #[inline]
    pub(super) fn next(chunk: ChunkAt) -> u64 {
        // SAFETY: as in `len`.
        unsafe { chunk.as_ref() }.next
    }

    pub(super) fn number(chunk: ChunkAt) -> usize {
        // SAFETY: as in `len`.
        unsafe { chunk.as_ref() }.number as usize
    }

    /// Level and bucket that the chunk belongs to.
    pub(super) fn bucket_of(chunk: ChunkAt) -> (usize, usize) {
        // SAFETY: as in `len`.
        let chunk = unsafe { chunk.as_ref() };
        (usize::from(chunk.level), usize::from(chunk.bucket))
    }

    /// The entry at `position`, below the length.
    pub(super) fn get<T: Timed>(chunk: ChunkAt, position: usize) -> T {
        T::of(Chunk::object(chunk, position))
    }

    fn object(chunk: ChunkAt, position: usize) -> Element {
        // SAFETY: as in `len`.
        object_at(unsafe { chunk.as_ref() }.words[position])
    }

    pub(super) fn last<T: Timed>(chunk: ChunkAt) -> T {
        Chunk::get(chunk, Chunk::len(chunk) - 1)
    }

    /// Adds an entry behind the others, and tells it its place. There is room.
    pub(super) fn push(chunk: ChunkAt, entry: impl Timed) {
        // SAFETY: as in `len`; the wheel is borrowed exclusively.
        let inner = unsafe { &mut *chunk.as_ptr() };
        let word = &mut inner.words[usize::from(inner.len)];
        *word = address_of(entry);
        inner.len += 1;
        entry.set_place((&raw mut *word).expose_provenance() as u64);
    }

    /// Takes the last entry out.
    pub(super) fn pop<T: Timed>(chunk: ChunkAt) -> T {
        let last = Chunk::last(chunk);
        // SAFETY: as in `push`.
        unsafe { (*chunk.as_ptr()).len -= 1 };
        last
    }

    /// Puts an entry into the word at `place`, and tells it.
    pub(super) fn store(place: u64, entry: impl Timed) {
        let word = std::ptr::with_exposed_provenance_mut::<u64>(place as usize);
        // SAFETY: a place names a word of a live chunk.
        unsafe { word.write(address_of(entry)) };
        entry.set_place(place);
    }

    /// Asks for the lines of some entries that will be taken out next.
    pub(super) fn prefetch_entries(chunk: ChunkAt) {
        const AHEAD: usize = 8;
        let len = Chunk::len(chunk);
        if let Some(position) = len.checked_sub(AHEAD) {
            prefetch(Chunk::object(chunk, position).as_ptr());
        }
    }

    pub(super) fn check<T: Timed>(
        chunk: ChunkAt,
        bucket: (usize, usize),
        is_first: bool,
        table: &ChunkTable,
    ) -> Result<(), String> {
        if !Arena.contains(Chunk::address(chunk), CHUNK_BYTES) {
            return Err("a chunk of the wheel lies outside the arena".to_owned());
        }
        let len = Chunk::len(chunk);
        if len == 0 || (len < WORDS && !is_first) || Chunk::bucket_of(chunk) != bucket {
            return Err(format!("a chunk of bucket {bucket:?} is out of order (W2)"));
        }
        if Chunk::number(chunk) >= table.len() || table.get(Chunk::number(chunk)) != chunk {
            return Err(format!(
                "a chunk of bucket {bucket:?} has a wrong number (W5)"
            ));
        }
        for position in 0..len {
            let entry: T = Chunk::get(chunk, position);
            let word = Chunk::address(chunk) + 16 + position as u64 * 8;
            if !Arena.contains(address_of(entry), 1) {
                return Err("the wheel names an entry outside the arena".to_owned());
            }
            if entry.place() != word {
                return Err(format!(
                    "an entry of bucket {bucket:?} has a wrong place (W1)"
                ));
            }
        }
        Ok(())
    }
}

fn address_of(entry: impl Timed) -> u64 {
    entry.object().as_ptr().expose_provenance() as u64
}

fn object_at(word: u64) -> Element {
    let object = NonNull::new(std::ptr::with_exposed_provenance_mut(word as usize));
    object.expect("words of a chunk up to its length are entries (W1)")
}

/// Chunk addresses of a leaf of the table: 4 KiB.
const LEAF: usize = 512;

/// All chunks of a wheel by number, in two levels, so that growing never copies more than a 512th.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ChunkTable {
    /// Address of the array of leaf addresses, or 0.
    leaves: u64,
    leaf_capacity: u32,
    leaf_count: u32,
    len: u64,
}

impl ChunkTable {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    fn leaf(&self, number: usize) -> *mut u64 {
        debug_assert!(number < self.leaf_count as usize);
        let leaves = std::ptr::with_exposed_provenance::<u64>(self.leaves as usize);
        // SAFETY: the array has `leaf_count` addresses.
        std::ptr::with_exposed_provenance_mut(unsafe { leaves.add(number).read() } as usize)
    }

    pub(super) fn get(&self, number: usize) -> ChunkAt {
        debug_assert!(number < self.len());
        // SAFETY: a leaf has 512 addresses, and those below `len` are chunks.
        let address = unsafe { self.leaf(number / LEAF).add(number % LEAF).read() };
        Chunk::at(address).expect("every chunk below the length exists (W5)")
    }

    fn set(&mut self, number: usize, chunk: ChunkAt) {
        // SAFETY: as in `get`; the chunk is live and the wheel is borrowed exclusively.
        unsafe {
            self.leaf(number / LEAF)
                .add(number % LEAF)
                .write(Chunk::address(chunk));
            (*chunk.as_ptr()).number = number as u32;
        }
    }

    pub(super) fn push(&mut self, chunk: ChunkAt) {
        if self.len() == self.leaf_count as usize * LEAF {
            self.add_leaf();
        }
        self.len += 1;
        self.set(self.len() - 1, chunk);
    }

    /// Takes a chunk out; the last one gets its number.
    pub(super) fn remove(&mut self, number: usize) {
        let last = self.get(self.len() - 1);
        self.set(number, last);
        self.len -= 1;
        // One empty leaf may stay, so that a chunk that comes and goes does not move a leaf.
        if self.len() + 2 * LEAF <= self.leaf_count as usize * LEAF {
            self.leaf_count -= 1;
            let leaves = std::ptr::with_exposed_provenance::<u64>(self.leaves as usize);
            // SAFETY: the array had one address more a moment ago; the leaf came from `add_leaf`.
            unsafe {
                let leaf = leaves.add(self.leaf_count as usize).read();
                let leaf = std::ptr::with_exposed_provenance_mut(leaf as usize);
                Arena.give(NonNull::new_unchecked(leaf), LEAF * 8);
            }
        }
    }

    fn add_leaf(&mut self) {
        if self.leaf_count == self.leaf_capacity {
            let capacity = usable_size((self.leaf_capacity as usize * 2).max(4) * 8) / 8;
            let grown = Arena.take(capacity * 8).cast::<u64>();
            for number in 0..self.leaf_count as usize {
                // SAFETY: the new array is longer than the old one.
                unsafe {
                    grown
                        .add(number)
                        .write(self.leaf(number).expose_provenance() as u64);
                };
            }
            self.free_leaves();
            self.leaves = grown.as_ptr().expose_provenance() as u64;
            self.leaf_capacity = capacity as u32;
        }
        let leaf = Arena.take(LEAF * 8).as_ptr().expose_provenance() as u64;
        let leaves = std::ptr::with_exposed_provenance_mut::<u64>(self.leaves as usize);
        // SAFETY: there is room for one more address.
        unsafe { leaves.add(self.leaf_count as usize).write(leaf) };
        self.leaf_count += 1;
    }

    fn free_leaves(&mut self) {
        let leaves = std::ptr::with_exposed_provenance_mut(self.leaves as usize);
        if let Some(leaves) = NonNull::new(leaves) {
            // SAFETY: taken by `add_leaf` with this capacity.
            unsafe { Arena.give(leaves, self.leaf_capacity as usize * 8) }
        }
    }

    /// Gives the table back; no chunk is left in it.
    pub(super) fn free(&mut self) {
        for number in 0..self.leaf_count as usize {
            // SAFETY: leaves came from `add_leaf`.
            unsafe { Arena.give(NonNull::new_unchecked(self.leaf(number)).cast(), LEAF * 8) }
        }
        self.free_leaves();
        self.leaves = 0;
        self.leaf_count = 0;
        self.leaf_capacity = 0;
    }
}
