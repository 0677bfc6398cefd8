//! One link to a gateway thread: takes a batch of requests, runs them, publishes the replies.
//!
//! ```text
//!   requests  | released | executed | seen ahead ... tail |
//!   replies   | published ........... | open frame | free |
//!
//!   per command   execute, reply behind the open frame, commit line if it wrote
//!   per batch     close frame, commit line, publish replies, release requests, ring the peer
//! ```
//!
//! Invariants of a death at any instruction
//!   D1  The commit line names this link from before its first command of a batch is executed, so
//!       a command whose outcome is unknown is always the one at the line's request position.
//!   D2  Commands that only read are not committed one by one: running them again does no harm and
//!       their replies are not published yet. Before a command writes, all before it are committed.
//!   D3  Replies are published after the commit that covers them, requests released after that.
//!   D4  A reply that waits in private memory holds its request back: the position in the commit
//!       line moves on when the whole reply is in the ring. A successor runs a read again. A request
//!       that wrote is marked in the ring, and the successor answers that its outcome is unknown.
//!
//! Cost per batch: two commit lines, one store each for tail and head, one flag, one fence.
//! Not here: which link is served when (`event_loop`).

use super::core::{Core, Place};
use super::replies::{Placed, Replies};
use super::requests::{Assembled, Assembly, look_ahead};
use crate::engine::{Engine, Executed};
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::counters::WorkerCounter;
use proto::frame::{
    FrameError, REQUEST_FLAGS_OFFSET, REQUEST_HEADER_BYTES, ReplyKind, RequestHeader, RequestKind,
    flags,
};
use proto::resp::reply::ReplyWriter;
use shm::{Bell, CommitLine, Party, RingConsumer, RingProducer, ShmError};
use std::fmt;
use std::time::Duration;

/// Requests of one link in one turn: bounds how long the others wait (about 0.1 ms), and lets the
/// peer begin with the first replies while the next batch runs.
const BATCH_MAX: usize = 256;

/// Why a link cannot be served any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// The ring is damaged.
    Ring(ShmError),
    /// What is in it makes no sense.
    Frame(FrameError),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring(error) => error.fmt(f),
            Self::Frame(error) => error.fmt(f),
        }
    }
}

impl From<ShmError> for LinkError {
    fn from(error: ShmError) -> Self {
        Self::Ring(error)
    }
}

impl From<FrameError> for LinkError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

/// What a successor knows about the request at the position of the last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It was not begun, or did nothing.
    None,
    /// If it writes, it may have been executed.
    Write,
    /// It may have been the cause of the death.
    Any,
}

/// What a turn of a link led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There was nothing to do.
    Idle,
    /// It did something; there may be more.
    Busy,
    /// It waits for room in its reply ring; the peer rings when there is some.
    Jammed,
}

/// Who is at the other end and how to wake it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) party: Party,
    pub(crate) bell: Bell,
    /// Our place in the peer's news.
    pub(crate) position: usize,
}

impl Peer {
    /// There is something new for the peer. True if it had to be woken.
    fn ring(&self) -> bool {
        self.party.news().announce(self.position);
        self.party.doorbell().ring(&self.bell)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    id: u32,
    generation: u32,
    requests: RingConsumer,
    replies: Replies,
    assembly: Assembly,
    peer: Peer,
    /// Bytes of the executed request whose reply waits for room, 0 if there is none.
    held: usize,
}

/// How one frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ran {
    placed: Placed,
    /// Data may have changed, so the request must not run again.
    wrote: bool,
}

impl Link {
    /// A link whose peer has seen nothing of us yet, or all of it.
    pub(crate) fn new(
        id: u32,
        generation: u64,
        rings: (RingConsumer, RingProducer),
        peer: Peer,
    ) -> Self {
        Self {
            id,
            // The commit line keeps 32 bits of it: enough to tell it from the one before.
            generation: generation as u32,
            requests: rings.0,
            replies: Replies::new(rings.1),
            assembly: Assembly::default(),
            peer,
            held: 0,
        }
    }

