//! Databases and memory: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{Argument, one_of, word};

pub(super) const FLUSH: &[Argument] = &[one_of(
    "flush-type",
    &[word("ASYNC").since("4.0.0"), word("SYNC").since("6.2.0")],
)
.optional()];

/// Passes the rows gathered so far and those of databases and memory on.
#[doc(hidden)]
#[macro_export]
macro_rules! server_rows {
    ($with:ident $($gathered:tt)*) => { $crate::scripting_rows! { $with
        $($gathered)*
        /// Returns the number of keys in the database.
        DbSize         ("dbsize", 1, READONLY | FAST, none(), Every(Merge::Sum),
            docs(Server, "1.0.0", "O(1)", NONE).tips(&["request_policy:all_shards", "response_policy:agg_sum"])
                .categories(super::category::KEYSPACE))
            => server::dbsize;
        /// Deletes all keys of all databases.
        FlushAll       ("flushall", -1, WRITE, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(N) with N the number of keys", server::FLUSH)
                .history(&[("4.0.0", "`ASYNC`."), ("6.2.0", "`SYNC`.")])
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .categories(super::category::DANGEROUS | super::category::KEYSPACE))
            => server::flushall;
        /// Deletes all keys of the database.
        FlushDb        ("flushdb", -1, WRITE, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(N) with N the number of keys", server::FLUSH)
                .history(&[("4.0.0", "`ASYNC`."), ("6.2.0", "`SYNC`.")])
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .categories(super::category::DANGEROUS | super::category::KEYSPACE))
            => server::flushdb;
        /// Gives unused memory back to the operating system.
        MemoryPurge    ("memory|purge", 2, 0, none(), Every(Merge::AllOk),
            docs(Server, "4.0.0", "Depends on how much memory is kept", NONE)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]))
            => server::memory_purge;
        /// Returns how many bytes a key and its value take.
        MemoryUsage    ("memory|usage", -3, READONLY, at(2, RO), Owner,
            docs(Server, "4.0.0", "O(N) with N the number of samples", &[key("key"), int("count").token("SAMPLES").optional()]))
            => object::memory_usage;
        /// Exchanges two databases.
        SwapDb         ("swapdb", 3, WRITE | FAST, none(), Every(Merge::AllOk),
            docs(Server, "4.0.0", "O(N) with N the number of clients that watch or wait for keys of both", &[int("index1"), int("index2")])
                .categories(super::category::KEYSPACE | super::category::DANGEROUS))
            => server::swapdb;
    }};
}
