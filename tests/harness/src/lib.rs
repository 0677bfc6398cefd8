//! Starts servers, kills their parts, and speaks transcripts to them.
//!
//! ```text
//!   transcript ──> words, pattern ──> reply          what is said, what is expected, what came
//!        |                              ^
//!        +──> client ───────────────────+            one socket
//!        +──> server ──> ports, process              our processes, or a Redis, in a folder of their own
//!   ledger ──> client                                remembers every write that was acknowledged
//!   skip                                             says loudly what could not be tested
//! ```
//!
//! The same transcript runs against `sirocco` with 1, 2 and 4 storage workers and against a real Redis, in both
//! protocols; see [`transcript`] for the format and [`transcripts!`] for the way into a test binary.
//!
//! Rules for tests that use it: no sleeping for luck ([`eventually`] with its watchdog instead), no upper bound
//! on run time, only processes that the test started are ever signalled.

pub mod client;
pub mod history;
pub mod ledger;
pub mod pattern;
pub mod ports;
pub mod process;
pub mod reply;
pub mod server;
pub mod skip;
pub mod transcript;
pub mod words;

use std::time::{Duration, Instant};

pub use client::{Address, Client, PATIENCE, ReadError};
pub use reply::{Aggregate, Reply};
pub use server::{Kind, Server, Setup};

/// Sleeps; the one place of the tests that does.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Asks again and again until the answer is yes.
///
/// # Panics
/// When it is still no after [`PATIENCE`].
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually_within(PATIENCE, what, &mut is_so);
}

/// The same with another patience.
///
/// # Panics
/// When it is still no after `patience`.
#[track_caller]
pub fn eventually_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < patience,
            "still not so after {patience:?}: {what}"
        );
        pause(Duration::from_millis(10));
    }
}

/// The folder of the whole workspace.
#[must_use]
pub fn workspace() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The executable under test; for test targets of the package `sirocco` only.
#[macro_export]
macro_rules! sirocco {
    () => {
        std::path::Path::new(env!("CARGO_BIN_EXE_sirocco"))
    };
}
