//! What a script's commands run in: which are allowed, where their keys may live, and the few that a
//! gateway answers when a client calls them.

use crate::crossing::{Crossing, needs};
use crate::engine::Engine;
use crate::neighbours::{Neighbours, Workers};
use crate::scripts::{FunctionCall, Questions, Surroundings};
use crate::unit::{Ground, Manner, Unit, note_write};
use proto::CommandError;
use proto::catalogue::{
    self, CommandRef, GatewayCommand, Lookup, Reach, Route, Spec, StorageCommand, flag,
    routing_keys,
};
use proto::counters::ErrorCounter;
use proto::frame::{Args, Question, Space};
use proto::number::parse_i64;
use proto::resp::reply::ReplyWriter;
use proto::slot::slot_of;
use script::{Host, Tick, Words, flags};

/// Errors of refused commands that are counted for one script.
const REFUSED_MAX: usize = 1000;

/// See the module.
#[derive(Debug)]
pub(super) struct Nested<'a, 'w> {
    pub(super) ground: Ground<'a>,
    pub(super) unit: Unit,
    pub(super) manner: Manner,
    pub(super) surroundings: &'w mut Surroundings,
    /// The call, if it is one of a function.
    pub(super) function: Option<FunctionCall<'w>>,
    /// What the script promises.
    pub(super) promises: u8,
    pub(super) is_read_only: bool,
}

impl Nested<'_, '_> {
    /// The script has ended.
    pub(super) fn finish(mut self) {
        if let Some(near) = &mut self.surroundings.near {
            near.leave_unit();
            near.finish(self.ground.keyspace);
        }
        let has_written = self.unit.finish(&mut self.ground);
        self.ground.effects.nested.has_written |= has_written;
    }

    fn run(
        &mut self,
        words: Words<'_>,
        resp3: bool,
        reply: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let spec = find(words)?;
        if !spec.arity_fits(words.spans.len()) {
            return Err(CommandError::ScriptArity);
        }
        if spec.flags.has(flag::NOSCRIPT) {
            return Err(CommandError::ScriptForbidden);
        }
        let command = match spec.command {
            CommandRef::Storage(command) => command,
            CommandRef::Gateway(command) => {
                let result = self.answer(command, words, resp3, reply);
                let nested = &mut self.ground.effects.nested;
                nested.count_answered(command, result.is_err());
                return result;
            }
            CommandRef::Container(_) => return Err(CommandError::ScriptArity),
        };
        self.check(spec)?;
        let manner = Manner {
            is_resp3: resp3,
            ..self.manner
        };
        let arguments = words.spans.get(1..).unwrap_or_default();
        let args = Args::from_spans(words.bytes, arguments);
        let error = if self.is_here(spec, words) {
            self.unit
                .run(&mut self.ground, command, args, manner, reply)
        } else {
            self.cross(command, args, manner, reply)?
        };
        self.ground.effects.nested.count(command, error);
        Ok(())
    }

    fn check(&self, spec: &'static Spec) -> Result<(), CommandError> {
        // Also what could write for replicas: a script that promises not to runs during CLIENT PAUSE WRITE.
        if self.is_read_only && spec.may_replicate() {
            return Err(CommandError::ScriptWrites);
        }
        let needs_replicas = self.ground.settings.lacks_replicas && spec.flags.has(flag::WRITE);
        if needs_replicas && !self.unit.has_written() {
            return Err(CommandError::NoReplicas);
        }
        // A script that has written is not stopped half-way.
        let is_refused = self.surroundings.is_memory_short
            && spec.flags.has(flag::DENYOOM)
            && self.promises & flags::ALLOW_OOM == 0
            && !self.unit.has_written();
        if is_refused {
            return Err(CommandError::OutOfMemory);
        }
        Ok(())
    }

    /// Whether all keys of a command live here.
    fn is_here(&self, spec: &'static Spec, words: Words<'_>) -> bool {
        let slots = self.surroundings.slots.as_deref();
        slots.is_none_or(|slots| are_here(spec, words, slots))
    }

    /// Runs a command whose keys live elsewhere, in keyspaces that were opened for the script.
    fn cross(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        manner: Manner,
        reply: &mut Vec<u8>,
    ) -> Result<Option<ErrorCounter>, CommandError> {
        let near = self.surroundings.near.as_deref_mut();
        let near = near.ok_or(CommandError::ScriptElsewhere)?;
        if !needs(near, command, args, false)
            .without(near.opened())
            .is_empty()
        {
            return Err(CommandError::ScriptElsewhere);
        }
        if Engine::writes(command) {
            self.unit
                .begin_to_write(&mut self.ground, manner.db, slot_of(args.get(1)));
        }
        let changes = self.ground.effects.changes;
        let before = self
            .ground
            .look_before(command, args, manner.db, Some(near));
        let error = Crossing {
            ground: &mut self.ground,
            near,
            manner,
        }
        .run_at_once(command, args, reply);
        if let Some(before) = before.filter(|_| error.is_none()) {
            let about = (args, manner.db);
            self.ground
                .note(command, about, changes, &before, Some(near));
        }
        if error.is_none() && Engine::writes(command) {
            note_write(&mut self.ground, command, args, manner.db, changes);
        }
        Ok(error)
    }

