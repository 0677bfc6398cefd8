//! What all links of a worker share: the engine, the journal, the counts of the batch, memory.
//!
//! Not here: rings (`link`), timers and sleeping (`event_loop`).

use super::bracket::Bracket;
use super::broker::SharedLink;
use super::clock::Clock;
use super::parked::Parked;
use super::replies::ReplyPosition;
use super::requests::Ahead;
use super::tally::Tally;
use super::visit::Visits;
use super::waiters::Waiters;
use super::watching::Watching;
use crate::blocking::{Signal, WaitKey};
use crate::engine::Engine;
use crate::keyspace::Keyspace;
use crate::neighbours::Workers;
use crate::notify::class;
use crate::random::Random;
use crate::settings::MemoryLimit;
use crate::unit::NestedWrite;
use proto::catalogue::StorageCommand;
use proto::counters::{DatabaseCounter, WorkerCounter, worker_page};
use proto::time::UnixMillis;
use shm::{CommitLine, Party};
use std::collections::HashMap;
use std::rc::Rc;

/// Bits of `CommitLine::started`.
pub(crate) mod started {
    /// Background work is under way: if `writing` has moved on, no command is to blame.
    pub(crate) const BACKGROUND: u32 = 1 << 0;
    /// Every command is committed by itself: the one at the request position is the one that ran.
    pub(crate) const PRECISE: u32 = 1 << 1;
    /// A parked command of the line's link is served, the one with the journal's ticket; no request
    /// in the ring is to blame.
    pub(crate) const SERVING: u32 = 1 << 2;
}

/// Keys evicted for one command at most: the rest goes between batches, so that lowering
/// `maxmemory` of a full system does not stop it.
const EVICTIONS_MAX: usize = 256;

/// Freeing a slice of what waits for it takes as long as so many evictions.
const EVICTIONS_PER_SLICE: usize = 16;
/// Keys or elements freed per slice, 0.1 us each.
pub(crate) const FREE_STEPS: usize = 1000;

/// Where in which link a command or batch stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) link: u32,
    pub(crate) generation: u32,
    pub(crate) request_position: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) bracket: Rc<Bracket>,
    /// This worker's own page.
    pub(crate) party: Party,
    pub(crate) tally: Tally,
    clock: Clock,
    /// Time of the batch.
    pub(crate) now: UnixMillis,
    /// Frames seen ahead; scratch memory.
    pub(crate) ahead: Vec<Ahead>,
    /// Links that were dropped because they are damaged, and their generations.
    pub(crate) broken: Vec<(u32, u64)>,
    /// Replies that nobody wants; scratch memory.
    pub(crate) unwanted: Vec<u8>,
    pub(crate) limit: MemoryLimit,
    /// From so many microseconds on a command is slow; `None`: none is.
    slow_from: Option<u64>,
    /// Bytes that the other workers use.
    pub(crate) others_used_bytes: u64,
    /// Commands that read since the last commit line.
    pub(crate) is_uncommitted: bool,
    /// After a predecessor's death: commit every command by itself.
    pub(crate) is_precise: bool,
    /// Bits of `started` for the next lines.
    started: u32,
    pub(crate) evictions_failed: u64,
    /// The reply of a command inside another one; scratch memory.
    pub(crate) inner_reply: Vec<u8>,
    /// Those who wait.
    pub(crate) waiters: Waiters,
    /// The other workers, if there are any.
    pub(crate) visits: Option<Box<Visits>>,
    /// Something could not be done because other workers were not to be had: it is tried again soon.
    pub(crate) is_put_off: bool,
    /// Keys that clients of other workers wait for, and which workers.
    pub(crate) interests: HashMap<WaitKey, Workers>,
    /// What has written while others were visited whose owners must hear of it.
    pub(crate) writes_elsewhere: Vec<NestedWrite>,
    /// The pub/sub broker, once there is a link to it.
    pub(crate) broker: Option<SharedLink>,
    /// Behind every command that only reads there is something to do.
    pub(crate) is_careful: bool,
    /// Those who watch keys.
    pub(crate) watching: Watching,
    /// Signals for somebody who could not be served, because there was no room for the reply.
    pub(crate) deferred: Vec<Signal>,
    /// Commands that waited at a predecessor and have been sent again, not looked at yet.
    pub(crate) arrived: Vec<Parked>,
    /// The ticket of a parked command that seems to kill whoever serves it.
    pub(crate) deadly: Option<u64>,
    /// Databases below 64 whose counts may have changed, one bit each.
    changed: u64,
    random: Random,
    last: CommitLine,
}

