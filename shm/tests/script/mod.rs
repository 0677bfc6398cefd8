//! One fixed walk through a ring's whole contract, run over both kinds of memory, so that what loom
//! checks on the heap is what runs in a segment.

use std::collections::VecDeque;

use shm::{RingConsumer, RingProducer};

/// Steps of the walk.
const STEPS: usize = 400;

/// Drives both ends by a small generator of numbers and compares with a queue of bytes.
pub fn run(mut out: RingProducer, mut inn: RingConsumer) {
    let capacity = out.capacity();
    assert_eq!((capacity, out.largest()), (inn.capacity(), capacity / 4));
    let mut model = Model {
        capacity,
        ..Model::default()
    };
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for step in 0..STEPS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let len = 8 * (1 + random as usize % (capacity / 16));
        match (random >> 32) % 5 {
            0 | 1 => model.write(&mut out, len, step as u8),
            2 => model.publish(&mut out),
            3 => model.read(&mut inn, len),
            _ => model.release(&mut inn),
        }
        assert_eq!(out.position(), model.tail as u64);
        assert_eq!(inn.position(), model.head as u64);
    }
    assert!(model.head > 2 * capacity, "the walk went round the ring");
}

#[derive(Default)]
struct Model {
    capacity: usize,
    /// Written and not read.
    bytes: VecDeque<u8>,
    tail: usize,
    published: usize,
    head: usize,
    released: usize,
}

impl Model {
    fn write(&mut self, out: &mut RingProducer, len: usize, value: u8) {
        let fits = self.tail + len - self.released <= self.capacity;
        match out.reserve(len) {
            Some(place) => {
                assert!(fits);
                place.fill(value);
                out.commit(len);
                self.bytes.extend(std::iter::repeat_n(value, len));
                self.tail += len;
            }
            None => assert!(!fits),
        }
    }

    fn publish(&mut self, out: &mut RingProducer) {
        assert_eq!(out.publish(), self.tail > self.published);
        self.published = self.tail;
        assert_eq!(out.is_empty(), self.released == self.published);
        assert_eq!(out.free(), self.capacity - (self.tail - self.released));
    }

    fn read(&mut self, inn: &mut RingConsumer, len: usize) {
        assert_eq!(inn.refresh(), Ok(self.published - self.head));
        let len = len.min(self.published - self.head);
        assert!(inn.readable()[..len].iter().eq(self.bytes.iter().take(len)));
        inn.consume(len);
        self.bytes.drain(..len);
        self.head += len;
    }

    fn release(&mut self, inn: &mut RingConsumer) {
        inn.release();
        self.released = self.head;
    }
}
