//! Streams: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{Argument, block, int, key, one_of, string, unix_time, word};

/// How XADD and XTRIM say what goes.
const STRATEGY: Argument = one_of("strategy", &[word("MAXLEN"), word("MINID").since("6.2.0")]);

const OPERATOR: Argument = one_of(
    "operator",
    &[word("=").named("equal"), word("~").named("approximately")],
)
.optional();

const TRIM: &[Argument] = &[
    STRATEGY,
    OPERATOR,
    string("threshold"),
    int("count").token("LIMIT").since("6.2.0").optional(),
];

pub(super) const XADD: &[Argument] = &[
    key("key"),
    word("NOMKSTREAM").since("6.2.0").optional(),
    block("trim", TRIM).optional(),
    one_of("id-selector", &[word("*").named("auto-id"), string("id")]),
    block("data", &[string("field"), string("value")]).multiple(),
];

pub(super) const XTRIM: &[Argument] = &[key("key"), block("trim", TRIM)];

const STREAMS: Argument =
    block("streams", &[key("key").multiple(), string("id").multiple()]).token("STREAMS");

pub(super) const XREAD: &[Argument] = &[
    int("count").token("COUNT").optional(),
    int("milliseconds").token("BLOCK").optional(),
    STREAMS,
];

pub(super) const XREADGROUP: &[Argument] = &[
    block("group-block", &[string("group"), string("consumer")]).token("GROUP"),
    int("count").token("COUNT").optional(),
    int("milliseconds").token("BLOCK").optional(),
    word("NOACK").optional(),
    STREAMS,
];

pub(super) const XSETID: &[Argument] = &[
    key("key"),
    string("last-id"),
    int("entries-added")
        .token("ENTRIESADDED")
        .since("7.0.0")
        .optional(),
    string("max-deleted-id")
        .token("MAXDELETEDID")
        .since("7.0.0")
        .optional(),
];

const GROUP_ID: Argument = one_of("id-selector", &[string("id"), word("$").named("new-id")]);

const ENTRIES_READ: Argument = int("entriesread")
    .display("entries-read")
    .token("ENTRIESREAD")
    .optional();

pub(super) const XGROUP_CREATE: &[Argument] = &[
    key("key"),
    string("group"),
    GROUP_ID,
    word("MKSTREAM").optional(),
    ENTRIES_READ,
];

pub(super) const XGROUP_SETID: &[Argument] = &[key("key"), string("group"), GROUP_ID, ENTRIES_READ];

pub(super) const XPENDING: &[Argument] = &[
    key("key"),
    string("group"),
    block(
        "filters",
        &[
            int("min-idle-time").token("IDLE").since("6.2.0").optional(),
            string("start"),
            string("end"),
            int("count"),
            string("consumer").optional(),
        ],
    )
    .optional(),
];

pub(super) const XCLAIM: &[Argument] = &[
    key("key"),
    string("group"),
    string("consumer"),
    string("min-idle-time"),
    string("id").multiple(),
    int("ms").token("IDLE").optional(),
    unix_time("unix-time-milliseconds").token("TIME").optional(),
    int("count").token("RETRYCOUNT").optional(),
    word("FORCE").optional(),
    word("JUSTID").optional(),
    string("lastid").token("LASTID").optional(),
];

pub(super) const XAUTOCLAIM: &[Argument] = &[
    key("key"),
    string("group"),
    string("consumer"),
    string("min-idle-time"),
    string("start"),
    int("count").token("COUNT").optional(),
    word("JUSTID").optional(),
];

pub(super) const XINFO_STREAM: &[Argument] = &[
    key("key"),
    block(
        "full-block",
        &[word("FULL"), int("count").token("COUNT").optional()],
    )
    .optional(),
];

