//! The keyspace against a model, and its promises about memory, expiry, scans and successors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use proto::slot::slot_of;
use shm::arena::{Mapping, Origin, create_memory};

use super::*;

const SEED: u64 = 0x5eed;
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

fn arena() -> Mapping {
    let mapping = Mapping::private_anywhere(8 << 30, fingerprint()).unwrap();
    mapping.enter();
    mapping
}

fn keyspace() -> (Keyspace, Mapping) {
    let mapping = arena();
    let mut keyspace = Keyspace::create(16, SEED);
    keyspace.set_now(NOW);
    (keyspace, mapping)
}

fn key(db: u16, name: &[u8]) -> Key<'_> {
    Key::new(SEED, db, slot_of(name), name)
}

fn text(found: Found<'_>) -> Vec<u8> {
    match found.string() {
        StringRef::Int(value) => value.to_string().into_bytes(),
        StringRef::Bytes(bytes) => bytes.to_vec(),
    }
}

fn get(keyspace: &mut Keyspace, name: &[u8], now: UnixMillis) -> Option<Vec<u8>> {
    keyspace.find(&key(0, name), now, Access::Read).map(text)
}

/// A deterministic source of randomness.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Set(u8, Vec<u8>, Option<u16>),
    SetKeeping(u8, i64),
    Remove(u8),
    Append(u8, Vec<u8>),
    Stretch(u8, u16),
    Expire(u8, Option<u16>),
    Rename(u8, u8),
    Copy(u8, u8),
    Wait(u16),
    ExpireSlice(u8),
    Flush(bool),
    FreeSlice(u8),
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => any::<i32>().prop_map(|number| number.to_string().into_bytes()),
        4 => proptest::collection::vec(any::<u8>(), 0..60),
        2 => (0usize..3000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
        1 => (0usize..200_000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0u8..40;
    prop_oneof![
        6 => (name.clone(), value(), proptest::option::of(0u16..2000))
            .prop_map(|(name, value, ttl)| Step::Set(name, value, ttl)),
        2 => (name.clone(), any::<i64>()).prop_map(|(name, value)| Step::SetKeeping(name, value)),
        3 => name.clone().prop_map(Step::Remove),
        3 => (name.clone(), value()).prop_map(|(name, value)| Step::Append(name, value)),
        2 => (name.clone(), 0u16..5000).prop_map(|(name, length)| Step::Stretch(name, length)),
        4 => (name.clone(), proptest::option::of(0u16..2000))
            .prop_map(|(name, ttl)| Step::Expire(name, ttl)),
        2 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (name.clone(), name).prop_map(|(from, to)| Step::Copy(from, to)),
        3 => (0u16..500).prop_map(Step::Wait),
        2 => any::<u8>().prop_map(Step::ExpireSlice),
        1 => any::<bool>().prop_map(Step::Flush),
        1 => any::<u8>().prop_map(Step::FreeSlice),
    ]
}

type Model = BTreeMap<u8, (Vec<u8>, Option<UnixMillis>)>;

/// Applies a step to both; what the step returned must agree.
fn apply(keyspace: &mut Keyspace, model: &mut Model, now: &mut UnixMillis, step: Step) {
    let name = |name: u8| [b'k', name];
    let after = |ttl: Option<u16>| ttl.map(|ttl| now.plus(u64::from(ttl)));
    keyspace.set_now(*now);
    model.retain(|_, (_, expiry)| !expiry.is_some_and(|at| at.has_passed(*now)));
    match step {
        Step::Set(k, value, ttl) => {
            let expiry = after(ttl).map_or(Expiry::Clear, Expiry::At);
            keyspace.set_string(&key(0, &name(k)), StringValue::Auto(&value), expiry);
            model.insert(k, (value, after(ttl)));
        }
        Step::SetKeeping(k, value) => {
            keyspace.set_string(&key(0, &name(k)), StringValue::Int(value), Expiry::Keep);
            model.entry(k).or_default().0 = value.to_string().into_bytes();
        }
        Step::Remove(k) => {
            assert_eq!(
                keyspace.remove(&key(0, &name(k))),
                model.remove(&k).is_some()
            );
        }
        Step::Append(k, bytes) => {
            let length = keyspace.append(&key(0, &name(k)), &bytes);
            let value = &mut model.entry(k).or_default().0;
            value.extend(bytes);
            assert_eq!(length, value.len());
        }
        Step::Stretch(k, length) => {
            let length = usize::from(length);
            let edit = |bytes: &mut [u8]| bytes.iter_mut().step_by(7).for_each(|byte| *byte = 9);
            keyspace.string_mut(&key(0, &name(k)), length, edit);
            let value = &mut model.entry(k).or_default().0;
            value.resize(length, 0);
            edit(value);
        }
        Step::Expire(k, ttl) => {
            let is_there = keyspace.set_expiry(&key(0, &name(k)), after(ttl));
            assert_eq!(is_there, model.contains_key(&k));
            if let Some((_, expiry)) = model.get_mut(&k) {
                *expiry = after(ttl);
            }
        }
        Step::Rename(from, to) => {
            let is_there = keyspace.rename(&key(0, &name(from)), &key(0, &name(to)));
            assert_eq!(is_there, model.contains_key(&from));
            if let Some(value) = model.remove(&from) {
                model.insert(to, value);
            }
        }
        Step::Copy(from, to) => {
            let is_there = keyspace.copy(&key(0, &name(from)), &key(0, &name(to)));
            assert_eq!(is_there, model.contains_key(&from));
            if let Some(value) = model.get(&from).cloned() {
                model.insert(to, value);
            }
        }
        Step::Wait(ms) => *now = now.plus(u64::from(ms)),
        Step::ExpireSlice(budget) => {
            keyspace.expire_slice(*now, usize::from(budget));
        }
        Step::Flush(lazily) => {
            assert!(keyspace.flush_db(0, lazily) >= model.len() as u64);
            model.clear();
        }
        Step::FreeSlice(budget) => {
            keyspace.free_slice(usize::from(budget));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn commands_agree_with_a_model(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut keyspace, _arena) = keyspace();
        let empty = keyspace.used_bytes();
        let mut model = Model::new();
        let mut now = NOW;
        for step in steps {
            apply(&mut keyspace, &mut model, &mut now, step);
            prop_assert_eq!(keyspace.check_invariants(), Ok(()));
        }
        for name in 0..40 {
            let found = keyspace.find(&key(0, &[b'k', name]), now, Access::Peek);
            let found = found.map(|found| (text(found), found.expiry()));
            let expected = model.get(&name).filter(|(_, at)| !at.is_some_and(|at| at.has_passed(now)));
            prop_assert_eq!(found.as_ref(), expected);
        }
        keyspace.flush_all(true);
        while keyspace.free_slice(50) {}
        prop_assert_eq!(keyspace.check_invariants(), Ok(()));
        prop_assert!(keyspace.used_bytes() <= empty + 4096 * 40, "only books stay behind");
    }
}

#[test]
fn encodings_are_those_that_redis_shows() {
    let (mut keyspace, _arena) = keyspace();
    let encoding = |keyspace: &mut Keyspace| {
        keyspace
            .find(&key(0, b"k"), NOW, Access::Read)
            .unwrap()
            .encoding()
            .name()
    };
    let mut set = |value: StringValue<'_>| {
        keyspace.set_string(&key(0, b"k"), value, Expiry::Clear);
        encoding(&mut keyspace)
    };
    assert_eq!(set(StringValue::Auto(b"12")), "int");
    assert_eq!(set(StringValue::Auto(b"-9223372036854775808")), "int");
    assert_eq!(set(StringValue::Auto(b"9223372036854775808")), "embstr");
    assert_eq!(set(StringValue::Auto(&[b'x'; 44])), "embstr");
    assert_eq!(set(StringValue::Auto(&[b'x'; 45])), "raw");
    assert_eq!(set(StringValue::Auto(&[b'x'; 2000])), "raw");
    assert_eq!(set(StringValue::Plain(b"12")), "embstr");
    assert_eq!(set(StringValue::Raw(b"12")), "raw");
    assert_eq!(set(StringValue::Int(12)), "int");
    keyspace.append(&key(0, b"k"), b"3");
    assert_eq!(encoding(&mut keyspace), "raw");
    assert_eq!(get(&mut keyspace, b"k", NOW).unwrap(), b"123");
    keyspace.remove(&key(0, b"k"));
    keyspace.append(&key(0, b"k"), b"3");
    assert_eq!(encoding(&mut keyspace), "int");
    keyspace.remove(&key(0, b"k"));
    keyspace.string_mut(&key(0, b"k"), 3, |bytes| bytes.copy_from_slice(b"abc"));
    assert_eq!(encoding(&mut keyspace), "raw");
}

#[test]
fn a_key_lives_through_its_last_millisecond_and_no_longer() {
    #[derive(Default)]
    struct Log(Vec<String>);
    struct Recorder(Rc<RefCell<Log>>);
    impl Hook for Recorder {
        fn begin_write(&mut self, db: u16, _: u16) {
            self.0.borrow_mut().0.push(format!("begin {db}"));
        }
        fn end_write(&mut self) {
            self.0.borrow_mut().0.push("end".to_owned());
        }
        fn stream_removed(&mut self, _: u16, _: &[u8]) {}
        fn expired(&mut self, _: u16, _: u16, key: &[u8]) {
            self.0
                .borrow_mut()
                .0
                .push(String::from_utf8_lossy(key).into_owned());
        }
        fn field_expired(&mut self, _: u16, _: u16, _: &[u8], _: &[u8]) {}
    }

    let (mut keyspace, _arena) = keyspace();
    let log = Rc::new(RefCell::new(Log::default()));
    keyspace.set_hook(Box::new(Recorder(Rc::clone(&log))));
    let at = Expiry::At(NOW.plus(100));
    keyspace.set_string(&key(0, b"k"), StringValue::Auto(b"v"), at);
    assert!(get(&mut keyspace, b"k", NOW.plus(100)).is_some());
    assert!(log.borrow().0.is_empty());
    assert!(get(&mut keyspace, b"k", NOW.plus(101)).is_none());
    assert_eq!(log.take().0, ["begin 0", "k", "end"]);
    assert_eq!(keyspace.len(0), 0);

    keyspace.set_string(&key(3, b"k"), StringValue::Auto(b"v"), at);
    keyspace.expire_slice(NOW.plus(100), 1000);
    assert_eq!(keyspace.len(3), 1);
    keyspace.expire_slice(NOW.plus(101), 1000);
    assert_eq!(keyspace.len(3), 0);
    assert_eq!(keyspace.counters().expired, 2);
}

#[test]
fn times_far_beyond_any_calendar_are_kept_exactly() {
    let (mut keyspace, _arena) = keyspace();
    for at in [(1 << 48) - 1, 1 << 48, u64::MAX >> 1] {
        let at = UnixMillis(at);
        keyspace.set_string(&key(0, b"k"), StringValue::Auto(b"v"), Expiry::At(at));
        let found = keyspace.find(&key(0, b"k"), NOW, Access::Peek).unwrap();
        assert_eq!(found.expiry(), Some(at));
        assert_eq!(keyspace.check_invariants(), Ok(()));
        keyspace.set_expiry(&key(0, b"k"), Some(NOW.plus(5)));
        keyspace.set_expiry(&key(0, b"k"), Some(at));
        assert_eq!(keyspace.check_invariants(), Ok(()));
    }
}

/// Fills database 0 with numbered keys of 16 bytes.
fn fill(keyspace: &mut Keyspace, count: usize, value: &[u8], expiry: Expiry) {
    for number in 0..count {
        let name = format!("key:{number:012}");
        let key = key(0, name.as_bytes());
        keyspace.set_string(&key, StringValue::Plain(value), expiry);
    }
}

#[test]
fn keys_take_no_more_memory_than_promised() {
    const KEYS: usize = 200_000;
    for (length, limit) in [(8, 52), (32, 72), (256, 300)] {
        let (mut keyspace, _arena) = keyspace();
        let empty = keyspace.used_bytes();
        let empty_resident = Arena.resident_bytes();
        fill(&mut keyspace, KEYS, &vec![b'x'; length], Expiry::Clear);
        let used = (keyspace.used_bytes() - empty) / KEYS as u64;
        let resident = (Arena.resident_bytes() - empty_resident) / KEYS as u64;
        assert!(used <= limit, "{used} bytes for a value of {length}");
        assert!(
            resident * 10 <= used * 11,
            "{resident} resident, {used} used"
        );
    }
}

#[test]
fn memory_of_a_big_value_follows_its_length() {
    let (mut keyspace, _arena) = keyspace();
    let mut length = 0;
    while length < 3_000_000 {
        length = keyspace.append(&key(0, b"k"), &[b'x'; 777]);
        let memory = keyspace
            .find(&key(0, b"k"), NOW, Access::Peek)
            .unwrap()
            .memory_bytes(0);
        assert!(
            memory >= length && memory <= length * 2 + 4200,
            "{memory} for {length}"
        );
    }
    assert_eq!(keyspace.check_invariants(), Ok(()));
}

#[test]
fn a_successor_goes_on_where_the_predecessor_stopped() {
    let memory = create_memory("test-keyspace", 8 << 30).unwrap();
    let index = 70;
    let (mapping, origin) =
        Mapping::attach(memory.try_clone().unwrap(), index, fingerprint()).unwrap();
    assert_eq!(origin, Origin::Fresh);
    mapping.enter();
    assert_eq!(Keyspace::attach().err(), Some(AttachError::Empty));
    let mut keyspace = Keyspace::create(16, SEED);
    keyspace.set_now(NOW);
    fill(&mut keyspace, 5000, b"value", Expiry::At(NOW.plus(1000)));
    keyspace.set_string(
        &key(1, b"big"),
        StringValue::Auto(&[7; 100_000]),
        Expiry::Clear,
    );
    fill_db(&mut keyspace, 2, 3000);
    keyspace.flush_db(2, true);
    keyspace.free_slice(100);
    let used = keyspace.used_bytes();
    drop(keyspace);
    drop(mapping);

    let (mapping, origin) = Mapping::attach(memory, index, fingerprint()).unwrap();
    assert_eq!(origin, Origin::Found);
    mapping.enter();
    let mut keyspace = Keyspace::attach().unwrap();
    assert_eq!(keyspace.check_invariants(), Ok(()));
    assert_eq!(
        (keyspace.len(0), keyspace.len(1), keyspace.used_bytes()),
        (5000, 1, used)
    );
    let found = keyspace.find(&key(1, b"big"), NOW, Access::Read).map(text);
    assert_eq!(found.unwrap(), [7; 100_000]);
    while keyspace.free_slice(100) {}
    assert_eq!(keyspace.lazily_pending(), 0);
    while keyspace.expire_slice(NOW.plus(1001), 100) {}
    assert_eq!(keyspace.len(0), 0);
    assert_eq!(keyspace.check_invariants(), Ok(()));
}

/// Names the memory of the other process in the test below.
const MEMORY: &str = "KEYSPACE_TEST_MEMORY";

/// The test runs itself once more as another process, which fills a keyspace and dies on the spot;
/// then it goes on with what that one left.
#[test]
fn the_keyspace_outlives_the_process_that_filled_it() {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    let index = 60;
    if let Ok(path) = std::env::var(MEMORY) {
        let memory = File::options().read(true).write(true).open(path).unwrap();
        let (mapping, _) = Mapping::attach(memory.into(), index, fingerprint()).unwrap();
        mapping.enter();
        let mut keyspace = Keyspace::create(16, SEED);
        keyspace.set_now(NOW);
        fill(&mut keyspace, 20_000, b"value", Expiry::At(NOW.plus(1000)));
        keyspace.append(&key(5, b"big"), &[1; 100_000]);
        std::process::abort();
    }
    let memory = create_memory("test-keyspace", 8 << 30).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "keyspace::tests::the_keyspace_outlives_the_process_that_filled_it",
        ])
        .env(MEMORY, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(ended.code(), None, "it was ended by a signal");

    let (mapping, origin) = Mapping::attach(memory, index, fingerprint()).unwrap();
    assert_eq!(origin, Origin::Found);
    mapping.enter();
    let mut keyspace = Keyspace::attach().unwrap();
    assert_eq!(keyspace.check_invariants(), Ok(()));
    assert_eq!((keyspace.len(0), keyspace.len(5)), (20_000, 1));
    assert_eq!(
        get(&mut keyspace, b"key:000000012345", NOW).unwrap(),
        b"value"
    );
    assert_eq!(keyspace.append(&key(5, b"big"), b"more"), 100_004);
    keyspace.expire_slice(NOW.plus(1001), 100_000);
    assert_eq!(keyspace.len(0), 0);
    assert_eq!(keyspace.check_invariants(), Ok(()));
}

