//! Counts commands of a batch and writes them to the statistics page once per batch.
//!
//! Why not per command: a command takes a few hundred nanoseconds, and a look at the clock before
//! and after each would be a tenth of that. So a batch is timed as a whole and its time is shared
//! out by count; only a batch with one kind of command gives exact times, which is the usual case.
//!
//! The same holds for the histograms of latencies: each command of a batch counts with its share.
//!
//! Cost: per command one increment in a private array; per batch two looks at the clock and three
//! stores per kind of command that occurred.

use proto::catalogue::{GatewayCommand, StorageCommand};
use proto::counters::{CallCounter, ErrorCounter, WorkerCounter, worker_page};
use proto::latency;
use shm::Counters;
use std::time::Duration;

/// Counts of the current batch.
#[derive(Debug)]
pub(crate) struct Tally {
    calls: [u32; StorageCommand::COUNT],
    /// Those inside of scripts.
    inner: [u32; StorageCommand::COUNT],
    failed: [u32; StorageCommand::COUNT],
    errors: [u32; ErrorCounter::COUNT],
    any_errors: bool,
    /// Errors under words of scripts, one each.
    words: Vec<Box<[u8]>>,
    /// Commands that scripts were refused.
    refused: Vec<StorageCommand>,
    /// Calls of a gateway's commands in them, whether they failed, how many.
    answered: Vec<(GatewayCommand, bool, u32)>,
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
            inner: [0; StorageCommand::COUNT],
            failed: [0; StorageCommand::COUNT],
            errors: [0; ErrorCounter::COUNT],
            any_errors: false,
            words: Vec::new(),
            refused: Vec::new(),
            answered: Vec::new(),
            seen: Vec::with_capacity(StorageCommand::COUNT),
            total: 0,
            rest_ns: [0; StorageCommand::COUNT],
        }
    }

    /// Counts one command, and the error that it answers with.
    #[inline]
    pub(crate) fn count(&mut self, command: StorageCommand, error: Option<ErrorCounter>) {
        let calls = &mut self.calls[command as usize];
        if *calls == 0 && self.inner[command as usize] == 0 {
            self.seen.push(command);
        }
        *calls += 1;
        self.total += 1;
        if let Some(error) = error {
            self.failed[command as usize] += 1;
            self.errors[error as usize] += 1;
            self.any_errors = true;
        }
    }

    /// Counts an error of no command.
    pub(crate) fn count_error(&mut self, error: ErrorCounter) {
        self.errors[error as usize] += 1;
        self.any_errors = true;
    }

    /// Counts a call that a script was refused.
    pub(crate) fn count_refused(&mut self, command: Option<StorageCommand>, error: ErrorCounter) {
        self.refused.extend(command);
        self.count_error(error);
    }

    /// Counts calls of a gateway's command in a script.
    pub(crate) fn count_answered(&mut self, command: GatewayCommand, failed: bool, count: u32) {
        self.answered.push((command, failed, count));
        self.any_errors = true;
    }

    /// Counts an error under the word of a script.
    pub(crate) fn count_word(&mut self, word: Box<[u8]>) {
        self.words.push(word);
        self.any_errors = true;
    }

    /// Counts a command that was called so many times inside of a script, whose time includes theirs.
    pub(crate) fn count_inner(
        &mut self,
        command: StorageCommand,
        error: Option<ErrorCounter>,
        count: u32,
    ) {
        let at = command as usize;
        if self.calls[at] == 0 && self.inner[at] == 0 {
            self.seen.push(command);
        }
        self.inner[at] = self.inner[at].saturating_add(count);
        if let Some(error) = error {
            self.failed[at] = self.failed[at].saturating_add(count);
            self.errors[error as usize] = self.errors[error as usize].saturating_add(count);
            self.any_errors = true;
        }
    }

    /// The command that is counted next fails with an error that is counted already.
    pub(crate) fn count_failure(&mut self, command: StorageCommand) {
        self.failed[command as usize] += 1;
    }

    /// Writes the batch, which took `elapsed`, to the page and begins a new one.
    pub(crate) fn flush(&mut self, page: Counters<'_>, elapsed: Duration) {
        if self.total == 0 {
            return;
        }
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let mut inner = 0;
        for command in self.seen.drain(..) {
            let at = command as usize;
            let calls = u64::from(std::mem::take(&mut self.calls[at]));
            let inside = u64::from(std::mem::take(&mut self.inner[at]));
            inner += inside;
            let failed = u64::from(std::mem::take(&mut self.failed[at]));
            let share_ns = elapsed_ns.saturating_mul(calls) / u64::from(self.total);
            let bucket = latency::bucket(share_ns / calls.max(1));
            if calls > 0 {
                page.add(worker_page::latency(command, bucket), calls);
            }
            let share_ns = share_ns + u64::from(self.rest_ns[at]);
            self.rest_ns[at] = (share_ns % 1000) as u32;
            let calls = calls + inside;
            page.add(worker_page::call(command, CallCounter::Calls), calls);
            page.add(
                worker_page::call(command, CallCounter::Micros),
                share_ns / 1000,
            );
            if failed > 0 {
                page.add(worker_page::call(command, CallCounter::Failed), failed);
            }
        }
        if std::mem::take(&mut self.any_errors) {
            for error in ErrorCounter::ALL {
                let count = std::mem::take(&mut self.errors[*error as usize]);
                page.add(worker_page::error(*error), u64::from(count));
            }
            for word in self.words.drain(..) {
                page.add(place_of_word(page, &word), 1);
            }
            for (command, failed, count) in self.answered.drain(..) {
                let count = u64::from(count);
                page.add(worker_page::inner(command, CallCounter::Calls), count);
                if failed {
                    page.add(worker_page::inner(command, CallCounter::Failed), count);
                }
            }
            for command in self.refused.drain(..) {
                page.add(worker_page::call_rejected(command), 1);
            }
        }
        let commands = u64::from(self.total) + inner;
        page.add(WorkerCounter::Commands.place(), commands);
        page.add(WorkerCounter::Batches.place(), 1);
        page.add(WorkerCounter::CommandMicros.place(), elapsed_ns / 1000);
        self.total = 0;
    }
}

/// Where errors under a word are counted: a place of its own while there is one.
#[cold]
fn place_of_word(page: Counters<'_>, word: &[u8]) -> usize {
    let mut text = [0; worker_page::WORD_BYTES];
    let len = word.len().min(text.len());
    text[..len].copy_from_slice(&word[..len]);
    let parts = || {
        let parts = text.chunks_exact(8);
        parts.map(|part| {
            part.iter()
                .rev()
                .fold(0, |all, &byte| all << 8 | u64::from(byte))
        })
    };
    for number in 0..worker_page::OWN_WORDS {
        let count = worker_page::word_count(number);
        if page.get(count) == 0 {
            for (place, part) in worker_page::word_text(number).zip(parts()) {
                page.set(place, part);
            }
            return count;
        }
        let mut places = worker_page::word_text(number).zip(parts());
        if places.all(|(place, part)| page.get(place) == part) {
            return count;
        }
    }
    worker_page::error(ErrorCounter::Err)
}
