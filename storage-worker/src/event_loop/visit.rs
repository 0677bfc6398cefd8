//! Visits to the keyspaces of other workers: their leases, and what is left behind.
//!
//! ```text
//!   come in    leases of all that is needed, ours among them, in ascending order of workers
//!              an arena is torn, or has notes for its owner?      all are given back, later again
//!   work       commands over several keyspaces (`crossing`), one or many
//!   go         what owners must hear of becomes notes in their arenas; counts; leases given back; bells
//! ```
//!
//! A worker holds its own lease while it runs a turn, and gives it up to whoever wants it behind the turn and
//! before it sleeps. So a visitor waits for a turn at most, and nobody waits while it holds what another
//! one needs: leases are taken in one order, and a worker that has to wait for others has given up its own.
//!
//! Notes come before anything else: a worker that finds some reads them before it serves anybody, and a visitor
//! that finds some goes away again and lets the owner come first. So a client that waits for a key is served
//! before anybody sees what it waited for, wherever the push came from.
//!
//! Death
//!   - of a visitor, outside of changes: the supervisor frees its leases; guests go with the next who comes in.
//!   - of a visitor, inside of a change: the arena counts as torn. The supervisor replaces its owner.
//!   - of the owner: visitors go on. Its successor takes the lease before it looks at anything.
//!
//! Cost: one compare and swap per turn where there are several workers; nothing with one.

use super::bracket::Bracket;
use super::core::Core;
use crate::blocking::{Signal, WaitKey};
use crate::keyspace::{self, Hook, Keyspace};
use crate::neighbours::{Neighbour, Workers};
use crate::notify::class;
use proto::control_words::{RunningScript, SCRIPT};
use proto::counters::WorkerCounter;
use shm::arena::{ArenaError, Mapping};
use shm::{Bell, Lease, Party};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

/// How long a visitor waits for one lease before it lets others of its own clients go on.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long it stays away when somebody else must come first.
const STAY_AWAY: Duration = Duration::from_micros(100);
/// How long a worker waits for its own lease before it looks whether its holder asks something.
const PATIENCE_AT_HOME: Duration = Duration::from_millis(1);
/// What the process has of a neighbour beside its keyspace.
#[derive(Debug)]
pub(super) struct Next {
    lease: Rc<Lease>,
    /// Of the arena that is mapped.
    generation: u64,
    memory: Option<OwnedFd>,
    /// Streams that ended during this visit while somebody might wait for that.
    pub(super) ended: Rc<RefCell<Vec<WaitKey>>>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Visits {
    pub(super) own_index: usize,
    pub(super) own: Lease,
    pub(super) is_home: bool,
    /// Visits to our arena when we were last here.
    pub(super) seen: u64,
    pub(super) others: BTreeMap<usize, Next>,
    /// Pages of the other workers.
    pub(super) pages: BTreeMap<usize, Party>,
    /// Whose leases we hold beside our own.
    pub(super) held: Workers,
    /// Who must hear of something now.
    pub(super) to_wake: Workers,
    /// Notes for owners of keys that clients of ours wait for.
    pub(super) about_interest: Vec<(usize, Vec<u8>)>,
    /// Generations of owners that know of our interest: a successor does not.
    pub(super) interested_in: BTreeMap<usize, u64>,
    /// Number of the last question about watched keys.
    pub(super) asked: u64,
    /// The last one that was answered.
    pub(super) answered: u64,
}

/// It cannot be now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotNow;

impl Visits {
    /// For worker `own_index`, which holds its lease.
    pub(super) fn new(own_index: usize, own: Lease) -> Self {
        Self {
            own_index,
            seen: own.visits(),
            own,
            is_home: true,
            others: BTreeMap::new(),
            pages: BTreeMap::new(),
            held: Workers::default(),
            to_wake: Workers::default(),
            about_interest: Vec::new(),
            interested_in: BTreeMap::new(),
            asked: 0,
            answered: 0,
        }
    }

    /// A neighbour, or its new arena.
    pub(super) fn meet(&mut self, worker: usize, generation: u64, memory: OwnedFd, lease: Lease) {
        let next = Next {
            lease: Rc::new(lease),
            generation,
            memory: Some(memory),
            ended: Rc::default(),
        };
        self.others.insert(worker, next);
    }

    /// Whether anybody is visited.
    #[inline]
    pub(crate) fn is_visiting(&self) -> bool {
        !self.held.is_empty()
    }

    fn is_wanted(&self) -> bool {
        let held = self
            .held
            .iter()
            .filter_map(|worker| self.others.get(&worker));
        self.own.is_wanted() || held.into_iter().any(|next| next.lease.is_wanted())
    }

