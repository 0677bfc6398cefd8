//! The supervisor: makes everything that is shared, starts the processes, and replaces what dies.
//!
//! ```text
//!   boot ──► Parts (lock, sockets, segments) ──► shell ◄──── signals, time, messages, deaths
//!                                                  │  events          ▲ actions
//!                                                  └──────► core ─────┘
//! ```
//!
//! What the rest of the system may rely on
//!   - A dead process is replaced in milliseconds, with the same memory, pages, bells and sockets.
//!   - The supervisor is in nobody's way: no request passes through it, and while it is stopped or
//!     gone everything goes on, except changes of settings and repairs.
//!   - CONFIG SET is answered after every live process has put the change in force.

mod boot;
mod child_tasks;
pub mod core;
mod finish;
pub mod instance;
pub mod layout;
mod limits;
mod listeners;
mod placement;
mod segments;
mod sharing;
mod shell;
mod spawn;
pub mod status;

use crate::config::Loaded;
use crate::exit::Failure;
use std::os::unix::net::UnixStream;

/// Runs a system until it ends; returns the exit code. `parent` is told when everything serves.
///
/// # Errors
/// What cannot be had: addresses, memory, descriptors, a lock.
pub fn run(loaded: Loaded, parent: Option<UnixStream>) -> Result<u8, Failure> {
    let (parts, core) = boot::build(loaded, parent)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System(format!("cannot start: {error}")))?;
    tokio::task::LocalSet::new().block_on(&runtime, shell::run(parts, core))
}
