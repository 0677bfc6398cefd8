//! How many processes and threads there should be, and on which processors they run.
//!
//! Rules
//!   - A core counts if the affinity of the supervisor allows it; a quota of control groups caps
//!     the count.
//!   - One worker, unless a setting asks for more: with several some commands over keys of different
//!     workers are still refused, and the right reply comes before the faster one.
//!   - Gateway threads for the rest, at most ten for a worker: at small batches the sockets cost ten
//!     times what a worker does, at large ones about twice. From four cores on one core stays free for
//!     everything else.
//!   - `pin auto` binds only when every gateway thread and worker gets a core of its own and one
//!     is left over. With fewer cores separate binding costs 20 to 45 % (measured on 2 cores): the
//!     kernel can no longer run two parts that wake each other side by side.
//!
//! Not here: quotas (`cgroup`), settings (`proto`).

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use proto::settings::Pin;

/// More gateway threads for each worker are never started by rule; settings may still ask for them.
const THREADS_PER_WORKER_MAX: usize = 10;

/// The processors that this thread may run on, ascending.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return vec![0];
    };
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// Binds this thread to one processor.
///
/// # Errors
/// If the processor does not exist or is not allowed.
pub fn pin_this_thread(cpu: usize) -> Result<(), nix::errno::Errno> {
    bind_thread(0, &[cpu])
}

/// Lets a thread (0: this one) run on these processors only.
///
/// # Errors
/// If there is no such thread, or none of the processors exists and is allowed.
pub fn bind_thread(thread: i32, cpus: &[usize]) -> Result<(), nix::errno::Errno> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu)?;
    }
    sched_setaffinity(Pid::from_raw(thread), &set)
}

/// Whole cores' worth of time: allowed processors, capped by a quota (rounded down, at least 1).
pub fn usable_cores(allowed: usize, quota: Option<f64>) -> usize {
    let capped = match quota {
        // Quotas are small positive numbers.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "see above"
        )]
        Some(quota) => allowed.min(quota.max(1.0) as usize),
        None => allowed,
    };
    capped.max(1)
}

/// Gateway threads and storage workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Threads that serve sockets.
    pub gateway_threads: usize,
    /// Storage worker processes.
    pub storage_workers: usize,
}

/// The counts for a number of cores; a setting that is not 0 wins over the rule.
pub fn counts(cores: usize, gateway_threads: usize, storage_workers: usize) -> Counts {
    let workers = match storage_workers {
        0 => 1,
        explicit => explicit,
    };
    let spare = usize::from(cores >= 4);
    let threads = match gateway_threads {
        0 => cores
            .saturating_sub(workers + spare)
            .clamp(1, workers.saturating_mul(THREADS_PER_WORKER_MAX)),
        explicit => explicit,
    };
    Counts {
        gateway_threads: threads,
        storage_workers: workers,
    }
}

/// Who runs where; `None` leaves it to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Processor of each gateway thread.
    pub gateway_threads: Vec<Option<usize>>,
    /// Processor of each storage worker.
    pub storage_workers: Vec<Option<usize>>,
    /// Processor of the broker, if there is one to spare.
    pub broker: Option<usize>,
}

/// Assigns processors. Workers come first, from the highest processor down, because the lowest
/// ones usually serve the interrupts of devices.
pub fn assign(pin: Pin, allowed: &[usize], cores: usize, counts: Counts) -> Assignment {
    let parts = counts.gateway_threads + counts.storage_workers;
    let enough = cores >= allowed.len() && allowed.len() > parts;
    let bind = match pin {
        Pin::Auto => enough,
        Pin::Yes => true,
        Pin::No => false,
    };
    let mut processors = allowed.iter().rev().copied().cycle();
    let mut take = |count: usize| -> Vec<Option<usize>> {
        (0..count)
            .map(|_| if bind { processors.next() } else { None })
            .collect()
    };
    let storage_workers = take(counts.storage_workers);
    let gateway_threads = take(counts.gateway_threads);
    // One core stays free for everything else.
    let is_room = allowed.len() > parts + 1;
    Assignment {
        gateway_threads,
        storage_workers,
        broker: take(usize::from(is_room)).pop().flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_cores() {
        let by_rule = |cores| {
            let counts = counts(cores, 0, 0);
            (counts.gateway_threads, counts.storage_workers)
        };
        assert_eq!(by_rule(1), (1, 1));
        assert_eq!(by_rule(2), (1, 1));
        assert_eq!(by_rule(3), (2, 1));
        assert_eq!(by_rule(4), (2, 1));
        assert_eq!(by_rule(8), (6, 1));
        assert_eq!(by_rule(32), (10, 1));
        assert_eq!(
            counts(2, 8, 8),
            Counts {
                gateway_threads: 8,
                storage_workers: 8
            }
        );
    }

    #[test]
    fn a_quota_caps_the_cores() {
        assert_eq!(usable_cores(8, None), 8);
        assert_eq!(usable_cores(8, Some(2.5)), 2);
        assert_eq!(usable_cores(8, Some(0.2)), 1);
        assert_eq!(usable_cores(2, Some(16.0)), 2);
    }

    #[test]
    fn binding_needs_a_core_for_each_and_one_to_spare() {
        let two = assign(Pin::Auto, &[0, 1], 2, counts(2, 0, 0));
        assert_eq!(two.gateway_threads, [None]);
        let four = assign(Pin::Auto, &[0, 1, 2, 3], 4, counts(4, 0, 0));
        assert_eq!(four.storage_workers, [Some(3)]);
        assert_eq!(four.gateway_threads, [Some(2), Some(1)]);
        let quota = assign(Pin::Auto, &[0, 1, 2, 3], 2, counts(2, 0, 0));
        assert_eq!(quota.storage_workers, [None]);
        let forced = assign(Pin::Yes, &[0, 1], 2, counts(2, 2, 2));
        assert_eq!(forced.storage_workers, [Some(1), Some(0)]);
        assert_eq!(forced.gateway_threads, [Some(1), Some(0)]);
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        let cpus = allowed();
        assert!(!cpus.is_empty());
        std::thread::spawn(move || {
            pin_this_thread(cpus[0]).unwrap();
            assert_eq!(allowed(), [cpus[0]]);
        })
        .join()
        .unwrap();
    }
}
