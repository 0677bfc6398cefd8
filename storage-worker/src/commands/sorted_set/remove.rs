//! ZREM and the removal of ranges.

use std::ops::Range;

use super::bounds::{LexRange, ScoreRange, index_ranks};
use super::value::{Edit, View};
use crate::commands::prelude::*;

/// ZREM key member [member ...]
pub(crate) fn zrem(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = ctx.settings.limits;
    let mut removed = 0;
    if let Some(mut edit) = Edit::open(ctx.keyspace, &key, ctx.now, limits)? {
        for member in args.iter_from(2) {
            if let Some((place, _)) = edit.find(member) {
                edit.remove(place);
                removed += 1;
            }
        }
        edit.finish();
    }
    ctx.changed(removed as u64);
    ctx.reply.count(removed);
    Ok(())
}

/// ZREMRANGEBYRANK key start stop
pub(crate) fn zremrangebyrank(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (start, end) = (integer(args.get(2))?, integer(args.get(3))?);
    remove_range(ctx, args, |set| index_ranks(start, end, set.len()))
}

/// ZREMRANGEBYSCORE key min max
pub(crate) fn zremrangebyscore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = ScoreRange::parse(args.get(2), args.get(3))?;
    remove_range(ctx, args, |set| range.ranks(set))
}

/// ZREMRANGEBYLEX key min max
pub(crate) fn zremrangebylex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = LexRange::parse(args.get(2), args.get(3))?;
    remove_range(ctx, args, |set| range.ranks(set))
}

fn remove_range(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    ranks: impl FnOnce(View<'_>) -> Range<usize>,
) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = ctx.settings.limits;
    let mut removed = 0;
    if let Some(mut edit) = Edit::open(ctx.keyspace, &key, ctx.now, limits)? {
        let ranks = ranks(edit.view());
        removed = ranks.len();
        if removed > 0 {
            edit.remove_ranks(ranks.start, removed);
            edit.finish();
        }
    }
    ctx.changed(removed as u64);
    ctx.reply.count(removed);
    Ok(())
}
