//! One worker and one gateway over real rings, in one process: batches, frames, jams, takeovers.
//!
//! A death is played by dropping everything that a process would lose (rings, engine, core) and
//! attaching again over the same segments. Deaths between two instructions of one call need real
//! processes: `tests/successor.rs`.

use super::bracket::{Bracket, BracketHook};
use super::core::Core;
use super::link::{Link, Peer, Turn};
use super::start::Predecessor;
use crate::engine::Engine;
use crate::keyspace::{self, Keyspace};
use crate::settings::{EngineSettings, MemoryLimit};
use proto::catalogue::{self, CommandRef, Lookup};
use proto::counters::worker_page;
use proto::frame::{
    REQUEST_HEADER_BYTES, ReplyFrames, ReplyKind, RequestHeader, RequestKind, flags, padded,
    write_request,
};
use proto::settings::Settings;
use proto::slot::slot_of;
use shm::arena::Mapping;
use shm::{Bell, Journal, LOG_BYTES_DEFAULT, LinkSegment, Party, RingConsumer, RingProducer};
use std::os::fd::OwnedFd;
use std::rc::Rc;

const FINGERPRINT: u64 = 99;
const RING_BYTES: usize = 64 * 1024;
const LINK: u32 = 3;
const GENERATION: u64 = 5;

/// Everything of a system that outlives a worker, and the gateway's side of the link.
pub(super) struct World {
    link: LinkSegment,
    journal: OwnedFd,
    party: OwnedFd,
    gateway: Party,
    pub(super) requests: RingProducer,
    replies: RingConsumer,
    arena: Mapping,
    sequence: u32,
}

/// What a worker process holds.
pub(super) struct Worker {
    core: Core,
    link: Link,
}

/// A reply frame as the gateway sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: ReplyKind,
    is_more: bool,
    connection: u32,
    part: u16,
    pub(super) sequence: u32,
    count: u32,
    pub(super) bytes: String,
}

impl World {
    pub(super) fn new() -> Self {
        let link = LinkSegment::create("link", RING_BYTES, FINGERPRINT).unwrap();
        let (requests, replies) = link.try_clone().unwrap().requester().unwrap();
        let journal = Journal::create("journal", LOG_BYTES_DEFAULT, FINGERPRINT).unwrap();
        let counters = worker_page::len(16);
        let party = Party::create("worker", 2, 0, counters, FINGERPRINT).unwrap();
        Self {
            link,
            journal: journal.fd().try_clone_to_owned().unwrap(),
            party: party.fd().try_clone_to_owned().unwrap(),
            gateway: Party::create("gateway", 1, 0, 64, FINGERPRINT).unwrap(),
            requests,
            replies,
            arena: Mapping::private_anywhere(1 << 30, keyspace::fingerprint()).unwrap(),
            sequence: 0,
        }
    }

    /// A worker over what is there: the first one, or a successor.
    pub(super) fn start(&self) -> Worker {
        self.arena.enter();
        let mut keyspace = Keyspace::attach().unwrap_or_else(|_| Keyspace::create(16, 1));
        let journal = Journal::open(self.journal.try_clone().unwrap(), FINGERPRINT).unwrap();
        let predecessor = Predecessor::read(&journal, 0);
        journal.end_write();
        let bracket = Rc::new(Bracket::new(journal));
        keyspace.set_hook(Box::new(BracketHook(Rc::clone(&bracket))));
        let settings = Settings::default();
        let engine = Engine::new(keyspace, EngineSettings::new(&settings), 1, 1);
        let party = Party::open(self.party.try_clone().unwrap(), FINGERPRINT).unwrap();
        let mut core = Core::new(engine, bracket, party, MemoryLimit::new(&settings), 1);
        core.tick();
        let resume = predecessor.map(|it| (it.line.request_position, it.line.reply_position));
        let rings = self.link.try_clone().unwrap().responder(resume).unwrap();
        let gateway = self.gateway.fd().try_clone_to_owned().unwrap();
        let party = Party::open(gateway, FINGERPRINT).unwrap();
        let peer = Peer {
            party,
            bell: Bell::Futex,
            position: 0,
        };
        let side = self.link.side_consumer().unwrap();
        let mut link = Link::new(LINK, GENERATION, rings, side, peer);
        if let Some(predecessor) = predecessor {
            assert_eq!(
                (predecessor.line.link, predecessor.line.link_generation),
                (LINK, 5)
            );
            link.take_over(&predecessor.line, predecessor.doubt, predecessor.served);
        }
        link.settle();
        Worker { core, link }
    }

