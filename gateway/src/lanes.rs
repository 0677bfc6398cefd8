//! The links of a gateway thread to the storage workers, and what has to wait for room in them.
//!
//! ```text
//!   connection ──write──> request ring ──> worker      publish + announce + doorbell: once per flush
//!   connection <──────── reply ring  <──── worker      our own doorbell wakes the thread
//!        |
//!        +── no room: the command stays unparsed in its connection, which queues in `waiting`
//!        +── too big for one frame: a `Transfer`, sent in fragments between other frames
//! ```
//!
//! Nobody blocks on a full ring. A connection whose command does not fit is not read any further until
//! the worker has made room (`want_space`), which is how back-pressure reaches the client.
//!
//! A transfer is kept until its reply has come: the worker that collected the first fragments may die,
//! and its successor asks for the whole request again (`ReplyKind::Again`).
//!
//! Invariants
//!   L1  frames of one connection enter a ring in the order of its commands: a connection with a
//!       transfer, or one that queues for room, sends nothing else.
//!   L2  everything written is published before the thread sleeps.
//!
//! Cost per request: one reservation, one header, one copy. Per flush and lane: one store of the tail,
//! one flag, one fence; a system call only if the worker sleeps.

use std::collections::VecDeque;

use proto::frame::padded;
use proto::registry::SlotRange;
use proto::slot::SLOT_COUNT;
use shm::{Bell, Party, RingConsumer, RingProducer};

use crate::half::Half;
use crate::limits;
use crate::stash::{InRing, Rings};
use crate::transfer::Transfer;

/// Which connection, and which of those that had its place one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Who {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What a lane needs from the control channel.
#[derive(Debug)]
pub(crate) struct LaneParts {
    pub(crate) requests: RingProducer,
    pub(crate) replies: RingConsumer,
    /// For what a successor of the worker must know before it looks at the requests.
    pub(crate) side: RingProducer,
    /// The worker's page: doorbell, state and the flags that say which ring has news.
    pub(crate) worker: Party,
    pub(crate) bell: Bell,
    /// Our place in the worker's news flags.
    pub(crate) their_position: usize,
    /// The worker's place in our news flags.
    pub(crate) our_position: usize,
    /// Number and generation of the link, for the supervisor.
    pub(crate) link: u32,
    pub(crate) generation: u64,
}

/// The pair of rings to one worker.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) parts: LaneParts,
    /// Connections whose next command found no room, oldest first.
    waiting: VecDeque<Who>,
    /// Requests too big for one frame, sent in turn.
    transfers: VecDeque<Transfer>,
    dirty: bool,
    /// The worker keeps dying; its successor comes after a delay.
    is_down: bool,
}

/// Why a frame could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The ring is full; the connection must queue.
    Full,
    /// The frame will never fit: it must travel as a transfer.
    TooBig,
    /// There is no such lane, or its worker is down.
    Gone,
}

/// All lanes of a thread and the map from slots to them.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Option<Lane>>,
    /// For each lane the reply that has come in part.
    halves: Vec<Option<Half>>,
    owners: Box<[u8]>,
    workers: usize,
    /// Requests written since the last flush, and how many there may be.
    unflushed: u32,
    flush_every: u32,
    /// Bytes of some reply ring are consumed and not released; more than a quarter of one.
    is_unreleased: bool,
    must_release: bool,
    /// Lanes in which somebody waits for room or a transfer is under way.
    blocked: u32,
}

impl Lanes {
    /// No lanes; every slot belongs to worker 0.
    pub(crate) fn new() -> Self {
        let owners = vec![0; usize::from(SLOT_COUNT)].into_boxed_slice();
        Self {
            lanes: Vec::new(),
            halves: Vec::new(),
            owners,
            workers: 1,
            unflushed: 0,
            flush_every: limits::FLUSH_EVERY,
            is_unreleased: false,
            must_release: false,
            blocked: 0,
        }
    }

    /// Takes over the slot map.
    pub(crate) fn set_owners(&mut self, ranges: &[SlotRange]) {
        for &SlotRange {
            first,
            last,
            worker,
        } in ranges
        {
            let last = usize::from(last.min(SLOT_COUNT - 1));
            let first = usize::from(first).min(last);
            if let Some(part) = self.owners.get_mut(first..=last) {
                part.fill(u8::try_from(worker).unwrap_or(u8::MAX));
            }
        }
        let last = self.owners.iter().copied().max().unwrap_or_default();
        self.workers = usize::from(last) + 1;
        self.flush_every =
            limits::FLUSH_EVERY * u32::from(last).saturating_add(1).min(limits::FLUSH_LANES);
    }

    /// The worker that owns `slot`.
    #[inline]
    pub(crate) fn owner(&self, slot: u16) -> usize {
        usize::from(
            self.owners
                .get(usize::from(slot))
                .copied()
                .unwrap_or_default(),
        )
    }

