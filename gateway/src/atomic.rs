//! Commands over several workers that are executed as one: the coordinator.
//!
//! ```text
//!   all at once    Prepare ──> every worker: its slots are locked at once, or it says no
//!                  all have said yes?   Go ──> every worker: executes, replies, unlocks
//!                  else                 Abort ──> those that said yes, and then
//!   in turn        Prepare ──> one worker after the other, in their order; it queues there
//!                  the last has said yes?   Go
//! ```
//!
//! So what others see is all of it or nothing: between the first Go and the last nobody gets at a slot that
//! is locked. Nothing waits for ever: who asks all at once holds nothing while it waits for anything but
//! answers that come at once, and who asks in turn holds only locks of workers before the one it waits for.
//! What is prepared comes over the side ring, which never stops for a locked slot.
//!
//! The command waits for all earlier ones of its connection, and later ones wait for it.
//!
//! Death
//!   - The client goes: what is only prepared is aborted; after Go it is executed everywhere.
//!   - A worker goes before Go: its locks are gone; all others are aborted, and it begins again, in turn.
//!   - A worker goes after Go and before its reply: the outcome is unknown, and the client is told so. What only
//!     reads begins again; replies of the others to the first attempt are dropped.
//!   - The gateway goes: its locks are dropped with its links. If that is between one Go and the next, some
//!     workers have executed their parts and others never will: a record of what was decided is to come.
//!
//! Cost: two frames to each worker and two back, where a command in parts that are not atomic needs one.

use std::collections::VecDeque;
use std::rc::Rc;

use proto::CommandError;
use proto::catalogue::{Merge, StorageCommand, flag};
use proto::frame::{
    REQUEST_HEADER_BYTES, ReplyHeader, RequestHeader, RequestKind, flags as frame_flags,
    lock_answer, padded, request_len, write_request,
};

use crate::call::Call;
use crate::core::{Core, Flow, Ticket};
use crate::gather::{Finish, Gather};
use crate::lanes::Who;
use crate::router::header_for;

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its worker knows nothing of it.
    Idle,
    /// Its worker was asked.
    Asked,
    /// It has its locks.
    Locked,
    /// Its worker had locked its slots, or been asked to, and died.
    Lost,
}

/// How workers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    AllAtOnce,
    InTurn,
}

#[derive(Debug)]
struct Part {
    worker: usize,
    /// The request as a frame.
    frame: Vec<u8>,
    state: State,
}

/// A command under way.
#[derive(Debug)]
pub(crate) struct Atomic {
    ticket: Ticket,
    /// In the order of workers.
    parts: Vec<Part>,
    stage: Stage,
    /// It only reads.
    is_read: bool,
    /// A worker has no memory for its part.
    is_out_of_memory: bool,
    /// The workers were told to go; `None` before that.
    gather: Option<Box<Gather>>,
}

/// Something to be said over a side ring.
#[derive(Debug)]
struct Control {
    header: RequestHeader,
    bytes: Rc<[u8]>,
    sent: usize,
}

/// What has to be said over side rings, by worker.
#[derive(Debug, Default)]
pub(crate) struct Controls(Vec<VecDeque<Control>>);

impl Atomic {
    fn is_going(&self) -> bool {
        self.gather.is_none()
    }

    /// Whether it is the command with this number.
    pub(crate) fn is_of(&self, sequence: u32) -> bool {
        self.ticket.sequence == sequence
    }

    fn request(&self, at: usize) -> Option<RequestHeader> {
        RequestHeader::decode(&self.parts.get(at)?.frame).ok()
    }
}

