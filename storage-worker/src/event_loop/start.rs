//! The start of a worker, as the first of its line or as the successor of a dead one; links that
//! come and go.
//!
//! ```text
//!   arena    fresh: format it, make an empty keyspace      kept: go on with what is in it
//!   journal  last commit line --> the link it names goes on at its positions
//!   links    all others go on at their published positions
//! ```
//!
//! What is known about the request at the line's position, from `writing` in the journal
//!
//! ```text
//!   as in the line                   it did nothing: run it (again)
//!   other, even                      it changed data, its reply is not known: an error if it writes
//!   odd                              the same, and the arena is fresh: the data are gone
//!   anything, line says BACKGROUND   no request is to blame
//!   anything, line says SERVING      the same is known about the parked command with the ticket
//!   predecessors die in a row, line says PRECISE    it may be the cause: an error whatever it is
//! ```
//!
//! Not here: deciding that an arena is not trusted (the supervisor looks at `writing` too and hands
//! down a fresh one).

use super::background::Background;
use super::bracket::{Bracket, BracketHook};
use super::broker::SharedLink;
use super::control::ControlThread;
use super::core::{Core, started};
use super::link::{Doubt, Link, Peer};
use super::links::{Links, Served};
use super::script_watch::ScriptWatch;
use super::visit::Visits;
use super::{EventLoop, RESUME_WITHIN_MS, Resuming};
use crate::engine::Engine;
use crate::keyspace::{self, AttachError, Keyspace};
use crate::neighbours::Neighbours;
use crate::scripts::Watch;
use crate::settings::{EngineSettings, MemoryLimit, clock_mode, lazy_free};
use proto::counters::WorkerCounter;
use proto::registry::Registry;
use proto::slot::SLOT_COUNT;
use runtime::{ArenaState, AttachLink, Child, ChildError, Descriptor, FromChild, Plan, Role};
use shm::arena::{ArenaError, Mapping, Origin};
use shm::{Bell, CommitLine, Journal, Lease, LinkSegment, Party, ShmError};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// Why a worker cannot start.
#[derive(Debug)]
pub(crate) enum StartError {
    /// What the supervisor handed down is not usable.
    Child(ChildError),
    /// The arena cannot be mapped.
    Arena(ArenaError),
    /// The arena does not hold a keyspace of this build.
    Keyspace(AttachError),
    /// The arena is kept, but the predecessor died inside a change of it.
    Torn,
    /// The system has no thread.
    Thread(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(error) => error.fmt(f),
            Self::Arena(error) => error.fmt(f),
            Self::Keyspace(error) => error.fmt(f),
            Self::Torn => f.write_str("the predecessor died inside a change of the arena"),
            Self::Thread(error) => write!(f, "cannot start the control thread: {error}"),
        }
    }
}

impl From<ChildError> for StartError {
    fn from(error: ChildError) -> Self {
        Self::Child(error)
    }
}

impl From<ShmError> for StartError {
    fn from(error: ShmError) -> Self {
        Self::Child(error.into())
    }
}

impl From<ArenaError> for StartError {
    fn from(error: ArenaError) -> Self {
        Self::Arena(error)
    }
}

/// How far the predecessor came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor {
    pub(super) line: CommitLine,
    pub(super) doubt: Doubt,
    /// The ticket of the parked command that it was serving.
    pub(super) served: Option<u64>,
}

impl Predecessor {
    /// What the journal says. `deaths_in_a_row` are those before this start.
    pub(super) fn read(journal: &Journal, deaths_in_a_row: u32) -> Option<Self> {
        let line = journal.last_commit();
        if line.sequence == 0 {
            return None;
        }
        let is_in_background = line.started & started::BACKGROUND != 0;
        let is_precise = line.started & started::PRECISE != 0;
        let doubt = if is_in_background {
            Doubt::None
        } else if deaths_in_a_row > 0 && is_precise {
            Doubt::Any
        } else if journal.writing() != line.writing {
            Doubt::Write
        } else {
            Doubt::None
        };
        let is_serving = line.started & started::SERVING != 0;
        Some(Self {
            line,
            doubt,
            served: is_serving.then(|| journal.ticket()),
        })
    }
}

