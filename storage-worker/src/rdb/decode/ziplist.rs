//! Ziplists: what listpacks were until Redis 7.
//!
//! ```text
//!   +---------+--------+---------+-------+-------+- -+------+
//!   | bytes 4 | tail 4 | count 2 | entry | entry |   | 0xFF |      count 65535: more, or not known
//!   +---------+--------+---------+-------+-------+- -+------+
//!
//!   entry = length of the one in front of it (1 byte, or 0xFE and 4), encoding, data
//!     00xxxxxx                 bytes, fewer than 64
//!     01xxxxxx x               bytes, fewer than 16384
//!     10...... x x x x         bytes, big endian
//!     C0 / F0 / D0 / E0        16, 24, 32, 64 bits, signed, little endian
//!     FE                       8 bits, signed
//!     F1 ..= FD                0 ..= 12
//! ```

use super::{Malformed, Result};
use crate::collections::StringRef;
use crate::collections::listpack::{self, BYTES_MAX};

const HEADER_BYTES: usize = 10;
const END: u8 = 0xFF;
const LONG_LENGTH: u8 = 0xFE;
const COUNT_UNKNOWN: u16 = u16::MAX;
const BROKEN: Malformed = Malformed("a ziplist is broken");

/// The elements of a ziplist that is whole, as a listpack.
pub(super) fn to_listpack(bytes: &[u8]) -> Result<Vec<u8>> {
    // As a listpack it takes hardly more.
    if bytes.len() > BYTES_MAX {
        return Err(Malformed("a ziplist is too long"));
    }
    let ziplist = Ziplist::check(bytes).ok_or(BROKEN)?;
    let mut target = listpack::EMPTY.to_vec();
    listpack::push_back_all(&mut target, ziplist);
    Ok(target)
}

/// Entries that are known to be whole.
#[derive(Debug, Clone)]
struct Ziplist<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = StringRef<'a>;

    fn next(&mut self) -> Option<StringRef<'a>> {
        let entry = Entry::read(self.rest)?;
        self.rest = entry.rest;
        Some(entry.element)
    }
}

impl<'a> Ziplist<'a> {
    /// Walks over all entries and compares everything that is said twice.
    fn check(bytes: &'a [u8]) -> Option<Self> {
        let (&total, rest) = bytes.split_first_chunk::<4>()?;
        let (&tail, rest) = rest.split_first_chunk::<4>()?;
        let (&count, rest) = rest.split_first_chunk::<2>()?;
        let (&end, entries) = rest.split_last()?;
        if u32::from_le_bytes(total) as usize != bytes.len() || end != END {
            return None;
        }
        let (mut rest, mut seen) = (entries, 0usize);
        let (mut last_len, mut last_at) = (0, HEADER_BYTES);
        while !rest.is_empty() {
            let entry = Entry::read(rest)?;
            if entry.len_before != last_len {
                return None;
            }
            last_at = HEADER_BYTES + entries.len() - rest.len();
            last_len = rest.len() - entry.rest.len();
            rest = entry.rest;
            seen += 1;
        }
        let count = u16::from_le_bytes(count);
        let is_counted = count == COUNT_UNKNOWN || usize::from(count) == seen;
        let is_whole = is_counted && u32::from_le_bytes(tail) as usize == last_at;
        is_whole.then_some(Self { rest: entries })
    }
}

struct Entry<'a> {
    len_before: usize,
    element: StringRef<'a>,
    rest: &'a [u8],
}

impl<'a> Entry<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&first, rest) = bytes.split_first()?;
        let (len_before, rest) = match first {
            END => return None,
            LONG_LENGTH => {
                let (len, rest) = rest.split_first_chunk::<4>()?;
                (u32::from_le_bytes(*len) as usize, rest)
            }
            len => (usize::from(len), rest),
        };
        let (&encoding, rest) = rest.split_first()?;
        let (element, rest) = element(encoding, rest)?;
        Some(Self {
            len_before,
            element,
            rest,
        })
    }
}

