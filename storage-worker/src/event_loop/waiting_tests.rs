//! One worker, two gateway threads and clients that wait: who is served when, and what becomes of them
//! when the worker, a client or a gateway goes.
//!
//! The commands are stand-ins over strings, so that nothing of the list type is needed here:
//!
//! ```text
//!   SET key value            adds the key, and signals it
//!   GETDEL key ... millis    takes the value of the first key that there is, or waits (0: for ever)
//!   RENAMENX from to millis  moves a value, and signals `to`; or waits for `from`
//! ```

use super::bracket::{Bracket, BracketHook};
use super::core::Core;
use super::link::{Link, Peer};
use super::links::{Links, Served};
use super::start::Predecessor;
use crate::blocking::TimeoutReply;
use crate::commands::stand_ins;
use crate::context::{CommandResult, Context};
use crate::engine::Engine;
use crate::keyspace::{self, Access, Expiry, Keyspace, StringRef, StringValue, ValueKind};
use crate::settings::{EngineSettings, MemoryLimit};
use proto::catalogue::{self, CommandRef, Lookup, StorageCommand};
use proto::counters::{WorkerCounter, worker_page};
use proto::frame::{
    Args, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, ReplyHeader, ReplyKind, RequestHeader,
    RequestKind, flags, padded, reply_flags, write_request,
};
use proto::settings::Settings;
use proto::slot::slot_of;
use shm::arena::Mapping;
use shm::{Bell, Journal, LOG_BYTES_DEFAULT, LinkSegment, Party, RingConsumer, RingProducer};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

const FINGERPRINT: u64 = 99;
const RING_BYTES: usize = 64 * 1024;
const UNKNOWN: &str = "-ERR storage worker died inside this command, outcome unknown\r\n";

fn take_string(ctx: &mut Context<'_>, bytes: &[u8]) -> Option<Vec<u8>> {
    let key = ctx.key(bytes);
    let value = match ctx.keyspace.find(&key, ctx.now, Access::Write)?.string() {
        StringRef::Int(number) => number.to_string().into_bytes(),
        StringRef::Bytes(bytes) => bytes.to_vec(),
    };
    ctx.keyspace.remove(&key);
    Some(value)
}

fn put(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    put_string(ctx, args.get(1), args.get(2));
    ctx.reply.ok();
    Ok(())
}

fn put_string(ctx: &mut Context<'_>, key: &[u8], value: &[u8]) {
    let key = ctx.key(key);
    ctx.keyspace
        .set_string(&key, StringValue::Auto(value), Expiry::Clear);
    ctx.signal_ready(&key);
}

fn take(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let last = args.len() - 1;
    let deadline = ctx.deadline_in_millis(args.get(last))?;
    for at in 1..last {
        if let Some(value) = take_string(ctx, args.get(at)) {
            ctx.reply.bulk(&value);
            return Ok(());
        }
    }
    let keys = args.iter_from(1).take(last - 1);
    ctx.block(ValueKind::String, keys, deadline, TimeoutReply::Null);
    Ok(())
}

fn pass_on(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let deadline = ctx.deadline_in_millis(args.get(3))?;
    match take_string(ctx, args.get(1)) {
        Some(value) => {
            put_string(ctx, args.get(2), &value);
            ctx.reply.bulk(&value);
        }
        None => {
            let keys = [args.get(1)];
            ctx.block(ValueKind::String, keys, deadline, TimeoutReply::Null);
        }
    }
    Ok(())
}

/// A command that waits, as a gateway remembers it.
#[derive(Clone)]
struct Remembered {
    sequence: u32,
    memo: Vec<u8>,
}

/// A gateway thread at its end of a link.
struct Gateway {
    segment: LinkSegment,
    party: Party,
    requests: RingProducer,
    replies: RingConsumer,
    side: RingProducer,
    /// Frames by connection, of its last command.
    frames: BTreeMap<u32, Vec<u8>>,
    /// By connection.
    waiting: BTreeMap<u32, Remembered>,
    /// What came: connection, flags, bytes.
    received: Vec<(u32, u8, String)>,
    /// It is asked to resume, under this number.
    asked: Option<u32>,
}

/// Everything that outlives a worker.
struct Hall {
    journal: OwnedFd,
    party: OwnedFd,
    arena: Mapping,
    gateways: Vec<Gateway>,
    sequence: u32,
}

struct Worker {
    core: Core,
    links: Links,
}

