//! Taking over what others do not finish: XCLAIM and XAUTOCLAIM.

use super::{id, value};
use crate::collections::stream::{ConsumerAt, Group, Log, Stream, StreamId};
use crate::commands::prelude::*;
use crate::keyspace::{Key, Keyspace};
use proto::time::UnixMillis;

/// XAUTOCLAIM looks at so many pending entries for each that it may claim.
const ATTEMPTS: i64 = 10;
/// Entries that it claims if nothing is said.
const COUNT_DEFAULT: i64 = 100;
/// Largest COUNT that is a number at all.
const COUNT_MAX: i64 = i64::MAX / 16;
/// Largest COUNT whose ids have room in an address space; the reference makes room for all of them.
const COUNT_HELD_MAX: i64 = 1 << 43;

/// Options of XCLAIM.
#[derive(Debug, Default)]
struct Options {
    /// IDLE or TIME: when the entries count as delivered.
    time: Option<i64>,
    retry_count: Option<u64>,
    is_forced: bool,
    just_ids: bool,
    last_id: StreamId,
}

impl Options {
    fn read(args: Args<'_>, first: usize, now: UnixMillis) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = first;
        while at < args.len() {
            let word = args.get(at);
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            let value = args.get(at + 1);
            let has_value = at + 1 < args.len();
            at += 2;
            if is(b"FORCE") {
                options.is_forced = true;
                at -= 1;
            } else if is(b"JUSTID") {
                options.just_ids = true;
                at -= 1;
            } else if is(b"IDLE") && has_value {
                let idle = parse_i64(value).ok_or(CommandError::XclaimIdle)?;
                options.time = Some((now.get() as i64).wrapping_sub(idle));
            } else if is(b"TIME") && has_value {
                options.time = Some(parse_i64(value).ok_or(CommandError::XclaimTime)?);
            } else if is(b"RETRYCOUNT") && has_value {
                let count = parse_i64(value).ok_or(CommandError::XclaimRetryCount)?;
                options.retry_count = u64::try_from(count).ok();
            } else if is(b"LASTID") && has_value {
                options.last_id = id::exact(value)?;
            } else {
                return Err(value::unknown_option(word));
            }
        }
        Ok(options)
    }

    /// When the entries count as delivered: now, if what was asked for makes no sense.
    fn time(&self, now: UnixMillis) -> UnixMillis {
        let time = self.time.and_then(|time| u64::try_from(time).ok());
        time.map(UnixMillis)
            .filter(|&time| time <= now)
            .unwrap_or(now)
    }
}

/// The consumer that claims, made if need be; and whether it was.
fn claimant(group: &mut Group, name: &[u8], now: UnixMillis) -> (ConsumerAt, bool) {
    let found = group.find_consumer(name);
    let consumer = found.unwrap_or_else(|| group.create_consumer(name, now));
    group.consumer_mut(consumer).seen = now;
    (consumer, found.is_none())
}

/// Whether an entry has been idle for long enough.
fn is_idle(time: UnixMillis, now: UnixMillis, min_idle: i64) -> bool {
    min_idle == 0 || now.get() as i64 - time.get() as i64 >= min_idle
}

/// The entries and a group of the stream at a key.
///
/// # Errors
/// `WrongType`, or that there is no such key or group.
fn log_and_group<'k>(
    keyspace: &'k mut Keyspace,
    key: &Key<'_>,
    name: &[u8],
    now: UnixMillis,
) -> Result<(&'k mut Log, &'k mut Group), CommandError> {
    let no_group = || value::no_group(key.bytes, name, "");
    let Some(Stream { log, groups }) = value::find_mut(keyspace, key, now)? else {
        return Err(no_group());
    };
    let group = groups.get_mut(name).ok_or_else(no_group)?;
    Ok((log, group))
}

