//! When fields expire: the HEXPIRE and HTTL families and HPERSIST.
//!
//! ```text
//!   HEXPIRE key time [NX | XX | GT | LT] FIELDS numfields field [field ...]
//!     -2 no such field   0 the condition does not hold   1 the time is set   2 it has passed: removed
//!   HTTL key FIELDS numfields field [field ...]       -2 no such field   -1 it stays
//! ```
//!
//! Oddities that are kept: the type of the key is checked before anything else; a field whose time has
//! come but which nobody has removed yet can be given another time; a hash gets room for times even if
//! no field gets one.

use super::fields::{TimeUnit, parse_fields};
use super::value::{HashMut, HashRef, Limits, is_over};
use crate::commands::prelude::*;
use proto::time::UnixMillis;

const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;

/// When a time is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfNone,
    IfAny,
    IfLater,
    IfEarlier,
}

impl Condition {
    fn named(word: &[u8]) -> Option<Self> {
        let known = [
            (b"NX", Self::IfNone),
            (b"XX", Self::IfAny),
            (b"GT", Self::IfLater),
            (b"LT", Self::IfEarlier),
        ];
        known
            .into_iter()
            .find_map(|(name, condition)| word.eq_ignore_ascii_case(name).then_some(condition))
    }

    /// Whether a field without expiry, or with this one, may get the time. Without expiry it lives
    /// for ever: nothing is later.
    fn holds(self, before: Option<UnixMillis>, at: UnixMillis) -> bool {
        match self {
            Self::Always => true,
            Self::IfNone => before.is_none(),
            Self::IfAny => before.is_some(),
            Self::IfLater => before.is_some_and(|before| at > before),
            Self::IfEarlier => before.is_none_or(|before| at < before),
        }
    }
}

/// HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(crate) fn hexpire(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let unit = TimeUnit {
        is_seconds: true,
        is_absolute: false,
    };
    expire(ctx, args, unit, "hexpire")
}

/// HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(crate) fn hpexpire(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let unit = TimeUnit {
        is_seconds: false,
        is_absolute: false,
    };
    expire(ctx, args, unit, "hpexpire")
}

/// HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(crate) fn hexpireat(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let unit = TimeUnit {
        is_seconds: true,
        is_absolute: true,
    };
    expire(ctx, args, unit, "hexpireat")
}

/// HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
pub(crate) fn hpexpireat(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let unit = TimeUnit {
        is_seconds: false,
        is_absolute: true,
    };
    expire(ctx, args, unit, "hpexpireat")
}

fn expire(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    unit: TimeUnit,
    name: &'static str,
) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let hash = HashMut::find(ctx.keyspace, &key, ctx.now, limits)?;
    let at = unit.parse(args.get(2), ctx.now, name)?;
    let condition = Condition::named(args.get(3));
    let fields_at = if condition.is_some() { 4 } else { 3 };
    let first = parse_fields(args, fields_at, CommandError::NumFieldsNotPositive)?;
    let condition = condition.unwrap_or(Condition::Always);
    ctx.reply.array(args.len() - first);
    let Some(mut hash) = hash else {
        args.iter_from(first).for_each(|_| ctx.reply.int(NO_FIELD));
        return Ok(());
    };
    hash.become_timed();
    let mut changes = 0;
    for name in args.iter_from(first) {
        let result = match hash.view().get(name) {
            None => NO_FIELD,
            Some((_, before)) if !condition.holds(before, at) => 0,
            Some(_) if at <= ctx.now => {
                hash.remove(name);
                2
            }
            Some(_) => {
                hash.set_expiry(name, Some(at));
                1
            }
        };
        changes += u64::from(result > 0);
        ctx.reply.int(result);
    }
    if changes > 0 {
        let next = hash.view().next_expiry();
        if !hash.finish() {
            ctx.keyspace.set_field_expiry(&key, next);
        }
    }
    ctx.changed(changes);
    Ok(())
}

/// HTTL key FIELDS numfields field [field ...]
pub(crate) fn httl(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiries(ctx, args, |at, now| at.since(now).div_ceil(1000))
}

/// HPTTL key FIELDS numfields field [field ...]
pub(crate) fn hpttl(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiries(ctx, args, UnixMillis::since)
}

/// HEXPIRETIME key FIELDS numfields field [field ...]
pub(crate) fn hexpiretime(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiries(ctx, args, |at, _| at.get().div_ceil(1000))
}

/// HPEXPIRETIME key FIELDS numfields field [field ...]
pub(crate) fn hpexpiretime(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiries(ctx, args, |at, _| at.get())
}

/// Replies with what `show` makes of the expiry of every field.
fn reply_expiries(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    show: impl Fn(UnixMillis, UnixMillis) -> u64,
) -> CommandResult {
    let key = ctx.first_key(args);
    let hash = HashRef::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let first = parse_fields(args, 2, CommandError::FieldCountNotPositive)?;
    ctx.reply.array(args.len() - first);
    for name in args.iter_from(first) {
        let number = match hash.and_then(|hash| hash.get(name)) {
            None => NO_FIELD,
            Some((_, None)) => NO_EXPIRY,
            Some((_, expiry)) if is_over(expiry, ctx.now) => NO_FIELD,
            // Times have 46 bits.
            Some((_, Some(at))) => show(at, ctx.now) as i64,
        };
        ctx.reply.int(number);
    }
    Ok(())
}

/// HPERSIST key FIELDS numfields field [field ...]
pub(crate) fn hpersist(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let hash = HashMut::find(ctx.keyspace, &key, ctx.now, limits)?;
    let first = parse_fields(args, 2, CommandError::FieldCountNotPositive)?;
    ctx.reply.array(args.len() - first);
    let Some(mut hash) = hash else {
        args.iter_from(first).for_each(|_| ctx.reply.int(NO_FIELD));
        return Ok(());
    };
    let mut has_changed = false;
    for name in args.iter_from(first) {
        let result = match hash.view().get(name) {
            None => NO_FIELD,
            Some((_, None)) => NO_EXPIRY,
            Some((_, expiry)) if is_over(expiry, ctx.now) => NO_FIELD,
            Some(_) => {
                hash.set_expiry(name, None);
                has_changed = true;
                1
            }
        };
        ctx.reply.int(result);
    }
    ctx.changed(u64::from(has_changed));
    Ok(())
}
