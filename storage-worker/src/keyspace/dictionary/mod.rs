//! The dictionary: a hash table that never rehashes more than about 900 elements at a time.
//!
//! Why our own table: a general one (measured with hashbrown) takes about 19 bytes per key when a
//! slot holds some 60 keys, and a lookup touches two cache lines, one for the control bytes and one
//! for the bucket. Here a bucket *is* one cache line with the control bits inside the words, growth
//! goes in steps of a quarter, and both cost about 10 bytes per key and one line per lookup. It also
//! needs no static empty table, which would be a pointer out of the arena.
//!
//! ```text
//!  Dictionary (16 bytes)          table: n buckets of 64 bytes, n = 1 ..= 128
//!  +---------+-------+---+---+    +------+------+------+- ... -+  word = tag << 48 | address
//!  | pointer | count | n | . | -> | word | word | word |   0   |  tag  = low 16 bits of the hash
//!  +---------+-------+---+---+    +------+------+------+- ... -+  home bucket = tag * n >> 16
//!
//!  more than about 900 elements: a directory, addressed by the leading bits of the hash
//!  | pointer | count | depth | -> [ table header ][ table header ] ... 2^depth of them
//! ```
//!
//! One element alone is kept in the header itself. A table that cannot grow any more splits by the
//! next leading bit of the hash (extendible hashing): only its own elements move. The home bucket
//! depends on the tag alone, which stands in the word, so growing, shrinking, merging and deleting
//! never look at an element; only a split computes hashes.
//!
//! Invariants
//!   D1  the words of a bucket are packed: no word follows a zero.
//!   D2  a word that is not in its home bucket has only full buckets before it, from home on.
//!   D3  in a directory of depth g a table of depth l is named by 2^(g-l) neighbouring headers that
//!       are equal except for the count, which is right in the first one only.
//!   D4  elements of a table agree in the leading `depth` bits of their hash with its position.
//!   D5  all zeroes is an empty dictionary.
//!
//! Cost: 16 bytes, and 8 bytes / 0.78 per element on average; find touches the header, one bucket
//! (1.1 on average) and the element. The longest step is a split: about 900 hashes.
//! Not here: what an element is; callers pass its hash and an equality.

mod iter;
mod scan;
mod split;
mod table;
#[cfg(test)]
mod tests;

use std::ptr::NonNull;

use shm::arena::Arena;

pub use iter::Iter;
pub use scan::{DEPTH_MAX, Position};
use table::{Form, Table};

/// An element: something in the arena that the dictionary only knows by address.
pub type Element = NonNull<u8>;

/// Place of an element's word in a table; valid until the next change of that dictionary.
#[derive(Debug, Clone, Copy)]
pub struct Place(NonNull<u64>);

impl Place {
    /// The element that the place names.
    #[inline]
    #[must_use]
    pub fn element(self) -> Element {
        // SAFETY: a place names a word of a live table that is not zero.
        table::element_of(unsafe { self.0.read() })
    }

    /// Names another element with the same hash there: the old one has moved.
    #[inline]
    pub fn replace(self, element: Element) {
        // SAFETY: as above; the tag stays.
        unsafe {
            let tag = self.0.read() & table::TAG_MASK;
            self.0.write(tag | table::address_of(element));
        }
    }
}

/// See the module.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Dictionary {
    root: Table,
}

/// What stands in front of a directory's headers.
#[repr(C)]
#[derive(Debug, Default)]
struct DirectoryHead {
    /// Tables whose depth is that of the directory; with none, the directory can halve.
    deepest: u32,
    /// Headers already emptied by `drain_some`.
    drained: u32,
    reserved: u64,
}

const HEADER_BYTES: usize = size_of::<Table>();
const _: () = assert!(size_of::<Dictionary>() == 16 && size_of::<DirectoryHead>() == HEADER_BYTES);

