//! A gateway thread's core, its lanes, and model workers at the other ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proto::catalogue::StorageCommand as S;
use proto::counters::gateway_page;
use proto::frame::{
    Args, MORE_HEADER_BYTES, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, ReplyHeader, ReplyKind,
    RequestHeader, RequestKind, begin_more, complete_reply, flags, lock_answer, padded,
};
use proto::registry::{Registry, even_slot_map};
use proto::resp::ReplyWriter;
use proto::settings::Settings;
use shm::{Bell, LinkSegment, Party, RingConsumer, RingProducer};

use crate::connection::Origin;
use crate::core::{Core, Now};
use crate::lanes::LaneParts;
use crate::live::Live;
use crate::mail::Letter;
use crate::shared::{Mailbox, Shared};
use crate::tally::Tally;

const FINGERPRINT: u64 = 0x5eed;

/// Numbers by lot, the same for the same seed.
pub(super) struct Lot(pub(super) u64);

impl Lot {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound.max(1) as u64).unwrap()
    }
}

type Values = BTreeMap<Vec<u8>, Vec<u8>>;

/// A model of a storage worker: enough commands to tell right from wrong.
pub(super) struct ModelWorker {
    requests: RingConsumer,
    replies: RingProducer,
    gateway: Arc<Party>,
    position: usize,
    values: HashMap<u16, Values>,
    assembly: HashMap<(u32, u32), Vec<u8>>,
    /// Reply frames that wait for room.
    waiting: Vec<Vec<u8>>,
    /// Connection, generation and next number of the last frame, if it is not published yet.
    last: Option<(u32, u32, u32)>,
    spans: Vec<(u32, u32)>,
    /// Requests that were called back.
    pub(super) returned: usize,
    side: RingConsumer,
    /// What is prepared: the one that has all locks first, then those that queue.
    prepared: Vec<Vec<u8>>,
}

impl ModelWorker {
    /// Takes up to `most` requests; true if there was one, or something to send.
    pub(super) fn work(&mut self, most: usize) -> bool {
        let flushed = self.flush();
        if !self.waiting.is_empty() {
            self.publish();
            return flushed;
        }
        let controlled = self.control();
        if !self.prepared.is_empty() || !self.waiting.is_empty() {
            self.publish();
            return flushed || controlled;
        }
        let readable = self.requests.refresh().unwrap();
        let bytes = self.requests.readable().to_vec();
        assert_eq!(readable, bytes.len());
        let mut at = 0;
        let mut done = 0;
        while at < bytes.len() && done < most && self.waiting.is_empty() {
            let header = RequestHeader::decode(&bytes[at..]).unwrap();
            let body = &bytes[at + REQUEST_HEADER_BYTES..at + header.len as usize];
            match header.kind {
                RequestKind::Request => self.execute(&header, body),
                RequestKind::RequestPart => self.assemble(&header, body),
                RequestKind::Recalled => {
                    self.waiting.push(frame(ReplyKind::Returned, &header, b""));
                    self.flush();
                    self.last = None;
                    self.returned += 1;
                }
                RequestKind::Cancel | RequestKind::Unblock => {}
                RequestKind::Resume
                | RequestKind::Prepare
                | RequestKind::Go
                | RequestKind::Abort
                | RequestKind::Parked
                | RequestKind::Ping => {}
            }
            at += padded(header.len as usize);
            done += 1;
        }
        self.requests.consume(at);
        self.publish();
        self.requests.release();
        done > 0 || flushed || controlled
    }

