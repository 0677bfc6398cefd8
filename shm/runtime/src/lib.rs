//! The life of a process: how it is started, what it is handed, how it talks to the supervisor.
//!
//! ```text
//!   supervisor                                  child (`sirocco gateway`, `sirocco storage-worker`)
//!     │  socketpair (SOCK_SEQPACKET), one end becomes the child's standard input
//!     ├─ Descriptors [registry, parties, bells, arena, ...] ──►  Child::from_control_socket
//!     ├─ Start(plan) ─────────────────────────────────────────►  logging, signals, checks
//!     ├─ AttachLink (ring memfd, party, bell of the peer) ────►  ControlReceiver::next_event
//!     │  ◄───────────────────────────── Ready, Attached ───────  ControlSender::send
//!     ├─ Registry{version} ──────────►  ◄── RegistrySeen{version}
//!     ├─ Reply{request} ◄────────────── Request{request, body}
//!     └─ Drain ──────────────────────►  finish, Drained, exit 0
//! ```
//!
//! Invariants
//!   - A child works without its supervisor: losing the control socket changes nothing at once; only
//!     after `supervisor-timeout` seconds does the child see [`ChildEvent::Drain`].
//!   - Nothing of a request's path is in here: descriptors and messages only at start and on change.
//!   - No unsafe code; descriptors are owned values from the first moment on.
//!
//! Why the control socket is standard input: the standard library hands exactly three descriptors
//! to a child without unsafe code, and a server reads nothing from its standard input.
//!
//! Not here: rings, pages and arenas (`shm`), the words in frames (`proto`), who is started when
//! (the supervisor in `deploy`).
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod child;
pub mod control;
pub mod cpus;
pub mod logging;
pub mod message;
pub mod outbox;
pub mod plan;
pub mod signals;

pub use child::{AttachLink, Child, ChildError, ChildEvent, ControlReceiver};
pub use control::{ControlError, ControlSender};
pub use message::{
    FromChild, LibraryChange, LinkPlan, LinkRole, PeerState, Request, ShutdownHow, ToChild,
};
pub use outbox::{Inbox, Outbox, unbegun};
pub use plan::{
    ArenaState, Descriptor, Fingerprints, PartyId, Plan, Role, broker_link_id, is_broker_link,
    link_id,
};
