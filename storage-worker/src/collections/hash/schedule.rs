//! The fields of a table that expire, ordered so that the next one is known at any time.
//!
//! A heap with four children per node over leaves of 256 entries; a field knows its number.
//!
//! ```text
//!   up to 256 fields       root -> leaf (as long as needed)
//!   more                   root -> [ leaf, leaf, ... ]           leaf = 256 entries of 12 bytes
//!
//!   entry = time (6 bytes), address of the field (6)     children of number n: 4n + 1 ..= 4n + 4
//! ```
//!
//! Why not the wheel of the keyspace: it takes 14 KiB before the first entry, and hashes are many. A
//! heap has no such floor, and never moves more than one leaf's or the root's worth of memory.
//!
//! Invariants
//!   S1  no entry is due before its parent.
//!   S2  the field of entry n expires and has the number n.
//!   S3  `leaves` is 0 and `capacity` the length of the only leaf, or `leaves` leaves exist and the
//!       root has room for `capacity` addresses.
//!
//! Cost: 12 bytes per field that expires, and 4 in the field. Adding a field that expires later than
//! most is O(1); others cost a step per level, ten of them for a million fields.

use std::ptr::NonNull;

use proto::time::UnixMillis;
use shm::arena::{Arena, usable_size};

use super::field::Field;

const ENTRY_BYTES: usize = 12;
/// Entries of a leaf.
const LEAF: usize = 256;
const LEAF_BYTES: usize = LEAF * ENTRY_BYTES;
const CHILDREN: usize = 4;
const ADDRESS_BYTES: usize = size_of::<u64>();

/// See the module. All zeroes is an empty one.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Schedule {
    root: u64,
    len: u32,
    capacity: u32,
    leaves: u32,
    reserved: u32,
}

fn address_of(object: NonNull<u8>) -> u64 {
    object.as_ptr().expose_provenance() as u64
}

fn object_at(address: u64) -> NonNull<u8> {
    let object: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
    debug_assert!(!object.is_null());
    // SAFETY: only called with addresses of live objects.
    unsafe { NonNull::new_unchecked(object) }
}

impl Schedule {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Place of entry `number`.
    #[inline]
    fn entry(&self, number: usize) -> NonNull<u8> {
        let leaf = if self.leaves == 0 {
            object_at(self.root)
        } else {
            self.leaf(number / LEAF)
        };
        // SAFETY: S3: callers stay below the room that there is.
        unsafe { leaf.add(number % LEAF * ENTRY_BYTES) }
    }

    fn leaf(&self, number: usize) -> NonNull<u8> {
        debug_assert!(number < self.leaves as usize);
        // SAFETY: S3: the root has an address for every leaf.
        object_at(unsafe { object_at(self.root).cast::<u64>().add(number).read() })
    }

    #[inline]
    fn six(&self, number: usize, offset: usize) -> u64 {
        debug_assert!(number < self.len());
        // SAFETY: an entry has 12 bytes.
        let [a, b, c, d, e, f] = unsafe { self.entry(number).add(offset).cast::<[u8; 6]>().read() };
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    /// When the field with this number expires.
    #[inline]
    pub(super) fn time(&self, number: u32) -> UnixMillis {
        UnixMillis(self.six(number as usize, 0))
    }

    #[inline]
    fn field(&self, number: usize) -> Field {
        Field::new(object_at(self.six(number, 6)))
    }

    /// Writes an entry and tells the field.
    #[inline]
    fn put(&mut self, number: usize, at: UnixMillis, field: Field) {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..6].copy_from_slice(&at.0.to_le_bytes()[..6]);
        bytes[6..].copy_from_slice(&address_of(field.object()).to_le_bytes()[..6]);
        // SAFETY: as in `six`; this handle is the only user.
        unsafe { self.entry(number).cast::<[u8; ENTRY_BYTES]>().write(bytes) }
        field.set_number(number as u32);
    }

    /// When the first field expires.
    #[inline]
    pub(super) fn next(&self) -> Option<UnixMillis> {
        (self.len > 0).then(|| self.time(0))
    }

    /// The field that expires first.
    pub(super) fn first(&self) -> Option<Field> {
        (self.len > 0).then(|| self.field(0))
    }

    /// Adds a field, which has room for a number.
    pub(super) fn insert(&mut self, field: Field, at: UnixMillis) {
        self.make_room();
        self.len += 1;
        self.rise(self.len() - 1, at, field);
    }

    /// Takes the field with this number out.
    pub(super) fn remove(&mut self, number: u32) {
        let last = self.len() - 1;
        let (at, field) = (self.time(last as u32), self.field(last));
        self.len -= 1;
        if (number as usize) < last {
            self.settle(number as usize, at, field);
        }
        self.drop_room();
    }

    /// The field with this number expires at another time.
    pub(super) fn set_time(&mut self, number: u32, at: UnixMillis) {
        let field = self.field(number as usize);
        self.settle(number as usize, at, field);
    }

