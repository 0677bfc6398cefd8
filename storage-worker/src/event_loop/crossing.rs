//! Runs commands over several keyspaces: comes in, runs, and says what has happened.
//!
//! Requests that may need other keyspaces say so (`flags::CROSSING`). Before such a one runs its worker visits the
//! others; while it cannot, the request stays at the head of its ring, as if it had just come. The visit lasts as
//! long as requests behind it need the same keyspaces, but not beyond a batch.
//!
//! A command over several keyspaces stands under one commit line, as any other does, and its changes in other
//! arenas lie inside of a bracket of this worker's journal. So a successor knows what is uncertain.
//!
//! Not here: leases and notes (`visit`), what the commands do (`crossing` of the crate).

use super::core::Core;
use super::replies::Placed;
use super::requests::Assembly;
use super::runner::{Ran, Runner};
use crate::crossing::needs;
use crate::engine::Engine;
use crate::neighbours::Workers;
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::counters::{ErrorCounter, WorkerCounter};
use proto::frame::{
    Args, READY, REQUEST_HEADER_BYTES, RequestHeader, RequestKind, UnitHead, UnitItem, flags,
};
use proto::resp::reply::ReplyWriter;
use proto::time::UnixMillis;

/// Whether a request can run.
#[derive(Debug)]
pub(super) enum Entry {
    /// What it needs is open.
    Open,
    /// Later.
    NotNow,
    /// It will not be in time.
    Refused(CommandError),
}

/// How long a request waits for workers that are not there before it is answered an error. A successor is there
/// within milliseconds; one that keeps dying comes back after a second or more.
const GIVE_UP_MS: u64 = 1000;

impl Runner<'_> {
    /// Makes sure that a frame finds the keyspaces open that it needs, and only those. It has waited for that
    /// since `since`.
    #[cold]
    pub(super) fn come_in(
        &mut self,
        assembly: &mut Assembly,
        header: &RequestHeader,
        body: &[u8],
        since: Option<UnixMillis>,
    ) -> Entry {
        if header.flags & flags::CROSSING == 0 {
            self.core.leave();
            return Entry::Open;
        }
        let core = &mut *self.core;
        let is_open = match header.kind {
            RequestKind::Request => core.visit_for(header, body),
            RequestKind::RequestPart => {
                !assembly.is_held(header, body, |frame| !core.visit_for_frame(frame))
            }
            _ => true,
        };
        if is_open {
            return Entry::Open;
        }
        // The end of a large request waits as long as it takes: it cannot be refused without its beginning.
        if header.kind == RequestKind::Request {
            let wanted = core.needs(header, body);
            if let Some(script) = core.script_in(wanted) {
                return Entry::Refused(match script.is_function {
                    true => CommandError::BusyFunction,
                    false => CommandError::BusyScript,
                });
            }
            if since.is_some_and(|since| core.now.since(since) > GIVE_UP_MS) {
                let what = "a storage worker of these keys";
                return Entry::Refused(CommandError::Unavailable { what });
            }
        }
        Entry::NotNow
    }

    /// Runs a command in keyspaces that are open.
    #[cold]
    #[inline(never)]
    pub(super) fn run_crossing(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
    ) -> Ran {
        if self.core.is_uncommitted {
            self.core.commit(self.place, self.replies.position()); // D2
        }
        let ran = if Engine::is_by_loop(command) {
            self.run_by_loop(request, command, body)
        } else if Engine::runs_script(command) {
            if request.flags & flags::ONLY_ITS_KEYS == 0 {
                self.core.add(WorkerCounter::ScriptsOverAll, 1);
            }
            let executed = self.execute_script(request, command, body, None);
            let placed = self.finish(request, command, body, executed);
            self.placed(placed, self.has_written(command))
        } else {
            self.cross(request, command, body)
        };
        if self.core.must_leave() {
            self.core.leave();
        }
        match ran {
            Ran::Held { .. } => ran,
            Ran::Done | Ran::Wakes => {
                self.commit_behind();
                if self.core.is_signalled() {
                    Ran::Wakes
                } else {
                    Ran::Done
                }
            }
        }
    }

    fn placed(&self, placed: Placed, wrote: bool) -> Ran {
        match placed {
            Placed::InRing => Ran::Done,
            Placed::Waiting => Ran::Held { wrote },
        }
    }

    fn cross(&mut self, request: &RequestHeader, command: StorageCommand, body: &[u8]) -> Ran {
        if !self.core.make_room_for(request, command) {
            let error = Some(ErrorCounter::OutOfMemory);
            self.core.tally.count(command, error);
            return self.refuse(request, &CommandError::OutOfMemory);
        }
        let mut reply = std::mem::take(&mut self.core.inner_reply);
        reply.clear();
        let block = self.core.cross(request, command, body, &mut reply);
        let ran = match block {
            Some(block) => {
                self.core.show_interest(&block.keys);
                self.park(request, command, body, *block)
            }
            None => {
                let slow = self.core.slow_micros(command);
                let ran = self.answer(request, |writer| writer.raw(&reply));
                if let Some(micros) = slow {
                    self.tell_slow(request, command, body, micros);
                }
                match ran {
                    Ran::Held { .. } => Ran::Held {
                        wrote: Engine::writes(command),
                    },
                    ran => ran,
                }
            }
        };
        reply.clear();
        reply.shrink_to(REPLY_BYTES_KEPT);
        self.core.inner_reply = reply;
        ran
    }

    /// Runs a parked command again, in keyspaces that are open; what became of its reply, or `None` if it waits on.
    pub(super) fn cross_again(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
    ) -> Option<Placed> {
        if !self.core.make_room_for(request, command) {
            let error = Some(ErrorCounter::OutOfMemory);
            self.core.tally.count(command, error);
            return Some(placed_of(self.refuse(request, &CommandError::OutOfMemory)));
        }
        let mut reply = Vec::new();
        if let Some(block) = self.core.cross(request, command, body, &mut reply) {
            self.core.show_interest(&block.keys);
            return None;
        }
        Some(placed_of(self.answer(request, |writer| writer.raw(&reply))))
    }
}