impl Core {
    pub(crate) fn new(
        engine: Engine,
        bracket: Rc<Bracket>,
        party: Party,
        limit: MemoryLimit,
        seed: u64,
    ) -> Self {
        let last = bracket.journal().last_commit();
        let mut engine = engine;
        engine.effects.notes = bracket.notes.clone();
        let clock = Clock::new();
        Self {
            engine,
            bracket,
            party,
            tally: Tally::new(),
            now: clock.now(),
            clock,
            ahead: Vec::new(),
            unwanted: Vec::new(),
            limit,
            slow_from: None,
            others_used_bytes: 0,
            is_uncommitted: false,
            is_precise: false,
            started: 0,
            evictions_failed: 0,
            inner_reply: Vec::new(),
            waiters: Waiters::default(),
            visits: None,
            is_put_off: false,
            interests: HashMap::new(),
            writes_elsewhere: Vec::new(),
            broker: None,
            is_careful: false,
            watching: Watching::default(),
            broken: Vec::new(),
            deferred: Vec::new(),
            arrived: Vec::new(),
            deadly: None,
            changed: u64::MAX,
            random: Random::new(seed),
            last,
        }
    }

    /// Any count may have changed.
    pub(crate) fn note_everything_changed(&mut self) {
        self.changed = u64::MAX;
    }

    /// Looks at the clock: the time of the commands that follow.
    #[inline]
    pub(crate) fn tick(&mut self) {
        self.clock.tick();
        self.now = self.clock.now();
        self.engine.keyspace.set_now(self.now);
    }

    /// From so many microseconds on a command is slow, as `slowlog-log-slower-than` says.
    pub(crate) fn set_slow_from(&mut self, micros: i64) {
        self.slow_from = u64::try_from(micros).ok();
        self.engine.time_from(self.slow_from);
    }

    /// The microseconds that the command which has just run took, if that was slow.
    #[inline]
    pub(crate) fn slow_micros(&mut self, command: StorageCommand) -> Option<u64> {
        if !self.engine.is_timed(command) {
            return None;
        }
        let micros = u64::try_from(self.clock.lap().as_micros()).unwrap_or(u64::MAX);
        (micros >= self.slow_from?).then_some(micros)
    }

    /// Notes that the number of keys of a database may have changed.
    #[inline]
    pub(crate) fn note_change(&mut self, db: u16) {
        self.changed |= 1 << (db % 64);
        if std::mem::take(&mut self.engine.effects.counts_elsewhere) {
            self.changed = u64::MAX;
        }
    }

    /// Writes the counts of the batch to the page, before its replies become visible: who has a
    /// reply sees it counted.
    #[inline]
    pub(crate) fn flush_counts(&mut self) {
        let elapsed = self.clock.tick();
        self.now = self.clock.now();
        self.engine.keyspace.set_now(self.now);
        self.tally.flush(self.party.counters(), elapsed);
        let changes = std::mem::take(&mut self.engine.effects.changes);
        self.add(WorkerCounter::Dirty, changes);
        let (hits, misses) = self.engine.keyspace.take_lookups();
        self.add(WorkerCounter::KeyspaceHits, hits);
        self.add(WorkerCounter::KeyspaceMisses, misses);
        self.changed |= self.engine.keyspace.take_touched();
        if self.changed != 0 {
            self.update_counts();
        }
        if self.engine.effects.notes.is_any() {
            self.tell_notes();
        }
    }

