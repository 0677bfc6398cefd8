//! Eviction: which key goes when memory is short.
//!
//! As in Redis, a victim is chosen from samples: each round draws some random keys and keeps the best
//! candidates so far in a small pool, so that the choice gets better with every round. The pool is in
//! the process' own memory and knows keys by hash; one that is gone or has been used since is passed
//! over.

use proto::time::UnixMillis;

use super::clock::{self, ClockMode};
use super::dictionary::{Place, prefetch};
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
    /// Room for the keys of a round; empty between two.
    sampled: Vec<(u16, Entry)>,
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

    /// Whether a candidate with this score would be kept.
    fn wants(&self, score: u64) -> bool {
        let lowest = self.candidates.first();
        self.candidates.len() < POOL || lowest.is_some_and(|lowest| lowest.score < score)
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
            let mut sampled = Vec::with_capacity(1);
            self.sample_some(policy, 1, &mut random, &mut sampled);
            let (db, entry) = sampled.pop()?;
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
        self.free_entry(entry, self.lazy_free.evicted);
        Some(evicted)
    }

    /// The best candidate after another round of samples.
    fn best(
        &mut self,
        policy: EvictionPolicy,
        samples: usize,
        random: &mut impl FnMut() -> u64,
    ) -> Option<(u16, u16, u64, Place)> {
        let mut sampled = std::mem::take(&mut self.pool.sampled);
        let mut victim = None;
        for _ in 0..ROUNDS {
            self.sample_soonest(policy);
            sampled.clear();
            self.sample_some(policy, samples.max(1), random, &mut sampled);
            for &(db, entry) in &sampled {
                self.offer(policy, db, entry);
            }
            victim = self.best_of_pool(policy);
            if victim.is_some() || sampled.is_empty() {
                break;
            }
        }
        sampled.clear();
        self.pool.sampled = sampled;
        victim
    }

    /// Takes the best candidate out of the pool that is still what it was.
    fn best_of_pool(&mut self, policy: EvictionPolicy) -> Option<(u16, u16, u64, Place)> {
        while let Some(candidate) = self.pool.candidates.pop() {
            let Some(place) = self.place_by_hash(candidate) else {
                continue;
            };
            let entry = Entry::new(place.element());
            let is_spared = policy.is_volatile() && !entry.has_expiry();
            // A lower score than before: it was used, or its expiry moved.
            if !is_spared && self.score(policy, entry) >= candidate.score {
                return Some((candidate.db, candidate.slot, candidate.hash, place));
            }
        }
        None
    }

    fn offer(&mut self, policy: EvictionPolicy, db: u16, entry: Entry) {
        let score = self.score(policy, entry);
        if !self.pool.wants(score) {
            return;
        }
        let name = entry.key();
        let slot = proto::slot::slot_of(name);
        self.pool.offer(Candidate {
            score,
            hash: hash(self.seed, name),
            db,
            slot,
        });
    }

    /// Draws about `samples` keys that the policy may evict, and asks for their memory. Finding a
    /// random slot costs more than finding a key in it, so a slot with many keys gives several:
    /// which keys share a slot says nothing about their use.
    fn sample_some(
        &mut self,
        policy: EvictionPolicy,
        samples: usize,
        random: &mut impl FnMut() -> u64,
        sampled: &mut Vec<(u16, Entry)>,
    ) {
        while sampled.len() < samples {
            let Some(db) = self.sample_database(policy, random) else {
                return;
            };
            let before = sampled.len();
            if policy.is_volatile() {
                let entry = self.wheel(db).and_then(|wheel| wheel.random(&mut *random));
                sampled.extend(entry.map(|entry| (db, entry)));
            } else if let Some(dictionary) = self.random_dictionary(db, random) {
                let here = (dictionary.len() / 8 + 1).min(samples - before);
                let entries = (0..here).filter_map(|_| dictionary.random(&mut *random));
                sampled.extend(entries.map(|element| (db, Entry::new(element))));
            }
            for (_, entry) in &sampled[before..] {
                prefetch(entry.object().as_ptr());
            }
        }
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

    /// A database with the chance of its number of keys that the policy may evict.
    fn sample_database(
        &self,
        policy: EvictionPolicy,
        random: &mut impl FnMut() -> u64,
    ) -> Option<u16> {
        let keys = |db: usize| {
            let database = self.database(db);
            if policy.is_volatile() {
                database.expires
            } else {
                database.keys
            }
        };
        let databases = 0..self.database_count();
        let all: u64 = databases.clone().map(keys).sum();
        let mut left = u64::try_from((u128::from(random()) * u128::from(all)) >> 64).ok()?;
        for db in databases {
            if left < keys(db) {
                return u16::try_from(db).ok();
            }
            left -= keys(db);
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
