//! The expiry index: a hierarchical timing wheel that lives in the arena.
//!
//! Why a wheel: expiry must be prompt in the background however many keys have one; a sample of
//! random keys (what Redis does) finds the last few late or never, and a tree costs more memory and
//! a walk per change. Here setting, moving and dropping an expiry are O(1).
//!
//! ```text
//!  level 5 ... 2          level 1: 256 ms each        level 0: 1 ms each
//!  [0] ... [255]          [0][1] ... [255]            [0][1][2] ... [255]
//!                              |                            |
//!                              v cascades when due          v fires
//!                          chunk -> chunk -> chunk      62 words, 512 bytes, aligned
//! ```
//!
//! The wheel stands at `current` (ms). An entry due at time t sits at the level of the highest byte
//! in which t differs from `current`, in the bucket that this byte of t names. When `current` enters
//! a bucket's span, its entries go down a level. A bucket is a list of chunks of which only the first
//! may be partly full; an entry knows the address of its word, the chunk follows by masking it.
//! A table of all chunks makes sampling uniform.
//!
//! Invariants
//!   W1  an entry's place names a word that holds the entry, and each word is some entry's place.
//!   W2  only the first chunk of a bucket may have room; no chunk is empty.
//!   W3  the bit of a bucket is set if and only if it has a chunk.
//!   W4  bucket d of level l > 0 is empty for d < byte l of `current`.
//!   W5  chunk number n of the table knows that it is number n.
//!
//! Cost: 8.1 bytes per entry, at most 512 bytes per bucket in use, 14 KiB for the wheel itself. A
//! time t ahead of now cascades once per byte in which it differs: at most twice within 4.6 hours.
//! Not here: expiry on access (`lookup`), the time in the entry (`entry`).

mod chunk;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::ptr::NonNull;

use proto::time::UnixMillis;
use shm::arena::Arena;

use super::dictionary::Element;
use chunk::{Chunk, ChunkTable, WORDS};

const LEVELS: usize = 6;
const BUCKETS: usize = 256;
/// Times that need more than six bytes wait at the end of the wheel.
const TIME_MAX: u64 = (1 << (LEVELS * 8)) - 1;

/// What a wheel names: an object of the arena that knows its time and its place in this wheel.
pub(super) trait Timed: Copy + PartialEq {
    /// The handle of an object.
    fn of(object: Element) -> Self;
    /// The object.
    fn object(self) -> Element;
    /// When it is due.
    fn time(self) -> UnixMillis;
    /// Address of the word that names it.
    fn place(self) -> u64;
    /// Remembers the address of that word.
    fn set_place(self, place: u64);
}

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Wheel<T> {
    entries: PhantomData<T>,
    /// Everything due before this has fired or moved down.
    current: u64,
    /// Entries in the wheel.
    count: u64,
    table: ChunkTable,
    occupied: [[u64; BUCKETS / 64]; LEVELS],
    /// Address of the first chunk of each bucket, or 0.
    buckets: [[u64; BUCKETS]; LEVELS],
}

/// What `advance` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due<T> {
    /// This entry is due; it is still in the wheel.
    Entry(T),
    /// Nothing is due at this time.
    Nothing,
    /// The budget is used up.
    Later,
}

impl<T: Timed> Wheel<T> {
    /// An empty wheel in the arena that stands at `now`.
    pub(super) fn create(now: UnixMillis) -> NonNull<Self> {
        let wheel = Arena.take(size_of::<Self>()).cast::<Self>();
        // SAFETY: the object is large enough, and zeroes are an empty wheel.
        unsafe {
            wheel.write_bytes(0, 1);
            // What is due by now was due up to the millisecond before.
            (*wheel.as_ptr()).current = now.0.saturating_sub(1).min(TIME_MAX);
        }
        wheel
    }

