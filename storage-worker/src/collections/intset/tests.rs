//! Intsets against a sorted set, their bytes against the format, and bytes from outside.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The format, written from its description.
fn image(width: u8, integers: &[i64]) -> Vec<u8> {
    let mut bytes = vec![width, 0, 0, 0];
    bytes.extend_from_slice(&u32::try_from(integers.len()).unwrap().to_le_bytes());
    for integer in integers {
        bytes.extend_from_slice(&integer.to_le_bytes()[..usize::from(width)]);
    }
    bytes
}

fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -20i64..20,
        2 => -40_000i64..40_000,
        1 => -3_000_000_000i64..3_000_000_000,
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-32_768), Just(32_768), Just(32_767)],
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_set(steps in proptest::collection::vec((any::<bool>(), integers()), 0..200)) {
        let mut bytes = EMPTY.to_vec();
        let mut model = BTreeSet::new();
        let mut widest = 2;
        for (is_insert, integer) in steps {
            if is_insert {
                prop_assert_eq!(insert(&mut bytes, integer), model.insert(integer));
                widest = widest.max(width_of(integer));
            } else {
                prop_assert_eq!(remove(&mut bytes, integer), model.remove(&integer));
            }
            let wanted: Vec<i64> = model.iter().copied().collect();
            prop_assert_eq!(&bytes, &image(u8::try_from(widest).unwrap(), &wanted));
            let intset = Intset::new(&bytes);
            prop_assert_eq!(intset.iter().collect::<Vec<_>>(), wanted.clone());
            prop_assert!(intset.iter().rev().eq(wanted.iter().rev().copied()));
            prop_assert_eq!((intset.first(), intset.last()), (model.first().copied(), model.last().copied()));
            prop_assert_eq!(intset.contains(integer), model.contains(&integer));
            prop_assert_eq!(Intset::check(&bytes).is_some(), !model.is_empty());
        }
    }

    #[test]
    fn bytes_from_outside_are_an_intset_or_refused(bytes in proptest::collection::vec(0u8..4, 0..40)) {
        if let Some(intset) = Intset::check(&bytes) {
            let all: Vec<i64> = intset.iter().collect();
            prop_assert!(!all.is_empty() && all.is_sorted());
            prop_assert_eq!(image(bytes[0], &all), bytes);
        }
    }
}

#[test]
fn broken_bytes_are_refused() {
    assert!(Intset::check(&image(2, &[1, 2, 3])).is_some());
    assert!(Intset::check(&image(2, &[])).is_none(), "empty");
    assert!(Intset::check(&image(2, &[1, 3, 2])).is_none(), "order");
    assert!(Intset::check(&image(2, &[1, 1])).is_none(), "twice");
    assert!(
        Intset::check(&image(3, &[1])).is_none(),
        "no width of three"
    );
    assert!(
        Intset::check(&image(2, &[1, 2])[..11]).is_none(),
        "too short"
    );
    let mut long = image(4, &[1, 2]);
    long.push(0);
    assert!(Intset::check(&long).is_none(), "too long");
    assert!(Intset::check(&[2, 0, 0, 0, 1]).is_none(), "no header");
    let mut count = image(2, &[1, 2]);
    count[7] = 0x80;
    assert!(Intset::check(&count).is_none(), "count");
}
