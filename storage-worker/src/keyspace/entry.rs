//! The entry: a key, its value and all that is known about it, in one object of the arena.
//!
//! ```text
//!  0      1       2      5
//!  +------+-------+------+-----------------------------+-----+-----+- - - - - - - - - - - - - -+
//!  | kind | flags | clock| times                       | len | key | value                     |
//!  +------+-------+------+-----------------------------+-----+-----+- - - - - - - - - - - - - -+
//!     1      1       3    0, 12, 14, 24 or 26            1/2/5
//!
//!  value:  Integer  8 bytes            Inline     len (1/2/5 bytes), bytes
//!          Outside  address 8, length 8, capacity 8
//!                                      Structure  address 8
//! ```
//!
//! Nothing is aligned and no size is stored: the size of the object follows from the lengths. What
//! the times are stands in `times`. Lengths below 192 take one byte, below 16,320 two, others five.
//!
//! Invariants
//!   E1  `size` of an entry has the size class that its object was taken with.
//!   E2  a wheel place is the address of the word in its wheel that names this entry.
//!   E3  an outside buffer was taken with `capacity` bytes, and `length` of them are in use.
//!   E4  a structure is a live one of the type that belongs to the kind, and no other entry names it.
//!
//! Cost: a key of 16 bytes with a value of 8 / 32 / 256 bytes is an object of 32 / 56 / 280 bytes.
//! Not here: the index over the keys (dictionary), the meaning of the clock (`clock`).

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::kind::{Label, MARKS, RAW, ValueKind};
use super::structure;
use super::times::Times;

/// How the value of an entry is kept; the low half of byte 0. The high half is the kind.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Integer = 0,
    Inline = 1,
    Outside = 2,
    Structure = 3,
}

/// Kind, flags, clock.
pub(super) const FIXED_BYTES: usize = 5;
const OUTSIDE_BYTES: usize = 24;

/// Longer values live in a buffer of their own, so that changing them in place can grow in steps
/// and replacing the entry (a new expiry) does not copy them.
pub(super) const INLINE_MAX: usize = 1024;

/// An entry by address. Copies are cheap and unchecked: whoever frees an entry forgets all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(NonNull<u8>);

/// A buffer outside the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outside {
    pub address: u64,
    pub length: usize,
    pub capacity: usize,
}

/// What an entry holds: what it is, and what it is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    pub label: Label,
    pub content: Content<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    Integer(i64),
    Inline(&'a [u8]),
    /// As many inline bytes, which may hold anything: the caller writes them.
    Blank(usize),
    Outside(Outside),
    /// The address of a structure.
    Structure(u64),
}

impl Content<'_> {
    fn stored_bytes(self) -> usize {
        match self {
            Content::Inline(bytes) => length_bytes(bytes.len()) + bytes.len(),
            Content::Blank(length) => length_bytes(length) + length,
            Content::Integer(_) | Content::Structure(_) => 8,
            Content::Outside(_) => OUTSIDE_BYTES,
        }
    }
}

/// Bytes of an encoded length.
#[inline]
fn length_bytes(length: usize) -> usize {
    if length < 192 {
        1
    } else if length < 16_320 {
        2
    } else {
        5
    }
}

impl Entry {
    #[inline]
    pub(super) fn new(object: NonNull<u8>) -> Entry {
        Entry(object)
    }

    #[inline]
    pub(super) fn object(self) -> NonNull<u8> {
        self.0
    }

    #[inline]
    pub(super) fn byte(self, offset: usize) -> u8 {
        // SAFETY: the entry is live, and callers stay within its size.
        unsafe { self.0.add(offset).read() }
    }

    #[inline]
    pub(super) fn set_byte(self, offset: usize, value: u8) {
        // SAFETY: as in `byte`.
        unsafe { self.0.add(offset).write(value) }
    }

    /// Eight bytes at `offset`.
    #[inline]
    fn word(self, offset: usize) -> u64 {
        // SAFETY: as in `byte`; the address need not be aligned.
        u64::from_le_bytes(unsafe { self.0.add(offset).cast::<[u8; 8]>().read() })
    }

    #[inline]
    fn set_word(self, offset: usize, value: u64) {
        // SAFETY: as in `word`.
        unsafe {
            self.0
                .add(offset)
                .cast::<[u8; 8]>()
                .write(value.to_le_bytes());
        }
    }

