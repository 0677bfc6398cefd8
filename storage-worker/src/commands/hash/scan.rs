//! Walking over fields in steps: HSCAN.
//!
//! A packed hash comes at once. In a table the cursor names a hash prefix (see `keyspace::dictionary`),
//! so a field that is there all the time is met, whatever else comes and goes.
//!
//! Oddity that is kept: for a missing key the options are not looked at.

use super::value::{HashRef, is_over};
use crate::commands::prelude::*;
use crate::commands::scan_options::ScanOptions;
use crate::keyspace::dictionary::Position;
use proto::cursor;

/// HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]
pub(crate) fn hscan(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor::parse(args.get(2)).ok_or(CommandError::InvalidCursor)?;
    let key = ctx.first_key(args);
    let Some(hash) = HashRef::find(ctx.keyspace, &key, ctx.now, ctx.access)? else {
        ctx.reply.array(2);
        ctx.reply.bulk(b"0");
        ctx.reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse_for_hash(args.iter_from(3))?;
    // The cursor stands in front of the fields but is known behind them.
    let mut found = Vec::new();
    let mut parts = ReplyWriter::to_vec(&mut found, ctx.reply.resp3());
    let mut count = 0;
    let mut visit = |name: StringRef<'_>, value: StringRef<'_>| {
        if !with_bytes(name, |name| options.accept(name)) {
            return;
        }
        reply_string(&mut parts, name);
        count += 1;
        if options.with_values {
            reply_string(&mut parts, value);
            count += 1;
        }
    };
    let next = match hash {
        HashRef::Packed(_) => {
            hash.for_each(ctx.now, visit);
            None
        }
        HashRef::Table(table) => {
            let from = Position::unpack(cursor::rest(cursor));
            table.scan(from, options.count, |field| {
                if !is_over(field.expiry, ctx.now) {
                    visit(field.name.into(), field.value.into());
                }
            })
        }
    };
    ctx.reply.array(2);
    let next = next.map_or(0, Position::pack);
    ctx.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.reply.array(count);
    ctx.reply.raw(&found);
    Ok(())
}
