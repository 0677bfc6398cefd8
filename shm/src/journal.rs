//! A storage worker's journal: the little that its successor must know, apart from the arena.
//!
//! ```text
//!   0     header 64, shape = [log bytes, 0, 0]
//!   128   writing u64 | place u64 (db << 32 | slot)          odd = inside a mutation of the arena
//!   256   commits u64 | ticket u64                           commits & 1 = the line that counts
//!   384   commit line 0, 64 bytes                            commit line 1 at 512
//!   640   written u64 | file base u64                        log: what the file has
//!   768   length u64                                         log: what was appended
//!   1024  lease, 512 bytes                                   who may work in the arena (`lease`)
//!   page  log bytes, a ring mapped twice
//! ```
//!
//! Why two lines: a line is eight words, and a process may die between any two of them. The idle
//! one is filled, then one store makes it count. Why no checksum: the store is the only way a line
//! can become the one that counts, and memory outlives the process as the process left it.
//!
//! Protocol. One process writes; a successor, later, reads. There are no concurrent readers, so the
//! orderings only have to keep stores in program order as seen after a death
//!   J1  line before switch: the words of a line are stored before `commits` (Release).
//!   J2  mark before mutation: `writing` is odd before the first store into the arena, and even
//!       only after the last one (Release fences around the store).
//!   J3  bytes before length: log bytes are stored before `length` (Release).
//!
//! What a successor finds after a death
//!   before J1's store        the line of the command before: this command counts as not committed
//!   after it                 the line of this command
//!   inside J2                `writing` is odd: the arena is not to be trusted
//!   between J2 and J1        `writing` is even but not the commit line's: the command changed the
//!                            arena, its reply is not known
//!   before J3's store        the old length; the bytes behind it do not exist
//!
//! Cost: `commit` 9 stores, `begin_write` and `end_write` one or two each; no read-modify-write, no
//! fence that costs anything on x86. 1 MiB of memory by default.
//! Not here: what is done with it (the worker's recovery), the log's records and its file, the words
//! of the lease.

#![expect(unsafe_code, reason = "the mapped page and the bytes of the log ring")]

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::fault::{FaultPoint, point};
use crate::ring::POSITION_MAX;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{Mapping, Segment, SegmentKind, ShmError, page_size};

/// Log bytes of a journal unless told otherwise: a batch's records, and what arrives while a slow
/// disk is busy.
pub const LOG_BYTES_DEFAULT: usize = 1 << 20;

/// Largest log ring; keeps sums far from overflow.
const LOG_BYTES_MAX: u64 = 1 << 32;

/// How far a worker had come at the end of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitLine {
    /// Number of the command, counted by the worker; 0 = no command yet.
    pub sequence: u64,
    /// The link the command came from.
    pub link: u32,
    /// Generation of that link's peer, truncated: a line of an older peer says nothing.
    pub link_generation: u32,
    /// Request ring position after the command.
    pub request_position: u64,
    /// Reply ring position after the command's reply, header of an open frame not counted in it.
    pub reply_position: u64,
    /// Reply ring position where the open reply frame starts; `reply_position` if none is open.
    pub frame_start: u64,
    /// Replies in the open frame.
    pub frame_count: u32,
    /// A word of the worker's own: which of the pieces of a longer command were started.
    pub started: u32,
    /// [`Journal::writing`] at the commit.
    pub writing: u64,
    /// [`Journal::log_length`] at the commit.
    pub log_length: u64,
}

#[derive(Debug)]
#[repr(C, align(128))]
struct Words<const N: usize> {
    word: [AtomicU64; N],
}

/// The fixed part of the journal, at offset 128.
#[derive(Debug)]
#[repr(C)]
struct Page {
    writing: Words<2>,
    commits: Words<2>,
    lines: [Words<8>; 2],
    log_written: Words<2>,
    log_length: Words<1>,
}

