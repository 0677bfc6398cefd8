//! The works that servers are compared by, and what ours must reach in each.
//!
//! Works that change the data run a fixed number of commands on an empty key space, so that every
//! server does the same work on the same data; a run by time would let a faster server append to
//! longer values, or find more keys already set. All others run for a time on a filled key space.

use super::Suite;
use crate::workload::{Command, Mix, Shape};

/// Connections of the throughput works.
const CONNECTIONS: usize = 50;

/// Rates that every server is measured at, whatever it can do.
pub(super) const FIXED_RATES: [f64; 3] = [10_000.0, 20_000.0, 40_000.0];

/// Rates relative to the highest that Redis sustains: from half of it on, ours must be ahead.
pub(super) const RELATIVE_RATES: [f64; 3] = [0.5, 0.75, 1.0];

/// Keys that the growth suite inserts, and the size of their values.
const GROWTH_KEYS: u64 = 5_000_000;
const GROWTH_VALUE_SIZE: usize = 64;

/// Bytes per key that must not be exceeded, for values of 8, 32 and 256 bytes.
const MEMORY_LIMITS: [(usize, f64); 3] = [(8, 52.0), (32, 72.0), (256, 300.0)];

/// Resident memory may exceed the limit of the used one by this factor.
const RESIDENT_SLACK: f64 = 1.1;

/// A figure that an expectation speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Requests per second.
    Throughput,
    /// CPU microseconds per operation of all server processes.
    ServerCpu,
    /// Bytes per key by the server's own count.
    UsedPerKey,
    /// Resident bytes per key.
    ResidentPerKey,
    /// Longest batch of inserts, in microseconds.
    LongestInsert,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Against {
    /// The better one of all Redis servers in the run.
    Redis,
    /// The better one of all Valkey servers in the run.
    Valkey,
    /// The best of all peers.
    Best,
    /// A fixed number.
    Absolute,
}

/// A bound on a ratio or number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Something that must be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expected {
    pub(crate) metric: Metric,
    pub(crate) against: Against,
    pub(crate) bound: Bound,
}

/// A closed-loop work.
#[derive(Debug, Clone)]
pub(crate) struct Closed {
    pub(crate) mix: Mix,
    pub(crate) pipeline: usize,
    pub(crate) connections: usize,
    /// Fixed number of commands per second of duration on an empty key space, instead of a time.
    pub(crate) fresh: bool,
}

/// An open-loop work: a search and fixed rates.
#[derive(Debug, Clone)]
pub(crate) struct RatePlan {
    pub(crate) mix: Mix,
    pub(crate) connections: usize,
}

/// A memory or growth work.
#[derive(Debug, Clone)]
pub(crate) struct Filling {
    pub(crate) shape: Shape,
}

/// How a work is done.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Closed(Closed),
    Rates(RatePlan),
    Memory(Filling),
    Growth(Filling),
}

impl Kind {
    /// Whether it starts servers of its own, because it needs a process without a past.
    pub(super) fn needs_fresh_servers(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Growth(_))
    }
}

/// One line of the comparison.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) repetitions: u32,
    pub(crate) expected: Vec<Expected>,
}

/// The works of `suites`, each once, in an order that fills key spaces as rarely as possible.
pub(super) fn works(suites: &[Suite], repetitions: Option<u32>, shape: &Shape) -> Vec<Work> {
    let wanted = |suite: Suite| {
        suites.contains(&suite) || (suites.contains(&Suite::All) && suite != Suite::Twelve)
    };
    let mut works = Vec::new();
    if wanted(Suite::P30) {
        works.extend(pipelined());
    }
    if wanted(Suite::P1) {
        works.extend([Command::Get, Command::Set].map(|command| {
            let expected = [at_least(Against::Best, 0.97), cpu(1.03)];
            closed(Mix::only(command), 1, CONNECTIONS, 9, &expected)
        }));
    }
    if wanted(Suite::P1Many) {
        works.extend(
            [Mix::only(Command::Get), Mix::set_get(1, 10)]
                .map(|mix| closed(mix, 1, 816, 5, &[at_least(Against::Best, 1.05), cpu(0.85)])),
        );
    }
    if wanted(Suite::Rates) {
        for mix in [Mix::only(Command::Get), Mix::set_get(1, 10)] {
            for connections in [48, 816] {
                works.push(Work {
                    name: format!("{mix} c={connections} at fixed rates"),
                    kind: Kind::Rates(RatePlan {
                        mix: mix.clone(),
                        connections,
                    }),
                    repetitions: 3,
                    expected: Vec::new(),
                });
            }
        }
    }
    if wanted(Suite::Twelve) && !wanted(Suite::P30) {
        let all = Command::ALL.map(|command| closed(Mix::only(command), 30, CONNECTIONS, 5, &[]));
        works.extend(all);
    }
    // Those that empty the key space come last.
    works.sort_by_key(|work| matches!(&work.kind, Kind::Closed(closed) if closed.fresh));
    if wanted(Suite::Memory) {
        works.extend(MEMORY_LIMITS.map(|(size, limit)| memory(size, limit, shape)));
    }
    if wanted(Suite::Growth) {
        works.push(growth(shape));
    }
    if let Some(repetitions) = repetitions {
        works
            .iter_mut()
            .for_each(|work| work.repetitions = repetitions.max(1));
    }
    works
}

