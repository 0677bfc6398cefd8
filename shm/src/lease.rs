//! Who may work in an arena: one process at a time, its owner or a visitor, whoever dies.
//!
//! ```text
//!   offset in page 0 of the arena's journal
//!   1024  claims u64 = holder in bits 0..8 (0 = free, else index + 1) | wanted, bit 8 + index
//!   1152  turns, a futex of 32 bits per worker                 rung when the lease becomes its own
//!   1408  visits u64 | arena generation u64                    visits odd = inside a visitor's change
//!
//!   acquire                                       release
//!   claims: 0 -> ours, and it is ours             claims: ours -> 0, if nobody wants it
//!   else set our bit, sleep on our turn           else claims: ours -> next, its bit cleared
//!   until claims says that it is ours                  turn of next += 1, wake it        L3
//! ```
//!
//! Why handed over and not only freed: a worker that is busy takes its own lease again in the next
//! turn of its loop, long before somebody woken gets a core. Why holder and wishes are one word: with
//! two, a waiter that gives up, or is dead, can be handed the lease between the look at the wishes and
//! the store of the holder. One word has no such moment, at the price of 56 workers instead of 64.
//! Why in the journal: it has one page with room per arena, lives as long, and is at hand wherever a
//! lease is of use.
//!
//! Protocol
//!   L1  free means unwanted: `claims` never has wishes without a holder, so taking a free lease is
//!       one compare-and-swap from 0, and giving up an unwanted one is one to 0.
//!   L2  all changes of `claims` are read-modify-writes: acquiring ones (Acquire) see everything that
//!       the holder before did to the arena (Release).
//!   L3  handed over before woken: `claims` names the new holder before its turn is counted and rung.
//!       The waiter loads its turn (Acquire) before `claims`, and sleeps only while that turn lasts.
//!   L4  mark before mutation: `visits` is odd before a visitor's first store into the arena, and even
//!       only after the last one (Release fences around the store, as in the journal's J2).
//!   L5  a lease is ours if `claims` names us and our bit, which we had set, is cleared. Named without
//!       that, it was our predecessor's, and `forget` is still to come.
//!
//! What the others find after a death
//!   holder                the lease is held until the supervisor calls `forget`, which hands it on
//!   holder inside L4      `visits` is odd: the arena is not to be trusted. The supervisor frees the
//!                         lease only after it has called `renew`.
//!   waiter                its bit: it may be handed the lease; `forget` clears the one, frees the other
//!   inside L3             the new holder sleeps: `forget` wakes whoever holds the lease
//!
//! Cost: a compare-and-swap to take and one to give up a lease that nobody else wants; `is_wanted` one
//! load. A hand-over is one system call on each side.
//! Not here: in which order leases are taken (ascending by worker, by whoever takes several), how an
//! arena is mapped (`arena`), who calls `forget` and `renew` (the supervisor).

#![cfg_attr(not(loom), expect(unsafe_code, reason = "the mapped page"))]

use std::time::{Duration, Instant};

use crate::fault::{FaultPoint, point};
use crate::sync::{AtomicU64, Futex, Ordering, fence};

/// Workers whose leases can be taken by others, and who can take them: one bit each beside the holder.
pub const LEASE_WORKERS_MAX: u32 = 56;

/// Models have fewer workers: what loom has to make anew for each interleaving is what takes its time.
const TURNS: usize = if cfg!(loom) {
    3
} else {
    LEASE_WORKERS_MAX as usize
};

const FREE: u64 = 0;
const HOLDER: u64 = 0xff;
const WANTED_SHIFT: u32 = 8;

/// A word on cache lines of its own.
#[derive(Debug)]
#[repr(C, align(128))]
struct Line<T>(T);

/// What is changed inside of L4, and what only the supervisor changes.
#[derive(Debug)]
#[repr(C)]
struct Marks {
    visits: AtomicU64,
    generation: AtomicU64,
}

/// The words of one lease. Every call names the worker that makes it.
#[derive(Debug)]
#[repr(C)]
pub struct LeaseWords {
    claims: Line<AtomicU64>,
    turns: Line<[Futex; TURNS]>,
    marks: Line<Marks>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LeaseWords>() == 512 && align_of::<LeaseWords>() == 128);

fn held_by(worker: u32) -> u64 {
    u64::from(worker) + 1
}

fn wanted_by(worker: u32) -> u64 {
    1 << (WANTED_SHIFT + worker)
}

fn holder_of(claims: u64) -> Option<u32> {
    ((claims & HOLDER) as u32).checked_sub(1)
}

