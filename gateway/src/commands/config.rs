//! CONFIG: settings are read here and changed by the supervisor, which answers once every process has
//! the new values in force.

use proto::CommandError;
use proto::settings::bytes::{to_bytes, to_text};
use runtime::Request;

use super::help;
use crate::call::Call;
use crate::connection::Origin;
use crate::core::{Core, Flow};

/// CONFIG GET pattern ...
pub(super) fn get(core: &mut Core, call: &Call<'_>) -> Flow {
    let patterns: Vec<String> = call.args(2).map(to_text).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let found = core.live.settings.matching(&patterns);
    core.reply(call.index, |reply| {
        reply.map(found.len());
        for (name, value) in &found {
            reply.bulk(name.as_bytes());
            reply.bulk(&to_bytes(value));
        }
    })
}

/// CONFIG HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::CONFIG)
}

/// CONFIG RESETSTAT
pub(super) fn resetstat(core: &mut Core, call: &Call<'_>) -> Flow {
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    core.publish_tally();
    core.shared.reset_statistics();
    core.ok(call.index)
}

/// CONFIG REWRITE
pub(super) fn rewrite(core: &mut Core, call: &Call<'_>) -> Flow {
    if core.shared.registry().config_file.is_empty() {
        return core.error(call.index, &CommandError::NoConfigFile);
    }
    core.ask_supervisor(call.index, Request::RewriteConfig)
}

/// CONFIG SET name value ...
pub(super) fn set(core: &mut Core, call: &Call<'_>) -> Flow {
    if !call.len().is_multiple_of(2) {
        return core.error(call.index, &CommandError::Syntax);
    }
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    let words: Vec<String> = call.args(2).map(to_text).collect();
    let pairs: Vec<(String, String)> = words
        .chunks_exact(2)
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect();
    let local = core
        .get(call.index)
        .is_some_and(|connection| match &connection.origin {
            Origin::Unix(_) => true,
            Origin::Tcp(remote, _) => remote.ip().to_canonical().is_loopback(),
        });
    // What is wrong for everybody is said at once; the supervisor checks again.
    let mut settings = (*core.live.settings).clone();
    if let Err(error) = settings.set_many(&pairs, local) {
        let line = to_bytes(&format!("ERR {error}"));
        return core.error(call.index, &CommandError::Line(line.into()));
    }
    core.ask_supervisor(call.index, Request::SetSettings { pairs, local })
}
