//! The keyspaces of all workers, as one of them sees them while it runs a command over several.
//!
//! ```text
//!   open(2) ──> arena 2 is ours until `close`; a dead visitor's guests are taken away
//!   with(2, work) ──> this thread enters arena 2, works, and comes home again
//!   begin(2) ──> brackets: our own journal's and the visit of arena 2, until `finish`
//! ```
//!
//! Why: every arena is mapped at an address of its own, so a process that maps several can work in all of
//! them. A transaction or a script over several workers is then a run of ordinary handlers on one thread,
//! and nothing has to be sent, agreed upon, or undone.
//!
//! Invariants
//!   N1  an arena is entered only between `open` and `close`, while the caller holds its lease.
//!   N2  whoever changes a neighbour's arena has a bracket open here, too: if we die inside, what we were at
//!       is known to have begun.
//!   N3  outside of `with` the thread is in its own arena.
//!
//! Not here: leases and mappings (`event_loop`), what a command over several keyspaces does (`crossing`).

use crate::keyspace::Keyspace;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use shm::arena::Mapping;
use std::rc::Rc;

/// Most workers of a system: one bit each.
pub const WORKERS_MAX: usize = 64;

/// Workers, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers(pub u64);

impl Workers {
    /// One worker.
    #[must_use]
    pub fn one(worker: usize) -> Self {
        Self(1 << (worker % WORKERS_MAX))
    }

    /// Whether `worker` is one of them.
    #[inline]
    #[must_use]
    pub fn has(self, worker: usize) -> bool {
        self.0 >> (worker % WORKERS_MAX) & 1 == 1
    }

    /// Adds a worker.
    #[inline]
    pub fn add(&mut self, worker: usize) {
        self.0 |= 1 << (worker % WORKERS_MAX);
    }

    /// All of both.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those that are not in `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers, ascending.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..WORKERS_MAX).filter(move |&worker| self.has(worker))
    }
}

/// Another worker's keyspace.
#[derive(Debug)]
pub struct Neighbour {
    /// The handle.
    pub keyspace: Keyspace,
    /// Where it is mapped.
    pub arena: Mapping,
}

/// See the module.
#[derive(Debug)]
pub struct Neighbours {
    own: usize,
    home: Rc<Mapping>,
    /// The owner of each slot.
    owners: Box<[u8]>,
    /// By worker; none for ourselves and for those that are not there.
    others: Vec<Option<Box<Neighbour>>>,
    open: Workers,
    begun: Workers,
    /// How deep we are in units: their brackets end with the outermost one.
    units: u32,
}

impl Neighbours {
    /// For worker `own`, whose arena is mapped as `home`. `owners` says who owns each slot, `count` how many
    /// workers there are.
    #[must_use]
    pub fn new(own: usize, home: Rc<Mapping>, owners: Box<[u8]>, count: usize) -> Self {
        Self {
            own,
            home,
            owners,
            others: (0..count).map(|_| None).collect(),
            open: Workers::default(),
            begun: Workers::default(),
            units: 0,
        }
    }

    /// The worker that this is.
    #[must_use]
    pub fn own(&self) -> usize {
        self.own
    }

    /// All workers.
    #[must_use]
    pub fn all(&self) -> Workers {
        let mut all = Workers::default();
        (0..self.others.len()).for_each(|worker| all.add(worker));
        all
    }

    /// Who owns a slot.
    #[inline]
    #[must_use]
    pub fn owner(&self, slot: u16) -> usize {
        let owner = self.owners.get(usize::from(slot));
        owner.map_or(self.own, |owner| usize::from(*owner))
    }

    /// Who owns a key.
    #[inline]
    #[must_use]
    pub fn owner_of(&self, key: &[u8]) -> usize {
        self.owner(slot_of(key))
    }

    /// Takes in a neighbour, in place of the one of its number.
    pub fn insert(&mut self, worker: usize, neighbour: Neighbour) {
        if let Some(place) = self.others.get_mut(worker) {
            *place = Some(Box::new(neighbour));
        }
    }

    /// Drops a neighbour whose memory is another one now.
    pub fn remove(&mut self, worker: usize) {
        if let Some(place) = self.others.get_mut(worker) {
            *place = None;
        }
    }

    /// A neighbour.
    #[must_use]
    pub fn get(&self, worker: usize) -> Option<&Neighbour> {
        self.others.get(worker)?.as_deref()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, worker: usize) -> Option<&mut Neighbour> {
        self.others.get_mut(worker)?.as_deref_mut()
    }

    /// Those whose keyspaces may be worked in, ourselves included.
    #[must_use]
    pub fn opened(&self) -> Workers {
        let mut open = self.open;
        open.add(self.own);
        open
    }

    /// A neighbour's keyspace is ours for a time, at the time `now`. False if there is none.
    pub fn open(&mut self, worker: usize, now: UnixMillis) -> bool {
        let owners = &self.owners;
        let Some(Some(neighbour)) = self.others.get_mut(worker) else {
            return false;
        };
        neighbour.arena.enter();
        let keyspace = &mut neighbour.keyspace;
        let is_there = keyspace.look_again().is_ok();
        if is_there {
            keyspace.set_now(now);
            if keyspace.has_guests() {
                keyspace.begin_write(0, 0);
                keyspace.remove_guests(|slot| {
                    let owner = owners.get(usize::from(slot));
                    owner.is_some_and(|owner| usize::from(*owner) == worker)
                });
                keyspace.end_write();
            }
            self.open.add(worker);
        }
        self.home.enter();
        is_there
    }

    /// Several commands that are one begin.
    pub fn enter_unit(&mut self) {
        self.units += 1;
    }

    /// They have ended; call `finish` behind it.
    pub fn leave_unit(&mut self) {
        self.units -= 1;
    }

    /// Whether what runs is a part of something.
    #[must_use]
    pub fn is_in_unit(&self) -> bool {
        self.units > 0
    }

    /// This thread is in its own arena again, whatever it did.
    pub fn go_home(&self) {
        self.home.enter();
    }

    /// No neighbour's keyspace is ours any more.
    pub fn close(&mut self) {
        debug_assert!(self.begun.is_empty(), "brackets are ended before");
        self.open = Workers::default();
    }

    /// Calls `work` with the keyspace of a worker that is open, in its arena; `own` is our own one.
    pub fn with<R>(
        &mut self,
        worker: usize,
        own: &mut Keyspace,
        work: impl FnOnce(&mut Keyspace) -> R,
    ) -> R {
        if worker == self.own {
            return work(own);
        }
        assert!(self.open.has(worker), "its lease is not ours");
        let Some(Some(neighbour)) = self.others.get_mut(worker) else {
            unreachable!("it is open");
        };
        neighbour.arena.enter();
        let result = work(&mut neighbour.keyspace);
        self.home.enter();
        result
    }

    /// The keyspace of a worker is about to be changed: opens its bracket, unless it is open.
    pub fn begin(&mut self, worker: usize, own: &mut Keyspace, db: u16, slot: u16) {
        if self.begun.has(worker) {
            return;
        }
        self.begun.add(worker);
        self.with(worker, own, |keyspace| keyspace.begin_write(db, slot));
    }

    /// Ends all brackets, our own last, unless a unit goes on.
    pub fn finish(&mut self, own: &mut Keyspace) {
        if self.is_in_unit() {
            return;
        }
        let begun = std::mem::take(&mut self.begun);
        let mut own_worker = Workers::default();
        own_worker.add(self.own);
        for worker in begun.without(own_worker).iter() {
            self.with(worker, own, Keyspace::end_write);
        }
        if begun.has(self.own) {
            own.end_write();
        }
    }
}
