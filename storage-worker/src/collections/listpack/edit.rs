//! Changing listpacks, wherever their bytes live.
//!
//! Every function leaves a valid listpack behind. Positions behind the place of a change are void.

use crate::collections::{Splice, StringRef};

use super::element::{Encoded, decode, span};
use super::{COUNT_UNKNOWN, HEADER_BYTES, Listpack, Position, TERMINATOR, Wanted, count_of};

/// Writes the length and a count that has changed by `more - fewer` into the header.
fn set_header(target: &mut impl Splice, more: usize, fewer: usize) {
    let bytes = target.bytes_mut();
    let total = bytes.len() as u32;
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    let count = count_of(bytes);
    if count == COUNT_UNKNOWN {
        return;
    }
    // A count that outgrows its two bytes is not known any more.
    let count = (usize::from(count) + more)
        .saturating_sub(fewer)
        .min(usize::from(COUNT_UNKNOWN)) as u16;
    bytes[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
}

/// Where the terminator is.
fn end_of(target: &impl Splice) -> usize {
    target.bytes().len() - 1
}

fn insert_at(target: &mut impl Splice, offset: usize, element: StringRef<'_>) {
    let element = Encoded::new(element);
    element.write(target.splice(offset, 0, element.span()));
    set_header(target, 1, 0);
}

/// Adds an element at the end.
pub fn push_back<'v>(target: &mut impl Splice, element: impl Into<StringRef<'v>>) {
    insert_at(target, end_of(target), element.into());
}

/// Adds an element at the beginning.
pub fn push_front<'v>(target: &mut impl Splice, element: impl Into<StringRef<'v>>) {
    insert_at(target, HEADER_BYTES, element.into());
}

/// Adds elements at the end, with one change of the memory.
pub fn push_back_all<'v, V: Into<StringRef<'v>>>(
    target: &mut impl Splice,
    elements: impl Iterator<Item = V> + Clone,
) {
    insert_all_at(target, end_of(target), elements);
}

/// Adds elements in front of another one, with one change of the memory.
pub fn insert_all_before<'v, V: Into<StringRef<'v>>>(
    target: &mut impl Splice,
    position: Position,
    elements: impl Iterator<Item = V> + Clone,
) {
    insert_all_at(target, position.offset(), elements);
}

fn insert_all_at<'v, V: Into<StringRef<'v>>>(
    target: &mut impl Splice,
    offset: usize,
    elements: impl Iterator<Item = V> + Clone,
) {
    let spans = elements
        .clone()
        .map(|element| Encoded::new(element.into()).span());
    let mut room = target.splice(offset, 0, spans.sum());
    let mut count = 0;
    for element in elements {
        let element = Encoded::new(element.into());
        let (to, rest) = room.split_at_mut(element.span());
        element.write(to);
        room = rest;
        count += 1;
    }
    set_header(target, count, 0);
}

/// Adds elements at the end one by one, where room for all of them is made at once. Nothing else may
/// look at the listpack before [`Appender::finish`].
#[derive(Debug)]
pub struct Appender<'t, T: Splice> {
    target: &'t mut T,
    /// Where the next element goes.
    at: usize,
    /// Where the room ends.
    end: usize,
    count: usize,
}

impl<'t, T: Splice> Appender<'t, T> {
    /// Makes room for elements that take no more than `bytes`, as [`encoded_len_max`] says.
    ///
    /// [`encoded_len_max`]: super::encoded_len_max
    #[inline]
    pub fn new(target: &'t mut T, bytes: usize) -> Self {
        let at = end_of(target);
        target.splice(at, 0, bytes);
        Self {
            target,
            at,
            end: at + bytes,
            count: 0,
        }
    }

    /// Adds an element.
    ///
    /// # Panics
    /// If there is no room for it.
    #[inline]
    pub fn push<'v>(&mut self, element: impl Into<StringRef<'v>>) {
        let room = &mut self.target.bytes_mut()[self.at..self.end];
        match element.into() {
            StringRef::Int(number @ 0..=127) => room[..2].copy_from_slice(&[number as u8, 1]),
            element => {
                let element = Encoded::new(element);
                let span = element.span();
                element.write(&mut room[..span]);
                self.at += span - 2;
            }
        }
        self.at += 2;
        self.count += 1;
    }

    /// Gives the rest of the room back.
    #[inline]
    pub fn finish(self) {
        self.target.splice(self.at, self.end - self.at, 0);
        set_header(self.target, self.count, 0);
    }
}

