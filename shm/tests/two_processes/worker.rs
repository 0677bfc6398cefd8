//! The death protocol of a storage worker, at every step of every life: one reply per request, in
//! order, and never a wrong one.
//!
//! The worker in here is the smallest one that has all the parts: its "arena" are two counters that
//! are equal when no write is half done; a command reads them or adds to both; replies of a batch
//! share one frame whose header is written when the frame is closed; every write leaves a record in
//! the log.
//!
//! ```text
//!   request   | sequence u64 | amount u64, 0 = read |
//!   reply     | count u64 | count x value u64 |            value MAX = "outcome unknown"
//! ```

use shm::fault::FaultPoint;
use shm::{Bell, CommitLine, Journal, LinkSegment, Party, RingConsumer, RingProducer};

use super::process::{Plan, start};

const RING: usize = 64 * 1024;
const REQUEST: usize = 16;
const REQUESTS: u64 = 60;
const BATCH: usize = 8;
/// Lives with a fault armed before one without.
const LIVES: usize = 6;
/// The reply to a command whose outcome nobody knows.
const UNKNOWN: u64 = u64::MAX;

/// Writes and reads alternate in a pattern of five.
fn amount(sequence: u64) -> u64 {
    if sequence % 5 < 3 { sequence + 1 } else { 0 }
}

struct Worker {
    arena: Party,
    journal: Journal,
    requests: RingConsumer,
    replies: RingProducer,
    line: CommitLine,
    /// The next command was cut off inside a write.
    uncertain: bool,
}

impl Worker {
    /// Goes on where the predecessor's journal says.
    fn recover(plan: &mut Plan) -> Self {
        let link = LinkSegment::open(plan.take(), 1).unwrap();
        let arena = Party::open(plan.take(), 1).unwrap();
        let mut journal = Journal::open(plan.take(), 1).unwrap();
        let line = journal.last_commit();
        let resume = (line.request_position, line.reply_position);
        let (requests, mut replies) = link.responder(Some(resume)).unwrap();
        if let Some(open) = replies.unpublished_mut(line.frame_start)
            && !open.is_empty()
        {
            open[..8].copy_from_slice(&u64::from(line.frame_count).to_le_bytes());
            replies.publish();
        }
        journal.truncate_log(line.log_length).unwrap();
        let uncertain = journal.writing() != line.writing;
        if !journal.writing().is_multiple_of(2) {
            // Not to be trusted: start empty.
            arena.counters().set(0, 0);
            arena.counters().set(1, 0);
            journal.end_write();
        }
        Self {
            arena,
            journal,
            requests,
            replies,
            line,
            uncertain,
        }
    }

    fn execute(&mut self, sequence: u64, amount: u64) -> u64 {
        let counters = self.arena.counters();
        if std::mem::take(&mut self.uncertain) {
            return UNKNOWN;
        }
        assert_eq!(counters.get(0), counters.get(1), "a trusted arena is whole");
        if amount > 0 {
            self.journal.begin_write(0, 1);
            counters.add(0, amount);
            counters.add(1, amount);
            self.journal.end_write();
            self.journal.append(&sequence.to_le_bytes()).unwrap();
        }
        counters.get(0)
    }

    fn batch(&mut self) {
        let len = self.requests.refresh().unwrap().min(BATCH * REQUEST);
        let bytes = self.requests.readable()[..len].to_vec();
        let frame_start = self.replies.position();
        for (index, request) in bytes.chunks_exact(REQUEST).enumerate() {
            let word = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
            let value = self.execute(word(0), word(8));
            if index == 0 {
                self.append(0);
            }
            self.append(value);
            self.line = CommitLine {
                sequence: self.line.sequence + 1,
                request_position: self.requests.position() + ((index + 1) * REQUEST) as u64,
                reply_position: self.replies.position(),
                frame_start,
                frame_count: index as u32 + 1,
                writing: self.journal.writing(),
                log_length: self.journal.log_length(),
                ..self.line
            };
            self.journal.commit(&self.line);
        }
        let count = (len / REQUEST) as u64;
        if let Some(header) = self
            .replies
            .unpublished_mut(frame_start)
            .filter(|_| count > 0)
        {
            header[..8].copy_from_slice(&count.to_le_bytes());
        }
        self.replies.publish();
        self.requests.consume(len);
        self.requests.release();
        self.arena.news().announce(0);
        self.arena.doorbell().ring(&Bell::Futex);
    }

    fn append(&mut self, word: u64) {
        self.replies
            .reserve(8)
            .unwrap()
            .copy_from_slice(&word.to_le_bytes());
        self.replies.commit(8);
    }
}

/// Child: answers until all requests are released.
pub fn worker(mut plan: Plan) {
    let mut worker = Worker::recover(&mut plan);
    while worker.requests.released() < REQUESTS * REQUEST as u64 {
        worker.batch();
    }
}

