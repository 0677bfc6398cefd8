//! HSCAN, HRANDFIELD and fields that expire: what only counting shows.
//!
//! Method: a walk has to meet every field that is there all the time, while others come and go. Draws are counted and
//! compared with an even distribution by Pearson's sum; its limits would be passed once in a billion runs if all
//! fields are equally likely. Many fields get times within one second, and the number that is left is looked at while
//! they go.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use harness::{Client, Reply};

use crate::worlds::{call, ours, texts, worlds};

/// Writes fields `prefix0`, `prefix1` ... whose values are their names.
fn fill(client: &mut Client, key: &str, prefix: &str, count: usize) {
    for first in (0..count).step_by(500) {
        let pairs: Vec<String> = (first..count.min(first + 500))
            .map(|number| format!("{prefix}{number} {prefix}{number}"))
            .collect();
        call(client, &format!("HSET {key} {}", pairs.join(" ")));
    }
}

/// One step of HSCAN: the next cursor and the fields.
fn step(client: &mut Client, cursor: &str, options: &str) -> (String, Vec<String>) {
    let reply = call(client, &format!("HSCAN h {cursor}{options}"));
    let Reply::Many(_, parts) = &reply else {
        panic!("{}", reply.render())
    };
    let [cursor, fields] = parts.as_slice() else {
        panic!("{}", reply.render())
    };
    (cursor.text_lossy(), texts(fields))
}

#[test]
fn a_walk_meets_every_field_once_when_nothing_else_happens() {
    for server in worlds() {
        let mut client = server.connect();
        fill(&mut client, "h", "field:", 5000);
        for options in ["", " COUNT 1", " COUNT 997", " MATCH field:* COUNT 50"] {
            let (mut cursor, mut met) = ("0".to_owned(), Vec::new());
            loop {
                let (next, found) = step(&mut client, &cursor, options);
                for pair in found.chunks(2) {
                    assert_eq!(pair[0], pair[1], "a value of another field");
                    met.push(pair[0].clone());
                }
                cursor = next;
                if cursor == "0" {
                    break;
                }
                assert!(met.len() <= 5000, "the walk does not end");
            }
            let different: HashSet<&String> = met.iter().collect();
            assert_eq!(different.len(), 5000, "{:?}{options}", server.kind());
            assert_eq!(met.len(), 5000, "{:?}{options}", server.kind());
        }
    }
}

#[test]
fn a_walk_meets_every_field_that_stays_while_others_come_and_go() {
    for server in worlds() {
        let (mut client, mut other) = (server.connect(), server.connect());
        fill(&mut client, "h", "stays", 2000);
        let (mut cursor, mut met, mut round) = ("0".to_owned(), HashSet::new(), 0);
        loop {
            let (next, found) = step(&mut client, &cursor, " COUNT 20 NOVALUES");
            met.extend(found.into_iter().filter(|name| name.starts_with("stays")));
            cursor = next;
            if cursor == "0" {
                break;
            }
            // Growth in the first half, removal in the second, half of it by time.
            if round < 30 {
                fill(&mut other, "h", &format!("comes{round}:"), 500);
            } else if round < 60 {
                let fields: Vec<String> = (0..500)
                    .map(|number| format!("comes{}:{number}", round - 30))
                    .collect();
                let command = if round % 2 == 0 {
                    "HDEL h".to_owned()
                } else {
                    "HPEXPIRE h 1 FIELDS 500".to_owned()
                };
                call(&mut other, &format!("{command} {}", fields.join(" ")));
            }
            round += 1;
            assert!(round < 100_000, "the walk does not end");
        }
        assert_eq!(met.len(), 2000, "{:?}", server.kind());
    }
}

#[test]
fn hrandfield_draws_every_field_equally_often() {
    let server = ours();
    let mut client = server.connect();
    for (form, fields) in [("listpack", 60), ("hashtable", 700)] {
        fill(&mut client, form, "f", fields);
        let encoding = call(&mut client, &format!("OBJECT ENCODING {form}"));
        assert_eq!(encoding.text_lossy(), form);
        for size in [1, 7, fields / 2, fields - 1] {
            let mut times: BTreeMap<String, usize> = BTreeMap::new();
            let rounds = (fields * 100).div_ceil(size);
            for _ in 0..rounds {
                let drawn = texts(&call(&mut client, &format!("HRANDFIELD {form} {size}")));
                let different: HashSet<&String> = drawn.iter().collect();
                assert_eq!(different.len(), size, "{form}: some came twice");
                for field in drawn {
                    *times.entry(field).or_default() += 1;
                }
            }
            assert_eq!(times.len(), fields, "{form}, {size}: some never came");
            // Without repetition the counts are evener than chance; only too uneven is wrong.
            if size <= 7 {
                assert_even(&times, fields, rounds * size, &format!("{form}, {size}"));
            }
        }
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let draws = fields * 100;
        let line = format!("HRANDFIELD {form} -{draws} WITHVALUES");
        for pair in texts(&call(&mut client, &line)).chunks(2) {
            assert_eq!(pair[0], pair[1], "a value of another field");
            *times.entry(pair[0].clone()).or_default() += 1;
        }
        assert_even(&times, fields, draws, &format!("{form}, with repetition"));
    }
}

/// Whether counts of `draws` draws among `fields` are as even as chance makes them.
fn assert_even(times: &BTreeMap<String, usize>, fields: usize, draws: usize, what: &str) {
    assert_eq!(times.values().sum::<usize>(), draws);
    let expected = draws as f64 / fields as f64;
    let distance = |&times: &usize| (times as f64 - expected).powi(2) / expected;
    let sum: f64 = times.values().map(distance).sum();
    let spread = (2.0 * fields as f64).sqrt();
    let off = (sum - fields as f64) / spread;
    assert!(off.abs() < 7.0, "{what}: {sum} for {fields} fields");
}

#[test]
fn many_fields_of_many_hashes_are_gone_soon_after_their_time() {
    let server = ours();
    let mut client = server.connect();
    // One large hash and many small ones; all times lie within half a second.
    fill(&mut client, "large", "f", 20_000);
    for number in 0..500 {
        fill(&mut client, &format!("small{number}"), "f", 20);
    }
    let count = |client: &mut Client, key: &str| {
        let reply = call(client, &format!("HLEN {key}"));
        reply.int().unwrap_or_default()
    };
    assert_eq!(count(&mut client, "large"), 20_000);
    for first in (0..20_000).step_by(500) {
        let names: Vec<String> = (first..first + 500).map(|n| format!("f{n}")).collect();
        let millis = 500 + first / 40;
        call(
            &mut client,
            &format!("HPEXPIRE large {millis} FIELDS 500 {}", names.join(" ")),
        );
    }
    for number in 0..500 {
        let names: Vec<String> = (0..20).map(|n| format!("f{n}")).collect();
        let millis = 500 + number;
        call(
            &mut client,
            &format!(
                "HPEXPIRE small{number} {millis} FIELDS 20 {}",
                names.join(" ")
            ),
        );
    }
    let start = Instant::now();
    loop {
        let left = call(&mut client, "DBSIZE").int().unwrap_or_default();
        if left == 0 {
            break;
        }
        assert!(
            start.elapsed() < harness::PATIENCE,
            "{left} keys are left, {} fields of the large one",
            count(&mut client, "large")
        );
        harness::pause(Duration::from_millis(20));
    }
    let info = call(&mut client, "INFO stats").text_lossy();
    assert!(info.contains("expired_subkeys:30000\r\n"), "{info}");
    assert!(info.contains("expired_keys:0\r\n"), "{info}");
}
