//! 64-bit floats as text: scores and RESP3 doubles.
//!
//! Printing takes digits that read back as the same number (nearly always the fewest, see `grisu`),
//! laid out as Redis does it:
//!
//! ```text
//!   whole numbers           123000          (up to seven zeros more than digits)
//!   small exponents         0.00001234
//!   everything else         1.234e+25       1e-10
//! ```

use std::io::Write;

use super::grisu::{Digits, digits};
use super::long_double::hexadecimal;
use super::round::{DOUBLE, Rounded, round};
use super::scan::{Form, Scanned, scan, significant};

/// Bytes that any printed double fits.
const TEXT_BYTES: usize = 40;

/// Scratch memory for one printed number.
#[derive(Clone, Copy, Debug)]
pub struct DoubleText {
    bytes: [u8; TEXT_BYTES],
    len: usize,
}

impl Default for DoubleText {
    fn default() -> Self {
        Self::new()
    }
}

impl DoubleText {
    /// Empty memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; TEXT_BYTES],
            len: 0,
        }
    }

    /// The text of `value`.
    pub fn format(&mut self, value: f64) -> &[u8] {
        if value != 0.0 && value.abs() <= WHOLE_LIMIT && value.trunc() == value {
            self.len = 0;
            if value < 0.0 {
                self.put(b"-");
            }
            self.put(itoa::Buffer::new().format(value.abs() as u64).as_bytes());
            &self.bytes[..self.len]
        } else {
            self.format_by_digits(value)
        }
    }

    /// The text of `value`, whole numbers laid out like all others: 1e+15.
    pub fn format_by_digits(&mut self, value: f64) -> &[u8] {
        self.len = 0;
        if value.is_nan() {
            self.put(b"nan");
            return &self.bytes[..self.len];
        }
        if value.is_sign_negative() {
            self.put(b"-");
        }
        if value.is_infinite() {
            self.put(b"inf");
        } else if value == 0.0 {
            self.put(b"0");
        } else {
            self.layout(&digits(value.abs()));
        }
        &self.bytes[..self.len]
    }

    /// The text of `value` with 17 digits, as C prints it for `%.17g`: 0.10000000000000001.
    pub fn format_17_digits(&mut self, value: f64) -> &[u8] {
        const DIGITS: i32 = 17;
        if value == 0.0 || !value.is_finite() {
            return self.format_by_digits(value);
        }
        self.len = 0;
        if value < 0.0 {
            self.put(b"-");
        }
        let mut scratch = [0; TEXT_BYTES];
        let mut rest = &mut scratch[..];
        let is_written = write!(rest, "{:.16e}", value.abs()).is_ok();
        debug_assert!(is_written, "a sign, 17 digits, a point and an exponent");
        let unused = rest.len();
        let text = &scratch[..TEXT_BYTES - unused];
        let (number, exponent) = match text.iter().position(|&byte| byte == b'e') {
            Some(at) => (
                &text[..at],
                super::parse_i64(&text[at + 1..]).unwrap_or(0) as i32,
            ),
            None => (text, 0),
        };
        let mut digits = [0; DIGITS as usize];
        for (digit, byte) in digits
            .iter_mut()
            .zip(number.iter().filter(|byte| **byte != b'.'))
        {
            *digit = *byte;
        }
        let count = digits.iter().rposition(|&digit| digit != b'0').unwrap_or(0) + 1;
        let digits = &digits[..count];
        if !(-4..DIGITS).contains(&exponent) {
            self.scientific(digits, exponent, 2);
        } else if exponent < 0 {
            self.put(b"0.");
            self.zeros(-exponent - 1);
            self.put(digits);
        } else if count as i32 <= exponent + 1 {
            self.put(digits);
            self.zeros(exponent + 1 - count as i32);
        } else {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            self.put(whole);
            self.put(b".");
            self.put(fraction);
        }
        &self.bytes[..self.len]
    }

    fn layout(&mut self, number: &Digits) {
        let (digits, power) = (number.as_bytes(), number.power);
        let count = digits.len() as i32;
        let exponent = power + count - 1;
        if power >= 0 && exponent < count + 7 {
            self.put(digits);
            self.zeros(power);
        } else if power < 0 && (power > -7 || exponent.abs() < 4) {
            let whole = count + power;
            if whole <= 0 {
                self.put(b"0.");
                self.zeros(-whole);
                self.put(digits);
            } else {
                self.put(&digits[..whole as usize]);
                self.put(b".");
                self.put(&digits[whole as usize..]);
            }
        } else {
            self.scientific(digits, exponent, 1);
        }
    }

    /// One digit, the others behind a point, and an exponent of so many digits at least.
    fn scientific(&mut self, digits: &[u8], exponent: i32, exponent_digits: usize) {
        let (first, others) = digits.split_at(1);
        self.put(first);
        if !others.is_empty() {
            self.put(b".");
            self.put(others);
        }
        self.put(if exponent < 0 { b"e-" } else { b"e+" });
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(exponent.unsigned_abs()).as_bytes();
        self.zeros(exponent_digits.saturating_sub(text.len()) as i32);
        self.put(text);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn zeros(&mut self, count: i32) {
        for _ in 0..count {
            self.put(b"0");
        }
    }
}

/// Whole numbers up to this are printed as integers, whatever their digits: half of 2^63.
const WHOLE_LIMIT: f64 = 4_611_686_018_427_387_904.0;

