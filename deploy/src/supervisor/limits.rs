//! Looks at what the machine allows before anything is made: descriptors and memory.
//!
//! Why first: "too many open files" in the middle of a storm, or a SIGBUS in a ring, are failures
//! that a look at the start avoids.
//!
//! Not here: processors (`layout`).

use super::layout::Layout;
use crate::exit::Failure;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;

/// Descriptors that a process needs besides its clients' with one thread and one worker.
const RESERVED: u64 = 32;

/// Never ask for more than this: some systems give "unlimited" as an absurd number.
const DESCRIPTORS_MAX: u64 = 1 << 20;

/// What the descriptor limit allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Connections that can be promised.
    pub possible: u64,
    /// `maxclients` to use: as wished, or less.
    pub use_now: u64,
    /// What to tell the operator.
    pub notice: Option<String>,
}

/// Raises the descriptor limit for `wished` clients, for this process and those it starts.
///
/// # Errors
/// If not even a handful of clients fits.
pub fn raise_descriptors(layout: &Layout, wished: u64) -> Result<Clients, Failure> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|errno| Failure::System(format!("cannot read the descriptor limit: {errno}")))?;
    let reserved = reserved(layout);
    let want = wished
        .saturating_add(reserved)
        .max(DESCRIPTORS_MAX)
        .min(hard);
    let mut limit = soft;
    if want > soft && setrlimit(Resource::RLIMIT_NOFILE, want, hard).is_ok() {
        limit = want;
    }
    decide(limit, reserved, wished)
}

/// Three descriptors per link end (segment, page and bell of the peer) and a few per thread.
fn reserved(layout: &Layout) -> u64 {
    let threads = u64::from(layout.gateway_threads);
    let links = threads * u64::from(layout.storage_workers);
    RESERVED + 8 * (threads - 1) + 3 * (links - 1) + 3 * u64::from(layout.broker_links())
}

fn decide(limit: u64, reserved: u64, wished: u64) -> Result<Clients, Failure> {
    let possible = limit.saturating_sub(reserved);
    if possible == 0 {
        return Err(Failure::Resources(format!(
            "a limit of {limit} open files leaves no room for clients, {} descriptors are needed: \
             raise it (ulimit -n) or start fewer gateway threads and storage workers",
            reserved + 1
        )));
    }
    let notice = (wished > possible).then(|| {
        format!(
            "maxclients reduced from {wished} to {possible}: only {limit} descriptors are allowed \
             and the limit cannot be raised (ulimit -n)"
        )
    });
    Ok(Clients {
        possible,
        use_now: wished.min(possible),
        notice,
    })
}

/// Checks that shared memory may be as large as arenas are: segments count as files, and exceeding
/// the limit for those is a deadly signal.
///
/// # Errors
/// If the limit is too low and cannot be raised.
pub fn raise_file_size(need: u64) -> Result<(), Failure> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE)
        .map_err(|errno| Failure::System(format!("cannot read the file size limit: {errno}")))?;
    if soft >= need {
        return Ok(());
    }
    if hard >= need && setrlimit(Resource::RLIMIT_FSIZE, hard, hard).is_ok() {
        return Ok(());
    }
    Err(Failure::Resources(format!(
        "files may have at most {hard} bytes (ulimit -f), but segments of shared memory count as \
         files and need up to {need} bytes of address space"
    )))
}

/// Checks that the memory for rings and journals is there.
///
/// # Errors
/// If it is not.
pub fn check_memory(layout: &Layout, cgroup_left: Option<u64>) -> Result<(), Failure> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = available(&meminfo)
        .unwrap_or(u64::MAX)
        .min(cgroup_left.unwrap_or(u64::MAX));
    let need = layout.shared_bytes();
    if need <= available {
        return Ok(());
    }
    Err(Failure::Resources(format!(
        "not enough memory: rings and journals of {} gateway threads and {} storage workers need \
         {} MB of shared memory, {} MB are available; start fewer, or set ring-size",
        layout.gateway_threads,
        layout.storage_workers,
        need >> 20,
        available >> 20
    )))
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_reduced_to_what_the_limit_allows() {
        let enough = decide(20_000, 32, 10_000).unwrap();
        assert_eq!(
            enough,
            Clients {
                possible: 19_968,
                use_now: 10_000,
                notice: None
            }
        );
        let less = decide(1_024, 32, 10_000).unwrap();
        assert_eq!(less.use_now, 992);
        assert!(less.notice.unwrap().contains("from 10000 to 992"));
        assert!(decide(32, 32, 10_000).is_err());
    }

    #[test]
    fn memory_is_read_from_the_kernel() {
        assert_eq!(
            available("MemTotal: 9 kB\nMemAvailable:   1024 kB\n"),
            Some(1 << 20)
        );
        assert_eq!(available(""), None);
    }
}
