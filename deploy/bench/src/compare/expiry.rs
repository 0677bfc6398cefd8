//! `--suite expiry`: how long after its deadline a key is gone, at a million keys with a time to live.
//!
//! Nobody touches the keys, so only active expiry removes them. Their deadlines are spread evenly over
//! some seconds and known, so two numbers say it all: how many should be gone by now, and how many are,
//! by DBSIZE and by `expired_keys`, whichever is less. The k-th key that is gone is held against the
//! k-th deadline. Meanwhile 48 other connections GET, as in `stalls`: promptness is not bought by them.
//!
//! ```text
//!   keys |                    ____ due
//!        |                 __/ __ gone                   lag of the k-th key: the distance between the
//!        |              __/ __/                          two lines at height k
//!        |____________ / __/____ time
//! ```

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Contender;
use super::measure::Measure;
use super::stalls::{get_shape, watched};
use super::suite::Work;
use crate::client::{Client, Target, Value, render};
use crate::error::BenchError;
use crate::report::Sample;
use crate::server::info_number;
use crate::tally::Latencies;
use crate::throughput::{Fill, fill};

/// Keys with a time to live.
const KEYS: u64 = 1_000_000;

/// Time from the first to the last deadline, in milliseconds.
const SPREAD_MS: u64 = 5_000;

/// Time between the last key and the first deadline.
const AHEAD_MS: u64 = 2_000;

/// Time that loading may take, in milliseconds.
const LOAD_MS: u64 = 20_000;

/// Keys that are still there so long after the last deadline are given up.
const GIVE_UP_MS: u64 = 10_000;

/// Time between two looks at the counts.
const PAUSE: Duration = Duration::from_millis(2);

/// Commands per batch while loading.
const BATCH: u64 = 500;

/// Odd and below [`KEYS`], so that neighbours in deadline are not neighbours in time of insertion.
const STEP: u64 = 618_033;

/// Name of the sample of the GETs.
pub(super) fn gets_name(work: &str) -> String {
    format!("{work} (GETs)")
}

fn wall_clock_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64() * 1e3
}

/// Deadline of the key that expires as number `rank`.
fn deadline(begin_ms: u64, rank: u64) -> u64 {
    begin_ms + rank * SPREAD_MS / KEYS
}

/// Sets the keys.
fn load(target: &Target, begin_ms: u64) -> Result<(), BenchError> {
    let mut client = Client::connect(target)?;
    let mut requests = Vec::new();
    for first in (0..KEYS).step_by(BATCH as usize) {
        requests.clear();
        for number in first..first + BATCH {
            let rank = number * STEP % KEYS;
            let key = format!("due:{number:012}");
            let at = deadline(begin_ms, rank).to_string();
            render(&["SET", &key, "12345678", "PXAT", &at], &mut requests);
        }
        client.batch(&requests, BATCH as usize)?;
    }
    Ok(())
}

/// Lags of keys, fed with looks at how many are gone.
#[derive(Debug, Default)]
struct Lags {
    latencies: Latencies,
    gone: u64,
    /// Keys that were gone before their time.
    early: u64,
}

impl Lags {
    /// At `now_ms`, `gone` keys are gone.
    fn look(&mut self, begin_ms: u64, now_ms: f64, gone: u64) {
        for rank in self.gone..gone.min(KEYS) {
            let lag = now_ms - deadline(begin_ms, rank) as f64;
            // Deadlines are whole milliseconds, so a key may go in the one before this look.
            self.early += u64::from(lag < -1.0);
            self.latencies.record((lag.max(0.0) * 1e6) as u64);
        }
        self.gone = self.gone.max(gone);
    }
}