/// Makes the event loop of the worker that `child` is.
///
/// # Errors
/// If anything that was handed down is not usable; the supervisor has been told if it is the arena.
pub(crate) fn start(mut child: Child) -> Result<EventLoop, StartError> {
    let plan = child.plan().clone();
    if let Some(Some(cpu)) = plan.cpus.first()
        && let Err(errno) = runtime::cpus::pin_this_thread(*cpu)
    {
        tracing::warn!(cpu, %errno, "not pinned");
    }
    let fingerprint = plan.fingerprints.system;
    let party = child.take_party(plan.first_party)?;
    let journal = Journal::open(child.take(&Descriptor::Journal)?, fingerprint)?;
    let predecessor = Predecessor::read(&journal, plan.deaths_in_a_row);
    let arena = child.take(&Descriptor::Arena)?;
    let visits = take_lease(&journal, &plan)?;
    let registry = child.registry();
    let settings = child.settings();
    let opened = open_arena(
        arena,
        &plan,
        (&journal, visits.as_ref()),
        settings.databases(),
        registry.hash_seed,
    );
    let (arena, mut keyspace) = opened.inspect_err(|error| {
        let reason = error.to_string();
        let told = child.sender().send(&FromChild::ArenaUntrusted { reason });
        if let Err(error) = told {
            tracing::error!(%error, "the supervisor cannot be told");
        }
    })?;
    // From here on `writing` counts only changes of this process.
    journal.end_write();
    let bracket = Rc::new(Bracket::new(journal));
    keyspace.set_hook(Box::new(BracketHook(Rc::clone(&bracket))));
    keyspace.set_clock_mode(clock_mode(&settings));
    keyspace.set_lazy_free(lazy_free(&settings));
    count_start(&party, &plan, &keyspace);
    let own_page = open_again(&party, fingerprint)?;
    let control =
        ControlThread::start(child.events(), own_page, fingerprint).map_err(StartError::Thread)?;
    let arena = Rc::new(arena);
    let seed = registry.hash_seed ^ plan.generation.rotate_left(32) ^ u64::from(plan.index);
    let mut engine = Engine::new(
        keyspace,
        EngineSettings::new(&settings),
        registry.hash_seed,
        seed,
    );
    engine.scripts.take_registry(&registry, plan.index);
    let mut watch = ScriptWatch::new(open_again(&party, fingerprint)?);
    watch.set_threshold(u64::try_from(settings.busy_reply_threshold()).unwrap_or(0));
    engine.scripts.surroundings.watch = Box::new(watch);
    let broker = SharedLink::new(open_again(&party, fingerprint)?);
    engine.scripts.surroundings.broker = Box::new(broker.clone());
    let mut core = Core::new(engine, bracket, party, MemoryLimit::new(&settings), seed);
    core.set_slow_from(settings.slowlog_log_slower_than());
    if let Some(lease) = visits {
        join(&mut core, lease, &registry, &plan, Rc::clone(&arena));
    }
    core.want_events(&settings);
    broker.note_for(core.engine.effects.notes.clone());
    core.broker = Some(broker.clone());
    if plan.deaths_in_a_row > 0 {
        core.be_precise();
    }
    if let Some(Predecessor {
        doubt: Doubt::Any,
        served,
        ..
    }) = predecessor
    {
        core.deadly = served;
    }
    core.note_waiters();
    let resuming = (plan.generation > 1).then(|| Resuming {
        links: plan.gateway_threads as usize,
        until: core.now.plus(RESUME_WITHIN_MS),
    });
    Ok(EventLoop {
        core,
        links: Links::default(),
        broker,
        background: Background::new(),
        control,
        sender: child.sender(),
        own_index: plan.index,
        epoch: plan.generation as u32,
        resuming,
        predecessor,
        fingerprint,
        is_draining: false,
        _arena: arena,
    })
}

/// The same page once more.
fn open_again(party: &Party, fingerprint: u64) -> Result<Party, StartError> {
    let fd = party
        .fd()
        .try_clone_to_owned()
        .map_err(StartError::Thread)?;
    Ok(Party::open(fd, fingerprint)?)
}

/// Maps the arena, and attaches or makes the keyspace in it.
fn open_arena(
    memory: std::os::fd::OwnedFd,
    plan: &Plan,
    (journal, lease): (&Journal, Option<&Lease>),
    databases: i64,
    hash_seed: u64,
) -> Result<(Mapping, Keyspace), StartError> {
    let (mut arena, origin) = Mapping::attach(memory, plan.index, keyspace::fingerprint())?;
    if plan.arena == ArenaState::Fresh && origin == Origin::Found {
        arena.reset();
    }
    arena.enter();
    let keyspace = match (plan.arena, origin) {
        (ArenaState::Kept, Origin::Found)
            if journal.writing() % 2 == 1 || lease.is_some_and(Lease::is_torn) =>
        {
            return Err(StartError::Torn);
        }
        (ArenaState::Kept, Origin::Found) => Keyspace::attach().map_err(StartError::Keyspace)?,
        _ => Keyspace::create(u16::try_from(databases).unwrap_or(u16::MAX), hash_seed),
    };
    Ok((arena, keyspace))
}

