//! One measurement of one server: prepare its data, run, sample its CPU time and memory.
//!
//! Only the server under test runs; all others are stopped. CPU time is read for the whole process
//! tree at both borders of the measured interval.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Contender;
use super::suite::{Closed, Filling, Work};
use crate::arrivals::Spacing;
use crate::client::{Client, Target, Value};
use crate::closed_loop::{ClosedLoop, Extent, Observer};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::open_loop::{OpenLoop, RateOutcome};
use crate::process_tree::{self, CpuSample};
use crate::progress::Progress;
use crate::report::Sample;
use crate::server::Server;
use crate::throughput::{Fill, fill};
use crate::workload::{Command, Mix, Shape};

/// Longest unmeasured time at the start of a run at a fixed rate; half of the measured time if that is
/// less.
const OPEN_WARM_UP_MAX: Duration = Duration::from_secs(1);

/// Longest unmeasured time at the start of each closed run; a quarter of the measured time if that is
/// less.
const WARM_UP_MAX: Duration = Duration::from_millis(500);

/// Commands of a work with a fixed count, per second of the duration that was asked for.
const FRESH_REQUESTS_PER_SECOND: f64 = 500_000.0;

/// Commands per batch while a key space grows: small, because the longest batch is looked for.
const GROWTH_PIPELINE: usize = 16;

/// Longest wait for memory figures to settle after a fill.
const MEMORY_SETTLE_MAX: Duration = Duration::from_secs(5);

/// What holds for all measurements of a run.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) shape: Shape,
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
    pub(crate) search_duration: Duration,
    pub(crate) spin: Duration,
    /// The program of that name, for the suite of that name.
    pub(crate) redis_benchmark: PathBuf,
}

/// Memory of one server after one fill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MemorySample {
    pub(crate) work: String,
    pub(crate) server: String,
    pub(crate) keys: u64,
    /// Growth of `used_memory`, per key.
    pub(crate) used_per_key: f64,
    /// Growth of resident memory of all processes, shared pages counted once, per key.
    pub(crate) resident_per_key: f64,
    /// Resident bytes of the empty server.
    pub(crate) resident_empty: u64,
}

/// The means of measuring.
#[derive(Debug)]
pub(crate) struct Measure<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) progress: &'a mut Progress,
}

/// Samples CPU time at the borders of the interval.
struct CpuWatch<'a> {
    root: i32,
    before: CpuSample,
    spent: Duration,
    progress: &'a mut Progress,
}

impl Observer for CpuWatch<'_> {
    fn begins(&mut self) {
        self.before = CpuSample::take(self.root);
    }

    fn ends(&mut self) {
        self.spent = CpuSample::take(self.root).since(&self.before);
    }

    fn progress(&mut self, part: f64) {
        self.progress.progress(part);
    }
}

