//! Objects of up to 32 KiB: runs of one size class each, with a list of freed objects per run.
//!
//! The list is threaded through the freed objects themselves (their first two bytes); objects that
//! were never handed out are behind the run's `bump`, so setting up a run touches none of them. A run
//! with room is in the list of its class; one that became empty goes back to the free runs, unless it
//! is the only one in the list (else a single object going to and fro would move a run each time).
//!
//! Invariants
//!   O1  a run is listed if and only if it has a freed object or one behind its bump.
//!   O2  `used` + freed + not yet handed out = objects of the class.

use std::ptr::NonNull;

use super::class;
use super::layout::{Header, SPAN_BYTES, Span, SpanKind, address_of, row, span_of};
use super::run;

/// Pages that an arena holds before it fetches whole spans: 64 MiB.
const POPULATE_FROM_PAGES: u64 = 16 * 1024;
/// Missing pages of a span that are worth a system call.
const POPULATE_PAGES_MIN: u32 = 8;

fn enlist(header: NonNull<Header>, class: usize, first: u32) {
    // SAFETY: A1, A2: rows of runs in the lists are valid, and nobody else works on them.
    unsafe {
        let head = &mut *header.as_ptr();
        let next = head.partial[class];
        let run = row(header, first);
        (*run).next = next;
        (*run).previous = 0;
        if next != 0 {
            (*row(header, next)).previous = first;
        }
        head.partial[class] = first;
    }
}

fn delist(header: NonNull<Header>, class: usize, first: u32) {
    // SAFETY: A1, A2.
    unsafe {
        let run = row(header, first);
        let Span { next, previous, .. } = *run;
        if previous == 0 {
            (*header.as_ptr()).partial[class] = next;
        } else {
            (*row(header, previous)).next = next;
        }
        if next != 0 {
            (*row(header, next)).previous = previous;
        }
    }
}

/// Takes a fresh run for `class` and lists it.
#[cold]
fn refill(header: NonNull<Header>, class: usize) -> Option<u32> {
    let spans = class::spans(class);
    let first = run::take(header, spans, SpanKind::Small)?;
    for distance in 0..spans {
        // SAFETY: A1, A2; the resident bits stay as they are.
        unsafe {
            let span = row(header, first + distance);
            (*span).kind = SpanKind::Small;
            (*span).class = class as u8;
            (*span).distance = distance as u16;
        }
    }
    // SAFETY: A1, A2.
    unsafe {
        let span = row(header, first);
        (*span).used = 0;
        (*span).free = 0;
        (*span).bump = 0;
    }
    populate(header, first, spans);
    enlist(header, class, first);
    Some(first)
}

/// Fetches the pages of a fresh run of a large arena span by span. One after the other, as they are
/// touched, each costs a page fault, about 1 us; 16 at a time a third of that. A small arena is left
/// alone: there the rests of the runs of its many classes would count.
fn populate(header: NonNull<Header>, first: u32, spans: u32) {
    // SAFETY: A2.
    if unsafe { (*header.as_ptr()).resident_pages } < POPULATE_FROM_PAGES {
        return;
    }
    for span in first..first + spans {
        // SAFETY: A1, A2.
        let resident = unsafe { (*row(header, span)).resident };
        if resident.count_zeros() >= POPULATE_PAGES_MIN {
            run::mark_touched(header, span, 0, SPAN_BYTES);
            let start = address_of(header, span).as_ptr().cast();
            // SAFETY: the span lies in the mapping; its bytes stay as they are. If the system refuses,
            // the pages come one by one, and until then the count of resident ones is too high.
            unsafe { libc::madvise(start, SPAN_BYTES, libc::MADV_POPULATE_WRITE) };
        }
    }
}

/// Counts the pages of an object handed out for the first time as touched.
#[inline]
fn touch(header: NonNull<Header>, first: u32, from: usize, to: usize) {
    let (span, last) = (from / SPAN_BYTES, (to - 1) / SPAN_BYTES);
    let start = from % SPAN_BYTES;
    if span == last {
        run::mark_touched(header, first + span as u32, start, start + (to - from));
    } else {
        run::mark_touched(header, first + span as u32, start, SPAN_BYTES);
        run::mark_touched(header, first + last as u32, 0, to - last * SPAN_BYTES);
    }
}

/// Takes an object of `class`.
#[inline]
pub(super) fn allocate(header: NonNull<Header>, class: usize) -> Option<NonNull<u8>> {
    let bytes = class::bytes(class);
    // SAFETY: A2.
    let mut first = unsafe { (*header.as_ptr()).partial[class] };
    if first == 0 {
        first = refill(header, class)?;
    }
    let run = row(header, first);
    // SAFETY: A1, A2, O1: the run has a freed object, or room behind its bump; a freed object holds
    // the number of the next one in its first two bytes.
    unsafe {
        let start = address_of(header, first);
        let object = if (*run).free == 0 {
            let offset = (*run).bump as usize * 8;
            (*run).bump += (bytes / 8) as u16;
            touch(header, first, offset, offset + bytes);
            start.add(offset)
        } else {
            let object = start.add(((*run).free as usize - 1) * 8);
            (*run).free = object.cast::<u16>().read();
            object
        };
        (*run).used += 1;
        (*header.as_ptr()).used_bytes += bytes as u64;
        if (*run).free == 0 && u32::from((*run).used) == class::objects(class) {
            delist(header, class, first);
        }
        Some(object)
    }
}

/// Gives an object of `class` back.
///
/// # Safety
/// `object` came from `allocate` for the same class and is not used any more.
#[inline]
pub(super) unsafe fn free(header: NonNull<Header>, object: NonNull<u8>, class: usize) {
    let span = span_of(header, object);
    // SAFETY: A1: the object lies in the arena, so its row exists and knows its run.
    let distance = unsafe { (*row(header, span)).distance };
    let first = span - u32::from(distance);
    let run = row(header, first);
    // SAFETY: A1, A2; the object is the caller's to give, so its first bytes are ours now.
    unsafe {
        assert!(
            (*run).kind == SpanKind::Small && usize::from((*run).class) == class,
            "an object is freed with the size that it was taken with"
        );
        if cfg!(debug_assertions) {
            // Whoever still reads it is found out by the property tests.
            object.write_bytes(0xdd, class::bytes(class));
        }
        let offset = object.addr().get() - address_of(header, first).addr().get();
        if u32::from((*run).used) == class::objects(class) {
            enlist(header, class, first);
        }
        object.cast::<u16>().write((*run).free);
        (*run).free = (offset / 8 + 1) as u16;
        (*run).used -= 1;
        (*header.as_ptr()).used_bytes -= class::bytes(class) as u64;
        if (*run).used == 0 && ((*run).next != 0 || (*run).previous != 0) {
            delist(header, class, first);
            run::give(header, first, (*run).length);
        }
    }
}
