//! Commands about the server as a whole.

use proto::CommandError;
use proto::number::parse_i64;
use runtime::{Request, ShutdownHow};

use super::{help, lolwut as pictures, memory};
use crate::call::Call;
use crate::connection::Wait;
use crate::core::{Core, Flow};

/// INFO [section ...]
pub(super) fn info(core: &mut Core, call: &Call<'_>) -> Flow {
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    core.publish_tally();
    let sections: Vec<String> = call
        .args(1)
        .map(|section| String::from_utf8_lossy(section).to_ascii_lowercase())
        .collect();
    let text = core.info(&sections);
    core.reply(call.index, |reply| reply.verbatim("txt", text.as_bytes()))
}

/// CLUSTER and what is about nodes: there is one host.
pub(super) fn cluster_disabled(core: &mut Core, call: &Call<'_>) -> Flow {
    core.error(call.index, &CommandError::ClusterDisabled)
}

/// CLUSTER KEYSLOT key
pub(super) fn cluster_keyslot(core: &mut Core, call: &Call<'_>) -> Flow {
    let slot = proto::slot::slot_of(call.arg(2));
    core.reply(call.index, |reply| reply.int(i64::from(slot)))
}

/// LOLWUT [VERSION version] [arguments ...]
pub(super) fn lolwut(core: &mut Core, call: &Call<'_>) -> Flow {
    if call.is(1, "VERSION") && call.len() > 2 && parse_i64(call.arg(2)).is_none() {
        return core.error(call.index, &CommandError::NotAnInteger);
    }
    let seed = core.random();
    let picture = pictures::draw(seed);
    core.reply(call.index, |reply| {
        reply.verbatim("txt", picture.as_bytes());
    })
}

/// MEMORY DOCTOR
pub(super) fn memory_doctor(core: &mut Core, call: &Call<'_>) -> Flow {
    let text = memory::diagnosis(core);
    core.reply(call.index, |reply| reply.verbatim("txt", text.as_bytes()))
}

/// MEMORY HELP
pub(super) fn memory_help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::MEMORY)
}

/// MEMORY MALLOC-STATS
pub(super) fn memory_malloc_stats(core: &mut Core, call: &Call<'_>) -> Flow {
    let text = memory::arenas(core);
    core.reply(call.index, |reply| reply.verbatim("txt", text.as_bytes()))
}

/// MEMORY STATS
pub(super) fn memory_stats(core: &mut Core, call: &Call<'_>) -> Flow {
    let stats = memory::stats(core);
    core.reply(call.index, |reply| memory::write_stats(&stats, reply))
}

/// OBJECT HELP
pub(super) fn object_help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::OBJECT)
}

/// XGROUP HELP
pub(super) fn xgroup_help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::XGROUP)
}

/// XINFO HELP
pub(super) fn xinfo_help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::XINFO)
}

/// ROLE
pub(super) fn role(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| {
        reply.array(3);
        reply.bulk(b"master");
        reply.int(0);
        reply.array(0);
    })
}

/// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]
pub(super) fn shutdown(core: &mut Core, call: &Call<'_>) -> Flow {
    let mut how = ShutdownHow::default();
    for at in 1..call.len() {
        let (save, nosave) = (call.is(at, "SAVE"), call.is(at, "NOSAVE"));
        if (save || nosave) && how.save.is_none_or(|before| before == save) {
            how.save = Some(save);
        } else if call.is(at, "NOW") {
            how.now = true;
        } else if call.is(at, "FORCE") {
            how.force = true;
        } else if call.is(at, "ABORT") {
            how.abort = true;
        } else {
            return core.error(call.index, &CommandError::Syntax);
        }
    }
    if how.abort && (how.save.is_some() || how.now || how.force) {
        return core.error(call.index, &CommandError::Syntax);
    }
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    core.ask_supervisor(call.index, Request::Shutdown(how))
}

/// TIME
pub(super) fn time(core: &mut Core, call: &Call<'_>) -> Flow {
    let micros = core.now.unix_micros;
    core.reply(call.index, |reply| {
        reply.array(2);
        reply.bulk((micros / 1_000_000).to_string().as_bytes());
        reply.bulk((micros % 1_000_000).to_string().as_bytes());
    })
}

/// WAIT replicas timeout
pub(super) fn wait(core: &mut Core, call: &Call<'_>) -> Flow {
    let Some(wanted) = parse_i64(call.arg(1)) else {
        return core.error(call.index, &CommandError::NotAnInteger);
    };
    let timeout = match parse_i64(call.arg(2)) {
        None => return core.error(call.index, &CommandError::TimeoutNotInteger),
        Some(timeout) if timeout < 0 => {
            return core.error(call.index, &CommandError::TimeoutNegative);
        }
        Some(timeout) => timeout.unsigned_abs(),
    };
    let now = core.now.unix_micros / 1000;
    if timeout > i64::MAX.unsigned_abs() - now {
        return core.error(call.index, &CommandError::TimeoutOutOfRange);
    }
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    // Inside of a transaction nothing waits.
    let is_inside = core
        .get(call.index)
        .is_some_and(|connection| connection.running.is_some());
    if wanted <= 0 || is_inside {
        return core.reply(call.index, |reply| reply.int(0));
    }
    // There are no replicas: the time passes (0: all time), and none of them has the writes.
    let at = (timeout > 0).then(|| core.now.millis.saturating_add(timeout));
    core.answer_at(call.index, at, b":0\r\n");
    if let Some(connection) = core.get_mut(call.index) {
        connection.wait = Wait::Replicas;
    }
    core.set_blocked(call.index, true);
    Flow::Stop
}
