//! A storage worker's memory: one mapping at a fixed address, and the allocator that lives in it.
//!
//! Why: a worker that dies must leave everything behind that its successor needs. So all data of a
//! worker (dictionaries, entries, expiry index, counts, and the allocator's own books) sit in one
//! memfd which is mapped at the same address in every process that ever owns it; a pointer into it
//! keeps its meaning. A general allocator cannot do that: its books are in the dying process.
//!
//! ```text
//!   base = 0x2000_0000_0000 + index * 1 TiB
//!   +--------+------------------------+-------------------------------------------------+
//!   | header | span table, 40 B each  | spans of 64 KiB ...            | never used yet  |
//!   +--------+------------------------+-------------------------------------------------+
//!     4 KiB    capacity / 64 KiB rows                                ^ frontier   capacity
//! ```
//!
//! A span belongs to one size class (small objects, up to 32 KiB), to a run of spans that holds one
//! large object, or to a run of free spans. Free runs merge with their neighbours at once. The file
//! is sparse: address space is plentiful, and pages that nobody touched cost nothing.
//!
//! Invariants
//!   A1  the header and the span table describe every span below the frontier.
//!   A2  only the thread that entered an arena reads or writes it; there is one at a time per arena.
//!   A3  nothing in an arena points outside it (a debug walk of the owner checks its own data).
//!   A4  `used_bytes` is the sum of the class sizes of live objects, plus the books themselves.
//!   A5  a page counted as not resident has not been touched since it was mapped or returned.
//!
//! Cost: allocate and free are a few dozen instructions without atomics; rounding loses at most 7
//! bytes below 512 bytes, at most an eighth up to 32 KiB, at most a page above.
//! Not here: what is stored (the keyspace), who owns which arena (the supervisor).

mod check;
mod class;
mod layout;
mod mapping;
mod purge;
mod run;
mod small;
#[cfg(test)]
mod tests;

pub use class::usable_size;
pub use layout::fingerprint;
pub use mapping::{ArenaError, Mapping, Origin, create_memory, default_capacity};

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use layout::Header;

thread_local! {
    /// Base of the arena that this thread works in. Const-initialised and without a destructor, so
    /// that reading it is one load relative to the thread pointer.
    static CURRENT: Cell<*mut Header> = const { Cell::new(std::ptr::null_mut()) };
}

/// The header of the arena that this thread entered.
#[inline]
fn current() -> NonNull<Header> {
    let header = CURRENT.get();
    assert!(!header.is_null(), "this thread has not entered an arena");
    // SAFETY: the line above checked it.
    unsafe { NonNull::new_unchecked(header) }
}

/// The allocator of the arena that this thread has entered ([`Mapping::enter`]). It has no size, so
/// a collection that carries it is as small as one over the global allocator and stays valid in
/// another process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arena;

impl Arena {
    /// Takes `size` bytes, aligned to 8.
    ///
    /// # Panics
    /// When the arena's address space is exhausted (it is several times the machine's memory).
    #[inline]
    #[must_use]
    pub fn take(self, size: usize) -> NonNull<u8> {
        let found = if size <= class::SMALL_MAX {
            small::allocate(current(), class::of(size))
        } else {
            run::allocate_large(current(), size, usize::MAX)
        };
        found.expect("an arena's address space is several times the memory of the machine")
    }

    /// As [`Arena::take`], with all bytes from `from` on zero. Fresh pages of large objects are zero
    /// already and stay untouched.
    #[must_use]
    pub fn take_zeroed(self, size: usize, from: usize) -> NonNull<u8> {
        if size <= class::SMALL_MAX {
            let object = self.take(size);
            let from = from.min(size);
            // SAFETY: the object has `size` bytes.
            unsafe { object.add(from).write_bytes(0, size - from) };
            return object;
        }
        run::allocate_large(current(), size, from)
            .expect("an arena's address space is several times the memory of the machine")
    }

    /// Gives back what `take` returned for the same `size` (or another one of the same class).
    ///
    /// # Safety
    /// `object` came from this arena for a size with the same [`usable_size`], and is not used after.
    #[inline]
    pub unsafe fn give(self, object: NonNull<u8>, size: usize) {
        // SAFETY: handed on to the caller's promise.
        unsafe {
            if size <= class::SMALL_MAX {
                small::free(current(), object, class::of(size));
            } else {
                run::free_large(current(), object, size);
            }
        }
    }