/// XCLAIM key group consumer min-idle-time id ... [IDLE ms] [TIME ms] [RETRYCOUNT n] [FORCE] [JUSTID]
/// [LASTID id]
pub(crate) fn xclaim(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let now = ctx.now;
    let (log, group) = log_and_group(ctx.keyspace, &key, args.get(2), now)?;
    let min_idle = parse_i64(args.get(4))
        .ok_or(CommandError::XclaimMinIdle)?
        .max(0);
    let ids: Vec<StreamId> = args
        .iter_from(5)
        .map_while(|text| id::exact(text).ok())
        .collect();
    let options = Options::read(args, 5 + ids.len(), now)?;
    let mut changes = 0;
    let mut is_last_id_news = options.last_id > group.last_id;
    group.last_id = group.last_id.max(options.last_id);
    let (consumer, is_new) = claimant(group, args.get(3), now);
    changes += u64::from(is_new);
    let time = options.time(now);
    let count = |before: u64| match options.retry_count {
        Some(count) => count,
        None => before.wrapping_add(u64::from(!options.just_ids)),
    };
    let mark = ctx.reply.begin_array();
    let mut claimed = 0;
    for id in ids {
        let pending = group.pending().get(id).copied();
        let Some(entry) = log.get(id) else {
            // It was deleted: then it is not pending any more, either.
            if group.forget(id) {
                changes += 1;
                is_last_id_news = false;
            }
            continue;
        };
        let may_claim = match pending {
            Some(pending) => is_idle(pending.time(), now, min_idle),
            None => options.is_forced,
        };
        if !may_claim {
            continue;
        }
        group.give(id, consumer, time, count);
        group.consumer_mut(consumer).active = now.get() as i64;
        if options.just_ids {
            id::reply_id(&mut ctx.reply, id);
        } else {
            id::reply_entry(&mut ctx.reply, &entry);
        }
        claimed += 1;
        changes += 1;
        is_last_id_news = false;
    }
    ctx.reply.set_array_len(mark, claimed);
    ctx.changed(changes + u64::from(is_last_id_news));
    Ok(())
}

/// XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]
pub(crate) fn xautoclaim(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let min_idle = parse_i64(args.get(4))
        .ok_or(CommandError::XautoclaimMinIdle)?
        .max(0);
    let mut next = Some(id::start(args.get(5))?);
    let mut left = COUNT_DEFAULT;
    let mut just_ids = false;
    let mut words = args.iter_from(6);
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case(b"JUSTID") {
            just_ids = true;
            continue;
        }
        let value = words.next();
        let value = value.filter(|_| word.eq_ignore_ascii_case(b"COUNT"));
        let count = parse_i64(value.ok_or(CommandError::Syntax)?);
        let count = count.filter(|count| (1..=COUNT_MAX).contains(count));
        left = count.ok_or(CommandError::XautoclaimCount)?;
    }
    let key = ctx.first_key(args);
    let now = ctx.now;
    let (log, group) = log_and_group(ctx.keyspace, &key, args.get(2), now)?;
    if left > COUNT_HELD_MAX {
        return Err(CommandError::XautoclaimMemory);
    }
    let (consumer, is_new) = claimant(group, args.get(3), now);
    let mut changes = u64::from(is_new);
    let mut attempts = left.saturating_mul(ATTEMPTS);
    let mut gone = Vec::new();
    // The cursor stands in front of what is claimed and is only known behind it.
    let mut body = Vec::new();
    let mut reply = ReplyWriter::to_vec(&mut body, ctx.reply.resp3());
    let mut claimed = 0;
    while attempts > 0 && left > 0 {
        attempts -= 1;
        let pending = next
            .and_then(|next| group.pending().at_or_after(next))
            .copied();
        let Some(pending) = pending else {
            next = None;
            break;
        };
        let id = pending.id();
        next = id.next();
        let Some(entry) = log.get(id) else {
            group.forget(id);
            gone.push(id);
            changes += 1;
            left -= 1;
            continue;
        };
        if !is_idle(pending.time(), now, min_idle) {
            continue;
        }
        group.give(id, consumer, now, |count| {
            count.wrapping_add(u64::from(!just_ids))
        });
        group.consumer_mut(consumer).active = now.get() as i64;
        if just_ids {
            id::reply_id(&mut reply, id);
        } else {
            id::reply_entry(&mut reply, &entry);
        }
        claimed += 1;
        changes += 1;
        left -= 1;
    }
    let cursor = next.and_then(|next| group.pending().at_or_after(next));
    let cursor = cursor.map_or(StreamId::MIN, |pending| pending.id());
    ctx.reply.array(3);
    id::reply_id(&mut ctx.reply, cursor);
    ctx.reply.array(claimed);
    ctx.reply.raw(&body);
    ctx.reply.array(gone.len());
    for id in gone {
        id::reply_id(&mut ctx.reply, id);
    }
    ctx.changed(changes);
    Ok(())
}
