//! `--suite stalls`: whether other clients wait while a giant collection grows, is deleted, expires or
//! is overwritten.
//!
//! ```text
//!   48 connections   GET GET GET GET GET GET GET GET ...  10,000 per second, open loop
//!   one more         .......| HSET giant 100 fields, 50,000 times |   or  DEL, PEXPIRE, SET
//! ```
//!
//! The latencies of the GETs are what counts, from the time at which each was meant to be sent. A step
//! that ends at once for its client is watched for some seconds more: a server may do the work later.
//! The step `nothing` shows what the machine does to the same GETs.
//!
//! Not here: what the elements are (`collections`), the verdicts (`verdict`).

use std::thread;
use std::time::Duration;

use super::Contender;
use super::collections::Collection;
use super::measure::Measure;
use super::suite::{StallPlan, Work};
use crate::arrivals::Spacing;
use crate::client::{Client, Target};
use crate::closed_loop::Unobserved;
use crate::error::BenchError;
use crate::open_loop::{OpenLoop, RateOutcome};
use crate::report::Sample;
use crate::throughput::{Fill, fill};
use crate::workload::{Command, Mix, Shape};

/// Keys that the GETs ask for.
const KEYS: u64 = 100_000;

/// Connections of the GETs, and how many come in a second.
const CONNECTIONS: usize = 48;
const RATE: f64 = 10_000.0;

/// GETs run for so long at a time, until the step is done; long enough for a step that ends at once,
/// and for what the server does later.
const PART: Duration = Duration::from_millis(3_000);

/// Time at the beginning of a part, before the step, in which the connections get going.
const WARM_UP: Duration = Duration::from_millis(300);

/// Time between the first GETs and the step.
const LEAD: Duration = Duration::from_millis(500);

/// Time to live of what expires.
const TIME_TO_LIVE_MS: u64 = 300;

const GIANT: &str = "giant";

/// What happens beside the GETs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Grows to its size by commands of so many elements.
    Grow(u64),
    Delete,
    Expire,
    Overwrite,
}

/// All steps in their order; each way to go needs a collection that has grown before.
pub(super) const STEPS: [Step; 7] = [
    Step::Nothing,
    Step::Grow(100),
    Step::Delete,
    Step::Grow(1_000),
    Step::Expire,
    Step::Grow(10_000),
    Step::Overwrite,
];

impl Step {
    pub(super) fn words(self) -> String {
        match self {
            Self::Nothing => "nothing".into(),
            Self::Grow(batch) => format!("grown by {batch}"),
            Self::Delete => "deleted".into(),
            Self::Expire => "expires".into(),
            Self::Overwrite => "overwritten".into(),
        }
    }

    /// Whether it must not be felt. Whoever sends ten thousand elements in one command asks for the
    /// time that they take.
    pub(super) fn is_judged(self) -> bool {
        !matches!(self, Self::Nothing | Self::Grow(1_000..))
    }

    /// Name of its samples.
    pub(super) fn sample_name(self, work: &str) -> String {
        format!("{work}: {}", self.words())
    }

    /// Does it.
    fn act(self, target: &Target, collection: Collection, elements: u64) -> Result<(), BenchError> {
        thread::sleep(LEAD);
        let mut client = Client::connect(target)?;
        match self {
            Self::Nothing => {}
            Self::Grow(batch) => {
                let mut request = Vec::new();
                let mut first = 0;
                while first < elements {
                    let end = elements.min(first + batch);
                    request.clear();
                    let replies = collection.render(GIANT, first..end, &mut request);
                    client.batch(&request, replies)?;
                    first = end;
                }
            }
            Self::Delete => {
                client.must(&["DEL", GIANT])?;
            }
            Self::Expire => {
                client.must(&["PEXPIRE", GIANT, &TIME_TO_LIVE_MS.to_string()])?;
                thread::sleep(Duration::from_millis(TIME_TO_LIVE_MS));
            }
            Self::Overwrite => {
                client.must(&["SET", GIANT, "small"])?;
                client.must(&["DEL", GIANT])?;
            }
        }
        Ok(())
    }
}

