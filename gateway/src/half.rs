//! The reply that a worker is sending in pieces, and what becomes of it if the worker dies meanwhile.
//!
//! ```text
//!   reply ring    p1 p2 p3      dead  Resume   p1 p2 p3 p4 end        a read is run again
//!   client        p1 p2 ..                     =  =  =  p4 end        what it has is compared and left out
//!
//!   reply ring    p1 p2 p3      dead  Resume   error                  a write is not
//!   client        p1 p2 ..                     closed
//! ```
//!
//! A worker sends nothing else over a link while a large reply is under way, so there is at most one
//! per lane. Its successor answers the same command from the beginning, and not always with the same
//! bytes: others may have changed the value between the two executions, or the command has written
//! and its outcome is unknown.
//!
//! - As long as the socket has taken nothing of it, what was there is forgotten: the successor's reply
//!   is the only one. So it is for every part of a split command, and for replies before their turn.
//! - Otherwise the client gets the rest only if the successor repeats what it has already; a hash
//!   tells. If it does not, the connection is closed, for there is no other way to take back the
//!   beginning of a reply.
//!
//! Cost: a hash of the bytes of replies that do not fit in one frame; one bit per frame for others.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use proto::frame::{ReplyHeader, ReplyKind, reply_flags};

use crate::core::Core;
use crate::lanes::Who;

/// Pieces: how many bytes, and a hash of them, piece by piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    bytes: usize,
    hash: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Its worker lives.
    Growing,
    /// Part of it is sent; a successor has repeated so much of it.
    Repeated(Progress),
    /// The successor says something else; the connection is being closed.
    Refused,
}

/// What to do with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is new; with it, so many bytes of its replies have come.
    Pass(usize),
    /// The client has it, or will be gone.
    Skip,
    /// It contradicts what the client has: close the connection.
    Close,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Half {
    who: Who,
    sequence: u32,
    part: u16,
    seen: Progress,
    state: State,
    hasher: DefaultHashBuilder,
}

impl Half {
    fn new(header: &ReplyHeader) -> Self {
        Self {
            who: who(header),
            sequence: header.sequence,
            part: header.part,
            seen: Progress::default(),
            state: State::Growing,
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Whether part of it is sent and its worker dead.
    pub(crate) fn is_torn(&self) -> bool {
        !matches!(self.state, State::Growing)
    }

    /// Whether a frame with this header answers the same command.
    pub(crate) fn is_in(&self, header: &ReplyHeader) -> bool {
        let distance = self.sequence.wrapping_sub(header.sequence);
        self.who == who(header) && self.part == header.part && distance < header.count.max(1)
    }

    /// Sequence and part if it is a reply to this connection.
    pub(crate) fn request_of(&self, who: Who) -> Option<(u32, u16)> {
        (self.who == who).then_some((self.sequence, self.part))
    }

    fn add(&self, progress: Progress, piece: &[u8]) -> Progress {
        Progress {
            bytes: progress.bytes + piece.len(),
            hash: self.hasher.hash_one((progress.hash, piece)),
        }
    }

    /// A frame of the successor about it.
    fn compare(&mut self, progress: Progress, header: &ReplyHeader, body: &[u8]) -> Verdict {
        // Pieces of both are cut at the same places: the ring is the same.
        let progress = self.add(progress, body);
        if header.kind == ReplyKind::ReplyPart && progress.bytes < self.seen.bytes {
            self.state = State::Repeated(progress);
            Verdict::Skip
        } else if header.kind == ReplyKind::ReplyPart && progress == self.seen {
            self.state = State::Growing;
            Verdict::Skip
        } else {
            self.state = State::Refused;
            Verdict::Close
        }
    }
}

fn who(header: &ReplyHeader) -> Who {
    Who {
        index: header.connection,
        generation: header.generation,
    }
}

/// Keeps account of the reply under way in a lane: what to do with this frame of replies.
pub(crate) fn account(place: &mut Option<Half>, header: &ReplyHeader, body: &[u8]) -> Verdict {
    let is_memo = header.flags & reply_flags::PARKED != 0;
    if is_memo || header.kind == ReplyKind::Slow {
        return Verdict::Pass(0); // no reply
    }
    if header.kind == ReplyKind::Returned {
        // Its beginning came from the predecessor, and so the socket has some of it.
        return match place.take_if(|half| half.is_in(header)) {
            Some(_) => Verdict::Close,
            None => Verdict::Pass(0),
        };
    }
    let is_piece = header.kind == ReplyKind::ReplyPart;
    let half = match place {
        Some(half) if half.is_in(header) => half,
        _ if is_piece => place.insert(Half::new(header)),
        _ => return Verdict::Pass(body.len()),
    };
    let verdict = match half.state {
        State::Growing => {
            let len = half.seen.bytes + body.len();
            if is_piece {
                half.seen = half.add(half.seen, body);
            }
            Verdict::Pass(len)
        }
        State::Repeated(progress) => half.compare(progress, header, body),
        State::Refused => Verdict::Skip,
    };
    if !is_piece {
        *place = None;
    }
    verdict
}

impl Core {
    /// The worker has died: its successor begins anew with the reply that was under way.
    pub(crate) fn look_at_half(&mut self, worker: usize) {
        let Some(mut half) = self.lanes.half_mut(worker).and_then(Option::take) else {
            return;
        };
        let Some(connection) = self.find_mut(half.who) else {
            return;
        };
        let is_forgotten = if half.part == 0 {
            connection.replies.forget(half.sequence, half.seen.bytes)
        } else {
            let mut gathers = connection.gathers.iter_mut();
            if let Some(gather) = gathers.find(|gather| gather.sequence == half.sequence) {
                gather.forget(half.part);
            }
            true
        };
        if is_forgotten {
            return;
        }
        if !matches!(half.state, State::Refused) {
            half.state = State::Repeated(Progress::default());
        }
        if let Some(place) = self.lanes.half_mut(worker) {
            *place = Some(half);
        }
    }

    /// The rest of a reply that the client has begun to read is lost.
    pub(crate) fn close_torn(&mut self, index: u32) {
        if let Some(connection) = self.get(index) {
            tracing::warn!(
                client = connection.id,
                "a storage worker died within a reply that cannot be continued, connection closed"
            );
        }
        self.close_now(index);
    }
}
