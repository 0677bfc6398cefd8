//! Lists and their directory against vectors, under all bounds of nodes and with compression.

use proptest::prelude::*;
use shm::arena::Mapping;

use super::*;

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(4 << 30, 1).expect("there is memory");
    mapping.enter();
    mapping
}

/// Whether nothing is left in the arena but what there was, and pages of its own books.
fn is_as_before(used: u64) -> bool {
    let more = Arena.used_bytes() - used;
    more.is_multiple_of(4096) && more < 64 * 1024
}

fn content(list: &List) -> Vec<Vec<u8>> {
    let mut content = Vec::new();
    list.visit(0, false, |element| {
        content.push(element.to_vec());
        true
    });
    content
}

fn compare(list: &List, model: &[Vec<u8>]) {
    assert_eq!(list.len(), model.len());
    assert_eq!(content(list), model);
    if model.is_empty() {
        assert_eq!(list.nodes().len(), 0);
        return;
    }
    list.check().expect("the invariants hold");
    let mut backward = Vec::new();
    list.visit(model.len() - 1, true, |element| {
        backward.push(element.to_vec());
        true
    });
    backward.reverse();
    assert_eq!(backward, model);
}

#[derive(Debug, Clone)]
enum Step {
    Push(End, Vec<u8>),
    Pop(End),
    Set(usize, Vec<u8>),
    Insert(usize, Vec<u8>, bool),
    Delete(usize, usize),
    RemoveEqual(usize, usize, bool),
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0i64..20).prop_map(|number| number.to_string().into_bytes()),
        2 => proptest::collection::vec(any::<u8>(), 0..70),
        3 => (0usize..9).prop_map(|len| vec![b'r'; len * 40]),
        1 => (3000usize..9000).prop_map(|len| vec![b'l'; len]),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Head), Just(End::Tail)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (end(), element()).prop_map(|(end, element)| Step::Push(end, element)),
        2 => end().prop_map(Step::Pop),
        3 => (any::<usize>(), element()).prop_map(|(at, element)| Step::Set(at, element)),
        6 => (any::<usize>(), element(), any::<bool>())
            .prop_map(|(at, element, behind)| Step::Insert(at, element, behind)),
        1 => (any::<usize>(), 1usize..40).prop_map(|(at, count)| Step::Delete(at, count)),
        1 => (any::<usize>(), 0usize..4, any::<bool>())
            .prop_map(|(at, limit, last)| Step::RemoveEqual(at, limit, last)),
    ]
}

