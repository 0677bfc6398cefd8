//! How often commands took how long: the buckets of a histogram in a statistics page.
//!
//! ```text
//!   64 ns        128 ns       256 ns             8 s      16 s and more
//!   | 8 buckets | 8 buckets | 8 buckets | ... | 8 buckets |
//! ```
//!
//! Each power of two is cut into eight, so a time is known to an eighth; a histogram is an array of
//! counts, and those of several processes are added up place by place.
//!
//! Cost: a count of leading zeros and two shifts.

/// Powers of two below the first bucket.
const FIRST_BIT: u32 = 6;
/// Powers of two that are cut up.
const OCTAVES: usize = 28;
/// Buckets of each.
const PARTS: usize = 8;

/// Buckets of a histogram.
pub const BUCKETS: usize = OCTAVES * PARTS;

/// The bucket of a time in nanoseconds.
#[inline]
#[must_use]
pub fn bucket(ns: u64) -> usize {
    let ns = ns.max(1 << FIRST_BIT);
    let bit = 63 - ns.leading_zeros();
    let part = (ns >> (bit - 3)) as usize % PARTS;
    ((bit - FIRST_BIT) as usize * PARTS + part).min(BUCKETS - 1)
}

/// The longest time of a bucket, in nanoseconds.
#[must_use]
pub fn longest(bucket: usize) -> u64 {
    let bucket = bucket.min(BUCKETS - 1);
    let bit = FIRST_BIT + (bucket / PARTS) as u32;
    (((bucket % PARTS + PARTS + 1) as u64) << (bit - 3)) - 1
}

/// The time in nanoseconds that so many percent of the counted calls did not exceed; 0 if there are none.
#[must_use]
pub fn percentile(counts: &[u64], percent: f64) -> u64 {
    let total: u64 = counts.iter().sum();
    let wanted = (percent / 100.0 * total as f64 + 0.5) as u64;
    let wanted = wanted.clamp(1, total.max(1));
    let mut passed = 0;
    for (bucket, count) in counts.iter().enumerate() {
        passed += count;
        if passed >= wanted {
            return longest(bucket);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_those_of_the_calls() {
        let mut counts = [0; BUCKETS];
        assert_eq!(percentile(&counts, 50.0), 0);
        for _ in 0..990 {
            counts[bucket(1_000)] += 1;
        }
        for _ in 0..10 {
            counts[bucket(5_000_000)] += 1;
        }
        assert_eq!(percentile(&counts, 0.0), longest(bucket(1_000)));
        assert_eq!(percentile(&counts, 50.0), 1_023);
        assert_eq!(percentile(&counts, 99.0), 1_023);
        assert_eq!(percentile(&counts, 99.9), longest(bucket(5_000_000)));
        assert_eq!(percentile(&counts, 100.0), longest(bucket(5_000_000)));
    }

    proptest! {
        #[test]
        fn a_bucket_is_at_most_an_eighth_wide(ns in 64u64..(1 << 34)) {
            let bucket = bucket(ns);
            prop_assert!(longest(bucket) >= ns);
            prop_assert!(longest(bucket) <= ns + ns / 8);
            prop_assert!(bucket == 0 || longest(bucket - 1) < ns);
        }

        #[test]
        fn every_time_has_one(ns: u64) {
            prop_assert!(bucket(ns) < BUCKETS);
        }
    }
}
