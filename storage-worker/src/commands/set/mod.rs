//! Set commands.
//!
//! ```text
//!   read      size, membership, walking      value   a set that is only looked at, in any form
//!   edit      adding, removing, moving       build   adding and removing in any form, and when a
//!   random    SPOP and SRANDMEMBER                   set changes its form
//!   algebra   intersections, unions, differences
//! ```
//!
//! A set is an intset as long as it has only integers, a listpack as long as it has few short
//! members, otherwise a table; OBJECT ENCODING shows which, so the limits are those of Redis at
//! every step. An empty set does not exist.
//!
//! Not here: the three forms themselves (`collections`), where they hang (`keyspace`).

mod algebra;
mod build;
mod edit;
mod random;
mod read;
mod value;

pub(crate) use algebra::{sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore};
pub(crate) use edit::{sadd, smove, srem};
pub(crate) use random::{spop, srandmember};
pub(crate) use read::{scard, sismember, smembers, smismember, sscan};
pub(crate) use value::SetRef;
pub(crate) use value::SetRef;
