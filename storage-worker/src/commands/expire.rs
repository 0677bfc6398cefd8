//! Expiry of keys: the EXPIRE and TTL families and PERSIST.
//!
//! Oddities that are kept: options are read before the time; NX excludes the others even if it is
//! repeated; a key without expiry counts as living for ever, so GT never matches it and LT always.

use crate::commands::prelude::*;
use proto::time::UnixMillis;

/// Conditions of EXPIRE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Conditions {
    fn parse<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for word in words {
            let place = match () {
                () if word.eq_ignore_ascii_case(b"NX") => &mut conditions.nx,
                () if word.eq_ignore_ascii_case(b"XX") => &mut conditions.xx,
                () if word.eq_ignore_ascii_case(b"GT") => &mut conditions.gt,
                () if word.eq_ignore_ascii_case(b"LT") => &mut conditions.lt,
                () => return Err(CommandError::UnsupportedOption(word.into())),
            };
            *place = true;
        }
        let Self { nx, xx, gt, lt } = conditions;
        if nx && (xx || gt || lt) {
            return Err(CommandError::ExpireOptionsNx);
        }
        if gt && lt {
            return Err(CommandError::ExpireOptionsGtLt);
        }
        Ok(conditions)
    }

    /// Whether a key that expires at `current` may get the new expiry `at`.
    fn allow(self, current: Option<UnixMillis>, at: i64) -> bool {
        let current = current.map(|current| current.get() as i64);
        match current {
            None => !self.xx && !self.gt,
            Some(current) => !self.nx && (!self.gt || at > current) && (!self.lt || at < current),
        }
    }
}

/// Unit of an expiry argument and whether it counts from now.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    name: &'static str,
    is_in_seconds: bool,
    is_relative: bool,
}

/// EXPIRE key seconds [NX | XX | GT | LT]
pub(crate) fn expire(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_expiry(
        ctx,
        args,
        Meaning {
            name: "expire",
            is_in_seconds: true,
            is_relative: true,
        },
    )
}

/// PEXPIRE key milliseconds [NX | XX | GT | LT]
pub(crate) fn pexpire(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_expiry(
        ctx,
        args,
        Meaning {
            name: "pexpire",
            is_in_seconds: false,
            is_relative: true,
        },
    )
}

/// EXPIREAT key unix-time-seconds [NX | XX | GT | LT]
pub(crate) fn expireat(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_expiry(
        ctx,
        args,
        Meaning {
            name: "expireat",
            is_in_seconds: true,
            is_relative: false,
        },
    )
}

/// PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]
pub(crate) fn pexpireat(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_expiry(
        ctx,
        args,
        Meaning {
            name: "pexpireat",
            is_in_seconds: false,
            is_relative: false,
        },
    )
}

fn set_expiry(ctx: &mut Context<'_>, args: Args<'_>, meaning: Meaning) -> CommandResult {
    let conditions = Conditions::parse(args.iter_from(3))?;
    let invalid = CommandError::InvalidExpire { name: meaning.name };
    let mut at = integer(args.get(2))?;
    if meaning.is_in_seconds {
        at = at.checked_mul(1000).ok_or_else(|| invalid.clone())?;
    }
    if meaning.is_relative {
        at = at.checked_add_unsigned(ctx.now.get()).ok_or(invalid)?;
    }
    let key = ctx.first_key(args);
    let current = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => found.expiry(),
        None => {
            ctx.reply.int(0);
            return Ok(());
        }
    };
    let is_allowed = conditions.allow(current, at);
    if is_allowed {
        ctx.changed(1);
        match u64::try_from(at) {
            Ok(at) if at > ctx.now.get() => {
                ctx.keyspace.set_expiry(&key, Some(UnixMillis(at)));
            }
            _ => {
                ctx.keyspace.unlink(&key);
            }
        }
    }
    ctx.reply.int(i64::from(is_allowed));
    Ok(())
}

/// PERSIST key
pub(crate) fn persist(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let has_expiry = ctx
        .keyspace
        .find(&key, ctx.now, Access::Write)
        .is_some_and(|found| found.expiry().is_some());
    if has_expiry {
        ctx.keyspace.set_expiry(&key, None);
        ctx.changed(1);
    }
    ctx.reply.int(i64::from(has_expiry));
    Ok(())
}

/// TTL key
pub(crate) fn ttl(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiry(ctx, args, |at, now| (at.since(now) + 500) / 1000)
}

/// PTTL key
pub(crate) fn pttl(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiry(ctx, args, UnixMillis::since)
}

/// EXPIRETIME key
pub(crate) fn expiretime(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiry(ctx, args, |at, _| at.seconds_rounded())
}

/// PEXPIRETIME key
pub(crate) fn pexpiretime(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_expiry(ctx, args, |at, _| at.get())
}

/// Replies -2 for a missing key, -1 for one that stays, else what `show` makes of its expiry.
fn reply_expiry(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    show: impl FnOnce(UnixMillis, UnixMillis) -> u64,
) -> CommandResult {
    let key = ctx.first_key(args);
    let number = match ctx.keyspace.find(&key, ctx.now, Access::Peek) {
        None => -2,
        Some(found) => found.expiry().map_or(-1, |at| show(at, ctx.now) as i64),
    };
    ctx.reply.int(number);
    Ok(())
}
