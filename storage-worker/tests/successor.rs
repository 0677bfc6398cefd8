//! A worker killed at every step of its protocols, and what its successor makes of it.
//!
//! Method: this program starts itself again as the worker (the test `worker_process`, told by the
//! environment) with a fault point armed, plays the supervisor over the control socket and the
//! gateway over a link, and sends a fixed stream of commands. When the worker kills itself at the
//! point, a successor is started over the same segments. In the end every command must have been
//! answered exactly once, and the counter must have gone through every value: a command that was
//! run twice or lost would show. Only a death inside a write may cost: one error, and the data if the
//! arena was being changed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/segments.rs"]
mod segments;

use proto::catalogue::{self, CommandRef, Lookup};
use proto::frame::{
    REQUEST_HEADER_BYTES, ReplyFrames, ReplyHeader, ReplyKind, RequestHeader, RequestKind, padded,
    write_request,
};
use proto::slot::slot_of;
use runtime::{ArenaState, Child as RuntimeChild};
use segments::{Segments, socket_pair};
use shm::fault::FaultPoint;
use shm::{Bell, RingConsumer, RingProducer};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "SUCCESSOR_TEST_CHILD";
const RING_BYTES: usize = 64 * 1024;
const UNKNOWN: &str = "-ERR storage worker died inside this command, outcome unknown\r\n";

/// The worker's side: nothing unless the environment says so.
#[test]
fn worker_process() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let child = RuntimeChild::from_control_socket().unwrap();
    storage_worker::run(child).unwrap();
    std::process::exit(0);
}

/// The supervisor and the gateway.
struct System {
    segments: Segments,
    requests: RingProducer,
    replies: RingConsumer,
    side: RingProducer,
    generation: u64,
    losses: u32,
    process: Child,
    control: OwnedFd,
}

fn spawn(fault: Option<&str>) -> (Child, OwnedFd) {
    let (ours, theirs) = socket_pair();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "worker_process", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match fault {
        Some(fault) => command.env(shm::fault::ENVIRONMENT, fault),
        None => command.env_remove(shm::fault::ENVIRONMENT),
    };
    (command.spawn().unwrap(), ours)
}

impl System {
    fn start(fault: &str) -> Self {
        let segments = Segments::new(RING_BYTES, 1 << 30);
        let (requests, replies) = segments.link.try_clone().unwrap().requester().unwrap();
        let side = segments.link.side_producer().unwrap();
        let (process, control) = spawn(Some(fault));
        segments.introduce(control.as_fd(), 1, ArenaState::Fresh);
        Self {
            segments,
            requests,
            replies,
            side,
            generation: 1,
            losses: 0,
            process,
            control,
        }
    }

