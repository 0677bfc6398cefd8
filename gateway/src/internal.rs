//! Every storage command that the gateway sends on its own account.
//!
//! Elsewhere the gateway acts on columns of a row and never names a command of another process. The few
//! commands that it builds itself (steps of commands over several workers, debugging) are named here.

use proto::catalogue::StorageCommand;
use proto::frame::{RequestHeader, flags as frame_flags};

use crate::connection::Wait;
use crate::core::{Core, Flow, Ticket};
use crate::gather::{Finish, Gather};
use crate::router::header_for;

/// Several commands as one.
pub(crate) const UNIT: StorageCommand = StorageCommand::Unit;
/// The same for commands that only read.
pub(crate) const UNIT_OF_READS: StorageCommand = StorageCommand::UnitOfReads;
/// The connection watches keys.
pub(crate) const WATCH_KEYS: StorageCommand = StorageCommand::WatchKeys;
/// The connection watches nothing any more.
pub(crate) const UNWATCH_KEYS: StorageCommand = StorageCommand::UnwatchKeys;
/// Looks whether a library can be loaded.
pub(crate) const FUNCTION_CHECK: StorageCommand = StorageCommand::FunctionCheck;
/// Reads what FUNCTION DUMP gave.
pub(crate) const FUNCTION_READ: StorageCommand = StorageCommand::FunctionRead;
/// Looks whether a script compiles.
pub(crate) const SCRIPT_CHECK: StorageCommand = StorageCommand::ScriptCheck;
/// Commands that name a script by its SHA1.
pub(crate) const BY_SHA1: [StorageCommand; 2] =
    [StorageCommand::EvalSha, StorageCommand::EvalShaRo];
/// Commands that bring their script.
pub(crate) const BY_BODY: [StorageCommand; 2] = [StorageCommand::Eval, StorageCommand::EvalRo];
/// Switches for tests, sent to every worker.
pub(crate) const DEBUG: StorageCommand = StorageCommand::Debug;
/// Reloads every key of every worker.
pub(crate) const DEBUG_RELOAD: StorageCommand = StorageCommand::DebugReload;
/// What DEBUG OBJECT answers.
pub(crate) const DEBUG_OBJECT: StorageCommand = StorageCommand::DebugObject;
/// What DEBUG says about one value.
pub(crate) const DEBUG_KEY: StorageCommand = StorageCommand::DebugKey;
/// The digests of all databases.
pub(crate) const DIGEST: StorageCommand = StorageCommand::Digest;
/// The digests of some values.
pub(crate) const DIGEST_VALUE: StorageCommand = StorageCommand::DigestValue;
/// Makes the keys of DEBUG POPULATE.
pub(crate) const POPULATE: StorageCommand = StorageCommand::Populate;

/// One request of a step.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: StorageCommand,
    pub(crate) worker: usize,
    pub(crate) slot: u16,
    /// Database, if not the connection's.
    pub(crate) database: Option<u16>,
    /// The reply goes to the client as it is, so it speaks the client's protocol version.
    pub(crate) for_client: bool,
    /// Arguments after the name.
    pub(crate) arguments: Vec<Vec<u8>>,
}

impl Core {
    /// Sends the requests of one step; their replies are gathered under the ticket's place in the order
    /// and handed to `finish`.
    pub(crate) fn send_step(&mut self, ticket: Ticket, requests: Vec<Request>, finish: Finish) {
        let index = ticket.who.index;
        let Some(connection) = self.find_mut(ticket.who) else {
            return;
        };
        let gather = Gather::new(ticket.sequence, ticket.muted, requests.len(), finish);
        connection.gathers.push_back(Box::new(gather));
        for (part, request) in (1u32..).zip(requests) {
            let Some(connection) = self.get(index) else {
                return;
            };
            let argc = request.arguments.len() + 1;
            let mut header = RequestHeader {
                sequence: ticket.sequence,
                part,
                ..header_for(connection, index, request.command, request.slot, argc)
            };
            if !request.for_client {
                header.flags &= !frame_flags::RESP3;
            }
            if let Some(database) = request.database {
                header.database = database;
            }
            let arguments = request.arguments.iter().map(Vec::as_slice);
            self.send_or_keep(request.worker, header, arguments);
        }
        if self.lanes.wants_flush() {
            self.lanes.flush();
        }
    }

    /// An internal command for every worker; the client gets their joined reply.
    pub(crate) fn send_to_all(
        &mut self,
        index: u32,
        command: StorageCommand,
        arguments: &[&[u8]],
        finish: Finish,
    ) -> Flow {
        let workers = self.lanes.workers();
        if let Some(worker) = (0..workers).find(|&worker| !self.lanes.is_usable(worker)) {
            return self.unavailable(index, worker);
        }
        let ticket = self.answer_later(index);
        let requests = (0..workers).map(|worker| Request {
            command,
            worker,
            slot: 0,
            database: None,
            for_client: true,
            arguments: arguments.iter().map(|argument| argument.to_vec()).collect(),
        });
        self.send_step(ticket, requests.collect(), finish);
        Flow::Stop
    }

    /// All parts of a command have come.
    pub(crate) fn finish_gather(&mut self, index: u32, gather: Box<Gather>) {
        let Some(connection) = self.get(index) else {
            return;
        };
        let ticket = Ticket {
            who: connection.who(index),
            sequence: gather.sequence,
            muted: gather.muted,
        };
        let mut reply = self.pool.take();
        let joined = match &gather.finish {
            Finish::Drop => Ok(()),
            Finish::Join { merge, order } => gather.join(*merge, order, &mut reply),
            Finish::Cursor(_) => {
                self.pool.give(reply);
                return self.next_page(ticket, *gather);
            }
            Finish::Step(_) => {
                self.pool.give(reply);
                return self.next_step(ticket, gather);
            }
            Finish::Unit(_) => {
                self.pool.give(reply);
                return self.finish_unit(ticket, *gather);
            }
        };
        if joined.is_err() {
            reply.clear();
            tracing::error!("parts of a reply cannot be joined");
            proto::CommandError::Internal.write_resp(&mut reply);
        }
        self.deliver(ticket, &reply);
        self.pool.give(reply);
        if let Some(connection) = self.get(index)
            && matches!(
                connection.wait,
                Wait::Transfer | Wait::Window | Wait::Earlier | Wait::Blocked
            )
        {
            self.look_at_wait(index);
        }
    }
}