impl Measure<'_> {
    pub(super) fn start(&self, contender: &Contender) -> Result<Server, BenchError> {
        self.progress.step(format!("starting {}", contender.name));
        Server::start(
            &contender.name,
            &contender.line,
            contender.port,
            self.interrupt,
        )
    }

    /// All repetitions of a closed-loop work.
    pub(super) fn closed(
        &mut self,
        work: &Work,
        plan: &Closed,
        contenders: &[Contender],
        servers: &mut [Server],
        samples: &mut Vec<Sample>,
    ) -> Result<(), BenchError> {
        for repetition in 1..=work.repetitions {
            for (contender, server) in contenders.iter().zip(servers.iter_mut()) {
                server.resume()?;
                self.progress
                    .step(format!("{} {repetition} {}", work.name, contender.name));
                if let Some(command) = not_served(&server.target(), &plan.mix)? {
                    self.progress
                        .line(&format!("{}: no {}", contender.name, command.name()));
                } else {
                    let sample =
                        self.closed_once(work, plan, &contender.name, server, repetition)?;
                    samples.push(sample);
                }
                server.pause();
                self.progress.complete();
            }
        }
        Ok(())
    }

    fn closed_once(
        &mut self,
        work: &Work,
        plan: &Closed,
        name: &str,
        server: &Server,
        repetition: u32,
    ) -> Result<Sample, BenchError> {
        let target = server.target();
        self.prepare(&target, plan)?;
        let extent = if plan.fresh {
            let count = self.settings.duration.as_secs_f64() * FRESH_REQUESTS_PER_SECOND;
            Extent::Requests(count.max(1.0) as u64)
        } else {
            Extent::Time(self.settings.duration)
        };
        let run = ClosedLoop {
            mix: plan.mix.clone(),
            shape: self.settings.shape.clone(),
            pipeline: plan.pipeline,
            connections: plan.connections,
            threads: 1,
            warm_up: warm_up(self.settings.duration),
            extent,
            seed: self.settings.seed.wrapping_add(u64::from(repetition)),
            ascending: false,
        };
        let mut watch = self.watch(server);
        let outcome = run.run(&target, &mut watch)?;
        let spent = watch.spent;
        if let Some(complaint) = outcome.tally.complaint() {
            self.progress
                .line(&format!("{name}, {}: {complaint}", work.name));
        }
        let mut sample = Sample::closed(&work.name, name, repetition, &outcome);
        sample.server_cpu_us = Some(cpu_per_op(spent, sample.replies));
        Ok(sample)
    }

    /// Brings the data into the state that the work starts from.
    fn prepare(&mut self, target: &Target, plan: &Closed) -> Result<(), BenchError> {
        if plan.fresh {
            Client::connect(target)?.must(&["FLUSHALL", "SYNC"])?;
            return Ok(());
        }
        if plan.mix.commands().any(Command::reads_values) {
            fill(target, &self.settings.shape, Fill::Auto, self.progress)?;
        }
        let counters = plan.mix.commands().any(|command| command == Command::Incr);
        if counters && !self.counters_exist(target)? {
            let count = ClosedLoop {
                mix: Mix::only(Command::Incr),
                shape: self.settings.shape.clone(),
                pipeline: 64,
                connections: 4,
                threads: 1,
                warm_up: Duration::ZERO,
                extent: Extent::Requests(self.settings.shape.keys),
                seed: 0,
                ascending: true,
            };
            count.run(target, self.progress)?;
        }
        Ok(())
    }

    fn counters_exist(&self, target: &Target) -> Result<bool, BenchError> {
        let shape = &self.settings.shape;
        let key = format!("ctr:{:0width$}", shape.keys - 1, width = shape.key_size - 4);
        Ok(Client::connect(target)?.must(&["EXISTS", &key])? == Value::Integer(1))
    }

    /// One run at a fixed rate; the server is running already.
    pub(super) fn rate_once(
        &mut self,
        mix: &Mix,
        connections: usize,
        rate: f64,
        duration: Duration,
        server: &Server,
    ) -> Result<(RateOutcome, f64), BenchError> {
        let run = OpenLoop {
            mix: mix.clone(),
            shape: self.settings.shape.clone(),
            rate,
            spacing: Spacing::Even,
            connections,
            pipeline: 1,
            threads: 1,
            // Long enough for a server that arranges itself by load.
            warm_up: OPEN_WARM_UP_MAX.min(duration / 2),
            duration,
            spin: self.settings.spin,
            seed: self.settings.seed,
        };
        let mut watch = self.watch(server);
        let outcome = run.run(&server.target(), &mut watch)?;
        let cpu = cpu_per_op(watch.spent, outcome.tally.replies);
        Ok((outcome, cpu))
    }

    fn watch(&mut self, server: &Server) -> CpuWatch<'_> {
        CpuWatch {
            root: server.root(),
            before: CpuSample::default(),
            spent: Duration::ZERO,
            progress: self.progress,
        }
    }

    /// Memory of each server: empty, then filled, in a process of its own.
    pub(super) fn memory(
        &mut self,
        work: &Work,
        plan: &Filling,
        contenders: &[Contender],
        samples: &mut Vec<MemorySample>,
    ) -> Result<(), BenchError> {
        for contender in contenders {
            let server = self.start(contender)?;
            self.progress
                .step(format!("{} {}", work.name, contender.name));
            let target = server.target();
            // A few first, once through the code paths, so that buffers and pools exist.
            match plan {
                Filling::Strings(shape) => {
                    let few = Shape {
                        keys: 1_000,
                        ..shape.clone()
                    };
                    fill(&target, &few, Fill::Always, self.progress)?;
                }
                Filling::Collections(load) => load.few().make(&target)?,
            }
            Client::connect(&target)?.must(&["FLUSHALL", "SYNC"])?;
            let (used_empty, resident_empty) = settled_memory(&server)?;
            match plan {
                Filling::Strings(shape) => {
                    fill(&target, shape, Fill::Always, self.progress)?;
                }
                Filling::Collections(load) => load.make(&target)?,
            }
            let (used, resident) = settled_memory(&server)?;
            let per_key =
                |full: u64, empty: u64| full.saturating_sub(empty) as f64 / plan.keys() as f64;
            samples.push(MemorySample {
                work: work.name.clone(),
                server: contender.name.clone(),
                keys: plan.keys(),
                used_per_key: per_key(used, used_empty),
                resident_per_key: per_key(resident, resident_empty),
                resident_empty,
            });
            self.progress.complete();
        }
        Ok(())
    }

    /// Inserts in order over one connection into an empty server; the longest batch is what counts.
    pub(super) fn growth(
        &mut self,
        work: &Work,
        shape: &Shape,
        contenders: &[Contender],
        samples: &mut Vec<Sample>,
    ) -> Result<(), BenchError> {
        let run = |command, extent, ascending| ClosedLoop {
            mix: Mix::only(command),
            shape: shape.clone(),
            pipeline: GROWTH_PIPELINE,
            connections: 1,
            threads: 1,
            warm_up: Duration::ZERO,
            extent,
            seed: 1,
            ascending,
        };
        self.each_afresh(work, contenders, |measure, server, name, repetition| {
            let count = Extent::Requests(shape.keys);
            let mut watch = measure.watch(server);
            let inserts = run(Command::Set, count, true).run(&server.target(), &mut watch)?;
            let spent = watch.spent;
            let mut sample = Sample::closed(&work.name, name, repetition, &inserts);
            sample.server_cpu_us = Some(cpu_per_op(spent, sample.replies));
            samples.push(sample);
            // The same number of reads shows what the machine alone does to the longest batch.
            let reads = run(Command::Get, count, false).run(&server.target(), measure.progress)?;
            let of_reads = format!("{} (reads)", work.name);
            samples.push(Sample::closed(&of_reads, name, repetition, &reads));
            Ok(())
        })
    }

    /// Lets `run` have a server of each contender, in every repetition a new process.
    pub(super) fn each_afresh(
        &mut self,
        work: &Work,
        contenders: &[Contender],
        mut run: impl FnMut(&mut Self, &Server, &str, u32) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        for repetition in 1..=work.repetitions {
            for contender in contenders {
                let server = self.start(contender)?;
                let name = &contender.name;
                self.progress
                    .step(format!("{} {repetition} {name}", work.name));
                run(self, &server, name, repetition)?;
                self.progress.complete();
            }
        }
        Ok(())
    }
}