    /// Goes on where a predecessor died: rings that were attached at the positions of `line`, its
    /// last commit, which names this link.
    pub(crate) fn take_over(&mut self, line: &CommitLine, doubt: Doubt) {
        self.replies.resume(line.frame_start, line.frame_count);
        if self.requests.refresh().is_err() {
            return; // the first turn finds it again and drops the link
        }
        let Ok(suspect) = RequestHeader::decode(self.requests.readable()) else {
            return;
        };
        let writes = StorageCommand::from_u16(suspect.command).is_none_or(Engine::writes);
        let is_marked = match doubt {
            Doubt::None => false,
            Doubt::Write => writes,
            Doubt::Any => true,
        };
        if is_marked {
            self.requests.mark(REQUEST_FLAGS_OFFSET, flags::EXECUTED);
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Once after attaching: gives the peer what a predecessor may have owed it.
    pub(crate) fn settle(&mut self) {
        self.replies.publish();
        self.requests.release();
        self.peer.ring();
    }

    /// Whether a turn would do something: a look at the rings themselves.
    pub(crate) fn has_work(&mut self) -> bool {
        if self.replies.is_waiting() {
            return self.replies.can_go_on();
        }
        // A damaged ring counts as work, so that the next turn finds it.
        self.requests.refresh().map_or(true, |bytes| bytes > 0) && self.replies.has_room()
    }

    /// Serves one batch.
    ///
    /// # Errors
    /// If ring or frames are damaged: drop the link.
    pub(crate) fn serve(&mut self, core: &mut Core) -> Result<Turn, LinkError> {
        if self.replies.is_waiting() && !self.go_on(core) {
            return Ok(Turn::Jammed);
        }
        if self.requests.refresh()? == 0 {
            return Ok(Turn::Idle);
        }
        if !self.replies.has_room() && !self.replies.want_room() {
            return Ok(Turn::Jammed);
        }
        core.commit(self.place(0), self.replies.position()); // D1
        let mut left = BATCH_MAX;
        while left > 0 && self.held == 0 {
            let done = self.run_ahead(core, left)?;
            if done == 0 {
                break;
            }
            left -= done;
        }
        self.publish(core);
        if self.held > 0 {
            Ok(Turn::Jammed)
        } else {
            Ok(Turn::Busy)
        }
    }

    fn place(&self, offset: usize) -> Place {
        Place {
            link: self.id,
            generation: self.generation,
            request_position: self.requests.position() + offset as u64,
        }
    }

    /// Runs the next frames, at most `most`; returns how many.
    fn run_ahead(&mut self, core: &mut Core, most: usize) -> Result<usize, LinkError> {
        let mut ahead = std::mem::take(&mut core.ahead);
        let bytes = self.requests.readable();
        let seed = core.engine.hash_seed();
        look_ahead(bytes, &core.engine.keyspace, seed, &mut ahead)?;
        let mut taken = 0;
        let mut done = 0;
        let mut held = None;
        for frame in ahead.iter().take(most) {
            if !self.replies.has_room() {
                break;
            }
            let place = Place {
                link: self.id,
                generation: self.generation,
                request_position: self.requests.position() + taken as u64,
            };
            let end = frame.end() as u64 - taken as u64;
            let body = frame.body(bytes);
            let mut runner = Runner {
                core,
                replies: &mut self.replies,
                place,
                len: end,
            };
            let ran = match frame.header.kind {
                RequestKind::Request => runner.run(&frame.header, body, frame.hash),
                RequestKind::RequestPart => {
                    runner.assemble(&mut self.assembly, &frame.header, body)?
                }
                RequestKind::Ping => runner.notify(&frame.header, ReplyKind::Pong),
                RequestKind::Resume => Ran {
                    placed: Placed::InRing,
                    wrote: false,
                },
            };
            if ran.placed == Placed::Waiting {
                held = Some((frame.end() - taken, ran.wrote));
                break;
            }
            taken = frame.end();
            done += 1;
        }
        core.ahead = ahead;
        self.requests.consume(taken);
        if let Some((len, wrote)) = held {
            self.held = len;
            if wrote {
                self.requests.mark(REQUEST_FLAGS_OFFSET, flags::EXECUTED); // D4
            }
        }
        Ok(done)
    }

    /// Ends a batch: D3.
    fn publish(&mut self, core: &mut Core) {
        self.replies.close();
        core.commit(self.place(0), self.replies.position());
        core.flush_counts();
        let has_replies = self.replies.publish();
        let is_asked = self.requests.release();
        if (has_replies || is_asked) && self.peer.ring() {
            core.add(WorkerCounter::Rings, 1);
        }
    }

    /// Moves on with the reply that waits; true if it is in the ring now.
    fn go_on(&mut self, core: &mut Core) -> bool {
        let is_sent = self.replies.send_waiting();
        if is_sent {
            self.requests.consume(self.held);
            self.held = 0;
        }
        self.publish(core);
        is_sent
    }
}

/// Runs one frame: what of the link may change while its readable bytes are borrowed.
struct Runner<'a> {
    core: &'a mut Core,
    replies: &'a mut Replies,
    /// The frame that is run.
    place: Place,
    /// Its bytes in the ring.
    len: u64,
}

impl Runner<'_> {
    #[inline]
    fn run(&mut self, request: &RequestHeader, body: &[u8], hash: Option<u64>) -> Ran {
        let command = StorageCommand::from_u16(request.command);
        let refused = match command {
            None => Some(CommandError::Internal),
            Some(_) if request.flags & flags::EXECUTED != 0 => Some(CommandError::OutcomeUnknown),
            Some(_) => None,
        };
        let (Some(command), None) = (command, &refused) else {
            return self.refuse(request, &refused.unwrap_or(CommandError::Internal));
        };
        if Engine::writes(command) {
            return self.run_write(request, command, body, hash);
        }
        let executed = self.execute(request, command, body, hash);
        self.core.is_uncommitted = true;
        let placed = self.finish(request, command, executed);
        if self.core.is_precise && placed == Placed::InRing {
            self.commit_behind();
        }
        Ran {
            placed,
            wrote: false,
        }
    }

