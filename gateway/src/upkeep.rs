//! What happens to connections between commands: room in rings, output limits, timeouts, the end.

use crate::connection::{Closing, Wait};
use crate::core::Core;

/// Clients are looked through for timeouts and sizes this often, in milliseconds.
const SURVEY_MILLIS: u64 = 1000;

impl Core {
    /// Sends what was waiting for room and lets the connections go on that were. True if there is more
    /// to do at once.
    pub(crate) fn serve_lanes(&mut self) -> bool {
        let mut ready = std::mem::take(&mut self.waiters);
        let more = self.lanes.serve_waiting(&mut ready);
        for who in ready.drain(..) {
            match self.find_mut(who) {
                Some(connection) if connection.recall.is_some() => self.has_room_again(who.index),
                Some(connection) if connection.wait == Wait::Room => self.resume(who.index),
                _ => {}
            }
        }
        self.waiters = ready;
        if !self.tellings.is_empty() {
            self.tell_successors();
        }
        self.flush_broker();
        more
    }

    /// The socket of `index` took `count` bytes of its output.
    #[inline]
    pub(crate) fn sent(&mut self, index: u32, count: usize) {
        self.tally.net_output += count as u64;
        self.tally.writes += 1;
        let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let all = connection.replies.sent(count, &mut self.pool);
        if all && connection.wait == Wait::Nothing && connection.closing == Closing::No {
            connection.over_soft_limit_since = None;
            if !connection.facts.unread {
                return;
            }
        }
        self.sent_part(index, all);
    }

    #[cold]
    fn sent_part(&mut self, index: u32, all: bool) {
        if all {
            self.close_if_done(index);
        } else {
            self.mark_dirty(index);
            self.check_output_limit(index);
        }
        self.look_at_wait(index);
        self.look_at_unread(index);
    }

    /// The driver did not read this socket although it may have bytes, because the core did not want
    /// them.
    pub(crate) fn note_unread(&mut self, index: u32) {
        if let Some(connection) = self.get_mut(index) {
            connection.facts.unread = true;
        }
        self.look_at_unread(index);
    }

    /// Lists a socket for reading if it was left unread and is wanted again.
    pub(crate) fn look_at_unread(&mut self, index: u32) {
        if self.wants_input(index)
            && let Some(connection) = self.get_mut(index)
            && connection.facts.unread
        {
            connection.facts.unread = false;
            self.readable.push(index);
        }
    }

    /// Closes a client whose unsent output is over its limit.
    pub(crate) fn check_output_limit(&mut self, index: u32) {
        let (normal, subscribers) = (self.live.output_limits, self.live.subscriber_limits);
        let now = self.now.millis;
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        if connection.closing == Closing::Now {
            return;
        }
        let limits = if connection.facts.subscribed {
            subscribers
        } else {
            normal
        };
        let held = connection.replies.held_bytes();
        let too_long = if held > limits.soft {
            let since = *connection.over_soft_limit_since.get_or_insert(now);
            now - since >= limits.soft_millis
        } else {
            connection.over_soft_limit_since = None;
            false
        };
        if held > limits.hard || too_long {
            let id = connection.id;
            tracing::warn!(
                client = id,
                bytes = held,
                "closed: its output is over the limit"
            );
            self.tally.output_limit_disconnections += 1;
            self.close_now(index);
        }
    }

    /// Timers that are due, and, once a second, a look at every client.
    pub(crate) fn tick(&mut self) {
        while let Some((ticket, reply)) = self.timers.pop_due(self.now.millis) {
            self.deliver(ticket, &reply);
        }
        if let Some(pause) = self.pause
            && pause.until_unix_millis <= self.now.unix_micros / 1000
        {
            self.set_pause(None);
        }
        if self.now.millis >= self.survey_at {
            self.survey_at = self.now.millis + SURVEY_MILLIS;
            self.survey();
        }
    }

    fn survey(&mut self) {
        let now = self.now.millis;
        let timeout = self.live.timeout_millis;
        let mut idle = Vec::new();
        let mut over_limit = Vec::new();
        let (mut input, mut output) = ((0u64, 0u64), (0u64, 0u64));
        for (index, client) in self.clients() {
            let read = client
                .pending
                .as_ref()
                .map_or(0, |pending| pending.bytes.len()) as u64;
            let held = client.replies.memory() as u64;
            input = (input.0 + read, input.1.max(read));
            output = (output.0 + held, output.1.max(held));
            let busy = client.wait != Wait::Nothing
                || client.replies.in_flight() > 0
                || client.facts.subscribed;
            if timeout > 0 && !busy && now - client.active > timeout {
                idle.push(index);
            }
            if client.over_soft_limit_since.is_some() {
                over_limit.push(index);
            }
        }
        (self.tally.input_buffers, self.tally.input_buffer_max) = input;
        (self.tally.output_buffers, self.tally.output_buffer_max) = output;
        for index in idle {
            self.tally.idle_disconnections += 1;
            self.close_now(index);
        }
        for index in over_limit {
            self.check_output_limit(index);
        }
    }

    /// When `tick` should be called at the latest, in milliseconds of the thread's clock. `regular` is
    /// the next round that is due anyway; mostly one look per second is enough.
    pub(crate) fn next_deadline(&self, regular: u64) -> u64 {
        let quiet = self.pause.is_none() && self.drain_until.is_none();
        let regular = if quiet {
            self.survey_at.max(regular)
        } else {
            regular
        };
        let regular = if self.is_amid_pieces() {
            regular.min(self.now.millis + 1)
        } else {
            regular
        };
        self.timers
            .next()
            .map_or(regular, |timer| timer.min(regular))
    }

    /// Copies the counts to the statistics page.
    pub(crate) fn publish_tally(&self) {
        self.tally.publish(self.now.unix_micros / 1000);
    }

    /// An orderly end has come to its end: every command that was taken is answered and sent, or its
    /// time is over.
    pub(crate) fn is_drained(&self) -> bool {
        let Some(until) = self.drain_until else {
            return false;
        };
        let busy = self.connections.iter().flatten().any(|connection| {
            // The answer to SHUTDOWN, for one, never comes.
            let asks = (connection.wait == Wait::Answer && connection.gathers.is_empty())
                || matches!(connection.wait, Wait::Blocked | Wait::Time | Wait::Replicas);
            (connection.replies.in_flight() > 0 && !asks) || !connection.replies.unsent().is_empty()
        });
        !busy || self.now.millis >= until
    }
}
