//! Sorted sets: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{
    Argument, block, double, int, key, key_of, one_of, pattern, string, word,
};

pub(super) const BZMPOP: &[Argument] = &[
    double("timeout"),
    int("numkeys"),
    key("key").multiple(),
    one_of("where", &[word("MIN"), word("MAX")]),
    int("count").token("COUNT").optional(),
];

pub(super) const ZADD: &[Argument] = &[
    key("key"),
    one_of("condition", &[word("NX"), word("XX")])
        .since("3.0.2")
        .optional(),
    one_of("comparison", &[word("GT"), word("LT")])
        .since("6.2.0")
        .optional(),
    word("CH").named("change").since("3.0.2").optional(),
    word("INCR").named("increment").since("3.0.2").optional(),
    block("data", &[double("score"), string("member")]).multiple(),
];

pub(super) const ZDIFF: &[Argument] = &[
    int("numkeys"),
    key("key").multiple(),
    word("WITHSCORES").optional(),
];

pub(super) const ZDIFFSTORE: &[Argument] = &[
    key("destination"),
    int("numkeys"),
    key_of(1, "key").multiple(),
];

pub(super) const ZINTER: &[Argument] = &[
    int("numkeys"),
    key("key").multiple(),
    int("weight").token("WEIGHTS").optional().multiple(),
    one_of("aggregate", &[word("SUM"), word("MIN"), word("MAX")])
        .token("AGGREGATE")
        .optional(),
    word("WITHSCORES").optional(),
];

pub(super) const ZINTERCARD: &[Argument] = &[
    int("numkeys"),
    key("key").multiple(),
    int("limit").token("LIMIT").optional(),
];

pub(super) const ZINTERSTORE: &[Argument] = &[
    key("destination"),
    int("numkeys"),
    key_of(1, "key").multiple(),
    int("weight").token("WEIGHTS").optional().multiple(),
    one_of("aggregate", &[word("SUM"), word("MIN"), word("MAX")])
        .token("AGGREGATE")
        .optional(),
];

pub(super) const ZMPOP: &[Argument] = &[
    int("numkeys"),
    key("key").multiple(),
    one_of("where", &[word("MIN"), word("MAX")]),
    int("count").token("COUNT").optional(),
];

pub(super) const ZRANDMEMBER: &[Argument] = &[
    key("key"),
    block("options", &[int("count"), word("WITHSCORES").optional()]).optional(),
];

pub(super) const ZRANGE: &[Argument] = &[
    key("key"),
    string("start"),
    string("stop"),
    one_of("sortby", &[word("BYSCORE"), word("BYLEX")])
        .since("6.2.0")
        .optional(),
    word("REV").since("6.2.0").optional(),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .since("6.2.0")
        .optional(),
    word("WITHSCORES").optional(),
];

pub(super) const ZRANGEBYLEX: &[Argument] = &[
    key("key"),
    string("min"),
    string("max"),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .optional(),
];

pub(super) const ZRANGEBYSCORE: &[Argument] = &[
    key("key"),
    double("min"),
    double("max"),
    word("WITHSCORES").since("2.0.0").optional(),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .optional(),
];

pub(super) const ZRANGESTORE: &[Argument] = &[
    key("dst"),
    key_of(1, "src"),
    string("min"),
    string("max"),
    one_of("sortby", &[word("BYSCORE"), word("BYLEX")]).optional(),
    word("REV").optional(),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .optional(),
];

pub(super) const ZRANK: &[Argument] = &[key("key"), string("member"), word("WITHSCORE").optional()];

pub(super) const ZREVRANGE: &[Argument] = &[
    key("key"),
    int("start"),
    int("stop"),
    word("WITHSCORES").optional(),
];

pub(super) const ZREVRANGEBYLEX: &[Argument] = &[
    key("key"),
    string("max"),
    string("min"),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .optional(),
];

pub(super) const ZREVRANGEBYSCORE: &[Argument] = &[
    key("key"),
    double("max"),
    double("min"),
    word("WITHSCORES").optional(),
    block("limit", &[int("offset"), int("count")])
        .token("LIMIT")
        .optional(),
];

