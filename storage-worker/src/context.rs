//! What a command handler may touch.
//!
//! A handler gets its arguments and a [`Context`], nothing else: no clock (the time of the batch is
//! `now`), no randomness but the seeded `rng`, no rings. So a command is a function of the keyspace,
//! the arguments, a time and a seed, and can be run again in a test or from a log.
//!
//! Invariant: a handler checks everything that can fail before it changes the keyspace; an error
//! therefore means that nothing happened, and what it has written to the reply is dropped.

use crate::blocking::Waking;
use crate::keyspace::{Access, Key, Keyspace, Pause, StringRef, ValueKind};
use crate::notify::Notes;
use crate::random::Random;
use crate::scripts::Scripts;
use crate::settings::EngineSettings;
use crate::unit::NestedCalls;
use proto::CommandError;
use proto::frame::Args;
use proto::resp::reply::ReplyWriter;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use std::time::Duration;

/// What a handler returns: the reply is in `Context::reply`, or the error is it.
pub type CommandResult = Result<(), CommandError>;

/// Keys that a handler over many keys looks up together, so that their cache misses overlap. Twice
/// the misses that a core keeps in flight; more only costs stack.
const KEYS_TOGETHER: usize = 16;

/// What a command wants the shell to do once it has run.
#[derive(Debug, Default)]
pub struct Effects {
    /// Stop the shard thread for so long before anything else (`DEBUG SLEEP`).
    pub sleep: Option<Duration>,
    /// Give unused memory back to the system (`MEMORY PURGE`).
    pub purge: bool,
    /// Wait, or let those go on that wait (`blocking`).
    pub waking: Waking,
    /// The number of keys of another database than the connection's may have changed.
    pub counts_elsewhere: bool,
    /// What a script has called.
    pub nested: NestedCalls,
    /// A script runs.
    pub is_in_script: bool,
    /// Keyspace events.
    pub notes: Notes,
    /// Changes since somebody looked, counted as Redis counts them (`rdb_changes_since_last_save`).
    pub changes: u64,
}

/// The keyspace, the reply and the circumstances of one command.
#[derive(Debug)]
pub struct Context<'a> {
    /// The data.
    pub keyspace: &'a mut Keyspace,
    /// Where the reply goes.
    pub reply: ReplyWriter<'a>,
    /// Time of the batch.
    pub now: UnixMillis,
    /// Seeded by the shell.
    pub rng: &'a mut Random,
    /// Database of the connection.
    pub db: u16,
    /// How reads touch the access clock: `Read`, or `Peek` under CLIENT NO-TOUCH.
    pub access: Access,
    /// Settings that commands look at.
    pub settings: &'a mut EngineSettings,
    /// What the shell does afterwards.
    pub effects: &'a mut Effects,
    /// Seed of the key hash.
    pub hash_seed: u64,
    /// Slot of the first key, from the frame.
    pub first_slot: u16,
    /// Whether this is all of a command, or the first of the parts that several workers run.
    pub is_first_part: bool,
    /// Hash of argument 1, if it was computed while looking ahead.
    pub first_hash: Option<u64>,
    /// Scripts and what runs them; none inside of a script.
    pub scripts: Option<&'a mut Scripts>,
}

