//! A gateway thread's core, its lanes, and model workers at the other ends.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use proto::catalogue::StorageCommand as S;
use proto::counters::gateway_page;
use proto::frame::{
    Args, MORE_HEADER_BYTES, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, ReplyHeader, ReplyKind,
    RequestHeader, RequestKind, begin_more, complete_reply, flags, padded,
};
use proto::registry::{Registry, SlotRange, even_slot_map};
use proto::resp::ReplyWriter;
use proto::settings::Settings;
use proto::slot::slot_of;
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

pub(super) type Values = BTreeMap<Vec<u8>, Vec<u8>>;

/// What all workers of a world hold, and who owns what.
pub(super) struct Keyspace {
    slot_map: Vec<SlotRange>,
    pub(super) databases: RefCell<HashMap<u16, Values>>,
}

impl Keyspace {
    fn owner(&self, key: &[u8]) -> usize {
        let slot = slot_of(key);
        let mut ranges = self.slot_map.iter();
        let range = ranges.find(|range| (range.first..=range.last).contains(&slot));
        usize::from(range.unwrap().worker)
    }

    /// Worker number `worker` loses what it has.
    fn forget(&self, worker: usize) {
        for values in self.databases.borrow_mut().values_mut() {
            values.retain(|key, _| self.owner(key) != worker);
        }
    }

    /// What comes over one ring without a word about others must be its worker's alone.
    fn check_owner(&self, worker: usize, command: S, args: Args<'_>) {
        let step = match command {
            S::WatchKeys => return,
            S::DbSize => return assert_eq!(self.slot_map.len(), 1, "there are other workers"),
            S::MSet | S::MSetNx => 2,
            S::MGet | S::Exists | S::Del | S::Unlink | S::Rename => 1,
            _ => args.len(),
        };
        for key in args.iter_from(1).step_by(step) {
            assert_eq!(self.owner(key), worker, "{command:?} of a key elsewhere");
        }
    }
}

/// A model of a storage worker: enough commands to tell right from wrong.
pub(super) struct ModelWorker {
    requests: RingConsumer,
    replies: RingProducer,
    gateway: Arc<Party>,
    position: usize,
    keyspace: Rc<Keyspace>,
    assembly: HashMap<(u32, u32), Vec<u8>>,
    /// Reply frames that wait for room.
    waiting: Vec<Vec<u8>>,
    /// Connection, generation and next number of the last frame, if it is not published yet.
    last: Option<(u32, u32, u32)>,
    spans: Vec<(u32, u32)>,
    /// Requests that were called back.
    pub(super) returned: usize,
    side: RingConsumer,
}

impl ModelWorker {
    /// Takes up to `most` requests; true if there was one, or something to send.
    pub(super) fn work(&mut self, most: usize) -> bool {
        let flushed = self.flush();
        if !self.waiting.is_empty() {
            self.publish();
            return flushed;
        }
        self.side.refresh().unwrap();
        let told = self.side.readable().len();
        self.side.consume(told);
        self.side.release();
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
                RequestKind::Resume | RequestKind::Parked | RequestKind::Ping => {}
            }
            at += padded(header.len as usize);
            done += 1;
        }
        self.requests.consume(at);
        self.publish();
        self.requests.release();
        done > 0 || flushed
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
        let mut reply = Vec::new();
        let resp3 = header.flags & flags::RESP3 != 0;
        let command = S::from_u16(header.command).unwrap();
        if header.flags & flags::CROSSING == 0 {
            self.keyspace.check_owner(self.position, command, args);
        }
        let mut databases = self.keyspace.databases.borrow_mut();
        run(
            command,
            args,
            databases.entry(header.database).or_default(),
            &mut ReplyWriter::to_vec(&mut reply, resp3),
        );
        drop(databases);
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

    /// Takes all requests that are there and leaves the answers to the test.
    pub(super) fn take_requests(&mut self) -> Vec<RequestHeader> {
        let mut requests = Vec::new();
        while self.requests.refresh().unwrap() > 0 {
            requests.push(self.take_request());
        }
        requests
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
        S::Del | S::Unlink | S::Exists => {
            let found = args.iter_from(1).filter(|&key| match command {
                S::Exists => values.contains_key(key),
                _ => values.remove(key).is_some(),
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
        S::WatchKeys => reply.ok(),
        other => panic!("the model has no {other:?}"),
    }
}

/// A link to a model of worker number `worker`.
fn link_to(
    worker: usize,
    ring_bytes: usize,
    party: &Arc<Party>,
    keyspace: &Rc<Keyspace>,
) -> (LaneParts, ModelWorker) {
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
        keyspace: Rc::clone(keyspace),
        assembly: HashMap::new(),
        waiting: Vec::new(),
        last: None,
        spans: Vec::new(),
        returned: 0,
        side: their_side,
    };
    (parts, model)
}

/// A core with its lanes and workers.
pub(super) struct World {
    pub(super) core: Core,
    pub(super) party: Arc<Party>,
    pub(super) workers: Vec<ModelWorker>,
    pub(super) keyspace: Rc<Keyspace>,
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
        let keyspace = Rc::new(Keyspace {
            slot_map: registry.slot_map.clone(),
            databases: RefCell::default(),
        });
        let mut models = Vec::new();
        for worker in 0..workers {
            let (parts, model) = link_to(worker, ring_bytes, &party, &keyspace);
            core.lanes.attach(worker, parts);
            models.push(model);
        }
        Self {
            core,
            party,
            workers: models,
            keyspace,
            received: HashMap::new(),
            closed: Vec::new(),
        }
    }

    /// Worker number `worker`, without its values, comes with a new link.
    pub(super) fn attach_again(&mut self, worker: usize) {
        self.keyspace.forget(worker);
        let (parts, model) = link_to(worker, 1 << 16, &self.party, &self.keyspace);
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
