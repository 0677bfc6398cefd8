//! Writing lengths, strings and numbers.

use proto::number::parse_i64;

use super::mark;
use crate::collections::{StringRef, lzf};

/// Longest string that may be a number of 32 bits.
const NUMBER_LEN_MAX: usize = 11;
/// Shorter strings are not worth compressing.
const COMPRESSIBLE_MIN: usize = 21;
/// Bytes that compressing has to save.
const SAVED_MIN: usize = 4;

/// Where the bytes go.
pub trait Sink {
    /// Takes the next ones.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// See the module.
#[derive(Debug)]
pub struct Writer<'s, S> {
    sink: &'s mut S,
    compresses: bool,
}

impl<'s, S: Sink> Writer<'s, S> {
    /// Writes to `sink`. Whether strings are compressed is `rdbcompression`.
    pub fn new(sink: &'s mut S, compresses: bool) -> Self {
        Self { sink, compresses }
    }

    /// A byte.
    pub fn byte(&mut self, byte: u8) {
        self.sink.put(&[byte]);
    }

    /// Bytes without their length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.sink.put(bytes);
    }

    /// A time, which may be negative.
    pub fn millis(&mut self, time: i64) {
        self.sink.put(&time.to_le_bytes());
    }

    /// A length or a count.
    pub fn length(&mut self, length: u64) {
        match length {
            0..=0x3F => self.byte(length as u8),
            0x40..=0x3FFF => self.sink.put(&(0x4000 | length as u16).to_be_bytes()),
            0x4000..=0xFFFF_FFFF => {
                self.byte(mark::BITS_32);
                self.sink.put(&(length as u32).to_be_bytes());
            }
            _ => {
                self.byte(mark::BITS_64);
                self.sink.put(&length.to_be_bytes());
            }
        }
    }

    /// A string, in the shortest way.
    pub fn string(&mut self, bytes: &[u8]) {
        if bytes.len() <= NUMBER_LEN_MAX
            && let Some(number) = parse_i64(bytes)
            && self.number(number)
        {
            return;
        }
        if self.compresses
            && bytes.len() >= COMPRESSIBLE_MIN
            && let Some(compressed) = lzf::compress(bytes, bytes.len() - SAVED_MIN)
        {
            return self.compressed(&compressed, bytes.len());
        }
        self.length(bytes.len() as u64);
        self.sink.put(bytes);
    }

    /// An element of a collection.
    pub fn element(&mut self, element: StringRef<'_>) {
        match element {
            StringRef::Int(number) if self.number(number) => {}
            element => element.with_bytes(|bytes| self.string(bytes)),
        }
    }

    /// A string of `len` bytes that is compressed already.
    pub fn compressed(&mut self, compressed: &[u8], len: usize) {
        self.byte(mark::ENCODED | mark::COMPRESSED);
        self.length(compressed.len() as u64);
        self.length(len as u64);
        self.sink.put(compressed);
    }

    /// The decimal form of a number, if it has at most 32 bits; says whether it was written.
    fn number(&mut self, number: i64) -> bool {
        if let Ok(number) = i8::try_from(number) {
            self.byte(mark::ENCODED | mark::INT_8);
            self.sink.put(&number.to_le_bytes());
        } else if let Ok(number) = i16::try_from(number) {
            self.byte(mark::ENCODED | mark::INT_16);
            self.sink.put(&number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.byte(mark::ENCODED | mark::INT_32);
            self.sink.put(&number.to_le_bytes());
        } else {
            return false;
        }
        true
    }
}
