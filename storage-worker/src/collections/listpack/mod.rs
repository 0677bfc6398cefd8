//! Listpacks: small collections in one piece of memory, byte for byte as Redis lays them out.
//!
//! Why literally: DUMP and snapshots copy them, RESTORE takes them, and nothing is smaller for a few
//! short elements: two bytes of overhead each, and integers in the fewest bytes.
//!
//! ```text
//!   +---------+--------+---------+---------+- - -+------+
//!   | bytes 4 | count 2| element | element |     | 0xFF |       count 65535: more, or not known
//!   +---------+--------+---------+---------+- - -+------+
//!
//!   element = encoding and data, then the length of both, to be read from the right:
//!     0xxxxxxx                       0 ..= 127
//!     110xxxxx x                     13 bits, signed
//!     0xF1 / 0xF2 / 0xF3 / 0xF4      16, 24, 32, 64 bits, signed, little endian
//!     10xxxxxx ...                   bytes, fewer than 64
//!     1110xxxx x ...                 bytes, fewer than 4096
//!     0xF0 x x x x ...               bytes
//!   length: 7 bits per byte, the lowest in the last one; all but the first have bit 7 set
//! ```
//!
//! Invariants of what [`Listpack::new`] is given
//!   P1  the first four bytes are the length of all, the last byte is the only terminator.
//!   P2  elements follow each other without gaps, and their length is stored behind each.
//!   P3  the count is right, or 65535.
//!
//! Bytes from outside go through [`Listpack::check`], which establishes all of them.
//!
//! Cost: finding and seeking are a walk, about 1 ns per element; an edit moves what is behind it.
//! Not here: how long a listpack may become before a type uses something else (`commands`).

mod check;
mod edit;
mod element;
#[cfg(test)]
mod tests;

pub use edit::{
    Appender, append, delete, insert_after, insert_all_before, insert_before, prepend, push_back,
    push_back_all, push_front, remove_equal, replace, split_off,
};
pub use element::{encoded_len, encoded_len_max};

use super::StringRef;
use element::{decode, len_before, span};

/// Bytes in front of the first element.
pub const HEADER_BYTES: usize = 6;
/// A listpack without elements.
pub const EMPTY: [u8; 7] = [7, 0, 0, 0, 0, 0, TERMINATOR];
/// No listpack is made longer than this; larger collections are not packed.
pub const BYTES_MAX: usize = 1 << 30;

const TERMINATOR: u8 = 0xFF;
/// The count that says that elements have to be counted.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// Where an element begins. It stays valid as long as nothing in front of it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u32);

impl Position {
    #[inline]
    fn new(offset: usize) -> Self {
        // A listpack is far below 4 GiB.
        Self(offset as u32)
    }

    /// Bytes in front of the element, the header included.
    #[inline]
    #[must_use]
    pub fn offset(self) -> usize {
        self.0 as usize
    }
}

/// A listpack to be read.
#[derive(Debug, Clone, Copy)]
pub struct Listpack<'a> {
    bytes: &'a [u8],
}

