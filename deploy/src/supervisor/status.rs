//! What `sirocco status` shows: a report from the statistics pages, as JSON and as a table.
//!
//! Why pages: reading them costs the processes nothing and works while they are busy, stopped or
//! dead.
//!
//! Not here: finding the system and asking it (`instance`, `status_command`).

use super::core::{Core, Millis, Phase, Process};
use super::layout::Layout;
use super::segments::Segments;
use super::spawn;
use proto::counters::{BrokerCounter, GatewayCounter, WorkerCounter};
use runtime::plan::{PartyId, Role};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// One process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Role and number.
    pub name: String,
    /// Process number, 0 for none.
    pub pid: u32,
    /// `ready`, `starting`, `stopped`, `draining`, `down`.
    pub state: String,
    /// Processors it is bound to; empty if the kernel chooses.
    pub cpus: Vec<usize>,
    /// Threads that serve (gateway) or execute (others).
    pub threads: u32,
    /// Starts so far.
    pub generation: u64,
    /// Deaths that led to a successor.
    pub restarts: u32,
    /// Milliseconds that the running process has lived.
    pub uptime_ms: u64,
    /// Bytes resident in memory, shared ones included.
    pub resident_bytes: u64,
    /// Bytes of keys and values (workers).
    pub used_bytes: u64,
    /// Milliseconds of processor time of the running process.
    pub cpu_ms: u64,
    /// Commands, or messages published, since the system started.
    pub commands: u64,
    /// Commands per second, lately.
    pub commands_per_second: u64,
    /// Connections now (gateway).
    pub connections: u64,
    /// How the last process of this place ended.
    pub last_death: Option<String>,
}

/// The whole system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Process number of the supervisor.
    pub pid: u32,
    /// TCP port, 0 for none.
    pub port: u16,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// Data directory.
    pub dir: String,
    /// Configuration file, or empty.
    pub config_file: String,
    /// `running`, `starting` or `draining`.
    pub state: String,
    /// Milliseconds since the start.
    pub uptime_ms: u64,
    /// Cores that may be used.
    pub cores: usize,
    /// Bytes of one ring.
    pub ring_bytes: usize,
    /// Connections now.
    pub connections: u64,
    /// Connections allowed.
    pub maxclients: u64,
    /// Bytes of keys and values.
    pub used_bytes: u64,
    /// Limit for them, 0 for none.
    pub maxmemory: u64,
    /// The supervisor's own processor time in milliseconds.
    pub supervisor_cpu_ms: u64,
    /// The processes.
    pub processes: Vec<ProcessStatus>,
}

/// Commands of each place at two moments, for rates.
#[derive(Debug, Default)]
pub struct Rates {
    samples: Vec<(u64, u64)>,
    times: (Millis, Millis),
}

impl Rates {
    /// Takes a sample; called about once per second.
    pub fn sample(&mut self, now: Millis, core: &Core, segments: &Segments) {
        let counts = core
            .processes()
            .iter()
            .map(|process| commands(process, segments));
        self.samples.resize(core.processes().len(), (0, 0));
        for (sample, count) in self.samples.iter_mut().zip(counts) {
            *sample = (sample.1, count);
        }
        self.times = (self.times.1, now);
    }

    fn per_second(&self, position: usize) -> u64 {
        let Some((before, after)) = self.samples.get(position) else {
            return 0;
        };
        let millis = self.times.1.saturating_sub(self.times.0).max(1);
        after.saturating_sub(*before) * 1000 / millis
    }
}

fn parties(process: &Process) -> impl Iterator<Item = PartyId> {
    let place = &process.place;
    let role = place.role;
    (place.first_party..place.first_party + place.parties).map(move |index| PartyId { role, index })
}

fn sum(
    process: &Process,
    segments: &Segments,
    gateway: GatewayCounter,
    worker: WorkerCounter,
) -> u64 {
    let place = match process.place.role {
        Role::Gateway => gateway.place(),
        Role::StorageWorker => worker.place(),
        Role::Broker => BrokerCounter::Published.place(),
    };
    parties(process)
        .map(|party| segments.party(party).page.counters().get(place))
        .sum()
}

fn commands(process: &Process, segments: &Segments) -> u64 {
    sum(
        process,
        segments,
        GatewayCounter::Commands,
        WorkerCounter::Commands,
    )
}

/// What is the same for every report.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The layout.
    pub layout: &'a Layout,
    /// Where it listens.
    pub addresses: &'a [String],
    /// Configuration file, or empty.
    pub config_file: &'a str,
}

/// Makes a report.
pub fn report(
    now: Millis,
    facts: &Facts<'_>,
    core: &Core,
    segments: &Segments,
    rates: &Rates,
) -> Status {
    let settings = core.settings();
    let processes: Vec<ProcessStatus> = core
        .processes()
        .iter()
        .enumerate()
        .map(|(position, process)| ProcessStatus {
            commands_per_second: rates.per_second(position),
            ..process_status(now, process, segments)
        })
        .collect();
    let serving = |process: &Process| matches!(process.phase, Phase::Serving { .. });
    let state = if core.is_draining() {
        "draining"
    } else if core.processes().iter().all(serving) {
        "running"
    } else {
        "degraded"
    };
    Status {
        version: env!("CARGO_PKG_VERSION").to_string(),
        pid: std::process::id(),
        port: u16::try_from(settings.port()).unwrap_or(0),
        addresses: facts.addresses.to_vec(),
        dir: settings.dir().to_string(),
        config_file: facts.config_file.to_string(),
        state: state.to_string(),
        uptime_ms: now,
        cores: facts.layout.cores,
        ring_bytes: facts.layout.ring_bytes,
        connections: processes.iter().map(|process| process.connections).sum(),
        maxclients: u64::try_from(settings.maxclients()).unwrap_or(0),
        used_bytes: processes.iter().map(|process| process.used_bytes).sum(),
        maxmemory: settings.maxmemory(),
        supervisor_cpu_ms: spawn::usage(std::process::id()).map_or(0, |(_, cpu)| cpu),
        processes,
    }
}

