//! The registry segment: system-wide bytes with one writer, versioned, read by everybody.
//!
//! ```text
//!   0     header 64, shape = [capacity, 0, 0]
//!   128   version u64                     version & 1 = the buffer that counts
//!   256   length of buffer 0, of buffer 1
//!   page  buffer 0 (capacity), buffer 1 (capacity)
//! ```
//!
//! Why two buffers: a reader is never blocked by a writer that died half-way, and the writer never
//! waits for readers. Why copied out: the buffer may be overwritten by the next but one version.
//!
//! Protocol
//!   G1  content before version: the writer fills the idle buffer, then stores the version with
//!       Release; a reader loads it with Acquire before it reads.
//!   G2  version unchanged: a reader loads the version again after its copy (Acquire fence before).
//!       If it still is the same, nobody can have begun to overwrite the buffer it read.
//!
//! What a survivor sees: a writer that died before G1's store left the old version, whole; its
//! successor fills the same idle buffer again.
//! Cost: a read copies everything, so look at [`RegistrySegment::version`] first: one load.

#![expect(unsafe_code, reason = "references to atomics in the mapped page")]

use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::fault::{FaultPoint, point};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{Mapping, Segment, SegmentKind, ShmError, page_size};

/// Attempts of a reader before it gives up. Versions change when an operator changes something, so
/// a second attempt is rare, and a tenth means that something is broken.
const READ_ATTEMPTS: usize = 64;

/// Largest capacity of a buffer in bytes.
const CAPACITY_MAX: u64 = 1 << 32;

#[derive(Debug)]
#[repr(C, align(128))]
struct Head {
    version: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(128))]
struct Lengths {
    length: [AtomicU64; 2],
}

#[derive(Debug)]
#[repr(C)]
struct Page {
    head: Head,
    lengths: Lengths,
}

const PAGE_OFFSET: usize = 128;

/// The registry, mapped. Only the supervisor calls [`RegistrySegment::publish`].
#[derive(Debug)]
pub struct RegistrySegment {
    segment: Segment,
    page: NonNull<Page>,
    words: NonNull<AtomicU64>,
    /// Words per buffer.
    capacity: usize,
    _mapping: Mapping,
}

// SAFETY: everything pointed to consists of atomics (S6) that live as long as the mapping (S1).
unsafe impl Send for RegistrySegment {}
// SAFETY: as above.
unsafe impl Sync for RegistrySegment {}

impl RegistrySegment {
    /// Makes a registry of version 0 with no content, for at most `capacity` bytes.
    ///
    /// # Errors
    /// [`ShmError::BadSize`], or as for [`Segment::create`].
    pub fn create(capacity: usize, fingerprint: u64) -> Result<Self, ShmError> {
        let capacity = capacity
            .checked_next_multiple_of(page_size())
            .unwrap_or(usize::MAX);
        let capacity = checked_capacity(capacity as u64)?;
        let len = page_size() + 2 * capacity;
        let shape = [capacity as u64, 0, 0];
        let kind = SegmentKind::Registry;
        let segment = Segment::create_shaped("sirocco-registry", kind, len, fingerprint, shape)?;
        segment.reserve(0, page_size())?;
        Self::map(segment, capacity)
    }

    /// Opens the registry from its descriptor.
    ///
    /// # Errors
    /// As for [`Segment::open`]; [`ShmError::BadSize`] or [`ShmError::BadLength`] if the buffers do
    /// not fit into it.
    pub fn open(fd: OwnedFd, fingerprint: u64) -> Result<Self, ShmError> {
        let segment = Segment::open(fd, SegmentKind::Registry, fingerprint)?;
        let capacity = checked_capacity(segment.shape()[0])?;
        let want = page_size() + 2 * capacity;
        if segment.len() != want {
            return Err(ShmError::BadLength {
                found: segment.len() as u64,
                want: want as u64,
            });
        }
        Self::map(segment, capacity)
    }

