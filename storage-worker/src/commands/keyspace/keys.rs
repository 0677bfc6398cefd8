//! Existence, removal, renaming and copying of whole keys.

use crate::commands::prelude::*;
use crate::keyspace::Key;

/// DEL key [key ...]
pub(crate) fn del(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let is_lazy = ctx.settings.del_is_lazy;
    remove(ctx, args, is_lazy)
}

/// UNLINK key [key ...]
pub(crate) fn unlink(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    remove(ctx, args, true)
}

fn remove(ctx: &mut Context<'_>, args: Args<'_>, is_lazy: bool) -> CommandResult {
    let mut removed: u32 = 0;
    ctx.for_each_key(args, 1, 1, |ctx, key, _| {
        // The look-up removes a key whose time has passed, which then does not count.
        if ctx.keyspace.find(key, ctx.now, Access::Write).is_some() {
            removed += u32::from(if is_lazy {
                ctx.keyspace.unlink(key)
            } else {
                ctx.keyspace.remove(key)
            });
            ctx.signal_ready(key);
        }
        Ok(())
    })?;
    ctx.changed(u64::from(removed));
    ctx.reply.int(i64::from(removed));
    Ok(())
}

/// EXISTS key [key ...]
pub(crate) fn exists(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut found = 0;
    ctx.for_each_key(args, 1, 1, |ctx, key, _| {
        found += i64::from(ctx.keyspace.find(key, ctx.now, Access::Peek).is_some());
        Ok(())
    })?;
    ctx.reply.int(found);
    Ok(())
}

/// TOUCH key [key ...]
///
/// Touches even for a client that said CLIENT NO-TOUCH: it asked for it.
pub(crate) fn touch(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut found = 0;
    ctx.for_each_key(args, 1, 1, |ctx, key, _| {
        found += i64::from(ctx.keyspace.find(key, ctx.now, Access::Read).is_some());
        Ok(())
    })?;
    ctx.reply.int(found);
    Ok(())
}

/// TYPE key
pub(crate) fn type_of(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let name = match ctx.keyspace.find(&key, ctx.now, Access::Peek) {
        Some(found) => found.kind().name(),
        None => "none",
    };
    ctx.reply.simple(name);
    Ok(())
}

/// RENAME key newkey
pub(crate) fn rename(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (ctx.first_key(args), ctx.key(args.get(2)));
    if ctx.keyspace.find(&from, ctx.now, Access::Write).is_none() {
        return Err(CommandError::NoSuchKey);
    }
    if from.bytes != to.bytes {
        rename_key(ctx, &from, &to);
    }
    ctx.reply.ok();
    Ok(())
}

/// RENAMENX key newkey
pub(crate) fn renamenx(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (ctx.first_key(args), ctx.key(args.get(2)));
    if ctx.keyspace.find(&from, ctx.now, Access::Write).is_none() {
        return Err(CommandError::NoSuchKey);
    }
    let is_free =
        from.bytes != to.bytes && ctx.keyspace.find(&to, ctx.now, Access::Write).is_none();
    if is_free {
        rename_key(ctx, &from, &to);
    }
    ctx.reply.int(i64::from(is_free));
    Ok(())
}

fn rename_key(ctx: &mut Context<'_>, from: &Key<'_>, to: &Key<'_>) {
    ctx.keyspace.rename(from, to);
    ctx.changed(1);
    ctx.signal_ready(from);
    ctx.signal_ready(to);
}

/// COPY source destination [DB destination-db] [REPLACE]
pub(crate) fn copy(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut db = ctx.db;
    let mut replaces = false;
    let mut words = args.iter_from(3);
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case(b"REPLACE") {
            replaces = true;
        } else if word.eq_ignore_ascii_case(b"DB") {
            db = database(
                words.next().ok_or(CommandError::Syntax)?,
                ctx.settings.databases,
            )?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let (from, to) = (ctx.first_key(args), ctx.key_in(db, args.get(2)));
    if from.bytes == to.bytes && from.db == to.db {
        return Err(CommandError::SameObject);
    }
    let is_present = ctx.keyspace.find(&from, ctx.now, ctx.access).is_some();
    let is_copied =
        is_present && (replaces || ctx.keyspace.find(&to, ctx.now, Access::Write).is_none());
    if is_copied {
        ctx.keyspace.copy(&from, &to);
        ctx.effects.counts_elsewhere |= db != ctx.db;
        ctx.changed(1);
        ctx.signal_ready(&to);
    }
    ctx.reply.int(i64::from(is_copied));
    Ok(())
}

/// MOVE key db
pub(crate) fn move_key(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let db = database(args.get(2), ctx.settings.databases)?;
    if db == ctx.db {
        return Err(CommandError::SameObject);
    }
    let (from, to) = (ctx.first_key(args), ctx.key_in(db, args.get(1)));
    let is_moved = ctx.keyspace.find(&from, ctx.now, Access::Write).is_some()
        && ctx.keyspace.find(&to, ctx.now, Access::Write).is_none();
    if is_moved {
        rename_key(ctx, &from, &to);
        ctx.effects.counts_elsewhere = true;
    }
    ctx.reply.int(i64::from(is_moved));
    Ok(())
}

/// A database number: a 32-bit integer (as the reference reads it) in the configured range.
fn database(text: &[u8], databases: u16) -> Result<u16, CommandError> {
    let number = i32::try_from(integer(text)?).map_err(|_| CommandError::NotInt32)?;
    u16::try_from(number)
        .ok()
        .filter(|number| *number < databases)
        .ok_or(CommandError::DatabaseOutOfRange)
}

/// RANDOMKEY
pub(crate) fn randomkey(ctx: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    let rng = &mut *ctx.rng;
    match ctx.keyspace.random_key(ctx.db, ctx.now, || rng.next_u64()) {
        Some(key) => ctx.reply.bulk(key),
        None => ctx.reply.null(),
    }
    Ok(())
}