fn element(encoding: u8, rest: &[u8]) -> Option<(StringRef<'_>, &[u8])> {
    let (len, rest) = match encoding {
        0..=0x3F => (usize::from(encoding), rest),
        0x40..=0x7F => {
            let (&low, rest) = rest.split_first()?;
            (usize::from(encoding & 0x3F) << 8 | usize::from(low), rest)
        }
        0x80..=0xBF => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_be_bytes(*len) as usize, rest)
        }
        _ => {
            let (number, rest) = number(encoding, rest)?;
            return Some((StringRef::Int(number), rest));
        }
    };
    let (bytes, rest) = rest.split_at_checked(len)?;
    Some((StringRef::Bytes(bytes), rest))
}

fn number(encoding: u8, rest: &[u8]) -> Option<(i64, &[u8])> {
    Some(match encoding {
        0xC0 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (i16::from_le_bytes(*bytes).into(), rest)
        }
        0xD0 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (i32::from_le_bytes(*bytes).into(), rest)
        }
        0xE0 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (i64::from_le_bytes(*bytes), rest)
        }
        0xF0 => {
            let (&[a, b, c], rest) = rest.split_first_chunk()?;
            ((i32::from_le_bytes([0, a, b, c]) >> 8).into(), rest)
        }
        0xFE => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (i8::from_le_bytes(*bytes).into(), rest)
        }
        0xF1..=0xFD => (i64::from(encoding) - 0xF1, rest),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::listpack::Listpack;

    fn ziplist(count: u16, tail: u32, entries: &[u8]) -> Vec<u8> {
        let total = (HEADER_BYTES + entries.len() + 1) as u32;
        let mut bytes = total.to_le_bytes().to_vec();
        bytes.extend_from_slice(&tail.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(entries);
        bytes.push(END);
        bytes
    }

    #[test]
    fn every_encoding_becomes_an_element() {
        let mut entries =
            b"\x00\x03abc\x05\xF1\x02\xFD\x02\xFE\x80\x03\xC0\x00\x80\x04\xF0\xFF\xFF\xFF".to_vec();
        entries
            .extend_from_slice(b"\x05\xD0\x01\x00\x00\x80\x06\xE0\x01\x00\x00\x00\x00\x00\x00\x80");
        entries.extend_from_slice(b"\x0A\x40\x01x\xFE\x04\x00\x00\x00\x80\x00\x00\x00\x01y");
        let tail = (HEADER_BYTES + entries.len() - 11) as u32;
        let bytes = ziplist(10, tail, &entries);
        let packed = to_listpack(&bytes).unwrap();
        let elements: Vec<String> = Listpack::check(&packed)
            .unwrap()
            .iter()
            .map(|element| String::from_utf8(element.to_vec()).unwrap())
            .collect();
        assert_eq!(
            elements,
            [
                "abc",
                "0",
                "12",
                "-128",
                "-32768",
                "-1",
                "-2147483647",
                "-9223372036854775807",
                "x",
                "y"
            ]
        );
    }

    #[test]
    fn everything_that_is_said_twice_must_agree() {
        let entries = b"\x00\x01a\x03\x01b";
        assert!(to_listpack(&ziplist(2, 13, entries)).is_ok());
        assert!(to_listpack(&ziplist(COUNT_UNKNOWN, 13, entries)).is_ok());
        for broken in [
            ziplist(1, 13, entries),
            ziplist(3, 13, entries),
            ziplist(2, 10, entries),
            ziplist(2, 14, entries),
            ziplist(2, 13, b"\x00\x01a\x02\x01b"),
            ziplist(2, 13, b"\x00\x01a\x03\x02b"),
            ziplist(2, 13, b"\x00\x01a\x03\xFF\x01"),
            ziplist(2, 13, b"\x00\x01a\xFF\x01b"),
        ] {
            assert_eq!(to_listpack(&broken), Err(BROKEN), "{broken:?}");
        }
        let whole = ziplist(2, 13, entries);
        for end in 0..whole.len() {
            assert_eq!(to_listpack(&whole[..end]), Err(BROKEN));
        }
    }
}
