//! Several commands as one unit: what a script or a transaction runs inside of a worker.
//!
//! ```text
//!   Unit::new ──> run(command) ──> run(command) ──> ... ──> finish
//!                  │ reply captured   │
//!                  └ the first one that writes opens a bracket, which `finish` closes
//! ```
//!
//! Nothing of other clients runs in between: the shard thread does not leave the unit. All of its
//! writes lie in one bracket, so that a death in the middle can never look like a half of them.
//!
//! Invariants
//!   U1  A bracket of a unit is two deep, so a command inside cannot pause it (`pause_write`).
//!   U2  Nobody waits inside of a unit: a command that wants to answers what it says for that.
//!
//! Who was woken by pushes of the unit is served after it, since signals stay in the effects.
//! Cost: a command costs what it costs alone, less the ring.
//! Not here: which commands are allowed where, memory limits, counts of calls (`commands::script`).

use crate::blocking::TimeoutReply;
use crate::commands::handler;
use crate::context::{Context, Effects};
use crate::engine::Engine;
use crate::keyspace::{Access, Keyspace};
use crate::neighbours::Neighbours;
use crate::notify::{self, Before, View, class};
use crate::random::Random;
use crate::settings::EngineSettings;
use proto::catalogue::{GatewayCommand, StorageCommand};
use proto::counters::ErrorCounter;
use proto::frame::Args;
use proto::resp::reply::ReplyWriter;
use proto::slot::slot_of;
use proto::time::UnixMillis;

/// What commands of a unit work on: all of a context but its reply.
#[derive(Debug)]
pub struct Ground<'a> {
    /// The data.
    pub keyspace: &'a mut Keyspace,
    /// The same time for all of them.
    pub now: UnixMillis,
    /// As for any command.
    pub rng: &'a mut Random,
    /// How reads touch the access clock.
    pub access: Access,
    /// Settings that commands look at.
    pub settings: &'a mut EngineSettings,
    /// What the shell does afterwards.
    pub effects: &'a mut Effects,
    /// Seed of the key hash.
    pub hash_seed: u64,
}

impl Ground<'_> {
    fn view<'v>(&'v self, near: Option<&'v Neighbours>) -> View<'v> {
        View {
            keyspace: self.keyspace,
            near,
            hash_seed: self.hash_seed,
            now: self.now,
        }
    }

    /// What events need to know of the keys of a command before it runs, if any are wanted.
    pub(crate) fn look_before(
        &self,
        command: StorageCommand,
        args: Args<'_>,
        db: u16,
        near: Option<&Neighbours>,
    ) -> Option<Before> {
        let wanted = self.effects.notes.wanted();
        let is_noted = wanted != 0 && (Engine::writes(command) || wanted & class::MISS != 0);
        is_noted.then(|| notify::before(command, db, args, &self.view(near)))
    }

    /// Notes the events of a command that has run.
    #[cold]
    pub(crate) fn note(
        &self,
        command: StorageCommand,
        (args, db): (Args<'_>, u16),
        changes: u64,
        before: &Before,
        near: Option<&Neighbours>,
    ) {
        let changes = self.effects.changes.saturating_sub(changes);
        let (notes, view) = (&self.effects.notes, self.view(near));
        notify::after(notes, command, db, args, changes, before, &view);
    }
}

impl<'a> Context<'a> {
    /// The ground for a unit, and the reply that is written meanwhile.
    pub fn split(&mut self) -> (Ground<'_>, &mut ReplyWriter<'a>) {
        let ground = Ground {
            keyspace: &mut *self.keyspace,
            now: self.now,
            rng: &mut *self.rng,
            access: self.access,
            settings: &mut *self.settings,
            effects: &mut *self.effects,
            hash_seed: self.hash_seed,
        };
        (ground, &mut self.reply)
    }
}

/// How the commands of a unit are run.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Database.
    pub db: u16,
    /// Replies are RESP3.
    pub is_resp3: bool,
}

/// What has been called inside of units, for the statistics. Few kinds in a row, so the last one is looked
/// at first.
#[derive(Debug, Default)]
pub struct NestedCalls {
    calls: Vec<(StorageCommand, Option<ErrorCounter>, u32)>,
    /// Errors of commands that were refused, and which those are if they are any.
    pub refused: Vec<(Option<StorageCommand>, ErrorCounter)>,
    /// Calls of a gateway's commands, and whether they failed.
    pub answered: Vec<(GatewayCommand, bool, u32)>,
    /// The unit itself ended with an error.
    pub failure: Option<Failure>,
    /// It may have changed data.
    pub has_written: bool,
    /// What has written, if somebody wants to know: who watches keys.
    pub writes: Option<Vec<NestedWrite>>,
}

/// How a unit failed.
#[derive(Debug)]
pub enum Failure {
    /// With an error that has been counted.
    Counted,
    /// With one of ours.
    Known(ErrorCounter),
    /// With one whose first word the script has made up.
    Own(Box<[u8]>),
}

