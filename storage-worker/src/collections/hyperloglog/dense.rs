//! Registers of 6 bits each, packed from the low bits of each byte up: four in three bytes.

use super::{HEADER_BYTES, REGISTERS, Registers};

const REGISTER_BITS: usize = 6;
const MASK: u32 = 63;
/// Bytes of a dense HyperLogLog.
pub(super) const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;

/// Raises register `index` to `count`; says whether that changed it.
pub(super) fn raise(packed: &mut [u8], index: usize, count: u8) -> bool {
    let group = &mut packed[index / 4 * 3..][..3];
    let shift = index % 4 * REGISTER_BITS;
    let word = u32::from_le_bytes([group[0], group[1], group[2], 0]);
    if word >> shift & MASK >= u32::from(count) {
        return false;
    }
    let raised = word & !(MASK << shift) | u32::from(count) << shift;
    group.copy_from_slice(&raised.to_le_bytes()[..3]);
    true
}

/// Calls `each` with every register, in order.
#[inline]
pub(super) fn unpack(packed: &[u8], mut each: impl FnMut(u8)) {
    for &[a, b, c] in packed.as_chunks::<3>().0 {
        let word = u32::from_le_bytes([a, b, c, 0]);
        for number in 0..4 {
            each((word >> (number * REGISTER_BITS) & MASK) as u8);
        }
    }
}

/// Writes all registers.
pub(super) fn pack(registers: &Registers, packed: &mut [u8]) {
    let groups = packed.as_chunks_mut::<3>().0;
    for (group, four) in groups.iter_mut().zip(registers.as_chunks::<4>().0) {
        let word = four
            .iter()
            .rev()
            .fold(0, |word, &count| word << REGISTER_BITS | u32::from(count));
        group.copy_from_slice(&word.to_le_bytes()[..3]);
    }
}
