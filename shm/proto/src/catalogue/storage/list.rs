//! Lists: a row per command, and the trees of their arguments.

use crate::catalogue::arguments::{Argument, double, int, key, key_of, one_of, string, word};

const ENDS: &[Argument] = &[word("LEFT"), word("RIGHT")];

pub(super) const PUSH: &[Argument] = &[key("key"), string("element").multiple()];

pub(super) const POP: &[Argument] = &[key("key"), int("count").since("6.2.0").optional()];

pub(super) const RANGE: &[Argument] = &[key("key"), int("start"), int("stop")];

pub(super) const LINSERT: &[Argument] = &[
    key("key"),
    one_of("where", &[word("BEFORE"), word("AFTER")]),
    string("pivot"),
    string("element"),
];

pub(super) const LPOS: &[Argument] = &[
    key("key"),
    string("element"),
    int("rank").token("RANK").optional(),
    int("num-matches").token("COUNT").optional(),
    int("len").token("MAXLEN").optional(),
];

pub(super) const LMOVE: &[Argument] = &[
    key("source"),
    key_of(1, "destination"),
    one_of("wherefrom", ENDS),
    one_of("whereto", ENDS),
];

pub(super) const BLMOVE: &[Argument] = &[
    key("source"),
    key_of(1, "destination"),
    one_of("wherefrom", ENDS),
    one_of("whereto", ENDS),
    double("timeout"),
];

pub(super) const BRPOPLPUSH: &[Argument] =
    &[key("source"), key_of(1, "destination"), double("timeout")];

pub(super) const LMPOP: &[Argument] = &[
    int("numkeys"),
    key("key").multiple(),
    one_of("where", ENDS),
    int("count").token("COUNT").optional(),
];

pub(super) const BLMPOP: &[Argument] = &[
    double("timeout"),
    int("numkeys"),
    key("key").multiple(),
    one_of("where", ENDS),
    int("count").token("COUNT").optional(),
];

pub(super) const BLOCKING_POP: &[Argument] = &[key("key").multiple(), double("timeout")];

/// Timeouts were whole seconds once.
pub(super) const FRACTIONS: &[(&str, &str)] =
    &[("6.0.0", "`timeout` may be a fraction of a second.")];

