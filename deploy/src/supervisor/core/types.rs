//! What goes into the core and what comes out.

use super::restart::Death;
use runtime::message::{FromChild, ToChild};
use runtime::plan::ArenaState;
use shm::PartyState;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process runs.
    Started {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// Its number in the system.
        pid: u32,
    },
    /// A process is gone, or could not be started.
    Died {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// How it ended.
        death: Death,
    },
    /// A process said something.
    Message {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// What.
        message: FromChild,
    },
    /// The system shows a process as stopped, or as running again.
    Stopped {
        /// Position of its place.
        process: usize,
        /// Whether it is stopped.
        stopped: bool,
    },
    /// SIGTERM or SIGINT; `now` if the settings ask for a fast end.
    Signal {
        /// Do not wait for what is in flight.
        now: bool,
    },
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run a process and hand it its plan and its links.
    Start {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// For its plan.
        deaths_in_a_row: u32,
        /// For its plan.
        arena: ArenaState,
    },
    /// End a process with SIGKILL.
    Kill {
        /// Position of its place.
        process: usize,
    },
    /// Send a message without descriptors.
    Send {
        /// Position of the receiver's place.
        process: usize,
        /// The message.
        message: ToChild,
    },
    /// Make new segments for all links of a gateway process, or of the broker, and give the running
    /// processes at their other ends theirs.
    RenewLinks {
        /// Position of its place.
        process: usize,
    },
    /// Make a new segment for a link, unless that has been done since this generation, and give both
    /// parties their ends.
    RenewLink {
        /// Number of the gateway thread.
        thread: u32,
        /// Number of the worker.
        worker: u32,
        /// The generation that is of no use any more.
        generation: u64,
    },
    /// Give a worker an empty arena, and tell all other workers.
    FreshArena {
        /// Position of the worker's place.
        process: usize,
    },
    /// Free what a dead worker holds, and drop what it wants, of the leases of some workers' arenas.
    Forget {
        /// Number of the dead worker.
        dead: u32,
        /// Numbers of the workers.
        leases: Vec<u32>,
    },
    /// Write state, generation and process number into the pages of a process.
    Page {
        /// Position of its place.
        process: usize,
        /// State.
        state: PartyState,
        /// Generation.
        generation: u64,
        /// Number in the system, 0 for none.
        pid: u32,
    },
    /// Wake every party: a dead one may have owed somebody a bell.
    AlarmAll,
    /// Publish the registry; this will be its version.
    Publish {
        /// The version.
        version: u64,
    },
    /// Rewrite the configuration file and answer.
    RewriteConfig {
        /// Position of the asker's place.
        process: usize,
        /// Number of the request.
        request: u64,
    },
    /// Every process serves, for the first time.
    AllReady,
    /// Something an operator should read.
    Log {
        /// How urgent.
        level: tracing::Level,
        /// What.
        text: String,
    },
    /// The end.
    Exit {
        /// Exit code.
        code: u8,
    },
}

/// Facts about the machine that a change of settings is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Connections that the descriptor limit allows.
    pub clients_max: u64,
    /// Whether a directory can be used; the error is a text for the client.
    pub directory: fn(&str) -> Result<(), String>,
}