    fn header(&mut self, connection: u32, words: &[&str]) -> RequestHeader {
        let sub = words.get(1).map(|word| word.as_bytes());
        let command = match catalogue::find(words[0].as_bytes(), sub) {
            Lookup::Found(_, CommandRef::Storage(command)) => command as u16,
            other => panic!("{other:?}"),
        };
        self.sequence += 1;
        RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: 0,
            command,
            connection,
            generation: 1,
            sequence: self.sequence,
            slot: words.get(1).map_or(0, |word| slot_of(word.as_bytes())),
            database: 0,
            argc: words.len() as u32,
            part: 0,
        }
    }

    fn frame(&mut self, header: RequestHeader, words: &[&str]) -> Vec<u8> {
        let mut frame = vec![0; 64 + words.iter().map(|word| word.len() + 4).sum::<usize>()];
        let arguments = words[1..].iter().map(|word| word.as_bytes());
        let len = write_request(&mut frame, header, arguments).unwrap();
        frame.truncate(len);
        frame
    }

    /// Puts a request into the ring; `false` if there is no room.
    fn put(&mut self, frame: &[u8]) -> bool {
        let len = padded(frame.len());
        let Some(place) = self.requests.reserve(len) else {
            return false;
        };
        place[..frame.len()].copy_from_slice(frame);
        place[frame.len()..].fill(0);
        self.requests.commit(len);
        self.requests.publish();
        true
    }

    pub(super) fn send(&mut self, connection: u32, text: &str) -> u32 {
        let words: Vec<&str> = text.split(' ').collect();
        let header = self.header(connection, &words);
        let frame = self.frame(header, &words);
        assert!(self.put(&frame), "request ring full");
        self.sequence
    }

    /// Sends a request in pieces of `size` bytes, from piece `first` on.
    fn send_in_parts(&mut self, text: &str, size: usize, first: usize) {
        let words: Vec<&str> = text.split(' ').collect();
        let header = self.header(1, &words);
        let whole = self.frame(header, &words);
        for (number, piece) in whole.chunks(size).enumerate().skip(first) {
            let part = RequestHeader {
                len: (REQUEST_HEADER_BYTES + piece.len()) as u32,
                kind: RequestKind::RequestPart,
                argc: whole.len() as u32,
                part: (number * size) as u32,
                ..header
            };
            let mut frame = vec![0; REQUEST_HEADER_BYTES];
            part.encode(frame.first_chunk_mut().unwrap());
            frame.extend_from_slice(piece);
            assert!(self.put(&frame), "request ring full");
        }
    }

    /// All reply frames that are visible.
    pub(super) fn receive(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.replies.refresh().unwrap();
        let mut found = ReplyFrames::new(self.replies.readable());
        while let Some(frame) = found.next_frame().unwrap() {
            let header = frame.header;
            frames.push(Frame {
                kind: header.kind,
                is_more: frame.is_more,
                connection: header.connection,
                part: header.part,
                sequence: header.sequence,
                count: header.count,
                bytes: String::from_utf8_lossy(frame.run.body).into_owned(),
            });
        }
        let read = found.position();
        self.replies.consume(read);
        self.replies.release();
        frames
    }

    /// Sends one command to a worker that has nothing else to do and returns its reply.
    pub(super) fn ask(&mut self, worker: &mut Worker, text: &str) -> String {
        let sequence = self.send(1, text);
        worker.serve();
        let frames = self.receive();
        assert_eq!(frames.len(), 1, "{frames:?}");
        assert_eq!((frames[0].sequence, frames[0].count), (sequence, 1));
        frames.into_iter().next().unwrap().bytes
    }
}

impl Worker {
    pub(super) fn serve(&mut self) -> Turn {
        self.link.serve(&mut self.core).unwrap()
    }
}

#[test]
fn a_request_gets_its_reply() {
    let mut world = World::new();
    let mut worker = world.start();
    assert_eq!(world.ask(&mut worker, "SET name ada"), "+OK\r\n");
    assert_eq!(world.ask(&mut worker, "GET name"), "$3\r\nada\r\n");
    assert_eq!(
        world.ask(&mut worker, "INCR name"),
        "-ERR value is not an integer or out of range\r\n"
    );
    assert_eq!(worker.serve(), Turn::Idle);
}

