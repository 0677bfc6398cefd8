//! Reading what is new: XREAD, and XREADGROUP, which remembers what it gave to whom.
//!
//! Both wait, if they are told to and none of their streams has anything. `$` means the last id of
//! the moment when the command came, so it is replaced by that id for later runs; `>` means what the
//! group was not given yet, whenever that is.

use super::{id, value};
use crate::blocking::TimeoutReply;
use crate::collections::stream::{Group, Log, Stream, StreamId};
use crate::commands::prelude::*;
use crate::keyspace::Key;
use proto::time::UnixMillis;

/// What stands in front of the streams.
#[derive(Debug)]
struct Request<'a> {
    /// Until when to wait; the inner `None` is for ever.
    wait: Option<Option<UnixMillis>>,
    /// Entries per stream at most; 0 for all.
    count: usize,
    /// Names of group and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    has_no_ack: bool,
    /// Argument with the first key.
    first: usize,
    /// Number of streams.
    streams: usize,
}

impl<'a> Request<'a> {
    fn read(ctx: &Context<'_>, args: Args<'a>, is_group: bool) -> Result<Self, CommandError> {
        let mut request = Self {
            wait: None,
            count: 0,
            group: None,
            has_no_ack: false,
            first: 0,
            streams: 0,
        };
        let mut at = 1;
        while request.first == 0 {
            // Without STREAMS there is nothing to read.
            if at >= args.len() {
                return Err(CommandError::Syntax);
            }
            let word = args.get(at);
            let more = args.len() - 1 - at;
            if word.eq_ignore_ascii_case(b"BLOCK") && more > 0 {
                request.wait = Some(ctx.deadline_in_millis(args.get(at + 1))?);
                at += 2;
            } else if word.eq_ignore_ascii_case(b"COUNT") && more > 0 {
                request.count = id::count(args.get(at + 1))?;
                at += 2;
            } else if word.eq_ignore_ascii_case(b"STREAMS") && more > 0 {
                if !more.is_multiple_of(2) {
                    return Err(match is_group {
                        true => CommandError::XreadgroupUnbalanced,
                        false => CommandError::XreadUnbalanced,
                    });
                }
                (request.first, request.streams) = (at + 1, more / 2);
            } else if word.eq_ignore_ascii_case(b"GROUP") && more > 1 {
                if !is_group {
                    return Err(CommandError::XreadGroup);
                }
                request.group = Some((args.get(at + 1), args.get(at + 2)));
                at += 3;
            } else if word.eq_ignore_ascii_case(b"NOACK") {
                if !is_group {
                    return Err(CommandError::XreadNoAck);
                }
                request.has_no_ack = true;
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if is_group && request.group.is_none() {
            return Err(CommandError::XreadgroupNoGroup);
        }
        Ok(request)
    }
}

/// The id behind which a client wants to read; the greatest one stands for `>`.
fn read_id(text: &[u8], log: Option<&Log>, is_group: bool) -> Result<StreamId, CommandError> {
    match (text, is_group) {
        (b"$", true) => Err(CommandError::XreadgroupEnd),
        (b"+", true) => Err(CommandError::XreadgroupLast),
        (b">", false) => Err(CommandError::XreadNew),
        (b">", true) => Ok(StreamId::MAX),
        (b"$", false) => Ok(log.map_or(StreamId::MIN, |log| log.last_id)),
        // The last entry itself is to be read.
        (b"+", false) => {
            let last = log.and_then(Log::last_live_id);
            Ok(last.and_then(StreamId::previous).unwrap_or_default())
        }
        _ => id::exact(text),
    }
}

/// What XREAD or XREADGROUP would say is wrong with the only stream of a request whose options are right.
///
/// # Errors
/// As theirs.
pub(crate) fn check_read(ctx: &mut Context<'_>, args: Args<'_>, is_group: bool) -> CommandResult {
    let request = Request::read(ctx, args, is_group)?;
    let key = ctx.key(args.get(request.first));
    let stream = value::find(ctx.keyspace, &key, ctx.now, Access::Peek)?;
    if let Some((group, _)) = request.group
        && stream.is_none_or(|stream| stream.groups.get(group).is_none())
    {
        return Err(no_group(&key, group));
    }
    read_id(args.get(request.first + 1), None, is_group).map(|_| ())
}

fn no_group(key: &Key<'_>, group: &[u8]) -> CommandError {
    value::no_group(key.bytes, group, " in XREADGROUP with GROUP option")
}

/// XREAD [COUNT count] [BLOCK milliseconds] STREAMS key ... id ...
pub(crate) fn xread(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let request = Request::read(ctx, args, false)?;
    let mut streams = Vec::with_capacity(request.streams);
    for at in request.first..request.first + request.streams {
        let key = ctx.key(args.get(at));
        let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
        let log = stream.map(|stream| &stream.log);
        streams.push((key, read_id(args.get(at + request.streams), log, false)?));
    }
    let mark = ctx.reply.begin_array();
    let mut served = 0;
    for (key, after) in &streams {
        let Some(stream) = value::find(ctx.keyspace, key, ctx.now, Access::Peek)? else {
            continue;
        };
        let has_more = stream.log.last_live_id().is_some_and(|last| last > *after);
        if let Some(start) = after.next().filter(|_| has_more) {
            begin_stream(&mut ctx.reply, key);
            let entries = stream.log.range(start, StreamId::MAX);
            id::reply_entries(&mut ctx.reply, entries, request.count);
            served += 1;
        }
    }
    if served > 0 {
        end_streams(&mut ctx.reply, mark, served);
        return Ok(());
    }
    let keys = streams.iter().map(|(key, _)| key.bytes);
    wait_or_nothing(ctx, &request, keys);
    if let Some(block) = &mut ctx.effects.waking.block {
        let ids = args
            .iter_from(request.first + request.streams)
            .zip(&streams);
        for (at, (text, (_, after))) in ids.enumerate() {
            if text == b"$" {
                let at = request.first + request.streams + at;
                block.replaced.push((at, after.text().as_bytes().to_vec()));
            }
        }
    }
    Ok(())
}

/// The key in front of its entries: in RESP3 they are a pair of a map.
fn begin_stream(reply: &mut ReplyWriter<'_>, key: &Key<'_>) {
    if !reply.resp3() {
        reply.array(2);
    }
    reply.bulk(key.bytes);
}

fn end_streams(reply: &mut ReplyWriter<'_>, mark: proto::resp::reply::LengthMark, count: usize) {
    if reply.resp3() {
        reply.set_map_len(mark, count);
    } else {
        reply.set_array_len(mark, count);
    }
}

/// Nothing was found.
fn wait_or_nothing<'k>(
    ctx: &mut Context<'_>,
    request: &Request<'_>,
    keys: impl Iterator<Item = &'k [u8]>,
) {
    match request.wait {
        None => ctx.reply.null_array(),
        Some(deadline) => {
            let block = ctx.block(ValueKind::Stream, keys, deadline, TimeoutReply::NullArray);
            // Without its stream or group it answers an error.
            block.wakes_without_key = request.group.is_some();
        }
    }
}

/// XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key ... id ...
pub(crate) fn xreadgroup(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let request = Request::read(ctx, args, true)?;
    let (group_name, consumer_name) = request.group.unwrap_or_default();
    let mut streams = Vec::with_capacity(request.streams);
    for at in request.first..request.first + request.streams {
        let key = ctx.key(args.get(at));
        let stream = value::find(ctx.keyspace, &key, ctx.now, Access::Read)?;
        let group = stream.and_then(|stream| stream.groups.get(group_name));
        if group.is_none() {
            return Err(no_group(&key, group_name));
        }
        streams.push((key, read_id(args.get(at + request.streams), None, true)?));
    }
    let mark = ctx.reply.begin_array();
    let mut served = 0;
    let mut changes = 0;
    for (key, after) in &streams {
        let Some(stream) = value::find_mut(ctx.keyspace, key, ctx.now)? else {
            continue;
        };
        let Stream { log, groups } = stream;
        let Some(group) = groups.get_mut(group_name) else {
            continue;
        };
        let mut reader = Reader {
            log,
            group,
            consumer: consumer_name,
            now: ctx.now,
            count: request.count,
            has_no_ack: request.has_no_ack,
            changes: 0,
        };
        served += usize::from(reader.serve(&mut ctx.reply, key, *after));
        changes += reader.changes;
    }
    ctx.changed(changes);
    if served > 0 {
        end_streams(&mut ctx.reply, mark, served);
    } else {
        let keys = streams.iter().map(|(key, _)| key.bytes);
        wait_or_nothing(ctx, &request, keys);
    }
    Ok(())
}

/// Reads one stream for a consumer of a group.
struct Reader<'a> {
    log: &'a Log,
    group: &'a mut Group,
    consumer: &'a [u8],
    now: UnixMillis,
    count: usize,
    has_no_ack: bool,
    changes: u64,
}

