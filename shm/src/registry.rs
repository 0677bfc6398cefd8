//! The registry segment: system-wide bytes with one writer, versioned, read by everybody.
//!
//! ```text
//!   0     header 64, shape = [capacity, 0, 0]
//!   128   version u64                     version & 1 = the buffer that counts
//!   256   length of buffer 0, of buffer 1
//!   page  buffer 0 (capacity), buffer 1 (capacity)
//! ```
//!
//! Cost: a read copies everything, so look at [`RegistrySegment::version`] first: one load. Memory
//! for a buffer is taken when it is filled.
//! Not here: the protocol of the two buffers (`versioned`), what the bytes mean (`proto`).

#![expect(unsafe_code, reason = "references to atomics in the mapped page")]

use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::sync::{AtomicU64, Ordering};
use crate::versioned::Versioned;
use crate::{Mapping, Segment, SegmentKind, ShmError, page_size};

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
        self.content().read()
    }

    /// Makes `content` the next version and returns its number. One process only.
    ///
    /// # Errors
    /// [`ShmError::TooLarge`] or [`ShmError::OutOfMemory`]; the old version then still counts.
    pub fn publish(&self, content: &[u8]) -> Result<u64, ShmError> {
        let next = self.version().wrapping_add(1);
        if !content.is_empty() && content.len() <= self.capacity() {
            let offset = page_size() + (next & 1) as usize * self.capacity();
            self.segment.reserve(offset, content.len())?;
        }
        self.content().publish(content)
    }

    fn content(&self) -> Versioned<'_> {
        let page = self.page();
        // SAFETY: S1, S2, S6: two times `capacity` atomics lie inside the mapping (checked in `map`).
        let words = unsafe { std::slice::from_raw_parts(self.words.as_ptr(), 2 * self.capacity) };
        Versioned::new(&page.head.version, &page.lengths.length, words)
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
