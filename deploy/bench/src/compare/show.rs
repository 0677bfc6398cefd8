//! The comparison as text: what takes part, a table per work, and what was reached.

use std::collections::BTreeMap;

use super::measure::MemorySample;
use super::suite::{Filling, Kind, Work};
use super::verdict::{Verdict, highest_text, least_of, longest, median, paired_ratio};
use super::{Contender, OURS, expiry, listed, stalls};
use crate::report::{Sample, Table, micros, short};
use crate::server::Description;

/// Machine and servers, one line each.
pub(super) fn servers(
    servers: &BTreeMap<String, Description>,
    contenders: &[Contender],
    environment: &BTreeMap<&'static str, String>,
) -> String {
    let fact = |name: &str| environment.get(name).map_or("?", String::as_str);
    let mut out = format!(
        "{} cores, {}, Linux {}\n",
        fact("cores"),
        fact("processor"),
        fact("kernel")
    );
    let mut table = Table::new(&["server", "version", "processes", "start line"]);
    for contender in contenders {
        let Some(about) = servers.get(&contender.name) else {
            continue;
        };
        table.row(vec![
            contender.name.clone(),
            format!("{:?} {}", about.family, about.version).to_lowercase(),
            about.processes.to_string(),
            about.start_line.clone(),
        ]);
    }
    out.push_str(&table.render());
    out
}

/// Table and verdicts of one work.
pub(super) fn work(
    work: &Work,
    samples: &[Sample],
    memory: &[MemorySample],
    contenders: &[Contender],
    verdicts: &[Verdict],
) -> String {
    let names: Vec<&str> = contenders
        .iter()
        .map(|contender| contender.name.as_str())
        .collect();
    let table = match &work.kind {
        Kind::Closed(_) => closed(&work.name, samples, &names),
        Kind::Rates(_) => rates(work, samples, &names),
        Kind::Memory(plan) => memory_table(&work.name, plan, memory, &names),
        Kind::Growth(_) => growth(&work.name, samples, &names),
        Kind::Stalls(_) | Kind::Expiry => waits(work, samples, &names),
        Kind::Listed(_) => listed_table(&work.name, samples, &names),
    };
    format!("\n{}{}", table.render(), self::verdicts(verdicts))
}

/// One line per expectation.
pub(super) fn verdicts(verdicts: &[Verdict]) -> String {
    let line = |verdict: &Verdict| {
        let mark = if verdict.reached {
            "reached    "
        } else {
            "NOT reached"
        };
        format!(
            "  {mark}  {}: {}, found {}\n",
            verdict.work, verdict.expectation, verdict.found
        )
    };
    verdicts.iter().map(line).collect()
}

fn of<'a>(samples: &'a [Sample], work: &str, server: &str) -> Vec<&'a Sample> {
    let is_it = |sample: &&Sample| sample.work == work && sample.server == server;
    samples.iter().filter(is_it).collect()
}

fn middle(samples: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    median(samples.iter().filter_map(|sample| value(sample)))
}

/// Half of the distance between the extremes, relative to the median: how far to trust it.
fn spread(samples: &[&Sample]) -> String {
    let values = || samples.iter().map(|sample| sample.requests_per_second);
    let (low, high) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    median(values()).map_or_else(String::new, |middle| {
        format!("+-{:.0}%", (high - low) / 2.0 / middle.max(1.0) * 100.0)
    })
}

fn ratio(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| format!("{number:.2}x"))
}

fn figure(number: Option<f64>, show: impl Fn(f64) -> String) -> String {
    number.map_or_else(String::new, show)
}

fn closed(name: &str, samples: &[Sample], servers: &[&str]) -> Table {
    let mut table = Table::new(&[
        name,
        "requests/s",
        "spread",
        "CPU us/op",
        "batch p50",
        "batch p99",
        "generator us/op",
        "ours/it",
        "CPU ours/it",
    ]);
    for server in servers {
        let rows = of(samples, name, server);
        if rows.is_empty() {
            table.row(vec![(*server).into(), "not served".into()]);
            continue;
        }
        let is_peer = *server != OURS;
        let against = |value: fn(&Sample) -> Option<f64>| {
            ratio(paired_ratio(samples, OURS, server, value).filter(|_| is_peer))
        };
        table.row(vec![
            (*server).into(),
            figure(
                middle(&rows, |sample| Some(sample.requests_per_second)),
                short,
            ),
            spread(&rows),
            figure(middle(&rows, |sample| sample.server_cpu_us), |us| {
                format!("{us:.2}")
            }),
            figure(middle(&rows, |sample| Some(sample.p50_us)), micros),
            figure(middle(&rows, |sample| Some(sample.p99_us)), micros),
            figure(
                middle(&rows, |sample| Some(sample.generator_cpu_us)),
                |us| format!("{us:.2}"),
            ),
            against(|sample| Some(sample.requests_per_second)),
            against(|sample| sample.server_cpu_us),
        ]);
    }
    table
}

