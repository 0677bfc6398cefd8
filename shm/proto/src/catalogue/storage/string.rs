//! Strings: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{Argument, int, key, one_of, string, unix_time, word};

pub(super) const GETEX: &[Argument] = &[
    key("key"),
    one_of(
        "expiration",
        &[
            int("seconds").token("EX"),
            int("milliseconds").token("PX"),
            unix_time("unix-time-seconds").token("EXAT"),
            unix_time("unix-time-milliseconds").token("PXAT"),
            word("PERSIST"),
        ],
    )
    .optional(),
];

pub(super) const LCS: &[Argument] = &[
    key("key1"),
    key("key2"),
    word("LEN").optional(),
    word("IDX").optional(),
    int("min-match-len").token("MINMATCHLEN").optional(),
    word("WITHMATCHLEN").optional(),
];

pub(super) const SET: &[Argument] = &[
    key("key"),
    string("value"),
    one_of(
        "condition",
        &[
            word("NX"),
            word("XX"),
            string("comparison-value").token("IFEQ").since("8.1.0"),
        ],
    )
    .since("2.6.12")
    .optional(),
    word("GET").since("6.2.0").optional(),
    one_of(
        "expiration",
        &[
            int("seconds").token("EX").since("2.6.12"),
            int("milliseconds").token("PX").since("2.6.12"),
            unix_time("unix-time-seconds").token("EXAT").since("6.2.0"),
            unix_time("unix-time-milliseconds")
                .token("PXAT")
                .since("6.2.0"),
            word("KEEPTTL").since("6.0.0"),
        ],
    )
    .optional(),
];

