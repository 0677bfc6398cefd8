//! An owned, growable piece of bytes in the arena, with room at both ends.
//!
//! ```text
//!   address + start            length                       capacity
//!   +---------+------------------------------------+----------+
//!   |  room   | bytes                              |   room   |
//!   +---------+------------------------------------+----------+
//! ```
//!
//! Removing or inserting moves the shorter side, if there is room on that side. So a packed list that
//! is pushed and popped at its front moves six bytes of header and not all of its elements. When the
//! bytes have to move to a larger object, the new room goes to the side that asked for it.
//!
//! Invariants
//!   B1  `capacity` is the usable size of the object at `address`, or 0 and there is none.
//!   B2  start + length <= capacity.
//!   B3  the object belongs to this buffer alone; dropping it gives the object back.
//!
//! Cost: 16 bytes and the object; growing takes an eighth more than is asked for, or, from 512 bytes to
//! 28 KiB, what the size class has.

use std::fmt;
use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::Splice;

/// Bits of an address in the arena; the start is kept above them.
const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
/// Most room that is kept in front.
const START_MAX: usize = u16::MAX as usize;
/// Sizes between which the classes of the arena are steps of a sixteenth to an eighth, so that what
/// grows needs no more room than its class has.
const COARSE_MIN: usize = 512;
pub(crate) const COARSE_MAX: usize = 28 * 1024;

/// See the module. At most 4 GiB.
#[repr(C)]
pub struct Buffer {
    /// Address of the object, and above it the bytes of room in front.
    place: u64,
    length: u32,
    capacity: u32,
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("start", &self.start())
            .field("length", &self.length)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: B1, B3: the object was taken with this size and nobody else knows it.
            unsafe { Arena.give(self.object(), self.capacity()) }
        }
    }
}

impl From<&[u8]> for Buffer {
    /// A buffer that holds just these bytes.
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::with_capacity(bytes.len());
        buffer.splice(0, 0, bytes.len()).copy_from_slice(bytes);
        buffer
    }
}

