//! The tree against a sorted map of the standard library.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shm::arena::{Arena, Mapping};

use super::{Record, Tree};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(4))]
struct Number {
    key: u64,
    value: u32,
    filler: [u32; 6],
}

impl Record for Number {
    type Key = u64;

    fn key(&self) -> u64 {
        self.key
    }
}

fn number(key: u64, value: u32) -> Number {
    Number {
        key,
        value,
        filler: [value; 6],
    }
}

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
    mapping.enter();
    mapping
}

fn assert_same(tree: &Tree<Number>, model: &BTreeMap<u64, u32>) {
    tree.check().unwrap();
    assert_eq!(tree.len(), model.len());
    let all: Vec<(u64, u32)> = tree.iter().map(|found| (found.key, found.value)).collect();
    let wanted: Vec<(u64, u32)> = model.iter().map(|(&key, &value)| (key, value)).collect();
    assert_eq!(all, wanted);
    let keys = |numbers: Vec<&Number>| numbers.iter().map(|found| found.key).collect::<Vec<u64>>();
    let back: Vec<u64> = model.keys().rev().copied().collect();
    assert_eq!(keys(tree.iter_back_from(u64::MAX).collect()), back);
}

fn assert_neighbours(tree: &Tree<Number>, model: &BTreeMap<u64, u32>, key: u64) {
    let found = |number: Option<&Number>| number.map(|number| number.key);
    let after = key
        .checked_add(1)
        .and_then(|from| model.range(from..).next());
    assert_eq!(found(tree.get(key)), model.get(&key).map(|_| key));
    assert_eq!(
        found(tree.at_or_after(key)),
        model.range(key..).next().map(|found| *found.0)
    );
    assert_eq!(found(tree.after(key)), after.map(|found| *found.0));
    assert_eq!(
        found(tree.at_or_before(key)),
        model.range(..=key).next_back().map(|found| *found.0)
    );
    assert_eq!(
        found(tree.before(key)),
        model.range(..key).next_back().map(|found| *found.0)
    );
    let some: Vec<u64> = tree
        .iter_from(key)
        .take(40)
        .map(|number| number.key)
        .collect();
    assert_eq!(
        some,
        model
            .range(key..)
            .take(40)
            .map(|found| *found.0)
            .collect::<Vec<_>>()
    );
    let some: Vec<u64> = tree
        .iter_back_from(key)
        .take(40)
        .map(|number| number.key)
        .collect();
    assert_eq!(
        some,
        model
            .range(..=key)
            .rev()
            .take(40)
            .map(|found| *found.0)
            .collect::<Vec<_>>()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_a_sorted_map(
        steps in proptest::collection::vec((0u8..12, 0u64..400, 0u32..300), 1..120)
    ) {
        let mapping = arena();
        let empty = Arena.used_bytes();
        let mut tree = Tree::new();
        let mut model = BTreeMap::new();
        for (kind, at, many) in steps {
            let end = model.last_key_value().map_or(0, |last| last.0 + 1);
            match kind {
                0..3 => for more in 0..u64::from(many) {
                    prop_assert!(tree.insert(number(end + more, many)));
                    model.insert(end + more, many);
                },
                3..6 => for more in 0..u64::from(many) {
                    let key = (at * 97 + more * 53) % (end + 100);
                    let is_new = !model.contains_key(&key);
                    prop_assert_eq!(tree.insert(number(key, many)), is_new);
                    model.entry(key).or_insert(many);
                },
                6..9 => for more in 0..u64::from(many) * 2 {
                    let key = (at * 31 + more * if kind == 6 { 1 } else { 71 }) % (end + 1);
                    let removed = tree.remove(key).map(|found| found.value);
                    prop_assert_eq!(removed, model.remove(&key));
                },
                9 => for _ in 0..many {
                    let popped = tree.pop_last().map(|found| found.key);
                    prop_assert_eq!(popped, model.pop_last().map(|found| found.0));
                },
                10 => if let Some(found) = tree.get_mut(at) {
                    found.value = many;
                    model.insert(at, many);
                },
                _ => {
                    let copy = tree.map(|found| *found);
                    tree.clear(|_| ());
                    tree = copy;
                }
            }
            assert_same(&tree, &model);
            assert_neighbours(&tree, &model, at);
            assert_neighbours(&tree, &model, end / 2);
        }
        let mut left = model.len();
        while tree.free_some(50, |_| left -= 1) {
            tree.check().map_err(TestCaseError::fail)?;
        }
        prop_assert_eq!(left, 0);
        prop_assert_eq!(Arena.used_bytes(), empty);
        drop(mapping);
    }
}

#[test]
fn a_tree_that_grows_at_its_end_is_full() {
    let _mapping = arena();
    let mut tree = Tree::new();
    for key in 0..100_000 {
        tree.insert(number(key, 0));
    }
    tree.check().unwrap();
    let per_record = tree.memory_bytes() as f64 / 100_000.0;
    assert!(
        per_record < 1.06 * size_of::<Number>() as f64,
        "{per_record}"
    );
    // Every second one gone: half of the memory.
    for key in 0..50_000 {
        tree.remove(key * 2).unwrap();
    }
    tree.check().unwrap();
    let per_record = tree.memory_bytes() as f64 / 50_000.0;
    assert!(
        per_record < 2.2 * size_of::<Number>() as f64,
        "{per_record}"
    );
    tree.clear(|_| ());
}

#[test]
fn a_queue_leaves_nothing_behind() {
    let _mapping = arena();
    let mut tree = Tree::new();
    for key in 0..20_000 {
        tree.insert(number(key, 0));
        if key >= 100 {
            tree.remove(key - 100).unwrap();
        }
    }
    tree.check().unwrap();
    assert_eq!(tree.len(), 100);
    assert!(tree.memory_bytes() < 8 * 1024, "{}", tree.memory_bytes());
    for key in 19_900..20_000 {
        tree.remove(key).unwrap();
    }
    assert_eq!((tree.len(), tree.memory_bytes()), (0, 0));
}