impl Core {
    /// Splits a command by the owners of its keys and executes it as one.
    pub(crate) fn scatter_as_one(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
        merge: Merge,
        keys: (usize, usize, usize),
    ) -> Flow {
        if let Some(wait) = self.wait_for_earlier(call.index) {
            return wait;
        }
        let Some(connection) = self.get(call.index) else {
            return Flow::Stop;
        };
        let common = header_for(connection, call.index, command, 0, 0);
        let split = self.split(call, keys);
        let parts = split.shares.iter().map(|share| {
            let header = share.header(call, common);
            (
                share.worker,
                header,
                frame_of(header, share.arguments(call)),
            )
        });
        let order = split.order(merge);
        self.begin_as_one(call.index, parts.collect(), Finish::Join { merge, order })
    }

    /// Begins to execute requests of different workers, in their order, as one.
    fn begin_as_one(
        &mut self,
        index: u32,
        requests: Vec<(usize, RequestHeader, Vec<u8>)>,
        finish: Finish,
    ) -> Flow {
        if let Some((worker, ..)) = requests.iter().find(|it| !self.lanes.is_usable(it.0)) {
            return self.unavailable(index, *worker);
        }
        let command = requests
            .first()
            .and_then(|it| StorageCommand::from_u16(it.1.command));
        let is_read = command.is_some_and(|command| !command.spec().flags.has(flag::WRITE));
        let ticket = self.answer_later(index);
        let gather = Gather::new(ticket.sequence, ticket.muted, requests.len(), finish);
        let parts = (1u32..)
            .zip(requests)
            .map(|(part, (worker, header, mut frame))| {
                let header = RequestHeader {
                    part,
                    sequence: ticket.sequence,
                    len: u32::try_from(frame.len()).unwrap_or(u32::MAX),
                    ..header
                };
                if let Some(head) = frame.first_chunk_mut() {
                    header.encode(head);
                }
                let state = State::Idle;
                Part {
                    worker,
                    frame,
                    state,
                }
            });
        let atomic = Box::new(Atomic {
            ticket,
            parts: parts.collect(),
            stage: Stage::Begun,
            is_read,
            is_out_of_memory: false,
            gather: Some(Box::new(gather)),
        });
        self.go_on_as_one(index, atomic);
        Flow::Stop
    }

    /// Does what can be done next, as long as no answer is awaited.
    fn go_on_as_one(&mut self, index: u32, mut atomic: Box<Atomic>) {
        let is = |state| move |part: &Part| part.state == state;
        if !atomic.is_going() && !atomic.parts.iter().any(is(State::Asked)) {
            if atomic.is_out_of_memory {
                return self.give_up(&mut atomic, &CommandError::OutOfMemory);
            }
            if let Some(part) = atomic
                .parts
                .iter()
                .find(|part| !self.lanes.is_usable(part.worker))
            {
                tracing::debug!(worker = part.worker, "given up: the worker is not there");
                let what = "the storage worker of this key";
                return self.give_up(&mut atomic, &CommandError::Unavailable { what });
            }
            if atomic.parts.iter().all(is(State::Locked)) {
                self.go(index, &mut atomic);
            } else if atomic.stage == Stage::Begun {
                atomic.stage = Stage::AllAtOnce;
                (0..atomic.parts.len()).for_each(|at| self.prepare(&mut atomic, at));
            } else {
                if atomic.stage == Stage::AllAtOnce || atomic.parts.iter().any(is(State::Lost)) {
                    self.unlock(&mut atomic);
                    atomic.stage = Stage::InTurn;
                }
                if let Some(next) = atomic.parts.iter().position(is(State::Idle)) {
                    self.prepare(&mut atomic, next);
                }
            }
        }
        if let Some(connection) = self.get_mut(index) {
            connection.atomic = Some(atomic);
        }
        self.send_controls();
    }

    /// Asks a worker to lock the slots of a part.
    fn prepare(&mut self, atomic: &mut Atomic, at: usize) {
        let Some(mut header) = atomic.request(at) else {
            return;
        };
        if atomic.stage == Stage::InTurn {
            header.flags |= frame_flags::IN_TURN;
        }
        let part = &mut atomic.parts[at];
        part.state = State::Asked;
        if let Some(head) = part.frame.first_chunk_mut() {
            header.encode(head);
        }
        let bytes = Rc::from(&part.frame[..]);
        self.control(part.worker, RequestKind::Prepare, header, bytes);
    }

