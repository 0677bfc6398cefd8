//! From reply frames to the outputs of connections.
//!
//! Frames are read in place, in the ring. An ordinary one is a run of complete replies of one
//! connection and costs one copy; pieces of large replies and parts of split commands are the
//! exceptions. Frames for connections that are gone are dropped.
//!
//! A frame that makes no sense means that its worker, or the link, is broken: the link is not read any
//! further and the supervisor is told, rather than handing wrong replies to clients.

use proto::frame::{REPLY_HEADER_BYTES, ReplyHeader, ReplyKind, padded, reply_flags};
use shm::Party;

use crate::connection::{Connection, Wait};
use crate::core::Core;
use crate::gather::Gather;
use crate::half::{self, Half, Verdict};
use crate::lanes::Who;
use crate::order::{BufferPool, Placed};

/// What the frames of one ring led to, beyond bytes in outputs.
#[derive(Debug, Default)]
pub(crate) struct Aftermath {
    /// Connections that wait and got something.
    waits: Vec<u32>,
    /// Split commands whose last part has come.
    done: Vec<(u32, Box<Gather>)>,
    /// Large requests that the worker wants again.
    again: Vec<Who>,
    /// Frames about commands that may wait.
    notes: Vec<(u32, ReplyHeader, Vec<u8>)>,
    /// Clients of slow commands, and what is said about those.
    slow: Vec<(u32, Vec<u8>)>,
    /// Connections whose reply cannot be continued.
    torn: Vec<u32>,
    /// The worker is a successor and asks who waits, under this number.
    resume: Option<u32>,
}

impl Core {
    /// Takes the replies of every worker that has announced some, or of all if `every`. True if there
    /// was any.
    pub(crate) fn collect_replies(&mut self, party: &Party, every: bool) -> bool {
        let mut any = false;
        let mut announced = std::mem::take(&mut self.announced);
        party.news().take_each(|position| announced.push(position));
        if every || std::mem::take(&mut self.look_everywhere) {
            for worker in 0..self.lanes.len() {
                any |= self.look_at_replies(worker);
            }
        } else {
            for &position in &announced {
                if let Some(worker) = self.lanes.worker_at(position) {
                    any |= self.look_at_replies(worker);
                }
            }
        }
        announced.clear();
        self.announced = announced;
        any
    }

    fn look_at_replies(&mut self, worker: usize) -> bool {
        let Some(parts) = self.lanes.parts_mut(worker) else {
            return false;
        };
        match parts.replies.refresh() {
            Ok(0) => false,
            Ok(_) => {
                self.take_replies(worker);
                true
            }
            Err(error) => {
                self.lane_broken(worker, &error);
                false
            }
        }
    }

    /// Takes everything readable in the reply ring of `worker`.
    fn take_replies(&mut self, worker: usize) {
        let mut aftermath = std::mem::take(&mut self.aftermath);
        let Some((replies, half)) = self.lanes.replies_mut(worker) else {
            return;
        };
        let bytes = replies.readable();
        let mut sink = Sink {
            connections: &mut self.connections,
            pool: &mut self.pool,
            dirty: &mut self.dirty,
            aftermath: &mut aftermath,
            is_torn: half.as_ref().is_some_and(Half::is_torn),
            half,
        };
        let mut at = 0;
        let mut broken = None;
        while at < bytes.len() {
            let frame = &bytes[at..];
            let header = match ReplyHeader::decode(frame) {
                Ok(header) => header,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            };
            let len = header.len as usize;
            sink.take(&header, &frame[REPLY_HEADER_BYTES..len]);
            at += padded(len);
        }
        let at = at.min(bytes.len());
        replies.consume(at);
        self.lanes.release(worker);
        self.finish_replies(worker, &mut aftermath);
        self.aftermath = aftermath;
        if let Some(error) = broken {
            self.lane_broken(worker, &error);
        }
    }

    fn finish_replies(&mut self, worker: usize, aftermath: &mut Aftermath) {
        for (index, header, body) in aftermath.notes.drain(..) {
            self.note_waiting(index, &header, &body);
        }
        for who in aftermath.again.drain(..) {
            self.lanes.send_again(worker, who);
        }
        for (index, gather) in aftermath.done.drain(..) {
            self.finish_gather(index, gather);
        }
        for (index, body) in aftermath.slow.drain(..) {
            self.note_slow(index, &body);
        }
        for index in aftermath.torn.drain(..) {
            self.close_torn(index);
        }
        for index in aftermath.waits.drain(..) {
            self.look_at_wait(index);
        }
        if let Some(epoch) = aftermath.resume.take() {
            self.look_at_half(worker);
            self.begin_telling(worker, epoch);
        }
    }

