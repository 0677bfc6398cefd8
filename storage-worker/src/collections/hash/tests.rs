//! Hashes against naive models: a map for tables, a list for packed ones, whose order counts.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use proptest::prelude::*;
use proto::time::UnixMillis;
use shm::arena::{Arena, Mapping};

use super::{Packed, Table, Ttl, Width, packed};
use crate::collections::{Structure, listpack};
use crate::keyspace::dictionary::Position;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<UnixMillis>)>;

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<u8>, Vec<u8>, Ttl),
    Expire(Vec<u8>, Option<UnixMillis>),
    Remove(Vec<u8>),
    Pass(UnixMillis),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0u32..40).prop_map(|number| number.to_string().into_bytes()),
        "[a-c]{0,3}".prop_map(String::into_bytes),
        (60usize..70).prop_map(|length| vec![b'x'; length]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i32>().prop_map(|number| number.to_string().into_bytes()),
        "[a-z]{0,9}".prop_map(String::into_bytes),
        (180usize..200).prop_map(|length| vec![1; length]),
        (1000usize..1100).prop_map(|length| vec![2; length]),
    ]
}

fn time() -> impl Strategy<Value = UnixMillis> {
    (1u64..30).prop_map(|at| UnixMillis(at * 10))
}

fn ttl() -> impl Strategy<Value = Ttl> {
    prop_oneof![Just(Ttl::Keep), Just(Ttl::Clear), time().prop_map(Ttl::At)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (name(), value(), ttl()).prop_map(|(name, value, ttl)| Step::Set(name, value, ttl)),
        3 => (name(), proptest::option::of(time())).prop_map(|(name, at)| Step::Expire(name, at)),
        2 => name().prop_map(Step::Remove),
        1 => (0u64..150).prop_map(|now| Step::Pass(UnixMillis(now))),
    ];
    proptest::collection::vec(step, 1..200)
}

fn after(ttl: Ttl, before: Option<UnixMillis>) -> Option<UnixMillis> {
    match ttl {
        Ttl::Keep => before,
        Ttl::Clear => None,
        Ttl::At(at) => Some(at),
    }
}

fn in_an_arena(test: impl FnOnce() -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    let mapping = Mapping::private_anywhere(1 << 30, 1).expect("an arena");
    mapping.enter();
    test()
}

fn content(table: &Table) -> Model {
    let fields = table.iter();
    fields
        .map(|field| (field.name.to_vec(), (field.value.to_vec(), field.expiry)))
        .collect()
}