    /// Gives back all leases but our own.
    fn release_held(&mut self) {
        for worker in std::mem::take(&mut self.held).iter() {
            if let Some(next) = self.others.get(&worker) {
                next.lease.release();
            }
        }
    }

    /// Takes the leases of `wanted` and our own.
    fn acquire(&mut self, wanted: Workers) -> Result<(), NotNow> {
        let all = wanted.with(Workers::one(self.own_index));
        self.own.release();
        self.is_home = false;
        for worker in all.iter() {
            let is_taken = if worker == self.own_index {
                self.is_home = self.own.acquire(PATIENCE);
                self.is_home
            } else {
                let lease = self.others.get(&worker).map(|next| &next.lease);
                let is_taken = lease.is_some_and(|lease| lease.acquire(PATIENCE));
                if is_taken {
                    self.held.add(worker);
                }
                is_taken
            };
            if !is_taken {
                self.release_held();
                return Err(NotNow);
            }
        }
        Ok(())
    }
}

impl Core {
    /// Whether anybody is visited.
    #[inline]
    pub(crate) fn is_visiting(&self) -> bool {
        self.visits
            .as_ref()
            .is_some_and(|visits| visits.is_visiting())
    }

    /// Whether somebody was in our arena since we have left it.
    pub(super) fn was_visited(&self) -> bool {
        let visits = self.visits.as_ref();
        visits.is_some_and(|visits| !visits.is_home && visits.own.visits() != visits.seen)
    }

    /// Whether anybody watches a key of those that are visited.
    pub(super) fn is_watched_elsewhere(&self) -> bool {
        let Some(visits) = &self.visits else {
            return false;
        };
        let mut pages = visits
            .held
            .iter()
            .filter_map(|worker| visits.pages.get(&worker));
        pages.any(|page| page.counters().get(WorkerCounter::WatchedKeys.place()) > 0)
    }

    /// Begins a turn: nobody else is in our arena. True if somebody was since the last turn.
    #[inline]
    pub(super) fn come_home(&mut self) -> bool {
        self.visits.is_some() && self.come_home_from_outside()
    }

    fn come_home_from_outside(&mut self) -> bool {
        self.take_own_lease();
        let was_visited = self.notice_visitors();
        self.look_after_interest();
        was_visited
    }

    /// Our lease is ours again: hears what visitors have left, before anything else is done. True if there were
    /// some.
    fn notice_visitors(&mut self) -> bool {
        let Some(visits) = &mut self.visits else {
            return false;
        };
        let now = visits.own.visits();
        let was_visited = std::mem::replace(&mut visits.seen, now) != now;
        if was_visited {
            self.look_around();
        }
        was_visited
    }

    /// Waits for our own lease. Who holds it may want to know something meanwhile.
    fn take_own_lease(&mut self) {
        while let Some(visits) = &mut self.visits
            && !visits.is_home
        {
            visits.is_home = visits.own.acquire(PATIENCE_AT_HOME);
            if !visits.is_home {
                self.answer_about_watched();
            }
        }
    }

    /// Somebody was here: takes away what a dead visitor has left, and reads what there is to hear of.
    #[cold]
    fn look_around(&mut self) {
        self.note_everything_changed();
        let own = self.own_worker();
        let keyspace = &mut self.engine.keyspace;
        if keyspace.has_guests() {
            self.in_background(|core| {
                let surroundings = &core.engine.scripts.surroundings;
                let near = surroundings.near.as_deref();
                let is_owned = |slot| near.is_none_or(|near| near.owner(slot) == own);
                core.engine.keyspace.remove_guests(is_owned);
            });
        }
        if self.engine.keyspace.has_notes() {
            let notes = self.in_background(|core| core.engine.keyspace.take_notes());
            for note in notes {
                if self.take_note(&note).is_none() {
                    tracing::error!("a note of another worker makes no sense");
                }
            }
        }
    }

    /// A worker begins: it takes away what dead visitors have left, and hears what it was to hear.
    pub(super) fn begin_at_home(&mut self) {
        if self.visits.is_some() {
            self.look_around();
        }
    }

    fn own_worker(&self) -> usize {
        self.visits.as_ref().map_or(0, |visits| visits.own_index)
    }

    /// Ends a turn if somebody waits for that, or if we are about to sleep.
    #[inline]
    pub(super) fn go_out(&mut self, is_to_sleep: bool) {
        if let Some(visits) = &mut self.visits
            && visits.is_home
            && (is_to_sleep || visits.own.is_wanted())
        {
            visits.own.release();
            visits.is_home = false;
        }
    }

