//! Size classes: which sizes small objects are rounded to.
//!
//! Why these: entries of a keyspace are mostly small and of nearly equal length, so up to 512 bytes
//! every multiple of 8 is a class (at most 7 bytes lost, 64 classes). Above, eight steps per doubling
//! lose at most an eighth. A class of more than 4 KiB takes its objects from a run of four spans, so
//! that the rest at the end of the run stays under 9 %.

use super::layout::{PAGE_BYTES, SPAN_BYTES};

/// Up to here a class covers each multiple of 8.
const FINE_MAX: usize = 512;
const FINE_CLASSES: usize = FINE_MAX / 8;

/// Objects above this size are runs of pages of their own.
pub(super) const SMALL_MAX: usize = 32 * 1024;

/// 64 fine classes and 8 for each of the six doublings from 512 bytes to 32 KiB.
pub(super) const CLASSES: usize = FINE_CLASSES + 6 * 8;

/// The class that holds objects of `size` bytes (1 ..= `SMALL_MAX`; 0 counts as 1).
#[inline]
pub(super) const fn of(size: usize) -> usize {
    if size <= FINE_MAX {
        return size.saturating_sub(1) >> 3;
    }
    let last = size - 1;
    let doubling = last.ilog2() as usize;
    // The three bits below the leading one are the step inside the doubling.
    FINE_CLASSES + (doubling - 9) * 8 + ((last >> (doubling - 3)) & 7)
}

/// Bytes of an object of `class`.
#[inline]
pub(super) const fn bytes(class: usize) -> usize {
    if class < FINE_CLASSES {
        return (class + 1) * 8;
    }
    let coarse = class - FINE_CLASSES;
    let doubling = coarse / 8 + 9;
    (8 + coarse % 8 + 1) << (doubling - 3)
}

/// Spans in a run of `class`.
#[inline]
pub(super) const fn spans(class: usize) -> u32 {
    if bytes(class) <= 4096 { 1 } else { 4 }
}

/// Objects in a run of `class`.
pub(super) const fn objects(class: usize) -> u32 {
    let run_bytes = spans(class) as usize * SPAN_BYTES;
    (run_bytes / bytes(class)) as u32
}

/// Bytes that an object of `size` really occupies: its class, or whole pages above 32 KiB.
#[inline]
#[must_use]
pub const fn usable_size(size: usize) -> usize {
    if size <= SMALL_MAX {
        bytes(of(size))
    } else {
        size.next_multiple_of(PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in 1..=SMALL_MAX {
            let class = of(size);
            assert!(class < CLASSES);
            assert!(bytes(class) >= size, "{size}");
            assert!(class == 0 || bytes(class - 1) < size, "{size}");
        }
        assert_eq!(bytes(CLASSES - 1), SMALL_MAX);
    }

    #[test]
    fn little_is_lost_at_the_end_of_a_run() {
        for class in 0..CLASSES {
            let run_bytes = spans(class) as usize * SPAN_BYTES;
            let rest = run_bytes - objects(class) as usize * bytes(class);
            assert!(
                rest * 100 < run_bytes * 9,
                "class {class} of {} loses {rest}",
                bytes(class)
            );
        }
    }
}
