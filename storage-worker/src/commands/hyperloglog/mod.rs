//! HyperLogLog commands: sketches that count different elements, kept in strings.
//!
//! Any string may be given as a sketch, so each is checked before it is used. PFCOUNT of one key
//! remembers its result in the value, which is a change although the command reads.
//!
//! Not here: the form of a sketch and its arithmetic (`collections::hyperloglog`).

mod debug;

pub(crate) use debug::{pfdebug, pfselftest};

use crate::collections::hyperloglog::{self as sketch, Corrupt, REGISTERS, Representation};
use crate::commands::prelude::*;
use crate::keyspace::{Encoding, Found, Key};

impl From<Corrupt> for CommandError {
    fn from(_: Corrupt) -> Self {
        CommandError::CorruptHyperLogLog
    }
}

/// The bytes of a sketch and how its registers are written.
fn sketch_of<'v>(found: &Found<'v>) -> Result<(&'v [u8], Representation), CommandError> {
    let StringRef::Bytes(bytes) = string_of(found)? else {
        return Err(CommandError::NotHyperLogLog);
    };
    let representation = sketch::representation(bytes).ok_or(CommandError::NotHyperLogLog)?;
    Ok((bytes, representation))
}

/// Writes a sketch over the value of a key, whose expiry stays.
fn store(ctx: &mut Context<'_>, key: &Key<'_>, bytes: &[u8]) {
    ctx.keyspace
        .string_mut(key, bytes.len(), |value| value.copy_from_slice(bytes));
}

/// PFADD key [element ...]
pub(crate) fn pfadd(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let mut changes = 0;
    let mut bytes = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        None => {
            changes = 1;
            sketch::EMPTY.to_vec()
        }
        Some(found) => {
            let (bytes, representation) = sketch_of(&found)?;
            if representation == Representation::Dense {
                let len = bytes.len();
                return add_dense(ctx, args, &key, len);
            }
            bytes.to_vec()
        }
    };
    let sparse_bytes_max = ctx.settings.limits.hyperloglog_sparse_bytes;
    for element in args.iter_from(2) {
        let (index, count) = sketch::offer(element);
        changes += u64::from(sketch::raise(&mut bytes, index, count, sparse_bytes_max)?);
    }
    if changes > 0 {
        sketch::forget_cached(&mut bytes);
    }
    store(ctx, &key, &bytes);
    ctx.changed(changes);
    ctx.reply.int(i64::from(changes > 0));
    Ok(())
}

/// Adds to a dense sketch where it stands.
fn add_dense(ctx: &mut Context<'_>, args: Args<'_>, key: &Key<'_>, len: usize) -> CommandResult {
    let changes = ctx.keyspace.string_mut(key, len, |bytes| {
        let mut changes = 0;
        for element in args.iter_from(2) {
            changes += u64::from(sketch::add_dense(bytes, element));
        }
        if changes > 0 {
            sketch::forget_cached(bytes);
        }
        changes
    });
    ctx.changed(changes);
    ctx.reply.int(i64::from(changes > 0));
    Ok(())
}

/// PFCOUNT key [key ...]
pub(crate) fn pfcount(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 2 {
        let mut registers = Box::new([0; REGISTERS]);
        ctx.for_each_key(args, 1, 1, |ctx, key, _| {
            if let Some(found) = ctx.keyspace.find(key, ctx.now, ctx.access) {
                sketch::merge(sketch_of(&found)?.0, &mut registers)?;
            }
            Ok(())
        })?;
        ctx.reply
            .count(sketch::estimate_registers(&registers) as usize);
        return Ok(());
    }
    let key = ctx.first_key(args);
    let Some(found) = ctx.keyspace.find(&key, ctx.now, ctx.access) else {
        ctx.reply.int(0);
        return Ok(());
    };
    let (bytes, _) = sketch_of(&found)?;
    let (cached, len) = (sketch::cached(bytes), bytes.len());
    let count = match cached {
        Some(count) => count,
        None => sketch::estimate(bytes)?,
    };
    // A string that was set as a whole is one that was edited from now on, as in the reference.
    let is_whole = found.encoding() != Encoding::Raw;
    if cached.is_none() || is_whole {
        ctx.keyspace.string_mut_while_reading(&key, len, |bytes| {
            sketch::set_cached(bytes, count);
        });
        ctx.changed(u64::from(cached.is_none()));
    }
    ctx.reply.int(count as i64);
    Ok(())
}

/// PFMERGE destination [source ...]
///
/// The destination is a source, too. It becomes dense if any source is.
pub(crate) fn pfmerge(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut registers = Box::new([0; REGISTERS]);
    let mut is_dense = false;
    ctx.for_each_key(args, 1, 1, |ctx, key, _| {
        if let Some(found) = ctx.keyspace.find(key, ctx.now, ctx.access) {
            let (bytes, representation) = sketch_of(&found)?;
            is_dense |= representation == Representation::Dense;
            sketch::merge(bytes, &mut registers)?;
        }
        Ok(())
    })?;
    let key = ctx.first_key(args);
    let mut bytes = match ctx.keyspace.find(&key, ctx.now, Access::Write) {
        None => sketch::EMPTY.to_vec(),
        Some(found) => sketch_of(&found)?.0.to_vec(),
    };
    if is_dense {
        if sketch::representation(&bytes) == Some(Representation::Sparse) {
            bytes = sketch::to_dense(&bytes)?;
        }
        sketch::write_dense(&mut bytes, &registers);
    } else {
        let sparse_bytes_max = ctx.settings.limits.hyperloglog_sparse_bytes;
        for (index, &count) in registers
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            sketch::raise(&mut bytes, index, count, sparse_bytes_max)?;
        }
    }
    sketch::forget_cached(&mut bytes);
    store(ctx, &key, &bytes);
    ctx.changed(1);
    ctx.reply.ok();
    Ok(())
}
