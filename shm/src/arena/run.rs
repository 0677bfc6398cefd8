//! Runs of spans: taking them, giving them back, merging neighbours; and large objects.
//!
//! Free runs sit in lists by length (see `layout::bin_of`), newest first, so that pages which are
//! still resident are used again before fresh ones. A run is taken from the first list that surely
//! has one long enough; what is left over goes back to its own list. All steps are O(1) except for
//! marking pages, which is one row per 64 KiB.
//!
//! Invariants
//!   R1  no two free runs are neighbours.
//!   R2  a free run is in the list of its length; its first and last row say Free and the length.
//!   R3  first and last row of every run below the frontier say what the run is.
//!   R4  a free run with a resident page is in the list of idle runs.

use std::ptr::NonNull;

use super::class;
use super::layout::{
    BINS, Header, PAGE_BYTES, PAGES_PER_SPAN, SPAN_BYTES, Span, SpanKind, address_of, bin_of, row,
    span_of,
};

/// Runs of a list that are looked at before going to the list of longer ones.
const TRIES: usize = 8;

/// Takes a free run out of the list of idle runs, if it is there; says whether it was.
pub(super) fn unlink_idle(header: NonNull<Header>, first: u32) -> bool {
    // SAFETY: A1, A2: rows of runs in the lists are valid, and nobody else works on them.
    unsafe {
        let Span {
            idle_next: next,
            idle_previous: previous,
            is_idle,
            ..
        } = *row(header, first);
        if is_idle == 0 {
            return false;
        }
        (*row(header, first)).is_idle = 0;
        if previous == 0 {
            (*header.as_ptr()).idle_first = next;
        } else {
            (*row(header, previous)).idle_next = next;
        }
        if next != 0 {
            (*row(header, next)).idle_previous = previous;
        }
        true
    }
}

fn link_idle(header: NonNull<Header>, first: u32) {
    // SAFETY: A1, A2.
    unsafe {
        let next = (*header.as_ptr()).idle_first;
        let run = row(header, first);
        (*run).is_idle = 1;
        (*run).idle_next = next;
        (*run).idle_previous = 0;
        if next != 0 {
            (*row(header, next)).idle_previous = first;
        }
        (*header.as_ptr()).idle_first = first;
    }
}

/// Takes a free run out of its lists; says whether it may have resident pages.
fn unlink(header: NonNull<Header>, first: u32) -> bool {
    // SAFETY: A1, A2.
    unsafe {
        let Span {
            length,
            next,
            previous,
            ..
        } = *row(header, first);
        let bin = bin_of(length);
        let head = &mut *header.as_ptr();
        if previous == 0 {
            head.bins[bin] = next;
            if next == 0 {
                head.bins_used &= !(1 << bin);
            }
        } else {
            (*row(header, previous)).next = next;
        }
        if next != 0 {
            (*row(header, next)).previous = previous;
        }
    }
    unlink_idle(header, first)
}

/// Describes `first ..` as a free run of `length` spans and puts it in front of its list (R2), and
/// of the list of idle runs if it may have resident pages (R4).
fn link(header: NonNull<Header>, first: u32, length: u32, is_idle: bool) {
    let bin = bin_of(length);
    // SAFETY: A1, A2.
    unsafe {
        let head = &mut *header.as_ptr();
        let next = head.bins[bin];
        let last = row(header, first + length - 1);
        (*last).kind = SpanKind::Free;
        (*last).length = length;
        let start = row(header, first);
        (*start).kind = SpanKind::Free;
        (*start).length = length;
        (*start).next = next;
        (*start).previous = 0;
        (*start).clean = 0;
        (*start).is_idle = 0;
        if next != 0 {
            (*row(header, next)).previous = first;
        }
        head.bins[bin] = first;
        head.bins_used |= 1 << bin;
    }
    if is_idle {
        link_idle(header, first);
    }
}

