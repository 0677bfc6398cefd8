//! Puts the replies of one connection into the order of its requests.
//!
//! A connection's pipelined commands may run on several storage workers at the same time, and some are
//! answered by the gateway itself, so replies come in any order; clients must see them in the order in
//! which they asked. Every command that will be answered gets a sequence number:
//!
//! ```text
//!        emit                          next
//!          |                             |
//!   ... 6  7  8  9  10  11  12  13  14  15
//!          .  .  [9+10]  .  [12]  .   .        [..] replies that came early: the stash
//! ```
//!
//! - A reply for `emit` is appended to the output at once and `emit` moves on. This is the usual case
//!   and touches no queue.
//! - Any other is noted in the stash, and moves to the output as soon as all earlier ones are there.
//!   Replies of workers stay in their rings until then (`collect`), or until those must be released
//!   (`settle`).
//! - A reply may come in pieces (`piece`, then `finish`); at the head they stream into the output. If
//!   the worker dies in between they come again from the first (`forget`).
//!
//! Invariants: `next - emit` (wrapping) never exceeds `limits::MAX_IN_FLIGHT`; the stash is absent when
//! it would be empty.
//!
//! Cost: one copy per run of replies, also out of order; another one for what waits long. No allocation:
//! stashes are pooled per thread. An idle connection owns neither an output buffer nor a stash.

use crate::limits;
use crate::stash::{Early, InRing, Rings, Stash};

/// What became of a reply that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is in the output, perhaps followed by others that had waited for it.
    Emitted,
    /// It waits in the stash for earlier replies.
    Stashed,
    /// The sequence number is not one that is awaited: the sender is broken.
    Unexpected,
}

/// Buffers that connections of one thread share when they are not in use.
#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "connections hold the box, so that an idle one stays small"
)]
pub(crate) struct BufferPool {
    buffers: Vec<Vec<u8>>,
    stashes: Vec<Box<Stash>>,
    /// Runs of replies in all stashes that lie in rings.
    lent: u32,
    /// Connections that may have such replies; some more than once.
    lenders: Vec<u32>,
}

impl BufferPool {
    /// An empty buffer, warm if one is there.
    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next taker unless it is large or there are enough.
    #[inline]
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= limits::POOLED_BUFFER_BYTES
            && self.buffers.len() < limits::POOLED_BUFFERS
        {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Runs of replies that wait in the rings of the thread: as long as there are any, no ring may be
    /// released.
    #[inline]
    pub(crate) fn lent(&self) -> u32 {
        self.lent
    }

    /// Notes that replies of the connection at this place wait in rings.
    #[inline]
    pub(crate) fn note_lender(&mut self, index: u32) {
        if self.lenders.last() != Some(&index) {
            self.lenders.push(index);
        }
    }

    /// The connections that may have replies in rings; they are forgotten here.
    pub(crate) fn take_lenders(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.lenders)
    }

    /// No replies wait in rings.
    #[inline]
    pub(crate) fn forget_lenders(&mut self) {
        self.lenders.clear();
    }

    fn take_stash(&mut self) -> Box<Stash> {
        self.stashes.pop().unwrap_or_default()
    }

    fn give_stash(&mut self, mut stash: Box<Stash>) {
        if stash.memory() <= limits::POOLED_BUFFER_BYTES
            && self.stashes.len() < limits::POOLED_BUFFERS
        {
            stash.clear();
            self.stashes.push(stash);
        }
    }
}

/// The replies of one connection: what may be sent, and what must wait for its turn.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    next: u32,
    emit: u32,
    /// Bytes for the socket; the first `sent` of them are already there.
    output: Vec<u8>,
    sent: usize,
    /// Some of the reply at the head is in the output, and more follows.
    is_head_begun: bool,
    stash: Option<Box<Stash>>,
}

impl Replies {
    /// Whether the end of the output is in the middle of a reply.
    #[inline]
    pub(crate) fn is_head_begun(&self) -> bool {
        self.is_head_begun
    }

    /// Puts what answers no command behind the replies that are there.
    pub(crate) fn push(&mut self, bytes: &[u8], pool: &mut BufferPool) {
        self.append(bytes, pool);
    }

