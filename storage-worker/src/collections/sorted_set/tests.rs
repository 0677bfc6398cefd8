//! The sorted set against a model of standard collections, with all invariants checked.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shm::arena::{Arena, Mapping};

use super::packed::{self, Packed};
use super::*;
use crate::collections::{StringRef, listpack};

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
    mapping.enter();
    mapping
}

/// Sorted by score and name; scores in tests are whole or infinite.
#[derive(Default)]
struct Model {
    scores: BTreeMap<Vec<u8>, f64>,
}

impl Model {
    fn order(&self) -> Vec<(f64, &[u8])> {
        let mut all: Vec<(f64, &[u8])> = self
            .scores
            .iter()
            .map(|(member, &score)| (score, member.as_slice()))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
        all
    }
}

struct Both {
    set: Owned<SortedSet>,
    model: Model,
}

impl Both {
    fn new() -> Both {
        Both {
            set: SortedSet::create(7),
            model: Model::default(),
        }
    }

    fn put(&mut self, member: &[u8], score: f64) {
        let found = self.set.find(member);
        assert_eq!(
            found.map(Member::score),
            self.model.scores.get(member).copied()
        );
        match found {
            Some(member) => self.set.set_score(member, score),
            None => self.set.insert(score, member),
        }
        self.model.scores.insert(member.to_vec(), score);
    }

    fn remove(&mut self, member: &[u8]) {
        let found = self.set.find(member);
        assert_eq!(found.map(Member::score), self.model.scores.remove(member));
        if let Some(member) = found {
            self.set.remove(member);
        }
    }

    fn remove_ranks(&mut self, first: usize, count: usize) {
        let expected: Vec<(f64, Vec<u8>)> = self
            .model
            .order()
            .into_iter()
            .skip(first)
            .take(count)
            .map(|(score, member)| (score, member.to_vec()))
            .collect();
        let mut seen = Vec::new();
        self.set.remove_ranks(first, count, |score, member| {
            seen.push((score, member.to_vec()));
        });
        assert_eq!(seen, expected);
        for (_, member) in seen {
            self.model.scores.remove(&member);
        }
    }

    fn check(&mut self) {
        let set = &*self.set;
        assert_eq!(set.check(), Ok(()));
        let order = self.model.order();
        assert!(set.walk(0).eq(order.iter().copied()));
        if let Some(last) = order.len().checked_sub(1) {
            assert!(set.walk_back(last).eq(order.iter().rev().copied()));
        }
        for (rank, (score, member)) in order.iter().enumerate().step_by(7) {
            assert_eq!(set.rank(set.find(member).unwrap()), rank);
            let below = order.iter().filter(|other| other.0 < *score).count();
            let not_above = order.iter().filter(|other| other.0 <= *score).count();
            assert_eq!(set.count_before(&Bound::Below(*score)), below);
            assert_eq!(set.count_before(&Bound::Above(*score)), not_above);
            assert_eq!(set.walk(rank).next(), Some((*score, *member)));
        }
        assert_eq!(set.count_before(&Bound::First), 0);
        assert_eq!(set.count_before(&Bound::Last), order.len());
    }

    fn free(self) {
        let mut slices = 0;
        let set = self.set.release();
        while SortedSet::free_some(set, 100) {
            slices += 1;
        }
        assert!(slices >= self.model.scores.len() / 1500, "{slices} slices");
        assert_eq!(Arena.check(), Ok(()));
    }
}

fn name(number: u32) -> Vec<u8> {
    // A few long ones among them.
    let long = if number.is_multiple_of(97) { 300 } else { 0 };
    format!("member-{number}{}", "x".repeat(long)).into_bytes()
}

/// What a packed set holds, read both ways.
fn unpacked(bytes: &[u8]) -> Vec<(f64, Vec<u8>)> {
    let packed = Packed::new(bytes);
    let own = |(score, member): (f64, StringRef<'_>)| (score, member.to_vec());
    let all: Vec<_> = packed.walk(0).map(own).collect();
    let last = packed.len().wrapping_sub(1);
    if !all.is_empty() {
        let back: Vec<_> = packed.walk_back(last).map(own).collect();
        assert!(all.iter().eq(back.iter().rev()));
    }
    all
}

fn play_packed(steps: &[Step], scale: f64) {
    let mut bytes = listpack::EMPTY.to_vec();
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Put(member, score) | Step::Nudge(member, score) => {
                // Some members are numbers.
                let name = member.to_string().into_bytes();
                let score = f64::from(score) * scale;
                match Packed::new(&bytes).find(&name) {
                    Some(member) => packed::set_score(&mut bytes, member, &name, score),
                    None => packed::insert(&mut bytes, score, &name),
                }
                model.scores.insert(name, score);
            }
            Step::Remove(member) => {
                let name = member.to_string().into_bytes();
                let found = Packed::new(&bytes).find(&name);
                let score = found.map(|member| Packed::new(&bytes).score(member));
                assert_eq!(score, model.scores.remove(&name));
                if let Some(member) = found {
                    packed::remove(&mut bytes, member);
                }
            }
            Step::RemoveRanks(first, count) => {
                let removed: Vec<Vec<u8>> = model
                    .order()
                    .into_iter()
                    .skip(first as usize)
                    .take(count as usize)
                    .map(|(_, member)| member.to_vec())
                    .collect();
                for member in removed {
                    model.scores.remove(&member);
                }
                packed::remove_ranks(&mut bytes, first as usize, count as usize);
            }
        }
        assert!(listpack::Listpack::check(&bytes).is_some());
        let order = model.order();
        let own = order
            .iter()
            .map(|&(score, member)| (score, member.to_vec()));
        assert!(own.eq(unpacked(&bytes)));
        for (rank, &(score, member)) in order.iter().enumerate().step_by(5) {
            let packed = Packed::new(&bytes);
            assert_eq!(packed.rank(member), Some((rank, score)));
            let below = order.iter().filter(|other| other.0 < score).count();
            assert_eq!(packed.count_before(&Bound::Below(score)), below);
            let at = packed.walk(rank).next().unwrap();
            assert_eq!((at.0, at.1.to_vec()), (score, member.to_vec()));
            let at = packed.walk_back(rank).next().unwrap();
            assert_eq!((at.0, at.1.to_vec()), (score, member.to_vec()));
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u32, i32),
    Nudge(u32, i32),
    Remove(u32),
    RemoveRanks(u32, u32),
}

