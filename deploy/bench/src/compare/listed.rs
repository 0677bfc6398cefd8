//! `--suite redis-benchmark`: the list of tests that redis-benchmark runs by itself, run by that
//! program as it is installed, against each server in turn.
//!
//! ```text
//!   per repetition:  FLUSHALL everywhere, then  PING_INLINE: A B C   PING_MBULK: A B C   SET: A B C  ...
//! ```
//!
//! The tests build on each other (LPOP takes what LPUSH has left), so their order is that of the list,
//! and a server keeps its data from test to test. redis-benchmark makes its requests with one thread
//! and at about the cost of a Redis that answers them; so the CPU time of both sides per request stands
//! beside the rate, and tells whether a server is still measured or only the client.
//!
//! Not here: what must be reached (`suite`), the verdicts (`verdict`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::Contender;
use super::measure::{Measure, cpu_per_op};
use super::suite::{ListedPlan, Work};
use crate::client::{Client, Value};
use crate::error::BenchError;
use crate::process_tree::CpuSample;
use crate::report::Sample;
use crate::server::{PASSWORD, SOCKET_AND_PASSWORD, Server};

/// The list that LRANGE reads, and how many elements it must have.
const LIST: &str = "mylist";
const LIST_LENGTH_MIN: i64 = 600;

/// A test: its name in the output, its words on the command line, and the part of the requests that it
/// is run with, because some requests are as long as many others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    pub(super) name: &'static str,
    words: &'static [&'static str],
    divisor: u64,
}

const fn test(name: &'static str, words: &'static [&'static str], divisor: u64) -> Test {
    Test {
        name,
        words,
        divisor,
    }
}

/// The tests in the order of redis-benchmark. LRANGE is given as a command: its test by name would push
/// as many elements again as there are requests.
pub(super) const TESTS: [Test; 20] = [
    test("PING_INLINE", &["-t", "ping_inline"], 1),
    test("PING_MBULK", &["-t", "ping_mbulk"], 1),
    test("SET", &["-t", "set"], 1),
    test("GET", &["-t", "get"], 1),
    test("INCR", &["-t", "incr"], 1),
    test("LPUSH", &["-t", "lpush"], 1),
    test("RPUSH", &["-t", "rpush"], 1),
    test("LPOP", &["-t", "lpop"], 1),
    test("RPOP", &["-t", "rpop"], 1),
    test("SADD", &["-t", "sadd"], 1),
    test("HSET", &["-t", "hset"], 1),
    test("SPOP", &["-t", "spop"], 1),
    test("ZADD", &["-t", "zadd"], 1),
    test("ZPOPMIN", &["-t", "zpopmin"], 1),
    test("LRANGE_100", &["LRANGE", LIST, "0", "99"], 10),
    test("LRANGE_300", &["LRANGE", LIST, "0", "299"], 20),
    test("LRANGE_500", &["LRANGE", LIST, "0", "499"], 30),
    test("LRANGE_600", &["LRANGE", LIST, "0", "599"], 40),
    test("MSET", &["-t", "mset"], 5),
    test("XADD", &["-t", "xadd"], 1),
];

/// Name of the samples of a test.
pub(super) fn sample_name(work: &str, test: &Test) -> String {
    format!("{work}: {}", test.name)
}

/// What one run of redis-benchmark says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    requests_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

/// Reads the last line of `--csv` by the names in the first one.
fn parse(csv: &str) -> Option<Figures> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('"');
        inner.split("\",\"").map(str::to_owned).collect()
    };
    let mut lines = csv.lines().filter(|line| line.starts_with('"'));
    let headings = cells(lines.next()?);
    let row = cells(lines.next_back()?);
    let get = |name: &str| -> Option<f64> {
        let position = headings.iter().position(|heading| heading == name)?;
        row.get(position)?.parse().ok()
    };
    let us = |name: &str| get(name).map(|ms| ms * 1e3);
    Some(Figures {
        requests_per_second: get("rps")?,
        p50_us: us("p50_latency_ms")?,
        p99_us: us("p99_latency_ms")?,
        max_us: us("max_latency_ms")?,
    })
}

/// CPU time of all children that have ended and been waited for.
fn cpu_of_children() -> Duration {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    })
}

/// Runs redis-benchmark against a server and returns its output.
fn call(
    program: &Path,
    server: &Server,
    plan: &ListedPlan,
    words: &[&str],
    requests: u64,
) -> Result<String, BenchError> {
    let mut command = Command::new(program);
    match server.socket() {
        Some(socket) => {
            command.arg("-s").arg(socket).args(["-a", PASSWORD]);
        }
        None => {
            command.args(["-p", &server.target().port.to_string()]);
        }
    }
    let numbers = [
        ("-P", plan.pipeline),
        ("-c", plan.clients),
        ("-n", requests),
    ];
    for (option, number) in numbers {
        command.arg(option).arg(number.to_string());
    }
    if plan.threads > 1 {
        command.arg("--threads").arg(plan.threads.to_string());
    }
    command.args(plan.options).arg("--csv").args(words);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| BenchError::io("run redis-benchmark", error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(BenchError::Server(format!(
            "redis-benchmark {}: {} {}",
            words.join(" "),
            text.trim(),
            said.trim()
        )))
    }
}

