//! A party's page: what others need to know of a gateway thread or a worker without asking it.
//!
//! ```text
//!   0     header 64, shape = [kind | index << 32, counters, 0]
//!   128   doorbell                                        rung by every producer, own lines
//!   256   generation u64 | pid u32 | state u32 | links u32  written by the owner and the
//!   supervisor 384   control words, 32 x u64                          flags that must not wait in
//!   a ring 640   news, 2 x 512 x u32                              two words per link of the owner
//!   4736  counters, n x u64                                written by the owner, read by INFO
//! ```
//!
//! Invariants: counters have a single writer, so `add` is a load and a store. The number of
//! counters is checked at attach and kept in private memory.
//! Cost: 4736 bytes and 8 per counter; reading never sends a message.

#![expect(unsafe_code, reason = "references to atomics in the mapped page")]

use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::doorbell::Doorbell;
use crate::news::{NEWS_POSITIONS, News};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Mapping, Segment, SegmentKind, ShmError};

/// Control words of a party.
pub const CONTROL_WORDS: usize = 32;

/// More counters than any party has; bounds the size of the page.
const COUNTERS_MAX: u64 = 1 << 20;

/// Where a party is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum PartyState {
    /// Attached to its own segments, not serving yet.
    Starting = 0,
    /// Serving.
    Ready = 1,
    /// Finishing what it has, taking nothing new.
    Draining = 2,
    /// Not running.
    Down = 3,
}

/// The fixed part of the page, at offset 128.
#[derive(Debug)]
#[repr(C)]
struct Page {
    doorbell: Doorbell,
    life: Life,
    control: [AtomicU64; CONTROL_WORDS],
    news: [AtomicU32; NEWS_POSITIONS],
    news_seen: [AtomicU32; NEWS_POSITIONS],
}

#[derive(Debug)]
#[repr(C, align(128))]
struct Life {
    generation: AtomicU64,
    pid: AtomicU32,
    state: AtomicU32,
    links: AtomicU32,
}

const PAGE_OFFSET: usize = 128;
const COUNTERS_OFFSET: usize = PAGE_OFFSET + size_of::<Page>();
const _: () = assert!(COUNTERS_OFFSET == 4736 && align_of::<Page>() == 128);

/// One party's page, mapped. Shared by all threads of a process by reference.
#[derive(Debug)]
pub struct Party {
    segment: Segment,
    page: NonNull<Page>,
    counters: NonNull<AtomicU64>,
    counter_count: usize,
    _mapping: Mapping,
}

// SAFETY: the page consists of atomics (S6) that live as long as the mapping in the same value
// (S1).
unsafe impl Send for Party {}
// SAFETY: as above.
unsafe impl Sync for Party {}

impl Party {
    /// Makes the page of party `index` of a `kind` (numbers that only the caller understands), with
    /// `counters` counters, all zero.
    ///
    /// # Errors
    /// [`ShmError::BadSize`], or as for [`Segment::create`].
    pub fn create(
        name: &str,
        kind: u32,
        index: u32,
        counters: usize,
        fingerprint: u64,
    ) -> Result<Self, ShmError> {
        let count = checked_counters(counters as u64)?;
        let len = COUNTERS_OFFSET + count * size_of::<AtomicU64>();
        let shape = [u64::from(kind) | u64::from(index) << 32, counters as u64, 0];
        let segment = Segment::create_shaped(name, SegmentKind::Party, len, fingerprint, shape)?;
        segment.reserve(0, len)?;
        Self::map(segment, count)
    }

    /// Opens the page of a party from its descriptor.
    ///
    /// # Errors
    /// As for [`Segment::open`]; [`ShmError::BadSize`] or [`ShmError::BadLength`] if its counters
    /// do not fit into it.
    pub fn open(fd: OwnedFd, fingerprint: u64) -> Result<Self, ShmError> {
        let segment = Segment::open(fd, SegmentKind::Party, fingerprint)?;
        let count = checked_counters(segment.shape()[1])?;
        Self::map(segment, count)
    }

    fn map(segment: Segment, counter_count: usize) -> Result<Self, ShmError> {
        let mapping = Mapping::shared(segment.fd(), 0, segment.len())?;
        let page = mapping.at::<Page>(PAGE_OFFSET, 1)?;
        let counters = mapping.at::<AtomicU64>(COUNTERS_OFFSET, counter_count)?;
        Ok(Self {
            segment,
            page,
            counters,
            counter_count,
            _mapping: mapping,
        })
    }