fn warm_up(duration: Duration) -> Duration {
    WARM_UP_MAX.min(duration / 4)
}

pub(super) fn cpu_per_op(spent: Duration, operations: u64) -> f64 {
    spent.as_secs_f64() * 1e6 / operations.max(1) as f64
}

/// The first command of `mix` that the server does not know.
fn not_served(target: &Target, mix: &Mix) -> Result<Option<Command>, BenchError> {
    let mut client = Client::connect(target)?;
    for command in mix.commands() {
        // Without arguments: a known command complains about their number, PING answers.
        if let Value::Error(text) = client.call(&[command.name()])?
            && text.contains("unknown command")
        {
            return Ok(Some(command));
        }
    }
    Ok(None)
}

/// Used and resident bytes once they no longer change.
fn settled_memory(server: &Server) -> Result<(u64, u64), BenchError> {
    let read = || -> Result<(u64, u64), BenchError> {
        Ok((
            server.memory_field("used_memory")?,
            process_tree::resident_bytes(server.root()),
        ))
    };
    let begin = Instant::now();
    let mut last = read()?;
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = read()?;
        let is_near = |a: u64, b: u64| a.abs_diff(b) <= a / 1_000 + 4_096;
        let settled = is_near(now.0, last.0) && is_near(now.1, last.1);
        if settled || begin.elapsed() > MEMORY_SETTLE_MAX {
            return Ok(now);
        }
        last = now;
    }
}
