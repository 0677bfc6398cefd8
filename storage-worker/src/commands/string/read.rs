//! Commands that return whole values: GET and its relatives.

use super::options::{ExpiryOption, Options, Syntax};
use crate::commands::prelude::*;

/// GET key
pub(crate) fn get(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => reply_string(&mut ctx.reply, string_of(&found)?),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// GETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST]
pub(crate) fn getex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args.iter_from(2), Syntax::GetEx)?;
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.null();
        return Ok(());
    };
    let value = string_of(&found)?;
    let has_expiry = found.expiry().is_some();
    let wanted = match options.expiry {
        ExpiryOption::At(unit, text) => Some(Some(unit.parse(text, ctx.now, "getex")?)),
        ExpiryOption::Persist => Some(None),
        ExpiryOption::Unsaid | ExpiryOption::Keep => None,
    };
    reply_string(&mut ctx.reply, value);
    match wanted {
        // A time that has passed deletes the key at once instead of leaving it to expire.
        Some(Some(at)) if at.get() <= ctx.now.get() => {
            ctx.keyspace.unlink(&key);
            ctx.changed(1);
        }
        Some(Some(at)) => {
            ctx.keyspace.set_expiry(&key, Some(at));
            ctx.changed(1);
        }
        Some(None) if has_expiry => {
            ctx.keyspace.set_expiry(&key, None);
            ctx.changed(1);
        }
        Some(None) | None => {}
    }
    Ok(())
}

/// GETDEL key
pub(crate) fn getdel(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => reply_string(&mut ctx.reply, string_of(&found)?),
        None => {
            ctx.reply.null();
            return Ok(());
        }
    }
    ctx.keyspace.unlink(&key);
    ctx.changed(1);
    Ok(())
}

/// MGET key [key ...]
///
/// A key of another type counts as missing.
pub(crate) fn mget(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    ctx.reply.array(args.len() - 1);
    ctx.for_each_key(args, 1, 1, |ctx, key, _| {
        match ctx.keyspace.find(key, ctx.now, ctx.access) {
            Some(found) if found.kind() == ValueKind::String => {
                reply_string(&mut ctx.reply, found.string());
            }
            _ => ctx.reply.null(),
        }
        Ok(())
    })
}
