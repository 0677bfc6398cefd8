//! `sirocco bench`: a load generator for any server that speaks RESP, and a comparison of servers.
//!
//! Three ways to measure, one subcommand each:
//!   - `throughput`: closed loop; as much as the server can do;
//!   - `latency`: open loop; fixed rates, with latency counted from the time a request was *meant*
//!     to be sent, so that a slow server cannot hide its queue;
//!   - `compare`: starts several servers, measures them in turn, and holds the results against what
//!     must be reached.
//!
//! Why a generator of our own: on a small machine it shares the cores with the server, so whatever
//! it costs is missing from the result. Requests are rendered before the run, keys are patched in
//! place, replies are counted without being stored, and one thread drives all connections.

#![forbid(unsafe_code)]

mod arrivals;
mod chart;
mod client;
mod closed_loop;
mod command_line;
mod compare;
mod connection;
mod error;
mod interrupt;
mod latency;
mod open_loop;
mod process_tree;
mod progress;
mod random;
mod reply_skipper;
mod report;
#[cfg(test)]
mod responder;
mod search;
mod server;
mod tally;
mod throughput;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

pub use client::Target;
pub use closed_loop::{ClosedLoop, Extent, Observer, Outcome, Unobserved};
pub use error::BenchError;
pub use reply_skipper::{MalformedReply, Reply, ReplySkipper};
pub use tally::{Latencies, Tally};
pub use workload::{Command, Mix, Shape};

/// Arguments of `sirocco bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub command: BenchCommand,
}

/// Ways to measure.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// How much a server can do: closed loop, every connection always has a batch in flight
    Throughput(throughput::ThroughputArgs),
    /// How long requests take at fixed rates: open loop, latency from the intended time of sending
    Latency(latency::LatencyArgs),
    /// Several servers in turn, against each other and against what must be reached
    Compare(Box<compare::CompareArgs>),
}

#[derive(Debug, clap::Parser)]
#[command(
    name = "sirocco bench",
    version,
    about = "Measures servers that speak RESP"
)]
struct CommandLine {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Like [`run`], with the words after `sirocco bench` still to be parsed. Help and mistakes are
/// answered here.
pub fn run_from(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let name = OsString::from("sirocco bench");
    match CommandLine::try_parse_from(std::iter::once(name).chain(arguments)) {
        Ok(line) => run(line.bench),
        Err(error) => {
            // If even this cannot be printed, the exit code remains.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { 2 } else { 0 })
        }
    }
}

/// Runs what `args` ask for; prints results on standard output and errors on standard error.
pub fn run(args: BenchArgs) -> ExitCode {
    let outcome = match args.command {
        BenchCommand::Throughput(args) => throughput::run(&args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Latency(args) => latency::run(&args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Compare(args) => compare::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sirocco bench: {error}");
            ExitCode::from(if matches!(error, BenchError::Usage(_)) {
                2
            } else {
                1
            })
        }
    }
}