    /// The last slot of the unbroken range of one owner that begins at or before `slot`.
    pub(crate) fn end_of_range(&self, slot: u16) -> u16 {
        let owner = self.owner(slot);
        (slot..SLOT_COUNT)
            .take_while(|&slot| self.owner(slot) == owner)
            .last()
            .unwrap_or(slot)
    }

    /// Workers that own slots.
    #[inline]
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// The page of `worker`, if there is a lane to it.
    pub(crate) fn page(&self, worker: usize) -> Option<&Party> {
        Some(&self.lane(worker)?.parts.worker)
    }

    /// A counter in the page of `worker`, 0 if there is no lane to it.
    pub(crate) fn counter_of(&self, worker: usize, place: usize) -> u64 {
        let Some(lane) = self.lane(worker) else {
            return 0;
        };
        let counters = lane.parts.worker.counters();
        if place < counters.len() {
            counters.get(place)
        } else {
            0
        }
    }

    /// Places for lanes; some may be empty.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is a lane to every worker that owns slots.
    pub(crate) fn are_complete(&self) -> bool {
        (0..self.workers).all(|worker| self.lane(worker).is_some())
    }

    /// The worker that announces its replies at `position` of our news.
    #[inline]
    pub(crate) fn worker_at(&self, position: usize) -> Option<usize> {
        let is_it = |lane: &Option<Lane>| {
            lane.as_ref()
                .is_some_and(|lane| lane.parts.our_position == position)
        };
        // Positions are given out in the order of workers, so the first look nearly always finds it.
        match self.lanes.get(position) {
            Some(lane) if is_it(lane) => Some(position),
            _ => self.lanes.iter().position(is_it),
        }
    }

    pub(crate) fn attach(&mut self, worker: usize, parts: LaneParts) {
        if self.lanes.len() <= worker {
            self.lanes.resize_with(worker + 1, || None);
            self.halves.resize_with(worker + 1, || None);
        }
        let lane = Lane {
            parts,
            waiting: VecDeque::new(),
            transfers: VecDeque::new(),
            dirty: false,
            is_down: false,
        };
        if let Some(place) = self.lanes.get_mut(worker) {
            *place = Some(lane);
        }
        if let Some(half) = self.halves.get_mut(worker) {
            *half = None;
        }
        self.count_blocked();
    }

    /// Ends the lane of link `link`; who waited in it is returned, to be told.
    pub(crate) fn detach(&mut self, link: u32) -> Vec<Who> {
        let mut orphans = Vec::new();
        for (place, half) in self.lanes.iter_mut().zip(&mut self.halves) {
            if place.as_ref().is_some_and(|lane| lane.parts.link == link)
                && let Some(lane) = place.take()
            {
                *half = None;
                orphans.extend(lane.waiting);
                orphans.extend(lane.transfers.iter().map(|transfer| transfer.who));
            }
        }
        self.count_blocked();
        orphans
    }

    /// Whether commands for `worker` can be taken. A worker that has died and comes back at once counts:
    /// its requests wait in the ring. One that keeps dying does not.
    #[inline]
    pub(crate) fn is_usable(&self, worker: usize) -> bool {
        self.lane(worker).is_some_and(|lane| !lane.is_down)
    }

    /// The supervisor says that `worker` is down for longer, or that it is not. Who waits for room in
    /// its ring is returned, to be told.
    pub(crate) fn set_down(&mut self, worker: usize, is_down: bool) -> Vec<Who> {
        let Some(lane) = self.lane_mut(worker) else {
            return Vec::new();
        };
        lane.is_down = is_down;
        let told = if is_down {
            lane.waiting.drain(..).collect()
        } else {
            Vec::new()
        };
        self.count_blocked();
        told
    }

    #[inline]
    fn lane(&self, worker: usize) -> Option<&Lane> {
        self.lanes.get(worker).and_then(Option::as_ref)
    }

    #[inline]
    fn lane_mut(&mut self, worker: usize) -> Option<&mut Lane> {
        self.lanes.get_mut(worker).and_then(Option::as_mut)
    }

    /// Room for a frame of `len` bytes (without padding). After filling it, `commit` the same length.
    #[inline]
    pub(crate) fn reserve(&mut self, worker: usize, len: usize) -> Result<&mut [u8], NoRoom> {
        let Some(lane) = self.lanes.get_mut(worker).and_then(Option::as_mut) else {
            return Err(NoRoom::Gone);
        };
        if lane.is_down {
            return Err(NoRoom::Gone);
        }
        if len > lane.parts.requests.largest() {
            return Err(NoRoom::TooBig);
        }
        // Who came first is served first, or a connection could wait for ever.
        if !lane.waiting.is_empty() {
            return Err(NoRoom::Full);
        }
        match lane.parts.requests.reserve(padded(len)) {
            Some(place) => Ok(place),
            None => Err(NoRoom::Full),
        }
    }

