//! Eviction: which key goes when memory is short.
//!
//! As in Redis, a victim is chosen from samples: each round draws some random keys and keeps the best
//! candidates so far in a small pool, so that the choice gets better with every round. The pool is in
//! the process' own memory and knows keys by hash; one that is gone or has been used since is passed
//! over or judged anew.

use proto::time::UnixMillis;

use super::clock::{self, ClockMode};
use super::dictionary::Place;
use super::entry::Entry;
use super::{Key, Keyspace, hash};

/// Candidates that are remembered. 16 as in Redis: they fit into six cache lines, and more make the
/// approximation hardly better.
const POOL: usize = 16;
/// Rounds of samples before giving up on finding a victim at all.
const ROUNDS: usize = 8;

/// `maxmemory-policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Nothing is evicted; writes are refused.
    NoEviction,
    /// The key that was not used for the longest time.
    AllKeysLru,
    /// The key that is used least.
    AllKeysLfu,
    /// Any key.
    AllKeysRandom,
    /// As `AllKeysLru`, among keys with an expiry.
    VolatileLru,
    /// As `AllKeysLfu`, among keys with an expiry.
    VolatileLfu,
    /// Any key with an expiry.
    VolatileRandom,
    /// The key whose time comes first.
    VolatileTtl,
}

impl EvictionPolicy {
    fn is_volatile(self) -> bool {
        use EvictionPolicy::{VolatileLfu, VolatileLru, VolatileRandom, VolatileTtl};
        matches!(
            self,
            VolatileLru | VolatileLfu | VolatileRandom | VolatileTtl
        )
    }

    fn is_random(self) -> bool {
        matches!(
            self,
            EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom
        )
    }

    /// The clock that the policy goes by; `log_factor` and `decay_minutes` are the lfu settings.
    #[must_use]
    pub fn clock_mode(self, log_factor: u32, decay_minutes: u32) -> ClockMode {
        match self {
            EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => ClockMode::Frequency {
                log_factor,
                decay_minutes,
            },
            _ => ClockMode::Recency,
        }
    }
}

/// A key that was evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evicted {
    /// Its database.
    pub db: u16,
    /// Its slot.
    pub slot: u16,
    /// Its name.
    pub key: Vec<u8>,
}

/// A key that may go; the higher the score, the sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    score: u64,
    hash: u64,
    db: u16,
    slot: u16,
}

/// The best candidates so far, lowest score first.
#[derive(Debug, Default)]
pub(super) struct Pool {
    candidates: Vec<Candidate>,
    policy: Option<EvictionPolicy>,
}

impl Pool {
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
    }

    /// Scores of different policies do not compare.
    fn use_for(&mut self, policy: EvictionPolicy) {
        if self.policy != Some(policy) {
            self.policy = Some(policy);
            self.clear();
        }
    }

    fn offer(&mut self, candidate: Candidate) {
        let is_same = |other: &Candidate| {
            (other.hash, other.db, other.slot) == (candidate.hash, candidate.db, candidate.slot)
        };
        self.candidates.retain(|other| !is_same(other));
        let at = self
            .candidates
            .partition_point(|other| other.score < candidate.score);
        if self.candidates.len() < POOL {
            self.candidates.insert(at, candidate);
        } else if at > 0 {
            // The lowest one makes room.
            self.candidates[..at].rotate_left(1);
            self.candidates[at - 1] = candidate;
        }
    }
}

impl Keyspace {
    /// Evicts one key by `policy`, from `samples` samples per round (`maxmemory-samples`). The caller
    /// brackets it as a write. `None` if there is nothing to evict.
    pub fn evict_one(
        &mut self,
        policy: EvictionPolicy,
        samples: usize,
        now: UnixMillis,
        mut random: impl FnMut() -> u64,
    ) -> Option<Evicted> {
        self.now = now;
        if policy == EvictionPolicy::NoEviction {
            return None;
        }
        let (db, slot, hash, place) = if policy.is_random() {
            let (db, entry) = self.sample(policy, &mut random)?;
            self.locate(db, entry)?
        } else {
            self.pool.use_for(policy);
            self.best(policy, samples, &mut random)?
        };
        self.counters.evicted += 1;
        let entry = self.remove_at(db, slot, hash, place);
        let evicted = Evicted {
            db,
            slot,
            key: entry.key().to_vec(),
        };
        entry.free();
        Some(evicted)
    }

