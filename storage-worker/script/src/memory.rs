//! Memory of a Lua state: small blocks from lists of free ones, all of it counted and bounded.
//!
//! A script leaves a few dozen small objects behind, and Lua says of each block how large it is. So blocks
//! of up to 256 bytes need no header: they are cut from chunks, and a free one goes onto the list of its
//! size. Chunks are given back with the state.
//!
//! ```text
//!   size 1..16, 17..32, ... 241..256     lists[0], lists[1], ... lists[15]
//!   larger                               the system's allocator
//! ```
//!
//! Cost: some instructions for a small block. Lua asks for its memory from one thread, so nothing is locked.

use std::ffi::c_void;
use std::ptr;

/// Sizes are rounded up to multiples of this, which is the alignment of all blocks.
const STEP: usize = 16;
/// Largest small block.
const SMALL_MAX: usize = 256;
const LISTS: usize = SMALL_MAX / STEP;
const CHUNK_BYTES: usize = 16 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bytes that Lua has, as it counts them.
    used: usize,
    limit: usize,
    lists: [*mut c_void; LISTS],
    /// What is left of the last chunk.
    rest: *mut u8,
    rest_len: usize,
    chunks: Vec<*mut c_void>,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            used: 0,
            limit,
            lists: [ptr::null_mut(); LISTS],
            rest: ptr::null_mut(),
            rest_len: 0,
            chunks: Vec::new(),
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Sets the bound; returns the old one.
    pub(crate) fn set_limit(&mut self, limit: usize) -> usize {
        std::mem::replace(&mut self.limit, limit)
    }

    /// What Lua asks for: a new block, another size, or nothing any more.
    ///
    /// # Safety
    /// `block` came from here with size `old`, or is null.
    #[inline]
    pub(crate) unsafe fn change(
        &mut self,
        block: *mut c_void,
        old: usize,
        new: usize,
    ) -> *mut c_void {
        let others = self.used.wrapping_sub(old);
        if new == 0 {
            self.free(block, old);
            self.used = others;
            return ptr::null_mut();
        }
        if new > old && others.saturating_add(new) > self.limit {
            return ptr::null_mut();
        }
        let is_same_list = old != 0 && new <= SMALL_MAX && list_of(old) == list_of(new);
        let moved = if is_same_list {
            block
        } else if old > SMALL_MAX && new > SMALL_MAX {
            libc::realloc(block, new)
        } else {
            self.replace(block, old, new)
        };
        if !moved.is_null() {
            self.used = others + new;
        }
        moved
    }

    unsafe fn replace(&mut self, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
        let moved = self.take(new);
        if !moved.is_null() && old != 0 {
            let kept = old.min(new);
            ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast::<u8>(), kept);
            self.free(block, old);
        }
        moved
    }

    #[inline]
    unsafe fn take(&mut self, size: usize) -> *mut c_void {
        if size > SMALL_MAX {
            return libc::malloc(size);
        }
        let list = &mut self.lists[list_of(size)];
        let first = *list;
        if first.is_null() {
            return self.cut(size);
        }
        *list = *first.cast::<*mut c_void>();
        first
    }

    #[inline]
    unsafe fn free(&mut self, block: *mut c_void, size: usize) {
        if block.is_null() || size == 0 {
            return;
        }
        if size > SMALL_MAX {
            return libc::free(block);
        }
        let list = &mut self.lists[list_of(size)];
        *block.cast::<*mut c_void>() = *list;
        *list = block;
    }

    /// A block from the rest of a chunk, or from a new one.
    #[cold]
    unsafe fn cut(&mut self, size: usize) -> *mut c_void {
        let size = (list_of(size) + 1) * STEP;
        if self.rest_len < size {
            let chunk = libc::malloc(CHUNK_BYTES);
            if chunk.is_null() {
                return chunk;
            }
            self.chunks.push(chunk);
            self.rest = chunk.cast::<u8>();
            self.rest_len = CHUNK_BYTES;
        }
        let block = self.rest;
        self.rest = block.add(size);
        self.rest_len -= size;
        block.cast::<c_void>()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // SAFETY: it came from `malloc`, and Lua has given back all of its blocks.
            unsafe { libc::free(*chunk) };
        }
    }
}

/// Number of the list of blocks of `size`, which is not 0.
#[inline]
fn list_of(size: usize) -> usize {
    (size.wrapping_sub(1) / STEP).min(LISTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_bytes_and_come_again() {
        let mut memory = Memory::new(1 << 20);
        // SAFETY: blocks are handed back with the sizes that they have.
        unsafe {
            let mut block = ptr::null_mut();
            let mut old = 0;
            for new in [1, 16, 17, 256, 257, 5000, 300, 256, 40, 3] {
                block = memory.change(block, old, new);
                assert!(!block.is_null());
                assert!(block.addr().is_multiple_of(STEP));
                *block.cast::<u8>().add(new - 1) = 7;
                *block.cast::<u8>() = new as u8;
                assert_eq!(memory.used(), new);
                old = new;
                let larger = memory.change(block, old, old + 1);
                assert_eq!(*larger.cast::<u8>(), new as u8);
                block = memory.change(larger, old + 1, old);
                assert_eq!(*block.cast::<u8>(), new as u8);
            }
            memory.change(block, old, 0);
            assert_eq!(memory.used(), 0);
            let again = memory.change(ptr::null_mut(), 0, 2);
            assert_eq!(again, block, "the last free one of that size");
            assert!(memory.change(ptr::null_mut(), 0, 1 << 20).is_null());
            memory.change(again, 2, 0);
        }
    }
}
