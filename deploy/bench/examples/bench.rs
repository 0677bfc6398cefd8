//! The load generator on its own, for working on it without building the whole server.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench::run_from(std::env::args_os().skip(1))
}
