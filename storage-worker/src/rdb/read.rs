//! Reading lengths, strings and numbers, from bytes that may say anything.

use std::borrow::Cow;

use super::decode::Malformed;
use super::mark;
use crate::collections::lzf;

/// A position in bytes. Everything it returns was there.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Longest string that is made of a compressed one.
    string_max: u64,
}

impl<'a> Reader<'a> {
    /// Reads from the beginning. A string longer than `string_max` is refused.
    #[must_use]
    pub fn new(bytes: &'a [u8], string_max: u64) -> Self {
        Self {
            rest: bytes,
            string_max,
        }
    }

    /// What was not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], Malformed> {
        let taken = usize::try_from(count)
            .ok()
            .and_then(|count| self.rest.split_at_checked(count));
        let (taken, rest) = taken.ok_or(Malformed::TOO_SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Malformed::TOO_SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// If there is none.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    /// Eight bytes, little endian: a time.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn millis(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    /// Eight bytes: a double.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn double(&mut self) -> Result<f64, Malformed> {
        self.array().map(f64::from_le_bytes)
    }

    /// Sixteen bytes, big endian.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn bits_128(&mut self) -> Result<u128, Malformed> {
        self.array().map(u128::from_be_bytes)
    }

    /// A length or a count.
    ///
    /// # Errors
    /// If there is none.
    pub fn length(&mut self) -> Result<u64, Malformed> {
        let first = self.byte()?;
        self.length_from(first)
    }

    fn length_from(&mut self, first: u8) -> Result<u64, Malformed> {
        match first {
            0..=0x3F => Ok(u64::from(first)),
            0x40..=0x7F => Ok(u64::from(first & 0x3F) << 8 | u64::from(self.byte()?)),
            mark::BITS_32 => self.array().map(|bytes| u32::from_be_bytes(bytes).into()),
            mark::BITS_64 => self.array().map(u64::from_be_bytes),
            _ => Err(Malformed("a length is none")),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// If there is none, or it is too long.
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>, Malformed> {
        let first = self.byte()?;
        if first & mark::ENCODED != mark::ENCODED {
            let len = self.length_from(first)?;
            return self.take(self.checked_len(len)?).map(Cow::Borrowed);
        }
        let number = match first & !mark::ENCODED {
            mark::INT_8 => i8::from_le_bytes(self.array()?).into(),
            mark::INT_16 => i16::from_le_bytes(self.array()?).into(),
            mark::INT_32 => i32::from_le_bytes(self.array()?),
            mark::COMPRESSED => return self.compressed(),
            _ => return Err(Malformed("a string has an unknown encoding")),
        };
        Ok(itoa::Buffer::new()
            .format(number)
            .as_bytes()
            .to_vec()
            .into())
    }

    fn checked_len(&self, len: u64) -> Result<u64, Malformed> {
        if len <= self.string_max {
            Ok(len)
        } else {
            Err(Malformed("a string is longer than a client may send it"))
        }
    }

    fn compressed(&mut self) -> Result<Cow<'a, [u8]>, Malformed> {
        let compressed_len = self.length()?;
        let len = self.length()?;
        let len = self.checked_len(len)?;
        let compressed = self.take(compressed_len)?;
        let bytes = usize::try_from(len)
            .ok()
            .and_then(|len| lzf::decompress(compressed, len));
        bytes
            .map(Cow::Owned)
            .ok_or(Malformed("a compressed string is broken"))
    }
}