    /// The descriptor, to hand to another process.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// The kind given at creation.
    #[must_use]
    pub fn kind(&self) -> u32 {
        (self.segment.shape()[0] & u64::from(u32::MAX)) as u32
    }

    /// The index given at creation.
    #[must_use]
    pub fn index(&self) -> u32 {
        (self.segment.shape()[0] >> 32) as u32
    }

    /// How often the party has been started; the supervisor raises it with every successor.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.page().life.generation.load(Ordering::Acquire) // pairs with L1: life visible
    }

    /// Sets the generation.
    pub fn set_generation(&self, generation: u64) {
        self.page()
            .life
            .generation
            .store(generation, Ordering::Release); // pairs with L1: life visible
    }

    /// Process id of the party, 0 if none runs.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.page().life.pid.load(Ordering::Acquire) // pairs with L1: life visible
    }

    /// Sets the process id.
    pub fn set_pid(&self, pid: u32) {
        self.page().life.pid.store(pid, Ordering::Release); // pairs with L1: life visible
    }

    /// Where the party is in its life, as a [`PartyState`] number; anything else counts as down.
    #[inline]
    #[must_use]
    pub fn state(&self) -> u32 {
        match self.page().life.state.load(Ordering::Acquire) {
            // pairs with L1: life visible
            state if state < PartyState::Down as u32 => state,
            _ => PartyState::Down as u32,
        }
    }

    /// Sets the state, a [`PartyState`] as a number.
    pub fn set_state(&self, state: u32) {
        self.page().life.state.store(state, Ordering::Release); // pairs with L1: life visible
    }

    /// The word that the party sleeps on.
    #[inline]
    #[must_use]
    pub fn doorbell(&self) -> &Doorbell {
        &self.page().doorbell
    }

    /// The news of the party's links.
    #[inline]
    #[must_use]
    pub fn news(&self) -> News<'_> {
        let page = self.page();
        News::new(&page.news, &page.news_seen, &page.life.links)
    }

    /// The party's counters. Only the party itself writes them.
    #[inline]
    #[must_use]
    pub fn counters(&self) -> Counters<'_> {
        // SAFETY: S1, S2: `counter_count` words lie inside the mapping (checked in `map`). S6.
        let words =
            unsafe { std::slice::from_raw_parts(self.counters.as_ptr(), self.counter_count) };
        Counters { words }
    }

    /// Control word `word`; 0 for one that does not exist.
    #[inline]
    #[must_use]
    pub fn control(&self, word: usize) -> u64 {
        // pairs with L2: control word visible
        self.page()
            .control
            .get(word)
            .map_or(0, |control| control.load(Ordering::Acquire))
    }

    /// Sets control word `word`. One that does not exist is ignored.
    pub fn set_control(&self, word: usize, value: u64) {
        if let Some(control) = self.page().control.get(word) {
            control.store(value, Ordering::Release); // pairs with L2: control word visible
        }
    }

    #[inline]
    fn page(&self) -> &Page {
        // SAFETY: S1, S2, S6: a whole page of atomics lies inside the mapping (checked in `map`).
        unsafe { self.page.as_ref() }
    }
}

/// A party's counters: 64 bits each, one writer, any number of readers, no order between them.
#[derive(Debug, Clone, Copy)]
pub struct Counters<'a> {
    words: &'a [AtomicU64],
}

impl Counters<'_> {
    /// Number of counters.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Value of counter `index`.
    ///
    /// # Panics
    /// Here and below: if there is no such counter.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// Sets counter `index`.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        self.words[index].store(value, Ordering::Relaxed);
    }

    /// Adds to counter `index`, wrapping. For the single writer only: a load and a store.
    #[inline]
    pub fn add(&self, index: usize, more: u64) {
        let word = &self.words[index];
        word.store(
            word.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// Subtracts from counter `index`, wrapping. For the single writer only.
    #[inline]
    pub fn sub(&self, index: usize, less: u64) {
        self.add(index, less.wrapping_neg());
    }

    /// Raises counter `index` to `value` if it is lower. For the single writer only.
    #[inline]
    pub fn max(&self, index: usize, value: u64) {
        let word = &self.words[index];
        if word.load(Ordering::Relaxed) < value {
            word.store(value, Ordering::Relaxed);
        }
    }
}

fn checked_counters(found: u64) -> Result<usize, ShmError> {
    let bad_size = ShmError::BadSize {
        what: "number of counters",
        found,
    };
    if found > COUNTERS_MAX {
        return Err(bad_size);
    }
    usize::try_from(found).map_err(|_| bad_size)
}
