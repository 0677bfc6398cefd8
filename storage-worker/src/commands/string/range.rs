//! Parts of strings: length, ranges, overwriting and appending.

use crate::commands::prelude::*;

/// STRLEN key
pub(crate) fn strlen(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let len = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => string_len(string_of(&found)?),
        None => 0,
    };
    ctx.reply.int(len as i64);
    Ok(())
}

/// GETRANGE key start end
pub(crate) fn getrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let start = integer(args.get(2))?;
    let end = integer(args.get(3))?;
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.bulk(b"");
        return Ok(());
    };
    let value = string_of(&found)?;
    let reply = &mut ctx.reply;
    with_bytes(value, |bytes| match clamp_range(start, end, bytes.len()) {
        Some((first, last)) => reply.bulk(&bytes[first..=last]),
        None => reply.bulk(b""),
    });
    Ok(())
}

/// SETRANGE key offset value
pub(crate) fn setrange(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let offset = integer(args.get(2))?;
    let Ok(offset) = usize::try_from(offset) else {
        return Err(CommandError::OffsetOutOfRange);
    };
    let value = args.get(3);
    let key = ctx.first_key(args);
    let len = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => string_len(string_of(&found)?),
        None => 0,
    };
    if value.is_empty() {
        ctx.reply.int(len as i64);
        return Ok(());
    }
    let end = ctx.checked_string_len(offset, value.len())?;
    let new_len = len.max(end);
    ctx.keyspace.string_mut(&key, new_len, |bytes| {
        bytes[offset..end].copy_from_slice(value);
    });
    ctx.changed(1);
    ctx.reply.int(new_len as i64);
    Ok(())
}

/// APPEND key value
pub(crate) fn append(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let value = args.get(2);
    let key = ctx.first_key(args);
    let len = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => {
            let len = string_len(string_of(&found)?);
            ctx.checked_string_len(len, value.len())?;
            ctx.keyspace.append(&key, value)
        }
        None => {
            ctx.keyspace
                .set_string(&key, StringValue::Auto(value), Expiry::Clear);
            value.len()
        }
    };
    ctx.changed(1);
    ctx.reply.int(len as i64);
    Ok(())
}

/// SUBSTR key start end
pub(crate) fn substr(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    getrange(ctx, args)
}