impl Context<'_> {
    /// Until it is dropped this command only reads, though it may write later: if the worker dies
    /// meanwhile, nothing is lost. For parts that take long.
    pub fn pause_write(&mut self) -> Pause {
        self.keyspace.pause_write(self.db, self.first_slot)
    }

    /// Argument 1 as a key, with the slot and hash that are known already.
    #[inline]
    pub fn first_key<'k>(&self, args: Args<'k>) -> Key<'k> {
        let bytes = args.get(1);
        match self.first_hash {
            Some(hash) => Key {
                db: self.db,
                slot: self.first_slot,
                bytes,
                hash,
            },
            None => Key::new(self.hash_seed, self.db, self.first_slot, bytes),
        }
    }

    /// Any bytes as a key of the selected database.
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.key_in(self.db, bytes)
    }

    /// Any bytes as a key of database `db`.
    #[inline]
    pub fn key_in<'k>(&self, db: u16, bytes: &'k [u8]) -> Key<'k> {
        Key::new(self.hash_seed, db, slot_of(bytes), bytes)
    }

    /// Whether a script has called the command.
    #[inline]
    pub fn is_in_script(&self) -> bool {
        self.effects.is_in_script
    }

    /// Counts changes of this command: as many as Redis counts, none if everything is as it was.
    #[inline]
    pub fn changed(&mut self, count: u64) {
        self.effects.changes += count;
    }

    /// Calls `each` with every `step`-th argument from `first` on as a key, and its position. The
    /// memory of the next few keys is fetched ahead.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn for_each_key<'k>(
        &mut self,
        args: Args<'k>,
        first: usize,
        step: usize,
        mut each: impl FnMut(&mut Self, &Key<'k>, usize) -> CommandResult,
    ) -> CommandResult {
        let mut keys = [Key {
            db: 0,
            slot: 0,
            bytes: &[],
            hash: 0,
        }; KEYS_TOGETHER];
        let mut position = first;
        while position < args.len() {
            let count = (args.len() - position).div_ceil(step).min(KEYS_TOGETHER);
            for (offset, key) in keys[..count].iter_mut().enumerate() {
                *key = self.key(args.get(position + offset * step));
                self.keyspace.prefetch_slot(key);
            }
            keys[..count]
                .iter()
                .for_each(|key| self.keyspace.prefetch_bucket(key));
            keys[..count]
                .iter()
                .for_each(|key| self.keyspace.prefetch_entry(key));
            for key in &keys[..count] {
                each(self, key, position)?;
                position += step;
            }
        }
        Ok(())
    }

    /// The sum of two lengths, if a string may be that long.
    ///
    /// # Errors
    /// `StringTooLong`.
    #[inline]
    pub fn checked_string_len(&self, len: usize, more: usize) -> Result<usize, CommandError> {
        match len.checked_add(more) {
            Some(sum) if sum as u64 <= self.settings.bulk_bytes_max => Ok(sum),
            _ => Err(CommandError::StringTooLong),
        }
    }
}

/// The value of a string key.
///
/// # Errors
/// `WrongType` for a key of another type.
#[inline]
pub fn string_of<'v>(found: &crate::keyspace::Found<'v>) -> Result<StringRef<'v>, CommandError> {
    if found.kind() == ValueKind::String {
        Ok(found.string())
    } else {
        Err(CommandError::WrongType)
    }
}

/// Replies with a string value.
#[inline]
pub fn reply_string(reply: &mut ReplyWriter<'_>, value: StringRef<'_>) {
    match value {
        StringRef::Int(number) => reply.bulk_int(number),
        StringRef::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// Calls `look` with the bytes that a value prints as.
#[inline]
pub fn with_bytes<R>(value: StringRef<'_>, look: impl FnOnce(&[u8]) -> R) -> R {
    value.with_bytes(look)
}

/// Bytes that a value prints as.
#[inline]
pub fn string_len(value: StringRef<'_>) -> usize {
    with_bytes(value, <[u8]>::len)
}

/// Whether a value prints as exactly these bytes.
#[inline]
pub fn is_equal(value: StringRef<'_>, bytes: &[u8]) -> bool {
    with_bytes(value, |value| value == bytes)
}

/// Replies with drawn elements are at most this long; the reference would send them for ever.
const DRAWN_BYTES_MAX: usize = 1 << 30;
/// An empty bulk string: the shortest element of a reply.
const ELEMENT_BYTES_MIN: usize = 6;

/// Refuses to draw so many elements, even empty ones, that the reply could not be held.
///
/// # Errors
/// `OutOfRange`.
#[inline]
pub fn check_drawn_count(count: usize) -> CommandResult {
    if count <= DRAWN_BYTES_MAX / ELEMENT_BYTES_MIN {
        Ok(())
    } else {
        Err(CommandError::OutOfRange)
    }
}

/// Refuses to draw on when the reply is so long already.
///
/// # Errors
/// `OutOfRange`.
#[inline]
pub fn check_drawn_bytes(reply: &ReplyWriter<'_>) -> CommandResult {
    if reply.len() <= DRAWN_BYTES_MAX {
        Ok(())
    } else {
        Err(CommandError::OutOfRange)
    }
}

/// An argument that must be a 64-bit integer.
///
/// # Errors
/// `NotAnInteger`.
#[inline]
pub fn integer(text: &[u8]) -> Result<i64, CommandError> {
    proto::number::parse_i64(text).ok_or(CommandError::NotAnInteger)
}

/// First and last position of a range in `len` bytes, both given as a client gives them (negative
/// from the end, both included); None if it is empty.
#[inline]
pub fn clamp_range(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let total = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |position: i64| {
        if position < 0 {
            total.saturating_add(position)
        } else {
            position
        }
    };
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let first = from_end(start).max(0);
    let last = from_end(end).max(0).min(total - 1);
    if first > last || total == 0 {
        return None;
    }
    Some((usize::try_from(first).ok()?, usize::try_from(last).ok()?))
}
