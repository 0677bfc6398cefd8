//! Counters: strings that are read as numbers, changed and written back.
//!
//! The key's expiry stays. An integer result is kept as an integer; the result of INCRBYFLOAT is
//! kept as the text that was replied, even if it has no fraction.

use crate::commands::prelude::*;
use proto::number::LongDouble;

/// Room for the text of most floating point results; larger ones grow it.
const FLOAT_TEXT_BYTES: usize = 48;

/// INCR key
pub(crate) fn incr(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, args, 1)
}

/// DECR key
pub(crate) fn decr(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, args, -1)
}

/// INCRBY key increment
pub(crate) fn incrby(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let increment = integer(args.get(2))?;
    add(ctx, args, increment)
}

/// DECRBY key decrement
pub(crate) fn decrby(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let increment = integer(args.get(2))?
        .checked_neg()
        .ok_or(CommandError::DecrementOverflow)?;
    add(ctx, args, increment)
}

fn add(ctx: &mut Context<'_>, args: Args<'_>, increment: i64) -> CommandResult {
    let key = ctx.first_key(args);
    let value = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        None => 0,
        Some(found) => match string_of(&found)? {
            StringRef::Int(value) => value,
            StringRef::Bytes(text) => parse_i64(text).ok_or(CommandError::NotAnInteger)?,
        },
    };
    let sum = value.checked_add(increment).ok_or(CommandError::Overflow)?;
    ctx.keyspace
        .set_string(&key, StringValue::Int(sum), Expiry::Keep);
    ctx.changed(1);
    ctx.reply.int(sum);
    Ok(())
}

/// INCRBYFLOAT key increment
pub(crate) fn incrbyfloat(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let value = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        None => LongDouble::from(0),
        Some(found) => match string_of(&found)? {
            StringRef::Int(value) => LongDouble::from(value),
            StringRef::Bytes(text) => float(text)?,
        },
    };
    let sum = value + float(args.get(2))?;
    if !sum.is_finite() {
        return Err(CommandError::NotFinite);
    }
    let mut text = Vec::with_capacity(FLOAT_TEXT_BYTES);
    sum.write(&mut text);
    ctx.keyspace
        .set_string(&key, StringValue::Plain(&text), Expiry::Keep);
    ctx.changed(1);
    ctx.reply.bulk(&text);
    Ok(())
}

fn float(text: &[u8]) -> Result<LongDouble, CommandError> {
    LongDouble::parse(text).ok_or(CommandError::NotAFloat)
}
