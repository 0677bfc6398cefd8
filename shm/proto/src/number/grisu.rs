//! Shortest digits of a double by Grisu2 (F. Loitsch, "Printing Floating-Point Numbers Quickly and
//! Accurately with Integers", 2010).
//!
//! Why this one, when there are newer algorithms that are always shortest: Redis prints scores with
//! it, and in one of 500 numbers it finds one digit more than needed, or another last digit. Clients
//! and tests compare these texts, so the same digits have to come out.
//!
//! ```text
//!   the value is scaled by a power of ten so that its exponent lies between -60 and -32; digits are
//!   taken off the upper neighbour until what is left falls within the rounding interval, then the
//!   last digit is walked back towards the value
//! ```
//!
//! Cost: about 60 ns; the table is 87 powers of ten.

/// Powers of ten from 10^-348 on, every eighth: 64 bits of fraction, and the power of two they are
/// multiplied with. Rounded to the nearest; a test computes them again.
const POWERS: [(u64, i32); 87] = [
    (0xFA8FD5A0081C0288, -1220),
    (0xBAAEE17FA23EBF76, -1193),
    (0x8B16FB203055AC76, -1166),
    (0xCF42894A5DCE35EA, -1140),
    (0x9A6BB0AA55653B2D, -1113),
    (0xE61ACF033D1A45DF, -1087),
    (0xAB70FE17C79AC6CA, -1060),
    (0xFF77B1FCBEBCDC4F, -1034),
    (0xBE5691EF416BD60C, -1007),
    (0x8DD01FAD907FFC3C, -980),
    (0xD3515C2831559A83, -954),
    (0x9D71AC8FADA6C9B5, -927),
    (0xEA9C227723EE8BCB, -901),
    (0xAECC49914078536D, -874),
    (0x823C12795DB6CE57, -847),
    (0xC21094364DFB5637, -821),
    (0x9096EA6F3848984F, -794),
    (0xD77485CB25823AC7, -768),
    (0xA086CFCD97BF97F4, -741),
    (0xEF340A98172AACE5, -715),
    (0xB23867FB2A35B28E, -688),
    (0x84C8D4DFD2C63F3B, -661),
    (0xC5DD44271AD3CDBA, -635),
    (0x936B9FCEBB25C996, -608),
    (0xDBAC6C247D62A584, -582),
    (0xA3AB66580D5FDAF6, -555),
    (0xF3E2F893DEC3F126, -529),
    (0xB5B5ADA8AAFF80B8, -502),
    (0x87625F056C7C4A8B, -475),
    (0xC9BCFF6034C13053, -449),
    (0x964E858C91BA2655, -422),
    (0xDFF9772470297EBD, -396),
    (0xA6DFBD9FB8E5B88F, -369),
    (0xF8A95FCF88747D94, -343),
    (0xB94470938FA89BCF, -316),
    (0x8A08F0F8BF0F156B, -289),
    (0xCDB02555653131B6, -263),
    (0x993FE2C6D07B7FAC, -236),
    (0xE45C10C42A2B3B06, -210),
    (0xAA242499697392D3, -183),
    (0xFD87B5F28300CA0E, -157),
    (0xBCE5086492111AEB, -130),
    (0x8CBCCC096F5088CC, -103),
    (0xD1B71758E219652C, -77),
    (0x9C40000000000000, -50),
    (0xE8D4A51000000000, -24),
    (0xAD78EBC5AC620000, 3),
    (0x813F3978F8940984, 30),
    (0xC097CE7BC90715B3, 56),
    (0x8F7E32CE7BEA5C70, 83),
    (0xD5D238A4ABE98068, 109),
    (0x9F4F2726179A2245, 136),
    (0xED63A231D4C4FB27, 162),
    (0xB0DE65388CC8ADA8, 189),
    (0x83C7088E1AAB65DB, 216),
    (0xC45D1DF942711D9A, 242),
    (0x924D692CA61BE758, 269),
    (0xDA01EE641A708DEA, 295),
    (0xA26DA3999AEF774A, 322),
    (0xF209787BB47D6B85, 348),
    (0xB454E4A179DD1877, 375),
    (0x865B86925B9BC5C2, 402),
    (0xC83553C5C8965D3D, 428),
    (0x952AB45CFA97A0B3, 455),
    (0xDE469FBD99A05FE3, 481),
    (0xA59BC234DB398C25, 508),
    (0xF6C69A72A3989F5C, 534),
    (0xB7DCBF5354E9BECE, 561),
    (0x88FCF317F22241E2, 588),
    (0xCC20CE9BD35C78A5, 614),
    (0x98165AF37B2153DF, 641),
    (0xE2A0B5DC971F303A, 667),
    (0xA8D9D1535CE3B396, 694),
    (0xFB9B7CD9A4A7443C, 720),
    (0xBB764C4CA7A44410, 747),
    (0x8BAB8EEFB6409C1A, 774),
    (0xD01FEF10A657842C, 800),
    (0x9B10A4E5E9913129, 827),
    (0xE7109BFBA19C0C9D, 853),
    (0xAC2820D9623BF429, 880),
    (0x80444B5E7AA7CF85, 907),
    (0xBF21E44003ACDD2D, 933),
    (0x8E679C2F5E44FF8F, 960),
    (0xD433179D9C8CB841, 986),
    (0x9E19DB92B4E31BA9, 1013),
    (0xEB96BF6EBADF77D9, 1039),
    (0xAF87023B9BF0EE6B, 1066),
];
const FIRST_POWER: i32 = -348;
const STEP: i32 = 8;

