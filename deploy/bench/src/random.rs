//! A small, seeded source of uniform numbers for keys and arrival times.
//!
//! Why not a package: the generator draws one number per key on its hottest path, needs the same
//! sequence again for the same seed, and needs no more quality than "keys do not cluster". This is
//! SplitMix64: one addition, two multiplications, 64 bits of state.

/// Seeded generator; equal seeds give equal sequences.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator whose whole sequence follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 uniform bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`; `bound` 0 gives 0. The bias is below `bound / 2^64`, far under what a
    /// run can show.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the 128-bit product is smaller than `bound`, so it fits.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `0.0..1.0`, with 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn stays_below_its_bound_and_reaches_both_ends() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(
            seen.iter().all(|&count| (800..1200).contains(&count)),
            "{seen:?}"
        );
        assert_eq!(random.below(1), 0);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn equal_seeds_give_equal_sequences() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn unit_is_in_range_with_the_right_mean() {
        let mut random = Random::new(3);
        let sum: f64 = (0..10_000).map(|_| random.unit()).sum();
        assert!((4_800.0..5_200.0).contains(&sum), "{sum}");
    }
}
