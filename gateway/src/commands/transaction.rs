//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use proto::CommandError;

use crate::call::Call;
use crate::core::{Core, Flow};

/// MULTI
pub(super) fn multi(core: &mut Core, call: &Call<'_>) -> Flow {
    core.open_transaction(call.index);
    core.ok(call.index)
}

/// EXEC
pub(super) fn exec(core: &mut Core, call: &Call<'_>) -> Flow {
    core.execute(call.index)
}

/// DISCARD
pub(super) fn discard(core: &mut Core, call: &Call<'_>) -> Flow {
    if core.is_in_multi(call.index) {
        core.unwatch_and_answer(call.index, b"+OK\r\n")
    } else {
        core.error(call.index, &CommandError::DiscardWithoutMulti)
    }
}

/// WATCH key ...
pub(super) fn watch(core: &mut Core, call: &Call<'_>) -> Flow {
    core.watch(call)
}

/// UNWATCH
pub(super) fn unwatch(core: &mut Core, call: &Call<'_>) -> Flow {
    core.unwatch_and_answer(call.index, b"+OK\r\n")
}