/// Passes the rows gathered so far and those of streams on.
#[doc(hidden)]
#[macro_export]
macro_rules! stream_rows {
    ($with:ident $($gathered:tt)*) => { $crate::geo_rows! { $with
        $($gathered)*
        /// Acknowledges entries: they are not pending any more.
        XAck           ("xack", -4, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Stream, "5.0.0", "O(log N) per id with N the number of pending entries", &[key("key"), string("group"), string("id").multiple()]))
            => stream::xack;
        /// Adds an entry to a stream, which is created if need be.
        XAdd           ("xadd", -5, WRITE | DENYOOM | FAST, one(RW | UPDATE).notes("may trim, too"), Owner,
            docs(Stream, "5.0.0", "O(1) for the entry, O(N) for trimming N entries", stream::XADD)
                .history(&[("6.2.0", "`NOMKSTREAM`, `MINID` and `LIMIT`."), ("7.0.0", "Ids of the form `<ms>-*`.")])
                .tips(&["nondeterministic_output"]))
            => stream::xadd;
        /// Gives pending entries that were idle for long to another consumer.
        XAutoClaim     ("xautoclaim", -6, WRITE | FAST, one(RW | DELETE), Owner,
            docs(Stream, "6.2.0", "O(N) with N the number of entries looked at, ten times COUNT at most", stream::XAUTOCLAIM)
                .history(&[("7.0.0", "The ids of deleted entries that were pending are returned, too.")])
                .tips(&["nondeterministic_output"]))
            => stream::xautoclaim;
        /// Gives pending entries to another consumer.
        XClaim         ("xclaim", -6, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Stream, "5.0.0", "O(log N) per id with N the number of pending entries", stream::XCLAIM)
                .tips(&["nondeterministic_output"]))
            => stream::xclaim;
        /// Deletes entries of a stream.
        XDel           ("xdel", -3, WRITE | FAST, one(RW | DELETE), Owner,
            docs(Stream, "5.0.0", "O(log N) per id with N the number of nodes", &[key("key"), string("id").multiple()]))
            => stream::xdel;
        /// Creates a group of consumers.
        XGroupCreate   ("xgroup|create", -5, WRITE | DENYOOM, at(2, RW | INSERT), Owner,
            docs(Stream, "5.0.0", "O(1)", stream::XGROUP_CREATE)
                .history(&[("7.0.0", "`ENTRIESREAD`.")]))
            => stream::xgroup_create;
        /// Creates a consumer of a group.
        XGroupCreateConsumer("xgroup|createconsumer", 5, WRITE | DENYOOM, at(2, RW | INSERT), Owner,
            docs(Stream, "6.2.0", "O(1)", &[key("key"), string("group"), string("consumer")]))
            => stream::xgroup_createconsumer;
        /// Removes a consumer of a group, and what is pending for it.
        XGroupDelConsumer("xgroup|delconsumer", 5, WRITE, at(2, RW | DELETE), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of its pending entries", &[key("key"), string("group"), string("consumer")]))
            => stream::xgroup_delconsumer;
        /// Removes a group of consumers.
        XGroupDestroy  ("xgroup|destroy", 4, WRITE, at(2, RW | DELETE), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of its pending entries", &[key("key"), string("group")]))
            => stream::xgroup_destroy;
        /// Sets up to which entry a group has been served.
        XGroupSetId    ("xgroup|setid", -5, WRITE, at(2, RW | UPDATE), Owner,
            docs(Stream, "5.0.0", "O(1)", stream::XGROUP_SETID)
                .history(&[("7.0.0", "`ENTRIESREAD`.")]))
            => stream::xgroup_setid;
        /// Lists the consumers of a group.
        XInfoConsumers ("xinfo|consumers", 4, READONLY, at(2, RO | ACCESS), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of consumers", &[key("key"), string("group")])
                .history(&[("7.2.0", "`inactive`; `idle` counts from the last attempt.")])
                .tips(&["nondeterministic_output"]))
            => stream::xinfo_consumers;
        /// Lists the groups of a stream.
        XInfoGroups    ("xinfo|groups", 3, READONLY, at(2, RO | ACCESS), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of groups", KEY)
                .history(&[("7.0.0", "`entries-read` and `lag`.")]))
            => stream::xinfo_groups;
        /// Describes a stream.
        XInfoStream    ("xinfo|stream", -3, READONLY, at(2, RO | ACCESS), Owner,
            docs(Stream, "5.0.0", "O(1); with FULL, O(N) with N the number of things shown", stream::XINFO_STREAM)
                .history(&[("6.0.0", "`FULL`."), ("7.0.0", "`max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag`."), ("7.2.0", "`active-time`; `seen-time` is that of the last attempt.")]))
            => stream::xinfo_stream;
        /// Counts the entries of a stream.
        XLen           ("xlen", 2, READONLY | FAST, one(RO), Owner,
            docs(Stream, "5.0.0", "O(1)", KEY))
            => stream::xlen;
        /// Lists what is pending in a group.
        XPending       ("xpending", -3, READONLY, one(RO | ACCESS), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of pending entries looked at; without a range, of consumers", stream::XPENDING)
                .history(&[("6.2.0", "`IDLE` and exclusive ranges.")])
                .tips(&["nondeterministic_output"]))
            => stream::xpending;
        /// Returns the entries of a range of ids.
        XRange         ("xrange", -4, READONLY, one(RO | ACCESS), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of entries returned", &[key("key"), string("start"), string("end"), int("count").token("COUNT").optional()])
                .history(&[("6.2.0", "Exclusive ranges.")]))
            => stream::xrange;
        /// Returns the entries behind the given ids, waiting for some if told so.
        XRead          ("xread", -4, READONLY | BLOCKING | MOVABLEKEYS, streams(1, RO | ACCESS), Together,
            docs(Stream, "5.0.0", "", stream::XREAD))
            => stream::xread;
        /// Returns entries that are new to a group, or pending for a consumer, waiting for some if told so.
        XReadGroup     ("xreadgroup", -7, WRITE | BLOCKING | MOVABLEKEYS, streams(4, RO | ACCESS), Together,
            docs(Stream, "5.0.0", "O(N) with N the number of entries returned", stream::XREADGROUP))
            => stream::xreadgroup;
        /// Returns the entries of a range of ids, the last one first.
        XRevRange      ("xrevrange", -4, READONLY, one(RO | ACCESS), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of entries returned", &[key("key"), string("end"), string("start"), int("count").token("COUNT").optional()])
                .history(&[("6.2.0", "Exclusive ranges.")]))
            => stream::xrevrange;
        /// Sets the last id of a stream and what is counted about it.
        XSetId         ("xsetid", -3, WRITE | DENYOOM | FAST, one(RW | UPDATE), Owner,
            docs(Stream, "5.0.0", "O(1)", stream::XSETID)
                .history(&[("7.0.0", "`ENTRIESADDED` and `MAXDELETEDID`.")]))
            => stream::xsetid;
        /// Removes the oldest entries of a stream.
        XTrim          ("xtrim", -4, WRITE, one(RW | DELETE), Owner,
            docs(Stream, "5.0.0", "O(N) with N the number of entries removed, little for each", stream::XTRIM)
                .history(&[("6.2.0", "`MINID` and `LIMIT`.")])
                .tips(&["nondeterministic_output"]))
            => stream::xtrim;
    }};
}