    fn map(segment: Segment, capacity: usize) -> Result<Self, ShmError> {
        let mapping = Mapping::sparse(segment.fd(), 0, segment.len())?;
        let capacity = capacity / size_of::<AtomicU64>();
        let page = mapping.at::<Page>(PAGE_OFFSET, 1)?;
        let words = mapping.at::<AtomicU64>(page_size(), 2 * capacity)?;
        Ok(Self {
            segment,
            page,
            words,
            capacity,
            _mapping: mapping,
        })
    }

    /// The descriptor, to hand to another process.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Most bytes that can be published.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity * size_of::<AtomicU64>()
    }

    /// Version that counts now; 0 before the first publication.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.page().head.version.load(Ordering::Acquire) // pairs with G1: content before version
    }

    /// Version and content that count now.
    ///
    /// # Errors
    /// [`ShmError::Contended`] if it changed at every attempt, [`ShmError::CorruptPosition`] if the
    /// length makes no sense.
    pub fn read(&self) -> Result<(u64, Vec<u8>), ShmError> {
        for _ in 0..READ_ATTEMPTS {
            let version = self.version();
            let copied = self.copy_out((version & 1) as usize);
            fence(Ordering::Acquire); // pairs with G2: version unchanged
            if self.page().head.version.load(Ordering::Relaxed) == version {
                return Ok((version, copied?));
            }
        }
        Err(ShmError::Contended)
    }

    /// Makes `content` the next version and returns its number. One process only.
    ///
    /// # Errors
    /// [`ShmError::TooLarge`] or [`ShmError::OutOfMemory`]; the old version then still counts.
    pub fn publish(&self, content: &[u8]) -> Result<u64, ShmError> {
        if content.len() > self.capacity() {
            let (what, bytes) = ("registry", content.len() as u64);
            return Err(ShmError::TooLarge {
                what,
                bytes,
                limit: self.capacity() as u64,
            });
        }
        let version = self.version().wrapping_add(1);
        let which = (version & 1) as usize;
        if !content.is_empty() {
            self.segment
                .reserve(page_size() + which * self.capacity(), content.len())?;
        }
        // Readers of the old but one version must not see new bytes under its number.
        fence(Ordering::Release); // pairs with G2: version unchanged
        let mut words = self.buffer(which).iter();
        for (bytes, word) in content.chunks(size_of::<AtomicU64>()).zip(&mut words) {
            let mut value = [0; size_of::<AtomicU64>()];
            value[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
        self.page().lengths.length[which].store(content.len() as u64, Ordering::Relaxed);
        point(FaultPoint::RegistryFilled);
        // pairs with G1: content before version
        self.page().head.version.store(version, Ordering::Release);
        Ok(version)
    }

    fn copy_out(&self, which: usize) -> Result<Vec<u8>, ShmError> {
        let found = self.page().lengths.length[which].load(Ordering::Relaxed);
        let high = self.capacity() as u64;
        let what = "length of the registry";
        let len = usize::try_from(found).unwrap_or(usize::MAX);
        if len > self.capacity() {
            return Err(ShmError::CorruptPosition {
                what,
                found,
                low: 0,
                high,
            });
        }
        let words = &self.buffer(which)[..len.div_ceil(size_of::<AtomicU64>())];
        let mut content = Vec::with_capacity(size_of_val(words));
        for word in words {
            content.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        content.truncate(len);
        Ok(content)
    }

    fn buffer(&self, which: usize) -> &[AtomicU64] {
        // SAFETY: S1, S2, S6: two times `capacity` atomics lie inside the mapping (checked in
        // `map`).
        let both = unsafe { std::slice::from_raw_parts(self.words.as_ptr(), 2 * self.capacity) };
        &both[which * self.capacity..][..self.capacity]
    }

    fn page(&self) -> &Page {
        // SAFETY: S1, S2, S6: a whole page of atomics lies inside the mapping (checked in `map`).
        unsafe { self.page.as_ref() }
    }
}

fn checked_capacity(found: u64) -> Result<usize, ShmError> {
    let bad_size = ShmError::BadSize {
        what: "capacity of the registry",
        found,
    };
    let capacity = usize::try_from(found).map_err(|_| bad_size.clone())?;
    if capacity == 0 || found > CAPACITY_MAX || !capacity.is_multiple_of(page_size()) {
        return Err(bad_size);
    }
    Ok(capacity)
}