fn steps(members: u32, scores: i32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..members, 0..scores).prop_map(|(member, score)| Step::Put(member, score)),
        3 => (0..members, -3..4).prop_map(|(member, by)| Step::Nudge(member, by)),
        2 => (0..members).prop_map(Step::Remove),
        1 => (0..members, 0u32..20).prop_map(|(first, count)| Step::RemoveRanks(first, count)),
    ];
    proptest::collection::vec(step, 1..1200)
}

fn play(steps: &[Step], scale: f64) {
    let arena = arena();
    let used = Arena.used_bytes();
    let mut both = Both::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(member, score) => both.put(&name(member), f64::from(score) * scale),
            Step::Nudge(member, by) => {
                let score = both.model.scores.get(&name(member)).copied();
                both.put(&name(member), score.unwrap_or(0.0) + f64::from(by) * scale);
            }
            Step::Remove(member) => both.remove(&name(member)),
            Step::RemoveRanks(first, count) => both.remove_ranks(first as usize, count as usize),
        }
        if number % 100 == 99 {
            both.check();
        }
    }
    both.check();
    let copy = Owned::new(both.set.copy());
    assert_eq!(copy.walk(0).collect::<Vec<_>>(), both.model.order());
    drop(copy);
    both.free();
    assert_eq!(Arena.used_bytes(), used);
    drop(arena);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn it_agrees_with_a_model(steps in steps(1500, 100_000)) {
        play(&steps, 1.0);
    }

    #[test]
    fn it_agrees_with_a_model_where_many_scores_are_equal(steps in steps(700, 3)) {
        play(&steps, 1.5);
    }

    #[test]
    fn a_packed_set_agrees_with_a_model(steps in steps(60, 20), scale in 0usize..4) {
        let steps = &steps[..steps.len().min(250)];
        play_packed(steps, [1.0, 0.1, 1e300, 3e17][scale]);
    }

    #[test]
    fn it_agrees_with_a_model_where_scores_are_tiny_or_huge(steps in steps(300, 50), tiny: bool) {
        play(&steps, if tiny { 5e-324 } else { 1.7e306 });
    }
}

#[test]
fn members_in_order_fill_the_leaves() {
    let _arena = arena();
    for backwards in [false, true] {
        let mut both = Both::new();
        let count = 20_000;
        for number in 0..count {
            let score = if backwards { -number } else { number };
            both.put(&name(number as u32), f64::from(score));
        }
        both.check();
        let nodes = both.set.order.memory_bytes();
        assert!(nodes < 10 * count as usize, "{nodes} bytes");
        both.free();
    }
}

#[test]
fn a_queue_stays_small() {
    let _arena = arena();
    let mut both = Both::new();
    for number in 0..30_000u32 {
        both.put(&name(number), f64::from(number));
        if number >= 100 {
            both.remove_ranks(0, 1);
        }
    }
    both.check();
    assert!(both.set.order.memory_bytes() < 4096);
    let left = both.set.len();
    both.remove_ranks(0, left);
    assert!(both.set.is_empty());
    both.free();
}

#[test]
fn growing_by_random_scores_and_shrinking_from_everywhere() {
    let _arena = arena();
    let mut both = Both::new();
    let mut state = 1u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    for _ in 0..60_000 {
        both.put(&name(random() % 50_000), f64::from(random()));
    }
    both.check();
    let (count, nodes) = (both.set.len(), both.set.order.memory_bytes());
    assert!(nodes < 14 * count, "{nodes} bytes for {count} members");
    let bytes = both.set.memory_bytes(5);
    assert!(bytes < 70 * count, "{bytes} bytes for {count} members");
    while both.set.len() > 1000 {
        for _ in 0..1000 {
            both.remove(&name(random() % 50_000));
        }
    }
    both.check();
    let nodes = both.set.order.memory_bytes();
    assert!(nodes < 40 * 1000, "{nodes} bytes for a thousand members");
    both.free();
}

#[test]
fn infinite_scores_and_both_zeros_have_their_place() {
    let _arena = arena();
    let mut both = Both::new();
    for (member, score) in [
        ("a", f64::INFINITY),
        ("b", f64::NEG_INFINITY),
        ("c", 0.0),
        ("d", 1e-300),
        ("e", -1e300),
    ] {
        both.put(member.as_bytes(), score);
    }
    both.check();
    both.set.insert(-0.0, b"bb");
    let order: Vec<&[u8]> = both.set.walk(0).map(|(_, member)| member).collect();
    assert_eq!(order, [b"b".as_slice(), b"e", b"bb", b"c", b"d", b"a"]);
    both.model.scores.insert(b"bb".to_vec(), 0.0);
    both.check();
    both.free();
}