    /// Gives the wheel and all its chunks back; the entries' places mean nothing afterwards.
    /// Returns `false` as long as more than `budget` chunks were left.
    pub(super) fn destroy(mut wheel: NonNull<Self>, budget: usize) -> bool {
        // SAFETY: the caller owns the wheel and gives it up.
        let table = unsafe { &mut wheel.as_mut().table };
        for _ in 0..budget {
            let Some(last) = table.len().checked_sub(1) else {
                break;
            };
            let chunk = table.get(last);
            table.remove(last);
            Chunk::free(chunk);
        }
        if table.len() > 0 {
            return false;
        }
        table.free();
        // SAFETY: taken by `create` with this size.
        unsafe { Arena.give(wheel.cast(), size_of::<Self>()) }
        true
    }

    pub(super) fn len(&self) -> u64 {
        self.count
    }

    fn digit(time: u64, level: usize) -> usize {
        (time >> (level * 8)) as usize & (BUCKETS - 1)
    }

    /// Level and bucket for a time (W4).
    fn bucket_for(&self, at: UnixMillis) -> (usize, usize) {
        let time = at.0.clamp(self.current, TIME_MAX);
        let differs = time ^ self.current;
        let level = if differs == 0 {
            0
        } else {
            differs.ilog2() as usize / 8
        };
        (level, Self::digit(time, level))
    }

    /// Adds an entry that has an expiry, and tells it its place.
    pub(super) fn insert(&mut self, entry: T, at: UnixMillis) {
        let (level, bucket) = self.bucket_for(at);
        let first = self.buckets[level][bucket];
        let chunk = match Chunk::at(first) {
            Some(chunk) if Chunk::len(chunk) < WORDS => chunk,
            rest => {
                let chunk = Chunk::create(level, bucket, rest);
                self.table.push(chunk);
                self.buckets[level][bucket] = Chunk::address(chunk);
                self.occupied[level][bucket / 64] |= 1 << (bucket % 64);
                chunk
            }
        };
        Chunk::push(chunk, entry);
        self.count += 1;
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, entry: T) {
        let place = entry.place();
        let (level, bucket) = Chunk::bucket_of(Chunk::of_place(place));
        let Some(first) = Chunk::at(self.buckets[level][bucket]) else {
            unreachable!("the bucket of an entry in the wheel has a chunk (W1)")
        };
        let last: T = Chunk::pop(first);
        if last != entry {
            Chunk::store(place, last);
        }
        self.count -= 1;
        if Chunk::len(first) == 0 {
            let next = Chunk::next(first);
            self.buckets[level][bucket] = next;
            if next == 0 {
                self.occupied[level][bucket / 64] &= !(1 << (bucket % 64));
            }
            self.table.remove(Chunk::number(first));
            Chunk::free(first);
        }
    }

    /// Names the entry by its new address: it has moved.
    pub(super) fn moved(old: T, new: T) {
        Chunk::store(old.place(), new);
    }

    /// Puts an entry where its new time belongs.
    pub(super) fn retime(&mut self, entry: T, at: UnixMillis) {
        let here = Chunk::bucket_of(Chunk::of_place(entry.place()));
        if here != self.bucket_for(at) {
            self.remove(entry);
            self.insert(entry, at);
        }
    }

