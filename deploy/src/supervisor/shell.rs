//! Carries out what `core` decides: processes, sockets, segments, signals and time.
//!
//! One thread, one tokio runtime, one loop: take an event, let the core decide, do it, look at the
//! next. Tasks beside the loop only wait (for a process to end, for a message, for a question) and
//! put what they saw into the loop's mailbox.
//!
//! Invariants
//!   H1  nothing in the loop waits for a child: messages to one wait in a mailbox of its own until
//!       its socket takes them.
//!   H2  every descriptor that a successor needs stays open here as long as the system lives, except
//!       the listening sockets, which close when a shutdown begins.
//!
//! Cost when idle: four wake-ups per second, a few reads of /proc and of counters.
//! Not here: decisions (`core`), what a report says (`status`).

use super::boot::Parts;
use super::child_tasks::{self, Parcel};
use super::core::{Action, Core, Death, Event, Millis, Process};
use super::segments::Handle;
use super::sharing::{self, Sharing};
use super::status::{self, Facts, Rates};
use super::{finish, spawn};
use crate::banner;
use crate::exit::Failure;
use proto::settings::{Pin, SHUTDOWN_NOW};
use runtime::control::DESCRIPTORS_MAX;
use runtime::message::ToChild;
use runtime::plan::{ArenaState, Descriptor, PartyId, Plan, Role};
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// How often processes are looked at for being stopped, and counters for rates.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The supervisor at work.
#[derive(Debug)]
pub struct Shell {
    parts: Parts,
    core: Core,
    started: Instant,
    /// Mailboxes of the running processes, by place.
    mailboxes: Vec<Option<mpsc::UnboundedSender<Parcel>>>,
    events: mpsc::UnboundedSender<Event>,
    queue: VecDeque<Event>,
    rates: Rates,
    sharing: Option<Sharing>,
    exit: Option<u8>,
}

/// Signals that mean something here.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    dump: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            dump: signal(SignalKind::user_defined1())?,
        })
    }
}

/// Runs the system until it ends; returns the exit code.
///
/// # Errors
/// If the system does not even offer signals or timers.
pub async fn run(parts: Parts, core: Core) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::System(format!("cannot start: {error}"));
    let mut signals = Signals::new().map_err(failed)?;
    let (events, mut mailbox) = mpsc::unbounded_channel();
    // Whoever asks for `pin no` wants the kernel to place the parts.
    let is_free = !parts.layout.is_pinned && core.settings().pin() == Pin::Auto;
    let mut shell = Shell {
        sharing: is_free
            .then(|| Sharing::new(runtime::cpus::allowed()))
            .flatten(),
        mailboxes: vec![None; core.processes().len()],
        parts,
        core,
        started: Instant::now(),
        events,
        queue: VecDeque::new(),
        rates: Rates::default(),
        exit: None,
    };
    let listener = shell
        .parts
        .instance
        .as_mut()
        .and_then(|instance| instance.take_listener());
    let listener = listener.and_then(|listener| UnixListener::from_std(listener).ok());
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut window = tokio::time::interval(sharing::WINDOW);
    window.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    shell.handle(Event::Tick);
    while shell.exit.is_none() {
        let deadline = shell
            .core
            .next_deadline()
            .map(|at| shell.started + Duration::from_millis(at));
        tokio::select! {
            Some(event) = mailbox.recv() => shell.handle(event),
            () = sleep_until(deadline) => shell.handle(Event::Tick),
            _ = look.tick() => shell.look(),
            _ = window.tick(), if shell.sharing.is_some() => shell.look_at_cores(),
            stream = accept(listener.as_ref()) => shell.answer(stream),
            _ = signals.terminate.recv() => shell.signal("SIGTERM", false),
            _ = signals.interrupt.recv() => shell.signal("SIGINT", true),
            _ = signals.hang_up.recv() => {}
            _ = signals.dump.recv() => tracing::info!("\n{}", status::table(&shell.report())),
        }
    }
    finish::clean_up(&shell.parts);
    Ok(shell.exit.unwrap_or(0))
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