impl Dictionary {
    /// Number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.root.count as usize
    }

    /// Whether there is no element.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.count == 0
    }

    #[inline]
    fn is_directory(&self) -> bool {
        self.root.form == Form::Directory
    }

    /// Header number `index` of the directory.
    #[inline]
    fn header(&self, index: usize) -> NonNull<Table> {
        debug_assert!(self.is_directory() && index < 1 << self.root.depth);
        // SAFETY: the directory has a head and 2^depth headers, and callers stay below that.
        unsafe {
            table::pointer(self.root.word)
                .cast::<Table>()
                .add(index + 1)
        }
    }

    fn head(&self) -> NonNull<DirectoryHead> {
        debug_assert!(self.is_directory());
        table::pointer(self.root.word).cast()
    }

    /// Number of the header for `hash`.
    #[inline]
    fn index_of(&self, hash: u64) -> usize {
        // A directory has a depth of at least 1.
        (hash >> (64 - u32::from(self.root.depth))) as usize
    }

    /// Number of the first header of the table that header `index` names, and of headers for it (D3).
    #[inline]
    fn family(&self, index: usize) -> (usize, usize) {
        // SAFETY: `header` names a live header.
        let depth = unsafe { self.header(index).as_ref() }.depth;
        let members = 1 << (self.root.depth - depth);
        (index & !(members - 1), members)
    }

    /// Asks the processor for the cache line that `find` will read next after the header.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        if self.is_directory() {
            prefetch(self.header(self.index_of(hash)).as_ptr().cast());
        } else {
            self.root.prefetch_bucket(hash);
        }
    }

    /// Asks for the first lines of the elements that `find` would compare, once the bucket is here.
    #[inline]
    pub fn prefetch_element(&self, hash: u64, lines: usize) {
        if self.is_directory() {
            // SAFETY: `header` names a live header.
            unsafe { self.header(self.index_of(hash)).as_ref() }.prefetch_bucket(hash);
        } else {
            self.root.prefetch_element(hash, lines);
        }
    }

    /// The table that an element with this hash is in.
    #[inline]
    fn table_of(&self, hash: u64) -> &Table {
        if self.is_directory() {
            // SAFETY: `header` names a live header.
            unsafe { self.header(self.index_of(hash)).as_ref() }
        } else {
            &self.root
        }
    }

    /// As `prefetch_bucket`, where the headers are known to be at hand.
    #[inline]
    pub fn prefetch_home(&self, hash: u64) {
        self.table_of(hash).prefetch_bucket(hash);
    }

    /// As `prefetch_element`, where headers and bucket are at hand.
    #[inline]
    pub fn prefetch_likely(&self, hash: u64, lines: usize) {
        self.table_of(hash).prefetch_element(hash, lines);
    }

    /// The element that probably has this hash, if there is one: the first in its bucket whose tag
    /// says so.
    #[inline]
    pub fn likely(&self, hash: u64) -> Option<Element> {
        self.table_of(hash).likely(hash)
    }

    /// Looks an element up by its hash and an equality.
    #[inline]
    pub fn find(&mut self, hash: u64, equals: impl FnMut(Element) -> bool) -> Option<Place> {
        if self.is_directory() {
            // SAFETY: `header` names a live header.
            unsafe { self.header(self.index_of(hash)).as_mut() }
                .find(hash, equals)
                .map(Place)
        } else {
            self.root.find(hash, equals).map(Place)
        }
    }

    /// As [`Dictionary::find`], for looking only.
    #[inline]
    #[must_use]
    pub fn get(&self, hash: u64, equals: impl FnMut(Element) -> bool) -> Option<Element> {
        if self.is_directory() {
            // SAFETY: `header` names a live header.
            unsafe { self.header(self.index_of(hash)).as_ref() }.get(hash, equals)
        } else {
            self.root.get(hash, equals)
        }
    }

    /// Adds an element that is not in the dictionary yet. `hash_of` must give `hash` for it.
    #[inline]
    pub fn insert(&mut self, hash: u64, element: Element, hash_of: impl Fn(Element) -> u64) {
        let word = table::word(hash, element);
        if self.is_directory() {
            self.insert_deep(hash, word, hash_of);
        } else if self.root.insert(word, true, true) {
            self.root.count += 1;
        } else {
            self.split_root(&hash_of);
            self.insert_deep(hash, word, hash_of);
        }
    }

    fn insert_deep(&mut self, hash: u64, word: u64, hash_of: impl Fn(Element) -> u64) {
        loop {
            let may_double = self.may_double();
            let deepest = self.root.depth;
            let done = self.update(self.index_of(hash), |table| {
                let done = table.insert(word, false, may_double || table.depth < deepest);
                table.count += u32::from(done);
                done
            });
            if done {
                break;
            }
            self.split(self.index_of(hash), &hash_of);
        }
        self.root.count += 1;
    }

    /// Elements that agree in very many bits would make the directory grow without end: their table
    /// grows instead once the directory takes more than 4 bytes per element.
    fn may_double(&self) -> bool {
        let depth = self.root.depth;
        depth < DEPTH_MAX && 4u64 << depth <= u64::from(self.root.count)
    }

    /// Changes the table behind header `index` and keeps its family alike (D3).
    fn update<R>(&mut self, index: usize, change: impl FnOnce(&mut Table) -> R) -> R {
        let (first, members) = self.family(index);
        // SAFETY: `family` names live headers, and `self` is borrowed exclusively.
        let mut table = unsafe { self.header(first).read() };
        let before = (table.word, table.buckets);
        let result = change(&mut table);
        let changed = if before == (table.word, table.buckets) {
            1
        } else {
            members
        };
        for member in first..first + changed {
            // SAFETY: as above.
            unsafe { self.header(member).write(table.alike()) }
        }
        result
    }

    /// Takes the element at `place` out; `hash` is the one it was found with.
    #[inline]
    pub fn remove(&mut self, hash: u64, place: Place) {
        if self.is_directory() {
            let index = self.index_of(hash);
            let left = self.update(index, |table| {
                table.remove(place.0);
                table.count
            });
            self.root.count -= 1;
            if left <= split::MERGE_BELOW {
                self.merge(index);
            }
        } else {
            self.root.remove(place.0);
        }
    }

    /// Calls `visit` with every element.
    pub fn for_each(&self, mut visit: impl FnMut(Element)) {
        if !self.is_directory() {
            return self.root.for_each(&mut visit);
        }
        let mut index = 0;
        while index < 1 << self.root.depth {
            let (first, members) = self.family(index);
            // SAFETY: `family` names live headers.
            unsafe { self.header(first).as_ref() }.for_each(&mut visit);
            index = first + members;
        }
    }

    /// A random element, each equally likely. `random` gives 64 random bits.
    ///
    /// A table is drawn by its share of the hash space and taken with a chance in proportion to how
    /// densely it is filled, so that elements of a sparse table are not preferred. Tables of one
    /// dictionary differ by a few percent; only one that is filled half as densely again as the
    /// average would be drawn too seldom.
    pub fn random(&self, mut random: impl FnMut() -> u64) -> Option<Element> {
        if !self.is_directory() {
            return self.root.random(&mut random);
        }
        if self.is_empty() {
            return None;
        }
        let dense = u64::from(self.root.count) * 3 / 2;
        loop {
            let (first, _) = self.family(self.index_of(random()));
            // SAFETY: `family` names live headers.
            let table = unsafe { self.header(first).as_ref() };
            let density = u64::from(table.count) << table.depth;
            let drawn = (u128::from(random()) * u128::from(dense)) >> 64;
            if drawn < u128::from(density) {
                return table.random(&mut random);
            }
        }
    }

    /// Empties the dictionary table by table: hands the elements of some tables to `free`, about
    /// `budget` of them, and says whether any are left. Nothing else may be done with it after the
    /// first call until it is empty.
    pub fn drain_some(&mut self, budget: usize, mut free: impl FnMut(Element)) -> bool {
        if !self.is_directory() {
            self.root.drain(&mut free);
            return false;
        }
        let mut given = 0;
        let end = 1 << self.root.depth;
        // SAFETY: a directory has a head; `self` is borrowed exclusively.
        let mut index = unsafe { self.head().as_ref() }.drained as usize;
        while index < end && given < budget {
            let (first, members) = self.family(index);
            // SAFETY: `family` names live headers; emptied ones are not looked at again.
            let table = unsafe { self.header(first).as_mut() };
            // An empty table still counts, so that sparse directories end as well.
            given += table.count as usize + 1;
            self.root.count -= table.count;
            table.drain(&mut free);
            index = first + members;
        }
        // SAFETY: as above.
        unsafe { self.head().as_mut() }.drained = index as u32;
        if index == end {
            self.free_directory();
            self.root = Table::default();
        }
        index < end
    }

    /// Bytes that the dictionary itself takes in the arena, the 16 of the header not included.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        if !self.is_directory() {
            return self.root.table_bytes();
        }
        let mut bytes = shm::arena::usable_size(directory_bytes(self.root.depth));
        let mut index = 0;
        while index < 1 << self.root.depth {
            let (first, members) = self.family(index);
            // SAFETY: `family` names live headers.
            bytes += unsafe { self.header(first).as_ref() }.table_bytes();
            index = first + members;
        }
        bytes
    }

    /// Checks D1 to D4 and that every table lies in the arena.
    ///
    /// # Errors
    /// A sentence that names the first contradiction.
    pub fn check(&self, hash_of: impl Fn(Element) -> u64) -> Result<(), String> {
        if !self.is_directory() {
            return self.root.check(0, 0, &hash_of);
        }
        if !Arena.contains(self.root.word, directory_bytes(self.root.depth)) {
            return Err("a directory lies outside the arena".to_owned());
        }
        let (mut index, mut count, mut deepest) = (0, 0, 0);
        while index < 1 << self.root.depth {
            let (first, members) = self.family(index);
            if first != index {
                return Err(format!("header {index} does not begin a family (D3)"));
            }
            // SAFETY: `family` names live headers.
            let table = unsafe { self.header(first).as_ref() };
            for member in first..first + members {
                // SAFETY: as above.
                if !unsafe { self.header(member).as_ref() }.is_alike(table) {
                    return Err(format!("headers {first} and {member} differ (D3)"));
                }
            }
            table.check(
                (first as u64) << (64 - self.root.depth),
                table.depth,
                &hash_of,
            )?;
            count += table.count;
            deepest += u32::from(table.depth == self.root.depth);
            index += members;
        }
        // SAFETY: a directory has a head.
        if count != self.root.count || deepest != unsafe { self.head().as_ref() }.deepest {
            return Err("a directory's counts are wrong".to_owned());
        }
        Ok(())
    }
}

/// Bytes of a directory of `depth`, its head included.
fn directory_bytes(depth: u8) -> usize {
    HEADER_BYTES + (HEADER_BYTES << depth)
}

/// Asks the processor for the cache line at `address`; never faults.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and touches no memory, whatever the address is.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