fn remove_equal(model: &mut Vec<Vec<u8>>, what: &[u8], limit: usize, last: bool) -> usize {
    let equal: Vec<usize> = (0..model.len())
        .filter(|&index| model[index] == what)
        .collect();
    let count = if limit == 0 {
        equal.len()
    } else {
        limit.min(equal.len())
    };
    let chosen = if last {
        &equal[equal.len() - count..]
    } else {
        &equal[..count]
    };
    for &index in chosen.iter().rev() {
        model.remove(index);
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_changed_as_a_vector_is(
        fill in prop_oneof![Just(-1i64), Just(-2), 1i64..6],
        depth in 0u32..4,
        plain_from in prop_oneof![3 => Just(0u32), 1 => 1u32..200],
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let _arena = arena();
        let empty = Arena.used_bytes();
        let mut list = List::new(Fill::new(fill), depth);
        list.set_plain_from(plain_from);
        let mut model: Vec<Vec<u8>> = Vec::new();
        for step in steps {
            let len = model.len();
            match step {
                Step::Push(end, element) => {
                    list.push(end, StringRef::Bytes(&element));
                    match end {
                        End::Head => model.insert(0, element),
                        End::Tail => model.push(element),
                    }
                }
                Step::Pop(end) => {
                    list.pop(end);
                    match end {
                        _ if len == 0 => {}
                        End::Head => drop(model.remove(0)),
                        End::Tail => drop(model.pop()),
                    }
                }
                Step::Set(at, element) => {
                    let at = at % (len + 1);
                    prop_assert_eq!(list.set(at, &element), at < len);
                    if at < len {
                        model[at] = element;
                    }
                }
                Step::Insert(at, element, behind) => {
                    let at = at % (len + 1);
                    prop_assert_eq!(list.insert(at, &element, behind), at < len);
                    if at < len {
                        model.insert(at + usize::from(behind), element);
                    }
                }
                Step::Delete(at, count) => {
                    let at = at % (len + 1);
                    list.delete_range(at, count);
                    model.drain(at..(at + count).min(len));
                }
                Step::RemoveEqual(at, limit, last) => {
                    if len > 0 {
                        let what = model[at % len].clone();
                        let expected = remove_equal(&mut model, &what, limit, last);
                        let limit = (limit > 0).then_some(limit);
                        prop_assert_eq!(list.remove_equal(&what, limit, last), expected);
                    }
                }
            }
            compare(&list, &model);
        }
        for (index, element) in model.iter().enumerate() {
            prop_assert_eq!(list.get(index, |element| element.to_vec()), Some(element.clone()));
            let first = model.iter().position(|other| other == element);
            prop_assert_eq!(list.position_of(element), first);
        }
        prop_assert_eq!(list.get(model.len(), |element| element.to_vec()), None);
        let list = list.into_arena();
        // SAFETY: it was just moved there.
        let copy = unsafe { list.as_ref() }.copy();
        List::free(list);
        // SAFETY: as above.
        prop_assert_eq!(content(unsafe { copy.as_ref() }), model);
        while List::free_some(copy, 2) {}
        prop_assert!(is_as_before(empty));
    }
}

#[test]
fn a_directory_of_many_nodes_stays_in_order() {
    let _arena = arena();
    let empty = Arena.used_bytes();
    let mut list = List::new(Fill::new(1), 0);
    let mut model: Vec<usize> = Vec::new();
    let mut state = 7usize;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below.max(1)
    };
    // Three levels, from both ends and the middle; then most of it goes again.
    for number in 0..20_000 {
        let text = number.to_string();
        match number % 3 {
            0 => {
                list.push(End::Tail, StringRef::Bytes(text.as_bytes()));
                model.push(number);
            }
            1 => {
                list.push(End::Head, StringRef::Bytes(text.as_bytes()));
                model.insert(0, number);
            }
            _ => {
                let at = random(model.len());
                list.insert(at, text.as_bytes(), false);
                model.insert(at, number);
            }
        }
    }
    let number_at = |list: &List, index| {
        let text = list.get(index, |element| element.to_vec())?;
        String::from_utf8(text).ok()?.parse::<usize>().ok()
    };
    while model.len() > 3 {
        if model.len().is_multiple_of(1000) {
            list.check().expect("the invariants hold");
            assert_eq!(list.nodes().len(), model.len());
            let at = random(model.len());
            assert_eq!(number_at(&list, at), Some(model[at]));
            let mut index = at;
            list.visit(at, true, |element| {
                assert_eq!(element.to_vec(), model[index].to_string().into_bytes());
                index = index.saturating_sub(1);
                true
            });
        }
        let at = random(model.len());
        list.delete_range(at, 1);
        model.remove(at);
    }
    assert_eq!(number_at(&list, 2), Some(model[2]));
    drop(list);
    assert!(is_as_before(empty));
}

#[test]
fn pushing_fills_nodes_and_vectors() {
    let _arena = arena();
    let mut list = List::new(Fill::default(), 0);
    let before = Arena.used_bytes();
    for number in 0..1_000_000i64 {
        list.push(End::Tail, StringRef::Int(number % 100));
    }
    // Two bytes per element and their share of a node.
    let bytes = Arena.used_bytes() - before;
    assert!(bytes < 2_050_000, "{bytes}");
    assert_eq!(
        list.nodes().len(),
        1_000_000usize.div_ceil((8192 - 7 - 10) / 2 + 1)
    );
    let memory = list.memory_bytes(0) - size_of::<List>();
    // The rest are the books of the arena.
    assert!((bytes - memory as u64).is_multiple_of(4096), "{memory}");
}
