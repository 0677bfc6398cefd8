//! Entries between two ids: XRANGE and XREVRANGE.

use super::{id, value};
use crate::commands::prelude::*;

/// XRANGE key start end [COUNT count]
pub(crate) fn xrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, false)
}

/// XREVRANGE key end start [COUNT count]
pub(crate) fn xrevrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, true)
}

fn range(ctx: &mut Context<'_>, args: Args<'_>, is_reverse: bool) -> CommandResult {
    let (from, to) = if is_reverse { (3, 2) } else { (2, 3) };
    let start = id::start(args.get(from))?;
    let end = id::end(args.get(to))?;
    let mut count = None;
    let mut words = args.iter_from(4);
    while let Some(word) = words.next() {
        let value = words.next();
        let value = value.filter(|_| word.eq_ignore_ascii_case(b"COUNT"));
        count = Some(integer(value.ok_or(CommandError::Syntax)?)?.max(0));
    }
    let key = ctx.first_key(args);
    let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let Some(stream) = stream else {
        ctx.reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        ctx.reply.null_array();
        return Ok(());
    }
    let count = usize::try_from(count.unwrap_or(0)).unwrap_or(0);
    if is_reverse {
        id::reply_entries(&mut ctx.reply, stream.log.range_back(start, end), count);
    } else {
        id::reply_entries(&mut ctx.reply, stream.log.range(start, end), count);
    }
    Ok(())
}
