//! The identity of an entry: a time in milliseconds and a number that counts up within it.

use crate::collections::ordered::Record;

/// Longest text of an id: two numbers of 20 digits and what is between them.
const TEXT_MAX: usize = 41;

/// See the module. Ids are ordered by time, then by number.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds since 1970, or whatever the client counts.
    pub ms: u64,
    /// Number within the millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The least id. No entry has it.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The greatest id.
    pub const MAX: Self = Self {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The id that follows; none follows the greatest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.to_bits().checked_add(1).map(Self::from_bits)
    }

    /// The id in front of this one; none is in front of the least.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        self.to_bits().checked_sub(1).map(Self::from_bits)
    }

    /// The id as one number of 128 bits; big-endian, it is a key of Redis' radix tree.
    #[must_use]
    pub fn to_bits(self) -> u128 {
        u128::from(self.ms) << 64 | u128::from(self.seq)
    }

    /// The id that such a number stands for.
    #[must_use]
    pub fn from_bits(bits: u128) -> Self {
        Self {
            ms: (bits >> 64) as u64,
            seq: bits as u64,
        }
    }

    /// The difference to another id in both parts, as nodes keep it; either may wrap.
    pub(super) fn minus(self, base: Self) -> (i64, i64) {
        (
            self.ms.wrapping_sub(base.ms).cast_signed(),
            self.seq.wrapping_sub(base.seq).cast_signed(),
        )
    }

    /// The id with such a difference to this one.
    #[inline]
    pub(super) fn plus(self, ms: i64, seq: i64) -> Self {
        Self {
            ms: self.ms.wrapping_add_signed(ms),
            seq: self.seq.wrapping_add_signed(seq),
        }
    }

    /// The id as clients write it.
    #[must_use]
    pub fn text(self) -> IdText {
        let mut text = IdText {
            bytes: [0; TEXT_MAX],
            start: TEXT_MAX,
        };
        text.push_front(self.seq);
        text.start -= 1;
        text.bytes[text.start] = b'-';
        text.push_front(self.ms);
        text
    }
}

impl Record for StreamId {
    type Key = Self;

    #[inline]
    fn key(&self) -> Self {
        *self
    }
}

/// Text of an id, in place. It is made from its end, so that nothing has to be moved.
#[derive(Debug, Clone, Copy)]
pub struct IdText {
    bytes: [u8; TEXT_MAX],
    start: usize,
}

impl IdText {
    #[inline]
    fn push_front(&mut self, mut number: u64) {
        while number >= 100 {
            self.push_pair(number % 100);
            number /= 100;
        }
        if number >= 10 {
            self.push_pair(number);
        } else {
            self.start -= 1;
            self.bytes[self.start] = b'0' + number as u8;
        }
    }

    #[inline]
    fn push_pair(&mut self, pair: u64) {
        self.start -= 2;
        self.bytes[self.start] = b'0' + (pair / 10) as u8;
        self.bytes[self.start + 1] = b'0' + (pair % 10) as u8;
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_in_decimal() {
        for number in [0, 9, 10, 99, 100, 101, 12_345, 1_700_000_000_123, u64::MAX] {
            for seq in [0, 7, 10, 99_999, u64::MAX] {
                let id = StreamId { ms: number, seq };
                assert_eq!(id.text().as_bytes(), format!("{number}-{seq}").as_bytes());
            }
        }
    }
}
