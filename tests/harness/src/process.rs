//! What the kernel says about the processes of a server: who they are, their state, memory and CPU time.
//!
//! A server is started with a variable of its own in the environment, which every process that it starts
//! inherits. So all of them are found, also those whose parent was killed, and never one of somebody else.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that marks the processes of a server.
pub const MARK: &str = "SIROCCO_TEST_SERVER";

/// One process of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its arguments; the second one is the role.
    pub args: Vec<String>,
}

impl Process {
    /// The role: `supervisor`, `gateway`, `storage-worker` ...
    #[must_use]
    pub fn role(&self) -> &str {
        match self.args.get(1).map(String::as_str) {
            Some(role @ ("gateway" | "storage-worker" | "pubsub-broker" | "vector-worker")) => role,
            _ => "supervisor",
        }
    }

    /// The number of the process among those of its role.
    #[must_use]
    pub fn index(&self) -> usize {
        self.args
            .get(2)
            .and_then(|index| index.parse().ok())
            .unwrap_or(0)
    }

    /// Sends a signal; a process that is gone is no error.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.pid), signal);
    }

    /// The state letter of proc(5): `R`, `S`, `T`, `Z` ...; none when it is gone.
    #[must_use]
    pub fn state(&self) -> Option<char> {
        stat_fields(self.pid)?.first()?.chars().next()
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !matches!(self.state(), None | Some('Z' | 'X'))
    }

    /// Resident memory in bytes, shared pages included.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    /// CPU time that it has used.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        // Fields 14 and 15 of proc(5), counted from the state, which is the third: user and system ticks of 10 ms.
        let fields = stat_fields(self.pid).unwrap_or_default();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<u64>().ok())
                .unwrap_or(0)
        };
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

/// The fields of /proc/pid/stat behind the name, which may hold blanks and brackets.
fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// All processes that carry a mark, in the order of their numbers.
#[must_use]
pub fn find(mark: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found: HashMap<i32, Process> = HashMap::new();
    for entry in entries.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if !environment
            .split(|byte| *byte == 0)
            .any(|item| item == wanted.as_bytes())
        {
            continue;
        }
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let args = line
            .split(|byte| *byte == 0)
            .filter(|arg| !arg.is_empty())
            .map(|arg| String::from_utf8_lossy(arg).into_owned())
            .collect();
        found.insert(pid, Process { pid, args });
    }
    let mut all: Vec<Process> = found.into_values().filter(Process::is_alive).collect();
    all.sort_by_key(|process| process.pid);
    all
}
