//! The clock of the shell: one look per batch gives both the time of day and how long it took.
//!
//! Not here: time inside the engine, which is a number it is given.

use proto::time::UnixMillis;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 at the last look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    unix_ns: u64,
    lap_ns: u64,
}

impl Clock {
    /// A clock that has been looked at.
    pub(crate) fn new() -> Self {
        let unix_ns = unix_ns();
        Self {
            unix_ns,
            lap_ns: unix_ns,
        }
    }

    /// Looks again; returns the time since the last look, zero if the clock was set back.
    #[inline]
    pub(crate) fn tick(&mut self) -> Duration {
        let before = self.unix_ns;
        self.unix_ns = unix_ns();
        self.lap_ns = self.unix_ns;
        Duration::from_nanos(self.unix_ns.saturating_sub(before))
    }

    /// The time since the last lap or look. The time of the last look stays.
    pub(crate) fn lap(&mut self) -> Duration {
        let before = self.lap_ns;
        self.lap_ns = unix_ns();
        Duration::from_nanos(self.lap_ns.saturating_sub(before))
    }

    /// The time of the last look.
    #[inline]
    pub(crate) fn now(&self) -> UnixMillis {
        UnixMillis(self.unix_ns / 1_000_000)
    }
}

#[inline]
fn unix_ns() -> u64 {
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}
