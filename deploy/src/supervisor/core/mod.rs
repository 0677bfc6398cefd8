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
//!
//! Not here: processes, sockets and segments (`shell`), who is to be started (`layout`).

mod process;
mod restart;
#[cfg(test)]
mod tests;

pub use process::{Phase, Process};
pub use restart::{Death, delay_ms};

use super::layout::Place;
use proto::settings::{ConfigSetError, Setting, SettingError, Settings};
use runtime::message::{FromChild, PeerState, Request, ShutdownHow, ToChild};
use runtime::plan::{ArenaState, PartyId, Role, link_id};
use shm::PartyState;

/// Milliseconds since the supervisor started.
pub type Millis = u64;

/// A part that dies this often before the system was ever ready will not get better.
const FIRST_START_DEATHS_MAX: u32 = 5;

/// Delay from which on requests for a part are answered with an error instead of waiting for it.
const DOWN_FROM_MS: Millis = 1_000;

/// Time for what is in flight when somebody asks for the second time.
const HURRY_MS: Millis = 500;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process runs.
    Started {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// Its number in the system.
        pid: u32,
    },
    /// A process is gone, or could not be started.
    Died {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// How it ended.
        death: Death,
    },
    /// A process said something.
    Message {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// What.
        message: FromChild,
    },
    /// The system shows a process as stopped, or as running again.
    Stopped {
        /// Position of its place.
        process: usize,
        /// Whether it is stopped.
        stopped: bool,
    },
    /// SIGTERM or SIGINT; `now` if the settings ask for a fast end.
    Signal {
        /// Do not wait for what is in flight.
        now: bool,
    },
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run a process and hand it its plan and its links.
    Start {
        /// Position of its place.
        process: usize,
        /// Its generation.
        generation: u64,
        /// For its plan.
        deaths_in_a_row: u32,
        /// For its plan.
        arena: ArenaState,
    },
    /// End a process with SIGKILL.
    Kill {
        /// Position of its place.
        process: usize,
    },
    /// Send a message without descriptors.
    Send {
        /// Position of the receiver's place.
        process: usize,
        /// The message.
        message: ToChild,
    },
    /// Make new segments for all links of a gateway process and give the running workers their
    /// ends.
    RenewLinks {
        /// Position of the gateway's place.
        process: usize,
    },
    /// Give a worker an empty arena.
    FreshArena {
        /// Position of the worker's place.
        process: usize,
    },
    /// Write state, generation and process number into the pages of a process.
    Page {
        /// Position of its place.
        process: usize,
        /// State.
        state: PartyState,
        /// Generation.
        generation: u64,
        /// Number in the system, 0 for none.
        pid: u32,
    },
    /// Wake every party: a dead one may have owed somebody a bell.
    AlarmAll,
    /// Publish the registry; this will be its version.
    Publish {
        /// The version.
        version: u64,
    },
    /// Rewrite the configuration file and answer.
    RewriteConfig {
        /// Position of the asker's place.
        process: usize,
        /// Number of the request.
        request: u64,
    },
    /// Every process serves, for the first time.
    AllReady,
    /// Something an operator should read.
    Log {
        /// How urgent.
        level: tracing::Level,
        /// What.
        text: String,
    },
    /// The end.
    Exit {
        /// Exit code.
        code: u8,
    },
}

/// Facts about the machine that a change of settings is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Connections that the descriptor limit allows.
    pub clients_max: u64,
    /// Whether a directory can be used; the error is a text for the client.
    pub directory: fn(&str) -> Result<(), String>,
}

/// Where a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    Gateways { deadline: Millis },
    Workers { deadline: Millis },
}

/// A CONFIG SET that waits for processes.
#[derive(Debug)]
struct PendingSet {
    process: usize,
    generation: u64,
    request: u64,
    version: u64,
}

/// The supervisor's state.
#[derive(Debug)]
pub struct Core {
    processes: Vec<Process>,
    settings: Settings,
    version: u64,
    checks: Checks,
    pending: Vec<PendingSet>,
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
            version,
            checks,
            pending: Vec::new(),
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

    // --- life of a process

