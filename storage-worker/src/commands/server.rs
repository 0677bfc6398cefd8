//! Whole databases: their size, emptying them, memory that is given back.

use crate::commands::prelude::*;

/// DBSIZE
pub(crate) fn dbsize(ctx: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    ctx.reply.count(ctx.keyspace.len(ctx.db) as usize);
    Ok(())
}

/// FLUSHALL [ASYNC | SYNC]
pub(crate) fn flushall(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let is_lazy = is_lazy(ctx, args)?;
    let keys = (0..ctx.settings.databases).map(|db| ctx.keyspace.len(db));
    let count = keys.sum();
    ctx.keyspace.flush_all(is_lazy);
    (0..ctx.settings.databases).for_each(|db| ctx.signal_database(db));
    ctx.effects.counts_elsewhere = true;
    ctx.changed(count);
    ctx.reply.ok();
    Ok(())
}

/// FLUSHDB [ASYNC | SYNC]
pub(crate) fn flushdb(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let is_lazy = is_lazy(ctx, args)?;
    let count = ctx.keyspace.len(ctx.db);
    ctx.keyspace.flush_db(ctx.db, is_lazy);
    ctx.signal_database(ctx.db);
    ctx.changed(count);
    ctx.reply.ok();
    Ok(())
}

/// SWAPDB index1 index2
pub(crate) fn swapdb(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let number = |position, error: CommandError| {
        let number = parse_i64(args.get(position)).and_then(|number| i32::try_from(number).ok());
        number.ok_or(error)
    };
    let one = number(1, CommandError::FirstDatabase)?;
    let other = number(2, CommandError::SecondDatabase)?;
    let known = |number: i32| {
        u16::try_from(number)
            .ok()
            .filter(|number| *number < ctx.settings.databases)
            .ok_or(CommandError::DatabaseOutOfRange)
    };
    let (one, other) = (known(one)?, known(other)?);
    ctx.keyspace.swap(one, other);
    ctx.signal_database(one);
    ctx.signal_database(other);
    ctx.effects.counts_elsewhere = true;
    // One change, of all workers together.
    ctx.changed(u64::from(ctx.is_first_part));
    ctx.reply.ok();
    Ok(())
}

fn is_lazy(ctx: &Context<'_>, args: Args<'_>) -> Result<bool, CommandError> {
    match (args.len(), args.get(1)) {
        (1, _) => Ok(ctx.settings.flush_is_lazy),
        (2, word) if word.eq_ignore_ascii_case(b"ASYNC") => Ok(true),
        (2, word) if word.eq_ignore_ascii_case(b"SYNC") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

/// MEMORY PURGE
///
/// The pages go back in slices between batches; the command only asks for it.
pub(crate) fn memory_purge(ctx: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    ctx.effects.purge = true;
    ctx.reply.ok();
    Ok(())
}
