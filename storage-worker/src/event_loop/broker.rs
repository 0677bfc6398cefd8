//! The worker's link to the pub/sub broker: keyspace events, and what scripts publish and ask.
//!
//! A script goes on with the number of receivers, so the shard thread waits for the broker's answer: some
//! microseconds, and at most [`PATIENCE`] if the broker is just being replaced. While nobody listens to
//! anything, which the broker's page says, it neither asks nor waits.
//!
//! Invariant: an answer that comes too late is thrown away; answers carry the number of their question.
//!
//! Not here: messages of clients (gateway), what the broker does (`pubsub-broker`).

use crate::notify::{Note, Notes};
use crate::scripts::{Publish, Questions};
use proto::counters::BrokerCounter;
use proto::frame::{BrokerFrame, BrokerHeader, BrokerKind, Space, broker_flags, push_name};
use proto::settings::{EVENT_KEYEVENT, EVENT_KEYSPACE};
use runtime::{AttachLink, Inbox, Outbox, unbegun};
use shm::{Bell, LinkSegment, Party, RingConsumer, RingProducer, ShmError};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bytes of events that are kept for a broker that does not read; what comes then is lost.
const HELD_MAX: usize = 64 << 20;

/// How long a script waits for the broker.
const PATIENCE: Duration = Duration::from_millis(200);

/// Looks at the ring before the thread sleeps.
const LOOKS: usize = 50;

#[derive(Debug)]
struct Link {
    requests: RingProducer,
    replies: RingConsumer,
    inbox: Inbox,
    broker: Party,
    /// Our place in the broker's news.
    position: usize,
    id: u32,
    generation: u64,
}

impl Link {
    fn ring(&self) {
        self.broker.news().announce(self.position);
        self.broker.doorbell().ring(&Bell::Futex);
    }

    /// Whether anybody listens to anything.
    fn has_listeners(&self) -> bool {
        use BrokerCounter as C;
        let counters = self.broker.counters();
        let levels = [C::Channels, C::Patterns, C::ShardChannels];
        let is_any = |counter: &C| {
            let place = counter.place();
            place >= counters.len() || counters.get(place) > 0
        };
        levels.iter().any(is_any)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct BrokerLink {
    link: Option<Link>,
    outbox: Outbox,
    notes: Option<Notes>,
    /// The worker's own page, on whose doorbell it sleeps.
    own: Party,
    sequence: u32,
    /// Links that make no sense, for the supervisor.
    broken: Vec<(u32, u64)>,
}

/// The link, for scripts and for the loop.
#[derive(Clone, Debug)]
pub(super) struct SharedLink(Rc<RefCell<BrokerLink>>);

impl SharedLink {
    /// No link yet. `own` is the worker's own page, opened once more.
    pub(super) fn new(own: Party) -> Self {
        Self(Rc::new(RefCell::new(BrokerLink {
            link: None,
            outbox: Outbox::default(),
            notes: None,
            own,
            sequence: 0,
            broken: Vec::new(),
        })))
    }

    /// Attaches the link to the broker, or to its successor. Nobody waits for what stands in the old one.
    ///
    /// # Errors
    /// It is of another build or damaged.
    pub(super) fn attach(&self, attach: AttachLink, fingerprint: u64) -> Result<(), ShmError> {
        let (requests, replies) = LinkSegment::open(attach.segment, fingerprint)?.requester()?;
        let mut this = self.0.borrow_mut();
        // Events that the dead one has not begun with, and those that found no room; no script waits.
        this.outbox.drop_begun();
        let old = this.link.take();
        let mut again = old.map_or(Vec::new(), |mut old| unbegun(old.requests.unreleased().1));
        again.extend(this.outbox.take());
        again.retain(|bytes| {
            let frame = BrokerFrame::decode(bytes);
            frame.is_ok_and(|frame| frame.header.flags & broker_flags::ANSWER == 0)
        });
        again.into_iter().for_each(|bytes| this.outbox.push(bytes));
        this.link = Some(Link {
            requests,
            replies,
            inbox: Inbox::default(),
            broker: Party::open(attach.peer_party, fingerprint)?,
            position: attach.plan.peer_position as usize,
            id: attach.plan.link,
            generation: attach.plan.generation,
        });
        this.tell(&[], 0);
        Ok(())
    }

    /// Events that these notes hold come before what scripts publish.
    pub(super) fn note_for(&self, notes: Notes) {
        self.0.borrow_mut().notes = Some(notes);
    }

    /// Tells the broker events. True if some of them wait for room.
    pub(super) fn tell(&self, notes: &[Note], wanted: u64) -> bool {
        self.0.borrow_mut().tell(notes, wanted)
    }

    /// A link that makes no sense and was dropped.
    pub(super) fn take_broken(&self) -> Option<(u32, u64)> {
        self.0.borrow_mut().broken.pop()
    }
}

impl BrokerLink {
    fn tell(&mut self, notes: &[Note], wanted: u64) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        let is_heard = link.has_listeners() && self.outbox.held() < HELD_MAX;
        for note in notes.iter().filter(|_| is_heard) {
            let header = BrokerHeader::new(BrokerKind::Publish, Space::Channel);
            let db = note.db.to_string();
            if wanted & EVENT_KEYSPACE != 0 {
                let channel = [b"__keyspace@", db.as_bytes(), b"__:", &note.key].concat();
                let event = note.event.as_bytes();
                self.outbox
                    .send(Some(&mut link.requests), &header, &channel, &[event]);
            }
            if wanted & EVENT_KEYEVENT != 0 {
                let channel = format!("__keyevent@{db}__:{}", note.event);
                let channel = channel.as_bytes();
                self.outbox
                    .send(Some(&mut link.requests), &header, channel, &[&note.key]);
            }
        }
        self.outbox.drain(&mut link.requests);
        if link.requests.publish() {
            link.ring();
        }
        !self.outbox.is_empty()
    }

    /// Events come before what is said now.
    fn tell_first(&mut self) {
        if let Some(notes) = self.notes.clone()
            && notes.is_any()
        {
            self.tell(&notes.take(), notes.wanted());
        }
    }

    /// Tells the broker something and waits for its answer: a number, and what it says.
    fn ask(
        &mut self,
        mut header: BrokerHeader,
        name: &[u8],
        body: &[u8],
    ) -> Option<(u32, Vec<u8>)> {
        let until = Instant::now() + PATIENCE;
        self.tell_first();
        self.sequence = self.sequence.wrapping_add(1);
        header.sequence = self.sequence;
        header.flags |= broker_flags::ANSWER;
        let link = self.link.as_mut()?;
        self.outbox
            .send(Some(&mut link.requests), &header, name, &[body]);
        let mut looks = 0;
        loop {
            let link = self.link.as_mut()?;
            self.outbox.drain(&mut link.requests);
            if link.requests.publish() {
                link.ring();
            }
            match take_answer(link, header.sequence) {
                Ok(Some(answer)) => return Some(answer),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(error, "frames of the broker make no sense, link given up");
                    self.broken.push((link.id, link.generation));
                    self.link = None;
                    return None;
                }
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                tracing::warn!("the pub/sub broker has not answered a script in time");
                return None;
            }
            let doorbell = self.own.doorbell();
            doorbell.prepare_sleep();
            if link.replies.refresh().is_ok_and(|len| len == 0) {
                doorbell.wait(Some(left));
            }
            doorbell.cancel_sleep();
        }
    }
}

