//! Makes the memory of an arena, maps it at its address, and enters it.
//!
//! The supervisor calls [`create_memory`] and hands the descriptor down; a worker calls
//! [`Mapping::attach`], which formats an arena that is still blank and refuses one that was written
//! by another build. [`Mapping::private`] gives an arena that dies with the process, at the same
//! addresses: for tests, and to measure what the shared file costs.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

use super::layout::{self, Header, LAYOUT_VERSION, MAGIC, SPAN_BYTES};
use super::{Arena, CURRENT};

/// Where arena 0 begins: far from the heap, the stacks and the libraries of a Linux process.
const BASE: u64 = 0x2000_0000_0000;
/// Distance between two arenas.
const STRIDE: u64 = 1 << 40;
/// Arenas that fit below the end of the 47-bit address space, with room for stacks and libraries.
const INDEX_END: u32 = 88;
/// Smallest capacity: even a tiny machine gets 64 GiB of address space, which costs nothing.
const CAPACITY_MIN: u64 = 64 << 30;

/// Why an arena cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArenaError {
    /// A system call failed.
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        errno: Errno,
    },
    /// There are addresses for so many arenas only.
    BadIndex(u32),
    /// The length is not a multiple of 64 KiB, or larger than the distance between two arenas.
    BadLength(u64),
    /// The file does not begin as an arena does.
    BadMagic(u64),
    /// The arena was written by a build with other layouts.
    BadFingerprint {
        /// In the file.
        found: u64,
        /// Of this build.
        want: u64,
    },
    /// The arena belongs to another address.
    BadAddress {
        /// In the file.
        found: u64,
        /// Where it was to be mapped.
        want: u64,
    },
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArenaError::System { action, errno } => write!(f, "cannot {action}: {errno}"),
            ArenaError::BadIndex(index) => write!(f, "there is no address for arena {index}"),
            ArenaError::BadLength(bytes) => write!(f, "an arena cannot have {bytes} bytes"),
            ArenaError::BadMagic(found) => write!(f, "not an arena: it begins with {found:#x}"),
            ArenaError::BadFingerprint { found, want } => {
                write!(
                    f,
                    "arena of another build: fingerprint {found:#x}, this is {want:#x}"
                )
            }
            ArenaError::BadAddress { found, want } => {
                write!(f, "arena for address {found:#x}, not {want:#x}")
            }
        }
    }
}

impl std::error::Error for ArenaError {}

fn system(action: &'static str) -> impl Fn(Errno) -> ArenaError {
    move |errno| ArenaError::System { action, errno }
}

/// Whether an attached arena already holds data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was blank and has been formatted.
    Fresh,
    /// A predecessor's data are in it.
    Found,
}

/// Address space for one arena: four times the machine's memory, at least 64 GiB, at most 512 GiB.
#[must_use]
pub fn default_capacity() -> u64 {
    // SAFETY: plain queries without pointers.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    let memory = u64::try_from(pages).unwrap_or(0) * u64::try_from(page).unwrap_or(0);
    (memory * 4)
        .next_power_of_two()
        .clamp(CAPACITY_MIN, STRIDE / 2)
}

/// Makes the sparse file of an arena (`capacity_bytes` a multiple of 64 KiB). It takes no memory
/// until it is used, and cannot be cut short.
///
/// # Errors
/// When the length is impossible or the system refuses.
pub fn create_memory(name: &str, capacity_bytes: u64) -> Result<OwnedFd, ArenaError> {
    check_capacity(capacity_bytes)?;
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let fd = memfd_create(name, flags).map_err(system("create the memory of an arena"))?;
    let length =
        i64::try_from(capacity_bytes).map_err(|_| ArenaError::BadLength(capacity_bytes))?;
    ftruncate(&fd, length).map_err(system("size the memory of an arena"))?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&fd, FcntlArg::F_ADD_SEALS(seals)).map_err(system("seal the memory of an arena"))?;
    Ok(fd)
}

fn check_capacity(bytes: u64) -> Result<(), ArenaError> {
    // The span table must leave room for data; 1 MiB is the smallest arena that makes sense.
    let fits = bytes.is_multiple_of(SPAN_BYTES as u64) && (1 << 20..=STRIDE).contains(&bytes);
    if fits {
        Ok(())
    } else {
        Err(ArenaError::BadLength(bytes))
    }
}

