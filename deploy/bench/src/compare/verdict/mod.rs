//! Medians, ratios within repetitions, and whether what must be reached is reached.
//!
//! A ratio against a peer is the median of the ratios of the single repetitions: both servers were
//! measured within the same half minute, so a drift of the machine cancels out. Of several peers of
//! one family the better one counts, by its median, separately for each figure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measure::MemorySample;
use super::suite::{Against, Bound, Expected, Kind, Metric, RELATIVE_RATES, Work};
use super::{OURS, listed, rates};
use crate::report::{Sample, micros, short};
use crate::server::{Description, Family};

mod waits;

/// Latencies at light load may exceed the better peer's by this factor.
const LIGHT_LATENCY_RATIO: f64 = 1.1;

/// An expectation and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// The work.
    pub(crate) work: String,
    /// What was to be reached, in words.
    pub(crate) expectation: String,
    /// What was found.
    pub(crate) found: String,
    /// Whether it was reached.
    pub(crate) reached: bool,
}

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// Median of the ratios ours / theirs over the repetitions that both have.
pub(super) fn paired_ratio(
    samples: &[Sample],
    ours: &str,
    theirs: &str,
    value: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    let of = |server: &str, repetition: u32| {
        samples
            .iter()
            .find(|sample| sample.server == server && sample.repetition == repetition)
            .and_then(&value)
    };
    let repetitions = samples.iter().filter(|sample| sample.server == ours);
    median(repetitions.filter_map(|sample| {
        let theirs = of(theirs, sample.repetition)?;
        (theirs > 0.0).then_some(value(sample)? / theirs)
    }))
}

/// Judges all expectations of a work.
pub(super) fn judge(
    work: &Work,
    samples: &[Sample],
    memory: &[MemorySample],
    servers: &BTreeMap<String, Description>,
) -> Vec<Verdict> {
    if !servers.contains_key(OURS) {
        return Vec::new();
    }
    match &work.kind {
        Kind::Rates(_) => judge_rates(work, samples, servers),
        Kind::Stalls(_) | Kind::Expiry => waits::judge(work, samples),
        Kind::Listed(_) => {
            let tests = listed::TESTS.iter().map(|test| Work {
                name: listed::sample_name(&work.name, test),
                ..work.clone()
            });
            tests
                .flat_map(|test| {
                    let is_of_it = |sample: &&Sample| sample.work == test.name;
                    let samples: Vec<Sample> = samples.iter().filter(is_of_it).cloned().collect();
                    judge_expected(&test, &samples, memory, servers)
                })
                .collect()
        }
        _ => judge_expected(work, samples, memory, servers),
    }
}

/// The expectations that are written down with a work.
fn judge_expected(
    work: &Work,
    samples: &[Sample],
    memory: &[MemorySample],
    servers: &BTreeMap<String, Description>,
) -> Vec<Verdict> {
    work.expected
        .iter()
        .filter_map(|expected| match expected.against {
            Against::Absolute => absolute(work, *expected, samples, memory),
            against => relative(
                work,
                *expected,
                samples,
                memory,
                &peers(servers, against),
                against_name(against),
            ),
        })
        .collect()
}

fn against_name(against: Against) -> &'static str {
    match against {
        Against::Redis => "Redis",
        Against::Valkey => "Valkey",
        Against::Best => "the best peer",
        Against::Absolute => "",
    }
}

/// Names of the peers that `against` speaks of.
fn peers(servers: &BTreeMap<String, Description>, against: Against) -> Vec<&str> {
    servers
        .iter()
        .filter(|(name, about)| {
            name.as_str() != OURS
                && match against {
                    Against::Redis => about.family == Family::Redis,
                    Against::Valkey => about.family == Family::Valkey,
                    Against::Best | Against::Absolute => true,
                }
        })
        .map(|(name, _)| name.as_str())
        .collect()
}

fn metric_value(metric: Metric, sample: &Sample) -> Option<f64> {
    match metric {
        Metric::Throughput => Some(sample.requests_per_second),
        Metric::ServerCpu => sample.server_cpu_us,
        Metric::LongestInsert => Some(sample.max_us),
        Metric::Median => Some(sample.p50_us),
        Metric::P99 => Some(sample.p99_us),
        Metric::UsedPerKey | Metric::ResidentPerKey => None,
    }
}

