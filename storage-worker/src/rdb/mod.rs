//! Values as bytes, as snapshots and DUMP have them: the RDB format of Redis.
//!
//! ```text
//!   length    00xxxxxx                    6 bits
//!             01xxxxxx x                  14 bits
//!             10000000 x x x x            32 bits, big endian
//!             10000001 x ... (8)          64 bits, big endian
//!             11xxxxxx                    no length: how a string is encoded
//!   string    length, bytes
//!             C0 x | C1 x x | C2 x x x x  the decimal form of 8, 16, 32 bits, little endian
//!             C3 length length bytes      compressed: length of the bytes, length of the string
//!   value     a type (below), which stands apart, and what follows from it
//! ```
//!
//! | types | value | |
//! |---|---|---|
//! | 0 | string | |
//! | 1 | list | of strings |
//! | 2, 4 | set, hash | of strings |
//! | 3, 5 | sorted set | scores as text; as doubles |
//! | 9 | hash | a zipmap |
//! | 10, 12, 13, 14 | list, sorted set, hash, list of nodes | ziplists |
//! | 11 | set | an intset |
//! | 16, 17, 18, 20 | hash, sorted set, list of nodes, set | listpacks |
//! | 15, 19, 21 | stream | each version knows more about groups |
//! | 22, 24 | hash with times of fields | of strings; 24 counts from the first time |
//! | 23, 25 | the same | a listpack; 25 has the first time in front |
//!
//! All of them are read; what is written is what the reference writes for the same value, so payloads
//! go both ways. Types of modules (6, 7) are refused. Valkey numbers versions of its own from 80 on; its
//! 22 is another hash with times.
//!
//! Reading trusts nothing. A value is built beside the keyspace, every packed part is walked through and
//! everything that is said twice is compared; order and duplicates are checked; and no memory is taken
//! for what is only announced. So the result is a value in every detail, or [`Malformed`] and no value.
//!
//! ```text
//!   bytes --payload::open--> type, bytes --decode--> Value --store--> key
//!   Found --encode--> type, bytes --payload::seal--> bytes
//! ```
//!
//! Cost: one pass over the bytes; packed forms are copied as they are.
//! Not here: files, what a key has besides its value (`commands::dump`).

pub mod crc64;
mod decode;
mod encode;
pub mod payload;
mod read;
mod value;
mod write;

pub use decode::{Decoder, Malformed};
pub use encode::{type_of, write_value};
pub use read::Reader;
pub use value::Value;
pub use write::{Sink, Writer};

/// Whose payload it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Redis, and Valkey before its version 9.
    Redis,
    /// Valkey from its version 9 on.
    Valkey,
}

/// Numbers of the types.
mod types {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const SORTED_SET_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const SORTED_SET: u8 = 5;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_OF_ZIPLISTS: u8 = 14;
    pub(super) const STREAM_1: u8 = 15;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const SORTED_SET_LISTPACK: u8 = 17;
    pub(super) const LIST_OF_NODES: u8 = 18;
    pub(super) const STREAM_2: u8 = 19;
    pub(super) const SET_LISTPACK: u8 = 20;
    pub(super) const STREAM_3: u8 = 21;
    pub(super) const HASH_TIMED_EARLY: u8 = 22;
    pub(super) const HASH_TRIPLES_EARLY: u8 = 23;
    pub(super) const HASH_TIMED: u8 = 24;
    pub(super) const HASH_TRIPLES: u8 = 25;
}

/// How a node of a list is meant.
mod container {
    /// One large element.
    pub(super) const PLAIN: u64 = 1;
    /// A listpack.
    pub(super) const PACKED: u64 = 2;
}

/// The first byte of lengths that are longer than it, and of encoded strings.
mod mark {
    pub(super) const BITS_32: u8 = 0x80;
    pub(super) const BITS_64: u8 = 0x81;
    pub(super) const ENCODED: u8 = 0xC0;
    pub(super) const INT_8: u8 = 0;
    pub(super) const INT_16: u8 = 1;
    pub(super) const INT_32: u8 = 2;
    pub(super) const COMPRESSED: u8 = 3;
}
