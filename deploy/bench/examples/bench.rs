//! The load generator on its own, for working on it without building the whole server.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "bench")]
struct Options {
    #[command(flatten)]
    bench: bench::BenchArgs,
}

fn main() -> ExitCode {
    bench::run(Options::parse().bench)
}
