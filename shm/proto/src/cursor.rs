//! The cursor of SCAN: a slot and a place inside it, in one decimal number below 2^62.
//!
//! ```text
//!   bit 61        48 47                                    0
//!      | slot, 14   | rest: place inside the slot, 48       |
//! ```
//!
//! Why: a scan walks slots upwards, so the gateway can tell from the cursor alone which worker goes on,
//! and a cursor stays good when slots move or tables split. What `rest` means is the owner's business.
//!
//! Invariant: 0 begins a scan and, as an answer, ends it; no page in between is answered with 0.

use crate::slot::SLOT_COUNT;

/// Bits of the place inside a slot.
pub const REST_BITS: u32 = 48;

/// The cursor that goes on in `slot` at `rest` (its lower [`REST_BITS`] bits count).
#[inline]
#[must_use]
pub const fn of(slot: u16, rest: u64) -> u64 {
    ((slot % SLOT_COUNT) as u64) << REST_BITS | rest & ((1 << REST_BITS) - 1)
}

/// Reads a cursor that a client sends. What is not a plain number is read as C does it: blanks in front
/// are skipped, a sign counts (-1 is 2^64 - 1) and the text ends at its first NUL; but a plain number
/// below zero that fits 64 bits is refused.
#[must_use]
pub fn parse(text: &[u8]) -> Option<u64> {
    if let Some(number) = crate::number::parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let text = text.split(|&byte| byte == 0).next()?;
    let blanks = text
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0B)
        .count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
    let number = match &digits[zeros..] {
        [] if zeros > 0 => 0,
        digits => crate::number::parse_u64(digits)?,
    };
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// The cursor that begins with `slot`.
#[inline]
#[must_use]
pub const fn start_of(slot: u16) -> u64 {
    of(slot, 0)
}

/// The slot of a cursor. Numbers that no scan has answered with give a slot, too.
#[inline]
#[must_use]
pub const fn slot(cursor: u64) -> u16 {
    (cursor >> REST_BITS) as u16 % SLOT_COUNT
}

/// The place inside the slot.
#[inline]
#[must_use]
pub const fn rest(cursor: u64) -> u64 {
    cursor & ((1 << REST_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    // As Redis 8.0.6 reads them.
    #[test]
    fn cursors_are_read_as_by_the_reference() {
        for (text, want) in [
            ("0", Some(0)),
            ("+0", Some(0)),
            ("-0", Some(0)),
            ("00", Some(0)),
            ("017", Some(17)),
            (" 1", Some(1)),
            ("\t\x0b +1", Some(1)),
            ("18446744073709551615", Some(u64::MAX)),
            ("-9223372036854775809", Some((1 << 63) - 1)),
            ("-18446744073709551615", Some(1)),
            (" -1", Some(u64::MAX)),
            ("5\0junk", Some(5)),
            ("", None),
            ("\0", None),
            (" ", None),
            ("+", None),
            ("-", None),
            ("-1", None),
            ("-9223372036854775808", None),
            ("18446744073709551616", None),
            ("-18446744073709551616", None),
            ("1 ", None),
            ("--1", None),
            ("+-0", None),
            ("0x1", None),
            ("abc", None),
        ] {
            assert_eq!(parse(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn both_parts_come_back() {
        for (place, inside) in [(0, 0), (0, 1), (16383, (1 << 48) - 1), (5, 77)] {
            let cursor = of(place, inside);
            assert_eq!((slot(cursor), rest(cursor)), (place, inside));
            assert!(cursor < 1 << 62);
        }
        assert_eq!(slot(u64::MAX), 16383);
    }
}
