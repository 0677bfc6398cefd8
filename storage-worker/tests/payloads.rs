//! Payloads of DUMP: a corpus of every type is read and written back, and garbage made of it is refused
//! or becomes a value in every detail.
//!
//! Method: `payloads/corpus.txt` has payloads that Redis 8.0.6 and Valkey 9.1 have made of every form, and
//! older ones put together by hand (which Redis 8.0.6 takes). Each is restored, checked and dumped again.
//! Then bytes of them are changed, cut, repeated and exchanged, with a fixed seed, and decoded under two
//! sets of limits: there must be no panic, a value must pass its own checks and survive being dumped and
//! read once more, and the arena must be as full afterwards as it was before.
//!
//! `payloads/refused.txt` has values that contradict themselves or promise more than there is.
//!
//! `PAYLOAD_ROUNDS` sets how many changed payloads are tried, `PAYLOAD_SEED` the seed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bench.rs"]
mod bench;
#[path = "support/decoding.rs"]
mod decoding;

use bench::Bench;
use decoding::{NOW, World};
use shm::arena::Arena;
use storage_worker::random::Random;
use storage_worker::rdb::{Dialect, payload};

const CORPUS: &str = include_str!("payloads/corpus.txt");
const REFUSED: &str = include_str!("payloads/refused.txt");
const ROUNDS: u64 = 20_000;

struct Sample {
    name: &'static str,
    /// What is dumped again is the same byte for byte.
    is_exact: bool,
    payload: Vec<u8>,
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn corpus() -> Vec<Sample> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (how, rest) = line.split_once(' ').unwrap();
            let (name, digits) = rest.split_once(": ").unwrap();
            Sample {
                name,
                is_exact: how == "=",
                payload: bytes_of(digits),
            }
        })
        .collect()
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

#[test]
fn the_corpus_is_read_and_written_back() {
    let mut bench = Bench::new(NOW);
    for sample in corpus() {
        let name = sample.name;
        let restored = bench.run(&words(&[
            b"RESTORE",
            b"k",
            b"0",
            &sample.payload,
            b"REPLACE",
        ]));
        assert_eq!(restored, b"+OK\r\n", "{name}");
        bench.check();
        let dumped = bench.run(&words(&[b"DUMP", b"k"]));
        let header = dumped.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let dumped = &dumped[header..dumped.len() - 2];
        if sample.is_exact {
            assert_eq!(dumped, sample.payload, "{name}");
        }
        let again = bench.run(&words(&[b"RESTORE", b"other", b"0", dumped, b"REPLACE"]));
        assert_eq!(again, b"+OK\r\n", "{name}");
        bench.check();
    }
}

#[test]
fn what_is_wrong_in_itself_is_refused() {
    let mut bench = Bench::new(NOW);
    let empty = Arena.used_bytes();
    for line in REFUSED.lines().filter(|line| !line.starts_with('#')) {
        let (name, digits) = line.split_once(": ").unwrap();
        let reply = bench.run(&words(&[b"RESTORE", b"k", b"0", &bytes_of(digits)]));
        assert_eq!(reply, b"-ERR Bad data format\r\n", "{name}");
        assert_eq!(Arena.used_bytes(), empty, "{name} leaves something behind");
    }
}

#[test]
fn a_payload_with_a_wrong_bit_is_refused() {
    let mut bench = Bench::new(NOW);
    for sample in corpus().into_iter().filter(|sample| sample.is_exact) {
        for at in (0..sample.payload.len()).step_by(7) {
            let mut payload = sample.payload.clone();
            payload[at] ^= 4;
            let reply = bench.run(&words(&[b"RESTORE", b"k", b"0", &payload]));
            let text = b"-ERR DUMP payload version or checksum are wrong\r\n";
            assert_eq!(reply, text, "{} at {at}", sample.name);
        }
    }
}

fn value_of(sample: &Sample) -> (Vec<u8>, Dialect) {
    let (value, dialect) = payload::open(&sample.payload).unwrap();
    (value.to_vec(), dialect)
}

/// Changes a payload here and there.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let until = (at + 1 + random.below(8) as usize).min(bytes.len());
        match random.below(9) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes[at] = [0, 1, 0x7F, 0x80, 0x81, 0xC3, 0xFE, 0xFF][random.below(8) as usize],
            3 => bytes[at] = bytes[at].wrapping_add(1),
            4 => drop(bytes.drain(at..until)),
            5 => {
                let copy = bytes[at..until].to_vec();
                bytes.splice(at..at, copy);
            }
            6 => bytes.truncate(at),
            7 => {
                let from = random.below(other.len() as u64) as usize;
                let to = (from + (until - at)).min(other.len());
                bytes.splice(at..until, other[from..to].iter().copied());
            }
            // Another type with the same bytes.
            _ => bytes[0] = random.below(27) as u8,
        }
    }
}

#[test]
fn changed_payloads_are_refused_or_become_whole_values() {
    let number = |name: &str, usual| {
        let set = std::env::var(name).ok();
        set.map_or(usual, |text| text.parse().unwrap())
    };
    let (rounds, seed) = (number("PAYLOAD_ROUNDS", ROUNDS), number("PAYLOAD_SEED", 1));
    let corpus: Vec<_> = corpus().iter().map(value_of).collect();
    let mut world = World::new();
    let mut random = Random::new(seed);
    for (bytes, dialect) in &corpus {
        for settings in 0..2 {
            assert!(world.try_out(bytes, *dialect, settings));
        }
    }
    let empty = Arena.used_bytes();
    let mut taken = 0;
    for round in 0..rounds {
        let (bytes, dialect) = &corpus[random.below(corpus.len() as u64) as usize];
        let (other, _) = &corpus[random.below(corpus.len() as u64) as usize];
        let mut changed = bytes.clone();
        mutate(&mut changed, other, &mut random);
        let settings = random.below(2) as usize;
        taken += u64::from(world.try_out(&changed, *dialect, settings));
        assert_eq!(
            Arena.used_bytes(),
            empty,
            "round {round} of seed {seed} leaves something behind: {changed:?}"
        );
    }
    // Some changes only make another value.
    assert!(taken > rounds / 100, "{taken} of {rounds}");
}