fn rates(work: &Work, samples: &[Sample], servers: &[&str]) -> Table {
    let mut table = Table::new(&[&work.name, "server", "p50", "p99", "p99.9", "CPU us/op"]);
    let mut names: Vec<&str> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.offered.is_some()) {
        if !names.contains(&sample.work.as_str()) {
            names.push(&sample.work);
        }
    }
    for name in names {
        for (position, server) in servers.iter().enumerate() {
            let rows = of(samples, name, server);
            let held = rows
                .iter()
                .filter(|sample| sample.sustained == Some(true))
                .count();
            let first = if position == 0 { name } else { "" };
            if held * 2 <= rows.len() {
                let reached = figure(
                    middle(&rows, |sample| Some(sample.requests_per_second)),
                    short,
                );
                table.row(vec![
                    first.into(),
                    (*server).into(),
                    format!("NS ({reached}/s)"),
                ]);
                continue;
            }
            table.row(vec![
                first.into(),
                (*server).into(),
                figure(middle(&rows, |sample| Some(sample.p50_us)), micros),
                figure(middle(&rows, |sample| Some(sample.p99_us)), micros),
                figure(middle(&rows, |sample| Some(sample.p999_us)), micros),
                figure(middle(&rows, |sample| sample.server_cpu_us), |us| {
                    format!("{us:.2}")
                }),
            ]);
        }
    }
    for (position, server) in servers.iter().enumerate() {
        let first = if position == 0 {
            "highest sustained rate"
        } else {
            ""
        };
        let highest = highest_text(samples, work, server).unwrap_or_default();
        table.row(vec![first.into(), (*server).into(), highest]);
    }
    table
}

fn memory_table(name: &str, plan: &Filling, memory: &[MemorySample], servers: &[&str]) -> Table {
    let mut headings = vec![name, "used B/key", "resident B/key", "resident when empty"];
    let elements = match plan {
        Filling::Collections(load) if load.keys > 1 => Some(load.elements as f64),
        _ => None,
    };
    if elements.is_some() {
        headings.push("used B/element");
    }
    let mut table = Table::new(&headings);
    for server in servers {
        for sample in memory.iter().filter(|sample| sample.server == *server) {
            let mut cells = vec![
                (*server).into(),
                format!("{:.1}", sample.used_per_key),
                format!("{:.1}", sample.resident_per_key),
                format!("{:.1} MB", sample.resident_empty as f64 / 1e6),
            ];
            cells.extend(elements.map(|count| format!("{:.1}", sample.used_per_key / count)));
            table.row(cells);
        }
    }
    table
}

fn growth(name: &str, samples: &[Sample], servers: &[&str]) -> Table {
    let mut table = Table::new(&[
        name,
        "inserts/s",
        "longest batch",
        "reads: longest",
        "CPU us/op",
    ]);
    let reads = format!("{name} (reads)");
    for server in servers {
        let rows = of(samples, name, server);
        table.row(vec![
            (*server).into(),
            figure(
                middle(&rows, |sample| Some(sample.requests_per_second)),
                short,
            ),
            figure(longest(samples, name, server), micros),
            figure(longest(samples, &reads, server), micros),
            figure(middle(&rows, |sample| sample.server_cpu_us), |us| {
                format!("{us:.2}")
            }),
        ]);
    }
    table
}

/// What waited while giants came and went, or keys expired: latencies of the GETs, and of keys the time
/// from their deadline on.
fn waits(work: &Work, samples: &[Sample], servers: &[&str]) -> Table {
    let mut table = Table::new(&[&work.name, "server", "p50", "p99", "p99.9", "max"]);
    let rows: Vec<(String, String)> = if matches!(work.kind, Kind::Stalls(_)) {
        let steps = stalls::STEPS.into_iter();
        steps
            .map(|step| (step.words(), step.sample_name(&work.name)))
            .collect()
    } else {
        vec![
            ("keys after their deadline".into(), work.name.clone()),
            ("GETs meanwhile".into(), expiry::gets_name(&work.name)),
        ]
    };
    for (words, name) in rows {
        for (position, server) in servers.iter().enumerate() {
            let least =
                |value: fn(&Sample) -> f64| figure(least_of(samples, &name, server, value), micros);
            table.row(vec![
                if position == 0 {
                    words.clone()
                } else {
                    String::new()
                },
                (*server).into(),
                least(|sample| sample.p50_us),
                least(|sample| sample.p99_us),
                least(|sample| sample.p999_us),
                least(|sample| sample.max_us),
            ]);
        }
    }
    table
}

/// A row per test of redis-benchmark and server.
fn listed_table(name: &str, samples: &[Sample], servers: &[&str]) -> Table {
    let mut table = Table::new(&[
        name,
        "server",
        "requests/s",
        "spread",
        "CPU us/op",
        "client us/op",
        "p50",
        "p99",
        "ours/it",
        "CPU ours/it",
    ]);
    for test in &listed::TESTS {
        let work = listed::sample_name(name, test);
        let of_test: Vec<Sample> = samples
            .iter()
            .filter(|sample| sample.work == work)
            .cloned()
            .collect();
        for (position, server) in servers.iter().enumerate() {
            let rows = of(&of_test, &work, server);
            let two_digits = |value: fn(&Sample) -> Option<f64>| {
                figure(middle(&rows, value), |us| format!("{us:.2}"))
            };
            let against = |value: fn(&Sample) -> Option<f64>| {
                let ratios = paired_ratio(&of_test, OURS, server, value);
                ratio(ratios.filter(|_| *server != OURS))
            };
            table.row(vec![
                if position == 0 { test.name } else { "" }.into(),
                (*server).into(),
                figure(
                    middle(&rows, |sample| Some(sample.requests_per_second)),
                    short,
                ),
                spread(&rows),
                two_digits(|sample| sample.server_cpu_us),
                two_digits(|sample| Some(sample.generator_cpu_us)),
                figure(middle(&rows, |sample| Some(sample.p50_us)), micros),
                figure(middle(&rows, |sample| Some(sample.p99_us)), micros),
                against(|sample| Some(sample.requests_per_second)),
                against(|sample| sample.server_cpu_us),
            ]);
        }
    }
    table
}
