//! The shell of a gateway thread: one future that moves bytes between sockets, core and rings.
//!
//! ```text
//!   a turn   1 time, mail, timers
//!            2 replies of workers that announced some
//!            3 read ready sockets -> core -> request rings; publish every 64 requests
//!            4 publish the rest, ring doorbells
//!            5 replies again, then write every socket that has output, once, and some of those that
//!              have only messages
//!            6 nothing left: say that we sleep, look once more, sleep in epoll
//! ```
//!
//! Waking: sockets, the eventfd of the doorbell (rung by workers and other threads) and the timer each
//! have a waker that puts them on the ready list. Before sleeping the thread publishes `sleeping` and
//! looks at all news once more, so that no ring and no letter is missed.
//!
//! Decisions are made in `core`; here is only the order of things.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use shm::Party;

use crate::core::{Core, Now};
use crate::limits;
use crate::listener::{Accepted, Listening};
use crate::shared::Shared;
use crate::sockets::{
    BELL, FIRST_LISTENER, FIRST_SPECIAL, ReadOutcome, Sockets, TIMER, WriteOutcome,
};
use crate::watched::{Bell, Timer};

/// Everything that one thread drives.
pub(crate) struct Driver {
    core: Core,
    shared: Arc<Shared>,
    party: Arc<Party>,
    sockets: Sockets,
    doors: Vec<Door>,
    bell: Bell,
    /// The bell has been rung since the last look at the rings.
    is_rung: bool,
    timer: Timer,
    started: Instant,
    /// Microseconds since 1970 at the start, as the system's clock says now.
    started_unix: u64,
    /// When timers and limits are looked at next.
    tick_at: u64,
    /// Listeners are not polled before this time: there were no descriptors left.
    accept_again_at: u64,
    /// Clients are accepted: every worker's lane has been there, and the broker's.
    is_open: bool,
    ready: Vec<u32>,
    buffer: Box<[u8]>,
}

/// A listening socket and whether somebody may be waiting there.
struct Door {
    listening: Listening,
    waker: Waker,
    is_knocked: bool,
}

impl Driver {
    /// Needs the runtime of the thread that will run it.
    pub(crate) fn new(
        core: Core,
        party: Arc<Party>,
        bell: OwnedFd,
        listeners: Vec<Listening>,
    ) -> std::io::Result<Self> {
        let sockets = Sockets::default();
        let bell = Bell::new(bell, sockets.waker(BELL))?;
        bell.arm();
        let timer = Timer::new(sockets.waker(TIMER))?;
        let doors = listeners
            .into_iter()
            .zip(FIRST_LISTENER..)
            .map(|(listening, place)| Door {
                listening,
                waker: sockets.waker(place),
                is_knocked: true,
            });
        Ok(Self {
            doors: doors.collect(),
            shared: Arc::clone(&core.shared),
            core,
            party,
            sockets,
            bell,
            is_rung: false,
            timer,
            started: Instant::now(),
            started_unix: 0,
            tick_at: 0,
            accept_again_at: 0,
            is_open: false,
            ready: Vec::new(),
            buffer: vec![0; limits::READ_BUFFER_BYTES].into_boxed_slice(),
        })
    }

