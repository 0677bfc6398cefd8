//! DUMP and RESTORE: a value as bytes, and back.
//!
//! RESTORE checks in the order of the reference: options, the key, the time to live, version and
//! checksum, the value. What is written for the key comes last, so a payload that is refused changes
//! nothing.

use crate::commands::prelude::*;
use crate::keyspace::{Found, SlotRange, Usage};
use crate::rdb::{self, Decoder, Dialect, payload};
use proto::time::UnixMillis;

/// Type and value as bytes, without version and checksum.
fn write(found: &Found<'_>, compresses: bool, bytes: &mut Vec<u8>) {
    bytes.push(rdb::type_of(found));
    rdb::write_value(found, &mut rdb::Writer::new(bytes, compresses));
}

/// DUMP key
pub(crate) fn dump(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let compresses = ctx.settings.compresses_payloads;
    match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        None => ctx.reply.null(),
        Some(found) => {
            let mut bytes = Vec::new();
            write(&found, compresses, &mut bytes);
            payload::seal(&mut bytes);
            ctx.reply.bulk(&bytes);
        }
    }
    Ok(())
}

/// Options of RESTORE.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
    usage: Usage,
}

impl Options {
    fn parse<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let may_be_idle = !matches!(options.usage, Usage::Frequency(_));
            let may_be_frequent = !matches!(options.usage, Usage::Idle(_));
            if word.eq_ignore_ascii_case(b"REPLACE") {
                options.replaces = true;
            } else if word.eq_ignore_ascii_case(b"ABSTTL") {
                options.is_absolute = true;
            } else if may_be_idle && word.eq_ignore_ascii_case(b"IDLETIME") {
                let idle = integer(words.next().ok_or(CommandError::Syntax)?)?;
                if idle < 0 {
                    return Err(CommandError::RestoreIdleTime);
                }
                options.usage = Usage::Idle(idle);
            } else if may_be_frequent && word.eq_ignore_ascii_case(b"FREQ") {
                let frequency = integer(words.next().ok_or(CommandError::Syntax)?)?;
                let frequency = u8::try_from(frequency);
                options.usage =
                    Usage::Frequency(frequency.map_err(|_| CommandError::RestoreFrequency)?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}

/// When the key expires, of a time to live or a time.
fn expiry(
    text: &[u8],
    is_absolute: bool,
    now: UnixMillis,
) -> Result<Option<UnixMillis>, CommandError> {
    let time = u64::try_from(integer(text)?).map_err(|_| CommandError::RestoreTtl)?;
    Ok(match time {
        0 => None,
        time if is_absolute => Some(UnixMillis(time)),
        // Nobody lives longer than a signed number can tell.
        time => Some(now.plus(time).min(UnixMillis(i64::MAX as u64))),
    })
}

/// RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
pub(crate) fn restore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args.iter_from(4))?;
    let key = ctx.first_key(args);
    let is_present = ctx.keyspace.find(&key, ctx.now, Access::Write).is_some();
    if is_present && !options.replaces {
        return Err(CommandError::BusyKey);
    }
    let expiry = expiry(args.get(2), options.is_absolute, ctx.now)?;
    let (bytes, dialect) = payload::open(args.get(3)).ok_or(CommandError::RestorePayload)?;
    let decoder = Decoder::new(ctx.settings, ctx.hash_seed);
    let value = decoder
        .decode_payload(bytes, dialect)
        .map_err(|_| CommandError::RestoreData)?;
    if expiry.is_some_and(|at| at.has_passed(ctx.now)) {
        // The value is gone before it came.
        drop(value);
        if is_present {
            ctx.keyspace.remove(&key);
            ctx.signal_ready(&key);
            ctx.changed(1);
        }
    } else {
        value.store(ctx.keyspace, &key);
        if expiry.is_some() {
            ctx.keyspace.set_expiry(&key, expiry);
        }
        ctx.keyspace.set_usage(&key, options.usage);
        ctx.signal_ready(&key);
        ctx.changed(1);
    }
    ctx.reply.ok();
    Ok(())
}

/// Keys whose names are looked up together.
const STEP: usize = 64;

/// _DEBUGRELOAD
///
/// Every key of this worker once through its bytes, one after the other: a key is replaced by what its
/// own payload says. What the reference forgets when it reloads is forgotten here (clocks, unless the
/// eviction policy goes by them; the form of what could be kept smaller).
pub(crate) fn reload(ctx: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    // What has expired is not written down.
    ctx.keyspace.expire_slice(ctx.now, usize::MAX);
    let mut bytes = Vec::new();
    for db in 0..ctx.settings.databases {
        let mut cursor = 0;
        loop {
            let mut names: Vec<Vec<u8>> = Vec::new();
            cursor = ctx
                .keyspace
                .scan(db, cursor, STEP, ctx.now, SlotRange::ALL, |name, _| {
                    names.push(name.to_vec());
                });
            for name in &names {
                reload_key(ctx, db, name, &mut bytes)?;
            }
            if cursor == 0 {
                break;
            }
        }
    }
    ctx.effects.counts_elsewhere = true;
    ctx.reply.ok();
    Ok(())
}

fn reload_key(ctx: &mut Context<'_>, db: u16, name: &[u8], bytes: &mut Vec<u8>) -> CommandResult {
    let key = ctx.key_in(db, name);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, Access::Peek) else {
        return Ok(());
    };
    bytes.clear();
    write(&found, ctx.settings.compresses_payloads, bytes);
    let expiry = found.expiry();
    let usage = if ctx.settings.policy_is_lfu {
        Usage::Frequency(found.frequency())
    } else if ctx.settings.policy_is_lru {
        Usage::Idle(found.idle_seconds().into())
    } else {
        Usage::Unknown
    };
    let decoder = Decoder::new(ctx.settings, ctx.hash_seed);
    let value = decoder.decode_payload(bytes, Dialect::Redis);
    let value = value.ok().filter(|value| value.kind() == found.kind());
    value
        .ok_or(CommandError::ReloadFailed)?
        .store(ctx.keyspace, &key);
    if expiry.is_some() {
        ctx.keyspace.set_expiry(&key, expiry);
    }
    ctx.keyspace.set_usage(&key, usage);
    Ok(())
}
