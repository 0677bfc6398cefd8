//! Frames to and from the broker over a ring: kept while there is no room, cut into pieces if they are large.
//!
//! ```text
//!   Outbox   send ──room?──> ring                     Inbox   ring ──whole?──> frame
//!              └─ no: queue ──drain──> ring, or pieces           └─ pieces ──last one──> frame
//! ```
//!
//! Invariants
//!   - Frames leave in the order in which they were sent, and the pieces of one have nothing between them.
//!   - Nobody waits in here: what does not fit is kept, and the other end is asked to ring.
//!
//! Cost: a copy into the ring; another one for what had to be kept, or came in pieces.
//! Not here: what frames say (`proto::frame`), when a ring is published and a bell is rung.

use proto::frame::{
    BROKER_HEADER_BYTES, BrokerFrame, BrokerHeader, BrokerKind, FrameError, Space, broker_flags,
    broker_frame_len, padded, write_broker_frame,
};
use shm::RingProducer;
use std::collections::VecDeque;

/// See the module.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Box<[u8]>>,
    /// Bytes of the first frame that have left in pieces.
    sent: usize,
    /// Bytes of all frames that are kept.
    held: usize,
}

impl Outbox {
    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that are kept.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Forgets the frame of which pieces have left: nobody will see the rest.
    pub fn drop_begun(&mut self) {
        if std::mem::take(&mut self.sent) > 0
            && let Some(frame) = self.queue.pop_front()
        {
            self.held -= frame.len();
        }
    }

    /// All frames that are kept, taken out.
    pub fn take(&mut self) -> VecDeque<Box<[u8]>> {
        self.sent = 0;
        self.held = 0;
        std::mem::take(&mut self.queue)
    }

    /// Sends a frame, or keeps it; `ring` is `None` while there is none.
    pub fn send(
        &mut self,
        ring: Option<&mut RingProducer>,
        header: &BrokerHeader,
        name: &[u8],
        body: &[&[u8]],
    ) {
        let len = broker_frame_len(name, body);
        if let Some(ring) = ring
            && self.queue.is_empty()
            && len <= ring.largest()
            && let Some(place) = ring.reserve(padded(len))
        {
            write_broker_frame(place, header, name, body);
            place[len..].fill(0);
            ring.commit(padded(len));
            return;
        }
        let mut frame = vec![0; len].into_boxed_slice();
        write_broker_frame(&mut frame, header, name, body);
        self.push(frame);
    }

    /// Keeps a whole frame.
    pub fn push(&mut self, frame: Box<[u8]>) {
        self.held += frame.len();
        self.queue.push_back(frame);
    }

    /// Moves what is kept into the ring, as far as there is room. True if anything was moved.
    pub fn drain(&mut self, ring: &mut RingProducer) -> bool {
        let mut any = false;
        while !self.queue.is_empty() {
            // The room may come between the look and the question.
            if !self.drain_one(ring) {
                ring.want_space();
                if !self.drain_one(ring) {
                    break;
                }
            }
            any = true;
        }
        any
    }

    /// One frame, or one piece.
    fn drain_one(&mut self, ring: &mut RingProducer) -> bool {
        let Some(frame) = self.queue.front() else {
            return false;
        };
        let largest = ring.largest();
        if self.sent == 0 && frame.len() <= largest {
            let Some(place) = ring.reserve(padded(frame.len())) else {
                return false;
            };
            place[..frame.len()].copy_from_slice(frame);
            place[frame.len()..].fill(0);
            ring.commit(padded(frame.len()));
            self.pop();
            return true;
        }
        let rest = &frame[self.sent..];
        let piece = &rest[..rest.len().min(largest - BROKER_HEADER_BYTES)];
        let is_last = piece.len() == rest.len();
        let len = BROKER_HEADER_BYTES + piece.len();
        let Some(place) = ring.reserve(padded(len)) else {
            return false;
        };
        let mut header = BrokerHeader::new(BrokerKind::Piece, Space::Channel);
        header.flags = if is_last { broker_flags::LAST } else { 0 };
        header.count = u32::from(self.sent > 0);
        write_broker_frame(place, &header, b"", &[piece]);
        place[len..].fill(0);
        ring.commit(padded(len));
        self.sent += piece.len();
        if is_last {
            self.pop();
        }
        true
    }

    fn pop(&mut self) {
        self.sent = 0;
        if let Some(frame) = self.queue.pop_front() {
            self.held -= frame.len();
        }
    }
}

/// Frames of a ring that its reader has not begun with and that may be sent to a successor of it. Who listens
/// is told anew as a whole, and a frame in pieces is not whole: neither is among them.
#[must_use]
pub fn unbegun(bytes: &[u8]) -> Vec<Box<[u8]>> {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Ok(frame) = BrokerFrame::decode(rest) {
        let is_begun = frame.header.flags & broker_flags::BEGUN != 0;
        let is_whole = matches!(frame.header.kind, BrokerKind::Publish | BrokerKind::Ask);
        if is_whole && !is_begun {
            frames.push(frame.bytes.into());
        }
        rest = rest.get(padded(frame.bytes.len())..).unwrap_or_default();
    }
    frames
}

/// Puts frames that came in pieces together.
#[derive(Debug, Default)]
pub struct Inbox {
    pieces: Vec<u8>,
    /// The whole frame, as long as it is looked at.
    whole: Vec<u8>,
}

impl Inbox {
    /// Takes the frame at the start of `bytes` and says how long it is there. `None` for a piece that is
    /// not the last one.
    ///
    /// # Errors
    /// The sender is broken.
    pub fn take<'a>(
        &'a mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, Option<BrokerFrame<'a>>), FrameError> {
        let frame = BrokerFrame::decode(bytes)?;
        let len = padded(frame.bytes.len());
        if len > bytes.len() {
            return Err(FrameError::Truncated { found: bytes.len() });
        }
        if frame.header.kind != BrokerKind::Piece {
            return Ok((len, Some(frame)));
        }
        if frame.header.count == 0 {
            self.pieces.clear();
        }
        self.pieces.extend_from_slice(frame.body);
        if frame.header.flags & broker_flags::LAST == 0 {
            return Ok((len, None));
        }
        self.whole = std::mem::take(&mut self.pieces);
        let whole = BrokerFrame::decode(&self.whole)?;
        if whole.header.kind == BrokerKind::Piece {
            return Err(FrameError::Kind(BrokerKind::Piece as u8));
        }
        Ok((len, Some(whole)))
    }

    /// Whether a frame has come in part.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Gives large memory back once a frame has been looked at.
    pub fn settle(&mut self) {
        if self.whole.capacity() > 0 {
            self.whole = Vec::new();
        }
    }
}