    /// Comes into the keyspaces of `wanted`, unless we are there.
    pub(crate) fn visit(&mut self, wanted: Workers) -> Result<(), NotNow> {
        let Some(visits) = &mut self.visits else {
            return Ok(());
        };
        let wanted = wanted.without(Workers::one(visits.own_index));
        let is_enough = wanted.without(visits.held).is_empty();
        if is_enough && (wanted.is_empty() || !visits.is_wanted()) {
            return Ok(());
        }
        self.leave();
        if wanted.is_empty() {
            return Ok(());
        }
        let came_in = self.come_in(wanted);
        if came_in.is_err() {
            self.is_put_off = true;
            std::thread::sleep(STAY_AWAY);
        }
        came_in
    }

    fn come_in(&mut self, wanted: Workers) -> Result<(), NotNow> {
        let Some(visits) = &mut self.visits else {
            return Err(NotNow);
        };
        let is_taken = visits.acquire(wanted);
        if is_taken.is_err() {
            self.take_own_lease();
            self.notice_visitors();
            return is_taken;
        }
        // Those who wait for what visitors have brought come first.
        let must_wait = self.notice_visitors() && self.is_signalled();
        if must_wait || !wanted.iter().all(|worker| self.open(worker)) {
            self.go_away();
            return Err(NotNow);
        }
        self.add(WorkerCounter::Visits, 1);
        self.engine.effects.waking.has_waiters = true;
        Ok(())
    }

    /// A script that has held one of these workers for too long.
    pub(super) fn script_in(&self, workers: Workers) -> Option<RunningScript> {
        let visits = self.visits.as_ref()?;
        let mut holders = workers.iter().filter_map(|worker| {
            let next = visits.others.get(&worker)?;
            next.lease.holder().map(|holder| holder as usize)
        });
        holders.find_map(|holder| {
            let page = visits.pages.get(&holder)?;
            RunningScript::from_word(page.control(SCRIPT)).filter(|script| script.is_busy)
        })
    }

    /// Opens the keyspace of a worker whose lease we hold. False if it is not there, or if its owner has to
    /// hear of something first.
    fn open(&mut self, worker: usize) -> bool {
        if !self.map(worker) {
            return false;
        }
        let now = self.now;
        let Some(visits) = &mut self.visits else {
            return false;
        };
        let Some(next) = visits.others.get(&worker) else {
            return false;
        };
        if next.lease.is_torn() || next.lease.arena_generation() != next.generation {
            return false;
        }
        let Some(near) = &mut self.engine.scripts.surroundings.near else {
            return false;
        };
        if !near.open(worker, now) {
            return false;
        }
        let mode = self.engine.keyspace.clock_mode();
        let Some(neighbour) = near.get_mut(worker) else {
            return false;
        };
        neighbour.keyspace.set_clock_mode(mode);
        let has_notes = neighbour.keyspace.has_notes();
        if has_notes {
            visits.to_wake.add(worker);
        }
        !has_notes
    }

    /// Maps the arena of a neighbour, if it is not.
    fn map(&mut self, worker: usize) -> bool {
        let Some(visits) = &mut self.visits else {
            return false;
        };
        let Some(next) = visits.others.get_mut(&worker) else {
            return false;
        };
        let Some(near) = &mut self.engine.scripts.surroundings.near else {
            return false;
        };
        if next.memory.is_none() {
            return near.get(worker).is_some();
        }
        // Its old memory, at the same addresses, goes first.
        near.remove(worker);
        let Some(memory) = next.memory.as_ref().and_then(|it| it.try_clone().ok()) else {
            return false;
        };
        let mapped = map(memory, worker);
        near.go_home();
        match mapped {
            Ok(Some((arena, mut keyspace))) => {
                keyspace.set_hook(Box::new(VisitHook {
                    own: Rc::clone(&self.bracket),
                    lease: Rc::clone(&next.lease),
                    depth: Rc::default(),
                    ended: Rc::clone(&next.ended),
                }));
                near.insert(worker, Neighbour { keyspace, arena });
                next.memory = None;
                true
            }
            // Its owner has not made anything in it yet.
            Ok(None) => false,
            Err(error) => {
                tracing::error!(worker, %error, "the arena of another worker cannot be mapped");
                false
            }
        }
    }

    /// Leaves all keyspaces that are visited.
    pub(crate) fn leave(&mut self) {
        if self.is_visiting() {
            self.tell_owners();
            self.count_elsewhere();
        }
        self.go_away();
    }

