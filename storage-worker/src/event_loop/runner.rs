//! Runs one frame of a link, or a parked command: what of the link may change while its readable
//! bytes are borrowed.
//!
//! Not here: which frame comes next (`link`), when a parked command does (`wake`).

use super::core::{Core, Place};
use super::link::LinkError;
use super::parked::Parked;
use super::replies::{Placed, Replies};
use super::requests::{Assembled, Assembly};
use crate::blocking::Block;
use crate::engine::{Engine, Executed};
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::counters::ErrorCounter;
use proto::frame::{Args, REQUEST_HEADER_BYTES, ReplyKind, RequestHeader, flags, reply_flags};
use proto::resp::reply::ReplyWriter;
use proto::slow_call::write_arguments;
use std::time::Duration;

/// How one frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// Completely.
    Done,
    /// Completely, and others wait for what it did.
    Wakes,
    /// Its reply waits for room.
    Held {
        /// Data may have changed, so the request must not run again.
        wrote: bool,
    },
}

/// See the module.
pub(super) struct Runner<'a> {
    pub(super) core: &'a mut Core,
    pub(super) replies: &'a mut Replies,
    /// The frame that is run.
    pub(super) place: Place,
    /// Its bytes in the ring.
    pub(super) len: u64,
}

/// What every command passes through is inlined always: as calls it costs 70 instructions more.
impl Runner<'_> {
    #[inline(always)]
    pub(super) fn run(&mut self, request: &RequestHeader, body: &[u8], hash: Option<u64>) -> Ran {
        let command = StorageCommand::from_u16(request.command);
        let refused = match command {
            None => Some(CommandError::Internal),
            Some(_) if request.flags & flags::EXECUTED != 0 => Some(CommandError::OutcomeUnknown),
            Some(_) => None,
        };
        let (Some(command), None) = (command, &refused) else {
            return self.refuse(request, &refused.unwrap_or(CommandError::Internal));
        };
        if request.flags & flags::CROSSING != 0 {
            return self.run_crossing(request, command, body);
        }
        if !Engine::only_reads(command) {
            return self.run_other(request, command, body, hash);
        }
        let executed = self.execute(request, command, body, hash);
        self.core.is_uncommitted = true;
        match self.finish(request, command, body, executed) {
            Placed::Waiting => Ran::Held { wrote: false },
            Placed::InRing => {
                if self.core.is_careful {
                    self.after_reading(request, command, body, executed.error.is_some());
                }
                Ran::Done
            }
        }
    }

    /// What is to be done behind a command that only reads.
    #[cold]
    fn after_reading(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        has_failed: bool,
    ) {
        if !has_failed {
            self.core.note_misses(request, command, body);
        }
        if self.core.is_precise {
            self.commit_behind();
        }
    }

    /// A command that writes or may wait.
    fn run_other(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Ran {
        if self.core.is_uncommitted {
            self.core.commit(self.place, self.replies.position()); // D2
        }
        if Engine::is_by_loop(command) {
            return self.run_by_loop(request, command, body);
        }
        let Some(executed) = self.execute_bracketed(request, command, body, hash) else {
            let ran = self.refuse(request, &CommandError::OutOfMemory);
            self.core
                .tally
                .count(command, Some(ErrorCounter::OutOfMemory));
            return ran;
        };
        let placed = match self.core.engine.effects.waking.block.take() {
            Some(block) => self.park(request, command, body, *block),
            None => match self.finish(request, command, body, executed) {
                Placed::InRing => Ran::Done,
                Placed::Waiting => Ran::Held {
                    wrote: self.has_written(command),
                },
            },
        };
        if placed != Ran::Done {
            return placed;
        }
        self.commit_behind();
        if self.core.is_signalled() {
            Ran::Wakes
        } else {
            Ran::Done
        }
    }

    /// Runs a parked command again; what became of its reply, or `None` if it waits on.
    pub(super) fn run_again(&mut self, parked: &Parked) -> Option<Placed> {
        let (request, command) = (&parked.request, parked.command);
        if request.flags & flags::CROSSING != 0 {
            return self.cross_again(request, command, &parked.body);
        }
        let Some(executed) = self.execute_bracketed(request, command, &parked.body, None) else {
            self.core
                .tally
                .count(command, Some(ErrorCounter::OutOfMemory));
            let ran = self.refuse(request, &CommandError::OutOfMemory);
            return Some(match ran {
                Ran::Held { .. } => Placed::Waiting,
                Ran::Done | Ran::Wakes => Placed::InRing,
            });
        };
        if self.core.engine.effects.waking.block.take().is_some() {
            return None;
        }
        Some(self.finish(request, command, &parked.body, executed))
    }

    /// Executes a command within a bracket if it writes; `None` if there is no memory for it.
    #[inline]
    fn execute_bracketed(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Option<Executed> {
        if !Engine::writes(command) {
            let executed = if Engine::runs_script(command) {
                self.execute_script(request, command, body, hash)
            } else {
                self.execute(request, command, body, hash)
            };
            return Some(executed);
        }
        if !self.core.is_observed() {
            return self.execute_within(request, command, body, hash);
        }
        self.execute_watched(request, command, body, hash)
    }

    /// Executes a command within a bracket while somebody watches keys or wants events.
    #[cold]
    #[inline(never)]
    fn execute_watched(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Option<Executed> {
        let changes = self.core.engine.effects.changes;
        let before = self.core.look_before(request, command, body);
        let executed = self.execute_within(request, command, body, hash);
        if executed.is_some_and(|it| it.error.is_none()) {
            if !self.core.watching.is_empty() {
                self.core.note_watched(request, command, body, changes);
            }
            if let Some(before) = before {
                self.core
                    .note_events(request, command, body, changes, &before);
            }
        }
        executed
    }

    #[inline(always)]
    fn execute_within(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Option<Executed> {
        self.core.bracket.begin(request.database, request.slot);
        let has_room = self.core.make_room() || !Engine::denies_oom(command);
        let executed = has_room.then(|| self.execute(request, command, body, hash));
        self.core.bracket.end();
        self.core.note_change(request.database);
        executed
    }

    /// Runs a script, whose commands bracket what they write.
    pub(super) fn execute_script(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Executed {
        let mut is_memory_short = false;
        if self.core.is_over_limit() {
            self.core.bracket.begin(request.database, request.slot);
            is_memory_short = !self.core.make_room();
            self.core.bracket.end();
        }
        self.core.begin_script(is_memory_short);
        let mut executed = self.execute(request, command, body, hash);
        self.core.end_script(request, command, &mut executed);
        executed
    }

    /// Whether a command that has just run may have changed data.
    pub(super) fn has_written(&self, command: StorageCommand) -> bool {
        Engine::writes(command)
            || Engine::runs_script(command) && self.core.engine.effects.nested.has_written
    }

    /// The command waits: keeps it and lets its gateway know.
    #[cold]
    pub(super) fn park(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        block: Block,
    ) -> Ran {
        let ticket = self.core.ticket();
        let whom = (request, command);
        let (parked, memo) = Parked::new(ticket, self.place.link, whom, body, block);
        self.core.park(parked);
        self.push(request, reply_flags::PARKED, &memo)
    }

    /// The client is gone.
    #[cold]
    pub(super) fn cancel(&mut self, header: &RequestHeader) -> Ran {
        self.core.is_uncommitted = true;
        let parked = self
            .core
            .waiters
            .of_client(self.place.link, header.connection);
        if let Some(parked) = parked
            && parked.request.generation == header.generation
        {
            let ticket = parked.ticket;
            self.core.unpark(ticket);
        }
        let client = self.client(header);
        self.core.watching.remove(client);
        self.core.note_watchers();
        Ran::Done
    }

    /// Somebody wants the client to wait no longer.
    #[cold]
    pub(super) fn unblock(&mut self, header: &RequestHeader) -> Ran {
        self.core.is_uncommitted = true;
        let parked = self
            .core
            .waiters
            .of_client(self.place.link, header.connection);
        let meant = (header.generation, header.sequence);
        let Some(parked) = parked
            .filter(|parked| (parked.request.generation, parked.request.sequence) == meant)
            .cloned()
        else {
            return Ran::Done;
        };
        self.core.unpark(parked.ticket);
        let error = (header.part != 0).then_some(CommandError::Unblocked);
        self.end_wait(&parked, reply_flags::UNBLOCKED, error)
    }

    /// Answers a parked command that gets nothing.
    pub(super) fn end_wait(
        &mut self,
        parked: &Parked,
        flags: u8,
        error: Option<CommandError>,
    ) -> Ran {
        let counted = error.as_ref().map(ErrorCounter::of);
        self.core.tally.count(parked.command, counted);
        let mut reply = Vec::new();
        let is_resp3 = parked.request.flags & flags::RESP3 != 0;
        let mut writer = ReplyWriter::to_vec(&mut reply, is_resp3);
        match error {
            Some(error) => writer.error(&error),
            None => writer.null_array(),
        }
        self.push(&parked.request, flags, &reply)
    }

    /// Sends a reply that is there already.
    fn push(&mut self, request: &RequestHeader, flags: u8, bytes: &[u8]) -> Ran {
        if request.flags & flags::DISCARD != 0 {
            return Ran::Done;
        }
        match self.replies.push(request, flags, bytes) {
            Placed::InRing => Ran::Done,
            Placed::Waiting => Ran::Held { wrote: false },
        }
    }

    /// A commit line behind this frame.
    #[inline]
    pub(super) fn commit_behind(&mut self) {
        let request_position = self.place.request_position + self.len;
        let behind = Place {
            request_position,
            ..self.place
        };
        self.core.commit(behind, self.replies.position());
    }

    #[inline(always)]
    fn execute(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        hash: Option<u64>,
    ) -> Executed {
        let is_resp3 = request.flags & flags::RESP3 != 0;
        let reply = if request.flags & flags::DISCARD == 0 {
            self.replies.writer(request, is_resp3)
        } else {
            self.core.unwanted.clear();
            ReplyWriter::to_vec(&mut self.core.unwanted, is_resp3)
        };
        self.core
            .engine
            .execute(request, command, body, hash, self.core.now, reply)
    }

    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        executed: Executed,
    ) -> Placed {
        self.core.tally.count(command, executed.error);
        if let Some(sleep) = self.core.engine.effects.sleep.take() {
            stop_for(sleep);
        }
        let slow = self.core.slow_micros(command);
        let placed = if request.flags & flags::DISCARD == 0 {
            self.replies.finish(executed.reply_len, executed.is_spilled)
        } else {
            Placed::InRing
        };
        if let Some(micros) = slow {
            self.tell_slow(request, command, body, micros);
        }
        placed
    }

    /// Lets the gateway know that a command was slow.
    #[cold]
    pub(super) fn tell_slow(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        micros: u64,
    ) {
        let mut spans = Vec::new();
        let Ok(args) = Args::new(body, request.argc, &mut spans) else {
            return;
        };
        let mut bytes = micros.to_le_bytes().to_vec();
        let mut entry = Vec::new();
        let mut writer = ReplyWriter::to_vec(&mut entry, false);
        let name = command.name().split('|').next().unwrap_or_default();
        let words = std::iter::once(name.as_bytes()).chain(args.iter_from(1));
        write_arguments(&mut writer, args.len(), words);
        bytes.append(&mut entry);
        self.replies.tell(request, ReplyKind::Slow, bytes);
    }

    /// Answers with an error without running anything.
    #[cold]
    pub(super) fn refuse(&mut self, request: &RequestHeader, error: &CommandError) -> Ran {
        self.answer(request, |reply| reply.error(error))
    }

    /// Answers without running a handler.
    pub(super) fn answer(
        &mut self,
        request: &RequestHeader,
        write: impl FnOnce(&mut ReplyWriter<'_>),
    ) -> Ran {
        self.core.is_uncommitted = true;
        if request.flags & flags::DISCARD != 0 {
            return Ran::Done;
        }
        let mut reply = self
            .replies
            .writer(request, request.flags & flags::RESP3 != 0);
        write(&mut reply);
        let (len, is_spilled) = (reply.len(), reply.is_spilled());
        match self.replies.finish(len, is_spilled) {
            Placed::InRing => Ran::Done,
            Placed::Waiting => Ran::Held { wrote: false },
        }
    }

    pub(super) fn notify(&mut self, request: &RequestHeader, kind: ReplyKind) -> Ran {
        self.core.is_uncommitted = true;
        self.replies.notify(request, kind);
        Ran::Done
    }

    /// The gateway wants a command back, for later.
    #[cold]
    pub(super) fn give_back(&mut self, request: &RequestHeader) -> Ran {
        if request.flags & flags::EXECUTED != 0 {
            return self.refuse(request, &CommandError::OutcomeUnknown);
        }
        self.notify(request, ReplyKind::Returned)
    }

    /// Takes a part of a request; the last one runs the whole.
    pub(super) fn assemble(
        &mut self,
        assembly: &mut Assembly,
        header: &RequestHeader,
        body: &[u8],
    ) -> Result<Ran, LinkError> {
        if header.flags & flags::EXECUTED != 0 {
            // `part` of a piece is its place in the request; the reply needs the request's own part.
            let request = RequestHeader {
                part: u32::from(header.slot),
                ..*header
            };
            return Ok(self.refuse(&request, &CommandError::OutcomeUnknown));
        }
        match assembly.accept(header, body) {
            Assembled::Nothing => {
                self.core.is_uncommitted = true;
                Ok(Ran::Done)
            }
            Assembled::Again => Ok(self.notify(header, ReplyKind::Again)),
            Assembled::Whole(frame) => {
                let whole = RequestHeader::decode(&frame)?;
                let body = frame
                    .get(REQUEST_HEADER_BYTES..whole.len as usize)
                    .unwrap_or(&[]);
                Ok(self.run(&whole, body, None))
            }
        }
    }
}

/// DEBUG SLEEP: the shard thread stops, as the reference does.
fn stop_for(time: Duration) {
    std::thread::sleep(time);
}