    /// Looks at the clock; at the time of day only when it is time for a tick.
    fn read_clock(&mut self) {
        let elapsed = self.started.elapsed();
        let micros = elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros());
        let millis = micros / 1000;
        if millis >= self.tick_at {
            let unix = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let unix = u64::try_from(unix.as_micros()).unwrap_or(u64::MAX);
            self.started_unix = unix.saturating_sub(micros);
        }
        self.core.now = Now {
            millis,
            unix_micros: self.started_unix + micros,
        };
    }

    /// One turn. True if another one should follow without sleeping.
    fn turn(&mut self, context: &mut Context<'_>) -> bool {
        self.read_clock();
        self.take_ready(context);
        self.take_mail();
        self.core.look_at_scripts();
        // News says which rings to look at. A ring without any, or a tick, means all of them: who rang
        // may have died between publishing and announcing.
        let mut is_every = std::mem::take(&mut self.is_rung) && !self.party.news().any();
        if self.core.now.millis >= self.tick_at {
            self.core.tick();
            self.tick_at = self.core.now.millis + limits::TICK_MILLIS;
            is_every = true;
        }
        let mut replies = self.core.collect_replies(&self.party, is_every);
        let mut busy = self.accept();
        let is_short = self.ready.len() <= limits::SHORT_TURN;
        busy |= self.read_ready();
        self.core.run_resumed();
        busy |= self.core.serve_lanes();
        self.core.lanes.flush();
        replies |= self.core.collect_replies(&self.party, false);
        self.core.release_held();
        self.write_dirty();
        if !self.core.pubsub.is_all_written() {
            busy |= self.write_messages();
        }
        self.close_closing();
        self.core.publish_tally();
        self.ready.append(&mut self.core.readable);
        // After replies more of them are likely, and so are sockets that have become ready: worth a
        // look without saying that we sleep. Not with little load, when it only costs that look.
        busy |= replies && !is_short;
        if replies && is_short {
            self.core.lanes.flush();
        }
        busy || !self.core.runnable.is_empty() || !self.ready.is_empty()
    }

    fn take_mail(&mut self) {
        let Some(mailbox) = self.shared.mailboxes.get(self.core.thread) else {
            return;
        };
        if mailbox.has_mail() {
            for letter in mailbox.take() {
                self.core.letter(letter);
            }
        }
    }

    /// Takes the list of what is ready. What is not a socket of a client is dealt with at once.
    fn take_ready(&mut self, context: &Context<'_>) {
        let mut at = self.ready.len();
        self.sockets.ready.take(&mut self.ready, context.waker());
        while let Some(&place) = self.ready.get(at) {
            if place < FIRST_SPECIAL {
                at += 1;
                continue;
            }
            self.ready.swap_remove(at);
            match place {
                BELL => {
                    self.bell.arm();
                    self.is_rung = true;
                }
                TIMER => self.timer.fired(),
                _ => {
                    let door = place.wrapping_sub(FIRST_LISTENER) as usize;
                    if let Some(door) = self.doors.get_mut(door) {
                        door.is_knocked = true;
                    }
                }
            }
        }
    }

    /// Takes new clients, a portion per listener. True if more may be waiting.
    fn accept(&mut self) -> bool {
        // The first client must find every worker and the broker.
        self.is_open =
            self.is_open || (self.core.lanes.are_complete() && self.core.pubsub.has_lane());
        let is_late = self.core.drain_until.is_some();
        if !self.is_open || is_late || self.core.now.millis < self.accept_again_at {
            return false;
        }
        let mut more = false;
        for at in 0..self.doors.len() {
            if self.doors[at].is_knocked {
                self.accept_at(at);
                more |= self.doors[at].is_knocked && self.accept_again_at == 0;
            }
        }
        more
    }

    fn accept_at(&mut self, at: usize) {
        self.accept_again_at = 0;
        for _ in 0..limits::ACCEPTS_PER_TURN {
            let Some(door) = self.doors.get_mut(at) else {
                return;
            };
            let mut context = Context::from_waker(&door.waker);
            match door
                .listening
                .accept(&mut context, &self.core.live, &self.shared)
            {
                Accepted::Client(stream, origin, descriptor) => {
                    let place = self.core.open(origin, descriptor);
                    self.sockets.insert(place, stream);
                    self.ready.push(place);
                }
                Accepted::Refused => self.core.tally.connections_rejected += 1,
                Accepted::Nobody => {
                    door.is_knocked = false;
                    return;
                }
                Accepted::Exhausted(error) => {
                    tracing::warn!(%error, "cannot accept clients for a moment");
                    self.accept_again_at = self.core.now.millis + limits::TICK_MILLIS;
                    return;
                }
            }
        }
    }

    /// Reads the sockets that have something, at most a portion. True if some are left.
    fn read_ready(&mut self) -> bool {
        let mut ready = std::mem::take(&mut self.ready);
        let portion = ready.len().min(limits::READS_PER_TURN);
        for at in 0..portion {
            let Some(&place) = ready.get(at) else { break };
            if self.sockets.take_wants_write(place) {
                self.core.mark_dirty(place);
            }
            self.read(place);
        }
        ready.drain(..portion);
        ready.append(&mut self.ready);
        self.ready = ready;
        !self.ready.is_empty()
    }

    /// Reads one socket once and hands the bytes to the core.
    fn read(&mut self, place: u32) {
        if !self.core.wants_input(place) {
            // Its readiness stays set; it is listed again when the core goes on with it.
            self.core.note_unread(place);
            return;
        }
        let outcome = match self.core.own_buffer(place) {
            Some(buffer) => {
                let outcome = self.sockets.read_behind(place, buffer);
                if let ReadOutcome::Bytes { count, .. } = outcome {
                    self.core.own_buffer_filled(place, count);
                }
                outcome
            }
            None => {
                let outcome = self.sockets.read(place, &mut self.buffer);
                if let ReadOutcome::Bytes { count, .. } = outcome
                    && let Some(bytes) = self.buffer.get(..count)
                    && count > 0
                {
                    self.core.input(place, bytes);
                }
                outcome
            }
        };
        match outcome {
            ReadOutcome::Pending => {}
            ReadOutcome::Bytes { more, .. } => {
                // Whoever is not read now is watched when the core wants more of it.
                if self.core.wants_input(place) {
                    if more || !self.sockets.watch(place) {
                        self.ready.push(place);
                    }
                } else {
                    self.core.note_unread(place);
                }
            }
            ReadOutcome::End => self.core.input_ended(place),
            ReadOutcome::Broken => self.core.close_now(place),
        }
    }

    /// Writes every socket that has output, once.
    fn write_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.core.dirty);
        for place in dirty.drain(..) {
            if let Some(connection) = self.core.get_mut(place) {
                connection.facts.dirty = false;
                self.write(place);
            }
        }
        // What was put in meanwhile (large outputs go on next turn) stays.
        if self.core.dirty.is_empty() {
            self.core.dirty = dirty;
        }
    }

    /// Writes what one socket takes of its output.
    #[inline]
    fn write(&mut self, place: u32) {
        let Some(connection) = self.core.get(place) else {
            return;
        };
        let unsent = connection.replies.unsent();
        if unsent.is_empty() {
            return self.core.close_if_done(place);
        }
        let portion = unsent.len().min(limits::WRITE_BYTES_PER_TURN);
        match self.sockets.write(place, &unsent[..portion]) {
            WriteOutcome::Taken(count) => self.core.sent(place, count),
            WriteOutcome::Pending => self.core.check_output_limit(place),
            WriteOutcome::Broken => self.core.close_now(place),
        }
    }

    /// Writes messages to those who listen, for a short time. True if more are to be written.
    #[cold]
    fn write_messages(&mut self) -> bool {
        let began = Instant::now();
        while let Some(place) = self.core.pubsub.next_to_write() {
            if let Some(connection) = self.core.get_mut(place) {
                connection.facts.heard = false;
                self.write(place);
            }
            if began.elapsed() >= limits::MESSAGES_PER_TURN {
                break;
            }
        }
        !self.core.pubsub.is_all_written()
    }

    fn close_closing(&mut self) {
        if self.core.closing.is_empty() {
            return;
        }
        while let Some(who) = self.core.closing.pop() {
            if self.core.find_mut(who).is_some() {
                self.sockets.remove(who.index);
                self.core.closed(who);
            }
        }
        // Workers hear at once whom nobody has to wait for any more.
        self.core.serve_lanes();
        self.core.lanes.flush();
    }

    /// Sets the timer to the next thing that is due. True if it is due already.
    fn set_timer(&mut self) -> bool {
        let mut wanted = self.core.next_deadline(self.tick_at);
        if self.accept_again_at > 0 {
            wanted = wanted.min(self.accept_again_at);
        }
        let now = self.core.now.millis;
        if wanted <= now {
            return true;
        }
        self.timer.set(wanted, now);
        false
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.party.doorbell().cancel_sleep();
        let busy = this.turn(context) || !this.core.dirty.is_empty();
        if this.core.is_drained() {
            return Poll::Ready(());
        }
        if busy || this.set_timer() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        this.party.doorbell().prepare_sleep();
        let mailbox = this.shared.mailboxes.get(this.core.thread);
        if this.party.news().any() || mailbox.is_some_and(|mailbox| mailbox.has_mail()) {
            this.party.doorbell().cancel_sleep();
            context.waker().wake_by_ref();
        } else {
            this.core.tally.sleeps += 1;
        }
        Poll::Pending
    }
}