/// An arena mapped into this process. Dropping it unmaps it; the memory lives on in its descriptor.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<Header>,
    bytes: usize,
    memory: Option<OwnedFd>,
}

impl Mapping {
    /// Maps the arena behind `memory` at the address of `index`, and formats it if it is blank.
    /// `fingerprint` is [`layout::fingerprint`] over the types that are kept in it.
    ///
    /// # Errors
    /// When the address is taken, or the memory holds something else than this build's arena.
    pub fn attach(
        memory: OwnedFd,
        index: u32,
        fingerprint: u64,
    ) -> Result<(Mapping, Origin), ArenaError> {
        let stat = fstat(&memory).map_err(system("look at the memory of an arena"))?;
        let bytes = u64::try_from(stat.st_size).map_err(|_| ArenaError::BadLength(0))?;
        let base = map(index, bytes, Some(&memory))?;
        let mapping = Mapping {
            base,
            bytes: bytes as usize,
            memory: Some(memory),
        };
        let origin = mapping.open(index, fingerprint)?;
        Ok((mapping, origin))
    }

    /// Maps the arena of another process beside it; nothing if it is still blank. What is in it must be
    /// left alone while its owner, or somebody else, works in it.
    ///
    /// # Errors
    /// As for [`Mapping::attach`].
    pub fn visit(
        memory: OwnedFd,
        index: u32,
        fingerprint: u64,
    ) -> Result<Option<Mapping>, ArenaError> {
        let stat = fstat(&memory).map_err(system("look at the memory of an arena"))?;
        let bytes = u64::try_from(stat.st_size).map_err(|_| ArenaError::BadLength(0))?;
        let base = map(index, bytes, Some(&memory))?;
        let mapping = Mapping {
            base,
            bytes: bytes as usize,
            memory: Some(memory),
        };
        // SAFETY: the mapping is at least one header long, and nobody else is in it now.
        if unsafe { mapping.base.as_ref() }.magic == 0 {
            return Ok(None);
        }
        mapping.open(index, fingerprint)?;
        Ok(Some(mapping))
    }

    /// An arena that only this process has.
    ///
    /// # Errors
    /// When the address is taken or the length is impossible.
    pub fn private(
        index: u32,
        capacity_bytes: u64,
        fingerprint: u64,
    ) -> Result<Mapping, ArenaError> {
        let base = map(index, capacity_bytes, None)?;
        let mapping = Mapping {
            base,
            bytes: capacity_bytes as usize,
            memory: None,
        };
        mapping.format(index, fingerprint);
        Ok(mapping)
    }

    /// A private arena at any free address: what tests of several threads want.
    ///
    /// # Errors
    /// When all addresses are taken or the length is impossible.
    pub fn private_anywhere(capacity_bytes: u64, fingerprint: u64) -> Result<Mapping, ArenaError> {
        for index in 0..INDEX_END {
            match Mapping::private(index, capacity_bytes, fingerprint) {
                Err(ArenaError::System {
                    errno: Errno::EEXIST,
                    ..
                }) => {}
                made => return made,
            }
        }
        Err(ArenaError::BadIndex(INDEX_END))
    }

    /// The header's verdict on memory that was just mapped.
    fn open(&self, index: u32, want: u64) -> Result<Origin, ArenaError> {
        // SAFETY: the mapping is at least one header long, and its owner is the only user (A2).
        let header = unsafe { self.base.as_ref() };
        if header.magic == 0 {
            self.format(index, want);
            return Ok(Origin::Fresh);
        }
        if header.magic != MAGIC || header.layout_version != LAYOUT_VERSION {
            return Err(ArenaError::BadMagic(header.magic));
        }
        if header.fingerprint != want {
            return Err(ArenaError::BadFingerprint {
                found: header.fingerprint,
                want,
            });
        }
        if header.base != self.base.addr().get() as u64 {
            return Err(ArenaError::BadAddress {
                found: header.base,
                want: address(index)?,
            });
        }
        if header.capacity_bytes != self.bytes as u64 {
            return Err(ArenaError::BadLength(header.capacity_bytes));
        }
        Ok(Origin::Found)
    }

