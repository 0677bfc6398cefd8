//! LLEN, LINDEX, LRANGE, LPOS.

use super::value::ListRef;
use super::{number_from, position, span, symmetric_number};
use crate::collections::listpack::Wanted;
use crate::commands::prelude::*;

/// LLEN key
pub(crate) fn llen(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let len = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => ListRef::of(&found)?.len(),
        None => 0,
    };
    ctx.reply.count(len);
    Ok(())
}

/// LINDEX key index
pub(crate) fn lindex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.null();
        return Ok(());
    };
    let list = ListRef::of(&found)?;
    let index = integer(args.get(2))?;
    let reply = &mut ctx.reply;
    let is_there = position(index, list.len())
        .and_then(|position| list.get(position, |element| reply_string(reply, element)));
    if is_there.is_none() {
        ctx.reply.null();
    }
    Ok(())
}

/// LRANGE key start stop
pub(crate) fn lrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let start = integer(args.get(2))?;
    let stop = integer(args.get(3))?;
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.array(0);
        return Ok(());
    };
    let list = ListRef::of(&found)?;
    match span(start, stop, list.len()) {
        Some((first, count)) => list.reply_range(&mut ctx.reply, first, count, false),
        None => ctx.reply.array(0),
    }
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// Matches from this one on are returned.
    rank: usize,
    backward: bool,
    /// How many are returned, if that was said; 0: all.
    count: Option<usize>,
    /// How many elements are looked at; 0: all.
    compared_max: usize,
}

impl Search {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut search = Self {
            rank: 1,
            backward: false,
            count: None,
            compared_max: 0,
        };
        let mut words = args.iter_from(3);
        while let Some(word) = words.next() {
            let number = words.next().ok_or(CommandError::Syntax)?;
            if word.eq_ignore_ascii_case(b"RANK") {
                let rank = symmetric_number(number)?;
                if rank == 0 {
                    return Err(CommandError::RankZero);
                }
                search.backward = rank < 0;
                search.rank = usize::try_from(rank.unsigned_abs()).unwrap_or(usize::MAX);
            } else if word.eq_ignore_ascii_case(b"COUNT") {
                search.count = Some(number_from(0, number, CommandError::CountNegative)?);
            } else if word.eq_ignore_ascii_case(b"MAXLEN") {
                search.compared_max = number_from(0, number, CommandError::MaxlenNegative)?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(search)
    }

    /// Calls `each` with the position of every match that is asked for.
    fn run(&self, list: ListRef<'_>, what: &[u8], mut each: impl FnMut(usize)) {
        let len = list.len();
        let compared_max = match self.compared_max {
            0 => len,
            most => most.min(len),
        };
        let returned_max = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let wanted = Wanted::new(what);
        let from = if self.backward { len - 1 } else { 0 };
        let (mut compared, mut matches, mut returned) = (0, 0, 0);
        list.visit(from, self.backward, |element| {
            if wanted.is(element) {
                matches += 1;
                if matches >= self.rank {
                    each(if self.backward {
                        len - 1 - compared
                    } else {
                        compared
                    });
                    returned += 1;
                }
            }
            compared += 1;
            compared < compared_max && returned < returned_max
        });
    }
}

/// LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]
pub(crate) fn lpos(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let search = Search::parse(args)?;
    let key = ctx.first_key(args);
    let list = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => Some(ListRef::of(&found)?),
        None => None,
    };
    let reply = &mut ctx.reply;
    match (list, search.count) {
        (None, Some(_)) => reply.array(0),
        (None, None) => reply.null(),
        (Some(list), Some(_)) => {
            let mark = reply.begin_array();
            let mut count = 0;
            search.run(list, args.get(2), |position| {
                reply.count(position);
                count += 1;
            });
            reply.set_array_len(mark, count);
        }
        (Some(list), None) => {
            let mut first = None;
            search.run(list, args.get(2), |position| first = Some(position));
            match first {
                Some(position) => reply.count(position),
                None => reply.null(),
            }
        }
    }
    Ok(())
}
