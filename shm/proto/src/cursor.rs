//! The cursor of SCAN: a slot and a place inside it, in one decimal number below 2^62.
//!
//! ```text
//!   bit 61        48 47                                    0
//!      | slot, 14   | rest: place inside the slot, 48       |
//! ```
//!
//! Why: a scan walks slots upwards, so the gateway can tell from the cursor alone which worker goes on,
//! and a cursor stays good when slots move or tables split. What `rest` means is the owner's business.
//!
//! Invariant: 0 begins a scan and, as an answer, ends it; no page in between is answered with 0.

use crate::slot::SLOT_COUNT;

/// Bits of the place inside a slot.
pub const REST_BITS: u32 = 48;

/// The cursor that goes on in `slot` at `rest` (its lower [`REST_BITS`] bits count).
#[inline]
#[must_use]
pub const fn of(slot: u16, rest: u64) -> u64 {
    ((slot % SLOT_COUNT) as u64) << REST_BITS | rest & ((1 << REST_BITS) - 1)
}

/// Reads a cursor that a client sends. Blanks in front of it are skipped, as Redis does.
#[must_use]
pub fn parse(text: &[u8]) -> Option<u64> {
    crate::number::parse_u64(text.trim_ascii_start())
}

/// The cursor that begins with `slot`.
#[inline]
#[must_use]
pub const fn start_of(slot: u16) -> u64 {
    of(slot, 0)
}

/// The slot of a cursor. Numbers that no scan has answered with give a slot, too.
#[inline]
#[must_use]
pub const fn slot(cursor: u64) -> u16 {
    (cursor >> REST_BITS) as u16 % SLOT_COUNT
}

/// The place inside the slot.
#[inline]
#[must_use]
pub const fn rest(cursor: u64) -> u64 {
    cursor & ((1 << REST_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_come_back() {
        for (place, inside) in [(0, 0), (0, 1), (16383, (1 << 48) - 1), (5, 77)] {
            let cursor = of(place, inside);
            assert_eq!((slot(cursor), rest(cursor)), (place, inside));
            assert!(cursor < 1 << 62);
        }
        assert_eq!(slot(u64::MAX), 16383);
    }
}
