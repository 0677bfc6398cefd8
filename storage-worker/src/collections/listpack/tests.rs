//! Listpacks against a vector of strings, against bytes that Redis wrote, and against garbage.

use proptest::prelude::*;

use super::*;
use crate::collections::Splice;

fn fresh() -> Vec<u8> {
    EMPTY.to_vec()
}

fn content(pack: &[u8]) -> Vec<Vec<u8>> {
    Listpack::new(pack).iter().map(StringRef::to_vec).collect()
}

/// Everything that can be read says what the model says.
fn compare(pack: &[u8], model: &[Vec<u8>]) {
    let list = Listpack::check(pack).expect("an edited listpack is valid");
    assert_eq!(list.len(), model.len());
    assert_eq!(list.is_empty(), model.is_empty());
    assert_eq!(content(pack), model);
    let mut backward: Vec<_> = list.iter().rev().map(StringRef::to_vec).collect();
    backward.reverse();
    assert_eq!(backward, model);
    let mut forward = list.first();
    for (index, expected) in model.iter().enumerate() {
        let position = forward.expect("there are as many elements as in the model");
        assert_eq!(&list.get(position).to_vec(), expected);
        assert_eq!(list.seek(index as i64), Some(position));
        assert_eq!(list.seek(index as i64 - model.len() as i64), Some(position));
        forward = list.next(position);
        match forward {
            Some(next) => assert_eq!(list.prev(next), Some(position)),
            None => assert_eq!(list.last(), Some(position)),
        }
    }
    assert_eq!(forward, None);
    assert_eq!(list.seek(model.len() as i64), None);
    assert_eq!(list.seek(-1 - model.len() as i64), None);
}

fn find(list: Listpack<'_>, what: &[u8], skip: usize) -> Option<usize> {
    let found = list.find(list.first()?, what, skip)?;
    (0..list.len()).find(|&index| list.seek(index as i64) == Some(found))
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0i64..300).prop_map(|number| number.to_string().into_bytes()),
        2 => (any::<i64>(), 0u32..64)
            .prop_map(|(number, shift)| (number >> shift).to_string().into_bytes()),
        4 => proptest::collection::vec(any::<u8>(), 0..80),
        1 => (0usize..300).prop_map(|len| vec![b'z'; len]),
        1 => (4000usize..20_000).prop_map(|len| vec![b'q'; len]),
        1 => Just(b"-0".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn edits_do_what_they_do_to_a_vector(
        steps in proptest::collection::vec((0u8..9, element(), any::<usize>(), 0usize..5), 1..60)
    ) {
        let mut pack = fresh();
        let mut model: Vec<Vec<u8>> = Vec::new();
        for (kind, element, at, count) in steps {
            let index = if model.is_empty() { 0 } else { at % model.len() };
            let position = Listpack::new(&pack).seek(index as i64);
            match (kind, position) {
                (0, _) => {
                    push_front(&mut pack, &element);
                    model.insert(0, element);
                }
                (1, Some(position)) => {
                    prop_assert_eq!(insert_before(&mut pack, position, &element), position);
                    model.insert(index, element);
                }
                (2, Some(position)) => {
                    let new = insert_after(&mut pack, position, &element);
                    prop_assert_eq!(Listpack::new(&pack).seek(index as i64 + 1), Some(new));
                    model.insert(index + 1, element);
                }
                (3, Some(position)) => {
                    replace(&mut pack, position, &element);
                    model[index] = element;
                }
                (4, Some(position)) => {
                    let next = delete(&mut pack, position, count);
                    model.drain(index..(index + count).min(model.len()));
                    prop_assert_eq!(next, Listpack::new(&pack).seek(index as i64));
                }
                (5, Some(position)) => {
                    let mut rest = fresh();
                    split_off(&mut pack, position, model.len() - index, &mut rest);
                    compare(&pack, &model[..index]);
                    compare(&rest, &model[index..]);
                    if count % 2 == 0 {
                        append(&mut pack, Listpack::new(&rest));
                    } else {
                        prepend(&mut rest, Listpack::new(&pack));
                        pack = rest;
                    }
                }
                (6, _) => {
                    let elements = vec![element; count];
                    push_back_all(&mut pack, elements.iter());
                    model.extend(elements);
                }
                _ => {
                    let before = pack.len();
                    push_back(&mut pack, &element);
                    prop_assert_eq!(pack.len() - before, encoded_len(&element));
                    model.push(element);
                }
            }
            compare(&pack, &model);
        }
    }

    #[test]
    fn find_is_a_search_of_the_vector(
        elements in proptest::collection::vec(element(), 0..40),
        what in element(),
        skip in 0usize..3,
    ) {
        let mut pack = fresh();
        push_back_all(&mut pack, elements.iter());
        for what in elements.iter().chain([&what]) {
            let expected = (0..elements.len())
                .step_by(skip + 1)
                .find(|&index| &elements[index] == what);
            prop_assert_eq!(find(Listpack::new(&pack), what, skip), expected);
        }
    }

    #[test]
    fn checked_garbage_can_be_read(
        elements in proptest::collection::vec(element(), 0..12),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cut in 0usize..4,
    ) {
        let mut pack = fresh();
        push_back_all(&mut pack, elements.iter());
        for (at, byte) in damage {
            let at = at % pack.len();
            pack[at] = byte;
        }
        pack.truncate(pack.len() - cut);
        if let Some(list) = Listpack::check(&pack) {
            let elements: Vec<_> = list.iter().map(StringRef::to_vec).collect();
            prop_assert_eq!(elements.len(), list.len());
            compare(&pack, &elements);
        }
    }

    #[test]
    fn any_bytes_can_be_checked(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut bytes = bytes;
        if let Some(end) = bytes.len().checked_sub(1).filter(|&end| end >= 6) {
            bytes[..4].copy_from_slice(&(end as u32 + 1).to_le_bytes());
            bytes[end] = TERMINATOR;
        }
        if let Some(list) = Listpack::check(&bytes) {
            prop_assert_eq!(list.iter().count(), list.len());
        }
    }
}

