//! The messages between the supervisor and its children. JSON, one message per packet.
//!
//! Why JSON: a few hundred messages in the life of a system; being able to read them in a trace is
//! worth more than bytes. Descriptors travel beside a message, in the order its type documents.
//!
//! Not here: sending and receiving (`control`), the typed events a child sees (`child`).

use crate::plan::{Descriptor, PartyId, Plan};
use proto::registry::{Library, Script};
use serde::{Deserialize, Serialize};

/// Which end of a link a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkRole {
    /// Sends requests, receives replies.
    Requester,
    /// Receives requests, sends replies.
    Responder,
}

/// One end of a link, as a message. Descriptors: link segment, party page of the peer, and the
/// peer's bell if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Number of the link.
    pub link: u32,
    /// Grows each time the link gets a new segment. The same generation means the same bytes.
    pub generation: u64,
    /// Which end this is.
    pub role: LinkRole,
    /// Which party of the receiving process the end belongs to.
    pub own: PartyId,
    /// The other end.
    pub peer: PartyId,
    /// Generation of the process at the other end.
    pub peer_generation: u64,
    /// Where the peer announces news for this link in the page of `own`.
    pub own_position: u32,
    /// Where `own` announces news for this link in the page of the peer.
    pub peer_position: u32,
    /// Whether a bell comes along.
    pub has_bell: bool,
}

/// How the process of a peer is, for error replies and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerState {
    /// It has died, a successor comes at once.
    Restarting,
    /// It keeps dying; the successor comes after a delay. Requests for it get an error.
    Down,
    /// A successor serves. Its memory may be empty, see `fresh`.
    Ready {
        /// It started with an empty arena although it had data before.
        fresh: bool,
    },
}

/// From the supervisor to a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToChild {
    /// Descriptors of the plan, in the order of the list. Several messages when there are many.
    Descriptors(Vec<Descriptor>),
    /// All descriptors have been sent: begin.
    Start(Box<Plan>),
    /// Attach one end of a link. If the link is attached already, this is a new generation of it:
    /// the old end is dropped first.
    AttachLink(LinkPlan),
    /// Drop one end of a link; its peer is gone for good or will come back with a new link.
    DetachLink {
        /// The link.
        link: u32,
    },
    /// Party page of another process, for statistics (INFO, memory of the whole system). Every
    /// process gets those of all others right after its start; a page stays the same for as long as
    /// the system lives. Descriptor: the page.
    Peer {
        /// Whose page.
        party: PartyId,
    },
    /// Arena and journal of another storage worker, for commands over the keys of several. Every
    /// storage worker gets those of all others right after its start, and a worker's again whenever
    /// its arena is made anew. Descriptors: arena memory, journal.
    Neighbour {
        /// The other worker.
        worker: u32,
        /// Which memory it is: the lease of the arena says whether it still is.
        arena_generation: u64,
    },
    /// A peer has changed its state. Links stay attached.
    PeerState {
        /// The peer.
        party: PartyId,
        /// Generation of the process that the state is about.
        generation: u64,
        /// Its state.
        state: PeerState,
    },
    /// The registry has a new version. Answer with [`FromChild::RegistrySeen`] once applied.
    Registry {
        /// The version.
        version: u64,
    },
    /// Answer to a request.
    Reply {
        /// Number of the request.
        request: u64,
        /// Text for the client: of the reply, or of the error.
        result: Result<String, String>,
    },
    /// Finish what is in flight, say [`FromChild::Drained`], exit.
    Drain {
        /// Milliseconds that are left for it.
        within_ms: u64,
    },
}

/// How the system is shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownHow {
    /// Make a snapshot (`Some(true)`), make none (`Some(false)`), or as configured.
    pub save: Option<bool>,
    /// Do not wait for replicas.
    pub now: bool,
    /// Go on although something failed.
    pub force: bool,
    /// Call off a shutdown that is under way.
    pub abort: bool,
}

/// What a child asks of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// CONFIG SET. The reply comes when every process has applied it. Errors are complete error
    /// texts without the leading `ERR`.
    SetSettings {
        /// Names and values as the client gave them.
        pairs: Vec<(String, String)>,
        /// The client is on this host.
        local: bool,
    },
    /// CONFIG REWRITE.
    RewriteConfig,
    /// A script for all to know. The reply comes when every process knows it.
    AddScript(Script),
    /// Forget all scripts.
    FlushScripts,
    /// Add or remove libraries of functions.
    ChangeLibraries(LibraryChange),
    /// SHUTDOWN. A reply comes only if it fails.
    Shutdown(ShutdownHow),
}

/// What happens to libraries of functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LibraryChange {
    /// These are added; with `replace` those of the same names go.
    Add {
        /// The libraries.
        libraries: Vec<Library>,
        /// Whether others may go for them.
        replace: bool,
    },
    /// These are the only ones.
    Set(Vec<Library>),
    /// This one goes.
    Delete(String),
}

/// From a child to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromChild {
    /// Everything of the plan is in place; the process serves.
    Ready,
    /// A link end is attached.
    Attached {
        /// The link.
        link: u32,
        /// Its generation.
        generation: u64,
    },
    /// A link end is dropped.
    Detached {
        /// The link.
        link: u32,
    },
    /// What stands in this link makes no sense. Its end is dropped; the supervisor makes it anew.
    LinkBroken {
        /// The link.
        link: u32,
        /// Its generation.
        generation: u64,
    },
    /// The settings of this version of the registry are in force here.
    RegistrySeen {
        /// The version.
        version: u64,
    },
    /// Something only the supervisor can do.
    Request {
        /// Chosen by the child; comes back in the reply.
        request: u64,
        /// What.
        body: Request,
    },
    /// The arena cannot be attached. The supervisor ends this process and starts a successor with
    /// an empty arena.
    ArenaUntrusted {
        /// Why, for the log.
        reason: String,
    },
    /// Nothing is in flight any more; the process exits next.
    Drained,
}
