//! What a frame costs in ring, doorbell, news, journal and counters, and how fast two threads pass
//! frames through a link.
//!
//! Run with `cargo bench -p shm`. The first group has both ends on one thread: instructions without
//! cache traffic between cores. The last one has the traffic.
#![cfg(not(loom))]
#![expect(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shm::{Bell, CommitLine, Journal, LinkSegment, Party, RingConsumer, RingProducer};

const RING: usize = 1 << 20;
/// Commands of one pipelined batch.
const BATCH: usize = 30;

fn ring() -> (RingProducer, RingConsumer) {
    let link = LinkSegment::create("bench-link", RING, 1).unwrap();
    let (out, _) = link.try_clone().unwrap().requester().unwrap();
    (out, link.responder(None).unwrap().0)
}

/// A batch of frames through a ring, published, announced, rung and released once.
fn batch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch of 30 on one thread");
    group.throughput(Throughput::Elements(BATCH as u64));
    let party = Party::create("bench-party", 0, 0, 16, 1).unwrap();
    for len in [48usize, 128, 320] {
        let (mut out, mut inn) = ring();
        let frame = vec![1; len];
        group.bench_function(
            BenchmarkId::new("ring and doorbell, frame bytes", len),
            |bench| {
                bench.iter(|| {
                    for _ in 0..BATCH {
                        let place = out.reserve(len).unwrap();
                        place.copy_from_slice(&frame);
                        out.commit(len);
                    }
                    out.publish();
                    party.news().announce(0);
                    party.doorbell().ring(&Bell::Futex);
                    if party.news().take(0) {
                        inn.refresh().unwrap();
                    }
                    for _ in 0..BATCH {
                        black_box(inn.readable()[0]);
                        inn.consume(len);
                    }
                    inn.release()
                });
            },
        );
    }
    group.finish();
}

fn single(criterion: &mut Criterion) {
    let journal = Journal::create("bench-journal", 1 << 20, 1).unwrap();
    let party = Party::create("bench-party", 0, 0, 16, 1).unwrap();
    let mut line = CommitLine::default();
    criterion.bench_function("journal commit", |bench| {
        bench.iter(|| {
            line.sequence += 1;
            line.request_position += 48;
            journal.commit(black_box(&line));
        });
    });
    criterion.bench_function("journal write bracket", |bench| {
        bench.iter(|| {
            journal.begin_write(0, black_box(5));
            journal.end_write();
        });
    });
    criterion.bench_function("counter", |bench| {
        bench.iter(|| party.counters().add(black_box(3), 1));
    });
    criterion.bench_function("doorbell without sleeper", |bench| {
        bench.iter(|| party.doorbell().ring(&Bell::Futex));
    });
    party.news().set_links(4);
    criterion.bench_function("any news on 4 links", |bench| {
        bench.iter(|| party.news().any());
    });
}

/// Frames of 64 bytes from one thread to another, `per_batch` per publication, spinning.
fn pass(frames: u64, per_batch: u64) -> Duration {
    let (mut out, mut inn) = ring();
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut sent = 0;
            while sent < frames {
                for _ in 0..per_batch.min(frames - sent) {
                    while out.reserve(64).is_none() {
                        out.publish();
                        std::thread::yield_now();
                    }
                    out.reserve(64).unwrap().fill(1);
                    out.commit(64);
                    sent += 1;
                }
                out.publish();
            }
        });
        let mut received = 0;
        while received < frames {
            let readable = inn.refresh().unwrap();
            if readable == 0 {
                std::thread::yield_now();
                continue;
            }
            black_box(
                inn.readable()
                    .iter()
                    .step_by(64)
                    .map(|byte| u64::from(*byte))
                    .sum::<u64>(),
            );
            inn.consume(readable);
            inn.release();
            received += readable as u64 / 64;
        }
    });
    start.elapsed()
}

fn two_threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("two threads, frames of 64 bytes");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for per_batch in [1, 30] {
        group.bench_function(BenchmarkId::new("per publication", per_batch), |bench| {
            bench.iter_custom(|frames| pass(frames, per_batch));
        });
    }
    group.finish();
}

criterion_group!(benches, batch, single, two_threads);
criterion_main!(benches);