async fn accept(listener: Option<&UnixListener>) -> UnixStream {
    loop {
        match listener {
            Some(listener) => match listener.accept().await {
                Ok((stream, _)) => return stream,
                // Out of descriptors, mostly: the next second may be better.
                Err(_) => tokio::time::sleep(LOOK_EVERY).await,
            },
            None => std::future::pending().await,
        }
    }
}

impl Shell {
    fn now(&self) -> Millis {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Lets the core decide about an event, and about those that doing it brings about.
    fn handle(&mut self, event: Event) {
        self.queue.push_back(event);
        while let Some(mut event) = self.queue.pop_front() {
            if let Event::Died { process, death, .. } = &mut event {
                self.mailboxes[*process] = None;
                self.look_at_arenas(*process, death);
            }
            let now = self.now();
            for action in self.core.handle(now, event) {
                self.act(action);
            }
        }
    }

    /// What a dead worker leaves behind in its own arena and in those of others.
    fn look_at_arenas(&self, process: usize, death: &mut Death) {
        let processes = self.core.processes();
        let place = &processes[process].place;
        if place.role != Role::StorageWorker {
            return;
        }
        let own = place.first_party;
        let is_alive = |worker| {
            let is_it = |process: &&Process| process.place.is_worker(worker);
            let found = processes.iter().find(is_it);
            worker != own && found.is_some_and(Process::is_alive)
        };
        let segments = &self.parts.segments;
        death.arena_untrusted = segments.died_inside_write(own, is_alive);
        death.torn = segments.torn_by(own);
    }

    fn signal(&mut self, name: &str, is_interrupt: bool) {
        tracing::info!("received {name}");
        let settings = self.core.settings();
        let how = if is_interrupt {
            settings.shutdown_on_sigint()
        } else {
            settings.shutdown_on_sigterm()
        };
        self.handle(Event::Signal {
            now: how & SHUTDOWN_NOW != 0,
        });
    }

    fn look(&mut self) {
        let seen: Vec<(usize, bool, bool)> = self
            .core
            .processes()
            .iter()
            .enumerate()
            .filter(|(_, process)| process.pid != 0)
            .map(|(position, process)| {
                (
                    position,
                    process.stopped_since.is_some(),
                    spawn::is_stopped(process.pid),
                )
            })
            .collect();
        for (process, was_stopped, stopped) in seen {
            if was_stopped != stopped {
                self.handle(Event::Stopped { process, stopped });
            }
        }
        let now = self.now();
        self.rates.sample(now, &self.core, &self.parts.segments);
    }

    fn look_at_cores(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            let processes = self.core.processes().iter();
            sharing.look(processes.map(|process| process.pid).collect());
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start {
                process,
                generation,
                deaths_in_a_row,
                arena,
            } => {
                self.start(process, generation, deaths_in_a_row, arena);
            }
            Action::Kill { process } => self.kill(process),
            Action::Send { process, message } => self.send(process, message, Vec::new()),
            Action::RenewLinks { process } => self.renew_links(process),
            Action::RenewLink {
                thread,
                worker,
                generation,
            } => self.renew_link(thread, worker, generation),
            Action::FreshArena { process } => {
                let index = self.core.processes()[process].place.first_party;
                if let Err(error) = self.parts.segments.renew_arena(index) {
                    tracing::error!("{error}");
                }
                for other in self.workers_but(process) {
                    self.introduce_neighbour(other, index);
                }
            }
            Action::Forget { dead, leases } => self.parts.segments.forget(dead, &leases),
            Action::Page {
                process,
                state,
                generation,
                pid,
            } => {
                self.parts
                    .segments
                    .mark(self.parties(process), state, generation, pid);
            }
            Action::AlarmAll => self.parts.segments.alarm_all(),
            Action::Publish { version } => self.publish(version),
            Action::RewriteConfig { process, request } => {
                let result = finish::rewrite_config(&self.parts, self.core.settings());
                self.send(process, ToChild::Reply { request, result }, Vec::new());
            }
            Action::AllReady => self.all_ready(),
            Action::Log { level, text } => match level {
                tracing::Level::ERROR => tracing::error!("{text}"),
                tracing::Level::WARN => tracing::warn!("{text}"),
                _ => tracing::info!("{text}"),
            },
            Action::Exit { code } => self.exit = Some(code),
        }
        if self.core.is_draining() {
            // Nobody will accept any more: let the kernel refuse (H2).
            self.parts.listeners = None;
        }
    }

