//! The dictionary against a model, and the promise of scans.
//!
//! Elements are 8-byte objects that hold their own hash, so that tests choose hashes at will: few
//! distinct tags and prefixes reach overflowing buckets, deep splits and merges quickly.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use shm::arena::{Arena, Mapping};

use super::*;

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
    mapping.enter();
    mapping
}

fn element(hash: u64) -> Element {
    let object = Arena.take(8);
    // SAFETY: the object has 8 bytes.
    unsafe { object.cast::<u64>().write(hash) };
    object
}

fn hash_of(element: Element) -> u64 {
    // SAFETY: elements of these tests are 8 bytes.
    unsafe { element.cast::<u64>().read() }
}

fn free(element: Element) {
    // SAFETY: taken by `element`.
    unsafe { Arena.give(element, 8) }
}

fn insert(dictionary: &mut Dictionary, hash: u64) {
    dictionary.insert(hash, element(hash), hash_of);
}

fn remove(dictionary: &mut Dictionary, hash: u64) -> bool {
    let Some(place) = dictionary.find(hash, |element| hash_of(element) == hash) else {
        return false;
    };
    let element = place.element();
    dictionary.remove(hash, place);
    free(element);
    true
}

fn contains(dictionary: &mut Dictionary, hash: u64) -> bool {
    dictionary
        .find(hash, |element| hash_of(element) == hash)
        .is_some()
}

fn drain(dictionary: &mut Dictionary) {
    while dictionary.drain_some(100, free) {}
    assert!(dictionary.is_empty());
}

/// A cheap mixer, for hashes that look random but are numbered.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 32
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(u64),
    Remove(u64),
}

