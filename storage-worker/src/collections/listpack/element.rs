//! One element of a listpack: its encoding, and the length behind it.
//!
//! ```text
//!   | encoding | data ... | length of both |
//!   |<------------ span ------------------>|
//! ```

use crate::collections::StringRef;
use proto::bytes::copy;

const INT_13: u8 = 0b1100_0000;
const BYTES_6: u8 = 0b1000_0000;
const BYTES_12: u8 = 0b1110_0000;
const BYTES_32: u8 = 0xF0;
const INT_16: u8 = 0xF1;
const INT_24: u8 = 0xF2;
const INT_32: u8 = 0xF3;
const INT_64: u8 = 0xF4;

/// Longest encoding with its number: a byte and 64 bits.
const HEAD_MAX: usize = 9;
/// Longest stored length.
pub(super) const LENGTH_BYTES_MAX: usize = 5;

/// Bytes that the length behind an element of `len` bytes takes.
#[inline]
pub(super) fn length_bytes(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

/// Writes the length of an element into exactly the bytes that it takes.
#[inline]
pub(super) fn write_length(to: &mut [u8], len: usize) {
    let mut rest = len;
    for (distance, byte) in to.iter_mut().rev().enumerate() {
        *byte = (rest & 127) as u8 | 128;
        rest >>= 7;
        debug_assert!(distance < LENGTH_BYTES_MAX);
    }
    to[0] &= 127;
}

/// Length of encoding and data that the element in front of `offset` has.
#[inline]
fn read_length(bytes: &[u8], offset: usize) -> usize {
    let mut value = 0;
    let mut shift = 0;
    let mut at = offset - 1;
    loop {
        let byte = bytes[at];
        value |= usize::from(byte & 127) << shift;
        if byte & 128 == 0 || shift == 28 {
            return value;
        }
        shift += 7;
        at -= 1;
    }
}

/// Bytes of the whole element in front of `offset`.
#[inline]
pub(super) fn len_before(bytes: &[u8], offset: usize) -> usize {
    let len = read_length(bytes, offset);
    len + length_bytes(len)
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Bytes of encoding and data of the element at `offset`; 0 if its first byte means nothing, or what
/// is there ends too early to tell. What it says may reach behind the end.
#[inline]
pub(super) fn content_len(bytes: &[u8], offset: usize) -> usize {
    let byte = |distance: usize| bytes.get(offset + distance).map(|&byte| usize::from(byte));
    let Some(first) = byte(0) else { return 0 };
    match first as u8 {
        0..=0x7F => 1,
        0x80..=0xBF => 1 + (first & 0x3F),
        0xC0..=0xDF => 2,
        0xE0..=0xEF => byte(1).map_or(0, |low| 2 + ((first & 0x0F) << 8 | low)),
        BYTES_32 => match bytes.get(offset + 1..offset + 5) {
            Some(&[a, b, c, d]) => 5 + u32::from_le_bytes([a, b, c, d]) as usize,
            _ => 0,
        },
        INT_16 => 3,
        INT_24 => 4,
        INT_32 => 5,
        INT_64 => 9,
        _ => 0,
    }
}

/// Bytes of the whole element at `offset`.
#[inline]
pub(super) fn span(bytes: &[u8], offset: usize) -> usize {
    let first = bytes[offset];
    // The two cases that nearly all elements are.
    if first < 0x80 {
        return 2;
    }
    if first < 0xC0 {
        return usize::from(first & 0x3F) + 2;
    }
    let len = content_len(bytes, offset);
    debug_assert!(len > 0, "P2");
    len + length_bytes(len)
}

/// The element at `offset`, and the bytes of the whole of it.
#[inline]
pub(super) fn decode(bytes: &[u8], offset: usize) -> (StringRef<'_>, usize) {
    let first = bytes[offset];
    if first < 0x80 {
        return (StringRef::Int(i64::from(first)), 2);
    }
    if first < 0xC0 {
        let len = usize::from(first & 0x3F);
        return (
            StringRef::Bytes(&bytes[offset + 1..offset + 1 + len]),
            len + 2,
        );
    }
    decode_long(bytes, offset)
}

fn decode_long(bytes: &[u8], offset: usize) -> (StringRef<'_>, usize) {
    let len = content_len(bytes, offset);
    let text = |head: usize| StringRef::Bytes(&bytes[offset + head..offset + len]);
    let element = match bytes[offset] {
        first @ 0xC0..=0xDF => {
            let bits = u16::from(first & 0x1F) << 8 | u16::from(bytes[offset + 1]);
            // Up to the sign bit of 16 and back.
            StringRef::Int(i64::from((bits << 3).cast_signed() >> 3))
        }
        0xE0..=0xEF => text(2),
        BYTES_32 => text(5),
        INT_16 => StringRef::Int(i16::from_le_bytes(array(bytes, offset + 1)).into()),
        INT_24 => {
            let [a, b, c] = array(bytes, offset + 1);
            StringRef::Int((i32::from_le_bytes([0, a, b, c]) >> 8).into())
        }
        INT_32 => StringRef::Int(i32::from_le_bytes(array(bytes, offset + 1)).into()),
        INT_64 => StringRef::Int(i64::from_le_bytes(array(bytes, offset + 1))),
        _ => unreachable!("P2: every element has an encoding"),
    };
    (element, len + length_bytes(len))
}

/// An element that is about to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoded<'a> {
    head: [u8; HEAD_MAX],
    head_len: u8,
    data: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// The shortest encoding of the element; bytes that are the decimal form of a number become it.
    #[inline]
    pub(super) fn new(element: StringRef<'a>) -> Self {
        match element {
            StringRef::Int(number) => Self::number(number),
            StringRef::Bytes(bytes) => match proto::number::parse_i64(bytes) {
                Some(number) => Self::number(number),
                None => Self::bytes(bytes),
            },
        }
    }

    #[inline]
    fn bytes(data: &'a [u8]) -> Self {
        let mut head = [0; HEAD_MAX];
        let len = data.len();
        let head_len = if len < 64 {
            head[0] = BYTES_6 | len as u8;
            1
        } else if len < 4096 {
            head[0] = BYTES_12 | (len >> 8) as u8;
            head[1] = len as u8;
            2
        } else {
            // Whoever writes keeps the whole below `BYTES_MAX`.
            head[0] = BYTES_32;
            head[1..5].copy_from_slice(&(len as u32).to_le_bytes());
            5
        };
        Self {
            head,
            head_len,
            data,
        }
    }

    #[inline]
    fn number(number: i64) -> Self {
        let mut head = [0; HEAD_MAX];
        let (first, bits) = match number {
            0..=127 => (number as u8, 0),
            -4096..=4095 => {
                head[1] = number as u8;
                (INT_13 | ((number >> 8) & 0x1F) as u8, 8)
            }
            -0x8000..=0x7FFF => (INT_16, 16),
            -0x80_0000..=0x7F_FFFF => (INT_24, 24),
            -0x8000_0000..=0x7FFF_FFFF => (INT_32, 32),
            _ => (INT_64, 64),
        };
        head[0] = first;
        let data_len = bits / 8;
        if data_len > 1 {
            head[1..=data_len].copy_from_slice(&number.to_le_bytes()[..data_len]);
        }
        Self {
            head,
            head_len: 1 + data_len as u8,
            data: &[],
        }
    }

    #[inline]
    fn content_len(&self) -> usize {
        usize::from(self.head_len) + self.data.len()
    }

    /// Bytes of the whole element.
    #[inline]
    pub(super) fn span(&self) -> usize {
        let len = self.content_len();
        len + length_bytes(len)
    }

    /// Writes the element into exactly `span` bytes.
    #[inline]
    pub(super) fn write(&self, to: &mut [u8]) {
        let len = self.content_len();
        let head_len = usize::from(self.head_len);
        to[0] = self.head[0];
        match head_len {
            1 => {}
            2 => to[1] = self.head[1],
            _ => to[1..head_len].copy_from_slice(&self.head[1..head_len]),
        }
        copy(&mut to[head_len..len], self.data);
        if len <= 127 {
            to[len] = len as u8;
        } else if let [high, low] = &mut to[len..] {
            // From 128 to 16 KiB.
            *high = (len >> 7) as u8 & 127;
            *low = len as u8 | 128;
        } else {
            write_length(&mut to[len..], len);
        }
    }
}

/// Bytes that an element of so many bytes takes at most.
#[inline]
#[must_use]
pub const fn encoded_len_max(len: usize) -> usize {
    // The longest encoding of bytes has 5 in front of them, that of a number 9.
    len + 5 + LENGTH_BYTES_MAX
}

/// Bytes that an element takes in a listpack.
#[must_use]
pub fn encoded_len<'a>(element: impl Into<StringRef<'a>>) -> usize {
    Encoded::new(element.into()).span()
}
