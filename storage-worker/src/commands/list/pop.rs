//! LPOP, RPOP, LMPOP, and what their waiting relatives share with them.

use super::value::{Limits, ListMut};
use super::{end_named, number_from};
use crate::collections::list::End;
use crate::commands::prelude::*;
use crate::keyspace::Key;

/// LPOP key [count]
pub(crate) fn lpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Head, "lpop")
}

/// RPOP key [count]
pub(crate) fn rpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, End::Tail, "rpop")
}

fn pop(ctx: &mut Context<'_>, args: Args<'_>, end: End, name: &'static str) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Arity { name });
    }
    let count = if args.len() == 3 {
        Some(number_from(0, args.get(2), CommandError::NotPositive)?)
    } else {
        None
    };
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx.settings);
    let Some(list) = ListMut::find(ctx.keyspace, &key, ctx.now, limits)? else {
        match count {
            Some(_) => ctx.reply.null_array(),
            None => ctx.reply.null(),
        }
        return Ok(());
    };
    let popped = match count {
        Some(0) => {
            ctx.reply.array(0);
            0
        }
        Some(count) => pop_many(list, &mut ctx.reply, end, count),
        None => {
            pop_one(list, &mut ctx.reply, end);
            1
        }
    };
    ctx.changed(popped as u64);
    Ok(())
}

/// Replies with the element at an end of a list and removes it.
fn pop_one(mut list: ListMut<'_>, reply: &mut ReplyWriter<'_>, end: End) {
    list.view()
        .get_end(end, |element| reply_string(reply, element));
    list.pop(end);
    list.settle();
}

/// Replies with up to `count` elements from an end of a list, the outermost first, and removes them.
/// Returns how many.
fn pop_many(mut list: ListMut<'_>, reply: &mut ReplyWriter<'_>, end: End, count: usize) -> usize {
    let len = list.len();
    let popped = count.min(len);
    match end {
        End::Head => {
            list.view().reply_range(reply, 0, popped, false);
            list.delete_range(0, popped);
        }
        End::Tail => {
            list.view().reply_range(reply, len - 1, popped, true);
            list.delete_range(len - popped, popped);
        }
    }
    list.settle();
    popped
}

/// Pops from the first of some keys that is there, and replies with its name, too. One element, or
/// with a count an array of up to so many. Says whether there was one.
pub(super) fn pop_first<'k>(
    ctx: &mut Context<'_>,
    keys: impl Iterator<Item = &'k [u8]>,
    end: End,
    count: Option<usize>,
) -> Result<bool, CommandError> {
    let limits = Limits::of(ctx.settings);
    for bytes in keys {
        let key: Key<'_> = ctx.key(bytes);
        let Some(list) = ListMut::find(ctx.keyspace, &key, ctx.now, limits)? else {
            continue;
        };
        ctx.reply.array(2);
        ctx.reply.bulk(bytes);
        let popped = match count {
            Some(count) => pop_many(list, &mut ctx.reply, end, count),
            None => {
                pop_one(list, &mut ctx.reply, end);
                1
            }
        };
        ctx.changed(popped as u64);
        return Ok(true);
    }
    Ok(false)
}

/// What LMPOP and BLMPOP are asked for.
pub(super) struct ManyKeys {
    /// Arguments that are keys: from here on ...
    pub(super) first_key: usize,
    /// ... so many.
    pub(super) key_count: usize,
    pub(super) end: End,
    pub(super) count: usize,
}

impl ManyKeys {
    /// Reads numkeys key [key ...] LEFT|RIGHT [COUNT count] from argument `at` on.
    pub(super) fn parse(args: Args<'_>, at: usize) -> Result<Self, CommandError> {
        let key_count = number_from(1, args.get(at), CommandError::NumkeysNotPositive)?;
        let first_key = at + 1;
        let end_at = first_key.saturating_add(key_count);
        if end_at >= args.len() {
            return Err(CommandError::Syntax);
        }
        let end = end_named(args.get(end_at))?;
        let mut count = None;
        let mut words = args.iter_from(end_at + 1);
        while let Some(word) = words.next() {
            let number = words
                .next()
                .filter(|_| count.is_none() && word.eq_ignore_ascii_case(b"COUNT"))
                .ok_or(CommandError::Syntax)?;
            count = Some(number_from(1, number, CommandError::CountNotPositive)?);
        }
        Ok(Self {
            first_key,
            key_count,
            end,
            count: count.unwrap_or(1),
        })
    }

    pub(super) fn keys<'k>(&self, args: Args<'k>) -> impl Iterator<Item = &'k [u8]> + use<'k> {
        args.iter_from(self.first_key).take(self.key_count)
    }
}

/// LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]
pub(crate) fn lmpop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let wanted = ManyKeys::parse(args, 1)?;
    if !pop_first(ctx, wanted.keys(args), wanted.end, Some(wanted.count))? {
        ctx.reply.null_array();
    }
    Ok(())
}
