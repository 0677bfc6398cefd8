//! FCALL and friends, and what a worker does for FUNCTION: looks whether a library can be loaded, and
//! libraries as bytes.
//!
//! ```text
//!   dump of libraries   | 245 | code as a string | ... | version 2 | CRC-64 8 |
//! ```

use super::{What, command_error, execute, keys_end, with_scripts};
use crate::commands::prelude::*;
use crate::rdb::{Reader, Writer, payload};
use proto::registry::Library;
use proto::settings::bytes::to_bytes;

/// Stands before the code of a library.
const LIBRARY: u8 = 245;

/// FCALL function numkeys [key ...] [arg ...]
pub(crate) fn fcall(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    call(ctx, args, false)
}

/// FCALL_RO function numkeys [key ...] [arg ...]
pub(crate) fn fcall_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    call(ctx, args, true)
}

fn call(ctx: &mut Context<'_>, args: Args<'_>, is_read_only: bool) -> CommandResult {
    with_scripts(ctx, |ctx, scripts| {
        let found = scripts.functions.parts(args.get(1));
        let (vm, function) = found.ok_or(CommandError::FunctionNotFound)?;
        let keys_end = keys_end(args).map_err(|error| match error {
            CommandError::NotAnInteger => CommandError::FunctionKeyCount,
            error => error,
        })?;
        let what = What {
            program: &function.program,
            name: &function.name,
            promises: function.flags,
            is_function: true,
            is_read_only,
        };
        execute(ctx, vm, &mut scripts.surroundings, &what, args, keys_end)
    })
}

/// `_functioncheck` code replaces: describes the library.
pub(crate) fn check_library(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let scripts = ctx.scripts.as_mut().ok_or(CommandError::Internal)?;
    let replaces = args.get(2) == b"1";
    let library = scripts
        .functions
        .check(args.get(1), replaces)
        .map_err(command_error)?;
    ctx.reply.array(1);
    describe(&mut ctx.reply, &library)
}

/// `_functionread` payload: describes its libraries.
pub(crate) fn read_libraries(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (mut rest, _) = payload::open(args.get(1)).ok_or(CommandError::RestorePayload)?;
    let string_max = ctx.settings.bulk_bytes_max;
    let scripts = ctx.scripts.as_mut().ok_or(CommandError::Internal)?;
    let mut libraries = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        if *kind != LIBRARY {
            return Err(CommandError::FunctionReadType);
        }
        let mut reader = Reader::new(after, string_max);
        let code = reader.string().map_err(|_| CommandError::FunctionRead)?;
        libraries.push(
            scripts
                .functions
                .check_alone(&code)
                .map_err(command_error)?,
        );
        rest = reader.rest();
    }
    ctx.reply.array(libraries.len());
    libraries
        .iter()
        .try_for_each(|library| describe(&mut ctx.reply, library))
}

/// A library for the gateway.
fn describe(reply: &mut ReplyWriter<'_>, library: &Library) -> CommandResult {
    let text = library.to_text().ok_or(CommandError::Internal)?;
    reply.bulk(text.as_bytes());
    Ok(())
}

/// FUNCTION DUMP
pub(crate) fn dump(ctx: &mut Context<'_>, _: Args<'_>) -> CommandResult {
    let scripts = ctx.scripts.as_ref().ok_or(CommandError::Internal)?;
    let mut bytes = Vec::new();
    for library in scripts.functions.libraries() {
        let mut writer = Writer::new(&mut bytes, ctx.settings.compresses_payloads);
        writer.byte(LIBRARY);
        writer.string(&to_bytes(&library.code));
    }
    payload::seal(&mut bytes);
    ctx.reply.bulk(&bytes);
    Ok(())
}
