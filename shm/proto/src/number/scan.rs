//! The grammar of floating point texts: C's `strtod`, all of the text, without blanks and NaN.
//!
//! ```text
//!   [+-] ( digits [. digits] | . digits ) [ e [+-] digits ]
//!   [+-] 0x hex digits with an optional point [ p [+-] digits ]
//!   [+-] ( inf | infinity )                                        any case
//! ```

use crate::limits::FLOAT_TEXT_BYTES_MAX;

/// Exponents beyond this are all the same: the value is zero or too large. Keeps sums in range.
const EXPONENT_MAX: i64 = 1_000_000;

/// A text that follows the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scanned<'a> {
    pub(super) negative: bool,
    pub(super) form: Form<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    Infinite,
    /// `whole.fraction` times ten (or, for `hex`, two) to the power of `exponent`.
    Finite {
        hex: bool,
        whole: &'a [u8],
        fraction: &'a [u8],
        exponent: i64,
    },
}

pub(super) fn scan(text: &[u8]) -> Option<Scanned<'_>> {
    if text.len() >= FLOAT_TEXT_BYTES_MAX {
        return None;
    }
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
        return Some(Scanned {
            negative,
            form: Form::Infinite,
        });
    }
    let form = match rest {
        [b'0', b'x' | b'X', hex @ ..] => finite(hex, true)?,
        decimal => finite(decimal, false)?,
    };
    Some(Scanned { negative, form })
}

fn finite(text: &[u8], hex: bool) -> Option<Form<'_>> {
    let is_digit = |byte: &u8| {
        if hex {
            byte.is_ascii_hexdigit()
        } else {
            byte.is_ascii_digit()
        }
    };
    let split = |text: &'_ [u8]| text.iter().take_while(|&byte| is_digit(byte)).count();
    let (whole, rest) = text.split_at(split(text));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(split(rest)),
        rest => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match (rest, hex) {
        ([], _) => 0,
        ([b'e' | b'E', rest @ ..], false) | ([b'p' | b'P', rest @ ..], true) => exponent(rest)?,
        _ => return None,
    };
    Some(Form::Finite {
        hex,
        whole,
        fraction,
        exponent,
    })
}

fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0i64, |value, &digit| {
        (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX)
    });
    Some(if negative { -size } else { size })
}

/// Digits of both parts in order, without leading zeros, and how many of them stand behind the point.
pub(super) fn significant<'a>(
    whole: &'a [u8],
    fraction: &'a [u8],
) -> impl Iterator<Item = u8> + Clone + use<'a> {
    whole
        .iter()
        .chain(fraction)
        .copied()
        .skip_while(|&digit| digit == b'0')
}
