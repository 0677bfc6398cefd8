//! One bit: SETBIT and GETBIT.

use super::bit_offset;
use crate::commands::prelude::*;

/// SETBIT key offset value
pub(crate) fn setbit(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let offset = bit_offset(args.get(2), None, ctx.settings.bulk_bytes_max)?;
    let bit = match parse_i64(args.get(3)) {
        Some(bit @ (0 | 1)) => bit as u8,
        _ => return Err(CommandError::BitValue),
    };
    let key = ctx.first_key(args);
    let len = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        Some(found) => string_len(string_of(&found)?),
        None => 0,
    };
    let position = (offset / 8) as usize;
    let shift = 7 - offset % 8;
    let mut old = 0;
    let is_longer = position >= len;
    ctx.keyspace
        .string_mut(&key, len.max(position + 1), |bytes| {
            let byte = &mut bytes[position];
            old = *byte >> shift & 1;
            *byte = *byte & !(1 << shift) | bit << shift;
        });
    ctx.changed(u64::from(is_longer || old != bit));
    ctx.reply.int(i64::from(old));
    Ok(())
}

/// GETBIT key offset
pub(crate) fn getbit(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let offset = bit_offset(args.get(2), None, ctx.settings.bulk_bytes_max)?;
    let key = ctx.first_key(args);
    let byte = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => with_bytes(string_of(&found)?, |bytes| {
            bytes.get((offset / 8) as usize).copied().unwrap_or(0)
        }),
        None => 0,
    };
    ctx.reply.int(i64::from(byte >> (7 - offset % 8) & 1));
    Ok(())
}