    fn start(&mut self, process: usize) {
        let place = &mut self.processes[process];
        place.generation += 1;
        place.phase = Phase::Starting;
        // It reads the registry after this moment, so it will see this version or a later one.
        place.seen_version = self.version;
        let (generation, arena) = (place.generation, place.arena);
        let (deaths_in_a_row, role) = (place.fast_deaths, place.place.role);
        let state = PartyState::Starting;
        self.actions.push(Action::Page {
            process,
            state,
            generation,
            pid: 0,
        });
        if role == Role::Gateway {
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
        let (generation, arena_lost) = (place.generation, death.arena_untrusted);
        let name = place.name();
        let had_data = place.place.role == Role::StorageWorker && place.ready_once;
        place.pid = 0;
        place.stopped_since = None;
        if arena_lost || place.wants_fresh_arena {
            place.wants_fresh_arena = false;
            place.arena = ArenaState::Fresh;
            place.lost_data |= had_data;
            self.actions.push(Action::FreshArena { process });
            if had_data {
                self.log(
                    tracing::Level::ERROR,
                    format!(
                        "{name} died inside a write ({}): ALL KEYS OF THIS WORKER ARE LOST, its \
                         successor starts empty",
                        death.text
                    ),
                );
            }
        }
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
            if !(death.clean || death.expected) {
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

    /// Tells gateways how a storage worker is.
    fn tell_gateways(&mut self, process: usize, state: PeerState) {
        let place = &self.processes[process];
        if place.place.role != Role::StorageWorker {
            return;
        }
        let party = PartyId::storage_worker(place.place.first_party);
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

    /// Workers drop their ends of the links of a dead gateway: nobody reads the replies.
    fn detach_links_of(&mut self, process: usize) {
        let place = &self.processes[process].place;
        if place.role != Role::Gateway {
            return;
        }
        let threads = place.first_party..place.first_party + place.parties;
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

    // --- messages

    fn message(&mut self, now: Millis, process: usize, message: FromChild) {
        match message {
            FromChild::Ready => self.ready(now, process),
            FromChild::Attached { .. } | FromChild::Detached { .. } => {}
            FromChild::RegistrySeen { version } => {
                let place = &mut self.processes[process];
                place.seen_version = place.seen_version.max(version);
                self.answer_sets();
            }
            FromChild::ArenaUntrusted { reason } => {
                let place = &mut self.processes[process];
                place.wants_fresh_arena = true;
                let text = format!("{} does not trust its arena: {reason}", place.name());
                self.log(tracing::Level::ERROR, text);
                self.actions.push(Action::Kill { process });
            }
            FromChild::Drained => {}
            FromChild::Request { request, body } => self.request(now, process, request, body),
        }
    }

    fn request(&mut self, now: Millis, process: usize, request: u64, body: Request) {
        match body {
            Request::SetSettings { pairs, local } => match self.change_settings(&pairs, local) {
                Ok(()) => {
                    let version = self.version;
                    let generation = self.processes[process].generation;
                    self.pending.push(PendingSet {
                        process,
                        generation,
                        request,
                        version,
                    });
                    self.answer_sets();
                }
                Err(error) => {
                    let result = Err(error.to_string());
                    self.send(process, ToChild::Reply { request, result });
                }
            },
            Request::RewriteConfig => {
                self.actions
                    .push(Action::RewriteConfig { process, request });
            }
            Request::Shutdown(how) if how.abort => {
                let result = Err("No shutdown in progress.".to_string());
                self.send(process, ToChild::Reply { request, result });
            }
            Request::Shutdown(ShutdownHow { now: fast, .. }) => {
                self.log(
                    tracing::Level::INFO,
                    "a client asked for shutdown".to_string(),
                );
                self.shut_down(now, fast);
            }
        }
    }

    fn change_settings(
        &mut self,
        pairs: &[(String, String)],
        local: bool,
    ) -> Result<(), ConfigSetError> {
        let mut settings = self.settings.clone();
        let named = settings.set_many(pairs, local)?;
        for (setting, (name, text)) in named.iter().zip(pairs) {
            let refuse = |reason| ConfigSetError::Refused {
                name: name.clone(),
                reason,
            };
            match setting {
                Setting::Maxclients
                    if u64::try_from(settings.maxclients()).unwrap_or(0)
                        > self.checks.clients_max =>
                {
                    return Err(refuse(SettingError::TooManyClients(
                        self.checks.clients_max,
                    )));
                }
                Setting::Dir => {
                    (self.checks.directory)(text)
                        .map_err(|reason| refuse(SettingError::Other(reason)))?;
                }
                _ => {}
            }
        }
        self.settings = settings;
        self.version += 1;
        let version = self.version;
        self.actions.push(Action::Publish { version });
        for process in 0..self.processes.len() {
            if self.processes[process].is_alive() {
                self.send(process, ToChild::Registry { version });
            }
        }
        Ok(())
    }

    fn forget_requests_of(&mut self, process: usize) {
        let generation = self.processes[process].generation;
        self.pending
            .retain(|set| set.process != process || set.generation != generation);
    }

    /// Answers every CONFIG SET whose version all live processes have seen (C3).
    fn answer_sets(&mut self) {
        let alive = self.processes.iter().filter(|process| process.is_alive());
        let seen = alive
            .map(|process| process.seen_version)
            .min()
            .unwrap_or(u64::MAX);
        let (done, waiting) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|set| set.version <= seen);
        self.pending = waiting;
        let done: Vec<PendingSet> = done;
        for set in done {
            let (request, result) = (set.request, Ok("OK".to_string()));
            self.send(set.process, ToChild::Reply { request, result });
        }
    }

    // --- shutdown

    fn shut_down(&mut self, now: Millis, fast: bool) {
        let patience = u64::try_from(self.settings.shutdown_timeout()).unwrap_or(10) * 1000;
        match self.drain {
            Drain::No => {
                let within = if fast {
                    HURRY_MS
                } else {
                    patience.max(HURRY_MS)
                };
                self.log(tracing::Level::INFO, "shutting down".to_string());
                self.drain = Drain::Gateways {
                    deadline: now + within,
                };
                for process in 0..self.processes.len() {
                    let place = &mut self.processes[process];
                    if let Phase::Waiting { .. } = place.phase
                        && place.place.role == Role::Gateway
                    {
                        place.phase = Phase::Gone;
                    }
                }
                for gateway in self.alive(Role::Gateway) {
                    self.drain_process(gateway, within);
                }
            }
            Drain::Gateways { deadline } => {
                self.hurry(now, deadline, Role::Gateway);
                let deadline = deadline.min(now + HURRY_MS);
                self.drain = Drain::Gateways { deadline };
            }
            Drain::Workers { deadline } => {
                self.hurry(now, deadline, Role::StorageWorker);
                let deadline = deadline.min(now + HURRY_MS);
                self.drain = Drain::Workers { deadline };
            }
        }
    }

    fn hurry(&mut self, now: Millis, deadline: Millis, role: Role) {
        if deadline > now + HURRY_MS {
            for process in self.alive(role) {
                self.drain_process(process, HURRY_MS);
            }
        }
    }

    fn drain_process(&mut self, process: usize, within_ms: Millis) {
        let is_worker = self.processes[process].place.role == Role::StorageWorker;
        if is_worker && !matches!(self.drain, Drain::Workers { .. }) {
            return;
        }
        self.processes[process].asked_to_end = true;
        self.send(process, ToChild::Drain { within_ms });
    }

    fn exit_at_once(&mut self, code: u8) {
        for process in 0..self.processes.len() {
            if self.processes[process].is_alive() {
                self.actions.push(Action::Kill { process });
            }
        }
        self.exiting = true;
        self.actions.push(Action::Exit { code });
    }

    // --- time

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

    fn tick_drain(&mut self, now: Millis) {
        if let Drain::Gateways { deadline } = self.drain {
            self.kill_late(now, deadline, Role::Gateway);
            let gone = |process: &&Process| process.place.role == Role::Gateway;
            if self
                .processes
                .iter()
                .filter(gone)
                .all(|place| place.phase == Phase::Gone)
            {
                let within = deadline.saturating_sub(now).max(HURRY_MS);
                self.drain = Drain::Workers {
                    deadline: now + within,
                };
                for process in 0..self.processes.len() {
                    let place = &mut self.processes[process];
                    if let Phase::Waiting { .. } = place.phase {
                        place.phase = Phase::Gone;
                    } else if place.is_alive() {
                        self.drain_process(process, within);
                    }
                }
            }
        }
        if let Drain::Workers { deadline } = self.drain {
            self.kill_late(now, deadline, Role::StorageWorker);
            if self
                .processes
                .iter()
                .all(|place| place.phase == Phase::Gone)
            {
                self.exiting = true;
                self.log(
                    tracing::Level::INFO,
                    "all parts have ended, good bye".to_string(),
                );
                self.actions.push(Action::Exit { code: 0 });
            }
        }
    }

    fn kill_late(&mut self, now: Millis, deadline: Millis, role: Role) {
        if now < deadline {
            return;
        }
        for process in self.alive(role) {
            if !std::mem::replace(&mut self.processes[process].killed, true) {
                let text = format!(
                    "{} did not finish in time: killed",
                    self.processes[process].name()
                );
                self.log(tracing::Level::WARN, text);
                self.actions.push(Action::Kill { process });
            }
        }
        // Deaths of the killed arrive as events; do not wake up for this deadline again.
        match &mut self.drain {
            Drain::Gateways { deadline } | Drain::Workers { deadline } => {
                *deadline = now + HURRY_MS;
            }
            Drain::No => {}
        }
    }
}
