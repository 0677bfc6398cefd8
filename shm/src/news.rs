//! Which of a consumer's links have something new: one byte per link, so that a consumer of many
//! rings does not load the tail of each.
//!
//! ```text
//!   producer                              consumer
//!   publish the tail                      flag is 1: swap it to 0      N1
//!   flag = 1 (Release)     N1             then refresh that ring
//!   ring the doorbell
//! ```
//!
//! Why bytes: each producer has a byte of its own, so announcing is a plain store. Why the consumer
//! swaps: a plain store of 0 could land after a newer 1 while the refresh still saw the older tail,
//! and that news would be lost; the swap reads the newer 1 and with it the tail.
//!
//! Protocol
//!   N1  news visible: Release store of the flag, Acquire swap.
//!
//! What a survivor sees: a producer that died before the store left a frame nobody announces. The
//! supervisor's alarm is therefore followed by a look at every ring, not only at the flags.
//!
//! Cost: a store per batch for the producer; a load per link and a swap per link with news for the
//! consumer.

use crate::fault::{FaultPoint, point};
use crate::sync::{AtomicU8, AtomicU32, Ordering};

/// Links that one party can tell apart.
pub const NEWS_POSITIONS: usize = 256;

/// The news flags of one party.
#[derive(Debug, Clone, Copy)]
pub struct News<'a> {
    flags: &'a [AtomicU8],
    links: &'a AtomicU32,
}

impl<'a> News<'a> {
    /// Flags, and the word that holds how many of them are in use.
    #[must_use]
    pub fn new(flags: &'a [AtomicU8], links: &'a AtomicU32) -> Self {
        Self { flags, links }
    }

    /// Consumer: only the first `links` positions are in use; the walks below stop there. Until it
    /// is set (or if it is 0) all positions are walked.
    pub fn set_links(&self, links: usize) {
        self.links
            .store(links.min(NEWS_POSITIONS) as u32, Ordering::Relaxed);
    }

    /// Producer, after publishing and before ringing: there is news at `position`. A position
    /// beyond the last is ignored.
    #[inline]
    pub fn announce(&self, position: usize) {
        if let Some(flag) = self.flags.get(position) {
            flag.store(1, Ordering::Release); // pairs with N1: news visible
            point(FaultPoint::NewsAnnounced);
        }
    }

    /// Consumer: whether there was news at `position`; takes the flag down. Refresh the ring after
    /// this, not before.
    #[inline]
    #[must_use]
    pub fn take(&self, position: usize) -> bool {
        let Some(flag) = self.flags.get(position) else {
            return false;
        };
        // pairs with N1: news visible
        flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::AcqRel) != 0
    }

    /// Consumer: whether there is news anywhere. Takes nothing down.
    #[inline]
    #[must_use]
    pub fn any(&self) -> bool {
        self.used()
            .iter()
            .any(|flag| flag.load(Ordering::Relaxed) != 0)
    }

    /// Consumer: calls `visit` with every position that has news, flags taken down.
    #[inline]
    pub fn take_each(&self, mut visit: impl FnMut(usize)) {
        for position in 0..self.used().len() {
            if self.take(position) {
                visit(position);
            }
        }
    }

    #[inline]
    fn used(&self) -> &'a [AtomicU8] {
        match self.links.load(Ordering::Relaxed) as usize {
            0 => self.flags,
            links => self.flags.get(..links).unwrap_or(self.flags),
        }
    }
}