    /// Unlocks what is locked; everything is to be asked for again.
    fn unlock(&mut self, atomic: &mut Atomic) {
        for at in 0..atomic.parts.len() {
            if let Some(header) = atomic.request(at)
                && matches!(atomic.parts[at].state, State::Locked | State::Asked)
            {
                self.control(
                    atomic.parts[at].worker,
                    RequestKind::Abort,
                    header,
                    Rc::from([]),
                );
            }
            atomic.parts[at].state = State::Idle;
        }
    }

    /// Everything is locked: all workers execute their parts.
    fn go(&mut self, index: u32, atomic: &mut Atomic) {
        for at in 0..atomic.parts.len() {
            if let Some(header) = atomic.request(at) {
                self.control(
                    atomic.parts[at].worker,
                    RequestKind::Go,
                    header,
                    Rc::from([]),
                );
            }
        }
        if let Some(gather) = atomic.gather.take()
            && let Some(connection) = self.get_mut(index)
        {
            connection.gathers.push_back(gather);
        }
    }

    fn give_up(&mut self, atomic: &mut Atomic, error: &CommandError) {
        self.unlock(atomic);
        let mut reply = Vec::new();
        error.write_resp(&mut reply);
        self.count_error(&error.code());
        self.deliver(atomic.ticket, &reply);
        self.send_controls();
    }

    /// A worker says whether it has locked the slots of a part.
    pub(crate) fn take_lock_answer(&mut self, index: u32, header: &ReplyHeader) {
        let atomic = self.get_mut(index).and_then(|connection| {
            let is_it = |atomic: &mut Box<Atomic>| atomic.ticket.sequence == header.sequence;
            connection.atomic.take_if(is_it)
        });
        let Some(mut atomic) = atomic else {
            tracing::error!(?header, "a lock that nobody awaits");
            return;
        };
        let part = usize::from(header.part).checked_sub(1);
        let part = part.and_then(|at| atomic.parts.get_mut(at));
        if let Some(part) = part.filter(|part| part.state == State::Asked) {
            // One that said no is asked again when it is its turn.
            part.state = if header.count == lock_answer::LOCKED {
                State::Locked
            } else {
                State::Idle
            };
            atomic.is_out_of_memory |= header.count == lock_answer::OUT_OF_MEMORY;
        }
        self.go_on_as_one(index, atomic);
    }

    /// A worker has a successor, which knows of no locks.
    pub(crate) fn locks_are_lost(&mut self, worker: usize) {
        if let Some(controls) = self.controls.0.get_mut(worker) {
            controls.clear();
        }
        for index in 0..self.connections.len() {
            let atomic = self.connections[index]
                .as_mut()
                .and_then(|it| it.atomic.take());
            let Some(mut atomic) = atomic else { continue };
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let Some(at) = atomic.parts.iter().position(|part| part.worker == worker) else {
                if let Some(connection) = self.get_mut(index) {
                    connection.atomic = Some(atomic);
                }
                continue;
            };
            if atomic.is_going() {
                self.has_died_inside(index, atomic, at);
                continue;
            }
            if atomic.parts[at].state != State::Idle {
                atomic.parts[at].state = State::Lost;
            }
            self.go_on_as_one(index, atomic);
        }
    }

