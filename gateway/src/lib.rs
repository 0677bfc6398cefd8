//! The gateway: clients on one side, storage workers and the pub/sub broker on the other.
//!
//! ```text
//!              gateway process
//!   clients    +---------------------------------------------+
//!   ───TCP───> | thread 0: driver ── core ── lanes            | ═rings═> storage worker 0
//!   ──unix───> | thread 1: driver ── core ── lanes            | ═rings═> storage worker 1
//!              | main thread: control socket, rates           | ═rings═> pub/sub broker
//!              +---------------------------------------------+
//! ```
//!
//! The life of a request: `driver` reads a socket into the thread's buffer; `reading` cuts it into
//! commands; `admission` looks each one up and decides whether it may run now; `router` writes it into
//! the ring of the worker that owns its key, or a handler of `commands` answers it. The worker's reply
//! comes back as a frame; `answers` hands it to `order`, which puts it into the output of its connection
//! in the order of requests; `driver` writes the output to the socket.
//!
//! Threads share nothing that an ordinary command touches. Each has sockets, rings, counters and memory
//! of its own; letters (`mail`) carry the few things that concern all of them.
//!
//! Reading order: `core`, `reading`, `admission`, `router`, `answers`, `order`, then `driver`.

mod admission;
mod answers;
mod blocking;
mod call;
mod clients;
mod commands;
mod connection;
mod core;
mod crossing;
mod driver;
mod gather;
mod half;
mod info;
mod internal;
mod lanes;
mod limits;
mod listener;
mod live;
mod mail;
mod order;
mod process;
mod pubsub;
mod reading;
mod recall;
mod router;
mod running;
mod scan;
mod script_busy;
mod scripts;
mod shared;
mod slow_log;
mod sockets;
mod split;
mod stash;
mod steps;
mod tally;
mod telling;
#[cfg(test)]
mod tests;
mod timers;
mod transaction;
mod transfer;
mod upkeep;
mod watched;

pub use process::run;
