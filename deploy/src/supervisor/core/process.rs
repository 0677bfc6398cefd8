//! What the supervisor knows about one place for a process and whoever fills it.

use super::Millis;
use super::restart::{Death, QUIET_MS, STORM_MS};
use crate::supervisor::layout::Place;
use runtime::plan::ArenaState;

/// Where the process of a place is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody runs; the next start is due at this time.
    Waiting {
        /// The time.
        until: Millis,
    },
    /// It was started and has not said that it serves.
    Starting,
    /// It serves.
    Serving {
        /// Since this time.
        since: Millis,
    },
    /// It ended because the system ends.
    Gone,
}

/// One place.
#[derive(Clone, Debug)]
pub struct Process {
    /// Role and number.
    pub place: Place,
    /// Where it is in its life.
    pub phase: Phase,
    /// Starts so far.
    pub generation: u64,
    /// Number in the system, 0 for none.
    pub pid: u32,
    /// When the running process was started.
    pub started_at: Millis,
    /// Deaths that led to a successor.
    pub restarts: u32,
    /// Deaths without a quiet time between them; decides about the delay.
    pub fast_deaths: u32,
    /// As `fast_deaths`, but only those that were the process' own doing.
    pub crashes_in_a_row: u32,
    /// When the last one died.
    pub died_at: Option<Millis>,
    /// How the last one died.
    pub last_death: Option<String>,
    /// Registry version that the running process has reported.
    pub seen_version: u64,
    /// When it was first seen stopped.
    pub stopped_since: Option<Millis>,
    pub(super) arena: ArenaState,
    pub(super) wants_fresh_arena: bool,
    /// The worker that died while it changed this one's arena: it holds the lease until the arena is
    /// made anew.
    pub(super) torn_by: Option<u32>,
    /// The next one to be ready starts without data that was there.
    pub(super) lost_data: bool,
    pub(super) ready_once: bool,
    pub(super) asked_to_end: bool,
    pub(super) killed: bool,
}

impl Process {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            phase: Phase::Waiting { until: 0 },
            generation: 0,
            pid: 0,
            started_at: 0,
            restarts: 0,
            fast_deaths: 0,
            crashes_in_a_row: 0,
            died_at: None,
            last_death: None,
            seen_version: 0,
            stopped_since: None,
            arena: ArenaState::Fresh,
            wants_fresh_arena: false,
            torn_by: None,
            lost_data: false,
            ready_once: false,
            asked_to_end: false,
            killed: false,
        }
    }

    /// Name in logs and in the status table.
    pub fn name(&self) -> String {
        format!("{} {}", self.place.role.name(), self.place.index)
    }

    /// Whether a process was started and its end has not been seen.
    pub fn is_alive(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Serving { .. })
    }

    /// The word for the status table.
    pub fn state_word(&self) -> &'static str {
        match self.phase {
            _ if self.is_alive() && self.stopped_since.is_some() => "stopped",
            _ if self.is_alive() && self.asked_to_end => "draining",
            Phase::Waiting { .. } => "down",
            Phase::Starting => "starting",
            Phase::Serving { .. } => "ready",
            Phase::Gone => "gone",
        }
    }

    pub(super) fn is_stopped_since(&self, now: Millis, timeout_ms: Millis) -> bool {
        self.is_alive()
            && self
                .stopped_since
                .is_some_and(|since| since + timeout_ms <= now)
    }

    /// Counts a death for the delay: a quiet life starts the count anew, and being killed from outside
    /// does not raise it, unless it comes so soon that only a delay helps.
    pub(super) fn count_death(&mut self, now: Millis, death: &Death) {
        let served_ms = match self.phase {
            Phase::Serving { since } => Some(now.saturating_sub(since)),
            _ => None,
        };
        match served_ms {
            Some(served) if served >= QUIET_MS => {
                self.fast_deaths = 0;
                self.crashes_in_a_row = 0;
            }
            Some(served) if death.by_kill && served >= STORM_MS => {}
            _ => {
                self.fast_deaths += 1;
                self.crashes_in_a_row += u32::from(!death.by_kill);
            }
        }
        self.died_at = Some(now);
        self.last_death = Some(death.text.clone());
    }
}
