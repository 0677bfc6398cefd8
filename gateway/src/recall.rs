//! Calling back commands of a client that does not take its replies.
//!
//! A connection may have a thousand commands in flight before anybody knows how large their replies
//! are, and a client that never reads must not make us hold them all. So once more than
//! `limits::RECALL_BYTES` are held for it, what still stands in the request rings is called back:
//!
//! ```text
//!   request ring   | 5 | 6 | 7 | 8 | 9 |        the worker is somewhere here
//!   gateway        copies them, writes `Recalled` over their kinds: 9, 8, 7, 6, 5
//!   worker         has read 5 and 6 before: two replies; 7, 8, 9 Returned
//!   gateway        sends 7, 8, 9 again, little by little, as the client reads
//! ```
//!
//! Kinds are written over from the last to the first, and a worker reads from the first to the last.
//! So if it gives one back it gives back all behind it, and nothing is executed before its turn. As the
//! word stands in the ring, a successor of the worker finds it as well, and the worker keeps nothing.
//!
//! Until everything that was in flight is answered no new command is taken: the connection waits
//! (`Wait::Earlier`, or what it waited for already). What cannot be called back is sent only when
//! nothing is in flight before it: transfers, commands in steps, commands without a reply.
//!
//! So a connection has us hold the bound, what stands in the reply rings, and per worker one reply that
//! was begun; then, while it reads, `limits::RECALLED_IN_FLIGHT` more.
//!
//! Cost: nothing until the bound is passed; then a walk over the request rings.

use std::collections::VecDeque;

use proto::CommandError;
use proto::frame::{REQUEST_KIND_OFFSET, RequestHeader, RequestKind, flags, padded, write_request};
use shm::RingProducer;

use crate::connection::{Connection, Wait};
use crate::core::{Core, Ticket};
use crate::lanes::{NoRoom, Who};
use crate::limits;

/// A request, as it stood in a ring.
#[derive(Debug)]
struct Frame {
    lane: usize,
    sequence: u32,
    part: u16,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    /// For each lane, in their order: the worker gives them back, or has executed them.
    called: Vec<VecDeque<Frame>>,
    /// To be sent again, by sequence.
    back: VecDeque<Frame>,
    /// Sequences that were sent again and may be unanswered.
    resent: Vec<u32>,
    /// It stands in a queue for room.
    is_queued: bool,
}

impl Recall {
    /// A worker has given a request back. False if it was not asked for it.
    pub(crate) fn take_back(&mut self, lane: u16, sequence: u32, part: u16) -> bool {
        let Some(called) = self.called.get_mut(usize::from(lane)) else {
            return false;
        };
        let is_it = |frame: &Frame| (frame.sequence, frame.part) == (sequence, part);
        let Some(at) = called.iter().position(is_it) else {
            return false;
        };
        // Those before it were executed.
        let frame = called.drain(..=at).next_back();
        if let Some(frame) = frame {
            self.add(frame);
        }
        true
    }

    fn add(&mut self, frame: Frame) {
        let is_before = |other: &Frame| frame.sequence.wrapping_sub(other.sequence) < 1 << 31;
        let at = self.back.partition_point(is_before);
        self.back.insert(at, frame);
    }
}

impl Connection {
    /// Nothing of what was called back is unanswered.
    #[inline]
    pub(crate) fn has_all_back(&mut self) -> bool {
        if self.recall.is_some() && self.replies.in_flight() == 0 {
            self.recall = None;
        }
        self.recall.is_none()
    }

    /// The next request to be sent again, if it is time for that.
    fn next_recalled(&mut self) -> Option<&Frame> {
        let recall = self.recall.as_mut()?;
        if recall.is_queued || self.replies.unsent().len() >= limits::OUTPUT_PAUSE_BYTES {
            return None;
        }
        let frame = recall.back.front()?;
        // Everything waits for the head, whatever is held.
        if self.replies.before(frame.sequence) > 0 {
            let (replies, in_flight) = (&self.replies, self.replies.in_flight());
            recall
                .resent
                .retain(|&sequence| replies.before(sequence) < in_flight);
            if recall.resent.len() >= limits::RECALLED_IN_FLIGHT
                || replies.held_bytes() >= limits::OUTPUT_PAUSE_BYTES
            {
                return None;
            }
        }
        Some(frame)
    }
}

impl Core {
    /// Something large has come for a connection: enough?
    #[cold]
    pub(crate) fn look_at_size(&mut self, index: u32) {
        let Some(connection) = self.get(index) else {
            return;
        };
        let gathered = connection.gathers.iter().map(|gather| gather.held());
        let held = connection.replies.held_bytes() + gathered.sum::<usize>();
        if held < self.recall_bytes
            || connection.recall.is_some()
            || connection.replies.in_flight() == 0
            || connection.wait == Wait::Transfer
        {
            return;
        }
        let who = connection.who(index);
        let mut recall = Box::new(Recall::default());
        for lane in 0..self.lanes.len() {
            let half = self.lanes.half_mut(lane).and_then(|half| half.as_ref());
            let begun = half.and_then(|half| half.request_of(who));
            let parts = self.lanes.parts_mut(lane);
            let frames = parts.map(|parts| call_back(&mut parts.requests, lane, who, begun));
            recall.called.push(frames.unwrap_or_default());
        }
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        connection.recall = Some(recall);
        if matches!(connection.wait, Wait::Nothing | Wait::Window | Wait::Room) {
            connection.wait = Wait::Earlier;
        }
    }

