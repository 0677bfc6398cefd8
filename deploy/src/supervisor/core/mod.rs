//! The supervisor's decisions: events and time in, actions out. No I/O, no clock, no randomness.
//!
//! Why apart from the shell: what happens when a worker dies while a gateway drains while a client
//! waits for CONFIG SET must be testable in a microsecond, without processes.
//!
//! ```text
//!            Start                 Ready
//!   Waiting ───────► Starting ─────────────► Serving
//!      ▲  until a       │ died                  │ died, or killed after being stopped too long
//!      │  time          ▼                       ▼
//!      └──────────── back-off (restart.rs) ◄────┘           while draining: Gone
//! ```
//!
//! Invariants
//!   C1  at most one process per place is alive; its generation grows with every start.
//!   C2  an event of an older generation changes nothing.
//!   C3  a CONFIG SET is answered exactly once: when every live process has reported its version,
//!       or dropped when its asker has died.
//!   C4  actions are carried out in order, completely, before the next event.
//!   C5  a lease whose holder died inside a change is freed after the arena is made anew, never before.
//!
//! Not here: processes, sockets and segments (`shell`), who is to be started (`layout`).

mod code;
mod leases;
mod process;
mod requests;
mod restart;
mod shutdown;
#[cfg(test)]
mod tests;
mod types;

pub use process::{Phase, Process};
pub use restart::Death;
use restart::delay_ms;
pub use types::{Action, Checks, Event};

use code::Code;
use requests::PendingSet;
use shutdown::{Drain, HURRY_MS};

use super::layout::Place;
use proto::registry::Registry;
use proto::settings::Settings;
use runtime::message::{PeerState, ToChild};
use runtime::plan::{
    ArenaState, PartyId, Role, broker_link_id, is_broker_link, link_id, parties_of_link,
};
use shm::PartyState;
use std::collections::BTreeMap;

/// Milliseconds since the supervisor started.
pub type Millis = u64;

/// A part that dies this often before the system was ever ready will not get better.
const FIRST_START_DEATHS_MAX: u32 = 5;

/// Delay from which on requests for a part are answered with an error instead of waiting for it.
const DOWN_FROM_MS: Millis = 1_000;

/// A link that breaks again within this time is not at fault itself: its worker is replaced.
const BROKEN_AGAIN_MS: Millis = 10_000;

/// The supervisor's state.
#[derive(Debug)]
pub struct Core {
    processes: Vec<Process>,
    settings: Settings,
    code: Code,
    version: u64,
    checks: Checks,
    pending: Vec<PendingSet>,
    /// Links that were broken: which generation was, and when.
    broken: BTreeMap<u32, (u64, Millis)>,
    drain: Drain,
    was_ready: bool,
    exiting: bool,
    actions: Vec<Action>,
}

impl Core {
    /// A system that has not started; `version` is that of the published registry.
    pub fn new(places: Vec<Place>, settings: Settings, version: u64, checks: Checks) -> Self {
        Self {
            processes: places.into_iter().map(Process::new).collect(),
            settings,
            code: Code::default(),
            version,
            checks,
            pending: Vec::new(),
            broken: BTreeMap::new(),
            drain: Drain::No,
            was_ready: false,
            exiting: false,
            actions: Vec::new(),
        }
    }

    /// The processes, in the order of their places.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Writes what changes while the system runs into the registry.
    pub fn put_into(&self, registry: &mut Registry) {
        registry.settings = self.settings.changed();
        self.code.put_into(registry);
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether a shutdown is under way.
    pub fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// The next time at which [`Event::Tick`] would do something.
    pub fn next_deadline(&self) -> Option<Millis> {
        let stopped_ms = self.stopped_timeout_ms();
        let of_processes = self
            .processes
            .iter()
            .filter_map(|process| match process.phase {
                Phase::Waiting { until } => Some(until),
                _ => process.stopped_since.map(|since| since + stopped_ms),
            });
        let of_drain = match self.drain {
            Drain::No => None,
            Drain::Gateways { deadline } | Drain::Workers { deadline } => Some(deadline),
        };
        of_processes.chain(of_drain).min()
    }

    /// Takes one event and returns what is to be done.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Action> {
        match event {
            Event::Started {
                process,
                generation,
                pid,
            } => {
                if self.is_current(process, generation) {
                    self.started(now, process, pid);
                }
            }
            Event::Died {
                process,
                generation,
                death,
            } => {
                if self.is_current(process, generation) {
                    self.died(now, process, &death);
                }
            }
            Event::Message {
                process,
                generation,
                message,
            } => {
                if self.is_current(process, generation) {
                    self.message(now, process, message);
                }
            }
            Event::Stopped { process, stopped } => {
                let process = &mut self.processes[process];
                if stopped && process.is_alive() {
                    process.stopped_since.get_or_insert(now);
                } else {
                    process.stopped_since = None;
                }
            }
            Event::Signal { now: fast } => self.shut_down(now, fast),
            Event::Tick => {}
        }
        self.tick(now);
        std::mem::take(&mut self.actions)
    }