/// Adds an element in front of another one; returns where it is.
pub fn insert_before<'v>(
    target: &mut impl Splice,
    position: Position,
    element: impl Into<StringRef<'v>>,
) -> Position {
    insert_at(target, position.offset(), element.into());
    position
}

/// Adds an element behind another one; returns where it is.
pub fn insert_after<'v>(
    target: &mut impl Splice,
    position: Position,
    element: impl Into<StringRef<'v>>,
) -> Position {
    let offset = position.offset() + span(target.bytes(), position.offset());
    insert_at(target, offset, element.into());
    Position::new(offset)
}

/// Puts another element in the place of one; returns where it is.
pub fn replace<'v>(
    target: &mut impl Splice,
    position: Position,
    element: impl Into<StringRef<'v>>,
) -> Position {
    let element = Encoded::new(element.into());
    let removed = span(target.bytes(), position.offset());
    if removed == element.span() {
        element.write(&mut target.bytes_mut()[position.offset()..position.offset() + removed]);
    } else {
        element.write(target.splice(position.offset(), removed, element.span()));
        set_header(target, 0, 0);
    }
    position
}

/// Removes up to `count` elements from a position on; returns the one that follows.
pub fn delete(target: &mut impl Splice, position: Position, count: usize) -> Option<Position> {
    let (from, end) = (position.offset(), end_of(target));
    let mut to = from;
    let mut removed = 0;
    while removed < count && to < end {
        to += span(target.bytes(), to);
        removed += 1;
    }
    target.splice(from, to - from, 0);
    set_header(target, 0, removed);
    (to < end).then_some(position)
}

/// Removes elements that are the wanted one: skips the first `skip` of them, removes the next `limit`
/// ones, and returns how many these were. Moves every other element at most once.
pub fn remove_equal(
    target: &mut impl Splice,
    wanted: &Wanted<'_>,
    skip: usize,
    limit: usize,
) -> usize {
    let bytes = target.bytes_mut();
    let end = bytes.len() - 1;
    // Bytes up to `kept` are done; what lies from `moved` on follows them.
    let (mut kept, mut moved, mut offset) = (HEADER_BYTES, HEADER_BYTES, HEADER_BYTES);
    let (mut seen, mut removed) = (0, 0);
    while offset < end && removed < limit {
        let (element, span) = decode(bytes, offset);
        if wanted.is(element) {
            seen += 1;
            if seen > skip {
                bytes.copy_within(moved..offset, kept);
                kept += offset - moved;
                moved = offset + span;
                removed += 1;
            }
        }
        offset += span;
    }
    if removed > 0 {
        target.splice(kept, moved - kept, 0);
        set_header(target, 0, removed);
    }
    removed
}

/// Adds all elements of another listpack at the end.
pub fn append(target: &mut impl Splice, other: Listpack<'_>) {
    copy_in(target, end_of(target), other);
}

/// Adds all elements of another listpack at the beginning.
pub fn prepend(target: &mut impl Splice, other: Listpack<'_>) {
    copy_in(target, HEADER_BYTES, other);
}

fn copy_in(target: &mut impl Splice, offset: usize, other: Listpack<'_>) {
    let elements = &other.bytes()[HEADER_BYTES..other.end()];
    target
        .splice(offset, 0, elements.len())
        .copy_from_slice(elements);
    set_header(target, other.len(), 0);
}

/// Cuts off the elements from a position on, of which there are `count`, and makes `rest` (a listpack
/// without elements) hold them.
pub fn split_off(
    target: &mut impl Splice,
    position: Position,
    count: usize,
    rest: &mut impl Splice,
) {
    let (from, end) = (position.offset(), end_of(target));
    debug_assert_eq!(rest.bytes().len(), super::EMPTY.len());
    rest.splice(HEADER_BYTES, 0, end - from)
        .copy_from_slice(&target.bytes()[from..end]);
    set_header(rest, count, 0);
    target.splice(from, end - from, 0);
    set_header(target, 0, count);
    debug_assert_eq!(target.bytes()[from], TERMINATOR);
}
