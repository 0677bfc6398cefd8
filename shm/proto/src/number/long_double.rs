//! 80-bit floats in software: the arithmetic of INCRBYFLOAT and HINCRBYFLOAT.
//!
//! Why: Redis computes these commands in C's `long double`, which on x86 has a 64-bit mantissa and
//! so remembers three more decimal digits than `f64`; `0.1 + 0.2` prints as `0.3`, and every stored
//! result shows the difference. Rust has no such type, so reading, adding and printing are done here
//! exactly and rounded once, to the nearest, ties to even, as the processor does it.
//!
//! ```text
//!   value = mantissa (64 bits) * 2^exponent        text: 17 digits behind the point, trailing zeros
//!                                                  and a bare point taken off
//! ```
//!
//! Cost: about 100 ns to read, 20 to add, 100 to print; texts with more than 19 digits or beyond
//! 10^±27 go through `big` and cost microseconds.

use super::big::Big;
use super::round::{EXTENDED, Rounded, round};
use super::scan::{Form, Scanned, scan, significant};

/// Digits behind the point.
const DECIMALS: u32 = 17;

/// An 80-bit float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    Zero,
    /// The highest bit of the mantissa is set.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
    NotANumber,
}

impl From<i64> for LongDouble {
    /// Exact: 64 bits of mantissa hold every integer of 64 bits.
    fn from(value: i64) -> Self {
        let magnitude = match value.unsigned_abs() {
            0 => Magnitude::Zero,
            mantissa => normal(mantissa, 0),
        };
        Self {
            negative: value < 0,
            magnitude,
        }
    }
}

impl LongDouble {
    /// Reads a number as Redis reads an increment: all of the text, decimal or hexadecimal, or
    /// infinity; `None` for anything else, and for what is too large, or too small but not zero.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let Scanned { negative, form } = scan(text)?;
        let (hex, whole, fraction, exponent) = match form {
            Form::Infinite => {
                return Some(Self {
                    negative,
                    magnitude: Magnitude::Infinite,
                });
            }
            Form::Finite {
                hex,
                whole,
                fraction,
                exponent,
            } => (hex, whole, fraction, exponent),
        };
        if significant(whole, fraction).all(|digit| digit == b'0') {
            return Some(Self {
                negative,
                magnitude: Magnitude::Zero,
            });
        }
        let rounded = if hex {
            let (value, power, more) = hexadecimal(whole, fraction, exponent);
            round(value, power, more, EXTENDED)
        } else {
            decimal(whole, fraction, exponent)
        };
        match rounded {
            Rounded::Finite { mantissa, exponent } => Some(Self {
                negative,
                magnitude: normal(mantissa, exponent),
            }),
            Rounded::Zero | Rounded::TooLarge => None,
        }
    }

    /// Whether this is a number, and not an infinite one.
    #[must_use]
    pub fn is_finite(self) -> bool {
        matches!(self.magnitude, Magnitude::Zero | Magnitude::Finite { .. })
    }

    /// Whether it is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.negative && self.magnitude != Magnitude::Zero
    }

    /// A thousand times the number, computed as the processor does it, then up to the next integer;
    /// `None` if that does not fit.
    #[must_use]
    pub fn thousandfold_up(self) -> Option<i64> {
        let (mantissa, exponent) = match self.magnitude {
            Magnitude::Zero => return Some(0),
            Magnitude::Finite { mantissa, exponent } => (mantissa, exponent),
            Magnitude::Infinite | Magnitude::NotANumber => return None,
        };
        // The product has 64 bits after rounding, so any exponent above 0 is beyond an integer.
        let whole = match round(u128::from(mantissa) * 1000, exponent, false, EXTENDED) {
            Rounded::Zero => 0,
            Rounded::Finite { mantissa, exponent } if exponent <= 0 => {
                let below = exponent.unsigned_abs();
                let whole = mantissa.checked_shr(below).unwrap_or(0);
                let is_more = whole.checked_shl(below) != Some(mantissa);
                i64::try_from(whole)
                    .ok()?
                    .checked_add(i64::from(is_more && !self.negative))?
            }
            Rounded::Finite { .. } | Rounded::TooLarge => return None,
        };
        Some(if self.negative { -whole } else { whole })
    }

    /// Mantissa with its highest bit set, and exponent.
    #[cfg(test)]
    pub(super) fn parts(self) -> Option<(u64, i32)> {
        match self.magnitude {
            Magnitude::Finite { mantissa, exponent } => Some((mantissa, exponent)),
            _ => None,
        }
    }

    /// Appends the number as INCRBYFLOAT stores it. A finite number is digits, at most 17 of them
    /// behind a point; minus zero is `0`.
    pub fn write(self, out: &mut Vec<u8>) {
        let (mantissa, exponent) = match self.magnitude {
            Magnitude::Zero => return out.push(b'0'),
            Magnitude::Infinite if self.negative => return out.extend_from_slice(b"-inf"),
            Magnitude::Infinite => return out.extend_from_slice(b"inf"),
            Magnitude::NotANumber => return out.extend_from_slice(b"nan"),
            Magnitude::Finite { mantissa, exponent } => (mantissa, exponent),
        };
        if exponent > 64 {
            out.extend(self.negative.then_some(b'-'));
            let mut whole = Big::from_u64(mantissa);
            whole.shift_left(exponent as u32);
            return whole.write(out);
        }
        let (whole, decimals) = split(mantissa, exponent);
        if whole == 0 && decimals == 0 {
            return out.push(b'0');
        }
        out.extend(self.negative.then_some(b'-'));
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
        if decimals != 0 {
            // A one in front keeps the leading zeros; the point takes its place.
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(decimals + 10u64.pow(DECIMALS)).as_bytes();
            let end = digits.iter().rposition(|&digit| digit != b'0').unwrap_or(0);
            out.push(b'.');
            out.extend_from_slice(&digits[1..=end]);
        }
    }
}