    /// Writes the numbers of keys and bytes to the page.
    pub(crate) fn update_counts(&mut self) {
        self.engine.keyspace.note_average_size();
        let page = self.party.counters();
        let keyspace = &self.engine.keyspace;
        let databases = self.engine.settings.databases;
        count_keys(&self.party, keyspace, databases, self.changed);
        self.changed = 0;
        let counters = keyspace.counters();
        page.set(WorkerCounter::Expired.place(), counters.expired);
        page.set(
            WorkerCounter::ExpiredFields.place(),
            counters.expired_fields,
        );
        page.set(WorkerCounter::Evicted.place(), counters.evicted);
        page.set(WorkerCounter::LazyFreed.place(), counters.lazily_freed);
        page.set(
            WorkerCounter::LazyFreePending.place(),
            keyspace.lazily_pending(),
        );
    }

    /// Adds to a counter of the page.
    #[inline]
    pub(crate) fn add(&self, counter: WorkerCounter, more: u64) {
        self.party.counters().add(counter.place(), more);
    }

    /// Estimated average time to live of a database's keys, in milliseconds.
    pub(crate) fn average_ttl(&mut self, db: u16) -> u64 {
        let (now, random) = (self.now, &mut self.random);
        self.engine
            .keyspace
            .average_ttl(db, now, || random.next_u64())
    }

    /// Notes in the journal how far a link has come.
    #[inline]
    pub(crate) fn commit(&mut self, place: Place, reply: ReplyPosition) {
        let journal = self.bracket.journal();
        self.last = CommitLine {
            sequence: self.last.sequence.wrapping_add(1),
            link: place.link,
            link_generation: place.generation,
            request_position: place.request_position,
            reply_position: reply.position,
            frame_start: reply.frame_start,
            frame_count: reply.frame_count,
            started: self.started,
            writing: journal.writing(),
            log_length: journal.log_length(),
        };
        journal.commit(&self.last);
        self.is_uncommitted = false;
    }

    /// From here on every command is committed by itself.
    pub(crate) fn be_precise(&mut self) {
        self.is_precise = true;
        self.is_careful = true;
        self.started |= started::PRECISE;
    }

    /// The number of the command under way: that of its commit line.
    pub(crate) fn ticket(&self) -> u64 {
        self.last.sequence.wrapping_add(1)
    }

    /// Notes that the parked command with this ticket is served from here on, and nothing else.
    pub(crate) fn begin_serving(&mut self, ticket: u64, place: Place, reply: ReplyPosition) {
        self.bracket.journal().set_ticket(ticket);
        self.started |= started::SERVING;
        self.commit(place, reply);
    }

    /// Notes that it is served, or waits on.
    pub(crate) fn end_serving(&mut self, place: Place, reply: ReplyPosition) {
        self.started &= !started::SERVING;
        self.commit(place, reply);
    }

    /// Adds somebody who waits.
    pub(crate) fn park(&mut self, parked: Parked) {
        self.waiters.insert(parked);
        self.note_waiters();
    }

    /// Takes somebody out who waited.
    pub(crate) fn unpark(&mut self, ticket: u64) -> Option<Rc<Parked>> {
        let parked = self.waiters.remove(ticket);
        self.note_waiters();
        parked
    }

    /// Whether a command has signalled to those who wait.
    #[inline]
    pub(crate) fn is_signalled(&self) -> bool {
        !self.engine.effects.waking.ready.is_empty() || self.bracket.is_any_ended()
    }

    /// Whether somebody's time is over.
    #[inline]
    pub(crate) fn has_overdue(&self) -> bool {
        let deadline = self.waiters.next_deadline();
        deadline.is_some_and(|deadline| deadline.has_passed(self.now))
    }

    /// Whether somebody could not be served when there was something for him, has just come back, or
    /// waits for something that went by itself.
    #[inline]
    pub(crate) fn has_unserved(&self) -> bool {
        !self.deferred.is_empty() || !self.arrived.is_empty() || self.is_signalled()
    }

