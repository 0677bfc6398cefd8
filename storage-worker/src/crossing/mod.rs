//! Commands over keys of several workers, run by one of them in the keyspaces of all.
//!
//! ```text
//!   all keys here                      the handler, here
//!   all keys at one other worker       the handler, there
//!   MSET MGET DEL EXISTS ...           the handler per run of keys of one owner, replies joined    `split`
//!   FLUSHALL KEYS DBSIZE ...           the handler everywhere, replies joined                      `split`
//!   LMPOP ZMPOP BLPOP ...              key by key, until one has something                         `first`
//!   LMOVE SMOVE ...                    take there, put here                                        `moves`
//!   XREAD XREADGROUP                   stream by stream                                            `streams`
//!   everything else                    copies of the foreign values beside the largest one         `guests`
//! ```
//!
//! All of it happens while nobody else is in any of these keyspaces, so it is as atomic as a handler is, and
//! the same inputs give the same outputs. Brackets stay open until [`Crossing::finish`].
//!
//! Cost: of a split command a few dozen instructions per run of keys. Guests cost a copy of every value that
//! is read in another place than its own, except the largest one.
//! Not here: how keyspaces of other workers are had (`neighbours`, `event_loop`), scripts, transactions.

mod first;
mod guests;
mod moves;
mod split;
mod streams;
#[cfg(test)]
mod tests;

use crate::blocking::{Block, TimeoutReply};
use crate::commands::handler;
use crate::context::Context;
use crate::engine::Engine;
use crate::keyspace::Keyspace;
use crate::neighbours::{Neighbours, Workers};
use crate::unit::{Ground, Manner};
use proto::CommandError;
use proto::catalogue::{KeyAt, Reach, Route, StorageCommand, routing_keys};
use proto::counters::ErrorCounter;
use proto::frame::Args;
use proto::resp::reply::ReplyWriter;
use proto::slot::slot_of;

/// Arguments that are put together: what a command passes on to another one.
#[derive(Debug, Default)]
struct Words {
    bytes: Vec<u8>,
    spans: Vec<(u32, u32)>,
}

impl Words {
    fn of<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut all = Self::default();
        words.into_iter().for_each(|word| all.push(word));
        all
    }

    fn push(&mut self, word: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(word);
        self.spans.push((start, self.bytes.len() as u32));
    }

    fn args(&self) -> Args<'_> {
        Args::from_spans(&self.bytes, &self.spans)
    }
}

/// Ground and neighbours of one command, or of several that are one.
#[derive(Debug)]
pub struct Crossing<'c, 'g> {
    /// What commands work on here.
    pub ground: &'c mut Ground<'g>,
    /// The other keyspaces; those that are needed are open.
    pub near: &'c mut Neighbours,
    /// Database and protocol version.
    pub manner: Manner,
}

/// The keys of a request, and whether these are all.
fn keys_of(command: StorageCommand, args: Args<'_>) -> (Vec<KeyAt>, bool) {
    let mut keys = Vec::new();
    let argument = |at: usize| match at {
        0 => command.name().as_bytes(),
        at => args.get(at),
    };
    let reach = routing_keys(command.spec(), args.len(), argument, &mut keys);
    (keys, reach == Reach::Keys)
}

/// The workers whose keyspaces a request needs; all of them if that is not known before it runs. A script whose keys
/// are known for certain says so.
#[must_use]
pub fn needs(
    near: &Neighbours,
    command: StorageCommand,
    args: Args<'_>,
    is_certain: bool,
) -> Workers {
    let is_everywhere = match command.spec().route {
        Route::Every(_) | Route::Cursor | Route::RandomWorker => true,
        Route::Script => !is_certain,
        _ => false,
    };
    let (keys, is_known) = keys_of(command, args);
    if is_everywhere || !is_known {
        return near.all();
    }
    let mut workers = Workers::default();
    for key in keys {
        workers.add(near.owner_of(args.get(key.position as usize)));
    }
    workers
}

