//! Sends commands to storage workers: which one, in which form.
//!
//! ```text
//!   Owner          keys on one worker              one frame, one reply, no bookkeeping
//!   Scatter        several keys                    as Owner, or over several workers (`crossing`)
//!   Together       several keys                    the same
//!   Script         keys, or none                   the same; see `scripts`
//!   Every          all keys                        over all workers (`crossing`)
//!   Cursor         SCAN                            the worker that owns the cursor's slot
//!   RandomWorker   RANDOMKEY                       by number of keys
//! ```
//!
//! With one worker, or with hash tags, every command is `Owner`.
//!
//! The router acts on columns of the row, never on the identity of a command.
//!
//! Cost of `Owner`: the slot of the key, one load of the slot map, one reservation, one copy.

use proto::CommandError;
use proto::catalogue::{KeyAt, KeySpec, Merge, Reach, Route, Spec, StorageCommand, routing_keys};
use proto::frame::{
    REQUEST_HEADER_BYTES, RequestHeader, RequestKind, flags as frame_flags, request_len,
    write_request,
};
use proto::slot::slot_of;

use crate::call::Call;
use crate::connection::{Connection, Wait};
use crate::core::{Core, Flow};
use crate::gather::{Finish, Gather};
use crate::lanes::NoRoom;
use crate::transfer::Transfer;

/// A command that is too big for one frame, already in the order of replies; whoever owns its bytes
/// makes the transfer.
#[derive(Debug)]
pub(crate) struct Large {
    pub(crate) worker: usize,
    pub(crate) header: RequestHeader,
}

/// Where the keys of a command live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// All on one worker; the slot is the first key's.
    One { worker: usize, slot: u16 },
    /// On several; the slot is the first key's.
    Several { slot: u16 },
}

/// A header for a command of this connection; sequence, part and length are filled in later.
#[inline]
pub(crate) fn header_for(
    connection: &Connection,
    index: u32,
    command: StorageCommand,
    slot: u16,
    argc: usize,
) -> RequestHeader {
    let mut flags = 0;
    if connection.facts.resp3 {
        flags |= frame_flags::RESP3;
    }
    if connection.facts.no_touch {
        flags |= frame_flags::NO_TOUCH;
    }
    RequestHeader {
        len: 0,
        kind: RequestKind::Request,
        flags,
        command: command as u16,
        connection: index,
        generation: connection.generation,
        sequence: connection.replies.upcoming(),
        slot,
        database: connection.database,
        argc: u32::try_from(argc).unwrap_or(u32::MAX),
        part: 0,
    }
}

impl Core {
    /// Sends a storage command on its way.
    #[inline]
    pub(crate) fn route(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
    ) -> Flow {
        if spec.route == Route::Owner && spec.keys == KeySpec::One {
            let slot = slot_of(call.arg(1));
            let worker = self.lanes.owner(slot);
            return self.send(call, command, worker, slot);
        }
        self.route_unusual(call, spec, command)
    }

    fn route_unusual(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
    ) -> Flow {
        match spec.route {
            Route::Every(Merge::First) => self.send(call, command, 0, 0),
            Route::Every(_) if self.lanes.workers() > 1 => self.cross(call, spec, command, 0),
            Route::Cursor if self.lanes.workers() > 1 => self.scan(call, command),
            Route::RandomWorker if self.lanes.workers() > 1 => self.random_key(call, command),
            Route::Every(_) | Route::Cursor | Route::RandomWorker => self.send(call, command, 0, 0),
            Route::Gateway => self.error(call.index, &CommandError::Internal),
            Route::Together if spec.keys.range(call.len()).is_none() => {
                match self.place_of_found(call, spec) {
                    Place::One { worker, slot } => {
                        self.send_to_one(call, spec, command, worker, slot)
                    }
                    Place::Several { slot } => self.cross(call, spec, command, slot),
                }
            }
            Route::Script => self.route_script(call, spec, command),
            Route::Owner | Route::Scatter(_) | Route::Together => {
                let (first, last, step) = match self.keys_of(call, spec) {
                    Ok(range) => range,
                    Err(error) => return self.error(call.index, &error),
                };
                match self.place_of(call, first, last, step) {
                    Place::One { worker, slot } => {
                        self.send_to_one(call, spec, command, worker, slot)
                    }
                    Place::Several { slot } => self.cross(call, spec, command, slot),
                }
            }
        }
    }

