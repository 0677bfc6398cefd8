//! From reply frames to the outputs of connections.
//!
//! Frames are read in place, in the ring. An ordinary one is a run of complete replies of one
//! connection and costs one copy; pieces of large replies and parts of split commands are the
//! exceptions. Frames for connections that are gone are dropped.
//!
//! Runs that come before their turn are lent: they stay in the ring, and the stash of their connection
//! says where. So a ring is released only
//! - after a round over all rings with news, if nothing is lent any more: the usual case, or
//! - if more than a quarter of it is consumed: then everything lent is copied first (`settle_lent`).
//!   So there is always room for the largest frame, and a worker that waits for room gets it.
//!
//! A frame that makes no sense means that its worker, or the link, is broken: the link is not read any
//! further, and whoever waits for a reply from it is closed rather than handed a wrong one.

use proto::frame::{FrameError, PlainReply, ReplyFrames, ReplyHeader, ReplyKind, reply_flags};
use shm::Party;

use crate::connection::{Connection, Wait};
use crate::core::Core;
use crate::gather::Gather;
use crate::half::{self, Half, Verdict};
use crate::lanes::{ReplyRings, Who};
use crate::limits;
use crate::order::{BufferPool, Placed};
use crate::stash::InRing;

/// What the frames of one ring led to, beyond bytes in outputs.
#[derive(Debug, Default)]
pub(crate) struct Aftermath {
    /// Connections that wait and got something.
    waits: Vec<u32>,
    /// Connections that got something large.
    large: Vec<u32>,
    /// Split commands whose last part has come.
    done: Vec<(u32, Box<Gather>)>,
    /// Large requests that the worker wants again.
    again: Vec<Who>,
    /// Frames about commands that may wait.
    notes: Vec<(u32, ReplyHeader, Vec<u8>)>,
    /// Clients of slow commands, and what is said about those.
    slow: Vec<(u32, Vec<u8>)>,
    /// Which slots are locked for connections, or not.
    /// Connections whose reply cannot be continued.
    torn: Vec<u32>,
    /// The worker is a successor and asks who waits, under this number.
    resume: Option<u32>,
}

impl Aftermath {
    #[inline]
    fn is_any(&self) -> bool {
        let Self {
            waits,
            large,
            done,
            again,
            notes,
            slow,
            torn,
            resume,
        } = self;
        let listed = waits.len() | large.len() | done.len() | again.len() | notes.len();
        listed | slow.len() | torn.len() != 0 || resume.is_some()
    }
}

impl Core {
    /// Takes the replies of every worker that has announced some, or of all if `every`. True if there
    /// was any.
    pub(crate) fn collect_replies(&mut self, party: &Party, every: bool) -> bool {
        let mut any = false;
        let every = every || std::mem::take(&mut self.look_everywhere);
        if every || party.news().any() {
            let mut announced = std::mem::take(&mut self.announced);
            let mut aftermath = std::mem::take(&mut self.aftermath);
            party.news().take_each(|position| announced.push(position));
            // The broker comes last, behind all workers.
            let is_broker = announced.last().is_some_and(|&at| self.is_of_broker(at));
            if every || is_broker {
                self.look_at_broker();
            }
            if every {
                for worker in 0..self.lanes.len() {
                    any |= self.look_at_replies(worker, &mut aftermath);
                }
            } else {
                for &position in &announced {
                    if let Some(worker) = self.lanes.worker_at(position) {
                        any |= self.look_at_replies(worker, &mut aftermath);
                    }
                }
            }
            announced.clear();
            self.announced = announced;
            self.aftermath = aftermath;
            if every || is_broker {
                any |= self.take_messages();
            }
        }
        self.release_replies();
        any
    }

    /// Gives room back to the workers unless that can wait for replies that are lent.
    #[inline]
    fn release_replies(&mut self) {
        if !self.lanes.is_unreleased() {
            return;
        }
        if self.pool.lent() > 0 {
            if !self.lanes.must_release() {
                return;
            }
            self.settle_lent();
        }
        self.pool.forget_lenders();
        self.lanes.release();
    }