    /// Tries to make a large object bigger where it stands; `false` leaves all as it was. The bytes
    /// behind the usable size that it had are zero.
    ///
    /// # Safety
    /// As for [`Arena::give`] with `old_size`; after `true` the object's size is `new_size`.
    pub unsafe fn extend(self, object: NonNull<u8>, old_size: usize, new_size: usize) -> bool {
        if usable_size(old_size) == usable_size(new_size) {
            return true;
        }
        if old_size <= class::SMALL_MAX || new_size < old_size {
            return false;
        }
        // SAFETY: handed on to the caller's promise.
        unsafe { run::extend_large(current(), object, old_size, new_size) }
    }

    /// Bytes in use: live objects by the size of their class, and the allocator's books.
    #[must_use]
    pub fn used_bytes(self) -> u64 {
        layout::used_bytes(current())
    }

    /// Bytes of memory that the arena holds from the system: touched and not returned.
    #[must_use]
    pub fn resident_bytes(self) -> u64 {
        layout::resident_bytes(current())
    }

    /// Bytes of free spans that are still resident: what [`Arena::return_pages`] can give back.
    #[must_use]
    pub fn idle_bytes(self) -> u64 {
        layout::idle_bytes(current())
    }

    /// Returns free pages to the system until at most `keep_bytes` of them stay, but not more than
    /// `budget_bytes` in this call. Says whether there is more to do.
    pub fn return_pages(self, keep_bytes: u64, budget_bytes: u64) -> bool {
        purge::return_pages(current(), keep_bytes, budget_bytes)
    }

    /// The address that the owner keeps its root object at; 0 in a fresh arena.
    #[must_use]
    pub fn root(self) -> u64 {
        layout::root(current())
    }

    /// Remembers where the owner's root object is.
    pub fn set_root(self, address: u64) {
        layout::set_root(current(), address);
    }

    /// Whether `bytes` bytes at `address` lie in the part of the arena that objects are taken from.
    #[must_use]
    pub fn contains(self, address: u64, bytes: usize) -> bool {
        layout::contains(current(), address, bytes)
    }

    /// Walks all of the allocator's books and compares them with its counts.
    ///
    /// # Errors
    /// A sentence that names the first contradiction.
    pub fn check(self) -> Result<(), String> {
        check::check(current())
    }
}

/// The size to take so that the address has the alignment that `layout` wants: every class is a
/// multiple of 8, spans are aligned to their 64 KiB, and so an object of a class that is a multiple
/// of a power of two up to 64 KiB is aligned to it.
#[inline]
fn aligned_size(layout: Layout) -> Result<usize, AllocError> {
    if layout.align() <= 8 {
        return Ok(layout.size());
    }
    if layout.align() > layout::SPAN_BYTES {
        return Err(AllocError);
    }
    let mut size = layout.size().next_multiple_of(layout.align());
    while size <= class::SMALL_MAX && !usable_size(size).is_multiple_of(layout.align()) {
        size = (usable_size(size) + 1).next_multiple_of(layout.align());
    }
    Ok(size)
}

// SAFETY: objects stay where they are until freed; `Arena` values are all the same, so any of them
// (on the thread that entered the arena, A2) may free what another one handed out.
unsafe impl Allocator for Arena {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let size = aligned_size(layout)?;
        if size == 0 {
            let dangling = std::ptr::without_provenance_mut(layout.align());
            let dangling = NonNull::new(dangling).ok_or(AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(dangling, 0));
        }
        let object = if size <= class::SMALL_MAX {
            small::allocate(current(), class::of(size))
        } else {
            run::allocate_large(current(), size, usize::MAX)
        };
        let object = object.ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(object, usable_size(size)))
    }

    #[inline]
    unsafe fn deallocate(&self, object: NonNull<u8>, layout: Layout) {
        let Ok(size) = aligned_size(layout) else {
            return;
        };
        if size > 0 {
            // SAFETY: the trait's contract: `object` came from here for a fitting layout.
            unsafe { self.give(object, size) }
        }
    }
}