    /// One frame for one worker, which may let the command wait.
    fn send_to_one(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
        worker: usize,
        slot: u16,
    ) -> Flow {
        if spec.may_wait(call.len(), |at| call.arg(at)) {
            self.send_blocking(call, command, worker, slot, 0)
        } else {
            self.send(call, command, worker, slot)
        }
    }

    /// First, last and step of the keys of a command whose row says it.
    pub(crate) fn keys_of(
        &self,
        call: &Call<'_>,
        spec: &'static Spec,
    ) -> Result<(usize, usize, usize), CommandError> {
        let Some((first, last, step)) = spec.keys.range(call.len()) else {
            return Ok((0, 0, 1));
        };
        // Pairs must be complete: MSET a 1 b.
        let is_whole = last >= first && (last + 1 - first).is_multiple_of(step);
        if !is_whole || last >= call.len() {
            return Err(CommandError::Arity { name: spec.name });
        }
        // Of a pair the row counts the value too.
        Ok((first, last + 1 - step, step))
    }

    /// Where the keys of a command live whose arguments must be read to find them. A request that is
    /// not understood goes to any worker, which refuses it.
    fn place_of_found(&mut self, call: &Call<'_>, spec: &'static Spec) -> Place {
        let (keys, is_known) = self.found_keys_of(call, spec);
        let mut slots = keys
            .iter()
            .map(|key| slot_of(call.arg(key.position as usize)));
        let slot = slots.next().unwrap_or(0);
        let worker = self.lanes.owner(slot);
        let is_one = self.lanes.workers() == 1
            || (is_known && slots.all(|slot| self.lanes.owner(slot) == worker));
        self.found_keys = keys;
        if is_one {
            Place::One { worker, slot }
        } else {
            Place::Several { slot }
        }
    }

    /// The keys of a command whose arguments must be read to find them, and whether these are all. Their
    /// vector is to be given back.
    pub(crate) fn found_keys_of(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
    ) -> (Vec<KeyAt>, bool) {
        let mut keys = std::mem::take(&mut self.found_keys);
        keys.clear();
        let reach = routing_keys(spec, call.len(), |at| call.arg(at), &mut keys);
        (keys, reach == Reach::Keys)
    }

    /// Where the keys at these positions live. Position 0 (the name) stands for no key.
    pub(crate) fn place_of(
        &self,
        call: &Call<'_>,
        first: usize,
        last: usize,
        step: usize,
    ) -> Place {
        if first == 0 {
            return Place::One { worker: 0, slot: 0 };
        }
        let slot = slot_of(call.arg(first));
        let worker = self.lanes.owner(slot);
        if self.lanes.workers() > 1 {
            for position in (first..=last).step_by(step.max(1)).skip(1) {
                if self.lanes.owner(slot_of(call.arg(position))) != worker {
                    return Place::Several { slot };
                }
            }
        }
        Place::One { worker, slot }
    }

    /// One frame for one worker.
    #[inline]
    pub(crate) fn send(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
        worker: usize,
        slot: u16,
    ) -> Flow {
        let len = request_len(call.args(1));
        let Some(connection) = self
            .connections
            .get_mut(call.index as usize)
            .and_then(Option::as_mut)
        else {
            return Flow::Stop;
        };
        let mut header = header_for(connection, call.index, command, slot, call.len());
        match self.lanes.reserve(worker, len) {
            Ok(place) => {
                if connection.is_muted() {
                    // It cannot be called back, so nothing before it may be, either.
                    if connection.replies.in_flight() > 0 {
                        connection.wait = Wait::Earlier;
                        return Flow::Retry;
                    }
                    header.flags |= frame_flags::DISCARD;
                    connection.note_unseen(worker);
                } else {
                    connection.replies.assign();
                }
                if write_request(place, header, call.args(1)).is_none() {
                    return self
                        .internal_error(call.index, "a request did not fit its reservation");
                }
                self.lanes.commit(worker, len);
                if self.lanes.wants_flush() {
                    self.lanes.flush();
                }
                Flow::Next
            }
            Err(NoRoom::Full) => {
                connection.wait = Wait::Room;
                let who = connection.who(call.index);
                self.tally.ring_full += 1;
                self.lanes.wait_for_room(worker, who);
                Flow::Retry
            }
            Err(NoRoom::TooBig) => self.send_too_big(call.index, worker, header),
            Err(NoRoom::Gone) => self.unavailable(call.index, worker),
        }
    }