impl Buffer {
    /// An empty buffer, which takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            place: 0,
            length: 0,
            capacity: 0,
        }
    }

    /// An empty buffer with room for `bytes` bytes.
    ///
    /// # Panics
    /// From 4 GiB on.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        if bytes == 0 {
            return Self::new();
        }
        let usable = usable_size(bytes);
        let capacity = u32::try_from(usable).expect("a buffer is smaller than 4 GiB");
        let address = Arena.take(usable).as_ptr().expose_provenance() as u64;
        debug_assert!(address & !ADDRESS_MASK == 0);
        Self {
            place: address,
            length: 0,
            capacity,
        }
    }

    /// Number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether there are no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes that it takes in the arena.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Makes room for `bytes` more in front of all or behind, as much again as there is now but for
    /// no more than `all` bytes altogether: for who knows that more will come there.
    #[inline]
    pub fn reserve(&mut self, in_front: bool, bytes: usize, all: usize) {
        let room = if in_front {
            self.start()
        } else {
            self.capacity() - self.start() - self.len()
        };
        if room < bytes {
            self.move_to_more(in_front, bytes, all);
        }
    }

    #[cold]
    fn move_to_more(&mut self, in_front: bool, bytes: usize, all: usize) {
        let length = self.len();
        let mut larger = Self::with_capacity((length * 2).min(all).max(length + bytes));
        if in_front {
            larger.set_start((larger.capacity() - length).min(START_MAX));
        }
        let start = larger.start();
        larger.object_bytes()[start..start + length].copy_from_slice(self.bytes());
        larger.length = self.length;
        *self = larger;
    }

    /// Makes the object as small as the bytes allow, if that saves anything.
    pub fn shrink(&mut self) {
        let wanted = if self.length == 0 {
            0
        } else {
            usable_size(self.len())
        };
        if wanted < self.capacity() {
            *self = Self::from(self.bytes());
        }
    }

    /// Whether the object is as the invariants say.
    ///
    /// # Errors
    /// A sentence that names the contradiction.
    pub fn check(&self) -> Result<(), String> {
        if self.start() + self.len() > self.capacity() {
            return Err(format!("a buffer reaches behind its object: {self:?}"));
        }
        if self.capacity > 0 && usable_size(self.capacity()) != self.capacity() {
            return Err(format!("a buffer has an odd capacity: {self:?}"));
        }
        let address = self.place & ADDRESS_MASK;
        if self.capacity > 0 && !Arena.contains(address, self.capacity()) {
            return Err(format!("a buffer lies outside the arena: {self:?}"));
        }
        Ok(())
    }

    #[inline]
    fn object(&self) -> NonNull<u8> {
        if self.capacity == 0 {
            return NonNull::dangling();
        }
        let address = (self.place & ADDRESS_MASK) as usize;
        // SAFETY: B1: a live object has an address.
        unsafe { NonNull::new_unchecked(std::ptr::with_exposed_provenance_mut(address)) }
    }

    #[inline]
    fn start(&self) -> usize {
        (self.place >> ADDRESS_BITS) as usize
    }

    #[inline]
    fn set_start(&mut self, start: usize) {
        debug_assert!(start <= START_MAX);
        self.place = self.place & ADDRESS_MASK | (start as u64) << ADDRESS_BITS;
    }

    /// The whole object, room included.
    #[inline]
    fn object_bytes(&mut self) -> &mut [u8] {
        // SAFETY: B1, B3; memory of the arena is always initialised.
        unsafe { std::slice::from_raw_parts_mut(self.object().as_ptr(), self.capacity()) }
    }

    /// Moves all room in the object to the side that needs it, and makes the gap.
    fn slide(&mut self, at: usize, removed: usize, inserted: usize, is_front: bool) {
        let (old_start, old_length) = (self.start(), self.len());
        let length = old_length - removed + inserted;
        let start = if is_front {
            (self.capacity() - length).min(START_MAX)
        } else {
            0
        };
        let object = self.object_bytes();
        let front = old_start..old_start + at;
        let back = old_start + at + removed..old_start + old_length;
        // The part that moves away from the other one goes first.
        if start > old_start {
            object.copy_within(back, start + at + inserted);
            object.copy_within(front, start);
        } else {
            object.copy_within(front, start);
            object.copy_within(back, start + at + inserted);
        }
        self.set_start(start);
        self.length = length as u32;
    }

    /// Moves the bytes to a larger object, with a gap of `inserted` bytes instead of `removed` at
    /// `at`; or makes the object larger where it stands.
    #[cold]
    fn grow(&mut self, at: usize, removed: usize, inserted: usize) {
        let length = self.len() - removed + inserted;
        // If there was room, but on the other side, a class more keeps the bytes from moving to and fro.
        let has_coarse_class = (COARSE_MIN..COARSE_MAX).contains(&length);
        let wanted = if has_coarse_class && length > self.capacity() {
            length
        } else {
            length + length / 8
        };
        let tail = at + removed;
        let usable = u32::try_from(usable_size(self.start() + wanted));
        // SAFETY: B1, B3.
        let is_extended = usable.is_ok()
            && self.capacity > 0
            && unsafe { Arena.extend(self.object(), self.capacity(), self.start() + wanted) };
        if let (true, Ok(usable)) = (is_extended, usable) {
            self.capacity = usable;
            let (start, old_length) = (self.start(), self.len());
            self.object_bytes()
                .copy_within(start + tail..start + old_length, start + at + inserted);
        } else {
            let mut larger = Self::with_capacity(wanted);
            if at < self.len() - tail {
                larger.set_start((larger.capacity() - length).min(START_MAX));
            }
            let start = larger.start();
            let to = &mut larger.object_bytes()[start..start + length];
            let from = self.bytes();
            to[..at].copy_from_slice(&from[..at]);
            to[at + inserted..].copy_from_slice(&from[tail..]);
            *self = larger;
        }
        self.length = u32::try_from(length).expect("a buffer is smaller than 4 GiB");
    }
}

