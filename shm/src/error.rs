//! `ShmError`: everything that can go wrong with shared memory, one variant per cause that an
//! operator or a peer can act on.
//!
//! Who reacts: the supervisor when a segment cannot be made (report, give up the part), an
//! attaching process when a segment is not what it expects (refuse), a running process when a
//! position is out of bounds (detach the peer and let the supervisor replace it).

use std::fmt;

use nix::errno::Errno;

/// Why a segment could not be made, opened or used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShmError {
    /// A system call failed for a reason without a variant of its own.
    Io {
        /// The system call and what it was for.
        what: &'static str,
        /// The error number of the operating system.
        errno: i32,
    },
    /// The system has not enough memory (or address space) for a segment.
    OutOfMemory {
        /// What the memory was for.
        what: &'static str,
        /// Bytes asked for.
        bytes: u64,
    },
    /// This process or the whole system has no descriptor left.
    OutOfDescriptors {
        /// What the descriptor was for.
        what: &'static str,
    },
    /// The file is no segment of ours.
    BadMagic {
        /// The first eight bytes found.
        found: u64,
    },
    /// The segment was laid out by another version of this crate.
    BadLayout {
        /// Version in the segment.
        found: u32,
        /// Version of this build.
        want: u32,
    },
    /// A segment, but of another kind: descriptors were mixed up.
    BadKind {
        /// Kind in the segment.
        found: u32,
        /// Kind expected.
        want: u32,
    },
    /// The segment was made by a build with other tables or types.
    BadFingerprint {
        /// Fingerprint in the segment.
        found: u64,
        /// Fingerprint of this build.
        want: u64,
    },
    /// The file's length is not what its header or its kind asks for.
    BadLength {
        /// Length in bytes found.
        found: u64,
        /// Length in bytes wanted.
        want: u64,
    },
    /// The file may still shrink or grow, so mapping it would not be safe.
    NotSealed,
    /// A size asked for is outside of what this kind of segment allows.
    BadSize {
        /// Which size.
        what: &'static str,
        /// The value.
        found: u64,
    },
    /// A position in shared memory is outside of its bounds: the peer is damaged.
    CorruptPosition {
        /// Which position.
        what: &'static str,
        /// The value found.
        found: u64,
        /// Lowest valid value.
        low: u64,
        /// Highest valid value.
        high: u64,
    },
    /// More bytes than the place for them can hold.
    TooLarge {
        /// What was to be stored.
        what: &'static str,
        /// Bytes to store.
        bytes: u64,
        /// Bytes that fit.
        limit: u64,
    },
    /// The registry changed again and again while it was read.
    Contended,
    /// A message arrived with fewer bytes or descriptors than were sent.
    Truncated,
}

impl ShmError {
    /// Turns the error of a system call into the variant for its cause.
    pub(crate) fn from_errno(errno: Errno, what: &'static str, bytes: u64) -> Self {
        match errno {
            Errno::ENOMEM | Errno::ENOSPC => Self::OutOfMemory { what, bytes },
            Errno::EMFILE | Errno::ENFILE => Self::OutOfDescriptors { what },
            other => Self::Io {
                what,
                errno: other as i32,
            },
        }
    }

    /// Whether a non-blocking call would have had to wait.
    #[must_use]
    pub fn is_would_block(&self) -> bool {
        matches!(self, Self::Io { errno, .. } if *errno == Errno::EAGAIN as i32)
    }
}

impl fmt::Display for ShmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { what, errno } => write!(out, "{what}: {}", Errno::from_raw(*errno).desc()),
            Self::OutOfMemory { what, bytes } => {
                write!(out, "{what}: not enough memory for {bytes} bytes")
            }
            Self::OutOfDescriptors { what } => {
                write!(
                    out,
                    "{what}: too many open files, raise the descriptor limit"
                )
            }
            Self::BadMagic { found } => write!(out, "not a shared segment (magic {found:#018x})"),
            Self::BadLayout { found, want } => {
                write!(
                    out,
                    "segment has layout version {found}, this build wants {want}"
                )
            }
            Self::BadKind { found, want } => {
                write!(out, "segment is of kind {found}, expected kind {want}")
            }
            Self::BadFingerprint { found, want } => write!(
                out,
                "segment was made by another build (fingerprint {found:#018x}, ours {want:#018x})"
            ),
            Self::BadLength { found, want } => {
                write!(out, "segment has {found} bytes where {want} were expected")
            }
            Self::NotSealed => write!(out, "segment is not sealed against a change of its size"),
            Self::BadSize { what, found } => write!(out, "{what} of {found} is not possible"),
            Self::CorruptPosition {
                what,
                found,
                low,
                high,
            } => {
                write!(
                    out,
                    "{what} is {found}, outside of {low} to {high}: the peer is damaged"
                )
            }
            Self::TooLarge { what, bytes, limit } => {
                write!(out, "{what} of {bytes} bytes, only {limit} fit")
            }
            Self::Contended => write!(out, "the registry changed at every attempt to read it"),
            Self::Truncated => write!(out, "a message or its descriptors arrived truncated"),
        }
    }
}

impl std::error::Error for ShmError {}
