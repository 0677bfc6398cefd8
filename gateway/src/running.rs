//! What is left of an EXEC when its unit has run: the commands of the gateway among the worker's replies.
//!
//! ```text
//!   unit's reply   *3 | r0 | r1 | r2
//!   output         *5 | r0 | PING's | r1 | CONFIG SET's | r2        one step behind the other
//! ```
//!
//! Each of them is run as if the client had sent it now, so its reply takes its place in the order of replies
//! by itself, and one that is answered later makes the next ones wait. Nothing else of the connection runs
//! meanwhile. Whoever closes the connection leaves the rest undone.

use std::collections::VecDeque;

use proto::catalogue::Spec;

use crate::call::Call;
use crate::connection::{Closing, Wait};
use crate::core::{Core, Flow, Ticket};
use crate::gather::{Finish, Gather, array, reply_len};
use crate::transfer::Span;

/// A queued command of the gateway.
#[derive(Debug)]
pub(crate) struct Own {
    /// Its place among all that are queued.
    pub(crate) at: usize,
    pub(crate) spec: &'static Spec,
    pub(crate) bytes: Vec<u8>,
    /// Start and end of each argument, the name first.
    pub(crate) spans: Vec<Span>,
}

/// Replies of a unit among which commands of the gateway are still to come.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) count: usize,
    pub(crate) own: Vec<Own>,
    pub(crate) database: u16,
}

/// What is left of an EXEC whose unit has run.
#[derive(Debug)]
enum Step {
    Replies(Vec<u8>),
    Own(Own),
}

/// An EXEC whose commands of the gateway run now.
#[derive(Debug, Default)]
pub(crate) struct Running(VecDeque<Step>);

impl Core {
    /// The unit of a transaction has run, or was refused.
    pub(crate) fn finish_unit(&mut self, ticket: Ticket, gather: Gather) {
        let reply = gather.part(0).to_vec();
        let Finish::Unit(unit) = gather.finish else {
            return;
        };
        self.lanes.settle_transfers(ticket.who, false);
        let Some(connection) = self.find_mut(ticket.who) else {
            return;
        };
        let Some((b'*', _, replies)) = array(&reply) else {
            return self.deliver(ticket, &reply);
        };
        connection.database = unit.database;
        let mut running = unit.running(replies);
        let first = match running.0.pop_front() {
            Some(Step::Replies(bytes)) => bytes,
            _ => Vec::new(),
        };
        if !running.0.is_empty() {
            connection.running = Some(Box::new(running));
        }
        self.deliver(ticket, &first);
        let goes_on = self
            .find_mut(ticket.who)
            .is_some_and(|connection| connection.wait == Wait::Nothing);
        if goes_on {
            self.go_on_running(ticket.who.index);
        }
    }

    /// A transaction of nothing but commands of the gateway.
    pub(crate) fn run_own(&mut self, index: u32, unit: Unit) -> Flow {
        self.tally.commands += unit.count as u64;
        let running = unit.running(&[]);
        if let Some(connection) = self.get_mut(index) {
            connection.running = Some(Box::new(running));
        }
        if self.go_on_running(index) {
            Flow::Next
        } else {
            Flow::Stop
        }
    }

    /// Runs what is left of an EXEC; false if that has to wait.
    pub(crate) fn go_on_running(&mut self, index: u32) -> bool {
        loop {
            let Some(connection) = self.get_mut(index) else {
                return false;
            };
            let Some(running) = &mut connection.running else {
                return true;
            };
            let step = running
                .0
                .pop_front()
                .filter(|_| connection.closing == Closing::No);
            match step {
                None => {
                    connection.running = None;
                    return connection.wait == Wait::Nothing;
                }
                Some(Step::Replies(bytes)) => self.answer(index, &bytes),
                Some(Step::Own(own)) => {
                    let call = Call {
                        index,
                        bytes: &own.bytes,
                        spans: &own.spans,
                    };
                    match self.dispatch(&call, own.spec) {
                        Flow::Next => {}
                        Flow::Stop => return false,
                        Flow::Retry => {
                            let running = self.get_mut(index).and_then(|it| it.running.as_mut());
                            if let Some(running) = running {
                                running.0.push_front(Step::Own(own));
                            }
                            return false;
                        }
                    }
                }
            }
        }
    }
}

impl Unit {
    /// The replies of the worker and the commands of the gateway, each in its place; an array's header first.
    fn running(self, mut replies: &[u8]) -> Running {
        let mut steps = VecDeque::new();
        let mut bytes = format!("*{}\r\n", self.count).into_bytes();
        let mut own = self.own.into_iter().peekable();
        for at in 0..self.count {
            if let Some(own) = own.next_if(|own| own.at == at) {
                if !bytes.is_empty() {
                    steps.push_back(Step::Replies(std::mem::take(&mut bytes)));
                }
                steps.push_back(Step::Own(own));
            } else {
                let len = reply_len(replies).unwrap_or(replies.len());
                bytes.extend_from_slice(&replies[..len]);
                replies = &replies[len..];
            }
        }
        if !bytes.is_empty() {
            steps.push_back(Step::Replies(bytes));
        }
        Running(steps)
    }
}
