//! Numbers to text and back, digit for digit as Redis does it.
//!
//! ```text
//!   parse_i64      what Redis stores as an integer: canonical decimal, nothing else
//!   double         64-bit floats: scores, RESP3 doubles
//!   long_double    80-bit floats: INCRBYFLOAT and HINCRBYFLOAT
//! ```
//!
//! Why so exact: whether `SET k 010` is an integer decides its encoding, `INCR`'s error and its
//! memory; and the digits of a float are compared as text by clients and tests.

mod big;
mod double;
mod grisu;
mod long_double;
mod round;
mod scan;

pub use double::{DoubleText, parse_f64, parse_score_bound};
pub use long_double::LongDouble;

/// The integer that `text` is the canonical decimal form of: no sign but `-`, no leading zero, no
/// blanks, within 64 bits.
#[inline]
#[must_use]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (&first, rest) = digits.split_first()?;
    if first == b'0' {
        return (rest.is_empty() && !negative).then_some(0);
    }
    if !first.is_ascii_digit() || rest.len() > 18 {
        return None;
    }
    // 19 digits stay below 2^64, so only the comparison at the end is needed.
    let mut value = u64::from(first - b'0');
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    match (negative, value) {
        (false, ..=0x7FFF_FFFF_FFFF_FFFF) => Some(value as i64),
        (true, ..=0x8000_0000_0000_0000) => Some(value.wrapping_neg() as i64),
        _ => None,
    }
}

/// As [`parse_i64`] for numbers without a sign, within 64 bits.
#[inline]
#[must_use]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    let (&first, rest) = text.split_first()?;
    if first == b'0' {
        return rest.is_empty().then_some(0);
    }
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_canonical_integers_parse() {
        for text in [
            "0",
            "1",
            "-1",
            "10",
            "9223372036854775807",
            "-9223372036854775808",
        ] {
            assert_eq!(
                parse_i64(text.as_bytes()),
                Some(text.parse().unwrap()),
                "{text}"
            );
        }
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            "00",
            " 1",
            "1 ",
            "1a",
            "a",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "99999999999999999999",
            "1\0",
        ] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
    }

    proptest! {
        #[test]
        fn integers_round_trip(value in any::<i64>()) {
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }

        #[test]
        fn short_texts_parse_iff_canonical(text in "[-+0-9 ]{0,6}") {
            let want = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), want);
        }
    }
}
