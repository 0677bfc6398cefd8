//! SCRIPT and its subcommands.

use proto::CommandError;
use proto::sha1::{digest_text, sha1_text};
use runtime::Request as Ask;

use super::help;
use crate::call::Call;
use crate::core::{Core, Flow};
use crate::internal::{Request, SCRIPT_CHECK};
use crate::scripts::script;
use crate::steps::Steps;

/// SCRIPT DEBUG YES|SYNC|NO
pub(super) fn debug(core: &mut Core, call: &Call<'_>) -> Flow {
    if call.is(2, "NO") {
        core.ok(call.index)
    } else if call.is(2, "YES") || call.is(2, "SYNC") {
        core.error(call.index, &CommandError::ScriptDebugMissing)
    } else {
        core.error(call.index, &CommandError::ScriptDebugMode)
    }
}

/// SCRIPT EXISTS sha1 ...
pub(super) fn exists(core: &mut Core, call: &Call<'_>) -> Flow {
    let found: Vec<bool> = core.shared.scripts(|scripts| {
        let all = call.args(2).map(sha1_text);
        all.map(|sha1| sha1.is_some_and(|sha1| scripts.has(&sha1)))
            .collect()
    });
    core.reply(call.index, |reply| {
        reply.array(found.len());
        for is_known in found {
            reply.int(i64::from(is_known));
        }
    })
}

/// SCRIPT FLUSH [ASYNC|SYNC]
pub(super) fn flush(core: &mut Core, call: &Call<'_>) -> Flow {
    let is_fine = match call.len() {
        2 => true,
        3 => call.is(2, "ASYNC") || call.is(2, "SYNC"),
        _ => false,
    };
    if !is_fine {
        return core.error(call.index, &CommandError::ScriptFlushOption);
    }
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    core.ask_supervisor(call.index, Ask::FlushScripts)
}

/// SCRIPT HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::SCRIPT)
}

/// SCRIPT KILL
pub(super) fn kill(core: &mut Core, call: &Call<'_>) -> Flow {
    match core.end_script(false) {
        Ok(()) => core.ok(call.index),
        Err(error) => core.error(call.index, &error),
    }
}

/// SCRIPT LOAD script
pub(super) fn load(core: &mut Core, call: &Call<'_>) -> Flow {
    let body = call.arg(2);
    let sha1 = digest_text(body);
    if core.shared.scripts(|scripts| scripts.is_registered(&sha1)) {
        return core.reply(call.index, |reply| reply.bulk(&sha1));
    }
    let request = Request {
        command: SCRIPT_CHECK,
        worker: 0,
        slot: 0,
        database: None,
        for_client: false,
        arguments: vec![body.to_vec()],
    };
    let script = script(&sha1, body);
    core.begin(call.index, vec![request], Steps::ScriptLoad { script })
}
