//! CPU time and resident memory of a server with all its processes, read from `/proc`.
//!
//! Why the whole tree: a server made of several processes would look cheap if only the one that was
//! started were counted, and a server with helper threads or children must not hide them either.
//!
//! ```text
//!   /proc/*/stat             parent of each process -> all descendants of the one that was started
//!   /proc/P/task/*/schedstat nanoseconds on a core, user and system, per thread
//!   /proc/P/smaps_rollup     Pss: resident pages, each divided by the number of processes that map it
//! ```
//!
//! CPU time comes from `schedstat`, because the ticks in `stat` (10 ms) are too coarse for short or
//! lightly loaded intervals; where the kernel does not keep it, ticks are used. Memory is the sum
//! of Pss, so that a page of shared memory counts once however many processes of the tree map it.
//!
//! Cost: about 10 us per process of the machine and sample.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The fields of `/proc/P/stat` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    pid: i32,
    parent: i32,
    /// User and system time, this process' own and its reaped children's, in ticks.
    ticks: u64,
}

/// Reads one line of `/proc/P/stat`. The name in parentheses may contain anything, so fields are
/// counted from the last closing parenthesis.
fn parse_stat(line: &str) -> Option<Stat> {
    let (pid, rest) = line.split_once(" (")?;
    let (_, fields) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // Field 3 of the manual page (state) is the first here.
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().ok())
        .sum::<Option<u64>>()?;
    Some(Stat {
        pid: pid.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        ticks,
    })
}

/// Nanoseconds on a core: the first number of a `schedstat` line.
fn parse_schedstat(line: &str) -> Option<u64> {
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Bytes of the `Pss:` line of a `smaps_rollup`.
fn parse_pss(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Numeric entries of a directory of `/proc`.
fn numbers_in(directory: impl AsRef<Path>) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Descendants of `root` among `processes`, `root` first, parents before children.
fn descendants(root: i32, processes: &[Stat]) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let children = processes.iter().filter(|process| process.parent == parent);
        for child in children {
            if !found.contains(&child.pid) {
                found.push(child.pid);
            }
        }
    }
    found
}

/// `root` and all its living descendants, parents before children.
pub(crate) fn members(root: i32) -> Vec<i32> {
    let processes: Vec<Stat> = numbers_in("/proc")
        .into_iter()
        .filter_map(|pid| parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect();
    descendants(root, &processes)
}

/// Whether `pid` exists and has not ended; one that only waits to be reaped has.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|line| !line.contains(") Z "))
}

/// CPU time of every thread of a tree at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CpuSample {
    threads_ns: HashMap<i32, u64>,
}

impl CpuSample {
    /// Reads it for `root` and its descendants.
    pub(crate) fn take(root: i32) -> Self {
        let mut threads_ns = HashMap::new();
        for pid in members(root) {
            let mut seen = false;
            for thread in numbers_in(format!("/proc/{pid}/task")) {
                let line = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat"));
                if let Some(nanos) = line.ok().and_then(|line| parse_schedstat(&line)) {
                    threads_ns.insert(thread, nanos);
                    seen = true;
                }
            }
            if !seen && let Some(nanos) = by_ticks(pid) {
                threads_ns.insert(pid, nanos);
            }
        }
        Self { threads_ns }
    }

    /// CPU time between `earlier` and this sample. Threads that began meanwhile count whole; what a
    /// thread used that ended meanwhile is lost.
    pub(crate) fn since(&self, earlier: &Self) -> Duration {
        let spent = self.threads_ns.iter().map(|(thread, &now)| {
            now.saturating_sub(earlier.threads_ns.get(thread).copied().unwrap_or(0))
        });
        Duration::from_nanos(spent.sum())
    }
}

fn by_ticks(pid: i32) -> Option<u64> {
    use nix::unistd::{SysconfVar, sysconf};
    let stat = parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    let per_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    Some(stat.ticks * (1_000_000_000 / per_second.max(1)))
}

/// Resident bytes of `root` and its descendants, shared pages once.
pub(crate) fn resident_bytes(root: i32) -> u64 {
    members(root)
        .into_iter()
        .filter_map(|pid| parse_pss(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stat_with_any_name() {
        let tail = "S 17 99 99 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 5 6 7";
        for name in ["redis-server", "a (b) c", ") S 1 (", ""] {
            let stat = parse_stat(&format!("42 ({name}) {tail}")).unwrap();
            assert_eq!(
                stat,
                Stat {
                    pid: 42,
                    parent: 17,
                    ticks: 110
                },
                "{name}"
            );
        }
        assert_eq!(parse_stat("42 (short) S 17"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn reads_schedstat_and_pss() {
        assert_eq!(parse_schedstat("123456 789 5\n"), Some(123_456));
        assert_eq!(parse_schedstat(""), None);
        let text = "00400000-7ffe ---p 0 [rollup]\nRss:      2048 kB\nPss:      1024 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(parse_pss(text), Some(1024 * 1024));
        assert_eq!(parse_pss("Rss: 1 kB"), None);
    }

    #[test]
    fn finds_descendants_in_any_order_and_survives_loops() {
        let process = |pid, parent| Stat {
            pid,
            parent,
            ticks: 0,
        };
        let processes = [
            process(5, 3),
            process(3, 2),
            process(2, 1),
            process(9, 1),
            process(4, 2),
        ];
        assert_eq!(descendants(2, &processes), [2, 3, 4, 5]);
        assert_eq!(descendants(1, &[process(1, 2), process(2, 1)]), [1, 2]);
    }

    #[test]
    fn sees_its_own_time_and_memory() {
        let me = i32::try_from(std::process::id()).unwrap();
        let before = CpuSample::take(me);
        let begin = std::time::Instant::now();
        let mut sum = 0_u64;
        while begin.elapsed() < Duration::from_millis(60) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(CpuSample::take(me).since(&before) > Duration::from_millis(5));
        assert!(resident_bytes(me) > 100_000);
        assert!(members(me).contains(&me) && is_alive(me));
        assert!(!is_alive(i32::MAX));
    }

    #[test]
    fn a_difference_counts_new_threads_and_never_goes_below_zero() {
        let sample = |pairs: &[(i32, u64)]| CpuSample {
            threads_ns: pairs.iter().copied().collect(),
        };
        let before = sample(&[(1, 100), (2, 50)]);
        let after = sample(&[(1, 130), (3, 7)]);
        assert_eq!(after.since(&before), Duration::from_nanos(37));
        assert_eq!(before.since(&after), Duration::from_nanos(50));
    }
}