/// Passes the rows gathered so far and those of lists on.
#[doc(hidden)]
#[macro_export]
macro_rules! list_rows {
    ($with:ident $($gathered:tt)*) => { $crate::hash_rows! { $with
        $($gathered)*
        /// Moves an element from a list to another one; waits until there is one.
        BLMove         ("blmove", 6, WRITE | DENYOOM | BLOCKING, from_to(RW | ACCESS | DELETE, RW | INSERT), Together,
            docs(List, "6.2.0", "O(1)", list::BLMOVE))
            => list::blmove;
        /// Removes elements from the first list that has some; waits until one has.
        BLMPop         ("blmpop", -5, WRITE | BLOCKING | MOVABLEKEYS, counted(2, RW | ACCESS | DELETE), Together,
            docs(List, "7.0.0", "O(N+M) with N the number of keys and M that of the removed elements", list::BLMPOP))
            => list::blmpop;
        /// Removes the first element of the first list that has one; waits until one has.
        BLPop          ("blpop", -3, WRITE | BLOCKING, all_but_last(RW | ACCESS | DELETE), Together,
            docs(List, "2.0.0", "O(N) with N the number of keys", list::BLOCKING_POP).history(list::FRACTIONS))
            => list::blpop;
        /// Removes the last element of the first list that has one; waits until one has.
        BRPop          ("brpop", -3, WRITE | BLOCKING, all_but_last(RW | ACCESS | DELETE), Together,
            docs(List, "2.0.0", "O(N) with N the number of keys", list::BLOCKING_POP).history(list::FRACTIONS))
            => list::brpop;
        /// Moves the last element of a list to the front of another one; waits until there is one.
        BRPopLPush     ("brpoplpush", 4, WRITE | DENYOOM | BLOCKING,
            from_to(RW | ACCESS | DELETE, RW | INSERT), Together,
            docs(List, "2.2.0", "O(1)", list::BRPOPLPUSH).history(list::FRACTIONS)
                .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"))
            => list::brpoplpush;
        /// Returns the element at a position.
        LIndex         ("lindex", 3, READONLY, one(RO | ACCESS), Owner,
            docs(List, "1.0.0", "O(log N) with N the length of the list", &[key("key"), int("index")]))
            => list::lindex;
        /// Adds an element in front of another one or behind it.
        LInsert        ("linsert", 5, WRITE | DENYOOM, one(RW | INSERT), Owner,
            docs(List, "2.2.0", "O(N) with N the position of the other element", list::LINSERT))
            => list::linsert;
        /// Returns the number of elements.
        LLen           ("llen", 2, READONLY | FAST, one(RO), Owner,
            docs(List, "1.0.0", "O(1)", KEY))
            => list::llen;
        /// Moves an element from an end of a list to an end of another one.
        LMove          ("lmove", 5, WRITE | DENYOOM, from_to(RW | ACCESS | DELETE, RW | INSERT), Together,
            docs(List, "6.2.0", "O(1)", list::LMOVE))
            => list::lmove;
        /// Removes elements from the first list that has some.
        LMPop          ("lmpop", -4, WRITE | MOVABLEKEYS, counted(1, RW | ACCESS | DELETE), Together,
            docs(List, "7.0.0", "O(N+M) with N the number of keys and M that of the removed elements", list::LMPOP))
            => list::lmpop;
        /// Removes and returns the first elements.
        LPop           ("lpop", -2, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(List, "1.0.0", "O(N) with N the number of removed elements", list::POP)
                .history(&[("6.2.0", "`count`.")]))
            => list::lpop;
        /// Returns where an element is in a list.
        LPos           ("lpos", -3, READONLY, one(RO | ACCESS), Owner,
            docs(List, "6.0.6", "O(N) with N the number of elements that are looked at", list::LPOS))
            => list::lpos;
        /// Adds elements at the front, creating the list if need be.
        LPush          ("lpush", -3, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(List, "1.0.0", "O(N) with N the number of added elements", list::PUSH)
                .history(&[("2.4.0", "More than one element.")]))
            => list::lpush;
        /// Adds elements at the front of a list that exists.
        LPushX         ("lpushx", -3, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(List, "2.2.0", "O(N) with N the number of added elements", list::PUSH)
                .history(&[("4.0.0", "More than one element.")]))
            => list::lpushx;
        /// Returns the elements between two positions.
        LRange         ("lrange", 4, READONLY, one(RO | ACCESS), Owner,
            docs(List, "1.0.0", "O(log L + N) with L the length of the list and N that of the reply", list::RANGE))
            => list::lrange;
        /// Removes elements that equal a given one.
        LRem           ("lrem", 4, WRITE, one(RW | DELETE), Owner,
            docs(List, "1.0.0", "O(N) with N the length of the list", &[key("key"), int("count"), string("element")]))
            => list::lrem;
        /// Overwrites the element at a position.
        LSet           ("lset", 4, WRITE | DENYOOM, one(RW | UPDATE), Owner,
            docs(List, "1.0.0", "O(log N) with N the length of the list",
                &[key("key"), int("index"), string("element")]))
            => list::lset;
        /// Removes all elements but those between two positions.
        LTrim          ("ltrim", 4, WRITE, one(RW | DELETE), Owner,
            docs(List, "1.0.0", "O(N) with N the number of removed elements", list::RANGE))
            => list::ltrim;
        /// Removes and returns the last elements.
        RPop           ("rpop", -2, WRITE | FAST, one(RW | ACCESS | DELETE), Owner,
            docs(List, "1.0.0", "O(N) with N the number of removed elements", list::POP)
                .history(&[("6.2.0", "`count`.")]))
            => list::rpop;
        /// Moves the last element of a list to the front of another one.
        RPopLPush      ("rpoplpush", 3, WRITE | DENYOOM, from_to(RW | ACCESS | DELETE, RW | INSERT), Together,
            docs(List, "1.2.0", "O(1)", &[key("source"), key_of(1, "destination")])
                .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"))
            => list::rpoplpush;
        /// Adds elements at the end, creating the list if need be.
        RPush          ("rpush", -3, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(List, "1.0.0", "O(N) with N the number of added elements", list::PUSH)
                .history(&[("2.4.0", "More than one element.")]))
            => list::rpush;
        /// Adds elements at the end of a list that exists.
        RPushX         ("rpushx", -3, WRITE | DENYOOM | FAST, one(RW | INSERT), Owner,
            docs(List, "2.2.0", "O(N) with N the number of added elements", list::PUSH)
                .history(&[("4.0.0", "More than one element.")]))
            => list::rpushx;
    }};
}
