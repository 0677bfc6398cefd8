//! What the keyspace costs: the longest single step while it grows, time per lookup with and without
//! prefetching, shared file against private memory, bytes per key, and the slices of background work.
//!
//! Run: `cargo bench -p storage-worker --bench keyspace [-- growth lookup memory slices]`. The figures
//! of one run on the machine at hand; others share its cores, so the longest steps are given in time
//! of the thread's own processor use beside the time of the clock.

use std::time::{Duration, Instant};

use proto::slot::slot_of;
use proto::time::UnixMillis;
use shm::arena::{Arena, Mapping, create_memory, default_capacity};
use storage_worker::keyspace::{
    Access, EvictionPolicy, Expiry, Key, Keyspace, StringRef, StringValue, fingerprint,
};

const SEED: u64 = 0x0123_4567_89ab_cdef;
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let runs = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    if runs("memory") {
        bytes_per_key();
    }
    if runs("growth") {
        longest_insert("5 M keys over all slots", 5_000_000, false);
        longest_insert("2 M keys in one slot", 2_000_000, true);
    }
    if runs("lookup") {
        lookups(1_000_000, 256);
        lookups(5_000_000, 64);
    }
    if runs("writes") {
        writes();
    }
    if runs("slices") {
        slices();
    }
}

/// A keyspace over an arena, shared or private.
struct Subject {
    keyspace: Keyspace,
    _mapping: Mapping,
}

fn subject(shared: bool) -> Subject {
    let capacity = default_capacity();
    let mapping = if shared {
        let memory = create_memory("bench", capacity).expect("the memory of an arena");
        Mapping::attach(memory, 0, fingerprint())
            .expect("an arena")
            .0
    } else {
        Mapping::private(0, capacity, fingerprint()).expect("an arena")
    };
    mapping.enter();
    let mut keyspace = Keyspace::create(16, SEED);
    keyspace.set_now(NOW);
    Subject {
        keyspace,
        _mapping: mapping,
    }
}

/// The name of key `number`: 16 bytes; with a hash tag, all share a slot.
fn name(number: usize, one_slot: bool) -> [u8; 16] {
    let mut name = if one_slot {
        *b"{t}:000000000000"
    } else {
        *b"key:000000000000"
    };
    let mut left = number;
    for digit in name[4..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    name
}

fn key(name: &[u8; 16]) -> Key<'_> {
    Key::new(SEED, 0, slot_of(name), name)
}

fn set(keyspace: &mut Keyspace, number: usize, value: &[u8], expiry: Expiry) {
    let name = name(number, false);
    keyspace.set_string(&key(&name), StringValue::Plain(value), expiry);
}

fn bytes_per_key() {
    const KEYS: usize = 1_000_000;
    println!("bytes per key, {KEYS} keys of 16 bytes");
    for (length, expires) in [(8, false), (32, false), (256, false), (32, true)] {
        let mut subject = subject(true);
        let expiry = if expires {
            Expiry::At(NOW.plus(3_600_000))
        } else {
            Expiry::Clear
        };
        let value = vec![b'x'; length];
        (0..KEYS).for_each(|number| set(&mut subject.keyspace, number, &value, expiry));
        let used = subject.keyspace.used_bytes() as f64 / KEYS as f64;
        let resident = Arena.resident_bytes() as f64 / KEYS as f64;
        let with = if expires { ", expiring" } else { "" };
        println!("  value of {length:3}{with}: used {used:.1}, resident {resident:.1}");
    }
}

/// Time that this thread has run.
fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Reads a clock; the argument is when the run began.
type Clock = fn(Instant) -> Duration;

