//! Rounding of an exact binary value to the mantissa of a floating point format.

/// A binary floating point format with its exponents counted at the lowest bit of the mantissa.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// Bits of the mantissa.
    pub(super) precision: u32,
    /// Exponent of the lowest bit of the smallest number.
    pub(super) exponent_min: i32,
    /// Exponent of the highest bit of the largest number.
    pub(super) top_max: i32,
}

/// 64-bit floats.
pub(super) const DOUBLE: Format = Format {
    precision: 53,
    exponent_min: -1074,
    top_max: 1023,
};
/// The 80-bit floats of x87, C's `long double` here.
pub(super) const EXTENDED: Format = Format {
    precision: 64,
    exponent_min: -16_445,
    top_max: 16_383,
};

/// What is left after rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounded {
    Zero,
    /// `mantissa` times two to the power of `exponent`.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    TooLarge,
}

/// Rounds `value` times two to the power of `exponent` to the nearest number of `format`, ties to
/// even. `more` says that the true value lies a little above `value`, by less than its lowest bit;
/// `value` must then have more bits than the mantissa.
pub(super) fn round(value: u128, exponent: i32, more: bool, format: Format) -> Rounded {
    if value == 0 {
        return Rounded::Zero;
    }
    let bits = (128 - value.leading_zeros()) as i32;
    let shift = (bits - format.precision as i32).max(format.exponent_min - exponent);
    let (mantissa, exponent) = if shift <= 0 {
        (value, exponent)
    } else {
        let shift = shift as u32;
        let kept = value.checked_shr(shift).unwrap_or(0);
        let half = value.checked_shr(shift - 1).unwrap_or(0) & 1 == 1;
        let below = more || value & low_bits(shift - 1) != 0;
        let up = half && (below || kept & 1 == 1);
        (kept + u128::from(up), exponent + shift as i32)
    };
    // Rounding up may have made one bit too many: all of them are then zero but the first.
    let (mantissa, exponent) = match u64::try_from(mantissa) {
        Ok(mantissa) => (mantissa, exponent),
        Err(_) => ((mantissa >> 1) as u64, exponent + 1),
    };
    if mantissa == 0 {
        return Rounded::Zero;
    }
    if exponent + 63 - mantissa.leading_zeros() as i32 > format.top_max {
        return Rounded::TooLarge;
    }
    Rounded::Finite { mantissa, exponent }
}

fn low_bits(count: u32) -> u128 {
    match 1u128.checked_shl(count) {
        Some(above) => above - 1,
        None => u128::MAX,
    }
}