/// `claims` after its holder gave up: the next who wants it holds it, counted round from `last`.
fn passed_on(claims: u64, last: u32) -> u64 {
    let wanted = claims >> WANTED_SHIFT;
    let above = wanted & (u64::MAX << 1 << last.min(LEASE_WORKERS_MAX));
    let first = if above == 0 { wanted } else { above };
    if first == 0 {
        return FREE;
    }
    let next = first.trailing_zeros();
    (claims & !HOLDER & !wanted_by(next)) | held_by(next)
}

impl LeaseWords {
    /// As [`Lease::acquire`].
    #[inline]
    pub fn acquire(&self, me: u32, patience: Duration) -> bool {
        // pairs with L2: read-modify-writes
        let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
        let claims = &self.claims.0;
        if claims
            .compare_exchange(FREE, held_by(me), order, failed)
            .is_ok()
        {
            point(FaultPoint::LeaseTaken);
            return true;
        }
        !patience.is_zero() && self.wait_for_it(me, patience)
    }

    #[cold]
    fn wait_for_it(&self, me: u32, patience: Duration) -> bool {
        let Some(turn) = self.turns.0.get(me as usize) else {
            return false;
        };
        let start = Instant::now();
        let mut has_asked = false;
        loop {
            // pairs with L3: handed over before woken
            let seen = turn.word().load(Ordering::Acquire);
            if self.take_or_ask(me, has_asked) {
                point(FaultPoint::LeaseTaken);
                return true;
            }
            has_asked = true;
            point(FaultPoint::LeaseAsked);
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return self.ask_no_more(me);
            }
            turn.wait(seen, Some(left));
        }
    }

    /// Whether it is ours. If not, our bit is set.
    fn take_or_ask(&self, me: u32, has_asked: bool) -> bool {
        // pairs with L2: read-modify-writes
        let mut claims = self.claims.0.load(Ordering::Acquire);
        loop {
            let is_asking = claims & wanted_by(me) != 0;
            let holder = holder_of(claims);
            if holder == Some(me) && has_asked && !is_asking {
                return true; // L5
            }
            let next = match holder {
                None => (claims & !wanted_by(me)) | held_by(me),
                Some(_) if is_asking => return false,
                Some(_) => claims | wanted_by(me),
            };
            match self.swap(claims, next) {
                Ok(()) => return holder.is_none(),
                Err(found) => claims = found,
            }
        }
    }

    /// Clears our bit. True if the lease was handed to us before that.
    fn ask_no_more(&self, me: u32) -> bool {
        // pairs with L2: read-modify-writes
        let mut claims = self.claims.0.load(Ordering::Acquire);
        loop {
            if claims & wanted_by(me) == 0 {
                return holder_of(claims) == Some(me); // L5
            }
            match self.swap(claims, claims & !wanted_by(me)) {
                Ok(()) => return false,
                Err(found) => claims = found,
            }
        }
    }

    /// As [`Lease::release`].
    #[inline]
    pub fn release(&self, me: u32) {
        // pairs with L2: read-modify-writes
        let (order, failed) = (Ordering::Release, Ordering::Relaxed);
        let claims = &self.claims.0;
        if claims
            .compare_exchange(held_by(me), FREE, order, failed)
            .is_err()
        {
            self.hand_over(me);
        }
    }

    #[cold]
    fn hand_over(&self, me: u32) {
        let mut claims = self.claims.0.load(Ordering::Relaxed);
        loop {
            if holder_of(claims) != Some(me) {
                debug_assert!(false, "worker {me} releases a lease that it does not hold");
                return;
            }
            let next = passed_on(claims, me);
            match self.swap(claims, next) {
                Ok(()) => {
                    point(FaultPoint::LeasePassed);
                    return self.wake(holder_of(next));
                }
                Err(found) => claims = found,
            }
        }
    }

    fn swap(&self, old: u64, new: u64) -> Result<(), u64> {
        // pairs with L2: read-modify-writes
        let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
        let swapped = self.claims.0.compare_exchange(old, new, order, failed);
        swapped.map(|_| ())
    }

    fn wake(&self, worker: Option<u32>) {
        if let Some(turn) = worker.and_then(|index| self.turns.0.get(index as usize)) {
            // pairs with L3: handed over before woken
            turn.word().fetch_add(1, Ordering::Release);
            turn.wake();
        }
    }

    /// As [`Lease::is_wanted`].
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.claims.0.load(Ordering::Relaxed) > HOLDER
    }

    /// As [`Lease::holder`].
    pub fn holder(&self) -> Option<u32> {
        holder_of(self.claims.0.load(Ordering::Acquire)) // pairs with L2: read-modify-writes
    }

    /// As [`Lease::begin_visit`].
    #[inline]
    pub fn begin_visit(&self) {
        let visits = &self.marks.0.visits;
        // pairs with L4: mark before mutation
        visits.store(visits.load(Ordering::Relaxed) | 1, Ordering::Release);
        fence(Ordering::Release); // pairs with L4: mark before mutation
        point(FaultPoint::VisitBegun);
    }

    /// As [`Lease::end_visit`].
    #[inline]
    pub fn end_visit(&self) {
        let visits = &self.marks.0.visits;
        let seen = visits.load(Ordering::Relaxed);
        // pairs with L4: mark before mutation
        visits.store(seen.wrapping_add(seen & 1), Ordering::Release);
        point(FaultPoint::VisitEnded);
    }

    /// As [`Lease::visits`].
    pub fn visits(&self) -> u64 {
        // pairs with L4: mark before mutation
        self.marks.0.visits.load(Ordering::Acquire)
    }

    /// As [`Lease::arena_generation`].
    pub fn arena_generation(&self) -> u64 {
        self.marks.0.generation.load(Ordering::Acquire) // pairs with `renew`
    }

    /// As [`Lease::forget`].
    pub fn forget(&self, dead: u32) {
        if dead >= LEASE_WORKERS_MAX {
            return;
        }
        let mut claims = self.claims.0.load(Ordering::Relaxed);
        let after = loop {
            let others = claims & !wanted_by(dead);
            let next = match holder_of(others) {
                Some(holder) if holder == dead => passed_on(others, dead),
                _ => others,
            };
            match self.swap(claims, next) {
                Ok(()) => break next,
                Err(found) => claims = found,
            }
        };
        // The dead one may have handed it over and rung nobody (L3). A successor of its own that
        // waits already has lost its bit and must set it again.
        self.wake(holder_of(after));
        self.wake(Some(dead));
    }

    /// As [`Lease::renew`].
    pub fn renew(&self) {
        let marks = &self.marks.0;
        // pairs with `arena_generation`: whoever finds `visits` even finds the new generation
        marks.generation.fetch_add(1, Ordering::Release);
        let seen = marks.visits.load(Ordering::Relaxed);
        marks
            .visits
            .store(seen.wrapping_add(seen & 1), Ordering::Release);
    }
}