impl Hall {
    fn new() -> Self {
        stand_ins::set(StorageCommand::Set, put);
        stand_ins::set(StorageCommand::GetDel, take);
        stand_ins::set(StorageCommand::RenameNx, pass_on);
        let journal = Journal::create("journal", LOG_BYTES_DEFAULT, FINGERPRINT).unwrap();
        let party = Party::create("worker", 2, 0, worker_page::len(16), FINGERPRINT).unwrap();
        let gateway = |_| {
            let segment = LinkSegment::create("link", RING_BYTES, FINGERPRINT).unwrap();
            let (requests, replies) = segment.try_clone().unwrap().requester().unwrap();
            Gateway {
                side: segment.side_producer().unwrap(),
                segment,
                party: Party::create("gateway", 1, 0, 64, FINGERPRINT).unwrap(),
                requests,
                replies,
                frames: BTreeMap::new(),
                waiting: BTreeMap::new(),
                received: Vec::new(),
                asked: None,
            }
        };
        Self {
            journal: journal.fd().try_clone_to_owned().unwrap(),
            party: party.fd().try_clone_to_owned().unwrap(),
            arena: Mapping::private_anywhere(1 << 30, keyspace::fingerprint()).unwrap(),
            gateways: (0..2).map(gateway).collect(),
            sequence: 0,
        }
    }

    /// The worker with this number in its line.
    fn start(&self, epoch: u32) -> Worker {
        self.arena.enter();
        let mut keyspace = Keyspace::attach().unwrap_or_else(|_| Keyspace::create(16, 1));
        let journal = Journal::open(self.journal.try_clone().unwrap(), FINGERPRINT).unwrap();
        let mut predecessor = Predecessor::read(&journal, 0);
        journal.end_write();
        let bracket = Rc::new(Bracket::new(journal));
        keyspace.set_hook(Box::new(BracketHook(Rc::clone(&bracket))));
        let settings = Settings::default();
        let engine = Engine::new(keyspace, EngineSettings::new(&settings), 1, 1);
        let party = Party::open(self.party.try_clone().unwrap(), FINGERPRINT).unwrap();
        let mut core = Core::new(engine, bracket, party, MemoryLimit::new(&settings), 1);
        core.tick();
        let mut links = Links::default();
        for (position, gateway) in self.gateways.iter().enumerate() {
            let id = u32::try_from(position).unwrap();
            let own = predecessor.take_if(|it| it.line.link == id);
            let resume = own.map(|it| (it.line.request_position, it.line.reply_position));
            let rings = gateway.segment.try_clone().unwrap().responder(resume);
            let page = gateway.party.fd().try_clone_to_owned().unwrap();
            let peer = Peer {
                party: Party::open(page, FINGERPRINT).unwrap(),
                bell: Bell::Futex,
                position: 0,
            };
            let side = gateway.segment.side_consumer().unwrap();
            let mut link = Link::new(id, 1, rings.unwrap(), side, peer);
            if let Some(own) = own {
                link.take_over(&own.line, own.doubt, own.served);
            }
            link.settle();
            if epoch > 1 {
                link.begin_to_resume(epoch);
            }
            let served = Served {
                link,
                position,
                is_pending: true,
            };
            links.add(&mut core, served);
        }
        Worker { core, links }
    }

