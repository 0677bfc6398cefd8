//! Splitting a full table in two, merging two small ones, doubling and halving the directory.

use shm::arena::Arena;

use super::table::{BUCKETS_MAX, Form, Table, buckets_for, element_of, pointer};
use super::{Dictionary, DirectoryHead, Element, directory_bytes, prefetch};

/// A table with at most this many elements looks at its neighbour ...
pub(super) const MERGE_BELOW: u32 = 256;
/// ... and merges with it if both together have at most this many: half of what makes a split.
const MERGED_MAX: u32 = 448;
/// Elements whose lines are asked for ahead of computing their hashes.
const AHEAD: usize = 16;

impl Dictionary {
    /// Turns the only table into a directory of two halves.
    #[cold]
    pub(super) fn split_root(&mut self, hash_of: &impl Fn(Element) -> u64) {
        let full = std::mem::take(&mut self.root);
        let count = full.count;
        self.root = Table {
            count,
            depth: 1,
            form: Form::Directory,
            ..Table::default()
        };
        self.allocate_directory();
        let [zeros, ones] = halves(full, hash_of);
        // SAFETY: the directory has a head and two headers, which are not initialised yet.
        unsafe {
            self.head().write(DirectoryHead {
                deepest: 2,
                ..DirectoryHead::default()
            });
            self.header(0).write(zeros);
            self.header(1).write(ones);
        }
    }

    /// Splits the table behind header `index`.
    #[cold]
    pub(super) fn split(&mut self, index: usize, hash_of: &impl Fn(Element) -> u64) {
        // SAFETY: `header` names a live header.
        let depth = unsafe { self.header(index).as_ref() }.depth;
        let index = if depth == self.root.depth {
            self.double();
            index * 2
        } else {
            index
        };
        let (first, members) = self.family(index);
        // SAFETY: `family` names live headers; all of them are written below.
        let full = unsafe { self.header(first).read() };
        let [zeros, ones] = halves(full, hash_of);
        if zeros.depth == self.root.depth {
            // SAFETY: a directory has a head.
            unsafe { self.head().as_mut() }.deepest += 2;
        }
        for member in 0..members {
            let half = if member < members / 2 { &zeros } else { &ones };
            // SAFETY: as above.
            unsafe { self.header(first + member).write(half.alike()) }
        }
    }

    /// Merges the table behind header `index` with its neighbour if both are small.
    pub(super) fn merge(&mut self, index: usize) {
        let (first, members) = self.family(index);
        // SAFETY: `family` names live headers.
        let mut one = unsafe { self.header(first).read() };
        if one.depth == 0 {
            return;
        }
        let other_first = first ^ members;
        // SAFETY: the neighbour differs in one bit of the index only, so it exists too.
        let mut other = unsafe { self.header(self.family(other_first).0).read() };
        if other.depth != one.depth || one.count + other.count > MERGED_MAX {
            return;
        }
        let mut both = Table {
            depth: one.depth - 1,
            ..Table::default()
        };
        if one.count + other.count > 0 {
            both.allocate(buckets_for((one.count + other.count) as usize));
            both.absorb(&one);
            both.absorb(&other);
        }
        let was_deepest = one.depth == self.root.depth;
        one.release();
        other.release();
        let start = first.min(other_first);
        for member in start..start + members * 2 {
            // SAFETY: as above.
            unsafe { self.header(member).write(both.alike()) }
        }
        if was_deepest {
            // SAFETY: a directory has a head.
            let head = unsafe { self.head().as_mut() };
            head.deepest -= 2;
            if head.deepest == 0 {
                self.halve();
            }
        }
    }

    /// Takes memory for the directory that the root describes.
    fn allocate_directory(&mut self) {
        let memory = Arena.take(directory_bytes(self.root.depth));
        self.root.word = memory.as_ptr().expose_provenance() as u64;
    }

    pub(super) fn free_directory(&mut self) {
        // SAFETY: taken by `allocate_directory` for this depth.
        unsafe { Arena.give(pointer(self.root.word), directory_bytes(self.root.depth)) }
    }

    /// Every header becomes two.
    fn double(&mut self) {
        let mut old = Dictionary {
            root: self.root.alike(),
        };
        self.root.depth += 1;
        self.allocate_directory();
        for index in 0..1usize << old.root.depth {
            // SAFETY: the old directory has these headers, the new one twice as many.
            unsafe {
                let table = old.header(index).read();
                self.header(index * 2).write(table.alike());
                self.header(index * 2 + 1).write(table);
            }
        }
        // SAFETY: the new directory's head is not initialised yet; no table is as deep as it.
        unsafe { self.head().write(DirectoryHead::default()) };
        old.free_directory();
    }

    /// Every two headers become one, as no table needs the last bit. One table alone becomes the
    /// dictionary itself.
    fn halve(&mut self) {
        let mut old = Dictionary {
            root: self.root.alike(),
        };
        if old.root.depth == 1 {
            // SAFETY: a directory of depth 1 has two headers, here of the same table.
            self.root = unsafe { old.header(0).read() };
            old.free_directory();
            return;
        }
        self.root.depth -= 1;
        self.allocate_directory();
        let mut deepest = 0;
        for index in 0..1usize << self.root.depth {
            // SAFETY: the old directory has twice as many headers as the new one.
            unsafe {
                let table = old.header(index * 2).read();
                deepest += u32::from(table.depth == self.root.depth);
                self.header(index).write(table);
            }
        }
        let head = DirectoryHead {
            deepest,
            ..DirectoryHead::default()
        };
        // SAFETY: the new directory's head is not initialised yet.
        unsafe { self.head().write(head) };
        old.free_directory();
        if deepest == 0 {
            self.halve();
        }
    }
}

/// Divides the elements of a full table by the next bit of their hashes.
fn halves(mut full: Table, hash_of: &impl Fn(Element) -> u64) -> [Table; 2] {
    let depth = full.depth + 1;
    let mut words = Vec::with_capacity(full.count as usize);
    full.for_each_word(|word| words.push(word));
    for &word in words.iter().take(AHEAD) {
        prefetch(element_of(word).as_ptr());
    }
    let mut ones_count = 0;
    let mut is_one = vec![false; words.len()];
    for (number, &word) in words.iter().enumerate() {
        if let Some(&later) = words.get(number + AHEAD) {
            prefetch(element_of(later).as_ptr());
        }
        let bit = hash_of(element_of(word)) >> (64 - u32::from(depth)) & 1 == 1;
        is_one[number] = bit;
        ones_count += usize::from(bit);
    }
    full.release();
    let counts = [words.len() - ones_count, ones_count];
    let mut halves = counts.map(|count| {
        let mut half = Table {
            depth,
            ..Table::default()
        };
        if count > 0 {
            half.allocate(buckets_for(count).min(count.div_ceil(7).max(BUCKETS_MAX)));
        }
        half
    });
    for (word, is_one) in words.into_iter().zip(is_one) {
        halves[usize::from(is_one)].place_counted(word);
    }
    halves
}
