//! Adding entries, deleting them, and what is counted about a stream: XADD, XDEL, XLEN, XSETID.

use super::id::{self, Given};
use super::trim::Options;
use super::value;
use crate::collections::listpack;
use crate::collections::stream::{Log, StreamId};
use crate::commands::prelude::*;
use proto::time::UnixMillis;

/// Which id a new entry gets.
fn next_id(
    log: Option<&Log>,
    given: Option<Given>,
    now: UnixMillis,
) -> Result<StreamId, CommandError> {
    let last = log.map_or(StreamId::MIN, |log| log.last_id);
    let Some(following) = last.next() else {
        return Err(CommandError::StreamIdsExhausted);
    };
    let id = match given {
        None if now.get() > last.ms => StreamId {
            ms: now.get(),
            seq: 0,
        },
        None => following,
        // The next one may belong to the next millisecond: then there is none for this.
        Some(Given::NextOf(ms)) if ms == last.ms => following,
        Some(Given::NextOf(ms)) => StreamId { ms, seq: 0 },
        Some(Given::Id(id)) => id,
    };
    let is_in_place = match given {
        Some(Given::NextOf(ms)) => id.ms == ms,
        _ => true,
    };
    if is_in_place && id > last {
        Ok(id)
    } else {
        Err(CommandError::StreamIdNotGreater)
    }
}

/// XADD key [NOMKSTREAM] [MAXLEN | MINID [= | ~] threshold [LIMIT count]] * | id field value ...
pub(crate) fn xadd(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut options = Options::default();
    let at = options.read(args, true)?;
    let given = match args.get(at) {
        _ if at >= args.len() => None,
        b"*" => None,
        text => Some(id::new(text)?),
    };
    let limits = value::node_limits(ctx.settings);
    let trimming = options.finish(true, limits)?;
    let pair_count = args.len().saturating_sub(at + 1);
    if pair_count < 2 || !pair_count.is_multiple_of(2) {
        return Err(CommandError::Arity { name: "xadd" });
    }
    if given == Some(Given::Id(StreamId::MIN)) {
        return Err(CommandError::StreamIdZero);
    }
    let key = ctx.first_key(args);
    let found = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    if found.is_none() && options.needs_stream {
        ctx.reply.null();
        return Ok(());
    }
    let id = next_id(found.as_deref().map(|stream| &stream.log), given, ctx.now)?;
    let size: usize = args.iter_from(at + 1).map(<[u8]>::len).sum();
    if size > listpack::BYTES_MAX {
        return Err(CommandError::StreamEntryTooLarge);
    }
    let pairs = (at + 1..args.len())
        .step_by(2)
        .map(|at| (args.get(at), args.get(at + 1)));
    let fill = |log: &mut Log| {
        log.append(id, pairs, limits);
        if let Some(trimming) = trimming {
            trimming.apply(log);
        }
    };
    match found {
        Some(stream) => fill(&mut stream.log),
        None => value::create(ctx.keyspace, &key, |stream| fill(&mut stream.log)),
    }
    ctx.changed(1);
    ctx.signal_ready(&key);
    id::reply_id(&mut ctx.reply, id);
    Ok(())
}

/// XDEL key id ...
pub(crate) fn xdel(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let Some(stream) = value::find_mut(ctx.keyspace, &key, ctx.now)? else {
        ctx.reply.int(0);
        return Ok(());
    };
    let deleted = stream.log.delete(&id::all(args, 2)?);
    ctx.changed(deleted);
    ctx.reply.count(deleted as usize);
    Ok(())
}

/// XLEN key
pub(crate) fn xlen(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let stream = value::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let len = stream.map_or(0, |stream| stream.log.len());
    ctx.reply.count(len as usize);
    Ok(())
}

/// XSETID key last-id [ENTRIESADDED count] [MAXDELETEDID id]
pub(crate) fn xsetid(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let last = id::exact(args.get(2))?;
    let (mut added, mut deleted) = (None, StreamId::MIN);
    let mut words = args.iter_from(3);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(CommandError::Syntax)?;
        if word.eq_ignore_ascii_case(b"ENTRIESADDED") {
            let count = u64::try_from(integer(value)?);
            added = Some(count.map_err(|_| CommandError::XsetidEntriesAdded)?);
        } else if word.eq_ignore_ascii_case(b"MAXDELETEDID") {
            deleted = id::exact(value)?;
            if last < deleted {
                return Err(CommandError::XsetidMaxDeleted);
            }
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let key = ctx.first_key(args);
    let stream = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    let log = &mut stream.ok_or(CommandError::NoSuchKey)?.log;
    if last < log.max_deleted_id {
        return Err(CommandError::XsetidDeleted);
    }
    if log.last_live_id().is_some_and(|top| last < top) {
        return Err(CommandError::XsetidTop);
    }
    if added.is_some_and(|added| log.len() > added) {
        return Err(CommandError::XsetidLength);
    }
    log.last_id = last;
    log.entries_added = added.unwrap_or(log.entries_added);
    if deleted != StreamId::MIN {
        log.max_deleted_id = deleted;
    }
    ctx.changed(1);
    ctx.reply.ok();
    Ok(())
}
