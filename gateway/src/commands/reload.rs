//! DEBUG RELOAD: every key once through its serialized form.

use proto::CommandError;
use proto::catalogue::Merge;

use crate::call::Call;
use crate::core::{Core, Flow};
use crate::gather::Finish;
use crate::internal;

/// What may follow. Every worker replaces its keys one by one in memory, so these words, which say what
/// happens to a file and to the keys that are not in it, make no difference.
const OPTIONS: [&[u8]; 3] = [b"MERGE", b"NOFLUSH", b"NOSAVE"];

/// DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE]
pub(super) fn reload(core: &mut Core, call: &Call<'_>) -> Flow {
    let is_known = |word: &[u8]| OPTIONS.iter().any(|known| word.eq_ignore_ascii_case(known));
    if !(2..call.len()).all(|position| is_known(call.arg(position))) {
        return core.error(call.index, &CommandError::ReloadOptions);
    }
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    let finish = Finish::Join {
        merge: Merge::AllOk,
        order: Vec::new(),
    };
    core.send_to_all(call.index, internal::DEBUG_RELOAD, &[], finish)
}
