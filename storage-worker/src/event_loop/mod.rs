//! The shell of a storage worker: rings, doorbell, timers, control messages. No decisions.
//!
//! ```text
//!            +-----------------------------------------------+
//!            |  mail from the control thread?  attach, settings, drain
//!            |  each link with news: one batch (`link`)
//!            |  background slice if due (`background`)
//!            |  nothing left: say "sleeping", look at the news again, sleep on the doorbell
//!            +-----------------------------------------------+
//! ```
//!
//! Two threads: the shard thread runs the loop; a control thread blocks on the control socket and
//! puts what it hears into a mailbox, then rings the worker's own doorbell.
//!
//! Fairness: links are served in turn, one bounded batch each. A link whose reply ring is full is
//! passed over until its peer rings; the others go on.
//!
//! A successor first hears from every gateway thread which of its clients waited at the predecessor
//! (`resume`), so that nobody is overtaken. It does not wait for ever for threads that may be gone:
//! after a time it serves the links that have told everything.
//!
//! Cost: an idle worker sleeps in one system call and wakes for its timer ten times a second.
//! Not here: what a request does (`engine`), the protocol of one link (`link`).

mod asking;
mod background;
mod bracket;
mod broker;
mod clock;
mod control;
mod core;
mod crossing;
mod events;
mod inside;
mod interest;
mod link;
mod links;
mod notes;
mod parked;
#[cfg(test)]
mod recall_tests;
mod replies;
mod requests;
mod resume;
mod runner;
mod script_watch;
mod start;
mod tally;
#[cfg(test)]
mod tests;
mod unit;
mod visit;
mod waiters;
#[cfg(test)]
mod waiting_tests;
mod wake;
mod watching;

pub(crate) use start::start;

use self::background::Background;
use self::control::{ControlThread, Mail};
use self::core::Core;
use self::links::Links;
use crate::settings::{MemoryLimit, clock_mode, lazy_free};
use proto::counters::WorkerCounter;
use proto::settings::Settings;
use proto::time::UnixMillis;
use runtime::{ControlSender, FromChild};
use shm::{Lease, Party, PartyState};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long a successor waits for gateway threads to tell who waited. They answer within a fraction
/// of a millisecond; one that does not is stopped or dead.
const RESUME_WITHIN_MS: u64 = 1000;

/// A successor that waits for what gateway threads have to tell.
#[derive(Clone, Copy, Debug)]
struct Resuming {
    /// Links that there will be if every gateway runs.
    links: usize,
    /// When it goes on without those that are missing.
    until: UnixMillis,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct EventLoop {
    core: Core,
    links: Links,
    /// The pub/sub broker.
    broker: broker::SharedLink,
    background: Background,
    control: ControlThread,
    sender: ControlSender,
    own_index: u32,
    /// Which process of its line this is: the number under which it asks gateways to resume.
    epoch: u32,
    /// What is missing before ordinary requests are served; `None` when nothing is.
    resuming: Option<Resuming>,
    /// How far the predecessor came, until its link is attached again.
    predecessor: Option<start::Predecessor>,
    fingerprint: u64,
    is_draining: bool,
    /// The arena must stay mapped as long as anything above lives.
    _arena: std::rc::Rc<shm::arena::Mapping>,
}

impl EventLoop {
    /// Runs until drained.
    pub(crate) fn run(&mut self) {
        self.core.party.set_state(PartyState::Ready as u32);
        self.report(&FromChild::Ready);
        while !self.is_finished() {
            if self.core.come_home() {
                self.background.look_soon();
            }
            self.core.tick();
            self.read_mail();
            let is_busy = match self.resuming {
                Some(resuming) => self.resume(resuming),
                None => self.serve_links(),
            };
            while let Some((link, generation)) = self.core.broken.pop() {
                self.report(&FromChild::LinkBroken { link, generation });
            }
            if let Some((link, generation)) = self.broker.take_broken() {
                self.report(&FromChild::LinkBroken { link, generation });
            }
            self.core.go_out(!is_busy);
            if !is_busy {
                self.sleep();
            }
        }
        self.core.party.set_state(PartyState::Down as u32);
        self.report(&FromChild::Drained);
    }

    /// Told to drain and nothing left in any ring.
    fn is_finished(&mut self) -> bool {
        self.is_draining && !self.links.have_work()
    }

