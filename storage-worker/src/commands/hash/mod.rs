//! Hash commands: reading and writing fields, counting in them, choosing and walking, and fields that
//! expire.
//!
//! A field whose time has come stays until it is removed, by the background or by a command that asks
//! for it by name. Which commands see it, count it or remove it is as in Redis, where they differ:
//!
//! ```text
//!   HGET HMGET HEXISTS HSTRLEN HGETDEL HGETEX    not there, and removed
//!   HSETNX HINCRBY HINCRBYFLOAT, conditions      not there, and removed
//!   HGETALL HKEYS HVALS HSCAN HTTL HPERSIST      not there
//!   HRANDFIELD                                   all of them are removed first
//!   HLEN                                         counted
//!   HSET HSETEX HDEL HEXPIRE                     there: overwritten, removed, given another time
//! ```
//!
//! Not here: the two forms of a hash (`collections::hash`), the index by the next expiry (`keyspace`).

mod expiry;
mod fields;
mod numbers;
mod random;
mod read;
mod scan;
mod timed;
pub(crate) mod value;
mod write;

pub(crate) use expiry::{
    hexpire, hexpireat, hexpiretime, hpersist, hpexpire, hpexpireat, hpexpiretime, hpttl, httl,
};
pub(crate) use numbers::{hincrby, hincrbyfloat};
pub(crate) use random::hrandfield;
pub(crate) use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hstrlen, hvals};
pub(crate) use scan::hscan;
pub(crate) use timed::{hgetdel, hgetex, hsetex};
pub(crate) use write::{hdel, hmset, hset, hsetnx};
