//! Runs what only the loop itself can run: units (transactions), and who watches which keys.
//!
//! ```text
//!   head     a watched key was changed?             nothing
//!   memory   short, and one of the items needs it?  EXECABORT
//!   bracket  | item | item | item |                 one array
//! ```
//!
//! A unit is one request: it comes as one frame or in parts that are executed with the last one, it stands
//! under one commit line, and its reply is one. So a client or gateway that dies in the middle of sending it
//! has asked for nothing; a worker that dies before it leaves it to the successor; one that dies inside it
//! leaves an error and an arena that is not trusted, as with any other command that writes.
//!
//! Everything of a unit is checked before its first item runs.

use super::core::Core;
use super::replies::Placed;
use super::runner::{Ran, Runner};
use super::watching::{Client, View};
use crate::engine::Engine;
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::counters::ErrorCounter;
use proto::frame::{Args, READY, RequestHeader, UnitHead, UnitItem, flags};
use proto::resp::reply::ReplyWriter;

/// One item, decoded.
#[derive(Clone, Copy, Debug)]
enum Item<'a> {
    Command(RequestHeader, StorageCommand, &'a [u8]),
    Ready(&'a [u8]),
}

impl Runner<'_> {
    /// Runs a command that has no handler.
    #[cold]
    #[inline(never)]
    pub(super) fn run_by_loop(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
    ) -> Ran {
        let mut spans = Vec::new();
        let Ok(args) = Args::new(body, request.argc, &mut spans) else {
            return self.refuse(request, &CommandError::Internal);
        };
        match command {
            StorageCommand::Unit | StorageCommand::UnitOfReads => {
                self.run_unit(request, command, args)
            }
            StorageCommand::WatchKeys => {
                let client = self.client(request);
                let (watching, view) = self.core.watching_and_view();
                for key in args.iter_from(1) {
                    watching.watch(client, (request.database, key), &view);
                }
                self.core.note_watchers();
                self.answer(request, |reply| reply.ok())
            }
            StorageCommand::UnwatchKeys => {
                let client = self.client(request);
                self.core.watching.remove(client);
                self.core.note_watchers();
                self.answer(request, |reply| reply.raw(args.get(1)))
            }
            _ => self.refuse(request, &CommandError::Internal),
        }
    }

    /// The connection of a request.
    pub(super) fn client(&self, request: &RequestHeader) -> Client {
        (self.place.link, request.connection, request.generation)
    }

    fn run_unit(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        args: Args<'_>,
    ) -> Ran {
        let writes = command == StorageCommand::Unit;
        let items: Option<Vec<Item<'_>>> = args
            .iter_from(2)
            .map(|bytes| decode(request, bytes, writes))
            .collect();
        let (Some(head), Some(items)) = (UnitHead::decode(args.get(1)), items) else {
            return self.refuse(request, &CommandError::Internal);
        };
        let client = self.client(request);
        let mut is_changed = false;
        if head.watched > 0 {
            let (watching, view) = self.core.watching_and_view();
            is_changed = watching.end(client, head.watched, &view);
            self.core.note_watchers();
        }
        for (worker, keys) in head.watched_elsewhere {
            // All are asked: nobody of them watches for the client any more.
            is_changed |= self.core.ask_about_watched(worker as usize, client, keys);
        }
        if is_changed {
            return self.answer(request, |reply| reply.null_array());
        }
        let needs_room = |item: &Item<'_>| matches!(item, Item::Command(_, command, _) if Engine::denies_oom(*command));
        let needs_room = items.iter().any(needs_room);
        let first = items.iter().find_map(|item| match item {
            Item::Command(header, ..) => Some((header.database, header.slot)),
            Item::Ready(_) => None,
        });
        let (db, slot) = first.unwrap_or((request.database, request.slot));
        if writes {
            // Two deep: nothing inside may pause it.
            self.core.bracket.begin(db, slot);
            self.core.bracket.begin(db, slot);
            if !self.core.make_room() && needs_room {
                self.core.bracket.end();
                self.core.bracket.end();
                self.core.tally.count_error(ErrorCounter::ExecAborted);
                return self.refuse(request, &CommandError::OutOfMemory.aborting_exec());
            }
        }
        let mut slow = Vec::new();
        self.core.engine.enter_unit();
        let (len, is_spilled) = self.run_items(request, &items, &mut slow);
        self.core.engine.leave_unit();
        if writes {
            self.core.bracket.end();
            self.core.bracket.end();
        }
        let placed = if request.flags & flags::DISCARD == 0 {
            self.replies.finish(len, is_spilled)
        } else {
            Placed::InRing
        };
        for (at, micros) in slow {
            if let Item::Command(header, command, body) = items[at] {
                self.tell_slow(&header, command, body, micros);
            }
        }
        match placed {
            Placed::Waiting => Ran::Held { wrote: writes },
            Placed::InRing => {
                self.commit_behind();
                if self.core.is_signalled() {
                    Ran::Wakes
                } else {
                    Ran::Done
                }
            }
        }
    }

    /// Runs the items and writes the reply. Says how long that is and whether it has left the ring; and
    /// notes which items were slow.
    fn run_items(
        &mut self,
        request: &RequestHeader,
        items: &[Item<'_>],
        slow: &mut Vec<(usize, u64)>,
    ) -> (usize, bool) {
        let is_resp3 = request.flags & flags::RESP3 != 0;
        let core = &mut *self.core;
        let mut unwanted = std::mem::take(&mut core.unwanted);
        unwanted.clear();
        let mut reply = if request.flags & flags::DISCARD == 0 {
            self.replies.writer(request, is_resp3)
        } else {
            ReplyWriter::to_vec(&mut unwanted, is_resp3)
        };
        reply.array(items.len());
        let mut one = std::mem::take(&mut core.inner_reply);
        for (at, item) in items.iter().enumerate() {
            match item {
                Item::Ready(bytes) => reply.raw(bytes),
                Item::Command(header, command, body) => {
                    one.clear();
                    core.execute_inside(header, *command, body, &mut one);
                    reply.raw(&one);
                    if let Some(micros) = core.slow_micros(*command) {
                        slow.push((at, micros));
                    }
                }
            }
        }
        let done = (reply.len(), reply.is_spilled());
        one.truncate(0);
        one.shrink_to(INNER_REPLY_BYTES);
        core.inner_reply = one;
        core.unwanted = unwanted;
        done
    }
}

/// Memory kept for the reply of one item.
const INNER_REPLY_BYTES: usize = 64 * 1024;

/// An item as a command of the unit's connection; `None` if it makes no sense. Only what a client can call is
/// run, and nothing that writes if the unit only reads.
fn decode<'a>(request: &RequestHeader, bytes: &'a [u8], may_write: bool) -> Option<Item<'a>> {
    let (item, body) = UnitItem::decode(bytes)?;
    if item.flags & READY != 0 {
        return Some(Item::Ready(body));
    }
    let command = StorageCommand::from_u16(item.command)?;
    let header = RequestHeader {
        flags: u8::try_from(item.flags).ok()?,
        command: item.command,
        database: item.database,
        slot: item.slot,
        argc: item.argc,
        part: 0,
        ..*request
    };
    Args::new(body, item.argc, &mut Vec::new()).ok()?;
    let is_allowed = !Engine::is_by_loop(command) && (may_write || !Engine::may_write(command));
    is_allowed.then_some(Item::Command(header, command, body))
}

impl Core {
    /// Who watches, and what there is to see.
    pub(super) fn watching_and_view(&mut self) -> (&mut super::watching::Watching, View<'_>) {
        let view = View {
            keyspace: &self.engine.keyspace,
            hash_seed: self.engine.hash_seed(),
            now: self.now,
        };
        (&mut self.watching, view)
    }
}
