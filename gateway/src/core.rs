//! The part of a gateway thread that decides: all of its connections, its lanes, its commands.
//!
//! It does no I/O and reads no clock. The driver hands it bytes, reply frames, letters and the time;
//! it hands back bytes for sockets and a few lists of what to do:
//!
//! ```text
//!   read ──> input()            ─┐                    ┌─> dirty:    sockets with output
//!   rings ─> collect_replies()  ─┤   connections,     ├─> closing:  sockets to close
//!   mail ──> letter()           ─┤   lanes, timers    ├─> lanes:    frames, flushed by the driver
//!   clock ─> tick()             ─┘                    └─> letters to other threads
//! ```
//!
//! Files: `reading` parses, `admission` decides whether a command may run now, `router`, `split` and
//! `atomic` send it, `answers` takes what comes back, `steps` runs commands in several steps, `commands` holds
//! those that the gateway answers itself.
//!
//! Cost: a command that one worker executes takes one lookup of its connection when it is read and one
//! per reply frame; nothing is allocated and no clock is read.

use std::sync::Arc;

use proto::resp::RequestParser;

use crate::answers::Aftermath;
use crate::connection::{Closing, Connection, Origin, Wait};
use crate::lanes::{Lanes, Who};
use crate::live::Live;
use crate::mail::Asks;
use crate::order::BufferPool;
use crate::pubsub::PubSub;
use crate::router::Large;
use crate::scripts::SeenScripts;
use crate::shared::Shared;
use crate::tally::Tally;
use crate::telling::Telling;
use crate::timers::Timers;

/// The time as one turn of the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    /// Milliseconds since the thread started; never goes back.
    pub(crate) millis: u64,
    /// Microseconds since 1970.
    pub(crate) unix_micros: u64,
}

/// CLIENT PAUSE as this thread knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// End, in milliseconds since 1970.
    pub(crate) until_unix_millis: u64,
    /// Only commands that write wait.
    pub(crate) writes_only: bool,
}

/// What happens after a command has been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It is done or under way: the next one.
    Next,
    /// It is done or under way, but the connection waits or closes: no further one now.
    Stop,
    /// It could not be taken now and stays where it is; `wait` of the connection says why.
    Retry,
}

/// A command under way that is answered later, outside of rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) who: Who,
    pub(crate) sequence: u32,
    pub(crate) muted: bool,
}

/// One gateway thread without its sockets.
#[derive(Debug)]
pub(crate) struct Core {
    /// Number of this thread among those of the process.
    pub(crate) thread: usize,
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    /// Generation of the next connection at each place.
    generations: Vec<u32>,
    free: Vec<u32>,
    pub(crate) lanes: Lanes,
    pub(crate) pool: BufferPool,
    pub(crate) live: Arc<Live>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) now: Now,
    pub(crate) tally: Tally,
    pub(crate) pause: Option<Pause>,
    pub(crate) timers: Timers,
    pub(crate) asks: Asks,
    /// Channels, and the link to the broker.
    pub(crate) pubsub: PubSub,
    /// Sockets that have output.
    pub(crate) dirty: Vec<u32>,
    /// Sockets to close, with the generation of their connection.
    pub(crate) closing: Vec<Who>,
    /// Connections whose wait is over.
    pub(crate) runnable: Vec<Who>,
    /// Sockets that were left unread and may be read again.
    pub(crate) readable: Vec<u32>,
    /// When an orderly end must be over, once it has begun: no new commands are taken.
    pub(crate) drain_until: Option<u64>,
    pub(crate) survey_at: u64,
    pub(crate) random: u64,
    /// Successors of workers that are being told who waits.
    pub(crate) tellings: Vec<Telling>,
    /// Hashes of scripts that are known to be remembered, and for which epoch.
    pub(crate) seen_scripts: SeenScripts,
    /// A script of some worker runs for too long.
    pub(crate) is_any_busy: bool,
    /// Settings ask for replicas behind every write, and there are none.
    pub(crate) lacks_replicas: bool,
    /// The request that the router could not put into one frame.
    pub(crate) large: Option<Box<Large>>,
    // Scratch space, empty between two uses.
    pub(crate) parser: RequestParser,
    pub(crate) spans: Vec<(u32, u32)>,
    /// Reused when the keys of a command have to be searched.
    pub(crate) found_keys: Vec<proto::catalogue::KeyAt>,
    pub(crate) aftermath: Aftermath,
    pub(crate) waiters: Vec<Who>,
    pub(crate) announced: Vec<usize>,
    /// Commands of a connection are called back if more reply bytes than this are held for it.
    pub(crate) recall_bytes: usize,
    /// A lane is new: its ring may have replies that were announced before it was known.
    pub(crate) look_everywhere: bool,
}

