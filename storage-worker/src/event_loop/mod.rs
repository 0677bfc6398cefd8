//! The shell of a storage worker: rings, doorbell, timers, control messages. No decisions.
//!
//! ```text
//!            +-----------------------------------------------+
//!            |  mail from the control thread?  attach, settings, drain
//!            |  each link with news: one batch (`link`)
//!            |  background slice if due (`background`)
//!            |  nothing done: say "sleeping", look at every ring again, sleep on the doorbell
//!            +-----------------------------------------------+
//! ```
//!
//! Two threads: the shard thread runs the loop; a control thread blocks on the control socket and
//! puts what it hears into a mailbox, then rings the worker's own doorbell.
//!
//! Fairness: links are served in turn, one bounded batch each. A link whose reply ring is full is
//! passed over until its peer rings; the others go on.
//!
//! Cost: an idle worker sleeps in one system call and wakes for its timer ten times a second.
//! Not here: what a request does (`engine`), the protocol of one link (`link`).

mod background;
mod bracket;
mod clock;
mod control;
mod core;
mod link;
mod replies;
mod requests;
mod start;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use start::start;

use self::background::Background;
use self::control::{ControlThread, Mail};
use self::core::Core;
use self::link::{Link, Turn};
use crate::settings::{MemoryLimit, clock_mode, lazy_free};
use proto::counters::WorkerCounter;
use proto::settings::Settings;
use runtime::{ControlSender, FromChild};
use shm::{Party, PartyState};
use std::collections::BTreeMap;
use std::time::Duration;

/// A link and where it stands.
#[derive(Debug)]
struct Served {
    link: Link,
    /// Our place for it in our own news.
    position: usize,
    /// It had more than one batch, or waits for room: look at it again without news.
    is_pending: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct EventLoop {
    core: Core,
    links: Vec<Served>,
    background: Background,
    control: ControlThread,
    sender: ControlSender,
    /// Pages of the other workers, for the memory limit.
    others: BTreeMap<u32, Party>,
    own_index: u32,
    /// How far the predecessor came, until its link is attached again.
    predecessor: Option<start::Predecessor>,
    fingerprint: u64,
    is_draining: bool,
    /// The arena must stay mapped as long as anything above lives.
    _arena: shm::arena::Mapping,
}

impl EventLoop {
    /// Runs until drained.
    pub(crate) fn run(&mut self) {
        self.core.party.set_state(PartyState::Ready as u32);
        self.report(&FromChild::Ready);
        while !self.is_finished() {
            self.core.tick();
            self.read_mail();
            let is_busy = self.serve_links();
            self.background.run_if_due(&mut self.core);
            if !is_busy {
                self.sleep();
            }
        }
        self.core.party.set_state(PartyState::Down as u32);
        self.report(&FromChild::Drained);
    }

    /// Told to drain and nothing left in any ring.
    fn is_finished(&mut self) -> bool {
        self.is_draining && !self.links.iter_mut().any(|served| served.link.has_work())
    }

    /// One batch of each link that has something; true if any did something.
    fn serve_links(&mut self) -> bool {
        let mut is_busy = false;
        self.core.others_used_bytes = self.others_used_bytes();
        let mut at = 0;
        while at < self.links.len() {
            let served = &mut self.links[at];
            at += 1;
            let has_news = self.core.party.news().take(served.position);
            if !has_news && !served.is_pending {
                continue;
            }
            match served.link.serve(&mut self.core) {
                Ok(turn) => {
                    served.is_pending = turn == Turn::Busy;
                    is_busy |= turn == Turn::Busy;
                    if turn == Turn::Jammed {
                        self.core.add(WorkerCounter::ReplyRingFull, 1);
                    }
                }
                Err(error) => {
                    let id = served.link.id();
                    tracing::error!(link = id, %error, "link dropped: its ring is damaged");
                    at -= 1;
                    self.links.remove(at);
                }
            }
        }
        is_busy
    }

    fn others_used_bytes(&self) -> u64 {
        let used = |party: &Party| party.counters().get(WorkerCounter::UsedBytes.place());
        if self.core.limit.bytes == 0 {
            0
        } else {
            self.others.values().map(used).sum()
        }
    }

    /// Sleeps until rung or until the background is due, unless there is something after all.
    fn sleep(&mut self) {
        let doorbell = self.core.party.doorbell();
        doorbell.prepare_sleep();
        // The rings themselves, not the news: a peer that died between publishing and announcing
        // must not leave a request lying.
        let mut is_any = self.control.has_mail();
        for served in &mut self.links {
            if served.link.has_work() {
                served.is_pending = true;
                is_any = true;
            }
        }
        if is_any {
            doorbell.cancel_sleep();
            return;
        }
        self.core.add(WorkerCounter::Sleeps, 1);
        let timeout = self.background.time_left(self.core.now);
        self.core.party.doorbell().wait(Some(timeout));
    }

    fn read_mail(&mut self) {
        if !self.control.has_mail() {
            return;
        }
        for mail in self.control.take_mail() {
            match mail {
                Mail::Attach(attach) => self.attach(*attach),
                Mail::Detach(link) => {
                    self.links.retain(|served| served.link.id() != link);
                    self.report(&FromChild::Detached { link });
                }
                Mail::Worker(index, party) => {
                    if index != self.own_index {
                        self.others.insert(index, party);
                    }
                }
                Mail::Settings(version, settings) => {
                    self.apply(&settings);
                    self.report(&FromChild::RegistrySeen { version });
                }
                Mail::Drain(within) => self.drain(within),
            }
        }
    }

    fn apply(&mut self, settings: &Settings) {
        self.core.engine.settings.update(settings);
        let keyspace = &mut self.core.engine.keyspace;
        keyspace.set_clock_mode(clock_mode(settings));
        keyspace.set_lazy_free(lazy_free(settings));
        self.core.limit = MemoryLimit::new(settings);
    }

    fn drain(&mut self, within: Duration) {
        tracing::info!(within_ms = within.as_millis() as u64, "draining");
        self.core.party.set_state(PartyState::Draining as u32);
        self.is_draining = true;
    }

    /// A supervisor that is gone is no reason to stop serving.
    fn report(&self, message: &FromChild) {
        if let Err(error) = self.sender.send(message) {
            tracing::debug!(%error, "control message not sent");
        }
    }
}