    /// The link to `worker` cannot be trusted any more. Who waits for a reply may wait for one that never
    /// comes, so those connections end.
    #[cold]
    fn lane_broken(&mut self, worker: usize, error: &dyn std::fmt::Display) {
        tracing::error!(worker, %error, "replies of a storage worker make no sense, link given up");
        let link = self.lanes.parts_mut(worker).map(|parts| parts.link);
        if let Some(link) = link {
            self.detach(link);
        }
        let unanswered = |place: &Option<Box<Connection>>| {
            let connection = place.as_deref();
            connection.is_some_and(|connection| connection.replies.in_flight() > 0)
        };
        for index in 0..self.connections.len() {
            if unanswered(&self.connections[index]) {
                self.close_now(index as u32);
            }
        }
    }
}

/// Where frames go.
struct Sink<'a> {
    connections: &'a mut Vec<Option<Box<Connection>>>,
    pool: &'a mut BufferPool,
    dirty: &'a mut Vec<u32>,
    aftermath: &'a mut Aftermath,
    half: &'a mut Option<Half>,
    /// A successor repeats a reply of which part is sent: look at every frame.
    is_torn: bool,
}

impl Sink<'_> {
    #[inline]
    fn take(&mut self, header: &ReplyHeader, body: &[u8]) {
        let index = header.connection;
        let connection = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .filter(|connection| connection.generation == header.generation);
        let Some(connection) = connection else {
            return self.take_for_nobody(header, body);
        };
        let placed = match header.kind {
            ReplyKind::Reply if header.part == 0 && header.flags == 0 && !self.is_torn => {
                connection.note_reply_size(body.len(), header.count);
                connection
                    .replies
                    .complete(header.sequence, header.count, body, self.pool)
            }
            _ => match half::account(self.half, header, body) {
                Verdict::Pass(len) => {
                    if len > 0 {
                        connection.note_reply_size(len, header.count);
                    }
                    unusual(connection, header, body, self.pool, self.aftermath)
                }
                Verdict::Skip => Placed::Emitted,
                Verdict::Close => {
                    self.aftermath.torn.push(index);
                    Placed::Emitted
                }
            },
        };
        if placed == Placed::Unexpected {
            tracing::error!(
                client = connection.id,
                ?header,
                "a reply that nobody awaits"
            );
        }
        if connection.wait != Wait::Nothing {
            self.aftermath.waits.push(index);
        }
        if !connection.facts.dirty {
            connection.facts.dirty = true;
            self.dirty.push(index);
        }
    }
}

impl Sink<'_> {
    /// The connection is gone, or the frame is about none.
    #[cold]
    fn take_for_nobody(&mut self, header: &ReplyHeader, body: &[u8]) {
        if header.kind == ReplyKind::Slow {
            self.aftermath.slow.push((u32::MAX, body.to_vec()));
        } else if header.kind == ReplyKind::Resume {
            self.aftermath.resume = Some(header.sequence);
        } else if self.is_torn {
            self.half.take_if(|half| half.is_in(header));
        }
    }
}

/// Everything but whole ordinary replies.
#[cold]
fn unusual(
    connection: &mut Connection,
    header: &ReplyHeader,
    body: &[u8],
    pool: &mut BufferPool,
    aftermath: &mut Aftermath,
) -> Placed {
    let index = header.connection;
    if header.flags != 0 {
        let is_memo = header.flags & reply_flags::PARKED != 0;
        let memo = if is_memo { body } else { &[] };
        aftermath.notes.push((index, *header, memo.to_vec()));
        if is_memo {
            return Placed::Emitted;
        }
    }
    match (header.kind, header.part) {
        (ReplyKind::Pong | ReplyKind::Resume, _) => Placed::Emitted,
        (ReplyKind::Reply, 0) => {
            connection
                .replies
                .complete(header.sequence, header.count, body, pool)
        }
        (ReplyKind::Slow, _) => {
            aftermath.slow.push((index, body.to_vec()));
            Placed::Emitted
        }
        (ReplyKind::Again, _) => {
            aftermath.again.push(connection.who(index));
            Placed::Emitted
        }
        (ReplyKind::ReplyPart, 0) => connection.replies.piece(header.sequence, body, pool),
        (ReplyKind::ReplyEnd, 0) => connection.replies.finish(header.sequence, body, pool),
        (kind, part) => {
            let place = connection
                .gathers
                .iter()
                .position(|g| g.sequence == header.sequence);
            let Some(place) = place else {
                return Placed::Unexpected;
            };
            let whole = kind == ReplyKind::Reply;
            let taken =
                connection.gathers[place].take(part, whole, kind != ReplyKind::ReplyPart, body);
            match taken {
                Ok(false) => Placed::Stashed,
                Ok(true) => {
                    if let Some(gather) = connection.gathers.remove(place) {
                        aftermath.done.push((index, gather));
                    }
                    Placed::Stashed
                }
                Err(_) => Placed::Unexpected,
            }
        }
    }
}