impl std::ops::Add for LongDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        use Magnitude::{Finite, Infinite, NotANumber, Zero};
        match (self.magnitude, other.magnitude) {
            (NotANumber, _) | (_, NotANumber) => Self {
                negative: false,
                magnitude: NotANumber,
            },
            (Infinite, Infinite) if self.negative != other.negative => Self {
                negative: false,
                magnitude: NotANumber,
            },
            (Infinite, _) | (_, Zero) => self,
            (_, Infinite) | (Zero, _) => other,
            (
                Finite {
                    mantissa: a,
                    exponent: a_exponent,
                },
                Finite {
                    mantissa: b,
                    exponent: b_exponent,
                },
            ) => {
                let a = (a, a_exponent, self.negative);
                let b = (b, b_exponent, other.negative);
                add_finite(a, b)
            }
        }
    }
}

/// The same number with the highest bit of the mantissa set, so that equal numbers look equal.
fn normal(mantissa: u64, exponent: i32) -> Magnitude {
    let zeros = mantissa.leading_zeros();
    Magnitude::Finite {
        mantissa: mantissa << zeros,
        exponent: exponent - zeros as i32,
    }
}

/// Mantissa, exponent and sign each.
fn add_finite(a: (u64, i32, bool), b: (u64, i32, bool)) -> LongDouble {
    let by_size = |(mantissa, exponent, negative)| (exponent, mantissa, negative);
    let (mut large, mut small) = (by_size(a), by_size(b));
    if (small.0, small.1) > (large.0, large.1) {
        std::mem::swap(&mut large, &mut small);
    }
    // 63 bits below the mantissa: what is shifted out further only has to be known to be there.
    let distance = (large.0 - small.0) as u32;
    let wide = u128::from(small.1) << 63;
    let shifted = wide.checked_shr(distance).unwrap_or(0);
    let lost = shifted.checked_shl(distance) != Some(wide);
    let small_value = shifted | u128::from(lost);
    let large_value = u128::from(large.1) << 63;
    let value = if large.2 == small.2 {
        large_value + small_value
    } else {
        large_value - small_value
    };
    let magnitude = match round(value, large.0 - 63, false, EXTENDED) {
        Rounded::Zero => {
            return LongDouble {
                negative: false,
                magnitude: Magnitude::Zero,
            };
        }
        Rounded::Finite { mantissa, exponent } => normal(mantissa, exponent),
        Rounded::TooLarge => Magnitude::Infinite,
    };
    LongDouble {
        negative: large.2,
        magnitude,
    }
}

/// The whole part, and the fraction in units of 10^-17, rounded to the nearest, ties to even.
fn split(mantissa: u64, exponent: i32) -> (u128, u64) {
    if exponent >= 0 {
        return (u128::from(mantissa) << exponent, 0);
    }
    let below = exponent.unsigned_abs();
    let whole = mantissa.checked_shr(below).unwrap_or(0);
    let fraction = mantissa - whole.checked_shl(below).unwrap_or(0);
    // Below 2^64 * 10^17 < 2^121, so beyond 122 bits nothing is left of it.
    let scaled = u128::from(fraction) * 10u128.pow(DECIMALS);
    let unit = match 1u128.checked_shl(below) {
        Some(unit) if below <= 122 => unit,
        _ => return (0, 0),
    };
    let (mut decimals, rest) = ((scaled / unit) as u64, scaled % unit);
    if rest > unit / 2 || (rest == unit / 2 && decimals & 1 == 1) {
        decimals += 1;
    }
    if decimals == 10u64.pow(DECIMALS) {
        (u128::from(whole) + 1, 0)
    } else {
        (u128::from(whole), decimals)
    }
}

/// Value of hexadecimal digits, at least 68 significant bits of it: number, power of two, and whether
/// there is more.
pub(super) fn hexadecimal(whole: &[u8], fraction: &[u8], exponent: i64) -> (u128, i32, bool) {
    let (mut value, mut more) = (0u128, false);
    let mut power = exponent - 4 * fraction.len() as i64;
    for digit in significant(whole, fraction) {
        let digit = char::from(digit).to_digit(16).unwrap_or(0);
        if value >> 124 == 0 {
            value = value << 4 | u128::from(digit);
        } else {
            more |= digit != 0;
            power += 4;
        }
    }
    (value, power.clamp(-1_000_000, 1_000_000) as i32, more)
}