    /// Gives back all leases but our own, and wakes who must hear of something.
    fn go_away(&mut self) {
        if let Some(near) = &mut self.engine.scripts.surroundings.near {
            near.close();
        }
        let Some(visits) = &mut self.visits else {
            return;
        };
        visits.release_held();
        for worker in std::mem::take(&mut visits.to_wake).iter() {
            if let Some(page) = visits.pages.get(&worker) {
                page.doorbell().ring(&Bell::Futex);
            }
        }
        self.engine.effects.waking.has_waiters = self.is_anybody_waiting();
    }

    /// Whether signals are wanted.
    pub(super) fn is_anybody_waiting(&self) -> bool {
        !self.waiters.is_empty() || !self.interests.is_empty()
    }

    /// Whether somebody else must hear of what was done before anything else is.
    pub(crate) fn must_leave(&self) -> bool {
        self.visits.as_ref().is_some_and(|visits| {
            let mut ready = self.engine.effects.waking.ready.iter();
            let mut others = visits.others.values();
            let mut is_any_ended = || others.any(|next| !next.ended.borrow().is_empty());
            visits.is_visiting()
                && (ready.any(|signal| self.is_elsewhere(signal)) || is_any_ended())
        })
    }

    fn is_elsewhere(&self, signal: &Signal) -> bool {
        let near = self.engine.scripts.surroundings.near.as_deref();
        match (signal, near) {
            (Signal::Key((_, key)), Some(near)) => near.owner_of(key) != near.own(),
            (Signal::Database(_), _) => true,
            (_, None) => false,
        }
    }

    /// Writes the counts of visited keyspaces to the pages of their owners, which may sleep.
    fn count_elsewhere(&mut self) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let Some(near) = &mut self.engine.scripts.surroundings.near else {
            return;
        };
        for worker in visits.held.iter() {
            let Some(page) = visits.pages.get(&worker) else {
                continue;
            };
            let databases = self.engine.settings.databases;
            let (expiry, lookups) = near.with(worker, &mut self.engine.keyspace, |keyspace| {
                let changed = keyspace.take_touched();
                if changed != 0 {
                    super::core::count_keys(page, keyspace, databases, changed);
                }
                (keyspace.take_noted_expiry(), keyspace.take_lookups())
            });
            let (hits, misses) = lookups;
            let own = self.party.counters();
            own.add(WorkerCounter::KeyspaceHits.place(), hits);
            own.add(WorkerCounter::KeyspaceMisses.place(), misses);
            if expiry.is_some() {
                visits.to_wake.add(worker);
            }
        }
    }
}

/// Maps an arena at the address of its worker, which this thread is in then; nothing if it is blank.
fn map(memory: OwnedFd, worker: usize) -> Result<Option<(Mapping, Keyspace)>, ArenaError> {
    let index = u32::try_from(worker).unwrap_or(u32::MAX);
    let Some(arena) = Mapping::visit(memory, index, keyspace::fingerprint())? else {
        return Ok(None);
    };
    arena.enter();
    match Keyspace::attach() {
        Ok(keyspace) => Ok(Some((arena, keyspace))),
        Err(_) => Ok(None),
    }
}

/// Brackets of a keyspace that is visited: our own journal says that something has begun, and the lease that
/// a visitor changes the arena.
#[derive(Debug)]
struct VisitHook {
    own: Rc<Bracket>,
    lease: Rc<Lease>,
    depth: Rc<Cell<u32>>,
    ended: Rc<RefCell<Vec<WaitKey>>>,
}

impl VisitHook {
    fn end(&self) {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth == 0 {
            self.lease.end_visit();
        }
        self.own.end();
    }
}

impl Hook for VisitHook {
    fn begin_write(&mut self, db: u16, slot: u16) {
        self.own.begin(db, slot);
        if self.depth.get() == 0 {
            self.lease.begin_visit();
        }
        self.depth.set(self.depth.get() + 1);
    }

    fn end_write(&mut self) {
        self.end();
    }

    fn pause_write(&mut self, db: u16, slot: u16) -> Option<Box<dyn FnOnce()>> {
        if self.depth.get() != 1 || self.own.depth() != 1 {
            return None;
        }
        self.end();
        let (own, lease, depth) = (
            Rc::clone(&self.own),
            Rc::clone(&self.lease),
            Rc::clone(&self.depth),
        );
        Some(Box::new(move || {
            own.begin(db, slot);
            lease.begin_visit();
            depth.set(1);
        }))
    }

    fn expired(&mut self, db: u16, _slot: u16, key: &[u8]) {
        self.own.notes.say(class::EXPIRED, "expired", db, key);
    }

    fn stream_removed(&mut self, db: u16, key: &[u8]) {
        self.ended.borrow_mut().push((db, key.into()));
    }

    fn field_expired(&mut self, db: u16, _slot: u16, key: &[u8], _field: &[u8]) {
        self.own.notes.field_expired(db, key);
    }
}
