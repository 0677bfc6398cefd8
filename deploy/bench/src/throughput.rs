//! `sirocco bench throughput`: one closed-loop run per command against a running server.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::client::{Client, Target};
use crate::closed_loop::{ClosedLoop, Extent, Observer};
use crate::error::BenchError;
use crate::latency::hand_out;
use crate::progress::Progress;
use crate::random::Random;
use crate::report::{OutputArgs, Sample, Table, micros};
use crate::workload::{Command, Mix, Shape};

/// Keys looked at to find out whether the key space is filled already.
const FILL_SAMPLE: u64 = 64;

/// Commands per batch while filling.
const FILL_PIPELINE: usize = 64;

/// Shape of keys and values, shared by all ways to measure.
#[derive(Debug, Clone, Args)]
pub struct ShapeArgs {
    /// Size of the key space; keys are drawn uniformly from it
    #[arg(long, short = 'r', default_value_t = 1_000_000)]
    pub keys: u64,
    /// Bytes of a key
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(long, short = 'd', default_value_t = 256)]
    pub value_size: usize,
    /// Keys of one MGET or MSET
    #[arg(long, default_value_t = 10)]
    pub keys_per_command: usize,
    /// Seed of the random keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl ShapeArgs {
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            keys: self.keys,
            key_size: self.key_size,
            value_size: self.value_size,
            keys_per_command: self.keys_per_command,
        }
    }
}

/// Whether the key space is filled before a run that reads values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fill {
    /// If a sample of keys is not there in the right size
    Auto,
    /// In any case
    Always,
    /// Not at all
    Never,
}

/// Arguments of `throughput`.
#[derive(Debug, Args)]
pub struct ThroughputArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Commands and mixes to run one after another: names, SET:1,GET:10, or 1:10 for SETs and GETs
    #[arg(long, short = 't', default_value = "GET", value_delimiter = ' ', num_args = 1..)]
    command: Vec<Mix>,
    /// Commands in flight per connection
    #[arg(long, short = 'P', default_value_t = 1)]
    pipeline: usize,
    /// Connections, over all threads
    #[arg(long, short = 'c', default_value_t = 50)]
    connections: usize,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Measured seconds per command
    #[arg(long, default_value_t = 5.0, conflicts_with = "requests")]
    duration: f64,
    /// Stop after this many commands instead of a time
    #[arg(long)]
    requests: Option<u64>,
    /// Seconds that run before the measured interval
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// Whether to fill the key space first
    #[arg(long, value_enum, default_value_t = Fill::Auto)]
    fill: Fill,
    #[command(flatten)]
    output: OutputArgs,
}

/// Seconds from the command line as a time.
pub(crate) fn seconds(seconds: f64) -> Result<Duration, BenchError> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| BenchError::Usage(format!("{seconds} seconds: {error}")))
}

/// Fills the key space if `fill` says so; true if it did.
pub(crate) fn fill(
    target: &Target,
    shape: &Shape,
    fill: Fill,
    observer: &mut dyn Observer,
) -> Result<bool, BenchError> {
    shape.check()?;
    if fill == Fill::Never || (fill == Fill::Auto && is_filled(target, shape)?) {
        return Ok(false);
    }
    let plan = ClosedLoop {
        mix: Mix::only(Command::Set),
        shape: shape.clone(),
        pipeline: FILL_PIPELINE,
        connections: 4,
        threads: 1,
        warm_up: Duration::ZERO,
        extent: Extent::Requests(shape.keys),
        seed: 0,
        ascending: true,
    };
    let outcome = plan.run(target, observer)?;
    match outcome.tally.complaint() {
        Some(complaint) => Err(BenchError::Server(format!(
            "filling the key space: {complaint}"
        ))),
        None => Ok(true),
    }
}

/// Whether a sample of keys, the first and the last among them, has values of the right size.
fn is_filled(target: &Target, shape: &Shape) -> Result<bool, BenchError> {
    let mut client = Client::connect(target)?;
    let mut random = Random::new(17);
    for sample in 0..FILL_SAMPLE {
        let number = match sample {
            0 => 0,
            1 => shape.keys - 1,
            _ => random.below(shape.keys),
        };
        let key = format!("key:{number:0width$}", width = shape.key_size - 4);
        match client.must(&["STRLEN", &key])? {
            crate::client::Value::Integer(length) if length == shape.value_size as i64 => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Runs the subcommand.
pub(crate) fn run(args: &ThroughputArgs) -> Result<(), BenchError> {
    let shape = args.shape.shape();
    let extent = match args.requests {
        Some(count) => Extent::Requests(count),
        None => Extent::Time(seconds(args.duration)?),
    };
    let mut progress = Progress::new(args.command.len() as u64);
    let mut samples = Vec::new();
    for mix in &args.command {
        if mix.commands().any(Command::reads_values) {
            progress.step("filling the key space");
            fill(&args.target, &shape, args.fill, &mut progress)?;
        }
        progress.step(mix.to_string());
        let plan = ClosedLoop {
            mix: mix.clone(),
            shape: shape.clone(),
            pipeline: args.pipeline,
            connections: args.connections,
            threads: args.threads,
            warm_up: seconds(args.warm_up)?,
            extent,
            seed: args.shape.seed,
            ascending: false,
        };
        let outcome = plan.run(&args.target, &mut progress)?;
        progress.complete();
        if let Some(complaint) = outcome.tally.complaint() {
            progress.line(&format!("{mix}: {complaint}"));
        }
        samples.push(Sample::closed(
            &mix.to_string(),
            &args.target.to_string(),
            1,
            &outcome,
        ));
    }
    progress.clear();
    print!("{}", table(&samples));
    hand_out(&args.output, &samples)
}

fn table(samples: &[Sample]) -> String {
    let mut table = Table::new(&[
        "command",
        "requests/s",
        "batch p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "generator CPU",
    ]);
    for sample in samples {
        table.row(vec![
            sample.work.clone(),
            format!("{:.0}", sample.requests_per_second),
            micros(sample.p50_us),
            micros(sample.p90_us),
            micros(sample.p99_us),
            micros(sample.p999_us),
            micros(sample.max_us),
            format!("{:.2} us/op", sample.generator_cpu_us),
        ]);
    }
    table.render()
}
