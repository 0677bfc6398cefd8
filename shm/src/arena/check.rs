//! Walks the allocator's books, run by run and list by list, and compares them with the counts.

use std::ptr::NonNull;

use super::class::{self, CLASSES};
use super::layout::{Header, Span, SpanKind, address_of, bin_of, row};
use super::run;

/// What the walk over all runs adds up.
#[derive(Default)]
struct Sums {
    used_bytes: u64,
    large_bytes_min: u64,
    large_bytes_max: u64,
    resident_pages: u64,
    idle_pages: u64,
    free_runs: u64,
    idle_runs: u64,
    runs_with_room: Vec<u64>,
}

/// See [`super::Arena::check`].
pub(super) fn check(header: NonNull<Header>) -> Result<(), String> {
    // SAFETY: A2; nothing is changed during the walk.
    let head = unsafe { header.as_ref() };
    let mut sums = Sums {
        runs_with_room: vec![0; CLASSES],
        ..Sums::default()
    };
    let mut span = head.first_span;
    let mut was_free = false;
    while span < head.frontier {
        // SAFETY: A1.
        let first = unsafe { *row(header, span) };
        if first.length == 0 || first.length > head.frontier - span {
            return Err(format!("run at span {span} has length {}", first.length));
        }
        // SAFETY: A1.
        let last = unsafe { *row(header, span + first.length - 1) };
        if last.kind != first.kind || last.length != first.length {
            return Err(format!("the ends of the run at span {span} differ"));
        }
        if was_free && first.kind == SpanKind::Free {
            return Err(format!("free runs meet at span {span} (R1)"));
        }
        was_free = first.kind == SpanKind::Free;
        check_run(header, span, first, &mut sums)?;
        span += first.length;
    }
    check_counts(head, &sums)?;
    check_lists(header, head, &sums)
}

fn check_run(header: NonNull<Header>, at: u32, run: Span, sums: &mut Sums) -> Result<(), String> {
    let pages = run::resident_pages(header, at, run.length);
    sums.resident_pages += pages;
    match run.kind {
        SpanKind::Fresh => return Err(format!("the run at span {at} has no kind")),
        SpanKind::Free => {
            sums.idle_pages += pages;
            sums.free_runs += 1;
            sums.idle_runs += u64::from(run.is_idle);
            if pages > 0 && run.is_idle == 0 {
                return Err(format!(
                    "the free run at span {at} is not listed as idle (R4)"
                ));
            }
        }
        SpanKind::Large => {
            // The exact size is known to the owner only; a run is as short as it can be.
            let bytes = u64::from(run.length) << 16;
            sums.large_bytes_max += bytes;
            sums.large_bytes_min += bytes - (1 << 16) + 1;
        }
        SpanKind::Small => check_small(header, at, run, sums)?,
    }
    Ok(())
}

fn check_small(header: NonNull<Header>, at: u32, run: Span, sums: &mut Sums) -> Result<(), String> {
    let class = usize::from(run.class);
    let objects = class::objects(class);
    sums.used_bytes += u64::from(run.used) * class::bytes(class) as u64;
    let mut freed = 0;
    let mut next = run.free;
    while next != 0 {
        let offset = (usize::from(next) - 1) * 8;
        if next > run.bump || offset % class::bytes(class) != 0 || freed > objects {
            return Err(format!("the list of freed objects at span {at} is broken"));
        }
        // SAFETY: A1: a freed object holds the number of the next one.
        next = unsafe { address_of(header, at).add(offset).cast::<u16>().read() };
        freed += 1;
    }
    let handed_out = u32::from(run.bump) / (class::bytes(class) / 8) as u32;
    if u32::from(run.used) + freed != handed_out {
        return Err(format!("objects at span {at} do not add up (O2)"));
    }
    sums.runs_with_room[class] += u64::from(u32::from(run.used) < objects);
    Ok(())
}

fn check_counts(head: &Header, sums: &Sums) -> Result<(), String> {
    let used_min = sums.used_bytes + sums.large_bytes_min;
    let used_max = sums.used_bytes + sums.large_bytes_max;
    if head.used_bytes < used_min.min(used_max) || head.used_bytes > used_max {
        return Err(format!(
            "used {} is not within {used_min} ..= {used_max}",
            head.used_bytes
        ));
    }
    if head.resident_pages != sums.resident_pages || head.idle_pages != sums.idle_pages {
        return Err(format!(
            "resident {} and idle {} pages, counted {} and {}",
            head.resident_pages, head.idle_pages, sums.resident_pages, sums.idle_pages
        ));
    }
    Ok(())
}

fn check_lists(header: NonNull<Header>, head: &Header, sums: &Sums) -> Result<(), String> {
    let mut free_runs = 0;
    for (bin, &first) in head.bins.iter().enumerate() {
        if (first != 0) != (head.bins_used & (1 << bin) != 0) {
            return Err(format!("bit of bin {bin} is wrong"));
        }
        let mut span = first;
        while span != 0 {
            // SAFETY: A1.
            let run = unsafe { *row(header, span) };
            if run.kind != SpanKind::Free || bin_of(run.length) != bin {
                return Err(format!("the run at span {span} is in the wrong list (R2)"));
            }
            free_runs += 1;
            span = run.next;
        }
    }
    let mut idle_runs = 0;
    let mut span = head.idle_first;
    while span != 0 {
        idle_runs += 1;
        // SAFETY: A1.
        span = unsafe { (*row(header, span)).idle_next };
    }
    for (class, &first) in head.partial.iter().enumerate() {
        let mut runs = 0;
        let mut span = first;
        while span != 0 {
            runs += 1;
            // SAFETY: A1.
            span = unsafe { (*row(header, span)).next };
        }
        if runs != sums.runs_with_room[class] {
            return Err(format!("class {class} lists {runs} runs (O1)"));
        }
    }
    if free_runs != sums.free_runs || idle_runs != sums.idle_runs {
        return Err("a list of free runs lacks one".to_owned());
    }
    Ok(())
}