#[cfg(loom)]
impl LeaseWords {
    /// A free lease inside a model.
    #[must_use]
    pub fn new() -> Self {
        Self {
            claims: Line(AtomicU64::new(FREE)),
            turns: Line(std::array::from_fn(|_| Futex::new())),
            marks: Line(Marks {
                visits: AtomicU64::new(0),
                generation: AtomicU64::new(0),
            }),
        }
    }

    /// What is left of a worker that died between asking and sleeping.
    pub fn ask_and_die(&self, dead: u32) {
        self.take_or_ask(dead, false);
    }
}

#[cfg(loom)]
impl Default for LeaseWords {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
pub use mapped::Lease;

#[cfg(not(loom))]
mod mapped {
    use std::cell::Cell;
    use std::os::fd::OwnedFd;
    use std::ptr::NonNull;
    use std::time::Duration;

    use super::{LEASE_WORKERS_MAX, LeaseWords};
    use crate::journal::{LEASE_OFFSET, WRITING_OFFSET};
    use crate::sync::{AtomicU64, Ordering};
    use crate::{Mapping, Segment, SegmentKind, ShmError, page_size};

    const _: () = assert!(LEASE_OFFSET + size_of::<LeaseWords>() <= 4096);

    /// The lease of one arena in the hands of one worker (or of the supervisor, who never takes it).
    #[derive(Debug)]
    pub struct Lease {
        me: u32,
        /// For finding mistakes: taken through this handle.
        is_held: Cell<bool>,
        words: NonNull<LeaseWords>,
        /// The journal's `writing`.
        writing: NonNull<AtomicU64>,
        _mapping: Mapping,
    }

    // SAFETY: the pointers go to atomics in the mapping of the same value (S1, S6).
    unsafe impl Send for Lease {}

    impl Lease {
        /// The lease of the arena that this journal belongs to. `me` is the index of the worker that
        /// uses the handle.
        ///
        /// # Errors
        /// As for [`Segment::open`]; [`ShmError::BadSize`] if `me` is [`LEASE_WORKERS_MAX`] or more.
        pub fn open(journal: OwnedFd, fingerprint: u64, me: u32) -> Result<Self, ShmError> {
            if me >= LEASE_WORKERS_MAX {
                return Err(ShmError::BadSize {
                    what: "index of a worker that takes leases",
                    found: u64::from(me),
                });
            }
            let segment = Segment::open(journal, SegmentKind::Journal, fingerprint)?;
            let mapping = Mapping::shared(segment.fd(), 0, page_size())?;
            Ok(Self {
                me,
                is_held: Cell::new(false),
                words: mapping.at(LEASE_OFFSET, 1)?,
                writing: mapping.at(WRITING_OFFSET, 1)?,
                _mapping: mapping,
            })
        }

