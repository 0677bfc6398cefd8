//! What a successor hears from the gateway thread at the other end of a link before it serves it.
//!
//! ```text
//!   worker    reply ring   ... predecessor's replies | Resume(epoch)
//!   gateway   side ring    Resume(epoch, begins) | Parked pieces ... | Resume(epoch, all sent)
//! ```
//!
//! Requests of clients stand in the request ring meanwhile and are not looked at: a push among them
//! would find nobody waiting, and a pop would take what somebody else has waited for longer.
//!
//! What is found in the side ring before this epoch's beginning was meant for a predecessor that
//! died, too, and is dropped. Nothing is kept in the ring: what is read is given back at once.
//!
//! Not here: what happens to those who have arrived (`wake`).

use super::link::LinkError;
use super::parked::Parked;
use super::replies::Replies;
use super::requests::{Assembled, Assembly};
use proto::frame::{REQUEST_HEADER_BYTES, RequestHeader, RequestKind, padded};
use shm::RingConsumer;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// The peer has sent everything, or there is no predecessor.
    Done,
    /// The peer is to be asked.
    Wanted(u32),
    /// It has been asked.
    Asked(u32),
    /// It has begun to send.
    Begun(u32),
}

/// The side ring of a link.
#[derive(Debug)]
pub(super) struct Side {
    ring: RingConsumer,
    assembly: Assembly,
    pub(super) resume: Resume,
}

impl Side {
    pub(super) fn new(ring: RingConsumer) -> Self {
        Self {
            ring,
            assembly: Assembly::default(),
            resume: Resume::Done,
        }
    }

    /// Whether there is something to do before everything is there.
    pub(super) fn has_work(&mut self, replies: &mut Replies) -> bool {
        match self.resume {
            Resume::Wanted(_) => replies.has_room(),
            // A damaged ring counts as work, so that it is found.
            _ => self.ring.refresh().map_or(true, |bytes| bytes > 0),
        }
    }

    /// Takes what is there; true if there was something.
    pub(super) fn read(&mut self, link: u32, arrived: &mut Vec<Parked>) -> Result<bool, LinkError> {
        let any = self.ring.refresh()? > 0;
        loop {
            let bytes = self.ring.readable();
            if bytes.is_empty() {
                return Ok(any);
            }
            let header = RequestHeader::decode(bytes)?;
            let body = &bytes[REQUEST_HEADER_BYTES..header.len as usize];
            match (header.kind, self.resume) {
                (RequestKind::Resume, Resume::Asked(epoch) | Resume::Begun(epoch))
                    if header.sequence == epoch =>
                {
                    self.assembly = Assembly::default();
                    self.resume = if header.part == 0 {
                        Resume::Begun(epoch)
                    } else {
                        Resume::Done
                    };
                }
                (RequestKind::Parked, Resume::Begun(_)) => {
                    if let Assembled::Whole(bytes) = self.assembly.accept(&header, body) {
                        match Parked::from_gateway(link, &bytes) {
                            Some(parked) => arrived.push(parked),
                            None => tracing::error!(link, "a memo that makes no sense"),
                        }
                    }
                }
                _ => {}
            }
            let len = padded(header.len as usize).min(self.ring.readable().len());
            self.ring.consume(len);
            if self.resume == Resume::Done {
                return Ok(any);
            }
        }
    }

    /// Gives back what was read; whether the peer waits to hear of it.
    pub(super) fn release(&mut self) -> bool {
        self.ring.release()
    }
}