/// All values published so far; every frame must be whole.
fn values(replies: &mut RingConsumer) -> Vec<u64> {
    replies.refresh().unwrap();
    let mut words = replies
        .readable()
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    let mut values = Vec::new();
    while let Some(count) = words.next() {
        assert!(
            (1..=BATCH as u64).contains(&count),
            "a frame's header holds its count"
        );
        let before = values.len();
        values.extend(words.by_ref().take(count as usize));
        assert_eq!(
            values.len() - before,
            count as usize,
            "a published frame is whole"
        );
    }
    values
}

/// Runs lives that die at `fault` and one that does not; checks replies, arena and log.
fn run(fault: (FaultPoint, u32)) {
    let link = LinkSegment::create("test-link", RING, 1).unwrap();
    let arena = Party::create("test-arena", 0, 0, 2, 1).unwrap();
    let journal = Journal::create("test-journal", 1 << 16, 1).unwrap();
    let (mut out, mut replies) = link.try_clone().unwrap().requester().unwrap();
    for sequence in 0..REQUESTS {
        let request = [sequence, amount(sequence)].map(u64::to_le_bytes).concat();
        out.reserve(REQUEST).unwrap().copy_from_slice(&request);
        out.commit(REQUEST);
    }
    out.publish();
    let fds = [link.fd(), arena.fd(), journal.fd()];
    let mut deaths = 0;
    let mut done = false;
    while !done {
        let fault = Some(fault).filter(|_| deaths < LIVES);
        done = start("worker", fault, 0, &fds).succeeded_or_died();
        deaths += usize::from(!done);
        values(&mut replies);
    }
    assert!(deaths > 0, "{fault:?} was never passed");
    let seen = values(&mut replies);
    assert_eq!(
        seen.len() as u64,
        REQUESTS,
        "{fault:?}: one reply per request"
    );
    check(
        fault,
        deaths,
        &seen,
        &arena,
        journal.fd().try_clone_to_owned().unwrap(),
    );
}

fn check(
    fault: (FaultPoint, u32),
    deaths: usize,
    seen: &[u64],
    arena: &Party,
    journal: std::os::fd::OwnedFd,
) {
    // Only a death between the first store of a write and its commit leaves a doubt.
    let loses = fault.0 == FaultPoint::WriteBegun;
    let doubts = [
        FaultPoint::WriteEnded,
        FaultPoint::LogCopied,
        FaultPoint::CommitFilled,
    ];
    let (mut total, mut log, mut unknown) = (0, Vec::new(), 0);
    for (sequence, value) in (0..).zip(seen) {
        let amount = amount(sequence);
        if *value == UNKNOWN {
            assert!(amount > 0, "{fault:?}: a read is never in doubt");
            assert!(
                loses || doubts.contains(&fault.0),
                "{fault:?}: nothing was in doubt"
            );
            unknown += 1;
            total = if loses { 0 } else { total + amount };
            continue;
        }
        total += amount;
        assert_eq!(*value, total, "{fault:?}: reply {sequence}");
        if amount > 0 {
            log.extend_from_slice(&sequence.to_le_bytes());
        }
    }
    assert!(
        unknown <= deaths,
        "{fault:?}: {unknown} in doubt after {deaths} deaths"
    );
    if fault.0 != FaultPoint::CommitFilled {
        let want = if loses || doubts.contains(&fault.0) {
            deaths
        } else {
            0
        };
        assert_eq!(
            unknown, want,
            "{fault:?}: one doubt per death inside a write"
        );
    }
    assert_eq!(arena.counters().get(0), total);
    let journal = Journal::open(journal, 1).unwrap();
    assert_eq!(
        journal.unwritten(),
        log,
        "{fault:?}: the log has what was acknowledged"
    );
}

/// Passes at which the worker dies: the first, inside a batch, at its end, in a later one.
const PASSES: [u32; 5] = [1, 2, 5, 8, 9];

fn run_all(point: FaultPoint, passes: &[u32]) {
    passes.iter().for_each(|nth| run((point, *nth)));
}

#[test]
fn a_death_inside_a_write_costs_that_command_and_the_arena() {
    run_all(FaultPoint::WriteBegun, &PASSES);
}

#[test]
fn a_death_after_a_write_and_before_its_commit_leaves_only_that_command_in_doubt() {
    run_all(FaultPoint::WriteEnded, &PASSES);
    run_all(FaultPoint::LogCopied, &PASSES);
    run_all(FaultPoint::CommitFilled, &PASSES);
}

#[test]
fn a_death_after_the_commit_loses_nothing_and_repeats_nothing() {
    run_all(FaultPoint::CommitSwitched, &PASSES);
}

#[test]
fn a_death_around_publishing_and_releasing_a_batch_loses_nothing_and_repeats_nothing() {
    for point in [
        FaultPoint::RingBeforePublish,
        FaultPoint::RingAfterPublish,
        FaultPoint::RingBeforeRelease,
        FaultPoint::RingAfterRelease,
        FaultPoint::NewsAnnounced,
    ] {
        run_all(point, &[1, 2, 3]);
    }
}