/// Watches the keys go until all are gone or given up.
fn watch(target: &Target, begin_ms: u64, others: u64) -> Result<Lags, BenchError> {
    let mut client = Client::connect(target)?;
    let mut lags = Lags::default();
    let end_ms = (begin_ms + SPREAD_MS + GIVE_UP_MS) as f64;
    while lags.gone < KEYS {
        let Value::Integer(size) = client.must(&["DBSIZE"])? else {
            return Err(BenchError::Server("DBSIZE is not a number".into()));
        };
        let left = u64::try_from(size).unwrap_or(0).saturating_sub(others);
        let counted = info_number(&mut client, "stats", "expired_keys")?;
        let now_ms = wall_clock_ms();
        let gone = if now_ms < end_ms {
            counted.min(KEYS.saturating_sub(left))
        } else {
            KEYS
        };
        lags.look(begin_ms, now_ms, gone);
        thread::sleep(PAUSE);
    }
    Ok(lags)
}

/// All repetitions, each in processes of their own.
pub(super) fn run(
    measure: &mut Measure<'_>,
    work: &Work,
    contenders: &[Contender],
    samples: &mut Vec<Sample>,
) -> Result<(), BenchError> {
    measure.each_afresh(work, contenders, |measure, server, name, repetition| {
        let target = server.target();
        let others = get_shape();
        fill(&target, &others, Fill::Always, measure.progress)?;
        let begin_ms = load_in_time(&target)?;
        let mut lags = Lags::default();
        let outcome = watched(&target, || {
            lags = watch(&target, begin_ms, others.keys)?;
            Ok(())
        })?;
        let gets = gets_name(&work.name);
        samples.push(lag_sample(&work.name, name, repetition, &lags));
        samples.push(Sample::open(&gets, name, repetition, &outcome));
        Ok(())
    })
}

/// Loads and waits until shortly before the first deadline; tells when that is.
fn load_in_time(target: &Target) -> Result<u64, BenchError> {
    // How long it takes is found out by doing it.
    let rehearsal = wall_clock_ms();
    load(target, rehearsal as u64 + LOAD_MS + SPREAD_MS)?;
    let took = wall_clock_ms() - rehearsal;
    let begin_ms = (wall_clock_ms() + 1.5 * took) as u64 + AHEAD_MS;
    // The same keys again, with the deadlines that count.
    load(target, begin_ms)?;
    let left = begin_ms as f64 - wall_clock_ms() - LEAD_MS;
    if left < 0.0 {
        return Err(BenchError::Server(
            "took much longer to load keys the second time".into(),
        ));
    }
    thread::sleep(Duration::from_secs_f64(left / 1e3));
    Ok(begin_ms)
}

/// Time between the first look and the first deadline, in milliseconds.
const LEAD_MS: f64 = 500.0;

fn lag_sample(work: &str, server: &str, repetition: u32, lags: &Lags) -> Sample {
    let at = |quantile| lags.latencies.at_us(quantile);
    Sample {
        work: work.to_owned(),
        server: server.to_owned(),
        repetition,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: lags.latencies.max_us(),
        replies: lags.latencies.count(),
        wrong: lags.early,
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kth_key_that_is_gone_is_held_against_the_kth_deadline() {
        let mut lags = Lags::default();
        // 200 keys are due per millisecond; a fifth is gone 30 ms late, the rest at once at the end.
        lags.look(1_000, 2_030.0, KEYS / 5);
        lags.look(1_000, 2_040.0, KEYS / 5);
        lags.look(1_000, 6_001.0, KEYS);
        assert_eq!((lags.gone, lags.early), (KEYS, 0));
        assert_eq!(lags.latencies.count(), KEYS);
        // The first of the fifth waited for 1,030 ms, its last for 30 ms; of the rest 4 s to 1 ms.
        assert!((lags.latencies.max_us() - 4_001_000.0).abs() < 10_000.0);
        let sample = lag_sample("w", "s", 1, &lags);
        assert!(sample.p50_us > 500_000.0 && sample.p99_us < 4_001_000.0);
    }

    #[test]
    fn keys_that_go_before_their_time_are_counted() {
        let mut lags = Lags::default();
        lags.look(1_000, 900.0, 10);
        assert_eq!(lags.early, 10);
    }

    #[test]
    fn every_rank_is_taken_once() {
        let mut seen = vec![false; KEYS as usize];
        (0..KEYS).for_each(|number| seen[(number * STEP % KEYS) as usize] = true);
        assert!(seen.into_iter().all(|seen| seen));
    }
}