/// A command inside of a unit that has written.
#[derive(Debug)]
pub struct NestedWrite {
    /// Which.
    pub command: StorageCommand,
    /// Database.
    pub db: u16,
    /// Arguments, the name included.
    pub argc: u32,
    /// Arguments without it, packed as in a request.
    pub body: Vec<u8>,
    /// It has changed something.
    pub has_changed: bool,
}

impl NestedCalls {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, command: StorageCommand, error: Option<ErrorCounter>) {
        let known = self.calls.iter_mut().rev();
        for (seen, seen_error, count) in known {
            if (*seen, *seen_error) == (command, error) {
                *count = count.saturating_add(1);
                return;
            }
        }
        self.calls.push((command, error, 1));
    }

    /// Counts one of a gateway.
    pub fn count_answered(&mut self, command: GatewayCommand, failed: bool) {
        let mut known = self.answered.iter_mut();
        match known.find(|seen| (seen.0, seen.1) == (command, failed)) {
            Some((_, _, count)) => *count = count.saturating_add(1),
            None => self.answered.push((command, failed, 1)),
        }
    }

    /// All of them, once.
    pub fn take(&mut self) -> impl Iterator<Item = (StorageCommand, Option<ErrorCounter>, u32)> {
        self.calls.drain(..)
    }
}

/// See the module.
#[derive(Debug, Default)]
#[must_use = "a unit ends with `finish`"]
pub struct Unit {
    has_written: bool,
}

impl Unit {
    /// A unit that has not done anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a command that may write has run.
    pub fn has_written(&self) -> bool {
        self.has_written
    }

    /// A command that may write is about to run: opens the bracket, if it is the first one.
    pub fn begin_to_write(&mut self, ground: &mut Ground<'_>, db: u16, slot: u16) {
        if !self.has_written {
            self.has_written = true;
            for _ in 0..BRACKET_DEPTH {
                ground.keyspace.begin_write(db, slot);
            }
        }
    }

    /// Runs one command, whose number of arguments has been checked, and appends its reply to `out`.
    /// Returns what kind of error that is, if it is one.
    pub fn run(
        &mut self,
        ground: &mut Ground<'_>,
        command: StorageCommand,
        args: Args<'_>,
        manner: Manner,
        out: &mut Vec<u8>,
    ) -> Option<ErrorCounter> {
        let first_slot = slot_of(args.get(1));
        if Engine::writes(command) {
            self.begin_to_write(ground, manner.db, first_slot);
        }
        let start = out.len();
        let changes = ground.effects.changes;
        let before = ground.look_before(command, args, manner.db, None);
        let mut nested = Context {
            keyspace: &mut *ground.keyspace,
            reply: ReplyWriter::to_vec(out, manner.is_resp3),
            now: ground.now,
            rng: &mut *ground.rng,
            db: manner.db,
            access: ground.access,
            settings: &mut *ground.settings,
            effects: &mut *ground.effects,
            hash_seed: ground.hash_seed,
            first_slot,
            is_first_part: true,
            first_hash: None,
            scripts: None,
        };
        let result = handler(command)(&mut nested, args);
        let block = nested.effects.waking.block.take();
        if let Err(error) = result {
            out.truncate(start);
            ReplyWriter::to_vec(out, manner.is_resp3).error(&error);
            return Some(ErrorCounter::of(&error));
        }
        if Engine::writes(command) && ground.effects.nested.writes.is_some() {
            note_write(ground, command, args, manner.db, changes);
        }
        if let Some(before) = before {
            ground.note(command, (args, manner.db), changes, &before, None);
        }
        if let Some(block) = block {
            let mut reply = ReplyWriter::to_vec(out, manner.is_resp3);
            match block.on_timeout {
                TimeoutReply::NullArray => reply.null_array(),
                TimeoutReply::Null => reply.null(),
            }
        }
        None
    }

    /// Ends the unit; true if it may have written.
    pub fn finish(self, ground: &mut Ground<'_>) -> bool {
        if self.has_written {
            for _ in 0..BRACKET_DEPTH {
                ground.keyspace.end_write();
            }
        }
        self.has_written
    }
}

/// Somebody wants to know what writes.
#[cold]
pub(crate) fn note_write(
    ground: &mut Ground<'_>,
    command: StorageCommand,
    args: Args<'_>,
    db: u16,
    changes: u64,
) {
    let Some(writes) = &mut ground.effects.nested.writes else {
        return;
    };
    let has_changed = ground.effects.changes != changes;
    let mut body = Vec::new();
    for argument in args.iter_from(1) {
        body.extend_from_slice(&(argument.len() as u32).to_le_bytes());
        body.extend_from_slice(argument);
    }
    writes.push(NestedWrite {
        command,
        db,
        argc: args.len() as u32,
        body,
        has_changed,
    });
}

/// U1.
const BRACKET_DEPTH: usize = 2;
