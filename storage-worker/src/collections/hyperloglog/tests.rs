//! HyperLogLogs against plain registers, their form, and bytes that anybody may have made up.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Adds an element and returns whether a register changed.
fn add(bytes: &mut Vec<u8>, element: &[u8], sparse_bytes_max: usize) -> bool {
    let (index, count) = offer(element);
    raise(bytes, index, count, sparse_bytes_max).unwrap()
}

#[test]
fn the_hash_is_the_one_that_others_use() {
    // Known values of MurmurHash64A with this seed, by way of registers of a reference server.
    assert_eq!(EMPTY, *b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    let mut bytes = EMPTY.to_vec();
    for element in ["a", "b", "c", "longer than eight bytes"] {
        assert!(add(&mut bytes, element.as_bytes(), 3000));
    }
    assert_eq!(
        decoded(&bytes),
        "Z:7957 v:1,1 Z:478 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
    );
    assert_eq!(estimate(&bytes), Ok(4));
}

#[test]
fn estimates_are_near_the_truth() {
    let mut bytes = EMPTY.to_vec();
    let mut number = 0u64;
    for wanted in [1u64, 10, 100, 1000, 10_000, 100_000, 1_000_000] {
        while number < wanted {
            add(&mut bytes, &number.to_le_bytes(), 3000);
            number += 1;
        }
        let error = estimate(&bytes).unwrap().abs_diff(wanted);
        assert!(error * 25 <= wanted, "{error} of {wanted}");
    }
    assert_eq!(representation(&bytes), Some(Representation::Dense));
}

#[test]
fn a_full_sketch_has_an_estimate() {
    let mut bytes = to_dense(&EMPTY).unwrap();
    write_dense(&mut bytes, &[63; REGISTERS]);
    assert_eq!(estimate(&bytes), estimate_registers_of(63));
    write_dense(&mut bytes, &[51; REGISTERS]);
    assert_eq!(estimate(&bytes), estimate_registers_of(51));
}

fn estimate_registers_of(count: u8) -> Result<u64, Corrupt> {
    Ok(estimate_registers(&[count; REGISTERS]))
}

#[test]
fn what_is_no_sketch_is_refused() {
    let dense = to_dense(&EMPTY).unwrap();
    assert_eq!(representation(&dense), Some(Representation::Dense));
    assert_eq!(representation(&EMPTY), Some(Representation::Sparse));
    let mut other = EMPTY;
    other[4] = 2;
    for bytes in [
        &dense[..dense.len() - 1],
        &EMPTY[..15],
        b"",
        &other,
        &[b'x'; 20],
    ] {
        assert_eq!(representation(bytes), None);
    }
    for registers in [&b""[..], b"\x7f", b"\x7f\xff\x00", b"\x7f\xfe", b"\x00\x80"] {
        let bytes = [&EMPTY[..HEADER_BYTES], registers].concat();
        assert_eq!(estimate(&bytes), Err(Corrupt), "{registers:?}");
        assert_eq!(to_dense(&bytes).err(), Some(Corrupt));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_representations_hold_the_same_registers(
        raises in prop::collection::vec((0..REGISTERS, 1u8..52), 1..400),
        near in any::<bool>(),
        sparse_bytes_max in prop_oneof![Just(0usize), 20usize..400, Just(3000)],
    ) {
        let mut bytes = EMPTY.to_vec();
        let mut dense = to_dense(&EMPTY).unwrap();
        let mut model = [0; REGISTERS];
        for (index, count) in raises {
            // Neighbours are cut and joined.
            let (index, count) = if near { (index % 40, count % 3 + 1) } else { (index, count) };
            let is_changed = raise(&mut bytes, index, count, sparse_bytes_max).unwrap();
            prop_assert_eq!(is_changed, model[index] < count);
            prop_assert_eq!(raise(&mut dense, index, count, 0).unwrap(), is_changed);
            model[index] = count.max(model[index]);
        }
        prop_assert_eq!(registers(&bytes).unwrap(), model);
        prop_assert_eq!(registers(&dense).unwrap(), model);
        prop_assert_eq!(estimate(&bytes), Ok(estimate_registers(&model)));
        prop_assert_eq!(estimate(&dense), Ok(estimate_registers(&model)));
        if representation(&bytes) == Some(Representation::Sparse) {
            prop_assert!(bytes.len() <= sparse_bytes_max.max(EMPTY.len()));
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(
        registers_bytes in prop::collection::vec(any::<u8>(), 0..80),
        index in 0..REGISTERS,
        count in 1u8..52,
    ) {
        let mut bytes = [&EMPTY[..HEADER_BYTES], &registers_bytes[..]].concat();
        let _ = decoded(&bytes);
        let is_valid = estimate(&bytes).is_ok();
        prop_assert_eq!(registers(&bytes).is_ok(), is_valid);
        let before = bytes.clone();
        match raise(&mut bytes, index, count, 3000) {
            Ok(true) => {}
            Ok(false) | Err(Corrupt) => prop_assert_eq!(bytes, before),
        }
    }
}

#[test]
fn elements_go_to_all_registers() {
    let indexes: HashSet<usize> = (0..200_000u32)
        .map(|number| offer(&number.to_le_bytes()).0)
        .collect();
    assert!(indexes.len() > REGISTERS * 99 / 100);
    assert!((0..200_000u32).all(|number| (1..=51).contains(&offer(&number.to_le_bytes()).1)));
}
