//! COMMAND: what the catalogue says about commands.

use super::help;
use crate::call::Call;
use crate::core::{Core, Flow};

/// COMMAND HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::COMMAND)
}

/// COMMAND COUNT
pub(super) fn count(core: &mut Core, call: &Call<'_>) -> Flow {
    let count = proto::catalogue::all()
        .filter(|spec| spec.parent().is_none())
        .count();
    core.reply(call.index, |reply| reply.count(count))
}

/// COMMAND
pub(super) fn command(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.array(0))
}

/// COMMAND DOCS
pub(super) fn docs(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.map(0))
}

/// COMMAND GETKEYS
pub(super) fn getkeys(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.array(0))
}

/// COMMAND GETKEYSANDFLAGS
pub(super) fn getkeysandflags(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.array(0))
}

/// COMMAND INFO
pub(super) fn info(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.array(0))
}

/// COMMAND LIST
pub(super) fn list(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.array(0))
}