    /// A worker was told to go, and died. If its reply has not come nobody knows whether it has; what only
    /// reads is done again.
    fn has_died_inside(&mut self, index: u32, mut atomic: Box<Atomic>, at: usize) {
        let sequence = atomic.ticket.sequence;
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        let mut gathers = connection.gathers.iter();
        let place = gathers.position(|gather| gather.sequence == sequence);
        let Some(place) = place else { return };
        let part = u16::try_from(at + 1).unwrap_or(u16::MAX);
        if connection.gathers[place].has(part) {
            connection.atomic = Some(atomic);
            return;
        }
        if atomic.is_read {
            let Some(gather) = connection.gathers.remove(place) else {
                return;
            };
            let (muted, finish) = (gather.muted, gather.finish);
            let gather = Gather::new(sequence, muted, atomic.parts.len(), finish);
            atomic.gather = Some(Box::new(gather));
            atomic.stage = Stage::InTurn;
            let parts = atomic.parts.iter_mut();
            parts.for_each(|part| part.state = State::Idle);
            return self.go_on_as_one(index, atomic);
        }
        connection.atomic = Some(atomic);
        let mut error = Vec::new();
        CommandError::OutcomeUnknown.write_resp(&mut error);
        if let Ok(true) = connection.gathers[place].take(part, true, true, &error)
            && let Some(gather) = connection.gathers.remove(place)
        {
            self.finish_gather(index, gather);
        }
    }

    /// The connection is gone: what was not told to go will not.
    pub(crate) fn cancel_as_one(&mut self, who: Who) {
        let atomic = self
            .find_mut(who)
            .and_then(|connection| connection.atomic.take());
        if let Some(mut atomic) = atomic.filter(|atomic| !atomic.is_going()) {
            self.unlock(&mut atomic);
            self.send_controls();
        }
    }

    fn control(
        &mut self,
        worker: usize,
        kind: RequestKind,
        header: RequestHeader,
        bytes: Rc<[u8]>,
    ) {
        if self.controls.0.len() <= worker {
            self.controls.0.resize_with(worker + 1, VecDeque::new);
        }
        let header = RequestHeader { kind, ..header };
        let sent = 0;
        self.controls.0[worker].push_back(Control {
            header,
            bytes,
            sent,
        });
    }

    /// Says what is to be said over side rings, as far as there is room. Successors of workers are told
    /// first who waits.
    pub(crate) fn send_controls(&mut self) {
        for worker in 0..self.controls.0.len() {
            if self.controls.0[worker].is_empty() || self.is_telling(worker) {
                continue;
            }
            let mut queue = std::mem::take(&mut self.controls.0[worker]);
            self.send_controls_of(worker, &mut queue);
            self.controls.0[worker] = queue;
        }
    }

    fn send_controls_of(&mut self, worker: usize, queue: &mut VecDeque<Control>) {
        let Some(side) = self.lanes.side_mut(worker) else {
            return queue.clear();
        };
        let most = side.largest() - REQUEST_HEADER_BYTES;
        while let Some(control) = queue.front_mut() {
            let rest = &control.bytes[control.sent..];
            let piece = &rest[..rest.len().min(most)];
            let len = REQUEST_HEADER_BYTES + piece.len();
            if side.reserve(padded(len)).is_none() {
                side.want_space();
            }
            // The room may have come between the look and the question.
            let Some(place) = side.reserve(padded(len)) else {
                break;
            };
            let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let header = RequestHeader {
                len: number(len),
                argc: number(control.bytes.len()),
                part: number(control.sent),
                ..control.header
            };
            if let Some((head, body)) = place.split_first_chunk_mut() {
                header.encode(head);
                body[..piece.len()].copy_from_slice(piece);
                body[piece.len()..].fill(0);
            }
            side.commit(padded(len));
            control.sent += piece.len();
            if control.sent == control.bytes.len() {
                queue.pop_front();
            }
        }
        self.lanes.note_controls(worker);
    }

    /// Whether something is left to be said over side rings.
    pub(crate) fn has_controls(&self) -> bool {
        self.controls.0.iter().any(|queue| !queue.is_empty())
    }
}

/// A request as a frame.
fn frame_of<'a>(
    header: RequestHeader,
    arguments: impl Iterator<Item = &'a [u8]> + Clone,
) -> Vec<u8> {
    let mut frame = vec![0; request_len(arguments.clone())];
    // It fits: the length was computed from the same arguments.
    let _ = write_request(&mut frame, header, arguments);
    frame
}
