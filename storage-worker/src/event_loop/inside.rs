//! Commands inside another one: those of a transaction, those that a script calls.
//!
//! The outer one holds the bracket and has made room; its commands run one behind the other and nothing comes
//! between them. Each is counted and timed like one that came alone. What they signal is kept: who waits for
//! it is served behind the outer command. Nobody may wait in here, so what would is answered as if its time
//! were over.
//!
//! Not here: brackets, room, commit lines (`runner`, `unit`), which commands there are.

use super::core::Core;
use super::watching::View;
use crate::engine::{Engine, Executed};
use crate::unit::{Failure, NestedWrite};
use proto::catalogue::StorageCommand;
use proto::frame::{RequestHeader, flags};
use proto::resp::reply::ReplyWriter;

impl Core {
    /// Runs one command and appends its reply to `out`. Its header says database, slot, number of
    /// arguments, and in its flags how it replies; `body` is its arguments, packed as in a request.
    pub(crate) fn execute_inside(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        out: &mut Vec<u8>,
    ) {
        let is_resp3 = request.flags & flags::RESP3 != 0;
        let changes = self.engine.effects.changes;
        let runs_script = Engine::runs_script(command);
        if self.is_visiting() && !runs_script {
            if let Some(block) = self.cross(request, command, body, out) {
                Self::write_null(&block, is_resp3, out);
                self.tally.count(command, None);
            }
            return;
        }
        if runs_script {
            let is_memory_short = self.is_over_limit();
            self.begin_script(is_memory_short);
        }
        let before = self.look_before(request, command, body);
        let reply = ReplyWriter::to_vec(out, is_resp3);
        let mut executed = self
            .engine
            .execute(request, command, body, None, self.now, reply);
        if runs_script {
            self.end_script(request, command, &mut executed);
        }
        if let Some(block) = self.engine.effects.waking.block.take() {
            Self::write_null(&block, is_resp3, out);
        }
        if Engine::writes(command) {
            self.note_change(request.database);
            if !self.watching.is_empty() && executed.error.is_none() {
                self.note_watched(request, command, body, changes);
            }
        }
        if let Some(before) = before.filter(|_| executed.error.is_none()) {
            self.note_events(request, command, body, changes, &before);
        }
        self.tally.count(command, executed.error);
    }

    /// A script is about to run.
    pub(crate) fn begin_script(&mut self, is_memory_short: bool) {
        self.engine.scripts.surroundings.is_memory_short = is_memory_short;
        let is_watched = !self.watching.is_empty() || self.is_watched_elsewhere();
        let nested = &mut self.engine.effects.nested;
        nested.has_written = false;
        nested.writes = is_watched.then(Vec::new);
    }

    /// A script has run: counts what it has called, and touches what is watched.
    pub(crate) fn end_script(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        executed: &mut Executed,
    ) {
        self.engine.scripts.surroundings.watch.end();
        let nested = &mut self.engine.effects.nested;
        for (command, error, count) in nested.take() {
            self.tally.count_inner(command, error, count);
        }
        for (command, failed, count) in nested.answered.drain(..) {
            self.tally.count_answered(command, failed, count);
        }
        for (command, error) in nested.refused.drain(..) {
            self.tally.count_refused(command, error);
        }
        match nested.failure.take() {
            None => {}
            Some(Failure::Known(error)) => executed.error = Some(error),
            Some(Failure::Counted) => self.tally.count_failure(command),
            Some(Failure::Own(word)) => {
                self.tally.count_failure(command);
                self.tally.count_word(word);
            }
        }
        let writes = nested.writes.take();
        if nested.has_written {
            self.note_change(request.database);
        }
        for write in writes.into_iter().flatten() {
            self.note_nested_write(&write);
            if self.is_watched_elsewhere() {
                self.writes_elsewhere.push(write);
            }
        }
    }

    /// A command inside of another one, or of a visitor, has written: whoever watches a key is to know.
    pub(super) fn note_nested_write(&mut self, write: &NestedWrite) {
        let view = View {
            keyspace: &self.engine.keyspace,
            hash_seed: self.engine.hash_seed(),
            now: self.now,
        };
        let what = (&write.body[..], write.has_changed);
        self.watching
            .note(write.command, (write.db, write.argc), what, &view);
    }

    /// A command that writes has run while somebody watches keys; there were so many `changes` before it.
    #[cold]
    pub(crate) fn note_watched(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        changes: u64,
    ) {
        let has_changed = self.engine.effects.changes != changes;
        let view = View {
            keyspace: &self.engine.keyspace,
            hash_seed: self.engine.hash_seed(),
            now: self.now,
        };
        let about = (request.database, request.argc);
        self.watching
            .note(command, about, (body, has_changed), &view);
    }
}
