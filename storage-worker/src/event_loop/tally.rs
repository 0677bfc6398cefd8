//! Counts commands of a batch and writes them to the statistics page once per batch.
//!
//! Why not per command: a command takes a few hundred nanoseconds, and a look at the clock before
//! and after each would be a tenth of that. So a batch is timed as a whole and its time is shared
//! out by count; only a batch with one kind of command gives exact times, which is the usual case.
//!
//! Cost: per command one increment in a private array; per batch two looks at the clock and one
//! store per kind of command that occurred.

use proto::catalogue::StorageCommand;
use proto::counters::{CallCounter, WorkerCounter, worker_page};
use shm::Counters;
use std::time::Duration;

/// Counts of the current batch.
#[derive(Debug)]
pub(crate) struct Tally {
    calls: [u32; StorageCommand::COUNT],
    failed: [u32; StorageCommand::COUNT],
    /// The kinds that occurred.
    seen: Vec<StorageCommand>,
    total: u32,
    /// Nanoseconds not yet counted as whole microseconds, by kind.
    rest_ns: [u32; StorageCommand::COUNT],
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            calls: [0; StorageCommand::COUNT],
            failed: [0; StorageCommand::COUNT],
            seen: Vec::with_capacity(StorageCommand::COUNT),
            total: 0,
            rest_ns: [0; StorageCommand::COUNT],
        }
    }

    /// Counts one command.
    #[inline]
    pub(crate) fn count(&mut self, command: StorageCommand, is_error: bool) {
        let calls = &mut self.calls[command as usize];
        if *calls == 0 {
            self.seen.push(command);
        }
        *calls += 1;
        self.total += 1;
        self.failed[command as usize] += u32::from(is_error);
    }

    /// Writes the batch, which took `elapsed`, to the page and begins a new one.
    pub(crate) fn flush(&mut self, page: Counters<'_>, elapsed: Duration) {
        if self.total == 0 {
            return;
        }
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        for command in self.seen.drain(..) {
            let at = command as usize;
            let calls = u64::from(std::mem::take(&mut self.calls[at]));
            let failed = u64::from(std::mem::take(&mut self.failed[at]));
            let share_ns = elapsed_ns.saturating_mul(calls) / u64::from(self.total)
                + u64::from(self.rest_ns[at]);
            self.rest_ns[at] = (share_ns % 1000) as u32;
            page.add(worker_page::call(command, CallCounter::Calls), calls);
            page.add(
                worker_page::call(command, CallCounter::Micros),
                share_ns / 1000,
            );
            if failed > 0 {
                page.add(worker_page::call(command, CallCounter::Failed), failed);
            }
        }
        page.add(WorkerCounter::Commands.place(), u64::from(self.total));
        page.add(WorkerCounter::Batches.place(), 1);
        page.add(WorkerCounter::CommandMicros.place(), elapsed_ns / 1000);
        self.total = 0;
    }
}
