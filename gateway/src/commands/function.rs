//! FUNCTION and its subcommands.
//!
//! A library is loaded by a worker first, which says what is wrong with it; then the supervisor adds it
//! to the registry, and every worker loads it for good.

use proto::CommandError;
use proto::glob::matches;
use proto::registry::{Function, Library};
use proto::resp::ReplyWriter;
use proto::settings::bytes::{to_bytes, to_text};
use runtime::{LibraryChange, Request as Ask};

use super::help;
use crate::call::Call;
use crate::core::{Core, Flow};
use crate::gather::{BadPart, array, bulk, reply_len};
use crate::internal::{FUNCTION_CHECK, FUNCTION_READ, Request};
use crate::steps::{Steps, Then};

/// What becomes of libraries that a worker has looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LibraryPolicy {
    /// FUNCTION LOAD: one is added; with true in the place of one of its name.
    Load(bool),
    /// RESTORE FLUSH: they are the only ones.
    Flush,
    /// RESTORE APPEND: they are added.
    Append,
    /// RESTORE REPLACE: they are added; those of their names go.
    Replace,
}

impl LibraryPolicy {
    /// The worker has described them.
    pub(crate) fn after(self, reply: &[u8]) -> Result<Then, BadPart> {
        let (_, count, mut rest) = array(reply).ok_or(BadPart)?;
        let mut libraries = Vec::new();
        for _ in 0..count {
            let text = bulk(rest).flatten().ok_or(BadPart)?;
            libraries.push(Library::from_text(text).ok_or(BadPart)?);
            rest = rest.get(reply_len(rest).ok_or(BadPart)?..).ok_or(BadPart)?;
        }
        let mut answer = Vec::new();
        let mut writer = ReplyWriter::to_vec(&mut answer, false);
        match (self, libraries.first()) {
            (Self::Load(_), Some(library)) => writer.bulk(&to_bytes(&library.name)),
            _ => writer.ok(),
        }
        let change = match self {
            Self::Flush => LibraryChange::Set(libraries),
            Self::Load(replace) => LibraryChange::Add { libraries, replace },
            Self::Append | Self::Replace => LibraryChange::Add {
                libraries,
                replace: self == Self::Replace,
            },
        };
        Ok(Then::Ask(Ask::ChangeLibraries(change), answer))
    }
}

fn look(core: &mut Core, call: &Call<'_>, policy: LibraryPolicy, arguments: Vec<Vec<u8>>) -> Flow {
    if core.is_memory_short() {
        return core.error(call.index, &CommandError::OutOfMemory);
    }
    let command = match policy {
        LibraryPolicy::Load(_) => FUNCTION_CHECK,
        _ => FUNCTION_READ,
    };
    let request = Request {
        command,
        worker: 0,
        slot: 0,
        database: None,
        for_client: false,
        arguments,
    };
    core.begin(call.index, vec![request], Steps::Libraries(policy))
}

fn refuse(core: &mut Core, call: &Call<'_>, before: &[u8], word: &[u8]) -> Flow {
    let line = [b"ERR ", before, word].concat();
    core.error(call.index, &CommandError::Line(line.into()))
}

/// FUNCTION LOAD [REPLACE] code
pub(super) fn load(core: &mut Core, call: &Call<'_>) -> Flow {
    let mut replaces = false;
    for at in 2..call.len() - 1 {
        if !call.is(at, "REPLACE") {
            return refuse(core, call, b"Unknown option given: ", call.arg(at));
        }
        replaces = true;
    }
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    let flag = if replaces { b"1" } else { b"0" };
    let arguments = vec![call.arg(call.len() - 1).to_vec(), flag.to_vec()];
    look(core, call, LibraryPolicy::Load(replaces), arguments)
}

/// FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]
pub(super) fn restore(core: &mut Core, call: &Call<'_>) -> Flow {
    let policy = match call.len() {
        3 => LibraryPolicy::Append,
        4 if call.is(3, "APPEND") => LibraryPolicy::Append,
        4 if call.is(3, "REPLACE") => LibraryPolicy::Replace,
        4 if call.is(3, "FLUSH") => LibraryPolicy::Flush,
        4 => return core.error(call.index, &CommandError::FunctionPolicy),
        _ => {
            let (name, subcommand) = ("function", call.arg(1).into());
            let error = CommandError::SubcommandSyntax { name, subcommand };
            return core.error(call.index, &error);
        }
    };
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    look(core, call, policy, vec![call.arg(2).to_vec()])
}