/// The lease of our own arena, if there are others who could visit it; ours from here on.
fn take_lease(journal: &Journal, plan: &Plan) -> Result<Option<Lease>, StartError> {
    if plan.storage_workers < 2 {
        return Ok(None);
    }
    let fd = journal.fd().try_clone_to_owned();
    let fd = fd.map_err(StartError::Thread)?;
    let lease = Lease::open(fd, plan.fingerprints.system, plan.index)?;
    // Somebody may be in the arena still.
    while !lease.acquire(Duration::from_secs(1)) {
        tracing::warn!(holder = ?lease.holder(), "another worker is in our arena");
    }
    Ok(Some(lease))
}

/// The worker is one of several; its lease is its own.
fn join(core: &mut Core, lease: Lease, registry: &Registry, plan: &Plan, arena: Rc<Mapping>) {
    let near = neighbours(registry, plan, arena);
    core.engine.scripts.surroundings.near = Some(Box::new(near));
    core.visits = Some(Box::new(Visits::new(plan.index as usize, lease)));
    core.begin_at_home();
}

/// The neighbours of a worker, none of which it has met yet.
fn neighbours(registry: &Registry, plan: &Plan, home: Rc<Mapping>) -> Neighbours {
    let mut owners = vec![0; usize::from(SLOT_COUNT)];
    for range in &registry.slot_map {
        let last = usize::from(range.last).min(owners.len() - 1);
        let worker = u8::try_from(range.worker).unwrap_or(u8::MAX);
        owners[usize::from(range.first).min(last)..=last].fill(worker);
    }
    let workers = plan.storage_workers as usize;
    Neighbours::new(plan.index as usize, home, owners.into(), workers)
}

fn count_start(party: &Party, plan: &Plan, keyspace: &Keyspace) {
    if plan.generation <= 1 {
        return;
    }
    let counter = if plan.arena == ArenaState::Kept {
        let keys: u64 = (0..keyspace.database_count())
            .map(|db| keyspace.len(db as u16))
            .sum();
        tracing::warn!(keys, "took over the memory of a dead predecessor");
        WorkerCounter::Takeovers
    } else {
        tracing::error!("the predecessor died inside a write: this worker starts EMPTY");
        WorkerCounter::Losses
    };
    party.counters().add(counter.place(), 1);
}

impl EventLoop {
    /// Attaches a link, where the predecessor stopped if it is the one it was serving.
    pub(super) fn attach(&mut self, attach: AttachLink) {
        let (link, generation) = (attach.plan.link, attach.plan.generation);
        if attach.plan.peer.role == Role::Broker {
            match self.broker.attach(attach, self.fingerprint) {
                Ok(()) => self.report(&FromChild::Attached { link, generation }),
                Err(error) => tracing::error!(link, %error, "link of the broker not attached"),
            }
            return;
        }
        self.links.remove(&mut self.core, link);
        match self.open_link(attach) {
            Ok(served) => {
                self.links.add(&mut self.core, served);
                self.report(&FromChild::Attached { link, generation });
            }
            Err(error) => tracing::error!(link, %error, "link not attached"),
        }
    }

    fn open_link(&mut self, attach: AttachLink) -> Result<Served, ShmError> {
        let AttachLink {
            plan,
            segment,
            peer_party,
            peer_bell,
        } = attach;
        let segment = LinkSegment::open(segment, self.fingerprint)?;
        let peer = Peer {
            party: Party::open(peer_party, self.fingerprint)?,
            bell: peer_bell.map_or(Bell::Futex, Bell::EventFd),
            position: plan.peer_position as usize,
        };
        let is_named = |predecessor: &mut Predecessor| {
            predecessor.line.link == plan.link
                && predecessor.line.link_generation == plan.generation as u32
        };
        let predecessor = self.predecessor.take_if(is_named);
        let resume = predecessor
            .map(|Predecessor { line, .. }| (line.request_position, line.reply_position));
        let side = segment.side_consumer()?;
        let rings = segment.responder(resume)?;
        let mut link = Link::new(plan.link, plan.generation, rings, side, peer);
        if let Some(Predecessor {
            line,
            doubt,
            served,
        }) = predecessor
        {
            tracing::info!(
                link = plan.link,
                ?doubt,
                "going on where the predecessor stopped"
            );
            link.take_over(&line, doubt, served);
        }
        link.settle();
        if self.epoch > 1 {
            link.begin_to_resume(self.epoch);
        }
        Ok(Served {
            link,
            position: plan.own_position as usize,
            generation: plan.generation,
            is_pending: true,
        })
    }
}
