//! The reply side of one link: merges replies into frames and never waits for a full ring.
//!
//! ```text
//!   ring   | published ... | header  reply reply reply | free ............ |
//!                          ^ open frame: length and count are missing until it is closed
//! ```
//!
//! A command writes its reply straight behind the open frame. Consecutive replies of one connection
//! share a frame, so a pipelining client costs one header per batch. If some of its commands went to
//! other workers, what follows such a gap gets a frame with a short header. Whatever does not fit (a reply
//! longer than a quarter of the ring, or a ring that is nearly full) is written to private memory
//! and moves into the ring in parts as the peer makes room; until it is there the link executes
//! nothing more.
//!
//! The header of an open frame holds everything but length and count from the start: those two are
//! in the journal's commit line, so a successor can close the frame of a dead worker.
//!
//! Invariants
//!   R1  nothing of an open frame is published.
//!   R2  while a reply waits in private memory, no frame is open and none is opened.
//!   R3  frames of split commands (`part` not 0) hold one reply.
//!   R4  the first frame behind the published position has a whole header.
//!
//! Cost: a reply that continues a frame costs a compare of the header fields and no copy; one behind
//! a gap about 40 instructions.
//! Not here: what is replied (commands), when to publish (the loop).

use proto::frame::{
    MORE_HEADER_BYTES, REPLIES_MAX, REPLY_HEADER_BYTES, ReplyHeader, ReplyKind, RequestHeader,
    begin_more, complete_reply, padded,
};
use proto::resp::reply::ReplyWriter;
use shm::RingProducer;

/// Free bytes below which a link is set aside instead of executing its next command: room for a
/// header and any reply of fixed size, so that only large replies ever leave the ring.
const ROOM_MIN: usize = 512;

/// Bytes kept free behind every reply for the padding that closes its frame.
const PADDING_MAX: usize = 8;

/// A frame that further replies may join.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    /// Ring position of the header.
    start: u64,
    /// Bytes of the header, until the first reply is in.
    header_bytes: usize,
    /// First number and count are those of this frame, also if its own header is a short one.
    header: ReplyHeader,
}

/// How a reply is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// It continues the open frame, which has so many bytes.
    Continues(usize),
    /// It follows in a frame with a short header that leaves out so many numbers.
    Gap(u8),
    /// It needs a frame with a whole header.
    Apart,
}

impl OpenFrame {
    /// Where the reply to `request` belongs if the next byte is written at `position`.
    #[inline]
    fn fit(&self, request: &RequestHeader, position: u64, largest: usize) -> Fit {
        let header = &self.header;
        let is_same = header.connection == request.connection
            && header.generation == request.generation
            && u32::from(header.part) | request.part == 0;
        let gap = request
            .sequence
            .wrapping_sub(header.sequence.wrapping_add(header.count));
        if !is_same || gap > u32::from(u8::MAX) {
            return Fit::Apart;
        }
        if gap > 0 {
            return if header.count > 0 {
                Fit::Gap(gap as u8)
            } else {
                Fit::Apart
            };
        }
        // A frame that is half full is not extended: what is left should hold most replies.
        let used = (position - self.start) as usize;
        if used <= largest / 2 && header.count < REPLIES_MAX {
            Fit::Continues(used)
        } else {
            Fit::Apart
        }
    }
}

/// A reply that waits for room.
#[derive(Debug)]
struct Waiting {
    header: ReplyHeader,
    bytes: Vec<u8>,
    /// Bytes that are in the ring.
    sent: usize,
    /// A frame that comes behind it, if there is room then.
    then: Option<(ReplyHeader, Vec<u8>)>,
}

/// What became of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is in the ring.
    InRing,
    /// It waits in private memory.
    Waiting,
}

/// Where the open frame stands, for the commit line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyPosition {
    pub(crate) position: u64,
    pub(crate) frame_start: u64,
    pub(crate) frame_count: u32,
}

