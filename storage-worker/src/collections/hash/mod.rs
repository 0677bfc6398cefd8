//! Hashes: packed while they are small, a table beyond.
//!
//! ```text
//!   packed    Packed      pairs, or triples with the time at which a field expires
//!   table     Table       one object per field in a dictionary, and a schedule of those that expire
//! ```
//!
//! A field that has expired is there until somebody removes it: whether a command sees it is the
//! command's decision, as Redis' commands differ in that.
//! Not here: which form a hash takes and when it changes (`commands::hash`).

#[expect(unsafe_code, reason = "a field is raw memory of the arena (F1 and F2)")]
mod field;
pub mod packed;
#[expect(
    unsafe_code,
    reason = "the leaves of a schedule are raw memory of the arena (S1 to S3)"
)]
mod schedule;
#[expect(
    unsafe_code,
    reason = "a table is an object of the arena that is handed around by its address"
)]
mod table;
#[cfg(test)]
#[expect(unsafe_code, reason = "tables are handed around by their addresses")]
mod tests;

use proto::time::UnixMillis;

pub use packed::{Packed, Width};
pub use table::Table;

/// Numbers of the forms that a hash has, as the keyspace keeps them.
pub mod form {
    use super::Width;

    /// Packed, without times.
    pub const PAIRS: u8 = 0;
    /// Packed, with times.
    pub const TRIPLES: u8 = 1;
    /// A table.
    pub const TABLE: u8 = 2;

    /// How the fields of a packed hash are laid out; `None` for a table.
    #[inline]
    #[must_use]
    pub fn width(form: u8) -> Option<Width> {
        match form {
            PAIRS => Some(Width::Pairs),
            TRIPLES => Some(Width::Triples),
            _ => None,
        }
    }
}

/// What happens to the expiry of a field that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// It stays.
    Keep,
    /// The field stays until it is removed.
    Clear,
    /// The field is gone after this time.
    At(UnixMillis),
}

impl Ttl {
    /// The expiry of a field that was not there.
    fn of_new(self) -> Option<UnixMillis> {
        match self {
            Ttl::Keep | Ttl::Clear => None,
            Ttl::At(at) => Some(at),
        }
    }
}
