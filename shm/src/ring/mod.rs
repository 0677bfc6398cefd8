//! A ring of bytes with one producer and one consumer in different processes.
//!
//! Why bytes and not fixed records: frames are 40 bytes to a quarter of the ring, and a reply is
//! written in place, straight into the ring. Why the pages are mapped twice: a frame never wraps,
//! so every frame is one slice on both sides.
//!
//! ```text
//!   position (u64, only grows)      head                tail           head + capacity
//!   ------------------------------- | -- consumer's --- | -- producer's -- |
//!                                   |   published       | private, then    |
//!                                   |   frames          | published        |
//!
//!   control, 128 bytes each:  [ tail ][ head ][ want_space ][ note ]
//!   written by                producer consumer both         producer
//!                             (the producer sets `want_space`, the consumer clears it; `note` is
//!                             from one producer to its successor)
//!   data:                     [ capacity bytes ][ the same again ]
//! ```
//!
//! Protocol, with the names that both ends of an ordering carry
//!   R1  tail visible: the producer stores the tail with Release after the bytes; the consumer
//!       loads it with Acquire before it reads them.
//!   R2  head visible: the consumer stores the head with Release after it has read; the producer
//!       loads it with Acquire before it overwrites.
//!   R3  space asked: the producer stores `want_space`, fences, loads the head once more; the
//!       consumer stores the head, fences, loads `want_space`. One of them sees the other's store.
//!       The consumer clears the word and rings; the producer looks at its space again whenever it
//!       is rung, and asks again if that is not enough.
//!
//! What a survivor sees when the other one dies
//!   producer before R1   nothing: bytes behind the tail do not exist. A successor starts at the
//!                        published tail, or at the commit line of its journal.
//!   producer after R1    the frame, whole. Nobody may have rung: the supervisor rings everybody
//!                        after a death (`Doorbell::alarm`).
//!   producer after R3    a word that asks; the consumer clears it at its next release.
//!   consumer before R2   the producer sees the old head; a successor gets the same frames again,
//!                        or goes on where its commit line says.
//!   consumer after R2    the space. The answer to `want_space` may be missing: as above, the
//!                        supervisor rings everybody, and a successor's first release says so too.
//!
//! Cost: `reserve`, `commit`, `readable` and `consume` touch private memory only (a compare and an
//! addition each); `publish` is one store; `refresh` one load of the peer's line; `release` one
//! store and one fence. Two cache lines move per batch, not per frame.
//! Not here: sleeping and waking (`doorbell`), frames bigger than a quarter: they travel in parts that
//! the two ends cut and join, because only they know when a part may be sent again.

mod consumer;
#[cfg(loom)]
pub mod heap;
mod producer;

use std::ptr::NonNull;
use std::sync::Arc;

use crate::ShmError;
#[cfg(not(loom))]
use crate::mapping::Mapping;
use crate::sync::AtomicU64;

pub use consumer::RingConsumer;
pub use producer::RingProducer;

/// Positions start at 0 and grow by bytes; at 10 GB/s this is reached after 14 years. Beyond it
/// lies damage, and below it sums of a position and a length cannot overflow.
pub(crate) const POSITION_MAX: u64 = 1 << 62;

/// One shared word on its own pair of cache lines: processors fetch lines in pairs of 64 bytes.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Line {
    pub(crate) word: AtomicU64,
}

/// The shared words of a ring.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RingControl {
    pub(crate) tail: Line,
    pub(crate) head: Line,
    pub(crate) want_space: Line,
    pub(crate) note: Line,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RingControl>() == 512 && align_of::<RingControl>() == 128);

/// What keeps the memory of a ring alive.
#[cfg(not(loom))]
pub(crate) type Keep = (Arc<Mapping>, Mapping);
#[cfg(loom)]
pub(crate) type Keep = Arc<heap::HeapMemory>;

/// Where one ring lies in this process. The pointers are valid as long as `keep` lives (S1); `data`
/// has twice `capacity` bytes, the second half mirroring the first.
#[derive(Debug)]
pub(crate) struct RingMemory {
    pub(crate) control: NonNull<RingControl>,
    pub(crate) data: NonNull<u8>,
    pub(crate) capacity: u64,
    #[cfg_attr(not(loom), expect(dead_code, reason = "held for its drop only"))]
    pub(crate) keep: Keep,
}

/// Frames are padded to 8 bytes, so every published position is a multiple of 8.
#[inline]
pub(crate) fn is_aligned(position: u64) -> bool {
    position.is_multiple_of(8)
}

/// Head and tail as they stand in shared memory, checked against each other.
///
/// # Errors
/// [`ShmError::CorruptPosition`] if no working ring could look like that.
fn published_positions(control: &RingControl, capacity: u64) -> Result<(u64, u64), ShmError> {
    use crate::sync::Ordering;
    let head = control.head.word.load(Ordering::Acquire); // pairs with R2: head visible
    let tail = control.tail.word.load(Ordering::Acquire); // pairs with R1: tail visible
    if head > POSITION_MAX || !is_aligned(head) {
        return Err(ShmError::CorruptPosition {
            what: "head of a ring",
            found: head,
            low: 0,
            high: POSITION_MAX,
        });
    }
    if tail < head || tail - head > capacity || !is_aligned(tail) {
        return Err(ShmError::CorruptPosition {
            what: "tail of a ring",
            found: tail,
            low: head,
            high: head + capacity,
        });
    }
    Ok((head, tail))
}
