//! Things that happen at a certain time: answers to commands that sleep.
//!
//! A handful at most, so a plain list is walked; the driver asks for the earliest.

use crate::core::Ticket;

/// An answer that is due at a time.
#[derive(Debug)]
struct Timer {
    at_millis: u64,
    ticket: Ticket,
    reply: Vec<u8>,
}

/// Answers that wait for their time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    list: Vec<Timer>,
}

impl Timers {
    /// `reply` answers `ticket` at `at_millis` of the thread's clock.
    pub(crate) fn add(&mut self, at_millis: u64, ticket: Ticket, reply: Vec<u8>) {
        self.list.push(Timer {
            at_millis,
            ticket,
            reply,
        });
    }

    /// Drops the answer to `ticket`.
    pub(crate) fn remove(&mut self, ticket: Ticket) {
        self.list.retain(|timer| timer.ticket != ticket);
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.list.iter().map(|timer| timer.at_millis).min()
    }

    /// Takes one that is due.
    pub(crate) fn pop_due(&mut self, now_millis: u64) -> Option<(Ticket, Vec<u8>)> {
        let place = self
            .list
            .iter()
            .position(|timer| timer.at_millis <= now_millis)?;
        let timer = self.list.swap_remove(place);
        Some((timer.ticket, timer.reply))
    }
}