impl Splice for Buffer {
    #[inline]
    fn bytes(&self) -> &[u8] {
        // SAFETY: B1 to B3; memory of the arena is always initialised.
        unsafe { std::slice::from_raw_parts(self.object().add(self.start()).as_ptr(), self.len()) }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`.
        unsafe {
            std::slice::from_raw_parts_mut(self.object().add(self.start()).as_ptr(), self.len())
        }
    }

    fn splice(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        let (start, length, tail) = (self.start(), self.len(), at + removed);
        assert!(tail <= length, "a splice stays within the bytes");
        let is_front = at < length - tail;
        let new_length = length - removed + inserted;
        let fits_behind = start + new_length <= self.capacity();
        // Where the bytes begin if the part in front of the gap moves.
        let moved = (start + removed)
            .checked_sub(inserted)
            .filter(|&moved| moved <= START_MAX);
        match moved {
            Some(moved) if is_front => {
                move_within(self.object_bytes(), start, at, moved);
                self.set_start(moved);
                self.length = new_length as u32;
            }
            _ if fits_behind && (!is_front || removed >= inserted) => {
                self.object_bytes()
                    .copy_within(start + tail..start + length, start + at + inserted);
                self.length = new_length as u32;
            }
            // Enough room for a while, but on the other side.
            _ if new_length + new_length / 8 < self.capacity() => {
                self.slide(at, removed, inserted, is_front);
            }
            _ => self.grow(at, removed, inserted),
        }
        &mut self.bytes_mut()[at..at + inserted]
    }
}

/// Moves `len` bytes from `from` to `to`. Six of them, as in front of the first element of a packed list,
/// without a call.
#[inline]
fn move_within(bytes: &mut [u8], from: usize, len: usize, to: usize) {
    if len == 6
        && let Some(&[a, b, c, d, e, f]) = bytes.get(from..from + 6)
        && let Some(place) = bytes.get_mut(to..to + 6)
    {
        place.copy_from_slice(&[a, b, c, d, e, f]);
    } else {
        bytes.copy_within(from..from + len, to);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shm::arena::Mapping;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_buffer_is_edited_as_a_vector_is(
            steps in proptest::collection::vec(
                (0usize..1000, 0usize..1000, 0usize..2000, any::<u8>(), 0u8..20),
                1..200,
            )
        ) {
            let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
            mapping.enter();
            let empty = Arena.used_bytes();
            let mut buffer = Buffer::new();
            let mut model = Vec::new();
            for (at, removed, inserted, with, kind) in steps {
                let at = match kind {
                    0..7 => 0,
                    7..14 => model.len(),
                    _ => model.len() * at / 1000,
                };
                let removed = (model.len() - at) * removed / 1000;
                let inserted = if kind == 19 { inserted * 40 } else { inserted / 20 };
                buffer.splice(at, removed, inserted).fill(with);
                Splice::splice(&mut model, at, removed, inserted).fill(with);
                prop_assert_eq!(buffer.bytes(), &model[..]);
                buffer.check().map_err(TestCaseError::fail)?;
                if kind == 18 {
                    buffer.shrink();
                    prop_assert_eq!(buffer.bytes(), &model[..]);
                    buffer.check().map_err(TestCaseError::fail)?;
                }
            }
            drop(buffer);
            // The books of the arena may have grown by pages.
            let left = Arena.used_bytes() - empty;
            prop_assert!(left.is_multiple_of(4096) && left < 64 * 1024, "{}", left);
        }
    }

    #[test]
    fn room_is_reserved_on_the_side_that_asks() {
        let mapping = Mapping::private_anywhere(1 << 26, 1).unwrap();
        mapping.enter();
        let mut buffer = Buffer::from(&[7; 1000][..]);
        for in_front in [true, false, true] {
            buffer.reserve(in_front, 100, 8192);
            assert_eq!(buffer.bytes(), [7; 1000]);
            buffer.check().unwrap();
            let capacity = buffer.capacity();
            assert!(
                capacity >= 1100 && buffer.start() == if in_front { capacity - 1000 } else { 0 }
            );
            let at = if in_front { 0 } else { 1000 };
            buffer.splice(at, 0, 100).fill(7);
            assert_eq!(buffer.capacity(), capacity);
            buffer.splice(at, 100, 0);
        }
        // More than `all` only if it is needed.
        buffer.reserve(false, 8000, 4096);
        assert_eq!(buffer.capacity(), usable_size(9000));
    }

    #[test]
    fn queues_move_only_what_is_short() {
        let mapping = Mapping::private_anywhere(1 << 26, 1).unwrap();
        mapping.enter();
        let mut buffer = Buffer::from(&[7; 4096][..]);
        // A removal close to the front leaves its room in front, where an insertion takes it.
        buffer.splice(6, 100, 0);
        assert_eq!(buffer.start(), 100);
        buffer.splice(6, 0, 60).fill(1);
        assert_eq!((buffer.start(), buffer.len()), (40, 4056));
        assert_eq!(buffer.capacity(), 4096);
    }
}
