//! `sirocco bench latency`: fixed rates against a running server, one after another, and a search
//! for the highest that it sustains.

use std::time::Duration;

use clap::Args;

use crate::arrivals::Spacing;
use crate::chart;
use crate::client::Target;
use crate::error::BenchError;
use crate::open_loop::{OpenLoop, RateOutcome};
use crate::progress::Progress;
use crate::report::{self, OutputArgs, Sample, Table, micros, short};
use crate::search::Search;
use crate::throughput::{Fill, ShapeArgs, fill, seconds};
use crate::workload::{Command, Mix};

/// Largest number of rates in a sweep.
const SWEEP_MAX: usize = 1_000;

/// Rates from a list or a sweep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rates(pub(crate) Vec<f64>);

impl std::str::FromStr for Rates {
    type Err = String;

    /// `10k`, `10000`, `1.5M`, or `10k..100k/10k` for a sweep with a step.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, rest)) = text.split_once("..") else {
            return Ok(Self(vec![rate(text)?]));
        };
        let (to, step) = rest
            .split_once('/')
            .ok_or("a sweep needs a step: 10k..100k/10k")?;
        let (from, to, step) = (rate(from)?, rate(to)?, rate(step)?);
        let count = ((to - from) / step + 1.0 + 1e-9).floor();
        if !(1.0..=SWEEP_MAX as f64).contains(&count) {
            return Err(format!("a sweep must have 1 to {SWEEP_MAX} rates"));
        }
        Ok(Self(
            (0..count as usize)
                .map(|position| from + step * position as f64)
                .collect(),
        ))
    }
}

/// One rate: a number, possibly with k or M.
fn rate(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text
            .strip_suffix(['m', 'M'])
            .map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number * factor),
        _ => Err(format!("'{text}' is not a rate")),
    }
}

/// Arguments of `latency`.
#[derive(Debug, Args)]
pub struct LatencyArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Command or mix: a name, SET:1,GET:10, or 1:10 for SETs and GETs
    #[arg(long, short = 't', default_value = "GET")]
    command: Mix,
    /// Rates in requests per second: 10k 20k, or a sweep 10k..100k/10k
    #[arg(long, num_args = 1.., default_value = "10k")]
    rate: Vec<Rates>,
    /// Also search for the highest rate that is sustained
    #[arg(long)]
    search: bool,
    /// Connections, over all threads
    #[arg(long, short = 'c', default_value_t = 48)]
    connections: usize,
    /// Requests in flight per connection at most
    #[arg(long, short = 'P', default_value_t = 1)]
    pipeline: usize,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// How requests are spread over time
    #[arg(long, value_enum, default_value_t = Spacing::Even)]
    spacing: Spacing,
    /// Measured seconds per rate
    #[arg(long, default_value_t = 5.0)]
    duration: f64,
    /// Seconds at the same rate before the measured interval
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// Poll instead of sleeping if the next request is due within this many microseconds: sends
    /// more exactly, but takes processor time from a server on the same cores
    #[arg(long, default_value_t = 0)]
    spin_us: u64,
    /// Whether to fill the key space first
    #[arg(long, value_enum, default_value_t = Fill::Auto)]
    fill: Fill,
    #[command(flatten)]
    output: OutputArgs,
}

