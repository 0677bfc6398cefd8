//! Looking inside HyperLogLogs: PFDEBUG and PFSELFTEST.

use super::{sketch, sketch_of, store};
use crate::collections::hyperloglog::{REGISTERS, Representation};
use crate::commands::prelude::*;
use crate::random::Random;

/// PFDEBUG GETREG | DECODE | ENCODING | TODENSE key, PFDEBUG SIMD ON | OFF
///
/// GETREG makes the sketch dense, as in the reference. There is one way to compute, so SIMD has nothing
/// to switch.
pub(crate) fn pfdebug(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let word = args.get(1);
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    if is(b"SIMD") {
        return simd(ctx, args.get(2));
    }
    let key = ctx.key(args.get(2));
    let Some(found) = ctx.keyspace.find(&key, ctx.now, Access::Write) else {
        return Err(CommandError::NoSuchKeyHere);
    };
    let (bytes, representation) = sketch_of(&found)?;
    let is_sparse = representation == Representation::Sparse;
    let dense = if is_sparse && (is(b"GETREG") || is(b"TODENSE")) {
        Some(sketch::to_dense(bytes)?)
    } else {
        None
    };
    if is(b"GETREG") {
        let registers = sketch::registers(bytes)?;
        ctx.reply.array(REGISTERS);
        registers
            .iter()
            .for_each(|&count| ctx.reply.int(i64::from(count)));
    } else if is(b"DECODE") {
        if !is_sparse {
            return Err(CommandError::HyperLogLogNotSparse);
        }
        ctx.reply.bulk(sketch::decoded(bytes).as_bytes());
    } else if is(b"ENCODING") {
        ctx.reply.simple(if is_sparse { "sparse" } else { "dense" });
    } else if is(b"TODENSE") {
        ctx.reply.int(i64::from(is_sparse));
    } else {
        let mut line = b"ERR Unknown PFDEBUG subcommand '".to_vec();
        line.extend_from_slice(word);
        line.push(b'\'');
        return Err(CommandError::Line(line.into()));
    }
    if let Some(dense) = dense {
        store(ctx, &key, &dense);
        ctx.changed(1);
    }
    Ok(())
}

fn simd(ctx: &mut Context<'_>, word: &[u8]) -> CommandResult {
    let is_on = word.eq_ignore_ascii_case(b"ON");
    if !is_on && !word.eq_ignore_ascii_case(b"OFF") {
        return Err(CommandError::NotOnOrOff);
    }
    ctx.reply.simple(if is_on { "enabled" } else { "disabled" });
    Ok(())
}

/// Elements that PFSELFTEST adds; more makes the test finer and the worker busy for longer.
const ELEMENTS: u64 = 100_000;

/// PFSELFTEST
///
/// Adds random elements to a sketch in both representations and compares them with each other and with
/// the truth.
pub(crate) fn pfselftest(ctx: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    let failed = |what: &str| {
        let line = format!("TESTFAILED {what}");
        Err(CommandError::Line(line.into_bytes().into()))
    };
    let mut random = Random::new(ctx.rng.next_u64());
    let mut sparse = sketch::EMPTY.to_vec();
    let mut dense = sketch::to_dense(&sparse)?;
    let mut checkpoint = 1;
    for number in 1..=ELEMENTS {
        let element = random.next_u64().to_le_bytes();
        let (index, count) = sketch::offer(&element);
        let limit = ctx.settings.limits.hyperloglog_sparse_bytes;
        let is_changed = sketch::raise(&mut sparse, index, count, limit)?;
        if is_changed != sketch::add_dense(&mut dense, &element) {
            return failed("dense and sparse registers differ");
        }
        if number == checkpoint {
            checkpoint *= 10;
            let estimate = sketch::estimate(&dense)?;
            if sketch::estimate(&sparse)? != estimate {
                return failed("dense and sparse estimates differ");
            }
            // Six times the standard error.
            if estimate.abs_diff(number) > (number / 20).max(u64::from(number >= 10)) {
                let what = format!("too large an error: {estimate} for {number}");
                return failed(&what);
            }
        }
    }
    ctx.reply.ok();
    Ok(())
}
