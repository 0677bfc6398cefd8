//! Maps a segment, or a part of it, into this process; unmaps it when the last user is gone.
//!
//! ```text
//!   shared:  [ file bytes ]
//!   twice:   [ file bytes ][ the same bytes again ]      a frame that wraps is contiguous
//! ```
//!
//! Cost: one VMA per mapping, three system calls for a double one. Pages are populated at once, so
//! that the first round through a ring takes no page faults.
//! Not here: fixed addresses (the arena maps itself), checks of the content (`segment`).

#![expect(unsafe_code, reason = "mmap and munmap")]

use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use nix::unistd::{SysconfVar, sysconf};

use crate::ShmError;

/// Size of a memory page in bytes.
#[must_use]
pub fn page_size() -> usize {
    // The call cannot fail on Linux; 4096 is what the common machines have.
    sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(4096)
}

/// A piece of address space backed by a segment. Unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is address space, valid in every thread of the process; what may be done with
// the bytes is up to the types that point into it (S3 to S5).
unsafe impl Send for Mapping {}
// SAFETY: as above; the value itself is never changed after it is made.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of the file from `offset` on, readable and writable, shared.
    ///
    /// # Errors
    /// [`ShmError::OutOfMemory`] when address space is short, [`ShmError::Io`] otherwise.
    pub fn shared(fd: BorrowedFd<'_>, offset: usize, len: usize) -> Result<Self, ShmError> {
        Self::new(
            fd,
            offset,
            len,
            MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE,
        )
    }

    /// As [`Mapping::shared`], but memory comes with the first touch: for what is mostly empty.
    ///
    /// # Errors
    /// As for [`Mapping::shared`].
    pub fn sparse(fd: BorrowedFd<'_>, offset: usize, len: usize) -> Result<Self, ShmError> {
        Self::new(fd, offset, len, MapFlags::MAP_SHARED)
    }

    fn new(
        fd: BorrowedFd<'_>,
        offset: usize,
        len: usize,
        flags: MapFlags,
    ) -> Result<Self, ShmError> {
        let size = length(len)?;
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let base = unsafe { mmap(None, size, read_write(), flags, fd, file_offset(offset)?) }
            .map_err(|errno| ShmError::from_errno(errno, "mmap of a segment", len as u64))?;
        Ok(Self {
            base: base.cast(),
            len,
        })
    }

    /// Maps `len` bytes of the file twice, back to back: byte `i` and byte `i + len` are the same.
    /// `offset` and `len` must be multiples of the page size.
    ///
    /// # Errors
    /// As for [`Mapping::shared`].
    pub fn twice(fd: BorrowedFd<'_>, offset: usize, len: usize) -> Result<Self, ShmError> {
        let failed = |errno| ShmError::from_errno(errno, "mmap of a ring", 2 * len as u64);
        let both = length(len.checked_mul(2).ok_or(TOO_LONG)?)?;
        let reserved = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let base = unsafe { mmap_anonymous(None, both, ProtFlags::PROT_NONE, reserved) }
            .map_err(failed)?;
        // From here on the value owns the whole range, also when one of the halves fails.
        let mapping = Self {
            base: base.cast(),
            len: both.get(),
        };
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED | MapFlags::MAP_POPULATE;
        for half in 0..2 {
            let address = NonZeroUsize::new(base.as_ptr() as usize + half * len);
            let file = file_offset(offset)?;
            // SAFETY: MAP_FIXED replaces exactly one half of the range reserved just above, which
            // nothing else points into.
            unsafe { mmap(address, length(len)?, read_write(), flags, fd, file) }
                .map_err(failed)?;
        }
        Ok(mapping)
    }

    /// First byte. Valid for reads and writes of [`Mapping::len`] bytes while the mapping lives.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length of the address range in bytes (twice the file's part for a double mapping).
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address `offset` bytes in, checked to have `len` bytes behind it and to be aligned for
    /// `T`.
    ///
    /// # Errors
    /// [`ShmError::BadLength`] if it does not lie inside.
    #[cfg_attr(loom, expect(dead_code, reason = "models run on the heap"))]
    pub(crate) fn at<T>(&self, offset: usize, count: usize) -> Result<NonNull<T>, ShmError> {
        let bytes = size_of::<T>().checked_mul(count).ok_or(TOO_LONG)?;
        let end = offset.checked_add(bytes).ok_or(TOO_LONG)?;
        if end > self.len || !offset.is_multiple_of(align_of::<T>()) {
            return Err(ShmError::BadLength {
                found: self.len as u64,
                want: end as u64,
            });
        }
        // SAFETY: the offset lies inside the mapping (just checked), so the address does not wrap.
        Ok(unsafe { self.base.add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: S1: the range was mapped by this value and everything that points into it holds
        // the value, so nobody is left.
        let outcome = unsafe { munmap(self.base.cast(), self.len) };
        debug_assert!(outcome.is_ok(), "unmapping a range of ours cannot fail");
    }
}

const TOO_LONG: ShmError = ShmError::BadSize {
    what: "length of a mapping",
    found: u64::MAX,
};

fn read_write() -> ProtFlags {
    ProtFlags::PROT_READ | ProtFlags::PROT_WRITE
}

fn length(len: usize) -> Result<NonZeroUsize, ShmError> {
    NonZeroUsize::new(len).ok_or(ShmError::BadSize {
        what: "length of a mapping",
        found: len as u64,
    })
}

fn file_offset(offset: usize) -> Result<libc::off_t, ShmError> {
    libc::off_t::try_from(offset).map_err(|_| ShmError::BadSize {
        what: "offset of a mapping",
        found: offset as u64,
    })
}