/// Passes the rows gathered so far and those of strings on.
#[doc(hidden)]
#[macro_export]
macro_rules! string_rows {
    ($with:ident $($gathered:tt)*) => { $crate::bitmap_rows! { $with
        $($gathered)*
        /// Adds bytes to the end of a string, creating it if need be.
        Append         ("append", 3, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(String, "2.0.0", "O(1) amortised over a growing string", &[key("key"), string("value")]))
            => string::append;
        /// Subtracts one from an integer; a missing key counts as 0.
        Decr           ("decr", 2, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(String, "1.0.0", "O(1)", KEY))
            => string::decr;
        /// Subtracts a number from an integer; a missing key counts as 0.
        DecrBy         ("decrby", 3, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(String, "1.0.0", "O(1)", &[key("key"), int("decrement")]))
            => string::decrby;
        /// Deletes a key if its string equals a given one.
        DelIfEq        ("delifeq", 3, WRITE | FAST, one(RM | DELETE), Owner,
            docs(String, "9.0.0", "O(1)", &[key("key"), string("value")]))
            => string::delifeq;
        /// Returns the string stored at a key.
        Get            ("get", 2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(String, "1.0.0", "O(1)", KEY))
            => string::get;
        /// Returns a string and deletes its key.
        GetDel         ("getdel", 2, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(String, "6.2.0", "O(1)", KEY))
            => string::getdel;
        /// Returns a string and sets or removes its expiry.
        GetEx          ("getex", -2, WRITE | FAST, one(RW | ACCESS | UPDATE).notes("changes the expiry"), Owner,
            docs(String, "6.2.0", "O(1)", string::GETEX))
            => string::getex;
        /// Returns a part of a string.
        GetRange       ("getrange", 4, READONLY, one(RO | ACCESS), Owner,
            docs(String, "2.4.0", "O(N) with N the length of the returned part", &[key("key"), int("start"), int("end")]))
            => string::getrange;
        /// Stores a string and returns the one that was there.
        GetSet         ("getset", 3, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(String, "1.0.0", "O(1)", &[key("key"), string("value")])
                .deprecated("6.2.0", "`SET` with `GET`"))
            => string::getset;
        /// Adds one to an integer; a missing key counts as 0.
        Incr           ("incr", 2, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(String, "1.0.0", "O(1)", KEY))
            => string::incr;
        /// Adds a number to an integer; a missing key counts as 0.
        IncrBy         ("incrby", 3, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(String, "1.0.0", "O(1)", &[key("key"), int("increment")]))
            => string::incrby;
        /// Adds a floating point number to a number; a missing key counts as 0.
        IncrByFloat    ("incrbyfloat", 3, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(String, "2.6.0", "O(1)", &[key("key"), double("increment")]))
            => string::incrbyfloat;
        /// Finds the longest sequence of bytes that two strings have in common.
        Lcs            ("lcs", -3, READONLY, two(RO | ACCESS), Together,
            docs(String, "7.0.0", "O(N*M) with N and M the lengths of the strings", string::LCS))
            => string::lcs;
        /// Returns several strings at once.
        MGet           ("mget", -2, READONLY | FAST, all(RO | ACCESS), Scatter(Merge::Zip),
            docs(String, "1.0.0", "O(N) with N the number of keys", KEYS).tips(&["request_policy:multi_shard"]))
            => string::mget;
        /// Stores several strings at once.
        MSet           ("mset", -3, WRITE | DENYOOM, pairs(OW | UPDATE), Scatter(Merge::AllOk),
            docs(String, "1.0.1", "O(N) with N the number of keys", &[block("data", &[key("key"), string("value")]).multiple()])
                .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]))
            => string::mset;
        /// Stores several strings at once if none of the keys exists.
        MSetNx         ("msetnx", -3, WRITE | DENYOOM, pairs(OW | INSERT), Together,
            docs(String, "1.0.1", "O(N) with N the number of keys", &[block("data", &[key("key"), string("value")]).multiple()]))
            => string::msetnx;
        /// Stores a string that expires after some milliseconds.
        PSetEx         ("psetex", 4, WRITE | DENYOOM, one(OW | UPDATE), Owner,
            docs(String, "2.6.0", "O(1)", &[key("key"), int("milliseconds"), string("value")])
                .deprecated("2.6.12", "`SET` with `PX`"))
            => string::psetex;
        /// Stores a string, whatever the key held before.
        Set            ("set", -3, WRITE | DENYOOM | VARIABLE_ACCESS, one(RW | ACCESS | UPDATE | VARIABLE_FLAGS).notes("returns the old value with `GET`"), Owner,
            docs(String, "1.0.0", "O(1)", string::SET)
                .history(&[("2.6.12", "`EX`, `PX`, `NX` and `XX`."), ("6.0.0", "`KEEPTTL`."), ("6.2.0", "`GET`, `EXAT` and `PXAT`."), ("7.0.0", "`NX` together with `GET`."), ("8.1.0", "`IFEQ`, as in Valkey.")]))
            => string::set;
        /// Stores a string that expires after some seconds.
        SetEx          ("setex", 4, WRITE | DENYOOM, one(OW | UPDATE), Owner,
            docs(String, "2.0.0", "O(1)", &[key("key"), int("seconds"), string("value")])
                .deprecated("2.6.12", "`SET` with `EX`"))
            => string::setex;
        /// Stores a string if the key does not exist.
        SetNx          ("setnx", 3, WRITE | DENYOOM | FAST, one(OW | INSERT), Owner,
            docs(String, "1.0.0", "O(1)", &[key("key"), string("value")])
                .deprecated("2.6.12", "`SET` with `NX`"))
            => string::setnx;
        /// Overwrites a part of a string, filling gaps with zero bytes.
        SetRange       ("setrange", 4, WRITE | DENYOOM, one(RW | UPDATE), Owner,
            docs(String, "2.2.0", "O(N) with N the length of the new part", &[key("key"), int("offset"), string("value")]))
            => string::setrange;
        /// Returns the length of a string.
        StrLen         ("strlen", 2, READONLY | FAST, one(RO), Owner,
            docs(String, "2.2.0", "O(1)", KEY))
            => string::strlen;
        /// Returns a part of a string.
        SubStr         ("substr", 4, READONLY, one(RO | ACCESS), Owner,
            docs(String, "1.0.0", "O(N) with N the length of the returned part", &[key("key"), int("start"), int("end")])
                .deprecated("2.0.0", "`GETRANGE`"))
            => string::substr;
    }};
}
