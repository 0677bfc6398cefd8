//! String commands: reading, writing, counting, ranges and the longest common subsequence.
//!
//! A string value is either bytes or a 64-bit integer that prints as the bytes (`StringRef`); the
//! keyspace chooses. Handlers check every argument before the first change, so that an error reply
//! means that nothing happened.
//!
//! Not here: bits of strings (`commands::bitmap`), how a string is stored (`keyspace`).

mod numbers;
mod options;
mod range;
mod read;
mod subsequence;
mod write;

pub(crate) use numbers::{decr, decrby, incr, incrby, incrbyfloat};
pub(crate) use range::{append, getrange, setrange, strlen, substr};
pub(crate) use read::{get, getdel, getex, mget};
pub(crate) use subsequence::lcs;
pub(crate) use write::{delifeq, getset, mset, msetnx, psetex, set, setex, setnx};
