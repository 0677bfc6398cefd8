//! Scripts: a row per command, and the trees of their arguments. What manages scripts runs in the gateway.

use crate::catalogue::arguments::{Argument, int, key, string};

const fn call(of: &'static str) -> [Argument; 4] {
    [
        string(of),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ]
}

pub(super) const EVAL: &[Argument] = &call("script");
pub(super) const FCALL: &[Argument] = &call("function");
pub(super) const EVALSHA: &[Argument] = &call("sha1");

/// Why the access to their keys is what it is.
pub(super) const WRITES: &str =
    "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE";
pub(super) const READS: &str =
    "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS";

/// Passes the rows gathered so far and those of scripts on.
#[doc(hidden)]
#[macro_export]
macro_rules! scripting_rows {
    ($with:ident $($gathered:tt)*) => { $crate::internal_rows! { $with
        $($gathered)*
        /// Runs a script.
        Eval           ("eval", -3, NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS | SCRIPT,
            counted(2, RW | ACCESS | UPDATE).notes(scripting::WRITES), Script,
            docs(Scripting, "2.6.0", "That of the script", scripting::EVAL))
            => script::eval;
        /// Runs a script that must not write.
        EvalRo         ("eval_ro", -3, READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS | SCRIPT,
            counted(2, RO | ACCESS).notes(scripting::READS), Script,
            docs(Scripting, "7.0.0", "That of the script", scripting::EVAL))
            => script::eval_ro;
        /// Runs a script that is known, by its SHA1.
        EvalSha        ("evalsha", -3, NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS | SCRIPT,
            counted(2, RW | ACCESS | UPDATE), Script,
            docs(Scripting, "2.6.0", "That of the script", scripting::EVALSHA))
            => script::evalsha;
        /// Runs a script that is known and must not write.
        EvalShaRo      ("evalsha_ro", -3, READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS | SCRIPT,
            counted(2, RO | ACCESS), Script,
            docs(Scripting, "7.0.0", "That of the script", scripting::EVALSHA))
            => script::evalsha_ro;
        /// Calls a function.
        FCall          ("fcall", -3, NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS | SCRIPT,
            counted(2, RW | ACCESS | UPDATE).notes(scripting::WRITES), Script,
            docs(Scripting, "7.0.0", "That of the function", scripting::FCALL))
            => script::fcall;
        /// Calls a function that must not write.
        FCallRo        ("fcall_ro", -3, READONLY | NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLEKEYS | SCRIPT,
            counted(2, RO | ACCESS).notes(scripting::READS), Script,
            docs(Scripting, "7.0.0", "That of the function", scripting::FCALL))
            => script::fcall_ro;
        /// Returns all libraries as bytes.
        FunctionDump   ("function|dump", 2, NOSCRIPT, none(), Every(Merge::First),
            docs(Scripting, "7.0.0", "O(N) with N the number of libraries", NONE))
            => script::dump;
    }};
}
