//! What a command costs in a whole worker: from request ring to reply ring, without a gateway.
//!
//! Run with `cargo bench -p storage-worker --bench worker`. One thread is a real worker
//! (`storage_worker::run`); the other plays supervisor and gateway, keeps its request ring full of
//! batches and drops the replies. Printed is the processor time of the worker's thread per command,
//! from the kernel's accounting, so sleeping does not count. `WORKER_BENCH_KEYS` sets the number
//! of keys (1 million unless set), values have 256 bytes.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark"
)]

#[path = "../tests/support/segments.rs"]
#[allow(dead_code, reason = "a benchmark needs only some of it")]
mod segments;

use proto::catalogue::StorageCommand;
use proto::frame::{RequestHeader, RequestKind, padded, write_request};
use proto::slot::slot_of;
use runtime::{ArenaState, Child};
use segments::{Segments, socket_pair};
use shm::{Bell, RingConsumer, RingProducer};
use std::os::fd::AsFd;
use storage_worker::random::Random;

const RING_BYTES: usize = 1 << 20;
/// Commands of one connection's pipeline, and connections.
const PIPELINE: u32 = 30;
const CONNECTIONS: u32 = 50;

struct Gateway {
    segments: Segments,
    requests: RingProducer,
    replies: RingConsumer,
    random: Random,
    keys: u64,
    sequences: [u32; CONNECTIONS as usize],
    turn: u32,
}

impl Gateway {
    fn key(&mut self, number: u64) -> String {
        format!("key:{number:012}")
    }

    fn put(&mut self, command: StorageCommand, arguments: &[&[u8]]) -> bool {
        let connection = self.turn / PIPELINE % CONNECTIONS;
        let header = RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: 0,
            command: command as u16,
            connection,
            generation: 1,
            sequence: self.sequences[connection as usize],
            slot: slot_of(arguments[0]),
            database: 0,
            argc: arguments.len() as u32 + 1,
            part: 0,
        };
        let len = 32 + arguments.iter().map(|it| it.len() + 4).sum::<usize>();
        let Some(place) = self.requests.reserve(padded(len)) else {
            return false;
        };
        write_request(place, header, arguments.iter().copied()).unwrap();
        place[len..].fill(0);
        self.requests.commit(padded(len));
        self.sequences[connection as usize] += 1;
        self.turn += 1;
        true
    }

    fn flush(&mut self) {
        if self.requests.publish() {
            self.segments.worker.news().announce(0);
            self.segments.worker.doorbell().ring(&Bell::Futex);
        }
        self.replies.refresh().unwrap();
        let len = self.replies.readable().len();
        self.replies.consume(len);
        if self.replies.release() {
            self.segments.worker.news().announce(0);
            self.segments.worker.doorbell().ring(&Bell::Futex);
        }
    }

    /// Sends `count` commands made by `make` and waits until they are done.
    fn run(&mut self, count: u64, mut make: impl FnMut(&mut Self, u64) -> bool) {
        let mut sent = 0;
        while sent < count {
            // A batch as several connections make it between two looks of the worker.
            for _ in 0..300.min(count - sent) {
                if !make(self, sent) {
                    break;
                }
                sent += 1;
            }
            self.flush();
        }
        while !self.requests.is_empty() {
            self.flush();
            std::thread::yield_now();
        }
    }

    fn measure(&mut self, name: &str, make: impl FnMut(&mut Self, u64) -> bool) {
        let count = 2_000_000;
        let before = worker_ns();
        self.run(count, make);
        println!(
            "{name:<24} {:>7.1} ns",
            (worker_ns() - before) as f64 / count as f64
        );
    }
}

/// Processor time of the worker's thread.
fn worker_ns() -> u64 {
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        if std::fs::read_to_string(path.join("comm")).unwrap().trim() == "worker" {
            let text = std::fs::read_to_string(path.join("schedstat")).unwrap();
            return text.split(' ').next().unwrap().parse().unwrap();
        }
    }
    panic!("the worker is gone");
}

fn main() {
    let keys = std::env::var("WORKER_BENCH_KEYS").ok();
    let keys = keys
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000u64);
    let segments = Segments::new(RING_BYTES, 64 << 30);
    let (requests, replies) = segments.link.try_clone().unwrap().requester().unwrap();
    let (ours, theirs) = socket_pair();
    segments.introduce(ours.as_fd(), 1, ArenaState::Fresh);
    std::thread::Builder::new()
        .name("worker".into())
        .spawn(move || storage_worker::run(Child::from_socket(theirs).unwrap()))
        .unwrap();
    let mut gateway = Gateway {
        segments,
        requests,
        replies,
        random: Random::new(1),
        keys,
        sequences: [0; CONNECTIONS as usize],
        turn: 0,
    };
    let value = [b'v'; 256];
    gateway.run(keys, |gateway, number| {
        let key = gateway.key(number);
        gateway.put(StorageCommand::Set, &[key.as_bytes(), &value])
    });
    for _ in 0..3 {
        gateway.measure("GET", |gateway, _| {
            let number = gateway.random.below(gateway.keys);
            let key = gateway.key(number);
            gateway.put(StorageCommand::Get, &[key.as_bytes()])
        });
        gateway.measure("SET", |gateway, _| {
            let number = gateway.random.below(gateway.keys);
            let key = gateway.key(number);
            gateway.put(StorageCommand::Set, &[key.as_bytes(), &value])
        });
        gateway.measure("INCR of one of 1000", |gateway, _| {
            let key = format!("n:{}", gateway.random.below(1000));
            gateway.put(StorageCommand::Incr, &[key.as_bytes()])
        });
    }
}
