//! The link to the broker, and what happens when the broker dies.
//!
//! A successor comes with a new link. What the dead one has published is read from the old one first. Then the
//! successor is told who listens and, behind that, what stands in the old ring and was not begun. What was
//! begun and not answered may have been published or not: it is never sent again, and its publisher is told
//! that nobody got it.

use proto::CommandError;
use proto::frame::{BrokerFrame, BrokerHeader, BrokerKind, Space, broker_flags};
use runtime::{Inbox, unbegun};
use shm::{Bell, Party, RingConsumer, RingProducer};

use super::{Asked, What};
use crate::connection::Wait;
use crate::core::{Core, Ticket};
use crate::lanes::Who;

/// What a lane to the broker needs from the control channel.
#[derive(Debug)]
pub(crate) struct BrokerParts {
    pub(crate) requests: RingProducer,
    pub(crate) replies: RingConsumer,
    /// The broker's page: doorbell, and the flags that say which ring has news.
    pub(crate) broker: Party,
    pub(crate) bell: Bell,
    /// Our place in the broker's news flags.
    pub(crate) their_position: usize,
    /// The broker's place in our news flags.
    pub(crate) our_position: usize,
    /// Number and generation of the link, for the supervisor.
    pub(crate) link: u32,
    pub(crate) generation: u64,
}

/// The pair of rings to the broker.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) parts: BrokerParts,
    inbox: Inbox,
}

impl Lane {
    fn ring(&self) {
        let parts = &self.parts;
        parts.broker.news().announce(parts.their_position);
        parts.broker.doorbell().ring(&parts.bell);
    }
}

/// Who listens is told anew as a whole, and a frame in pieces is not whole.
fn is_sent_again(frame: &BrokerFrame<'_>) -> bool {
    matches!(frame.header.kind, BrokerKind::Publish | BrokerKind::Ask)
}

impl Core {
    /// The place in the thread's news at which the broker announces frames.
    #[inline]
    pub(crate) fn is_of_broker(&self, position: usize) -> bool {
        let lane = self.pubsub.lane.as_ref();
        lane.is_some_and(|lane| lane.parts.our_position == position)
    }

    /// Whether a frame to or from the broker is on its way in pieces: the rings are looked at again soon, whether
    /// or not somebody rings.
    pub(crate) fn is_amid_pieces(&self) -> bool {
        let lane = self.pubsub.lane.as_ref();
        lane.is_some_and(|lane| self.pubsub.must_flush || lane.inbox.has_begun())
    }

    /// Looks how far the broker has come. What it has sent until now is dealt with by `take_messages`, behind
    /// what workers have sent until later.
    pub(crate) fn look_at_broker(&mut self) {
        let Some(lane) = &mut self.pubsub.lane else {
            return;
        };
        if let Err(error) = lane.parts.replies.refresh() {
            self.broker_lane_broken(&error);
        }
    }

    /// Takes what the broker has sent. True if there was anything.
    pub(crate) fn take_messages(&mut self) -> bool {
        let Some(mut lane) = self.pubsub.lane.take() else {
            return false;
        };
        let mut any = false;
        let mut broken = None;
        if lane.inbox.has_begun() {
            // A damaged one is found when it is looked at for its news.
            let _ = lane.parts.replies.refresh();
        }
        while !lane.parts.replies.readable().is_empty() {
            any = true;
            match lane.inbox.take(lane.parts.replies.readable()) {
                Ok((len, frame)) => {
                    let is_known = frame.is_none_or(|frame| self.take_from_broker(&frame));
                    lane.parts.replies.consume(len);
                    lane.inbox.settle();
                    if !is_known {
                        broken = Some("an answer to nothing".to_owned());
                        break;
                    }
                }
                Err(error) => {
                    broken = Some(error.to_string());
                    break;
                }
            }
        }
        if lane.parts.replies.unreleased() > 0 && lane.parts.replies.release() {
            lane.ring();
        }
        self.pubsub.lane = Some(lane);
        if let Some(error) = broken {
            self.broker_lane_broken(&error);
        }
        self.check_long_outputs();
        any
    }

    /// False if it makes no sense.
    fn take_from_broker(&mut self, frame: &BrokerFrame<'_>) -> bool {
        let header = &frame.header;
        match header.kind {
            BrokerKind::Message => {
                self.deliver_message(frame);
                true
            }
            BrokerKind::Answer => {
                let who = Who {
                    index: header.connection,
                    generation: header.generation,
                };
                let is_it =
                    |asked: &mut Asked| (asked.who, asked.sequence) == (who, header.sequence);
                let Some(asked) = self.pubsub.asked.pop_front_if(is_it) else {
                    return false;
                };
                self.broker_answered(asked, header.count, frame.body);
                true
            }
            _ => false,
        }
    }

    fn broker_answered(&mut self, asked: Asked, count: u32, body: &[u8]) {
        match asked.what {
            What::Publish { .. } => {
                let mut number = itoa::Buffer::new();
                let reply = [b":", number.format(count).as_bytes(), b"\r\n"].concat();
                self.answer_asked(&asked, &reply);
            }
            What::Ask => self.answer_asked(&asked, body),
            What::Subscribe(subscribing) => {
                self.finish_subscribing(asked.who, asked.sequence, &subscribing);
            }
        }
    }

