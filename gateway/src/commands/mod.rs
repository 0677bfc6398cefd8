//! The commands that the gateway answers itself, one file per group, joined to their rows.
//!
//! A handler gets the thread's core and the call. It answers (`answer`, `error`), or asks somebody and
//! stops (`ask_all`, `ask_supervisor`, `timers`), or wants to be called again when all earlier commands
//! of its connection are answered (`Core::wait_for_earlier`).

mod client;
mod config;
mod connection;
mod debug;
mod debug_data;
mod function;
mod help;
mod introspection;
mod lolwut;
mod memory;
mod pubsub;
mod reload;
mod script;
mod server;
mod slowlog;
mod transaction;

pub(crate) use function::LibraryPolicy;
use proto::catalogue::GatewayCommand;
use proto::resp::ReplyWriter;

use crate::call::Call;
use crate::connection::Wait;
use crate::core::{Core, Flow};

/// Runs one command.
pub(crate) type Handler = fn(&mut Core, &Call<'_>) -> Flow;

macro_rules! handlers {
    ($( $(#[$summary:meta])* $id:ident $columns:tt => $handler:path; )*) => {
        /// Indexed by `GatewayCommand`; made from the same rows, so it cannot be out of step.
        pub(crate) static HANDLERS: [Handler; GatewayCommand::COUNT] = [ $( $handler ),* ];
    };
}
proto::gateway_commands!(handlers);

impl Core {
    /// Answers with what `write` writes, in the protocol version of the client.
    pub(crate) fn reply(&mut self, index: u32, write: impl FnOnce(&mut ReplyWriter<'_>)) -> Flow {
        let resp3 = self
            .get(index)
            .is_some_and(|connection| connection.facts.resp3);
        let mut reply = self.pool.take();
        write(&mut ReplyWriter::to_vec(&mut reply, resp3));
        self.answer(index, &reply);
        self.pool.give(reply);
        Flow::Next
    }

    /// Answers OK.
    pub(crate) fn ok(&mut self, index: u32) -> Flow {
        self.answer(index, b"+OK\r\n");
        Flow::Next
    }

    /// `Some` if earlier commands of the connection are unanswered: return it from the handler, which
    /// is called again when they are. For commands whose effect, or whose answer, depends on them.
    pub(crate) fn wait_for_earlier(&mut self, index: u32) -> Option<Flow> {
        let connection = self.get_mut(index)?;
        if connection.replies.in_flight() == 0 {
            return None;
        }
        connection.wait = Wait::Earlier;
        Some(Flow::Retry)
    }
}