const PAGE_OFFSET: usize = 128;
/// Where `writing` is, for `lease`.
pub(crate) const WRITING_OFFSET: usize = PAGE_OFFSET;
/// Where the words of `lease` are.
pub(crate) const LEASE_OFFSET: usize = 1024;
const _: () = assert!(size_of::<Page>() == 768 && PAGE_OFFSET + size_of::<Page>() <= LEASE_OFFSET);

/// One worker's journal, mapped. One process writes it.
#[derive(Debug)]
pub struct Journal {
    segment: Segment,
    page: NonNull<Page>,
    log: NonNull<u8>,
    log_bytes: u64,
    /// Private copies: this process is the only writer.
    writing: Cell<u64>,
    commits: Cell<u64>,
    log_written: u64,
    log_length: u64,
    file_base: u64,
    _mappings: [Mapping; 2],
}

// SAFETY: the pointers go to mappings in the same value (S1), and the value is the only writer.
unsafe impl Send for Journal {}

impl Journal {
    /// Makes an empty journal whose log ring has `log_bytes` (a power of two, whole pages).
    ///
    /// # Errors
    /// [`ShmError::BadSize`], or as for [`Segment::create`].
    pub fn create(name: &str, log_bytes: usize, fingerprint: u64) -> Result<Self, ShmError> {
        let log_bytes = checked_log_bytes(log_bytes as u64)?;
        let len = page_size() + log_bytes;
        let shape = [log_bytes as u64, 0, 0];
        let segment = Segment::create_shaped(name, SegmentKind::Journal, len, fingerprint, shape)?;
        segment.reserve(0, len)?;
        Self::map(segment, log_bytes)
    }

    /// Opens a journal, with whatever a predecessor left in it.
    ///
    /// # Errors
    /// As for [`Segment::open`]; [`ShmError::BadSize`] or [`ShmError::BadLength`] if its parts do
    /// not fit; [`ShmError::CorruptPosition`] if the log's positions make no sense.
    pub fn open(fd: OwnedFd, fingerprint: u64) -> Result<Self, ShmError> {
        let segment = Segment::open(fd, SegmentKind::Journal, fingerprint)?;
        let log_bytes = checked_log_bytes(segment.shape()[0])?;
        let want = page_size() + log_bytes;
        if segment.len() != want {
            return Err(ShmError::BadLength {
                found: segment.len() as u64,
                want: want as u64,
            });
        }
        Self::map(segment, log_bytes)
    }

    fn map(segment: Segment, log_bytes: usize) -> Result<Self, ShmError> {
        let fixed = Mapping::shared(segment.fd(), 0, page_size())?;
        let log = Mapping::twice(segment.fd(), page_size(), log_bytes)?;
        let page = fixed.at::<Page>(PAGE_OFFSET, 1)?;
        let mut journal = Self {
            segment,
            page,
            log: log.base(),
            log_bytes: log_bytes as u64,
            writing: Cell::new(0),
            commits: Cell::new(0),
            log_written: 0,
            log_length: 0,
            file_base: 0,
            _mappings: [fixed, log],
        };
        journal.reload()?;
        Ok(journal)
    }

    /// Copies the shared words into private memory, checked.
    fn reload(&mut self) -> Result<(), ShmError> {
        let load = |word: &AtomicU64| word.load(Ordering::Acquire);
        let page = self.page();
        let (writing, commits) = (load(&page.writing.word[0]), load(&page.commits.word[0]));
        let [written, base] = [
            load(&page.log_written.word[0]),
            load(&page.log_written.word[1]),
        ];
        let length = load(&page.log_length.word[0]);
        let high = written.saturating_add(self.log_bytes);
        if written > POSITION_MAX || length < written || length > high {
            return Err(ShmError::CorruptPosition {
                what: "length of a journal's log",
                found: length,
                low: written.min(POSITION_MAX),
                high: high.min(POSITION_MAX),
            });
        }
        self.writing.set(writing);
        self.commits.set(commits);
        self.log_written = written;
        self.log_length = length;
        self.file_base = base;
        Ok(())
    }