/// A free run of at least `length` spans, still in its list.
fn find(header: NonNull<Header>, length: u32) -> Option<u32> {
    let bin = bin_of(length);
    // SAFETY: A2.
    let head = unsafe { header.as_ref() };
    let mut candidate = head.bins[bin];
    for _ in 0..TRIES {
        if candidate == 0 {
            break;
        }
        // SAFETY: A1: `candidate` is in a list.
        let run = unsafe { *row(header, candidate) };
        if run.length >= length {
            return Some(candidate);
        }
        candidate = run.next;
    }
    let longer = if bin + 1 < BINS {
        head.bins_used & (u64::MAX << (bin + 1))
    } else {
        0
    };
    (longer != 0).then(|| head.bins[longer.trailing_zeros() as usize])
}

/// Bits of the pages `from .. to` of one span.
fn page_bits(from: usize, to: usize) -> u16 {
    let below = |page: usize| {
        if page >= PAGES_PER_SPAN {
            u16::MAX
        } else {
            (1u16 << page) - 1
        }
    };
    below(to) & !below(from)
}

/// Notes that the bytes `from .. to` of `span` are touched from now on.
#[inline]
pub(super) fn mark_touched(header: NonNull<Header>, span: u32, from: usize, to: usize) {
    let bits = page_bits(from / PAGE_BYTES, to.div_ceil(PAGE_BYTES));
    // SAFETY: A1, A2.
    unsafe {
        let resident = &raw mut (*row(header, span)).resident;
        let fresh = bits & !*resident;
        if fresh != 0 {
            *resident |= fresh;
            (*header.as_ptr()).resident_pages += u64::from(fresh.count_ones());
        }
    }
}

/// Zeroes the bytes `from .. to` of a run. Pages that are not resident are zero already, and stay
/// untouched: a string of 512 MB with one bit set takes one page.
fn zero(header: NonNull<Header>, first: u32, from: usize, to: usize) {
    let mut at = from;
    while at < to {
        let page_end = (at / PAGE_BYTES + 1) * PAGE_BYTES;
        let end = page_end.min(to);
        let span = first + (at / SPAN_BYTES) as u32;
        let bit = 1u16 << (at % SPAN_BYTES / PAGE_BYTES);
        // SAFETY: A1, A2, A5; the bytes lie in a run that belongs to the caller.
        unsafe {
            if (*row(header, span)).resident & bit != 0 {
                address_of(header, first).add(at).write_bytes(0, end - at);
            }
        }
        at = end;
    }
}

/// Notes that the first `bytes` bytes of the run at `first` are touched from now on.
fn mark_run_touched(header: NonNull<Header>, first: u32, bytes: usize) {
    let mut left = bytes;
    let mut span = first;
    while left > 0 {
        let here = left.min(SPAN_BYTES);
        mark_touched(header, span, 0, here);
        left -= here;
        span += 1;
    }
}

/// Resident pages in a run.
pub(super) fn resident_pages(header: NonNull<Header>, first: u32, length: u32) -> u64 {
    // SAFETY: A1, A2.
    let pages = |span| unsafe { u64::from((*row(header, span)).resident.count_ones()) };
    (first..first + length).map(pages).sum()
}

/// Takes a run of `length` spans; both ends of it say `kind` (R3).
pub(super) fn take(header: NonNull<Header>, length: u32, kind: SpanKind) -> Option<u32> {
    let first = match find(header, length) {
        Some(first) => {
            cut(header, first, length);
            first
        }
        None => advance_frontier(header, length)?,
    };
    describe(header, first, length, kind);
    Some(first)
}

/// Takes the first `length` spans out of the free run at `first`; the rest stays free.
fn cut(header: NonNull<Header>, first: u32, length: u32) {
    let is_idle = unlink(header, first);
    // SAFETY: A1: `first` was in a list.
    let whole = unsafe { (*row(header, first)).length };
    if whole > length {
        link(header, first + length, whole - length, is_idle);
    }
    let idle = resident_pages(header, first, length);
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).idle_pages -= idle }
}

fn advance_frontier(header: NonNull<Header>, length: u32) -> Option<u32> {
    // SAFETY: A2.
    let head = unsafe { &mut *header.as_ptr() };
    let end = head
        .frontier
        .checked_add(length)
        .filter(|&end| end <= head.span_count)?;
    Some(std::mem::replace(&mut head.frontier, end))
}

