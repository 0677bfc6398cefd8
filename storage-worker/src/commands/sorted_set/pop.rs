//! Taking members from the ends: ZPOPMIN, ZPOPMAX, ZMPOP, and their forms that wait.

use super::reply_pair;
use super::value::{Edit, View};
use crate::blocking::TimeoutReply;
use crate::commands::prelude::*;
use crate::keyspace::Key;

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

/// How a reply looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Member and score, of one member.
    One,
    /// Members and scores one behind the other; in RESP3 in pairs.
    Flat,
    /// The key in front of member and score, of one member.
    KeyAndOne,
    /// The key and an array of pairs.
    KeyAndPairs,
}

/// ZPOPMIN key [count]
pub(crate) fn zpopmin(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop_from_one(ctx, args, End::Min)
}

/// ZPOPMAX key [count]
pub(crate) fn zpopmax(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop_from_one(ctx, args, End::Max)
}

fn pop_from_one(ctx: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let (count, shape) = match args.len() {
        2 => (1, Shape::One),
        3 => (count(args.get(2))?, Shape::Flat),
        _ => return Err(CommandError::Syntax),
    };
    let key = ctx.first_key(args);
    if !pop(ctx, &key, end, count, shape)? {
        ctx.reply.array(0);
    }
    Ok(())
}

/// A number of members that may be 0.
fn count(text: &[u8]) -> Result<usize, CommandError> {
    parse_i64(text)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(CommandError::NotPositive)
}

/// BZPOPMIN key [key ...] timeout
pub(crate) fn bzpopmin(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop_or_wait(ctx, args, End::Min)
}

/// BZPOPMAX key [key ...] timeout
pub(crate) fn bzpopmax(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop_or_wait(ctx, args, End::Max)
}

fn pop_or_wait(ctx: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let last = args.len() - 1;
    let deadline = ctx.deadline_in_seconds(args.get(last))?;
    let keys = || (1..last).map(|position| args.get(position));
    for name in keys() {
        let key = ctx.key(name);
        if pop(ctx, &key, end, 1, Shape::KeyAndOne)? {
            return Ok(());
        }
    }
    ctx.block(
        ValueKind::SortedSet,
        keys(),
        deadline,
        TimeoutReply::NullArray,
    );
    Ok(())
}

/// The arguments of ZMPOP.
#[derive(Clone, Copy, Debug)]
struct Many {
    /// Positions of the keys.
    first: usize,
    behind: usize,
    end: End,
    count: usize,
}

impl Many {
    /// Reads them; the number of keys is at `at`.
    fn parse(args: Args<'_>, at: usize) -> Result<Many, CommandError> {
        let keys = positive(args.get(at)).ok_or(CommandError::NumkeysNotPositive)?;
        let first = at + 1;
        let behind = first.saturating_add(keys);
        if behind >= args.len() {
            return Err(CommandError::Syntax);
        }
        let word = args.get(behind);
        let end = if word.eq_ignore_ascii_case(b"MIN") {
            End::Min
        } else if word.eq_ignore_ascii_case(b"MAX") {
            End::Max
        } else {
            return Err(CommandError::Syntax);
        };
        let count = match args.len() - behind - 1 {
            0 => 1,
            2 if args.get(behind + 1).eq_ignore_ascii_case(b"COUNT") => {
                positive(args.get(behind + 2)).ok_or(CommandError::CountNotPositive)?
            }
            more => {
                // An error in the first count is found before words that are too many.
                let is_count = args.get(behind + 1).eq_ignore_ascii_case(b"COUNT");
                if more > 2 && is_count && positive(args.get(behind + 2)).is_none() {
                    return Err(CommandError::CountNotPositive);
                }
                return Err(CommandError::Syntax);
            }
        };
        Ok(Many {
            first,
            behind,
            end,
            count,
        })
    }

    /// Pops from the first of the keys that has members; says whether one had.
    fn pop(self, ctx: &mut Context<'_>, args: Args<'_>) -> Result<bool, CommandError> {
        for position in self.first..self.behind {
            let key = ctx.key(args.get(position));
            if pop(ctx, &key, self.end, self.count, Shape::KeyAndPairs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A number of at least 1.
fn positive(text: &[u8]) -> Option<usize> {
    let number = parse_i64(text).filter(|&number| number > 0)?;
    usize::try_from(number).ok()
}

/// ZMPOP numkeys key [key ...] MIN | MAX [COUNT count]
pub(crate) fn zmpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if !Many::parse(args, 1)?.pop(ctx, args)? {
        ctx.reply.null_array();
    }
    Ok(())
}

/// BZMPOP timeout numkeys key [key ...] MIN | MAX [COUNT count]
pub(crate) fn bzmpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let many = Many::parse(args, 2)?;
    let deadline = ctx.deadline_in_seconds(args.get(1))?;
    if !many.pop(ctx, args)? {
        let keys = (many.first..many.behind).map(|position| args.get(position));
        ctx.block(
            ValueKind::SortedSet,
            keys,
            deadline,
            TimeoutReply::NullArray,
        );
    }
    Ok(())
}

/// Takes up to `count` members from an end of the set at a key and replies with them; says whether
/// there is such a set.
fn pop(
    ctx: &mut Context<'_>,
    key: &Key<'_>,
    end: End,
    count: usize,
    shape: Shape,
) -> Result<bool, CommandError> {
    let limits = ctx.settings.limits;
    let Some(mut edit) = Edit::open(ctx.keyspace, key, ctx.now, limits)? else {
        return Ok(false);
    };
    let len = edit.view().len();
    let count = count.min(len);
    let reply = &mut ctx.reply;
    reply_members(reply, key.bytes, edit.view(), end, count, shape);
    if count > 0 {
        let first = match end {
            End::Min => 0,
            End::Max => len - count,
        };
        edit.remove_ranks(first, count);
        edit.finish();
    }
    ctx.changed(count as u64);
    Ok(true)
}

fn reply_members(
    reply: &mut ReplyWriter<'_>,
    key: &[u8],
    set: View<'_>,
    end: End,
    count: usize,
    shape: Shape,
) {
    let in_pairs = match shape {
        Shape::One => {
            reply.array(2);
            false
        }
        Shape::KeyAndOne => {
            reply.array(3);
            reply.bulk(key);
            false
        }
        Shape::Flat if reply.resp3() => {
            reply.array(count);
            true
        }
        Shape::Flat => {
            reply.array(2 * count);
            false
        }
        Shape::KeyAndPairs => {
            reply.array(2);
            reply.bulk(key);
            reply.array(count);
            true
        }
    };
    let walk = match end {
        End::Min => set.walk(0),
        End::Max => set.walk_back(set.len().saturating_sub(1)),
    };
    for (score, member) in walk.take(count) {
        if in_pairs {
            reply.array(2);
        }
        reply_pair(reply, member, score);
    }
}
