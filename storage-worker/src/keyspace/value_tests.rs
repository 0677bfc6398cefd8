//! Values of any kind: packed bytes against a vector, structures through all that happens to keys.

use proptest::prelude::*;
use proto::slot::slot_of;
use shm::arena::Mapping;

use super::*;
use crate::collections::Splice;
use crate::collections::set_table::SetTable;

const SEED: u64 = 0x5eed;
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const TABLE: Form = Form(2);

fn keyspace() -> (Keyspace, Mapping) {
    let mapping = Mapping::private_anywhere(8 << 30, fingerprint()).unwrap();
    mapping.enter();
    let mut keyspace = Keyspace::create(4, SEED);
    keyspace.set_now(NOW);
    // The allocator's own books grow with the highest use and stay: grow them beforehand.
    keyspace.string_mut(&key(0, b"room"), 64 << 20, |_| {});
    keyspace.flush_all(false);
    (keyspace, mapping)
}

fn key(db: u16, name: &[u8]) -> Key<'_> {
    Key::new(SEED, db, slot_of(name), name)
}

fn add_set(keyspace: &mut Keyspace, key: &Key<'_>, members: usize) {
    let mut table = SetTable::create(SEED);
    for number in 0..members {
        table.insert(format!("member {number}").as_bytes());
    }
    keyspace.replace_with_structure(key, TABLE, table.release());
}

fn members(keyspace: &mut Keyspace, key: &Key<'_>) -> Option<usize> {
    let found = keyspace.find(key, NOW, Access::Read)?;
    assert!(found.is_structure() && found.form() == TABLE);
    assert_eq!(found.encoding().name(), "hashtable");
    Some(found.structure::<SetTable>().iter().count())
}

fn ok(keyspace: &Keyspace) {
    assert_eq!(keyspace.check_invariants(), Ok(()));
}

