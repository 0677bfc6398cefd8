//! Gives the pages of free runs back to the system, in slices.
//!
//! Why in slices: the kernel needs about a tenth of a microsecond per page, and a flushed database
//! may have millions. Free runs that may have resident pages are in a list; a run remembers how far
//! it is known to be clean, so that no slice starts over.

use std::ptr::NonNull;

use super::layout::{Header, SPAN_BYTES, Span, address_of, idle_bytes, row};
use super::run;

/// Rows that one call looks at: about 20 us when all of them are clean already.
const ROWS_PER_CALL: u32 = 16 * 1024;

/// See [`super::Arena::return_pages`].
pub(super) fn return_pages(header: NonNull<Header>, keep_bytes: u64, budget_bytes: u64) -> bool {
    let mut rows = ROWS_PER_CALL;
    let mut budget = u32::try_from(budget_bytes.div_ceil(SPAN_BYTES as u64)).unwrap_or(u32::MAX);
    while idle_bytes(header) > keep_bytes {
        // SAFETY: A2.
        let first = unsafe { (*header.as_ptr()).idle_first };
        if first == 0 {
            return false;
        }
        if budget == 0 || rows == 0 {
            return true;
        }
        clean(header, first, &mut rows, &mut budget);
    }
    false
}

/// Goes on with the free run at `first`: skips clean spans, returns the next stretch of others.
fn clean(header: NonNull<Header>, first: u32, rows: &mut u32, budget: &mut u32) {
    // SAFETY: A1, A2: `first` is a free run.
    let Span { length, clean, .. } = unsafe { *row(header, first) };
    // SAFETY: A1, A2: the rows of a free run.
    let pages = |span: u32| unsafe { (*row(header, first + span)).resident }.count_ones();
    let mut from = clean;
    while from < length && *rows > 0 && pages(from) == 0 {
        from += 1;
        *rows -= 1;
    }
    let mut to = from;
    let mut returned = 0;
    while to < length && to - from < *budget && pages(to) > 0 {
        returned += u64::from(pages(to));
        // SAFETY: A1, A2.
        unsafe { (*row(header, first + to)).resident = 0 }
        to += 1;
    }
    if to > from {
        advise(header, first + from, (to - from) as usize * SPAN_BYTES);
        *budget -= to - from;
        // SAFETY: A2.
        let head = unsafe { &mut *header.as_ptr() };
        head.idle_pages -= returned;
        head.resident_pages -= returned;
    }
    // SAFETY: A1, A2.
    unsafe { (*row(header, first)).clean = to }
    if to == length {
        run::unlink_idle(header, first);
    }
}

/// Drops the memory behind `bytes` bytes from the span `first` on; they read as zero afterwards.
fn advise(header: NonNull<Header>, first: u32, bytes: usize) {
    // SAFETY: A2.
    let private = unsafe { (*header.as_ptr()).private } != 0;
    let advice = if private {
        libc::MADV_DONTNEED
    } else {
        libc::MADV_REMOVE
    };
    // SAFETY: the range lies in the mapping and in a free run, so no object is in it. If the system
    // refuses, the pages stay: harmless, only the count is too low.
    unsafe { libc::madvise(address_of(header, first).as_ptr().cast(), bytes, advice) };
}
