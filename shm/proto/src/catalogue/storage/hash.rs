//! Hashes: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{
    Argument, block, int, key, one_of, pattern, string, unix_time, word,
};

/// `FIELDS numfields field [field ...]`
const FIELDS: Argument =
    block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS");

/// `FIELDS numfields field value [field value ...]`
const FIELDS_AND_VALUES: Argument = block("fields", &[int("numfields"), PAIRS]).token("FIELDS");

/// `field value [field value ...]`
const PAIRS: Argument = block("data", &[string("field"), string("value")]).multiple();

const CONDITION: Argument = one_of(
    "condition",
    &[word("NX"), word("XX"), word("GT"), word("LT")],
)
.optional();

const SECONDS: Argument = int("seconds").token("EX");
const MILLISECONDS: Argument = int("milliseconds").token("PX");
const UNIX_SECONDS: Argument = unix_time("unix-time-seconds").token("EXAT");
const UNIX_MILLISECONDS: Argument = unix_time("unix-time-milliseconds").token("PXAT");

pub(super) const KEY_FIELD: &[Argument] = &[key("key"), string("field")];
pub(super) const KEY_FIELDS: &[Argument] = &[key("key"), string("field").multiple()];
pub(super) const KEY_PAIRS: &[Argument] = &[key("key"), PAIRS];
pub(super) const KEY_FIELD_VALUE: &[Argument] = &[key("key"), string("field"), string("value")];
pub(super) const KEY_COUNTED_FIELDS: &[Argument] = &[key("key"), FIELDS];
pub(super) const EXPIRE: &[Argument] = &[key("key"), int("seconds"), CONDITION, FIELDS];
pub(super) const PEXPIRE: &[Argument] = &[key("key"), int("milliseconds"), CONDITION, FIELDS];
pub(super) const EXPIREAT: &[Argument] = &[
    key("key"),
    unix_time("unix-time-seconds"),
    CONDITION,
    FIELDS,
];
pub(super) const PEXPIREAT: &[Argument] = &[
    key("key"),
    unix_time("unix-time-milliseconds"),
    CONDITION,
    FIELDS,
];

pub(super) const GETEX: &[Argument] = &[
    key("key"),
    one_of(
        "expiration",
        &[
            SECONDS,
            MILLISECONDS,
            UNIX_SECONDS,
            UNIX_MILLISECONDS,
            word("PERSIST"),
        ],
    )
    .optional(),
    FIELDS,
];

pub(super) const SETEX: &[Argument] = &[
    key("key"),
    one_of("condition", &[word("FNX"), word("FXX")]).optional(),
    one_of(
        "expiration",
        &[
            SECONDS,
            MILLISECONDS,
            UNIX_SECONDS,
            UNIX_MILLISECONDS,
            word("KEEPTTL"),
        ],
    )
    .optional(),
    FIELDS_AND_VALUES,
];

pub(super) const RANDFIELD: &[Argument] = &[
    key("key"),
    block("options", &[int("count"), word("WITHVALUES").optional()]).optional(),
];

pub(super) const SCAN: &[Argument] = &[
    key("key"),
    int("cursor"),
    pattern("pattern").token("MATCH").optional(),
    int("count").token("COUNT").optional(),
    word("NOVALUES").optional(),
];