    fn is_current(&self, process: usize, generation: u64) -> bool {
        self.processes
            .get(process)
            .is_some_and(|process| process.generation == generation)
    }

    fn stopped_timeout_ms(&self) -> Millis {
        u64::try_from(self.settings.stopped_timeout()).unwrap_or(5) * 1000
    }

    fn log(&mut self, level: tracing::Level, text: String) {
        self.actions.push(Action::Log { level, text });
    }

    fn send(&mut self, process: usize, message: ToChild) {
        self.actions.push(Action::Send { process, message });
    }

    fn start(&mut self, process: usize) {
        let place = &mut self.processes[process];
        place.generation += 1;
        place.phase = Phase::Starting;
        // It reads the registry after this moment, so it will see this version or a later one.
        place.seen_version = self.version;
        let (generation, arena) = (place.generation, place.arena);
        let (deaths_in_a_row, role) = (place.crashes_in_a_row, place.place.role);
        let state = PartyState::Starting;
        self.actions.push(Action::Page {
            process,
            state,
            generation,
            pid: 0,
        });
        // The broker's first links are made with those of the gateways.
        if role == Role::Gateway || (role == Role::Broker && generation > 1) {
            self.actions.push(Action::RenewLinks { process });
        }
        self.actions.push(Action::Start {
            process,
            generation,
            deaths_in_a_row,
            arena,
        });
    }

    fn started(&mut self, now: Millis, process: usize, pid: u32) {
        let place = &mut self.processes[process];
        place.pid = pid;
        place.started_at = now;
        let generation = place.generation;
        let state = PartyState::Starting;
        self.actions.push(Action::Page {
            process,
            state,
            generation,
            pid,
        });
        if let Drain::Gateways { .. } | Drain::Workers { .. } = self.drain {
            self.drain_process(process, HURRY_MS);
        }
    }

    fn died(&mut self, now: Millis, process: usize, death: &Death) {
        let place = &mut self.processes[process];
        let was_serving = matches!(place.phase, Phase::Serving { .. });
        place.count_death(now, death);
        // Not alive from here on; what follows decides when the next one starts.
        place.phase = Phase::Waiting { until: now };
        let (generation, name) = (place.generation, place.name());
        place.pid = 0;
        place.stopped_since = None;
        if death.arena_untrusted || place.wants_fresh_arena {
            self.renew_arena(process, &death.text);
        }
        self.settle_leases(process, &death.torn);
        let state = PartyState::Down;
        self.actions.push(Action::Page {
            process,
            state,
            generation,
            pid: 0,
        });
        self.actions.push(Action::AlarmAll);
        self.detach_links_of(process);
        self.forget_requests_of(process);
        self.answer_sets();
        if self.is_over_for(process) {
            self.processes[process].phase = Phase::Gone;
            if !(death.clean || self.processes[process].killed) {
                self.log(
                    tracing::Level::WARN,
                    format!("{name} ended early: {}", death.text),
                );
            }
            return;
        }
        self.restart(now, process, death, was_serving);
    }

    /// Whether a dead process stays dead: its part of a shutdown is done.
    fn is_over_for(&self, process: usize) -> bool {
        match self.drain {
            Drain::No => false,
            Drain::Gateways { .. } => self.processes[process].place.role == Role::Gateway,
            Drain::Workers { .. } => true,
        }
    }

    fn restart(&mut self, now: Millis, process: usize, death: &Death, was_serving: bool) {
        let place = &mut self.processes[process];
        let delay = delay_ms(place.fast_deaths);
        place.restarts += 1;
        place.phase = Phase::Waiting { until: now + delay };
        let (name, fast_deaths) = (place.name(), place.fast_deaths);
        if !self.was_ready && fast_deaths >= FIRST_START_DEATHS_MAX {
            let text = format!("{name} cannot start: {}", death.text);
            self.log(tracing::Level::ERROR, text);
            self.exit_at_once(1);
            return;
        }
        let delayed = if delay == 0 {
            String::new()
        } else {
            format!(" in {delay} ms")
        };
        self.log(
            tracing::Level::WARN,
            format!(
                "{name} ended ({}), starting a successor{delayed}",
                death.text
            ),
        );
        if was_serving || delay >= DOWN_FROM_MS {
            let down = delay >= DOWN_FROM_MS;
            self.tell_gateways(
                process,
                if down {
                    PeerState::Down
                } else {
                    PeerState::Restarting
                },
            );
        }
    }

    /// Tells gateways how a storage worker or the broker is.
    fn tell_gateways(&mut self, process: usize, state: PeerState) {
        let place = &self.processes[process];
        let party = match place.place.role {
            Role::Gateway => return,
            Role::StorageWorker => PartyId::storage_worker(place.place.first_party),
            Role::Broker => PartyId::broker(),
        };
        let generation = place.generation;
        for gateway in self.alive(Role::Gateway) {
            self.send(
                gateway,
                ToChild::PeerState {
                    party,
                    generation,
                    state,
                },
            );
        }
    }

