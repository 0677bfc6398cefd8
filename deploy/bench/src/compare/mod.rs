//! `sirocco bench compare`: several servers, the same work, one after another and again; and what
//! must be reached.
//!
//! ```text
//!   start A, B, C --> for each work:  for each repetition:  A  B  C      (the others are stopped by SIGSTOP)
//!                                                            |
//!                                       resume, prepare data, measure, pause
//!                 --> medians, ratios within repetitions, CPU per operation, expectations
//! ```
//!
//! Why interleaved: a virtual machine drifts by 15 to 20 % over minutes. Whoever measures all of A
//! and then all of B measures the drift. Here ratios are taken inside a repetition, where both
//! servers had the same minute, and their median counts.
//!
//! Not here: the works and what they must reach (`suite`), what is loaded (`collections`), one
//! measurement (`measure`; `stalls`, `expiry` and `listed` for the suites of their own kind), statistics
//! and verdicts (`verdict`), text (`show`).

mod collections;
mod expiry;
mod listed;
mod measure;
mod rates;
mod show;
mod stalls;
mod suite;
mod verdict;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::chart;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::{self, OutputArgs, Sample};
use crate::server::{Description, Server};
use crate::throughput::{ShapeArgs, seconds};

use measure::Measure;
use suite::Work;
use verdict::Verdict;

/// Name of the server that all others are compared with.
const OURS: &str = "sirocco";

/// Groups of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Throughput of the commands of the foundation with 30 commands in flight
    P30,
    /// GET and SET, one command in flight on each of 50 connections
    P1,
    /// GET and a mix of 1 SET to 10 GETs, one command in flight on each of 816 connections
    #[value(name = "p1-816")]
    P1Many,
    /// Fixed rates and the highest sustained one, 48 and 816 connections
    Rates,
    /// Bytes per key of strings, used and resident
    Memory,
    /// Bytes per key of hashes, lists, sets and sorted sets, and per entry of a stream
    Collections,
    /// Longest insert while a key space grows
    Growth,
    /// Whether GETs wait while a collection of 5 M elements grows, is deleted, expires, is overwritten
    Stalls,
    /// How late 1 M keys expire, and whether GETs wait meanwhile
    Expiry,
    /// The default list of an installed redis-benchmark, with 30 and with 1 in flight, and with 1024
    /// clients through a Unix socket
    RedisBenchmark,
    /// All twelve commands with 30 in flight, as far as they are served; without expectations
    Twelve,
    /// Everything with expectations
    All,
}

/// A peer: its name and its start line.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    name: String,
    line: String,
}

impl std::str::FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, line)) if !name.is_empty() && line.contains("{port}") => Ok(Self {
                name: name.into(),
                line: line.into(),
            }),
            _ => Err("expected NAME=COMMAND with {port} in the command".into()),
        }
    }
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A server to compare with: NAME=COMMAND, where {port} stands for the port
    #[arg(long, value_name = "NAME=COMMAND")]
    peer: Vec<Peer>,
    /// Directory with redis-server and valkey-server: adds each with 1 thread and with 2 I/O
    /// threads
    #[arg(long, value_name = "DIR")]
    peers_from: Option<PathBuf>,
    /// Start line of our own server, with {port}
    /// [default: this program with one gateway thread and one storage worker, without persistence]
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Measure only the peers
    #[arg(long, conflicts_with = "server")]
    without_server: bool,
    /// What to measure
    #[arg(long, value_enum, default_value = "p30", num_args = 1..)]
    suite: Vec<Suite>,
    /// Only works whose name begins with one of these texts, such as "GET P=30"
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Repetitions instead of the suite's own number (5, 9 for p1, 3 for rates and growth)
    #[arg(long)]
    repetitions: Option<u32>,
    /// Measured seconds per repetition
    #[arg(long, default_value_t = 5.0)]
    duration: f64,
    /// Measured seconds per step of a search for the highest rate
    #[arg(long, default_value_t = 2.0)]
    search_duration: f64,
    /// Poll instead of sleeping within this many microseconds before a request is due (rates)
    #[arg(long, default_value_t = 0)]
    spin_us: u64,
    /// First of the ports to use, one per server [default: free ones]
    #[arg(long)]
    base_port: Option<u16>,
    /// Fail if something that must be reached is not
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A server that takes part.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) port: Option<u16>,
}