    /// The best candidate after another round of samples.
    fn best(
        &mut self,
        policy: EvictionPolicy,
        samples: usize,
        random: &mut impl FnMut() -> u64,
    ) -> Option<(u16, u16, u64, Place)> {
        for _ in 0..ROUNDS {
            self.sample_soonest(policy);
            for _ in 0..samples.max(1) {
                let (db, entry) = self.sample(policy, random)?;
                self.offer(policy, db, entry);
            }
            while let Some(candidate) = self.pool.candidates.pop() {
                let Some(place) = self.place_by_hash(candidate) else {
                    continue;
                };
                let entry = Entry::new(place.element());
                if policy.is_volatile() && !entry.has_expiry() {
                    continue;
                }
                return Some((candidate.db, candidate.slot, candidate.hash, place));
            }
        }
        None
    }

    fn offer(&mut self, policy: EvictionPolicy, db: u16, entry: Entry) {
        let name = entry.key();
        let score = self.score(policy, entry);
        let slot = proto::slot::slot_of(name);
        self.pool.offer(Candidate {
            score,
            hash: hash(self.seed, name),
            db,
            slot,
        });
    }

    /// For `volatile-ttl` the wheel knows better than samples do.
    fn sample_soonest(&mut self, policy: EvictionPolicy) {
        if policy != EvictionPolicy::VolatileTtl {
            return;
        }
        for db in 0..self.database_count() as u16 {
            if let Some(entry) = self.wheel(db).and_then(|wheel| wheel.soonest()) {
                self.offer(policy, db, entry);
            }
        }
    }

    fn score(&self, policy: EvictionPolicy, entry: Entry) -> u64 {
        match policy {
            EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => {
                let frequency = clock::frequency(self.clock_mode, entry.clock(), self.now);
                u64::from(u8::MAX - frequency)
            }
            EvictionPolicy::VolatileTtl => u64::MAX - entry.expiry().map_or(u64::MAX, |at| at.0),
            _ => u64::from(clock::idle_seconds(entry.clock(), self.now)),
        }
    }

    /// A random key of all databases that the policy may evict.
    fn sample(
        &mut self,
        policy: EvictionPolicy,
        random: &mut impl FnMut() -> u64,
    ) -> Option<(u16, Entry)> {
        let count = self.database_count() as u16;
        let volatile = policy.is_volatile();
        let keys = |keyspace: &Keyspace, db| {
            if volatile {
                keyspace.expires(db)
            } else {
                keyspace.len(db)
            }
        };
        let all: u64 = (0..count).map(|db| keys(self, db)).sum();
        let mut left = u64::try_from((u128::from(random()) * u128::from(all)) >> 64).ok()?;
        for db in 0..count {
            let here = keys(self, db);
            if left < here {
                let entry = if volatile {
                    self.wheel(db)?.random(random)
                } else {
                    self.random_entry(db, random)
                };
                return entry.map(|entry| (db, entry));
            }
            left -= here;
        }
        None
    }

    fn locate(&mut self, db: u16, entry: Entry) -> Option<(u16, u16, u64, Place)> {
        let bytes = entry.key();
        let slot = proto::slot::slot_of(bytes);
        let key = Key {
            db,
            slot,
            bytes,
            hash: hash(self.seed, bytes),
        };
        let place = self.place_of(&key)?;
        Some((db, slot, key.hash, place))
    }

    /// The place of a candidate, if a key with its hash is still there.
    fn place_by_hash(&mut self, candidate: Candidate) -> Option<Place> {
        let seed = self.seed;
        let mut dictionary = self.dictionary_at(candidate.db, candidate.slot)?;
        // SAFETY: it is live, and this handle is its only user.
        let dictionary = unsafe { dictionary.as_mut() };
        dictionary.find(candidate.hash, |element| {
            hash(seed, Entry::new(element).key()) == candidate.hash
        })
    }
}
