//! What two processes share in memory: segments, rings, doorbells, pages, arenas and journals.
//!
//! This crate knows bytes, not Redis: no frame, command or key appears here. It holds nearly all
//! unsafe code of the project, so that everybody else can forbid it.
//!
//! ```text
//!  supervisor            makes every segment (a sealed memfd) and hands its descriptor down
//!
//!  gateway thread                                        storage worker
//!    RingProducer ==== requests (LinkSegment) ====>        RingConsumer
//!    RingConsumer <=== replies  (LinkSegment) =====        RingProducer
//!    Party: doorbell, news, state, counters                Party: the same
//!                                                          Journal: what a successor must know
//!    RegistrySegment: read by all, written by the supervisor
//! ```
//!
//! How far a peer is trusted: it is our own code. It may die between any two instructions, be of
//! another build, or be damaged by a bug; it is not an attacker. So every number that comes from
//! shared memory is copied once, checked against private bounds and used from the copy; a failed
//! check is a [`ShmError`], never a panic and never an access outside the mapping. The one
//! zero-copy exception are the bytes of a ring between head and tail (S4): a peer that breaks the
//! protocol can change them while they are read, and then the reader sees other bytes, inside the
//! same bounds.
//!
//! Invariants, cited by SAFETY comments
//!   S1  A mapping stays at its address as long as a value that points into it lives, and its file
//!       cannot shrink under it (sealed), so no access faults.
//!   S2  Every offset and length used on a mapping was checked against its length when the segment
//!       was opened, and lives in private memory since.
//!   S3  Shared memory is touched through atomics or raw pointers only, except for S4.
//!   S4  Ring bytes from head to tail belong to the consumer, the others to the producer. Slices
//!       are made only inside the own part, and never outlive the next move of the position.
//!   S5  A ring has one producer and one consumer: neither can be cloned, and the supervisor gives
//!       each end of a link to one process at a time.
//!   S6  Shared structures consist of atomics of explicit width at natural alignment. All of their
//!       bit patterns are valid, zero is the initial state.
//!
//! Not here: what the bytes mean (`proto`), who gets which descriptor (`runtime`, supervisor).

#![deny(unsafe_code)]

#[cfg(not(loom))]
#[expect(
    unsafe_code,
    reason = "the allocator hands out raw memory of the arena (A1 to A5)"
)]
pub mod arena;
pub mod error;
pub mod fault;
pub mod sync;

mod doorbell;
mod fd_passing;
mod lease;
mod mapping;
mod news;
mod ring;
mod segment;
mod versioned;

#[cfg(not(loom))]
mod journal;
#[cfg(not(loom))]
mod link;
#[cfg(not(loom))]
mod party;
#[cfg(not(loom))]
mod registry;

pub use doorbell::{Bell, Doorbell};
pub use error::ShmError;
pub use fd_passing::{eventfd, recv_with_fds, send_with_fds};
#[cfg(loom)]
pub use lease::LeaseWords;
pub use mapping::{Mapping, page_size};
pub use news::{NEWS_POSITIONS, News};
#[cfg(loom)]
pub use ring::heap;
pub use ring::{RingConsumer, RingProducer};
pub use segment::{Segment, SegmentKind};
pub use versioned::Versioned;

#[cfg(not(loom))]
pub use journal::{CommitLine, Journal, LOG_BYTES_DEFAULT};
#[cfg(not(loom))]
pub use lease::{LEASE_WORKERS_MAX, Lease};
#[cfg(not(loom))]
pub use link::{LinkSegment, RING_BYTES_MIN};
#[cfg(not(loom))]
pub use party::{CONTROL_WORDS, Counters, Party, PartyState};
#[cfg(not(loom))]
pub use registry::RegistrySegment;