/// Everything that was found out; this is what `--json` writes.
#[derive(Debug, Serialize)]
struct Results {
    environment: BTreeMap<&'static str, String>,
    servers: BTreeMap<String, Description>,
    samples: Vec<Sample>,
    memory: Vec<measure::MemorySample>,
    verdicts: Vec<Verdict>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, BenchError> {
    run_guarded(args, Interrupt::install())
}

/// Runs the subcommand; `interrupt` knows the servers that must not be left behind.
fn run_guarded(args: &CompareArgs, interrupt: Interrupt) -> Result<ExitCode, BenchError> {
    let contenders = contenders(args)?;
    let settings = measure::Settings {
        shape: args.shape.shape(),
        seed: args.shape.seed,
        duration: seconds(args.duration)?,
        search_duration: seconds(args.search_duration)?,
        spin: std::time::Duration::from_micros(args.spin_us),
        redis_benchmark: redis_benchmark(args),
    };
    settings.shape.check()?;
    let works: Vec<Work> = suite::works(&args.suite, args.repetitions, &settings.shape)
        .into_iter()
        .filter(|work| {
            args.only.is_empty()
                || args
                    .only
                    .iter()
                    .any(|text| work.name.starts_with(text.as_str()))
        })
        .collect();
    if works.is_empty() {
        return Err(BenchError::Usage("no work has such a name".into()));
    }
    let total = works
        .iter()
        .map(|work| u64::from(work.repetitions) * contenders.len() as u64)
        .sum();
    let mut results = Results {
        environment: environment(),
        servers: BTreeMap::new(),
        samples: Vec::new(),
        memory: Vec::new(),
        verdicts: Vec::new(),
    };
    let mut progress = Progress::new(total);
    let mut measure = Measure {
        settings: &settings,
        interrupt: &interrupt,
        progress: &mut progress,
    };
    describe_all(&contenders, &interrupt, &mut results)?;
    measure.progress.line(&show::servers(
        &results.servers,
        &contenders,
        &results.environment,
    ));
    let outcome = run_works(&mut measure, &contenders, &works, &mut results);
    progress.clear();
    // What was measured before a failure is worth having.
    if works.len() > 1 {
        println!("{}", show::verdicts(&results.verdicts));
    }
    hand_out(&args.output, &results)?;
    outcome?;
    let failed = results.verdicts.iter().any(|verdict| !verdict.reached);
    Ok(if args.strict && failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Servers in the order in which they take their turns; ours first.
fn contenders(args: &CompareArgs) -> Result<Vec<Contender>, BenchError> {
    let mut lines = Vec::new();
    if !args.without_server {
        let line = match &args.server {
            Some(line) => line.clone(),
            None => own_line()?,
        };
        lines.push((OURS.to_owned(), line));
    }
    if let Some(directory) = &args.peers_from {
        let before = lines.len();
        for software in ["redis", "valkey"] {
            let program = directory.join(format!("{software}-server"));
            if program.exists() {
                let plain = format!(
                    "'{}' --port {{port}} --save \"\" --appendonly no",
                    program.display()
                );
                lines.push((software.to_owned(), plain.clone()));
                lines.push((format!("{software}-io2"), format!("{plain} --io-threads 2")));
            }
        }
        if lines.len() == before {
            return Err(BenchError::Usage(format!(
                "neither redis-server nor valkey-server is in {}",
                directory.display()
            )));
        }
    }
    lines.extend(
        args.peer
            .iter()
            .map(|peer| (peer.name.clone(), peer.line.clone())),
    );
    let mut names: Vec<&String> = lines.iter().map(|(name, _)| name).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(BenchError::Usage(format!(
            "two servers are called {}",
            twice[0]
        )));
    }
    if lines.is_empty() {
        return Err(BenchError::Usage("no server to measure".into()));
    }
    let port = |position: usize| {
        args.base_port
            .map(|base| base.saturating_add(u16::try_from(position).unwrap_or(u16::MAX)))
    };
    let number = |(position, (name, line))| Contender {
        name,
        line,
        port: port(position),
    };
    Ok(lines.into_iter().enumerate().map(number).collect())
}

/// The one beside the peers, or that which a shell would find.
fn redis_benchmark(args: &CompareArgs) -> PathBuf {
    let name = "redis-benchmark";
    let beside = args.peers_from.as_ref().map(|folder| folder.join(name));
    beside
        .filter(|program| program.exists())
        .unwrap_or_else(|| name.into())
}

/// This executable as a server: one gateway thread, one worker, nothing saved.
fn own_line() -> Result<String, BenchError> {
    let program = std::env::current_exe()
        .map_err(|error| BenchError::io("find this program's own file", error))?;
    Ok(format!(
        "'{}' --port {{port}} --gateway-threads 1 --storage-workers 1 --save \"\" --appendonly no",
        program.display()
    ))
}

/// Starts each server once, before anything is measured, so that a wrong start line shows at once.
fn describe_all(
    contenders: &[Contender],
    interrupt: &Interrupt,
    results: &mut Results,
) -> Result<(), BenchError> {
    for contender in contenders {
        let server = Server::start(&contender.name, &contender.line, contender.port, interrupt)?;
        results
            .servers
            .insert(contender.name.clone(), server.describe()?);
    }
    Ok(())
}

/// Works that need the same servers run together; verdicts come as soon as a work is complete.
fn run_works(
    measure: &mut Measure<'_>,
    contenders: &[Contender],
    works: &[Work],
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut servers: Vec<Server> = Vec::new();
    for work in works {
        if work.kind.needs_fresh_servers() {
            servers.clear();
        } else if servers.is_empty() {
            for contender in contenders {
                let mut server = measure.start(contender)?;
                server.pause();
                servers.push(server);
            }
        }
        let first = results.samples.len();
        let first_memory = results.memory.len();
        match &work.kind {
            suite::Kind::Closed(closed) => {
                let samples = &mut results.samples;
                measure.closed(work, closed, contenders, &mut servers, samples)?;
            }
            suite::Kind::Rates(plan) => {
                let families = results.servers.iter();
                let redis: Vec<&str> = families
                    .filter(|(_, about)| about.family == crate::server::Family::Redis)
                    .map(|(name, _)| name.as_str())
                    .collect();
                let samples = &mut results.samples;
                rates::run(
                    measure,
                    work,
                    plan,
                    contenders,
                    &mut servers,
                    &redis,
                    samples,
                )?;
            }
            suite::Kind::Memory(plan) => {
                measure.memory(work, plan, contenders, &mut results.memory)?;
            }
            suite::Kind::Stalls(plan) => {
                stalls::run(measure, work, plan, contenders, &mut results.samples)?;
            }
            suite::Kind::Expiry => {
                expiry::run(measure, work, contenders, &mut results.samples)?;
            }
            suite::Kind::Listed(plan) => {
                listed::run(measure, work, plan, contenders, &mut results.samples)?;
            }
            suite::Kind::Growth(shape) => {
                measure.growth(work, shape, contenders, &mut results.samples)?;
            }
        }
        let samples = &results.samples[first..];
        let memory = &results.memory[first_memory..];
        let verdicts = verdict::judge(work, samples, memory, &results.servers);
        measure
            .progress
            .line(&show::work(work, samples, memory, contenders, &verdicts));
        results.verdicts.extend(verdicts);
    }
    Ok(())
}

fn hand_out(output: &OutputArgs, results: &Results) -> Result<(), BenchError> {
    if let Some(path) = &output.csv {
        report::write(path, &report::csv(&results.samples))?;
    }
    if let Some(path) = &output.json {
        report::write_json(path, results)?;
    }
    if let Some(path) = &output.svg {
        report::write(path, &chart::draw(&results.samples)?)?;
    }
    Ok(())
}

/// What a reader of the results must know about the machine, and nothing else.
fn environment() -> BTreeMap<&'static str, String> {
    let mut facts = BTreeMap::new();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    facts.insert("cores", cores.to_string());
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    if let Some((_, model)) = model {
        facts.insert("processor", model.to_owned());
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version: Vec<&str> = kernel.trim().split(['.', '-']).take(2).collect();
    facts.insert("kernel", version.join("."));
    facts.insert("bench", env!("CARGO_PKG_VERSION").to_owned());
    facts
}

#[cfg(test)]
mod tests;
