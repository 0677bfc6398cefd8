//! CLIENT and its subcommands.

use proto::CommandError;
use proto::number::parse_i64;

use super::connection::{is_valid_name, set_name};
use super::help;
use crate::call::Call;
use crate::clients::{self, KillFilter, ListFilter};
use crate::core::{Core, Flow, Pause};
use crate::mail::{Question, Reply};

/// CLIENT GETNAME
pub(super) fn getname(core: &mut Core, call: &Call<'_>) -> Flow {
    let names = core
        .get(call.index)
        .and_then(|connection| connection.names.clone());
    let name = names
        .map(|names| names.name)
        .filter(|name| !name.is_empty());
    core.reply(call.index, |reply| match name {
        Some(name) => reply.bulk(&name),
        None => reply.null(),
    })
}

/// CLIENT HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::CLIENT)
}

/// CLIENT ID
pub(super) fn id(core: &mut Core, call: &Call<'_>) -> Flow {
    let id = core.get(call.index).map_or(0, |connection| connection.id);
    core.reply(call.index, |reply| {
        reply.int(i64::try_from(id).unwrap_or(i64::MAX));
    })
}

/// CLIENT INFO
pub(super) fn info(core: &mut Core, call: &Call<'_>) -> Flow {
    note_own_bytes(core, call);
    let Some(connection) = core.get(call.index) else {
        return Flow::Stop;
    };
    let line = clients::describe(connection, core.thread, core.now.millis);
    forget_own_bytes(core, call);
    core.reply(call.index, |reply| reply.verbatim("txt", line.as_bytes()))
}

/// CLIENT LIST [TYPE kind | ID id ...]
pub(super) fn list(core: &mut Core, call: &Call<'_>) -> Flow {
    note_own_bytes(core, call);
    match ListFilter::parse(call) {
        Ok(filter) => {
            core.ask_all(call.index, Question::List(filter), Reply::Lines);
            forget_own_bytes(core, call);
            Flow::Stop
        }
        Err(error) => core.error(call.index, &error),
    }
}

/// The command itself is in the query buffer while it is answered.
fn note_own_bytes(core: &mut Core, call: &Call<'_>) {
    let end = call.spans.last().map_or(0, |span| span.1 as usize);
    if let Some(connection) = core.get_mut(call.index) {
        connection.own_bytes = end + 2;
        connection.own_arguments = call.args(0).map(<[u8]>::len).sum();
    }
}

fn forget_own_bytes(core: &mut Core, call: &Call<'_>) {
    if let Some(connection) = core.get_mut(call.index) {
        connection.own_bytes = 0;
        connection.own_arguments = 0;
    }
}

/// CLIENT KILL address | option value ...
pub(super) fn kill(core: &mut Core, call: &Call<'_>) -> Flow {
    let asker = core.get(call.index).map_or(0, |connection| connection.id);
    match KillFilter::parse(call, asker) {
        Ok((filter, old_form)) => {
            let reply = if old_form {
                Reply::OkIfAny
            } else {
                Reply::Count
            };
            core.ask_all(call.index, Question::Kill(filter), reply);
            Flow::Stop
        }
        Err(error) => core.error(call.index, &error),
    }
}

/// CLIENT NO-EVICT ON | OFF
pub(super) fn no_evict(core: &mut Core, call: &Call<'_>) -> Flow {
    match on_or_off(call) {
        Some(on) => {
            if let Some(connection) = core.get_mut(call.index) {
                connection.facts.no_evict = on;
            }
            core.ok(call.index)
        }
        None => core.error(call.index, &CommandError::Syntax),
    }
}

/// CLIENT NO-TOUCH ON | OFF
pub(super) fn no_touch(core: &mut Core, call: &Call<'_>) -> Flow {
    match on_or_off(call) {
        Some(on) => {
            if let Some(connection) = core.get_mut(call.index) {
                connection.facts.no_touch = on;
            }
            core.ok(call.index)
        }
        None => core.error(call.index, &CommandError::Syntax),
    }
}

fn on_or_off(call: &Call<'_>) -> Option<bool> {
    if call.is(2, "ON") {
        Some(true)
    } else if call.is(2, "OFF") {
        Some(false)
    } else {
        None
    }
}

