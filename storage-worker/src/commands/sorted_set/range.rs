//! ZRANGE and its older names, and ZRANGESTORE.
//!
//! Every range becomes an interval of ranks first, which is then walked from one of its ends.

use std::ops::Range;

use super::bounds::{LexRange, Limit, ScoreRange, index_ranks};
use super::reply_pairs;
use super::value::{Builder, View};
use crate::commands::prelude::*;

/// What the two ends of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Index,
    Score,
    Lex,
}

/// What the words behind the ends say.
#[derive(Clone, Copy, Debug)]
struct Options {
    by: By,
    reverse: bool,
    limit: Limit,
    with_scores: bool,
}

/// What a command is by its name.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Fixed by the name; `None` if words may say it.
    by: Option<By>,
    reverse: Option<bool>,
    stores: bool,
}

impl Form {
    const fn fixed(by: By, reverse: bool) -> Form {
        Form {
            by: Some(by),
            reverse: Some(reverse),
            stores: false,
        }
    }
}

impl Options {
    fn parse(args: Args<'_>, from: usize, form: Form) -> Result<Options, CommandError> {
        let mut by = form.by;
        let mut reverse = form.reverse;
        let mut limit = None;
        let mut with_scores = false;
        let mut at = from;
        while at < args.len() {
            let word = args.get(at);
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if !form.stores && is(b"WITHSCORES") {
                with_scores = true;
            } else if is(b"LIMIT") && at + 2 < args.len() {
                limit = Some(Limit {
                    offset: integer(args.get(at + 1))?,
                    count: integer(args.get(at + 2))?,
                });
                at += 2;
            } else if reverse.is_none() && is(b"REV") {
                reverse = Some(true);
            } else if by.is_none() && is(b"BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && is(b"BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        let by = by.unwrap_or(By::Index);
        // A count of -1 means the same as no limit, and is taken for none.
        let has_limit = limit.is_some_and(|limit| limit.count != -1);
        if has_limit && by == By::Index {
            return Err(CommandError::RangeLimit);
        }
        if with_scores && by == By::Lex {
            return Err(CommandError::RangeLexScores);
        }
        Ok(Options {
            by,
            reverse: reverse.unwrap_or(false),
            limit: limit.unwrap_or(Limit::NONE),
            with_scores,
        })
    }
}

/// A range that has been read.
#[derive(Clone, Copy, Debug)]
enum Ends<'a> {
    Index(i64, i64),
    Score(ScoreRange),
    Lex(LexRange<'a>),
}

impl<'a> Ends<'a> {
    fn parse(first: &'a [u8], second: &'a [u8], options: &Options) -> Result<Self, CommandError> {
        // By score and name, a reversed range names its upper end first.
        let (min, max) = if options.reverse {
            (second, first)
        } else {
            (first, second)
        };
        Ok(match options.by {
            By::Index => Ends::Index(integer(first)?, integer(second)?),
            By::Score => Ends::Score(ScoreRange::parse(min, max)?),
            By::Lex => Ends::Lex(LexRange::parse(min, max)?),
        })
    }

    fn ranks(&self, set: View<'_>, options: &Options) -> Range<usize> {
        let ranks = match self {
            Ends::Index(start, end) => {
                let len = set.len();
                let ranks = index_ranks(*start, *end, len);
                return if options.reverse && !ranks.is_empty() {
                    len - ranks.end..len - ranks.start
                } else {
                    ranks
                };
            }
            Ends::Score(range) => range.ranks(set),
            Ends::Lex(range) if options.reverse => range.ranks_from_end(set),
            Ends::Lex(range) => range.ranks(set),
        };
        let is_table = matches!(set, View::Table(_));
        options.limit.apply(ranks, options.reverse, is_table)
    }
}

/// ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
pub(crate) fn zrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let form = Form {
        by: None,
        reverse: None,
        stores: false,
    };
    range(ctx, args, form)
}

/// ZREVRANGE key start stop [WITHSCORES]
pub(crate) fn zrevrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, Form::fixed(By::Index, true))
}

/// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
pub(crate) fn zrangebyscore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, Form::fixed(By::Score, false))
}

/// ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
pub(crate) fn zrevrangebyscore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, Form::fixed(By::Score, true))
}

/// ZRANGEBYLEX key min max [LIMIT offset count]
pub(crate) fn zrangebylex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, Form::fixed(By::Lex, false))
}

/// ZREVRANGEBYLEX key max min [LIMIT offset count]
pub(crate) fn zrevrangebylex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(ctx, args, Form::fixed(By::Lex, true))
}

fn range(ctx: &mut Context<'_>, args: Args<'_>, form: Form) -> CommandResult {
    let options = Options::parse(args, 4, form)?;
    let ends = Ends::parse(args.get(2), args.get(3), &options)?;
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.array(0);
        return Ok(());
    };
    let set = View::of(&found)?;
    let ranks = ends.ranks(set, &options);
    let (count, members) = (ranks.len(), walk(set, ranks, options.reverse));
    if options.with_scores {
        reply_pairs(&mut ctx.reply, count, members);
    } else {
        ctx.reply.array(count);
        for (_, member) in members {
            reply_string(&mut ctx.reply, member);
        }
    }
    Ok(())
}

/// The members of an interval of ranks, upwards or downwards.
fn walk<'a>(
    set: View<'a>,
    ranks: Range<usize>,
    reverse: bool,
) -> impl Iterator<Item = (f64, StringRef<'a>)> {
    let count = ranks.len();
    let walk = if reverse {
        set.walk_back(ranks.end.saturating_sub(1))
    } else {
        set.walk(ranks.start)
    };
    walk.take(count)
}

/// ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]
pub(crate) fn zrangestore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let form = Form {
        by: None,
        reverse: None,
        stores: true,
    };
    let options = Options::parse(args, 5, form)?;
    let ends = Ends::parse(args.get(3), args.get(4), &options)?;
    let (destination, source) = (ctx.first_key(args), ctx.key(args.get(2)));
    let (limits, seed) = (ctx.settings.limits, ctx.hash_seed);
    let mut result = Builder::new(limits, seed, 0, 0);
    if let Some(found) = ctx.keyspace.find(&source, ctx.now, ctx.access) {
        let set = View::of(&found)?;
        let ranks = ends.ranks(set, &options);
        if options.by == By::Index {
            result = Builder::new(limits, seed, ranks.len(), 0);
        }
        // The direction shows: what comes while the result is a listpack loses the sign of -0.
        for (score, member) in walk(set, ranks, options.reverse) {
            with_bytes(member, |member| result.add(score, member));
        }
    }
    let count = result.len();
    let changes = result.store(ctx, &destination);
    ctx.changed(changes);
    ctx.reply.count(count);
    Ok(())
}
