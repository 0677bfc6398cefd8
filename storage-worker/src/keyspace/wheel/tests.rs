//! The wheel against a sorted model, through the entries that it names.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shm::arena::Mapping;

use super::super::entry::{Content, Entry, Value};
use super::super::kind::Label;
use super::super::times::Times;
use super::*;

fn entry(name: u64, at: UnixMillis) -> Entry {
    let value = Value {
        label: Label::string(false),
        content: Content::Integer(0),
    };
    Entry::create(&name.to_le_bytes(), Some(at), value)
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64),
    Remove(usize),
    Retime(usize, u64),
    Advance(u64, usize),
}

fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..10,
        0u64..300,
        0u64..70_000,
        0u64..20_000_000,
        0u64..1 << 49
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => ahead().prop_map(Step::Insert),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => (any::<usize>(), ahead()).prop_map(|(which, ahead)| Step::Retime(which, ahead)),
        3 => (ahead(), 1usize..40).prop_map(|(ahead, budget)| Step::Advance(ahead, budget)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn entries_fire_when_due_and_never_before(steps in proptest::collection::vec(step(), 1..200)) {
        let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
        mapping.enter();
        let mut now = UnixMillis(1_700_000_000_000);
        let mut handle = Wheel::create(now);
        // SAFETY: just made, and the test is its only user.
        let wheel = unsafe { handle.as_mut() };
        let mut model: BTreeMap<u64, (Entry, UnixMillis)> = BTreeMap::new();
        let mut names = 0;
        for step in steps {
            match step {
                Step::Insert(ahead) => {
                    names += 1;
                    let at = now.plus(ahead);
                    let entry = entry(names, at);
                    wheel.insert(entry, at);
                    model.insert(names, (entry, at));
                }
                Step::Remove(which) if !model.is_empty() => {
                    let name = *model.keys().nth(which % model.len()).unwrap();
                    let (entry, _) = model.remove(&name).unwrap();
                    wheel.remove(entry);
                    entry.free();
                }
                Step::Retime(which, ahead) if !model.is_empty() => {
                    let name = *model.keys().nth(which % model.len()).unwrap();
                    let (entry, at) = model.get_mut(&name).unwrap();
                    let new = now.plus(ahead);
                    if Times::from(Some(new)).bytes() == entry.times_bytes() {
                        *at = new;
                        entry.set_expiry(new);
                        wheel.retime(*entry, new);
                    }
                }
                Step::Advance(ahead, budget) => {
                    now = now.plus(ahead % 40_000_000);
                    // In slices, each of which may stop in the middle of a cascade.
                    loop {
                        let mut budget = budget;
                        match wheel.advance(now, &mut budget) {
                            Due::Entry(entry) => {
                                let name = u64::from_le_bytes(entry.key().try_into().unwrap());
                                let (known, at) = model.remove(&name).unwrap();
                                prop_assert_eq!(known, entry);
                                prop_assert!(at.has_passed(now), "early");
                                wheel.remove(entry);
                                entry.free();
                            }
                            Due::Later => {}
                            Due::Nothing => break,
                        }
                        prop_assert_eq!(wheel.check(), Ok(()));
                    }
                    prop_assert!(model.values().all(|(_, at)| !at.has_passed(now)), "late");
                }
                _ => {}
            }
            prop_assert_eq!(wheel.check(), Ok(()));
            prop_assert_eq!(wheel.len(), model.len() as u64);
        }
        for (entry, _) in model.values() {
            wheel.remove(*entry);
            entry.free();
        }
        prop_assert_eq!(wheel.check(), Ok(()));
        while !Wheel::destroy(handle, 3) {}
        prop_assert_eq!(Arena.check(), Ok(()));
    }
}

#[test]
fn sampling_reaches_every_entry_about_equally_often() {
    let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
    mapping.enter();
    let now = UnixMillis(1_700_000_000_000);
    let mut handle = Wheel::create(now);
    // SAFETY: just made, and the test is its only user.
    let wheel = unsafe { handle.as_mut() };
    for name in 0..500 {
        let at = now.plus(name * name * 7);
        wheel.insert(entry(name, at), at);
    }
    let mut times = vec![0; 500];
    let mut state = 1u64;
    for _ in 0..50_000 {
        let entry = wheel.random(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 29
        });
        let name = u64::from_le_bytes(entry.unwrap().key().try_into().unwrap());
        times[name as usize] += 1;
    }
    assert!(times.iter().all(|&times| times > 20 && times < 300));
}

#[test]
fn two_hundred_thousand_entries_with_one_time_fire_in_slices() {
    let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
    mapping.enter();
    let now = UnixMillis(1_700_000_000_000);
    let at = now.plus(3_600_000);
    let mut handle = Wheel::create(now);
    // SAFETY: just made, and the test is its only user.
    let wheel = unsafe { handle.as_mut() };
    let count = 200_000;
    (0..count).for_each(|name| wheel.insert(entry(name, at), at));
    assert_eq!(wheel.check(), Ok(()));
    let mut fired = 0;
    loop {
        let mut budget = 1000;
        match wheel.advance(at.plus(1), &mut budget) {
            Due::Entry(entry) => {
                wheel.remove(entry);
                entry.free();
                fired += 1;
            }
            Due::Later => {}
            Due::Nothing => break,
        }
    }
    assert_eq!(fired, count);
    assert_eq!(wheel.check(), Ok(()));
}
