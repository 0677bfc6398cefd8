//! Internal commands: sent by the gateway, not callable by name; Redis has none of them.

/// Passes the rows gathered so far and internal ones on to `$with`: the last group.
#[doc(hidden)]
#[macro_export]
macro_rules! internal_rows {
    ($with:ident $($gathered:tt)*) => { $with! {
        $($gathered)*
        /// Debugging switches of every worker: SET-ACTIVE-EXPIRE, SLEEP.
        Debug          ("_debug", -2, ADMIN | INTERNAL, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(1)", NONE))
            => internal::debug;
        /// The line that DEBUG OBJECT answers with.
        DebugObject    ("_debugobject", 2, READONLY | INTERNAL, one(RO | ACCESS), Owner,
            docs(Server, "1.0.0", "O(1)", KEY))
            => internal::debug_object;
        /// Every key once through its serialized form and back: DEBUG RELOAD.
        DebugReload    ("_debugreload", 1, WRITE | ADMIN | INTERNAL, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(N) with N the size of all values", NONE))
            => dump::reload;
        /// What DEBUG LISTPACK, QUICKLIST and HTSTATS-KEY answer: word, key.
        DebugKey       ("_debugkey", 3, READONLY | INTERNAL, at(2, RO | ACCESS), Owner,
            docs(Server, "1.0.0", "O(1)", KEY))
            => debug::describe_key;
        /// The digest of each database: number and digest in turn.
        Digest         ("_digest", 1, READONLY | INTERNAL, none(), Every(Merge::Concat),
            docs(Server, "1.0.0", "O(N) with N the size of all values", NONE))
            => debug::digest;
        /// The digests of the values of some keys.
        DigestValue    ("_digestvalue", -2, READONLY | INTERNAL, all(RO | ACCESS), Owner,
            docs(Server, "1.0.0", "O(N) with N the size of the values", KEYS))
            => debug::digest_value;
        /// Creates the strings of DEBUG POPULATE whose slots are in the ranges given: count, prefix,
        /// size, and first and last slot of each range.
        Populate       ("_populate", -6, WRITE | DENYOOM | INTERNAL, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(N) with N the number of keys", NONE))
            => debug::populate;
        /// Several commands as one; see `frame::UnitItem`.
        Unit           ("_unit", -2, WRITE | DENYOOM | INTERNAL | BY_LOOP | SKIP_SLOWLOG, none(), Owner,
            docs(Transactions, "1.0.0", "That of the commands", NONE))
            => internal::by_loop;
        /// The same for commands that only read.
        UnitOfReads    ("_unitofreads", -2, READONLY | INTERNAL | BY_LOOP | SKIP_SLOWLOG, none(), Owner,
            docs(Transactions, "1.0.0", "That of the commands", NONE))
            => internal::by_loop;
        /// Watches keys for the connection.
        WatchKeys      ("_watch", -2, READONLY | INTERNAL | BY_LOOP | FAST, all(RO), Owner,
            docs(Transactions, "1.0.0", "O(N) with N the number of keys", KEYS))
            => internal::by_loop;
        /// The connection watches nothing any more; replies with its argument.
        UnwatchKeys    ("_unwatch", 2, READONLY | INTERNAL | BY_LOOP | FAST, none(), Owner,
            docs(Transactions, "1.0.0", "O(N) with N the number of keys", NONE))
            => internal::by_loop;
        /// Looks whether a library can be loaded, perhaps in the place of one of that name: code, 0 or 1.
        FunctionCheck  ("_functioncheck", 3, READONLY | INTERNAL, none(), Owner,
            docs(Scripting, "1.0.0", "O(N) with N the length of the code", NONE))
            => script::check_library;
        /// Reads what FUNCTION DUMP gave.
        FunctionRead   ("_functionread", 2, READONLY | INTERNAL, none(), Owner,
            docs(Scripting, "1.0.0", "O(N) with N the length of the code", NONE))
            => script::read_libraries;
        /// Looks whether a script compiles.
        ScriptCheck    ("_scriptcheck", 2, READONLY | INTERNAL, none(), Owner,
            docs(Scripting, "1.0.0", "O(N) with N the length of the script", NONE))
            => script::check;
    }};
}
