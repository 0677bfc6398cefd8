//! Size, membership and walking.

use super::value::SetRef;
use crate::commands::prelude::*;
use crate::commands::scan_options::ScanOptions;
use proto::cursor;

/// SCARD key
pub(crate) fn scard(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let set = SetRef::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    ctx.reply.count(set.map_or(0, SetRef::len));
    Ok(())
}

/// SISMEMBER key member
pub(crate) fn sismember(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let set = SetRef::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let is_there = set.is_some_and(|set| set.contains(StringRef::Bytes(args.get(2))));
    ctx.reply.int(i64::from(is_there));
    Ok(())
}

/// SMISMEMBER key member [member ...]
pub(crate) fn smismember(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let set = SetRef::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    ctx.reply.array(args.len().saturating_sub(2));
    for member in args.iter_from(2) {
        let is_there = set.is_some_and(|set| set.contains(StringRef::Bytes(member)));
        ctx.reply.int(i64::from(is_there));
    }
    Ok(())
}

/// SMEMBERS key
pub(crate) fn smembers(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    match SetRef::find(ctx.keyspace, &key, ctx.now, ctx.access)? {
        Some(set) => {
            ctx.reply.set(set.len());
            for member in set.iter() {
                reply_string(&mut ctx.reply, member);
            }
        }
        None => ctx.reply.set(0),
    }
    Ok(())
}

/// SSCAN key cursor [MATCH pattern] [COUNT count]
///
/// Packed sets are returned whole. The cursor into a table is a place in the order of its hashes.
pub(crate) fn sscan(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor::parse(args.get(2)).ok_or(CommandError::InvalidCursor)?;
    let key = ctx.first_key(args);
    let Some(set) = SetRef::find(ctx.keyspace, &key, ctx.now, ctx.access)? else {
        // Whatever the options are.
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        ctx.reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args.iter_from(3))?;
    let mut found = Vec::new();
    let mut elements = ReplyWriter::to_vec(&mut found, ctx.reply.resp3());
    let mut count = 0;
    let mut visit = |member: StringRef<'_>| {
        if with_bytes(member, |member| options.accept(member)) {
            reply_string(&mut elements, member);
            count += 1;
        }
    };
    let next = match set {
        SetRef::Table(table) => table.scan(cursor, options.count, |member| {
            visit(StringRef::Bytes(member));
        }),
        packed => {
            packed.iter().for_each(visit);
            0
        }
    };
    ctx.reply.array(2);
    ctx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.reply.array(count);
    ctx.reply.raw(&found);
    Ok(())
}