    /// Hears about what is executed with others. All locks are one; true if there was something.
    fn control(&mut self) -> bool {
        let mut any = false;
        while let Some((header, frame)) = self.next_control() {
            any = true;
            let is_its = |frame: &Vec<u8>| {
                let other = RequestHeader::decode(frame).unwrap();
                (other.connection, other.generation) == (header.connection, header.generation)
            };
            match header.kind {
                RequestKind::Prepare if self.prepared.is_empty() => {
                    self.answer_lock(&frame, lock_answer::LOCKED);
                    self.prepared.push(frame);
                }
                RequestKind::Prepare => {
                    let request = RequestHeader::decode(&frame).unwrap();
                    if request.flags & flags::IN_TURN == 0 {
                        self.answer_lock(&frame, lock_answer::REFUSED);
                    } else {
                        self.prepared.push(frame);
                    }
                }
                kind => {
                    let at = self.prepared.iter().position(is_its);
                    let Some(at) = at else { continue };
                    let frame = self.prepared.remove(at);
                    if kind == RequestKind::Go {
                        assert_eq!(at, 0, "it has no locks");
                        let request = RequestHeader::decode(&frame).unwrap();
                        self.execute(&request, &frame[REQUEST_HEADER_BYTES..]);
                    }
                    if at == 0
                        && let Some(next) = self.prepared.first().cloned()
                    {
                        self.answer_lock(&next, lock_answer::LOCKED);
                    }
                }
            }
        }
        any
    }

    fn answer_lock(&mut self, prepared: &[u8], answer: u32) {
        let request = RequestHeader::decode(prepared).unwrap();
        let mut frame = frame(ReplyKind::Lock, &request, b"");
        frame[20..24].copy_from_slice(&answer.to_le_bytes());
        self.waiting.push(frame);
        self.flush();
        self.last = None;
    }

    fn next_control(&mut self) -> Option<(RequestHeader, Vec<u8>)> {
        loop {
            if self.side.refresh().unwrap() == 0 {
                return None;
            }
            let bytes = self.side.readable().to_vec();
            let header = RequestHeader::decode(&bytes).unwrap();
            self.side.consume(padded(header.len as usize));
            self.side.release();
            let whole = match header.kind {
                RequestKind::Prepare => {
                    let whose = (header.connection, header.generation);
                    let place = self.assembly.entry(whose).or_default();
                    assert_eq!(place.len(), header.part as usize);
                    place.extend_from_slice(&bytes[REQUEST_HEADER_BYTES..header.len as usize]);
                    if place.len() < header.argc as usize {
                        continue;
                    }
                    self.assembly.remove(&whose).unwrap()
                }
                RequestKind::Go | RequestKind::Abort => Vec::new(),
                _ => continue,
            };
            return Some((header, whole));
        }
    }

    /// Locks what is prepared, and leaves the answer to the test; `None` if nothing is.
    pub(super) fn lock_prepared(&mut self) -> Option<RequestHeader> {
        let (_, frame) = self.next_control()?;
        self.answer_lock(&frame, lock_answer::LOCKED);
        self.publish();
        RequestHeader::decode(&frame).ok()
    }

    /// Hears that it may go.
    pub(super) fn take_go(&mut self) {
        let (header, _) = self.next_control().unwrap();
        assert_eq!(header.kind, RequestKind::Go);
    }

    fn publish(&mut self) {
        self.replies.publish();
        self.last = None;
        self.gateway.news().announce(self.position);
    }

    /// Writes the reply behind the last frame, if it is of the same connection. False if it must have
    /// a whole header.
    fn answer_more(&mut self, header: &RequestHeader, reply: &[u8]) -> bool {
        let whose = (header.connection, header.generation);
        let gap = match self.last {
            Some((connection, generation, next)) if whose == (connection, generation) => {
                u8::try_from(header.sequence.wrapping_sub(next))
            }
            _ => return false,
        };
        let (Ok(gap), true) = (gap, reply.len() < 1000 && header.part == 0) else {
            return false;
        };
        let len = MORE_HEADER_BYTES + reply.len();
        let Some(place) = self.replies.reserve(padded(len)) else {
            return false;
        };
        begin_more(place.first_chunk_mut().unwrap(), gap);
        place[MORE_HEADER_BYTES..len].copy_from_slice(reply);
        complete_reply(&mut place[..len], 1);
        self.replies.commit(padded(len));
        self.last = Some((whose.0, whose.1, header.sequence.wrapping_add(1)));
        true
    }

