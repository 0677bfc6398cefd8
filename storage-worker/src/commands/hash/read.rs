//! Looking at fields: HGET HMGET HEXISTS HSTRLEN HLEN HKEYS HVALS HGETALL.

use super::value::{HashRef, is_over};
use crate::commands::prelude::*;
use crate::keyspace::Key;

/// HGET key field
pub(crate) fn hget(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    look(ctx, args, |reply, value| match value {
        Some(value) => reply_string(reply, value),
        None => reply.null(),
    })
}

/// HEXISTS key field
pub(crate) fn hexists(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    look(ctx, args, |reply, value| {
        reply.int(i64::from(value.is_some()));
    })
}

/// HSTRLEN key field
pub(crate) fn hstrlen(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    look(ctx, args, |reply, value| {
        reply.count(value.map_or(0, string_len));
    })
}

/// HMGET key field [field ...]
pub(crate) fn hmget(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    ctx.reply.array(args.len() - 2);
    look(ctx, args, |reply, value| match value {
        Some(value) => reply_string(reply, value),
        None => reply.null(),
    })
}

/// Calls `show` with the value of every field from argument 2 on. Those that have expired are not
/// there, and are removed afterwards.
fn look(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    mut show: impl FnMut(&mut ReplyWriter<'_>, Option<StringRef<'_>>),
) -> CommandResult {
    let key = ctx.first_key(args);
    let Some(hash) = HashRef::find(ctx.keyspace, &key, ctx.now, ctx.access)? else {
        args.iter_from(2).for_each(|_| show(&mut ctx.reply, None));
        return Ok(());
    };
    let mut has_expired = false;
    for name in args.iter_from(2) {
        let value = match hash.get(name) {
            Some((value, expiry)) if !is_over(expiry, ctx.now) => Some(value),
            other => {
                has_expired |= other.is_some();
                None
            }
        };
        show(&mut ctx.reply, value);
    }
    if has_expired {
        ctx.keyspace.expire_fields(&key, args.iter_from(2));
    }
    Ok(())
}

/// HLEN key
///
/// Fields that have expired and are not removed yet count.
pub(crate) fn hlen(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let hash = HashRef::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    ctx.reply.count(hash.map_or(0, HashRef::len));
    Ok(())
}

/// HKEYS key
pub(crate) fn hkeys(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    list(ctx, &key, ReplyWriter::array, |reply, name, _| {
        reply_string(reply, name);
    })
}

/// HVALS key
pub(crate) fn hvals(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    list(ctx, &key, ReplyWriter::array, |reply, _, value| {
        reply_string(reply, value);
    })
}

/// HGETALL key
pub(crate) fn hgetall(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    list(ctx, &key, ReplyWriter::map, |reply, name, value| {
        reply_string(reply, name);
        reply_string(reply, value);
    })
}

/// Replies with a header for so many fields, and then with what `show` makes of each.
fn list<'r>(
    ctx: &mut Context<'r>,
    key: &Key<'_>,
    header: fn(&mut ReplyWriter<'r>, usize),
    show: impl Fn(&mut ReplyWriter<'r>, StringRef<'_>, StringRef<'_>),
) -> CommandResult {
    let Some(hash) = HashRef::find(ctx.keyspace, key, ctx.now, ctx.access)? else {
        header(&mut ctx.reply, 0);
        return Ok(());
    };
    header(&mut ctx.reply, hash.live_len(ctx.now));
    let reply = &mut ctx.reply;
    hash.for_each(ctx.now, |name, value| show(reply, name, value));
    Ok(())
}