/// Hashes from a small set: `tags` distinct low bits and 8 distinct leading bits.
fn hashes(tags: u64) -> impl Strategy<Value = u64> {
    (0..tags, 0u64..256).prop_map(move |(tag, top)| (top << 56) | (tag * (0x1_0000 / tags)))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    (1u64..400).prop_flat_map(|tags| {
        let step = prop_oneof![
            3 => hashes(tags).prop_map(Step::Insert),
            2 => hashes(tags).prop_map(Step::Remove),
        ];
        proptest::collection::vec(step, 1..400)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn small_tables_agree_with_a_set(steps in steps()) {
        let _arena = arena();
        let mut dictionary = Dictionary::default();
        let mut model = BTreeSet::new();
        for step in steps {
            match step {
                Step::Insert(hash) => {
                    prop_assert_eq!(contains(&mut dictionary, hash), !model.insert(hash));
                    if !contains(&mut dictionary, hash) {
                        insert(&mut dictionary, hash);
                    }
                }
                Step::Remove(hash) => {
                    prop_assert_eq!(remove(&mut dictionary, hash), model.remove(&hash));
                }
            }
            prop_assert_eq!(dictionary.len(), model.len());
            prop_assert_eq!(dictionary.check(hash_of), Ok(()));
        }
        let mut found = BTreeSet::new();
        dictionary.for_each(|element| { found.insert(hash_of(element)); });
        prop_assert_eq!(&found, &model);
        let walked: Vec<u64> = dictionary.iter().map(hash_of).collect();
        prop_assert_eq!(walked.len(), model.len());
        prop_assert_eq!(walked.into_iter().collect::<BTreeSet<u64>>(), model);
        drain(&mut dictionary);
        prop_assert_eq!(Arena.check(), Ok(()));
    }

    #[test]
    fn growing_and_shrinking_keeps_everything(
        peaks in proptest::collection::vec((0usize..12_000, 0usize..12_000), 1..4),
        narrow in 0u32..20,
    ) {
        let _arena = arena();
        let mut dictionary = Dictionary::default();
        let mut model = BTreeMap::new();
        let mut number = 0;
        for (peak, valley) in peaks {
            while model.len() < peak {
                number += 1;
                // Narrow: many hashes share their leading bits, so that directories get lopsided.
                let hash = if number % 3 == 0 { mixed(number) } else { mixed(number) >> narrow };
                if model.insert(hash, ()).is_none() {
                    insert(&mut dictionary, hash);
                }
            }
            prop_assert_eq!(dictionary.check(hash_of), Ok(()));
            while model.len() > valley {
                let start = mixed(number);
                number += 1;
                let hash = model.range(start..).next().or(model.iter().next()).map(|(hash, ())| *hash);
                prop_assert!(remove(&mut dictionary, hash.unwrap()));
                model.remove(&hash.unwrap());
            }
            prop_assert_eq!(dictionary.check(hash_of), Ok(()));
            for &hash in model.keys() {
                let found = dictionary.get(hash, |element| hash_of(element) == hash);
                prop_assert_eq!(found.map(hash_of), Some(hash));
                let other = dictionary.get(hash ^ 1, |element| hash_of(element) == hash ^ 1);
                prop_assert_eq!(other.is_some(), model.contains_key(&(hash ^ 1)));
            }
            let walked: Vec<u64> = dictionary.iter().map(hash_of).collect();
            prop_assert_eq!(walked.len(), model.len());
            prop_assert!(walked.iter().all(|hash| model.contains_key(hash)));
        }
        drain(&mut dictionary);
        prop_assert_eq!(Arena.check(), Ok(()));
    }

    #[test]
    fn a_scan_returns_what_is_there_all_the_time(
        stable in 1usize..3000,
        want in 1usize..300,
        waves in proptest::collection::vec(0usize..6000, 0..40),
    ) {
        let _arena = arena();
        let mut dictionary = Dictionary::default();
        let stable: BTreeSet<u64> = (0..stable as u64).map(|number| mixed(number * 2)).collect();
        for &hash in &stable {
            insert(&mut dictionary, hash);
        }
        let mut position = Position::default();
        let mut found = BTreeSet::new();
        let mut waves = waves.into_iter();
        let mut others: Vec<u64> = Vec::new();
        let mut number = 1;
        loop {
            let mut visited = 0;
            let next = dictionary.scan(position, want, |element| {
                visited += 1;
                found.insert(hash_of(element));
            });
            prop_assert!(visited < want + 64, "{} for {}", visited, want);
            let Some(next) = next else { break };
            prop_assert_eq!(Position::unpack(next.pack()), next);
            prop_assert!(next.pack() < 1 << Position::BITS && next.pack() != 0);
            position = next;
            // Between two steps the dictionary grows and shrinks wildly.
            let Some(size) = waves.next() else { continue };
            while others.len() < size {
                number += 2;
                insert(&mut dictionary, mixed(number));
                others.push(mixed(number));
            }
            while others.len() > size {
                let at = mixed(number) as usize % others.len();
                number += 2;
                prop_assert!(remove(&mut dictionary, others.swap_remove(at)));
            }
        }
        prop_assert!(stable.is_subset(&found));
        drain(&mut dictionary);
    }
}

#[test]
fn a_still_scan_returns_everything_once() {
    let _arena = arena();
    for count in [0, 1, 2, 8, 9, 100, 896, 897, 5000] {
        let mut dictionary = Dictionary::default();
        (0..count).for_each(|number| insert(&mut dictionary, mixed(number)));
        let mut found = Vec::new();
        let mut position = Some(Position::default());
        while let Some(from) = position {
            position = dictionary.scan(from, 10, |element| found.push(hash_of(element)));
        }
        assert_eq!(found.len() as u64, count);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len() as u64, count);
        drain(&mut dictionary);
    }
}

#[test]
fn hashes_that_agree_in_all_leading_bits_are_kept_in_one_long_table() {
    let _arena = arena();
    let mut dictionary = Dictionary::default();
    for number in 0..3000u64 {
        insert(&mut dictionary, number);
    }
    assert_eq!(dictionary.check(hash_of), Ok(()));
    assert!((0..3000).all(|number| contains(&mut dictionary, number)));
    for number in 0..3000 {
        assert!(remove(&mut dictionary, number));
    }
    assert_eq!(dictionary.check(hash_of), Ok(()));
    assert_eq!(dictionary.table_bytes(), 0);
}

#[test]
fn random_elements_come_up_about_equally_often() {
    let _arena = arena();
    let mut dictionary = Dictionary::default();
    let count = 2000;
    (0..count).for_each(|number| insert(&mut dictionary, mixed(number)));
    let mut times = BTreeMap::new();
    let mut seed = 0;
    for _ in 0..count * 50 {
        let element = dictionary.random(|| {
            seed += 1;
            mixed(seed ^ 0xabcd)
        });
        *times.entry(hash_of(element.unwrap())).or_insert(0) += 1;
    }
    assert_eq!(times.len() as u64, count, "every element comes up");
    // Pearson's sum is about the number of elements, give or take 63, if all are equally likely.
    let sum: f64 = times
        .values()
        .map(|&times| (f64::from(times) - 50.0).powi(2) / 50.0)
        .sum();
    assert!((1700.0..2300.0).contains(&sum), "{sum}");
    drain(&mut dictionary);
}

#[test]
fn a_position_survives_any_number_as_a_cursor() {
    let _arena = arena();
    let mut dictionary = Dictionary::default();
    (0..5000).for_each(|number| insert(&mut dictionary, mixed(number)));
    for number in 0..10_000 {
        let position = Position::unpack(mixed(number));
        dictionary.scan(position, 10, |_| {});
    }
    drain(&mut dictionary);
}
