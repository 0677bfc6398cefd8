//! The core of a storage worker: a request, a time and a seed in; reply bytes and effects out.
//!
//! No ring, clock, thread or file appears here, so a test (or a log) can drive it exactly as the
//! event loop does, and the same inputs always give the same outputs.
//!
//! ```text
//!   request frame --> row of the catalogue --> handler(Context, Args) --> RESP bytes
//!                                                   |
//!                                                   +--> keyspace, effects
//! ```
//!
//! Cost: a table look-up, one pass over the packed arguments and an indirect call per command;
//! nothing is allocated.
//! Not here: whether a change is bracketed in the journal (`event_loop`), what a command does
//! (`commands`).

use crate::blocking::Block;
use crate::commands::handler;
use crate::context::{Context, Effects};
use crate::crossing::Crossing;
use crate::keyspace::{Access, Keyspace};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::settings::EngineSettings;
use crate::unit::{Ground, Manner};
use proto::CommandError;
use proto::catalogue::{StorageCommand, flag};
use proto::counters::ErrorCounter;
use proto::frame::{Args, RequestHeader, flags};
use proto::resp::reply::ReplyWriter;
use proto::time::UnixMillis;

/// What the loop must know of a command before it runs, packed for two bytes per command.
#[derive(Clone, Copy, Debug)]
struct Traits(u16);

impl Traits {
    const WRITES: u16 = 1;
    const DENIES_OOM: u16 = 2;
    const KEY_IS_FIRST: u16 = 4;
    const BLOCKS: u16 = 8;
    /// It may take long, so it is timed if anybody wants to know.
    const MAY_BE_SLOW: u16 = 16;
    /// It may stand in the slow log.
    const IS_LOGGED: u16 = 32;
    /// The loop runs it.
    const BY_LOOP: u16 = 64;
    /// It runs a script, which may do anything.
    const RUNS_SCRIPT: u16 = 128;
    /// The same, and it may write.
    const RUNS_WRITING_SCRIPT: u16 = 256;
}

/// Indexed by `StorageCommand`.
static TRAITS: [Traits; StorageCommand::COUNT] = traits();

const fn traits() -> [Traits; StorageCommand::COUNT] {
    let mut traits = [Traits(0); StorageCommand::COUNT];
    let mut command = 0;
    while command < StorageCommand::COUNT {
        let spec = &proto::catalogue::storage::SPECS[command];
        let mut bits = 0;
        if spec.flags.has(flag::WRITE) {
            bits |= Traits::WRITES;
        }
        if spec.flags.has(flag::DENYOOM) {
            bits |= Traits::DENIES_OOM;
        }
        if spec.flags.has(flag::BLOCKING) {
            bits |= Traits::BLOCKS;
        }
        if spec.flags.has(flag::BY_LOOP) {
            bits |= Traits::BY_LOOP;
        }
        if spec.flags.has(flag::SCRIPT) {
            bits |= Traits::RUNS_SCRIPT;
            if !spec.flags.has(flag::READONLY) {
                bits |= Traits::RUNS_WRITING_SCRIPT;
            }
        }
        // SET is not marked as fast, but all that it does is a copy of what has arrived.
        let is_fast = spec.flags.has(flag::FAST) || command == StorageCommand::Set as usize;
        if !spec.flags.has(flag::SKIP_SLOWLOG) {
            bits |= Traits::IS_LOGGED;
            if !is_fast {
                bits |= Traits::MAY_BE_SLOW;
            }
        }
        if spec.keys.starts_with_key() {
            bits |= Traits::KEY_IS_FIRST;
        }
        traits[command] = Traits(bits);
        command += 1;
    }
    traits
}

/// Number of the argument that names an element of the collection at the key, so that its memory can be
/// asked for ahead; 0 if none does. Indexed by `StorageCommand`.
static ELEMENT_ARGUMENTS: [u8; StorageCommand::COUNT] = element_arguments();

