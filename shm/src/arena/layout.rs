//! The header and the span table: what is where in an arena, and its counts.
//!
//! Everything here is plain integers at fixed offsets. A span is named by its number from the base;
//! span 0 is the header itself, so 0 also means "none" in lists. The fingerprint covers these layouts
//! and the compiler; the owner of the data adds its own types to it.

use std::mem::{offset_of, size_of};
use std::ptr::NonNull;

use super::class::{self, CLASSES};

/// "SIRARENA" as little-endian bytes.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"SIRARENA");
/// Raised with every change of meaning that sizes and offsets do not show.
pub(super) const LAYOUT_VERSION: u32 = 1;

/// Unit in which memory changes its purpose. 64 KiB: 0.05 % for the books of a span, and few enough
/// objects per span that one becomes wholly empty again in practice.
pub(super) const SPAN_BYTES: usize = 64 * 1024;
/// Unit in which memory goes back to the system.
pub(super) const PAGE_BYTES: usize = 4096;
pub(super) const PAGES_PER_SPAN: usize = SPAN_BYTES / PAGE_BYTES;
/// Bytes before the span table.
pub(super) const HEADER_BYTES: usize = 4096;
/// Lists of free runs by length: exact up to 31 spans, then two per doubling.
pub(super) const BINS: usize = 64;

/// First page of an arena.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    pub magic: u64,
    pub layout_version: u32,
    pub index: u32,
    pub fingerprint: u64,
    /// Address that this arena must be mapped at.
    pub base: u64,
    pub capacity_bytes: u64,
    /// Spans in the capacity, those of the header and the table included.
    pub span_count: u32,
    /// First span of the data: the ones before hold header and table.
    pub first_span: u32,
    /// First span that was never used.
    pub frontier: u32,
    /// First free run that may have resident pages.
    pub idle_first: u32,
    /// Bytes of live objects, by class.
    pub used_bytes: u64,
    /// Touched pages of all spans of the data.
    pub resident_pages: u64,
    /// Those of them that lie in free runs.
    pub idle_pages: u64,
    /// The owner's root object.
    pub root: u64,
    /// 1: an anonymous mapping; pages are returned by another call.
    pub private: u32,
    pub reserved: u32,
    /// Bit per list of free runs that is not empty.
    pub bins_used: u64,
    /// First span of the first free run of each length.
    pub bins: [u32; BINS],
    /// First span of the first run with room, by class.
    pub partial: [u32; CLASSES],
}

/// What a span is used for. Only the first and the last span of a run are kept up to date, except
/// that every span of a run of small objects knows how far it is from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SpanKind {
    /// Never used; the meaning of zeroes.
    #[expect(dead_code, reason = "read from fresh memory, never written")]
    Fresh = 0,
    Free = 1,
    Small = 2,
    Large = 3,
}

/// A row of the span table.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub kind: SpanKind,
    pub class: u8,
    /// Bit per page: touched since it was mapped or returned.
    pub resident: u16,
    /// Spans in the run (at its first and last span).
    pub length: u32,
    /// Neighbours in the list of partial runs or of free runs.
    pub next: u32,
    pub previous: u32,
    /// Live objects of a run of small objects.
    pub used: u16,
    /// Offset / 8 + 1 of the first freed object in the run; 0 if none.
    pub free: u16,
    /// Offset / 8 behind the last object ever handed out.
    pub bump: u16,
    /// Distance to the first span of the run, in spans.
    pub distance: u16,
    /// Neighbours in the list of free runs that may have resident pages.
    pub idle_next: u32,
    pub idle_previous: u32,
    /// Spans from the first one of a free run on that surely have no resident page.
    pub clean: u32,
    /// 1 if a free run is in the list of those that may have resident pages.
    pub is_idle: u32,
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
const _: () = assert!(size_of::<Span>() == 40);
const _: () = assert!(PAGES_PER_SPAN == u16::BITS as usize);