    fn frame(&mut self, connection: u32, words: &[&str]) -> Vec<u8> {
        let Lookup::Found(_, CommandRef::Storage(command)) =
            catalogue::find(words[0].as_bytes(), None)
        else {
            panic!("{words:?}");
        };
        self.sequence += 1;
        let header = RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: if connection >= 100 { flags::RESP3 } else { 0 },
            command: command as u16,
            connection,
            generation: 1,
            sequence: self.sequence,
            slot: slot_of(words[1].as_bytes()),
            database: 0,
            argc: u32::try_from(words.len()).unwrap(),
            part: 0,
        };
        let bytes = words.iter().map(|word| word.len() + 4).sum::<usize>();
        let mut frame = vec![0; 64 + bytes];
        let arguments = words[1..].iter().map(|word| word.as_bytes());
        let len = write_request(&mut frame, header, arguments).unwrap();
        frame.truncate(len);
        frame
    }

    /// Puts a command into the ring of gateway `number`.
    fn send(&mut self, number: usize, connection: u32, text: &str) -> u32 {
        let words: Vec<&str> = text.split(' ').collect();
        let frame = self.frame(connection, &words);
        let gateway = &mut self.gateways[number];
        let largest = gateway.requests.largest();
        if frame.len() > largest {
            let pieces = pieces(&frame, RequestKind::RequestPart, largest - 64);
            pieces.iter().for_each(|piece| gateway.put(piece));
        } else {
            gateway.put(&frame);
        }
        gateway.frames.insert(connection, frame);
        self.sequence
    }

    /// A frame without arguments about the last command of a connection.
    fn tell(&mut self, number: usize, connection: u32, kind: RequestKind, part: u32) {
        let gateway = &mut self.gateways[number];
        let frame = &gateway.frames[&connection];
        let header = RequestHeader {
            len: 32,
            kind,
            part,
            argc: 0,
            ..RequestHeader::decode(frame).unwrap()
        };
        let mut frame = [0; REQUEST_HEADER_BYTES];
        header.encode(&mut frame);
        gateway.put(&frame);
    }

    /// Lets the worker work until nothing moves, with gateways that read (or do not).
    fn run(&mut self, worker: &mut Worker, do_read: bool) {
        for _ in 0..2000 {
            worker.core.tick();
            let is_busy = worker.links.serve(&mut worker.core);
            let mut any = false;
            if do_read {
                for gateway in &mut self.gateways {
                    any |= gateway.read();
                }
            }
            if !is_busy && !any && !worker.links.have_work() {
                return;
            }
        }
    }

    /// What a successor and its gateways do before ordinary requests are served.
    fn resume(&mut self, worker: &mut Worker) {
        let count = self.gateways.len();
        let mut sent = vec![None; count];
        for _ in 0..10_000 {
            worker.links.resume(&mut worker.core);
            if worker.links.told() == count {
                worker.links.open(&mut worker.core);
                return;
            }
            for (gateway, queue) in self.gateways.iter_mut().zip(&mut sent) {
                gateway.read();
                if let Some(epoch) = gateway.asked.take() {
                    *queue = Some(gateway.everybody(epoch));
                }
                gateway.send_aside(queue);
            }
        }
        panic!("nobody tells who waits");
    }

    /// All that came for a connection, and forgets it.
    fn got(&mut self, number: usize, connection: u32) -> Vec<String> {
        let received = std::mem::take(&mut self.gateways[number].received);
        let (mine, others) = received.into_iter().partition(|it| it.0 == connection);
        self.gateways[number].received = others;
        mine.into_iter().map(|it| it.2).collect()
    }

    fn ask(&mut self, worker: &mut Worker, text: &str) -> String {
        self.send(0, 99, text);
        self.run(worker, true);
        self.got(0, 99).concat()
    }
}

/// A frame in pieces of at most `size` bytes.
fn pieces(frame: &[u8], kind: RequestKind, size: usize) -> Vec<Vec<u8>> {
    let header = RequestHeader::decode(frame).unwrap();
    pieces_of(&header, frame, kind, size)
}

fn pieces_of(header: &RequestHeader, bytes: &[u8], kind: RequestKind, size: usize) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for (number, piece) in bytes.chunks(size).enumerate() {
        let part = RequestHeader {
            len: u32::try_from(REQUEST_HEADER_BYTES + piece.len()).unwrap(),
            kind,
            argc: u32::try_from(bytes.len()).unwrap(),
            part: u32::try_from(number * size).unwrap(),
            ..*header
        };
        let mut frame = vec![0; REQUEST_HEADER_BYTES];
        part.encode(frame.first_chunk_mut().unwrap());
        frame.extend_from_slice(piece);
        pieces.push(frame);
    }
    pieces
}

impl Gateway {
    fn put(&mut self, frame: &[u8]) {
        let len = padded(frame.len());
        let place = self.requests.reserve(len).expect("room for a request");
        place[..frame.len()].copy_from_slice(frame);
        place[frame.len()..].fill(0);
        self.requests.commit(len);
        self.requests.publish();
    }

    /// Takes what is there; true if there was something.
    fn read(&mut self) -> bool {
        let any = self.replies.refresh().unwrap() > 0;
        loop {
            let bytes = self.replies.readable();
            if bytes.is_empty() {
                break;
            }
            let header = ReplyHeader::decode(bytes).unwrap();
            let body = bytes[REPLY_HEADER_BYTES..header.len as usize].to_vec();
            let len = padded(header.len as usize);
            self.replies.consume(len);
            self.take(&header, body);
        }
        self.replies.release();
        any
    }