const fn element_arguments() -> [u8; StorageCommand::COUNT] {
    let mut arguments = [0; StorageCommand::COUNT];
    let mut named = 0;
    while named < ELEMENT_IS_SECOND.len() {
        arguments[ELEMENT_IS_SECOND[named] as usize] = 2;
        named += 1;
    }
    // Behind the score, if there are no options.
    arguments[StorageCommand::ZAdd as usize] = 3;
    arguments[StorageCommand::ZIncrBy as usize] = 3;
    arguments
}

/// Commands whose second argument names an element.
const ELEMENT_IS_SECOND: [StorageCommand; 19] = [
    StorageCommand::HSet,
    StorageCommand::HGet,
    StorageCommand::HSetNx,
    StorageCommand::HMSet,
    StorageCommand::HExists,
    StorageCommand::HDel,
    StorageCommand::HIncrBy,
    StorageCommand::HIncrByFloat,
    StorageCommand::HStrLen,
    StorageCommand::HMGet,
    StorageCommand::SAdd,
    StorageCommand::SRem,
    StorageCommand::SIsMember,
    StorageCommand::SMIsMember,
    StorageCommand::ZScore,
    StorageCommand::ZRem,
    StorageCommand::ZRank,
    StorageCommand::ZRevRank,
    StorageCommand::ZMScore,
];

/// A command that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Bytes of the reply.
    pub reply_len: usize,
    /// The reply did not fit into the memory lent to its writer.
    pub is_spilled: bool,
    /// What kind of error the reply is, if it is one.
    pub error: Option<ErrorCounter>,
}

/// The deterministic part of a worker.
#[derive(Debug)]
pub struct Engine {
    /// The data.
    pub keyspace: Keyspace,
    /// Settings that commands look at.
    pub settings: EngineSettings,
    /// What the last command wants the shell to do.
    pub effects: Effects,
    rng: Random,
    /// Bits of `Traits`: which commands are timed.
    timed: u16,
    hash_seed: u64,
    spans: Vec<(u32, u32)>,
    /// Scripts and what runs them.
    pub scripts: Box<Scripts>,
}

impl Engine {
    /// Several commands that are one begin.
    pub fn enter_unit(&mut self) {
        if let Some(near) = &mut self.scripts.surroundings.near {
            near.enter_unit();
        }
    }

    /// They have ended.
    pub fn leave_unit(&mut self) {
        if let Some(near) = &mut self.scripts.surroundings.near {
            near.leave_unit();
            near.finish(&mut self.keyspace);
        }
    }

    /// Runs one command over the keyspaces of several workers, which are open, and appends its reply to
    /// `out`. Returns what kind of error that is, if it is one, and whether the command wants to wait: then
    /// there is no reply yet. Brackets stay open inside of a unit.
    pub fn cross(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        now: UnixMillis,
        out: &mut Vec<u8>,
    ) -> (Option<ErrorCounter>, Option<Box<Block>>) {
        let is_quiet = request.flags & flags::NO_TOUCH != 0;
        let manner = Manner {
            db: request.database,
            is_resp3: request.flags & flags::RESP3 != 0,
        };
        let mut ground = Ground {
            keyspace: &mut self.keyspace,
            now,
            rng: &mut self.rng,
            access: if is_quiet { Access::Peek } else { Access::Read },
            settings: &mut self.settings,
            effects: &mut self.effects,
            hash_seed: self.hash_seed,
        };
        let args = Args::new(body, request.argc, &mut self.spans);
        let (Some(near), Ok(args)) = (&mut self.scripts.surroundings.near, args) else {
            let error = CommandError::Internal;
            ReplyWriter::to_vec(out, manner.is_resp3).error(&error);
            return (Some(ErrorCounter::of(&error)), None);
        };
        let mut crossing = Crossing {
            ground: &mut ground,
            near,
            manner,
        };
        let outcome = crossing.run(command, args, out);
        crossing.finish();
        outcome
    }

