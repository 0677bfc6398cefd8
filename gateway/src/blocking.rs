//! Commands that may wait at a storage worker: BLPOP and the like.
//!
//! ```text
//!   command ──> ring                      connection: Wait::Blocked, command and worker are kept
//!   reply   <── at once, or
//!   memo    <── it waits: CLIENT LIST says so, INFO counts it
//!   reply   <── somebody pushed, its time is over, it was unblocked: the connection goes on
//!
//!   client gone          ──> Cancel
//!   CLIENT UNBLOCK       ──> Unblock; the reply says whether it was in time
//!   worker's successor asks  ──> all that wait there, with their memos, on the side ring
//! ```
//!
//! The connection runs nothing further until the reply is there, as in Redis. What the worker knows of
//! its waiters dies with it, so command and memo stay here until then.
//!
//! Invariants
//!   B1  `Wait::Blocked` if and only if `Connection::blocking` is set; its command is the latest.
//!   B2  A worker hears `Cancel` behind the request that it cancels.
//!
//! Cost: a copy of the arguments and one allocation per command that may wait; nothing for others.
//! Not here: who is served when, time-outs (the worker).

use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::frame::{
    REQUEST_HEADER_BYTES, ReplyHeader, ReplyKind, RequestHeader, RequestKind, reply_flags,
    request_len, write_request,
};

use crate::call::Call;
use crate::connection::Wait;
use crate::core::{Core, Flow, Ticket};
use crate::gather::{Finish, Gather};
use crate::lanes::{NoRoom, Who};
use crate::mail::{Answer, Asker};
use crate::router::header_for;
use crate::transfer::{Span, Transfer};

/// A command that may wait, or does.
#[derive(Debug)]
pub(crate) struct Blocking {
    pub(crate) worker: usize,
    pub(crate) header: RequestHeader,
    bytes: Vec<u8>,
    /// The arguments without the name.
    spans: Vec<Span>,
    /// What the worker told about it; empty as long as it has not said that it waits.
    memo: Vec<u8>,
    /// The beginning of a memo that comes in pieces.
    memo_begun: Vec<u8>,
    /// Who has asked to unblock it and is to be told whether that was in time.
    asker: Option<Asker>,
    /// It was.
    is_unblocked: bool,
}

impl Blocking {
    fn new(worker: usize, header: RequestHeader, call: &Call<'_>) -> Self {
        let len = request_len(call.args(1)) - REQUEST_HEADER_BYTES;
        let mut bytes = Vec::with_capacity(len);
        let mut spans = Vec::with_capacity(call.len());
        for argument in call.args(1) {
            let start = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            spans.push((start, u32::try_from(argument.len()).unwrap_or(u32::MAX)));
            bytes.extend_from_slice(argument);
        }
        Self {
            worker,
            header,
            bytes,
            spans,
            memo: Vec::new(),
            memo_begun: Vec::new(),
            asker: None,
            is_unblocked: false,
        }
    }

    /// Takes a piece of the memo; true when it is complete.
    fn take_memo(&mut self, kind: ReplyKind, bytes: &[u8]) -> bool {
        self.memo_begun.extend_from_slice(bytes);
        let is_complete = kind != ReplyKind::ReplyPart;
        if is_complete {
            self.memo = std::mem::take(&mut self.memo_begun);
        }
        is_complete
    }

    /// Bytes of its arguments.
    pub(crate) fn argument_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What the worker had begun to tell, its successor tells again.
    pub(crate) fn forget_begun_memo(&mut self) {
        self.memo_begun.clear();
    }

    /// Whether the worker has said that the command waits. If not, it is in the request ring, or its
    /// reply is on its way.
    pub(crate) fn waits(&self) -> bool {
        !self.memo.is_empty()
    }

    /// Memo and request frame, as a successor of the worker wants them.
    pub(crate) fn to_successor(&self) -> Vec<u8> {
        let arguments = self.spans.iter().map(|&(start, len)| {
            let end = start as usize + len as usize;
            self.bytes.get(start as usize..end).unwrap_or_default()
        });
        let start = 4 + self.memo.len();
        let mut out = vec![0; start + request_len(arguments.clone())];
        let memo_len = u32::try_from(self.memo.len()).unwrap_or(u32::MAX);
        out[..4].copy_from_slice(&memo_len.to_le_bytes());
        out[4..start].copy_from_slice(&self.memo);
        // It fits: the length was computed from the same arguments.
        let _ = write_request(&mut out[start..], self.header, arguments);
        out
    }
}

