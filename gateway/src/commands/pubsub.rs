//! Commands about channels: their kinds of names. What they do is in `pubsub`.

use proto::CommandError;
use proto::frame::{Question, Space};

use super::help;
use crate::call::Call;
use crate::core::{Core, Flow};

/// SUBSCRIBE channel ...
pub(super) fn subscribe(core: &mut Core, call: &Call<'_>) -> Flow {
    core.subscribe(call, Space::Channel)
}

/// PSUBSCRIBE pattern ...
pub(super) fn psubscribe(core: &mut Core, call: &Call<'_>) -> Flow {
    core.subscribe(call, Space::Pattern)
}

/// SSUBSCRIBE channel ...
pub(super) fn ssubscribe(core: &mut Core, call: &Call<'_>) -> Flow {
    core.subscribe(call, Space::Shard)
}

/// UNSUBSCRIBE [channel ...]
pub(super) fn unsubscribe(core: &mut Core, call: &Call<'_>) -> Flow {
    core.unsubscribe(call, Space::Channel)
}

/// PUNSUBSCRIBE [pattern ...]
pub(super) fn punsubscribe(core: &mut Core, call: &Call<'_>) -> Flow {
    core.unsubscribe(call, Space::Pattern)
}

/// SUNSUBSCRIBE [channel ...]
pub(super) fn sunsubscribe(core: &mut Core, call: &Call<'_>) -> Flow {
    core.unsubscribe(call, Space::Shard)
}

/// PUBLISH channel message
pub(super) fn publish(core: &mut Core, call: &Call<'_>) -> Flow {
    core.publish(call, Space::Channel)
}

/// SPUBLISH channel message
pub(super) fn spublish(core: &mut Core, call: &Call<'_>) -> Flow {
    core.publish(call, Space::Shard)
}

/// PUBSUB CHANNELS [pattern]
pub(super) fn channels(core: &mut Core, call: &Call<'_>) -> Flow {
    names(core, call, Space::Channel)
}

/// PUBSUB SHARDCHANNELS [pattern]
pub(super) fn shardchannels(core: &mut Core, call: &Call<'_>) -> Flow {
    names(core, call, Space::Shard)
}

fn names(core: &mut Core, call: &Call<'_>, space: Space) -> Flow {
    if call.len() > 3 {
        let error = CommandError::SubcommandSyntax {
            name: "pubsub",
            subcommand: call.arg(1).into(),
        };
        return core.error(call.index, &error);
    }
    core.ask_broker(call, space, Question::Names)
}

/// PUBSUB NUMSUB [channel ...]
pub(super) fn numsub(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ask_broker(call, Space::Channel, Question::Counts)
}

/// PUBSUB SHARDNUMSUB [channel ...]
pub(super) fn shardnumsub(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ask_broker(call, Space::Shard, Question::Counts)
}

/// PUBSUB NUMPAT
pub(super) fn numpat(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ask_broker(call, Space::Pattern, Question::Patterns)
}

/// PUBSUB HELP
pub(super) fn help(core: &mut Core, call: &Call<'_>) -> Flow {
    help::answer(core, call, help::PUBSUB)
}
