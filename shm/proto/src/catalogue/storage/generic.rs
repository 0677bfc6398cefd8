//! Keys of any type: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{
    Argument, block, int, key, key_of, key_pattern, one_of, pattern, string, unix_time, word,
};

pub(super) const COPY: &[Argument] = &[
    key("source"),
    key_of(1, "destination"),
    int("destination-db").token("DB").optional(),
    word("REPLACE").optional(),
];

pub(super) const EXPIRE_IN_SECONDS: &[Argument] = &[
    key("key"),
    int("seconds"),
    one_of(
        "condition",
        &[word("NX"), word("XX"), word("GT"), word("LT")],
    )
    .since("7.0.0")
    .optional(),
];

pub(super) const EXPIRE_AT_SECONDS: &[Argument] = &[
    key("key"),
    unix_time("unix-time-seconds"),
    one_of(
        "condition",
        &[word("NX"), word("XX"), word("GT"), word("LT")],
    )
    .since("7.0.0")
    .optional(),
];

pub(super) const EXPIRE_IN_MILLIS: &[Argument] = &[
    key("key"),
    int("milliseconds"),
    one_of(
        "condition",
        &[word("NX"), word("XX"), word("GT"), word("LT")],
    )
    .since("7.0.0")
    .optional(),
];

pub(super) const EXPIRE_AT_MILLIS: &[Argument] = &[
    key("key"),
    unix_time("unix-time-milliseconds"),
    one_of(
        "condition",
        &[word("NX"), word("XX"), word("GT"), word("LT")],
    )
    .since("7.0.0")
    .optional(),
];

pub(super) const RESTORE: &[Argument] = &[
    key("key"),
    int("ttl"),
    string("serialized-value"),
    word("REPLACE").since("3.0.0").optional(),
    word("ABSTTL").since("5.0.0").optional(),
    int("seconds").token("IDLETIME").since("5.0.0").optional(),
    int("frequency").token("FREQ").since("5.0.0").optional(),
];

pub(super) const SCAN: &[Argument] = &[
    int("cursor"),
    pattern("pattern").token("MATCH").optional(),
    int("count").token("COUNT").optional(),
    string("type").token("TYPE").since("6.0.0").optional(),
];

pub(super) const SORT: &[Argument] = &[
    key("key"),
    key_pattern(1, "by-pattern")
        .display("pattern")
        .token("BY")
        .optional(),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .optional(),
    key_pattern(1, "get-pattern")
        .display("pattern")
        .token("GET")
        .optional()
        .multiple_token(),
    one_of("order", &[word("ASC"), word("DESC")]).optional(),
    word("ALPHA").named("sorting").optional(),
    key_of(2, "destination").token("STORE").optional(),
];

pub(super) const SORT_RO: &[Argument] = SORT.split_at(SORT.len() - 1).0;