/// The answer to this question, if it has come; what answers earlier ones is thrown away.
fn take_answer(link: &mut Link, sequence: u32) -> Result<Option<(u32, Vec<u8>)>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    link.replies.refresh().map_err(|error| text(&error))?;
    let mut answer = None;
    while answer.is_none() && !link.replies.readable().is_empty() {
        let (len, frame) = link
            .inbox
            .take(link.replies.readable())
            .map_err(|error| text(&error))?;
        if let Some(BrokerFrame { header, body, .. }) = frame
            && header.kind == BrokerKind::Answer
            && header.sequence == sequence
        {
            answer = Some((header.count, body.to_vec()));
        }
        link.replies.consume(len);
        link.inbox.settle();
    }
    if link.replies.unreleased() > 0 && link.replies.release() {
        link.ring();
    }
    Ok(answer)
}

impl Publish for SharedLink {
    fn publish(&mut self, space: Space, channel: &[u8], message: &[u8]) -> u32 {
        let mut this = self.0.borrow_mut();
        if !this.link.as_ref().is_some_and(Link::has_listeners) {
            return 0;
        }
        let header = BrokerHeader::new(BrokerKind::Publish, space);
        this.ask(header, channel, message)
            .map_or(0, |(count, _)| count)
    }

    fn ask(&mut self, question: &Questions<'_>) -> Option<Vec<u8>> {
        let mut header = BrokerHeader::new(BrokerKind::Ask, question.space);
        header.count = question.what as u32;
        if question.pattern.is_some() {
            header.flags = broker_flags::PATTERN;
        }
        let mut list = Vec::new();
        for name in &question.names {
            push_name(&mut list, name);
        }
        let pattern = question.pattern.unwrap_or_default();
        let answer = self.0.borrow_mut().ask(header, pattern, &list);
        answer.map(|(_, reply)| reply)
    }
}
