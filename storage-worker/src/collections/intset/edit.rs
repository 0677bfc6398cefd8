//! Changing intsets, wherever their bytes live. Every function leaves a valid intset behind.

use super::{HEADER_BYTES, Intset, count_of, read, width_of, write};
use crate::collections::Splice;

fn set_count(target: &mut impl Splice, count: usize) {
    let count = count as u32;
    target.bytes_mut()[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
}

/// Adds an integer; says whether it was not there.
pub fn insert(target: &mut impl Splice, integer: i64) -> bool {
    let intset = Intset::new(target.bytes());
    let (width, count) = (intset.width, intset.len());
    if width_of(integer) > width {
        widen(target, width_of(integer), integer);
        return true;
    }
    let Err(place) = intset.find(integer) else {
        return false;
    };
    write(
        target.splice(HEADER_BYTES + place * width, 0, width),
        integer,
    );
    set_count(target, count + 1);
    true
}

/// Makes all integers `wide` bytes long and adds one that needs it, which therefore belongs to one
/// of the ends.
#[cold]
fn widen(target: &mut impl Splice, wide: usize, integer: i64) {
    let count = count_of(target.bytes());
    let narrow = usize::from(target.bytes()[0]);
    let end = target.bytes().len();
    target.splice(end, 0, count * (wide - narrow) + wide);
    let bytes = target.bytes_mut();
    let shift = usize::from(integer < 0);
    // From the right, so that nothing is overwritten before it was read.
    for index in (0..count).rev() {
        let moved = read(&bytes[HEADER_BYTES..], narrow, index);
        let to = HEADER_BYTES + (index + shift) * wide;
        write(&mut bytes[to..to + wide], moved);
    }
    let place = if integer < 0 { 0 } else { count };
    let to = HEADER_BYTES + place * wide;
    write(&mut bytes[to..to + wide], integer);
    bytes[0] = wide as u8;
    set_count(target, count + 1);
}

/// Removes an integer; says whether it was there.
pub fn remove(target: &mut impl Splice, integer: i64) -> bool {
    let found = Intset::new(target.bytes()).find(integer);
    if let Ok(index) = found {
        remove_at(target, index);
    }
    found.is_ok()
}

/// Removes integer number `index`.
pub fn remove_at(target: &mut impl Splice, index: usize) {
    let intset = Intset::new(target.bytes());
    let (width, count) = (intset.width, intset.len());
    target.splice(HEADER_BYTES + index * width, width, 0);
    set_count(target, count - 1);
}
