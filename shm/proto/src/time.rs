//! Points in time as the processes hand them to each other: milliseconds since 1970, UTC.
//!
//! Why not `SystemTime`: expiry times are sent, stored in the arena and printed as milliseconds,
//! they may lie before 1970 or far in the future, and a core must never be able to read a clock.
//! A shell reads the clock once per batch and passes the time on.
//!
//! Not here: durations (`std::time::Duration`), monotonic time (the shells).

/// Milliseconds since 1970-01-01 00:00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The bare number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    #[inline]
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Whole seconds since 1970, rounded to the nearest: what `TTL` and `EXPIRETIME` count in.
    #[inline]
    #[must_use]
    pub const fn seconds_rounded(self) -> u64 {
        self.0.saturating_add(500) / 1000
    }

    /// This time moved by `millis`; stays within the representable range.
    #[inline]
    #[must_use]
    pub const fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this time, 0 if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whether something that expires at this time is gone at `now`. Redis keeps a key up to and
    /// including its last millisecond.
    #[inline]
    #[must_use]
    pub const fn has_passed(self, now: Self) -> bool {
        now.0 > self.0
    }
}