    fn take(&mut self, header: &ReplyHeader, body: Vec<u8>) {
        let connection = header.connection;
        if header.kind == ReplyKind::Resume {
            self.asked = Some(header.sequence);
            return;
        }
        if header.flags & reply_flags::PARKED != 0 {
            let remembered = Remembered {
                sequence: header.sequence,
                memo: body,
            };
            let before = self.waiting.insert(connection, remembered);
            assert!(before.is_none(), "parked twice");
            return;
        }
        if header.kind != ReplyKind::ReplyPart {
            let is_answer = |it: &Remembered| it.sequence == header.sequence;
            if self.waiting.get(&connection).is_some_and(is_answer) {
                self.waiting.remove(&connection);
            }
        }
        let text = String::from_utf8(body).unwrap();
        self.received.push((connection, header.flags, text));
    }

    /// The frames that tell a successor who waits.
    fn everybody(&self, epoch: u32) -> Vec<Vec<u8>> {
        let mark = |part| {
            let header = RequestHeader {
                len: 32,
                kind: RequestKind::Resume,
                flags: 0,
                command: 0,
                connection: 0,
                generation: 0,
                sequence: epoch,
                slot: 0,
                database: 0,
                argc: 0,
                part,
            };
            let mut frame = vec![0; REQUEST_HEADER_BYTES];
            header.encode(frame.first_chunk_mut().unwrap());
            frame
        };
        let mut frames = vec![mark(0)];
        for (connection, remembered) in self.waiting.iter().rev() {
            let frame = &self.frames[connection];
            let memo_len = u32::try_from(remembered.memo.len()).unwrap().to_le_bytes();
            let whole = [&memo_len, remembered.memo.as_slice(), frame].concat();
            let header = RequestHeader::decode(frame).unwrap();
            let size = self.side.largest() - REQUEST_HEADER_BYTES;
            frames.extend(pieces_of(&header, &whole, RequestKind::Parked, size));
        }
        frames.push(mark(1));
        frames.reverse();
        frames
    }

    fn send_aside(&mut self, queue: &mut Option<Vec<Vec<u8>>>) {
        let Some(queue) = queue else { return };
        while let Some(frame) = queue.last() {
            let Some(place) = self.side.reserve(padded(frame.len())) else {
                break;
            };
            place[..frame.len()].copy_from_slice(frame);
            self.side.commit(padded(frame.len()));
            queue.pop();
        }
        self.side.publish();
    }
}

fn level(worker: &Worker, counter: WorkerCounter) -> u64 {
    worker.core.party.counters().get(counter.place())
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

#[test]
fn those_who_wait_are_served_in_order_and_before_the_next_command() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.send(1, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    assert_eq!(level(&worker, WorkerCounter::Waiters), 2);
    assert_eq!(level(&worker, WorkerCounter::WaitedKeys), 1);
    // One batch: each value is gone before the next command looks.
    hall.send(1, 2, "SET k a");
    hall.send(1, 2, "EXISTS k");
    hall.send(1, 2, "SET k b");
    hall.send(1, 2, "GETDEL k 0");
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), [bulk("a")]);
    assert_eq!(hall.got(1, 1), [bulk("b")]);
    assert_eq!(hall.got(1, 2).concat(), "+OK\r\n:0\r\n+OK\r\n");
    assert_eq!(level(&worker, WorkerCounter::Waiters), 1);
}

#[test]
fn of_several_keys_the_first_that_is_there_wins() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL a b c 0");
    hall.run(&mut worker, true);
    assert_eq!(level(&worker, WorkerCounter::WaitedKeys), 3);
    hall.ask(&mut worker, "SET c 3");
    assert_eq!(hall.got(0, 1), [bulk("3")]);
    assert_eq!(level(&worker, WorkerCounter::WaitedKeys), 0);
    assert_eq!(hall.ask(&mut worker, "SET b 2"), "+OK\r\n");
    hall.send(0, 1, "GETDEL a b c 0");
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), [bulk("2")]);
}

