//! Commands that only other processes of the system send.
//!
//! The gateway uses them for switches that every worker must hear of, and for what DEBUG wants to know.

use crate::commands::prelude::*;
use proto::settings::parse_memory;
use std::time::Duration;

/// Elements of so many bytes or more cannot be told to have nodes of their own.
const PLAIN_FROM_MAX: u64 = (1 << 32) - (1 << 20);

/// _DEBUG SLEEP seconds | SET-ACTIVE-EXPIRE 0 | 1 | QUICKLIST-PACKED-THRESHOLD bytes
///
/// Numbers are read as the reference reads them here: what is none counts as 0.
pub(crate) fn debug(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (word, value) = (args.get(1), args.get(2));
    if word.eq_ignore_ascii_case(b"SLEEP") {
        let seconds = std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse().ok());
        let sleep = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        ctx.effects.sleep = sleep;
    } else if word.eq_ignore_ascii_case(b"SET-ACTIVE-EXPIRE") {
        ctx.settings.active_expire = parse_i64(value).unwrap_or(0) != 0;
    } else if word.eq_ignore_ascii_case(b"QUICKLIST-PACKED-THRESHOLD") {
        let bytes = std::str::from_utf8(value).ok().and_then(parse_memory);
        let bytes = bytes.filter(|&bytes| bytes <= PLAIN_FROM_MAX);
        ctx.settings.list_plain_from = bytes
            .and_then(|bytes| u32::try_from(bytes).ok())
            .ok_or(CommandError::PackedThreshold)?;
    } else {
        return Err(CommandError::Syntax);
    }
    ctx.reply.ok();
    Ok(())
}

/// _DEBUGOBJECT key
///
/// The line of DEBUG OBJECT. Instead of an address, which would mean nothing outside this process,
/// it shows the hash of the key.
pub(crate) fn debug_object(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, Access::Peek) else {
        return Err(CommandError::NoSuchKey);
    };
    let idle = found.idle_seconds();
    let clock = (ctx.now.seconds() & 0xff_ffff).wrapping_sub(u64::from(idle)) & 0xff_ffff;
    let (length, more) = match found.kind() {
        ValueKind::String => (serialized_len(found.string()), String::new()),
        ValueKind::List => super::list::debug_facts(&found)?,
        _ if found.is_structure() => (found.memory_bytes(0), String::new()),
        _ => (with_length(found.packed().len()), String::new()),
    };
    let line = format!(
        "Value at:0x{:012x} refcount:{} encoding:{} serializedlength:{length} lru:{clock} \
         lru_seconds_idle:{idle}{more}",
        key.hash & 0xffff_ffff_ffff,
        super::object::references(&found, ctx.settings.shares_integers),
        found.encoding().name(),
    );
    ctx.reply.simple(&line);
    Ok(())
}

/// Bytes that the value takes in a dump file: small integers are packed, strings get a length.
fn serialized_len(value: StringRef<'_>) -> usize {
    let packed = match value {
        StringRef::Int(number) => Some(number),
        StringRef::Bytes(bytes) if bytes.len() <= 11 => parse_i64(bytes),
        StringRef::Bytes(_) => None,
    };
    match packed {
        Some(-0x80..=0x7f) => return 2,
        Some(-0x8000..=0x7fff) => return 3,
        Some(-0x8000_0000..=0x7fff_ffff) => return 5,
        _ => {}
    }
    with_length(string_len(value))
}

/// Bytes that so many bytes take in a dump file, with their length in front.
pub(super) fn with_length(len: usize) -> usize {
    match len {
        0..=0x3f => len + 1,
        0x40..=0x3fff => len + 2,
        _ => len + 5,
    }
}

/// _UNIT, _WATCH and others that the loop runs: here they come only by mistake.
pub(crate) fn by_loop(_: &mut Context<'_>, _: Args<'_>) -> CommandResult {
    Err(CommandError::Internal)
}
