//! How a death is counted and how long its successor waits.
//!
//! Why delays: a part that dies at its start, again and again, would otherwise burn a core and fill
//! the log. Why none at first: almost every death is a single one, and "back in milliseconds" is
//! promised.

use super::Millis;

/// Serving this long counts as a life of its own: the next death starts the count anew.
pub(super) const QUIET_MS: Millis = 1_000;

/// Being killed from outside counts as a fast death if it happens within this time.
pub(super) const STORM_MS: Millis = 100;

/// Delays before the next start, by the number of deaths in a row. The last one stays.
const DELAYS_MS: [Millis; 8] = [0, 0, 20, 100, 500, 2_000, 5_000, 10_000];

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Death {
    /// For the log: `signal 9 (SIGKILL)`, `exit code 1`, ...
    pub text: String,
    /// Exit code 0.
    pub clean: bool,
    /// SIGKILL: somebody outside (or the supervisor) ended it; the process did nothing wrong.
    pub by_kill: bool,
    /// Its journal says that it was inside a write, or a dead visitor was.
    pub arena_untrusted: bool,
    /// Workers whose arenas it was changing as a visitor.
    pub torn: Vec<u32>,
}

/// Milliseconds until the next start after this many deaths in a row.
pub fn delay_ms(deaths_in_a_row: u32) -> Millis {
    let position = (deaths_in_a_row as usize).min(DELAYS_MS.len() - 1);
    DELAYS_MS[position]
}
