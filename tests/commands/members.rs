//! SSCAN, SPOP and SRANDMEMBER: what only counting shows.
//!
//! Method: for each form of a set (integers, packed, table), draws are counted and compared with an even
//! distribution by Pearson's sum; its limits would be passed once in a billion runs if all members are equally
//! likely. A walk has to meet every member that is there all the time, while others come and go.

use std::collections::{BTreeMap, HashSet};

use harness::{Client, Reply};

use crate::worlds::{call, ours, texts, worlds};

/// The forms, as what turns a number into a member, and the number of members.
const FORMS: [(&str, &str, usize); 3] = [
    ("intset", "", 60),
    ("listpack", "m", 60),
    ("hashtable", "m", 400),
];

/// Adds members `prefix0`, `prefix1` ... to a set.
fn fill(client: &mut Client, key: &str, prefix: &str, count: usize) {
    for first in (0..count).step_by(50) {
        let members: Vec<String> = (first..count.min(first + 50))
            .map(|number| format!("{prefix}{number}"))
            .collect();
        call(client, &format!("SADD {key} {}", members.join(" ")));
    }
}

/// Whether counts of `draws` draws among `members` are as even as chance makes them.
fn assert_even(times: &BTreeMap<String, usize>, members: usize, draws: usize, what: &str) {
    assert_eq!(times.values().sum::<usize>(), draws);
    let expected = draws as f64 / members as f64;
    let seen: f64 = times
        .values()
        .map(|&times| (times as f64 - expected).powi(2) / expected)
        .sum();
    // Members that never came add their expected number each.
    let sum = seen + (members - times.len()) as f64 * expected;
    let spread = (2.0 * members as f64).sqrt();
    let distance = (sum - members as f64) / spread;
    assert!(distance.abs() < 7.0, "{what}: {sum} for {members} members");
}

#[test]
fn srandmember_draws_every_member_equally_often() {
    let server = ours();
    let mut client = server.connect();
    for (form, prefix, members) in FORMS {
        fill(&mut client, form, prefix, members);
        assert_eq!(
            call(&mut client, &format!("OBJECT ENCODING {form}")).text_lossy(),
            form
        );
        let draws = members * 100;
        for size in [1, 7, members / 2, members - 1] {
            let mut times = BTreeMap::new();
            let rounds = draws.div_ceil(size);
            for _ in 0..rounds {
                let drawn = texts(&call(&mut client, &format!("SRANDMEMBER {form} {size}")));
                let different: HashSet<&String> = drawn.iter().collect();
                assert_eq!(different.len(), size, "{form}: some came twice");
                for member in drawn {
                    *times.entry(member).or_default() += 1;
                }
            }
            // Without repetition the counts are evener than chance; only too uneven is wrong.
            if size <= 7 {
                assert_even(&times, members, rounds * size, &format!("{form}, {size}"));
            }
            assert_eq!(times.len(), members, "{form}, {size}: some never came");
        }
        let mut times = BTreeMap::new();
        for member in texts(&call(&mut client, &format!("SRANDMEMBER {form} -{draws}"))) {
            *times.entry(member).or_default() += 1;
        }
        assert_even(&times, members, draws, &format!("{form}, with repetition"));
    }
}

#[test]
fn spop_takes_every_member_equally_often() {
    let server = ours();
    let mut client = server.connect();
    for (form, prefix, members) in FORMS {
        for size in [1, 5, members - 2] {
            let (mut times, mut draws) = (BTreeMap::new(), 0);
            for _ in 0..600usize.div_ceil(size.min(20)) * 4 {
                call(&mut client, &format!("DEL {form}"));
                fill(&mut client, form, prefix, members);
                let popped = texts(&call(&mut client, &format!("SPOP {form} {size}")));
                draws += popped.len();
                assert_eq!(popped.len(), size);
                let left = call(&mut client, &format!("SCARD {form}"));
                assert_eq!(left.render(), format!(":{}", members - size));
                for member in popped {
                    let line = format!("SISMEMBER {form} {member}");
                    if size < 10 {
                        assert_eq!(call(&mut client, &line).render(), ":0");
                    }
                    *times.entry(member).or_default() += 1;
                }
            }
            if size < 10 {
                assert_even(&times, members, draws, &format!("{form}, {size}"));
            }
        }
    }
}

#[test]
fn spop_empties_a_big_set_without_repeating_itself() {
    for server in worlds() {
        let mut client = server.connect();
        fill(&mut client, "s", "member:", 20_000);
        let mut popped = HashSet::new();
        for size in [1, 3000, 0, 12_000, 4900, 90, 1000] {
            for member in texts(&call(&mut client, &format!("SPOP s {size}"))) {
                assert!(popped.insert(member), "one came twice");
            }
        }
        assert_eq!(popped.len(), 20_000);
        assert_eq!(call(&mut client, "EXISTS s").render(), ":0");
    }
}

/// One step of SSCAN: the next cursor and the members.
fn step(client: &mut Client, key: &str, cursor: &str, options: &str) -> (String, Vec<String>) {
    let reply = call(client, &format!("SSCAN {key} {cursor}{options}"));
    let Reply::Many(_, parts) = &reply else {
        panic!("{}", reply.render())
    };
    let [cursor, members] = parts.as_slice() else {
        panic!("{}", reply.render())
    };
    (cursor.text_lossy(), texts(members))
}

#[test]
fn a_walk_meets_every_member_once_when_nothing_else_happens() {
    for server in worlds() {
        let mut client = server.connect();
        for members in [1usize, 100, 5000] {
            let key = format!("s{members}");
            fill(&mut client, &key, "member:", members);
            for options in ["", " COUNT 1", " COUNT 997", " MATCH member:* COUNT 50"] {
                let (mut cursor, mut met) = ("0".to_owned(), Vec::new());
                loop {
                    let (next, found) = step(&mut client, &key, &cursor, options);
                    met.extend(found);
                    cursor = next;
                    if cursor == "0" {
                        break;
                    }
                    assert!(met.len() <= members, "the walk does not end");
                }
                let different: HashSet<&String> = met.iter().collect();
                assert_eq!(different.len(), members, "{:?}{options}", server.kind());
                assert_eq!(met.len(), members, "{:?}{options}", server.kind());
            }
        }
    }
}

#[test]
fn a_walk_meets_every_member_that_stays_while_others_come_and_go() {
    for server in worlds() {
        let (mut client, mut other) = (server.connect(), server.connect());
        fill(&mut client, "s", "stays", 2000);
        let (mut cursor, mut met, mut round) = ("0".to_owned(), HashSet::new(), 0);
        loop {
            let (next, found) = step(&mut client, "s", &cursor, " COUNT 20");
            met.extend(found.into_iter().filter(|name| name.starts_with("stays")));
            cursor = next;
            if cursor == "0" {
                break;
            }
            // Growth in the first half, removal in the second.
            if round < 30 {
                fill(&mut other, "s", &format!("comes{round}:"), 500);
            } else if round < 60 {
                let members: Vec<String> = (0..500)
                    .map(|number| format!("comes{}:{number}", round - 30))
                    .collect();
                call(&mut other, &format!("SREM s {}", members.join(" ")));
            }
            round += 1;
            assert!(round < 100_000, "the walk does not end");
        }
        assert_eq!(met.len(), 2000, "{:?}", server.kind());
    }
}
