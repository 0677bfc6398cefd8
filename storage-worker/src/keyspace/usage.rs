//! How much a key was used, as it is carried along with a value that comes from elsewhere.

use super::clock::{self, ClockMode};
use super::entry::Entry;
use super::{Key, Keyspace};

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Usage {
    /// Nothing is known: as a key that was just made.
    #[default]
    Unknown,
    /// It was not used for so many seconds. Says nothing while clocks count frequency.
    Idle(i64),
    /// Its use counter. Says nothing while clocks count recency.
    Frequency(u8),
}

impl Keyspace {
    /// Sets the clock of a live key, at the time of the last lookup.
    pub fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        let Some(place) = self.live_place_of(key) else {
            return;
        };
        let (mode, now) = (self.clock_mode, self.now);
        let clock = match (mode, usage) {
            (ClockMode::Recency, Usage::Idle(seconds)) => clock::idle_for(now, seconds),
            (ClockMode::Frequency { .. }, Usage::Frequency(counter)) => {
                clock::counting(now, counter)
            }
            _ => clock::fresh(mode, now),
        };
        Entry::new(place.element()).set_clock(clock);
    }
}
