//! The words that the processes share. Two processes agree on nothing that is not in here.
//!
//! Why a crate of its own: a gateway must know everything *about* a command (does it exist, which
//! arguments are keys, where does it run) without linking the code that runs it, and a worker must
//! write exactly the bytes that a client expects without knowing about sockets. Both read the same
//! tables and the same codecs from here.
//!
//! ```text
//!   catalogue   one row per command; lookup by name, key extraction, routes, fingerprint
//!   command_docs  what COMMAND answers, from the rows
//!   frame       what travels over a ring: headers, packed arguments
//!   resp        what travels over a socket: request parser, reply writer, reply reader
//!   number      integers and floating point to text and back, digit for digit as Redis does it
//!   slot, glob  key to slot; the one glob matcher
//!   error       every error text that a client can see
//!   digest, sha1  names for data that anybody can compute
//!   counters    places in a statistics page
//!   settings    one row per setting
//!   registry    what the supervisor publishes for everybody
//!   ids, time, limits
//! ```
//!
//! Invariants
//!   - No unsafe code, no I/O, no clock, no thread, no global mutable state: every function maps
//!     bytes and numbers to bytes and numbers.
//!   - Nothing that comes from a socket or from shared memory makes a function in here panic.
//!
//! Not here: memory (`shm`), the life of a process (`runtime`), what a command does (the processes).
#![forbid(unsafe_code)]

pub mod bytes;
pub mod catalogue;
pub mod command_docs;
pub mod control_words;
pub mod counters;
pub mod cursor;
pub mod digest;
pub mod error;
pub mod frame;
pub mod glob;
pub mod ids;
pub mod latency;
pub mod limits;
pub mod number;
pub mod registry;
pub mod resp;
pub mod script_reach;
pub mod settings;
pub mod sha1;
pub mod slot;
pub mod slow_call;
pub mod time;

pub use error::CommandError;