    fn answer_asked(&mut self, asked: &Asked, reply: &[u8]) {
        let Some(connection) = self.find_mut(asked.who) else {
            return;
        };
        if matches!(asked.what, What::Publish { is_counted: true }) {
            connection.publishing = connection.publishing.saturating_sub(1);
        }
        let ticket = Ticket {
            who: asked.who,
            sequence: asked.sequence,
            muted: false,
        };
        self.deliver(ticket, reply);
        self.look_at_wait(asked.who.index);
    }

    #[cold]
    fn broker_lane_broken(&mut self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "frames of the broker make no sense, link given up");
        if let Some(lane) = &self.pubsub.lane {
            self.shared
                .report_broken(lane.parts.link, lane.parts.generation);
        }
        self.pubsub.lane = None;
    }

    /// Makes what was written visible to the broker, and lets those go on that wait for room.
    pub(crate) fn flush_broker(&mut self) {
        if !self.pubsub.must_flush {
            return;
        }
        let pubsub = &mut self.pubsub;
        if let Some(lane) = &mut pubsub.lane {
            let requests = &mut lane.parts.requests;
            pubsub.outbox.drain(requests);
            if requests.publish() {
                lane.ring();
            }
        }
        pubsub.must_flush = !pubsub.outbox.is_empty();
        if !pubsub.must_flush {
            self.let_waiting_go_on();
        }
    }

    fn let_waiting_go_on(&mut self) {
        while let Some(who) = self.pubsub.waiting.pop_front() {
            let connection = self.find_mut(who);
            if connection.is_some_and(|connection| connection.wait == Wait::Room) {
                self.resume(who.index);
            }
        }
    }

    /// The broker keeps dying and comes back after a delay, or it is there again.
    pub(crate) fn set_broker_down(&mut self, is_down: bool) {
        self.pubsub.is_down = is_down;
        self.let_waiting_go_on();
    }

    /// There is a link to the broker, or to its successor.
    pub(crate) fn attach_broker(&mut self, parts: BrokerParts) {
        self.look_at_broker();
        self.take_messages();
        let mut again = Vec::new();
        if let Some(mut old) = self.pubsub.lane.take() {
            let (_, bytes) = old.parts.requests.unreleased();
            again = unbegun(bytes);
        }
        self.pubsub.outbox.drop_begun();
        again.extend(self.pubsub.outbox.take());
        again.retain(|bytes| BrokerFrame::decode(bytes).is_ok_and(|frame| is_sent_again(&frame)));
        self.pubsub.lane = Some(Lane {
            parts,
            inbox: Inbox::default(),
        });
        self.tell_who_listens();
        let mut names: Vec<(Who, u32)> = Vec::new();
        for bytes in again {
            if let Ok(frame) = BrokerFrame::decode(&bytes) {
                let header = frame.header;
                if header.flags & broker_flags::ANSWER != 0 || header.kind == BrokerKind::Ask {
                    let who = Who {
                        index: header.connection,
                        generation: header.generation,
                    };
                    names.push((who, header.sequence));
                }
            }
            self.pubsub.outbox.push(bytes);
        }
        self.pubsub.must_flush = true;
        self.give_up_what_was_begun(&names);
        self.look_everywhere = true;
        self.flush_broker();
    }

    fn tell_who_listens(&mut self) {
        let mut told: Vec<(Space, Box<[u8]>, usize)> = Vec::new();
        for space in Space::ALL {
            let all = self.pubsub.listeners[space as usize].iter();
            told.extend(all.map(|(name, count)| (space, name.into(), count)));
        }
        for (space, name, count) in told {
            let header = BrokerHeader {
                count: u32::try_from(count).unwrap_or(u32::MAX),
                ..BrokerHeader::new(BrokerKind::Subscribe, space)
            };
            self.pubsub.send(&header, &name, &[]);
        }
        // Those that are under way, answered in the order in which they are told.
        let asked = std::mem::take(&mut self.pubsub.asked);
        let (subscribing, others): (Vec<Asked>, Vec<Asked>) = asked
            .into_iter()
            .partition(|asked| matches!(asked.what, What::Subscribe(_)));
        for asked in subscribing {
            let What::Subscribe(subscribing) = &asked.what else {
                continue;
            };
            if self.find_mut(asked.who).is_none() {
                continue;
            }
            self.send_subscriptions(asked.who, asked.sequence, subscribing);
            self.pubsub.asked.push_back(asked);
        }
        self.pubsub.asked.extend(others);
        let header = BrokerHeader::new(BrokerKind::Restored, Space::Channel);
        self.pubsub.send(&header, b"", &[]);
    }

    /// What was under way and is not sent again: nobody knows what became of it.
    fn give_up_what_was_begun(&mut self, again: &[(Who, u32)]) {
        let mut given_up = Vec::new();
        let mut kept = std::collections::VecDeque::new();
        let mut next = again.iter().peekable();
        for asked in std::mem::take(&mut self.pubsub.asked) {
            // Those that are sent again are a part of the others, in the same order.
            let is_kept = matches!(asked.what, What::Subscribe(_))
                || next
                    .next_if(|known| **known == (asked.who, asked.sequence))
                    .is_some();
            if is_kept {
                kept.push_back(asked);
            } else {
                given_up.push(asked);
            }
        }
        self.pubsub.asked = kept;
        for asked in given_up {
            self.tally.messages_uncertain += 1;
            if matches!(asked.what, What::Ask) {
                let mut reply = Vec::new();
                super::publish::BROKER_GONE.write_resp(&mut reply);
                self.count_error(&CommandError::code(&super::publish::BROKER_GONE));
                self.answer_asked(&asked, &reply);
            } else {
                self.answer_asked(&asked, b":0\r\n");
            }
        }
    }
}
