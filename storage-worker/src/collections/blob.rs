//! A short string as an object of its own in the arena: what the tables of big collections name.
//!
//! ```text
//!   | length 1, 2 or 5 | bytes ... |     lengths below 192 take one byte, below 16,320 two
//! ```
//!
//! Nothing is aligned and the size of the object is not stored: it follows from the length.
//!
//! Invariants
//!   S1  a blob that was made and not freed is live; whoever frees it forgets all copies of it.
//!   S2  `size` has the size class that the object was taken with.

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

/// Lengths below this take one byte.
const SHORT: usize = 192;
/// Lengths below this take two.
const MIDDLE: usize = SHORT + (63 << 8);
/// First byte of a length of five.
const LONG: u8 = 255;

/// A blob by address. Copies are cheap and unchecked (S1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blob(NonNull<u8>);

/// Bytes that the length takes.
#[inline]
fn head_bytes(length: usize) -> usize {
    if length < SHORT {
        1
    } else if length < MIDDLE {
        2
    } else {
        5
    }
}

impl Blob {
    /// Copies the bytes into a new object.
    pub(crate) fn create(bytes: &[u8]) -> Blob {
        let (length, head) = (bytes.len(), head_bytes(bytes.len()));
        assert!(u32::try_from(length).is_ok(), "strings are below 4 GiB");
        let object = Arena.take(head + length);
        // SAFETY: the object has `head + length` bytes, and nobody else knows it.
        unsafe {
            match head {
                1 => object.write(length as u8),
                2 => object.cast::<[u8; 2]>().write([
                    (SHORT + (length - SHORT) / 256) as u8,
                    (length - SHORT) as u8,
                ]),
                _ => {
                    object.write(LONG);
                    object
                        .add(1)
                        .cast::<[u8; 4]>()
                        .write((length as u32).to_le_bytes());
                }
            }
            object
                .add(head)
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), length);
        }
        Blob(object)
    }

    /// The blob that lives at this address (S1).
    #[inline]
    pub(crate) fn at(object: NonNull<u8>) -> Blob {
        Blob(object)
    }

    /// Its address.
    #[inline]
    pub(crate) fn object(self) -> NonNull<u8> {
        self.0
    }

    /// (length, bytes that it takes)
    #[inline]
    fn length(self) -> (usize, usize) {
        // SAFETY: S1; how many bytes there are at least follows from the first one.
        unsafe {
            let first = self.0.read();
            if usize::from(first) < SHORT {
                (usize::from(first), 1)
            } else if first < LONG {
                let low = usize::from(self.0.add(1).read());
                (((usize::from(first) - SHORT) << 8) + low + SHORT, 2)
            } else {
                let word = self.0.add(1).cast::<[u8; 4]>().read();
                (u32::from_le_bytes(word) as usize, 5)
            }
        }
    }

    /// The string. Whoever owns the blob lends it no longer than the blob lives.
    #[inline]
    pub(crate) fn bytes<'a>(self) -> &'a [u8] {
        let (length, head) = self.length();
        // SAFETY: S1, S2: the object has `head + length` bytes.
        unsafe { std::slice::from_raw_parts(self.0.add(head).as_ptr(), length) }
    }

    /// Bytes that it takes in the arena.
    #[inline]
    pub(crate) fn size(self) -> usize {
        let (length, head) = self.length();
        usable_size(head + length)
    }

    /// Gives the object back.
    #[inline]
    pub(crate) fn free(self) {
        let size = self.size();
        // SAFETY: S2; by S1 nobody uses it any more.
        unsafe { Arena.give(self.0, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::arena::Mapping;

    #[test]
    fn blobs_of_every_length_keep_their_bytes() {
        let mapping = Mapping::private_anywhere(1 << 30, 1).unwrap();
        mapping.enter();
        let before = Arena.used_bytes();
        for length in (0..500).chain(16_000..16_700).chain([70_000, 1 << 20]) {
            let bytes: Vec<u8> = (0..length).map(|number| number as u8).collect();
            let blob = Blob::create(&bytes);
            assert_eq!(blob.bytes(), bytes);
            assert_eq!(
                Blob::at(blob.object()).size(),
                usable_size(length + head_bytes(length))
            );
            blob.free();
        }
        assert_eq!(Arena.used_bytes(), before);
        assert_eq!(Arena.check(), Ok(()));
    }
}
