//! EVAL and friends: run a script as one unit.

mod function;
mod host;

use crate::commands::prelude::*;
use crate::scripts::{FunctionCall, ScriptError, Scripts, Surroundings};
use crate::unit::{Failure, Manner, Unit};
pub(crate) use function::{check_library, dump, fcall, fcall_ro, read_libraries};
use host::Nested;
use proto::counters::{ErrorCounter, worker_page};
use script::{Arguments, Outcome, Program, Vm, Words, flags};

/// EVAL script numkeys [key ...] [arg ...]
pub(crate) fn eval(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Scripts::by_body, false)
}

/// EVAL_RO script numkeys [key ...] [arg ...]
pub(crate) fn eval_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Scripts::by_body, true)
}

/// EVALSHA sha1 numkeys [key ...] [arg ...]
pub(crate) fn evalsha(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    check_sha1(args)?;
    run(ctx, args, Scripts::by_sha1, false)
}

/// EVALSHA_RO sha1 numkeys [key ...] [arg ...]
pub(crate) fn evalsha_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    check_sha1(args)?;
    run(ctx, args, Scripts::by_sha1, true)
}

/// What is no SHA1 is not looked for.
fn check_sha1(args: Args<'_>) -> CommandResult {
    const DIGITS: usize = 40;
    if args.get(1).len() == DIGITS {
        Ok(())
    } else {
        Err(CommandError::NoScript)
    }
}

/// `_scriptcheck` script: answers OK, or what is wrong with it.
pub(crate) fn check(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let scripts = ctx.scripts.as_mut().ok_or(CommandError::Internal)?;
    scripts.check(args.get(1)).map_err(command_error)?;
    ctx.reply.ok();
    Ok(())
}

fn command_error(error: ScriptError) -> CommandError {
    match error {
        ScriptError::Unknown => CommandError::NoScript,
        ScriptError::Memory => CommandError::ScriptEngine,
        ScriptError::Text(text) => {
            CommandError::Line([b"ERR ", &text[..]].concat().into_boxed_slice())
        }
    }
}

/// Where the keys end.
fn keys_end(args: Args<'_>) -> Result<usize, CommandError> {
    const FIRST: usize = 3;
    let count = integer(args.get(2))?;
    let most = args.len() - FIRST.min(args.len());
    match usize::try_from(count) {
        Ok(count) if count <= most => Ok(FIRST + count),
        Ok(_) => Err(CommandError::NumkeysTooLarge),
        Err(_) => Err(CommandError::KeyCountNegative),
    }
}

type Find = fn(&mut Scripts, &[u8]) -> Result<u64, ScriptError>;

/// Lends the scripts of this worker to `work`, which gets them beside the context.
fn with_scripts(
    ctx: &mut Context<'_>,
    work: impl FnOnce(&mut Context<'_>, &mut Scripts) -> CommandResult,
) -> CommandResult {
    let scripts = ctx.scripts.take().ok_or(CommandError::Internal)?;
    let result = work(ctx, scripts);
    ctx.scripts = Some(scripts);
    result
}

fn run(ctx: &mut Context<'_>, args: Args<'_>, find: Find, is_read_only: bool) -> CommandResult {
    let keys_end = keys_end(args)?;
    with_scripts(ctx, |ctx, scripts| {
        let place = find(scripts, args.get(1)).map_err(command_error)?;
        let (vm, compiled, surroundings) = scripts.parts(place).ok_or(CommandError::Internal)?;
        let what = What {
            program: &compiled.program,
            name: &compiled.sha1,
            promises: compiled.flags,
            is_function: false,
            is_read_only,
        };
        execute(ctx, vm, surroundings, &what, args, keys_end)
    })
}

/// What is run, and how.
struct What<'a> {
    program: &'a Program,
    /// What errors call it.
    name: &'a [u8],
    promises: u8,
    is_function: bool,
    is_read_only: bool,
}

fn execute(
    ctx: &mut Context<'_>,
    vm: &mut Vm,
    surroundings: &mut Surroundings,
    what: &What<'_>,
    args: Args<'_>,
    keys_end: usize,
) -> CommandResult {
    let promises = what.promises;
    let lacks_replicas = ctx.settings.lacks_replicas;
    let is_memory_short = surroundings.is_memory_short;
    check_promises(promises, what.is_read_only, lacks_replicas, is_memory_short)?;
    let words = |from, to| {
        let (bytes, spans) = args.spans(from, to);
        Words { bytes, spans }
    };
    let arguments = Arguments {
        keys: words(3, keys_end),
        others: words(keys_end, args.len()),
    };
    let start = ctx.reply.len();
    let manner = Manner {
        db: ctx.db,
        is_resp3: false,
    };
    let function = what.is_function.then_some(FunctionCall {
        name: what.name,
        command: if what.is_read_only {
            "fcall_ro"
        } else {
            "fcall"
        },
        args,
    });
    if let Some(near) = &mut surroundings.near {
        near.enter_unit();
    }
    let (ground, reply) = ctx.split();
    let mut nested = Nested {
        ground,
        unit: Unit::new(),
        manner,
        surroundings,
        function,
        promises,
        is_read_only: what.is_read_only || promises & flags::NO_WRITES != 0,
    };
    nested.ground.effects.is_in_script = true;
    let outcome = vm.run(what.program, what.name, arguments, &mut nested, reply);
    nested.ground.effects.is_in_script = false;
    nested.finish();
    if ctx.reply.as_bytes().get(start) == Some(&b'-') {
        let failure = match outcome {
            Outcome::FailedAndCounted => Failure::Counted,
            _ => failure(&ctx.reply.as_bytes()[start + 1..]),
        };
        ctx.effects.nested.failure = Some(failure);
    }
    Ok(())
}

/// Whether the script may run at all.
fn check_promises(
    promises: u8,
    is_read_only: bool,
    lacks_replicas: bool,
    is_memory_short: bool,
) -> CommandResult {
    if promises & flags::COMPATIBLE != 0 {
        return Ok(());
    }
    if promises & flags::NO_WRITES != 0 {
        return Ok(());
    }
    if is_memory_short && promises & flags::ALLOW_OOM == 0 {
        return Err(CommandError::OutOfMemory);
    }
    if lacks_replicas {
        return Err(CommandError::NoReplicas);
    }
    if is_read_only {
        return Err(CommandError::ReadOnlyScript);
    }
    Ok(())
}

/// What an error line counts as. A word that is too long, or is not followed by anything, is none.
fn failure(line: &[u8]) -> Failure {
    let start = &line[..line.len().min(worker_page::WORD_BYTES)];
    let Some(end) = memchr::memchr(b' ', start) else {
        return Failure::Known(ErrorCounter::Err);
    };
    let word = &line[..end];
    let mut known = ErrorCounter::ALL.iter();
    match known.find(|known| known.code().as_bytes() == word) {
        Some(&known) => Failure::Known(known),
        None => Failure::Own(word.into()),
    }
}