    /// The descriptor, to hand to another process.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Counts the edges of mutations: odd inside one.
    #[inline]
    #[must_use]
    pub fn writing(&self) -> u64 {
        self.writing.get()
    }

    /// Database and slot given to the last [`Journal::begin_write`].
    #[must_use]
    pub fn write_place(&self) -> (u32, u32) {
        let place = self.page().writing.word[1].load(Ordering::Relaxed);
        ((place >> 32) as u32, (place & u64::from(u32::MAX)) as u32)
    }

    /// Marks that the arena is about to be changed. Brackets do not nest: inside one, this only
    /// notes the new place.
    #[inline]
    pub fn begin_write(&self, db: u32, slot: u32) {
        let writing = self.writing.get() | 1;
        self.writing.set(writing);
        let page = self.page();
        page.writing.word[1].store(u64::from(db) << 32 | u64::from(slot), Ordering::Relaxed);
        // pairs with J2: mark before mutation
        page.writing.word[0].store(writing, Ordering::Release);
        fence(Ordering::Release); // pairs with J2: mark before mutation
        point(FaultPoint::WriteBegun);
    }

    /// Marks that the arena is whole again. Without effect outside of a bracket.
    #[inline]
    pub fn end_write(&self) {
        let writing = self.writing.get();
        let writing = writing.wrapping_add(writing & 1);
        self.writing.set(writing);
        // pairs with J2: mark before mutation
        self.page().writing.word[0].store(writing, Ordering::Release);
        point(FaultPoint::WriteEnded);
    }

