//! The works that servers are compared by, and what ours must reach in each.
//!
//! Works that change the data run a fixed number of commands on an empty key space, so that every
//! server does the same work on the same data; a run by time would let a faster server append to
//! longer values, or find more keys already set. All others run for a time on a filled key space.

use super::Suite;
use super::collections::{Collection, LOADS, Load};
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

/// Bytes per key that must not be exceeded, for values of 8, 32 and 256 bytes, and the part of the
/// best peer's that must not be either.
const MEMORY_LIMITS: [(usize, f64, f64); 3] = [(8, 52.0, 0.8), (32, 72.0, 0.8), (256, 300.0, 1.0)];

/// Resident memory may exceed the limit of the used one by this factor.
const RESIDENT_SLACK: f64 = 1.1;

/// Collections that come and go in the stalls suite, and their size.
const GIANTS: [Collection; 4] = [
    Collection::WordSet,
    Collection::Hash,
    Collection::List,
    Collection::SortedSet,
];
const GIANT_ELEMENTS: u64 = 5_000_000;

/// Longest p99.9 of GETs in microseconds, whatever happens to a giant or to keys that expire.
pub(super) const STALL_MAX_US: f64 = 2_000.0;

/// Longest p99 in microseconds of the time from a deadline to the end of the key.
pub(super) const EXPIRY_LAG_MAX_US: f64 = 100_000.0;

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
    /// Median latency in microseconds.
    Median,
    /// 99th percentile of latency in microseconds.
    P99,
}

impl Metric {
    /// Its name for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Throughput => "requests/s",
            Self::ServerCpu => "CPU per operation",
            Self::UsedPerKey => "used bytes per key",
            Self::ResidentPerKey => "resident bytes per key",
            Self::LongestInsert => "longest batch of inserts",
            Self::Median => "p50",
            Self::P99 => "p99",
        }
    }
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

/// A memory work: strings or collections.
#[derive(Debug, Clone)]
pub(crate) enum Filling {
    Strings(Shape),
    Collections(Load),
}

impl Filling {
    /// Number of keys; of the one stream, number of entries.
    pub(super) fn keys(&self) -> u64 {
        match self {
            Self::Strings(shape) => shape.keys,
            Self::Collections(load) if load.collection == Collection::Stream => load.elements,
            Self::Collections(load) => load.keys,
        }
    }

    /// Bytes per key below which a server cannot have stored it: such a count proves nothing.
    pub(super) fn least(&self) -> f64 {
        match self {
            Self::Strings(shape) => (shape.key_size + shape.value_size) as f64,
            Self::Collections(load) if load.collection == Collection::Stream => 8.0,
            Self::Collections(load) => 2.0 * load.elements as f64,
        }
    }
}

/// A giant collection that comes and goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StallPlan {
    pub(crate) collection: Collection,
    pub(crate) elements: u64,
}

/// How redis-benchmark is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedPlan {
    pub(crate) pipeline: u64,
    pub(crate) clients: u64,
    pub(crate) threads: u64,
    /// Through a Unix socket, with a password.
    pub(crate) through_socket: bool,
    /// Requests of a test per second of duration that was asked for.
    pub(crate) requests_per_second: f64,
    pub(crate) options: &'static [&'static str],
}

/// How a work is done.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Closed(Closed),
    Rates(RatePlan),
    Memory(Filling),
    Growth(Shape),
    Stalls(StallPlan),
    Expiry,
    Listed(ListedPlan),
}