fn fill_db(keyspace: &mut Keyspace, db: u16, count: usize) {
    for number in 0..count {
        let name = number.to_string();
        let key = key(db, name.as_bytes());
        keyspace.set_string(&key, StringValue::Auto(b"v"), Expiry::Clear);
    }
}

#[test]
fn a_scan_returns_every_key_and_stops_at_slots_of_others() {
    let (mut keyspace, _arena) = keyspace();
    let count = 30_000;
    fill(&mut keyspace, count, b"v", Expiry::Clear);
    let mut found = Vec::new();
    let mut cursor = 0;
    let mut pages = 0;
    // Two workers take turns, as the gateway would have them.
    let halves = [
        SlotRange {
            first: 0,
            last: 8000,
        },
        SlotRange {
            first: 8001,
            last: 16_383,
        },
    ];
    loop {
        let owned = halves[usize::from(proto::cursor::slot(cursor) > 8000)];
        cursor = keyspace.scan(0, cursor, 10, NOW, owned, |key, kind| {
            assert_eq!(kind, ValueKind::String);
            found.push(key.to_vec());
        });
        pages += 1;
        if cursor == 0 {
            break;
        }
        assert_eq!(
            keyspace.scan(0, 0, 10, NOW, halves[1], |_, _| panic!("not ours")),
            0
        );
    }
    assert_eq!(found.len(), count);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), count);
    assert!(
        (count / 20..=count / 10 + 2).contains(&pages),
        "{pages} pages"
    );
    assert_eq!(keyspace.scan(9, 0, 10, NOW, SlotRange::ALL, |_, _| ()), 0);
}