impl LatencyArgs {
    fn plan(&self, rate: f64) -> Result<OpenLoop, BenchError> {
        Ok(OpenLoop {
            mix: self.command.clone(),
            shape: self.shape.shape(),
            rate,
            spacing: self.spacing,
            connections: self.connections,
            pipeline: self.pipeline,
            threads: self.threads,
            warm_up: seconds(self.warm_up)?,
            duration: seconds(self.duration)?,
            spin: Duration::from_micros(self.spin_us),
            seed: self.shape.seed,
        })
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &LatencyArgs) -> Result<(), BenchError> {
    let shape = args.shape.shape();
    let rates: Vec<f64> = args
        .rate
        .iter()
        .flat_map(|rates| rates.0.iter().copied())
        .collect();
    let mut progress = Progress::new(rates.len() as u64);
    if args.command.commands().any(Command::reads_values) {
        progress.step("filling the key space");
        fill(&args.target, &shape, args.fill, &mut progress)?;
    }
    let work = format!(
        "{} c={} P={}",
        args.command, args.connections, args.pipeline
    );
    let mut samples = Vec::new();
    let mut measure = |rate: f64, progress: &mut Progress| -> Result<bool, BenchError> {
        progress.step(format!("{} at {}/s", args.command, short(rate)));
        let outcome = args.plan(rate)?.run(&args.target, progress)?;
        progress.complete();
        if let Some(complaint) = complaint(&outcome) {
            progress.line(&format!("at {}/s: {complaint}", short(rate)));
        }
        samples.push(Sample::open(&work, &args.target.to_string(), 1, &outcome));
        Ok(outcome.is_sustained())
    };
    for &rate in &rates {
        measure(rate, &mut progress)?;
    }
    let mut highest = None;
    if args.search {
        let start = rates.iter().copied().fold(0.0, f64::max).max(1_000.0);
        let search = Search {
            start,
            growth: 1.5,
            resolution: 0.03,
        };
        highest = Some(search.run(|rate| {
            progress.expect_more(1);
            measure(rate, &mut progress)
        })?);
    }
    progress.clear();
    print!("{}", table(&samples));
    if let Some(highest) = highest {
        println!("highest sustained rate: {}/s", short(highest));
    }
    hand_out(&args.output, &samples)
}

fn complaint(outcome: &RateOutcome) -> Option<String> {
    let unanswered = (outcome.unanswered > 0).then(|| format!("{} unanswered", outcome.unanswered));
    match (outcome.tally.complaint(), unanswered) {
        (Some(one), Some(other)) => Some(format!("{one}, {other}")),
        (one, other) => one.or(other),
    }
}

/// Writes the files that were asked for, for the two subcommands without a comparison.
pub(crate) fn hand_out(output: &OutputArgs, samples: &[Sample]) -> Result<(), BenchError> {
    if let Some(path) = &output.csv {
        report::write(path, &report::csv(samples))?;
    }
    if let Some(path) = &output.json {
        report::write_json(path, &serde_json::json!({ "samples": samples }))?;
    }
    if let Some(path) = &output.svg {
        report::write(path, &chart::draw(samples)?)?;
    }
    Ok(())
}

/// Rates for people; a rate that is not sustained has `NS` in place of what was reached.
fn table(samples: &[Sample]) -> String {
    let mut table = Table::new(&[
        "offered/s",
        "reached/s",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "generator late p99",
        "generator CPU",
    ]);
    for sample in samples {
        let reached = short(sample.requests_per_second);
        table.row(vec![
            short(sample.offered.unwrap_or(0.0)),
            if sample.sustained == Some(true) {
                reached
            } else {
                format!("NS ({reached})")
            },
            micros(sample.p50_us),
            micros(sample.p90_us),
            micros(sample.p99_us),
            micros(sample.p999_us),
            micros(sample.max_us),
            micros(sample.lateness_p99_us.unwrap_or(0.0)),
            format!("{:.2} us/op", sample.generator_cpu_us),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::Rates;

    #[test]
    fn reads_rates_and_sweeps() {
        let read = |text: &str| text.parse::<Rates>().map(|rates| rates.0);
        assert_eq!(read("10k"), Ok(vec![10_000.0]));
        assert_eq!(read("1.5M"), Ok(vec![1_500_000.0]));
        assert_eq!(read("10k..30k/10k"), Ok(vec![10_000.0, 20_000.0, 30_000.0]));
        assert_eq!(read("1..2/0.5"), Ok(vec![1.0, 1.5, 2.0]));
        for wrong in ["", "x", "0", "-5", "inf", "10..20", "10..5/1", "1..1M/1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
