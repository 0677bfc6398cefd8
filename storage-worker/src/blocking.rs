//! What a handler says when it cannot answer yet, and what it says when others might go on.
//!
//! A blocking command is an ordinary handler that tries first. Found nothing, it calls
//! [`Context::block`] and returns `Ok` with an empty reply; the shell keeps the request. Whoever adds
//! to a list, sorted set or stream calls [`Context::signal_ready`]. After that command, and before
//! the next one, the shell runs the waiting handlers again, in the order in which they came:
//!
//! ```text
//!   BLPOP k 0   ── nothing there ──> block()            the request is parked
//!   RPUSH k v   ── key is new ─────> signal_ready(k)
//!               ── its reply, then the handler of BLPOP once more: takes v, replies
//! ```
//!
//! The second run is the first one over again: same arguments, same code. It is only begun when the
//! signalled key holds a value of the kind that was waited for, so another kind keeps it waiting;
//! any other of its keys is looked at as if the command had just come (and may be an error, as in
//! the reference). If it finds nothing again, it calls `block` again and waits on in its old place
//! with its old deadline.
//!
//! Cost: nothing for commands that do neither; `signal_ready` is one compare while nobody waits.
//! Not here: who waits, in which order, until when (`event_loop`).

use crate::context::Context;
use crate::keyspace::{Key, ValueKind};
use proto::CommandError;
use proto::number::{LongDouble, parse_i64};
use proto::time::UnixMillis;

/// A database and a key in it.
pub type WaitKey = (u16, Box<[u8]>);

/// Where something has happened that others may wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// At a key.
    Key(WaitKey),
    /// At any key of a database: it was flushed, or swapped with another one.
    Database(u16),
}

/// The null that stands for "nothing, and waiting is not possible": inside a transaction or script a
/// blocking command answers it at once. (A client whose time is over always gets a null array.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReply {
    /// `*-1`, in RESP3 `_`: commands that answer with arrays.
    NullArray,
    /// `$-1`, in RESP3 `_`: commands that answer with one element.
    Null,
}

/// A wish to wait.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// What the keys must hold for the handler to be run again.
    pub kind: ValueKind,
    /// The keys; a key that is named twice counts once.
    pub keys: Vec<WaitKey>,
    /// When the wait is over; `None` for never.
    pub deadline: Option<UnixMillis>,
    /// What is answered where nobody may wait.
    pub on_timeout: TimeoutReply,
    /// The handler is run again, too, when one of the keys is deleted or replaced (XREADGROUP).
    pub wakes_without_key: bool,
    /// Arguments that stand for others in all later runs (`$` of XREAD becomes an ID).
    pub replaced: Vec<(usize, Vec<u8>)>,
}

/// What handlers and shell tell each other about waiting. Lives in `Effects`.
#[derive(Debug, Default)]
pub struct Waking {
    /// Somebody waits, so signals have to be noted. Kept up to date by the shell.
    pub has_waiters: bool,
    /// The command that ran wants to wait.
    pub block: Option<Box<Block>>,
    /// Signals, in order.
    pub ready: Vec<Signal>,
}

