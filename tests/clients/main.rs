//! The clients that people use: they connect and work, unchanged.
//!
//! A tool that is not installed is reported as skipped; `.ci/run` installs them. Not here: what commands answer
//! (`commands`).

mod redis_benchmark;
mod redis_cli;
mod redis_py;
mod redis_rs;
