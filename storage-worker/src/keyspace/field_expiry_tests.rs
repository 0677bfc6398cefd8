//! Hashes with fields that expire, through all that happens to their keys, against a model.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proto::slot::slot_of;
use shm::arena::Mapping;

use super::*;
use crate::collections::hash::{Packed, Table, Ttl, Width, form, packed};
use crate::collections::{Structure, listpack};

const SEED: u64 = 0x5eed;
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

fn keyspace() -> (Keyspace, Mapping) {
    let mapping = Mapping::private_anywhere(8 << 30, fingerprint()).unwrap();
    mapping.enter();
    let mut keyspace = Keyspace::create(4, SEED);
    keyspace.set_now(NOW);
    (keyspace, mapping)
}

fn key(db: u16, name: &[u8]) -> Key<'_> {
    Key::new(SEED, db, slot_of(name), name)
}

fn find<'k>(keyspace: &'k mut Keyspace, key: &Key<'_>, now: UnixMillis) -> Option<Found<'k>> {
    keyspace
        .find(key, now, Access::Peek)
        .filter(|found| found.kind() == ValueKind::Hash)
}

fn next(found: &Found<'_>) -> Option<UnixMillis> {
    match form::width(found.form().0) {
        Some(width) => Packed::new(found.packed(), width).next_expiry(),
        None => found.structure::<Table>().next_expiry(),
    }
}

fn fields(found: &Found<'_>) -> BTreeMap<Vec<u8>, Option<UnixMillis>> {
    match form::width(found.form().0) {
        Some(width) => Packed::new(found.packed(), width)
            .iter()
            .map(|field| (field.name.to_vec(), field.expiry))
            .collect(),
        None => found
            .structure::<Table>()
            .iter()
            .map(|field| (field.name.to_vec(), field.expiry))
            .collect(),
    }
}

/// Writes a field as HSETEX would; a new hash is a table if `large`.
fn set(
    keyspace: &mut Keyspace,
    key: &Key<'_>,
    now: UnixMillis,
    field: &[u8],
    at: Option<UnixMillis>,
    large: bool,
) {
    let ttl = at.map_or(Ttl::Clear, Ttl::At);
    let is_hash = match keyspace.value_mut(key, now) {
        Some(value) if value.kind() == ValueKind::Hash => true,
        Some(value) => {
            value.remove();
            false
        }
        None => false,
    };
    if !is_hash {
        if large {
            let table = Table::build(SEED, |_| ());
            keyspace.create_structure(key, Form(form::TABLE), table);
        } else {
            let form = Form(form::TRIPLES);
            keyspace.create_packed(key, ValueKind::Hash, form, &listpack::EMPTY);
        }
    }
    let mut value = keyspace.value_mut(key, now).unwrap();
    if value.is_structure() {
        value.structure_mut::<Table>().set(field, b"value", ttl);
    } else {
        packed::set(&mut value, Width::Triples, field, b"value", ttl);
    }
    let next = next(&find(keyspace, key, now).unwrap());
    keyspace.set_field_expiry(key, next);
}

