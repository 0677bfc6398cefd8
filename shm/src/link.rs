//! A link: the pair of rings between two parties, in one segment.
//!
//! ```text
//!   page 0   | header 64 | .. | requests: control | replies: control | side: control |
//!            0                 128                 640                1152            1664
//!   page 1   | request data, `ring_bytes` |     each mapped twice, back to back
//!   then     | reply data,   `ring_bytes` |
//!   then     | side data, 16 pages        |
//! ```
//!
//! The side ring goes the way of the requests. It is for what a restarted responder needs before it
//! looks at the requests, which may fill their ring: commands that waited at its predecessor.
//!
//! The supervisor creates it and hands the descriptor to both parties. The requester (a gateway
//! thread) writes requests and reads replies, the responder (a worker) the other way round. A
//! responder's successor gets the same segment and may resume at positions from its journal.
//!
//! Cost: two rings of memory, taken when the link is made, so that a shortage is an error then and
//! not a SIGBUS later; five mappings per attached end, three more where the side ring is used.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::ring::{RingControl, RingMemory};
use crate::{Mapping, RingConsumer, RingProducer, Segment, SegmentKind, ShmError, page_size};

/// Smallest ring: a quarter of it must hold the common frames.
pub const RING_BYTES_MIN: usize = 64 * 1024;

/// Largest ring. Nothing measured gains from more than 1 MiB; this keeps sums far from overflow.
const RING_BYTES_MAX: usize = 1 << 30;

/// Offset of the control words of the two rings.
const CONTROL_OFFSETS: [usize; 3] = [
    128,
    128 + size_of::<RingControl>(),
    128 + 2 * size_of::<RingControl>(),
];

const REQUESTS: usize = 0;
const REPLIES: usize = 1;
const SIDE: usize = 2;

/// Pages of the side ring.
const SIDE_PAGES: usize = 16;

/// Bytes of a segment with rings of `ring_bytes`.
fn segment_bytes(ring_bytes: usize) -> usize {
    page_size() + 2 * ring_bytes + side_bytes()
}

/// Bytes of the side ring: what goes through it is read at once, and nothing is kept in it.
fn side_bytes() -> usize {
    SIDE_PAGES * page_size()
}

/// A link that nobody (in this process) is attached to yet.
#[derive(Debug)]
pub struct LinkSegment {
    segment: Segment,
    ring_bytes: usize,
}

impl LinkSegment {
    /// Makes a link with two empty rings of `ring_bytes` each (a power of two, at least
    /// [`RING_BYTES_MIN`]).
    ///
    /// # Errors
    /// [`ShmError::BadSize`], or as for [`Segment::create`].
    pub fn create(name: &str, ring_bytes: usize, fingerprint: u64) -> Result<Self, ShmError> {
        let len = segment_bytes(checked_ring_bytes(ring_bytes as u64)?);
        let shape = [ring_bytes as u64, 0, 0];
        let segment = Segment::create_shaped(name, SegmentKind::Link, len, fingerprint, shape)?;
        segment.reserve(0, len)?;
        Ok(Self {
            segment,
            ring_bytes,
        })
    }

    /// Opens a link that the supervisor made.
    ///
    /// # Errors
    /// As for [`Segment::open`]; [`ShmError::BadSize`] or [`ShmError::BadLength`] if its rings do
    /// not fit into it.
    pub fn open(fd: OwnedFd, fingerprint: u64) -> Result<Self, ShmError> {
        let segment = Segment::open(fd, SegmentKind::Link, fingerprint)?;
        let ring_bytes = checked_ring_bytes(segment.shape()[0])?;
        let want = segment_bytes(ring_bytes);
        if segment.len() != want {
            return Err(ShmError::BadLength {
                found: segment.len() as u64,
                want: want as u64,
            });
        }
        Ok(Self {
            segment,
            ring_bytes,
        })
    }

    /// The descriptor, to hand to both parties.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Bytes per ring.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// A second handle to the same link.
    ///
    /// # Errors
    /// [`ShmError::OutOfDescriptors`] or [`ShmError::Io`].
    pub fn try_clone(&self) -> Result<Self, ShmError> {
        Ok(Self {
            segment: self.segment.try_clone()?,
            ring_bytes: self.ring_bytes,
        })
    }

    /// Attaches as the side that writes requests and reads replies, at the published positions.
    ///
    /// # Errors
    /// [`ShmError::OutOfMemory`], or [`ShmError::CorruptPosition`] if the positions make no sense.
    pub fn requester(self) -> Result<(RingProducer, RingConsumer), ShmError> {
        let [requests, replies] = self.map()?;
        Ok((
            RingProducer::attach(requests, None)?,
            RingConsumer::attach(replies, None)?,
        ))
    }

    /// Attaches as the side that reads requests and writes replies: at the published positions, or
    /// at those of the journal's commit line (request position, reply position). What is published
    /// cannot be taken back: a position behind the published one counts as the published one.
    ///
    /// # Errors
    /// [`ShmError::OutOfMemory`], or [`ShmError::CorruptPosition`] if the positions make no sense.
    pub fn responder(
        self,
        resume: Option<(u64, u64)>,
    ) -> Result<(RingConsumer, RingProducer), ShmError> {
        let [requests, replies] = self.map()?;
        let consumer = RingConsumer::attach(requests, resume.map(|(request, _)| request))?;
        let producer = RingProducer::attach(replies, resume.map(|(_, reply)| reply))?;
        Ok((consumer, producer))
    }

    /// The requester's end of the side ring, at the published positions.
    ///
    /// # Errors
    /// As for [`LinkSegment::requester`].
    pub fn side_producer(&self) -> Result<RingProducer, ShmError> {
        RingProducer::attach(self.map_ring(&self.map_control()?, SIDE)?, None)
    }

    /// The responder's end of the side ring, at the published positions.
    ///
    /// # Errors
    /// As for [`LinkSegment::responder`].
    pub fn side_consumer(&self) -> Result<RingConsumer, ShmError> {
        RingConsumer::attach(self.map_ring(&self.map_control()?, SIDE)?, None)
    }

    fn map_control(&self) -> Result<Arc<Mapping>, ShmError> {
        let control = Mapping::shared(self.segment.fd(), 0, page_size())?;
        Ok(Arc::new(control))
    }

    fn map(&self) -> Result<[RingMemory; 2], ShmError> {
        let control = self.map_control()?;
        Ok([
            self.map_ring(&control, REQUESTS)?,
            self.map_ring(&control, REPLIES)?,
        ])
    }

    fn map_ring(&self, control: &Arc<Mapping>, which: usize) -> Result<RingMemory, ShmError> {
        let offset = page_size() + which * self.ring_bytes;
        let bytes = if which == SIDE {
            side_bytes()
        } else {
            self.ring_bytes
        };
        let data = Mapping::twice(self.segment.fd(), offset, bytes)?;
        Ok(RingMemory {
            control: control.at::<RingControl>(CONTROL_OFFSETS[which], 1)?,
            data: data.base(),
            capacity: bytes as u64,
            keep: (Arc::clone(control), data),
        })
    }
}

fn checked_ring_bytes(found: u64) -> Result<usize, ShmError> {
    let bad_size = ShmError::BadSize {
        what: "ring size",
        found,
    };
    let bytes = usize::try_from(found).map_err(|_| bad_size.clone())?;
    let fits = (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&bytes);
    if !fits || !bytes.is_power_of_two() || !bytes.is_multiple_of(page_size()) {
        return Err(bad_size);
    }
    Ok(bytes)
}