    fn parties(&self, process: usize) -> impl Iterator<Item = PartyId> + use<> {
        let place = &self.core.processes()[process].place;
        let role = place.role;
        (place.first_party..place.first_party + place.parties)
            .map(move |index| PartyId { role, index })
    }

    fn all_ready(&mut self) {
        let banner = banner::text(&self.parts.layout, &self.core, &self.parts.addresses);
        // Nobody may be looking.
        let _ = writeln!(io::stdout(), "{banner}");
        let took = self.now();
        tracing::info!("ready to accept connections after {took} ms");
        finish::tell_ready(&mut self.parts, self.core.settings());
    }

    // --- processes

    fn start(&mut self, process: usize, generation: u64, deaths_in_a_row: u32, arena: ArenaState) {
        let place = self.core.processes()[process].place.clone();
        match spawn::spawn(&place, generation) {
            Ok((child, socket)) => {
                let pid = child.id().unwrap_or(0);
                let who = child_tasks::Who {
                    process,
                    generation,
                };
                match child_tasks::tend(who, child, socket, self.events.clone()) {
                    Ok(mailbox) => self.mailboxes[process] = Some(mailbox),
                    Err(error) => tracing::error!("control socket of a child: {error}"),
                }
                self.hand_over(process, generation, deaths_in_a_row, arena);
                self.queue.push_back(Event::Started {
                    process,
                    generation,
                    pid,
                });
            }
            Err(error) => {
                let text = format!("cannot be started: {error}");
                let death = Death {
                    text,
                    ..Default::default()
                };
                self.queue.push_back(Event::Died {
                    process,
                    generation,
                    death,
                });
            }
        }
    }

    /// Everything a new process gets: descriptors, plan, links, pages of the others.
    fn hand_over(&mut self, process: usize, generation: u64, deaths: u32, arena: ArenaState) {
        let place = self.core.processes()[process].place.clone();
        let plan = Plan {
            role: place.role,
            index: place.index,
            generation,
            deaths_in_a_row: deaths,
            first_party: place.first_party,
            parties: place.parties,
            cpus: place.cpus.clone(),
            gateway_threads: self.parts.layout.gateway_threads,
            storage_workers: self.parts.layout.storage_workers,
            arena,
            arena_bytes: self.parts.segments.arena_bytes(),
            fingerprints: self.parts.segments.fingerprints(),
        };
        let (names, handles) = self.descriptors(process);
        for (names, handles) in names
            .chunks(DESCRIPTORS_MAX)
            .zip(handles.chunks(DESCRIPTORS_MAX))
        {
            self.send(
                process,
                ToChild::Descriptors(names.to_vec()),
                handles.to_vec(),
            );
        }
        self.send(process, ToChild::Start(Box::new(plan)), Vec::new());
        // First that of the broker: what the first command says about its keys must be heard.
        for link in self.broker_links_of(process) {
            self.send_broker_link(process, link);
        }
        for (thread, worker) in self.links_of(process) {
            let (plan, handles) = self.parts.segments.link_end(thread, worker, place.role);
            self.send(process, ToChild::AttachLink(plan), handles);
        }
        self.introduce_others(process);
        if place.role == Role::StorageWorker {
            for other in self.workers_but(process) {
                let index = self.core.processes()[other].place.first_party;
                self.introduce_neighbour(process, index);
            }
        }
    }

