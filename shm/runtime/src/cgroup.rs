//! Limits of processor time and memory that the kernel's control groups set for this process.
//!
//! Why: in a container the machine's core count and memory say nothing; a server that starts a
//! thread per core of the host inside a quota of two only gets throttled.
//!
//! Version 2 (one tree, `cpu.max`, `memory.max`) and version 1 (a tree per controller) are read;
//! limits of all ancestors count. A file that is missing or says `max` is no limit.
//!
//! Not here: affinity (`cpus`).

use std::fs;
use std::path::{Path, PathBuf};

/// What control groups allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Processors' worth of time, or `None`.
    pub cpus: Option<f64>,
    /// Bytes of memory that may still be used, or `None`.
    pub memory_left: Option<u64>,
}

/// The limits of this process.
pub fn limits() -> Limits {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limits_in(Path::new("/sys/fs/cgroup"), &groups)
}

/// The limits of a process whose `/proc/…/cgroup` has the text `groups`, in a tree at `root`.
pub fn limits_in(root: &Path, groups: &str) -> Limits {
    let mut limits = Limits {
        cpus: None,
        memory_left: None,
    };
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let has = |name: &str| controllers.split(',').any(|controller| controller == name);
        if controllers.is_empty() {
            for folder in ancestors(root.to_path_buf(), path) {
                limits.add_cpus(cpu_max(&folder));
                limits.add_memory(memory(&folder, "memory.max", "memory.current"));
            }
        } else if has("cpu") || has("memory") {
            let tree = [controllers, if has("cpu") { "cpu" } else { "memory" }]
                .map(|name| root.join(name))
                .into_iter()
                .find(|folder| folder.is_dir());
            for folder in tree.map(|tree| ancestors(tree, path)).unwrap_or_default() {
                if has("cpu") {
                    limits.add_cpus(cfs_quota(&folder));
                } else {
                    let (limit, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
                    limits.add_memory(memory(&folder, limit, used));
                }
            }
        }
    }
    limits
}

impl Limits {
    fn add_cpus(&mut self, more: Option<f64>) {
        self.cpus = match (self.cpus, more) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn add_memory(&mut self, more: Option<u64>) {
        self.memory_left = match (self.memory_left, more) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// The folder of a group and of all groups above it. A path that is not visible here (another
/// namespace) leaves the root alone.
fn ancestors(tree: PathBuf, path: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut folder = tree.join(path.trim_start_matches('/'));
    while folder.starts_with(&tree) {
        folders.push(folder.clone());
        if !folder.pop() {
            break;
        }
    }
    folders
}

fn number(folder: &Path, file: &str) -> Option<f64> {
    fs::read_to_string(folder.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn cpu_max(folder: &Path) -> Option<f64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

fn cfs_quota(folder: &Path) -> Option<f64> {
    ratio(
        number(folder, "cpu.cfs_quota_us")?,
        number(folder, "cpu.cfs_period_us")?,
    )
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn memory(folder: &Path, limit: &str, used: &str) -> Option<u64> {
    // Version 1 says "no limit" with a number near 2^63.
    const NO_LIMIT: u64 = 1 << 60;
    let read = |file: &str| -> Option<u64> {
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let limit = read(limit).filter(|bytes| *bytes < NO_LIMIT)?;
    Some(limit.saturating_sub(read(used).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("cgroup-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn version_2_takes_the_tightest_limit_of_all_ancestors() {
        let root = tree(
            "two",
            &[
                ("a/cpu.max", "150000 100000\n"),
                ("a/b/cpu.max", "max 100000\n"),
                ("a/b/memory.max", "1000\n"),
                ("a/b/memory.current", "400\n"),
            ],
        );
        let limits = limits_in(&root, "0::/a/b\n");
        assert_eq!(
            limits,
            Limits {
                cpus: Some(1.5),
                memory_left: Some(600)
            }
        );
        assert_eq!(
            limits_in(&root, "0::/elsewhere\n"),
            Limits {
                cpus: None,
                memory_left: None
            }
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn version_1_reads_a_tree_per_controller() {
        let root = tree(
            "one",
            &[
                ("cpu,cpuacct/x/cpu.cfs_quota_us", "200000\n"),
                ("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
                ("memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/x/memory.usage_in_bytes", "5\n"),
            ],
        );
        let limits = limits_in(&root, "4:memory:/x\n1:cpu,cpuacct:/x\n0::/\n");
        assert_eq!(
            limits,
            Limits {
                cpus: Some(2.0),
                memory_left: None
            }
        );
        fs::remove_dir_all(root).unwrap();
    }
}
