//! The members of a big set: a dictionary over one small object per member.
//!
//! ```text
//!   SetTable | dictionary 16 | hash seed 8 | bytes 8 |
//!              +-- word -> blob (member)
//! ```
//!
//! Members are kept as text, numbers too: a number of up to seven digits takes the smallest object
//! there is anyway.
//!
//! Invariants
//!   T1  the dictionary names exactly the live blobs of this set, each under the hash of its bytes.
//!   T2  `bytes` is the sum of their sizes.
//!
//! Cost: 10 bytes and the blob per member; finding touches a bucket and the member. Growing never
//! looks at more than about 900 members at a time, and freeing goes in slices.
//! Not here: small sets (`intset`, `listpack`), when a set becomes a table (`commands`).

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::blob::Blob;
use super::{Owned, Structure};
use crate::keyspace::dictionary::{self, Dictionary, Element, Position};

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct SetTable {
    dictionary: Dictionary,
    seed: u64,
    bytes: u64,
}

/// All members of a table, in the order of their hashes.
#[derive(Debug)]
pub struct Members<'a>(dictionary::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(|element| Blob::at(element).bytes())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Members<'_> {}

#[inline]
fn hash_of(seed: u64, member: &[u8]) -> u64 {
    xxh3_64_with_seed(member, seed)
}

#[inline]
fn is_member(element: Element, member: &[u8]) -> bool {
    Blob::at(element).bytes() == member
}

impl SetTable {
    /// What finds elements by the system-wide hash of their names.
    #[inline]
    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// A table without members, in the arena. `seed` is the hash seed of the whole system.
    #[must_use]
    pub fn create(seed: u64) -> Owned<SetTable> {
        let object = Arena.take(size_of::<SetTable>()).cast::<SetTable>();
        // SAFETY: the object has the size of a table, and nobody else knows it.
        unsafe {
            object.write(SetTable {
                dictionary: Dictionary::default(),
                seed,
                bytes: 0,
            });
        }
        Owned::new(object)
    }

    /// Whether the member is there.
    #[inline]
    #[must_use]
    pub fn contains(&self, member: &[u8]) -> bool {
        let hash = hash_of(self.seed, member);
        self.dictionary
            .get(hash, |element| is_member(element, member))
            .is_some()
    }

    /// Adds a member; says whether it was not there.
    #[inline]
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let (seed, hash) = (self.seed, hash_of(self.seed, member));
        let found = self
            .dictionary
            .get(hash, |element| is_member(element, member));
        if found.is_some() {
            return false;
        }
        let blob = Blob::create(member);
        self.bytes += blob.size() as u64;
        self.dictionary.insert(hash, blob.object(), |element| {
            hash_of(seed, Blob::at(element).bytes())
        });
        true
    }

    /// Removes a member; says whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let hash = hash_of(self.seed, member);
        let place = self
            .dictionary
            .find(hash, |element| is_member(element, member));
        let Some(place) = place else {
            return false;
        };
        let blob = Blob::at(place.element());
        self.dictionary.remove(hash, place);
        self.bytes -= blob.size() as u64;
        blob.free();
        true
    }

    /// A random member, each equally likely; `None` without members.
    pub fn random(&self, random: impl FnMut() -> u64) -> Option<&[u8]> {
        self.dictionary
            .random(random)
            .map(|element| Blob::at(element).bytes())
    }

    /// Removes a random member after `visit` has seen it; says whether there was one.
    pub fn pop(&mut self, random: impl FnMut() -> u64, visit: impl FnOnce(&[u8])) -> bool {
        let Some(element) = self.dictionary.random(random) else {
            return false;
        };
        let blob = Blob::at(element);
        let hash = hash_of(self.seed, blob.bytes());
        let place = self.dictionary.find(hash, |other| other == element);
        debug_assert!(place.is_some(), "T1");
        if let Some(place) = place {
            visit(blob.bytes());
            self.dictionary.remove(hash, place);
            self.bytes -= blob.size() as u64;
            blob.free();
        }
        true
    }

    /// Walks all members.
    #[must_use]
    pub fn iter(&self) -> Members<'_> {
        Members(self.dictionary.iter())
    }

    /// Goes on with a scan at `cursor` (0 to start): visits about `want` members and returns the
    /// cursor to go on with, 0 at the end. A member that is there from the first call to the last
    /// one is visited, whatever comes and goes meanwhile.
    pub fn scan(&self, cursor: u64, want: usize, mut visit: impl FnMut(&[u8])) -> u64 {
        self.dictionary
            .scan(Position::unpack(cursor), want, |element| {
                visit(Blob::at(element).bytes());
            })
            .map_or(0, Position::pack)
    }

    /// Asks for the memory that finding the member reads first.
    #[inline]
    pub fn prefetch(&self, member: &[u8]) {
        self.dictionary.prefetch_bucket(hash_of(self.seed, member));
    }
}

