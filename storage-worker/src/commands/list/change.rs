//! LSET, LINSERT, LREM, LTRIM.

use super::value::{Limits, ListMut};
use super::{position, span, symmetric_number};
use crate::commands::prelude::*;

/// LSET key index element
///
/// An index beyond 32 bits is out of range; the reference takes it modulo 2^32 and overwrites another
/// element.
pub(crate) fn lset(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx.settings);
    let mut list =
        ListMut::find(ctx.keyspace, &key, ctx.now, limits)?.ok_or(CommandError::NoSuchKey)?;
    // The reference takes what is left of the index in 32 bits.
    let index = i64::from(integer(args.get(2))? as i32);
    let element = args.get(3);
    // As in the reference, this is how the list is kept from now on even if there is no such element.
    list.make_room(element.len(), 1);
    let position = position(index, list.len()).ok_or(CommandError::IndexOutOfRange)?;
    list.set(position, element);
    list.settle();
    ctx.changed(1);
    ctx.reply.ok();
    Ok(())
}

/// LINSERT key BEFORE|AFTER pivot element
pub(crate) fn linsert(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let behind = if args.get(2).eq_ignore_ascii_case(b"AFTER") {
        true
    } else if args.get(2).eq_ignore_ascii_case(b"BEFORE") {
        false
    } else {
        return Err(CommandError::Syntax);
    };
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx.settings);
    let Some(mut list) = ListMut::find(ctx.keyspace, &key, ctx.now, limits)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let element = args.get(4);
    list.make_room(element.len(), 1);
    if list.insert(args.get(3), element, behind) {
        ctx.reply.count(list.len());
        ctx.changed(1);
    } else {
        ctx.reply.int(-1);
    }
    Ok(())
}

/// LREM key count element
///
/// Up to `count` elements from the front, from the end if it is negative, all if it is 0.
pub(crate) fn lrem(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let count = symmetric_number(args.get(2))?;
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx.settings);
    let Some(mut list) = ListMut::find(ctx.keyspace, &key, ctx.now, limits)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let limit = match count {
        0 => None,
        _ => Some(usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let removed = list.remove_equal(args.get(3), limit, count < 0);
    if removed > 0 {
        list.settle();
    }
    ctx.changed(removed as u64);
    ctx.reply.count(removed);
    Ok(())
}

/// LTRIM key start stop
pub(crate) fn ltrim(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let start = integer(args.get(2))?;
    let stop = integer(args.get(3))?;
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx.settings);
    if let Some(mut list) = ListMut::find(ctx.keyspace, &key, ctx.now, limits)? {
        let len = list.len();
        let (first, kept) = span(start, stop, len).unwrap_or((len, 0));
        list.delete_range(0, first);
        list.delete_range(kept, len - first - kept);
        list.settle();
        ctx.changed((len - kept) as u64);
    }
    ctx.reply.ok();
    Ok(())
}
