//! Wakes a process that sleeps because all of its rings were empty, with as few system calls as
//! possible.
//!
//! ```text
//!   consumer                            producer
//!   sleeping = 1                        publish the tail, announce the news
//!   fence              B1               fence                B1
//!   look at the rings once more         look at `sleeping`
//!   sleep                               if 1: swap to 0, system call
//! ```
//!
//! Why it cannot be missed: both store first, fence, then load. At least one of them sees the
//! other's store: either the consumer finds the frame, or the producer finds the sleeper. The swap
//! makes one system call enough however many producers ring.
//!
//! Protocol
//!   B1  sleeping visible: as above, SeqCst fences on both sides.
//!
//! What a survivor sees when the other one dies
//!   sleeper after B1      a word that says 1: one useless system call, nothing else. A successor
//!                         clears it with `cancel_sleep` before its first look.
//!   ringer before swap    the sleeper sleeps on, although its ring has news.
//!   ringer after swap     the same, and nobody else will make the call. For both, the supervisor
//!                         sends an `alarm` to everybody after a death.
//!
//! Cost: a ring without sleeper is one fence and one load. A sleeping consumer costs one system
//! call on each side.
//! Not here: spinning before sleep (the loops decide), which rings have news (`news`).

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::fault::{FaultPoint, point};
use crate::sync::{Futex, Ordering, fence};

/// The word that says whether its owner sleeps. Lies on cache lines of its own.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Doorbell {
    sleeping: Futex,
}

/// How the owner of a doorbell sleeps, which is how it is woken.
#[derive(Debug)]
pub enum Bell {
    /// On the word itself.
    Futex,
    /// In epoll, with this eventfd registered edge-triggered and never read.
    EventFd(OwnedFd),
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

impl Doorbell {
    /// Consumer: says that it is about to sleep. Look at every ring (or the news) once more after
    /// this, then [`Doorbell::wait`] or [`Doorbell::cancel_sleep`].
    #[inline]
    pub fn prepare_sleep(&self) {
        self.sleeping.set(ASLEEP);
        fence(Ordering::SeqCst); // pairs with B1: sleeping visible
        point(FaultPoint::BellBeforeSleep);
    }

    /// Consumer: does not sleep after all, or has been woken by something else.
    #[inline]
    pub fn cancel_sleep(&self) {
        self.sleeping.set(AWAKE);
    }

    /// Consumer: sleeps until rung, at most `timeout`. False if the time ran out. May return early
    /// without reason; the caller looks at its rings in any case.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let woken = self.sleeping.wait(ASLEEP, timeout);
        self.cancel_sleep();
        woken
    }

    /// Producer, after publishing: wakes the consumer if it sleeps. True if that took a system
    /// call.
    #[inline]
    pub fn ring(&self, via: &Bell) -> bool {
        fence(Ordering::SeqCst); // pairs with B1: sleeping visible
        if self.sleeping.word().load(Ordering::Relaxed) == AWAKE {
            return false;
        }
        self.wake(via)
    }

    /// Supervisor, after the death of any process: wakes the owner whatever the word says, because
    /// the dead one may have taken the word without making the call.
    pub fn alarm(&self, via: &Bell) {
        fence(Ordering::SeqCst); // pairs with B1: sleeping visible
        self.sleeping.set(AWAKE);
        self.call(via);
    }

    #[cold]
    fn wake(&self, via: &Bell) -> bool {
        if self.sleeping.word().swap(AWAKE, Ordering::AcqRel) == AWAKE {
            return false;
        }
        point(FaultPoint::BellTaken);
        self.call(via);
        true
    }

    fn call(&self, via: &Bell) {
        match via {
            Bell::Futex => self.sleeping.wake(),
            Bell::EventFd(fd) => {
                // The counter would have to overflow for this to fail, and a full counter has
                // already woken everybody.
                let _ = nix::unistd::write(fd.as_fd(), &1u64.to_ne_bytes());
            }
        }
    }
}

#[cfg(loom)]
impl Doorbell {
    /// A doorbell inside a model.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sleeping: Futex::new(),
        }
    }
}

#[cfg(loom)]
impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Doorbell>() == 128 && align_of::<Doorbell>() == 128);
