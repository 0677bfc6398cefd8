//! LCS: options and reply of the longest common subsequence.

use crate::collections::subsequence::{Table, length};
use crate::commands::prelude::*;

/// What LCS returns.
struct Options {
    wants_length: bool,
    wants_matches: bool,
    with_match_length: bool,
    match_length_min: usize,
}

impl Options {
    fn parse<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        let mut options = Self {
            wants_length: false,
            wants_matches: false,
            with_match_length: false,
            match_length_min: 0,
        };
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"IDX") {
                options.wants_matches = true;
            } else if word.eq_ignore_ascii_case(b"LEN") {
                options.wants_length = true;
            } else if word.eq_ignore_ascii_case(b"WITHMATCHLEN") {
                options.with_match_length = true;
            } else if word.eq_ignore_ascii_case(b"MINMATCHLEN") {
                let number = integer(words.next().ok_or(CommandError::Syntax)?)?;
                options.match_length_min = usize::try_from(number).unwrap_or(0);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if options.wants_matches && options.wants_length {
            return Err(CommandError::LcsLenAndIdx);
        }
        Ok(options)
    }
}

/// LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]
///
/// The types are checked before the options, as in the reference.
pub(crate) fn lcs(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut values = [Vec::new(), Vec::new()];
    for (position, value) in values.iter_mut().enumerate() {
        let key = ctx.key(args.get(position + 1));
        match ctx.keyspace.find(&key, ctx.now, ctx.access) {
            Some(found) if found.kind() == ValueKind::String => {
                with_bytes(found.string(), |bytes| value.extend_from_slice(bytes));
            }
            Some(_) => return Err(CommandError::LcsStrings),
            None => {}
        }
    }
    let options = Options::parse(args.iter_from(3))?;
    reply_subsequence(ctx, &values[0], &values[1], &options)
}

fn reply_subsequence(
    ctx: &mut Context<'_>,
    a: &[u8],
    b: &[u8],
    options: &Options,
) -> CommandResult {
    if a.len().max(b.len()) >= u32::MAX as usize - 1 {
        return Err(CommandError::LcsTooLong);
    }
    // The bound of the reference, which keeps four bytes per cell: the same pairs are refused here
    // although a cell costs one bit, so that a client sees no difference.
    let cells = (a.len() as u64 + 1).saturating_mul(b.len() as u64 + 1);
    if cells.saturating_mul(4) > ctx.settings.bulk_bytes_max {
        return Err(CommandError::LcsMemory);
    }
    if options.wants_length {
        ctx.reply.int(length(a, b) as i64);
        return Ok(());
    }
    let table = Table::new(a, b);
    if !options.wants_matches {
        ctx.reply.bulk(&table.text());
        return Ok(());
    }
    let mut matches = Vec::new();
    table.matches(|found| {
        if found.length() >= options.match_length_min {
            matches.push(found);
        }
    });
    ctx.reply.map(2);
    ctx.reply.bulk(b"matches");
    ctx.reply.array(matches.len());
    for found in &matches {
        ctx.reply.array(2 + usize::from(options.with_match_length));
        for (first, last) in [found.a, found.b] {
            ctx.reply.array(2);
            ctx.reply.int(first as i64);
            ctx.reply.int(last as i64);
        }
        if options.with_match_length {
            ctx.reply.int(found.length() as i64);
        }
    }
    ctx.reply.bulk(b"len");
    ctx.reply.int(table.length() as i64);
    Ok(())
}
