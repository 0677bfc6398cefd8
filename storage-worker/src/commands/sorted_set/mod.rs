//! Sorted sets: members with scores, in the order of the scores.
//!
//! Every range, by score, name or number, becomes an interval of ranks (`bounds`); a handler then
//! counts, walks or removes that. `value` hides which of the two forms a set has.
//!
//! Not here: how the forms work (`collections::sorted_set`), places on the globe (`geo`).

mod add;
mod algebra;
mod bounds;
mod pop;
mod range;
mod read;
mod remove;
mod sample;
pub(crate) mod value;

pub(crate) use add::{Options as AddOptions, put_and_reply, zadd, zincrby};
pub(crate) use algebra::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub(crate) use pop::{bzmpop, bzpopmax, bzpopmin, zmpop, zpopmax, zpopmin};
pub(crate) use range::{
    zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
pub(crate) use read::{zcard, zcount, zlexcount, zmscore, zrank, zrevrank, zscore};
pub(crate) use remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};
pub(crate) use sample::{zrandmember, zscan};

use crate::commands::prelude::*;

/// Replies with a member and its score, as two elements of an array.
#[inline]
fn reply_pair(reply: &mut ReplyWriter<'_>, member: StringRef<'_>, score: f64) {
    reply_string(reply, member);
    reply.double(score);
}

/// Replies with `count` members and their scores: one behind the other, in RESP3 in pairs.
fn reply_pairs<'a>(
    reply: &mut ReplyWriter<'_>,
    count: usize,
    members: impl Iterator<Item = (f64, StringRef<'a>)>,
) {
    let in_pairs = reply.resp3();
    reply.array(if in_pairs {
        count
    } else {
        count.saturating_mul(2)
    });
    for (score, member) in members {
        if in_pairs {
            reply.array(2);
        }
        reply_pair(reply, member, score);
    }
}