#[test]
fn consecutive_replies_of_a_connection_share_a_frame() {
    let mut world = World::new();
    let mut worker = world.start();
    for connection in [1, 1, 1, 2, 2, 1] {
        world.send(connection, "INCR n");
    }
    worker.serve();
    let seen: Vec<(u32, u32, String)> = world
        .receive()
        .into_iter()
        .map(|frame| (frame.connection, frame.count, frame.bytes))
        .collect();
    let want = [
        (1, 3, ":1\r\n:2\r\n:3\r\n".to_owned()),
        (2, 2, ":4\r\n:5\r\n".to_owned()),
        (1, 1, ":6\r\n".to_owned()),
    ];
    assert_eq!(seen, want);
}

/// Sends `INCR n` for connection 1 under this number.
fn count(world: &mut World, sequence: u32) {
    let words = ["INCR", "n"];
    let header = RequestHeader {
        sequence,
        ..world.header(1, &words)
    };
    let frame = world.frame(header, &words);
    assert!(world.put(&frame));
}

#[test]
fn replies_behind_a_gap_get_a_short_header() {
    let mut world = World::new();
    let mut worker = world.start();
    for sequence in [u32::MAX - 1, u32::MAX, 3, 4, 5, 260, 516] {
        count(&mut world, sequence);
    }
    worker.serve();
    count(&mut world, 518);
    worker.serve();
    let seen: Vec<(bool, u32, String)> = world
        .receive()
        .into_iter()
        .map(|frame| (frame.is_more, frame.sequence, frame.bytes))
        .collect();
    let want = [
        (false, u32::MAX - 1, ":1\r\n:2\r\n".to_owned()),
        (true, 3, ":3\r\n:4\r\n:5\r\n".to_owned()),
        (true, 260, ":6\r\n".to_owned()),
        // 255 left out are the most that fit, and a batch begins with a whole header.
        (true, 516, ":7\r\n".to_owned()),
        (false, 518, ":8\r\n".to_owned()),
    ];
    assert_eq!(seen, want);
}

#[test]
fn a_successor_closes_a_frame_with_a_short_header() {
    for sent in 1..6 {
        let mut world = World::new();
        let mut worker = world.start();
        for number in 0..sent {
            count(&mut world, 10 + number * 3 / 2);
        }
        // The batch is executed and committed command by command, and not published.
        worker.link.run_all(&mut worker.core);
        drop(worker);
        let mut successor = world.start();
        count(&mut world, 50);
        successor.serve();
        let frames = world.receive();
        let bytes: String = frames.iter().map(|frame| frame.bytes.as_str()).collect();
        let want: String = (1..=sent + 1)
            .map(|number| format!(":{number}\r\n"))
            .collect();
        assert_eq!(bytes, want);
        let last = frames.last().unwrap();
        assert_eq!((last.is_more, last.sequence), (false, 50));
    }
}

#[test]
fn parts_of_split_commands_get_frames_of_their_own() {
    let mut world = World::new();
    let mut worker = world.start();
    for part in [1, 2, 0] {
        let words = ["GET", "x"];
        let header = RequestHeader {
            part,
            ..world.header(1, &words)
        };
        let frame = world.frame(header, &words);
        world.put(&frame);
    }
    worker.serve();
    let parts: Vec<u16> = world.receive().iter().map(|frame| frame.part).collect();
    assert_eq!(parts, [1, 2, 0]);
}

#[test]
fn unwanted_replies_are_not_sent() {
    let mut world = World::new();
    let mut worker = world.start();
    let words = ["SET", "a", "1"];
    let header = RequestHeader {
        flags: flags::DISCARD,
        ..world.header(1, &words)
    };
    let frame = world.frame(header, &words);
    world.put(&frame);
    worker.serve();
    assert!(world.receive().is_empty());
    assert_eq!(world.ask(&mut worker, "GET a"), "$1\r\n1\r\n");
}