#[test]
fn keys_of_one_slot_split_and_merge_like_any_others() {
    let (mut keyspace, _arena) = keyspace();
    let names: Vec<_> = (0..20_000)
        .map(|number| format!("{{tag}}{number}"))
        .collect();
    for name in &names {
        keyspace.set_string(
            &key(0, name.as_bytes()),
            StringValue::Auto(b"v"),
            Expiry::Clear,
        );
    }
    assert_eq!(keyspace.check_invariants(), Ok(()));
    let mut found = 0;
    let mut cursor = 0;
    loop {
        cursor = keyspace.scan(0, cursor, 100, NOW, SlotRange::ALL, |_, _| found += 1);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(found, names.len());
    for name in &names {
        assert!(keyspace.remove(&key(0, name.as_bytes())));
    }
    assert_eq!(keyspace.check_invariants(), Ok(()));
}

#[test]
fn random_keys_are_spread_over_the_database() {
    let (mut keyspace, _arena) = keyspace();
    fill(&mut keyspace, 1000, b"v", Expiry::Clear);
    let mut random = random(1);
    let mut times = BTreeMap::new();
    for _ in 0..50_000 {
        let name = keyspace.random_key(0, NOW, &mut random).unwrap().to_vec();
        *times.entry(name).or_insert(0) += 1;
    }
    assert_eq!(times.len(), 1000);
    assert!(times.values().all(|&times| times < 150));
    assert_eq!(keyspace.random_key(1, NOW, &mut random), None);
    // Dead keys are passed over, even if nearly all are dead.
    fill(&mut keyspace, 999, b"v", Expiry::At(NOW.plus(1)));
    let later = NOW.plus(10);
    assert_eq!(
        keyspace.random_key(0, later, &mut random).unwrap(),
        b"key:000000000999"
    );
}

#[test]
fn eviction_takes_what_was_not_used_for_longest() {
    let (mut keyspace, _arena) = keyspace();
    for number in 0..1000 {
        keyspace.set_now(NOW.plus(number * 1000));
        let name = number.to_string();
        keyspace.set_string(
            &key(0, name.as_bytes()),
            StringValue::Auto(b"v"),
            Expiry::Clear,
        );
    }
    let now = NOW.plus(1_000_000);
    let mut random = random(2);
    let mut old = 0;
    for _ in 0..500 {
        let evicted = keyspace
            .evict_one(EvictionPolicy::AllKeysLru, 5, now, &mut random)
            .unwrap();
        let number: u64 = String::from_utf8(evicted.key).unwrap().parse().unwrap();
        old += u64::from(number < 500);
    }
    assert!(old > 420, "{old} of 500 victims are from the older half");
    assert_eq!((keyspace.len(0), keyspace.counters().evicted), (500, 500));
    assert_eq!(keyspace.check_invariants(), Ok(()));
}

#[test]
fn eviction_by_use_spares_what_is_used() {
    let (mut keyspace, _arena) = keyspace();
    keyspace.set_clock_mode(EvictionPolicy::AllKeysLfu.clock_mode(10, 1));
    fill_db(&mut keyspace, 0, 200);
    for _ in 0..50 {
        for number in 0..100 {
            let name = number.to_string();
            assert!(get(&mut keyspace, name.as_bytes(), NOW).is_some());
        }
    }
    let found = keyspace.find(&key(0, b"0"), NOW, Access::Peek).unwrap();
    assert!(found.frequency() > 5);
    let mut random = random(3);
    for _ in 0..90 {
        let evicted = keyspace
            .evict_one(EvictionPolicy::AllKeysLfu, 5, NOW, &mut random)
            .unwrap();
        let number: u32 = String::from_utf8(evicted.key).unwrap().parse().unwrap();
        assert!(number >= 100);
    }
}

#[test]
fn volatile_policies_leave_other_keys_alone() {
    use EvictionPolicy::{VolatileLfu, VolatileLru, VolatileRandom, VolatileTtl};
    for policy in [VolatileLfu, VolatileLru, VolatileRandom, VolatileTtl] {
        let (mut keyspace, _arena) = keyspace();
        fill_db(&mut keyspace, 0, 100);
        for number in 0..50u64 {
            let name = format!("v{number}");
            let at = Expiry::At(NOW.plus(1000 + number * 100_000));
            keyspace.set_string(&key(7, name.as_bytes()), StringValue::Auto(b"v"), at);
        }
        let mut random = random(4);
        let mut order = Vec::new();
        while let Some(evicted) = keyspace.evict_one(policy, 5, NOW, &mut random) {
            assert_eq!(evicted.db, 7);
            order.push(evicted.key);
        }
        assert_eq!(
            (order.len(), keyspace.len(0), keyspace.len(7)),
            (50, 100, 0)
        );
        if policy == VolatileTtl {
            assert_eq!(order[..3], [b"v0".to_vec(), b"v1".to_vec(), b"v2".to_vec()]);
        }
        assert_eq!(keyspace.check_invariants(), Ok(()));
        assert_eq!(
            keyspace.evict_one(EvictionPolicy::NoEviction, 5, NOW, &mut random),
            None
        );
    }
    let (mut keyspace, _arena) = keyspace();
    fill_db(&mut keyspace, 0, 100);
    let mut random = random(5);
    while keyspace
        .evict_one(EvictionPolicy::AllKeysRandom, 5, NOW, &mut random)
        .is_some()
    {}
    assert!(keyspace.is_empty());
}

#[test]
fn an_overwritten_or_touched_key_gets_a_new_clock_and_a_peeked_one_does_not() {
    let (mut keyspace, _arena) = keyspace();
    let later = NOW.plus(50_000);
    let idle = |keyspace: &mut Keyspace| {
        keyspace
            .find(&key(0, b"k"), NOW.plus(60_000), Access::Peek)
            .unwrap()
            .idle_seconds()
    };
    keyspace.set_string(&key(0, b"k"), StringValue::Auto(b"v"), Expiry::Clear);
    assert_eq!(idle(&mut keyspace), 60);
    keyspace.find(&key(0, b"k"), later, Access::Read);
    assert_eq!(idle(&mut keyspace), 10);
    keyspace.set_now(NOW.plus(55_000));
    keyspace.set_string(&key(0, b"k"), StringValue::Auto(&[1; 500]), Expiry::Clear);
    assert_eq!(idle(&mut keyspace), 5);
}
