//! Data structures and algorithms over plain bytes and in the arena: no keys, no replies, no clock.
//!
//! Everything here can be tested (and is) against a naive model without a keyspace or a ring.
//!
//! ```text
//!   listpack                 packed elements in one piece of memory: every small collection
//!   intset                   packed integers: small sets of nothing else
//!   set_table                the members of a big set: a dictionary over small objects
//!   list                     long lists: many listpacks and a directory of them
//!   lzf                      compression of snapshots and of the middle of lists
//!   splice, buffer           memory that can be edited in the middle
//!   hash                     fields with values that may expire
//!   sorted_set               members with scores, by name and by rank
//!   ordered                  a tree of small records, by key and in order
//!   blob, owned              a string as an object of its own; a structure that no key has yet
//!   stream                   entries by id, in listpacks, and groups of consumers
//!   geohash                  points on the globe as numbers
//!   partial_sort             some places of a sorted order
//!   bit_field, bit_ops,      what the bitmap and string groups do to the bytes of a string
//!   subsequence
//! ```
//!
//! Not here: the meaning of a type (`commands`), where a value hangs (`keyspace`).

pub mod bit_field;
pub mod bit_ops;
#[expect(unsafe_code, reason = "a blob is raw memory of the arena (S1, S2)")]
mod blob;
#[expect(
    unsafe_code,
    reason = "the bytes of a buffer are raw memory of the arena (B1 to B3)"
)]
mod buffer;
pub mod geohash;
pub mod hash;
pub mod hyperloglog;
pub mod intset;
#[expect(unsafe_code, reason = "a list is freed by its address")]
pub mod list;
pub mod listpack;
pub mod lzf;
#[expect(unsafe_code, reason = "nodes are raw memory of the arena (O4)")]
pub mod ordered;
#[expect(
    unsafe_code,
    reason = "an owned structure is known by its address (N1)"
)]
mod owned;
mod partial_sort;
#[expect(
    unsafe_code,
    reason = "a table is an object of the arena, taken and given back by hand (T1)"
)]
pub mod set_table;
#[expect(
    unsafe_code,
    reason = "members and nodes are raw memory of the arena (Z1, Z2)"
)]
pub mod sorted_set;
mod splice;
#[expect(
    unsafe_code,
    reason = "streams and named objects are raw memory of the arena"
)]
pub mod stream;
pub mod subsequence;

use std::ptr::NonNull;

pub use buffer::Buffer;
pub(crate) use buffer::COARSE_MAX;
pub use owned::Owned;
pub use partial_sort::partial_sort;
pub use splice::Splice;

/// A string: as a value of its own, or as an element of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringRef<'a> {
    /// Kept as a number; its text is the decimal form.
    Int(i64),
    /// Kept as bytes.
    Bytes(&'a [u8]),
}

impl<'a> From<&'a [u8]> for StringRef<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        StringRef::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for StringRef<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        StringRef::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for StringRef<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        StringRef::Bytes(bytes)
    }
}

impl From<i64> for StringRef<'_> {
    fn from(number: i64) -> Self {
        StringRef::Int(number)
    }
}

impl StringRef<'_> {
    /// Calls `look` with the text.
    #[inline]
    pub fn with_bytes<R>(self, look: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            StringRef::Int(number) => look(itoa::Buffer::new().format(number).as_bytes()),
            StringRef::Bytes(bytes) => look(bytes),
        }
    }

    /// The text in memory of its own.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        match self {
            StringRef::Int(number) => itoa::Buffer::new().format(number).as_bytes().to_vec(),
            StringRef::Bytes(bytes) => bytes.to_vec(),
        }
    }
}

/// A value that is more than one piece of packed bytes. Everything it owns is in the arena, and no
/// pointer in it leaves the arena.
pub trait Structure: Sized {
    /// Frees all that it owns, and itself.
    fn free(this: NonNull<Self>);

    /// Frees about `budget` elements; true if more is left. Once this was called, nothing else may
    /// be; when it says false, the object itself is gone.
    fn free_some(this: NonNull<Self>, budget: usize) -> bool;

    /// A second one with the same content that shares nothing with this one.
    fn copy(&self) -> NonNull<Self>;

    /// Number of elements: decides whether freeing is lazy.
    fn len(&self) -> usize;

    /// Whether it has no element.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it takes in the arena; more than `samples` elements need not be looked at.
    fn memory_bytes(&self, samples: usize) -> usize;

    /// Compares everything that must agree.
    ///
    /// # Errors
    /// A sentence that names the first contradiction.
    fn check(&self) -> Result<(), String>;
}
