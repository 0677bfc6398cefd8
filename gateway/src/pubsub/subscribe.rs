//! SUBSCRIBE, UNSUBSCRIBE and their relatives.
//!
//! A confirmation is written when the broker knows of the subscription, so whoever is told about it by this
//! client may publish and will be heard. Confirmations are written even to clients that asked for silence
//! (CLIENT REPLY), as in Redis.

use proto::frame::{BrokerHeader, BrokerKind, Space, broker_flags};
use proto::resp::ReplyWriter;

use super::{Asked, Subscribing, Subscriptions, What};
use crate::call::Call;
use crate::core::{Core, Flow, Ticket};
use crate::lanes::Who;

/// The word of a confirmation.
fn word(space: Space, is_subscription: bool) -> &'static [u8] {
    match (space, is_subscription) {
        (Space::Channel, true) => b"subscribe",
        (Space::Channel, false) => b"unsubscribe",
        (Space::Pattern, true) => b"psubscribe",
        (Space::Pattern, false) => b"punsubscribe",
        (Space::Shard, true) => b"ssubscribe",
        (Space::Shard, false) => b"sunsubscribe",
    }
}

/// One confirmation: what, of which name, and how many subscriptions there are now.
fn confirm(reply: &mut ReplyWriter<'_>, word: &[u8], name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.count(count);
}

impl Core {
    fn subscription(&self, index: u32, space: Space, name: &[u8]) -> Option<(u32, u32)> {
        let subscriptions = self.get(index)?.subscriptions.as_deref()?;
        let number = self.pubsub.listeners[space as usize].find(name)?;
        let place = subscriptions.names[space as usize].get(&number)?;
        Some((number, *place))
    }

    /// SUBSCRIBE channel ...
    pub(crate) fn subscribe(&mut self, call: &Call<'_>, space: Space) -> Flow {
        if let Some(flow) = self.wait_for_earlier(call.index) {
            return flow;
        }
        if let Some(flow) = self.wait_for_broker(call.index) {
            return flow;
        }
        let mut new: Vec<&[u8]> = call
            .args(1)
            .filter(|name| self.subscription(call.index, space, name).is_none())
            .collect();
        new.sort_unstable();
        new.dedup();
        let subscribing = Box::new(Subscribing {
            space,
            words: call.args(1).map(Box::from).collect(),
            new: new.into_iter().map(Box::from).collect(),
        });
        let ticket = Ticket {
            muted: false,
            ..self.answer_later(call.index)
        };
        if subscribing.new.is_empty() {
            self.finish_subscribing(ticket.who, ticket.sequence, &subscribing);
            return Flow::Stop;
        }
        self.send_subscriptions(ticket.who, ticket.sequence, &subscribing);
        self.pubsub.asked.push_back(Asked {
            who: ticket.who,
            sequence: ticket.sequence,
            what: What::Subscribe(subscribing),
        });
        Flow::Stop
    }

    /// Tells the broker about a subscription; it answers to the last name.
    pub(super) fn send_subscriptions(
        &mut self,
        who: Who,
        sequence: u32,
        subscribing: &Subscribing,
    ) {
        let mut header = BrokerHeader {
            connection: who.index,
            generation: who.generation,
            sequence,
            count: 1,
            ..BrokerHeader::new(BrokerKind::Subscribe, subscribing.space)
        };
        let last = subscribing.new.len().saturating_sub(1);
        for (at, name) in subscribing.new.iter().enumerate() {
            if at == last {
                header.flags = broker_flags::ANSWER;
            }
            self.pubsub.send(&header, name, &[]);
        }
    }

    /// The broker knows: the connection listens from here on.
    pub(super) fn finish_subscribing(
        &mut self,
        who: Who,
        sequence: u32,
        subscribing: &Subscribing,
    ) {
        let space = subscribing.space;
        let is_there = self
            .find_mut(who)
            .is_some_and(|connection| !connection.facts.ghost);
        if !is_there {
            for name in &subscribing.new {
                self.tell_of_leaving(space, name);
            }
            return;
        }
        let index = who.index;
        let mut reply = self.pool.take();
        for name in &subscribing.words {
            if self.subscription(index, space, name).is_none() {
                self.enter(index, space, name);
            }
            let Some(connection) = self.get(index) else {
                return;
            };
            let subscriptions = connection.subscriptions.as_deref();
            let count = subscriptions.map_or(0, |it| it.shown(space));
            let mut writer = ReplyWriter::to_vec(&mut reply, connection.facts.resp3);
            confirm(&mut writer, word(space, true), Some(name), count);
        }
        let ticket = Ticket {
            who,
            sequence,
            muted: false,
        };
        self.deliver(ticket, &reply);
        self.pool.give(reply);
    }