    /// The largest frame for `worker`.
    pub(crate) fn largest(&self, worker: usize) -> usize {
        let lane = self.lane(worker);
        lane.map_or(0, |lane| lane.parts.requests.largest())
    }

    /// The frame that was reserved last is complete.
    #[inline]
    pub(crate) fn commit(&mut self, worker: usize, len: usize) {
        if let Some(lane) = self.lanes.get_mut(worker).and_then(Option::as_mut) {
            lane.parts.requests.commit(padded(len));
            lane.dirty = true;
            self.unflushed += 1;
        }
    }

    /// `who` found no room: it is told by `serve_waiting` when there is some.
    pub(crate) fn wait_for_room(&mut self, worker: usize, who: Who) {
        if let Some(lane) = self.lane_mut(worker) {
            lane.waiting.push_back(who);
            lane.parts.requests.want_space();
        }
        self.count_blocked();
    }

    /// Takes a request whatever its size and whatever room there is.
    pub(crate) fn transfer(&mut self, worker: usize, transfer: Transfer) {
        if let Some(lane) = self.lane_mut(worker) {
            lane.transfers.push_back(transfer);
        }
        self.count_blocked();
    }

    /// The connection has its replies (`orphan` false) or is gone (true): its transfers are not kept
    /// for a successor of the worker any more.
    pub(crate) fn settle_transfers(&mut self, who: Who, orphan: bool) {
        for lane in self.lanes.iter_mut().flatten() {
            lane.transfers.retain_mut(|transfer| {
                if transfer.who == who {
                    transfer.orphan = true;
                    return orphan && !transfer.is_sent();
                }
                true
            });
        }
        self.count_blocked();
    }

    /// The worker has lost the beginning of this request with its predecessor.
    pub(crate) fn send_again(&mut self, worker: usize, who: Who) {
        if let Some(lane) = self.lane_mut(worker) {
            for transfer in lane
                .transfers
                .iter_mut()
                .filter(|transfer| transfer.who == who)
            {
                transfer.restart();
            }
        }
    }

    fn count_blocked(&mut self) {
        let blocked = self
            .lanes
            .iter()
            .flatten()
            .filter(|lane| !lane.waiting.is_empty() || !lane.transfers.is_empty())
            .count();
        self.blocked = u32::try_from(blocked).unwrap_or(u32::MAX);
    }

    /// Sends what transfers it can and moves connections whose turn has come to `ready`. Call it once
    /// per turn; costs nothing while nobody waits. True if there is more to send and room for it.
    pub(crate) fn serve_waiting(&mut self, ready: &mut Vec<Who>) -> bool {
        if self.blocked == 0 {
            return false;
        }
        let mut more = false;
        for lane in self.lanes.iter_mut().flatten() {
            let sent = lane.send_transfers();
            more |= sent.stopped_by_budget;
            self.unflushed += sent.frames;
            lane.release_waiting(ready);
        }
        self.count_blocked();
        more
    }

    /// Whether enough has been written that workers should start.
    #[inline]
    pub(crate) fn wants_flush(&self) -> bool {
        self.unflushed >= self.flush_every
    }

    /// Publishes what was written and wakes the workers that sleep.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if self.unflushed == 0 {
            return;
        }
        self.unflushed = 0;
        for lane in self.lanes.iter_mut().flatten() {
            if lane.dirty {
                lane.dirty = false;
                lane.parts.requests.publish();
                lane.ring();
            }
        }
    }

    /// Calls `each` with the rings of workers that have published something.
    #[inline]
    pub(crate) fn parts_mut(&mut self, worker: usize) -> Option<&mut LaneParts> {
        self.lane_mut(worker).map(|lane| &mut lane.parts)
    }

    /// All reply rings, and the reply of `worker` that has come in part.
    #[inline]
    pub(crate) fn read(&mut self, worker: usize) -> Option<(ReplyRings<'_>, &mut Option<Half>)> {
        let half = self.halves.get_mut(worker)?;
        Some((ReplyRings(&self.lanes), half))
    }

    /// All reply rings.
    #[inline]
    pub(crate) fn reply_rings(&self) -> ReplyRings<'_> {
        ReplyRings(&self.lanes)
    }

    /// The reply of `worker` that has come in part.
    pub(crate) fn half_mut(&mut self, worker: usize) -> Option<&mut Option<Half>> {
        self.halves.get_mut(worker)
    }

    /// The first `len` readable bytes of replies of `worker` are dealt with. They can be released, as
    /// far as none of them are lent.
    #[inline]
    pub(crate) fn consume(&mut self, worker: usize, len: usize) {
        if let Some(lane) = self.lane_mut(worker) {
            let replies = &mut lane.parts.replies;
            replies.consume(len);
            let is_much = replies.unreleased() > replies.capacity() / 4;
            self.is_unreleased = true;
            self.must_release |= is_much;
        }
    }

    /// Whether any replies are dealt with and not released.
    #[inline]
    pub(crate) fn is_unreleased(&self) -> bool {
        self.is_unreleased
    }

    /// Whether a worker must soon have room for replies.
    #[inline]
    pub(crate) fn must_release(&self) -> bool {
        self.must_release
    }

    /// The side ring to a worker.
    pub(crate) fn side_mut(&mut self, worker: usize) -> Option<&mut RingProducer> {
        self.lane_mut(worker).map(|lane| &mut lane.parts.side)
    }

    /// Makes what was written to the side ring visible, and wakes the worker.
    pub(crate) fn publish_side(&mut self, worker: usize) {
        if let Some(lane) = self.lane_mut(worker)
            && lane.parts.side.publish()
        {
            lane.ring();
        }
    }

    /// Gives the room of all consumed replies back to the workers; none of them may be lent.
    pub(crate) fn release(&mut self) {
        self.is_unreleased = false;
        self.must_release = false;
        for lane in self.lanes.iter_mut().flatten() {
            if lane.parts.replies.unreleased() > 0 && lane.parts.replies.release() {
                lane.ring();
            }
        }
    }
}

