//! Streams against naive models, and their bytes against the format of the reference.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proto::time::UnixMillis;
use shm::arena::{Arena, Mapping};

use super::*;
use crate::collections::StringRef;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

const LIMITS: NodeLimits = NodeLimits {
    bytes: 4096,
    entries: 100,
};

fn id(ms: u64, seq: u64) -> StreamId {
    StreamId { ms, seq }
}

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
    mapping.enter();
    mapping
}

fn append(log: &mut Log, id: StreamId, fields: &Fields, limits: NodeLimits) {
    let pairs = fields.iter().map(|(field, value)| (&field[..], &value[..]));
    log.append(id, pairs, limits);
}

fn fields_of(entry: &Entry<'_>) -> Fields {
    let text = |string: StringRef<'_>| string.to_vec();
    entry
        .pairs()
        .map(|(field, value)| (text(field), text(value)))
        .collect()
}

fn text(log: &Log) -> String {
    log.range(StreamId::MIN, StreamId::MAX)
        .map(|entry| {
            let fields = fields_of(&entry);
            let pairs = fields.iter().map(|(field, value)| {
                format!(
                    "{}={}",
                    String::from_utf8_lossy(field),
                    String::from_utf8_lossy(value)
                )
            });
            let pairs: Vec<String> = pairs.collect();
            format!(
                "{}:{}",
                String::from_utf8_lossy(entry.id.text().as_bytes()),
                pairs.join(",")
            )
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn pairs(text: &str) -> Fields {
    let pair = |pair: &str| {
        let (field, value) = pair.split_once('=').unwrap();
        (field.into(), value.into())
    };
    text.split(',').map(pair).collect()
}

#[test]
fn a_node_has_the_bytes_of_the_reference() {
    let _mapping = arena();
    let mut log = Log::new();
    append(
        &mut log,
        id(1526919030474, 55),
        &pairs("message=Hello,n=1000"),
        LIMITS,
    );
    append(
        &mut log,
        id(1526919030474, 56),
        &pairs("message=World,n=-1"),
        LIMITS,
    );
    append(&mut log, id(1526919030500, 0), &pairs("other=x"), LIMITS);
    let bytes: Vec<u8> = log.tail().unwrap().view().bytes().to_vec();
    #[rustfmt::skip]
    let wanted = [
        // live, deleted, fields
        3, 1, 0, 1, 2, 1, 0x87, b'm', b'e', b's', b's', b'a', b'g', b'e', 8, 0x81, b'n', 2, 0, 1,
        // flags, ms, seq, values, size
        2, 1, 0, 1, 0, 1, 0x85, b'H', b'e', b'l', b'l', b'o', 6, 0xC3, 0xE8, 2, 5, 1,
        2, 1, 0, 1, 1, 1, 0x85, b'W', b'o', b'r', b'l', b'd', 6, 0xDF, 0xFF, 2, 5, 1,
        // flags, ms, seq, count, fields and values, size
        0, 1, 26, 1, 0xDF, 0xC9, 2, 1, 1, 0x85, b'o', b't', b'h', b'e', b'r', 6, 0x81, b'x', 2, 6, 1,
    ];
    assert_eq!(bytes[6..bytes.len() - 1], wanted);
    assert!(is_node(id(1526919030474, 55), &bytes));
    for at in 6..bytes.len() - 1 {
        let mut broken = bytes.clone();
        broken[at] ^= 0x41;
        // Some changes are just other values; none may go wrong.
        let _ = is_node(id(1526919030474, 55), &broken);
    }
    let third = "1526919030500-0:other=x";
    assert_eq!(
        text(&log),
        format!(
            "1526919030474-55:message=Hello,n=1000 1526919030474-56:message=World,n=-1 {third}"
        )
    );
    assert_eq!(
        log.delete(&[id(1526919030474, 56), id(1526919030474, 55), id(1, 1)]),
        2
    );
    assert_eq!(text(&log), third);
    assert_eq!(log.first_id(), id(1526919030500, 0));
    assert_eq!(log.max_deleted_id, id(1526919030474, 56));
    log.check().unwrap();
    assert_eq!(log.delete(&[id(1526919030500, 0)]), 1);
    assert_eq!((log.len(), log.node_count()), (0, 0));
    log.check().unwrap();
}

#[test]
fn an_approximate_trim_removes_whole_nodes() {
    let _mapping = arena();
    let mut log = Log::new();
    let limits = NodeLimits {
        entries: 10,
        ..LIMITS
    };
    for ms in 1..=100 {
        append(&mut log, id(ms, 0), &pairs("f=v"), limits);
    }
    assert_eq!(log.trim(Trim::MaxLen(55), false, 0), 40);
    assert_eq!(log.trim(Trim::MaxLen(55), true, 0), 5);
    assert_eq!(log.first_id(), id(46, 0));
    assert_eq!(log.trim(Trim::MinId(id(61, 0)), false, 14), 5);
    assert_eq!(log.trim(Trim::MinId(id(75, 0)), false, 0), 20);
    assert_eq!(log.trim(Trim::MinId(id(75, 0)), true, 0), 4);
    assert_eq!((log.len(), log.first_id()), (26, id(75, 0)));
    // The last entry keeps its node although all are marked.
    assert_eq!(log.delete(&[id(80, 0)]), 1);
    assert_eq!(log.trim(Trim::MinId(id(80, 0)), true, 0), 5);
    assert_eq!(
        (log.len(), log.node_count(), log.first_id()),
        (20, 3, id(81, 0))
    );
    log.check().unwrap();
}

/// What a random step does.
#[derive(Debug, Clone)]
enum Step {
    Add {
        gap: u64,
        many: u8,
        fields: u8,
        len: usize,
    },
    Delete {
        at: usize,
        many: usize,
    },
    Trim {
        by: usize,
        is_exact: bool,
    },
    MinId {
        at: usize,
        is_exact: bool,
    },
    Copy,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u64..3, 1u8..60, 0u8..4, 0usize..200)
            .prop_map(|(gap, many, fields, len)| Step::Add { gap, many, fields, len }),
        2 => (0usize..1000, 1usize..40).prop_map(|(at, many)| Step::Delete { at, many }),
        1 => (0usize..1000, any::<bool>()).prop_map(|(by, is_exact)| Step::Trim { by, is_exact }),
        1 => (0usize..300, any::<bool>()).prop_map(|(at, is_exact)| Step::MinId { at, is_exact }),
        1 => Just(Step::Copy),
    ];
    proptest::collection::vec(step, 1..60)
}

fn make_fields(kind: u8, number: u64, len: usize) -> Fields {
    let value = || format!("{number}").into_bytes();
    match kind {
        0 => vec![(b"field".to_vec(), value())],
        1 => vec![(b"field".to_vec(), vec![b'x'; len])],
        2 => vec![
            (b"7".to_vec(), value()),
            (b"other".to_vec(), vec![b'y'; len]),
        ],
        _ => (0..number % 5)
            .map(|at| (at.to_string().into_bytes(), value()))
            .collect(),
    }
}

fn assert_same(log: &Log, model: &BTreeMap<StreamId, Fields>) {
    log.check().unwrap();
    assert_eq!(log.len(), model.len() as u64);
    let all = log
        .range(StreamId::MIN, StreamId::MAX)
        .map(|entry| (entry.id, fields_of(&entry)));
    assert!(all.eq(model.iter().map(|(&id, fields)| (id, fields.clone()))));
    let back = log
        .range_back(StreamId::MIN, StreamId::MAX)
        .map(|entry| entry.id);
    assert!(back.eq(model.keys().rev().copied()));
    assert_eq!(log.last_live_id(), model.keys().next_back().copied());
    assert_eq!(
        log.first_id(),
        model.keys().next().copied().unwrap_or_default()
    );
}

fn assert_ranges(log: &Log, model: &BTreeMap<StreamId, Fields>, at: usize) {
    let end = log.last_id.ms + 2;
    let from = id(at as u64 * 13 % end, at as u64 % 3);
    let to = from.max(id(from.ms + at as u64 % 50, 1));
    let some = log.range(from, to).map(|entry| entry.id);
    assert!(some.eq(model.range(from..=to).map(|found| *found.0)));
    let some = log.range_back(from, to).map(|entry| entry.id);
    assert!(some.eq(model.range(from..=to).rev().map(|found| *found.0)));
    assert_eq!(
        log.get(from).map(|entry| entry.id),
        model.get_key_value(&from).map(|found| *found.0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_a_sorted_map(steps in steps(), entries in 0u64..20, bytes in 0u64..2000) {
        let mapping = arena();
        let empty = Arena.used_bytes();
        let mut log = Log::new();
        let mut model: BTreeMap<StreamId, Fields> = BTreeMap::new();
        let limits = NodeLimits { bytes, entries };
        for (turn, step) in steps.into_iter().enumerate() {
            match step {
                Step::Add { gap, many, fields, len } => for number in 0..u64::from(many) {
                    let next = match gap {
                        0 => log.last_id.next().unwrap(),
                        gap => id(log.last_id.ms + gap, number % 2),
                    };
                    let fields = make_fields(fields, number, len);
                    append(&mut log, next, &fields, limits);
                    model.insert(next, fields);
                },
                Step::Delete { at, many } => {
                    let keys = model.keys().copied().collect::<Vec<_>>();
                    let mut ids: Vec<StreamId> =
                        keys.iter().skip(at * keys.len() / 1000).take(many).copied().collect();
                    ids.push(id(at as u64, 7));
                    let gone = ids.iter().filter(|id| model.remove(id).is_some()).count();
                    prop_assert_eq!(log.delete(&ids), gone as u64);
                }
                Step::Trim { by, is_exact } => {
                    let most = by * model.len() / 1000;
                    let trimmed = log.trim(Trim::MaxLen(most as u64), is_exact, 0) as usize;
                    prop_assert!(trimmed <= model.len() - most);
                    prop_assert!(!is_exact || trimmed == model.len() - most);
                    (0..trimmed).for_each(|_| drop(model.pop_first()));
                }
                Step::MinId { at, is_exact } => {
                    let least = id(at as u64, 1);
                    let older = model.range(..least).count();
                    let trimmed = log.trim(Trim::MinId(least), is_exact, 0) as usize;
                    prop_assert!(trimmed <= older && (!is_exact || trimmed == older));
                    (0..trimmed).for_each(|_| drop(model.pop_first()));
                }
                Step::Copy => {
                    let mut budget = usize::MAX;
                    let copy = log.copy();
                    prop_assert!(!log.free_some(&mut budget));
                    log = copy;
                }
            }
            assert_same(&log, &model);
            assert_ranges(&log, &model, turn * 37);
        }
        while log.free_some(&mut 3) {}
        prop_assert_eq!(Arena.used_bytes(), empty);
        drop(mapping);
    }

    #[test]
    fn groups_know_who_has_what(
        steps in proptest::collection::vec((0u8..10, 0u64..40, 0u8..5), 1..300)
    ) {
        let mapping = arena();
        let empty = Arena.used_bytes();
        let mut stream = Stream::create();
        let groups = &mut stream.groups;
        let mut model: BTreeMap<StreamId, (u8, u64, u64)> = BTreeMap::new();
        groups.create(b"g", Group::new(StreamId::MIN, UNKNOWN));
        for (turn, (kind, at, who)) in steps.into_iter().enumerate() {
            let group = groups.get_mut(b"g").unwrap();
            let now = UnixMillis(turn as u64);
            let consumer = |group: &mut Group| {
                group.find_consumer(&[who]).unwrap_or_else(|| group.create_consumer(&[who], now))
            };
            match kind {
                0..4 => {
                    let consumer = consumer(group);
                    group.deliver(id(at, 0), consumer, now);
                    model.insert(id(at, 0), (who, now.get(), 1));
                }
                4 => {
                    let consumer = consumer(group);
                    group.give(id(at, 0), consumer, now, |count| count + 5);
                    let count = model.get(&id(at, 0)).map_or(1, |found| found.2);
                    model.insert(id(at, 0), (who, now.get(), count + 5));
                }
                5 => {
                    group.deliver_again(id(at, 0), now);
                    if let Some(found) = model.get_mut(&id(at, 0)) {
                        *found = (found.0, now.get(), found.2 + 1);
                    }
                }
                6..9 => prop_assert_eq!(group.forget(id(at, 0)), model.remove(&id(at, 0)).is_some()),
                _ => if let Some(consumer) = group.find_consumer(&[who]) {
                    let before = model.len();
                    model.retain(|_, found| found.0 != who);
                    prop_assert_eq!(group.remove_consumer(consumer), before - model.len());
                }
            }
            let all = group.pending().iter().map(|pending| {
                let name = group.consumer_name(pending.consumer())[0];
                (pending.id(), (name, pending.time().get(), pending.count()))
            });
            prop_assert!(all.eq(model.iter().map(|(&id, &found)| (id, found))));
            groups.check().map_err(TestCaseError::fail)?;
        }
        let copy = Owned::new(stream.copy());
        drop(stream);
        copy.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(copy.groups.get(b"g").unwrap().pending().len(), model.len());
        let copy = copy.release();
        while Stream::free_some(copy, 4) {}
        prop_assert_eq!(Arena.used_bytes(), empty);
        drop(mapping);
    }
}

#[test]
fn the_size_of_things() {
    let _mapping = arena();
    let before = Arena.used_bytes();
    let mut log = Log::new();
    for number in 0..100_000u64 {
        append(
            &mut log,
            id(1_700_000_000_000 + number / 3, number % 3),
            &pairs("field=0123456789"),
            LIMITS,
        );
    }
    let per_entry = (Arena.used_bytes() - before) as f64 / 100_000.0;
    // 12 for the value, 2 flags, 3 and 2 for the id, 2 size.
    assert!(per_entry < 23.0, "{per_entry} bytes per entry");
    let before = Arena.used_bytes();
    let mut group = Group::new(StreamId::MIN, 0);
    let consumer = group.create_consumer(b"c", UnixMillis(1));
    for number in 0..100_000 {
        group.deliver(id(number, 0), consumer, UnixMillis(1));
    }
    let per_entry = (Arena.used_bytes() - before) as f64 / 100_000.0;
    assert!(per_entry < 55.0, "{per_entry} bytes per pending entry");
}