fn placed_of(ran: Ran) -> Placed {
    match ran {
        Ran::Held { .. } => Placed::Waiting,
        Ran::Done | Ran::Wakes => Placed::InRing,
    }
}

/// Memory kept for the reply of one command.
const REPLY_BYTES_KEPT: usize = 64 * 1024;

impl Core {
    fn visit_for_frame(&mut self, frame: &[u8]) -> bool {
        let Ok(header) = RequestHeader::decode(frame) else {
            return true;
        };
        let body = frame.get(REQUEST_HEADER_BYTES..header.len as usize);
        self.visit_for(&header, body.unwrap_or_default())
    }

    /// Comes into the keyspaces that a request needs.
    pub(super) fn visit_for(&mut self, request: &RequestHeader, body: &[u8]) -> bool {
        let wanted = self.needs(request, body);
        self.visit(wanted).is_ok()
    }

    fn needs(&self, request: &RequestHeader, body: &[u8]) -> Workers {
        let near = self.engine.scripts.surroundings.near.as_deref();
        let (Some(near), Some(command)) = (near, StorageCommand::from_u16(request.command)) else {
            return Workers::default();
        };
        let mut spans = Vec::new();
        let Ok(args) = Args::new(body, request.argc, &mut spans) else {
            return Workers::default();
        };
        if !matches!(command, StorageCommand::Unit | StorageCommand::UnitOfReads) {
            if Engine::is_by_loop(command) {
                return Workers::default();
            }
            let is_certain = request.flags & flags::ONLY_ITS_KEYS != 0;
            return needs(near, command, args, is_certain);
        }
        let mut workers = Workers::default();
        let head = UnitHead::decode(args.get(1)).unwrap_or_default();
        for (worker, _) in head.watched_elsewhere {
            workers.add(worker as usize);
        }
        let mut spans = Vec::new();
        for item in args.iter_from(2) {
            let Some((item, body)) = UnitItem::decode(item).filter(|it| it.0.flags & READY == 0)
            else {
                continue;
            };
            if let Some(command) = StorageCommand::from_u16(item.command)
                && !Engine::is_by_loop(command)
                && let Ok(args) = Args::new(body, item.argc, &mut spans)
            {
                workers = workers.with(needs(near, command, args, false));
            }
        }
        workers
    }

    /// Makes room for a command that may need some, in our own keyspace. False if there is none.
    fn make_room_for(&mut self, request: &RequestHeader, command: StorageCommand) -> bool {
        if !Engine::writes(command) || !self.is_over_limit() {
            return true;
        }
        self.bracket.begin(request.database, request.slot);
        let has_room = self.make_room();
        self.bracket.end();
        has_room || !Engine::denies_oom(command)
    }

    /// Runs a command in keyspaces that are open, counts it, and lets those know who watch what it has written.
    /// `Some` if it wants to wait.
    pub(super) fn cross(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Box<crate::blocking::Block>> {
        let changes = self.engine.effects.changes;
        let before = self.look_before(request, command, body);
        let (error, block) = self.engine.cross(request, command, body, self.now, out);
        if block.is_some() {
            return block;
        }
        if let Some(before) = before.filter(|_| error.is_none()) {
            self.note_events(request, command, body, changes, &before);
        }
        if Engine::writes(command) {
            self.note_change(request.database);
            if error.is_none() {
                self.note_write_anywhere(request, command, body, changes);
            }
        }
        self.tally.count(command, error);
        None
    }

    /// A command has written in one or several keyspaces: whoever watches a key there is to know.
    pub(super) fn note_write_anywhere(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        changes: u64,
    ) {
        if !self.watching.is_empty() {
            self.note_watched(request, command, body, changes);
        }
        if self.is_watched_elsewhere() {
            self.writes_elsewhere.push(crate::unit::NestedWrite {
                command,
                db: request.database,
                argc: request.argc,
                body: body.to_vec(),
                has_changed: self.engine.effects.changes != changes,
            });
        }
    }

    /// Writes the null of a command that would wait where nobody may.
    pub(super) fn write_null(block: &crate::blocking::Block, is_resp3: bool, out: &mut Vec<u8>) {
        let mut reply = ReplyWriter::to_vec(out, is_resp3);
        match block.on_timeout {
            crate::blocking::TimeoutReply::NullArray => reply.null_array(),
            crate::blocking::TimeoutReply::Null => reply.null(),
        }
    }
}
