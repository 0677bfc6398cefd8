//! Work that nobody waits for, done in slices between batches: expiry, freeing, eviction, giving
//! pages back, levels of the statistics page.
//!
//! ```text
//!   after every batch          is a slice due?   one compare
//!   something is left to do    a slice every millisecond, about 0.1 ms each: 10 % of the thread (expiry: up to 0.4)
//!   nothing is left            when the next key or field expires, at the earliest after 10 ms and at
//!                              the latest after 100 ms, by a timer of the sleep
//! ```
//!
//! An idle worker that has caught up wakes ten times a second for some microseconds; up to a hundred
//! times while keys expire all the time.
//! Not here: how keys are found (`keyspace`), eviction for a command that needs room (`core`).

use super::core::{Core, FREE_STEPS};
use proto::counters::{DatabaseCounter, WorkerCounter, worker_page};
use proto::time::UnixMillis;
use shm::arena::Arena;
use std::time::Duration;

/// Between two slices while there is more to do: short enough that a million keys that expire
/// together are gone in two seconds.
const BUSY_INTERVAL_MS: u64 = 1;
/// Between two looks when there was nothing to do.
const IDLE_INTERVAL_MS: u64 = 100;
/// Between two looks while keys or fields expire one after the other: they expire in the background
/// at most this late. On access they always expire on time.
const EXPIRE_INTERVAL_MS: u64 = 10;
/// Steps of expiry per slice, 0.2 us each. Whoever is behind takes so many again for every ten
/// milliseconds, up to 0.4 ms: every 256 ms all keys of the next 256 ms go down a level, which is a
/// step for each, and must not keep those that are due from going for long.
const EXPIRE_STEPS: usize = 500;
const EXPIRE_STEPS_MAX: usize = 2_000;
const BEHIND_MS: u64 = 10;
/// Free pages that stay for the next growth: a twentieth of what is used, at least 4 MiB.
const KEEP_BYTES_MIN: u64 = 4 << 20;
/// Pages given back per slice; a page costs about 0.3 us.
const RETURN_BYTES: u64 = 1 << 20;

/// When the next slice is due and what is left to do.
#[derive(Debug)]
pub(crate) struct Background {
    due: UnixMillis,
    is_purging: bool,
    /// Since when expiry has had more to do than a slice.
    behind_since: Option<UnixMillis>,
}

impl Background {
    pub(crate) fn new() -> Self {
        Self {
            due: UnixMillis(0),
            is_purging: false,
            behind_since: None,
        }
    }

    /// Runs a slice if one is due.
    #[inline]
    pub(crate) fn run_if_due(&mut self, core: &mut Core) {
        if let Some(at) = core.engine.keyspace.take_noted_expiry()
            && core.engine.settings.active_expire
        {
            let wait = at.since(core.now).saturating_add(1);
            self.due = self.due.min(core.now.plus(wait.max(EXPIRE_INTERVAL_MS)));
        }
        // A clock that was set back must not stop the background.
        if core.now >= self.due || self.due.since(core.now) > IDLE_INTERVAL_MS {
            self.run(core);
        }
    }

    /// Somebody else has changed the keyspace: keys may expire earlier than was known.
    pub(crate) fn look_soon(&mut self) {
        self.due = UnixMillis(0);
    }

    /// How long the loop may sleep.
    pub(crate) fn time_left(&self, now: UnixMillis) -> Duration {
        Duration::from_millis(self.due.since(now).clamp(1, IDLE_INTERVAL_MS))
    }

    #[cold]
    fn run(&mut self, core: &mut Core) {
        let mut is_more = false;
        if core.engine.settings.active_expire {
            let steps = self.behind_since.map_or(EXPIRE_STEPS, |since| {
                let more = core.now.since(since) / BEHIND_MS;
                EXPIRE_STEPS.saturating_mul(more.saturating_add(1).min(1_000) as usize)
            });
            let is_behind = expire(core, steps.min(EXPIRE_STEPS_MAX));
            self.behind_since = is_behind.then(|| self.behind_since.unwrap_or(core.now));
            is_more |= is_behind;
        }
        if core.engine.keyspace.has_graves() {
            is_more |= core.in_background(|core| core.engine.keyspace.free_slice(FREE_STEPS));
        }
        if core.is_over_limit() {
            is_more |= core.in_background(Core::make_room) && core.is_over_limit();
        }
        is_more |= self.return_pages(core);
        core.update_levels();
        let interval = if is_more {
            BUSY_INTERVAL_MS
        } else {
            until_expiry(core).clamp(EXPIRE_INTERVAL_MS, IDLE_INTERVAL_MS)
        };
        self.due = core.now.plus(interval);
    }

    fn return_pages(&mut self, core: &mut Core) -> bool {
        self.is_purging |= std::mem::take(&mut core.engine.effects.purge);
        let keep = if self.is_purging {
            0
        } else {
            KEEP_BYTES_MIN.max(Arena.used_bytes() / 20)
        };
        if Arena.idle_bytes() <= keep {
            self.is_purging = false;
            return false;
        }
        core.in_background(|_| Arena.return_pages(keep, RETURN_BYTES))
    }
}

/// Milliseconds until a key or field is over, not before.
fn until_expiry(core: &Core) -> u64 {
    if !core.engine.settings.active_expire {
        return u64::MAX;
    }
    let next = core.engine.keyspace.next_expiry();
    // Over is what lies before now.
    next.map_or(u64::MAX, |at| at.since(core.now).saturating_add(1))
}

fn expire(core: &mut Core, steps: usize) -> bool {
    let now = core.now;
    let keyspace = &core.engine.keyspace;
    let is_idle = |db| keyspace.expires(db) == 0 && keyspace.expiring_hashes(db) == 0;
    if (0..core.engine.settings.databases).all(is_idle) {
        return false;
    }
    core.add(WorkerCounter::ExpireCycles, 1);
    core.in_background(|core| core.engine.keyspace.expire_slice(now, steps))
}

impl Core {
    /// Levels that need not be exact at every moment.
    fn update_levels(&mut self) {
        let page = self.party.counters();
        page.set(WorkerCounter::LastSeenMillis.place(), self.now.get());
        page.set(
            WorkerCounter::ArenaResidentBytes.place(),
            Arena.resident_bytes(),
        );
        page.set(
            WorkerCounter::EvictionFailures.place(),
            self.evictions_failed,
        );
        for db in 0..self.engine.settings.databases {
            if self.engine.keyspace.expires(db) > 0 {
                let ttl = self.average_ttl(db);
                let page = self.party.counters();
                page.set(
                    worker_page::database(db, DatabaseCounter::AverageTtlMillis),
                    ttl,
                );
            }
        }
        self.update_counts();
    }
}
