//! Finds the highest rate that a server sustains, with few measurements.
//!
//! ```text
//!   start sustained:  start, start*g, start*g^2 ... until one fails     -> bracket (low, high)
//!   start fails:      start/g, start/g^2 ...        until one holds     -> bracket (low, high)
//!   then: geometric mean of the bracket, again and again, until high/low <= 1 + resolution
//! ```
//!
//! Sustaining is not strictly monotonic on a noisy machine; the search ends in any case, and its
//! result is always a rate that was measured and held.

/// Rates outside of this range are not tried.
const RATE_MIN: f64 = 100.0;
const RATE_MAX: f64 = 50_000_000.0;

/// How to search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// First rate to try.
    pub(crate) start: f64,
    /// Factor between rates until the border is enclosed; above 1.
    pub(crate) growth: f64,
    /// Relative width of the bracket at which the search ends.
    pub(crate) resolution: f64,
}

impl Search {
    /// The highest rate for which `holds` was true, 0 if none was.
    pub(crate) fn run<E>(&self, mut holds: impl FnMut(f64) -> Result<bool, E>) -> Result<f64, E> {
        let mut rate = self.start.clamp(RATE_MIN, RATE_MAX);
        let (mut low, mut high);
        if holds(rate)? {
            loop {
                low = rate;
                rate *= self.growth;
                if rate > RATE_MAX {
                    return Ok(low);
                }
                if !holds(rate)? {
                    high = rate;
                    break;
                }
            }
        } else {
            loop {
                high = rate;
                rate /= self.growth;
                if rate < RATE_MIN {
                    return Ok(0.0);
                }
                if holds(rate)? {
                    low = rate;
                    break;
                }
            }
        }
        while high / low > 1.0 + self.resolution {
            let middle = (low * high).sqrt();
            if holds(middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::Search;

    fn find(border: f64, start: f64) -> (f64, u32) {
        let mut calls = 0;
        let found = Search {
            start,
            growth: 1.5,
            resolution: 0.03,
        }
        .run(|rate| {
            calls += 1;
            Ok::<_, Infallible>(rate <= border)
        })
        .unwrap();
        (found, calls)
    }

    #[test]
    fn finds_the_border_from_both_sides() {
        for start in [10_000.0, 90_000.0, 100_000.0, 400_000.0] {
            let (found, calls) = find(100_000.0, start);
            assert!((97_000.0..=100_000.0).contains(&found), "{start}: {found}");
            assert!(calls <= 12, "{calls}");
        }
    }

    #[test]
    fn gives_up_at_the_ends() {
        assert_eq!(find(10.0, 1_000.0).0, 0.0);
        assert!(find(f64::INFINITY, 1_000.0).0 > 10_000_000.0);
    }
}