    /// The field with this number has moved.
    pub(super) fn moved(&mut self, number: u32, field: Field) {
        let at = self.time(number);
        self.put(number as usize, at, field);
    }

    /// Puts an entry that takes the place of another one where it belongs.
    fn settle(&mut self, number: usize, at: UnixMillis, field: Field) {
        let parent = number.checked_sub(1).map(|number| number / CHILDREN);
        if parent.is_some_and(|parent| self.time(parent as u32) > at) {
            self.rise(number, at, field);
        } else {
            self.sink(number, at, field);
        }
    }

    /// Puts an entry at `number`, or further up as long as it is due before its parent.
    fn rise(&mut self, mut number: usize, at: UnixMillis, field: Field) {
        while number > 0 {
            let parent = (number - 1) / CHILDREN;
            let time = self.time(parent as u32);
            if time <= at {
                break;
            }
            self.put(number, time, self.field(parent));
            number = parent;
        }
        self.put(number, at, field);
    }

    /// Puts an entry at `number`, or further down as long as a child is due before it.
    fn sink(&mut self, mut number: usize, at: UnixMillis, field: Field) {
        loop {
            let first = number * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.len());
            let soonest = children
                .map(|child| (self.time(child as u32), child))
                .min_by_key(|&(time, _)| time);
            match soonest {
                Some((time, child)) if time < at => {
                    self.put(number, time, self.field(child));
                    number = child;
                }
                _ => break,
            }
        }
        self.put(number, at, field);
    }

    /// Makes room for one more entry.
    fn make_room(&mut self) {
        if self.leaves == 0 {
            if self.len < self.capacity {
                return;
            }
            if self.len() < LEAF {
                return self.resize_leaf((self.len() * 5 / 4).max(self.len() + 1));
            }
            // The only leaf is full: it becomes the first of several.
            let root = Arena.take(CHILDREN * ADDRESS_BYTES);
            // SAFETY: the object has room for some addresses.
            unsafe { root.cast::<u64>().write(self.root) }
            self.root = address_of(root);
            self.capacity = (usable_size(CHILDREN * ADDRESS_BYTES) / ADDRESS_BYTES) as u32;
            self.leaves = 1;
        }
        if self.len() < self.leaves as usize * LEAF {
            return;
        }
        if self.leaves == self.capacity {
            self.grow_root();
        }
        let leaf = Arena.take(LEAF_BYTES);
        // SAFETY: S3: the root has room for one more address.
        unsafe {
            object_at(self.root)
                .cast::<u64>()
                .add(self.leaves as usize)
                .write(address_of(leaf));
        }
        self.leaves += 1;
    }

    /// Moves the only leaf to one with room for `wanted` entries, or as many as come with it.
    fn resize_leaf(&mut self, wanted: usize) {
        let bytes = usable_size(wanted.min(LEAF) * ENTRY_BYTES);
        let capacity = (bytes / ENTRY_BYTES).min(LEAF);
        let leaf = Arena.take(bytes);
        if self.capacity > 0 {
            // SAFETY: both leaves hold `len` entries; the old one was taken for `capacity`.
            unsafe {
                let old = object_at(self.root);
                leaf.copy_from_nonoverlapping(old, self.len() * ENTRY_BYTES);
                Arena.give(old, self.leaf_bytes());
            }
        }
        self.root = address_of(leaf);
        self.capacity = capacity as u32;
    }

    /// Bytes that the only leaf takes.
    fn leaf_bytes(&self) -> usize {
        self.capacity as usize * ENTRY_BYTES
    }

    fn grow_root(&mut self) {
        let bytes = usable_size(self.capacity as usize * ADDRESS_BYTES * 2);
        let root = Arena.take(bytes);
        // SAFETY: the new root has room for all addresses of the old one.
        unsafe {
            let old = object_at(self.root);
            root.copy_from_nonoverlapping(old, self.leaves as usize * ADDRESS_BYTES);
            Arena.give(old, self.capacity as usize * ADDRESS_BYTES);
        }
        self.root = address_of(root);
        self.capacity = (bytes / ADDRESS_BYTES) as u32;
    }

    /// Gives back what is not needed any more. One leaf may stay empty, so that an entry that comes
    /// and goes does not move anything.
    fn drop_room(&mut self) {
        if self.len == 0 {
            return self.free();
        }
        if self.leaves == 0 {
            if self.len() * 4 <= self.capacity as usize && self.capacity > 8 {
                self.resize_leaf(self.len() * 2);
            }
            return;
        }
        if self.len() + 2 * LEAF <= self.leaves as usize * LEAF {
            let last = self.leaf(self.leaves as usize - 1);
            self.leaves -= 1;
            // SAFETY: taken with this size; nobody names it any more.
            unsafe { Arena.give(last, LEAF_BYTES) }
        }
    }

    /// Forgets all entries; the fields keep their numbers, which mean nothing any more.
    pub(super) fn free(&mut self) {
        // SAFETY: S3: everything was taken with these sizes.
        unsafe {
            if self.leaves > 0 {
                for number in 0..self.leaves as usize {
                    Arena.give(self.leaf(number), LEAF_BYTES);
                }
                Arena.give(object_at(self.root), self.capacity as usize * ADDRESS_BYTES);
            } else if self.capacity > 0 {
                Arena.give(object_at(self.root), self.leaf_bytes());
            }
        }
        *self = Self::default();
    }

    /// Bytes that it takes in the arena, the 24 of the header not included.
    pub(super) fn memory_bytes(&self) -> usize {
        if self.leaves == 0 {
            return match self.capacity {
                0 => 0,
                _ => usable_size(self.leaf_bytes()),
            };
        }
        usable_size(self.capacity as usize * ADDRESS_BYTES)
            + self.leaves as usize * usable_size(LEAF_BYTES)
    }

    /// Checks S1, S2, and that all memory lies in the arena.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.leaves > 0 {
            let bytes = self.capacity as usize * ADDRESS_BYTES;
            if !Arena.contains(self.root, bytes) || self.leaves > self.capacity {
                return Err("the root of a schedule is broken (S3)".to_owned());
            }
            if self.len() > self.leaves as usize * LEAF {
                return Err("a schedule lacks leaves (S3)".to_owned());
            }
        } else if self.len > self.capacity
            || (self.capacity > 0 && !Arena.contains(self.root, self.leaf_bytes()))
        {
            return Err("the leaf of a schedule is broken (S3)".to_owned());
        }
        for number in 0..self.len() {
            if !Arena.contains(self.six(number, 6), 1) {
                return Err("a schedule names a field outside the arena".to_owned());
            }
            if self.field(number).number() != Some(number as u32) {
                return Err(format!(
                    "the field of entry {number} has another number (S2)"
                ));
            }
            let parent = number.saturating_sub(1) / CHILDREN;
            if self.time(parent as u32) > self.time(number as u32) {
                return Err(format!("entry {number} is due before its parent (S1)"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use shm::arena::Mapping;

    use super::*;

    fn field(number: usize) -> Field {
        Field::create(number.to_string().as_bytes(), b"", Some(0))
    }

    #[test]
    fn many_fields_come_out_in_order() {
        let mapping = Mapping::private_anywhere(1 << 28, 1).unwrap();
        mapping.enter();
        let empty = Arena.used_bytes();
        let mut schedule = Schedule::default();
        let mut time = 12345u64;
        for number in 0..20_000 {
            time = time.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            schedule.insert(field(number), UnixMillis(time >> 20));
        }
        schedule.check().unwrap();
        let bytes = schedule.memory_bytes();
        assert!((240_000..260_000).contains(&bytes), "{bytes}");
        let mut last = UnixMillis(0);
        while let Some(first) = schedule.first() {
            let at = schedule.next().unwrap();
            assert!(at >= last);
            last = at;
            schedule.remove(first.number().unwrap());
            first.free();
            if schedule.len().is_multiple_of(1000) {
                schedule.check().unwrap();
            }
        }
        assert_eq!(Arena.used_bytes(), empty);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn the_first_field_is_always_known(
            steps in proptest::collection::vec((0u8..10, any::<u32>(), 0u64..500), 1..1500)
        ) {
            let mapping = Mapping::private_anywhere(1 << 26, 1).unwrap();
            mapping.enter();
            let empty = Arena.used_bytes();
            let mut schedule = Schedule::default();
            let mut fields: Vec<(Field, u64)> = Vec::new();
            for (number, (kind, pick, time)) in steps.into_iter().enumerate() {
                let at = UnixMillis(time);
                let pick = pick as usize % fields.len().max(1);
                match kind {
                    0..6 => {
                        let field = field(number);
                        schedule.insert(field, at);
                        fields.push((field, time));
                    }
                    6 if !fields.is_empty() => {
                        schedule.set_time(fields[pick].0.number().unwrap(), at);
                        fields[pick].1 = time;
                    }
                    7 if !fields.is_empty() => {
                        let moved = fields[pick].0.with_value(&[1; 40]);
                        schedule.moved(moved.number().unwrap(), moved);
                        fields[pick].0 = moved;
                    }
                    _ if !fields.is_empty() => {
                        let (field, _) = fields.swap_remove(pick);
                        schedule.remove(field.number().unwrap());
                        field.free();
                    }
                    _ => {}
                }
                let soonest = fields.iter().map(|&(_, time)| time).min();
                prop_assert_eq!(schedule.next(), soonest.map(UnixMillis));
                prop_assert_eq!(schedule.len(), fields.len());
            }
            schedule.check().map_err(TestCaseError::fail)?;
            let times: BTreeSet<u64> = fields.iter().map(|&(_, time)| time).collect();
            for &(field, time) in &fields {
                prop_assert_eq!(schedule.time(field.number().unwrap()), UnixMillis(time));
                prop_assert!(times.contains(&time));
                field.free();
            }
            schedule.free();
            prop_assert_eq!(Arena.used_bytes(), empty);
        }
    }
}
