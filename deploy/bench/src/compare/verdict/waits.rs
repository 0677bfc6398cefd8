//! Whether others wait while giants come and go, and whether keys expire in time.

use super::super::suite::{EXPIRY_LAG_MAX_US, Kind, STALL_MAX_US, Work};
use super::super::{OURS, expiry, stalls};
use super::{Verdict, least_of};
use crate::report::{Sample, micros};

/// Verdicts of the suites `stalls` and `expiry`.
pub(super) fn judge(work: &Work, samples: &[Sample]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut hold = |name: &str, words: &str, figure: fn(&Sample) -> f64, limit: f64| {
        if let Some(found) = least_of(samples, name, OURS, figure) {
            verdicts.push(Verdict {
                work: name.to_owned(),
                expectation: format!("{words} at most {}", micros(limit)),
                found: micros(found),
                reached: found <= limit,
            });
        }
    };
    let p999 = |sample: &Sample| sample.p999_us;
    if matches!(work.kind, Kind::Expiry) {
        let p99 = |sample: &Sample| sample.p99_us;
        hold(&work.name, "p99 of the lag", p99, EXPIRY_LAG_MAX_US);
        let early = |sample: &Sample| sample.wrong as f64;
        let gets = expiry::gets_name(&work.name);
        hold(&gets, "p99.9 of GETs", p999, STALL_MAX_US);
        if let Some(early) = least_of(samples, &work.name, OURS, early) {
            verdicts.push(Verdict {
                work: work.name.clone(),
                expectation: "no key gone before its deadline".into(),
                found: format!("{early:.0}"),
                reached: early == 0.0,
            });
        }
        return verdicts;
    }
    for step in stalls::STEPS {
        if step.is_judged() {
            let name = step.sample_name(&work.name);
            hold(&name, "p99.9 of GETs", p999, STALL_MAX_US);
        }
    }
    // What the machine alone does to the same GETs tells how to read a failure.
    let nothing = stalls::Step::Nothing.sample_name(&work.name);
    if let Some(alone) = least_of(samples, &nothing, OURS, p999) {
        for verdict in &mut verdicts {
            verdict.found = format!("{} (nothing: {})", verdict.found, micros(alone));
        }
    }
    verdicts
}