/// Reads a float as Redis reads scores: all of the text, decimal or hexadecimal, or infinity; `None`
/// for anything else, and for what is too large, or too small but not zero.
#[must_use]
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let Scanned { negative, form } = scan(text)?;
    let sign = if negative { -1.0 } else { 1.0 };
    let value = match form {
        Form::Infinite => return Some(sign * f64::INFINITY),
        Form::Finite {
            whole, fraction, ..
        } if significant(whole, fraction).all(|digit| digit == b'0') => {
            return Some(sign * 0.0);
        }
        Form::Finite { hex: false, .. } => {
            std::str::from_utf8(text).ok()?.parse::<f64>().ok()?.abs()
        }
        Form::Finite {
            hex: true,
            whole,
            fraction,
            exponent,
        } => {
            let (value, power, more) = hexadecimal(whole, fraction, exponent);
            match round(value, power, more, DOUBLE) {
                Rounded::Finite { mantissa, exponent } => from_parts(mantissa, exponent),
                Rounded::Zero | Rounded::TooLarge => return None,
            }
        }
    };
    (value != 0.0 && value.is_finite()).then_some(sign * value)
}

/// Reads the end of a range of scores as Redis reads it: decimal or infinity, nothing being 0; what is
/// too large is infinite and what is too small is 0. The text ends at its first NUL. `None` for anything
/// else.
#[must_use]
pub fn parse_score_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next()?;
    if text.is_empty() {
        return Some(0.0);
    }
    let value = std::str::from_utf8(text).ok()?.parse::<f64>().ok()?;
    (!value.is_nan()).then_some(value)
}

/// `mantissa` times two to the power of `exponent`, which is exact.
fn from_parts(mantissa: u64, exponent: i32) -> f64 {
    let shift = mantissa.leading_zeros() as i32 - 11;
    let normal_exponent = exponent - shift + 1075;
    if normal_exponent <= 0 {
        // Below the normal range the bits are the mantissa at exponent -1074.
        return f64::from_bits(mantissa << (exponent + 1074));
    }
    let mantissa = if shift >= 0 {
        mantissa << shift
    } else {
        mantissa >> -shift
    };
    f64::from_bits((normal_exponent as u64) << 52 | mantissa & ((1 << 52) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        String::from_utf8(DoubleText::new().format(value).to_vec()).unwrap()
    }

    #[test]
    fn whole_numbers_by_digits() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (-12.0, "-12"),
            (1e7, "10000000"),
            (1e8, "1e+8"),
            (17_179_869_184.0, "17179869184"),
            (4.5e15, "4.5e+15"),
        ] {
            assert_eq!(
                DoubleText::new().format_by_digits(value),
                want.as_bytes(),
                "{want}"
            );
        }
    }

    // As Redis 8.0.6 prints scores in ZSCAN.
    #[test]
    fn seventeen_digits() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::INFINITY, "inf"),
            (0.1, "0.10000000000000001"),
            (-0.3, "-0.29999999999999999"),
            (100.0, "100"),
            (2.5, "2.5"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1e-5, "1.0000000000000001e-05"),
            (0.0001, "0.0001"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(
                DoubleText::new().format_17_digits(value),
                want.as_bytes(),
                "{want}"
            );
        }
    }

    // As Redis 8.0.6 prints scores.
    #[test]
    fn digits_and_layout_are_those_of_the_reference() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (2.75, "2.75"),
            (5.046014, "5.0460140000000004"),
            (-76.2362e19, "-762361999999999900000"),
            (1e5, "100000"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (-4_611_686_018_427_388_928.0, "-4611686018427389000"),
            (1e-5, "0.00001"),
            (1e-310, "1e-310"),
            (5e-324, "5e-324"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(text(value), want);
        }
    }

    #[test]
    fn what_is_a_float() {
        for (text, want) in [
            ("1", 1.0),
            ("+1e5", 1e5),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("-Infinity", f64::NEG_INFINITY),
            (".5", 0.5),
            ("5.", 5.0),
            ("00012", 12.0),
            ("0e999", 0.0),
            ("3e-324", 5e-324),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff8p0", 2.0),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), Some(want), "{text}");
        }
        for text in [
            "", " 1", "1 ", "nan", "1e", "1e400", "1e-400", "2e-324", "0x", "0x1p2000", "--1",
            "1_0",
        ] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_ends_a_range_of_scores() {
        for (text, want) in [
            ("", 0.0),
            ("+5.", 5.0),
            (".5", 0.5),
            ("1e400", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("1e-400", 0.0),
            ("inFinity", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_score_bound(text.as_bytes()), Some(want), "{text}");
        }
        for text in [
            " 1", "1 ", "nan", "-nan", "nan(abc)", "1e", "e5", ".", "-", "0x1", "infin", "((1",
        ] {
            assert_eq!(parse_score_bound(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn doubles_round_trip(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            if !value.is_nan() {
                prop_assert_eq!(parse_f64(text(value).as_bytes()), Some(value));
            }
        }

        #[test]
        fn hexadecimal_texts_are_exact(mantissa in any::<u32>(), power in -1100i32..900) {
            let text = format!("0x{mantissa:x}p{power}");
            let want = f64::from(mantissa) * 2f64.powi(power.max(-1000)) * 2f64.powi(power.min(-1000) + 1000);
            // The two factors round once only if the result is normal.
            if want >= f64::MIN_POSITIVE || mantissa == 0 {
                prop_assert_eq!(parse_f64(text.as_bytes()), Some(want));
            }
        }
    }
}