pub(super) const ZSCAN: &[Argument] = &[
    key("key"),
    int("cursor"),
    pattern("pattern").token("MATCH").optional(),
    int("count").token("COUNT").optional(),
];

/// Passes the rows gathered so far and those of sorted sets on.
#[doc(hidden)]
#[macro_export]
macro_rules! sorted_set_rows {
    ($with:ident $($gathered:tt)*) => { $crate::stream_rows! { $with
        $($gathered)*
        /// Takes the lowest or highest members of the first sorted set that has any, or waits for one.
        BZMPop         ("bzmpop", -5, WRITE | BLOCKING | MOVABLEKEYS, counted(2, RW | ACCESS | DELETE), Together,
            docs(SortedSet, "7.0.0", "O(K) + O(M*log(N)) for K keys and M members taken from N", sorted_set::BZMPOP))
            => sorted_set::bzmpop;
        /// Takes the member with the highest score of the first sorted set that has any, or waits for one.
        BZPopMax       ("bzpopmax", -3, WRITE | BLOCKING | FAST, all_but_last(RW | ACCESS | DELETE), Together,
            docs(SortedSet, "5.0.0", "O(log(N))", &[key("key").multiple(), double("timeout")])
                .history(&[("6.0.0", "`timeout` may be a fraction.")]))
            => sorted_set::bzpopmax;
        /// Takes the member with the lowest score of the first sorted set that has any, or waits for one.
        BZPopMin       ("bzpopmin", -3, WRITE | BLOCKING | FAST, all_but_last(RW | ACCESS | DELETE), Together,
            docs(SortedSet, "5.0.0", "O(log(N))", &[key("key").multiple(), double("timeout")])
                .history(&[("6.0.0", "`timeout` may be a fraction.")]))
            => sorted_set::bzpopmin;
        /// Adds members with scores to a sorted set, or gives those that are there new scores.
        ZAdd           ("zadd", -4, WRITE | DENYOOM | FAST, one(RW | UPDATE), Owner,
            docs(SortedSet, "1.2.0", "O(log(N)) per member", sorted_set::ZADD)
                .history(&[
                    ("2.4.0", "Several members at once."),
                    ("3.0.2", "`XX`, `NX`, `CH` and `INCR`."),
                    ("6.2.0", "`GT` and `LT`."),
                ]))
            => sorted_set::zadd;
        /// Returns how many members a sorted set has.
        ZCard          ("zcard", 2, READONLY | FAST, one(RO), Owner,
            docs(SortedSet, "1.2.0", "O(1)", KEY))
            => sorted_set::zcard;
        /// Counts the members of a sorted set whose scores lie in a range.
        ZCount         ("zcount", 4, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.0.0", "O(log(N))", &[key("key"), double("min"), double("max")]))
            => sorted_set::zcount;
        /// Returns the members of the first sorted set that none of the others has.
        ZDiff          ("zdiff", -3, READONLY | MOVABLEKEYS, counted(1, RO | ACCESS), Together,
            docs(SortedSet, "6.2.0", "O(L + K*log(K)) for L members in all sets and K in the result",
                sorted_set::ZDIFF))
            => sorted_set::zdiff;
        /// Stores the members of the first sorted set that none of the others has.
        ZDiffStore     ("zdiffstore", -4, WRITE | DENYOOM | MOVABLEKEYS, to_counted(OW | UPDATE, RO | ACCESS), Together,
            docs(SortedSet, "6.2.0", "O(L + K*log(K)) for L members in all sets and K in the result",
                sorted_set::ZDIFFSTORE))
            => sorted_set::zdiffstore;
        /// Adds to the score of a member of a sorted set.
        ZIncrBy        ("zincrby", 4, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(SortedSet, "1.2.0", "O(log(N))", &[key("key"), int("increment"), string("member")]))
            => sorted_set::zincrby;
        /// Returns the members that all of several sorted sets have.
        ZInter         ("zinter", -3, READONLY | MOVABLEKEYS, counted(1, RO | ACCESS), Together,
            docs(SortedSet, "6.2.0", "O(N*K + M*log(M)) for K sets, N members in the smallest and M in the result",
                sorted_set::ZINTER))
            => sorted_set::zinter;
        /// Counts the members that all of several sorted sets have.
        ZInterCard     ("zintercard", -3, READONLY | MOVABLEKEYS, counted(1, RO | ACCESS), Together,
            docs(SortedSet, "7.0.0", "O(N*K) for K sets and N members in the smallest", sorted_set::ZINTERCARD))
            => sorted_set::zintercard;
        /// Stores the members that all of several sorted sets have.
        ZInterStore    ("zinterstore", -4, WRITE | DENYOOM | MOVABLEKEYS, to_counted(OW | UPDATE, RO | ACCESS), Together,
            docs(SortedSet, "2.0.0", "O(N*K + M*log(M)) for K sets, N members in the smallest and M in the result",
                sorted_set::ZINTERSTORE))
            => sorted_set::zinterstore;
        /// Counts the members of a sorted set of equal scores whose names lie in a range.
        ZLexCount      ("zlexcount", 4, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.8.9", "O(log(N))", &[key("key"), string("min"), string("max")]))
            => sorted_set::zlexcount;
        /// Takes the lowest or highest members of the first sorted set that has any.
        ZMPop          ("zmpop", -4, WRITE | MOVABLEKEYS, counted(1, RW | ACCESS | DELETE), Together,
            docs(SortedSet, "7.0.0", "O(K) + O(M*log(N)) for K keys and M members taken from N", sorted_set::ZMPOP))
            => sorted_set::zmpop;
        /// Returns the scores of several members of a sorted set.
        ZMScore        ("zmscore", -3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(SortedSet, "6.2.0", "O(N) with N the number of members asked for",
                &[key("key"), string("member").multiple()]))
            => sorted_set::zmscore;
        /// Takes the members with the highest scores from a sorted set.
        ZPopMax        ("zpopmax", -2, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(SortedSet, "5.0.0", "O(M*log(N)) for M members taken from N", &[key("key"), int("count").optional()]))
            => sorted_set::zpopmax;
        /// Takes the members with the lowest scores from a sorted set.
        ZPopMin        ("zpopmin", -2, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(SortedSet, "5.0.0", "O(M*log(N)) for M members taken from N", &[key("key"), int("count").optional()]))
            => sorted_set::zpopmin;
        /// Returns members of a sorted set chosen by chance.
        ZRandMember    ("zrandmember", -2, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "6.2.0", "O(M*log(N)) for M members returned", sorted_set::ZRANDMEMBER)
                .tips(&["nondeterministic_output"]))
            => sorted_set::zrandmember;
        /// Returns the members of a sorted set in a range of ranks, scores or names.
        ZRange         ("zrange", -4, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "1.2.0", "O(log(N) + M) for M members returned", sorted_set::ZRANGE)
                .history(&[("6.2.0", "`REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")]))
            => sorted_set::zrange;
        /// Returns the members of a sorted set of equal scores whose names lie in a range.
        ZRangeByLex    ("zrangebylex", -4, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.8.9", "O(log(N) + M) for M members returned", sorted_set::ZRANGEBYLEX)
                .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument"))
            => sorted_set::zrangebylex;
        /// Returns the members of a sorted set whose scores lie in a range.
        ZRangeByScore  ("zrangebyscore", -4, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "1.0.5", "O(log(N) + M) for M members returned", sorted_set::ZRANGEBYSCORE)
                .history(&[("2.0.0", "`WITHSCORES`.")])
                .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument"))
            => sorted_set::zrangebyscore;
        /// Stores the members of a sorted set in a range of ranks, scores or names.
        ZRangeStore    ("zrangestore", -5, WRITE | DENYOOM, from_to(OW | UPDATE, RO | ACCESS), Together,
            docs(SortedSet, "6.2.0", "O(log(N) + M*log(M)) for M members stored", sorted_set::ZRANGESTORE))
            => sorted_set::zrangestore;
        /// Returns how many members of a sorted set stand before a member.
        ZRank          ("zrank", -3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.0.0", "O(log(N))", sorted_set::ZRANK).history(&[("7.2.0", "`WITHSCORE`.")]))
            => sorted_set::zrank;
        /// Removes members from a sorted set.
        ZRem           ("zrem", -3, WRITE | FAST, one(RW | DELETE), Owner,
            docs(SortedSet, "1.2.0", "O(M*log(N)) for M members removed", &[key("key"), string("member").multiple()])
                .history(&[("2.4.0", "Several members at once.")]))
            => sorted_set::zrem;
        /// Removes the members of a sorted set of equal scores whose names lie in a range.
        ZRemRangeByLex ("zremrangebylex", 4, WRITE, one(RW | DELETE), Owner,
            docs(SortedSet, "2.8.9", "O(M*log(N)) for M members removed", &[key("key"), string("min"), string("max")]))
            => sorted_set::zremrangebylex;
        /// Removes the members of a sorted set in a range of ranks.
        ZRemRangeByRank ("zremrangebyrank", 4, WRITE, one(RW | DELETE), Owner,
            docs(SortedSet, "2.0.0", "O(M*log(N)) for M members removed", &[key("key"), int("start"), int("stop")]))
            => sorted_set::zremrangebyrank;
        /// Removes the members of a sorted set whose scores lie in a range.
        ZRemRangeByScore ("zremrangebyscore", 4, WRITE, one(RW | DELETE), Owner,
            docs(SortedSet, "1.2.0", "O(M*log(N)) for M members removed", &[key("key"), double("min"), double("max")]))
            => sorted_set::zremrangebyscore;
        /// Returns the members of a sorted set in a range of ranks, counted from the highest score.
        ZRevRange      ("zrevrange", -4, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "1.2.0", "O(log(N) + M) for M members returned", sorted_set::ZREVRANGE)
                .deprecated("6.2.0", "`ZRANGE` with the `REV` argument"))
            => sorted_set::zrevrange;
        /// Returns the members of a sorted set of equal scores whose names lie in a range, downwards.
        ZRevRangeByLex ("zrevrangebylex", -4, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.8.9", "O(log(N) + M) for M members returned", sorted_set::ZREVRANGEBYLEX)
                .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"))
            => sorted_set::zrevrangebylex;
        /// Returns the members of a sorted set whose scores lie in a range, downwards.
        ZRevRangeByScore ("zrevrangebyscore", -4, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.2.0", "O(log(N) + M) for M members returned", sorted_set::ZREVRANGEBYSCORE)
                .history(&[("2.1.6", "Ends that are left out.")])
                .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"))
            => sorted_set::zrevrangebyscore;
        /// Returns how many members of a sorted set stand behind a member.
        ZRevRank       ("zrevrank", -3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.0.0", "O(log(N))", sorted_set::ZRANK).history(&[("7.2.0", "`WITHSCORE`.")]))
            => sorted_set::zrevrank;
        /// Walks through the members of a sorted set in steps.
        ZScan          ("zscan", -3, READONLY, one(RO | ACCESS), Owner,
            docs(SortedSet, "2.8.0", "O(1) per call, O(N) for all N members", sorted_set::ZSCAN)
                .tips(&["nondeterministic_output"]))
            => sorted_set::zscan;
        /// Returns the score of a member of a sorted set.
        ZScore         ("zscore", 3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(SortedSet, "1.2.0", "O(1)", &[key("key"), string("member")]))
            => sorted_set::zscore;
        /// Returns the members that any of several sorted sets has.
        ZUnion         ("zunion", -3, READONLY | MOVABLEKEYS, counted(1, RO | ACCESS), Together,
            docs(SortedSet, "6.2.0", "O(N + M*log(M)) for N members in all sets and M in the result",
                sorted_set::ZINTER))
            => sorted_set::zunion;
        /// Stores the members that any of several sorted sets has.
        ZUnionStore    ("zunionstore", -4, WRITE | DENYOOM | MOVABLEKEYS, to_counted(OW | UPDATE, RO | ACCESS), Together,
            docs(SortedSet, "2.0.0", "O(N + M*log(M)) for N members in all sets and M in the result",
                sorted_set::ZINTERSTORE))
            => sorted_set::zunionstore;
    }};
}