    fn assemble(&mut self, header: &RequestHeader, body: &[u8]) {
        let place = self
            .assembly
            .entry((header.connection, header.generation))
            .or_default();
        assert_eq!(place.len(), header.part as usize);
        place.extend_from_slice(body);
        if place.len() == header.argc as usize {
            let frame = self
                .assembly
                .remove(&(header.connection, header.generation))
                .unwrap();
            let whole = RequestHeader::decode(&frame).unwrap();
            self.execute(&whole, &frame[REQUEST_HEADER_BYTES..whole.len as usize]);
        }
    }

    fn execute(&mut self, header: &RequestHeader, body: &[u8]) {
        let mut spans = std::mem::take(&mut self.spans);
        let args = Args::new(body, header.argc, &mut spans).unwrap();
        let values = self.values.entry(header.database).or_default();
        let mut reply = Vec::new();
        let resp3 = header.flags & flags::RESP3 != 0;
        let command = S::from_u16(header.command).unwrap();
        run(
            command,
            args,
            values,
            &mut ReplyWriter::to_vec(&mut reply, resp3),
        );
        self.spans = spans;
        if header.flags & flags::DISCARD == 0 {
            self.answer(header, &reply);
        }
    }

    /// Takes the next request and leaves the answer to the test.
    pub(super) fn take_request(&mut self) -> RequestHeader {
        self.requests.refresh().unwrap();
        let header = RequestHeader::decode(self.requests.readable()).unwrap();
        self.requests.consume(padded(header.len as usize));
        self.requests.release();
        header
    }

    /// Sends one frame of replies about a request.
    pub(super) fn send(&mut self, kind: ReplyKind, request: &RequestHeader, bytes: &[u8]) {
        self.waiting.push(frame(kind, request, bytes));
        self.flush();
        self.publish();
        assert!(self.waiting.is_empty(), "no room");
    }

    /// Sends bytes that may be no frame.
    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        self.waiting.push(bytes.to_vec());
        self.flush();
        self.publish();
    }

    /// Is a successor from now on, and asks who waits.
    pub(super) fn succeed(&mut self, epoch: u32) {
        let nobody = RequestHeader::resume(epoch, 0);
        self.send(ReplyKind::Resume, &nobody, b"");
    }

    fn answer(&mut self, header: &RequestHeader, reply: &[u8]) {
        if self.answer_more(header, reply) {
            return;
        }
        let largest = self.replies.largest() - REPLY_HEADER_BYTES;
        let pieces = reply.len().div_ceil(largest).max(1);
        for (number, piece) in reply.chunks(largest).enumerate() {
            let kind = match (pieces, number + 1 == pieces) {
                (1, _) => ReplyKind::Reply,
                (_, true) => ReplyKind::ReplyEnd,
                (_, false) => ReplyKind::ReplyPart,
            };
            self.waiting.push(frame(kind, header, piece));
        }
        self.flush();
        let is_last = pieces == 1 && header.part == 0 && self.waiting.is_empty();
        let next = header.sequence.wrapping_add(1);
        self.last = is_last.then_some((header.connection, header.generation, next));
    }

    fn flush(&mut self) -> bool {
        let mut sent = 0;
        for frame in &self.waiting {
            let Some(place) = self.replies.reserve(frame.len()) else {
                break;
            };
            place.copy_from_slice(frame);
            self.replies.commit(frame.len());
            sent += 1;
        }
        self.waiting.drain(..sent);
        sent > 0
    }
}

/// A frame of one reply, or a piece of it.
fn frame(kind: ReplyKind, request: &RequestHeader, bytes: &[u8]) -> Vec<u8> {
    let len = REPLY_HEADER_BYTES + bytes.len();
    let mut frame = vec![0; padded(len)];
    let head = ReplyHeader {
        len: u32::try_from(len).unwrap(),
        kind,
        flags: 0,
        part: u16::try_from(request.part).unwrap(),
        connection: request.connection,
        generation: request.generation,
        sequence: request.sequence,
        count: 1,
    };
    head.encode(frame.first_chunk_mut().unwrap());
    frame[REPLY_HEADER_BYTES..len].copy_from_slice(bytes);
    frame
}

