//! The 24 bits in each entry that eviction goes by: when it was used, or how often.
//!
//! ```text
//!   LRU:  24 bits: seconds, modulo 2^24 (194 days)
//!   LFU:  16 bits: minutes of the last decay, modulo 2^16  |  8 bits: logarithmic counter
//! ```
//!
//! The meaning follows from the policy that is set, as in Redis: changing the policy reinterprets
//! what is there. The counter starts at 5, so that a new key is not the next victim; it rises with a
//! probability that falls with its height, and loses one per decay period without use.
//!
//! Not here: the choice of victims (`eviction`).

use proto::time::UnixMillis;

/// Largest clock value: 24 bits.
const CLOCK_MAX: u32 = (1 << 24) - 1;
/// Counter of a new key.
pub(super) const COUNTER_NEW: u8 = 5;

/// How the clocks are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// By the time of the last use.
    Recency,
    /// By how often it is used.
    Frequency {
        /// `lfu-log-factor`: the larger, the more uses for the same height.
        log_factor: u32,
        /// `lfu-decay-time` in minutes; 0 never decays.
        decay_minutes: u32,
    },
}

fn seconds(now: UnixMillis) -> u32 {
    (now.0 / 1000) as u32 & CLOCK_MAX
}

fn minutes(now: UnixMillis) -> u32 {
    (now.0 / 60_000) as u32 & 0xffff
}

/// The clock of a new entry.
#[inline]
pub(super) fn fresh(mode: ClockMode, now: UnixMillis) -> u32 {
    match mode {
        ClockMode::Recency => seconds(now),
        ClockMode::Frequency { .. } => minutes(now) << 8 | u32::from(COUNTER_NEW),
    }
}

/// The clock of an entry that was not used for so many seconds. More than the clock can tell wraps
/// round as in the reference.
pub(super) fn idle_for(now: UnixMillis, idle_seconds: i64) -> u32 {
    let clock = i64::from(seconds(now)) - idle_seconds.max(0);
    let wrapped = if clock < 0 {
        clock + i64::from(CLOCK_MAX)
    } else {
        clock
    };
    wrapped as u32 & CLOCK_MAX
}

/// The clock of an entry whose counter stands at `counter`.
pub(super) fn counting(now: UnixMillis, counter: u8) -> u32 {
    minutes(now) << 8 | u32::from(counter)
}

/// The clock after a use.
#[inline]
pub(super) fn touched(mode: ClockMode, clock: u32, now: UnixMillis, random: u64) -> u32 {
    match mode {
        ClockMode::Recency => seconds(now),
        ClockMode::Frequency { log_factor, .. } => {
            let counter = raised(frequency(mode, clock, now), log_factor, random);
            minutes(now) << 8 | u32::from(counter)
        }
    }
}

/// The counter after one more use, with probability 1 / ((counter - 5) * factor + 1).
fn raised(counter: u8, log_factor: u32, random: u64) -> u8 {
    if counter == u8::MAX {
        return counter;
    }
    let height = u64::from(counter.saturating_sub(COUNTER_NEW));
    let odds = height * u64::from(log_factor) + 1;
    if (random >> 32) * odds < 1 << 32 {
        counter + 1
    } else {
        counter
    }
}

/// The counter as it stands at `now`, decayed but not written back.
pub(super) fn frequency(mode: ClockMode, clock: u32, now: UnixMillis) -> u8 {
    let counter = clock as u8;
    let ClockMode::Frequency { decay_minutes, .. } = mode else {
        return counter;
    };
    let elapsed = minutes(now).wrapping_sub(clock >> 8) & 0xffff;
    let periods = elapsed.checked_div(decay_minutes).unwrap_or(0);
    counter.saturating_sub(periods.min(255) as u8)
}

/// Seconds since the last use. A clock that seems to lie ahead has gone round once.
pub(super) fn idle_seconds(clock: u32, now: UnixMillis) -> u32 {
    let now = seconds(now);
    if now >= clock {
        now - clock
    } else {
        now + (CLOCK_MAX - clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LFU: ClockMode = ClockMode::Frequency {
        log_factor: 10,
        decay_minutes: 1,
    };

    #[test]
    fn recency_counts_seconds() {
        let clock = fresh(ClockMode::Recency, UnixMillis(5_000_999));
        assert_eq!(idle_seconds(clock, UnixMillis(5_000_999)), 0);
        assert_eq!(idle_seconds(clock, UnixMillis(5_042_000)), 42);
        let long_ago = fresh(ClockMode::Recency, UnixMillis(((1 << 24) - 10) * 1000));
        assert_eq!(
            idle_seconds(long_ago, UnixMillis((1 << 24) * 1000 + 60_000)),
            69,
            "wraps"
        );
    }

    #[test]
    fn an_idle_time_can_be_set_and_wraps() {
        let now = UnixMillis(1_700_000_000_000);
        for seconds in [0, 7, 1_000_000] {
            assert_eq!(
                i64::from(idle_seconds(idle_for(now, seconds), now)),
                seconds
            );
        }
        let now = UnixMillis(1_796_069_019_000);
        assert_eq!(idle_seconds(idle_for(now, 20_000_000), now), 3_222_784);
        assert_eq!(frequency(LFU, counting(now, 200), now), 200);
        idle_for(now, i64::MAX);
    }

    #[test]
    fn frequency_starts_at_five_and_decays_by_the_minute() {
        let now = UnixMillis(1_700_000_000_000);
        let clock = fresh(LFU, now);
        assert_eq!(frequency(LFU, clock, now), 5);
        assert_eq!(frequency(LFU, clock, now.plus(180_000)), 2);
        assert_eq!(frequency(LFU, clock, now.plus(3_600_000)), 0);
        let never = ClockMode::Frequency {
            log_factor: 10,
            decay_minutes: 0,
        };
        assert_eq!(frequency(never, clock, now.plus(3_600_000)), 5);
    }

    #[test]
    fn frequency_rises_surely_at_first_and_rarely_later() {
        let now = UnixMillis(1_700_000_000_000);
        let clock = touched(LFU, fresh(LFU, now), now, u64::MAX);
        assert_eq!(clock as u8, 6, "the first use always counts");
        assert_eq!(touched(LFU, clock, now, u64::MAX) as u8, 6);
        assert_eq!(touched(LFU, clock, now, 0) as u8, 7);
        assert_eq!(raised(255, 0, 0), 255);
    }
}