    /// Copies all replies that wait in rings.
    #[cold]
    pub(crate) fn settle_lent(&mut self) {
        let rings = self.lanes.reply_rings();
        for index in self.pool.take_lenders() {
            if let Some(Some(connection)) = self.connections.get_mut(index as usize) {
                connection.replies.settle(&rings, &mut self.pool);
            }
        }
        debug_assert_eq!(self.pool.lent(), 0, "every lender is noted");
    }

    fn look_at_replies(&mut self, worker: usize, aftermath: &mut Aftermath) -> bool {
        let Some(parts) = self.lanes.parts_mut(worker) else {
            return false;
        };
        match parts.replies.refresh() {
            Ok(0) => false,
            Ok(_) => {
                self.take_replies(worker, aftermath);
                true
            }
            Err(error) => {
                self.lane_broken(worker, &error);
                false
            }
        }
    }

    /// Takes everything readable in the reply ring of `worker`.
    fn take_replies(&mut self, worker: usize, aftermath: &mut Aftermath) {
        let Some((rings, half)) = self.lanes.read(worker) else {
            return;
        };
        let (bytes, position) = rings.readable(worker);
        let mut sink = Sink {
            connections: &mut self.connections,
            pool: &mut self.pool,
            dirty: &mut self.dirty,
            aftermath,
            is_torn: half.as_ref().is_some_and(Half::is_torn),
            half,
            rings,
            lane: worker as u16,
            position,
            recall_bytes: self.recall_bytes,
        };
        let (len, taken) = sink.take_all(ReplyFrames::new(bytes));
        self.lanes.consume(worker, len);
        if aftermath.is_any() {
            self.finish_replies(worker, aftermath);
        }
        if let Err(error) = taken {
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
        for index in aftermath.large.drain(..) {
            self.look_at_size(index);
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
        let parts = self.lanes.parts_mut(worker);
        if let Some((link, generation)) = parts.map(|parts| (parts.link, parts.generation)) {
            self.detach(link);
            self.shared.report_broken(link, generation);
        }
        self.close_unanswered();
    }

    /// Ends the connections that wait for a reply: it may never come.
    #[cold]
    pub(crate) fn close_unanswered(&mut self) {
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

/// Where the frames of a ring go.
struct Sink<'a> {
    connections: &'a mut Vec<Option<Box<Connection>>>,
    pool: &'a mut BufferPool,
    dirty: &'a mut Vec<u32>,
    aftermath: &'a mut Aftermath,
    half: &'a mut Option<Half>,
    /// A successor repeats a reply of which part is sent: look at every frame.
    is_torn: bool,
    rings: ReplyRings<'a>,
    /// The ring, and where in it the frames begin.
    lane: u16,
    position: u64,
    /// Held for a connection, so many bytes are worth a look.
    recall_bytes: usize,
}

impl Sink<'_> {
    /// Takes all frames. Says how many bytes made sense, and why the rest did not.
    fn take_all(&mut self, mut frames: ReplyFrames<'_>) -> (usize, Result<(), FrameError>) {
        loop {
            while !self.is_torn
                && let Some(plain) = frames.next_plain()
            {
                frames = self.take_plain(&plain, frames);
            }
            match frames.next_frame() {
                Ok(Some(frame)) => self.take_unusual(&frame.header, frame.run.body),
                Ok(None) => return (frames.position(), Ok(())),
                Err(error) => return (frames.position(), Err(error)),
            }
        }
    }

    /// Takes an ordinary frame and those that go on with its connection; returns what is left.
    #[inline]
    fn take_plain<'f>(
        &mut self,
        plain: &PlainReply<'f>,
        mut frames: ReplyFrames<'f>,
    ) -> ReplyFrames<'f> {
        let index = plain.connection;
        let connection = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .filter(|connection| connection.generation == plain.generation);
        let Some(connection) = connection else {
            return frames;
        };
        if connection.wait != Wait::Nothing {
            self.aftermath.waits.push(index);
        }
        if !connection.facts.dirty {
            connection.facts.dirty = true;
            self.dirty.push(index);
        }
        let mut run = plain.run;
        connection.note_reply_size(run.body.len(), run.count);
        let mut is_lent = false;
        loop {
            let place = InRing {
                lane: self.lane,
                len: run.body.len() as u32,
                position: self.position + run.start as u64,
            };
            let numbers = (run.sequence, run.count);
            let replies = &mut connection.replies;
            match replies.collect(numbers, place, run.body, &self.rings, self.pool) {
                Placed::Emitted => {}
                Placed::Stashed => is_lent = true,
                Placed::Unexpected => unexpected(connection, ReplyKind::Reply, run.sequence),
            }
            match frames.next_more() {
                Some(more) => run = more,
                None => break,
            }
        }
        let is_large = frames.position() - plain.run.start > limits::LARGE_REPLY_BYTES;
        if is_large && connection.replies.held_bytes() >= self.recall_bytes {
            self.aftermath.large.push(index);
        }
        if is_lent {
            self.pool.note_lender(index);
        }
        frames
    }

