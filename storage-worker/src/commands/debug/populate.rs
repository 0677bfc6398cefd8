//! DEBUG POPULATE: many strings at once.

use crate::commands::prelude::*;
use proto::slot::slot_of;

/// A key's text is cut off here, as in the reference.
const KEY_BYTES_MAX: usize = 127;

/// _POPULATE count prefix size first last [first last ...]
///
/// Keys `prefix:0` and so on that do not exist yet get `value:0` and so on, cut or filled up with zero bytes
/// to `size` unless that is 0. Only those whose slot lies in one of the ranges are made.
pub(crate) fn populate(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let number =
        |position| integer(args.get(position)).map(|number| u64::try_from(number).unwrap_or(0));
    let count = number(1)?;
    let size = usize::try_from(number(3)?).unwrap_or(0);
    ctx.checked_string_len(size, 0)?;
    let mut ranges = Vec::new();
    for position in (4..args.len().saturating_sub(1)).step_by(2) {
        ranges.push(number(position)?..=number(position + 1)?);
    }
    let mut name = args.get(2).to_vec();
    name.truncate(KEY_BYTES_MAX);
    name.push(b':');
    let prefix_len = name.len();
    let mut value = Vec::new();
    let mut digits = itoa::Buffer::new();
    for index in 0..count {
        let digits = digits.format(index).as_bytes();
        name.truncate(prefix_len);
        name.extend_from_slice(digits);
        name.truncate(KEY_BYTES_MAX);
        let slot = u64::from(slot_of(&name));
        if !ranges.iter().any(|range| range.contains(&slot)) {
            continue;
        }
        let key = ctx.key(&name);
        if ctx.keyspace.find(&key, ctx.now, Access::Write).is_some() {
            continue;
        }
        value.clear();
        value.extend_from_slice(b"value:");
        value.extend_from_slice(digits);
        if size > 0 {
            value.resize(size, 0);
        }
        ctx.keyspace
            .set_string(&key, StringValue::Plain(&value), Expiry::Clear);
    }
    ctx.reply.ok();
    Ok(())
}