    /// First bucket of a level, from `from` on, that has a chunk.
    fn next_occupied(&self, level: usize, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = *self.occupied[level].get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied[level].get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Moves the entries of buckets that `current` has entered down, until none is left or the
    /// budget is used up; says whether none is left.
    fn cascade(&mut self, budget: &mut usize) -> bool {
        for level in (1..LEVELS).rev() {
            let bucket = Self::digit(self.current, level);
            while let Some(chunk) = Chunk::at(self.buckets[level][bucket]) {
                if *budget == 0 {
                    return false;
                }
                *budget -= 1;
                Chunk::prefetch_entries(chunk);
                let entry: T = Chunk::last(chunk);
                let at = entry.time();
                self.remove(entry);
                self.insert(entry, at);
            }
        }
        true
    }

    /// Goes towards `now` until an entry turns up that is due: whose time is before `now`. Each
    /// entry that is moved down takes one from the budget.
    pub(super) fn advance(&mut self, now: UnixMillis, budget: &mut usize) -> Due<T> {
        // An entry lives through its last millisecond.
        let Some(end) = now.0.checked_sub(1).map(|end| end.min(TIME_MAX)) else {
            return Due::Nothing;
        };
        loop {
            if !self.cascade(budget) {
                return Due::Later;
            }
            let bucket = Self::digit(self.current, 0);
            if self.current <= end
                && let Some(chunk) = Chunk::at(self.buckets[0][bucket])
            {
                return Due::Entry(Chunk::last(chunk));
            }
            match self.next_stop() {
                Some(stop) if stop <= end => self.current = stop,
                _ => {
                    // Nothing is left before `end`; the last step must not skip a bucket's start.
                    self.current = self.current.max(end);
                    return Due::Nothing;
                }
            }
        }
    }

    /// The next time at which something fires or cascades.
    pub(super) fn next_stop(&self) -> Option<u64> {
        (0..LEVELS).find_map(|level| {
            let bucket = self.next_occupied(level, Self::digit(self.current, level) + 1)?;
            let span = level * 8;
            let above = self.current >> span >> 8 << 8 << span;
            Some(above | (bucket as u64) << span)
        })
    }

    /// An entry that is due about the earliest of all, for `volatile-ttl`.
    pub(super) fn soonest(&self) -> Option<T> {
        let level = (0..LEVELS).find(|&level| {
            self.next_occupied(level, Self::digit(self.current, level))
                .is_some()
        })?;
        let bucket = self.next_occupied(level, Self::digit(self.current, level))?;
        let chunk = Chunk::at(self.buckets[level][bucket])?;
        let entries = (0..Chunk::len(chunk)).map(|position| Chunk::get::<T>(chunk, position));
        entries.min_by_key(|entry| entry.time())
    }

    /// A random entry, each equally likely.
    pub(super) fn random(&self, mut random: impl FnMut() -> u64) -> Option<T> {
        if self.count == 0 {
            return None;
        }
        // All chunks but the first ones of the buckets are full; with few entries per bucket a
        // chunk may hold one of 62, so this may take some tens of tries.
        loop {
            let bits = random();
            let number = ((bits >> 32) as usize * self.table.len()) >> 32;
            let position = ((bits as u32 as usize) * WORDS) >> 32;
            let chunk = self.table.get(number);
            if position < Chunk::len(chunk) {
                return Some(Chunk::get(chunk, position));
            }
        }
    }

    /// Checks W1 to W5, and that every entry lies in the arena and in the bucket for its time.
    pub(super) fn check(&self) -> Result<(), String> {
        let (mut count, mut chunks) = (0, 0);
        for level in 0..LEVELS {
            for bucket in 0..BUCKETS {
                let first = self.buckets[level][bucket];
                if (first != 0) != (self.occupied[level][bucket / 64] >> (bucket % 64) & 1 == 1) {
                    return Err(format!(
                        "the bit of bucket {bucket} of level {level} is wrong (W3)"
                    ));
                }
                if level > 0 && first != 0 && bucket < Self::digit(self.current, level) {
                    return Err(format!("bucket {bucket} of level {level} has passed (W4)"));
                }
                let mut at = first;
                while let Some(chunk) = Chunk::at(at) {
                    Chunk::check::<T>(chunk, (level, bucket), at == first, &self.table)?;
                    count += Chunk::len(chunk) as u64;
                    chunks += 1;
                    at = Chunk::next(chunk);
                }
            }
        }
        if count != self.count || chunks != self.table.len() {
            return Err(format!(
                "the wheel counts {} entries and has {count}",
                self.count
            ));
        }
        Ok(())
    }
}
