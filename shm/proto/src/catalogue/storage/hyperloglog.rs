//! HyperLogLogs, kept in strings: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of HyperLogLogs on.
#[doc(hidden)]
#[macro_export]
macro_rules! hyperloglog_rows {
    ($with:ident $($gathered:tt)*) => { $crate::server_rows! { $with
        $($gathered)*
        /// Adds elements to a HyperLogLog, creating it if need be.
        PfAdd          ("pfadd", -2, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(HyperLogLog, "2.8.9", "O(1) per element", &[key("key"), string("element").optional().multiple()]))
            => hyperloglog::pfadd;
        /// Estimates how many different elements one or several HyperLogLogs have seen.
        PfCount        ("pfcount", -2, READONLY | MAY_REPLICATE, all(RW | ACCESS).notes("RW because it may change the internal representation of the key, and propagate to replicas"), Together,
            docs(HyperLogLog, "2.8.9", "O(1) for one key, with a small factor while the count is remembered; O(N) for N keys, with a large one", KEYS))
            => hyperloglog::pfcount;
        /// Shows or changes how a HyperLogLog is kept.
        PfDebug        ("pfdebug", 3, WRITE | DENYOOM | ADMIN, at(2, RW | ACCESS), Owner,
            docs(HyperLogLog, "2.8.9", "N/A", &[string("subcommand"), key("key")]).system())
            => hyperloglog::pfdebug;
        /// Merges HyperLogLogs into one.
        PfMerge        ("pfmerge", -2, WRITE | DENYOOM, to_from_rest(1, RW | ACCESS | INSERT, RO | ACCESS), Together,
            docs(HyperLogLog, "2.8.9", "O(N) for N keys, with a large factor", &[key("destkey"), key_of(1, "sourcekey").optional().multiple()]))
            => hyperloglog::pfmerge;
        /// Tests the arithmetic of HyperLogLogs.
        PfSelfTest     ("pfselftest", 1, ADMIN, none(), Every(Merge::First),
            docs(HyperLogLog, "2.8.9", "N/A", NONE).system())
            => hyperloglog::pfselftest;
    }};
}
