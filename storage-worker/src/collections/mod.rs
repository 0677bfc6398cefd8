//! Structures and algorithms over plain bytes: no keys, no replies, no clock.
//!
//! Everything here can be tested (and is) against a naive model without an arena or a ring. The
//! commands of the bitmap and string groups are thin shells around these functions.

pub mod bit_field;
pub mod bit_ops;
pub mod subsequence;
