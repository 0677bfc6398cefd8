//! What a run counts: replies and their faults, and the distribution of latencies.

use hdrhistogram::Histogram;

/// Longest latency that is told apart; anything longer counts as this.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// Latencies below this many nanoseconds need not be told apart: far under a loopback round trip.
const LATENCY_NS_RESOLUTION: u64 = 128;

/// Significant decimal digits of the histogram: 0.1 %, well below the noise of any run.
const LATENCY_DIGITS: u8 = 3;

/// A distribution of latencies in nanoseconds.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram =
            Histogram::new_with_bounds(LATENCY_NS_RESOLUTION, LATENCY_NS_MAX, LATENCY_DIGITS);
        Self(histogram.expect("the bounds are constants that the histogram accepts"))
    }
}

impl Latencies {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        self.0
            .add(&other.0)
            .expect("all histograms here have the same bounds");
    }

    /// Latency in microseconds below which `quantile` (0 to 1) of them lie; 0 if there are none.
    pub fn at_us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Longest latency in microseconds.
    pub fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1_000.0
    }

    /// Mean latency in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.0.mean() / 1_000.0
    }

    /// Number of latencies counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
}

/// Counts of one run or one thread of it.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Replies received in the measured interval.
    pub replies: u64,
    /// Error replies among all replies.
    pub errors: u64,
    /// Values that were null although a value was asked for.
    pub misses: u64,
    /// Replies of a wrong type or with a value of a wrong size.
    pub wrong: u64,
    /// Text of the first error reply.
    pub first_error: Option<String>,
    /// Closed loop: from sending a batch to its last reply. Open loop: from the intended time.
    pub latencies: Latencies,
}

impl Tally {
    /// Adds what another thread counted.
    pub(crate) fn add(&mut self, other: Self) {
        self.replies += other.replies;
        self.errors += other.errors;
        self.misses += other.misses;
        self.wrong += other.wrong;
        self.first_error = self.first_error.take().or(other.first_error);
        self.latencies.add(&other.latencies);
    }

    /// A sentence about replies that were not as they must be; `None` if all were.
    pub fn complaint(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.errors > 0 {
            let text = self.first_error.as_deref().unwrap_or("?");
            parts.push(format!("{} error replies (first: {text})", self.errors));
        }
        if self.wrong > 0 {
            parts.push(format!("{} replies of a wrong type or size", self.wrong));
        }
        if self.misses > 0 {
            parts.push(format!("{} values missing", self.misses));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