    fn format(&self, index: u32, fingerprint: u64) {
        let base = self.base.addr().get() as u64;
        let mut header = layout::empty_header(index, base, self.bytes as u64, fingerprint);
        header.private = u32::from(self.memory.is_none());
        layout::format(self.base, &header);
    }

    /// Throws all data away and formats the arena anew: for one that is not trusted any more. Gives
    /// the memory back, which takes about 0.1 s per GiB.
    pub fn reset(&mut self) {
        // SAFETY: as in `open`.
        let (index, fingerprint) = unsafe {
            let header = self.base.as_ref();
            (header.index, header.fingerprint)
        };
        let advice = if self.memory.is_none() {
            libc::MADV_DONTNEED
        } else {
            libc::MADV_REMOVE
        };
        // SAFETY: the range is the whole mapping, which belongs to us; nothing refers into it, as
        // the caller gives up all data.
        let refused = unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) } != 0;
        if refused {
            // Without this the rows of the span table would keep old marks.
            // SAFETY: as above: the mapping is writable and ours.
            unsafe { self.base.cast::<u8>().write_bytes(0, self.bytes) };
        }
        self.format(index, fingerprint);
    }

    /// Makes this the arena of the current thread, which [`Arena`] then works in.
    pub fn enter(&self) {
        CURRENT.set(self.base.as_ptr());
    }

    /// The descriptor of the memory; `None` for a private arena.
    #[must_use]
    pub fn memory(&self) -> Option<&OwnedFd> {
        self.memory.as_ref()
    }

    /// Address space of this arena in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.bytes as u64
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if CURRENT.get() == self.base.as_ptr() {
            CURRENT.set(std::ptr::null_mut());
        }
        // SAFETY: the range was mapped by `map` and is ours. An `Arena` used afterwards on this
        // thread panics; other threads must not have entered it (A2).
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn address(index: u32) -> Result<u64, ArenaError> {
    if index < INDEX_END {
        Ok(BASE + u64::from(index) * STRIDE)
    } else {
        Err(ArenaError::BadIndex(index))
    }
}

/// Maps `bytes` bytes at the address of `index`, without taking anybody else's place.
fn map(index: u32, bytes: u64, memory: Option<&OwnedFd>) -> Result<NonNull<Header>, ArenaError> {
    use std::os::fd::AsRawFd;
    check_capacity(bytes)?;
    let want = address(index)?;
    let (kind, fd) = match memory {
        Some(memory) => (libc::MAP_SHARED, memory.as_fd().as_raw_fd()),
        None => (
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
        ),
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: NOREPLACE: the call fails rather than touch an existing mapping.
    let found = unsafe {
        let at = std::ptr::without_provenance_mut(want as usize);
        libc::mmap(
            at,
            bytes as usize,
            access,
            kind | libc::MAP_FIXED_NOREPLACE,
            fd,
            0,
        )
    };
    if found == libc::MAP_FAILED {
        return Err(ArenaError::System {
            action: "map an arena",
            errno: Errno::last(),
        });
    }
    // Small pages on purpose. Measured with huge ones: the longest single insert was 5 to 10 ms
    // instead of 0.5 ms (the fault has to find and clear 2 MiB), while a lookup with prefetching won
    // less than a tenth. They would also make `resident_bytes` a guess.
    // SAFETY: the range was mapped a moment ago. If refused, there are no huge pages anyway.
    unsafe { libc::madvise(found, bytes as usize, libc::MADV_NOHUGEPAGE) };
    let base = NonNull::new(found.cast::<Header>());
    match base {
        Some(base) if base.addr().get() as u64 == want => Ok(base),
        _ => {
            // A kernel before 4.17 takes NOREPLACE for a hint and maps elsewhere.
            // SAFETY: the range was mapped a moment ago and nothing refers to it.
            unsafe { libc::munmap(found, bytes as usize) };
            Err(ArenaError::System {
                action: "map an arena",
                errno: Errno::EEXIST,
            })
        }
    }
}

impl Arena {
    /// Whether this thread has entered an arena.
    #[must_use]
    pub fn is_entered(self) -> bool {
        !CURRENT.get().is_null()
    }
}
