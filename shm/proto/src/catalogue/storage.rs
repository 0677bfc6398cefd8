//! Commands that a storage worker executes. One row each; see `catalogue` for how rows are used.
//!
//! ```text
//!   id   ("name", arity, flags, keys, route,
//!       docs(group, since, complexity, arguments) .history(..) .tips(..) .deprecated(..) .categories(..))
//!       => path of the function in `storage-worker/src/commands`
//! ```
//!
//! Facts (arity, flags, key positions, versions, groups, argument trees) are those of Redis 8.0.6;
//! texts are ours. Different on purpose: `SET` has Valkey's `IFEQ` and `DELIFEQ` exists; `MEMORY
//! USAGE` and friends are split between the tables by where they run.

use super::arguments::*;
use super::command_table;
use super::flags::access::*;
use super::flags::flag::*;
use super::keys::*;
use super::route::Route::*;
use super::route::{Merge, StepKind};
use super::spec::Group::*;
use super::spec::{CommandRef, Details, Row, Spec, docs, row};

/// Hands all rows to the macro `$with`, which sees
/// `$( $(#[doc = $summary:literal])+ $id:ident $columns:tt => $handler:path; )*`.
#[macro_export]
macro_rules! storage_commands {
    ($with:ident) => { $with! {
        // --- strings
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
            docs(String, "6.2.0", "O(1)", GETEX))
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
        Lcs            ("lcs", -3, READONLY, two(RO | ACCESS), Steps(StepKind::Lcs),
            docs(String, "7.0.0", "O(N*M) with N and M the lengths of the strings", LCS))
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
        MSetNx         ("msetnx", -3, WRITE | DENYOOM, pairs(OW | INSERT), Steps(StepKind::MSetNx),
            docs(String, "1.0.1", "O(N) with N the number of keys", &[block("data", &[key("key"), string("value")]).multiple()]))
            => string::msetnx;
        /// Stores a string that expires after some milliseconds.
        PSetEx         ("psetex", 4, WRITE | DENYOOM, one(OW | UPDATE), Owner,
            docs(String, "2.6.0", "O(1)", &[key("key"), int("milliseconds"), string("value")])
                .deprecated("2.6.12", "`SET` with `PX`"))
            => string::psetex;
        /// Stores a string, whatever the key held before.
        Set            ("set", -3, WRITE | DENYOOM | VARIABLE_ACCESS, one(RW | ACCESS | UPDATE | VARIABLE_FLAGS).notes("returns the old value with `GET`"), Owner,
            docs(String, "1.0.0", "O(1)", SET)
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

        // --- bitmaps
        /// Counts the bits that are set in a string.
        BitCount       ("bitcount", -2, READONLY, one(RO | ACCESS), Owner,
            docs(Bitmap, "2.6.0", "O(N)", BITCOUNT).history(&[("7.0.0", "`BYTE` and `BIT`.")]))
            => bitmap::bitcount;
        /// Reads and changes integers of any width inside a string.
        BitField       ("bitfield", -2, WRITE | DENYOOM | VARIABLE_ACCESS, one(RW | ACCESS | UPDATE | VARIABLE_FLAGS).notes("reads and changes"), Owner,
            docs(Bitmap, "3.2.0", "O(1) per operation", BITFIELD))
            => bitmap::bitfield;
        /// Reads integers of any width inside a string.
        BitFieldRo     ("bitfield_ro", -2, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Bitmap, "6.0.0", "O(1) per operation", BITFIELD_RO))
            => bitmap::bitfield_ro;
        /// Combines the bits of several strings and stores the result.
        BitOp          ("bitop", -4, WRITE | DENYOOM, to_from_rest(2, OW | UPDATE, RO | ACCESS), Steps(StepKind::BitOp),
            docs(Bitmap, "2.6.0", "O(N)", BITOP))
            => bitmap::bitop;
        /// Finds the first bit that is set, or clear, in a string.
        BitPos         ("bitpos", -3, READONLY, one(RO | ACCESS), Owner,
            docs(Bitmap, "2.8.7", "O(N)", BITPOS).history(&[("7.0.0", "`BYTE` and `BIT`.")]))
            => bitmap::bitpos;
        /// Returns one bit of a string.
        GetBit         ("getbit", 3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Bitmap, "2.2.0", "O(1)", &[key("key"), int("offset")]))
            => bitmap::getbit;
        /// Sets or clears one bit of a string, which grows as needed.
        SetBit         ("setbit", 4, WRITE | DENYOOM, one(RW | ACCESS | UPDATE), Owner,
            docs(Bitmap, "2.2.0", "O(1)", &[key("key"), int("offset"), int("value")]))
            => bitmap::setbit;

        // --- keys of any type
        /// Copies a value to another key.
        Copy           ("copy", -3, WRITE | DENYOOM, from_to(RO | ACCESS, OW | UPDATE), Steps(StepKind::Copy),
            docs(Generic, "6.2.0", "O(N) with N the size of the value, O(1) for strings", COPY))
            => keyspace::copy;
        /// Deletes keys.
        Del            ("del", -2, WRITE, all(RM | DELETE), Scatter(Merge::Sum),
            docs(Generic, "1.0.0", "O(N) with N the number of keys, and of elements in their collections", KEYS)
                .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]))
            => keyspace::del;
        /// Counts how many of the given keys exist.
        Exists         ("exists", -2, READONLY | FAST, all(RO), Scatter(Merge::Sum),
            docs(Generic, "1.0.0", "O(N) with N the number of keys", KEYS)
                .history(&[("3.0.3", "More than one key.")])
                .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]))
            => keyspace::exists;
        /// Lets a key expire after some seconds.
        Expire         ("expire", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "1.0.0", "O(1)", EXPIRE_IN_SECONDS)
                .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
            => expire::expire;
        /// Lets a key expire at a time given in seconds since 1970.
        ExpireAt       ("expireat", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "1.2.0", "O(1)", EXPIRE_AT_SECONDS)
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
            docs(Generic, "2.6.0", "O(1)", EXPIRE_IN_MILLIS).history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
            => expire::pexpire;
        /// Lets a key expire at a time given in milliseconds since 1970.
        PExpireAt      ("pexpireat", -3, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Generic, "2.6.0", "O(1)", EXPIRE_AT_MILLIS).history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")]))
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
        Rename         ("rename", 3, WRITE, from_to(RW | ACCESS | DELETE, OW | UPDATE), Steps(StepKind::Rename),
            docs(Generic, "1.0.0", "O(1)", &[key("key"), key_of(1, "newkey")]))
            => keyspace::rename;
        /// Gives a value another key if that does not exist.
        RenameNx       ("renamenx", 3, WRITE | FAST, from_to(RW | ACCESS | DELETE, OW | INSERT), Steps(StepKind::RenameNx),
            docs(Generic, "1.0.0", "O(1)", &[key("key"), key_of(1, "newkey")])
                .history(&[("3.2.0", "No error if both names are the same.")]))
            => keyspace::renamenx;
        /// Walks through the keys of the database in steps.
        Scan           ("scan", -2, READONLY, none(), Cursor,
            docs(Generic, "2.8.0", "O(1) per call, O(N) for all N keys", SCAN).history(&[("6.0.0", "`TYPE`.")])
                .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"]))
            => keyspace::scan;
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

        // --- databases and memory
        /// Returns the number of keys in the database.
        DbSize         ("dbsize", 1, READONLY | FAST, none(), Every(Merge::Sum),
            docs(Server, "1.0.0", "O(1)", NONE).tips(&["request_policy:all_shards", "response_policy:agg_sum"])
                .categories(super::category::KEYSPACE))
            => server::dbsize;
        /// Deletes all keys of all databases.
        FlushAll       ("flushall", -1, WRITE, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(N) with N the number of keys", FLUSH)
                .history(&[("4.0.0", "`ASYNC`."), ("6.2.0", "`SYNC`.")])
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .categories(super::category::DANGEROUS | super::category::KEYSPACE))
            => server::flushall;
        /// Deletes all keys of the database.
        FlushDb        ("flushdb", -1, WRITE, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(N) with N the number of keys", FLUSH)
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

        // --- internal: sent by the gateway, not callable by name; Redis has no such commands
        /// Debugging switches of every worker: SET-ACTIVE-EXPIRE, SLEEP.
        Debug          ("_debug", -2, ADMIN | INTERNAL, none(), Every(Merge::AllOk),
            docs(Server, "1.0.0", "O(1)", NONE))
            => internal::debug;
        /// The line that DEBUG OBJECT answers with.
        DebugObject    ("_debugobject", 2, READONLY | INTERNAL, one(RO | ACCESS), Owner,
            docs(Server, "1.0.0", "O(1)", KEY))
            => internal::debug_object;
        /// A value in a form that `_import` takes: payload and absolute expiry (-1: none), or nothing.
        Export         ("_export", 2, READONLY | INTERNAL, one(RO | ACCESS), Owner,
            docs(Generic, "1.0.0", "O(N) with N the size of the value", KEY))
            => internal::export;
        /// Creates a key from what `_export` returned: key, payload, expiry, whether it may replace.
        Import         ("_import", 5, WRITE | DENYOOM | INTERNAL, one(OW | UPDATE), Owner,
            docs(Generic, "1.0.0", "O(N) with N the size of the value", KEY))
            => internal::import;
        /// The strings at several keys, nothing for missing ones, an error if one is no string.
        Strings        ("_strings", -2, READONLY | INTERNAL, all(RO | ACCESS), Owner,
            docs(String, "1.0.0", "O(N) with N the number of keys", KEYS))
            => internal::strings;
        /// Stores the result of BITOP over operands that came from other workers.
        BitOpStore     ("_bitopstore", -4, WRITE | DENYOOM | INTERNAL, at(2, OW | UPDATE), Owner,
            docs(Bitmap, "1.0.0", "O(N) with N the length of the operands", NONE))
            => internal::bitop_store;
        /// LCS over two strings that came from other workers; they stand in the place of the keys.
        LcsOfStrings   ("_lcs", -3, READONLY | INTERNAL, none(), Owner,
            docs(String, "1.0.0", "O(N*M) with N and M the lengths of the strings", NONE))
            => internal::lcs;
    }};
}

macro_rules! tables {
    ($($rows:tt)*) => {
        command_table!(StorageCommand, Storage, $($rows)*);
    };
}
storage_commands!(tables);
