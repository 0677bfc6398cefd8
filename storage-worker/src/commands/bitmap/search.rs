//! Counting and finding bits: BITCOUNT and BITPOS.
//!
//! Ranges are given in bytes or, with `BIT`, in bits; both ends are included and negative ones
//! count from the end.

use crate::collections::bit_ops::{count_ones, count_ones_in_bits, find_bit};
use crate::commands::prelude::*;
use std::ops::Range;

/// A range as a client gave it.
struct ClientRange {
    start: i64,
    /// None: to the end of the string.
    end: Option<i64>,
    is_in_bits: bool,
}

impl ClientRange {
    /// The bits meant in a string of `len` bytes; empty if start lies behind end.
    fn resolve(&self, len: usize) -> Range<u64> {
        let total = if self.is_in_bits {
            len as i64 * 8
        } else {
            len as i64
        };
        let from_end = |position: i64| {
            if position < 0 {
                total + position
            } else {
                position
            }
        };
        let start = from_end(self.start).max(0);
        let end = self
            .end
            .map_or(total - 1, |end| from_end(end).max(0).min(total - 1));
        if start > end {
            return 0..0;
        }
        let unit = if self.is_in_bits { 1 } else { 8 };
        start as u64 * unit..(end as u64 + 1) * unit
    }
}

fn unit(word: &[u8]) -> Result<bool, CommandError> {
    if word.eq_ignore_ascii_case(b"BIT") {
        Ok(true)
    } else if word.eq_ignore_ascii_case(b"BYTE") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

/// BITCOUNT key [start end [BYTE | BIT]]
pub(crate) fn bitcount(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = match args.len() {
        2 => None,
        4 | 5 => {
            let (start, end) = (integer(args.get(2))?, integer(args.get(3))?);
            let is_in_bits = args.len() == 5 && unit(args.get(4))?;
            Some(ClientRange {
                start,
                end: Some(end),
                is_in_bits,
            })
        }
        _ => return Err(CommandError::Syntax),
    };
    let key = ctx.first_key(args);
    let count = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        None => 0,
        Some(found) => with_bytes(string_of(&found)?, |bytes| match &range {
            None => count_ones(bytes),
            // Both negative and crossed: empty, even where clamping would make them meet.
            Some(ClientRange {
                start,
                end: Some(end),
                ..
            }) if *start < 0 && *end < 0 && start > end => 0,
            Some(range) => count_ones_in_bits(bytes, range.resolve(bytes.len())),
        }),
    };
    ctx.reply.int(count as i64);
    Ok(())
}

/// BITPOS key bit [start [end [BYTE | BIT]]]
///
/// Without an end, a string is followed by zeros for ever, so a clear bit is always found.
pub(crate) fn bitpos(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let bit = match integer(args.get(2))? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::BitArgument),
    };
    let range = match args.len() {
        3 => ClientRange {
            start: 0,
            end: None,
            is_in_bits: false,
        },
        4..=6 => {
            let start = integer(args.get(3))?;
            let is_in_bits = args.len() == 6 && unit(args.get(5))?;
            let end = if args.len() > 4 {
                Some(integer(args.get(4))?)
            } else {
                None
            };
            ClientRange {
                start,
                end,
                is_in_bits,
            }
        }
        _ => return Err(CommandError::Syntax),
    };
    let key = ctx.first_key(args);
    let found = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        None => (!bit).then_some(0),
        Some(found) => with_bytes(string_of(&found)?, |bytes| {
            let bits = range.resolve(bytes.len());
            let end = bits.end;
            let is_open = !bit && range.end.is_none() && !bits.is_empty();
            find_bit(bytes, bit, bits).or(is_open.then_some(end))
        }),
    };
    ctx.reply.int(found.map_or(-1, |position| position as i64));
    Ok(())
}
