//! LPUSH, RPUSH, LPUSHX, RPUSHX.

use super::value::{Limits, ListMut};
use crate::collections::list::End;
use crate::commands::prelude::*;

/// LPUSH key element [element ...]
pub(crate) fn lpush(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, End::Head, true)
}

/// RPUSH key element [element ...]
pub(crate) fn rpush(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, End::Tail, true)
}

/// LPUSHX key element [element ...]
pub(crate) fn lpushx(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, End::Head, false)
}

/// RPUSHX key element [element ...]
pub(crate) fn rpushx(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, End::Tail, false)
}

fn push(ctx: &mut Context<'_>, args: Args<'_>, end: End, creates: bool) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx.settings);
    let elements = args.iter_from(2);
    let count = elements.len();
    let len = match ListMut::find(ctx.keyspace, &key, ctx.now, limits)? {
        Some(mut list) => {
            let bytes = elements.clone().map(<[u8]>::len).sum();
            list.make_room(bytes, count);
            for element in elements {
                list.push(end, element);
            }
            list.len()
        }
        None if creates => {
            ListMut::create(ctx.keyspace, &key, limits, end, elements);
            ctx.signal_ready(&key);
            count
        }
        None => {
            ctx.reply.int(0);
            return Ok(());
        }
    };
    ctx.changed(count as u64);
    ctx.reply.count(len);
    Ok(())
}