fn play_on_table(table: &mut Table, model: &mut Model, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Set(name, value, ttl) => {
            let old = model.get(&name);
            let expiry = after(ttl, old.and_then(|&(_, expiry)| expiry));
            prop_assert_eq!(table.set(&name, &value, ttl), old.is_none());
            model.insert(name, (value, expiry));
        }
        Step::Expire(name, at) => {
            prop_assert_eq!(table.set_expiry(&name, at), model.contains_key(&name));
            if let Some((_, expiry)) = model.get_mut(&name) {
                *expiry = at;
            }
        }
        Step::Remove(name) => {
            prop_assert_eq!(table.remove(&name), model.remove(&name).is_some());
        }
        Step::Pass(now) => {
            let before = model.len();
            model.retain(|_, (_, expiry)| expiry.is_none_or(|at| !at.has_passed(now)));
            prop_assert_eq!(
                table.remove_expired(now, usize::MAX, |_| ()),
                before - model.len()
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_a_map(steps in steps()) {
        in_an_arena(|| {
            let empty = Arena.used_bytes();
            let mut address: NonNull<Table> = Table::create(7);
            // SAFETY: the table lives until it is freed below.
            let table = unsafe { address.as_mut() };
            let mut model = Model::new();
            for step in steps {
                play_on_table(table, &mut model, step)?;
                let next = model.values().filter_map(|&(_, expiry)| expiry).min();
                prop_assert_eq!(table.next_expiry(), next);
                prop_assert_eq!(table.len(), model.len());
            }
            table.check().map_err(TestCaseError::fail)?;
            prop_assert_eq!(table.memory_bytes(5) as u64, Arena.used_bytes() - empty);
            prop_assert_eq!(&content(table), &model);
            for (name, (value, expiry)) in &model {
                let found = table.get(name).map(|found| (found.value.to_vec(), found.expiry));
                prop_assert_eq!(found, Some((value.clone(), *expiry)));
            }
            let copy = table.copy();
            // SAFETY: as above.
            let copied = unsafe { copy.as_ref() };
            copied.check().map_err(TestCaseError::fail)?;
            prop_assert_eq!(&content(copied), &model);
            Structure::free(copy);
            while Table::free_some(address, 10) {}
            prop_assert_eq!(Arena.used_bytes(), empty);
            Ok(())
        })?;
    }

    #[test]
    fn triples_are_a_list_in_order_of_time(steps in steps()) {
        let mut bytes = packed::widened(Packed::new(&listpack::EMPTY, Width::Pairs));
        let mut model: Vec<(Vec<u8>, Vec<u8>, Option<UnixMillis>)> = Vec::new();
        let late = UnixMillis(u64::MAX);
        for step in steps {
            let place = |model: &[(Vec<u8>, Vec<u8>, _)], name: &[u8]| {
                model.iter().position(|field| field.0 == name)
            };
            // In front of the first one that is not earlier; at the end without a time.
            let insert = |model: &mut Vec<_>, name, value, expiry: Option<UnixMillis>| {
                let at = model.iter().position(|field: &(_, _, Option<UnixMillis>)| {
                    expiry.is_some_and(|at| field.2.unwrap_or(late) >= at)
                });
                model.insert(at.unwrap_or(model.len()), (name, value, expiry));
            };
            match step {
                Step::Set(name, value, ttl) => {
                    let known = place(&model, &name);
                    let is_new = packed::set(&mut bytes, Width::Triples, &name, &value, ttl);
                    prop_assert_eq!(is_new, known.is_none());
                    let before = known.map_or((None, true), |at| (model[at].2, false));
                    let expiry = after(ttl, before.0);
                    match known {
                        Some(at) if expiry == before.0 && !matches!(ttl, Ttl::At(_)) => {
                            model[at].1 = value;
                        }
                        known => {
                            known.map(|at| model.remove(at));
                            insert(&mut model, name, value, expiry);
                        }
                    }
                }
                Step::Expire(name, at) => {
                    let known = place(&model, &name);
                    prop_assert_eq!(packed::set_expiry(&mut bytes, &name, at), known.is_some());
                    if let Some(known) = known {
                        let (name, value, _) = model.remove(known);
                        insert(&mut model, name, value, at);
                    }
                }
                Step::Remove(name) => {
                    let known = place(&model, &name);
                    let removed = packed::remove(&mut bytes, Width::Triples, &name);
                    prop_assert_eq!(removed, known.is_some());
                    known.map(|at| model.remove(at));
                }
                Step::Pass(now) => {
                    let before = model.len();
                    model.retain(|field| field.2.is_none_or(|at| !at.has_passed(now)));
                    packed::remove_first(&mut bytes, before - model.len());
                }
            }
            prop_assert!(listpack::Listpack::check(&bytes).is_some());
            let hash = Packed::new(&bytes, Width::Triples);
            let found: Vec<_> = hash
                .iter()
                .map(|field| (field.name.to_vec(), field.value.to_vec(), field.expiry))
                .collect();
            prop_assert_eq!(&found, &model);
            prop_assert_eq!(hash.len(), model.len());
            prop_assert_eq!(hash.next_expiry(), model.first().and_then(|field| field.2));
        }
        for (number, field) in model.iter().enumerate() {
            let hash = Packed::new(&bytes, Width::Triples);
            let nth = hash.nth(number).map(|field| field.name.to_vec());
            prop_assert_eq!(nth.as_ref(), Some(&field.0));
            let value = hash.get(&field.0).map(|(value, expiry)| (value.to_vec(), expiry));
            prop_assert_eq!(value, Some((field.1.clone(), field.2)));
        }
    }
}

#[test]
fn a_large_table_is_scanned_and_freed_in_slices() {
    in_an_arena(|| {
        let empty = Arena.used_bytes();
        let mut address = Table::create(7);
        // SAFETY: the table lives until it is freed below.
        let table = unsafe { address.as_mut() };
        for number in 0..50_000u64 {
            let expiry = (number % 3 == 0).then_some(UnixMillis(number));
            table.insert(number.to_string().as_bytes(), b"value", expiry);
        }
        table.check().map_err(TestCaseError::fail)?;
        let (mut position, mut seen) = (Some(Position::default()), 0);
        while let Some(from) = position {
            position = table.scan(from, 100, |_| seen += 1);
        }
        assert_eq!(seen, 50_000);
        assert_eq!(table.remove_expired(UnixMillis(30_000), 1000, |_| ()), 1000);
        assert_eq!(
            table.remove_expired(UnixMillis(30_000), usize::MAX, |_| ()),
            9000
        );
        assert_eq!(table.len(), 40_000);
        let mut state = 1u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state
        };
        assert!(table.random(&mut random).is_some());
        let mut slices = 0;
        while Table::free_some(address, 1000) {
            slices += 1;
        }
        assert!(slices > 10, "{slices}");
        assert_eq!(Arena.used_bytes(), empty);
        Ok(())
    })
    .unwrap();
}
