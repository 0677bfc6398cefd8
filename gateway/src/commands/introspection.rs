//! COMMAND: what the catalogue says about commands. The replies are rendered by `proto::command_docs`.

use proto::resp::ReplyWriter;
use proto::{CommandError, command_docs};

use super::help;
use crate::call::Call;
use crate::core::{Core, Flow};

/// COMMAND
pub(super) fn command(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, command_docs::all)
}

/// COMMAND COUNT
pub(super) fn count(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, command_docs::count)
}

/// COMMAND DOCS [name ...]
pub(super) fn docs(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| {
        command_docs::docs(reply, call.len(), |at| call.arg(at));
    })
}

/// COMMAND GETKEYS command [argument ...]
pub(super) fn getkeys(core: &mut Core, call: &Call<'_>) -> Flow {
    keys(core, call, false)
}

/// COMMAND GETKEYSANDFLAGS command [argument ...]
pub(super) fn getkeysandflags(core: &mut Core, call: &Call<'_>) -> Flow {
    keys(core, call, true)
}

/// COMMAND HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::COMMAND)
}

/// COMMAND INFO [name ...]
pub(super) fn info(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| {
        command_docs::infos(reply, call.len(), |at| call.arg(at));
    })
}

/// COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]
pub(super) fn list(core: &mut Core, call: &Call<'_>) -> Flow {
    answer(core, call, |reply| {
        command_docs::list(reply, call.len(), |at| call.arg(at))
    })
}

fn keys(core: &mut Core, call: &Call<'_>, flags: bool) -> Flow {
    answer(core, call, |reply| {
        command_docs::getkeys(reply, call.len(), |at| call.arg(at), flags)
    })
}

/// Answers with what `write` renders, or with its error.
fn answer(
    core: &mut Core,
    call: &Call<'_>,
    write: impl FnOnce(&mut ReplyWriter<'_>) -> Result<(), CommandError>,
) -> Flow {
    let connection = core.get(call.index);
    let resp3 = connection.is_some_and(|connection| connection.facts.resp3);
    let mut reply = Vec::new();
    match write(&mut ReplyWriter::to_vec(&mut reply, resp3)) {
        Ok(()) => {
            core.answer(call.index, &reply);
            Flow::Next
        }
        Err(error) => core.error(call.index, &error),
    }
}