#[test]
fn the_bytes_are_those_of_the_reference() {
    let numbers = [
        0i64,
        127,
        128,
        -1,
        4095,
        -4096,
        4096,
        32767,
        -32768,
        32768,
        8_388_607,
        -8_388_608,
        8_388_608,
        2_147_483_647,
        -2_147_483_648,
        2_147_483_648,
        i64::MIN,
    ];
    let mut pack = fresh();
    push_back_all(&mut pack, numbers.into_iter());
    for text in ["", "a", "007"] {
        push_back(&mut pack, text.as_bytes());
    }
    push_back(&mut pack, &vec![b'x'; 63]);
    push_back(&mut pack, &vec![b'y'; 64]);
    // DUMP of a list with these elements, without the frame around it.
    let mut expected = vec![
        0xe6, 0x00, 0x00, 0x00, 0x16, 0x00, 0x00, 0x01, 0x7f, 0x01, 0xc0, 0x80, 0x02, 0xdf, 0xff,
        0x02, 0xcf, 0xff, 0x02, 0xd0, 0x00, 0x02, 0xf1, 0x00, 0x10, 0x03, 0xf1, 0xff, 0x7f, 0x03,
        0xf1, 0x00, 0x80, 0x03, 0xf2, 0x00, 0x80, 0x00, 0x04, 0xf2, 0xff, 0xff, 0x7f, 0x04, 0xf2,
        0x00, 0x00, 0x80, 0x04, 0xf3, 0x00, 0x00, 0x80, 0x00, 0x05, 0xf3, 0xff, 0xff, 0xff, 0x7f,
        0x05, 0xf3, 0x00, 0x00, 0x00, 0x80, 0x05, 0xf4, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x00,
        0x00, 0x09, 0xf4, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x09, 0x80, 0x01, 0x81,
        0x61, 0x02, 0x83, 0x30, 0x30, 0x37, 0x04, 0xbf,
    ];
    expected.extend_from_slice(&[b'x'; 63]);
    expected.extend_from_slice(&[64, 0xe0, 64]);
    expected.extend_from_slice(&[b'y'; 64]);
    expected.extend_from_slice(&[66, 0xff]);
    assert_eq!(pack, expected);
    compare(&pack, &content(&pack));
}

#[test]
fn lengths_of_all_sizes_are_read_from_behind() {
    for len in [
        0, 1, 63, 64, 125, 126, 127, 4095, 4096, 16_377, 16_378, 16_379, 2_097_145, 2_097_146,
        2_097_147,
    ] {
        let mut pack = fresh();
        push_back(&mut pack, b"before");
        push_back(&mut pack, &vec![b'a'; len]);
        assert!(Listpack::check(&pack).is_some(), "{len}");
        let list = Listpack::new(&pack);
        let last = list.last().expect("there are two elements");
        assert_eq!(list.get(last).to_vec().len(), len);
        assert_eq!(list.prev(last), list.first());
    }
}

#[test]
fn more_elements_than_the_count_can_say_are_counted() {
    let mut pack = fresh();
    push_back_all(&mut pack, (0..65_534).map(|_| 1i64));
    assert_eq!(count_of(&pack), 65_534);
    push_back(&mut pack, 2i64);
    assert_eq!(count_of(&pack), COUNT_UNKNOWN);
    push_front(&mut pack, 2i64);
    assert_eq!(Listpack::new(&pack).len(), 65_536);
    assert!(Listpack::check(&pack).is_some());
    let first = Listpack::new(&pack).first().expect("it is full");
    delete(&mut pack, first, 65_530);
    assert_eq!(Listpack::new(&pack).len(), 6);
    assert!(Listpack::new(&pack).seek(5).is_some());
    assert_eq!(pack.bytes().len(), EMPTY.len() + 12);
}
