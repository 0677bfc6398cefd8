//! BITFIELD: several reads and writes of integers of any width in one string.
//!
//! The operations are read twice: once to check all of them and to find how long the string must
//! become, once to run them; so nothing is stored per operation and nothing changes on an error.

use super::bit_offset;
use crate::collections::bit_field::{FieldType, Overflow};
use crate::commands::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    field: FieldType,
    offset: u64,
    action: Action,
    overflow: Overflow,
}

/// Reads operations one by one; `OVERFLOW` changes the mode of those behind it.
struct Operations<'a> {
    args: Args<'a>,
    position: usize,
    overflow: Overflow,
    bulk_bytes_max: u64,
}

impl<'a> Operations<'a> {
    fn new(args: Args<'a>, bulk_bytes_max: u64) -> Self {
        Self {
            args,
            position: 2,
            overflow: Overflow::Wrap,
            bulk_bytes_max,
        }
    }

    fn parse_next(&mut self) -> Result<Option<Operation>, CommandError> {
        while self.position < self.args.len() {
            let word = self.args.get(self.position);
            let remaining = self.args.len() - self.position - 1;
            let is =
                |name: &[u8], needed: usize| word.eq_ignore_ascii_case(name) && remaining >= needed;
            if is(b"OVERFLOW", 1) {
                self.overflow = overflow(self.args.get(self.position + 1))?;
                self.position += 2;
                continue;
            }
            let is_get = is(b"GET", 2);
            let is_set = is(b"SET", 3);
            if !is_get && !is_set && !is(b"INCRBY", 3) {
                return Err(CommandError::Syntax);
            }
            let field = field_type(self.args.get(self.position + 1))?;
            let offset = bit_offset(
                self.args.get(self.position + 2),
                Some(field.bits),
                self.bulk_bytes_max,
            )?;
            let action = if is_get {
                Action::Get
            } else {
                let number = integer(self.args.get(self.position + 3))?;
                if is_set {
                    Action::Set(number)
                } else {
                    Action::Increment(number)
                }
            };
            self.position += if is_get { 3 } else { 4 };
            return Ok(Some(Operation {
                field,
                offset,
                action,
                overflow: self.overflow,
            }));
        }
        Ok(None)
    }
}

fn overflow(word: &[u8]) -> Result<Overflow, CommandError> {
    [
        (b"WRAP".as_slice(), Overflow::Wrap),
        (b"SAT", Overflow::Saturate),
        (b"FAIL", Overflow::Fail),
    ]
    .into_iter()
    .find_map(|(name, overflow)| word.eq_ignore_ascii_case(name).then_some(overflow))
    .ok_or(CommandError::BitfieldOverflow)
}

fn field_type(word: &[u8]) -> Result<FieldType, CommandError> {
    let (is_signed, digits) = match word.split_first() {
        Some((b'i', digits)) => (true, digits),
        Some((b'u', digits)) => (false, digits),
        _ => return Err(CommandError::BitfieldType),
    };
    let bits_max = if is_signed { 64 } else { 63 };
    parse_i64(digits)
        .and_then(|bits| u32::try_from(bits).ok())
        .filter(|bits| (1..=bits_max).contains(bits))
        .map(|bits| FieldType { is_signed, bits })
        .ok_or(CommandError::BitfieldType)
}

/// BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL]
///     SET encoding offset value | INCRBY encoding offset increment ...]
pub(crate) fn bitfield(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, false)
}

/// BITFIELD_RO key [GET encoding offset ...]
pub(crate) fn bitfield_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, true)
}

fn run(ctx: &mut Context<'_>, args: Args<'_>, is_read_only: bool) -> CommandResult {
    let mut operations = Operations::new(args, ctx.settings.bulk_bytes_max);
    let mut count = 0;
    let mut written_bits = 0;
    while let Some(operation) = operations.parse_next()? {
        count += 1;
        if !matches!(operation.action, Action::Get) {
            written_bits = written_bits.max(operation.offset + u64::from(operation.field.bits));
        }
    }
    if written_bits > 0 && is_read_only {
        return Err(CommandError::BitfieldReadOnly);
    }
    let mut operations = Operations::new(args, ctx.settings.bulk_bytes_max);
    let key = ctx.first_key(args);
    let access = if written_bits > 0 {
        Access::Write
    } else {
        ctx.access
    };
    let found = ctx.keyspace.find(&key, ctx.now, access);
    let value = found.as_ref().map(string_of).transpose()?;
    if written_bits == 0 {
        ctx.reply.array(count);
        let value = value.unwrap_or(StringRef::Bytes(b""));
        let reply = &mut ctx.reply;
        return with_bytes(value, |bytes| {
            while let Some(operation) = operations.parse_next()? {
                reply.int(operation.field.read(bytes, operation.offset));
            }
            Ok(())
        });
    }
    let old_len = value.map_or(0, string_len);
    let len = old_len.max(written_bits.div_ceil(8) as usize);
    let is_longer = len > old_len;
    let mut changes = 0;
    ctx.reply.array(count);
    let reply = &mut ctx.reply;
    ctx.keyspace.string_mut(&key, len, |bytes| {
        while let Ok(Some(operation)) = operations.parse_next() {
            match apply(operation, bytes) {
                Some(applied) => {
                    reply.int(applied.replied);
                    changes += u64::from(applied.is_write && (is_longer || applied.is_other));
                }
                None => reply.null(),
            }
        }
    });
    ctx.changed(changes);
    Ok(())
}

/// What one operation did.
struct Applied {
    replied: i64,
    is_write: bool,
    /// The field holds another number now.
    is_other: bool,
}

/// Runs one operation; None if it would overflow and must not.
fn apply(operation: Operation, bytes: &mut [u8]) -> Option<Applied> {
    let Operation {
        field,
        offset,
        action,
        overflow,
    } = operation;
    let old = field.read(bytes, offset);
    let (stored, replied) = match action {
        Action::Get => {
            return Some(Applied {
                replied: old,
                is_write: false,
                is_other: false,
            });
        }
        Action::Set(number) => (field.store(number, overflow)?, old),
        Action::Increment(number) => {
            let sum = field.add(old, number, overflow)?;
            (sum, sum)
        }
    };
    field.write(bytes, offset, stored);
    Some(Applied {
        replied,
        is_write: true,
        is_other: stored != old,
    })
}