    /// There may be room for what the connection has to send again.
    #[cold]
    pub(crate) fn has_room_again(&mut self, index: u32) {
        if let Some(recall) = self.get_mut(index).and_then(|it| it.recall.as_mut()) {
            recall.is_queued = false;
        }
        self.look_at_wait(index);
    }

    /// Sends again what it is time for.
    #[cold]
    pub(crate) fn send_recalled(&mut self, index: u32) {
        loop {
            let Some(connection) = self
                .connections
                .get_mut(index as usize)
                .and_then(Option::as_mut)
            else {
                return;
            };
            let who = connection.who(index);
            if connection.has_all_back() {
                break;
            }
            let Some(frame) = connection.next_recalled() else {
                break;
            };
            let (lane, sequence) = (frame.lane, frame.sequence);
            let len = frame.bytes.len();
            let sent = self.lanes.reserve(lane, len).map(|place| {
                // The rest of the place is padding.
                place[..len].copy_from_slice(&frame.bytes);
            });
            let Some(recall) = connection.recall.as_mut() else {
                break;
            };
            match sent {
                Ok(()) => {
                    recall.back.pop_front();
                    recall.resent.push(sequence);
                    self.lanes.commit(lane, len);
                }
                Err(NoRoom::Full) => {
                    recall.is_queued = true;
                    self.lanes.wait_for_room(lane, who);
                    break;
                }
                Err(NoRoom::TooBig | NoRoom::Gone) => {
                    let frame = recall.back.pop_front();
                    self.refuse_recalled(who, frame);
                }
            }
        }
        self.lanes.flush();
    }

    /// The worker has gone meanwhile.
    fn refuse_recalled(&mut self, who: Who, frame: Option<Frame>) {
        let Some(frame) = frame else {
            return;
        };
        let error = CommandError::Unavailable {
            what: "the storage worker of this key",
        };
        self.count_error(&error.code());
        let mut reply = Vec::with_capacity(64);
        error.write_resp(&mut reply);
        let Some(connection) = self.find_mut(who) else {
            return;
        };
        if frame.part == 0 {
            let ticket = Ticket {
                who,
                sequence: frame.sequence,
                muted: false,
            };
            return self.deliver(ticket, &reply);
        }
        let mut gathers = connection.gathers.iter();
        let Some(at) = gathers.position(|gather| gather.sequence == frame.sequence) else {
            return;
        };
        if let Ok(true) = connection.gathers[at].take(frame.part, true, true, &reply)
            && let Some(gather) = connection.gathers.remove(at)
        {
            self.finish_gather(who.index, gather);
        }
    }

    /// While commands of its connection are called back a request for another worker waits with them:
    /// it may belong behind one of them. True if it does.
    pub(crate) fn joins_recalled<'a>(
        &mut self,
        worker: usize,
        header: RequestHeader,
        arguments: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> bool {
        let index = header.connection;
        let largest = self.lanes.largest(worker);
        let recall = self.get_mut(index).and_then(|it| it.recall.as_mut());
        let len = proto::frame::request_len(arguments.clone());
        let Some(recall) = recall.filter(|_| len <= largest) else {
            return false;
        };
        let mut bytes = vec![0; len];
        if write_request(&mut bytes, header, arguments).is_none() {
            return false;
        }
        recall.add(Frame {
            lane: worker,
            sequence: header.sequence,
            part: u16::try_from(header.part).unwrap_or_default(),
            bytes,
        });
        self.send_recalled(index);
        true
    }
}

/// Calls back the requests of `who` that stand in a ring, but for those up to the one that was `begun`.
fn call_back(
    requests: &mut RingProducer,
    lane: usize,
    who: Who,
    begun: Option<(u32, u16)>,
) -> VecDeque<Frame> {
    let mut frames = VecDeque::new();
    let mut places = Vec::new();
    let (position, bytes) = requests.unreleased();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..)
        && let Ok(header) = RequestHeader::decode(rest)
    {
        let is_its = (header.connection, header.generation) == (who.index, who.generation);
        if is_its && header.kind == RequestKind::Request {
            let part = u16::try_from(header.part).unwrap_or_default();
            if header.flags & flags::EXECUTED != 0 || begun == Some((header.sequence, part)) {
                frames.clear();
                places.clear();
            } else if header.flags & flags::DISCARD == 0 {
                frames.push_back(Frame {
                    lane,
                    sequence: header.sequence,
                    part,
                    bytes: rest.get(..header.len as usize).unwrap_or_default().to_vec(),
                });
                places.push(position + at as u64);
            }
        }
        at += padded(header.len as usize);
    }
    for place in places.iter().rev() {
        requests.rewrite(
            place + REQUEST_KIND_OFFSET as u64,
            RequestKind::Recalled as u8,
        );
    }
    frames
}