    /// Positions of all storage workers but one.
    fn workers_but(&self, process: usize) -> Vec<usize> {
        let processes = self.core.processes().iter().enumerate();
        let workers = processes.filter(|(_, other)| other.place.role == Role::StorageWorker);
        let positions = workers.map(|(position, _)| position);
        positions.filter(|position| *position != process).collect()
    }

    /// Arena and journal of a worker, for another one.
    fn introduce_neighbour(&mut self, process: usize, worker: u32) {
        let (message, handles) = self.parts.segments.neighbour(worker);
        self.send(process, message, handles);
    }

    /// The pages of all parties that are not the process' own.
    fn introduce_others(&mut self, process: usize) {
        for other in (0..self.core.processes().len()).filter(|other| *other != process) {
            for party in self.parties(other) {
                let page = Rc::clone(&self.parts.segments.party(party).page);
                self.send(process, ToChild::Peer { party }, vec![Handle::Page(page)]);
            }
        }
    }

    fn descriptors(&self, process: usize) -> (Vec<Descriptor>, Vec<Handle>) {
        let place = &self.core.processes()[process].place;
        let segments = &self.parts.segments;
        let mut list = vec![(
            Descriptor::Registry,
            Handle::Registry(Rc::clone(segments.registry())),
        )];
        for party in self.parties(process) {
            let (index, part) = (party.index, segments.party(party));
            list.push((
                Descriptor::Party { index },
                Handle::Page(Rc::clone(&part.page)),
            ));
            if let Some(bell) = &part.bell {
                list.push((Descriptor::Bell { index }, Handle::Plain(Rc::clone(bell))));
            }
        }
        match place.role {
            Role::StorageWorker => {
                let part = segments.worker(place.first_party);
                list.push((Descriptor::Arena, Handle::Plain(Rc::clone(&part.arena))));
                list.push((
                    Descriptor::Journal,
                    Handle::Journal(Rc::clone(&part.journal)),
                ));
            }
            Role::Broker => {}
            Role::Gateway => {
                let listeners = self.parts.listeners.as_ref();
                for tcp in listeners.into_iter().flat_map(|listeners| &listeners.tcp) {
                    let (thread, address) = (tcp.thread, tcp.address.to_string());
                    let name = Descriptor::TcpListener { thread, address };
                    list.push((name, Handle::Plain(Rc::clone(&tcp.socket))));
                }
                if let Some((path, socket)) =
                    listeners.and_then(|listeners| listeners.unix.as_ref())
                {
                    let name = Descriptor::UnixListener { path: path.clone() };
                    list.push((name, Handle::Plain(Rc::clone(socket))));
                }
            }
        }
        list.into_iter().unzip()
    }

    /// The links that have an end in a process, as (thread, worker).
    fn links_of(&self, process: usize) -> Vec<(u32, u32)> {
        let layout = &self.parts.layout;
        let place = &self.core.processes()[process].place;
        let own = place.first_party..place.first_party + place.parties;
        match place.role {
            Role::Gateway => own
                .flat_map(|thread| (0..layout.storage_workers).map(move |worker| (thread, worker)))
                .collect(),
            Role::StorageWorker => own
                .flat_map(|worker| (0..layout.gateway_threads).map(move |thread| (thread, worker)))
                .collect(),
            Role::Broker => Vec::new(),
        }
    }

    /// The links of the broker that have an end in a process, by their places.
    fn broker_links_of(&self, process: usize) -> std::ops::Range<u32> {
        let place = &self.core.processes()[process].place;
        let layout = &self.parts.layout;
        let own = place.first_party..place.first_party + place.parties;
        match place.role {
            Role::Gateway => own,
            Role::StorageWorker => {
                own.start + layout.gateway_threads..own.end + layout.gateway_threads
            }
            Role::Broker => 0..layout.broker_links(),
        }
    }

