//! Fault points: named steps of the shared-memory protocols at which a test kills the process.
//!
//! Why: "whoever dies, at whatever instruction, the others go on" is only worth something if it is
//! tried. Each protocol header names its steps; a test arms one of them in a child (by [`arm`] or
//! by the environment variable `SIROCCO_FAULT_POINT=<name>[:<nth time>]` and
//! [`arm_from_environment`]) and looks at what the survivor and the successor see.
//!
//! Cost: in debug builds, or with the feature `fault-points`, one load of a process-wide word per
//! point. In other builds the points are compiled away.

use crate::ShmError;

/// A step at which a process can be killed. The comment says what has happened by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultPoint {
    /// Producer: bytes are written and counted in private, the tail does not show them yet.
    RingBeforePublish = 1,
    /// Producer: the tail shows the bytes, nobody was rung.
    RingAfterPublish,
    /// Producer: it has asked to be rung for space.
    RingWantsSpace,
    /// Consumer: the bytes were used, the head does not show it yet.
    RingBeforeRelease,
    /// Consumer: the head shows it, the question for space is not looked at yet.
    RingAfterRelease,
    /// Consumer: has taken the question for space and has not rung yet.
    RingTookWant,
    /// Sleeper: the word says that it sleeps, it does not yet.
    BellBeforeSleep,
    /// Ringer: has taken the sleeping word and has not made the system call.
    BellTaken,
    /// Ringer: the news is announced, nobody was rung.
    NewsAnnounced,
    /// Journal: the idle commit slot is full, the old line still counts.
    CommitFilled,
    /// Journal: the new line counts.
    CommitSwitched,
    /// Journal: a mutation has begun (`writing` is odd).
    WriteBegun,
    /// Journal: a mutation has ended (`writing` is even), its command is not committed.
    WriteEnded,
    /// Journal: log bytes are copied, the length does not show them yet.
    LogCopied,
    /// Journal: the ticket is set, the line that means it does not count yet.
    TicketSet,
    /// Producer: the note to a successor is set.
    NoteSet,
    /// Registry: the idle buffer holds the new bytes, the version is the old one.
    RegistryFilled,
    /// Lease: it is held, nothing was done with it yet.
    LeaseTaken,
    /// Lease: it is wanted, its waiter does not sleep yet.
    LeaseAsked,
    /// Lease: it is handed to another, who was not woken.
    LeasePassed,
    /// Lease: a visitor's change has begun (`visits` is odd).
    VisitBegun,
    /// Lease: a visitor's change has ended (`visits` is even).
    VisitEnded,
}

impl FaultPoint {
    /// Every point, for tests that walk through all of them.
    pub const ALL: [Self; 22] = [
        Self::RingBeforePublish,
        Self::RingAfterPublish,
        Self::RingWantsSpace,
        Self::RingBeforeRelease,
        Self::RingAfterRelease,
        Self::RingTookWant,
        Self::BellBeforeSleep,
        Self::BellTaken,
        Self::NewsAnnounced,
        Self::CommitFilled,
        Self::CommitSwitched,
        Self::WriteBegun,
        Self::WriteEnded,
        Self::LogCopied,
        Self::TicketSet,
        Self::NoteSet,
        Self::RegistryFilled,
        Self::LeaseTaken,
        Self::LeaseAsked,
        Self::LeasePassed,
        Self::VisitBegun,
        Self::VisitEnded,
    ];

    /// The name that arms it through the environment.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RingBeforePublish => "ring-before-publish",
            Self::RingAfterPublish => "ring-after-publish",
            Self::RingWantsSpace => "ring-wants-space",
            Self::RingBeforeRelease => "ring-before-release",
            Self::RingAfterRelease => "ring-after-release",
            Self::RingTookWant => "ring-took-want",
            Self::BellBeforeSleep => "bell-before-sleep",
            Self::BellTaken => "bell-taken",
            Self::NewsAnnounced => "news-announced",
            Self::CommitFilled => "commit-filled",
            Self::CommitSwitched => "commit-switched",
            Self::WriteBegun => "write-begun",
            Self::WriteEnded => "write-ended",
            Self::LogCopied => "log-copied",
            Self::TicketSet => "ticket-set",
            Self::NoteSet => "note-set",
            Self::RegistryFilled => "registry-filled",
            Self::LeaseTaken => "lease-taken",
            Self::LeaseAsked => "lease-asked",
            Self::LeasePassed => "lease-passed",
            Self::VisitBegun => "visit-begun",
            Self::VisitEnded => "visit-ended",
        }
    }
}

/// The environment variable read by [`arm_from_environment`].
pub const ENVIRONMENT: &str = "SIROCCO_FAULT_POINT";

/// Whether the points exist in this build.
pub const ENABLED: bool = cfg!(all(
    any(debug_assertions, feature = "fault-points"),
    not(loom)
));

/// Kills this process, as `kill -9` would, when `point` is passed for the `nth` time from now
/// (1 is the next time). Without effect where [`ENABLED`] is false.
pub fn arm(point: FaultPoint, nth: u32) {
    armed::set(point, nth);
}

/// Arms the point that the environment names, if it names one.
///
/// # Errors
/// [`ShmError::BadSize`] if the name or the number in it is unknown: a test that arms nothing would
/// prove nothing.
pub fn arm_from_environment() -> Result<(), ShmError> {
    let Ok(wish) = std::env::var(ENVIRONMENT) else {
        return Ok(());
    };
    let (name, nth) = wish.split_once(':').unwrap_or((&wish, "1"));
    let unknown = ShmError::BadSize {
        what: "fault point in the environment",
        found: 0,
    };
    let nth = nth.parse().map_err(|_| unknown.clone())?;
    let point = FaultPoint::ALL
        .into_iter()
        .find(|point| point.name() == name)
        .ok_or(unknown)?;
    arm(point, nth);
    Ok(())
}

/// Passes a point.
#[inline(always)]
pub(crate) fn point(point: FaultPoint) {
    armed::pass(point);
}

#[cfg(all(any(debug_assertions, feature = "fault-points"), not(loom)))]
mod armed {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::FaultPoint;
    use crate::sync::process_local::{AtomicU32, Ordering};

    /// The armed point, 0 for none.
    static POINT: AtomicU32 = AtomicU32::new(0);
    /// Passes until the end.
    static PASSES: AtomicU32 = AtomicU32::new(0);

    pub(super) fn set(point: FaultPoint, nth: u32) {
        PASSES.store(nth, Ordering::Relaxed);
        POINT.store(point as u32, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn pass(point: FaultPoint) {
        if POINT.load(Ordering::Relaxed) == point as u32 {
            count_down();
        }
    }

    #[cold]
    fn count_down() {
        if PASSES.fetch_sub(1, Ordering::Relaxed) == 1 {
            let outcome = kill(Pid::this(), Signal::SIGKILL);
            debug_assert!(outcome.is_ok(), "a process may always kill itself");
            std::process::abort();
        }
    }
}

#[cfg(not(all(any(debug_assertions, feature = "fault-points"), not(loom))))]
mod armed {
    pub(super) fn set(_point: super::FaultPoint, _nth: u32) {}

    #[inline(always)]
    pub(super) fn pass(_point: super::FaultPoint) {}
}