fn process_status(now: Millis, process: &Process, segments: &Segments) -> ProcessStatus {
    let (resident_bytes, cpu_ms) = spawn::usage(process.pid).unwrap_or((0, 0));
    let is_worker = process.place.role == Role::StorageWorker;
    let of_worker = |counter: WorkerCounter| {
        let only = sum(process, segments, GatewayCounter::Connections, counter);
        if is_worker { only } else { 0 }
    };
    let connections = sum(
        process,
        segments,
        GatewayCounter::Connections,
        WorkerCounter::Commands,
    );
    ProcessStatus {
        name: process.name(),
        pid: process.pid,
        state: process.state_word().to_string(),
        cpus: process.place.cpus.iter().copied().flatten().collect(),
        threads: process.place.parties,
        generation: process.generation,
        restarts: process.restarts,
        uptime_ms: if process.is_alive() {
            now.saturating_sub(process.started_at)
        } else {
            0
        },
        resident_bytes,
        used_bytes: of_worker(WorkerCounter::UsedBytes),
        cpu_ms,
        commands: commands(process, segments),
        commands_per_second: 0,
        connections: if process.place.role == Role::Gateway && process.is_alive() {
            connections
        } else {
            0
        },
        last_death: process.last_death.clone(),
    }
}

/// The report as a table for people.
pub fn table(status: &Status) -> String {
    let mut text = String::new();
    let limit = if status.maxmemory == 0 {
        "no limit".to_string()
    } else {
        bytes(status.maxmemory)
    };
    let lines = [
        format!(
            "sirocco {}  {}  up {}",
            status.version,
            status.state,
            duration(status.uptime_ms)
        ),
        format!("supervisor  pid {}  {}", status.pid, status.dir),
        format!("listening   {}", status.addresses.join("  ")),
        format!(
            "clients     {} of {}",
            status.connections, status.maxclients
        ),
        format!("data        {} ({limit})", bytes(status.used_bytes)),
    ];
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    let mut rows = vec![
        [
            "PROCESS", "PID", "STATE", "CPU", "RESTARTS", "UPTIME", "MEMORY", "CPU TIME",
            "COMMANDS", "OPS/S",
        ]
        .map(ToString::to_string),
    ];
    for process in &status.processes {
        let cpus: Vec<String> = process.cpus.iter().map(ToString::to_string).collect();
        rows.push([
            process.name.clone(),
            if process.pid == 0 {
                "-".to_string()
            } else {
                process.pid.to_string()
            },
            process.state.clone(),
            if cpus.is_empty() {
                "any".to_string()
            } else {
                cpus.join(",")
            },
            process.restarts.to_string(),
            duration(process.uptime_ms),
            bytes(process.resident_bytes),
            duration(process.cpu_ms),
            process.commands.to_string(),
            process.commands_per_second.to_string(),
        ]);
    }
    text.push('\n');
    text.push_str(&columns(&rows));
    for process in &status.processes {
        if let Some(death) = process.last_death.as_ref().filter(|_| process.restarts > 0) {
            writeln!(text, "last end of {}: {death}", process.name)
                .expect("writing to a string cannot fail");
        }
    }
    text
}

/// Columns as wide as their widest cell; numbers to the right.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let to_left = matches!(column, 0 | 2 | 3);
            let pad = " ".repeat(widths[column] - cell.len());
            let (before, after) = if to_left {
                ("", pad.as_str())
            } else {
                (pad.as_str(), "")
            };
            let space = if column == 0 { "" } else { "  " };
            line.push_str(&format!("{space}{before}{cell}{after}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Milliseconds as the two largest units.
fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Bytes with the largest unit that leaves at least one whole.
fn bytes(bytes: u64) -> String {
    for (shift, unit) in [(30, "GB"), (20, "MB"), (10, "KB")] {
        let whole = bytes >> shift;
        if whole > 0 {
            let tenth = ((bytes - (whole << shift)) * 10) >> shift;
            return if whole < 100 {
                format!("{whole}.{tenth}{unit}")
            } else {
                format!("{whole}{unit}")
            };
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(0), "0B");
        assert_eq!(bytes(1536), "1.5KB");
        assert_eq!(bytes(250 << 20), "250MB");
        assert_eq!(duration(7), "7ms");
        assert_eq!(duration(1250), "1.2s");
        assert_eq!(duration(3_600_000 + 120_000), "1h02m");
    }

    #[test]
    fn columns_line_up() {
        let row = |a: &str, b: &str| [a.to_string(), b.to_string()];
        assert_eq!(
            columns(&[row("NAME", "N"), row("x", "123")]),
            "NAME    N\nx     123\n"
        );
    }
}