/// The reply side of one link.
#[derive(Debug)]
pub(crate) struct Replies {
    ring: RingProducer,
    open: Option<OpenFrame>,
    waiting: Option<Waiting>,
    spill: Vec<u8>,
    /// The ring's note: ticket of a parked command whose reply may not be there completely, or 0.
    note: u64,
}

impl Replies {
    pub(crate) fn new(ring: RingProducer) -> Self {
        Self {
            note: ring.note(),
            ring,
            open: None,
            waiting: None,
            spill: Vec::new(),
        }
    }

    /// Takes over from a dead worker: closes the frame that its last commit left open. The ring was
    /// attached at the position of that commit.
    pub(crate) fn resume(&mut self, frame_start: u64, frame_count: u32) {
        let position = self.ring.position();
        if frame_count > 0 && (self.ring.published()..position).contains(&frame_start) {
            self.close_frame(frame_start, frame_count);
        }
    }

    /// Whether the next command may run: nothing waits and there is room for a small reply.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.waiting.is_none() && self.ring.reserve(ROOM_MIN).is_some()
    }

    /// A writer for the reply to `request`; only while there is room. When the command has run,
    /// call [`Replies::finish`] with what the writer says about itself.
    #[inline(always)]
    pub(crate) fn writer(&mut self, request: &RequestHeader, is_resp3: bool) -> ReplyWriter<'_> {
        let largest = self.ring.largest();
        let fit = match &self.open {
            Some(open) => open.fit(request, self.ring.position(), largest),
            None => Fit::Apart,
        };
        let (used, skipped) = match fit {
            Fit::Continues(used) => (used, 0),
            Fit::Gap(gap) => {
                self.open_more(request, gap);
                (0, MORE_HEADER_BYTES)
            }
            Fit::Apart => {
                self.open_frame(request);
                (0, REPLY_HEADER_BYTES)
            }
        };
        let room = self.ring.reserve_up_to(largest - used);
        let len = room.len() - PADDING_MAX;
        ReplyWriter::new(&mut room[skipped..len], &mut self.spill, is_resp3)
    }

    /// Closes what is open and writes the header of the frame that the next reply opens.
    fn open_frame(&mut self, request: &RequestHeader) {
        self.close();
        let header = header_for(request, ReplyKind::Reply);
        if let Some(place) = self.ring.reserve(REPLY_HEADER_BYTES)
            && let Some(place) = place.first_chunk_mut()
        {
            header.encode(place);
        }
        self.open = Some(OpenFrame {
            start: self.ring.position(),
            header_bytes: REPLY_HEADER_BYTES,
            header,
        });
    }

    /// Closes the open frame and begins one that leaves out `gap` numbers of the same connection.
    #[inline]
    fn open_more(&mut self, request: &RequestHeader, gap: u8) {
        let Some(open) = &mut self.open else {
            return;
        };
        let len = (self.ring.position() - open.start) as usize;
        if let Some(frame) = self.ring.unpublished_mut(open.start) {
            complete_reply(frame, open.header.count);
        }
        // Padding and header in one step: there is room for both, and for a reply.
        let padding = padded(len) - len;
        if let Some(place) = self.ring.reserve(PADDING_MAX + MORE_HEADER_BYTES)
            && let Some(word) = place.first_chunk_mut()
        {
            *word = [0; PADDING_MAX];
            let place = place.get_mut(padding..).and_then(<[u8]>::first_chunk_mut);
            if let Some(place) = place {
                begin_more(place, gap);
            }
        }
        self.ring.commit(padding);
        open.start = self.ring.position();
        open.header_bytes = MORE_HEADER_BYTES;
        open.header.sequence = request.sequence;
        open.header.count = 0;
    }

    /// Takes the reply that was written with [`Replies::writer`].
    #[inline]
    pub(crate) fn finish(&mut self, len: usize, is_spilled: bool) -> Placed {
        if is_spilled {
            return self.set_aside();
        }
        if let Some(open) = &mut self.open {
            open.header.count += 1;
            self.ring
                .commit(std::mem::take(&mut open.header_bytes) + len);
        }
        Placed::InRing
    }

    /// The reply in `spill` becomes a frame of its own, sent as far as there is room.
    #[cold]
    fn set_aside(&mut self) -> Placed {
        let Some(open) = self.open else {
            return Placed::InRing;
        };
        self.close();
        let sequence = open.header.sequence.wrapping_add(open.header.count);
        let header = ReplyHeader {
            sequence,
            ..open.header
        };
        let bytes = std::mem::take(&mut self.spill);
        self.send_apart(header, bytes)
    }

    /// Sends a reply in frames of its own; what finds no room waits.
    fn send_apart(&mut self, header: ReplyHeader, bytes: Vec<u8>) -> Placed {
        self.waiting = Some(Waiting {
            header,
            bytes,
            sent: 0,
            then: None,
        });
        if self.send_waiting() {
            Placed::InRing
        } else {
            Placed::Waiting
        }
    }

    /// Moves the reply that waits into the ring, as far as there is room; true if nothing waits any
    /// more. If false, the peer has been asked to ring when there is room.
    pub(crate) fn send_waiting(&mut self) -> bool {
        let Some(mut waiting) = self.waiting.take() else {
            return true;
        };
        let largest = self.ring.largest() - PADDING_MAX;
        let is_whole = REPLY_HEADER_BYTES + waiting.bytes.len() <= largest;
        loop {
            let rest = &waiting.bytes[waiting.sent..];
            let len = rest.len().min(largest - REPLY_HEADER_BYTES);
            let frame_len = REPLY_HEADER_BYTES + len;
            let mut place = self.ring.reserve(padded(frame_len));
            if place.is_none() {
                self.ring.want_space();
                // The room may have come between the look and the question.
                place = self.ring.reserve(padded(frame_len));
            }
            let Some((head, body)) = place.and_then(|place| place.split_first_chunk_mut()) else {
                self.waiting = Some(waiting);
                return false;
            };
            let is_last = len == rest.len();
            let kind = match (is_whole, is_last) {
                (true, _) => ReplyKind::Reply,
                (false, false) => ReplyKind::ReplyPart,
                (false, true) => ReplyKind::ReplyEnd,
            };
            let header = ReplyHeader {
                len: frame_len as u32,
                kind,
                count: 1,
                ..waiting.header
            };
            header.encode(head);
            body[..len].copy_from_slice(&rest[..len]);
            body[len..].fill(0);
            self.ring.commit(padded(frame_len));
            waiting.sent += len;
            if is_last {
                if let Some((header, bytes)) = waiting.then {
                    self.send_if_room(header, &bytes);
                }
                return true;
            }
        }
    }

    /// Takes a reply that is there already, in a frame of its own with these `reply_flags`.
    pub(crate) fn push(&mut self, request: &RequestHeader, flags: u8, bytes: &[u8]) -> Placed {
        self.close();
        let header = ReplyHeader {
            flags,
            ..header_for(request, ReplyKind::Reply)
        };
        self.send_apart(header, bytes.to_vec())
    }

    /// Sends a frame without reply bytes.
    pub(crate) fn notify(&mut self, request: &RequestHeader, kind: ReplyKind) {
        self.close();
        self.send(ReplyHeader {
            len: REPLY_HEADER_BYTES as u32,
            ..header_for(request, kind)
        });
    }

    /// Sends a frame that is no reply behind that to `request`, unless there is no room for it.
    #[cold]
    pub(crate) fn tell(&mut self, request: &RequestHeader, kind: ReplyKind, bytes: Vec<u8>) {
        let header = header_for(request, kind);
        match &mut self.waiting {
            Some(waiting) => waiting.then = Some((header, bytes)),
            None => {
                self.close();
                self.send_if_room(header, &bytes);
            }
        }
    }

    fn send_if_room(&mut self, header: ReplyHeader, bytes: &[u8]) {
        let len = REPLY_HEADER_BYTES + bytes.len();
        if let Some(place) = self.ring.reserve(padded(len))
            && let Some((head, body)) = place.split_first_chunk_mut()
        {
            ReplyHeader {
                len: len as u32,
                ..header
            }
            .encode(head);
            body[..bytes.len()].copy_from_slice(bytes);
            body[bytes.len()..].fill(0);
            self.ring.commit(padded(len));
        }
    }

    /// Asks the peer for what a successor must have. False if there is no room for it now.
    pub(crate) fn ask_to_resume(&mut self, epoch: u32) -> bool {
        let has_room = self.has_room() || self.want_room();
        if has_room {
            self.send(ReplyHeader {
                len: REPLY_HEADER_BYTES as u32,
                kind: ReplyKind::Resume,
                flags: 0,
                part: 0,
                connection: 0,
                generation: 0,
                sequence: epoch,
                count: 0,
            });
        }
        has_room
    }

    fn send(&mut self, header: ReplyHeader) {
        if let Some(place) = self.ring.reserve(padded(REPLY_HEADER_BYTES))
            && let Some(head) = place.first_chunk_mut()
        {
            header.encode(head);
            self.ring.commit(padded(REPLY_HEADER_BYTES));
        }
    }

    /// Closes the open frame, so that everything committed may be published.
    pub(crate) fn close(&mut self) {
        if let Some(open) = self.open.take()
            && open.header.count > 0
        {
            self.close_frame(open.start, open.header.count);
        }
    }

    #[inline]
    fn close_frame(&mut self, start: u64, count: u32) {
        let len = (self.ring.position() - start) as usize;
        if let Some(frame) = self.ring.unpublished_mut(start) {
            complete_reply(frame, count);
        }
        // A whole word is zeroed and a part of it committed: one store instead of a call.
        if let Some(place) = self.ring.reserve(PADDING_MAX)
            && let Some(word) = place.first_chunk_mut()
        {
            *word = [0; PADDING_MAX];
            self.ring.commit(padded(len) - len);
        }
    }

    /// Where a successor would go on.
    #[inline]
    pub(crate) fn position(&self) -> ReplyPosition {
        let position = self.ring.position();
        let (frame_start, frame_count) = match &self.open {
            Some(open) if open.header.count > 0 => (open.start, open.header.count),
            _ => (position, 0),
        };
        ReplyPosition {
            position,
            frame_start,
            frame_count,
        }
    }

    /// Makes everything up to the last closed frame visible; says whether there was something.
    pub(crate) fn publish(&mut self) -> bool {
        self.ring.publish()
    }

    /// The ticket that the note tells of; 0 for none.
    pub(crate) fn note(&self) -> u64 {
        self.note
    }

    /// Notes for a successor that the parked command with this ticket has been executed, although
    /// its reply is not there completely; 0 that there is none any more.
    pub(crate) fn set_note(&mut self, ticket: u64) {
        if self.note != ticket {
            self.note = ticket;
            self.ring.set_note(ticket);
        }
    }

    /// Whether the reply that waits could be moved on now.
    pub(crate) fn can_go_on(&mut self) -> bool {
        let Some(waiting) = &self.waiting else {
            return false;
        };
        let rest = waiting.bytes.len() - waiting.sent + REPLY_HEADER_BYTES + PADDING_MAX;
        let len = rest.min(self.ring.largest());
        self.ring.reserve(len).is_some()
    }

    /// Whether a reply waits for room.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Asks the peer to ring when it has taken something; true if there is room already.
    pub(crate) fn want_room(&mut self) -> bool {
        self.ring.want_space();
        self.has_room()
    }
}

fn header_for(request: &RequestHeader, kind: ReplyKind) -> ReplyHeader {
    ReplyHeader {
        len: 0,
        kind,
        flags: 0,
        part: request.part as u16,
        connection: request.connection,
        generation: request.generation,
        sequence: request.sequence,
        count: 0,
    }
}