/// Folds bytes into a running hash (FNV-1a: stable, and good enough to tell layouts apart).
const fn fold(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

/// A number that changes with the compiler, with the arena's own layout and with `facts`, the sizes,
/// alignments and offsets of the types that the owner stores.
#[must_use]
pub const fn fingerprint(facts: &[usize]) -> u64 {
    let mut hash = fold(0xcbf2_9ce4_8422_2325, env!("SIROCCO_COMPILER").as_bytes());
    let own = [
        LAYOUT_VERSION as usize,
        SPAN_BYTES,
        CLASSES,
        class::SMALL_MAX,
        size_of::<Header>(),
        offset_of!(Header, used_bytes),
        offset_of!(Header, bins),
        offset_of!(Header, partial),
        size_of::<Span>(),
        offset_of!(Span, used),
    ];
    let mut at = 0;
    while at < own.len() {
        hash = fold(hash, &own[at].to_le_bytes());
        at += 1;
    }
    at = 0;
    while at < facts.len() {
        hash = fold(hash, &facts[at].to_le_bytes());
        at += 1;
    }
    hash
}

/// Number of the bin that a free run of `spans` belongs to.
#[inline]
pub(super) fn bin_of(spans: u32) -> usize {
    if spans < 32 {
        return spans as usize;
    }
    let doubling = spans.ilog2() as usize;
    let half = (spans >> (doubling - 1)) as usize & 1;
    (32 + (doubling - 5) * 2 + half).min(BINS - 1)
}

/// The row of `span`.
#[inline]
pub(super) fn row(header: NonNull<Header>, span: u32) -> *mut Span {
    // SAFETY: A1: the table has a row for every span of the capacity, and callers only name spans
    // that they found in the books or computed from an object of this arena.
    unsafe {
        header
            .cast::<u8>()
            .add(HEADER_BYTES)
            .cast::<Span>()
            .add(span as usize)
            .as_ptr()
    }
}

/// The span that an object of the arena lies in.
#[inline]
pub(super) fn span_of(header: NonNull<Header>, object: NonNull<u8>) -> u32 {
    ((object.addr().get() - header.addr().get()) / SPAN_BYTES) as u32
}

/// The first byte of `span`.
#[inline]
pub(super) fn address_of(header: NonNull<Header>, span: u32) -> NonNull<u8> {
    // SAFETY: as in `row`: the span lies in the mapping.
    unsafe { header.cast::<u8>().add(span as usize * SPAN_BYTES) }
}

/// Pages of the header and of the rows that are in use.
fn book_pages(header: NonNull<Header>) -> u64 {
    // SAFETY: A2: the header is ours alone.
    let frontier = unsafe { (*header.as_ptr()).frontier } as usize;
    (HEADER_BYTES + frontier * size_of::<Span>()).div_ceil(PAGE_BYTES) as u64
}

pub(super) fn used_bytes(header: NonNull<Header>) -> u64 {
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).used_bytes + book_pages(header) * PAGE_BYTES as u64 }
}

pub(super) fn resident_bytes(header: NonNull<Header>) -> u64 {
    // SAFETY: A2.
    unsafe { ((*header.as_ptr()).resident_pages + book_pages(header)) * PAGE_BYTES as u64 }
}

pub(super) fn idle_bytes(header: NonNull<Header>) -> u64 {
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).idle_pages * PAGE_BYTES as u64 }
}

pub(super) fn root(header: NonNull<Header>) -> u64 {
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).root }
}

pub(super) fn set_root(header: NonNull<Header>, address: u64) {
    // SAFETY: A2.
    unsafe { (*header.as_ptr()).root = address }
}

pub(super) fn contains(header: NonNull<Header>, address: u64, bytes: usize) -> bool {
    // SAFETY: A2.
    let (base, first, frontier) = unsafe {
        let header = &*header.as_ptr();
        (
            header.base,
            u64::from(header.first_span),
            u64::from(header.frontier),
        )
    };
    let span_bytes = SPAN_BYTES as u64;
    let Some(end) = address.checked_add(bytes as u64) else {
        return false;
    };
    address >= base + first * span_bytes && end <= base + frontier * span_bytes
}

/// Writes the header of an empty arena; the memory behind it is all zero.
pub(super) fn format(header: NonNull<Header>, made: &Header) {
    // SAFETY: the mapping is at least one header long and nobody else uses it (A2).
    unsafe { header.as_ptr().copy_from_nonoverlapping(made, 1) }
}

/// The header of an empty arena.
pub(super) fn empty_header(index: u32, base: u64, capacity_bytes: u64, fingerprint: u64) -> Header {
    let span_count = (capacity_bytes / SPAN_BYTES as u64) as u32;
    let books = HEADER_BYTES + span_count as usize * size_of::<Span>();
    let first_span = books.div_ceil(SPAN_BYTES) as u32;
    Header {
        magic: MAGIC,
        layout_version: LAYOUT_VERSION,
        index,
        fingerprint,
        base,
        capacity_bytes,
        span_count,
        first_span,
        frontier: first_span,
        idle_first: 0,
        used_bytes: 0,
        resident_pages: 0,
        idle_pages: 0,
        root: 0,
        private: 0,
        reserved: 0,
        bins_used: 0,
        bins: [0; BINS],
        partial: [0; CLASSES],
    }
}