impl Reader<'_> {
    /// Replies with what there is, if there is any; what is pending counts, even if it is nothing.
    fn serve(&mut self, reply: &mut ReplyWriter<'_>, key: &Key<'_>, after: StreamId) -> bool {
        let consumer = self.group.find_consumer(self.consumer).unwrap_or_else(|| {
            self.changes += 1;
            self.group.create_consumer(self.consumer, self.now)
        });
        self.group.consumer_mut(consumer).seen = self.now;
        // The greatest id, written out, means the same as `>`.
        let Some(start) = after.next() else {
            let last = self.log.last_live_id();
            if last.is_none_or(|last| last <= self.group.last_id) {
                return false;
            }
            begin_stream(reply, key);
            self.give(reply, consumer);
            return true;
        };
        begin_stream(reply, key);
        self.repeat(reply, consumer, start);
        true
    }

    /// Gives the consumer entries that the group was not given yet.
    fn give(
        &mut self,
        reply: &mut ReplyWriter<'_>,
        consumer: crate::collections::stream::ConsumerAt,
    ) {
        let start = self.group.last_id.next().unwrap_or(StreamId::MAX);
        let mark = reply.begin_array();
        let mut len = 0;
        for entry in self.log.range(start, StreamId::MAX) {
            self.group.advance(self.log, entry.id);
            id::reply_entry(reply, &entry);
            if !self.has_no_ack {
                self.group.deliver(entry.id, consumer, self.now);
                self.group.consumer_mut(consumer).active = self.now.get() as i64;
            }
            len += 1;
            if len == self.count {
                break;
            }
        }
        self.changes += 1;
        reply.set_array_len(mark, len);
    }

    /// Gives the consumer once more what is pending for it.
    fn repeat(
        &mut self,
        reply: &mut ReplyWriter<'_>,
        consumer: crate::collections::stream::ConsumerAt,
        start: StreamId,
    ) {
        let most = if self.count == 0 {
            usize::MAX
        } else {
            self.count
        };
        let pending = self.group.pending_of(consumer, start).take(most);
        let ids: Vec<StreamId> = pending.map(|pending| pending.id()).collect();
        reply.array(ids.len());
        for id in ids {
            if let Some(entry) = self.log.get(id) {
                id::reply_entry(reply, &entry);
                self.group.deliver_again(id, self.now);
            } else {
                // It was deleted, but nobody has said that it is done.
                reply.array(2);
                id::reply_id(reply, id);
                reply.null_array();
            }
        }
    }
}