fn describe(header: NonNull<Header>, first: u32, length: u32, kind: SpanKind) {
    for span in [first, first + length - 1] {
        // SAFETY: A1, A2.
        unsafe {
            (*row(header, span)).kind = kind;
            (*row(header, span)).length = length;
        }
    }
}

/// Gives a run back and merges it with free neighbours (R1).
pub(super) fn give(header: NonNull<Header>, first: u32, length: u32) {
    let idle = resident_pages(header, first, length);
    // SAFETY: A2.
    let (first_span, frontier) = unsafe {
        (*header.as_ptr()).idle_pages += idle;
        ((*header.as_ptr()).first_span, (*header.as_ptr()).frontier)
    };
    let (mut start, mut end) = (first, first + length);
    let mut is_idle = idle > 0;
    if start > first_span {
        // SAFETY: A1 and R3: the row before a run is the last one of another run.
        let before = unsafe { *row(header, start - 1) };
        if before.kind == SpanKind::Free {
            start -= before.length;
            is_idle |= unlink(header, start);
        }
    }
    if end < frontier {
        // SAFETY: A1 and R3: the row behind a run is the first one of another run.
        let behind = unsafe { *row(header, end) };
        if behind.kind == SpanKind::Free {
            is_idle |= unlink(header, end);
            end += behind.length;
        }
    }
    link(header, start, end - start, is_idle);
}

fn spans_for(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.div_ceil(SPAN_BYTES)).ok()
}

/// Takes an object of more than `SMALL_MAX` bytes: a run of its own, of which only the pages that the
/// object needs count as touched. Its bytes from `zero_from` on are zero.
#[cold]
pub(super) fn allocate_large(
    header: NonNull<Header>,
    size: usize,
    zero_from: usize,
) -> Option<NonNull<u8>> {
    let bytes = class::usable_size(size);
    let first = take(header, spans_for(bytes)?, SpanKind::Large)?;
    zero(header, first, zero_from, bytes);
    mark_run_touched(header, first, bytes);
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).used_bytes += bytes as u64 }
    Some(address_of(header, first))
}

/// Gives a large object back.
///
/// # Safety
/// `object` came from `allocate_large` (or was extended) for a size that rounds to the same pages.
#[cold]
pub(super) unsafe fn free_large(header: NonNull<Header>, object: NonNull<u8>, size: usize) {
    let bytes = class::usable_size(size);
    let first = span_of(header, object);
    // SAFETY: A1: the caller's object lies in the arena, so its row exists.
    let Span { kind, length, .. } = unsafe { *row(header, first) };
    assert!(
        kind == SpanKind::Large && spans_for(bytes) == Some(length),
        "a large object is freed with the size that it was taken with"
    );
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).used_bytes -= bytes as u64 }
    give(header, first, length);
}

/// Makes a large object longer in place if the spans behind it are free or were never used. All
/// bytes behind the pages of the old size are zero.
///
/// # Safety
/// As for `free_large` with `old_size`; `new_size` is larger.
pub(super) unsafe fn extend_large(
    header: NonNull<Header>,
    object: NonNull<u8>,
    old_size: usize,
    new_size: usize,
) -> bool {
    let (old_bytes, new_bytes) = (class::usable_size(old_size), class::usable_size(new_size));
    let (Some(old_spans), Some(new_spans)) = (spans_for(old_bytes), spans_for(new_bytes)) else {
        return false;
    };
    let first = span_of(header, object);
    let more = new_spans - old_spans;
    let end = first + old_spans;
    if more > 0 {
        // SAFETY: A2.
        let frontier = unsafe { (*header.as_ptr()).frontier };
        if end == frontier {
            if advance_frontier(header, more).is_none() {
                return false;
            }
        } else {
            // SAFETY: A1 and R3: the row behind a run is the first one of another run.
            let behind = unsafe { *row(header, end) };
            if behind.kind != SpanKind::Free || behind.length < more {
                return false;
            }
            cut(header, end, more);
        }
        describe(header, first, new_spans, SpanKind::Large);
    }
    zero(header, first, old_bytes, new_bytes);
    mark_run_touched(header, first, new_bytes);
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).used_bytes += (new_bytes - old_bytes) as u64 }
    true
}