#[derive(Debug, Clone)]
enum Step {
    Set(u8, u8, Option<u16>, bool),
    Overwrite(u8),
    Expire(u8, Option<u16>),
    Remove(u8),
    Rename(u8, u8),
    Copy(u8, u8),
    Move(u8, u8),
    Swap,
    Flush(u8, bool),
    Access(u8),
    AccessAll(u8),
    Pass(u16, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0u8..6;
    let ahead = || prop_oneof![1u16..50, 1u16..2000];
    prop_oneof![
        10 => (name(), 0u8..8, prop::option::of(ahead()), any::<bool>())
            .prop_map(|(key, field, ahead, large)| Step::Set(key, field, ahead, large)),
        1 => name().prop_map(Step::Overwrite),
        1 => (name(), prop::option::of(ahead())).prop_map(|(key, ahead)| Step::Expire(key, ahead)),
        1 => name().prop_map(Step::Remove),
        1 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (name(), name()).prop_map(|(from, to)| Step::Copy(from, to)),
        1 => (name(), name()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => Just(Step::Swap),
        1 => (0u8..2, any::<bool>()).prop_map(|(db, lazily)| Step::Flush(db, lazily)),
        2 => name().prop_map(Step::Access),
        1 => name().prop_map(Step::AccessAll),
        5 => (1u16..400, 1usize..20).prop_map(|(millis, budget)| Step::Pass(millis, budget)),
    ]
}

/// Key and database of a number: even ones are in database 0, odd ones in 1.
fn place(number: u8) -> (u16, [u8; 1]) {
    (u16::from(number % 2), [b'a' + number / 2])
}

type Fields = BTreeMap<Vec<u8>, Option<UnixMillis>>;
type Model = BTreeMap<(u16, Vec<u8>), (Fields, Option<UnixMillis>)>;

/// What is there at `now`: a key lives until its time, a field is removed when its time has come.
fn pass(model: &mut Model, now: UnixMillis) {
    for (fields, _) in model.values_mut() {
        fields.retain(|_, at| at.is_none_or(|at| !at.has_passed(now)));
    }
    model.retain(|_, (fields, at)| !fields.is_empty() && at.is_none_or(|at| !at.has_passed(now)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn expired_fields_are_removed_whatever_happens_to_their_keys(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let (mut keyspace, _mapping) = keyspace();
        let mut model = Model::new();
        let mut now = NOW;
        for step in steps {
            play(&mut keyspace, &mut model, &mut now, step);
            prop_assert_eq!(keyspace.check_invariants(), Ok(()));
        }
        // In the end all that is due is gone.
        while keyspace.expire_slice(now, 7) {}
        pass(&mut model, now);
        prop_assert_eq!(keyspace.check_invariants(), Ok(()));
        for number in 0..6 {
            let (db, name) = place(number);
            let found = find(&mut keyspace, &key(db, &name), now).map(|found| fields(&found));
            let wanted = model.get(&(db, name.to_vec())).map(|(fields, _)| fields.clone());
            prop_assert_eq!(found, wanted);
        }
        let wheel = (0..4).map(|db| keyspace.expiring_hashes(db)).sum::<u64>();
        let expiring = model.values().filter(|(fields, _)| fields.values().any(Option::is_some));
        prop_assert!(wheel >= expiring.count() as u64);
    }
}

fn play(keyspace: &mut Keyspace, model: &mut Model, now: &mut UnixMillis, step: Step) {
    let named = |number: u8| {
        let (db, name) = place(number);
        (db, name.to_vec())
    };
    keyspace.set_now(*now);
    match step {
        Step::Set(number, field, ahead, large) => {
            let (db, name) = named(number);
            let at = ahead.map(|ahead| now.plus(ahead.into()));
            set(keyspace, &key(db, &name), *now, &[field], at, large);
            // A key that has expired is made anew.
            model.retain(|_, (_, at)| at.is_none_or(|at| !at.has_passed(*now)));
            let expiry = find(keyspace, &key(db, &name), *now).and_then(|found| found.expiry());
            let entry = model.entry((db, name)).or_default();
            entry
                .0
                .retain(|_, at| at.is_none_or(|at| !at.has_passed(*now)));
            // A key all of whose fields had expired may have been removed, with its expiry, or not.
            if entry.0.is_empty() {
                entry.1 = expiry;
            }
            entry.0.insert(vec![field], at);
        }
        Step::Overwrite(number) => {
            let (db, name) = named(number);
            keyspace.set_string(&key(db, &name), StringValue::Auto(b"x"), Expiry::Clear);
            model.remove(&(db, name));
        }
        Step::Expire(number, ahead) => {
            let (db, name) = named(number);
            let at = ahead.map(|ahead| now.plus(ahead.into()));
            let is_there = keyspace.set_expiry(&key(db, &name), at);
            if let Some(entry) = model.get_mut(&(db, name)).filter(|_| is_there) {
                entry.1 = at;
            }
        }
        Step::Remove(number) => {
            let (db, name) = named(number);
            keyspace.unlink(&key(db, &name));
            model.remove(&(db, name));
        }
        Step::Rename(from, to) | Step::Move(from, to) => {
            let (from, to) = (named(from), named(to));
            let is_there = keyspace.rename(&key(from.0, &from.1), &key(to.0, &to.1));
            if is_there && from != to {
                let moved = model.remove(&from);
                model.remove(&to);
                moved.map(|moved| model.insert(to, moved));
            }
        }
        Step::Copy(from, to) => {
            let (from, to) = (named(from), named(to));
            let is_there = keyspace.copy(&key(from.0, &from.1), &key(to.0, &to.1));
            if is_there && from != to {
                let copied = model.get(&from).cloned();
                model.remove(&to);
                copied.map(|copied| model.insert(to, copied));
            }
        }
        Step::Swap => {
            keyspace.swap(0, 1);
            let swapped = std::mem::take(model).into_iter();
            *model = swapped
                .map(|((db, name), value)| ((1 - db, name), value))
                .collect();
        }
        Step::Flush(db, lazily) => {
            keyspace.flush_db(db.into(), lazily);
            while keyspace.free_slice(3) {}
            model.retain(|(of, _), _| *of != u16::from(db));
        }
        Step::Access(number) => {
            let (db, name) = named(number);
            if find(keyspace, &key(db, &name), *now).is_some() {
                let fields: [&[u8]; 3] = [&[0], &[1], &[2]];
                keyspace.expire_fields(&key(db, &name), fields.into_iter());
            }
            forget(model, &(db, name), *now, |field| field[0] < 3);
        }
        Step::AccessAll(number) => {
            let (db, name) = named(number);
            if find(keyspace, &key(db, &name), *now).is_some() {
                keyspace.expire_all_fields(&key(db, &name));
            }
            forget(model, &(db, name), *now, |_| true);
        }
        Step::Pass(millis, budget) => {
            *now = now.plus(millis.into());
            // In slices, which need not come to an end.
            keyspace.expire_slice(*now, budget);
        }
    }
}

/// Removes fields that have expired, and the key with the last one.
fn forget(model: &mut Model, key: &(u16, Vec<u8>), now: UnixMillis, named: impl Fn(&[u8]) -> bool) {
    let Some((fields, _)) = model.get_mut(key) else {
        return;
    };
    fields.retain(|field, at| !named(field) || at.is_none_or(|at| !at.has_passed(now)));
    if fields.is_empty() {
        model.remove(key);
    }
}

#[test]
fn a_hash_with_many_fields_expires_in_slices_and_takes_its_key_along() {
    let (mut keyspace, _mapping) = keyspace();
    let key = key(0, b"hash");
    let table = Table::build(SEED, |table| {
        for number in 0..20_000u32 {
            table.insert(
                &number.to_le_bytes(),
                b"",
                Some(NOW.plus(u64::from(number / 100))),
            );
        }
    });
    keyspace.create_structure(&key, Form(form::TABLE), table);
    keyspace.set_field_expiry(&key, Some(NOW));
    assert_eq!(keyspace.next_expiry(), Some(NOW));
    let mut slices = 0;
    while keyspace.expire_slice(NOW.plus(100), 500) {
        slices += 1;
    }
    assert!((15..40).contains(&slices), "{slices}");
    let found = find(&mut keyspace, &key, NOW.plus(100)).unwrap();
    assert_eq!(found.structure::<Table>().len(), 10_000);
    assert_eq!(keyspace.counters().expired_fields, 10_000);
    assert!(keyspace.next_expiry().is_some_and(|at| at > NOW.plus(99)));
    while keyspace.expire_slice(NOW.plus(1000), 500) {}
    assert_eq!((keyspace.len(0), keyspace.expiring_hashes(0)), (0, 0));
    assert_eq!(keyspace.next_expiry(), None);
    assert_eq!(keyspace.check_invariants(), Ok(()));
}