    fn enter(&mut self, index: u32, space: Space, name: &[u8]) {
        let (number, place) = self.pubsub.listeners[space as usize].add(name, index);
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        let subscriptions = connection.subscriptions.get_or_insert_default();
        subscriptions.names[space as usize].insert(number, place);
        if !connection.facts.subscribed {
            connection.facts.subscribed = true;
            connection.facts.settle();
            self.tally.subscribed += 1;
        }
    }

    /// One listener to a name is gone.
    fn leave(&mut self, index: u32, space: Space, number: u32) {
        let Some(subscriptions) = self
            .get_mut(index)
            .and_then(|it| it.subscriptions.as_deref_mut())
        else {
            return;
        };
        let Some(place) = subscriptions.names[space as usize].remove(&number) else {
            return;
        };
        let listeners = &mut self.pubsub.listeners[space as usize];
        let name = listeners.name_of(number);
        if let Some(moved) = listeners.remove(number, place)
            && let Some(subscriptions) = self
                .get_mut(moved)
                .and_then(|it| it.subscriptions.as_deref_mut())
        {
            subscriptions.names[space as usize].insert(number, place);
        }
        self.tell_of_leaving(space, &name);
    }

    fn tell_of_leaving(&mut self, space: Space, name: &[u8]) {
        let header = BrokerHeader {
            count: 1,
            ..BrokerHeader::new(BrokerKind::Unsubscribe, space)
        };
        self.pubsub.send(&header, name, &[]);
    }

    /// UNSUBSCRIBE [channel ...]
    pub(crate) fn unsubscribe(&mut self, call: &Call<'_>, space: Space) -> Flow {
        if let Some(flow) = self.wait_for_earlier(call.index) {
            return flow;
        }
        let index = call.index;
        let word = word(space, false);
        let mut reply = self.pool.take();
        if call.len() > 1 {
            for name in call.args(1) {
                if let Some((number, _)) = self.subscription(index, space, name) {
                    self.leave(index, space, number);
                }
                self.confirm_leaving(index, space, word, Some(name), &mut reply);
            }
        } else {
            let all = self.numbers_of(index, space);
            if all.is_empty() {
                self.confirm_leaving(index, space, word, None, &mut reply);
            }
            for number in all {
                let name = self.pubsub.listeners[space as usize].name_of(number);
                self.leave(index, space, number);
                self.confirm_leaving(index, space, word, Some(&name), &mut reply);
            }
        }
        self.settle_subscriptions(index);
        self.answer_anyway(index, &reply);
        self.pool.give(reply);
        Flow::Next
    }

    fn confirm_leaving(
        &self,
        index: u32,
        space: Space,
        word: &[u8],
        name: Option<&[u8]>,
        reply: &mut Vec<u8>,
    ) {
        if let Some(connection) = self.get(index) {
            let subscriptions = connection.subscriptions.as_deref();
            let count = subscriptions.map_or(0, |it| it.shown(space));
            let mut writer = ReplyWriter::to_vec(reply, connection.facts.resp3);
            confirm(&mut writer, word, name, count);
        }
    }

    /// The numbers of all names of a kind that a connection listens to.
    fn numbers_of(&self, index: u32, space: Space) -> Vec<u32> {
        let subscriptions = self.get(index).and_then(|it| it.subscriptions.as_deref());
        let numbers = subscriptions.map(|it| it.names[space as usize].keys().copied());
        let mut numbers: Vec<u32> = numbers.into_iter().flatten().collect();
        numbers.sort_unstable();
        numbers
    }

    /// A connection that listens to nothing any more is one like others.
    fn settle_subscriptions(&mut self, index: u32) {
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        let is_over = |it: &mut Box<Subscriptions>| it.is_empty() && it.held.is_empty();
        connection.subscriptions.take_if(is_over);
        let is_subscribed = connection
            .subscriptions
            .as_deref()
            .is_some_and(|it| !it.is_empty());
        if connection.facts.subscribed && !is_subscribed {
            connection.facts.subscribed = false;
            connection.facts.settle();
            self.tally.subscribed -= 1;
        }
    }

    /// The connection is gone, or says RESET: it listens to nothing any more.
    pub(crate) fn unsubscribe_all(&mut self, index: u32) {
        let has_any = self.get(index).is_some_and(|it| it.subscriptions.is_some());
        if !has_any {
            return;
        }
        for space in Space::ALL {
            for number in self.numbers_of(index, space) {
                self.leave(index, space, number);
            }
        }
        self.settle_subscriptions(index);
    }

    /// As `answer`, for what a client gets although it asked for silence.
    fn answer_anyway(&mut self, index: u32, reply: &[u8]) {
        let Self {
            connections, pool, ..
        } = self;
        if let Some(connection) = connections.get_mut(index as usize).and_then(Option::as_mut) {
            connection.replies.answer(reply, pool);
        }
        self.mark_dirty(index);
    }
}