    #[cold]
    fn take_unusual(&mut self, header: &ReplyHeader, body: &[u8]) {
        let index = header.connection;
        let connection = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .filter(|connection| connection.generation == header.generation);
        let Some(connection) = connection else {
            return self.take_for_nobody(header, body);
        };
        if connection.wait != Wait::Nothing {
            self.aftermath.waits.push(index);
        }
        if !connection.facts.dirty {
            connection.facts.dirty = true;
            self.dirty.push(index);
        }
        let placed = match half::account(self.half, header, body) {
            Verdict::Pass(len) => {
                if len > 0 {
                    connection.note_reply_size(len, header.count);
                }
                if len > limits::LARGE_REPLY_BYTES {
                    self.aftermath.large.push(index);
                }
                let (rings, pool) = (&self.rings, &mut *self.pool);
                let frame = (self.lane, header, body);
                unusual(connection, frame, rings, pool, self.aftermath)
            }
            Verdict::Skip => Placed::Emitted,
            Verdict::Close => {
                self.aftermath.torn.push(index);
                Placed::Emitted
            }
        };
        if placed == Placed::Unexpected {
            unexpected(connection, header.kind, header.sequence);
        }
    }

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

#[cold]
fn unexpected(connection: &Connection, kind: ReplyKind, sequence: u32) {
    let client = connection.id;
    tracing::error!(client, sequence, ?kind, "a reply that nobody awaits");
}

/// Everything but whole ordinary replies.
#[cold]
fn unusual(
    connection: &mut Connection,
    (lane, header, body): (u16, &ReplyHeader, &[u8]),
    rings: &ReplyRings<'_>,
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
            let replies = &mut connection.replies;
            replies.complete(header.sequence, header.count, body, rings, pool)
        }
        (ReplyKind::Slow, _) => {
            aftermath.slow.push((index, body.to_vec()));
            Placed::Emitted
        }
        (ReplyKind::Again, _) => {
            aftermath.again.push(connection.who(index));
            Placed::Emitted
        }
        (ReplyKind::Returned, _) => {
            let recall = connection.recall.as_mut();
            match recall.map(|recall| recall.take_back(lane, header.sequence, header.part)) {
                Some(true) => Placed::Emitted,
                _ => Placed::Unexpected,
            }
        }
        (ReplyKind::ReplyPart, 0) => connection.replies.piece(header.sequence, body, pool),
        (ReplyKind::ReplyEnd, 0) => {
            let replies = &mut connection.replies;
            replies.finish(header.sequence, body, rings, pool)
        }
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
