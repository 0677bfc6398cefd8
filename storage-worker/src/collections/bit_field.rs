//! Integers of 1 to 64 bits at any bit position of a byte string.
//!
//! ```text
//!   bytes   |........|...aaaaa|aaaaaaaa|aaa.....|      a 16-bit field at bit 11
//!                        ^ most significant bit first
//! ```
//!
//! A field of up to 64 bits touches at most nine bytes, so it is read and written through one
//! 128-bit window instead of bit by bit. Bytes beyond the end of the string read as zero; a writer
//! makes the string long enough first.
//!
//! Overflow rules are those of BITFIELD. One oddity is deliberate: storing (not adding) a very
//! negative number into a narrow signed field with saturation gives the *maximum*, because the
//! reference compares against a difference that wraps around.
//!
//! Cost: a handful of shifts per access.
//! Not here: argument syntax (`commands::bitmap`).

/// Type of a field: signedness and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// Two's complement if true.
    pub is_signed: bool,
    /// 1 to 64 if signed, 1 to 63 if not.
    pub bits: u32,
}

/// What happens when a value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Keep the low bits.
    Wrap,
    /// Take the nearest limit.
    Saturate,
    /// Change nothing and report it.
    Fail,
}

impl FieldType {
    /// Reads the field at bit `offset`; a signed value is sign-extended, an unsigned one fits.
    #[inline]
    pub fn read(self, bytes: &[u8], offset: u64) -> i64 {
        let raw = read_unsigned(bytes, offset, self.bits);
        if self.is_signed {
            sign_extend(raw, self.bits)
        } else {
            raw.cast_signed()
        }
    }

    /// Writes the low bits of `value` at bit `offset`; the bytes must reach that far.
    #[inline]
    pub fn write(self, bytes: &mut [u8], offset: u64, value: i64) {
        write_unsigned(bytes, offset, self.bits, value.cast_unsigned());
    }

    /// The value to store for `value` as it was given, or None if it must not be stored.
    pub fn store(self, value: i64, overflow: Overflow) -> Option<i64> {
        self.add(value, 0, overflow)
    }

    /// The value to store for `value + increment`, or None if it must not be stored.
    pub fn add(self, value: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        let (excess, limit) = if self.is_signed {
            self.signed_excess(value, increment)
        } else {
            self.unsigned_excess(value.cast_unsigned(), increment)
        };
        let sum = value.wrapping_add(increment);
        match (excess, overflow) {
            (false, _) => Some(sum),
            (true, Overflow::Wrap) => Some(self.wrap(sum)),
            (true, Overflow::Saturate) => Some(limit),
            (true, Overflow::Fail) => None,
        }
    }

    fn wrap(self, sum: i64) -> i64 {
        let raw = sum.cast_unsigned() & width_mask(self.bits);
        if self.is_signed {
            sign_extend(raw, self.bits)
        } else {
            raw.cast_signed()
        }
    }

    /// Whether the sum leaves the signed range, and the limit it saturates to.
    fn signed_excess(self, value: i64, increment: i64) -> (bool, i64) {
        let max = (width_mask(self.bits) >> 1).cast_signed();
        let min = -max - 1;
        let is_narrow = self.bits != 64;
        let room_up = max.wrapping_sub(value);
        let room_down = min.wrapping_sub(value);
        if value > max
            || (is_narrow && increment > room_up)
            || (value >= 0 && increment > 0 && increment > room_up)
        {
            (true, max)
        } else if value < min
            || (is_narrow && increment < room_down)
            || (value < 0 && increment < 0 && increment < room_down)
        {
            (true, min)
        } else {
            (false, 0)
        }
    }

    /// Whether the sum leaves the unsigned range, and the limit it saturates to.
    fn unsigned_excess(self, value: u64, increment: i64) -> (bool, i64) {
        let max = width_mask(self.bits);
        let room_up = max.wrapping_sub(value).cast_signed();
        let room_down = value.wrapping_neg().cast_signed();
        if value > max || (increment > 0 && increment > room_up) {
            (true, max.cast_signed())
        } else if increment < 0 && increment < room_down {
            (true, 0)
        } else {
            (false, 0)
        }
    }
}

#[inline]
fn width_mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

#[inline]
fn sign_extend(raw: u64, bits: u32) -> i64 {
    let spare = 64 - bits;
    (raw << spare).cast_signed() >> spare
}