/// Passes the rows gathered so far and those of hashes on.
#[doc(hidden)]
#[macro_export]
macro_rules! hash_rows {
    ($with:ident $($gathered:tt)*) => { $crate::set_rows! { $with
        $($gathered)*

        /// Removes fields from a hash, and the key with the last one.
        HDel           ("hdel", -3, WRITE | FAST, one(RW | DELETE), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields", hash::KEY_FIELDS)
                .history(&[("2.4.0", "More than one field.")]))
            => hash::hdel;
        /// Says whether a hash has a field.
        HExists        ("hexists", 3, READONLY | FAST, one(RO), Owner,
            docs(Hash, "2.0.0", "O(1)", hash::KEY_FIELD))
            => hash::hexists;
        /// Lets fields expire after some seconds.
        HExpire        ("hexpire", -6, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::EXPIRE))
            => hash::hexpire;
        /// Lets fields expire at a time given in seconds since 1970.
        HExpireAt      ("hexpireat", -6, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::EXPIREAT))
            => hash::hexpireat;
        /// Returns when fields expire, in seconds since 1970.
        HExpireTime    ("hexpiretime", -5, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::KEY_COUNTED_FIELDS))
            => hash::hexpiretime;
        /// Returns the value of a field.
        HGet           ("hget", 3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Hash, "2.0.0", "O(1)", hash::KEY_FIELD))
            => hash::hget;
        /// Returns all fields and values of a hash.
        HGetAll        ("hgetall", 2, READONLY, one(RO | ACCESS), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields in the hash", KEY)
                .tips(&["nondeterministic_output_order"]))
            => hash::hgetall;
        /// Returns the values of fields and removes them.
        HGetDel        ("hgetdel", -5, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(Hash, "8.0.0", "O(N) with N the number of fields", hash::KEY_COUNTED_FIELDS))
            => hash::hgetdel;
        /// Returns the values of fields and changes when they expire.
        HGetEx         ("hgetex", -5, WRITE | FAST, one(RW | ACCESS | UPDATE).notes("writes because the expiry may change"), Owner,
            docs(Hash, "8.0.0", "O(N) with N the number of fields", hash::GETEX))
            => hash::hgetex;
        /// Adds an integer to the number in a field, which counts as 0 if it is missing.
        HIncrBy        ("hincrby", 4, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(Hash, "2.0.0", "O(1)", &[key("key"), string("field"), int("increment")]))
            => hash::hincrby;
        /// Adds a floating point number to the one in a field, which counts as 0 if it is missing.
        HIncrByFloat   ("hincrbyfloat", 4, WRITE | DENYOOM | FAST, one(RW | ACCESS | UPDATE), Owner,
            docs(Hash, "2.6.0", "O(1)", &[key("key"), string("field"), double("increment")]))
            => hash::hincrbyfloat;
        /// Returns all fields of a hash.
        HKeys          ("hkeys", 2, READONLY, one(RO | ACCESS), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields in the hash", KEY)
                .tips(&["nondeterministic_output_order"]))
            => hash::hkeys;
        /// Returns the number of fields in a hash.
        HLen           ("hlen", 2, READONLY | FAST, one(RO), Owner,
            docs(Hash, "2.0.0", "O(1)", KEY))
            => hash::hlen;
        /// Returns the values of several fields.
        HMGet          ("hmget", -3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields", hash::KEY_FIELDS))
            => hash::hmget;
        /// Writes several fields.
        HMSet          ("hmset", -4, WRITE | DENYOOM | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields", hash::KEY_PAIRS)
                .deprecated("4.0.0", "`HSET` with several fields"))
            => hash::hmset;
        /// Takes the expiry of fields away.
        HPersist       ("hpersist", -5, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::KEY_COUNTED_FIELDS))
            => hash::hpersist;
        /// Lets fields expire after some milliseconds.
        HPExpire       ("hpexpire", -6, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::PEXPIRE))
            => hash::hpexpire;
        /// Lets fields expire at a time given in milliseconds since 1970.
        HPExpireAt     ("hpexpireat", -6, WRITE | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::PEXPIREAT))
            => hash::hpexpireat;
        /// Returns when fields expire, in milliseconds since 1970.
        HPExpireTime   ("hpexpiretime", -5, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::KEY_COUNTED_FIELDS))
            => hash::hpexpiretime;
        /// Returns how many milliseconds fields have left.
        HPTtl          ("hpttl", -5, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::KEY_COUNTED_FIELDS)
                .tips(&["nondeterministic_output"]))
            => hash::hpttl;
        /// Returns fields chosen by chance.
        HRandField     ("hrandfield", -2, READONLY, one(RO | ACCESS), Owner,
            docs(Hash, "6.2.0", "O(N) with N the number of fields returned", hash::RANDFIELD)
                .tips(&["nondeterministic_output"]))
            => hash::hrandfield;
        /// Walks through the fields of a hash in steps.
        HScan          ("hscan", -3, READONLY, one(RO | ACCESS), Owner,
            docs(Hash, "2.8.0", "O(1) per call, O(N) for all N fields", hash::SCAN)
                .tips(&["nondeterministic_output"]))
            => hash::hscan;
        /// Writes fields.
        HSet           ("hset", -4, WRITE | DENYOOM | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields", hash::KEY_PAIRS)
                .history(&[("4.0.0", "More than one field.")]))
            => hash::hset;
        /// Writes fields and sets when they expire.
        HSetEx         ("hsetex", -6, WRITE | DENYOOM | FAST, one(RW | UPDATE), Owner,
            docs(Hash, "8.0.0", "O(N) with N the number of fields", hash::SETEX))
            => hash::hsetex;
        /// Writes a field if it does not exist.
        HSetNx         ("hsetnx", 4, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(Hash, "2.0.0", "O(1)", hash::KEY_FIELD_VALUE))
            => hash::hsetnx;
        /// Returns the length of the value of a field.
        HStrLen        ("hstrlen", 3, READONLY | FAST, one(RO), Owner,
            docs(Hash, "3.2.0", "O(1)", hash::KEY_FIELD))
            => hash::hstrlen;
        /// Returns how many seconds fields have left.
        HTtl           ("httl", -5, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Hash, "7.4.0", "O(N) with N the number of fields", hash::KEY_COUNTED_FIELDS)
                .tips(&["nondeterministic_output"]))
            => hash::httl;
        /// Returns all values of a hash.
        HVals          ("hvals", 2, READONLY, one(RO | ACCESS), Owner,
            docs(Hash, "2.0.0", "O(N) with N the number of fields in the hash", KEY)
                .tips(&["nondeterministic_output_order"]))
            => hash::hvals;
    }};
}