    /// An engine over a keyspace. `hash_seed` is that of the whole system, `seed` is this worker's.
    pub fn new(keyspace: Keyspace, settings: EngineSettings, hash_seed: u64, seed: u64) -> Self {
        Self {
            keyspace,
            settings,
            effects: Effects::default(),
            rng: Random::new(seed),
            timed: 0,
            hash_seed,
            spans: Vec::new(),
            scripts: Box::default(),
        }
    }

    /// The seed of key hashes.
    #[inline]
    pub fn hash_seed(&self) -> u64 {
        self.hash_seed
    }

    /// Whether the command may change data.
    #[inline]
    pub fn writes(command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & Traits::WRITES != 0
    }

    /// Whether the command neither changes data nor waits.
    #[inline]
    pub fn only_reads(command: StorageCommand) -> bool {
        let others = Traits::WRITES | Traits::BLOCKS | Traits::BY_LOOP | Traits::RUNS_SCRIPT;
        TRAITS[command as usize].0 & others == 0
    }

    /// Whether the loop runs the command, not a handler.
    #[inline]
    pub fn is_by_loop(command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & Traits::BY_LOOP != 0
    }

    /// Whether the command runs a script, which brackets its writes itself.
    #[inline]
    pub fn runs_script(command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & Traits::RUNS_SCRIPT != 0
    }

    /// Whether the command may have changed data when its fate is not known.
    #[inline]
    pub fn may_write(command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & (Traits::WRITES | Traits::RUNS_WRITING_SCRIPT) != 0
    }

    /// Whether the command is refused when memory is short.
    #[inline]
    pub fn denies_oom(command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & Traits::DENIES_OOM != 0
    }

    /// Whether the time that the command took is to be looked at.
    #[inline]
    pub fn is_timed(&self, command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & self.timed != 0
    }

    /// Times the commands that may take this long, or none.
    pub fn time_from(&mut self, micros: Option<u64>) {
        /// What a command that is marked as fast never takes.
        const FAST_MICROS: u64 = 1000;
        self.timed = match micros {
            None => 0,
            Some(FAST_MICROS..) => Traits::MAY_BE_SLOW,
            Some(_) => Traits::IS_LOGGED,
        };
    }

    /// Number of the argument that names an element of the collection at the key; 0 if none does.
    #[inline]
    pub fn element_argument(command: StorageCommand) -> usize {
        usize::from(ELEMENT_ARGUMENTS[command as usize])
    }

    /// Whether argument 1 of the command is a key.
    #[inline]
    pub fn key_is_first(command: StorageCommand) -> bool {
        TRAITS[command as usize].0 & Traits::KEY_IS_FIRST != 0
    }

    /// Runs one command. `body` is the packed arguments, `first_hash` the hash of argument 1 if it
    /// is known. An error of the command becomes the reply; what it had written is dropped.
    #[inline(always)]
    pub fn execute(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        first_hash: Option<u64>,
        now: UnixMillis,
        reply: ReplyWriter<'_>,
    ) -> Executed {
        let is_quiet = request.flags & flags::NO_TOUCH != 0;
        let mut context = Context {
            keyspace: &mut self.keyspace,
            reply,
            now,
            rng: &mut self.rng,
            db: request.database,
            access: if is_quiet { Access::Peek } else { Access::Read },
            settings: &mut self.settings,
            effects: &mut self.effects,
            hash_seed: self.hash_seed,
            first_slot: request.slot,
            is_first_part: request.part <= 1,
            first_hash,
            scripts: Some(&mut self.scripts),
        };
        let result = match Args::new(body, request.argc, &mut self.spans) {
            Ok(args) => handler(command)(&mut context, args),
            Err(_) => Err(CommandError::Internal),
        };
        let mut counted = None;
        if let Err(error) = result {
            counted = Some(ErrorCounter::of(&error));
            context.effects.waking.block = None;
            context.reply.truncate(0);
            context.reply.error(&error);
        }
        Executed {
            reply_len: context.reply.len(),
            is_spilled: context.reply.is_spilled(),
            error: counted,
        }
    }
}
