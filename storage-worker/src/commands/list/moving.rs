//! LMOVE, RPOPLPUSH, and what their waiting relatives share with them.

use super::end_named;
use super::value::{Limits, ListMut, ListRef};
use crate::collections::list::End;
use crate::commands::prelude::*;

/// LMOVE source destination LEFT|RIGHT LEFT|RIGHT
pub(crate) fn lmove(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let from = end_named(args.get(3))?;
    let to = end_named(args.get(4))?;
    if !move_element(ctx, args, from, to)? {
        ctx.reply.null();
    }
    Ok(())
}

/// RPOPLPUSH source destination
pub(crate) fn rpoplpush(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if !move_element(ctx, args, End::Tail, End::Head)? {
        ctx.reply.null();
    }
    Ok(())
}

/// Moves an element from an end of the list in argument 1 to an end of the one in argument 2, and
/// replies with it; says whether there is a source.
pub(super) fn move_element(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    from: End,
    to: End,
) -> Result<bool, CommandError> {
    let source = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&source, ctx.now, Access::Write) else {
        return Ok(false);
    };
    let list = ListRef::of(&found)?;
    // Nodes hand numbers over as such, which do not count when the room in a listpack is looked at.
    let has_nodes = matches!(list, ListRef::Nodes(_));
    let taken = list.get_end(from, |element| {
        let is_free = has_nodes && matches!(element, StringRef::Int(_));
        (element.to_vec(), is_free)
    });
    let Some((element, is_free)) = taken else {
        return Ok(false);
    };
    let counted = if is_free { 0 } else { element.len() };
    let destination = ctx.key(args.get(2));
    let limits = Limits::of(ctx.settings);
    if source.bytes == destination.bytes {
        if let Some(mut list) = ListMut::find(ctx.keyspace, &source, ctx.now, limits)? {
            list.pop(from);
            list.make_room(counted, 1);
            list.push(to, &element);
            list.settle();
        }
    } else {
        match ListMut::find(ctx.keyspace, &destination, ctx.now, limits)? {
            Some(mut list) => {
                list.make_room(counted, 1);
                list.push(to, &element);
            }
            None => {
                let elements = std::iter::once(&element[..]);
                ListMut::create(ctx.keyspace, &destination, limits, to, elements);
                ctx.signal_ready(&destination);
            }
        }
        if let Some(mut list) = ListMut::find(ctx.keyspace, &source, ctx.now, limits)? {
            list.pop(from);
            list.settle();
        }
    }
    ctx.changed(1);
    ctx.reply.bulk(&element);
    Ok(true)
}