    /// Six bytes at `offset`.
    #[inline]
    pub(super) fn half(self, offset: usize) -> u64 {
        // SAFETY: as in `byte`.
        let [a, b, c, d, e, f] = unsafe { self.0.add(offset).cast::<[u8; 6]>().read() };
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    #[inline]
    pub(super) fn set_half(self, offset: usize, value: u64) {
        let [a, b, c, d, e, f, ..] = value.to_le_bytes();
        // SAFETY: as in `byte`.
        unsafe {
            self.0
                .add(offset)
                .cast::<[u8; 6]>()
                .write([a, b, c, d, e, f]);
        }
    }

    /// The bytes `offset .. offset + length` of the entry.
    #[inline]
    fn slice<'a>(self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: as in `byte`; the keyspace lends it no longer than the entry stays as it is.
        unsafe { std::slice::from_raw_parts(self.0.add(offset).as_ptr(), length) }
    }

    fn copy_in(self, offset: usize, bytes: &[u8]) {
        // SAFETY: as in `byte`; `bytes` is not part of this entry.
        unsafe {
            let to = self.0.add(offset).as_ptr();
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Decodes a length: (length, bytes it takes).
    #[inline]
    fn length_at(self, offset: usize) -> (usize, usize) {
        let first = self.byte(offset);
        if first < 192 {
            return (usize::from(first), 1);
        }
        if first < 255 {
            let low = usize::from(self.byte(offset + 1));
            return (((usize::from(first) - 192) << 8 | low) + 192, 2);
        }
        // SAFETY: as in `byte`.
        let bytes = unsafe { self.0.add(offset + 1).cast::<[u8; 4]>().read() };
        (u32::from_le_bytes(bytes) as usize, 5)
    }

    fn set_length(self, offset: usize, length: usize) {
        match length_bytes(length) {
            1 => self.set_byte(offset, length as u8),
            2 => {
                let rest = length - 192;
                self.set_byte(offset, 192 + (rest >> 8) as u8);
                self.set_byte(offset + 1, rest as u8);
            }
            _ => {
                // Keys and inline values are far below 4 GiB.
                self.set_byte(offset, 255);
                self.copy_in(offset + 1, &(length as u32).to_le_bytes());
            }
        }
    }

    #[inline]
    pub(super) fn kind(self) -> ValueKind {
        ValueKind::numbered(self.byte(0) >> 4)
    }

    #[inline]
    pub(super) fn storage(self) -> Storage {
        match self.byte(0) & 15 {
            0 => Storage::Integer,
            1 => Storage::Inline,
            2 => Storage::Outside,
            _ => Storage::Structure,
        }
    }

    #[inline]
    pub(super) fn flags(self) -> u8 {
        self.byte(1)
    }

    /// Whether a short string is shown as `raw`.
    pub(super) fn is_raw(self) -> bool {
        self.flags() & RAW != 0
    }

    /// Kind, form and marks of the value.
    #[inline]
    pub(super) fn label(self) -> Label {
        Label {
            kind: self.kind(),
            marks: self.flags() & MARKS,
        }
    }

    /// Relabels a value that stays as it is.
    pub(super) fn set_label(self, label: Label) {
        self.set_byte(0, (label.kind as u8) << 4 | self.byte(0) & 15);
        self.set_byte(1, self.flags() & !MARKS | label.marks);
    }

    /// Shows the value as `raw` from now on.
    pub(super) fn mark_raw(self) {
        self.set_byte(1, self.flags() | RAW);
    }

    /// The 24 bits of the eviction clock.
    #[inline]
    pub(super) fn clock(self) -> u32 {
        u32::from(self.byte(2)) | u32::from(self.byte(3)) << 8 | u32::from(self.byte(4)) << 16
    }

    #[inline]
    pub(super) fn set_clock(self, clock: u32) {
        self.set_byte(2, clock as u8);
        self.set_byte(3, (clock >> 8) as u8);
        self.set_byte(4, (clock >> 16) as u8);
    }

    /// Offset and length of the key.
    #[inline]
    fn key_at(self) -> (usize, usize) {
        let offset = FIXED_BYTES + self.times_bytes();
        let (length, bytes) = self.length_at(offset);
        (offset + bytes, length)
    }

    #[inline]
    pub(super) fn key<'a>(self) -> &'a [u8] {
        let (offset, length) = self.key_at();
        self.slice(offset, length)
    }

    #[inline]
    fn value_offset(self) -> usize {
        let (offset, length) = self.key_at();
        offset + length
    }

    /// The value of an `Integer` entry.
    #[inline]
    pub(super) fn integer(self) -> i64 {
        debug_assert!(self.storage() == Storage::Integer);
        self.word(self.value_offset()).cast_signed()
    }

    pub(super) fn set_integer(self, value: i64) {
        debug_assert!(self.storage() == Storage::Integer);
        self.set_word(self.value_offset(), value.cast_unsigned());
    }

    /// Offset and length of the bytes of an `Inline` value.
    #[inline]
    fn inline_at(self) -> (usize, usize) {
        let offset = self.value_offset();
        let (length, bytes) = self.length_at(offset);
        (offset + bytes, length)
    }

    /// The address of a `Structure` value.
    #[inline]
    pub(super) fn structure(self) -> u64 {
        debug_assert!(self.storage() == Storage::Structure);
        self.word(self.value_offset())
    }

    /// The bytes of a value that is kept as bytes.
    #[inline]
    pub(super) fn bytes<'a>(self) -> &'a [u8] {
        if self.storage() == Storage::Inline {
            let (offset, length) = self.inline_at();
            return self.slice(offset, length);
        }
        let outside = self.outside();
        // SAFETY: E3: the buffer has `length` bytes in use.
        unsafe { std::slice::from_raw_parts(outside.start().as_ptr(), outside.length) }
    }

    /// The bytes of a value that is kept as bytes, for changing them in place.
    pub(super) fn bytes_mut<'a>(self) -> &'a mut [u8] {
        let bytes: &[u8] = self.bytes();
        // SAFETY: the keyspace holds its entries exclusively while it changes one, and the pointer
        // came from memory that is writable.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_ptr().cast_mut(), bytes.len()) }
    }

    /// Replaces `removed` bytes at `at` by `inserted` ones, whatever they hold. The object, or the
    /// buffer outside, must have room for that.
    pub(super) fn resplice(self, at: usize, removed: usize, inserted: usize) {
        let old = self.bytes();
        let length = old.len() - removed + inserted;
        let tail = old.len() - at - removed;
        let (start, to) = if self.storage() == Storage::Outside {
            let mut outside = self.outside();
            outside.length = length;
            self.set_outside(outside);
            (outside.start(), outside.start())
        } else {
            let (start, _) = self.inline_at();
            let to = self.value_offset() + length_bytes(length);
            // SAFETY: both offsets lie within the entry.
            unsafe { (self.0.add(start), self.0.add(to)) }
        };
        // SAFETY: E1 or E3 and the caller's promise: both places lie within the object. The part that
        // would be overwritten by the other one goes first.
        unsafe {
            let (from_tail, to_tail) = (start.add(at + removed), to.add(at + inserted));
            if to_tail > from_tail {
                to_tail.copy_from(from_tail, tail);
                to.copy_from(start, at);
            } else {
                to.copy_from(start, at);
                to_tail.copy_from(from_tail, tail);
            }
        }
        if self.storage() != Storage::Outside {
            self.set_length(self.value_offset(), length);
        }
    }

    /// The buffer of an `Outside` value.
    #[inline]
    pub(super) fn outside(self) -> Outside {
        debug_assert!(self.storage() == Storage::Outside);
        let offset = self.value_offset();
        Outside {
            address: self.word(offset),
            length: self.word(offset + 8) as usize,
            capacity: self.word(offset + 16) as usize,
        }
    }

    pub(super) fn set_outside(self, outside: Outside) {
        debug_assert!(self.storage() == Storage::Outside);
        let offset = self.value_offset();
        self.set_word(offset, outside.address);
        self.set_word(offset + 8, outside.length as u64);
        self.set_word(offset + 16, outside.capacity as u64);
    }

    /// The value, as it would be written into another entry.
    pub(super) fn value<'a>(self) -> Value<'a> {
        let content = match self.storage() {
            Storage::Integer => Content::Integer(self.integer()),
            Storage::Inline => Content::Inline(self.bytes()),
            Storage::Outside => Content::Outside(self.outside()),
            Storage::Structure => Content::Structure(self.structure()),
        };
        Value {
            label: self.label(),
            content,
        }
    }

    /// Bytes of the entry, without a buffer outside (E1).
    #[inline]
    pub(super) fn size(self) -> usize {
        let offset = self.value_offset();
        match self.storage() {
            Storage::Integer | Storage::Structure => offset + 8,
            Storage::Outside => offset + OUTSIDE_BYTES,
            Storage::Inline => {
                let (length, bytes) = self.length_at(offset);
                offset + bytes + length
            }
        }
    }

    /// Bytes that the entry takes in the arena, with its buffer or structure.
    pub(super) fn memory_bytes(self, samples: usize) -> usize {
        let more = match self.storage() {
            Storage::Integer | Storage::Inline => 0,
            Storage::Outside => usable_size(self.outside().capacity),
            Storage::Structure => structure::memory_bytes(self.kind(), self.structure(), samples),
        };
        usable_size(self.size()) + more
    }

    /// Makes an entry. The clock is the caller's to set, and the places in wheels too.
    pub(super) fn create(key: &[u8], times: impl Into<Times>, value: Value<'_>) -> Entry {
        let times = times.into();
        let size = FIXED_BYTES
            + times.bytes()
            + length_bytes(key.len())
            + key.len()
            + value.content.stored_bytes();
        let entry = Entry(Arena.take(size));
        entry.set_times(times);
        let offset = FIXED_BYTES + times.bytes();
        entry.set_length(offset, key.len());
        entry.copy_in(offset + length_bytes(key.len()), key);
        entry.write_value(value);
        entry
    }

    /// Bytes of this entry if it had another value.
    pub(super) fn size_with(self, value: Value<'_>) -> usize {
        self.value_offset() + value.content.stored_bytes()
    }

    /// Writes another value into an entry whose object is large enough for it. A buffer or structure
    /// that was there before is the caller's to free.
    pub(super) fn write_value(self, value: Value<'_>) {
        let Value { label, content } = value;
        let offset = self.value_offset();
        let storage = match content {
            Content::Integer(integer) => {
                self.set_word(offset, integer.cast_unsigned());
                Storage::Integer
            }
            Content::Inline(bytes) => {
                self.set_length(offset, bytes.len());
                self.copy_in(offset + length_bytes(bytes.len()), bytes);
                Storage::Inline
            }
            Content::Blank(length) => {
                self.set_length(offset, length);
                Storage::Inline
            }
            Content::Outside(outside) => {
                self.set_word(offset, outside.address);
                self.set_word(offset + 8, outside.length as u64);
                self.set_word(offset + 16, outside.capacity as u64);
                Storage::Outside
            }
            Content::Structure(address) => {
                self.set_word(offset, address);
                Storage::Structure
            }
        };
        self.set_byte(0, (label.kind as u8) << 4 | storage as u8);
        self.set_byte(1, self.flags() & !MARKS | label.marks);
    }

    /// Gives the object back, but not what it names outside: that moved to another entry, or is freed
    /// by the caller.
    pub(super) fn free_object(self) {
        // SAFETY: E1; the caller forgets the entry.
        unsafe { Arena.give(self.0, self.size()) }
    }

    /// Gives the object and what it names back.
    pub(super) fn free(self) {
        match self.storage() {
            Storage::Integer | Storage::Inline => {}
            Storage::Outside => self.outside().free(),
            Storage::Structure => structure::free(self.kind(), self.structure()),
        }
        self.free_object();
    }
}

impl Outside {
    /// A buffer of at least `capacity` bytes, rounded up to what it really takes; zero from the byte
    /// `zero_from` on.
    pub(super) fn create(length: usize, capacity: usize, zero_from: usize) -> Outside {
        let capacity = usable_size(capacity);
        let address = Arena
            .take_zeroed(capacity, zero_from)
            .as_ptr()
            .expose_provenance() as u64;
        Outside {
            address,
            length,
            capacity,
        }
    }

    /// A buffer with just these bytes.
    pub(super) fn filled(bytes: &[u8]) -> Outside {
        let outside = Outside::create(bytes.len(), bytes.len(), usize::MAX);
        outside.rest(0)[..bytes.len()].copy_from_slice(bytes);
        outside
    }

    #[inline]
    pub(super) fn start(self) -> NonNull<u8> {
        let start = std::ptr::with_exposed_provenance_mut(self.address as usize);
        // SAFETY: E3: the address is that of a buffer.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// The bytes `from ..` of the buffer up to its capacity, whatever they hold.
    pub(super) fn rest<'a>(self, from: usize) -> &'a mut [u8] {
        debug_assert!(from <= self.capacity);
        // SAFETY: E3; arena memory is always initialised, and the buffer belongs to one entry that
        // the keyspace holds exclusively.
        unsafe {
            std::slice::from_raw_parts_mut(self.start().add(from).as_ptr(), self.capacity - from)
        }
    }

    /// Tries to make the capacity at least `capacity` where the buffer stands; what is new is zero.
    pub(super) fn extend(&mut self, capacity: usize) -> bool {
        // SAFETY: E3.
        let done = unsafe { Arena.extend(self.start(), self.capacity, capacity) };
        if done {
            self.capacity = usable_size(capacity);
        }
        done
    }

    pub(super) fn free(self) {
        // SAFETY: E3; the caller forgets the buffer.
        unsafe { Arena.give(self.start(), self.capacity) }
    }
}
