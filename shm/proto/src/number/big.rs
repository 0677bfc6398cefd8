//! Whole numbers of any size, with just what exact conversion of floats needs.
//!
//! Only for texts with many digits or large exponents; ordinary numbers never get here. The largest
//! are about 50,000 bits (5 KiB of digits times a power of ten), so simple loops will do.

/// A whole number; limbs of 32 bits, lowest first, no zero limb at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Big {
    limbs: Vec<u32>,
}

impl Big {
    pub(super) fn from_u64(value: u64) -> Self {
        let mut big = Self {
            limbs: vec![value as u32, (value >> 32) as u32],
        };
        big.trim();
        big
    }

    pub(super) fn from_digits(digits: impl Iterator<Item = u8>) -> Self {
        let mut big = Self { limbs: Vec::new() };
        let (mut chunk, mut scale) = (0u32, 1u32);
        for digit in digits {
            chunk = chunk * 10 + u32::from(digit - b'0');
            scale *= 10;
            if scale == 1_000_000_000 {
                big.multiply_add(scale, chunk);
                (chunk, scale) = (0, 1);
            }
        }
        big.multiply_add(scale, chunk);
        big
    }

    pub(super) fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.limbs {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
        self.trim();
    }

    pub(super) fn multiply_power_of_five(&mut self, power: u32) {
        const STEP: u32 = 13;
        for _ in 0..power / STEP {
            self.multiply_add(5u32.pow(STEP), 0);
        }
        self.multiply_add(5u32.pow(power % STEP), 0);
    }

    pub(super) fn shift_left(&mut self, count: u32) {
        let bits = count % 32;
        if bits != 0 {
            self.multiply_add(1 << bits, 0);
        }
        if !self.limbs.is_empty() {
            self.limbs
                .splice(0..0, std::iter::repeat_n(0, (count / 32) as usize));
        }
    }

    pub(super) fn bits(&self) -> u32 {
        match self.limbs.last() {
            Some(top) => self.limbs.len() as u32 * 32 - top.leading_zeros(),
            None => 0,
        }
    }

    /// The highest 128 bits, how many bits were left out below them, and whether one of those is set.
    pub(super) fn top(&self) -> (u128, u32, bool) {
        let left_out = self.bits().saturating_sub(128);
        let (limb, bit) = ((left_out / 32) as usize, left_out % 32);
        let mut value = 0u128;
        for (at, &bits) in self.limbs[limb..].iter().enumerate() {
            let place = at as i32 * 32 - bit as i32;
            value |= if place >= 0 {
                u128::from(bits) << place
            } else {
                u128::from(bits) >> -place
            };
        }
        let below = self.limbs[..limb].iter().any(|&limb| limb != 0)
            || self
                .limbs
                .get(limb)
                .is_some_and(|&limb| limb & ((1 << bit) - 1) != 0);
        (value, left_out, below)
    }

    fn at_least(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.limbs.iter().rev(), other.limbs.iter().rev());
        self.limbs
            .len()
            .cmp(&other.limbs.len())
            .then_with(|| ours.cmp(theirs))
            .is_ge()
    }

    /// Takes off `other`, which is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = 0i64;
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let theirs = other.limbs.get(at).copied().unwrap_or(0);
            let difference = i64::from(*limb) - i64::from(theirs) + borrow;
            *limb = difference as u32;
            borrow = difference >> 32;
        }
        self.trim();
    }

    /// `self / divisor` as a number of 70 bits times a power of two: that number, the power, and
    /// whether the quotient lies above it. Neither number may be zero.
    pub(super) fn divide(mut self, mut divisor: Self) -> (u128, i32, bool) {
        // Bring the divisor into (dividend / 2, dividend], then take one bit per step.
        let mut power = self.bits() as i32 - divisor.bits() as i32;
        if power >= 0 {
            divisor.shift_left(power as u32);
        } else {
            self.shift_left(-power as u32);
        }
        if !self.at_least(&divisor) {
            self.shift_left(1);
            power -= 1;
        }
        let mut quotient = 0u128;
        for _ in 0..70 {
            quotient <<= 1;
            if self.at_least(&divisor) {
                self.subtract(&divisor);
                quotient |= 1;
            }
            self.shift_left(1);
        }
        (quotient, power - 69, !self.limbs.is_empty())
    }

    /// Appends the decimal digits.
    pub(super) fn write(mut self, out: &mut Vec<u8>) {
        let mut chunks = Vec::new();
        while !self.limbs.is_empty() {
            let mut rest = 0u64;
            for limb in self.limbs.iter_mut().rev() {
                rest = rest << 32 | u64::from(*limb);
                *limb = (rest / 1_000_000_000) as u32;
                rest %= 1_000_000_000;
            }
            self.trim();
            chunks.push(rest as u32);
        }
        let first = chunks.pop().unwrap_or(0);
        out.extend_from_slice(itoa::Buffer::new().format(first).as_bytes());
        for chunk in chunks.into_iter().rev() {
            out.extend_from_slice(format!("{chunk:09}").as_bytes());
        }
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}
