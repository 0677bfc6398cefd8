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
//!   D5  A parked command is served between batches, when nothing of this link waits, under a line
//!       that names this link and the command's ticket. Its request is long out of the ring, so what
//!       D4 marks there stands in the ring's note: the ticket, from before the line that says the
//!       command is served until its whole reply is published.
//!
//! A batch ends behind a command that others wait for: they come before the next command.
//!
//! Cost per batch: two commit lines, one store each for tail and head, one flag, one fence.
//! Not here: which link is served when (`event_loop`), how one frame runs (`runner`), who is served
//! because of it (`wake`).

use super::core::{Core, Place};
use super::crossing::Entry;
use super::parked::Parked;
use super::replies::{Placed, Replies};
use super::requests::{Assembly, look_ahead};
use super::resume::{Resume, Side};
use super::runner::{Ran, Runner};
use crate::engine::Engine;
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::counters::WorkerCounter;
use proto::frame::{
    FrameError, REQUEST_FLAGS_OFFSET, ReplyKind, RequestHeader, RequestKind, flags,
};
use proto::time::UnixMillis;
use shm::{Bell, CommitLine, Party, RingConsumer, RingProducer, ShmError};
use std::fmt;

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
    /// It did everything that was asked.
    Done,
    /// It did something; there is more.
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
    side: Side,
    /// The next request needs keyspaces of other workers that are not to be had now.
    is_stopped: bool,
    /// Since when.
    stopped_since: Option<UnixMillis>,
    /// Bytes of the executed request whose reply waits for room, 0 if there is none.
    held: usize,
}