    /// Commands that are not answered completely yet.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.next.wrapping_sub(self.emit)
    }

    /// The number that the next call of `assign` returns.
    #[inline]
    pub(crate) fn upcoming(&self) -> u32 {
        self.next
    }

    /// How many answers are still to come before that for `sequence`.
    #[inline]
    pub(crate) fn before(&self, sequence: u32) -> u32 {
        sequence.wrapping_sub(self.emit)
    }

    /// Reserves the next place in the order.
    #[inline]
    pub(crate) fn assign(&mut self) -> u32 {
        let sequence = self.next;
        self.next = sequence.wrapping_add(1);
        sequence
    }

    /// Bytes ready for the socket.
    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        self.output.get(self.sent..).unwrap_or_default()
    }

    /// Bytes held for the client: ready ones and early ones.
    pub(crate) fn held_bytes(&self) -> usize {
        let stash = self.stash.as_ref().map_or(0, |stash| stash.held());
        self.output.len() - self.sent + stash
    }

    /// Capacity of the buffers in use, for CLIENT LIST.
    pub(crate) fn memory(&self) -> usize {
        self.output.capacity() + self.stash.as_ref().map_or(0, |stash| stash.memory())
    }

    /// The socket took `count` bytes. True if nothing is left to send.
    pub(crate) fn sent(&mut self, count: usize, pool: &mut BufferPool) -> bool {
        self.sent += count;
        debug_assert!(self.sent <= self.output.len());
        if self.sent >= self.output.len() {
            self.sent = 0;
            pool.give(std::mem::take(&mut self.output));
            return true;
        }
        // A client that reads slowly must not make its buffer grow by what it has read already.
        if self.sent >= limits::COMPACT_BYTES && self.sent * 2 >= self.output.len() {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        false
    }

    /// Gives everything back; used when the connection ends.
    pub(crate) fn clear(&mut self, pool: &mut BufferPool) {
        self.sent = 0;
        pool.give(std::mem::take(&mut self.output));
        if let Some(stash) = self.stash.take() {
            pool.lent -= stash.lent();
            pool.give_stash(stash);
        }
        self.emit = self.next;
        self.is_head_begun = false;
    }

    #[inline]
    fn append(&mut self, bytes: &[u8], pool: &mut BufferPool) {
        if self.output.capacity() == 0 {
            self.output = pool.take();
        }
        self.output.extend_from_slice(bytes);
    }

    /// How far behind the head `first` is, if the `count` replies from it on are awaited.
    #[inline]
    fn distance_of(&self, first: u32, count: u32) -> Option<u32> {
        let distance = first.wrapping_sub(self.emit);
        let end = u64::from(distance) + u64::from(count);
        (count > 0 && end <= u64::from(self.in_flight())).then_some(distance)
    }

    /// Takes `count` complete consecutive replies, the first for `first`, that lie in a ring. If they are
    /// early they stay there: call `settle` before that ring is released.
    #[inline]
    pub(crate) fn collect(
        &mut self,
        (first, count): (u32, u32),
        place: InRing,
        bytes: &[u8],
        rings: &impl Rings,
        pool: &mut BufferPool,
    ) -> Placed {
        let Some(distance) = self.distance_of(first, count) else {
            return Placed::Unexpected;
        };
        if distance == 0 {
            self.append(bytes, pool);
            self.advance(count, rings, pool);
            return Placed::Emitted;
        }
        let stash = self.stash.get_or_insert_with(|| pool.take_stash());
        let is_new = stash.lend(self.emit, distance, count, place);
        pool.lent += u32::from(is_new);
        stashed(is_new)
    }

    /// Copies what is early and lies in rings.
    #[cold]
    pub(crate) fn settle(&mut self, rings: &impl Rings, pool: &mut BufferPool) {
        if let Some(stash) = &mut self.stash {
            pool.lent -= stash.lent();
            stash.settle(self.emit, rings);
        }
    }

    /// Takes `count` complete consecutive replies, the first for `first`.
    pub(crate) fn complete(
        &mut self,
        first: u32,
        count: u32,
        bytes: &[u8],
        rings: &impl Rings,
        pool: &mut BufferPool,
    ) -> Placed {
        let Some(distance) = self.distance_of(first, count) else {
            return Placed::Unexpected;
        };
        if distance == 0 {
            self.append(bytes, pool);
            self.advance(count, rings, pool);
            return Placed::Emitted;
        }
        let stash = self.stash.get_or_insert_with(|| pool.take_stash());
        stashed(stash.insert(self.emit, distance, count, bytes))
    }

    /// Answers a command in the moment in which it is read: assigns its number and takes its reply.
    #[inline]
    pub(crate) fn answer(&mut self, bytes: &[u8], pool: &mut BufferPool) {
        let sequence = self.assign();
        if sequence == self.emit {
            // Nothing is behind the latest number.
            self.emit = self.next;
            self.append(bytes, pool);
        } else {
            let distance = sequence.wrapping_sub(self.emit);
            let stash = self.stash.get_or_insert_with(|| pool.take_stash());
            stash.insert(self.emit, distance, 1, bytes);
        }
    }

    /// Takes a piece of the reply for `sequence`; more follows.
    pub(crate) fn piece(&mut self, sequence: u32, bytes: &[u8], pool: &mut BufferPool) -> Placed {
        let distance = sequence.wrapping_sub(self.emit);
        if distance >= self.in_flight() {
            return Placed::Unexpected;
        }
        if distance == 0 {
            self.append(bytes, pool);
            self.is_head_begun = true;
            return Placed::Emitted;
        }
        let stash = self.stash.get_or_insert_with(|| pool.take_stash());
        stashed(stash.grow(self.emit, distance, bytes, false))
    }

    /// Takes the last piece of the reply for `sequence`.
    pub(crate) fn finish(
        &mut self,
        sequence: u32,
        bytes: &[u8],
        rings: &impl Rings,
        pool: &mut BufferPool,
    ) -> Placed {
        let distance = sequence.wrapping_sub(self.emit);
        if distance >= self.in_flight() {
            return Placed::Unexpected;
        }
        if distance == 0 {
            self.append(bytes, pool);
            self.is_head_begun = false;
            self.advance(1, rings, pool);
            return Placed::Emitted;
        }
        let stash = self.stash.get_or_insert_with(|| pool.take_stash());
        stashed(stash.grow(self.emit, distance, bytes, true))
    }

    /// Drops the `count` bytes that have come of the reply for `sequence`, which is not complete. False,
    /// and no effect, if some of them are sent.
    pub(crate) fn forget(&mut self, sequence: u32, count: usize) -> bool {
        if sequence != self.emit {
            if let Some(stash) = &mut self.stash {
                stash.forget_begun(sequence);
            }
            return true;
        }
        // It is the head, so it is the last in the output.
        let kept = self.output.len().checked_sub(count);
        let Some(kept) = kept.filter(|&kept| kept >= self.sent) else {
            return false;
        };
        self.output.truncate(kept);
        self.is_head_begun = false;
        true
    }

    /// The head moves on by `count`; early replies that are now due follow into the output.
    #[inline]
    fn advance(&mut self, count: u32, rings: &impl Rings, pool: &mut BufferPool) {
        self.emit = self.emit.wrapping_add(count);
        if let Some(stash) = &self.stash
            && stash.has(self.emit)
        {
            self.drain(rings, pool);
        }
    }

    fn drain(&mut self, rings: &impl Rings, pool: &mut BufferPool) {
        let Some(stash) = &mut self.stash else {
            return;
        };
        let lent = stash.lent();
        loop {
            if let Some((place, count)) = stash.take_lent(self.emit) {
                self.output.extend_from_slice(rings.bytes(place));
                self.emit = self.emit.wrapping_add(count);
                continue;
            }
            match stash.take_copied(self.emit) {
                Early::Missing => break,
                Early::Run(bytes, count) => {
                    self.output.extend_from_slice(bytes);
                    self.emit = self.emit.wrapping_add(count);
                }
                Early::Whole(bytes) => {
                    self.output.extend_from_slice(&bytes);
                    self.emit = self.emit.wrapping_add(1);
                }
                // It is the head now: what is there may go out, further pieces stream behind it.
                Early::Begun(bytes) => {
                    self.output.extend_from_slice(&bytes);
                    self.is_head_begun = true;
                    break;
                }
            }
        }
        pool.lent -= lent - stash.lent();
        if !stash.is_empty() {
            stash.compact();
        } else if let Some(stash) = self.stash.take() {
            pool.give_stash(stash);
        }
    }
}

