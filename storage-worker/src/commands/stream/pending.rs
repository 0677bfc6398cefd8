//! What was given to consumers and is not acknowledged: XPENDING.

use super::{id, value};
use crate::collections::stream::{Group, Pending, StreamId};
use crate::commands::prelude::*;
use proto::time::UnixMillis;

/// Which pending entries are to be listed.
struct Filter<'a> {
    min_idle: i64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    fn read(args: Args<'a>) -> Result<Self, CommandError> {
        let mut at = 3;
        let mut min_idle = 0;
        if args.get(3).eq_ignore_ascii_case(b"IDLE") {
            min_idle = integer(args.get(4))?;
            if args.len() < 8 {
                return Err(CommandError::Syntax);
            }
            at = 5;
        }
        let count = id::count(args.get(at + 2))?;
        Ok(Self {
            min_idle,
            start: id::start(args.get(at))?,
            end: id::end(args.get(at + 1))?,
            count,
            consumer: (at + 3 < args.len()).then(|| args.get(at + 3)),
        })
    }
}

/// XPENDING key group [[IDLE milliseconds] start end count [consumer]]
pub(crate) fn xpending(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if args.len() != 3 && !(6..=9).contains(&args.len()) {
        return Err(CommandError::Syntax);
    }
    let filter = match args.len() {
        3 => None,
        _ => Some(Filter::read(args)?),
    };
    let key = ctx.first_key(args);
    let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let group = stream.and_then(|stream| stream.groups.get(args.get(2)));
    let group = group.ok_or_else(|| value::no_group(key.bytes, args.get(2), ""))?;
    match filter {
        None => summary(&mut ctx.reply, group),
        Some(filter) => list(&mut ctx.reply, group, &filter, ctx.now),
    }
    Ok(())
}

fn summary(reply: &mut ReplyWriter<'_>, group: &Group) {
    let pending = group.pending();
    reply.array(4);
    reply.count(pending.len());
    let (Some(first), Some(last)) = (pending.first(), pending.last()) else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    id::reply_id(reply, first.id());
    id::reply_id(reply, last.id());
    let mark = reply.begin_array();
    let mut count = 0;
    for consumer in group.consumers() {
        let pending = group.consumer(consumer).pending_count();
        if pending > 0 {
            reply.array(2);
            reply.bulk(group.consumer_name(consumer));
            reply.bulk_int(pending as i64);
            count += 1;
        }
    }
    reply.set_array_len(mark, count);
}

fn list(reply: &mut ReplyWriter<'_>, group: &Group, filter: &Filter<'_>, now: UnixMillis) {
    let Some(name) = filter.consumer else {
        let pending = group.pending().iter_from(filter.start);
        list_some(reply, group, filter, now, pending);
        return;
    };
    match group.find_consumer(name) {
        None => reply.array(0),
        Some(consumer) => {
            let pending = group.pending_of(consumer, filter.start);
            list_some(reply, group, filter, now, pending);
        }
    }
}

fn list_some<'p>(
    reply: &mut ReplyWriter<'_>,
    group: &Group,
    filter: &Filter<'_>,
    now: UnixMillis,
    pending: impl Iterator<Item = &'p Pending>,
) {
    let idle = |pending: &Pending| now.get() as i64 - pending.time().get() as i64;
    let pending = pending
        .take_while(|pending| pending.id() <= filter.end)
        .filter(|pending| filter.min_idle == 0 || idle(pending) >= filter.min_idle);
    let mark = reply.begin_array();
    let mut count = 0;
    for pending in pending.take(filter.count) {
        reply.array(4);
        id::reply_id(reply, pending.id());
        reply.bulk(group.consumer_name(pending.consumer()));
        reply.int(idle(pending).max(0));
        reply.int(pending.count().cast_signed());
        count += 1;
    }
    reply.set_array_len(mark, count);
}
