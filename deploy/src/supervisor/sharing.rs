//! Reads what the threads of the system and the cores did, and moves the threads.
//!
//! The figures are those of Linux' /proc: `PID/task/TID/schedstat` (nanoseconds run and waited) and
//! `stat` (ticks per core: user nice system idle iowait ..., see proc(5)). Without them (kernels
//! without schedstat, a hidden /proc) nothing is moved.
//!
//! Cost: some reads of /proc per window, only while there is something to decide.
//! Not here: the decision (`placement`), fixed binding (`runtime::cpus::assign`).

use super::placement::{Move, Placement, Window};
use std::fs;
use std::time::{Duration, Instant};

/// Length of a window.
pub const WINDOW: Duration = Duration::from_millis(250);

/// Nanoseconds of threads, idle ticks of cores, and when they were read.
#[derive(Debug)]
struct Reading {
    at: Instant,
    ran: u64,
    waited: u64,
    /// By number of the core.
    idle: Vec<u64>,
}

/// Sharing of one core by a system that is not bound to any.
#[derive(Debug)]
pub struct Sharing {
    allowed: Vec<usize>,
    placement: Placement,
    last: Option<Reading>,
    /// Processes in the order of their places at the last look; 0 where none ran.
    pids: Vec<u32>,
    /// The shared core.
    core: Option<usize>,
    tick: Duration,
}

impl Sharing {
    /// For a system that may run on `allowed`. None if there is nothing to choose.
    pub fn new(allowed: Vec<usize>) -> Option<Self> {
        let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
        let per_second = u32::try_from(per_second.ok()??).ok().filter(|n| *n > 0)?;
        (allowed.len() > 1).then(|| Self {
            allowed,
            placement: Placement::default(),
            last: None,
            pids: Vec::new(),
            core: None,
            tick: Duration::from_secs(1) / per_second,
        })
    }

    /// Looks at one window; `pids` are the processes by place, 0 where none runs.
    pub fn look(&mut self, pids: Vec<u32>) {
        if pids != self.pids {
            // Somebody died or came: a successor starts wherever the kernel likes.
            self.pids = pids;
            self.last = None;
            if let Some(core) = self.core {
                self.bind(&[core]);
            }
        }
        let Some(now) = self.read() else { return };
        let Some(before) = self.last.replace(now) else {
            return;
        };
        let Some(now) = &self.last else { return };
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let nanos = |now: u64, before: u64| {
            Duration::from_nanos(now.saturating_sub(before)).as_secs_f64() / seconds
        };
        let idle: Vec<(usize, f64)> = self
            .allowed
            .iter()
            .map(|core| {
                let ticks = |reading: &Reading| reading.idle.get(*core).copied().unwrap_or(0);
                let ticks = u32::try_from(ticks(now).saturating_sub(ticks(&before))).unwrap_or(0);
                (*core, (self.tick * ticks).as_secs_f64() / seconds)
            })
            .collect();
        let idle_where = |here: bool| {
            let cores = idle.iter();
            let cores = cores.filter(|(core, _)| here == (Some(*core) == self.core));
            cores.map(|(_, idle)| idle).sum()
        };
        let window = Window {
            ran: nanos(now.ran, before.ran),
            waited: nanos(now.waited, before.waited),
            idle_here: idle_where(true),
            idle_elsewhere: idle_where(false),
        };
        match self.placement.window(window) {
            Some(Move::Share) => {
                // Of equally idle ones the highest: the lowest usually serve devices.
                let idlest = idle.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
                self.core = idlest.map(|(core, _)| core);
                if let Some(core) = self.core {
                    tracing::debug!(core, ?window, "all parts share one core");
                    self.bind(&[core]);
                }
            }
            Some(Move::Part) => {
                tracing::debug!(?window, "the parts run on any core");
                self.core = None;
                self.bind(&self.allowed);
            }
            None => {}
        }
    }

    fn read(&self) -> Option<Reading> {
        let mut reading = Reading {
            at: Instant::now(),
            ran: 0,
            waited: 0,
            idle: Vec::new(),
        };
        for thread in self.threads() {
            let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
            let mut words = text.split(' ').map_while(|word| word.parse::<u64>().ok());
            reading.ran += words.next()?;
            reading.waited += words.next()?;
        }
        for line in fs::read_to_string("/proc/stat").ok()?.lines() {
            let Some(rest) = line.strip_prefix("cpu") else {
                break;
            };
            let mut words = rest.split(' ');
            // The first line is the sum over all cores; offline ones are missing.
            let Some(core) = words.next().and_then(|word| word.parse::<usize>().ok()) else {
                continue;
            };
            let idle = words.nth(3)?.parse().ok()?;
            if reading.idle.len() <= core {
                reading.idle.resize(core + 1, 0);
            }
            reading.idle[core] = idle;
        }
        Some(reading)
    }

    /// All threads of all processes, by number.
    fn threads(&self) -> impl Iterator<Item = i32> {
        self.pids
            .iter()
            .filter(|pid| **pid != 0)
            .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok())
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }

    /// Lets every thread run on these cores only. One that ends meanwhile needs no core.
    fn bind(&self, cores: &[usize]) {
        for thread in self.threads() {
            if let Err(error) = runtime::cpus::bind_thread(thread, cores) {
                tracing::debug!(thread, %error, "cannot move a thread");
            }
        }
    }
}
