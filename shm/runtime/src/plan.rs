//! What a child is told at its start: who it is, how big the system is, what its descriptors are.
//!
//! Why one value: a child asks nobody and reads no file or environment; everything it needs to
//! begin is in its plan, everything that can change is in the registry.
//!
//! Not here: settings and slot map (`proto::registry`), links (they come as messages, because they
//! also come later).

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a process does. The number is the kind of its parties in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u32)]
pub enum Role {
    /// Serves sockets with several threads; each thread is a party.
    Gateway = 1,
    /// Owns a part of the keyspace; one party.
    StorageWorker = 2,
    /// Knows who has subscribed to what, and hands out messages; one party.
    Broker = 3,
}

impl Role {
    /// The hidden subcommand of the executable, and the name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::StorageWorker => "storage-worker",
            Self::Broker => "pubsub-broker",
        }
    }
}

/// One end of links: a gateway thread, a storage worker or the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartyId {
    /// What it is.
    pub role: Role,
    /// Which: number of the gateway thread, counted over all gateway processes, or of the worker.
    pub index: u32,
}

impl PartyId {
    /// The gateway thread with this number.
    pub fn gateway_thread(index: u32) -> Self {
        Self {
            role: Role::Gateway,
            index,
        }
    }

    /// The storage worker with this number.
    pub fn storage_worker(index: u32) -> Self {
        Self {
            role: Role::StorageWorker,
            index,
        }
    }

    /// The pub/sub broker.
    pub fn broker() -> Self {
        Self {
            role: Role::Broker,
            index: 0,
        }
    }
}

impl fmt::Display for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Role::Gateway => write!(f, "gateway thread {}", self.index),
            Role::StorageWorker => write!(f, "storage worker {}", self.index),
            Role::Broker => write!(f, "pub/sub broker"),
        }
    }
}

/// Number of the link between a gateway thread and a storage worker: 256 per thread.
pub fn link_id(gateway_thread: u32, storage_worker: u32) -> u32 {
    gateway_thread * 256 + storage_worker
}

/// Gateway thread and storage worker of a link.
#[must_use]
pub fn parties_of_link(link: u32) -> (u32, u32) {
    (link / 256, link % 256)
}

/// Links of the broker are numbered from here.
const BROKER_LINKS: u32 = 1 << 24;

/// Number of the link between the broker and one of its peers, by the peer's place among them.
pub fn broker_link_id(place: u32) -> u32 {
    BROKER_LINKS + place
}

/// Whether this is the number of a link of the broker.
pub fn is_broker_link(link: u32) -> bool {
    link >= BROKER_LINKS
}

/// What a descriptor is. Descriptors arrive in messages before [`Plan`]; see
/// [`crate::Child::take`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Descriptor {
    /// The registry segment.
    Registry,
    /// The party page of the child's own party with this index.
    Party {
        /// Index of the party, as in [`PartyId`].
        index: u32,
    },
    /// The eventfd that wakes the child's own party with this index (gateway threads only;
    /// workers sleep on the futex in their page).
    Bell {
        /// Index of the party.
        index: u32,
    },
    /// The arena of a storage worker.
    Arena,
    /// The journal of a storage worker.
    Journal,
    /// A listening TCP socket, non-blocking, that exactly one gateway thread polls.
    TcpListener {
        /// The thread.
        thread: u32,
        /// `address:port` for logs and INFO.
        address: String,
    },
    /// The listening unix socket, non-blocking; any number of threads may accept from it.
    UnixListener {
        /// Its path.
        path: String,
    },
}

/// What is in a worker's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArenaState {
    /// Nothing yet: format it.
    Fresh,
    /// The data of a predecessor: attach it.
    Kept,
}

/// Fingerprints that segments of this build carry; a process refuses segments with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Of everything in `proto` and `shm` that two processes must agree on.
    pub system: u64,
}

/// What a child is told at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What the process does.
    pub role: Role,
    /// Which process of its role.
    pub index: u32,
    /// How many processes have had this role and index, this one included.
    pub generation: u64,
    /// Predecessors that died soon after their start, one after another, by their own doing (being
    /// killed from outside does not count). A worker that finds 1 or more should not execute again
    /// the command that its predecessor was at.
    pub deaths_in_a_row: u32,
    /// First party index of this process; a gateway process has `gateway_threads` of them from here.
    pub first_party: u32,
    /// Parties of this process: threads of a gateway, 1 for a worker.
    pub parties: u32,
    /// Processor for each party, in order; `None` leaves the choice to the kernel.
    pub cpus: Vec<Option<usize>>,
    /// Threads of all gateways.
    pub gateway_threads: u32,
    /// Storage workers.
    pub storage_workers: u32,
    /// State of the arena; meaningful for storage workers.
    pub arena: ArenaState,
    /// Bytes that the arena may grow to; meaningful for storage workers.
    pub arena_bytes: u64,
    /// Fingerprints of the supervisor's build.
    pub fingerprints: Fingerprints,
}

impl Plan {
    /// Name in logs, such as `gateway` or `storage-worker.3`.
    pub fn log_name(&self) -> String {
        format!("{}.{}", self.role.name(), self.index)
    }
}
