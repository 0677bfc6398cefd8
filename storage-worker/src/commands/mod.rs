//! Command handlers, one file or folder per group, and the table that leads to them.
//!
//! The rows are in `proto::catalogue::storage`; each ends with the path of its handler below this
//! module. The macro here turns the same rows into an array of functions, so a row without a
//! handler does not compile and a handler without a row is reported as unused.
//!
//! A handler is `fn(&mut Context, Args) -> CommandResult`: synchronous, without I/O, replying
//! through `ctx.reply`. The number of arguments has been checked by the gateway; a handler that is
//! given fewer reads empty ones and does nothing worse.

mod bitmap;
mod debug;
mod dump;
mod expire;
mod geo;
mod hash;
mod hyperloglog;
mod internal;
mod keyspace;
mod list;
pub(crate) mod moved;
mod object;
mod scan_options;
mod script;
mod server;
mod set;
pub(crate) mod sort;
mod sorted_set;
pub(crate) mod stream;
mod string;

use crate::context::{CommandResult, Context};
use proto::catalogue::StorageCommand;
use proto::frame::Args;

/// Entries, and consumers of all groups, of a stream.
pub(crate) fn stream_counts(found: &crate::keyspace::Found<'_>) -> (u64, usize) {
    let stream: &crate::collections::stream::Stream = found.structure();
    let consumers = stream
        .groups
        .iter()
        .map(|(_, group)| group.consumer_count());
    (stream.log.len(), consumers.sum())
}

/// What a row's last column names.
pub type Handler = fn(&mut Context<'_>, Args<'_>) -> CommandResult;

macro_rules! dispatch_table {
    ($( $(#[doc = $summary:literal])+ $id:ident $columns:tt => $handler:path; )*) => {
        /// Indexed by `StorageCommand`; made of the same rows, so it cannot be out of step.
        static DISPATCH: [Handler; StorageCommand::COUNT] = [ $( $handler, )* ];
    };
}
proto::storage_commands!(dispatch_table);

/// Handlers that a test has put in the place of others, in its thread.
#[cfg(test)]
pub(crate) mod stand_ins {
    use super::{Handler, StorageCommand};
    use std::cell::RefCell;

    thread_local! {
        static STAND_INS: RefCell<Vec<(StorageCommand, Handler)>> = const { RefCell::new(Vec::new()) };
    }

    pub(crate) fn set(command: StorageCommand, handler: Handler) {
        STAND_INS.with_borrow_mut(|all| all.push((command, handler)));
    }

    pub(super) fn get(command: StorageCommand) -> Option<Handler> {
        STAND_INS.with_borrow(|all| {
            let found = all.iter().find(|(known, _)| *known == command);
            found.map(|(_, handler)| *handler)
        })
    }
}

/// The function that runs `command`.
#[inline]
pub fn handler(command: StorageCommand) -> Handler {
    #[cfg(test)]
    if let Some(handler) = stand_ins::get(command) {
        return handler;
    }
    DISPATCH[command as usize]
}

/// Names that nearly every handler uses.
mod prelude {
    pub(crate) use crate::context::{
        CommandResult, Context, check_drawn_bytes, check_drawn_count, clamp_range, integer,
        is_equal, reply_string, string_len, string_of, with_bytes,
    };
    pub(crate) use crate::keyspace::{Access, Expiry, StringRef, StringValue, ValueKind};
    pub(crate) use proto::CommandError;
    pub(crate) use proto::frame::Args;
    pub(crate) use proto::number::parse_i64;
    pub(crate) use proto::resp::reply::ReplyWriter;
}