    /// Call it after any change of the waiters: commands signal only if there are some.
    pub(crate) fn note_waiters(&mut self) {
        self.engine.effects.waking.has_waiters = self.is_anybody_waiting();
        self.bracket
            .watch_streams(self.waiters.keys_without_key() > 0 || !self.interests.is_empty());
        let page = self.party.counters();
        let set = |counter: WorkerCounter, level: usize| page.set(counter.place(), level as u64);
        set(WorkerCounter::Waiters, self.waiters.len());
        set(WorkerCounter::Interests, self.interests.len());
        set(WorkerCounter::WaitersTimed, self.waiters.with_deadline());
        set(WorkerCounter::WaitedKeys, self.waiters.keys());
        set(
            WorkerCounter::WaitedKeysWithoutKey,
            self.waiters.keys_without_key(),
        );
    }

    /// Call it after any change of who watches what.
    pub(crate) fn note_watchers(&self) {
        let page = self.party.counters();
        page.set(
            WorkerCounter::WatchedKeys.place(),
            self.watching.keys() as u64,
        );
    }

    /// Runs a piece of background work that changes data. The commit line says so meanwhile, so
    /// that no command is blamed for it.
    pub(crate) fn in_background<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.last.started |= started::BACKGROUND;
        self.bracket.journal().commit(&self.last);
        self.bracket.begin(0, 0);
        let result = work(self);
        self.bracket.end();
        let journal = self.bracket.journal();
        self.last.started &= !started::BACKGROUND;
        self.last.writing = journal.writing();
        journal.commit(&self.last);
        self.changed = u64::MAX;
        result
    }

    /// Whether the system uses more memory than it may.
    #[inline]
    pub(crate) fn is_over_limit(&self) -> bool {
        self.limit.bytes != 0
            && self.engine.keyspace.used_bytes() + self.others_used_bytes > self.limit.bytes
    }

    /// Evicts keys until the system is within its limit, inside the caller's bracket. False if
    /// nothing could be evicted although memory is short.
    #[inline]
    pub(crate) fn make_room(&mut self) -> bool {
        !self.is_over_limit() || self.evict()
    }

    #[cold]
    fn evict(&mut self) -> bool {
        let mut evicted = 0;
        while self.is_over_limit() && evicted < EVICTIONS_MAX {
            // What is removed already goes before anything else is.
            if self.engine.keyspace.has_graves() {
                self.engine.keyspace.free_slice(FREE_STEPS);
                evicted += EVICTIONS_PER_SLICE;
                continue;
            }
            let random = &mut self.random;
            let victim = self.engine.keyspace.evict_one(
                self.limit.policy,
                self.limit.samples,
                self.now,
                || random.next_u64(),
            );
            let Some(victim) = victim else {
                self.evictions_failed += 1;
                break;
            };
            let notes = &self.engine.effects.notes;
            notes.say(class::EVICTED, "evicted", victim.db, &victim.key);
            evicted += 1;
        }
        evicted > 0 || !self.is_over_limit()
    }
}

/// Writes keys and bytes of a keyspace to the page of its owner: of the databases in `changed`, by number
/// modulo 64.
pub(super) fn count_keys(party: &Party, keyspace: &Keyspace, databases: u16, changed: u64) {
    use DatabaseCounter::{Expires, Keys, KeysWithExpiringFields};
    let page = party.counters();
    for db in (0..databases).filter(|db| changed >> (db % 64) & 1 == 1) {
        page.set(worker_page::database(db, Keys), keyspace.len(db));
        page.set(worker_page::database(db, Expires), keyspace.expires(db));
        let hashes = keyspace.expiring_hashes(db);
        page.set(worker_page::database(db, KeysWithExpiringFields), hashes);
    }
    let used = keyspace.used_bytes();
    page.set(WorkerCounter::UsedBytes.place(), used);
    page.max(WorkerCounter::UsedBytesPeak.place(), used);
}