#[derive(Debug, Clone)]
enum Edit {
    Splice(usize, usize, usize),
    Set(Vec<u8>),
    Expire(Option<u64>),
    Relabel(u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    let length = prop_oneof![0usize..8, 0usize..300, 900usize..1200];
    prop_oneof![
        8 => (any::<usize>(), 0usize..400, length).prop_map(|(at, out, into)| Edit::Splice(at, out, into)),
        1 => prop::collection::vec(any::<u8>(), 0..1500).prop_map(Edit::Set),
        1 => prop::option::of(1..1u64 << 50).prop_map(Edit::Expire),
        1 => (0u8..8).prop_map(Edit::Relabel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_bytes_equal_a_vector(
        name in prop::collection::vec(any::<u8>(), 0..300),
        start in prop::collection::vec(any::<u8>(), 0..1400),
        edits in prop::collection::vec(edit(), 1..40),
    ) {
        let (mut keyspace, _mapping) = keyspace();
        let key = key(0, &name);
        let before = keyspace.used_bytes();
        let mut model = start.clone();
        let mut form = Form(1);
        let mut expiry = None;
        keyspace.create_packed(&key, ValueKind::SortedSet, form, &start);
        for (step, edit) in edits.into_iter().enumerate() {
            let mut value = keyspace.value_mut(&key, NOW).unwrap();
            match edit {
                Edit::Splice(at, removed, inserted) => {
                    let at = at % (model.len() + 1);
                    let removed = removed.min(model.len() - at);
                    let fresh = vec![step as u8; inserted];
                    value.splice(at, removed, inserted).copy_from_slice(&fresh);
                    model.splice(at..at + removed, fresh);
                }
                Edit::Set(bytes) => {
                    value.set_packed(form, &bytes);
                    model = bytes;
                }
                Edit::Relabel(number) => {
                    form = Form(number);
                    value.set_form(form);
                }
                Edit::Expire(at) => {
                    expiry = at.map(|more| NOW.plus(more));
                    keyspace.set_expiry(&key, expiry);
                }
            }
            let found = keyspace.find(&key, NOW, Access::Read).unwrap();
            prop_assert_eq!(found.packed(), &model[..]);
            prop_assert_eq!(
                (found.kind(), found.form(), found.expiry(), found.key()),
                (ValueKind::SortedSet, form, expiry, &name[..])
            );
            let most = model.len() * 2 + model.len() / 8 + name.len() + 2048;
            prop_assert!(found.memory_bytes(0) <= most, "{} for {}", found.memory_bytes(0), model.len());
            ok(&keyspace);
        }
        keyspace.value_mut(&key, NOW).unwrap().remove();
        prop_assert_eq!(keyspace.len(0), 0);
        ok(&keyspace);
        keyspace.flush_all(false);
        prop_assert_eq!(keyspace.used_bytes(), before);
    }
}

#[test]
fn a_collection_that_grows_by_elements_is_seldom_copied() {
    let (mut keyspace, _mapping) = keyspace();
    let key = key(0, b"k");
    keyspace.create_packed(&key, ValueKind::List, Form(0), b"");
    let mut moves = 0;
    let mut last = 0;
    for _ in 0..800 {
        let mut value = keyspace.value_mut(&key, NOW).unwrap();
        let end = value.bytes().len();
        value.splice(end, 0, 10).fill(1);
        let at = value.bytes().as_ptr().addr();
        moves += usize::from(end > 1024 && at != last);
        last = at;
    }
    // Once per size class: 8 of each doubling.
    assert!(moves <= 25, "{moves} moves from 1 KiB to 8 KiB");
}

#[test]
fn structures_go_along_with_their_keys() {
    let (mut keyspace, _mapping) = keyspace();
    let empty = keyspace.used_bytes();
    let (a, b, c) = (key(0, b"a"), key(0, b"b"), key(1, b"c"));
    add_set(&mut keyspace, &a, 1000);
    assert!(keyspace.set_expiry(&a, Some(NOW.plus(1000))));
    assert!(keyspace.rename(&a, &b));
    assert_eq!(members(&mut keyspace, &a), None);
    assert_eq!(members(&mut keyspace, &b), Some(1000));
    assert!(keyspace.copy(&b, &c));
    ok(&keyspace);
    let mut value = keyspace.value_mut(&c, NOW).unwrap();
    assert!(value.structure_mut::<SetTable>().insert(b"one more"));
    assert_eq!(value.expiry(), Some(NOW.plus(1000)));
    assert_eq!(members(&mut keyspace, &b), Some(1000));
    assert_eq!(members(&mut keyspace, &c), Some(1001));

    keyspace.swap(0, 1);
    keyspace.swap(2, 2);
    assert_eq!(
        (keyspace.len(0), keyspace.expires(0), keyspace.len(1)),
        (1, 1, 1)
    );
    assert_eq!(members(&mut keyspace, &key(0, b"c")), Some(1001));
    ok(&keyspace);

    // Overwritten, by a string and by another kind.
    keyspace.set_string(&key(0, b"c"), StringValue::Auto(b"text"), Expiry::Clear);
    assert_eq!(keyspace.expires(0), 0);
    keyspace.replace_with_packed(&key(1, b"b"), ValueKind::SortedSet, Form(1), b"packed");
    let found = keyspace.find(&key(1, b"b"), NOW, Access::Read).unwrap();
    assert_eq!(
        (found.kind(), found.packed()),
        (ValueKind::SortedSet, &b"packed"[..])
    );
    assert_eq!(
        (found.expiry(), found.encoding().name()),
        (None, "skiplist")
    );
    ok(&keyspace);
    assert_eq!(keyspace.flush_all(false), 2);
    assert_eq!(keyspace.used_bytes(), empty);
    ok(&keyspace);
}

#[test]
fn a_packed_value_becomes_a_structure_and_back() {
    let (mut keyspace, _mapping) = keyspace();
    let key = key(0, b"k");
    for length in [10, 5000] {
        keyspace.create_packed(&key, ValueKind::Set, Form(1), &vec![3; length]);
        keyspace.set_expiry(&key, Some(NOW.plus(9)));
        let mut table = SetTable::create(SEED);
        table.insert(b"x");
        let mut value = keyspace.value_mut(&key, NOW).unwrap();
        value.set_structure(TABLE, table.release());
        assert!(value.structure::<SetTable>().contains(b"x"));
        ok(&keyspace);
        let mut value = keyspace.value_mut(&key, NOW).unwrap();
        let table = NonNull::from(value.structure_mut::<SetTable>());
        value.set_packed(Form(0), b"back");
        crate::collections::Structure::free(table);
        assert_eq!((value.packed(), value.form()), (&b"back"[..], Form(0)));
        assert_eq!(value.expiry(), Some(NOW.plus(9)));
        ok(&keyspace);
        keyspace.value_mut(&key, NOW).unwrap().remove();
    }
    ok(&keyspace);
}

#[test]
#[should_panic(expected = "not the structure")]
fn a_structure_of_another_kind_is_not_handed_out() {
    let (mut keyspace, _mapping) = keyspace();
    add_set(&mut keyspace, &key(0, b"k"), 1);
    let found = keyspace.find(&key(0, b"k"), NOW, Access::Read).unwrap();
    let _ = found.structure::<crate::collections::list::List>();
}

#[test]
fn freeing_counts_as_lazy_what_was_asked_to_be_and_is_not_small() {
    let (mut keyspace, _mapping) = keyspace();
    let empty = keyspace.used_bytes();
    let k = key(0, b"k");
    let lazy = LazyFree {
        overwritten: Freeing::Lazy,
        ..LazyFree::default()
    };
    // Elements, whether by UNLINK; what then waits, and counts.
    for (members, unlinks, waits, counts) in [
        (64, true, false, 0),
        (65, true, true, 1),
        (65, false, false, 0),
        (4097, false, true, 0),
        (4097, true, true, 1),
    ] {
        add_set(&mut keyspace, &k, members);
        let freed = keyspace.counters().lazily_freed;
        assert!(if unlinks {
            keyspace.unlink(&k)
        } else {
            keyspace.remove(&k)
        });
        assert_eq!(
            (keyspace.has_graves(), keyspace.lazily_pending()),
            (waits, counts),
            "{members}"
        );
        ok(&keyspace);
        while keyspace.free_slice(1000) {}
        assert_eq!(keyspace.counters().lazily_freed - freed, counts);
    }
    for (settings, counts) in [(LazyFree::default(), 0), (lazy, 1)] {
        keyspace.set_lazy_free(settings);
        add_set(&mut keyspace, &k, 100);
        keyspace.set_string(&k, StringValue::Int(1), Expiry::Clear);
        assert_eq!(keyspace.lazily_pending(), counts);
        add_set(&mut keyspace, &k, 100);
        keyspace.set_string(&key(0, b"from"), StringValue::Int(1), Expiry::Clear);
        keyspace.rename(&key(0, b"from"), &k);
        assert_eq!(keyspace.lazily_pending(), counts * 2);
    }
    while keyspace.free_slice(1) {}
    keyspace.set_lazy_free(LazyFree::default());
    add_set(&mut keyspace, &k, 10_000);
    keyspace.set_expiry(&k, Some(NOW));
    assert!(keyspace.find(&k, NOW.plus(1), Access::Read).is_none());
    assert!(keyspace.has_graves() && keyspace.lazily_pending() == 0);
    while keyspace.free_slice(100) {}
    keyspace.flush_all(false);
    assert_eq!(keyspace.used_bytes(), empty);
}

#[test]
fn a_flushed_database_frees_its_giants_in_slices() {
    let (mut keyspace, _mapping) = keyspace();
    let empty = keyspace.used_bytes();
    for number in 0..200u32 {
        let name = number.to_le_bytes();
        add_set(
            &mut keyspace,
            &key(0, &name),
            if number % 50 == 0 { 5000 } else { 10 },
        );
    }
    assert_eq!(keyspace.flush_db(0, true), 200);
    assert_eq!(keyspace.lazily_pending(), 200);
    let mut slices = 0;
    while keyspace.free_slice(500) {
        slices += 1;
        ok(&keyspace);
    }
    // A table of a dictionary has up to 900 elements.
    assert!(slices > 20, "{slices}");
    assert_eq!(keyspace.counters().lazily_freed, 200);
    assert_eq!(
        (keyspace.lazily_pending(), keyspace.used_bytes()),
        (0, empty)
    );
}
