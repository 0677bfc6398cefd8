//! A segment: one memfd with a header that says what it is, sealed so that it can never shrink.
//!
//! Why a descriptor and no name: it is handed down by the supervisor only, disappears with its last
//! user, and cannot be opened by the wrong process. Why sealed: a file that shrinks under a mapping
//! kills its user with SIGBUS.
//!
//! Layout of the first 64 bytes, little endian; what follows belongs to the kind
//! ```text
//!   0        8          12     16            24       32                    56       64
//!   | magic  | layout   | kind | fingerprint | length | shape[0..3]         | unused |
//!       8         4        4         8           8         3 x 8                8
//! ```
//! `length` counts the whole file with header; `shape` are the sizes that the kind needs to find
//! its parts. The header is written once, before the descriptor is handed to anybody, and read
//! once, at attach; the copy in private memory is what is used, so later garbage in it does no
//! harm.
//!
//! Cost: creating takes 4 system calls, opening 3. Memory comes with the first touch, unless the
//! kind reserves it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::{ShmError, page_size};

/// First eight bytes of every segment: "SIROCCO" and a byte that no text contains.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SIROCCO\x01");

/// Version of all layouts in this crate; raised with every change of one.
pub(crate) const LAYOUT_VERSION: u32 = 1;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 64;

/// What a segment is for. The number is part of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SegmentKind {
    /// Two rings between two parties.
    Link = 1,
    /// Doorbell, state and counters of one party.
    Party = 2,
    /// What a storage worker's successor must know.
    Journal = 3,
    /// System-wide settings and maps, written by the supervisor.
    Registry = 4,
    /// All data of one storage worker.
    Arena = 5,
}

/// A checked segment: descriptor, length and shape. Nothing is mapped yet.
#[derive(Debug)]
pub struct Segment {
    file: File,
    len: usize,
    shape: [u64; 3],
}

impl Segment {
    /// Makes a segment of `len` bytes (header included, rounded up to whole pages). `name` is what
    /// tools such as `pmap` show.
    ///
    /// # Errors
    /// [`ShmError::OutOfDescriptors`], [`ShmError::OutOfMemory`] or [`ShmError::Io`].
    pub fn create(
        name: &str,
        kind: SegmentKind,
        len: usize,
        fingerprint: u64,
    ) -> Result<Self, ShmError> {
        Self::create_shaped(name, kind, len, fingerprint, [0; 3])
    }

    /// As [`Segment::create`], with three words that tell the kind's own sizes to who opens it.
    ///
    /// # Errors
    /// As for [`Segment::create`].
    pub fn create_shaped(
        name: &str,
        kind: SegmentKind,
        len: usize,
        fingerprint: u64,
        shape: [u64; 3],
    ) -> Result<Self, ShmError> {
        let bad_size = ShmError::BadSize {
            what: "length of a segment",
            found: len as u64,
        };
        let len = len
            .max(HEADER_BYTES)
            .checked_next_multiple_of(page_size())
            .filter(|len| i64::try_from(*len).is_ok())
            .ok_or(bad_size)?;
        let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
            .map_err(|errno| ShmError::from_errno(errno, "memfd_create", len as u64))?;
        let file = File::from(fd);
        let failed = |what| move |error: std::io::Error| from_io(&error, what, len as u64);
        file.set_len(len as u64)
            .map_err(failed("sizing a segment"))?;
        let header = encode(kind, fingerprint, len as u64, shape);
        file.write_all_at(&header, 0)
            .map_err(failed("writing a segment's header"))?;
        fcntl(
            &file,
            FcntlArg::F_ADD_SEALS(seals() | SealFlag::F_SEAL_SEAL),
        )
        .map_err(|errno| ShmError::from_errno(errno, "sealing a segment", 0))?;
        Ok(Self { file, len, shape })
    }

