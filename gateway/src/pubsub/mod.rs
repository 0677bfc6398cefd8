//! Channels as a gateway thread sees them: who of its connections listens, and the link to the broker.
//!
//! ```text
//!   SUBSCRIBE ──> told to the broker ──Answer──> entered in the table, confirmed
//!   PUBLISH   ──> told to the broker ──Answer──> number of receivers
//!   broker    ──Message──> encoded once per protocol ──> outputs of all that listen
//! ```
//!
//! The broker answers in the order in which it was told, so what is under way is a queue. It knows how many
//! connections of this thread listen to a name, not which.
//!
//! Invariants
//!   B1  a connection is in the table exactly from the confirmation of its subscription on; so nothing
//!       of a channel comes before that.
//!   B2  the broker knows, once it has read what was sent, for each name as many listeners as there are in
//!       the table and in subscriptions under way.
//!
//! Files: `listeners` (the table), `lane` (the link, and what happens if the broker dies), `subscribe`,
//! `publish`, `deliver`.
//!
//! Cost for a thread that nobody uses for messages: a flag per turn. Per message and listener a copy into
//! its output.

mod deliver;
mod lane;
mod listeners;
mod publish;
mod subscribe;

use std::collections::VecDeque;

use hashbrown::HashMap;
use proto::frame::{BrokerHeader, Space};
use runtime::Outbox;

pub(crate) use lane::BrokerParts;

use crate::lanes::Who;
use listeners::Listeners;

/// A SUBSCRIBE that the broker has been told.
#[derive(Debug)]
struct Subscribing {
    space: Space,
    /// The names as the client gave them.
    words: Vec<Box<[u8]>>,
    /// Those that are new to the connection, each once.
    new: Vec<Box<[u8]>>,
}

/// What the broker has been told and not answered yet.
#[derive(Debug)]
enum What {
    Publish {
        /// Its connection counts it as being published; otherwise it waits.
        is_counted: bool,
    },
    Ask,
    Subscribe(Box<Subscribing>),
}

#[derive(Debug)]
struct Asked {
    who: Who,
    sequence: u32,
    what: What,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PubSub {
    lane: Option<lane::Lane>,
    /// The broker keeps dying; its successor comes after a delay.
    is_down: bool,
    outbox: Outbox,
    /// Something was written, or waits for room.
    must_flush: bool,
    /// By number of the space.
    listeners: [Listeners; 3],
    asked: VecDeque<Asked>,
    /// Connections whose command waits for room.
    waiting: VecDeque<Who>,
    /// Connections for which messages wait for the end of a reply.
    held: Vec<Who>,
    /// Connections with messages to be written, oldest first.
    to_write: VecDeque<u32>,
    /// Connections whose output may be too long.
    over: Vec<u32>,
    // Scratch space, empty between two uses.
    resp2: Vec<u8>,
    resp3: Vec<u8>,
}

/// What a connection listens to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// By number of the space: for each name its place among the listeners to it.
    names: [HashMap<u32, u32>; 3],
    /// Messages that wait for the end of a reply.
    held: Vec<u8>,
}

impl Subscriptions {
    /// How many of a kind.
    pub(crate) fn count(&self, space: Space) -> usize {
        self.names[space as usize].len()
    }

    fn is_empty(&self) -> bool {
        self.names.iter().all(HashMap::is_empty)
    }

    /// The number that a confirmation names.
    fn shown(&self, space: Space) -> usize {
        match space {
            Space::Shard => self.count(Space::Shard),
            Space::Channel | Space::Pattern => {
                self.count(Space::Channel) + self.count(Space::Pattern)
            }
        }
    }
}

impl PubSub {
    /// Whether there is a link to the broker.
    pub(crate) fn has_lane(&self) -> bool {
        self.lane.is_some()
    }

    /// Whether nobody waits for messages to be written.
    #[inline]
    pub(crate) fn is_all_written(&self) -> bool {
        self.to_write.is_empty()
    }

    /// The next connection to whom messages are to be written.
    pub(crate) fn next_to_write(&mut self) -> Option<u32> {
        self.to_write.pop_front()
    }

    /// Whether the broker can be told anything. One that has died and comes back at once counts.
    fn is_usable(&self) -> bool {
        self.lane.is_some() && !self.is_down
    }

    fn send(&mut self, header: &BrokerHeader, name: &[u8], body: &[&[u8]]) {
        let ring = self.lane.as_mut().map(|lane| &mut lane.parts.requests);
        self.outbox.send(ring, header, name, body);
        self.must_flush = true;
    }
}
