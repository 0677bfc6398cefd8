//! Adding, removing and moving members.

use super::build::{Limits, NewSet, SetMut};
use super::value::SetRef;
use crate::commands::prelude::*;

/// SADD key member [member ...]
pub(crate) fn sadd(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx);
    let count = args.len().saturating_sub(2);
    let members = args.iter_from(2).map(StringRef::Bytes);
    let added = match ctx.keyspace.value_mut(&key, ctx.now) {
        Some(value) => {
            let mut set = SetMut::new(value, limits)?;
            set.expect(count);
            members.filter(|&member| set.add(member)).count()
        }
        None => {
            let mut set = NewSet::for_members(args.get(2), count, limits);
            let added = members.filter(|&member| set.add(member)).count();
            set.create(ctx.keyspace, &key);
            added
        }
    };
    ctx.changed(added as u64);
    ctx.reply.count(added);
    Ok(())
}

/// SREM key member [member ...]
pub(crate) fn srem(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx);
    let mut removed = 0;
    if let Some(value) = ctx.keyspace.value_mut(&key, ctx.now) {
        let mut set = SetMut::new(value, limits)?;
        for member in args.iter_from(2) {
            removed += usize::from(set.remove(StringRef::Bytes(member)));
            if set.as_ref().len() == 0 {
                break;
            }
        }
        set.finish();
    }
    ctx.changed(removed as u64);
    ctx.reply.count(removed);
    Ok(())
}

/// SMOVE source destination member
pub(crate) fn smove(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (ctx.first_key(args), ctx.key(args.get(2)));
    let member = StringRef::Bytes(args.get(3));
    let limits = Limits::of(ctx);
    let is_there = match ctx.keyspace.find(&from, ctx.now, Access::Write) {
        // The type of the destination does not matter then.
        None => {
            ctx.reply.int(0);
            return Ok(());
        }
        Some(found) => SetRef::of(&found)?.contains(member),
    };
    let is_new = match ctx.keyspace.find(&to, ctx.now, Access::Write) {
        Some(found) => !SetRef::of(&found)?.contains(member),
        None => true,
    };
    if is_there && from.bytes != to.bytes {
        if let Some(value) = ctx.keyspace.value_mut(&from, ctx.now) {
            let mut set = SetMut::new(value, limits)?;
            set.remove(member);
            set.finish();
        }
        match ctx.keyspace.value_mut(&to, ctx.now) {
            Some(value) => {
                SetMut::new(value, limits)?.add(member);
            }
            None => {
                let mut set = NewSet::for_members(args.get(3), 1, limits);
                set.add(member);
                set.create(ctx.keyspace, &to);
            }
        }
        ctx.changed(1 + u64::from(is_new));
    }
    ctx.reply.int(i64::from(is_there));
    Ok(())
}
