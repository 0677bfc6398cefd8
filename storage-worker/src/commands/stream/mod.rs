//! Streams: the commands that begin with X.
//!
//! ```text
//!   add       XADD XTRIM XDEL XSETID XLEN
//!   range     XRANGE XREVRANGE
//!   read      XREAD XREADGROUP
//!   group     XGROUP ... XACK
//!   claim     XCLAIM XAUTOCLAIM
//!   pending   XPENDING
//!   info      XINFO ...
//! ```
//!
//! Oddities of the reference that are kept: an id is read as C reads numbers, so `007-+1` is one;
//! XPENDING with IDLE ignores what follows the consumer; `18446744073709551615-18446744073709551615`
//! is the same as `>`; a delivery time of -1 in XCLAIM counts as none; XTRIM by id leaves a node
//! whose last entry was deleted and would not have to go.

mod add;
mod claim;
mod group;
mod id;
mod info;
mod pending;
mod range;
mod read;
mod trim;
mod value;

pub(crate) use add::{xadd, xdel, xlen, xsetid};
pub(crate) use claim::{xautoclaim, xclaim};
pub(crate) use group::{
    xack, xgroup_create, xgroup_createconsumer, xgroup_delconsumer, xgroup_destroy, xgroup_setid,
};
pub(crate) use info::{xinfo_consumers, xinfo_groups, xinfo_stream};
pub(crate) use pending::xpending;
pub(crate) use range::{xrange, xrevrange};
pub(crate) use read::{check_read, xread, xreadgroup};
pub(crate) use trim::xtrim;