#[test]
fn a_reply_larger_than_the_ring_travels_in_parts() {
    let mut world = World::new();
    let mut worker = world.start();
    assert_eq!(
        world.ask(&mut worker, "SETRANGE big 299999 x"),
        ":300000\r\n"
    );
    let wanted = world.send(1, "GETRANGE big 0 -1");
    let next = world.send(1, "STRLEN big");
    let mut bytes = String::new();
    let mut kinds = Vec::new();
    let mut rest = Vec::new();
    for _ in 0..100 {
        worker.serve();
        for frame in world.receive() {
            if frame.sequence == wanted {
                kinds.push(frame.kind);
                bytes.push_str(&frame.bytes);
            } else {
                rest.push((frame.sequence, frame.bytes));
            }
        }
    }
    assert_eq!(bytes, format!("$300000\r\n{}x\r\n", "\0".repeat(299_999)));
    assert_eq!(kinds.last(), Some(&ReplyKind::ReplyEnd));
    assert!(
        kinds.len() > 16
            && kinds[..kinds.len() - 1]
                .iter()
                .all(|kind| *kind == ReplyKind::ReplyPart)
    );
    assert_eq!(rest, [(next, ":300000\r\n".to_owned())]);
}

#[test]
fn a_full_reply_ring_sets_the_link_aside_and_loses_nothing() {
    let mut world = World::new();
    let mut worker = world.start();
    world.ask(&mut worker, "SETRANGE v 999 x");
    let mut asked = Vec::new();
    let mut turns = Vec::new();
    for _ in 0..200 {
        asked.push(world.send(1, "GET v"));
        turns.push(worker.serve());
    }
    assert!(turns.contains(&Turn::Jammed));
    let mut replies = 0;
    for _ in 0..50 {
        replies += world.receive().iter().map(|frame| frame.count).sum::<u32>();
        worker.serve();
    }
    assert_eq!(replies as usize, asked.len());
}

#[test]
fn a_slow_command_is_told_behind_its_reply() {
    let mut world = World::new();
    let mut worker = world.start();
    let told = |frames: &[Frame]| -> Vec<(ReplyKind, String)> {
        frames
            .iter()
            .map(|frame| match frame.kind {
                ReplyKind::Slow => (
                    frame.kind,
                    frame.bytes[frame.bytes.rfind("\0*").unwrap() + 1..].to_owned(),
                ),
                kind => (kind, frame.bytes.clone()),
            })
            .collect()
    };
    worker.core.set_slow_from(0);
    world.send(1, "SET k v");
    world.send(1, "GET k");
    worker.serve();
    let want = [
        (ReplyKind::Reply, "+OK\r\n"),
        (ReplyKind::Slow, "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n"),
        (ReplyKind::Reply, "$1\r\nv\r\n"),
        (ReplyKind::Slow, "*2\r\n$3\r\nget\r\n$1\r\nk\r\n"),
    ];
    let want = want.map(|(kind, text)| (kind, text.to_owned()));
    assert_eq!(told(&world.receive()), want);
    // Behind the last piece of a large one, which waits for room.
    world.send(1, "SETRANGE big 299999 x");
    worker.serve();
    world.receive();
    world.send(1, "GETRANGE big 0 -1");
    let mut kinds = Vec::new();
    for _ in 0..50 {
        worker.serve();
        kinds.extend(world.receive().iter().map(|frame| frame.kind));
    }
    assert_eq!(
        kinds
            .iter()
            .filter(|&&kind| kind == ReplyKind::Slow)
            .count(),
        1
    );
    assert_eq!(
        kinds[kinds.len() - 2..],
        [ReplyKind::ReplyEnd, ReplyKind::Slow]
    );
    // What is fast cannot take that long, and is not looked at.
    worker.core.set_slow_from(1_000_000);
    world.send(1, "GET k");
    world.send(1, "KEYS *");
    worker.serve();
    assert!(
        world
            .receive()
            .iter()
            .all(|frame| frame.kind == ReplyKind::Reply)
    );
    worker.core.set_slow_from(-1);
    world.send(1, "GET k");
    worker.serve();
    assert_eq!(world.receive().len(), 1);
}

#[test]
fn a_request_in_parts_is_run_once_it_is_complete() {
    let mut world = World::new();
    let mut worker = world.start();
    let value = "v".repeat(10_000);
    world.send_in_parts(&format!("SET big {value}"), 1000, 0);
    world.send(2, "STRLEN big");
    worker.serve();
    let frames = world.receive();
    let bytes: Vec<&str> = frames.iter().map(|frame| frame.bytes.as_str()).collect();
    assert_eq!(bytes, ["+OK\r\n", ":10000\r\n"]);
}

