//! Sums over all processes, read from their statistics pages and from `/proc`.

use proto::counters::{DatabaseCounter, GatewayCounter as G, WorkerCounter as W, worker_page};
use runtime::Role;

use crate::core::Core;

/// Sums over all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) used: u64,
    pub(crate) used_peak: u64,
    pub(crate) resident_arenas: u64,
    /// Resident bytes of all processes.
    pub(crate) resident: u64,
    pub(crate) keys: u64,
    pub(crate) clients: u64,
    buffers: u64,
    /// Seconds in the kernel and outside, of all processes.
    pub(super) cpu: (f64, f64),
}

impl Figures {
    pub(crate) fn gather(core: &Core) -> Self {
        let mut figures = Self::default();
        core.shared.with_pages(|pages| {
            let mut pids: Vec<u32> = vec![core.shared.registry().supervisor_pid];
            for page in pages {
                pids.push(page.party.pid());
                match page.id.role {
                    Role::StorageWorker => {
                        figures.used += page.level(W::UsedBytes.place());
                        figures.used_peak += page.level(W::UsedBytesPeak.place());
                        figures.resident_arenas += page.level(W::ArenaResidentBytes.place());
                        for database in 0..core.live.databases {
                            let keys = worker_page::database(database, DatabaseCounter::Keys);
                            figures.keys += page.level(keys);
                        }
                    }
                    Role::Broker => {}
                    Role::Gateway => {
                        figures.clients += page.level(G::Connections.place());
                        figures.buffers += page.level(G::InputBufferBytes.place())
                            + page.level(G::OutputBufferBytes.place());
                    }
                }
            }
            pids.sort_unstable();
            pids.dedup();
            for pid in pids.into_iter().filter(|&pid| pid != 0) {
                figures.resident += resident_bytes(pid);
                let (system, user) = cpu_seconds(pid);
                figures.cpu.0 += system;
                figures.cpu.1 += user;
            }
        });
        figures.used_peak = figures.used_peak.max(figures.used);
        figures
    }

    /// Bytes that connections take.
    pub(crate) fn client_bytes(&self) -> u64 {
        self.clients * size_of::<crate::connection::Connection>() as u64 + self.buffers
    }

    pub(crate) fn arena_ratio(&self) -> f64 {
        ratio(self.resident_arenas, self.used)
    }

    pub(crate) fn resident_ratio(&self) -> f64 {
        ratio(self.resident, self.used)
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Resident bytes of a process.
fn resident_bytes(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

/// Seconds that a process spent in the kernel and outside.
pub(super) fn cpu_seconds(pid: u32) -> (f64, f64) {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let mut next = || {
        let ticks: f64 = fields
            .next()
            .and_then(|ticks| ticks.parse().ok())
            .unwrap_or(0.0);
        ticks / TICKS_PER_SECOND
    };
    let user = next();
    (next(), user)
}

pub(super) fn total_system_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    kilobytes
        .and_then(|number| number.trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
