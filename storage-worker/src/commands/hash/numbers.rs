//! Counters in fields: HINCRBY HINCRBYFLOAT.
//!
//! The field's expiry stays. The result is stored as the text that is replied.

use super::value::{HashMut, Limits};
use super::write::live_value;
use crate::collections::hash::Ttl;
use crate::commands::prelude::*;
use crate::keyspace::Key;
use proto::number::LongDouble;

/// Room for the text of most floating point results; larger ones grow it.
const FLOAT_TEXT_BYTES: usize = 48;

/// HINCRBY key field increment
pub(crate) fn hincrby(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let increment = integer(args.get(3))?;
    let key = ctx.first_key(args);
    let value = live_value(ctx, &key, args.get(2), |value| match value {
        StringRef::Int(number) => Ok(number),
        StringRef::Bytes(text) => parse_i64(text).ok_or(CommandError::HashValueNotInteger),
    })?;
    let value = value.unwrap_or(Ok(0))?;
    let sum = value.checked_add(increment).ok_or(CommandError::Overflow)?;
    store(
        ctx,
        &key,
        args.get(2),
        itoa::Buffer::new().format(sum).as_bytes(),
    )?;
    ctx.reply.int(sum);
    Ok(())
}

/// HINCRBYFLOAT key field increment
pub(crate) fn hincrbyfloat(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let increment = LongDouble::parse(args.get(3)).ok_or(CommandError::NotAFloat)?;
    if !increment.is_finite() {
        return Err(CommandError::IncrementNotFinite);
    }
    let key = ctx.first_key(args);
    let value = live_value(ctx, &key, args.get(2), |value| match value {
        StringRef::Int(number) => Ok(LongDouble::from(number)),
        StringRef::Bytes(text) => LongDouble::parse(text).ok_or(CommandError::HashValueNotFloat),
    })?;
    let sum = value.unwrap_or(Ok(LongDouble::from(0)))? + increment;
    if !sum.is_finite() {
        return Err(CommandError::NotFinite);
    }
    let mut text = Vec::with_capacity(FLOAT_TEXT_BYTES);
    sum.write(&mut text);
    store(ctx, &key, args.get(2), &text)?;
    ctx.reply.bulk(&text);
    Ok(())
}

fn store(ctx: &mut Context<'_>, key: &Key<'_>, name: &[u8], text: &[u8]) -> CommandResult {
    let limits = Limits::new(ctx.settings);
    match HashMut::find(ctx.keyspace, key, ctx.now, limits)? {
        None => {
            let pair = std::iter::once((name, text));
            HashMut::create(ctx.keyspace, key, limits, pair, Ttl::Clear);
        }
        Some(mut hash) => {
            hash.set(name, text, Ttl::Keep);
        }
    }
    ctx.changed(1);
    Ok(())
}