/// One command on a model keyspace. Also used as the oracle.
pub(super) fn run(command: S, args: Args<'_>, values: &mut Values, reply: &mut ReplyWriter<'_>) {
    let key = args.get(1).to_vec();
    match command {
        S::Get => match values.get(&key) {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        },
        S::Set => {
            values.insert(key, args.get(2).to_vec());
            reply.ok();
        }
        S::Append => {
            let value = values.entry(key).or_default();
            value.extend_from_slice(args.get(2));
            reply.count(value.len());
        }
        S::MGet => {
            reply.array(args.len() - 1);
            for key in args.iter_from(1) {
                match values.get(key) {
                    Some(value) => reply.bulk(value),
                    None => reply.null(),
                }
            }
        }
        S::MSet => {
            let words: Vec<&[u8]> = args.iter_from(1).collect();
            for pair in words.chunks(2) {
                values.insert(pair[0].to_vec(), pair[1].to_vec());
            }
            reply.ok();
        }
        S::MSetNx => {
            let words: Vec<&[u8]> = args.iter_from(1).collect();
            if words.chunks(2).any(|pair| values.contains_key(pair[0])) {
                return reply.int(0);
            }
            for pair in words.chunks(2) {
                values.insert(pair[0].to_vec(), pair[1].to_vec());
            }
            reply.int(1);
        }
        S::Del | S::Exists => {
            let found = args.iter_from(1).filter(|&key| match command {
                S::Del => values.remove(key).is_some(),
                _ => values.contains_key(key),
            });
            reply.count(found.count());
        }
        S::DbSize => reply.count(values.len()),
        S::Rename => match values.remove(&key) {
            Some(value) => {
                values.insert(args.get(2).to_vec(), value);
                reply.ok();
            }
            None => reply.error(&proto::CommandError::NoSuchKey),
        },
        S::Export => match values.get(&key) {
            Some(value) => {
                reply.array(2);
                reply.bulk(value);
                reply.int(-1);
            }
            None => reply.null(),
        },
        S::Import => {
            if args.get(4) == b"0" && values.contains_key(&key) {
                return reply.int(0);
            }
            values.insert(key, args.get(2).to_vec());
            reply.int(1);
        }
        other => panic!("the model has no {other:?}"),
    }
}

/// A link to a model of worker number `worker`.
fn link_to(worker: usize, ring_bytes: usize, party: &Arc<Party>) -> (LaneParts, ModelWorker) {
    let link = LinkSegment::create("link", ring_bytes, FINGERPRINT).unwrap();
    let (requests, replies) = link.try_clone().unwrap().requester().unwrap();
    let side = link.side_producer().unwrap();
    let their_side = link.side_consumer().unwrap();
    let (their_requests, their_replies) = link.responder(None).unwrap();
    let parts = LaneParts {
        requests,
        replies,
        side,
        worker: Party::create("worker", 2, 0, 64, FINGERPRINT).unwrap(),
        bell: Bell::Futex,
        their_position: 0,
        our_position: worker,
        link: u32::try_from(worker).unwrap(),
        generation: 1,
    };
    let model = ModelWorker {
        requests: their_requests,
        replies: their_replies,
        gateway: Arc::clone(party),
        position: worker,
        values: HashMap::new(),
        assembly: HashMap::new(),
        waiting: Vec::new(),
        last: None,
        spans: Vec::new(),
        returned: 0,
        side: their_side,
        prepared: Vec::new(),
    };
    (parts, model)
}

/// A core with its lanes and workers.
pub(super) struct World {
    pub(super) core: Core,
    pub(super) party: Arc<Party>,
    pub(super) workers: Vec<ModelWorker>,
    /// What each client's socket has taken, by place.
    pub(super) received: HashMap<u32, Vec<u8>>,
    /// Places whose sockets were closed.
    pub(super) closed: Vec<u32>,
}