impl Link {
    /// A link whose peer has seen nothing of us yet, or all of it.
    pub(crate) fn new(
        id: u32,
        generation: u64,
        rings: (RingConsumer, RingProducer),
        side: RingConsumer,
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
            side: Side::new(side),
            is_stopped: false,
            stopped_since: None,
            held: 0,
        }
    }

    /// Goes on where a predecessor died: rings that were attached at the positions of `line`, its
    /// last commit, which names this link. `served` is the ticket of the parked command that it was
    /// serving, if it was.
    pub(crate) fn take_over(&mut self, line: &CommitLine, doubt: Doubt, served: Option<u64>) {
        self.replies.resume(line.frame_start, line.frame_count);
        if let Some(ticket) = served {
            // The line will soon be another one, but the note stays (D5).
            if doubt != Doubt::None {
                self.replies.set_note(ticket);
            }
            return;
        }
        if self.requests.refresh().is_err() {
            return; // the first turn finds it again and drops the link
        }
        let Ok(suspect) = RequestHeader::decode(self.requests.readable()) else {
            return;
        };
        let writes = StorageCommand::from_u16(suspect.command).is_none_or(Engine::may_write);
        let is_marked = match doubt {
            Doubt::None => false,
            Doubt::Write => writes,
            Doubt::Any => true,
        };
        if is_marked {
            self.requests.mark(REQUEST_FLAGS_OFFSET, flags::EXECUTED);
        }
    }

    #[cfg(test)]
    pub(super) fn reply_position(&self) -> super::replies::ReplyPosition {
        self.replies.position()
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

    /// Asks the peer for the commands of its clients that waited at the predecessor, under this
    /// number; until they are there the link serves nothing.
    pub(crate) fn begin_to_resume(&mut self, epoch: u32) {
        self.side.resume = Resume::Wanted(epoch);
    }

    /// Whether the peer has not sent everything yet.
    #[inline]
    pub(crate) fn is_resuming(&self) -> bool {
        self.side.resume != Resume::Done
    }

    /// Does what can be done to hear from the peer who waited; they come into `core.arrived`. True if
    /// there was something. A peer that has told everything is not listened to: what it says next, while
    /// others still tell, is for [`Link::serve`].
    ///
    /// # Errors
    /// If ring or frames are damaged: drop the link.
    pub(crate) fn resume(&mut self, core: &mut Core) -> Result<bool, LinkError> {
        if !self.is_resuming() {
            return Ok(false);
        }
        if let Resume::Wanted(epoch) = self.side.resume {
            if !self.replies.ask_to_resume(epoch) {
                return Ok(false);
            }
            self.side.resume = Resume::Asked(epoch);
            self.replies.publish();
            self.peer.ring();
        }
        let any = self.side.read(self.id, &mut core.arrived)?;
        if any && self.side.release() {
            self.peer.ring();
        }
        Ok(any)
    }

    /// Whether the reply to a parked command of this link can be taken now. If not, the peer will
    /// ring when there is room.
    pub(crate) fn can_push(&mut self) -> bool {
        !self.replies.is_waiting() && (self.replies.has_room() || self.replies.want_room())
    }

    /// Runs a parked command again, while [`Link::can_push`]. It waits on if it finds nothing.
    pub(crate) fn serve_parked(&mut self, core: &mut Core, parked: &Parked) {
        let place = self.place(0);
        core.begin_serving(parked.ticket, place, self.replies.position());
        let mut runner = Runner {
            core,
            replies: &mut self.replies,
            place,
            len: 0,
        };
        let placed = runner.run_again(parked);
        if placed.is_some() {
            core.unpark(parked.ticket);
        }
        if placed == Some(Placed::Waiting) {
            self.replies.set_note(parked.ticket);
        }
        self.replies.close();
        core.end_serving(place, self.replies.position());
        if placed.is_some() {
            self.publish(core);
        }
    }

    /// Ends the wait of a parked command with an error, or, without one, as its time is over, while
    /// [`Link::can_push`].
    pub(crate) fn end_wait(
        &mut self,
        core: &mut Core,
        parked: &Parked,
        error: Option<CommandError>,
    ) {
        core.unpark(parked.ticket);
        Runner {
            place: self.place(0),
            core,
            replies: &mut self.replies,
            len: 0,
        }
        .end_wait(parked, 0, error);
        self.publish(core);
        if self.replies.note() == parked.ticket {
            self.replies.set_note(0);
        }
    }

    /// Whether the predecessor died before the whole reply of this parked command was on its way,
    /// and the command may have changed data.
    pub(crate) fn is_lost(&self, parked: &Parked) -> bool {
        self.replies.note() == parked.ticket && Engine::writes(parked.command)
    }

    /// After a death, once everybody is back who waited: forgets the note if it was about somebody
    /// who has his reply after all.
    pub(crate) fn settle_note(&mut self, core: &Core) {
        let is_about_nobody = core.waiters.get(self.replies.note()).is_none();
        if !self.is_resuming() && !self.replies.is_waiting() && is_about_nobody {
            self.replies.set_note(0);
        }
    }

    /// Whether a turn would do something: a look at the rings themselves.
    pub(crate) fn has_work(&mut self) -> bool {
        if self.is_resuming() {
            return self.side.has_work(&mut self.replies);
        }
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
        if self.is_resuming() {
            return Ok(Turn::Idle);
        }
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
            left -= done;
            if done == 0 || core.is_signalled() || self.requests.readable().is_empty() {
                break;
            }
        }
        if core.is_visiting() {
            core.leave();
        }
        self.publish(core);
        if self.held > 0 {
            Ok(Turn::Jammed)
        } else if !std::mem::take(&mut self.is_stopped) && self.requests.readable().is_empty() {
            Ok(Turn::Done)
        } else {
            Ok(Turn::Busy)
        }
    }

    /// The part of a batch before its publication.
    #[cfg(test)]
    pub(super) fn run_all(&mut self, core: &mut Core) {
        self.requests.refresh().unwrap();
        core.commit(self.place(0), self.replies.position());
        self.run_ahead(core, BATCH_MAX).unwrap();
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
        let mut is_crossed = core.is_visiting();
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
            let is_crossing = frame.header.flags & flags::CROSSING != 0;
            let mut refusal = None;
            if is_crossing || is_crossed {
                match runner.come_in(&mut self.assembly, &frame.header, body, self.stopped_since) {
                    Entry::Open => self.stopped_since = None,
                    Entry::Refused(error) => refusal = Some(error),
                    Entry::NotNow => {
                        self.is_stopped = true;
                        self.stopped_since.get_or_insert(runner.core.now);
                        break;
                    }
                }
                is_crossed |= is_crossing;
            }
            let ran = match frame.header.kind {
                _ if refusal.is_some() => {
                    self.stopped_since = None;
                    runner.refuse(&frame.header, &refusal.unwrap_or(CommandError::Internal))
                }
                RequestKind::Request => runner.run(&frame.header, body, frame.hash),
                RequestKind::RequestPart => {
                    runner.assemble(&mut self.assembly, &frame.header, body)?
                }
                RequestKind::Ping => runner.notify(&frame.header, ReplyKind::Pong),
                RequestKind::Cancel => runner.cancel(&frame.header),
                RequestKind::Unblock => runner.unblock(&frame.header),
                RequestKind::Recalled => runner.give_back(&frame.header),
                RequestKind::Resume | RequestKind::Parked => Ran::Done, // only on the side ring
            };
            if let Ran::Held { wrote } = ran {
                held = Some((frame.end() - taken, wrote));
                break;
            }
            taken = frame.end();
            done += 1;
            if ran == Ran::Wakes {
                break;
            }
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
        if is_sent {
            self.replies.set_note(0);
        }
        is_sent
    }
}