#[test]
fn a_value_that_is_passed_on_wakes_the_next_before_the_pusher_goes_on() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "RENAMENX a b 0");
    hall.send(0, 2, "RENAMENX b c 0");
    hall.send(0, 3, "GETDEL c 0");
    hall.run(&mut worker, true);
    hall.send(1, 1, "SET a v");
    hall.send(1, 1, "EXISTS a b c");
    hall.run(&mut worker, true);
    for connection in 1..=3 {
        assert_eq!(hall.got(0, connection), [bulk("v")], "{connection}");
    }
    assert_eq!(hall.got(1, 1).concat(), "+OK\r\n:0\r\n");
}

#[test]
fn time_outs_come_in_time_and_as_nulls() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 30");
    hall.send(0, 100, "GETDEL k 10");
    hall.send(1, 1, "GETDEL k 10000");
    hall.run(&mut worker, true);
    assert_eq!(level(&worker, WorkerCounter::WaitersTimed), 3);
    std::thread::sleep(Duration::from_millis(15));
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 100), ["_\r\n"]);
    assert_eq!(hall.got(0, 1), [""; 0]);
    std::thread::sleep(Duration::from_millis(20));
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), ["*-1\r\n"]);
    assert_eq!(level(&worker, WorkerCounter::Waiters), 1);
}

#[test]
fn who_is_gone_gets_nothing() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 0");
    hall.send(0, 2, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.tell(0, 1, RequestKind::Cancel, 0);
    hall.ask(&mut worker, "SET k v");
    assert_eq!(hall.got(0, 2), [bulk("v")]);
    hall.send(1, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    worker.links.remove(&mut worker.core, 1);
    assert_eq!(hall.ask(&mut worker, "SET k v"), "+OK\r\n");
    assert_eq!(hall.ask(&mut worker, "EXISTS k"), ":1\r\n");
}

#[test]
fn an_unblocked_client_is_told_and_its_gateway_knows_why() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    for (connection, part) in [(1, 0), (2, 1)] {
        hall.send(0, connection, "GETDEL k 0");
        hall.run(&mut worker, true);
        hall.tell(0, connection, RequestKind::Unblock, part);
        hall.run(&mut worker, true);
    }
    let error = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";
    let want = [
        (1, reply_flags::UNBLOCKED, "*-1\r\n".to_owned()),
        (2, reply_flags::UNBLOCKED, error.to_owned()),
    ];
    assert_eq!(hall.gateways[0].received, want);
    // Somebody who was faster.
    hall.send(0, 3, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.send(1, 1, "SET k v");
    hall.run(&mut worker, true);
    hall.tell(0, 3, RequestKind::Unblock, 0);
    hall.run(&mut worker, true);
    assert_eq!(hall.gateways[0].received[2..], [(3, 0, bulk("v"))]);
}

/// A link without room for replies is served when there is some, and nobody behind it before it.
#[test]
fn a_full_ring_only_delays() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.ask(&mut worker, &format!("SET big {}", "x".repeat(900)));
    hall.send(1, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.send(0, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    for _ in 0..80 {
        hall.send(1, 2, "GET big");
    }
    hall.run(&mut worker, false);
    // Gateway 1 does not read, gateway 0 does.
    hall.send(0, 2, "SET k a");
    hall.run(&mut worker, false);
    hall.gateways[0].read();
    assert_eq!(hall.got(0, 2), ["+OK\r\n"]);
    assert_eq!(hall.got(0, 1), [""; 0], "it is not its turn");
    assert_eq!(level(&worker, WorkerCounter::Waiters), 2);
    hall.run(&mut worker, true);
    assert_eq!(hall.got(1, 1), [bulk("a")]);
    assert_eq!(hall.got(1, 2).concat().matches("xxx\r\n").count(), 80);
    hall.ask(&mut worker, "SET k b");
    assert_eq!(hall.got(0, 1), [bulk("b")]);
}

#[test]
fn a_hundred_who_wait_do_not_notice_a_new_worker() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    let long = "l".repeat(5000);
    for client in 1..=50 {
        hall.send(0, client, &format!("GETDEL k {long} 0"));
        hall.run(&mut worker, true);
        hall.send(1, client, &format!("GETDEL k {long} 0"));
        hall.run(&mut worker, true);
    }
    for epoch in 2..4 {
        drop(worker);
        worker = hall.start(epoch);
        // What stands in the ring already must not overtake.
        hall.send(0, 99, "GETDEL k 0");
        hall.resume(&mut worker);
        assert_eq!(level(&worker, WorkerCounter::Waiters), 100);
        hall.run(&mut worker, true);
        hall.tell(0, 99, RequestKind::Cancel, 0);
        hall.run(&mut worker, true);
        hall.gateways[0].waiting.remove(&99);
    }
    for client in 1..=50 {
        for gateway in 0..2 {
            hall.ask(&mut worker, &format!("SET k {client}"));
            assert_eq!(hall.got(gateway, client), [bulk(&client.to_string())]);
        }
    }
    assert_eq!(level(&worker, WorkerCounter::Waiters), 0);
}

#[test]
fn deadlines_survive_a_death() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 40");
    hall.run(&mut worker, true);
    std::thread::sleep(Duration::from_millis(30));
    drop(worker);
    let mut worker = hall.start(2);
    hall.resume(&mut worker);
    std::thread::sleep(Duration::from_millis(15));
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), ["*-1\r\n"]);
}

