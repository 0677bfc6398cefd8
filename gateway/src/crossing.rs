//! Commands over keys of several workers.
//!
//! ```text
//!   MSET a 1 b 2 ──> one request to one worker, marked: it visits the others and runs all of it
//! ```
//!
//! Its worker runs it when it comes to it; earlier commands of the connection must have been answered by
//! then, wherever they run, and later ones must not run before it anywhere. So it waits for the earlier ones, and
//! later ones wait for it, unless they go to the same worker: those are behind it in one ring. A pipeline of such
//! commands stays with one worker and waits for nothing.
//!
//! Commands without a reply (CLIENT REPLY OFF) are not in the order of replies, so nobody sees that they have run.
//! Each worker that got one is asked for a sign before the first command over several workers behind them.
//!
//! Not here: transactions over several workers (`transaction`), what the worker does.

use proto::catalogue::{CommandRef, KeySpec, Merge, Route, Spec, StorageCommand};
use proto::frame::{RequestHeader, flags as frame_flags, request_len, write_request};
use proto::slot::slot_of;

use crate::call::Call;
use crate::connection::{Connection, Wait};
use crate::core::{Core, Flow};
use crate::gather::{Finish, Gather};
use crate::internal::{Request, WATCH_KEYS};
use crate::lanes::NoRoom;
use crate::router::header_for;

impl Connection {
    /// A command over several workers is on its way to this one.
    pub(crate) fn begin_crossing(&mut self, worker: usize) {
        self.facts.crossing = true;
        self.crossing_at = u16::try_from(worker).unwrap_or(u16::MAX);
        self.facts.settle();
    }

    /// A command without a reply is on its way to this worker.
    pub(crate) fn note_unseen(&mut self, worker: usize) {
        self.unseen_at |= bit_of(worker);
    }

    /// The worker that an unanswered command over several workers went to.
    fn crossing(&self) -> Option<usize> {
        let is_under_way = self.facts.crossing && self.replies.in_flight() > 0;
        is_under_way.then_some(usize::from(self.crossing_at))
    }
}

/// Workers beyond the number of bits share them.
fn bit_of(worker: usize) -> u32 {
    1 << (worker % u32::BITS as usize)
}

impl Core {
    /// Sends a command with keys of several workers, of which `slot` is the first one's, to one of them.
    pub(crate) fn cross(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
        slot: u16,
    ) -> Flow {
        self.cross_with(call, spec, command, (slot, 0))
    }

    /// The same with flags of its request.
    pub(crate) fn cross_with(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
        (slot, flags): (u16, u8),
    ) -> Flow {
        let Some(connection) = self.get(call.index) else {
            return Flow::Stop;
        };
        let under_way = connection.crossing();
        let worker = under_way.unwrap_or_else(|| self.lanes.owner(slot));
        let may_wait = spec.may_wait(call.len(), |at| call.arg(at));
        if (under_way.is_none() || may_wait)
            && let Some(wait) = self.wait_for_earlier(call.index)
        {
            return wait;
        }
        if let Some(worker) = self.missing_owner(call, spec) {
            return self.unavailable(call.index, worker);
        }
        if let Some(wait) = self.wait_for_unseen(call.index, worker) {
            return wait;
        }
        if may_wait {
            // Nothing of the connection runs before it is answered anyway.
            return self.send_blocking(call, command, worker, slot, frame_flags::CROSSING);
        }
        if spec.route == Route::Script {
            self.note_unit(call.index);
        }
        self.send_crossing(call, command, worker, (slot, flags))
    }