fn ask(core: &mut Core, call: &Call<'_>, change: LibraryChange) -> Flow {
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    core.ask_supervisor(call.index, Ask::ChangeLibraries(change))
}

/// FUNCTION DELETE library
pub(super) fn delete(core: &mut Core, call: &Call<'_>) -> Flow {
    ask(core, call, LibraryChange::Delete(to_text(call.arg(2))))
}

/// FUNCTION FLUSH [ASYNC|SYNC]
pub(super) fn flush(core: &mut Core, call: &Call<'_>) -> Flow {
    match call.len() {
        2 => {}
        3 if call.is(2, "ASYNC") || call.is(2, "SYNC") => {}
        3 => return core.error(call.index, &CommandError::FunctionFlushOption),
        _ => {
            let (name, subcommand) = ("function", call.arg(1).into());
            let error = CommandError::SubcommandSyntax { name, subcommand };
            return core.error(call.index, &error);
        }
    }
    ask(core, call, LibraryChange::Set(Vec::new()))
}

/// FUNCTION HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::FUNCTION)
}

/// FUNCTION KILL
pub(super) fn kill(core: &mut Core, call: &Call<'_>) -> Flow {
    match core.end_script(true) {
        Ok(()) => core.ok(call.index),
        Err(error) => core.error(call.index, &error),
    }
}

/// FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]
pub(super) fn list(core: &mut Core, call: &Call<'_>) -> Flow {
    let (mut pattern, mut with_code) = (None, false);
    let mut at = 2;
    while at < call.len() {
        if !with_code && call.is(at, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && call.is(at, "LIBRARYNAME") {
            at += 1;
            pattern = call.get(at);
            if pattern.is_none() {
                return core.error(call.index, &CommandError::FunctionLibraryName);
            }
        } else {
            return refuse(core, call, b"Unknown argument ", call.arg(at));
        }
        at += 1;
    }
    let registry = core.shared.registry();
    let wanted = |library: &&Library| {
        pattern.is_none_or(|pattern| matches(pattern, &to_bytes(&library.name), true))
    };
    let libraries: Vec<&Library> = registry.libraries.iter().filter(wanted).collect();
    core.reply(call.index, |reply| {
        reply.array(libraries.len());
        for library in libraries {
            write_library(reply, library, with_code);
        }
    })
}

fn write_library(reply: &mut ReplyWriter<'_>, library: &Library, with_code: bool) {
    reply.map(3 + usize::from(with_code));
    reply.bulk(b"library_name");
    reply.bulk(&to_bytes(&library.name));
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        write_function(reply, function);
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&to_bytes(&library.code));
    }
}

fn write_function(reply: &mut ReplyWriter<'_>, function: &Function) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(&to_bytes(&function.name));
    reply.bulk(b"description");
    match &function.description {
        Some(text) => reply.bulk(&to_bytes(text)),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    reply.set(function.flags.len());
    for flag in &function.flags {
        reply.simple(flag);
    }
}

/// The name of a function of which nothing is known.
static NOTHING: Vec<u8> = Vec::new();

/// FUNCTION STATS
pub(super) fn stats(core: &mut Core, call: &Call<'_>) -> Flow {
    let running = core.running_function();
    let registry = core.shared.registry();
    let functions = registry
        .libraries
        .iter()
        .map(|library| library.functions.len());
    let functions: usize = functions.sum();
    core.reply(call.index, |reply| {
        reply.map(2);
        reply.bulk(b"running_script");
        match running {
            Some((call, millis)) => {
                let (name, words) = call.split_first().unwrap_or((&NOTHING, &[]));
                reply.map(3);
                reply.bulk(b"name");
                reply.bulk(name);
                reply.bulk(b"command");
                reply.array(words.len());
                words.iter().for_each(|word| reply.bulk(word));
                reply.bulk(b"duration_ms");
                reply.int(i64::try_from(millis).unwrap_or(i64::MAX));
            }
            None => reply.null(),
        }
        reply.bulk(b"engines");
        reply.map(1);
        reply.bulk(b"LUA");
        reply.map(2);
        reply.bulk(b"libraries_count");
        reply.count(registry.libraries.len());
        reply.bulk(b"functions_count");
        reply.count(functions);
    })
}