/// The peer with the best median of `value`.
fn best<'a>(
    samples: &[Sample],
    peers: &[&'a str],
    higher_is_better: bool,
    value: impl Fn(&Sample) -> Option<f64>,
) -> Option<&'a str> {
    let median_of = |name: &str| {
        median(
            samples
                .iter()
                .filter(|sample| sample.server == name)
                .filter_map(&value),
        )
    };
    let ranked = peers
        .iter()
        .filter_map(|&name| Some((name, median_of(name)?)));
    let by_value = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
    let found = if higher_is_better {
        ranked.max_by(by_value)
    } else {
        ranked.min_by(by_value)
    };
    found.map(|(name, _)| name)
}

fn relative(
    work: &Work,
    expected: Expected,
    samples: &[Sample],
    memory: &[MemorySample],
    peers: &[&str],
    family: &str,
) -> Option<Verdict> {
    let (ratio, peer) = match expected.metric {
        Metric::UsedPerKey | Metric::ResidentPerKey => {
            memory_ratio(expected.metric, memory, peers, least(work))?
        }
        metric => {
            let value = |sample: &Sample| metric_value(metric, sample);
            let higher = matches!(expected.bound, Bound::AtLeast(_));
            let peer = best(samples, peers, higher, value)?;
            (paired_ratio(samples, OURS, peer, value)?, peer)
        }
    };
    let figure = expected.metric.words();
    let (words, bound, reached) = match expected.bound {
        Bound::AtLeast(bound) => ("at least", bound, ratio >= bound),
        Bound::AtMost(bound) => ("at most", bound, ratio <= bound),
    };
    Some(Verdict {
        work: work.name.clone(),
        expectation: format!("{figure} {words} {bound:.2}x {family}"),
        found: format!("{ratio:.2}x {peer}"),
        reached,
    })
}

/// Our bytes per key relative to those of the peer that needs least; infinite if our own count
/// cannot be true.
fn memory_ratio<'a>(
    metric: Metric,
    memory: &[MemorySample],
    peers: &[&'a str],
    least: f64,
) -> Option<(f64, &'a str)> {
    let of = |server: &str| {
        let sample = memory.iter().find(|sample| sample.server == server)?;
        Some(match metric {
            Metric::UsedPerKey => sample.used_per_key,
            _ => sample.resident_per_key,
        })
    };
    let (peer, theirs) = peers
        .iter()
        .filter_map(|&peer| Some((peer, of(peer)?)))
        .filter(|&(_, bytes)| bytes >= least)
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ours = of(OURS)?;
    let ratio = if ours >= least {
        ours / theirs
    } else {
        f64::INFINITY
    };
    Some((ratio, peer))
}

/// Bytes per key below which a count of memory proves nothing.
fn least(work: &Work) -> f64 {
    match &work.kind {
        Kind::Memory(plan) => plan.least(),
        _ => 0.0,
    }
}

fn absolute(
    work: &Work,
    expected: Expected,
    samples: &[Sample],
    memory: &[MemorySample],
) -> Option<Verdict> {
    let Bound::AtMost(limit) = expected.bound else {
        return None;
    };
    let ours = memory.iter().find(|sample| sample.server == OURS);
    let bytes = |number: f64| format!("{number:.1} B");
    let (found, limit_text, value) = match expected.metric {
        Metric::UsedPerKey => {
            let value = ours?.used_per_key;
            (bytes(value), bytes(limit), value)
        }
        Metric::ResidentPerKey => {
            let value = ours?.resident_per_key;
            (bytes(value), bytes(limit), value)
        }
        Metric::LongestInsert => {
            let value = longest(samples, &work.name, OURS)?;
            let reads = longest(samples, &format!("{} (reads)", work.name), OURS)?;
            let found = format!("{} (reads: {})", micros(value), micros(reads));
            (found, micros(limit), value)
        }
        _ => return None,
    };
    Some(Verdict {
        work: work.name.clone(),
        expectation: format!("{} at most {limit_text}", expected.metric.words()),
        found,
        reached: (least(work)..=limit).contains(&value),
    })
}

/// The longest batch in the repetition where it was shortest.
pub(super) fn longest(samples: &[Sample], work: &str, server: &str) -> Option<f64> {
    least_of(samples, work, server, |sample| sample.max_us)
}

/// A time in the repetition where it was least: a pause that the server itself makes happens every
/// time, one that the machine makes does not.
pub(super) fn least_of(
    samples: &[Sample],
    work: &str,
    server: &str,
    figure: impl Fn(&Sample) -> f64,
) -> Option<f64> {
    samples
        .iter()
        .filter(|sample| sample.work == work && sample.server == server)
        .map(figure)
        .min_by(f64::total_cmp)
}