impl Context<'_> {
    /// The command waits until one of `keys` is signalled and holds a value of `kind`, or until
    /// `deadline`. Return `Ok(())` afterwards, with nothing in the reply.
    ///
    /// Returns the wish, for the few commands that have more to say.
    pub fn block<'k>(
        &mut self,
        kind: ValueKind,
        keys: impl IntoIterator<Item = &'k [u8]>,
        deadline: Option<UnixMillis>,
        on_timeout: TimeoutReply,
    ) -> &mut Block {
        let db = self.db;
        self.effects.waking.block.insert(Box::new(Block {
            kind,
            keys: keys.into_iter().map(|key| (db, key.into())).collect(),
            deadline,
            on_timeout,
            wakes_without_key: false,
            replaced: Vec::new(),
        }))
    }

    /// `key` was created, or a stream got an entry, or a group of it is gone: whoever waits for it is
    /// looked at after this command. That a stream is removed or overwritten need not be said.
    #[inline]
    pub fn signal_ready(&mut self, key: &Key<'_>) {
        if self.effects.waking.has_waiters {
            let key = (key.db, key.bytes.into());
            self.effects.waking.ready.push(Signal::Key(key));
        }
    }

    /// The same for all keys of a database: it was flushed, or swapped.
    pub fn signal_database(&mut self, db: u16) {
        if self.effects.waking.has_waiters {
            self.effects.waking.ready.push(Signal::Database(db));
        }
    }

    /// The deadline that a timeout in seconds means, which may be a fraction; 0 is no deadline.
    ///
    /// # Errors
    /// `TimeoutNotFloat`, `TimeoutOutOfRange`, `TimeoutNegative`.
    pub fn deadline_in_seconds(&self, text: &[u8]) -> Result<Option<UnixMillis>, CommandError> {
        let seconds = LongDouble::parse(text).ok_or(CommandError::TimeoutNotFloat)?;
        match seconds.thousandfold_up() {
            Some(millis) => self.deadline_after(millis),
            None if seconds.is_negative() => Err(CommandError::TimeoutNegative),
            None => Err(CommandError::TimeoutOutOfRange),
        }
    }

    /// As [`Context::deadline_in_seconds`] for whole milliseconds (`BLOCK` of XREAD).
    ///
    /// # Errors
    /// `TimeoutNotInteger`, `TimeoutOutOfRange`, `TimeoutNegative`.
    pub fn deadline_in_millis(&self, text: &[u8]) -> Result<Option<UnixMillis>, CommandError> {
        self.deadline_after(parse_i64(text).ok_or(CommandError::TimeoutNotInteger)?)
    }

    fn deadline_after(&self, millis: i64) -> Result<Option<UnixMillis>, CommandError> {
        match u64::try_from(millis) {
            Err(_) => Err(CommandError::TimeoutNegative),
            Ok(0) => Ok(None),
            Ok(millis) => {
                let deadline = self.now.get().checked_add(millis);
                let deadline = deadline.filter(|&at| i64::try_from(at).is_ok());
                Ok(Some(UnixMillis(
                    deadline.ok_or(CommandError::TimeoutOutOfRange)?,
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Effects;
    use crate::keyspace::{self, Access, Keyspace};
    use crate::random::Random;
    use crate::settings::EngineSettings;
    use proto::resp::reply::ReplyWriter;
    use proto::settings::Settings;
    use shm::arena::Mapping;

    fn with_context<R>(test: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let arena = Mapping::private_anywhere(1 << 30, keyspace::fingerprint()).unwrap();
        arena.enter();
        let mut reply = Vec::new();
        test(&mut Context {
            keyspace: &mut Keyspace::create(16, 1),
            reply: ReplyWriter::to_vec(&mut reply, false),
            now: UnixMillis(1_000_000),
            rng: &mut Random::new(1),
            db: 3,
            access: Access::Read,
            settings: &mut EngineSettings::new(&Settings::default()),
            effects: &mut Effects::default(),
            hash_seed: 1,
            first_slot: 0,
            is_first_part: true,
            first_hash: None,
            scripts: None,
        })
    }

    #[test]
    fn timeouts_are_read_as_the_reference_reads_them() {
        use CommandError::{TimeoutNegative, TimeoutNotFloat, TimeoutOutOfRange};
        with_context(|ctx| {
            let cases: [(&str, Result<Option<u64>, CommandError>); 16] = [
                ("0", Ok(None)),
                ("-0", Ok(None)),
                ("1", Ok(Some(1_001_000))),
                ("0.1", Ok(Some(1_000_100))),
                ("0.0001", Ok(Some(1_000_001))),
                ("0x10", Ok(Some(1_016_000))),
                ("-0.0001", Ok(None)),
                ("-1", Err(TimeoutNegative)),
                ("-inf", Err(TimeoutNegative)),
                ("-1e300", Err(TimeoutNegative)),
                ("inf", Err(TimeoutOutOfRange)),
                ("1e30", Err(TimeoutOutOfRange)),
                ("9223372036854775", Err(TimeoutOutOfRange)),
                ("nan", Err(TimeoutNotFloat)),
                ("", Err(TimeoutNotFloat)),
                ("1 ", Err(TimeoutNotFloat)),
            ];
            for (text, want) in cases {
                let got = ctx.deadline_in_seconds(text.as_bytes());
                assert_eq!(got, want.map(|at| at.map(UnixMillis)), "{text}");
            }
            let got = ctx.deadline_in_millis(b"9223372036854775807");
            assert_eq!(got, Err(TimeoutOutOfRange));
            assert_eq!(
                ctx.deadline_in_millis(b"5"),
                Ok(Some(UnixMillis(1_000_005)))
            );
        });
    }

    #[test]
    fn keys_are_noted_only_while_somebody_waits() {
        with_context(|ctx| {
            let key = ctx.key(b"k");
            ctx.signal_ready(&key);
            assert!(ctx.effects.waking.ready.is_empty());
            ctx.effects.waking.has_waiters = true;
            ctx.signal_ready(&key);
            ctx.signal_database(7);
            let signals = [Signal::Key((3, b"k"[..].into())), Signal::Database(7)];
            assert_eq!(ctx.effects.waking.ready, signals);
            let keys = [&b"a"[..], b"b"];
            ctx.block(ValueKind::String, keys, None, TimeoutReply::Null)
                .wakes_without_key = true;
            let block = ctx.effects.waking.block.take().unwrap();
            assert_eq!((block.keys.len(), block.wakes_without_key), (2, true));
        });
    }
}