    fn send_crossing(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
        worker: usize,
        (slot, flags): (u16, u8),
    ) -> Flow {
        let len = request_len(call.args(1));
        let Some(connection) = self
            .connections
            .get_mut(call.index as usize)
            .and_then(Option::as_mut)
        else {
            return Flow::Stop;
        };
        // Even a reply that nobody wants to see says that the connection may go on.
        let is_muted = connection.is_muted();
        let mut header = RequestHeader {
            part: u32::from(is_muted),
            ..header_for(connection, call.index, command, slot, call.len())
        };
        header.flags |= frame_flags::CROSSING | flags;
        match self.lanes.reserve(worker, len) {
            Ok(place) => {
                if write_request(place, header, call.args(1)).is_none() {
                    return self
                        .internal_error(call.index, "a request did not fit its reservation");
                }
                self.lanes.commit(worker, len);
                let sequence = connection.replies.assign();
                if is_muted {
                    let gather = Gather::new(sequence, true, 1, Finish::Drop);
                    connection.gathers.push_back(Box::new(gather));
                }
                connection.begin_crossing(worker);
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
            Err(NoRoom::TooBig) => {
                let flow = self.send_too_big(call.index, worker, header);
                if flow == Flow::Stop
                    && let Some(connection) = self.get_mut(call.index)
                {
                    connection.begin_crossing(worker);
                }
                flow
            }
            Err(NoRoom::Gone) => self.unavailable(call.index, worker),
        }
    }

    /// Commands without a reply may still be on their way to other workers than this one: `Some` until they have
    /// run. Nothing else of the connection is under way.
    pub(crate) fn wait_for_unseen(&mut self, index: u32, worker: usize) -> Option<Flow> {
        let is_shared = self.lanes.workers() > u32::BITS as usize;
        let own = if is_shared { 0 } else { bit_of(worker) };
        let connection = self.get_mut(index)?;
        let unseen = connection.unseen_at;
        if unseen & !own == 0 {
            return None;
        }
        connection.unseen_at = 0;
        let is_asked =
            |worker: &usize| unseen & bit_of(*worker) != 0 && self.lanes.is_usable(*worker);
        let workers = (0..self.lanes.workers()).filter(is_asked);
        // Watching no key is nothing, and answered in its turn.
        let requests = workers.map(|worker| Request {
            command: WATCH_KEYS,
            worker,
            slot: 0,
            database: None,
            for_client: false,
            arguments: Vec::new(),
        });
        let requests: Vec<Request> = requests.collect();
        if requests.is_empty() {
            return None;
        }
        let ticket = self.answer_later(index);
        self.send_step(ticket, requests, Finish::Drop);
        Some(Flow::Retry)
    }

    /// An owner of one of the keys that is not there.
    fn missing_owner(&mut self, call: &Call<'_>, spec: &'static Spec) -> Option<usize> {
        let workers = self.lanes.workers();
        let is_missing = |core: &Self, worker: &usize| !core.lanes.is_usable(*worker);
        if matches!(spec.route, Route::Every(_) | Route::Script) {
            return (0..workers).find(|worker| is_missing(self, worker));
        }
        let (keys, is_known) = self.found_keys_of(call, spec);
        let mut owners = keys
            .iter()
            .map(|key| self.lanes.owner(slot_of(call.arg(key.position as usize))));
        let missing = if is_known {
            owners.find(|worker| is_missing(self, worker))
        } else {
            (0..workers).find(|worker| is_missing(self, worker))
        };
        self.found_keys = keys;
        missing
    }

    /// A command over several workers is under way: `Some` if the next command has to wait for it.
    pub(crate) fn wait_for_crossing(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
    ) -> Option<Flow> {
        let connection = self.get_mut(call.index)?;
        let Some(worker) = connection.crossing() else {
            connection.facts.crossing = false;
            connection.facts.settle();
            return None;
        };
        let goes_there = match (spec.command, spec.route) {
            (CommandRef::Storage(_), Route::Owner) if spec.keys == KeySpec::One => {
                self.lanes.owner(slot_of(call.arg(1))) == worker
            }
            (CommandRef::Storage(_), Route::Scatter(_) | Route::Together) => {
                self.crosses(call, spec, worker)
            }
            // Any worker would do, but this is the one that it goes to.
            (CommandRef::Storage(_), Route::Every(Merge::First)) => worker == 0,
            (CommandRef::Storage(command), Route::Script) => {
                self.script_goes_to(call, command, worker)
            }
            (CommandRef::Storage(_), Route::Every(_)) => true,
            _ => false,
        };
        if goes_there {
            return None;
        }
        self.wait_for_earlier(call.index)
    }

    /// Whether a command with several keys goes to this worker: because it crosses, too, or has all of them there.
    fn crosses(&mut self, call: &Call<'_>, spec: &'static Spec, worker: usize) -> bool {
        let (keys, is_known) = self.found_keys_of(call, spec);
        let mut owners = keys
            .iter()
            .map(|key| self.lanes.owner(slot_of(call.arg(key.position as usize))));
        let first = owners.next();
        let is_one = is_known && owners.all(|owner| Some(owner) == first);
        self.found_keys = keys;
        !is_one || first == Some(worker)
    }
}