    /// Hears who waited at the predecessor; true if anything was heard.
    fn resume(&mut self, resuming: Resuming) -> bool {
        let is_busy = self.links.resume(&mut self.core);
        let told = self.links.told();
        let is_complete = told == self.links.len() && told >= resuming.links;
        let is_late = self.core.now >= resuming.until || self.is_draining;
        if !is_complete && !is_late {
            return is_busy;
        }
        if !is_complete {
            tracing::warn!(
                told,
                of = resuming.links,
                "gateway threads have not told who waits"
            );
        }
        self.resuming = None;
        // Who should have attached the predecessor's link again has done so, or is gone.
        self.predecessor = None;
        self.links.open(&mut self.core);
        true
    }

    /// A turn of every link; true if there is more to do.
    fn serve_links(&mut self) -> bool {
        self.core.others_used_bytes = self.others_used_bytes();
        let is_more = self.links.serve(&mut self.core);
        self.background.run_if_due(&mut self.core);
        if self.core.engine.effects.notes.is_any() {
            self.core.tell_notes();
        }
        let is_put_off = std::mem::take(&mut self.core.is_put_off);
        is_more || is_put_off || self.core.is_signalled()
    }

    fn others_used_bytes(&self) -> u64 {
        let used = |party: &Party| party.counters().get(WorkerCounter::UsedBytes.place());
        match &self.core.visits {
            Some(visits) if self.core.limit.bytes != 0 => visits.pages.values().map(used).sum(),
            _ => 0,
        }
    }

    /// Sleeps until rung or until the background is due, unless there is news.
    fn sleep(&mut self) {
        let party = &self.core.party;
        let doorbell = party.doorbell();
        doorbell.prepare_sleep();
        if party.news().any() || self.control.has_mail() || self.core.was_visited() {
            doorbell.cancel_sleep();
            self.links.note_news(&self.core);
            return;
        }
        self.core.add(WorkerCounter::Sleeps, 1);
        let mut timeout = self.background.time_left(self.core.now);
        if let Some(deadline) = self.core.waiters.next_deadline() {
            // It is over once it has passed, a millisecond later.
            let left = deadline.since(self.core.now).saturating_add(1);
            timeout = timeout.min(Duration::from_millis(left));
        }
        let party = &self.core.party;
        party.doorbell().wait(Some(timeout));
        // A ring, or a pause, without news: the rings themselves. A peer that died between publishing
        // and announcing must not leave a request lying.
        if !party.news().any() {
            self.links.have_work();
        }
    }

    fn read_mail(&mut self) {
        if !self.control.has_mail() {
            return;
        }
        for mail in self.control.take_mail() {
            match mail {
                Mail::Attach(attach) => self.attach(*attach),
                Mail::Detach(link) => {
                    self.links.remove(&mut self.core, link);
                    self.report(&FromChild::Detached { link });
                }
                Mail::Worker(index, party) => {
                    if index != self.own_index
                        && let Some(visits) = &mut self.core.visits
                    {
                        visits.pages.insert(index as usize, party);
                    }
                }
                Mail::Neighbour {
                    index,
                    generation,
                    arena,
                    journal,
                } => self.meet(index, generation, arena, journal),
                Mail::Settings(version, settings, registry) => {
                    self.apply(&settings);
                    let scripts = &mut self.core.engine.scripts;
                    scripts.take_registry(&registry, self.own_index);
                    self.report(&FromChild::RegistrySeen { version });
                }
                Mail::Drain(within) => self.drain(within),
            }
        }
    }

    /// Another worker, or its new arena.
    fn meet(&mut self, index: u32, generation: u64, arena: OwnedFd, journal: OwnedFd) {
        let Some(visits) = &mut self.core.visits else {
            return;
        };
        match Lease::open(journal, self.fingerprint, self.own_index) {
            Ok(lease) => visits.meet(index as usize, generation, arena, lease),
            Err(error) => tracing::error!(index, %error, "lease of another worker not usable"),
        }
    }

    fn apply(&mut self, settings: &Settings) {
        self.core.engine.settings.update(settings);
        self.core.want_events(settings);
        let keyspace = &mut self.core.engine.keyspace;
        keyspace.set_clock_mode(clock_mode(settings));
        keyspace.set_lazy_free(lazy_free(settings));
        self.core.limit = MemoryLimit::new(settings);
        self.core.set_slow_from(settings.slowlog_log_slower_than());
        let watch = &mut self.core.engine.scripts.surroundings.watch;
        watch.set_threshold(u64::try_from(settings.busy_reply_threshold()).unwrap_or(0));
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