    fn alive(&self, role: Role) -> Vec<usize> {
        let is_it = |process: &Process| process.place.role == role && process.is_alive();
        (0..self.processes.len())
            .filter(|position| is_it(&self.processes[*position]))
            .collect()
    }

    /// Workers and the broker drop their ends of the links of a dead gateway: nobody reads the replies.
    fn detach_links_of(&mut self, process: usize) {
        let place = &self.processes[process].place;
        if place.role != Role::Gateway {
            return;
        }
        let threads = place.first_party..place.first_party + place.parties;
        for broker in self.alive(Role::Broker) {
            for thread in threads.clone() {
                let link = broker_link_id(thread);
                self.send(broker, ToChild::DetachLink { link });
            }
        }
        for worker in self.alive(Role::StorageWorker) {
            let index = self.processes[worker].place.first_party;
            for thread in threads.clone() {
                self.send(
                    worker,
                    ToChild::DetachLink {
                        link: link_id(thread, index),
                    },
                );
            }
        }
    }

    /// Position of a storage worker's place.
    fn position_of(&self, worker: u32) -> Option<usize> {
        let is_it = |process: &Process| process.place.is_worker(worker);
        self.processes.iter().position(is_it)
    }

    /// One end of a link says that the other one has written what makes no sense. Both get a new one.
    fn link_broken(&mut self, now: Millis, link: u32, generation: u64) {
        if is_broker_link(link) {
            return self.broker_link_broken(now, link, generation);
        }
        let (thread, index) = parties_of_link(link);
        let worker = self.position_of(index);
        let last = self.broken.get(&link).copied();
        let is_known = last.is_some_and(|(last, _)| generation <= last);
        let Some(worker) = worker.filter(|_| !is_known) else {
            return;
        };
        self.broken.insert(link, (generation, now));
        let name = PartyId::gateway_thread(thread);
        let text = format!("the link of {name} and storage worker {index} is damaged: made anew");
        self.log(tracing::Level::ERROR, text);
        self.actions.push(Action::RenewLink {
            thread,
            worker: index,
            generation,
        });
        if last.is_some_and(|(_, at)| now.saturating_sub(at) < BROKEN_AGAIN_MS) {
            let text = format!("storage worker {index} damages its links: killed");
            self.log(tracing::Level::ERROR, text);
            self.actions.push(Action::Kill { process: worker });
        }
    }

    /// The same for a link of the broker: its successor gets new ones, and all that is worth keeping is known
    /// elsewhere.
    fn broker_link_broken(&mut self, now: Millis, link: u32, generation: u64) {
        let last = self.broken.get(&link).copied();
        if last.is_some_and(|(last, _)| generation <= last) {
            return;
        }
        self.broken.insert(link, (generation, now));
        for process in self.alive(Role::Broker) {
            let text = "a link of the pub/sub broker is damaged: it is replaced".to_string();
            self.log(tracing::Level::ERROR, text);
            self.actions.push(Action::Kill { process });
        }
    }

    fn ready(&mut self, now: Millis, process: usize) {
        let place = &mut self.processes[process];
        if matches!(place.phase, Phase::Serving { .. }) {
            return;
        }
        place.phase = Phase::Serving { since: now };
        place.ready_once = true;
        place.arena = ArenaState::Kept;
        let fresh = std::mem::take(&mut place.lost_data);
        let (generation, pid, name) = (place.generation, place.pid, place.name());
        let took = now.saturating_sub(place.died_at.unwrap_or(now));
        let state = PartyState::Ready;
        self.actions.push(Action::Page {
            process,
            state,
            generation,
            pid,
        });
        if generation > 1 {
            let text = format!("{name} serves again, {took} ms after its predecessor ended");
            self.log(tracing::Level::INFO, text);
            self.tell_gateways(process, PeerState::Ready { fresh });
        }
        let all = self
            .processes
            .iter()
            .all(|place| matches!(place.phase, Phase::Serving { .. }));
        if all && !self.was_ready {
            self.was_ready = true;
            self.actions.push(Action::AllReady);
        }
    }

    fn tick(&mut self, now: Millis) {
        if self.exiting {
            return;
        }
        let stopped_ms = self.stopped_timeout_ms();
        for process in 0..self.processes.len() {
            let place = &mut self.processes[process];
            if place.is_stopped_since(now, stopped_ms) {
                place.stopped_since = None;
                let text = format!("{} was stopped for {stopped_ms} ms: killed", place.name());
                self.log(tracing::Level::WARN, text);
                self.actions.push(Action::Kill { process });
            } else if matches!(place.phase, Phase::Waiting { until } if until <= now) {
                self.start(process);
            }
        }
        self.tick_drain(now);
    }
}
