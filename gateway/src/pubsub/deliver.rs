//! Messages on their way to those who listen.
//!
//! A message is encoded once for each protocol version and copied into the outputs of its listeners. It goes
//! behind every reply that is already there, but never into the middle of one: a reply that is being sent in
//! pieces, or that of an EXEC, comes to its end first. What a script publishes comes behind the reply to the
//! script, as with Redis, although it is published before.
//!
//! Writing to the sockets is what a message costs. So that many listeners do not keep those waiting who want
//! replies, replies are written first, and messages for a short time per turn (`limits::MESSAGES_PER_TURN`).
//!
//! Cost: per listener a look at its connection and a copy; the socket is written once, whatever the number
//! of messages that have come meanwhile.

use proto::frame::{BrokerFrame, Space, broker_flags, split_name};
use proto::resp::ReplyWriter;

use super::PubSub;
use crate::connection::{Closing, Connection};
use crate::core::Core;

fn encode(out: &mut Vec<u8>, resp3: bool, words: &[&[u8]]) {
    out.clear();
    let mut writer = ReplyWriter::to_vec(out, resp3);
    writer.push(words.len());
    words.iter().for_each(|word| writer.bulk(word));
}

impl Connection {
    /// Whether a message would come into the middle of a reply.
    fn is_within_reply(&self) -> bool {
        let is_under_way = |sequence: u32| self.replies.before(sequence) < self.replies.in_flight();
        self.running.is_some()
            || self.replies.is_head_begun()
            || self.unit.is_some_and(is_under_way)
    }

    /// Whether a message has to wait, for the end of a reply or behind others that do.
    fn holds_messages(&self) -> bool {
        let subscriptions = self.subscriptions.as_deref();
        self.is_within_reply() || subscriptions.is_some_and(|it| !it.held.is_empty())
    }
}

impl Core {
    /// Hands a message to all that listen.
    pub(super) fn deliver_message(&mut self, frame: &BrokerFrame<'_>) {
        let header = &frame.header;
        let mut patterns = Vec::new();
        let mut message = frame.body;
        for _ in 0..header.count {
            let Some((pattern, rest)) = split_name(message) else {
                return;
            };
            patterns.push(pattern);
            message = rest;
        }
        if header.flags & broker_flags::DIRECT != 0 {
            let kind: &[u8] = match header.space {
                Space::Shard => b"smessage",
                Space::Channel | Space::Pattern => b"message",
            };
            self.fan_out(header.space, frame.name, &[kind, frame.name, message]);
        }
        for pattern in patterns {
            let words = [&b"pmessage"[..], pattern, frame.name, message];
            self.fan_out(Space::Pattern, pattern, &words);
        }
    }

    fn fan_out(&mut self, space: Space, name: &[u8], words: &[&[u8]]) {
        let Self {
            connections,
            pool,
            pubsub,
            tally,
            live,
            ..
        } = self;
        let PubSub {
            listeners,
            resp2,
            resp3,
            held,
            to_write,
            over,
            ..
        } = pubsub;
        let listeners = &listeners[space as usize];
        let Some(number) = listeners.find(name) else {
            return;
        };
        resp2.clear();
        resp3.clear();
        for &index in listeners.of(number) {
            let Some(Some(connection)) = connections.get_mut(index as usize) else {
                continue;
            };
            if connection.closing == Closing::Now {
                continue;
            }
            let is_resp3 = connection.facts.resp3;
            let encoded = if is_resp3 { &mut *resp3 } else { &mut *resp2 };
            if encoded.is_empty() {
                encode(encoded, is_resp3, words);
            }
            tally.messages_delivered += 1;
            if connection.holds_messages() {
                let who = connection.who(index);
                let subscriptions = connection.subscriptions.get_or_insert_default();
                if subscriptions.held.is_empty() {
                    held.push(who);
                }
                subscriptions.held.extend_from_slice(encoded);
                if subscriptions.held.len() > live.subscriber_limits.hard {
                    over.push(index);
                }
                continue;
            }
            connection.replies.push(encoded, pool);
            if connection.replies.unsent().len() > live.subscriber_limits.hard {
                over.push(index);
            }
            // With replies, messages are written in this turn; alone they wait for their turn.
            if !connection.facts.dirty && !connection.facts.heard {
                connection.facts.heard = true;
                to_write.push_back(index);
            }
        }
        const KEPT: usize = 64 << 10;
        for encoded in [resp2, resp3] {
            if encoded.capacity() > KEPT {
                *encoded = Vec::new();
            }
        }
    }

    /// The next command runs a script.
    pub(crate) fn note_unit(&mut self, index: u32) {
        if let Some(connection) = self.get_mut(index) {
            connection.unit = Some(connection.replies.upcoming());
        }
    }

    /// Messages that waited for the end of a reply go out behind it.
    #[inline]
    pub(crate) fn release_held(&mut self) {
        if !self.pubsub.held.is_empty() {
            self.release_some();
        }
    }

    #[cold]
    fn release_some(&mut self) {
        let mut held = std::mem::take(&mut self.pubsub.held);
        held.retain(|&who| {
            let Some(connection) = self.find_mut(who) else {
                return false;
            };
            if connection.is_within_reply() {
                return true;
            }
            let subscriptions = connection.subscriptions.as_deref_mut();
            let bytes = subscriptions.map(|it| std::mem::take(&mut it.held));
            if let Some(Some(connection)) = self.connections.get_mut(who.index as usize) {
                let bytes = bytes.unwrap_or_default();
                connection.replies.push(&bytes, &mut self.pool);
            }
            self.mark_dirty(who.index);
            false
        });
        held.append(&mut self.pubsub.held);
        self.pubsub.held = held;
    }

    /// Closes those whose outputs have become too long.
    pub(super) fn check_long_outputs(&mut self) {
        while let Some(index) = self.pubsub.over.pop() {
            self.check_output_limit(index);
        }
    }
}