/// The bytes around a field as one number, its first byte most significant, and where they start.
#[inline]
fn load_window(bytes: &[u8], offset: u64) -> (usize, usize, u128) {
    let start = usize::try_from(offset / 8)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let len = (bytes.len() - start).min(9);
    let mut raw = [0u8; 16];
    raw[..len].copy_from_slice(&bytes[start..start + len]);
    (start, len, u128::from_be_bytes(raw))
}

#[inline]
fn read_unsigned(bytes: &[u8], offset: u64, bits: u32) -> u64 {
    let (_, _, window) = load_window(bytes, offset);
    let shift = 128 - (offset % 8) as u32 - bits;
    (window >> shift) as u64 & width_mask(bits)
}

#[inline]
fn write_unsigned(bytes: &mut [u8], offset: u64, bits: u32, value: u64) {
    let (start, len, window) = load_window(bytes, offset);
    let shift = 128 - (offset % 8) as u32 - bits;
    let mask = u128::from(width_mask(bits)) << shift;
    let placed = (u128::from(value) << shift) & mask;
    let raw = ((window & !mask) | placed).to_be_bytes();
    bytes[start..start + len].copy_from_slice(&raw[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_type() -> impl Strategy<Value = FieldType> {
        prop_oneof![
            (1u32..=64).prop_map(|bits| FieldType {
                is_signed: true,
                bits
            }),
            (1u32..=63).prop_map(|bits| FieldType {
                is_signed: false,
                bits
            }),
        ]
    }

    fn naive_read(bytes: &[u8], offset: u64, field: FieldType) -> i64 {
        let mut raw = 0u64;
        for bit in offset..offset + u64::from(field.bits) {
            let byte = bytes.get((bit / 8) as usize).copied().unwrap_or(0);
            raw = raw << 1 | u64::from(byte >> (7 - bit % 8) & 1);
        }
        if field.is_signed && field.bits < 64 && raw >> (field.bits - 1) & 1 == 1 {
            raw |= u64::MAX << field.bits;
        }
        raw.cast_signed()
    }

    #[test]
    fn a_very_negative_number_saturates_upwards_in_a_narrow_field() {
        let field = FieldType {
            is_signed: true,
            bits: 8,
        };
        assert_eq!(field.store(i64::MIN, Overflow::Saturate), Some(127));
        assert_eq!(field.store(-129, Overflow::Saturate), Some(-128));
    }

    proptest! {
        #[test]
        fn reading_agrees_with_a_bit_loop(
            bytes in proptest::collection::vec(any::<u8>(), 0..24),
            offset in 0u64..220,
            field in any_type(),
        ) {
            prop_assert_eq!(field.read(&bytes, offset), naive_read(&bytes, offset, field));
        }

        #[test]
        fn writing_changes_only_the_field(
            bytes in proptest::collection::vec(any::<u8>(), 24..32),
            offset in 0u64..120,
            field in any_type(),
            value in any::<i64>(),
        ) {
            let mut written = bytes.clone();
            field.write(&mut written, offset, value);
            prop_assert_eq!(field.read(&written, offset), field.wrap(value));
            let inside = offset..offset + u64::from(field.bits);
            for bit in 0..bytes.len() as u64 * 8 {
                let at = |of: &[u8]| of[(bit / 8) as usize] >> (7 - bit % 8) & 1;
                if !inside.contains(&bit) {
                    prop_assert_eq!(at(&bytes), at(&written));
                }
            }
        }

        #[test]
        fn adding_agrees_with_wide_arithmetic(
            field in any_type(),
            start in any::<i64>(),
            increment in prop_oneof![any::<i64>(), -300i64..300],
            overflow in prop_oneof![Just(Overflow::Wrap), Just(Overflow::Saturate), Just(Overflow::Fail)],
        ) {
            let value = field.wrap(start);
            let (min, max) = if field.is_signed {
                (-(1i128 << (field.bits - 1)), (1i128 << (field.bits - 1)) - 1)
            } else {
                (0, (1i128 << field.bits) - 1)
            };
            let sum = i128::from(value) + i128::from(increment);
            let expected = if (min..=max).contains(&sum) {
                Some(sum as i64)
            } else {
                match overflow {
                    Overflow::Wrap => Some(field.wrap(sum as i64)),
                    Overflow::Saturate => Some(if sum > max { max as i64 } else { min as i64 }),
                    Overflow::Fail => None,
                }
            };
            prop_assert_eq!(field.add(value, increment, overflow), expected);
        }
    }
}
