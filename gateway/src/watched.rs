//! Descriptors that only wake the driver: the doorbell's eventfd and a timer.
//!
//! Both are registered edge-triggered and never read. Each has a waker of its own, as sockets have, so a
//! turn that neither of them caused does not look at them. The timer is a descriptor instead of tokio's
//! because that one is looked at in every turn, and set to a new time in every sleep.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor and its waker.
#[derive(Debug)]
pub(crate) struct Watched<T: AsRawFd> {
    fd: AsyncFd<T>,
    waker: Waker,
}

impl<T: AsRawFd> Watched<T> {
    /// Needs the runtime of the thread that will use it. Not armed yet.
    pub(crate) fn new(fd: T, waker: Waker) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "unsound for types that give up their descriptor early; these do not"
        )]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self { fd, waker })
    }

    /// Sets the waker for the next event. Call it at the start and whenever the waker has fired.
    pub(crate) fn arm(&self) {
        let mut context = Context::from_waker(&self.waker);
        while let Poll::Ready(Ok(mut guard)) = self.fd.poll_read_ready(&mut context) {
            guard.clear_ready();
        }
    }
}

/// The doorbell's descriptor.
pub(crate) type Bell = Watched<OwnedFd>;

/// A timer of the system.
#[derive(Debug)]
pub(crate) struct Clockwork(TimerFd);

impl AsRawFd for Clockwork {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// A timer that wakes the driver at a time, in milliseconds of the thread's clock.
#[derive(Debug)]
pub(crate) struct Timer {
    watched: Watched<Clockwork>,
    /// When it fires; `u64::MAX` if it is not set.
    at: u64,
}

impl Timer {
    /// Needs the runtime of the thread that will use it.
    pub(crate) fn new(waker: Waker) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let watched = Watched::new(Clockwork(timer), waker)?;
        watched.arm();
        Ok(Self {
            watched,
            at: u64::MAX,
        })
    }

    /// It has fired.
    pub(crate) fn fired(&mut self) {
        self.at = u64::MAX;
        self.watched.arm();
    }

    /// Makes it fire at `at` or earlier; `now` is before that. Firing early only costs a turn, so a
    /// time that is put off costs nothing now.
    #[inline]
    pub(crate) fn set(&mut self, at: u64, now: u64) {
        if at < self.at {
            self.reset(at, now);
        }
    }

    #[cold]
    fn reset(&mut self, at: u64, now: u64) {
        let left = Duration::from_millis(at.saturating_sub(now).max(1));
        let expiration = Expiration::OneShot(TimeSpec::from_duration(left));
        let timer = &self.watched.fd.get_ref().0;
        match timer.set(expiration, TimerSetTimeFlags::empty()) {
            Ok(()) => self.at = at,
            Err(errno) => tracing::error!(%errno, "a timer cannot be set"),
        }
    }
}
