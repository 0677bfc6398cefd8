//! Zipmaps: small hashes before Redis 2.6.
//!
//! ```text
//!   | count 1 | length | name | length | free 1 | value | unused ... |  ...  | 0xFF |
//!
//!   length: one byte below 254, or 254 and four bytes, little endian, from 254 on
//!   count 254: more, or not known
//! ```

use super::{Malformed, Result};

const END: u8 = 0xFF;
const LONG: u8 = 0xFE;
const COUNT_UNKNOWN: u8 = 254;
const BROKEN: Malformed = Malformed("a zipmap is broken");

/// A name and its value.
pub(super) type Pair<'a> = (&'a [u8], &'a [u8]);

/// The pairs of a zipmap that is whole.
pub(super) fn pairs(bytes: &[u8]) -> Result<Vec<Pair<'_>>> {
    let read = || {
        let (&count, mut rest) = bytes.split_first()?;
        let mut pairs = Vec::new();
        while rest.first() != Some(&END) {
            let (pair, behind) = pair(rest)?;
            pairs.push(pair);
            rest = behind;
        }
        let is_counted = count >= COUNT_UNKNOWN || usize::from(count) == pairs.len();
        (rest.len() == 1 && is_counted).then_some(pairs)
    };
    read().ok_or(BROKEN)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        END => None,
        LONG => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let len = u32::from_le_bytes(*len) as usize;
            (len >= usize::from(LONG)).then_some((len, rest))
        }
        len => Some((usize::from(len), rest)),
    }
}

fn pair(bytes: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let (len, rest) = length(bytes)?;
    let (name, rest) = rest.split_at_checked(len)?;
    let (len, rest) = length(rest)?;
    let (&free, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(len)?;
    let (_, rest) = rest.split_at_checked(usize::from(free))?;
    Some(((name, value), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_with_their_gaps() {
        let bytes = b"\x02\x01f\x01\x02vxx\x01g\x00\x00\xFF";
        let expected: Vec<Pair<'_>> = vec![(b"f", b"v"), (b"g", b"")];
        assert_eq!(pairs(bytes), Ok(expected));
        assert_eq!(pairs(b"\xFE\x01f\x01\x00v\xFF").unwrap().len(), 1);
        for end in 0..bytes.len() {
            assert_eq!(pairs(&bytes[..end]), Err(BROKEN));
        }
        for broken in [
            &b"\x01\x01f\x01\x00v\xFF\xFF"[..],
            b"\x02\x01f\x01\x00v\xFF",
            b"\x01\x01f\x01\x09v\xFF",
            b"\x01\x01f\xFF",
            b"\x01\xFE\x01\x00\x00\x00f\x01\x00v\xFF",
        ] {
            assert_eq!(pairs(broken), Err(BROKEN));
        }
    }
}