impl World {
    pub(super) fn new(workers: usize, ring_bytes: usize, changes: &[(&str, &str)]) -> Self {
        let mut settings = Settings::default();
        for (name, value) in changes {
            let row = proto::settings::find(name).unwrap();
            settings.set_text(row.setting, value).unwrap();
        }
        let party =
            Arc::new(Party::create("gateway", 1, 0, gateway_page::LEN, FINGERPRINT).unwrap());
        let registry = Arc::new(Registry {
            settings: Vec::new(),
            hash_seed: 1,
            slot_map: even_slot_map(u32::try_from(workers).unwrap()),
            run_id: "0".repeat(40),
            started_unix_ms: 0,
            gateway_threads: 1,
            storage_workers: u32::try_from(workers).unwrap(),
            executable: String::new(),
            config_file: String::new(),
            supervisor_pid: 0,
            scripts: Vec::new(),
            script_flushes: 0,
            libraries: Vec::new(),
        });
        let bell = Bell::EventFd(shm::eventfd().unwrap());
        let mailbox = Mailbox::new(Arc::clone(&party), bell);
        let shared = Arc::new(Shared::new(
            vec![mailbox],
            None,
            Arc::clone(&registry),
            Vec::new(),
        ));
        let live = Arc::new(Live::new(Arc::new(settings)));
        let mut core = Core::new(0, live, shared, Tally::new(Arc::clone(&party)));
        core.lanes.set_owners(&registry.slot_map);
        core.now = Now {
            millis: 5000,
            unix_micros: 1_700_000_000_000_000,
        };
        let mut models = Vec::new();
        for worker in 0..workers {
            let (parts, model) = link_to(worker, ring_bytes, &party);
            core.lanes.attach(worker, parts);
            models.push(model);
        }
        Self {
            core,
            party,
            workers: models,
            received: HashMap::new(),
            closed: Vec::new(),
        }
    }

    /// Worker number `worker`, without its values, comes with a new link.
    pub(super) fn attach_again(&mut self, worker: usize) {
        let (parts, model) = link_to(worker, 1 << 16, &self.party);
        self.workers[worker] = model;
        let parts = Box::new(parts);
        self.core.letter(Letter::Attach { worker, parts });
    }

    pub(super) fn open(&mut self) -> u32 {
        let address = "127.0.0.1:1234".parse().unwrap();
        let index = self.core.open(Origin::Tcp(address, address), 3);
        self.received.insert(index, Vec::new());
        index
    }

    /// What the driver does in a turn, without sockets; `taken` bounds what a socket takes at once.
    pub(super) fn turn(&mut self, taken: usize) {
        self.core.collect_replies(&self.party, false);
        self.core.run_resumed();
        self.core.serve_lanes();
        self.core.lanes.flush();
        let mut dirty = std::mem::take(&mut self.core.dirty);
        for index in dirty.drain(..) {
            let Some(connection) = self.core.get_mut(index) else {
                continue;
            };
            connection.facts.dirty = false;
            let unsent = connection.replies.unsent();
            if unsent.is_empty() {
                self.core.close_if_done(index);
                continue;
            }
            let portion = unsent[..unsent.len().min(taken)].to_vec();
            self.received
                .entry(index)
                .or_default()
                .extend_from_slice(&portion);
            self.core.sent(index, portion.len());
        }
        while let Some(who) = self.core.closing.pop() {
            if self.core.find_mut(who).is_some() {
                self.closed.push(who.index);
                self.core.closed(who);
            }
        }
    }

    /// Lets everybody work until nothing moves any more.
    pub(super) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            let mut moved = false;
            for worker in &mut self.workers {
                moved |= worker.work(usize::MAX);
            }
            self.turn(usize::MAX);
            let more = !self.core.dirty.is_empty() || !self.core.runnable.is_empty();
            // What a turn wrote into a ring is seen by the next round.
            quiet = if moved || more || self.party.news().any() {
                0
            } else {
                quiet + 1
            };
            if quiet == 2 {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    /// Sends bytes as one read and waits for everything to settle; returns what came back since.
    pub(super) fn say(&mut self, index: u32, bytes: &[u8]) -> String {
        self.received.entry(index).or_default().clear();
        self.core.input(index, bytes);
        self.settle();
        String::from_utf8_lossy(&self.received[&index]).into_owned()
    }
}

/// A command as a client sends it.
pub(super) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
