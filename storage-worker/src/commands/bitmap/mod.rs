//! Bitmap commands: strings seen as arrays of bits, bit 0 being the most significant bit of byte 0.
//!
//! Not here: the bit loops themselves (`collections::bit_ops`, `collections::bit_field`).

mod field;
mod search;
mod single;
mod store;

pub(crate) use field::{bitfield, bitfield_ro};
pub(crate) use search::{bitcount, bitpos};
pub(crate) use single::{getbit, setbit};
pub(crate) use store::bitop;

use crate::commands::prelude::*;

/// Reads a bit offset: a number, or `#number` counted in fields of `field_bits` if that is given.
///
/// The byte that holds the bit must be one that a string can have.
fn bit_offset(
    text: &[u8],
    field_bits: Option<u32>,
    bulk_bytes_max: u64,
) -> Result<u64, CommandError> {
    let (digits, factor) = match (text.strip_prefix(b"#"), field_bits) {
        (Some(digits), Some(bits)) => (digits, i64::from(bits)),
        _ => (text, 1),
    };
    parse_i64(digits)
        .map(|number| number.wrapping_mul(factor))
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < bulk_bytes_max)
        .ok_or(CommandError::BitOffset)
}
