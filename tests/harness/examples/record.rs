//! Plays transcripts to a real Redis: `cargo run -p harness --example record -- tests/commands/strings/*.resp`.
//!
//! With `UPDATE_EXPECT=1` it writes what Redis answered over what does not fit. It needs no build of the server,
//! so it is the quick way to write a new transcript. `SIROCCO_PLAY=path` plays to that `sirocco` instead, with
//! `SIROCCO_WORKERS` workers (default 1).

use std::path::Path;
use std::process::ExitCode;

use harness::server::{Kind, reference};
use harness::transcript::check_file;

fn main() -> ExitCode {
    let ours = std::env::var("SIROCCO_PLAY").ok().map(|program| {
        let workers = std::env::var("SIROCCO_WORKERS")
            .ok()
            .and_then(|count| count.parse().ok());
        Kind::sirocco(Path::new(&program), workers.unwrap_or(1))
    });
    let Some(kind) = ours.or_else(reference) else {
        return ExitCode::FAILURE;
    };
    let mut failed = false;
    for file in std::env::args().skip(1) {
        failed |= std::panic::catch_unwind(|| check_file(&file, &kind)).is_err();
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
