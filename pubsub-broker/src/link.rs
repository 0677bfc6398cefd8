//! The two halves of a link: what comes from a peer, and what goes to it.
//!
//! Kept apart, because a frame that is being read from one link sends frames over others.

use proto::frame::{BROKER_FLAGS_OFFSET, BrokerHeader, BrokerKind, broker_flags};
use runtime::{AttachLink, Inbox, Outbox, Role};
use shm::{Bell, LinkSegment, Party, RingConsumer, RingProducer, ShmError};
use std::fmt;

use crate::core::{Core, Outgoing};
use crate::holders::LinkPlace;

/// Bytes that are kept for a peer that does not read; with more nothing is published until it has.
const HELD_MAX: usize = 32 << 20;

/// What comes from a peer.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) id: u32,
    pub(crate) generation: u64,
    requests: RingConsumer,
    inbox: Inbox,
    /// The peer has said who listens; nobody does behind a worker.
    pub(crate) is_restored: bool,
    pub(crate) is_worker: bool,
    /// There may be frames that were announced.
    pub(crate) is_pending: bool,
}

/// What goes to a peer.
#[derive(Debug)]
pub(crate) struct Answers {
    replies: RingProducer,
    outbox: Outbox,
    peer: Party,
    bell: Bell,
    /// Our place in the peer's news.
    position: usize,
    is_dirty: bool,
}

/// Opens both halves of a link.
///
/// # Errors
/// It is of another build or damaged.
pub(crate) fn open(attach: AttachLink, fingerprint: u64) -> Result<(Incoming, Answers), ShmError> {
    let is_worker = attach.plan.peer.role == Role::StorageWorker;
    let AttachLink {
        plan,
        segment,
        peer_party,
        peer_bell,
    } = attach;
    let (mut requests, replies) = LinkSegment::open(segment, fingerprint)?.responder(None)?;
    let answers = Answers {
        replies,
        outbox: Outbox::default(),
        peer: Party::open(peer_party, fingerprint)?,
        bell: peer_bell.map_or(Bell::Futex, Bell::EventFd),
        position: plan.peer_position as usize,
        is_dirty: false,
    };
    if requests.release() {
        answers.ring();
    }
    let incoming = Incoming {
        id: plan.link,
        generation: plan.generation,
        requests,
        inbox: Inbox::default(),
        is_restored: is_worker,
        is_worker,
        is_pending: true,
    };
    Ok((incoming, answers))
}

/// What goes to all peers, by place.
#[derive(Debug, Default)]
pub(crate) struct AllAnswers {
    pub(crate) all: Vec<Option<Answers>>,
    /// Too much is kept for somebody.
    is_jammed: bool,
}

impl Outgoing for AllAnswers {
    fn send(&mut self, link: LinkPlace, header: &BrokerHeader, name: &[u8], body: &[&[u8]]) {
        if let Some(Some(answers)) = self.all.get_mut(usize::from(link)) {
            answers
                .outbox
                .send(Some(&mut answers.replies), header, name, body);
            answers.is_dirty = true;
            self.is_jammed |= answers.outbox.held() > HELD_MAX;
        }
    }
}

impl AllAnswers {
    /// Makes what was written visible, and wakes who sleeps.
    pub(crate) fn publish(&mut self) {
        self.is_jammed = false;
        for answers in self.all.iter_mut().flatten() {
            if !answers.outbox.is_empty() {
                answers.is_dirty |= answers.outbox.drain(&mut answers.replies);
                self.is_jammed |= answers.outbox.held() > HELD_MAX;
            }
            if std::mem::take(&mut answers.is_dirty) && answers.replies.publish() {
                answers.ring();
            }
        }
    }

    /// Whether nothing may be published until somebody has read.
    pub(crate) fn is_jammed(&self) -> bool {
        self.is_jammed
    }

    /// Whether something is kept for a peer that has no room for it.
    pub(crate) fn is_any_kept(&self) -> bool {
        let mut all = self.all.iter().flatten();
        all.any(|answers| !answers.outbox.is_empty())
    }

    /// Wakes the peer of a link.
    pub(crate) fn ring(&self, link: usize) {
        if let Some(Some(answers)) = self.all.get(link) {
            answers.ring();
        }
    }
}

impl Answers {
    fn ring(&self) {
        self.peer.news().announce(self.position);
        self.peer.doorbell().ring(&self.bell);
    }
}

/// What became of a turn of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Everything is read.
    Empty,
    /// The peer has said who listens; the rest waits until all have.
    Restored,
    /// Nothing more may be published now.
    Jammed,
}

/// Why a link is of no use.
#[derive(Debug)]
pub(crate) struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Incoming {
    /// Whether there is something to read.
    pub(crate) fn has_work(&mut self) -> bool {
        self.requests.refresh().is_ok_and(|len| len > 0)
    }

    /// Looks how far the peer has come.
    pub(crate) fn refresh(&mut self) -> Result<(), Broken> {
        let looked = self.requests.refresh();
        looked
            .map(|_| ())
            .map_err(|error| Broken(error.to_string()))
    }

    /// Takes everything that `refresh` has seen. With `until_restored`, only what is said about those who listen.
    pub(crate) fn serve(
        &mut self,
        link: LinkPlace,
        core: &mut Core,
        out: &mut AllAnswers,
        until_restored: bool,
    ) -> Result<Turn, Broken> {
        let broken = |error: &dyn fmt::Display| Broken(error.to_string());
        while !self.requests.readable().is_empty() {
            if out.is_jammed() {
                return Ok(Turn::Jammed);
            }
            // From here on nobody sends it again.
            self.requests.mark(BROKER_FLAGS_OFFSET, broker_flags::BEGUN);
            let taken = self.inbox.take(self.requests.readable());
            let (len, frame) = taken.map_err(|error| broken(&error))?;
            let mut is_mark = false;
            if let Some(frame) = frame {
                is_mark = frame.header.kind == BrokerKind::Restored;
                core.take(link, &frame, out)
                    .map_err(|error| broken(&error))?;
            }
            self.requests.consume(len);
            self.inbox.settle();
            if is_mark {
                self.is_restored = true;
                if until_restored {
                    return Ok(Turn::Restored);
                }
            }
        }
        Ok(Turn::Empty)
    }

    /// Whether a frame has come in part.
    pub(crate) fn has_begun(&self) -> bool {
        self.inbox.has_begun()
    }

    /// Gives the room of what was read back. True if the peer waits for it.
    pub(crate) fn release(&mut self) -> bool {
        self.requests.unreleased() > 0 && self.requests.release()
    }
}