    fn run_write(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Ran {
        if self.core.is_uncommitted {
            self.core.commit(self.place, self.replies.position()); // D2
        }
        self.core.bracket.begin(request.database, request.slot);
        let has_room = self.core.make_room() || !Engine::denies_oom(command);
        if !has_room {
            self.core.bracket.end();
            let ran = self.refuse(request, &CommandError::OutOfMemory);
            self.core.tally.count(command, true);
            return ran;
        }
        let executed = self.execute(request, command, body, hash);
        self.core.bracket.end();
        let placed = self.finish(request, command, executed);
        if placed == Placed::InRing {
            self.commit_behind();
        }
        self.core.note_change(request.database);
        Ran {
            placed,
            wrote: true,
        }
    }

    /// A commit line behind this frame.
    #[inline]
    fn commit_behind(&mut self) {
        let request_position = self.place.request_position + self.len;
        let behind = Place {
            request_position,
            ..self.place
        };
        self.core.commit(behind, self.replies.position());
    }

    #[inline]
    fn execute(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Executed {
        let is_resp3 = request.flags & flags::RESP3 != 0;
        let reply = if request.flags & flags::DISCARD == 0 {
            self.replies.writer(request, is_resp3)
        } else {
            self.core.unwanted.clear();
            ReplyWriter::to_vec(&mut self.core.unwanted, is_resp3)
        };
        self.core
            .engine
            .execute(request, command, body, hash, self.core.now, reply)
    }

    #[inline]
    fn finish(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        executed: Executed,
    ) -> Placed {
        self.core.tally.count(command, executed.is_error);
        if let Some(sleep) = self.core.engine.effects.sleep.take() {
            stop_for(sleep);
        }
        if request.flags & flags::DISCARD != 0 {
            return Placed::InRing;
        }
        self.replies.finish(executed.reply_len, executed.is_spilled)
    }

    /// Answers with an error without running anything.
    #[cold]
    fn refuse(&mut self, request: &RequestHeader, error: &CommandError) -> Ran {
        self.core.is_uncommitted = true;
        if request.flags & flags::DISCARD != 0 {
            return Ran {
                placed: Placed::InRing,
                wrote: false,
            };
        }
        let mut reply = self
            .replies
            .writer(request, request.flags & flags::RESP3 != 0);
        reply.error(error);
        let (len, is_spilled) = (reply.len(), reply.is_spilled());
        Ran {
            placed: self.replies.finish(len, is_spilled),
            wrote: false,
        }
    }

    fn notify(&mut self, request: &RequestHeader, kind: ReplyKind) -> Ran {
        self.core.is_uncommitted = true;
        self.replies.notify(request, kind);
        Ran {
            placed: Placed::InRing,
            wrote: false,
        }
    }

    /// Takes a part of a request; the last one runs the whole.
    fn assemble(
        &mut self,
        assembly: &mut Assembly,
        header: &RequestHeader,
        body: &[u8],
    ) -> Result<Ran, LinkError> {
        if header.flags & flags::EXECUTED != 0 {
            // `part` of a piece is its place in the request; the reply needs the request's own part.
            let request = RequestHeader {
                part: u32::from(header.slot),
                ..*header
            };
            return Ok(self.refuse(&request, &CommandError::OutcomeUnknown));
        }
        match assembly.accept(header, body) {
            Assembled::Nothing => {
                self.core.is_uncommitted = true;
                Ok(Ran {
                    placed: Placed::InRing,
                    wrote: false,
                })
            }
            Assembled::Again => Ok(self.notify(header, ReplyKind::Again)),
            Assembled::Whole(frame) => {
                let whole = RequestHeader::decode(&frame)?;
                let body = frame
                    .get(REQUEST_HEADER_BYTES..whole.len as usize)
                    .unwrap_or(&[]);
                Ok(self.run(&whole, body, None))
            }
        }
    }
}

/// DEBUG SLEEP: the shard thread stops, as the reference does.
fn stop_for(time: Duration) {
    std::thread::sleep(time);
}
