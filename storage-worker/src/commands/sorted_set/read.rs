//! Single members, ranks and counts.

use super::bounds::{LexRange, ScoreRange};
use super::value::View;
use crate::commands::prelude::*;

/// ZCARD key
pub(crate) fn zcard(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let len = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => View::of(&found)?.len(),
        None => 0,
    };
    ctx.reply.count(len);
    Ok(())
}

/// ZSCORE key member
pub(crate) fn zscore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let score = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => View::of(&found)?.score(args.get(2)),
        None => None,
    };
    reply_score(&mut ctx.reply, score);
    Ok(())
}

/// ZMSCORE key member [member ...]
pub(crate) fn zmscore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let set = View::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    ctx.reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        reply_score(&mut ctx.reply, set.and_then(|set| set.score(member)));
    }
    Ok(())
}

fn reply_score(reply: &mut ReplyWriter<'_>, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

/// ZRANK key member [WITHSCORE]
pub(crate) fn zrank(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    rank(ctx, args, "zrank", |rank, _| rank)
}

/// ZREVRANK key member [WITHSCORE]
pub(crate) fn zrevrank(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    rank(ctx, args, "zrevrank", |rank, len| len - 1 - rank)
}

fn rank(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    name: &'static str,
    number: impl FnOnce(usize, usize) -> usize,
) -> CommandResult {
    if args.len() > 4 {
        return Err(CommandError::Arity { name });
    }
    let with_score = args.len() == 4;
    if with_score && !args.get(3).eq_ignore_ascii_case(b"WITHSCORE") {
        return Err(CommandError::Syntax);
    }
    let key = ctx.first_key(args);
    let found = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => {
            let set = View::of(&found)?;
            let found = set.rank(args.get(2));
            found.map(|(rank, score)| (number(rank, set.len()), score))
        }
        None => None,
    };
    match found {
        Some((rank, score)) if with_score => {
            ctx.reply.array(2);
            ctx.reply.count(rank);
            ctx.reply.double(score);
        }
        Some((rank, _)) => ctx.reply.count(rank),
        None if with_score => ctx.reply.null_array(),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// ZCOUNT key min max
pub(crate) fn zcount(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = ScoreRange::parse(args.get(2), args.get(3))?;
    count(ctx, args, |set| range.ranks(set).len())
}

/// ZLEXCOUNT key min max
pub(crate) fn zlexcount(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = LexRange::parse(args.get(2), args.get(3))?;
    count(ctx, args, |set| range.ranks(set).len())
}

fn count(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    count: impl FnOnce(View<'_>) -> usize,
) -> CommandResult {
    let key = ctx.first_key(args);
    let count = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => count(View::of(&found)?),
        None => 0,
    };
    ctx.reply.count(count);
    Ok(())
}