/// Whether a server sustained a rate in most repetitions.
fn held(samples: &[Sample], work: &str, server: &str) -> bool {
    let of_server = samples
        .iter()
        .filter(|sample| sample.work == work && sample.server == server);
    let (yes, no): (Vec<&Sample>, Vec<&Sample>) =
        of_server.partition(|sample| sample.sustained == Some(true));
    yes.len() > no.len()
}

/// What must be reached at fixed rates: keep every rate that Redis keeps, reach at least its
/// highest, and latencies near the better peer at light load and below all from half of it on.
fn judge_rates(
    work: &Work,
    samples: &[Sample],
    servers: &BTreeMap<String, Description>,
) -> Vec<Verdict> {
    let redis = peers(servers, Against::Redis);
    let all = peers(servers, Against::Best);
    let mut verdicts = Vec::new();
    let highest: Vec<Sample> = samples
        .iter()
        .filter(|sample| sample.work == rates::highest_name(work))
        .cloned()
        .collect();
    let throughput = |sample: &Sample| Some(sample.requests_per_second);
    if let Some(peer) = best(&highest, &redis, true, throughput)
        && let Some(ratio) = paired_ratio(&highest, OURS, peer, throughput)
    {
        verdicts.push(Verdict {
            work: work.name.clone(),
            expectation: "highest sustained rate at least 1.00x Redis".into(),
            found: format!("{ratio:.2}x {peer}"),
            reached: ratio >= 1.0,
        });
    }
    let redis_highest = redis
        .iter()
        .filter_map(|name| {
            let of_server = highest.iter().filter(|sample| sample.server == *name);
            median(of_server.map(|sample| sample.requests_per_second))
        })
        .fold(0.0, f64::max);
    let mut works: Vec<(&str, f64)> = Vec::new();
    for sample in samples {
        if let Some(rate) = sample.offered
            && !works.iter().any(|&(name, _)| name == sample.work)
        {
            works.push((&sample.work, rate));
        }
    }
    for (name, rate) in works {
        if !redis.iter().any(|server| held(samples, name, server)) {
            continue;
        }
        let we_hold = held(samples, name, OURS);
        verdicts.push(Verdict {
            work: name.to_owned(),
            expectation: "sustained, as by Redis".into(),
            found: if we_hold { "sustained" } else { "NS" }.into(),
            reached: we_hold,
        });
        if we_hold {
            // The relative rates are rounded down, so half of the highest may be a little below.
            let is_light = rate < RELATIVE_RATES[0] * redis_highest * 0.97;
            verdicts.extend(latency_verdicts(name, samples, &all, is_light));
        }
    }
    verdicts
}

/// A latency by name.
type Figure = (&'static str, fn(&Sample) -> f64);

/// p50 and p99 at one rate against the better of the peers that sustain it.
fn latency_verdicts(
    work: &str,
    samples: &[Sample],
    peers: &[&str],
    is_light: bool,
) -> Vec<Verdict> {
    let of_work: Vec<Sample> = samples
        .iter()
        .filter(|sample| sample.work == work)
        .cloned()
        .collect();
    let holding: Vec<&str> = peers
        .iter()
        .copied()
        .filter(|server| held(samples, work, server))
        .collect();
    let figures: [Figure; 2] = [
        ("p50", |sample| sample.p50_us),
        ("p99", |sample| sample.p99_us),
    ];
    let bound = if is_light { LIGHT_LATENCY_RATIO } else { 1.0 };
    figures
        .into_iter()
        .filter_map(|(figure, read)| {
            let value = |sample: &Sample| Some(read(sample));
            let peer = best(&of_work, &holding, false, value)?;
            let ratio = paired_ratio(&of_work, OURS, peer, value)?;
            let ours = of_work.iter().filter(|sample| sample.server == OURS);
            let ours = median(ours.map(read))?;
            Some(Verdict {
                work: work.to_owned(),
                expectation: format!("{figure} at most {bound:.2}x the best peer"),
                found: format!("{ratio:.2}x {peer} ({})", micros(ours)),
                reached: ratio <= bound,
            })
        })
        .collect()
}

/// Text of the highest sustained rate of a server, for the tables.
pub(super) fn highest_text(samples: &[Sample], work: &Work, server: &str) -> Option<String> {
    let name = rates::highest_name(work);
    let of_server = samples
        .iter()
        .filter(|sample| sample.work == name && sample.server == server);
    median(of_server.map(|sample| sample.requests_per_second))
        .map(|rate| format!("{}/s", short(rate)))
}

#[cfg(test)]
mod tests;
