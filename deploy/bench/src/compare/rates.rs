//! Fixed rates: first the highest rate that each server sustains, then the same rates for all.
//!
//! The search starts near what a short closed loop reaches, because no open loop can exceed that by
//! much. The fixed rates are the light ones of the suite and parts of the highest that Redis
//! sustains, so that "half of Redis' highest" is a measured rate and not an interpolation.

use std::time::Duration;

use super::Contender;
use super::measure::Measure;
use super::suite::{FIXED_RATES, RELATIVE_RATES, RatePlan, Work};
use crate::closed_loop::{ClosedLoop, Extent};
use crate::error::BenchError;
use crate::report::{Sample, short};
use crate::search::Search;
use crate::server::Server;
use crate::throughput::{Fill, fill};

/// Length of the closed loop that the search starts from.
const ESTIMATE: Duration = Duration::from_secs(1);

/// Part of the closed loop's throughput at which the search starts.
const START_PART: f64 = 0.8;

/// Relative rates are rounded to this, so that they read well.
const ROUND_TO: f64 = 1_000.0;

/// Text in the name of the works that hold the highest sustained rates.
pub(super) const HIGHEST: &str = "highest sustained";

/// The part of a work's name that the rate stands behind.
fn rate_name(work: &Work, rate: f64) -> String {
    format!(
        "{} {}/s",
        work.name.trim_end_matches(" at fixed rates"),
        short(rate)
    )
}

/// Name of the rows with the highest sustained rates of `work`.
pub(super) fn highest_name(work: &Work) -> String {
    format!(
        "{} {HIGHEST}",
        work.name.trim_end_matches(" at fixed rates")
    )
}

/// Runs searches and fixed rates, interleaved.
pub(super) fn run(
    measure: &mut Measure<'_>,
    work: &Work,
    plan: &RatePlan,
    contenders: &[Contender],
    servers: &mut [Server],
    redis: &[&str],
    samples: &mut Vec<Sample>,
) -> Result<(), BenchError> {
    let first = samples.len();
    for repetition in 1..=work.repetitions {
        for (contender, server) in contenders.iter().zip(servers.iter_mut()) {
            server.resume()?;
            fill(
                &server.target(),
                &measure.settings.shape,
                Fill::Auto,
                measure.progress,
            )?;
            let highest = search(measure, work, plan, &contender.name, server)?;
            server.pause();
            measure.progress.complete();
            samples.push(Sample {
                work: highest_name(work),
                server: contender.name.clone(),
                repetition,
                requests_per_second: highest,
                ..Sample::default()
            });
        }
    }
    let rates = rates(&samples[first..], redis);
    let runs = rates.len() as u64 * u64::from(work.repetitions) * contenders.len() as u64;
    measure.progress.expect_more(runs);
    for repetition in 1..=work.repetitions {
        for &rate in &rates {
            for (contender, server) in contenders.iter().zip(servers.iter_mut()) {
                server.resume()?;
                let name = rate_name(work, rate);
                measure
                    .progress
                    .step(format!("{name} {repetition} {}", contender.name));
                let duration = measure.settings.duration;
                let (outcome, cpu) =
                    measure.rate_once(&plan.mix, plan.connections, rate, duration, server)?;
                server.pause();
                measure.progress.complete();
                if let Some(complaint) = outcome.tally.complaint() {
                    measure
                        .progress
                        .line(&format!("{}, {name}: {complaint}", contender.name));
                }
                let mut sample = Sample::open(&name, &contender.name, repetition, &outcome);
                // The rate that was asked for groups the rows; what was offered differs by
                // rounding.
                sample.offered = Some(rate);
                sample.server_cpu_us = Some(cpu);
                samples.push(sample);
            }
        }
    }
    Ok(())
}

/// The highest rate that one server sustains.
fn search(
    measure: &mut Measure<'_>,
    work: &Work,
    plan: &RatePlan,
    name: &str,
    server: &Server,
) -> Result<f64, BenchError> {
    measure
        .progress
        .step(format!("{} search {name}", work.name));
    let estimate = ClosedLoop {
        mix: plan.mix.clone(),
        shape: measure.settings.shape.clone(),
        pipeline: 1,
        connections: plan.connections,
        threads: 1,
        warm_up: ESTIMATE / 4,
        extent: Extent::Time(ESTIMATE),
        seed: measure.settings.seed,
        ascending: false,
    };
    let reached = estimate
        .run(&server.target(), measure.progress)?
        .requests_per_second();
    let search = Search {
        start: reached * START_PART,
        growth: 1.25,
        resolution: 0.03,
    };
    search.run(|rate| {
        measure
            .progress
            .step(format!("{} search {name} {}/s", work.name, short(rate)));
        let duration = measure.settings.search_duration;
        let (outcome, _) =
            measure.rate_once(&plan.mix, plan.connections, rate, duration, server)?;
        Ok(outcome.is_sustained())
    })
}

/// The rates to measure: the suite's own and parts of Redis' highest, ascending, each once.
fn rates(highest: &[Sample], redis: &[&str]) -> Vec<f64> {
    let best = redis
        .iter()
        .filter_map(|name| {
            let of_server = highest.iter().filter(|sample| sample.server == *name);
            super::verdict::median(of_server.map(|sample| sample.requests_per_second))
        })
        .fold(0.0, f64::max);
    let relative = RELATIVE_RATES.map(|part| (part * best / ROUND_TO).floor() * ROUND_TO);
    let mut rates: Vec<f64> = FIXED_RATES.into_iter().chain(relative).collect();
    rates.retain(|&rate| rate > 0.0);
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_better_redis() {
        let sample = |server: &str, highest| Sample {
            server: server.into(),
            requests_per_second: highest,
            ..Sample::default()
        };
        let highest = [
            sample("redis", 99_900.0),
            sample("redis", 101_000.0),
            sample("redis", 100_000.0),
            sample("redis-io2", 80_000.0),
            sample("sirocco", 150_000.0),
        ];
        assert_eq!(
            rates(&highest, &["redis", "redis-io2"]),
            [10_000.0, 20_000.0, 40_000.0, 50_000.0, 75_000.0, 100_000.0]
        );
        assert_eq!(rates(&highest, &[]), [10_000.0, 20_000.0, 40_000.0]);
    }
}