/// All repetitions.
pub(super) fn run(
    measure: &mut Measure<'_>,
    work: &Work,
    plan: &ListedPlan,
    contenders: &[Contender],
    samples: &mut Vec<Sample>,
) -> Result<(), BenchError> {
    let mut servers = Vec::new();
    for contender in contenders {
        let more = if plan.through_socket {
            SOCKET_AND_PASSWORD
        } else {
            ""
        };
        let mut server = measure.start(&Contender {
            name: contender.name.clone(),
            line: format!("{}{more}", contender.line),
            port: contender.port,
        })?;
        server.pause();
        servers.push(server);
    }
    for repetition in 1..=work.repetitions {
        for server in &mut servers {
            server.resume()?;
            Client::connect(&server.target())?.must(&["FLUSHALL", "SYNC"])?;
            server.pause();
        }
        for test in &TESTS {
            for (contender, server) in contenders.iter().zip(&mut servers) {
                let name = sample_name(&work.name, test);
                let step = format!("{name} {repetition} {}", contender.name);
                measure.progress.step(step);
                server.resume()?;
                let sample = one(measure, plan, test, server)?;
                server.pause();
                samples.push(Sample {
                    work: name,
                    server: contender.name.clone(),
                    repetition,
                    ..sample
                });
            }
        }
        contenders.iter().for_each(|_| measure.progress.complete());
    }
    Ok(())
}

/// One test against one server.
fn one(
    measure: &Measure<'_>,
    plan: &ListedPlan,
    test: &Test,
    server: &Server,
) -> Result<Sample, BenchError> {
    let program = &measure.settings.redis_benchmark;
    let seconds = measure.settings.duration.as_secs_f64();
    let requests = (plan.requests_per_second * seconds) as u64 / test.divisor;
    // Each connection at least once.
    let requests = requests.max(plan.clients * plan.pipeline);
    if test.words.contains(&LIST) {
        let length = Client::connect(&server.target())?.must(&["LLEN", LIST])?;
        if !matches!(length, Value::Integer(LIST_LENGTH_MIN..)) {
            call(
                program,
                server,
                plan,
                &["-t", "lpush"],
                requests.max(10_000),
            )?;
        }
    }
    let server_before = CpuSample::take(server.root());
    let client_before = cpu_of_children();
    let text = call(program, server, plan, test.words, requests)?;
    let client_cpu = cpu_of_children().saturating_sub(client_before);
    let server_cpu = CpuSample::take(server.root()).since(&server_before);
    let figures = parse(&text).ok_or_else(|| {
        BenchError::Server(format!("redis-benchmark said no figures: {}", text.trim()))
    })?;
    Ok(Sample {
        requests_per_second: figures.requests_per_second,
        server_cpu_us: Some(cpu_per_op(server_cpu, requests)),
        generator_cpu_us: cpu_per_op(client_cpu, requests),
        p50_us: figures.p50_us,
        p99_us: figures.p99_us,
        max_us: figures.max_us,
        replies: requests,
        ..Sample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "WARNING: no config\n\
        \"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
        \"p99_latency_ms\",\"max_latency_ms\"\n\
        \"LPUSH\",\"900000.50\",\"1.5\",\"0.2\",\"1.4\",\"2.1\",\"2.5\",\"4.0\"\n\
        \"LRANGE mylist 0 99\",\"81000.00\",\"9.5\",\"0.9\",\"9.400\",\"12.1\",\"13.500\",\"20.000\"\n";

    #[test]
    fn the_last_line_counts_and_headings_tell_what_is_what() {
        let figures = parse(CSV).unwrap();
        let expected = Figures {
            requests_per_second: 81_000.0,
            p50_us: 9_400.0,
            p99_us: 13_500.0,
            max_us: 20_000.0,
        };
        assert_eq!(figures, expected);
        for text in ["", "Could not connect", "\"test\",\"rps\"\n"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_list_is_that_of_redis_benchmark() {
        let names: Vec<&str> = TESTS.iter().map(|test| test.name).collect();
        assert_eq!(names.len(), 20);
        for test in &TESTS {
            let by_name = test.words[0] == "-t" && test.words[1] == test.name.to_lowercase();
            assert!(by_name || test.name.starts_with("LRANGE"), "{test:?}");
        }
    }
}
