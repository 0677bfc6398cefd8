//! Groups of consumers: XGROUP and its subcommands, and XACK.

use super::{id, value};
use crate::collections::stream::{Group, Log, StreamId, UNKNOWN};
use crate::commands::prelude::*;
use crate::keyspace::Key;

/// Options of CREATE and SETID.
#[derive(Debug)]
struct Options {
    /// MKSTREAM.
    may_create: bool,
    entries_read: i64,
    /// There are as many of them as the reference accepts.
    fit: bool,
}

impl Options {
    fn read(args: Args<'_>, is_create: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            may_create: false,
            entries_read: UNKNOWN,
            fit: match is_create {
                true => args.len() <= 8,
                false => matches!(args.len(), 5 | 7),
            },
        };
        let mut words = args.iter_from(5);
        while let Some(word) = words.next() {
            if is_create && word.eq_ignore_ascii_case(b"MKSTREAM") {
                options.may_create = true;
                continue;
            }
            let value = words.next();
            let value = value.filter(|_| word.eq_ignore_ascii_case(b"ENTRIESREAD"));
            options.entries_read = integer(value.ok_or_else(|| syntax(args))?)?;
            if options.entries_read < UNKNOWN {
                return Err(CommandError::XgroupEntriesRead);
            }
        }
        Ok(options)
    }
}

fn syntax(args: Args<'_>) -> CommandError {
    CommandError::SubcommandSyntax {
        name: "xgroup",
        subcommand: args.get(1).into(),
    }
}

/// An id, or `$` for the last one.
fn id_or_last(
    text: &[u8],
    log: Option<&Log>,
    read: impl FnOnce(&[u8]) -> Result<StreamId, CommandError>,
) -> Result<StreamId, CommandError> {
    if text == b"$" {
        Ok(log.map_or(StreamId::MIN, |log| log.last_id))
    } else {
        read(text)
    }
}

fn key_of<'k>(ctx: &Context<'_>, args: Args<'k>) -> Key<'k> {
    ctx.key(args.get(2))
}

/// Looks the group in argument 3 up; it must exist.
fn find_group<'k>(
    ctx: &'k mut Context<'_>,
    args: Args<'_>,
) -> Result<(&'k Log, &'k mut Group), CommandError> {
    let key = key_of(ctx, args);
    let stream = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    let stream = stream.ok_or(CommandError::XgroupNoStream)?;
    let group = stream.groups.get_mut(args.get(3));
    let group = group.ok_or_else(|| value::no_group_of(args.get(2), args.get(3)))?;
    Ok((&stream.log, group))
}

/// XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD count]
pub(crate) fn xgroup_create(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::read(args, true)?;
    let key = key_of(ctx, args);
    let found = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    if found.is_none() && !options.may_create {
        return Err(CommandError::XgroupNoStream);
    }
    if !options.fit {
        return Err(syntax(args));
    }
    let log = found.as_deref().map(|stream| &stream.log);
    let last_id = id_or_last(args.get(4), log, id::exact)?;
    let name = args.get(3);
    let group = || Group::new(last_id, options.entries_read);
    match found {
        Some(stream) => {
            if stream.groups.get(name).is_some() {
                return Err(CommandError::XgroupBusy);
            }
            stream.groups.create(name, group());
        }
        None => {
            value::create(ctx.keyspace, &key, |stream| {
                stream.groups.create(name, group());
            });
            ctx.signal_ready(&key);
        }
    }
    ctx.changed(1);
    ctx.reply.ok();
    Ok(())
}

/// XGROUP SETID key group id | $ [ENTRIESREAD count]
pub(crate) fn xgroup_setid(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::read(args, false)?;
    let (log, group) = find_group(ctx, args)?;
    if !options.fit {
        return Err(syntax(args));
    }
    group.last_id = id_or_last(args.get(4), Some(log), |text| id::bound(text, 0))?;
    group.entries_read = options.entries_read;
    ctx.changed(1);
    ctx.reply.ok();
    Ok(())
}

/// XGROUP DESTROY key group
pub(crate) fn xgroup_destroy(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = key_of(ctx, args);
    let stream = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    let stream = stream.ok_or(CommandError::XgroupNoStream)?;
    let is_gone = stream.groups.remove(args.get(3));
    if is_gone {
        ctx.changed(1);
        // Who waits for entries of the group gets an error.
        ctx.signal_ready(&key);
    }
    ctx.reply.int(i64::from(is_gone));
    Ok(())
}

/// XGROUP CREATECONSUMER key group consumer
pub(crate) fn xgroup_createconsumer(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let now = ctx.now;
    let (_, group) = find_group(ctx, args)?;
    let is_new = group.find_consumer(args.get(4)).is_none();
    if is_new {
        group.create_consumer(args.get(4), now);
    }
    ctx.changed(u64::from(is_new));
    ctx.reply.int(i64::from(is_new));
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer
pub(crate) fn xgroup_delconsumer(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (_, group) = find_group(ctx, args)?;
    let consumer = group.find_consumer(args.get(4));
    let pending = consumer.map(|consumer| group.remove_consumer(consumer));
    ctx.changed(u64::from(pending.is_some()));
    ctx.reply.count(pending.unwrap_or(0));
    Ok(())
}

/// XACK key group id ...
pub(crate) fn xack(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let stream = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    let group = stream.and_then(|stream| stream.groups.get_mut(args.get(2)));
    let Some(group) = group else {
        ctx.reply.int(0);
        return Ok(());
    };
    let ids = id::all(args, 3)?;
    let done = ids.into_iter().filter(|&id| group.forget(id)).count();
    ctx.changed(done as u64);
    ctx.reply.count(done);
    Ok(())
}
