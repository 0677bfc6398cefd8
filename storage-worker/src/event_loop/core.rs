//! What all links of a worker share: the engine, the journal, the counts of the batch, memory.
//!
//! Not here: rings (`link`), timers and sleeping (`event_loop`).

use super::bracket::Bracket;
use super::clock::Clock;
use super::replies::ReplyPosition;
use super::requests::Ahead;
use super::tally::Tally;
use crate::engine::Engine;
use crate::random::Random;
use crate::settings::MemoryLimit;
use proto::counters::{DatabaseCounter, WorkerCounter, worker_page};
use proto::time::UnixMillis;
use shm::{CommitLine, Party};
use std::rc::Rc;

/// Bits of `CommitLine::started`.
pub(crate) mod started {
    /// Background work is under way: if `writing` has moved on, no command is to blame.
    pub(crate) const BACKGROUND: u32 = 1 << 0;
    /// Every command is committed by itself: the one at the request position is the one that ran.
    pub(crate) const PRECISE: u32 = 1 << 1;
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
    /// Replies that nobody wants; scratch memory.
    pub(crate) unwanted: Vec<u8>,
    pub(crate) limit: MemoryLimit,
    /// Bytes that the other workers use.
    pub(crate) others_used_bytes: u64,
    /// Commands that read since the last commit line.
    pub(crate) is_uncommitted: bool,
    /// After a predecessor's death: commit every command by itself.
    pub(crate) is_precise: bool,
    pub(crate) evictions_failed: u64,
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
            others_used_bytes: 0,
            is_uncommitted: false,
            is_precise: false,
            evictions_failed: 0,
            changed: u64::MAX,
            random: Random::new(seed),
            last,
        }
    }

    /// Looks at the clock: the time of the commands that follow.
    #[inline]
    pub(crate) fn tick(&mut self) {
        self.clock.tick();
        self.now = self.clock.now();
        self.engine.keyspace.set_now(self.now);
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
    }

    /// Writes the numbers of keys and bytes to the page.
    pub(crate) fn update_counts(&mut self) {
        self.engine.keyspace.note_average_size();
        let page = self.party.counters();
        let keyspace = &self.engine.keyspace;
        for db in 0..self.engine.settings.databases {
            if self.changed >> (db % 64) & 1 == 1 {
                page.set(
                    worker_page::database(db, DatabaseCounter::Keys),
                    keyspace.len(db),
                );
                page.set(
                    worker_page::database(db, DatabaseCounter::Expires),
                    keyspace.expires(db),
                );
                page.set(
                    worker_page::database(db, DatabaseCounter::KeysWithExpiringFields),
                    keyspace.expiring_hashes(db),
                );
            }
        }
        self.changed = 0;
        let used = keyspace.used_bytes();
        page.set(WorkerCounter::UsedBytes.place(), used);
        page.max(WorkerCounter::UsedBytesPeak.place(), used);
        let counters = keyspace.counters();
        page.set(WorkerCounter::Expired.place(), counters.expired);
        page.set(
            WorkerCounter::ExpiredFields.place(),
            counters.expired_fields,
        );
        page.set(WorkerCounter::Evicted.place(), counters.evicted);
        page.set(WorkerCounter::LazyFreed.place(), counters.lazily_freed);
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
            started: if self.is_precise { started::PRECISE } else { 0 },
            writing: journal.writing(),
            log_length: journal.log_length(),
        };
        journal.commit(&self.last);
        self.is_uncommitted = false;
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
            if victim.is_none() {
                self.evictions_failed += 1;
                break;
            }
            evicted += 1;
        }
        evicted > 0 || !self.is_over_limit()
    }
}
