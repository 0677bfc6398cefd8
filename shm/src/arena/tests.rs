//! The allocator against a model: objects keep their bytes, the books add up, pages go back.

use std::collections::BTreeMap;

use allocator_api2::alloc::Allocator;
use proptest::prelude::*;

use super::*;

const CAPACITY: u64 = 1 << 30;

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(CAPACITY, 1).unwrap();
    mapping.enter();
    mapping
}

fn fill(object: NonNull<u8>, size: usize, with: u8) {
    // SAFETY: the object has `size` bytes and is the test's.
    unsafe { object.write_bytes(with, size) }
}

fn is_filled(object: NonNull<u8>, size: usize, with: u8) -> bool {
    // SAFETY: as in `fill`.
    unsafe { std::slice::from_raw_parts(object.as_ptr(), size) }
        .iter()
        .all(|&byte| byte == with)
}

#[derive(Debug, Clone)]
enum Step {
    Take(usize),
    Give(usize),
    Extend(usize, usize),
    ReturnPages(u64),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1usize..600, 3 => 600usize..40_000, 1 => 40_000usize..900_000]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => size().prop_map(Step::Take),
        5 => any::<usize>().prop_map(Step::Give),
        1 => (any::<usize>(), 1usize..400_000).prop_map(|(which, by)| Step::Extend(which, by)),
        1 => (0u64..1_000_000).prop_map(Step::ReturnPages),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn objects_keep_their_bytes_and_the_books_add_up(
        steps in proptest::collection::vec(step(), 1..300)
    ) {
        let _mapping = arena();
        let empty = Arena.used_bytes();
        let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            let mark = number as u8 | 1;
            match step {
                Step::Take(size) => {
                    let object = Arena.take(size);
                    fill(object, size, mark);
                    live.push((object, size, mark));
                }
                Step::Give(which) if !live.is_empty() => {
                    let (object, size, mark) = live.swap_remove(which % live.len());
                    prop_assert!(is_filled(object, size, mark));
                    // SAFETY: taken above for this size.
                    unsafe { Arena.give(object, size) };
                }
                Step::Extend(which, by) if !live.is_empty() => {
                    let at = which % live.len();
                    let (object, size, mark) = live[at];
                    // SAFETY: taken above for this size.
                    if unsafe { Arena.extend(object, size, size + by) } {
                        prop_assert!(is_filled(object, size, mark));
                        fill(object, size + by, mark);
                        live[at].1 = size + by;
                    }
                }
                Step::ReturnPages(budget) => { Arena.return_pages(0, budget); }
                _ => {}
            }
            prop_assert_eq!(Arena.check(), Ok(()));
        }
        let mut places = BTreeMap::new();
        for &(object, size, mark) in &live {
            prop_assert!(is_filled(object, size, mark));
            prop_assert!(Arena.contains(object.addr().get() as u64, size));
            places.insert(object.addr().get(), size);
        }
        let ends: Vec<_> = places.iter().map(|(at, size)| at + size).collect();
        prop_assert!(places.keys().skip(1).zip(ends).all(|(next, end)| *next >= end));
        let used: usize = live.iter().map(|object| usable_size(object.1)).sum();
        prop_assert!(Arena.used_bytes() - empty >= used as u64);
        for (object, size, _) in live {
            // SAFETY: taken above for this size.
            unsafe { Arena.give(object, size) };
        }
        while Arena.return_pages(0, 1 << 20) {}
        prop_assert_eq!(Arena.check(), Ok(()));
        prop_assert_eq!(Arena.idle_bytes(), 0);
    }
}

#[test]
fn alignments_up_to_a_span_are_kept() {
    let _mapping = arena();
    for shift in 0..=16 {
        for size in [1, 7, 64, 100, 513, 4000, 5000, 33_000, 100_000] {
            let layout = Layout::from_size_align(size, 1 << shift).unwrap();
            let object = Arena.allocate(layout).unwrap().cast::<u8>();
            assert_eq!(object.addr().get() % layout.align(), 0, "{layout:?}");
            let second = Arena.allocate(layout).unwrap().cast::<u8>();
            assert_eq!(second.addr().get() % layout.align(), 0, "{layout:?}");
            // SAFETY: allocated above with this layout.
            unsafe { Arena.deallocate(object, layout) };
        }
    }
    assert_eq!(Arena.check(), Ok(()));
}

#[test]
fn a_successor_finds_the_data_at_the_same_address() {
    let memory = create_memory("test-arena", CAPACITY).unwrap();
    let copy = memory.try_clone().unwrap();
    let index = 80;
    let (mapping, origin) = Mapping::attach(memory, index, 7).unwrap();
    assert_eq!(origin, Origin::Fresh);
    mapping.enter();
    let object = Arena.take(100);
    fill(object, 100, 42);
    Arena.set_root(object.addr().get() as u64);
    drop(mapping);
    assert!(!Arena.is_entered());

    let foreign = Mapping::attach(copy.try_clone().unwrap(), index, 8);
    assert!(matches!(
        foreign,
        Err(ArenaError::BadFingerprint { found: 7, want: 8 })
    ));
    let elsewhere = Mapping::attach(copy.try_clone().unwrap(), index + 1, 7);
    assert!(matches!(elsewhere, Err(ArenaError::BadAddress { .. })));

    let (mut mapping, origin) = Mapping::attach(copy, index, 7).unwrap();
    assert_eq!(origin, Origin::Found);
    mapping.enter();
    assert_eq!(Arena.root(), object.addr().get() as u64);
    assert!(is_filled(object, 100, 42));
    assert_eq!(Arena.check(), Ok(()));
    let other = Arena.take(100);
    assert_ne!(other, object);

    mapping.reset();
    assert_eq!(Arena.root(), 0);
    assert_eq!(Arena.check(), Ok(()));
}

#[test]
fn freed_memory_serves_other_classes_and_goes_back_to_the_system() {
    let _mapping = arena();
    let empty = Arena.resident_bytes();
    let small: Vec<_> = (0..100_000).map(|_| Arena.take(48)).collect();
    let full = Arena.resident_bytes();
    assert!(full - empty >= 4_800_000);
    for object in small {
        // SAFETY: taken above for this size.
        unsafe { Arena.give(object, 48) };
    }
    let large = Arena.take(4_000_000);
    fill(large, 4_000_000, 1);
    assert_eq!(
        Arena.resident_bytes(),
        full,
        "the pages of the small objects are used again"
    );
    // SAFETY: taken above for this size.
    unsafe { Arena.give(large, 4_000_000) };
    let mut slices = 0;
    while Arena.return_pages(64 * 1024, 1 << 20) {
        slices += 1;
    }
    assert!(slices >= 3);
    assert!(Arena.idle_bytes() <= 64 * 1024);
    assert!(Arena.resident_bytes() - empty <= 3 * 64 * 1024);
    assert_eq!(Arena.check(), Ok(()));
}

#[test]
fn an_arena_that_is_full_says_so() {
    let mapping = Mapping::private_anywhere(1 << 20, 1).unwrap();
    mapping.enter();
    let layout = Layout::from_size_align(2 << 20, 8).unwrap();
    assert!(Arena.allocate(layout).is_err());
    let layout = Layout::from_size_align(512 << 10, 8).unwrap();
    let object = Arena.allocate(layout).unwrap().cast();
    assert!(Arena.allocate(layout).is_err());
    // SAFETY: allocated above with this layout.
    unsafe { Arena.deallocate(object, layout) };
    assert!(Arena.allocate(layout).is_ok());
    drop(mapping);
}