    /// Takes a descriptor that came from the supervisor and checks that it is the segment expected.
    ///
    /// # Errors
    /// Says what differs: magic, layout version, kind, fingerprint, length or seals.
    pub fn open(fd: OwnedFd, kind: SegmentKind, fingerprint: u64) -> Result<Self, ShmError> {
        let file = File::from(fd);
        let io = |what| move |error: std::io::Error| from_io(&error, what, 0);
        let found = file.metadata().map_err(io("looking at a segment"))?.len();
        if found < HEADER_BYTES as u64 {
            return Err(ShmError::BadLength {
                found,
                want: HEADER_BYTES as u64,
            });
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)
            .map_err(io("reading a segment's header"))?;
        let (length, shape) = decode(&header, kind, fingerprint)?;
        if length != found {
            return Err(ShmError::BadLength {
                found,
                want: length,
            });
        }
        let sealed = fcntl(&file, FcntlArg::F_GET_SEALS)
            .map_err(|errno| ShmError::from_errno(errno, "reading a segment's seals", 0))?;
        if !SealFlag::from_bits_truncate(sealed).contains(seals()) {
            return Err(ShmError::NotSealed);
        }
        let len = usize::try_from(length).map_err(|_| ShmError::BadLength {
            found,
            want: length,
        })?;
        Ok(Self { file, len, shape })
    }

    /// The descriptor, to hand to another process.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A second handle to the same segment.
    ///
    /// # Errors
    /// [`ShmError::OutOfDescriptors`] or [`ShmError::Io`].
    pub fn try_clone(&self) -> Result<Self, ShmError> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| from_io(&error, "copying a descriptor", 0))?;
        Ok(Self {
            file,
            len: self.len,
            shape: self.shape,
        })
    }

    /// Length of the file in bytes, header included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The three words given to [`Segment::create_shaped`].
    #[must_use]
    pub fn shape(&self) -> [u64; 3] {
        self.shape
    }

    /// Takes the memory of a range now, so that a shortage is an error here and not a SIGBUS later.
    ///
    /// # Errors
    /// [`ShmError::OutOfMemory`] or [`ShmError::Io`].
    pub fn reserve(&self, offset: usize, len: usize) -> Result<(), ShmError> {
        let bad_size = |_| ShmError::BadSize {
            what: "range of a segment",
            found: len as u64,
        };
        let start = libc::off_t::try_from(offset).map_err(bad_size)?;
        let bytes = libc::off_t::try_from(len).map_err(bad_size)?;
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), start, bytes) {
                Ok(()) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    let what = "reserving shared memory";
                    return Err(ShmError::from_errno(errno, what, len as u64));
                }
            }
        }
    }
}

fn seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW
}

fn from_io(error: &std::io::Error, what: &'static str, bytes: u64) -> ShmError {
    match error.raw_os_error() {
        Some(errno) => ShmError::from_errno(Errno::from_raw(errno), what, bytes),
        None => ShmError::Io {
            what,
            errno: Errno::EIO as i32,
        },
    }
}

fn encode(kind: SegmentKind, fingerprint: u64, len: u64, shape: [u64; 3]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0..8].copy_from_slice(&MAGIC.to_le_bytes());
    header[8..12].copy_from_slice(&LAYOUT_VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(kind as u32).to_le_bytes());
    header[16..24].copy_from_slice(&fingerprint.to_le_bytes());
    header[24..32].copy_from_slice(&len.to_le_bytes());
    for (place, word) in header[32..56].chunks_exact_mut(8).zip(shape) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// Length and shape from a header, if it is the one expected.
fn decode(
    header: &[u8; HEADER_BYTES],
    kind: SegmentKind,
    fingerprint: u64,
) -> Result<(u64, [u64; 3]), ShmError> {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let half = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&header[at..at + 4]);
        u32::from_le_bytes(bytes)
    };
    if word(0) != MAGIC {
        return Err(ShmError::BadMagic { found: word(0) });
    }
    if half(8) != LAYOUT_VERSION {
        return Err(ShmError::BadLayout {
            found: half(8),
            want: LAYOUT_VERSION,
        });
    }
    if half(12) != kind as u32 {
        return Err(ShmError::BadKind {
            found: half(12),
            want: kind as u32,
        });
    }
    if word(16) != fingerprint {
        return Err(ShmError::BadFingerprint {
            found: word(16),
            want: fingerprint,
        });
    }
    Ok((word(24), [word(32), word(40), word(48)]))
}
