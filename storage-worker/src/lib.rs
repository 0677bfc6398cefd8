//! The storage worker role: one part of the keyspace, served by one thread.
//!
//! ```text
//!   request rings --> event_loop --> engine --> commands --> keyspace (in the arena)
//!   reply rings   <--    |                                      |
//!                        +--> journal: commit lines, brackets <-+
//! ```
//!
//! Layers, each using only what is below it
//!
//! ```text
//!   event_loop    the shell: rings, doorbell, timers, control messages, death of a predecessor
//!   engine        the core: request, time and seed in; reply bytes and effects out
//!   scripts       the scripts of this worker and what runs them
//!   unit          several commands as one, inside of a handler
//!   commands      one function per row of the catalogue
//!   context       what such a function may touch
//!   rdb           values as bytes: DUMP, RESTORE, snapshots
//!   keyspace      databases, dictionaries, entries, expiry, eviction: everything in the arena
//!   collections   data structures in the arena, algorithms over plain bytes
//! ```
//!
//! Nothing above `event_loop` reads a clock, a ring or a file, so the same inputs give the same
//! outputs in a test as in the running system.

#![deny(unsafe_code)]

pub mod blocking;
pub mod collections;
pub mod commands;
pub mod context;
pub mod crossing;
pub mod engine;
mod event_loop;
pub mod functions;
#[expect(
    unsafe_code,
    reason = "entries, tables and the wheel are raw memory of the arena (E1 to E3, D1 to D5, W1 to W5)"
)]
pub mod keyspace;
pub mod neighbours;
pub mod notify;
pub mod random;
pub mod rdb;
pub mod scripts;
pub mod settings;
pub mod unit;

/// Runs a storage worker until it is drained.
///
/// # Errors
/// A sentence for the log if it cannot start.
pub fn run(child: runtime::Child) -> Result<(), String> {
    shm::fault::arm_from_environment().map_err(|error| error.to_string())?;
    event_loop::start(child)
        .map_err(|error| error.to_string())?
        .run();
    Ok(())
}