fn longest_insert(title: &str, keys: usize, one_slot: bool) {
    println!("longest single insert, {title}, values of 64 bytes");
    let clocks: [(&str, Clock); 2] = [
        ("clock", |start| start.elapsed()),
        ("thread", |_| thread_time()),
    ];
    for shared in [true, false] {
        for (clock, read) in clocks {
            let mut subject = subject(shared);
            let start = Instant::now();
            let mut times = Vec::with_capacity(keys);
            let mut before = read(start);
            for number in 0..keys {
                let name = name(number, one_slot);
                let value = StringValue::Plain(&[b'x'; 64]);
                subject
                    .keyspace
                    .set_string(&key(&name), value, Expiry::Clear);
                let after = read(start);
                times.push((after - before).as_nanos() as u64);
                before = after;
            }
            let total = start.elapsed();
            times.sort_unstable();
            let at = |share: f64| times[((keys - 1) as f64 * share) as usize] as f64 / 1000.0;
            println!(
                "  {} {clock:6}: p50 {:.2} us, p99 {:.2}, p99.99 {:.1}, longest {:.1} us ({:.1} s in all)",
                if shared { "memfd  " } else { "private" },
                at(0.5),
                at(0.99),
                at(0.9999),
                at(1.0),
                total.as_secs_f64(),
            );
        }
    }
}

/// A cheap sequence of numbers below `end`.
fn sequence(end: usize) -> impl FnMut() -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((u128::from(state) * end as u128) >> 64) as usize
    }
}

fn lookups(keys: usize, length: usize) {
    println!("GET in ns, {keys} keys of 16 bytes with values of {length}, value copied out");
    for shared in [true, false] {
        let mut subject = subject(shared);
        let value = vec![b'x'; length];
        (0..keys).for_each(|number| set(&mut subject.keyspace, number, &value, Expiry::Clear));
        let memory = if shared { "memfd  " } else { "private" };
        for work in [
            Work::Names,
            Work::Find,
            Work::FindAhead(8),
            Work::FindAhead(16),
            Work::FindAhead(32),
            Work::FindAhead(64),
        ] {
            // The best of several rounds: others use the machine's memory, too.
            let best = (0..5)
                .map(|_| lookup_round(&mut subject.keyspace, keys, work))
                .min();
            println!("  {memory} {work:?}: {} ns", best.unwrap_or_default());
        }
    }
}

/// What a round of lookups does per key.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    /// Makes name, slot and hash only: what the others include.
    Names,
    /// Looks the key up at once.
    Find,
    /// Prefetches a batch of this many keys in three stages, then looks them up.
    FindAhead(usize),
}

/// Nanoseconds per key.
fn lookup_round(keyspace: &mut Keyspace, keys: usize, work: Work) -> u64 {
    const LOOKUPS: usize = 1_000_000;
    let batch = match work {
        Work::Find => 1,
        Work::Names => 32,
        Work::FindAhead(batch) => batch,
    };
    let mut next = sequence(keys);
    let mut out = [0u8; 512];
    let mut names = [[0u8; 16]; 64];
    let start = Instant::now();
    for _ in 0..LOOKUPS / batch {
        for name_slot in &mut names[..batch] {
            *name_slot = name(next(), false);
        }
        let mut batch_keys = [key(&names[0]); 64];
        for (key_slot, name) in batch_keys.iter_mut().zip(&names[..batch]) {
            *key_slot = key(name);
            if batch > 1 {
                keyspace.prefetch_slot(key_slot);
            }
        }
        let batch_keys = &batch_keys[..batch];
        if work == Work::Names {
            std::hint::black_box(batch_keys);
            continue;
        }
        if batch > 1 {
            batch_keys
                .iter()
                .for_each(|key| keyspace.prefetch_bucket(key));
            batch_keys
                .iter()
                .for_each(|key| keyspace.prefetch_entry(key));
        }
        for key in batch_keys {
            let found = keyspace
                .find(key, NOW, Access::Read)
                .expect("all keys are there");
            if let StringRef::Bytes(bytes) = found.string() {
                out[..bytes.len()].copy_from_slice(bytes);
            }
        }
        std::hint::black_box(&out);
    }
    start.elapsed().as_nanos() as u64 / LOOKUPS as u64
}

