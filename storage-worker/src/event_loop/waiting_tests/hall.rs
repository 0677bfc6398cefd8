//! A worker without a process, the gateway threads at the other ends of its links, and stand-ins for
//! commands that wait: over strings, so that nothing of the list type is needed.
//!
//! ```text
//!   SET key value            adds the key, and signals it
//!   GETDEL key ... millis    takes the value of the first key that there is, or waits (0: for ever)
//!   RENAMENX from to millis  moves a value, and signals `to`; or waits for `from`
//! ```

use super::super::bracket::{Bracket, BracketHook};
use super::super::core::Core;
use super::super::link::{Link, Peer};
use super::super::links::{Links, Served};
use super::super::start::Predecessor;
use crate::blocking::TimeoutReply;
use crate::commands::stand_ins;
use crate::context::{CommandResult, Context};
use crate::engine::Engine;
use crate::keyspace::{self, Access, Expiry, Keyspace, StringRef, StringValue, ValueKind};
use crate::settings::{EngineSettings, MemoryLimit};
use proto::catalogue::{self, CommandRef, Lookup, StorageCommand};
use proto::counters::worker_page;
use proto::frame::{
    Args, REQUEST_HEADER_BYTES, ReplyFrames, ReplyHeader, ReplyKind, RequestHeader, RequestKind,
    flags, padded, reply_flags, write_request,
};
use proto::settings::Settings;
use proto::slot::slot_of;
use shm::arena::Mapping;
use shm::{Bell, Journal, LOG_BYTES_DEFAULT, LinkSegment, Party, RingConsumer, RingProducer};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;

const FINGERPRINT: u64 = 99;
const RING_BYTES: usize = 64 * 1024;
pub(super) const UNKNOWN: &str =
    "-ERR storage worker died inside this command, outcome unknown\r\n";

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
pub(super) struct Remembered {
    sequence: u32,
    memo: Vec<u8>,
}

/// A gateway thread at its end of a link.
pub(super) struct Gateway {
    segment: LinkSegment,
    party: Party,
    pub(super) requests: RingProducer,
    replies: RingConsumer,
    side: RingProducer,
    /// Frames by connection, of its last command.
    frames: BTreeMap<u32, Vec<u8>>,
    /// By connection.
    pub(super) waiting: BTreeMap<u32, Remembered>,
    /// What came: connection, flags, bytes.
    pub(super) received: Vec<(u32, u8, String)>,
    /// It is asked to resume, under this number.
    asked: Option<u32>,
}

/// Everything that outlives a worker.
pub(super) struct Hall {
    journal: OwnedFd,
    party: OwnedFd,
    arena: Mapping,
    pub(super) gateways: Vec<Gateway>,
    sequence: u32,
}

pub(super) struct Worker {
    pub(super) core: Core,
    pub(super) links: Links,
}

impl Hall {
    pub(super) fn new() -> Self {
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
    pub(super) fn start(&self, epoch: u32) -> Worker {
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
                generation: 1,
                is_pending: true,
            };
            links.add(&mut core, served);
        }
        Worker { core, links }
    }

    pub(super) fn frame(&mut self, connection: u32, words: &[&str]) -> Vec<u8> {
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
    pub(super) fn send(&mut self, number: usize, connection: u32, text: &str) -> u32 {
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
    pub(super) fn tell(&mut self, number: usize, connection: u32, kind: RequestKind, part: u32) {
        let gateway = &mut self.gateways[number];
        let frame = about(&gateway.frames[&connection], kind, part);
        gateway.put(&frame);
    }

    /// Lets the worker work until nothing moves, with gateways that read (or do not).
    pub(super) fn run(&mut self, worker: &mut Worker, do_read: bool) {
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
    pub(super) fn resume(&mut self, worker: &mut Worker) {
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
    pub(super) fn got(&mut self, number: usize, connection: u32) -> Vec<String> {
        let received = std::mem::take(&mut self.gateways[number].received);
        let (mine, others) = received.into_iter().partition(|it| it.0 == connection);
        self.gateways[number].received = others;
        mine.into_iter().map(|it| it.2).collect()
    }

    pub(super) fn ask(&mut self, worker: &mut Worker, text: &str) -> String {
        self.send(0, 99, text);
        self.run(worker, true);
        self.got(0, 99).concat()
    }
}

/// A frame without arguments about a request.
fn about(frame: &[u8], kind: RequestKind, part: u32) -> Vec<u8> {
    let header = RequestHeader {
        len: 32,
        kind,
        part,
        argc: 0,
        ..RequestHeader::decode(frame).unwrap()
    };
    let mut frame = vec![0; REQUEST_HEADER_BYTES];
    header.encode(frame.first_chunk_mut().unwrap());
    frame
}

/// A frame in pieces of at most `size` bytes.
pub(super) fn pieces(frame: &[u8], kind: RequestKind, size: usize) -> Vec<Vec<u8>> {
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
    pub(super) fn put(&mut self, frame: &[u8]) {
        let len = padded(frame.len());
        let place = self.requests.reserve(len).expect("room for a request");
        place[..frame.len()].copy_from_slice(frame);
        place[frame.len()..].fill(0);
        self.requests.commit(len);
        self.requests.publish();
    }

    /// Takes what is there; true if there was something.
    pub(super) fn read(&mut self) -> bool {
        let any = self.replies.refresh().unwrap() > 0;
        let mut frames = ReplyFrames::new(self.replies.readable());
        let mut found = Vec::new();
        while let Some(frame) = frames.next_frame().unwrap() {
            found.push((frame.header, frame.run.body.to_vec()));
        }
        let read = frames.position();
        self.replies.consume(read);
        self.replies.release();
        for (header, body) in found {
            self.take(&header, body);
        }
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
            let header = RequestHeader::resume(epoch, part);
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