/// What a subcommand says that has only a least number of arguments in the catalogue.
fn too_many_words(call: &Call<'_>) -> CommandError {
    CommandError::SubcommandSyntax {
        name: "client",
        subcommand: call.arg(1).into(),
    }
}

/// CLIENT PAUSE milliseconds [WRITE | ALL]
pub(super) fn pause(core: &mut Core, call: &Call<'_>) -> Flow {
    if call.len() > 4 {
        return core.error(call.index, &too_many_words(call));
    }
    let writes_only = match call.len() {
        4 if call.is(3, "WRITE") => true,
        4 if !call.is(3, "ALL") => {
            return core.error(call.index, &CommandError::PauseMode);
        }
        _ => false,
    };
    let millis = match parse_i64(call.arg(2)) {
        None => return core.error(call.index, &CommandError::TimeoutNotInteger),
        Some(millis) if millis < 0 => {
            return core.error(call.index, &CommandError::TimeoutNegative);
        }
        Some(millis) => millis.unsigned_abs(),
    };
    let mut until = (core.now.unix_micros / 1000).saturating_add(millis);
    let mut only_writes = writes_only;
    // A pause that is under way is never shortened or weakened by another one.
    if let Some(old) = core.pause {
        until = until.max(old.until_unix_millis);
        only_writes &= old.writes_only;
    }
    let pause = Pause {
        until_unix_millis: until,
        writes_only: only_writes,
    };
    core.ask_all(call.index, Question::Pause(Some(pause)), Reply::Ok);
    Flow::Stop
}

/// CLIENT UNBLOCK id [TIMEOUT | ERROR]
pub(super) fn unblock(core: &mut Core, call: &Call<'_>) -> Flow {
    if call.len() > 4 {
        return core.error(call.index, &too_many_words(call));
    }
    let with_error = match call.len() {
        3 => false,
        _ if call.is(3, "TIMEOUT") => false,
        _ if call.is(3, "ERROR") => true,
        _ => return core.error(call.index, &CommandError::UnblockReason),
    };
    let Some(id) = parse_i64(call.arg(2)) else {
        return core.error(call.index, &CommandError::NotAnInteger);
    };
    let id = id.cast_unsigned();
    let question = Question::Unblock { id, with_error };
    core.ask_all(call.index, question, Reply::Count);
    Flow::Stop
}

/// CLIENT UNPAUSE
pub(super) fn unpause(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ask_all(call.index, Question::Pause(None), Reply::Ok);
    Flow::Stop
}

/// CLIENT REPLY ON | OFF | SKIP
pub(super) fn reply(core: &mut Core, call: &Call<'_>) -> Flow {
    let Some(connection) = core.get_mut(call.index) else {
        return Flow::Stop;
    };
    let facts = &mut connection.facts;
    if call.is(2, "ON") {
        facts.reply_off = false;
        facts.skip_this = false;
        facts.settle();
        return core.ok(call.index);
    }
    if call.is(2, "OFF") {
        facts.reply_off = true;
    } else if call.is(2, "SKIP") {
        facts.skip_next = !facts.reply_off;
    } else {
        return core.error(call.index, &CommandError::Syntax);
    }
    facts.settle();
    Flow::Next
}

/// CLIENT SETINFO LIB-NAME | LIB-VER value
pub(super) fn setinfo(core: &mut Core, call: &Call<'_>) -> Flow {
    let value = call.arg(3);
    let is_name = call.is(2, "LIB-NAME");
    if !is_name && !call.is(2, "LIB-VER") {
        return core.error(
            call.index,
            &CommandError::UnrecognizedOption(call.arg(2).into()),
        );
    }
    if !is_valid_name(value) {
        return core.error(
            call.index,
            &CommandError::AttributeCharacters(call.arg(2).into()),
        );
    }
    if let Some(connection) = core.get_mut(call.index) {
        let names = connection.names_mut();
        let place = if is_name {
            &mut names.library
        } else {
            &mut names.library_version
        };
        *place = value.into();
    }
    core.ok(call.index)
}

/// CLIENT SETNAME name
pub(super) fn setname(core: &mut Core, call: &Call<'_>) -> Flow {
    if !is_valid_name(call.arg(2)) {
        return core.error(call.index, &CommandError::ClientNameCharacters);
    }
    if let Some(connection) = core.get_mut(call.index) {
        set_name(connection.names_mut(), call.arg(2));
    }
    core.ok(call.index)
}