    /// Starts a successor if the worker has died.
    fn look_after(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            return;
        }
        assert!(self.generation < 4, "the successor dies too");
        self.generation += 1;
        let is_torn = self.segments.renew_if_torn();
        self.losses += u32::from(is_torn);
        (self.process, self.control) = spawn(None);
        let arena = if is_torn {
            ArenaState::Fresh
        } else {
            ArenaState::Kept
        };
        self.segments
            .introduce(self.control.as_fd(), self.generation, arena);
        self.segments.worker.doorbell().alarm(&Bell::Futex);
    }

    /// Puts a request into the ring; `false` if there is no room.
    fn put(&mut self, sequence: u32, text: &str) -> bool {
        let words: Vec<&str> = text.split(' ').collect();
        let Lookup::Found(_, CommandRef::Storage(command)) = catalogue::find(
            words[0].as_bytes(),
            words.get(1).map(|word| word.as_bytes()),
        ) else {
            panic!("{text}");
        };
        let header = RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: 0,
            command: command as u16,
            connection: 0,
            generation: 1,
            sequence,
            slot: slot_of(words[1].as_bytes()),
            database: 0,
            argc: words.len() as u32,
            part: 0,
        };
        let arguments = words[1..].iter().map(|word| word.as_bytes());
        let mut frame = vec![0; 64 + text.len() * 5];
        let len = write_request(&mut frame, header, arguments).unwrap();
        let Some(place) = self.requests.reserve(padded(len)) else {
            return false;
        };
        place[..len].copy_from_slice(&frame[..len]);
        place[len..].fill(0);
        self.requests.commit(padded(len));
        self.requests.publish();
        self.ring();
        true
    }

    /// A successor asks who waited at its predecessor.
    fn tell_all(&mut self, epoch: u32) {
        for part in [0, 1] {
            let header = RequestHeader::resume(epoch, part);
            let place = self.side.reserve(REQUEST_HEADER_BYTES).unwrap();
            header.encode(place.first_chunk_mut().unwrap());
            self.side.commit(REQUEST_HEADER_BYTES);
        }
        self.side.publish();
        self.ring();
    }

    fn ring(&self) {
        self.segments.worker.news().announce(0);
        self.segments.worker.doorbell().ring(&Bell::Futex);
    }

    /// Takes the replies that are visible. Pieces of a large reply start anew with a successor.
    fn take(&mut self, answers: &mut Answers) {
        self.replies.refresh().unwrap();
        let mut frames = ReplyFrames::new(self.replies.readable());
        let mut asked = None;
        while let Some(frame) = frames.next_frame().unwrap() {
            if frame.header.kind == ReplyKind::Resume {
                asked = Some(frame.header.sequence);
            } else {
                answers.note(&frame.header, frame.run.body, self.generation);
            }
        }
        let read = frames.position();
        self.replies.consume(read);
        if let Some(epoch) = asked {
            self.tell_all(epoch);
        }
        if self.replies.release() {
            self.ring();
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Replies by sequence.
#[derive(Default)]
struct Answers {
    whole: BTreeMap<u32, String>,
    partial: BTreeMap<u32, (u64, String)>,
}

impl Answers {
    fn note(&mut self, header: &ReplyHeader, bytes: &[u8], generation: u64) {
        if header.kind == ReplyKind::Slow {
            return;
        }
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        match header.kind {
            ReplyKind::Reply => {
                let mut rest = text.as_str();
                for number in 0..header.count {
                    let end = reply_end(rest);
                    self.finish(header.sequence + number, rest[..end].to_owned());
                    rest = &rest[end..];
                }
                assert_eq!(rest, "");
            }
            ReplyKind::ReplyPart | ReplyKind::ReplyEnd => {
                let (from, partial) = self.partial.entry(header.sequence).or_default();
                if *from != generation {
                    partial.clear();
                    *from = generation;
                }
                partial.push_str(&text);
                if header.kind == ReplyKind::ReplyEnd {
                    let whole = std::mem::take(partial);
                    self.finish(header.sequence, whole);
                }
            }
            other => panic!("unexpected frame {other:?}"),
        }
    }

    fn finish(&mut self, sequence: u32, text: String) {
        assert_eq!(sequence_of(command_of(sequence)), sequence);
        let before = self.whole.insert(command_of(sequence), text);
        assert_eq!(before, None, "command {sequence} answered twice");
    }
}

fn reply_end(text: &str) -> usize {
    let line = text.find("\r\n").unwrap() + 2;
    match text.strip_prefix('$') {
        Some(rest) if !rest.starts_with("-1") => {
            let len: usize = rest[..rest.find('\r').unwrap()].parse().unwrap();
            line + len + 2
        }
        _ => line,
    }
}

/// The stream: mostly counting, with reads, a large reply, and a write with a large reply.
fn command(number: u32) -> &'static str {
    match number % 20 {
        3 => "SETRANGE big 199999 x",
        7 => "GETRANGE big 0 -1",
        9 | 11 | 12 => "GET n",
        13 => "GETDEL big",
        15 => "SET short 1 PX 1",
        17 => "GET short",
        _ => "INCR n",
    }
}

const COMMANDS: u32 = 400;

/// The number that a command has within its connection: every fourth one goes to another worker.
fn sequence_of(command: u32) -> u32 {
    command + command / 3
}

fn command_of(sequence: u32) -> u32 {
    sequence - sequence / 4
}

/// Runs the stream with the worker dying at the `nth` pass of a point. Says whether it died.
fn run(point: FaultPoint, nth: u32) -> bool {
    let label = format!("{}:{nth}", point.name());
    let mut system = System::start(&label);
    let mut answers = Answers::default();
    let mut sent = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    while (answers.whole.len() as u32) < COMMANDS {
        // A window of commands, so that batches of several sizes occur.
        let window = 1 + sent % 37;
        while sent < COMMANDS && sent < answers.whole.len() as u32 + window {
            if !system.put(sequence_of(sent), command(sent)) {
                break;
            }
            sent += 1;
        }
        system.look_after();
        system.take(&mut answers);
        assert!(
            Instant::now() < deadline,
            "{label}: {} of {COMMANDS}",
            answers.whole.len()
        );
        std::thread::yield_now();
    }
    check(&label, &answers, system.losses);
    system.generation > 1
}

/// Every INCR got the next number, except that one unknown may have counted or not, and that a
/// lost arena starts again from nothing.
fn check(label: &str, answers: &Answers, losses: u32) {
    let mut value = 0i64;
    let mut unknown = 0;
    let mut slack = 0;
    for (sequence, reply) in &answers.whole {
        if reply == UNKNOWN {
            unknown += 1;
            slack = 1;
            continue;
        }
        assert!(!reply.starts_with('-'), "{label}: {reply}");
        if command(*sequence) != "INCR n" {
            continue;
        }
        let number: i64 = reply[1..reply.len() - 2].parse().unwrap();
        let is_next = number == value + 1 || number == value + 1 + slack;
        let is_restart = losses > 0 && number <= 2;
        assert!(
            is_next || is_restart,
            "{label}: {number} after {value} at {sequence}"
        );
        value = number;
        slack = 0;
    }
    assert!(unknown <= 1, "{label}: {unknown} unknown outcomes");
}

#[test]
fn every_command_is_answered_once_wherever_the_worker_dies() {
    if !shm::fault::ENABLED {
        println!("skipped: this build has no fault points");
        return;
    }
    let points = [
        FaultPoint::RingBeforePublish,
        FaultPoint::RingAfterPublish,
        FaultPoint::RingWantsSpace,
        FaultPoint::RingBeforeRelease,
        FaultPoint::RingAfterRelease,
        FaultPoint::RingTookWant,
        FaultPoint::BellBeforeSleep,
        FaultPoint::BellTaken,
        FaultPoint::NewsAnnounced,
        FaultPoint::CommitFilled,
        FaultPoint::CommitSwitched,
        FaultPoint::WriteBegun,
        FaultPoint::WriteEnded,
    ];
    for point in points {
        let mut deaths = 0;
        for nth in [1, 2, 3, 4, 5, 8, 13, 21, 34, 55, 89, 144] {
            deaths += u32::from(run(point, nth));
        }
        println!("{}: died {deaths} of 12 times", point.name());
    }
}