impl Kind {
    /// Whether it starts servers of its own, because it needs a process without a past.
    pub(super) fn needs_fresh_servers(&self) -> bool {
        !matches!(self, Self::Closed(_) | Self::Rates(_))
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
        works.extend(MEMORY_LIMITS.map(|limits| memory(limits, shape)));
    }
    if wanted(Suite::Collections) {
        works.extend(LOADS.map(collections));
    }
    if wanted(Suite::Growth) {
        works.push(growth(shape));
    }
    if wanted(Suite::Stalls) {
        works.extend(GIANTS.map(stalls));
    }
    if wanted(Suite::Expiry) {
        works.push(Work {
            name: "1 M keys that expire".into(),
            kind: Kind::Expiry,
            repetitions: 1,
            expected: Vec::new(),
        });
    }
    if wanted(Suite::RedisBenchmark) {
        works.extend(listed());
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

fn memory((value_size, limit, part): (usize, f64, f64), shape: &Shape) -> Work {
    let at_most = |metric, against, limit| Expected {
        metric,
        against,
        bound: Bound::AtMost(limit),
    };
    Work {
        name: format!("memory, values of {value_size} B"),
        kind: Kind::Memory(Filling::Strings(Shape {
            value_size,
            ..shape.clone()
        })),
        repetitions: 1,
        expected: vec![
            at_most(Metric::UsedPerKey, Against::Absolute, limit),
            at_most(
                Metric::ResidentPerKey,
                Against::Absolute,
                limit * RESIDENT_SLACK,
            ),
            at_most(Metric::UsedPerKey, Against::Best, part),
            at_most(Metric::ResidentPerKey, Against::Best, part),
        ],
    }
}

fn collections(load: Load) -> Work {
    let expected = [Metric::UsedPerKey, Metric::ResidentPerKey].map(|metric| Expected {
        metric,
        against: Against::Best,
        bound: Bound::AtMost(1.0),
    });
    Work {
        name: format!("memory, {}", load.name),
        kind: Kind::Memory(Filling::Collections(load)),
        repetitions: 1,
        expected: expected.to_vec(),
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
        kind: Kind::Growth(shape),
        repetitions: 3,
        expected: vec![Expected {
            metric: Metric::LongestInsert,
            against: Against::Absolute,
            bound: Bound::AtMost(1_000.0),
        }],
    }
}

fn stalls(collection: Collection) -> Work {
    let plan = StallPlan {
        collection,
        elements: GIANT_ELEMENTS,
    };
    Work {
        name: format!("{} of {} M", collection.name(), GIANT_ELEMENTS / 1_000_000),
        kind: Kind::Stalls(plan),
        repetitions: 1,
        expected: Vec::new(),
    }
}

/// redis-benchmark as people call it: with many commands in flight, with one, and with many clients
/// through a socket. With 30 in flight a second thread of the client is worth a look, because one is
/// busy with the requests alone.
fn listed() -> [Work; 4] {
    let plan = ListedPlan {
        pipeline: 30,
        clients: 50,
        threads: 1,
        through_socket: false,
        requests_per_second: 200_000.0,
        options: &["-d", "256", "-r", "1000000"],
    };
    let work = |name: &str, plan: ListedPlan, expected: &[Expected]| Work {
        name: format!("redis-benchmark {name}"),
        kind: Kind::Listed(plan),
        repetitions: 3,
        expected: expected.to_vec(),
    };
    let two_threads = ListedPlan { threads: 2, ..plan };
    let single = ListedPlan {
        pipeline: 1,
        requests_per_second: 20_000.0,
        ..plan
    };
    let socket = ListedPlan {
        clients: 1024,
        through_socket: true,
        options: &[],
        ..single
    };
    let pipelined = [
        at_least(Against::Redis, 2.0),
        at_least(Against::Valkey, 1.3),
    ];
    let latency = |metric| Expected {
        metric,
        against: Against::Best,
        bound: Bound::AtMost(1.0),
    };
    let many = [
        at_least(Against::Best, 1.0),
        latency(Metric::Median),
        latency(Metric::P99),
    ];
    [
        work("-P 30", plan, &pipelined),
        work("-P 30 --threads 2", two_threads, &pipelined),
        work("-P 1", single, &[at_least(Against::Redis, 0.97)]),
        work("-s SOCKET -c 1024", socket, &many),
    ]
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
        assert_eq!(works.len(), 8 + 2 + 2 + 4 + 3 + 6 + 1 + 4 + 1 + 4);
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