        /// Takes the lease, waiting at most `patience` for it. False: not got. To take it twice is a
        /// mistake.
        #[inline]
        #[must_use]
        pub fn acquire(&self, patience: Duration) -> bool {
            debug_assert!(!self.is_held.get(), "a lease is taken once");
            let is_held = self.words().acquire(self.me, patience);
            self.is_held.set(is_held);
            is_held
        }

        /// Gives the lease up: to the next who wants it, counted round from our own index.
        #[inline]
        pub fn release(&self) {
            debug_assert!(self.is_held.get(), "a lease is released by its holder");
            self.is_held.set(false);
            self.words().release(self.me);
        }

        /// Whether somebody waits for it.
        #[inline]
        #[must_use]
        pub fn is_wanted(&self) -> bool {
            self.words().is_wanted()
        }

        /// The worker that holds it.
        #[must_use]
        pub fn holder(&self) -> Option<u32> {
            self.words().holder()
        }

        /// Holder: the arena is about to be changed by another process than its owner. Brackets do
        /// not nest.
        #[inline]
        pub fn begin_visit(&self) {
            self.words().begin_visit();
        }

        /// Holder: the arena is whole again. Without effect outside of a bracket.
        #[inline]
        pub fn end_visit(&self) {
            self.words().end_visit();
        }

        /// Counts the edges of visitors' changes: odd inside one.
        #[must_use]
        pub fn visits(&self) -> u64 {
            self.words().visits()
        }

        /// Whether a change of the arena has begun and not ended: a visitor's, or its owner's. For a
        /// holder who is in neither, the arena is not to be trusted.
        #[must_use]
        pub fn is_torn(&self) -> bool {
            // SAFETY: S1, S2, S6: as in `words`.
            let writing = unsafe { self.writing.as_ref() };
            // pairs with J2 of the journal: mark before mutation
            (self.visits() | writing.load(Ordering::Acquire)) & 1 == 1
        }

        /// Supervisor: whether a visitor's change has begun and whoever began it is not alive.
        #[must_use]
        pub fn is_torn_by_dead(&self, is_alive: impl Fn(u32) -> bool) -> bool {
            loop {
                let visits = self.visits();
                if visits & 1 == 0 {
                    return false;
                }
                let holder = self.holder();
                // The same number before and after: it is this holder's change.
                if self.visits() == visits {
                    return !holder.is_some_and(is_alive);
                }
            }
        }

        /// Which memory the arena is: raised each time the supervisor makes it anew.
        #[must_use]
        pub fn arena_generation(&self) -> u64 {
            self.words().arena_generation()
        }

        /// Supervisor: the process of worker `dead` is gone. It wants the lease no longer; if it held
        /// it, the next who wants it does.
        pub fn forget(&self, dead: u32) {
            self.words().forget(dead);
        }

        /// Supervisor: the arena is made anew. Its generation is the next one, no change is open.
        pub fn renew(&self) {
            self.words().renew();
        }

        #[inline]
        fn words(&self) -> &LeaseWords {
            // SAFETY: S1, S2, S6: the words lie inside the mapping (checked in `open`), all of them
            // are atomics.
            unsafe { self.words.as_ref() }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn claims(holder: u32, wanted: &[u32]) -> u64 {
        let wanted = wanted.iter().map(|worker| wanted_by(*worker));
        wanted.fold(held_by(holder), |claims, bit| claims | bit)
    }

    #[test]
    fn the_next_is_counted_round_from_the_last() {
        let last = LEASE_WORKERS_MAX - 1;
        let all = [0, 1, 3, last];
        assert_eq!(passed_on(claims(2, &all), 2), claims(3, &[0, 1, last]));
        assert_eq!(
            passed_on(claims(3, &[0, 1, last]), 3),
            claims(last, &[0, 1])
        );
        assert_eq!(passed_on(claims(last, &[0, 1]), last), claims(0, &[1]));
        assert_eq!(passed_on(claims(5, &[5]), 5), claims(5, &[]));
        assert_eq!(passed_on(claims(5, &[]), 5), FREE);
        // A damaged holder is no reason to fall over.
        assert_eq!(passed_on(HOLDER | wanted_by(7), 254), claims(7, &[]));
    }
}