/// The reply rings of all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyRings<'a>(&'a [Option<Lane>]);

impl<'a> ReplyRings<'a> {
    /// What is readable in the ring of `worker`, and its position there.
    #[inline]
    pub(crate) fn readable(self, worker: usize) -> (&'a [u8], u64) {
        match self.0.get(worker) {
            Some(Some(lane)) => {
                let replies = &lane.parts.replies;
                (replies.readable(), replies.position())
            }
            _ => (&[], 0),
        }
    }
}

impl Rings for ReplyRings<'_> {
    #[inline]
    fn bytes(&self, place: InRing) -> &[u8] {
        let lane = self.0.get(usize::from(place.lane)).and_then(Option::as_ref);
        lane.and_then(|lane| {
            let replies = &lane.parts.replies;
            replies.kept(place.position, place.len as usize)
        })
        .unwrap_or_default()
    }
}

/// What a round of `send_transfers` did.
struct Sent {
    frames: u32,
    stopped_by_budget: bool,
}

impl Lane {
    /// Tells the worker that its ring from us has news, or that there is room in the other one.
    #[inline]
    fn ring(&self) {
        self.parts.worker.news().announce(self.parts.their_position);
        self.parts.worker.doorbell().ring(&self.parts.bell);
    }

    /// One piece of each transfer in turn until half of the ring is theirs or it is full.
    fn send_transfers(&mut self) -> Sent {
        let largest = self.parts.requests.largest();
        let mut budget = 2 * largest;
        let mut frames = 0;
        let mut done = 0;
        while done < self.transfers.len() && budget > 0 {
            let Some(mut transfer) = self.transfers.pop_front() else {
                break;
            };
            // What is said about a request comes behind it.
            let who = transfer.who;
            let is_early = transfer.is_about_another()
                && self
                    .transfers
                    .iter()
                    .any(|other| other.who == who && !other.is_sent() && !other.is_about_another());
            if is_early {
                done += 1;
                self.transfers.push_back(transfer);
                continue;
            }
            if transfer.is_sent() {
                done += 1;
                if !transfer.orphan {
                    self.transfers.push_back(transfer);
                }
                continue;
            }
            let len = transfer.next_frame(largest);
            let Some(place) = self.parts.requests.reserve(padded(len)) else {
                self.transfers.push_front(transfer);
                self.parts.requests.want_space();
                if self.parts.requests.free() < padded(len) {
                    break;
                }
                continue;
            };
            transfer.write_frame(&mut place[..len]);
            self.parts.requests.commit(padded(len));
            self.dirty = true;
            frames += 1;
            done = 0;
            budget = budget.saturating_sub(len);
            self.transfers.push_back(transfer);
        }
        Sent {
            frames,
            stopped_by_budget: budget == 0,
        }
    }

    /// Lets the connections that queue go on, all of them once a quarter of the ring is free: each
    /// queues again if it finds no room.
    fn release_waiting(&mut self, ready: &mut Vec<Who>) {
        if self.waiting.is_empty() {
            return;
        }
        if self.parts.requests.free() >= self.parts.requests.largest() {
            ready.extend(self.waiting.drain(..));
            return;
        }
        self.parts.requests.want_space();
        if self.parts.requests.free() >= self.parts.requests.largest() {
            ready.extend(self.waiting.drain(..));
        }
    }
}