fn decimal(whole: &[u8], fraction: &[u8], exponent: i64) -> Rounded {
    let exponent = exponent - fraction.len() as i64;
    let digits = significant(whole, fraction);
    let count = digits.clone().count();
    if count <= 19 && exponent.unsigned_abs() <= 27 {
        let value = digits.fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        let five = 5u64.pow(exponent.unsigned_abs() as u32);
        return if exponent >= 0 {
            round(
                u128::from(value) * u128::from(five),
                exponent as i32,
                false,
                EXTENDED,
            )
        } else {
            let zeros = value.leading_zeros();
            let wide = u128::from(value << zeros) << 64;
            let (quotient, rest) = (wide / u128::from(five), wide % u128::from(five));
            round(
                quotient,
                exponent as i32 - 64 - zeros as i32,
                rest != 0,
                EXTENDED,
            )
        };
    }
    // The largest number is about 10^4932, the smallest about 10^-4951.
    let magnitude = count as i64 + exponent;
    if magnitude > 4940 {
        return Rounded::TooLarge;
    }
    if magnitude < -4960 {
        return Rounded::Zero;
    }
    let mut value = Big::from_digits(digits);
    if exponent >= 0 {
        value.multiply_power_of_five(exponent as u32);
        let (top, left_out, more) = value.top();
        round(top, exponent as i32 + left_out as i32, more, EXTENDED)
    } else {
        let mut divisor = Big::from_u64(1);
        divisor.multiply_power_of_five(exponent.unsigned_abs() as u32);
        let (quotient, power, more) = value.divide(divisor);
        round(quotient, power + exponent as i32, more, EXTENDED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: LongDouble) -> String {
        let mut out = Vec::new();
        value.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn sum(a: &str, b: &str) -> String {
        let parse = |text: &str| LongDouble::parse(text.as_bytes()).unwrap();
        text(parse(a) + parse(b))
    }

    // Results taken from Redis 8.0.6.
    #[test]
    fn sums_are_those_of_the_reference() {
        for (a, b, want) in [
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0.1", "0.2", "0.3"),
            ("3.0", "1.1", "4.1"),
            ("1", "-1", "0"),
            ("-0.0", "0", "0"),
            ("0", "1e-17", "0.00000000000000001"),
            ("0", "4e-18", "0"),
            ("17179869184", "1.5", "17179869185.5"),
            ("9223372036854775807", "1", "9223372036854775808"),
            ("0x1.8p1", "0", "3"),
        ] {
            let got = sum(a, b);
            assert_eq!(got, want, "{a} + {b}");
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "", " 1", "1 ", "+-1", "1e", "1e+", "0x", "0xg", "nan", ".", "1.5.5", "1\0", "1e5000",
            "1e-5000",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        let infinite = LongDouble::parse(b"-Inf").unwrap();
        assert!(!infinite.is_finite());
        assert!(!(infinite + LongDouble::from(1)).is_finite());
        assert_eq!(text(infinite + LongDouble::parse(b"inf").unwrap()), "nan");
    }

    proptest! {
        #[test]
        fn integers_are_exact(a in any::<i64>(), b in any::<i64>()) {
            prop_assert_eq!(text(LongDouble::from(a)), a.to_string());
            prop_assert_eq!(LongDouble::parse(a.to_string().as_bytes()), Some(LongDouble::from(a)));
            let exact = i128::from(a) + i128::from(b);
            if exact.unsigned_abs() < 1 << 64 {
                prop_assert_eq!(text(LongDouble::from(a) + LongDouble::from(b)), exact.to_string());
            }
        }

        #[test]
        fn a_thousandfold_is_exact_where_it_can_be(value in -(1i64 << 53)..1 << 53, thousandths in 0u32..1000) {
            let text = format!("{value}.{thousandths:03}");
            let got = LongDouble::parse(text.as_bytes()).unwrap().thousandfold_up();
            let exact = value * 1000 + if value < 0 || text.starts_with('-') { -1 } else { 1 } * i64::from(thousandths);
            // Ten bits of the 64 may be lost in the fraction, and what is lost is rounded up.
            prop_assert!((0..=1).contains(&(got.unwrap() - exact)), "{}: {:?}", text, got);
        }

        #[test]
        fn both_ways_of_reading_agree(digits in "[0-9]{1,15}", exponent in -27i64..=27) {
            // Leading zeros change the value's form but not the value; many digits force the slow way.
            let short = format!("{digits}e{exponent}");
            let padded = format!("{digits}{}e{}", "0".repeat(30), exponent - 30);
            prop_assert_eq!(LongDouble::parse(short.as_bytes()), LongDouble::parse(padded.as_bytes()));
        }

        #[test]
        fn garbage_never_panics(text in proptest::collection::vec(any::<u8>(), 0..40),
                                number in "[-+]?(0x)?[0-9a-f.]{0,40}([ep][-+]?[0-9]{0,6})?") {
            for text in [&text[..], number.as_bytes()] {
                if let Some(value) = LongDouble::parse(text) {
                    let mut out = Vec::new();
                    (value + value).write(&mut out);
                }
            }
        }
    }
}