/// The exponent after scaling lies in here, so that the whole part fits 32 bits.
const EXPONENTS: std::ops::RangeInclusive<i32> = -60..=-32;

const HIDDEN_BIT: u64 = 1 << 52;

/// A fraction of 64 bits times a power of two.
#[derive(Clone, Copy)]
struct Scaled {
    fraction: u64,
    exponent: i32,
}

impl Scaled {
    /// Shifted so that the highest bit is set.
    fn normal(self) -> Self {
        let zeros = self.fraction.leading_zeros();
        Self {
            fraction: self.fraction << zeros,
            exponent: self.exponent - zeros as i32,
        }
    }

    /// The upper 64 bits of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.fraction) * u128::from(other.fraction);
        Self {
            fraction: ((product + (1 << 63)) >> 64) as u64,
            exponent: self.exponent + other.exponent + 64,
        }
    }
}

/// Digits of a number, and the power of ten of the last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digits {
    digits: [u8; 20],
    count: usize,
    pub(super) power: i32,
}

impl Digits {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.digits[..self.count]
    }

    fn push(&mut self, digit: u64) {
        if digit != 0 || self.count != 0 {
            self.digits[self.count] = b'0' + digit as u8;
            self.count += 1;
        }
    }

    /// Lowers the last digit while that brings the number closer to the value, which is `distance`
    /// below the upper end of an interval `width` wide; `left` of it has been used, and one unit of
    /// the last digit is `unit`.
    fn approach(&mut self, width: u64, mut left: u64, unit: u64, distance: u64) {
        while left < distance
            && width - left >= unit
            && (left + unit < distance || distance - left > left + unit - distance)
        {
            self.digits[self.count - 1] -= 1;
            left += unit;
        }
    }
}

/// The digits of a finite number above zero.
pub(super) fn digits(value: f64) -> Digits {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & (HIDDEN_BIT - 1), (bits >> 52) as i32 & 0x7FF);
    let value = if exponent == 0 {
        Scaled {
            fraction,
            exponent: -1074,
        }
    } else {
        Scaled {
            fraction: fraction | HIDDEN_BIT,
            exponent: exponent - 1075,
        }
    };
    // Half way to the neighbours; the lower one of a power of two is only half as far.
    let upper = Scaled {
        fraction: value.fraction * 2 + 1,
        exponent: value.exponent - 1,
    }
    .normal();
    let shift = if value.fraction == HIDDEN_BIT { 2 } else { 1 };
    let lower = Scaled {
        fraction: (value.fraction << shift) - 1,
        exponent: value.exponent - shift,
    };
    let lower = Scaled {
        fraction: lower.fraction << (lower.exponent - upper.exponent),
        exponent: upper.exponent,
    };
    let (power, ten) = cached_power(upper.exponent);
    let (value, mut lower, mut upper) = (
        value.normal().times(ten),
        lower.times(ten),
        upper.times(ten),
    );
    lower.fraction += 1;
    upper.fraction -= 1;
    generate(value, lower, upper, -power)
}

/// The power of ten that brings an exponent into [`EXPONENTS`].
fn cached_power(exponent: i32) -> (i32, Scaled) {
    let wanted = (f64::from(-(exponent + POWERS.len() as i32)) * std::f64::consts::LOG10_2) as i32;
    let mut at = (wanted - FIRST_POWER) / STEP;
    loop {
        let (fraction, power) = POWERS[at as usize];
        let scaled = exponent + power + 64;
        if scaled < *EXPONENTS.start() {
            at += 1;
        } else if scaled > *EXPONENTS.end() {
            at -= 1;
        } else {
            return (
                FIRST_POWER + at * STEP,
                Scaled {
                    fraction,
                    exponent: power,
                },
            );
        }
    }
}

fn generate(value: Scaled, lower: Scaled, upper: Scaled, power: i32) -> Digits {
    let mut found = Digits {
        digits: [0; 20],
        count: 0,
        power,
    };
    let distance = upper.fraction - value.fraction;
    let mut width = upper.fraction - lower.fraction;
    let point = -upper.exponent as u32;
    let one = 1u64 << point;
    let (mut whole, mut fraction) = (upper.fraction >> point, upper.fraction & (one - 1));
    for left in (0..10).rev() {
        let unit = 10u64.pow(left);
        found.push(whole / unit);
        whole %= unit;
        let rest = (whole << point) + fraction;
        if rest <= width {
            found.power += left as i32;
            found.approach(width, rest, unit << point, distance);
            return found;
        }
    }
    let mut scale = 1u64;
    loop {
        fraction *= 10;
        width *= 10;
        scale = scale.wrapping_mul(10);
        found.power -= 1;
        found.push(fraction >> point);
        fraction &= one - 1;
        if fraction < width {
            found.approach(width, fraction, one, distance.wrapping_mul(scale));
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::long_double::LongDouble;

    #[test]
    fn powers_are_rounded_to_the_nearest() {
        for (at, (fraction, power)) in POWERS.into_iter().enumerate() {
            let text = format!("1e{}", FIRST_POWER + at as i32 * STEP);
            let exact = LongDouble::parse(text.as_bytes()).unwrap();
            assert_eq!(exact.parts(), Some((fraction, power)), "{text}");
        }
    }
}
