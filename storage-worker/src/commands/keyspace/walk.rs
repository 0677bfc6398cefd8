//! Walking over keys: SCAN and KEYS.
//!
//! A SCAN cursor names a slot and a hash prefix, so it stays good through splits of tables,
//! restarts and moves; the gateway sends it to the worker that owns the slot.

use crate::commands::prelude::*;
use crate::commands::scan_options::ScanOptions;
use crate::keyspace::SlotRange;
use proto::resp::reply::ReplyWriter;
use proto::{cursor, glob};

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
pub(crate) fn scan(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor::parse(args.get(1)).ok_or(CommandError::InvalidCursor)?;
    let options = ScanOptions::parse_for_keys(args.iter_from(2))?;
    // The cursor stands in front of the keys but is known behind them.
    let mut found = Vec::new();
    let mut elements = ReplyWriter::to_vec(&mut found, ctx.reply.resp3());
    let mut count = 0;
    let next = ctx.keyspace.scan(
        ctx.db,
        cursor,
        options.count,
        ctx.now,
        SlotRange::ALL,
        |key, kind| {
            if options.accept_key(key, kind) {
                elements.bulk(key);
                count += 1;
            }
        },
    );
    ctx.reply.array(2);
    ctx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.reply.array(count);
    ctx.reply.raw(&found);
    Ok(())
}

/// KEYS pattern
pub(crate) fn keys(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let pattern = args.get(1);
    let is_any = pattern == b"*";
    let mark = ctx.reply.begin_array();
    let mut count = 0;
    let mut cursor = 0;
    loop {
        let reply = &mut ctx.reply;
        cursor = ctx.keyspace.scan(
            ctx.db,
            cursor,
            KEYS_STEP,
            ctx.now,
            SlotRange::ALL,
            |key, _| {
                if is_any || glob::matches(pattern, key, false) {
                    reply.bulk(key);
                    count += 1;
                }
            },
        );
        if cursor == 0 {
            break;
        }
    }
    ctx.reply.set_array_len(mark, count);
    Ok(())
}

/// Keys per step of KEYS: enough that the start of a step does not count.
const KEYS_STEP: usize = 4096;
