//! BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH: their relatives, and waiting where those find nothing.

use super::end_named;
use super::moving::move_element;
use super::pop::{ManyKeys, pop_first};
use crate::blocking::TimeoutReply;
use crate::collections::list::End;
use crate::commands::prelude::*;

/// BLPOP key [key ...] timeout
pub(crate) fn blpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Head)
}

/// BRPOP key [key ...] timeout
pub(crate) fn brpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Tail)
}

fn pop(ctx: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let last = args.len().saturating_sub(1);
    let deadline = ctx.deadline_in_seconds(args.get(last))?;
    let keys = || args.iter_from(1).take(last.saturating_sub(1));
    if !pop_first(ctx, keys(), end, None)? {
        ctx.block(ValueKind::List, keys(), deadline, TimeoutReply::NullArray);
    }
    Ok(())
}

/// BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]
pub(crate) fn blmpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let wanted = ManyKeys::parse(args, 2)?;
    let deadline = ctx.deadline_in_seconds(args.get(1))?;
    if !pop_first(ctx, wanted.keys(args), wanted.end, Some(wanted.count))? {
        let keys = wanted.keys(args);
        ctx.block(ValueKind::List, keys, deadline, TimeoutReply::NullArray);
    }
    Ok(())
}

/// BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout
pub(crate) fn blmove(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let from = end_named(args.get(3))?;
    let to = end_named(args.get(4))?;
    move_or_wait(ctx, args, from, to, 5)
}

/// BRPOPLPUSH source destination timeout
pub(crate) fn brpoplpush(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    move_or_wait(ctx, args, End::Tail, End::Head, 3)
}

fn move_or_wait(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    from: End,
    to: End,
    timeout: usize,
) -> CommandResult {
    let deadline = ctx.deadline_in_seconds(args.get(timeout))?;
    if !move_element(ctx, args, from, to)? {
        let keys = [args.get(1)];
        ctx.block(ValueKind::List, keys, deadline, TimeoutReply::Null);
    }
    Ok(())
}