/// Dead after the pusher's reply was published and before anybody was served.
#[test]
fn what_was_pushed_before_a_death_is_served_after_it() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 0");
    hall.send(1, 1, "RENAMENX k other 0");
    hall.run(&mut worker, true);
    hall.send(1, 2, "SET k v");
    worker.core.engine.effects.waking.has_waiters = false; // it is not told
    hall.run(&mut worker, true);
    assert_eq!(hall.got(1, 2), ["+OK\r\n"]);
    drop(worker);
    let mut worker = hall.start(2);
    hall.resume(&mut worker);
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), [bulk("v")]);
    assert_eq!(hall.gateways[1].waiting.len(), 1);
}

/// Dead between the end of the bracket and the commit line, then dead again at once.
#[test]
fn a_pop_whose_reply_was_lost_is_said_to_be_uncertain() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(1, 1, "GETDEL k 0");
    hall.send(1, 2, "GETDEL k 0");
    hall.run(&mut worker, true);
    let ticket = worker.core.waiters.of_client(1, 1).unwrap().ticket;
    // As `serve_parked` begins it.
    let place = super::core::Place {
        link: 1,
        generation: 1,
        request_position: 0,
    };
    let reply = worker.links.reply_position(1);
    worker.core.begin_serving(ticket, place, reply);
    worker.core.bracket.begin(0, 0);
    worker.core.bracket.end();
    drop(worker);
    for epoch in 2..4 {
        let mut worker = hall.start(epoch);
        if epoch == 2 {
            worker.links.resume(&mut worker.core);
            continue;
        }
        hall.resume(&mut worker);
        hall.run(&mut worker, true);
        assert_eq!(hall.got(1, 1), [UNKNOWN]);
        assert_eq!(hall.gateways[1].waiting.keys().collect::<Vec<_>>(), [&2]);
        drop(worker);
        // It is told once.
        let mut worker = hall.start(epoch + 1);
        hall.resume(&mut worker);
        hall.ask(&mut worker, "SET k v");
        assert_eq!(hall.got(1, 2), [bulk("v")]);
        assert_eq!(hall.got(1, 1), [""; 0]);
    }
}

#[test]
fn a_large_pop_that_was_half_sent_is_said_to_be_uncertain_and_a_whole_one_is_whole() {
    for dies in [true, false] {
        let mut hall = Hall::new();
        let mut worker = hall.start(1);
        hall.send(1, 1, "GETDEL k 0");
        hall.run(&mut worker, true);
        let value = "v".repeat(200_000);
        let words = ["SET", "k", &value];
        let frame = hall.frame(99, &words);
        let largest = hall.gateways[0].requests.largest() - 64;
        for piece in pieces(&frame, RequestKind::RequestPart, largest) {
            hall.gateways[0].put(&piece);
            hall.run(&mut worker, false);
        }
        assert_eq!(level(&worker, WorkerCounter::Waiters), 0);
        if dies {
            drop(worker);
            let mut worker = hall.start(2);
            hall.resume(&mut worker);
            hall.run(&mut worker, true);
            assert_eq!(hall.got(1, 1).pop().unwrap(), UNKNOWN);
        } else {
            hall.run(&mut worker, true);
            assert_eq!(hall.got(1, 1).concat(), bulk(&value));
            assert!(hall.gateways[1].waiting.is_empty());
            // The note is forgotten.
            hall.send(1, 1, "GETDEL k 0");
            hall.run(&mut worker, true);
            drop(worker);
            let mut worker = hall.start(2);
            hall.resume(&mut worker);
            hall.ask(&mut worker, "SET k w");
            assert_eq!(hall.got(1, 1), [bulk("w")]);
        }
    }
}