/// Passes the rows gathered so far and those of keys of any type on.
#[doc(hidden)]
#[macro_export]
macro_rules! generic_rows {
    ($with:ident $($gathered:tt)*) => { $crate::list_rows! { $with
        $($gathered)*
        /// Copies a value to another key.
        Copy           ("copy", -3, WRITE | DENYOOM, from_to(RO | ACCESS, OW | UPDATE), Together,
            docs(Generic, "6.2.0", "O(N) with N the size of the value, O(1) for strings", generic::COPY))
            => keyspace::copy;
        /// Deletes keys.
        Del            ("del", -2, WRITE, all(RM | DELETE), Scatter(Merge::Sum),
            docs(Generic, "1.0.0", "O(N) with N the number of keys, and of elements in their collections", KEYS)
                .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]))
            => keyspace::del;
        /// Returns the value at a key in serialized form.
        Dump           ("dump", 2, READONLY, one(RO | ACCESS), Owner,
            docs(Generic, "2.6.0", "O(N) with N the size of the value", KEY).tips(&["nondeterministic_output"]))
            => dump::dump;
        /// Counts how many of the given keys exist.
        Exists         ("exists", -2, READONLY | FAST, all(RO), Scatter(Merge::Sum),
            docs(Generic, "1.0.0", "O(N) with N the number of keys", KEYS)
                .history(&[("3.0.3", "More than one key.")])
                .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]))
            => keyspace::exists;
        /// Lets a key expire after some seconds.
        Expire         ("expire", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "1.0.0", "O(1)", generic::EXPIRE_IN_SECONDS)
                .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
            => expire::expire;
        /// Lets a key expire at a time given in seconds since 1970.
        ExpireAt       ("expireat", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "1.2.0", "O(1)", generic::EXPIRE_AT_SECONDS)
                .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
            => expire::expireat;
        /// Returns when a key expires, in seconds since 1970.
        ExpireTime     ("expiretime", 2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Generic, "7.0.0", "O(1)", KEY))
            => expire::expiretime;
        /// Returns all keys that match a pattern.
        Keys           ("keys", 2, READONLY, none(), Every(Merge::Concat),
            docs(Generic, "1.0.0", "O(N) with N the number of keys in the database", &[pattern("pattern")])
                .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
                .categories(super::category::DANGEROUS | super::category::KEYSPACE))
            => keyspace::keys;
        /// Moves a key to another database.
        Move           ("move", 3, WRITE | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(Generic, "1.0.0", "O(1)", &[key("key"), int("db")]))
            => keyspace::move_key;
        /// Returns how a value is kept in memory.
        ObjectEncoding ("object|encoding", 3, READONLY, at(2, RO), Owner,
            docs(Generic, "2.2.3", "O(1)", KEY).tips(&["nondeterministic_output"]))
            => object::encoding;
        /// Returns how often a key is used, on a logarithmic scale.
        ObjectFreq     ("object|freq", 3, READONLY, at(2, RO), Owner,
            docs(Generic, "4.0.0", "O(1)", KEY).tips(&["nondeterministic_output"]))
            => object::freq;
        /// Returns how many seconds ago a key was used last.
        ObjectIdleTime ("object|idletime", 3, READONLY, at(2, RO), Owner,
            docs(Generic, "2.2.3", "O(1)", KEY).tips(&["nondeterministic_output"]))
            => object::idletime;
        /// Returns how many owners a value has.
        ObjectRefCount ("object|refcount", 3, READONLY, at(2, RO), Owner,
            docs(Generic, "2.2.3", "O(1)", KEY).tips(&["nondeterministic_output"]))
            => object::refcount;
        /// Removes the expiry of a key.
        Persist        ("persist", 2, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "2.2.0", "O(1)", KEY))
            => expire::persist;
        /// Lets a key expire after some milliseconds.
        PExpire        ("pexpire", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "2.6.0", "O(1)", generic::EXPIRE_IN_MILLIS).history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
            => expire::pexpire;
        /// Lets a key expire at a time given in milliseconds since 1970.
        PExpireAt      ("pexpireat", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "2.6.0", "O(1)", generic::EXPIRE_AT_MILLIS).history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
            => expire::pexpireat;
        /// Returns when a key expires, in milliseconds since 1970.
        PExpireTime    ("pexpiretime", 2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Generic, "7.0.0", "O(1)", KEY))
            => expire::pexpiretime;
        /// Returns how many milliseconds a key has left.
        PTtl           ("pttl", 2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Generic, "2.6.0", "O(1)", KEY).history(&[("2.8.0", "-2 for a missing key.")])
                .tips(&["nondeterministic_output"]))
            => expire::pttl;
        /// Returns a key chosen by chance.
        RandomKey      ("randomkey", 1, READONLY, none(), RandomWorker,
            docs(Generic, "1.0.0", "O(1)", NONE)
                .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"]))
            => keyspace::randomkey;
        /// Gives a value another key, replacing what that held.
        Rename         ("rename", 3, WRITE, from_to(RW | ACCESS | DELETE, OW | UPDATE), Together,
            docs(Generic, "1.0.0", "O(1)", &[key("key"), key_of(1, "newkey")]))
            => keyspace::rename;
        /// Gives a value another key if that does not exist.
        RenameNx       ("renamenx", 3, WRITE | FAST, from_to(RW | ACCESS | DELETE, OW | INSERT), Together,
            docs(Generic, "1.0.0", "O(1)", &[key("key"), key_of(1, "newkey")])
                .history(&[("3.2.0", "No error if both names are the same.")]))
            => keyspace::renamenx;
        /// Creates a key from the serialized form of a value.
        Restore        ("restore", -4, WRITE | DENYOOM, one(OW | UPDATE), Owner,
            docs(Generic, "2.6.0", "O(N) with N the size of the value, O(N*log(N)) for sorted sets", generic::RESTORE)
                .history(&[("3.0.0", "`REPLACE`."), ("5.0.0", "`ABSTTL`."), ("5.0.0", "`IDLETIME` and `FREQ`.")])
                .categories(super::category::KEYSPACE | super::category::DANGEROUS))
            => dump::restore;
        /// Creates a key from the serialized form of a value, for slots that are on the way.
        RestoreAsking  ("restore-asking", -4, WRITE | DENYOOM | ASKING, one(OW | UPDATE), Owner,
            docs(Server, "3.0.0", "O(N) with N the size of the value, O(N*log(N)) for sorted sets", generic::RESTORE)
                .history(&[("3.0.0", "`REPLACE`."), ("5.0.0", "`ABSTTL`."), ("5.0.0", "`IDLETIME` and `FREQ`.")])
                .categories(super::category::KEYSPACE | super::category::DANGEROUS)
                .system())
            => dump::restore;
        /// Walks through the keys of the database in steps.
        Scan           ("scan", -2, READONLY, none(), Cursor,
            docs(Generic, "2.8.0", "O(1) per call, O(N) for all N keys", generic::SCAN).history(&[("6.0.0", "`TYPE`.")])
                .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"]))
            => keyspace::scan;
        /// Sorts a list, a set or a sorted set, and stores the result if asked to.
        Sort           ("sort", -2, WRITE | DENYOOM | MOVABLEKEYS, sort(RO | ACCESS, Some(OW | UPDATE)), Together,
            docs(Generic, "1.0.0", "O(N+M*log(M)) with N the number of elements and M of those returned, O(N) if the order stays",
                generic::SORT)
                .categories(super::category::SET | super::category::SORTEDSET | super::category::LIST
                    | super::category::DANGEROUS))
            => sort::sort;
        /// Returns the elements of a list, a set or a sorted set in another order.
        SortRo         ("sort_ro", -2, READONLY | MOVABLEKEYS, sort(RO | ACCESS, None), Together,
            docs(Generic, "7.0.0", "O(N+M*log(M)) with N the number of elements and M of those returned, O(N) if the order stays",
                generic::SORT_RO)
                .categories(super::category::SET | super::category::SORTEDSET | super::category::LIST
                    | super::category::DANGEROUS))
            => sort::sort_ro;
        /// Marks keys as used and counts those that exist.
        Touch          ("touch", -2, READONLY | FAST, all(RO), Scatter(Merge::Sum),
            docs(Generic, "3.2.1", "O(N) with N the number of keys", KEYS)
                .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]))
            => keyspace::touch;
        /// Returns how many seconds a key has left.
        Ttl            ("ttl", 2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Generic, "1.0.0", "O(1)", KEY).history(&[("2.8.0", "-2 for a missing key.")])
                .tips(&["nondeterministic_output"]))
            => expire::ttl;
        /// Returns the type of the value at a key.
        Type           ("type", 2, READONLY | FAST, one(RO), Owner,
            docs(Generic, "1.0.0", "O(1)", KEY))
            => keyspace::type_of;
        /// Deletes keys at once and frees their memory later, in slices.
        Unlink         ("unlink", -2, WRITE | FAST, all(RM | DELETE), Scatter(Merge::Sum),
            docs(Generic, "4.0.0", "O(1) per key; O(N) for the N elements freed later", KEYS)
                .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]))
            => keyspace::unlink;
    }};
}