    /// Commands that touch no keys.
    fn answer(
        &mut self,
        command: GatewayCommand,
        words: Words<'_>,
        resp3: bool,
        reply: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let mut reply = ReplyWriter::to_vec(reply, resp3);
        match command {
            GatewayCommand::Publish | GatewayCommand::SPublish => {
                if self.is_read_only {
                    return Err(CommandError::ScriptWrites);
                }
                let space = match command {
                    GatewayCommand::SPublish => Space::Shard,
                    _ => Space::Channel,
                };
                let broker = &mut self.surroundings.broker;
                let count = broker.publish(space, words.get(1), words.get(2));
                reply.int(i64::from(count));
            }
            GatewayCommand::PubSubChannels
            | GatewayCommand::PubSubShardChannels
            | GatewayCommand::PubSubNumSub
            | GatewayCommand::PubSubShardNumSub
            | GatewayCommand::PubSubNumPat => {
                let question = question(command, words)?;
                let answer = self.surroundings.broker.ask(&question);
                let gone = CommandError::Unavailable {
                    what: "the pub/sub broker",
                };
                reply.raw(&answer.ok_or(gone)?);
            }
            GatewayCommand::Ping if words.spans.len() > 2 => {
                return Err(CommandError::Arity { name: "ping" });
            }
            GatewayCommand::Ping if words.spans.len() == 1 => reply.simple("PONG"),
            GatewayCommand::Ping | GatewayCommand::Echo => reply.bulk(words.get(1)),
            GatewayCommand::Time => {
                let now = self.ground.now.get();
                reply.array(2);
                reply.bulk_int(i64::try_from(now / 1000).unwrap_or(i64::MAX));
                reply.bulk_int(i64::try_from(now % 1000 * 1000).unwrap_or(0));
            }
            GatewayCommand::Select => {
                self.manner.db = self.database(words.get(1))?;
                self.ground.effects.counts_elsewhere = true;
                reply.ok();
            }
            GatewayCommand::Wait => reply.int(0),
            GatewayCommand::ReadOnly | GatewayCommand::ReadWrite => reply.ok(),
            GatewayCommand::ClusterKeySlot => reply.int(slot_of(words.get(2)).into()),
            command if command.name().starts_with("cluster|") => {
                return Err(CommandError::ClusterDisabled);
            }
            _ => return Err(CommandError::ScriptNotServed),
        }
        Ok(())
    }

    fn database(&self, text: &[u8]) -> Result<u16, CommandError> {
        let number = parse_i64(text).ok_or(CommandError::NotAnInteger)?;
        if i32::try_from(number).is_err() {
            return Err(CommandError::NotInt32);
        }
        let number = u16::try_from(number).ok();
        number
            .filter(|&number| number < self.ground.settings.databases)
            .ok_or(CommandError::DatabaseOutOfRange)
    }
}

/// What PUBSUB asks.
fn question<'a>(command: GatewayCommand, words: Words<'a>) -> Result<Questions<'a>, CommandError> {
    use GatewayCommand as C;
    let (what, space) = match command {
        C::PubSubChannels => (Question::Names, Space::Channel),
        C::PubSubShardChannels => (Question::Names, Space::Shard),
        C::PubSubNumSub => (Question::Counts, Space::Channel),
        C::PubSubShardNumSub => (Question::Counts, Space::Shard),
        _ => (Question::Patterns, Space::Pattern),
    };
    let count = words.spans.len();
    if what == Question::Names && count > 3 {
        return Err(CommandError::SubcommandSyntax {
            name: "pubsub",
            subcommand: words.get(1).into(),
        });
    }
    Ok(Questions {
        what,
        space,
        pattern: (what == Question::Names && count == 3).then(|| words.get(2)),
        names: match what {
            Question::Counts => (2..count).map(|at| words.get(at)).collect(),
            _ => Vec::new(),
        },
    })
}

fn find(words: Words<'_>) -> Result<&'static Spec, CommandError> {
    let sub = (words.spans.len() > 1).then(|| words.get(1));
    match catalogue::find(words.get(0), sub) {
        Lookup::Found(spec, _) => Ok(spec),
        _ => Err(CommandError::ScriptUnknownCommand),
    }
}

fn are_here(spec: &Spec, words: Words<'_>, slots: &[bool]) -> bool {
    let is_here = |key: &[u8]| {
        slots
            .get(usize::from(slot_of(key)))
            .copied()
            .unwrap_or(false)
    };
    let mut keys = Vec::new();
    match spec.route {
        Route::Every(_) | Route::Cursor | Route::RandomWorker => {
            return false;
        }
        _ => {
            let argument = |at: usize| words.get(at);
            if routing_keys(spec, words.spans.len(), argument, &mut keys) == Reach::Anywhere {
                return false;
            }
        }
    }
    keys.iter()
        .all(|key| is_here(words.get(key.position as usize)))
}

impl Host for Nested<'_, '_> {
    fn call(&mut self, words: Words<'_>, resp3: bool, reply: &mut Vec<u8>) {
        if let Err(error) = self.run(words, resp3, reply) {
            let refused = &mut self.ground.effects.nested.refused;
            if refused.len() < REFUSED_MAX {
                let command = find(words).ok().and_then(|spec| match spec.command {
                    CommandRef::Storage(command) => Some(command),
                    _ => None,
                });
                refused.push((command, ErrorCounter::of(&error)));
            }
            reply.clear();
            error.write_resp(reply);
        }
    }

    fn may_call(&mut self, words: Words<'_>) -> Option<bool> {
        // There are no users with less rights yet.
        find(words).ok().map(|_| true)
    }

    fn log(&mut self, level: u8, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        match level {
            0 => tracing::debug!("script: {text}"),
            1 | 2 => tracing::info!("script: {text}"),
            _ => tracing::warn!("script: {text}"),
        }
    }

    fn tick(&mut self) -> Tick {
        let near = self.surroundings.near.as_deref();
        let holds = near.map_or(Workers::default(), Neighbours::opened);
        let has_written = self.unit.has_written();
        self.surroundings
            .watch
            .tick(self.function, has_written, holds)
    }
}
