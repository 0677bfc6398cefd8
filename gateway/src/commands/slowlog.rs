//! SLOWLOG and its subcommands.

use proto::CommandError;
use proto::number::parse_i64;

use super::help;
use crate::call::Call;
use crate::core::{Core, Flow};
use crate::slow_log::SlowLog;

/// Entries that GET shows without a count.
const SHOWN: usize = 10;

/// SLOWLOG GET [count]
pub(super) fn get(core: &mut Core, call: &Call<'_>) -> Flow {
    let count = match (call.len(), call.get(2)) {
        (_, None) => SHOWN,
        (3, Some(word)) => match parse_i64(word).filter(|&count| count >= -1) {
            Some(-1) => usize::MAX,
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
            None => return core.error(call.index, &CommandError::SlowLogCount),
        },
        _ => {
            let subcommand = call.arg(1).into();
            let name = "slowlog";
            return core.error(
                call.index,
                &CommandError::SubcommandSyntax { name, subcommand },
            );
        }
    };
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    let entries = core.shared.slow_log(|log| log.latest(count));
    core.reply(call.index, |reply| {
        reply.array(entries.len());
        for entry in &entries {
            entry.write(reply);
        }
    })
}

/// SLOWLOG HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::SLOWLOG)
}

/// SLOWLOG LEN
pub(super) fn len(core: &mut Core, call: &Call<'_>) -> Flow {
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    let len = core.shared.slow_log(|log| log.len());
    core.reply(call.index, |reply| reply.count(len))
}

/// SLOWLOG RESET
pub(super) fn reset(core: &mut Core, call: &Call<'_>) -> Flow {
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    core.shared.slow_log(SlowLog::clear);
    core.ok(call.index)
}
