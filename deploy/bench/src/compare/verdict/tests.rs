//! Ratios and verdicts over made-up samples.

use super::*;
use crate::compare::Suite;
use crate::compare::suite::works;
use crate::workload::Shape;

fn about(family: Family) -> Description {
    Description {
        family,
        version: String::new(),
        start_line: String::new(),
        processes: 1,
        info: BTreeMap::new(),
        config: BTreeMap::new(),
    }
}

fn servers() -> BTreeMap<String, Description> {
    [
        ("sirocco", Family::Sirocco),
        ("redis", Family::Redis),
        ("redis-io2", Family::Redis),
        ("valkey", Family::Valkey),
    ]
    .into_iter()
    .map(|(name, family)| (name.to_owned(), about(family)))
    .collect()
}

fn sample(work: &str, server: &str, repetition: u32, rate: f64, cpu: f64) -> Sample {
    Sample {
        work: work.into(),
        server: server.into(),
        repetition,
        requests_per_second: rate,
        server_cpu_us: Some(cpu),
        ..Sample::default()
    }
}

fn work(suite: Suite, name: &str) -> Work {
    works(&[suite], None, &Shape::default())
        .into_iter()
        .find(|work| work.name.starts_with(name))
        .unwrap()
}

#[test]
fn a_drift_of_the_machine_cancels_out() {
    // The machine becomes twice as fast meanwhile; ours is 1.5 times as fast all along.
    let samples: Vec<Sample> = [1.0, 1.3, 2.0]
        .iter()
        .enumerate()
        .flat_map(|(number, drift)| {
            let repetition = u32::try_from(number).unwrap() + 1;
            [
                sample("w", "sirocco", repetition, 150.0 * drift, 1.0),
                sample("w", "redis", repetition, 100.0 * drift, 1.0),
            ]
        })
        .collect();
    let ratio = paired_ratio(&samples, "sirocco", "redis", |sample| {
        Some(sample.requests_per_second)
    });
    assert!((ratio.unwrap() - 1.5).abs() < 1e-9);
    assert_eq!(
        paired_ratio(&samples, "sirocco", "nobody", |_| Some(1.0)),
        None
    );
}

#[test]
fn the_better_peer_counts_for_each_figure() {
    let work = work(Suite::P30, "GET P=30");
    let samples = [
        sample(&work.name, "sirocco", 1, 1_000.0, 0.40),
        sample(&work.name, "redis", 1, 380.0, 1.00),
        sample(&work.name, "redis-io2", 1, 420.0, 1.90),
        sample(&work.name, "valkey", 1, 600.0, 0.80),
    ];
    let verdicts = judge(&work, &samples, &[], &servers());
    let found: Vec<(&str, bool)> = verdicts
        .iter()
        .map(|verdict| (verdict.found.as_str(), verdict.reached))
        .collect();
    assert_eq!(
        found,
        [
            ("2.38x redis-io2", false),
            ("1.67x valkey", true),
            ("0.40x redis", true)
        ]
    );
}

#[test]
fn a_family_that_does_not_take_part_is_not_judged() {
    let work = work(Suite::P30, "GET P=30");
    let samples = [sample(&work.name, "sirocco", 1, 1_000.0, 0.4)];
    assert!(judge(&work, &samples, &[], &servers()).is_empty());
}

#[test]
fn memory_is_held_against_its_limits() {
    let work = work(Suite::Memory, "memory, values of 8 B");
    let memory = MemorySample {
        work: work.name.clone(),
        server: "sirocco".into(),
        keys: 1,
        used_per_key: 51.0,
        resident_per_key: 58.0,
        resident_empty: 0,
    };
    let verdicts = judge(&work, &[], std::slice::from_ref(&memory), &servers());
    assert!(verdicts[0].reached && !verdicts[1].reached, "{verdicts:?}");
    let uncounted = MemorySample {
        used_per_key: 0.0,
        ..memory
    };
    assert!(!judge(&work, &[], &[uncounted], &servers())[0].reached);
}

#[test]
fn collections_are_held_against_the_peer_that_needs_least() {
    let work = work(Suite::Collections, "memory, sets of 10 words");
    let of = |server: &str, used_per_key, resident_per_key| MemorySample {
        work: work.name.clone(),
        server: server.into(),
        keys: 100_000,
        used_per_key,
        resident_per_key,
        resident_empty: 0,
    };
    let judged = |ours: MemorySample| {
        let peers = [of("redis", 190.0, 200.0), of("valkey", 180.0, 210.0)];
        judge(&work, &[], &[&[ours], &peers[..]].concat(), &servers())
    };
    let verdicts = judged(of("sirocco", 171.0, 201.0));
    assert_eq!(verdicts[0].found, "0.95x valkey");
    assert!(verdicts[0].reached && !verdicts[1].reached, "{verdicts:?}");
    // A server that counts nothing has not won.
    assert!(!judged(of("sirocco", 0.0, 150.0))[0].reached);
}

#[test]
fn a_pause_counts_only_if_it_comes_every_time() {
    let work = work(Suite::Growth, "growth");
    let reads = format!("{} (reads)", work.name);
    let longest = |work: &str, repetition, max_us| Sample {
        max_us,
        ..sample(work, "sirocco", repetition, 1.0, 1.0)
    };
    let samples = [
        longest(&work.name, 1, 4_000.0),
        longest(&work.name, 2, 700.0),
        longest(&reads, 1, 500.0),
    ];
    let verdicts = judge(&work, &samples, &[], &servers());
    assert!(verdicts[0].reached, "{verdicts:?}");
}

#[test]
fn rates_are_judged_where_redis_holds_them() {
    let work = work(Suite::Rates, "GET c=48");
    let highest = rates::highest_name(&work);
    let open = |name: &str, server: &str, rate: f64, held: bool, p50_us: f64| Sample {
        offered: Some(rate),
        sustained: Some(held),
        p50_us,
        p99_us: p50_us * 2.0,
        ..sample(name, server, 1, rate, 1.0)
    };
    let samples = [
        sample(&highest, "sirocco", 1, 110.0, 0.0),
        sample(&highest, "redis", 1, 100.0, 0.0),
        sample(&highest, "redis-io2", 1, 90.0, 0.0),
        open("light", "sirocco", 20.0, true, 54.0),
        open("light", "redis", 20.0, true, 60.0),
        open("light", "valkey", 20.0, true, 50.0),
        open("heavy", "sirocco", 80.0, true, 54.0),
        open("heavy", "redis", 80.0, true, 60.0),
        open("heavy", "valkey", 80.0, true, 50.0),
        open("beyond", "sirocco", 200.0, false, 54.0),
        open("beyond", "redis", 200.0, false, 60.0),
    ];
    let verdicts = judge(&work, &samples, &[], &servers());
    let reached: Vec<(&str, bool)> = verdicts
        .iter()
        .map(|verdict| (verdict.work.as_str(), verdict.reached))
        .collect();
    let light = [("light", true); 3];
    let heavy = [("heavy", true), ("heavy", false), ("heavy", false)];
    let expected = [&[(work.name.as_str(), true)][..], &light, &heavy].concat();
    assert_eq!(reached, expected);
}