    fn send_broker_link(&mut self, process: usize, link: u32) {
        let role = self.core.processes()[process].place.role;
        let (plan, handles) = self.parts.segments.broker_link_end(link, role);
        self.send(process, ToChild::AttachLink(plan), handles);
    }

    /// Makes the links of a gateway, or all links of the broker, between it and the other one anew.
    fn renew_broker_links(&mut self, process: usize) {
        let links = self.broker_links_of(process);
        for link in links.clone() {
            if let Err(error) = self.parts.segments.renew_broker_link(link) {
                tracing::error!("link {link} of the broker: {error}");
            }
        }
        // The process itself gets them with its plan.
        for other in (0..self.core.processes().len()).filter(|other| *other != process) {
            let of_other = self.broker_links_of(other);
            for link in links.clone().filter(|link| of_other.contains(link)) {
                self.send_broker_link(other, link);
            }
        }
    }

    fn renew_links(&mut self, gateway: usize) {
        self.renew_broker_links(gateway);
        if self.core.processes()[gateway].place.role == Role::Broker {
            return;
        }
        let threads: Vec<PartyId> = self.parties(gateway).collect();
        for thread in &threads {
            if let Err(error) = self.parts.segments.renew_links(thread.index) {
                tracing::error!("links of {thread}: {error}");
            }
        }
        for process in 0..self.core.processes().len() {
            let place = &self.core.processes()[process].place;
            if place.role != Role::StorageWorker {
                continue;
            }
            let worker = place.first_party;
            for thread in &threads {
                let (plan, handles) =
                    self.parts
                        .segments
                        .link_end(thread.index, worker, Role::StorageWorker);
                self.send(process, ToChild::AttachLink(plan), handles);
            }
        }
    }

    fn renew_link(&mut self, thread: u32, worker: u32, generation: u64) {
        let segments = &mut self.parts.segments;
        match segments.renew_link(thread, worker, generation) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::error!("link of thread {thread} and worker {worker}: {error}");
                return;
            }
        }
        for process in 0..self.core.processes().len() {
            if !self.links_of(process).contains(&(thread, worker)) {
                continue;
            }
            let role = self.core.processes()[process].place.role;
            let (plan, handles) = self.parts.segments.link_end(thread, worker, role);
            self.send(process, ToChild::AttachLink(plan), handles);
        }
    }

    fn kill(&mut self, process: usize) {
        let pid = self.core.processes()[process].pid;
        if let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) {
            let pid = nix::unistd::Pid::from_raw(pid);
            // Failing means that it is gone already; its end arrives as an event.
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }

    /// Puts a message into the mailbox of a process; without one it is dropped, the process is gone.
    fn send(&mut self, process: usize, message: ToChild, handles: Vec<Handle>) {
        if let Some(mailbox) = &self.mailboxes[process] {
            let _ = mailbox.send(Parcel { message, handles });
        }
    }

    // --- registry and reports

    fn publish(&mut self, version: u64) {
        self.core.put_into(&mut self.parts.registry);
        runtime::logging::set_level(self.core.settings().loglevel());
        match self
            .parts
            .segments
            .registry()
            .publish(&self.parts.registry.to_bytes())
        {
            Ok(published) if published == version => {}
            Ok(published) => tracing::error!(version, published, "registry versions do not agree"),
            Err(error) => tracing::error!("registry: {error}"),
        }
    }

    fn report(&self) -> status::Status {
        let facts = Facts {
            layout: &self.parts.layout,
            addresses: &self.parts.addresses,
            config_file: &self.parts.registry.config_file,
        };
        status::report(
            self.now(),
            &facts,
            &self.core,
            &self.parts.segments,
            &self.rates,
        )
    }

    /// Answers whoever asks on the control socket. There is only one question.
    fn answer(&self, mut stream: UnixStream) {
        let text = serde_json::to_vec(&self.report()).unwrap_or_default();
        tokio::task::spawn_local(async move {
            let written = stream.write_all(&text);
            let _ = tokio::time::timeout(Duration::from_secs(5), written).await;
        });
    }
}