#[inline]
fn stashed(is_new: bool) -> Placed {
    if is_new {
        Placed::Stashed
    } else {
        Placed::Unexpected
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reply rings: what is released, or whose lane is gone, must not be looked at any more.
    #[derive(Default)]
    struct Lanes(Vec<Option<Ring>>);

    #[derive(Default)]
    struct Ring {
        bytes: Vec<u8>,
        released: usize,
    }

    impl Lanes {
        fn new(count: usize) -> Self {
            Self((0..count).map(|_| Some(Ring::default())).collect())
        }

        fn put(&mut self, lane: u16, bytes: &[u8]) -> InRing {
            let ring = self.0[usize::from(lane)].as_mut().unwrap();
            let position = ring.bytes.len() as u64;
            ring.bytes.extend_from_slice(bytes);
            let len = u32::try_from(bytes.len()).unwrap();
            InRing {
                lane,
                len,
                position,
            }
        }

        fn release(&mut self) {
            for ring in self.0.iter_mut().flatten() {
                ring.released = ring.bytes.len();
            }
        }
    }

    impl Rings for Lanes {
        fn bytes(&self, place: InRing) -> &[u8] {
            let ring = self.0[usize::from(place.lane)].as_ref().unwrap();
            let start = usize::try_from(place.position).unwrap();
            assert!(start >= ring.released, "looked at a place that is released");
            &ring.bytes[start..start + place.len as usize]
        }
    }

    fn replies(count: u32) -> Replies {
        let mut replies = Replies {
            next: u32::MAX - 2,
            emit: u32::MAX - 2,
            ..Replies::default()
        };
        for _ in 0..count {
            replies.assign();
        }
        replies
    }

    #[test]
    fn replies_in_order_go_straight_to_the_output() {
        let rings = Lanes::default();
        let mut pool = BufferPool::default();
        let mut replies = replies(3);
        let first = replies.emit;
        assert_eq!(
            replies.complete(first, 2, b"+a\r\n+b\r\n", &rings, &mut pool),
            Placed::Emitted
        );
        assert_eq!(replies.unsent(), b"+a\r\n+b\r\n");
        assert!(replies.stash.is_none());
        assert!(replies.sent(8, &mut pool));
        assert_eq!(
            replies.output.capacity(),
            0,
            "an idle connection owns no buffer"
        );
    }

    #[test]
    fn a_reply_that_nobody_awaits_is_reported() {
        let rings = Lanes::default();
        let mut pool = BufferPool::default();
        let mut replies = replies(2);
        let first = replies.emit;
        assert_eq!(
            replies.complete(first, 3, b"", &rings, &mut pool),
            Placed::Unexpected
        );
        assert_eq!(
            replies.complete(first.wrapping_sub(1), 1, b"", &rings, &mut pool),
            Placed::Unexpected
        );
        assert_eq!(
            replies.complete(first, 0, b"", &rings, &mut pool),
            Placed::Unexpected
        );
        assert_eq!(
            replies.complete(first.wrapping_add(1), 1, b"b", &rings, &mut pool),
            Placed::Stashed
        );
        assert_eq!(
            replies.complete(first.wrapping_add(1), 1, b"b", &rings, &mut pool),
            Placed::Unexpected
        );
    }

    #[test]
    fn pieces_stream_once_their_reply_is_the_head() {
        let rings = Lanes::default();
        let mut pool = BufferPool::default();
        let mut replies = replies(3);
        let (a, b, c) = (
            replies.emit,
            replies.emit.wrapping_add(1),
            replies.emit.wrapping_add(2),
        );
        assert_eq!(replies.piece(b, b"b1", &mut pool), Placed::Stashed);
        assert_eq!(
            replies.complete(c, 1, b"c", &rings, &mut pool),
            Placed::Stashed
        );
        assert_eq!(
            replies.complete(a, 1, b"a", &rings, &mut pool),
            Placed::Emitted
        );
        assert_eq!(replies.unsent(), b"ab1");
        assert_eq!(replies.piece(b, b"b2", &mut pool), Placed::Emitted);
        assert_eq!(replies.unsent(), b"ab1b2");
        assert_eq!(replies.finish(b, b"b3", &rings, &mut pool), Placed::Emitted);
        assert_eq!(replies.unsent(), b"ab1b2b3c");
        assert_eq!(replies.in_flight(), 0);
        assert!(replies.stash.is_none());
    }

    proptest! {
        /// Whatever the order in which frames come, whatever their sizes and pieces, the output is that
        /// of the requests' order.
        #[test]
        fn any_order_of_completion_gives_the_same_output(
            frames in prop::collection::vec((1u32..4, 1usize..40, any::<bool>(), any::<u16>()), 1..60),
            big in any::<bool>(),
        ) {
            let rings = Lanes::default();
            let mut pool = BufferPool::default();
            let total: u32 = frames.iter().map(|frame| frame.0).sum();
            let mut replies = replies(total);
            let mut first = replies.emit;
            let mut expected = Vec::new();
            let mut work = Vec::new();
            for (number, (count, len, pieces, priority)) in frames.iter().enumerate() {
                let count = if *pieces { 1 } else { *count };
                let len = if big && number % 7 == 0 { len * 200 } else { *len };
                let letter = b'a' + u8::try_from(number % 26).unwrap();
                let bytes = vec![letter; len];
                expected.extend_from_slice(&bytes);
                work.push((*priority, first, count, bytes, *pieces));
                first = first.wrapping_add(count);
            }
            // Frames with pieces stand for one reply only, so fewer numbers than assigned may be used.
            let unused = replies.upcoming().wrapping_sub(first);
            work.sort_by_key(|frame| frame.0);
            for (_, first, count, bytes, pieces) in work {
                if pieces {
                    let half = bytes.len() / 2;
                    prop_assert_ne!(replies.piece(first, &bytes[..half], &mut pool), Placed::Unexpected);
                    prop_assert_ne!(replies.finish(first, &bytes[half..], &rings, &mut pool), Placed::Unexpected);
                } else {
                    prop_assert_ne!(replies.complete(first, count, &bytes, &rings, &mut pool), Placed::Unexpected);
                }
            }
            prop_assert_eq!(replies.unsent(), &expected[..]);
            prop_assert_eq!(replies.in_flight(), unused);
            prop_assert!(replies.stash.is_none());
            prop_assert_eq!(replies.held_bytes(), expected.len());
        }

        /// The same for replies that stay in rings, of several connections, while lanes come and go,
        /// rings are released whenever they may be, and connections end.
        #[test]
        fn replies_may_wait_in_their_rings(
            frames in prop::collection::vec(
                (0usize..4, 1u32..4, 1usize..40, 0u16..3, 0u8..5, any::<u16>(), 0u8..16),
                1..120,
            ),
            big in any::<bool>(),
        ) {
            let mut rings = Lanes::new(3);
            let mut pool = BufferPool::default();
            let mut clients: Vec<Replies> = (0..4).map(|_| replies(0)).collect();
            let mut expected = vec![Vec::new(); 4];
            let mut work = Vec::new();
            for (number, (who, count, len, lane, form, priority, event)) in frames.into_iter().enumerate() {
                let count = if form < 3 { count } else { 1 };
                let first = clients[who].upcoming();
                for _ in 0..count {
                    clients[who].assign();
                }
                let len = if big && number % 7 == 0 { len * 1000 } else { len };
                let bytes = vec![b'a' + u8::try_from(number % 26).unwrap(); len];
                expected[who].extend_from_slice(&bytes);
                work.push((priority, who, first, count, bytes, lane, form, event));
            }
            work.sort_by_key(|frame| frame.0);
            let mut is_gone = [false; 4];
            for (_, who, first, count, bytes, lane, form, event) in work {
                let client = &mut clients[who];
                let half = bytes.len() / 2;
                let placed = match form {
                    _ if is_gone[who] => Placed::Emitted,
                    0..3 => {
                        let place = rings.put(lane, &bytes);
                        client.collect((first, count), place, &bytes, &rings, &mut pool)
                    }
                    3 => client.complete(first, count, &bytes, &rings, &mut pool),
                    _ => {
                        client.piece(first, &bytes[..half], &mut pool);
                        client.finish(first, &bytes[half..], &rings, &mut pool)
                    }
                };
                prop_assert_ne!(placed, Placed::Unexpected);
                let held: usize = clients.iter().map(Replies::held_bytes).sum();
                if event < 3 {
                    clients.iter_mut().for_each(|client| client.settle(&rings, &mut pool));
                    prop_assert_eq!(pool.lent(), 0);
                }
                match event {
                    1 => rings.0[usize::from(lane)] = Some(Ring::default()),
                    3 => {
                        clients[who].clear(&mut pool);
                        is_gone[who] = true;
                    }
                    _ => {
                        let sum: usize = clients.iter().map(Replies::held_bytes).sum();
                        prop_assert_eq!(sum, held, "nothing is lost by settling");
                    }
                }
                let lent = |client: &Replies| client.stash.as_ref().map_or(0, |stash| stash.lent());
                prop_assert_eq!(pool.lent(), clients.iter().map(lent).sum::<u32>());
                if pool.lent() == 0 {
                    rings.release();
                }
            }
            for who in (0..4).filter(|&who| !is_gone[who]) {
                prop_assert_eq!(clients[who].unsent(), &expected[who][..]);
                prop_assert_eq!(clients[who].in_flight(), 0);
                prop_assert!(clients[who].stash.is_none());
            }
            prop_assert_eq!(pool.lent(), 0);
        }
    }
}
