//! How a value is kept: OBJECT and MEMORY USAGE.
//!
//! A missing key is nil, never an error: tools ask about keys that have just expired.

use crate::commands::prelude::*;
use crate::keyspace::Found;

/// Elements that MEMORY USAGE looks at unless it is told a number.
const SAMPLES_DEFAULT: usize = 5;

/// OBJECT ENCODING key
pub(crate) fn encoding(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    describe(ctx, args, |found, reply| {
        reply.bulk(found.encoding().name().as_bytes());
        Ok(())
    })
}

/// OBJECT REFCOUNT key
///
pub(crate) fn refcount(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let shares_integers = ctx.settings.shares_integers;
    describe(ctx, args, |found, reply| {
        reply.int(references(found, shares_integers));
        Ok(())
    })
}

/// References to a value. Here no two keys share one; of small integers clients are told what they know from the
/// reference, where these exist once, for all keys and for ever.
pub(super) fn references(found: &Found<'_>, shares_integers: bool) -> i64 {
    const SHARED: std::ops::Range<i64> = 0..10_000;
    let is_string = found.kind() == ValueKind::String;
    match is_string.then(|| found.string()) {
        Some(StringRef::Int(number)) if shares_integers && SHARED.contains(&number) => {
            i64::from(i32::MAX)
        }
        _ => 1,
    }
}

/// OBJECT IDLETIME key
pub(crate) fn idletime(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let is_lfu = ctx.settings.policy_is_lfu;
    describe(ctx, args, |found, reply| {
        if is_lfu {
            return Err(CommandError::NoIdleTime);
        }
        reply.int(i64::from(found.idle_seconds()));
        Ok(())
    })
}

/// OBJECT FREQ key
pub(crate) fn freq(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let is_lfu = ctx.settings.policy_is_lfu;
    describe(ctx, args, |found, reply| {
        if !is_lfu {
            return Err(CommandError::NoFrequency);
        }
        reply.int(i64::from(found.frequency()));
        Ok(())
    })
}

/// MEMORY USAGE key [SAMPLES count]
///
/// Where the memory of a collection is known exactly, the count has no effect; 0 is all elements.
pub(crate) fn memory_usage(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut samples = SAMPLES_DEFAULT;
    let mut words = args.iter_from(3);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .filter(|_| word.eq_ignore_ascii_case(b"SAMPLES"));
        let number = integer(value.ok_or(CommandError::Syntax)?)?;
        samples = usize::try_from(number).map_err(|_| CommandError::Syntax)?;
    }
    describe(ctx, args, |found, reply| {
        reply.int(found.memory_bytes(samples) as i64);
        Ok(())
    })
}

/// Looks the key in argument 2 up without touching it; replies nil if it is missing.
fn describe(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    show: impl FnOnce(&Found<'_>, &mut ReplyWriter<'_>) -> CommandResult,
) -> CommandResult {
    let key = ctx.key(args.get(2));
    match ctx.keyspace.find(&key, ctx.now, Access::Peek) {
        Some(found) => show(&found, &mut ctx.reply),
        None => {
            ctx.reply.null();
            Ok(())
        }
    }
}