    /// The command travels as a transfer: it must be tracked even if nobody wants its reply.
    #[cold]
    pub(crate) fn send_too_big(
        &mut self,
        index: u32,
        worker: usize,
        mut header: RequestHeader,
    ) -> Flow {
        // A transfer cannot be called back, so nothing before it may be, either.
        if let Some(wait) = self.wait_for_earlier(index) {
            return wait;
        }
        let Some(connection) = self.get_mut(index) else {
            return Flow::Stop;
        };
        header.sequence = connection.replies.assign();
        if connection.is_muted() {
            header.part = 1;
            let gather = Gather::new(header.sequence, true, 1, Finish::Drop);
            connection.gathers.push_back(Box::new(gather));
        }
        connection.wait = Wait::Transfer;
        self.large = Some(Box::new(Large { worker, header }));
        Flow::Stop
    }

    #[cold]
    pub(crate) fn unavailable(&mut self, index: u32, worker: usize) -> Flow {
        tracing::debug!(worker, "refused a command: the worker is not there");
        self.error(
            index,
            &CommandError::Unavailable {
                what: "the storage worker of this key",
            },
        )
    }

    #[cold]
    pub(crate) fn internal_error(&mut self, index: u32, what: &str) -> Flow {
        tracing::error!(what, "internal error");
        self.error(index, &CommandError::Internal)
    }

    /// `Some` if a part of the command, for `worker`, may have to become a transfer and earlier commands
    /// are unanswered: those might be called back, but no transfer can.
    pub(crate) fn wait_for_room_or_earlier(
        &mut self,
        call: &Call<'_>,
        worker: usize,
    ) -> Option<Flow> {
        let len = request_len(call.args(1));
        if self.lanes.reserve(worker, len).is_ok() {
            return None;
        }
        self.wait_for_earlier(call.index)
    }

    /// Takes the next place in the order of replies for a command with `parts` parts; returns the
    /// header of its first part.
    pub(crate) fn gather(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
        parts: usize,
        finish: Finish,
    ) -> Option<RequestHeader> {
        let connection = self.get(call.index)?;
        let header = header_for(connection, call.index, command, 0, call.len());
        self.gather_for(call.index, header, parts, finish)
    }

    /// The same for a command with this header.
    pub(crate) fn gather_for(
        &mut self,
        index: u32,
        mut header: RequestHeader,
        parts: usize,
        finish: Finish,
    ) -> Option<RequestHeader> {
        let connection = self.get_mut(index)?;
        header.sequence = connection.replies.assign();
        header.part = 1;
        let gather = Gather::new(header.sequence, connection.is_muted(), parts, finish);
        connection.gathers.push_back(Box::new(gather));
        Some(header)
    }

    /// Sends a part. It always goes on its way: what finds no room, or is too big for one frame, is
    /// copied and sent when it can be, and its connection waits.
    pub(crate) fn send_or_keep<'a>(
        &mut self,
        worker: usize,
        header: RequestHeader,
        arguments: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let len = request_len(arguments.clone());
        if self.joins_recalled(worker, header, arguments.clone()) {
            return;
        }
        if let Ok(place) = self.lanes.reserve(worker, len) {
            if write_request(place, header, arguments).is_some() {
                self.lanes.commit(worker, len);
            }
            return;
        }
        let mut bytes = Vec::with_capacity(len - REQUEST_HEADER_BYTES);
        let mut spans = Vec::new();
        for argument in arguments {
            let start = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            spans.push((start, u32::try_from(argument.len()).unwrap_or(u32::MAX)));
            bytes.extend_from_slice(argument);
        }
        self.lanes
            .transfer(worker, Transfer::new(header, bytes, spans));
        if let Some(connection) = self.get_mut(header.connection)
            && connection.wait == Wait::Nothing
        {
            connection.wait = Wait::Transfer;
        }
    }

    /// The connection stops if one of the parts could not be sent at once.
    pub(crate) fn after_parts(&mut self, index: u32) -> Flow {
        if self.lanes.wants_flush() {
            self.lanes.flush();
        }
        match self.get(index) {
            Some(connection) if connection.wait == Wait::Nothing => Flow::Next,
            _ => Flow::Stop,
        }
    }
}