/// All repetitions, each in processes of their own.
pub(super) fn run(
    measure: &mut Measure<'_>,
    work: &Work,
    plan: &StallPlan,
    contenders: &[Contender],
    samples: &mut Vec<Sample>,
) -> Result<(), BenchError> {
    measure.each_afresh(
        work,
        contenders,
        |measure, server, contender, repetition| {
            let target = server.target();
            fill(&target, &get_shape(), Fill::Always, measure.progress)?;
            for step in STEPS {
                let name = step.sample_name(&work.name);
                measure
                    .progress
                    .step(format!("{name} {repetition} {contender}"));
                let act = || step.act(&target, plan.collection, plan.elements);
                let outcome = watched(&target, act)?;
                if let Some(complaint) = outcome.tally.complaint() {
                    let line = format!("{contender}, {name}: {complaint}");
                    measure.progress.line(&line);
                }
                samples.push(Sample::open(&name, contender, repetition, &outcome));
            }
            Ok(())
        },
    )
}

/// The keys of the GETs.
pub(super) fn get_shape() -> Shape {
    Shape {
        keys: KEYS,
        key_size: 16,
        value_size: 64,
        ..Shape::default()
    }
}

/// GETs from many connections until `act`, beside them, is done, and for some seconds at least.
pub(super) fn watched(
    target: &Target,
    act: impl FnOnce() -> Result<(), BenchError> + Send,
) -> Result<RateOutcome, BenchError> {
    thread::scope(|scope| {
        let actor = scope.spawn(act);
        let mut whole: Option<RateOutcome> = None;
        let mut parts = 0_u64;
        loop {
            let gets = OpenLoop {
                mix: Mix::only(Command::Get),
                shape: get_shape(),
                rate: RATE,
                spacing: Spacing::Even,
                connections: CONNECTIONS,
                pipeline: 1,
                threads: 1,
                warm_up: WARM_UP,
                duration: PART,
                spin: Duration::ZERO,
                seed: parts,
            };
            let part = gets.run(target, &mut Unobserved)?;
            parts += 1;
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => whole.add(part),
            }
            if actor.is_finished() {
                break;
            }
        }
        actor
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut whole = whole.expect("the loop ran at least once");
        whole.offered /= parts as f64;
        whole.reached /= parts as f64;
        Ok(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::Responder;

    #[test]
    fn gets_go_on_until_the_step_is_done_and_feel_it() {
        let responder = Responder::start();
        let target = responder.target();
        fill(&target, &get_shape(), Fill::Always, &mut Unobserved).unwrap();
        let outcome = watched(&target, || {
            thread::sleep(LEAD);
            responder.delay(Duration::from_millis(40));
            thread::sleep(Duration::from_millis(60));
            responder.delay(Duration::ZERO);
            Ok(())
        })
        .unwrap();
        assert_eq!(outcome.tally.complaint(), None);
        assert!(outcome.tally.latencies.at_us(0.999) > 10_000.0);
        assert!(
            (outcome.offered - RATE).abs() < 100.0,
            "{}",
            outcome.offered
        );
    }

    #[test]
    fn what_goes_wrong_in_a_step_is_told() {
        let responder = Responder::start();
        // The responder knows no sets.
        let act = || Step::Grow(2).act(&responder.target(), Collection::WordSet, 4);
        let error = watched(&responder.target(), act).unwrap_err();
        assert!(error.to_string().contains("unknown command"), "{error}");
    }

    #[test]
    fn only_moderate_batches_are_judged() {
        let judged: Vec<String> = STEPS
            .into_iter()
            .filter(|step| step.is_judged())
            .map(Step::words)
            .collect();
        assert_eq!(
            judged,
            ["grown by 100", "deleted", "expires", "overwritten"]
        );
    }
}
