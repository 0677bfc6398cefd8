//! Sets: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{Argument, int, key, key_of, pattern, string};

pub(super) const MEMBERS: &[Argument] = &[key("key"), string("member").multiple()];

pub(super) const MEMBER: &[Argument] = &[key("key"), string("member")];

pub(super) const STORE: &[Argument] = &[key("destination"), key_of(1, "key").multiple()];

pub(super) const SINTERCARD: &[Argument] = &[
    int("numkeys"),
    key("key").multiple(),
    int("limit").token("LIMIT").optional(),
];

pub(super) const SMOVE: &[Argument] = &[key("source"), key_of(1, "destination"), string("member")];

pub(super) const SSCAN: &[Argument] = &[
    key("key"),
    int("cursor"),
    pattern("pattern").token("MATCH").optional(),
    int("count").token("COUNT").optional(),
];

/// Passes the rows gathered so far and those of sets on.
#[doc(hidden)]
#[macro_export]
macro_rules! set_rows {
    ($with:ident $($gathered:tt)*) => { $crate::sorted_set_rows! { $with
        $($gathered)*
        /// Adds members to a set, creating it if need be.
        SAdd           ("sadd", -3, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(Set, "1.0.0", "O(1) per member", set::MEMBERS)
                .history(&[("2.4.0", "More than one member.")]))
            => set::sadd;
        /// Returns the number of members of a set.
        SCard          ("scard", 2, READONLY | FAST, one(RO), Owner,
            docs(Set, "1.0.0", "O(1)", KEY))
            => set::scard;
        /// Returns the members of the first set that no other set has.
        SDiff          ("sdiff", -2, READONLY, all(RO | ACCESS), Together,
            docs(Set, "1.0.0", "O(N) with N the number of members of all sets", KEYS)
                .tips(&["nondeterministic_output_order"]))
            => set::sdiff;
        /// Stores the members of the first set that no other set has.
        SDiffStore     ("sdiffstore", -3, WRITE | DENYOOM, to_from_rest(1, OW | UPDATE, RO | ACCESS), Together,
            docs(Set, "1.0.0", "O(N) with N the number of members of all sets", set::STORE))
            => set::sdiffstore;
        /// Returns the members that all sets have.
        SInter         ("sinter", -2, READONLY, all(RO | ACCESS), Together,
            docs(Set, "1.0.0", "O(N*M) with N the size of the smallest set and M the number of sets", KEYS)
                .tips(&["nondeterministic_output_order"]))
            => set::sinter;
        /// Counts the members that all sets have.
        SInterCard     ("sintercard", -3, READONLY | MOVABLEKEYS, counted(1, RO | ACCESS), Together,
            docs(Set, "7.0.0", "O(N*M) with N the size of the smallest set and M the number of sets", set::SINTERCARD))
            => set::sintercard;
        /// Stores the members that all sets have.
        SInterStore    ("sinterstore", -3, WRITE | DENYOOM, to_from_rest(1, OW | UPDATE, RO | ACCESS), Together,
            docs(Set, "1.0.0", "O(N*M) with N the size of the smallest set and M the number of sets", set::STORE))
            => set::sinterstore;
        /// Says whether a set has a member.
        SIsMember      ("sismember", 3, READONLY | FAST, one(RO), Owner,
            docs(Set, "1.0.0", "O(1)", set::MEMBER))
            => set::sismember;
        /// Returns all members of a set.
        SMembers       ("smembers", 2, READONLY, one(RO | ACCESS), Owner,
            docs(Set, "1.0.0", "O(N) with N the number of members", KEY)
                .tips(&["nondeterministic_output_order"]))
            => set::smembers;
        /// Says of each of several members whether a set has it.
        SMIsMember     ("smismember", -3, READONLY | FAST, one(RO | ACCESS), Owner,
            docs(Set, "6.2.0", "O(N) with N the number of members asked for", set::MEMBERS))
            => set::smismember;
        /// Moves a member from one set to another.
        SMove          ("smove", 4, WRITE | FAST, from_to(RW | ACCESS | DELETE, RW | INSERT), Together,
            docs(Set, "1.0.0", "O(1)", set::SMOVE))
            => set::smove;
        /// Removes random members from a set and returns them.
        SPop           ("spop", -2, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(Set, "1.0.0", "O(N) with N the number of members returned",
                &[key("key"), int("count").since("3.2.0").optional()])
                .history(&[("3.2.0", "A count.")])
                .tips(&["nondeterministic_output"]))
            => set::spop;
        /// Returns random members of a set.
        SRandMember    ("srandmember", -2, READONLY, one(RO | ACCESS), Owner,
            docs(Set, "1.0.0", "O(N) with N the number of members returned",
                &[key("key"), int("count").since("2.6.0").optional()])
                .history(&[("2.6.0", "A count.")])
                .tips(&["nondeterministic_output"]))
            => set::srandmember;
        /// Removes members from a set; an empty set is deleted.
        SRem           ("srem", -3, WRITE | FAST, one(RW | DELETE), Owner,
            docs(Set, "1.0.0", "O(N) with N the number of members to be removed", set::MEMBERS)
                .history(&[("2.4.0", "More than one member.")]))
            => set::srem;
        /// Walks the members of a set, some at a time.
        SScan          ("sscan", -3, READONLY, one(RO | ACCESS), Owner,
            docs(Set, "2.8.0", "O(1) per call, O(N) for the whole walk", set::SSCAN)
                .tips(&["nondeterministic_output"]))
            => set::sscan;
        /// Returns the members that any of the sets has.
        SUnion         ("sunion", -2, READONLY, all(RO | ACCESS), Together,
            docs(Set, "1.0.0", "O(N) with N the number of members of all sets", KEYS)
                .tips(&["nondeterministic_output_order"]))
            => set::sunion;
        /// Stores the members that any of the sets has.
        SUnionStore    ("sunionstore", -3, WRITE | DENYOOM, to_from_rest(1, OW | UPDATE, RO | ACCESS), Together,
            docs(Set, "1.0.0", "O(N) with N the number of members of all sets", set::STORE))
            => set::sunionstore;
    }};
}