impl<'a> Listpack<'a> {
    /// Reads bytes that are known to be a listpack (P1 to P3).
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() >= EMPTY.len(), "a listpack has header and end");
        debug_assert_eq!(total_of(bytes), bytes.len(), "P1");
        Self { bytes }
    }

    /// Reads bytes from outside, if they are a listpack in every detail.
    #[must_use]
    pub fn check(bytes: &'a [u8]) -> Option<Self> {
        check::is_listpack(bytes).then_some(Self { bytes })
    }

    /// All of its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Length of all of its bytes.
    #[inline]
    #[must_use]
    pub fn bytes_len(self) -> usize {
        self.bytes.len()
    }

    /// Number of elements. From 65535 elements on they are counted.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match count_of(self.bytes) {
            COUNT_UNKNOWN => self.count_from(HEADER_BYTES),
            count => usize::from(count),
        }
    }

    /// Whether there are no elements.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.bytes.len() == EMPTY.len()
    }

    #[cold]
    fn count_from(self, offset: usize) -> usize {
        let mut offset = offset;
        let mut count = 0;
        while offset < self.end() {
            offset += span(self.bytes, offset);
            count += 1;
        }
        count
    }

    /// Where the terminator is.
    #[inline]
    fn end(self) -> usize {
        self.bytes.len() - 1
    }

    #[inline]
    fn at(self, offset: usize) -> Option<Position> {
        (offset < self.end()).then_some(Position::new(offset))
    }

    /// The first element.
    #[inline]
    #[must_use]
    pub fn first(self) -> Option<Position> {
        self.at(HEADER_BYTES)
    }

    /// The last element.
    #[inline]
    #[must_use]
    pub fn last(self) -> Option<Position> {
        self.before(self.end())
    }

    /// The element after this one.
    #[inline]
    #[must_use]
    pub fn next(self, position: Position) -> Option<Position> {
        self.at(position.offset() + span(self.bytes, position.offset()))
    }

    /// The element in front of this one.
    #[inline]
    #[must_use]
    pub fn prev(self, position: Position) -> Option<Position> {
        self.before(position.offset())
    }

    #[inline]
    fn before(self, offset: usize) -> Option<Position> {
        (offset > HEADER_BYTES).then(|| Position::new(offset - len_before(self.bytes, offset)))
    }

    /// The element at a position.
    #[inline]
    #[must_use]
    pub fn get(self, position: Position) -> StringRef<'a> {
        decode(self.bytes, position.offset()).0
    }

    /// The element number `index`; negative from the end, -1 is the last one.
    #[must_use]
    pub fn seek(self, index: i64) -> Option<Position> {
        let count = i64::try_from(self.len()).ok()?;
        let index = if index < 0 { index + count } else { index };
        if index < 0 || index >= count {
            return None;
        }
        if index <= count / 2 {
            let mut offset = HEADER_BYTES;
            for _ in 0..index {
                offset += span(self.bytes, offset);
            }
            self.at(offset)
        } else {
            let mut offset = self.end();
            for _ in index..count {
                offset -= len_before(self.bytes, offset);
            }
            self.at(offset)
        }
    }

    /// All elements in order; from both ends.
    #[inline]
    #[must_use]
    pub fn iter(self) -> Iter<'a> {
        Iter {
            bytes: self.bytes,
            from: HEADER_BYTES,
            to: self.end(),
        }
    }

    /// The elements from this one on.
    #[inline]
    #[must_use]
    pub fn iter_from(self, position: Position) -> Iter<'a> {
        Iter {
            from: position.offset(),
            ..self.iter()
        }
    }

    /// The elements up to this one, it included.
    #[inline]
    #[must_use]
    pub fn iter_to(self, position: Position) -> Iter<'a> {
        Iter {
            to: position.offset() + span(self.bytes, position.offset()),
            ..self.iter()
        }
    }

    /// How many elements are the wanted one.
    #[must_use]
    pub fn count_equal(self, wanted: &Wanted<'_>) -> usize {
        self.iter().filter(|&element| wanted.is(element)).count()
    }

    /// The first element from `from` on that is `what`; between two that are compared, `skip` are not
    /// (1: keys of pairs).
    #[must_use]
    pub fn find(self, from: Position, what: &[u8], skip: usize) -> Option<Position> {
        let wanted = Wanted::new(what);
        let end = self.end();
        let mut offset = from.offset();
        while offset < end {
            let (element, len) = decode(self.bytes, offset);
            if wanted.is(element) {
                return Some(Position::new(offset));
            }
            offset += len;
            for _ in 0..skip {
                if offset >= end {
                    return None;
                }
                offset += span(self.bytes, offset);
            }
        }
        None
    }
}

/// An element that is looked for: numbers are compared as numbers, without their text.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    bytes: &'a [u8],
    /// The last bytes of the text.
    tail: u64,
    number: Option<i64>,
}

impl<'a> Wanted<'a> {
    /// Looks at the text once.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            tail: tail(bytes),
            number: proto::number::parse_i64(bytes),
        }
    }

    /// Whether this element is it.
    #[inline]
    #[must_use]
    pub fn is(&self, element: StringRef<'_>) -> bool {
        match element {
            StringRef::Int(number) => self.number == Some(number),
            StringRef::Bytes(bytes) => {
                // Names often begin alike and differ at the end; looking there first spares a call.
                bytes.len() == self.bytes.len() && tail(bytes) == self.tail && bytes == self.bytes
            }
        }
    }
}

/// The last eight bytes of a text; of a shorter one something that depends on it alone.
#[inline]
fn tail(bytes: &[u8]) -> u64 {
    match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => bytes.last().copied().map_or(0, u64::from),
    }
}

/// See [`Listpack::iter`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    from: usize,
    to: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = StringRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<StringRef<'a>> {
        if self.from >= self.to {
            return None;
        }
        let (element, span) = decode(self.bytes, self.from);
        self.from += span;
        Some(element)
    }
}

impl Iter<'_> {
    /// Whether no element is left.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// Where the next element begins, or would begin.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        Position::new(self.from)
    }

    /// Where the last element that is left ends.
    #[inline]
    #[must_use]
    pub fn end_position(&self) -> Position {
        Position::new(self.to)
    }

    /// Leaves out the next `count` elements.
    #[inline]
    pub fn pass(&mut self, count: usize) {
        for _ in 0..count {
            if self.from >= self.to {
                return;
            }
            self.from += span(self.bytes, self.from);
        }
    }

    /// Leaves out the last `count` elements.
    #[inline]
    pub fn pass_back(&mut self, count: usize) {
        for _ in 0..count {
            if self.from >= self.to {
                return;
            }
            self.to -= len_before(self.bytes, self.to);
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.from >= self.to {
            return None;
        }
        self.to -= len_before(self.bytes, self.to);
        Some(decode(self.bytes, self.to).0)
    }
}

impl<'a> IntoIterator for Listpack<'a> {
    type Item = StringRef<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The length in the header.
#[inline]
fn total_of(bytes: &[u8]) -> usize {
    match bytes {
        &[a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => 0,
    }
}

/// The count in the header.
#[inline]
fn count_of(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[4], bytes[5]])
}
