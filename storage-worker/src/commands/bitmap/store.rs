//! BITOP: joins strings bit by bit and stores the result.

use crate::collections::bit_ops::{BitOp, combine};
use crate::commands::prelude::*;

fn operation(word: &[u8], source_count: usize) -> Result<BitOp, CommandError> {
    let op = [
        (b"AND".as_slice(), BitOp::And),
        (b"OR", BitOp::Or),
        (b"XOR", BitOp::Xor),
        (b"NOT", BitOp::Not),
    ]
    .into_iter()
    .find_map(|(name, op)| word.eq_ignore_ascii_case(name).then_some(op))
    .ok_or(CommandError::Syntax)?;
    if op == BitOp::Not && source_count != 1 {
        return Err(CommandError::BitopNot);
    }
    Ok(op)
}

/// BITOP AND | OR | XOR | NOT destination key [key ...]
pub(crate) fn bitop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let op = operation(args.get(1), args.len() - 3)?;
    // Copies: the keyspace hands out one value at a time, and the destination may be a source.
    let mut sources = Vec::with_capacity(args.len() - 3);
    for word in args.iter_from(3) {
        let key = ctx.key(word);
        sources.push(match ctx.keyspace.find(&key, ctx.now, ctx.access) {
            Some(found) => with_bytes(string_of(&found)?, <[u8]>::to_vec),
            None => Vec::new(),
        });
    }
    let mut result = Vec::new();
    combine(op, sources.iter().map(Vec::as_slice), &mut result);
    store(ctx, args.get(2), &result);
    Ok(())
}

/// Stores the result as a raw string; an empty one deletes the destination.
fn store(ctx: &mut Context<'_>, destination: &[u8], result: &[u8]) {
    let key = ctx.key(destination);
    if result.is_empty() {
        if ctx.keyspace.find(&key, ctx.now, Access::Write).is_some() {
            ctx.keyspace.unlink(&key);
            ctx.changed(1);
        }
    } else {
        ctx.keyspace
            .set_string(&key, StringValue::Raw(result), Expiry::Clear);
        ctx.changed(1);
    }
    ctx.reply.int(result.len() as i64);
}
