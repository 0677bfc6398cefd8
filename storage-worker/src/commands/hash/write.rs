//! Writing and removing fields: HSET HMSET HSETNX HDEL.

use super::value::{HashMut, HashRef, Limits, is_over};
use crate::collections::hash::Ttl;
use crate::commands::prelude::*;
use crate::keyspace::Key;

/// The arguments from `first` on as names and values.
pub(super) fn pairs(
    args: Args<'_>,
    first: usize,
) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> + Clone {
    let count = args.len().saturating_sub(first) / 2;
    (0..count).map(move |number| {
        let at = first + number * 2;
        (args.get(at), args.get(at + 1))
    })
}

/// HSET key field value [field value ...]
pub(crate) fn hset(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let created = set_all(ctx, args, "hset")?;
    ctx.reply.count(created);
    Ok(())
}

/// HMSET key field value [field value ...]
pub(crate) fn hmset(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_all(ctx, args, "hmset")?;
    ctx.reply.ok();
    Ok(())
}

fn set_all(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    name: &'static str,
) -> Result<usize, CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Arity { name });
    }
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let pairs = pairs(args, 2);
    let count = pairs.len();
    let created = match HashMut::find(ctx.keyspace, &key, ctx.now, limits)? {
        None => HashMut::create(ctx.keyspace, &key, limits, pairs, Ttl::Clear).1,
        Some(mut hash) => {
            hash.prepare(pairs.clone());
            pairs
                .filter(|(name, value)| hash.set(name, value, Ttl::Clear))
                .count()
        }
    };
    ctx.changed(count as u64);
    Ok(created)
}

/// HSETNX key field value
pub(crate) fn hsetnx(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    if live_value(ctx, &key, args.get(2), |_| ())?.is_some() {
        ctx.reply.int(0);
        return Ok(());
    }
    let limits = Limits::new(ctx.settings);
    match HashMut::find(ctx.keyspace, &key, ctx.now, limits)? {
        None => {
            HashMut::create(ctx.keyspace, &key, limits, pairs(args, 2), Ttl::Clear);
        }
        Some(mut hash) => {
            hash.set(args.get(2), args.get(3), Ttl::Clear);
        }
    }
    ctx.changed(1);
    ctx.reply.int(1);
    Ok(())
}

/// What `look` makes of the value of a field that is about to be written; if its time has come it is
/// removed, and perhaps the key with it.
pub(super) fn live_value<R>(
    ctx: &mut Context<'_>,
    key: &Key<'_>,
    name: &[u8],
    look: impl FnOnce(StringRef<'_>) -> R,
) -> Result<Option<R>, CommandError> {
    let Some(hash) = HashRef::find(ctx.keyspace, key, ctx.now, Access::Write)? else {
        return Ok(None);
    };
    match hash.get(name) {
        None => Ok(None),
        Some((value, expiry)) if !is_over(expiry, ctx.now) => Ok(Some(look(value))),
        Some(_) => {
            ctx.keyspace.expire_fields(key, std::iter::once(name));
            Ok(None)
        }
    }
}

/// HDEL key field [field ...]
pub(crate) fn hdel(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let Some(mut hash) = HashMut::find(ctx.keyspace, &key, ctx.now, limits)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let removed = args.iter_from(2).filter(|name| hash.remove(name)).count();
    if removed > 0 {
        hash.finish();
    }
    ctx.changed(removed as u64);
    ctx.reply.count(removed);
    Ok(())
}