#[test]
fn parts_without_a_beginning_are_asked_for_again_once() {
    let mut world = World::new();
    let mut worker = world.start();
    let value = "v".repeat(10_000);
    world.send_in_parts(&format!("SET big {value}"), 1000, 4);
    worker.serve();
    let kinds: Vec<ReplyKind> = world.receive().iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [ReplyKind::Again]);
    world.send_in_parts(&format!("SET big {value}"), 1000, 0);
    worker.serve();
    assert_eq!(world.receive()[0].bytes, "+OK\r\n");
}

#[test]
fn a_successor_goes_on_where_the_worker_stopped_between_batches() {
    let mut world = World::new();
    let mut worker = world.start();
    for _ in 0..3 {
        world.send(1, "INCR n");
    }
    worker.serve();
    world.send(1, "INCR n");
    drop(worker);
    let mut successor = world.start();
    successor.serve();
    let bytes: String = world
        .receive()
        .into_iter()
        .map(|frame| frame.bytes)
        .collect();
    assert_eq!(bytes, ":1\r\n:2\r\n:3\r\n:4\r\n");
    assert_eq!(world.ask(&mut successor, "GET n"), "$1\r\n4\r\n");
}

#[test]
fn a_read_whose_reply_was_half_sent_is_run_again() {
    let mut world = World::new();
    let mut worker = world.start();
    world.ask(&mut worker, "SETRANGE big 299999 x");
    let wanted = world.send(1, "GETRANGE big 0 -1");
    assert_eq!(worker.serve(), Turn::Jammed);
    drop(worker);
    let mut successor = world.start();
    let before = world.receive().len();
    assert!(before > 0);
    let mut bytes = String::new();
    for _ in 0..100 {
        successor.serve();
        for frame in world.receive() {
            assert_eq!(frame.sequence, wanted);
            bytes.push_str(&frame.bytes);
        }
    }
    assert_eq!(bytes.len(), 300_000 + "$300000\r\n\r\n".len());
}

#[test]
fn a_write_whose_reply_was_half_sent_is_not_run_again() {
    let mut world = World::new();
    let mut worker = world.start();
    world.ask(&mut worker, "SETRANGE big 299999 x");
    world.send(1, "GETDEL big");
    assert_eq!(worker.serve(), Turn::Jammed);
    drop(worker);
    world.receive();
    let mut successor = world.start();
    successor.serve();
    let frames = world.receive();
    let error = "-ERR storage worker died inside this command, outcome unknown\r\n";
    assert_eq!(frames.last().unwrap().bytes, error);
    assert_eq!(world.ask(&mut successor, "EXISTS big"), ":0\r\n");
}

#[test]
fn expired_keys_found_by_reads_are_bracketed_and_gone() {
    let mut world = World::new();
    let mut worker = world.start();
    world.ask(&mut worker, "SET short 1 PX 1");
    let before = worker.core.bracket.journal().writing();
    std::thread::sleep(std::time::Duration::from_millis(5));
    worker.core.tick();
    assert_eq!(world.ask(&mut worker, "GET short"), "$-1\r\n");
    let after = worker.core.bracket.journal().writing();
    assert_eq!(after, before + 2);
    assert!(after.is_multiple_of(2));
}

#[test]
fn background_work_blames_no_command() {
    let mut world = World::new();
    let mut worker = world.start();
    world.ask(&mut worker, "SET n 1");
    worker.core.in_background(|_| ());
    world.send(1, "INCR n");
    drop(worker);
    let mut successor = world.start();
    successor.serve();
    assert_eq!(world.receive()[0].bytes, ":2\r\n");
}

#[test]
fn counts_are_on_the_page_before_the_reply_is_visible() {
    use proto::catalogue::StorageCommand;
    use proto::counters::{CallCounter, DatabaseCounter, WorkerCounter};
    let mut world = World::new();
    let mut worker = world.start();
    world.ask(&mut worker, "SET a 1");
    world.ask(&mut worker, "INCR nope:nope");
    world.ask(&mut worker, "SET a");
    let page = worker.core.party.counters();
    assert_eq!(page.get(WorkerCounter::Commands.place()), 3);
    assert_eq!(
        page.get(worker_page::call(StorageCommand::Set, CallCounter::Calls)),
        2
    );
    assert_eq!(
        page.get(worker_page::call(StorageCommand::Incr, CallCounter::Calls)),
        1
    );
    assert_eq!(page.get(worker_page::database(0, DatabaseCounter::Keys)), 2);
    assert!(page.get(WorkerCounter::UsedBytes.place()) > 0);
}