impl<'a> IntoIterator for &'a SetTable {
    type Item = &'a [u8];
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

impl Structure for SetTable {
    fn free(this: NonNull<Self>) {
        while Self::free_some(this, usize::MAX) {}
    }

    fn free_some(mut this: NonNull<Self>, budget: usize) -> bool {
        // SAFETY: the caller owns the live table and lends it to nobody.
        let table = unsafe { this.as_mut() };
        let is_more = table
            .dictionary
            .drain_some(budget, |element| Blob::at(element).free());
        if !is_more {
            // SAFETY: taken by `create` with this size; it owns nothing any more.
            unsafe { Arena.give(this.cast(), size_of::<Self>()) }
        }
        is_more
    }

    fn copy(&self) -> NonNull<Self> {
        let mut twin = Self::create(self.seed);
        for member in self {
            twin.insert(member);
        }
        twin.release()
    }

    fn len(&self) -> usize {
        self.dictionary.len()
    }

    fn memory_bytes(&self, _samples: usize) -> usize {
        usable_size(size_of::<Self>()) + self.dictionary.table_bytes() + self.bytes as usize
    }

    fn check(&self) -> Result<(), String> {
        let mut bytes = 0;
        for element in &self.dictionary {
            let blob = Blob::at(element);
            let address = element.addr().get() as u64;
            // The length can be read only where the object begins inside.
            if !Arena.contains(address, 1) || !Arena.contains(address, blob.size()) {
                return Err(format!(
                    "the member at {address:#x} reaches outside the arena"
                ));
            }
            bytes += blob.size() as u64;
        }
        if bytes != self.bytes {
            return Err(format!(
                "the members of a set take {bytes} bytes, but {} are counted (T2)",
                self.bytes
            ));
        }
        let seed = self.seed;
        self.dictionary
            .check(|element| hash_of(seed, Blob::at(element).bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use shm::arena::Mapping;

    use super::*;
    use crate::random::Random;

    fn arena() -> Mapping {
        let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
        mapping.enter();
        mapping
    }

    fn member() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => (0u32..3000).prop_map(|number| number.to_string().into_bytes()),
            1 => proptest::collection::vec(any::<u8>(), 0..300),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn agrees_with_a_sorted_set(
            steps in proptest::collection::vec((0u8..10, member()), 0..3000),
            seed in any::<u64>(),
        ) {
            let _arena = arena();
            let before = Arena.used_bytes();
            let mut table = SetTable::create(seed);
            let mut rng = Random::new(seed);
            let mut model: BTreeSet<Vec<u8>> = BTreeSet::new();
            for (action, member) in steps {
                match action {
                    0..6 => prop_assert_eq!(table.insert(&member), model.insert(member.clone())),
                    6..9 => prop_assert_eq!(table.remove(&member), model.remove(&member)),
                    _ => {
                        let mut popped = None;
                        let is_any = table.pop(|| rng.next_u64(), |member| popped = Some(member.to_vec()));
                        prop_assert_eq!(is_any, !model.is_empty());
                        prop_assert!(popped.is_none_or(|popped| model.remove(&popped)));
                    }
                }
                prop_assert_eq!(table.contains(&member), model.contains(&member));
            }
            prop_assert_eq!(table.check(), Ok(()));
            prop_assert_eq!(table.len(), model.len());
            let walked: Vec<Vec<u8>> = table.iter().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(walked.len(), model.len());
            prop_assert_eq!(&walked.into_iter().collect::<BTreeSet<_>>(), &model);
            let random = table.random(|| rng.next_u64());
            prop_assert!(random.is_none_or(|member| model.contains(member)));

            let (mut scanned, mut cursor) = (BTreeSet::new(), 0);
            loop {
                cursor = table.scan(cursor, 7, |member| { scanned.insert(member.to_vec()); });
                if cursor == 0 {
                    break;
                }
            }
            prop_assert_eq!(&scanned, &model);

            let twin = Owned::new(table.copy());
            let used = Arena.used_bytes();
            prop_assert_eq!(twin.check(), Ok(()));
            prop_assert!(model.iter().all(|member| twin.contains(member)));
            let bytes = twin.memory_bytes(0) as u64;
            drop(twin);
            prop_assert_eq!(used - Arena.used_bytes(), bytes);
            let table = table.release();
            while SetTable::free_some(table, 100) {}
            prop_assert_eq!(Arena.used_bytes(), before);
            prop_assert_eq!(Arena.check(), Ok(()));
        }
    }
}
