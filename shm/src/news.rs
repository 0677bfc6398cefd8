//! Which of a consumer's links have something new: one number per link, so that a consumer of many
//! rings does not load the tail of each.
//!
//! ```text
//!   producer                              consumer
//!   publish the tail                      number (Acquire) differs from `seen`?    N1
//!   number += 1 (Release)  N1             then seen = number, and refresh that ring
//!   ring the doorbell
//! ```
//!
//! Why numbers and not flags: a flag has two writers, and taking it down while the producer raises it
//! again needs a read-modify-write on every side to lose nothing. A number has one writer. Why 32
//! bits: a ring holds fewer frames than that, so the number cannot come round between two looks.
//!
//! Protocol
//!   N1  news visible: Release store of the number, Acquire load. Who sees a number sees the tail
//!       that was published before it.
//!
//! What a survivor sees: a producer that died before the store left a frame nobody announces. The
//! supervisor's alarm is therefore followed by a look at every ring, not only at the news.
//!
//! Cost: a load and a store per batch for the producer, two loads per link for the consumer; 8 bytes
//! per link.

use crate::fault::{FaultPoint, point};
use crate::sync::{AtomicU32, Ordering};

/// Links that one party can tell apart.
pub const NEWS_POSITIONS: usize = 512;

/// The news of one party.
#[derive(Debug, Clone, Copy)]
pub struct News<'a> {
    /// Written by the producers, one word each.
    numbers: &'a [AtomicU32],
    /// Written by the consumer: the numbers it has looked at. Shared, so that a successor goes on.
    seen: &'a [AtomicU32],
    /// Positions in use, written by the consumer.
    links: &'a AtomicU32,
}

impl<'a> News<'a> {
    /// The words of the producers, as many of the consumer, and the one that holds how many of them
    /// are in use.
    #[must_use]
    pub fn new(numbers: &'a [AtomicU32], seen: &'a [AtomicU32], links: &'a AtomicU32) -> Self {
        Self {
            numbers,
            seen,
            links,
        }
    }

    /// Consumer: only the first `links` positions are in use; the walks below stop there. Until it
    /// is set (or if it is 0) all positions are walked.
    pub fn set_links(&self, links: usize) {
        self.links
            .store(links.min(NEWS_POSITIONS) as u32, Ordering::Relaxed);
    }

    /// Producer, after publishing and before ringing: there is news at `position`. One producer per
    /// position. A position beyond the last is ignored.
    #[inline]
    pub fn announce(&self, position: usize) {
        if let Some(number) = self.numbers.get(position) {
            let next = number.load(Ordering::Relaxed).wrapping_add(1);
            number.store(next, Ordering::Release); // pairs with N1: news visible
            point(FaultPoint::NewsAnnounced);
        }
    }

    /// Consumer: whether there was news at `position` since the last look. Refresh the ring after
    /// this, not before.
    #[inline]
    #[must_use]
    pub fn take(&self, position: usize) -> bool {
        let (Some(number), Some(seen)) = (self.numbers.get(position), self.seen.get(position))
        else {
            return false;
        };
        take_one(number, seen)
    }

    /// Consumer: whether there is news anywhere. Takes nothing.
    #[inline]
    #[must_use]
    pub fn any(&self) -> bool {
        self.used()
            .any(|(number, seen)| number.load(Ordering::Relaxed) != seen.load(Ordering::Relaxed))
    }

    /// Consumer: takes all news, calling `visit` with every position that has some.
    #[inline]
    pub fn take_each(&self, mut visit: impl FnMut(usize)) {
        for (position, (number, seen)) in self.used().enumerate() {
            if take_one(number, seen) {
                visit(position);
            }
        }
    }

    #[inline]
    fn used(&self) -> impl Iterator<Item = (&'a AtomicU32, &'a AtomicU32)> + use<'a> {
        let links = match self.links.load(Ordering::Relaxed) as usize {
            0 => NEWS_POSITIONS,
            links => links,
        };
        self.numbers.iter().zip(self.seen).take(links)
    }
}

#[inline]
fn take_one(number: &AtomicU32, seen: &AtomicU32) -> bool {
    let now = number.load(Ordering::Acquire); // pairs with N1: news visible
    if now == seen.load(Ordering::Relaxed) {
        return false;
    }
    seen.store(now, Ordering::Relaxed);
    true
}