impl Core {
    /// Sends a command that may wait.
    pub(crate) fn send_blocking(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
        worker: usize,
        slot: u16,
        flags: u8,
    ) -> Flow {
        // Earlier commands on other workers come first: the client may be seen by others to wait.
        if self.lanes.workers() > 1
            && let Some(wait) = self.wait_for_earlier(call.index)
        {
            return wait;
        }
        let len = request_len(call.args(1));
        let Some(connection) = self
            .connections
            .get_mut(call.index as usize)
            .and_then(Option::as_mut)
        else {
            return Flow::Stop;
        };
        // Even a reply that nobody wants to see says that the connection may go on.
        let muted = connection.is_muted();
        let mut header = header_for(connection, call.index, command, slot, call.len());
        header.part = u32::from(muted);
        header.flags |= flags;
        let is_large = match self.lanes.reserve(worker, len) {
            Ok(place) => {
                if write_request(place, header, call.args(1)).is_none() {
                    return self
                        .internal_error(call.index, "a request did not fit its reservation");
                }
                self.lanes.commit(worker, len);
                false
            }
            Err(NoRoom::Full) => {
                connection.wait = Wait::Room;
                let who = connection.who(call.index);
                self.tally.ring_full += 1;
                self.lanes.wait_for_room(worker, who);
                return Flow::Retry;
            }
            Err(NoRoom::TooBig) if connection.replies.in_flight() > 0 => {
                connection.wait = Wait::Earlier; // see `send_too_big`
                return Flow::Retry;
            }
            Err(NoRoom::TooBig) => true,
            Err(NoRoom::Gone) => return self.unavailable(call.index, worker),
        };
        connection.replies.assign();
        if muted {
            let gather = Gather::new(header.sequence, true, 1, Finish::Drop);
            connection.gathers.push_back(Box::new(gather));
        }
        let blocking = Blocking::new(worker, header, call);
        if is_large {
            let transfer = Transfer::new(header, blocking.bytes.clone(), blocking.spans.clone());
            self.lanes.transfer(worker, transfer);
        }
        connection.blocking = Some(Box::new(blocking));
        connection.wait = Wait::Blocked;
        if self.lanes.wants_flush() {
            self.lanes.flush();
        }
        Flow::Stop
    }

    /// A frame that says more about a command than an ordinary reply does.
    pub(crate) fn note_waiting(&mut self, index: u32, header: &ReplyHeader, body: &[u8]) {
        let blocking = self
            .get_mut(index)
            .and_then(|connection| connection.blocking.as_mut());
        let Some(blocking) = blocking.filter(|it| it.header.sequence == header.sequence) else {
            tracing::error!(?header, "a memo that nobody awaits");
            return;
        };
        if header.flags & reply_flags::UNBLOCKED != 0 {
            blocking.is_unblocked = true;
        }
        if header.flags & reply_flags::PARKED != 0 && blocking.take_memo(header.kind, body) {
            self.set_blocked(index, true);
            // Redis closes a client that has hung up even if it waits for something.
            if self
                .get(index)
                .is_some_and(|connection| connection.facts.ended)
            {
                self.close_now(index);
            }
        }
    }

    /// The reply to a command that may have waited is there: the connection may go on.
    pub(crate) fn end_blocking(&mut self, index: u32) {
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        let who = connection.who(index);
        if let Some(blocking) = connection.blocking.take() {
            self.answer_unblocker(*blocking);
            self.lanes.settle_transfers(who, false);
        }
    }

    /// The connection is gone, and what it waited for is none of the worker's business any more.
    pub(crate) fn cancel_blocking(&mut self, who: Who) {
        let Some(connection) = self.find_mut(who) else {
            return;
        };
        if let Some(blocking) = connection.blocking.take() {
            self.send_about(blocking.worker, blocking.header, RequestKind::Cancel, 0);
            self.answer_unblocker(*blocking);
        }
        self.set_blocked(who.index, false);
    }

    fn answer_unblocker(&mut self, blocking: Blocking) {
        if let Some(asker) = blocking.asker {
            self.answer_asker(asker, Answer::Count(u64::from(blocking.is_unblocked)));
        }
    }

    /// CLIENT UNBLOCK for a client of this thread. `None` if it is not known yet whether the client
    /// waits: the asker is told later.
    pub(crate) fn unblock(&mut self, id: u64, with_error: bool, asker: Asker) -> Option<Answer> {
        let no = Some(Answer::Count(0));
        let found = self.clients().find(|(_, client)| client.id == id);
        let Some(index) = found.map(|(index, _)| index) else {
            return no;
        };
        let Some(connection) = self.get_mut(index) else {
            return no;
        };
        match connection.wait {
            Wait::Blocked => {
                let blocking = connection.blocking.as_mut();
                let Some(blocking) = blocking.filter(|blocking| blocking.asker.is_none()) else {
                    return no;
                };
                blocking.asker = Some(asker);
                let (worker, header) = (blocking.worker, blocking.header);
                self.send_about(worker, header, RequestKind::Unblock, u32::from(with_error));
                None
            }
            Wait::Replicas => {
                let ticket = Ticket {
                    who: connection.who(index),
                    sequence: connection.replies.upcoming().wrapping_sub(1),
                    muted: connection.is_muted(),
                };
                let mut reply = b":0\r\n".to_vec();
                if with_error {
                    reply.clear();
                    CommandError::Unblocked.write_resp(&mut reply);
                    self.count_error("UNBLOCKED");
                }
                self.timers.remove(ticket);
                self.deliver(ticket, &reply);
                Some(Answer::Count(1))
            }
            _ => no,
        }
    }

    /// Tells the worker something about a command that it has.
    pub(crate) fn send_about(
        &mut self,
        worker: usize,
        about: RequestHeader,
        kind: RequestKind,
        part: u32,
    ) {
        let header = RequestHeader {
            kind,
            part,
            argc: 0,
            ..about
        };
        let mut transfer = Transfer::new(header, Vec::new(), Vec::new());
        // Its connection may be gone before it is sent.
        transfer.orphan = true;
        self.lanes.transfer(worker, transfer);
    }

    /// Notes whether a connection counts as blocked.
    pub(crate) fn set_blocked(&mut self, index: u32, is_blocked: bool) {
        if let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            && connection.facts.blocked != is_blocked
        {
            connection.facts.blocked = is_blocked;
            if is_blocked {
                self.tally.blocked += 1;
            } else {
                self.tally.blocked -= 1;
            }
        }
    }
}
