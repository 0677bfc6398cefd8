//! What streams, groups and consumers are like: XINFO.

use super::{id, value};
use crate::collections::stream::{ConsumerAt, Group, Log, StreamId, UNKNOWN};
use crate::commands::prelude::*;

/// Things of each kind that FULL shows if nothing is said.
const COUNT_DEFAULT: usize = 10;

/// XINFO STREAM key [FULL [COUNT count]]
pub(crate) fn xinfo_stream(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.key(args.get(2));
    let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    let count = match args.len() {
        3 => None,
        _ => Some(full_count(args)?),
    };
    let reply = &mut ctx.reply;
    reply.map(if count.is_some() { 9 } else { 10 });
    describe(reply, &stream.log);
    match count {
        None => {
            field(reply, "groups").count(stream.groups.len());
            let mut range = stream.log.range(StreamId::MIN, StreamId::MAX);
            let first = range.next();
            let last = stream.log.range_back(StreamId::MIN, StreamId::MAX).next();
            for (name, entry) in [("first-entry", first), ("last-entry", last)] {
                field(reply, name);
                match entry {
                    Some(entry) => id::reply_entry(reply, &entry),
                    None => reply.null(),
                }
            }
        }
        Some(count) => {
            field(reply, "entries");
            id::reply_entries(reply, stream.log.range(StreamId::MIN, StreamId::MAX), count);
            field(reply, "groups").array(stream.groups.len());
            for (name, group) in stream.groups.iter() {
                full_group(reply, &stream.log, name, group, count);
            }
        }
    }
    Ok(())
}

/// How many things of each kind FULL shows; 0 for all.
fn full_count(args: Args<'_>) -> Result<usize, CommandError> {
    let is = |at: usize, word: &[u8]| args.get(at).eq_ignore_ascii_case(word);
    let is_full = matches!(args.len(), 4 | 6) && is(3, b"FULL");
    if !is_full || (args.len() == 6 && !is(4, b"COUNT")) {
        return Err(CommandError::SubcommandSyntax {
            name: "xinfo",
            subcommand: args.get(1).into(),
        });
    }
    match args.len() {
        4 => Ok(COUNT_DEFAULT),
        _ => Ok(usize::try_from(integer(args.get(5))?).unwrap_or(COUNT_DEFAULT)),
    }
}

/// Replies with the name of a field; its value follows.
fn field<'r, 'b>(reply: &'r mut ReplyWriter<'b>, name: &str) -> &'r mut ReplyWriter<'b> {
    reply.bulk(name.as_bytes());
    reply
}

fn field_id(reply: &mut ReplyWriter<'_>, name: &str, id: StreamId) {
    field(reply, name);
    id::reply_id(reply, id);
}

/// A number, or null where it is not known.
fn field_known(reply: &mut ReplyWriter<'_>, name: &str, number: Option<i64>) {
    field(reply, name);
    match number {
        Some(number) => reply.int(number),
        None => reply.null(),
    }
}

fn describe(reply: &mut ReplyWriter<'_>, log: &Log) {
    field(reply, "length").count(log.len() as usize);
    field(reply, "radix-tree-keys").count(log.node_count());
    field(reply, "radix-tree-nodes").count(log.radix_nodes() as usize);
    field_id(reply, "last-generated-id", log.last_id);
    field_id(reply, "max-deleted-entry-id", log.max_deleted_id);
    field(reply, "entries-added").int(log.entries_added.cast_signed());
    field_id(reply, "recorded-first-entry-id", log.first_id());
}

fn progress(reply: &mut ReplyWriter<'_>, log: &Log, group: &Group) {
    field_id(reply, "last-delivered-id", group.last_id);
    let read = Some(group.entries_read).filter(|&read| read != UNKNOWN);
    field_known(reply, "entries-read", read);
    field_known(reply, "lag", group.lag(log));
}

fn full_group(reply: &mut ReplyWriter<'_>, log: &Log, name: &[u8], group: &Group, count: usize) {
    let most = if count == 0 { usize::MAX } else { count };
    reply.map(7);
    field(reply, "name").bulk(name);
    progress(reply, log, group);
    let pending = group.pending();
    field(reply, "pel-count").count(pending.len());
    field(reply, "pending").array(pending.len().min(most));
    for pending in pending.iter().take(most) {
        reply.array(4);
        id::reply_id(reply, pending.id());
        reply.bulk(group.consumer_name(pending.consumer()));
        reply.int(pending.time().get() as i64);
        reply.int(pending.count().cast_signed());
    }
    field(reply, "consumers").array(group.consumer_count());
    for consumer in group.consumers() {
        full_consumer(reply, group, consumer, most);
    }
}

fn full_consumer(reply: &mut ReplyWriter<'_>, group: &Group, at: ConsumerAt, most: usize) {
    let consumer = group.consumer(at);
    reply.map(5);
    field(reply, "name").bulk(group.consumer_name(at));
    field(reply, "seen-time").int(consumer.seen.get() as i64);
    field(reply, "active-time").int(consumer.active);
    field(reply, "pel-count").count(consumer.pending_count());
    field(reply, "pending").array(consumer.pending_count().min(most));
    for pending in group.pending_of(at, StreamId::MIN).take(most) {
        reply.array(3);
        id::reply_id(reply, pending.id());
        reply.int(pending.time().get() as i64);
        reply.int(pending.count().cast_signed());
    }
}

/// XINFO GROUPS key
pub(crate) fn xinfo_groups(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.key(args.get(2));
    let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    let reply = &mut ctx.reply;
    reply.array(stream.groups.len());
    for (name, group) in stream.groups.iter() {
        reply.map(6);
        field(reply, "name").bulk(name);
        field(reply, "consumers").count(group.consumer_count());
        field(reply, "pending").count(group.pending().len());
        progress(reply, &stream.log, group);
    }
    Ok(())
}

/// XINFO CONSUMERS key group
pub(crate) fn xinfo_consumers(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.key(args.get(2));
    let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let stream = stream.ok_or(CommandError::NoSuchKey)?;
    let group = stream.groups.get(args.get(3));
    let group = group.ok_or_else(|| value::no_group_of(args.get(2), args.get(3)))?;
    let now = ctx.now.get() as i64;
    let reply = &mut ctx.reply;
    reply.array(group.consumer_count());
    for at in group.consumers() {
        let consumer = group.consumer(at);
        let inactive = match consumer.active {
            -1 => -1,
            active => now - active,
        };
        reply.map(4);
        field(reply, "name").bulk(group.consumer_name(at));
        field(reply, "pending").count(consumer.pending_count());
        field(reply, "idle").int((now - consumer.seen.get() as i64).max(0));
        field(reply, "inactive").int(inactive);
    }
    Ok(())
}