impl Core {
    pub(crate) fn new(thread: usize, live: Arc<Live>, shared: Arc<Shared>, tally: Tally) -> Self {
        let lacks_replicas = live.lacks_replicas;
        let mut core = Self {
            thread,
            connections: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            lanes: Lanes::new(),
            pool: BufferPool::default(),
            live,
            shared,
            now: Now::default(),
            tally,
            pause: None,
            timers: Timers::default(),
            asks: Asks::default(),
            pubsub: PubSub::default(),
            dirty: Vec::new(),
            closing: Vec::new(),
            runnable: Vec::new(),
            readable: Vec::new(),
            drain_until: None,
            survey_at: 0,
            random: 0x9e37_79b9_7f4a_7c15 ^ (thread as u64 + 1),
            tellings: Vec::new(),
            seen_scripts: SeenScripts::default(),
            is_any_busy: false,
            lacks_replicas,
            large: None,
            parser: RequestParser::new(),
            spans: Vec::new(),
            found_keys: Vec::new(),
            aftermath: Aftermath::default(),
            waiters: Vec::new(),
            announced: Vec::new(),
            recall_bytes: crate::limits::RECALL_BYTES,
            look_everywhere: false,
        };
        core.choose_timing();
        core
    }

    /// Takes a new client; returns its place, which is also the place of its socket.
    pub(crate) fn open(&mut self, origin: Origin, descriptor: i32) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.generations.push(0);
            u32::try_from(self.connections.len() - 1).unwrap_or(u32::MAX)
        });
        let place = index as usize;
        let generation = self.generations[place].wrapping_add(1);
        self.generations[place] = generation;
        let id = self.shared.next_client_id();
        let mut connection = Connection::new(id, generation, origin, self.now.millis);
        connection.descriptor = descriptor;
        connection.facts.authenticated = self.live.password.is_none();
        connection.facts.settle();
        self.connections[place] = Some(Box::new(connection));
        self.tally.connections_received += 1;
        self.tally.connections += 1;
        index
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Connection> {
        self.connections.get(index as usize)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.connections.get_mut(index as usize)?.as_deref_mut()
    }

    /// The connection that `who` meant, if it is still that one.
    #[inline]
    pub(crate) fn find_mut(&mut self, who: Who) -> Option<&mut Connection> {
        self.get_mut(who.index)
            .filter(|connection| connection.generation == who.generation)
    }

    /// Whether a client has said MULTI.
    pub(crate) fn is_in_multi(&self, index: u32) -> bool {
        self.get(index)
            .is_some_and(|connection| connection.facts.in_multi)
    }

    /// All clients of this thread that have a socket.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (u32, &Connection)> {
        (0u32..)
            .zip(&self.connections)
            .filter_map(|(index, place)| {
                place
                    .as_deref()
                    .filter(|connection| !connection.facts.ghost)
                    .map(|c| (index, c))
            })
    }

    /// The driver has closed the socket of `who`.
    pub(crate) fn closed(&mut self, who: Who) {
        let Some(connection) = self.find_mut(who) else {
            return;
        };
        if connection.facts.ghost {
            return;
        }
        // A command in several steps always runs to its end: it may have written half of its keys.
        let stepping = connection.gathers.iter().any(|gather| gather.is_step());
        connection.closing = Closing::Now;
        if let Some(pending) = connection.pending.take() {
            self.pool.give(pending.bytes);
        }
        self.lanes.settle_transfers(who, true);
        self.cancel_blocking(who);
        self.cancel_watching(who);
        self.unsubscribe_all(who.index);
        self.tally.connections -= 1;
        self.shared.client_left();
        if stepping {
            if let Some(connection) = self.find_mut(who) {
                connection.facts.ghost = true;
            }
        } else {
            self.free_place(who.index);
        }
    }

    /// Frees the place of a connection whose socket is gone.
    pub(crate) fn free_place(&mut self, index: u32) {
        if let Some(mut connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::take)
        {
            connection.give_back(&mut self.pool);
            self.free.push(index);
        }
    }

    /// Tells the driver that `index` has output. Also looks whether its wait is over.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, index: u32) {
        if let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            && !connection.facts.dirty
        {
            connection.facts.dirty = true;
            self.dirty.push(index);
        }
    }

    /// Ends a connection at once.
    pub(crate) fn close_now(&mut self, index: u32) {
        if let Some(connection) = self.get_mut(index)
            && connection.closing != Closing::Now
        {
            connection.closing = Closing::Now;
            let who = connection.who(index);
            self.closing.push(who);
        }
    }

    /// Ends a connection when everything that it asked so far is answered.
    pub(crate) fn close_after_replies(&mut self, index: u32) {
        if let Some(connection) = self.get_mut(index)
            && connection.closing == Closing::No
        {
            connection.closing = Closing::AfterReplies;
            self.mark_dirty(index);
        }
    }

    /// Ends a connection that was to end after its replies, if they are all sent.
    pub(crate) fn close_if_done(&mut self, index: u32) {
        if let Some(connection) = self.get(index)
            && connection.closing == Closing::AfterReplies
            && connection.replies.in_flight() == 0
            && connection.replies.unsent().is_empty()
        {
            self.close_now(index);
        }
    }

    /// Puts a connection on the list of those that go on.
    #[inline]
    pub(crate) fn resume(&mut self, index: u32) {
        if let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
        {
            if !connection.has_all_back() {
                connection.wait = Wait::Earlier;
                return;
            }
            connection.wait = Wait::Nothing;
            if !connection.facts.listed {
                connection.facts.listed = true;
                self.runnable.push(Who {
                    index,
                    generation: connection.generation,
                });
            }
            if connection.facts.blocked {
                self.set_blocked(index, false);
            }
        }
    }

    /// Lets a connection go on if what it waits for has come. Call it after replies or writes.
    #[inline]
    pub(crate) fn look_at_wait(&mut self, index: u32) {
        let Some(connection) = self.get(index) else {
            return;
        };
        if connection.recall.is_some() {
            self.send_recalled(index);
        }
        let Some(connection) = self.get(index) else {
            return;
        };
        let over = match connection.wait {
            Wait::Nothing
            | Wait::Room
            | Wait::Pause
            | Wait::Answer
            | Wait::Time
            | Wait::Replicas => return,
            Wait::Window => connection.has_window(),
            Wait::Earlier => connection.replies.in_flight() == 0,
            Wait::Blocked => {
                let over = connection.replies.in_flight() == 0;
                if over {
                    self.end_blocking(index);
                }
                over
            }
            Wait::Transfer => {
                let over = connection.replies.in_flight() == 0;
                if over {
                    let who = connection.who(index);
                    self.lanes.settle_transfers(who, false);
                }
                over
            }
        };
        if over {
            self.resume(index);
        }
    }

    /// Whether the driver should read the socket of `index`.
    pub(crate) fn wants_input(&self, index: u32) -> bool {
        let Some(connection) = self.get(index) else {
            return false;
        };
        if connection.closing != Closing::No || connection.facts.ended {
            return false;
        }
        let held = connection
            .pending
            .as_ref()
            .map_or(0, |pending| pending.rest().len());
        match connection.wait {
            Wait::Nothing => connection.replies.unsent().len() < crate::limits::OUTPUT_PAUSE_BYTES,
            Wait::Room | Wait::Window | Wait::Transfer => false,
            Wait::Earlier
            | Wait::Pause
            | Wait::Answer
            | Wait::Time
            | Wait::Replicas
            | Wait::Blocked => held < crate::limits::READ_AHEAD_BYTES,
        }
    }

    /// Replies to the command under way with ready RESP bytes.
    #[inline]
    pub(crate) fn answer(&mut self, index: u32, reply: &[u8]) {
        let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        if connection.is_muted() {
            return;
        }
        connection.replies.answer(reply, &mut self.pool);
        if !connection.facts.dirty {
            connection.facts.dirty = true;
            self.dirty.push(index);
        }
    }

    /// The command under way is answered later: takes its place in the order and stops the connection
    /// until `deliver` is called.
    pub(crate) fn answer_later(&mut self, index: u32) -> Ticket {
        let Some(connection) = self.get_mut(index) else {
            return Ticket {
                who: Who {
                    index,
                    generation: 0,
                },
                sequence: 0,
                muted: true,
            };
        };
        connection.wait = Wait::Answer;
        Ticket {
            who: connection.who(index),
            sequence: connection.replies.assign(),
            muted: connection.is_muted(),
        }
    }

    /// As `answer_later`, for a command that lets time pass: `reply` comes at `at_millis`, or never.
    pub(crate) fn answer_at(&mut self, index: u32, at_millis: Option<u64>, reply: &[u8]) {
        let ticket = self.answer_later(index);
        if let Some(connection) = self.find_mut(ticket.who) {
            connection.wait = Wait::Time;
        }
        if let Some(at_millis) = at_millis {
            self.timers.add(at_millis, ticket, reply.to_vec());
        }
    }

    /// The answer to a ticket; the connection goes on.
    pub(crate) fn deliver(&mut self, ticket: Ticket, reply: &[u8]) {
        let index = ticket.who.index;
        let reply = if ticket.muted { &[][..] } else { reply };
        let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .filter(|connection| connection.generation == ticket.who.generation)
        else {
            return;
        };
        let rings = self.lanes.reply_rings();
        connection
            .replies
            .complete(ticket.sequence, 1, reply, &rings, &mut self.pool);
        // Who waits for an answer waits for that to its latest command; earlier ones may still come.
        let latest = ticket.sequence == connection.replies.upcoming().wrapping_sub(1);
        let is_awaited = matches!(connection.wait, Wait::Answer | Wait::Time | Wait::Replicas);
        if latest && is_awaited {
            self.resume(index);
        }
        self.mark_dirty(index);
        self.close_if_done(index);
    }

    /// A number that is good enough to choose a worker by (xorshift).
    pub(crate) fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