/// Time per call of things that change keys, in the mean.
fn writes() {
    const KEYS: usize = 1_000_000;
    const CALLS: usize = 300_000;
    println!("writes in ns, {KEYS} keys with values of 64, without prefetching");
    let mut subject = subject(true);
    let keyspace = &mut subject.keyspace;
    (0..KEYS).for_each(|number| set(keyspace, number, &[b'x'; 64], Expiry::Clear));
    let mut next = sequence(KEYS);
    let mut time = |title: &str, call: &mut dyn FnMut(&mut Keyspace, usize)| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call(keyspace, next()));
        let each = start.elapsed().as_nanos() as usize / CALLS;
        println!("  {title}: {each}");
    };
    time("same length", &mut |keyspace, number| {
        set(keyspace, number, &[b'y'; 64], Expiry::Clear);
    });
    time("another length", &mut |keyspace, number| {
        set(keyspace, number, &[b'y'; 90], Expiry::Clear);
    });
    time("with an expiry", &mut |keyspace, number| {
        let at = Expiry::At(NOW.plus(1000 + number as u64));
        set(keyspace, number, &[b'y'; 64], at);
    });
    time("another expiry", &mut |keyspace, number| {
        let name = name(number, false);
        keyspace.set_expiry(&key(&name), Some(NOW.plus(500_000 + number as u64)));
    });
    let mut random = sequence(usize::MAX);
    let mut random = move || random() as u64;
    for policy in [
        EvictionPolicy::AllKeysRandom,
        EvictionPolicy::AllKeysLru,
        EvictionPolicy::VolatileLru,
        EvictionPolicy::VolatileTtl,
    ] {
        time(&format!("eviction, {policy:?}"), &mut |keyspace, number| {
            if number & 7 == 0 {
                keyspace.evict_one(policy, 5, NOW, &mut random);
            }
        });
    }
}

/// Runs `slice` until it says that nothing is left; prints how long the slices took.
fn run_slices(title: &str, mut slice: impl FnMut() -> bool) {
    let mut times = Vec::new();
    loop {
        let start = thread_time();
        let more = slice();
        times.push((thread_time() - start).as_secs_f64() * 1e6);
        if !more {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    let sum: f64 = times.iter().sum();
    println!(
        "  {title}: {} slices, median {:.0} us, longest {:.0} us, {:.0} ms in all",
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1],
        sum / 1000.0
    );
}

fn slices() {
    const KEYS: usize = 1_000_000;
    println!("background work, {KEYS} keys with values of 256 bytes, in slices");
    let mut subject = subject(true);
    let keyspace = &mut subject.keyspace;
    let value = [b'x'; 256];
    for number in 0..KEYS {
        let at = Expiry::At(NOW.plus(1000 + number as u64 % 100_000));
        set(keyspace, number, &value, at);
    }
    run_slices("expiry, 500 per slice", || {
        keyspace.expire_slice(NOW.plus(200_000), 500)
    });
    for number in 0..KEYS {
        set(keyspace, number, &value, Expiry::At(NOW.plus(3_600_000)));
    }
    keyspace.flush_all(true);
    run_slices("lazy freeing, 500 keys per slice", || {
        keyspace.free_slice(500)
    });
    run_slices("returning pages, 256 KiB per slice", || {
        Arena.return_pages(0, 256 << 10)
    });
    let name = name(0, false);
    let big = key(&name);
    let far = 512 << 20;
    run_slices("one byte set at 512 MB", || {
        keyspace.string_mut(&big, far, |bytes| bytes[far - 1] = 1);
        false
    });
    run_slices("that string removed", || {
        keyspace.remove(&big);
        false
    });
    let full = vec![b'x'; far];
    run_slices("a string of 512 MB set", || {
        keyspace.set_string(&big, StringValue::Auto(&full), Expiry::Clear);
        false
    });
    run_slices("that string removed", || {
        keyspace.remove(&big);
        false
    });
}
