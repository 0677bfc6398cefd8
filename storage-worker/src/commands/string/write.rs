//! Commands that set or delete whole values: SET and its relatives.

use super::options::{Condition, ExpiryOption, ExpiryUnit, Options, Syntax};
use crate::commands::prelude::*;

/// SET key value [NX | XX | IFEQ comparison] [GET]
///     [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL]
pub(crate) fn set(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    if args.len() == 3 {
        ctx.keyspace
            .set_string(&key, StringValue::Auto(args.get(2)), Expiry::Clear);
        ctx.changed(1);
        ctx.reply.ok();
        return Ok(());
    }
    let options = Options::parse(args.iter_from(3), Syntax::Set)?;
    let expiry = match options.expiry {
        ExpiryOption::At(unit, text) => Expiry::At(unit.parse(text, ctx.now, "set")?),
        ExpiryOption::Keep => Expiry::Keep,
        ExpiryOption::Unsaid | ExpiryOption::Persist => Expiry::Clear,
    };
    if options.condition == Condition::Always && !options.returns_old {
        ctx.keyspace
            .set_string(&key, StringValue::Auto(args.get(2)), expiry);
        ctx.changed(1);
        ctx.reply.ok();
        return Ok(());
    }
    let found = ctx.keyspace.find(&key, ctx.now, Access::Write);
    let needs_value = options.returns_old || matches!(options.condition, Condition::IfEqual(_));
    let old = match &found {
        Some(found) if needs_value => Some(string_of(found)?),
        _ => None,
    };
    let is_met = match options.condition {
        Condition::Always => true,
        Condition::IfAbsent => found.is_none(),
        Condition::IfPresent => found.is_some(),
        Condition::IfEqual(comparison) => old.is_some_and(|old| is_equal(old, comparison)),
    };
    match old {
        Some(old) if options.returns_old => reply_string(&mut ctx.reply, old),
        _ if options.returns_old || !is_met => ctx.reply.null(),
        _ => ctx.reply.ok(),
    }
    if is_met {
        ctx.keyspace
            .set_string(&key, StringValue::Auto(args.get(2)), expiry);
        ctx.changed(1);
    }
    Ok(())
}

/// SETNX key value
pub(crate) fn setnx(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let is_absent = ctx.keyspace.find(&key, ctx.now, Access::Write).is_none();
    if is_absent {
        ctx.keyspace
            .set_string(&key, StringValue::Auto(args.get(2)), Expiry::Clear);
        ctx.changed(1);
    }
    ctx.reply.int(i64::from(is_absent));
    Ok(())
}

/// SETEX key seconds value
pub(crate) fn setex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_with_expiry(ctx, args, ExpiryUnit::Seconds, "setex")
}

/// PSETEX key milliseconds value
pub(crate) fn psetex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_with_expiry(ctx, args, ExpiryUnit::Millis, "psetex")
}

fn set_with_expiry(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    unit: ExpiryUnit,
    name: &'static str,
) -> CommandResult {
    let at = unit.parse(args.get(2), ctx.now, name)?;
    let key = ctx.first_key(args);
    ctx.keyspace
        .set_string(&key, StringValue::Auto(args.get(3)), Expiry::At(at));
    ctx.changed(1);
    ctx.reply.ok();
    Ok(())
}

/// GETSET key value
pub(crate) fn getset(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => reply_string(&mut ctx.reply, string_of(&found)?),
        None => ctx.reply.null(),
    }
    ctx.keyspace
        .set_string(&key, StringValue::Auto(args.get(2)), Expiry::Clear);
    ctx.changed(1);
    Ok(())
}

/// MSET key value [key value ...]
pub(crate) fn mset(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Arity { name: "mset" });
    }
    set_pairs(ctx, args)?;
    ctx.reply.ok();
    Ok(())
}

/// MSETNX key value [key value ...]
pub(crate) fn msetnx(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Arity { name: "msetnx" });
    }
    let mut is_any_present = false;
    ctx.for_each_key(args, 1, 2, |ctx, key, _| {
        is_any_present |= ctx.keyspace.find(key, ctx.now, Access::Write).is_some();
        Ok(())
    })?;
    if !is_any_present {
        set_pairs(ctx, args)?;
    }
    ctx.reply.int(i64::from(!is_any_present));
    Ok(())
}

fn set_pairs(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    ctx.for_each_key(args, 1, 2, |ctx, key, position| {
        ctx.keyspace.set_string(
            key,
            StringValue::Auto(args.get(position + 1)),
            Expiry::Clear,
        );
        ctx.changed(1);
        Ok(())
    })
}

/// DELIFEQ key comparison
///
/// Valkey's: deletes the key if it holds exactly this string.
pub(crate) fn delifeq(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let is_met = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => is_equal(string_of(&found)?, args.get(2)),
        None => false,
    };
    if is_met {
        ctx.keyspace.unlink(&key);
        ctx.changed(1);
    }
    ctx.reply.int(i64::from(is_met));
    Ok(())
}