    /// Makes `line` the one that counts.
    #[inline]
    pub fn commit(&self, line: &CommitLine) {
        let next = self.commits.get().wrapping_add(1);
        let page = self.page();
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            line.sequence,
            pair(line.link, line.link_generation),
            line.request_position,
            line.reply_position,
            line.frame_start,
            pair(line.frame_count, line.started),
            line.writing,
            line.log_length,
        ];
        for (place, word) in page.lines[(next & 1) as usize].word.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        point(FaultPoint::CommitFilled);
        page.commits.word[0].store(next, Ordering::Release); // pairs with J1: line before switch
        point(FaultPoint::CommitSwitched);
        self.commits.set(next);
    }

    /// Notes which piece of work the next lines are about, if they say that they are about one: a
    /// number of the worker's own. Change it only while the line that counts does not say so.
    pub fn set_ticket(&self, ticket: u64) {
        self.page().commits.word[1].store(ticket, Ordering::Relaxed);
        point(FaultPoint::TicketSet);
    }

    /// What was given to the last [`Journal::set_ticket`].
    #[must_use]
    pub fn ticket(&self) -> u64 {
        // pairs with J1: line before switch; the ticket stands before the line that means it
        self.page().commits.word[1].load(Ordering::Acquire)
    }

    /// The line that counts; all zero if there was no commit yet.
    #[must_use]
    pub fn last_commit(&self) -> CommitLine {
        let line = &self.page().lines[(self.commits.get() & 1) as usize];
        // pairs with J1: line before switch
        let word = |index: usize| line.word[index].load(Ordering::Acquire);
        let low = |index| (word(index) & u64::from(u32::MAX)) as u32;
        let high = |index| (word(index) >> 32) as u32;
        CommitLine {
            sequence: word(0),
            link: low(1),
            link_generation: high(1),
            request_position: word(2),
            reply_position: word(3),
            frame_start: word(4),
            frame_count: low(5),
            started: high(5),
            writing: word(6),
            log_length: word(7),
        }
    }

    /// Appends bytes to the log. They are in no file yet.
    ///
    /// # Errors
    /// [`ShmError::TooLarge`], and no effect, if the unwritten part would exceed the log ring.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ShmError> {
        let free = self.log_bytes - (self.log_length - self.log_written);
        if bytes.len() as u64 > free {
            let (what, bytes) = ("log record", bytes.len() as u64);
            return Err(ShmError::TooLarge {
                what,
                bytes,
                limit: free,
            });
        }
        let offset = (self.log_length & (self.log_bytes - 1)) as usize;
        // SAFETY: S1, S2: the offset is below `log_bytes`, the length at most `log_bytes`, and the
        // log is mapped twice. This value is the only writer; `bytes` cannot overlap, because
        // slices of the log are only lent out for as long as `self` is borrowed.
        unsafe {
            let place = self.log.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
        point(FaultPoint::LogCopied);
        self.log_length += bytes.len() as u64;
        self.store_log_length();
        Ok(())
    }

    /// Bytes ever appended.
    #[inline]
    #[must_use]
    pub fn log_length(&self) -> u64 {
        self.log_length
    }

    /// Drops the bytes behind `length`: a successor takes back the records of a command that was
    /// not committed. A length that is already in the file, or ahead, is refused.
    ///
    /// # Errors
    /// [`ShmError::CorruptPosition`].
    pub fn truncate_log(&mut self, length: u64) -> Result<(), ShmError> {
        if !(self.log_written..=self.log_length).contains(&length) {
            return Err(ShmError::CorruptPosition {
                what: "log length to go back to",
                found: length,
                low: self.log_written,
                high: self.log_length,
            });
        }
        self.log_length = length;
        self.store_log_length();
        Ok(())
    }

    /// Appended bytes that are not known to be in the file, oldest first, contiguous.
    #[must_use]
    pub fn unwritten(&self) -> &[u8] {
        let offset = (self.log_written & (self.log_bytes - 1)) as usize;
        let len = (self.log_length - self.log_written) as usize;
        // SAFETY: S1, S2: as in `append`; the range was appended before and is not written again
        // while the borrow lasts.
        unsafe { std::slice::from_raw_parts(self.log.as_ptr().add(offset), len) }
    }

    /// The first `len` unwritten bytes are in the file now; [`Journal::file_offset`] moves with
    /// them.
    ///
    /// # Panics
    /// If more is marked than was unwritten.
    pub fn mark_written(&mut self, len: usize) {
        assert!(
            len as u64 <= self.log_length - self.log_written,
            "marked more than was appended"
        );
        self.log_written += len as u64;
        // pairs with J4: file knows
        self.page().log_written.word[0].store(self.log_written, Ordering::Release);
    }

    /// Offset in the log's file up to which it is known to be written.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        self.file_base.wrapping_add(self.log_written)
    }

    /// From now on the log goes to another file, whose length is `offset`. Everything unwritten
    /// goes there.
    pub fn start_file(&mut self, offset: u64) {
        self.file_base = offset.wrapping_sub(self.log_written);
        // pairs with J4: file knows
        self.page().log_written.word[1].store(self.file_base, Ordering::Release);
    }

    #[inline]
    fn store_log_length(&self) {
        // pairs with J3: bytes before length
        self.page().log_length.word[0].store(self.log_length, Ordering::Release);
    }

    #[inline]
    fn page(&self) -> &Page {
        // SAFETY: S1, S2, S6: a whole page of atomics lies inside the mapping (checked in `map`).
        unsafe { self.page.as_ref() }
    }
}

fn checked_log_bytes(found: u64) -> Result<usize, ShmError> {
    let bad_size = ShmError::BadSize {
        what: "size of a journal's log",
        found,
    };
    let bytes = usize::try_from(found).map_err(|_| bad_size.clone())?;
    let fits = found.is_power_of_two() && found <= LOG_BYTES_MAX;
    if !fits || bytes == 0 || !bytes.is_multiple_of(page_size()) {
        return Err(bad_size);
    }
    Ok(bytes)
}
