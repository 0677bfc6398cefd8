//! ZRANDMEMBER and ZSCAN.

use super::reply_pairs;
use super::value::View;
use crate::commands::prelude::*;
use crate::commands::scan_options::ScanOptions;
use crate::keyspace::dictionary::Position;
use hashbrown::HashSet;
use proto::cursor;
use proto::number::DoubleText;

/// ZRANDMEMBER key [count [WITHSCORES]]
pub(crate) fn zrandmember(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if args.len() == 2 {
        return one_random(ctx, args);
    }
    let count = integer(args.get(2))?;
    if count == i64::MIN {
        return Err(CommandError::NotInSymmetricRange);
    }
    let with_scores = args.len() == 4 && args.get(3).eq_ignore_ascii_case(b"WITHSCORES");
    if args.len() > 3 && !with_scores {
        return Err(CommandError::Syntax);
    }
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::OutOfRange);
    }
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.array(0);
        return Ok(());
    };
    let set = View::of(&found)?;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let len = set.len();
    let reply = &mut ctx.reply;
    if count >= 0 && wanted >= len {
        // All of them, from the last one on as Redis does it.
        return reply_some(reply, with_scores, len, set.walk_back(len - 1));
    }
    let mut random = || ctx.rng.below(len as u64) as usize;
    let ranks: Vec<usize> = if count < 0 {
        return repeated(reply, set, wanted, with_scores, random);
    } else if wanted > len / 3 {
        // Leaves members out until there are few enough.
        let left_out = distinct(len - wanted, &mut random);
        (0..len).filter(|rank| !left_out.contains(rank)).collect()
    } else {
        distinct(wanted, &mut random).into_iter().collect()
    };
    let members = ranks.into_iter().filter_map(|rank| set.at(rank));
    reply_some(reply, with_scores, wanted, members)
}

fn one_random(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let found = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => {
            let set = View::of(&found)?;
            set.at(ctx.rng.below(set.len() as u64) as usize)
        }
        None => None,
    };
    match found {
        Some((_, member)) => reply_string(&mut ctx.reply, member),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// `count` different numbers.
fn distinct(count: usize, random: &mut impl FnMut() -> usize) -> HashSet<usize> {
    let mut chosen = HashSet::with_capacity(count);
    while chosen.len() < count {
        chosen.insert(random());
    }
    chosen
}

/// Members that may come several times.
fn repeated(
    reply: &mut ReplyWriter<'_>,
    set: View<'_>,
    count: usize,
    with_scores: bool,
    mut random: impl FnMut() -> usize,
) -> CommandResult {
    check_drawn_count(count)?;
    let in_pairs = with_scores && reply.resp3();
    reply.array(if with_scores && !in_pairs {
        2 * count
    } else {
        count
    });
    for (score, member) in (0..count).filter_map(|_| set.at(random())) {
        if in_pairs {
            reply.array(2);
        }
        reply_string(reply, member);
        if with_scores {
            reply.double(score);
        }
        check_drawn_bytes(reply)?;
    }
    Ok(())
}

fn reply_some<'a>(
    reply: &mut ReplyWriter<'_>,
    with_scores: bool,
    count: usize,
    members: impl Iterator<Item = (f64, StringRef<'a>)>,
) -> CommandResult {
    if with_scores {
        reply_pairs(reply, count, members);
    } else {
        reply.array(count);
        members.for_each(|(_, member)| reply_string(reply, member));
    }
    Ok(())
}

/// ZSCAN key cursor [MATCH pattern] [COUNT count]
pub(crate) fn zscan(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let from = cursor::parse(args.get(2)).ok_or(CommandError::InvalidCursor)?;
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        ctx.reply.array(0);
        return Ok(());
    };
    let set = View::of(&found)?;
    let options = ScanOptions::parse(args.iter_from(3))?;
    let mut text = Vec::new();
    let mut elements = ReplyWriter::to_vec(&mut text, false);
    let mut shown = 0;
    // Strings in both protocols, scores too; those of a tree have all their digits.
    let mut scores = DoubleText::new();
    let mut show = |score: f64, member: StringRef<'_>, has_all_digits: bool| {
        if with_bytes(member, |member| options.accept(member)) {
            reply_string(&mut elements, member);
            elements.bulk(if has_all_digits {
                scores.format_17_digits(score)
            } else {
                scores.format(score)
            });
            shown += 2;
        }
    };
    let next = match set {
        View::Packed(packed) => {
            packed
                .walk(0)
                .for_each(|(score, member)| show(score, member, false));
            0
        }
        View::Table(table) => {
            let start = Position::unpack(cursor::rest(from));
            let next = table.scan(start, options.count, |score, member| {
                show(score, StringRef::Bytes(member), true);
            });
            next.map_or(0, Position::pack)
        }
    };
    ctx.reply.array(2);
    ctx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.reply.array(shown);
    ctx.reply.raw(&text);
    Ok(())
}