fn pipelined() -> Vec<Work> {
    let work = |command, redis, valkey, cpu_ratio| {
        let expected = [
            at_least(Against::Redis, redis),
            at_least(Against::Valkey, valkey),
            cpu(cpu_ratio),
        ];
        closed(Mix::only(command), 30, CONNECTIONS, 5, &expected)
    };
    let mut works = vec![
        work(Command::Get, 2.5, 1.5, 0.42),
        work(Command::Set, 2.5, 1.7, 0.38),
    ];
    let others = [
        Command::MGet,
        Command::MSet,
        Command::Incr,
        Command::Append,
        Command::SetNx,
        Command::Ping,
    ];
    works.extend(others.map(|command| work(command, 1.8, 1.2, 0.6)));
    works
}

fn closed(
    mix: Mix,
    pipeline: usize,
    connections: usize,
    repetitions: u32,
    expected: &[Expected],
) -> Work {
    let fresh = mix.commands().any(|command| {
        command.grows() || matches!(command, Command::SetNx | Command::SAdd | Command::HSet)
    });
    Work {
        name: format!("{mix} P={pipeline} c={connections}"),
        kind: Kind::Closed(Closed {
            mix,
            pipeline,
            connections,
            fresh,
        }),
        repetitions,
        expected: expected.to_vec(),
    }
}

fn memory(value_size: usize, limit: f64, shape: &Shape) -> Work {
    let at_most = |metric, limit| Expected {
        metric,
        against: Against::Absolute,
        bound: Bound::AtMost(limit),
    };
    Work {
        name: format!("memory, values of {value_size} B"),
        kind: Kind::Memory(Filling {
            shape: Shape {
                value_size,
                ..shape.clone()
            },
        }),
        repetitions: 1,
        expected: vec![
            at_most(Metric::UsedPerKey, limit),
            at_most(Metric::ResidentPerKey, limit * RESIDENT_SLACK),
        ],
    }
}

fn growth(shape: &Shape) -> Work {
    let shape = Shape {
        keys: GROWTH_KEYS,
        value_size: GROWTH_VALUE_SIZE,
        ..shape.clone()
    };
    Work {
        name: format!("growth to {} M keys", GROWTH_KEYS / 1_000_000),
        kind: Kind::Growth(Filling { shape }),
        repetitions: 3,
        expected: vec![Expected {
            metric: Metric::LongestInsert,
            against: Against::Absolute,
            bound: Bound::AtMost(1_000.0),
        }],
    }
}

fn at_least(against: Against, ratio: f64) -> Expected {
    Expected {
        metric: Metric::Throughput,
        against,
        bound: Bound::AtLeast(ratio),
    }
}

fn cpu(ratio: f64) -> Expected {
    Expected {
        metric: Metric::ServerCpu,
        against: Against::Redis,
        bound: Bound::AtMost(ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_everything_with_expectations_and_each_work_once() {
        let works = works(&[Suite::All, Suite::P1], None, &Shape::default());
        let mut names: Vec<&str> = works.iter().map(|work| work.name.as_str()).collect();
        assert_eq!(works.len(), 8 + 2 + 2 + 4 + 3 + 1);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), works.len());
        let fresh = |work: &Work| matches!(&work.kind, Kind::Closed(closed) if closed.fresh);
        let first_fresh = works.iter().position(fresh).unwrap();
        assert!(
            works[first_fresh..]
                .iter()
                .all(|work| fresh(work) || work.kind.needs_fresh_servers())
        );
    }

    #[test]
    fn repetitions_can_be_chosen() {
        let works = works(&[Suite::Twelve], Some(2), &Shape::default());
        assert_eq!(works.len(), 12);
        assert!(
            works
                .iter()
                .all(|work| work.repetitions == 2 && work.expected.is_empty())
        );
    }
}