impl Crossing<'_, '_> {
    /// Runs one command whose workers are open and appends its reply to `out`. Returns what kind of error
    /// that is, if it is one, and whether the command wants to wait: then there is no reply yet.
    pub fn run(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> (Option<ErrorCounter>, Option<Box<Block>>) {
        let start = out.len();
        match self.dispatch(command, args, out) {
            Ok(block) => {
                if block.is_some() {
                    out.truncate(start);
                }
                (None, block)
            }
            Err(error) => {
                out.truncate(start);
                ReplyWriter::to_vec(out, self.manner.is_resp3).error(&error);
                (Some(ErrorCounter::of(&error)), None)
            }
        }
    }

    /// The same where nobody may wait.
    pub fn run_at_once(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Option<ErrorCounter> {
        let (error, block) = self.run(command, args, out);
        if let Some(block) = block {
            let mut reply = ReplyWriter::to_vec(out, self.manner.is_resp3);
            match block.on_timeout {
                TimeoutReply::NullArray => reply.null_array(),
                TimeoutReply::Null => reply.null(),
            }
        }
        error
    }

    /// Ends all brackets.
    pub fn finish(&mut self) {
        self.near.finish(self.ground.keyspace);
    }

    fn dispatch(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        use StorageCommand as C;
        match command.spec().route {
            Route::Every(merge) => return self.everywhere(command, merge, args, out),
            Route::Cursor => return self.scan(command, args, out),
            Route::RandomWorker => return self.random_key(command, args, out),
            _ => {}
        }
        let (keys, is_known) = keys_of(command, args);
        let mut workers = Workers::default();
        for key in &keys {
            workers.add(self.near.owner_of(args.get(key.position as usize)));
        }
        let mut owners = workers.iter();
        match (owners.next(), owners.next()) {
            (None, _) => return self.at(self.near.own(), command, args, out),
            (Some(only), None) if is_known => return self.at(only, command, args, out),
            _ => {}
        }
        if let Route::Scatter(merge) = command.spec().route {
            return self.split(command, merge, args, out);
        }
        match command {
            C::LMPop | C::ZMPop | C::BLMPop | C::BZMPop => {
                self.first_of_counted(command, args, out)
            }
            C::BLPop | C::BRPop | C::BZPopMin | C::BZPopMax => self.first_of(command, args, out),
            C::LMove | C::RPopLPush | C::BLMove | C::BRPopLPush => {
                self.move_element(command, args, out)
            }
            C::SMove => self.move_member(args, out),
            C::XRead | C::XReadGroup => self.read_streams(command, args, out),
            _ => self.with_guests(command, args, &keys, out),
        }
    }

    /// Runs the handler of a command in the keyspace of one worker.
    fn at(
        &mut self,
        worker: usize,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        self.at_part(worker, command, args, true, out)
    }

    /// The same for a part of a command; the first one counts changes that all of them make together.
    fn at_part(
        &mut self,
        worker: usize,
        command: StorageCommand,
        args: Args<'_>,
        is_first_part: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let first_slot = slot_of(args.get(1));
        if Engine::writes(command) {
            self.begin(worker, first_slot);
        }
        let start = out.len();
        let result = self.with_context(worker, first_slot, out, |context| {
            context.is_first_part = is_first_part;
            handler(command)(context, args)
        });
        let block = self.ground.effects.waking.block.take();
        if let Err(error) = result {
            out.truncate(start);
            return Err(error);
        }
        Ok(block)
    }

    /// Calls `work` with what a handler gets in the keyspace of a worker.
    fn with_context<R>(
        &mut self,
        worker: usize,
        first_slot: u16,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let Self {
            ground,
            near,
            manner,
        } = self;
        let Ground {
            keyspace,
            now,
            rng,
            access,
            settings,
            effects,
            hash_seed,
        } = &mut **ground;
        near.with(worker, keyspace, |keyspace| {
            work(&mut Context {
                keyspace,
                reply: ReplyWriter::to_vec(out, manner.is_resp3),
                now: *now,
                rng,
                db: manner.db,
                access: *access,
                settings,
                effects,
                hash_seed: *hash_seed,
                first_slot,
                is_first_part: true,
                first_hash: None,
                scripts: None,
            })
        })
    }

    /// Looks at the keyspace of a worker.
    fn look<R>(&mut self, worker: usize, look: impl FnOnce(&mut Keyspace) -> R) -> R {
        self.near.with(worker, self.ground.keyspace, look)
    }

    /// Opens the bracket of a worker.
    fn begin(&mut self, worker: usize, slot: u16) {
        self.near
            .begin(worker, self.ground.keyspace, self.manner.db, slot);
    }
}
