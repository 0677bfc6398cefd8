//! A node of a stream: some entries in a listpack, byte for byte as Redis lays them out.
//!
//! ```text
//!   first            | live | deleted | n | field 1 ... field n | 0 |
//!   entry            | flags | ms | seq | value 1 ... value n | n + 3 |              flags has SAME
//!   or               | flags | ms | seq | m | field 1 | value 1 ... | 2m + 4 |       fields of its own
//! ```
//!
//! The fields of the first entry stand in front of all, and entries that have the same ones only keep
//! their values. `ms` and `seq` are differences to the id of the node, which is that of its first
//! entry. The last number of an entry is how many elements are in front of it, so that entries can be
//! read backwards. An entry that is deleted stays, with a flag, until its whole node goes.
//!
//! Invariants
//!   N1  `live` entries have no DELETED flag and `deleted` ones have; there is at least one entry.
//!   N2  ids ascend, and the first entry has the id of the node.

use crate::collections::listpack::{self, Appender, Iter, Listpack, Position, encoded_len_max};
use crate::collections::ordered::Record;
use crate::collections::{Buffer, Splice, StringRef};

use super::StreamId;

const DELETED: i64 = 1;
const SAME: i64 = 2;
/// Elements of every entry beside its fields and values: flags and the two parts of the id.
const FIXED: i64 = 3;

/// Entries and the id of the first of them.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) id: StreamId,
    pub(super) bytes: Buffer,
}

impl Record for Node {
    type Key = StreamId;

    #[inline]
    fn key(&self) -> StreamId {
        self.id
    }
}

/// A number in a node.
#[inline]
fn number(element: Option<StringRef<'_>>) -> i64 {
    match element {
        Some(StringRef::Int(number)) => number,
        // Numbers are always packed as such.
        _ => 0,
    }
}

/// Bytes that the numbers around the fields of an entry take at most: flags, id, two counts.
const NUMBERS_BYTES_MAX: usize = 5 * encoded_len_max(0);

/// What an entry takes, found by looking at its fields once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Number of fields.
    count: usize,
    /// Length of all fields and values.
    pub(super) bytes: usize,
    /// Most bytes that it takes in a node, with its fields.
    pub(super) room: usize,
}

impl Size {
    pub(super) fn of<'v>(pairs: impl Iterator<Item = (&'v [u8], &'v [u8])>) -> Self {
        let mut size = Self {
            count: 0,
            bytes: 0,
            room: NUMBERS_BYTES_MAX,
        };
        for (field, value) in pairs {
            size.count += 1;
            size.bytes += field.len() + value.len();
            size.room += encoded_len_max(field.len()) + encoded_len_max(value.len());
        }
        size
    }
}

impl Node {
    /// A node with one entry.
    pub(super) fn new<'v>(
        id: StreamId,
        pairs: impl Iterator<Item = (&'v [u8], &'v [u8])> + Clone,
        size: Size,
    ) -> Self {
        let empty = listpack::EMPTY;
        let room = size.room + NUMBERS_BYTES_MAX;
        let mut bytes = Buffer::with_capacity(empty.len() + room);
        bytes.splice(0, 0, empty.len()).copy_from_slice(&empty);
        let count = size.count as i64;
        let mut to = Appender::new(&mut bytes, room);
        [1, 0, count].into_iter().for_each(|number| to.push(number));
        pairs.clone().for_each(|(field, _)| to.push(field));
        // Behind the fields: their end, then flags and id of the entry.
        [0, SAME, 0, 0]
            .into_iter()
            .for_each(|number| to.push(number));
        pairs.for_each(|(_, value)| to.push(value));
        to.push(FIXED + count);
        to.finish();
        // Many streams never have a second entry.
        bytes.shrink();
        Self { id, bytes }
    }

    pub(super) fn view(&self) -> View<'_> {
        View::new(self.id, Listpack::new(self.bytes.bytes()))
    }

    /// Adds an entry at the end of a node that has `live` ones. `is_same`: its fields are those of the
    /// first entry.
    pub(super) fn append<'v>(
        &mut self,
        id: StreamId,
        pairs: impl Iterator<Item = (&'v [u8], &'v [u8])>,
        size: Size,
        live: i64,
        is_same: bool,
    ) {
        let (ms, seq) = id.minus(self.id);
        let count = size.count as i64;
        let mut to = Appender::new(&mut self.bytes, size.room);
        to.push(if is_same { SAME } else { 0 });
        to.push(ms);
        to.push(seq);
        if is_same {
            pairs.for_each(|(_, value)| to.push(value));
            to.push(FIXED + count);
        } else {
            to.push(count);
            for (field, value) in pairs {
                to.push(field);
                to.push(value);
            }
            to.push(FIXED + 2 * count + 1);
        }
        to.finish();
        self.set_counts(live + 1, None);
    }

    /// Writes the counts of the first entry.
    fn set_counts(&mut self, live: i64, deleted: Option<i64>) {
        let Some(first) = Listpack::new(self.bytes.bytes()).first() else {
            return;
        };
        if let Some(deleted) = deleted {
            let second = Listpack::new(self.bytes.bytes()).next(first);
            second.map(|second| listpack::replace(&mut self.bytes, second, deleted));
        }
        listpack::replace(&mut self.bytes, first, live);
    }

    /// Marks entries as deleted, given where they are; they are not marked yet.
    pub(super) fn delete(&mut self, entries: &[Position]) {
        let view = self.view();
        let (live, deleted) = (view.live, view.deleted);
        for &entry in entries {
            let flags = number(Some(Listpack::new(self.bytes.bytes()).get(entry)));
            // Flags take two bytes with the mark and without.
            listpack::replace(&mut self.bytes, entry, flags | DELETED);
        }
        let count = entries.len() as i64;
        self.set_counts(live - count, Some(deleted + count));
    }
}

/// A node to be read.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    pub(super) id: StreamId,
    pub(super) live: i64,
    pub(super) deleted: i64,
    list: Listpack<'a>,
    field_count: usize,
    fields: Position,
    first: Position,
}

impl<'a> View<'a> {
    pub(super) fn new(id: StreamId, list: Listpack<'a>) -> Self {
        let mut elements = list.iter();
        let live = number(elements.next());
        let deleted = number(elements.next());
        let field_count = number(elements.next()) as usize;
        let fields = elements.position();
        elements.pass(field_count + 1);
        Self {
            id,
            live,
            deleted,
            list,
            field_count,
            fields,
            first: elements.position(),
        }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.list.bytes()
    }

    /// Length of the bytes.
    pub(super) fn bytes_len(&self) -> usize {
        self.list.bytes_len()
    }

    /// Whether these are the fields of the first entry.
    pub(super) fn has_fields<'v>(
        &self,
        fields: impl Iterator<Item = &'v [u8]>,
        size: Size,
    ) -> bool {
        if size.count != self.field_count {
            return false;
        }
        let own = self.list.iter_from(self.fields);
        own.zip(fields).all(|(own, field)| match own {
            StringRef::Bytes(own) => own == field,
            StringRef::Int(own) => itoa::Buffer::new().format(own).as_bytes() == field,
        })
    }

    /// All entries in order, deleted ones too.
    pub(super) fn entries(&self) -> Entries<'a> {
        Entries {
            view: self.clone(),
            rest: self.list.iter_from(self.first),
        }
    }

    /// All entries in reverse order, deleted ones too.
    pub(super) fn entries_back(&self) -> EntriesBack<'a> {
        EntriesBack {
            view: self.clone(),
            rest: self.list.iter(),
        }
    }

    /// The entries from the first one on whose id is at least `start`. Searches from both ends: what
    /// readers ask for is mostly close to one of them.
    pub(super) fn entries_from(&self, start: StreamId) -> Entries<'a> {
        let mut entries = self.entries();
        let mut back = self.entries_back();
        loop {
            let here = entries.rest.clone();
            if entries.next().is_none_or(|entry| entry.id >= start) {
                entries.rest = here;
                return entries;
            }
            let end = back.rest.end_position();
            if back.next().is_none_or(|entry| entry.id < start) {
                entries.rest = self.list.iter_from(end);
                return entries;
            }
        }
    }

    /// Id of the last entry, deleted or not.
    pub(super) fn last_id(&self) -> StreamId {
        self.entries_back().next().map_or(self.id, |entry| entry.id)
    }

    fn read(&self, mut elements: Iter<'a>) -> Entry<'a> {
        let at = elements.position();
        let flags = number(elements.next());
        let ms = number(elements.next());
        let seq = number(elements.next());
        let (count, fields) = if flags & SAME == 0 {
            (number(elements.next()) as usize, None)
        } else {
            (self.field_count, Some(self.list.iter_from(self.fields)))
        };
        Entry {
            id: self.id.plus(ms, seq),
            at,
            is_deleted: flags & DELETED != 0,
            pairs: Pairs {
                fields,
                rest: elements,
                left: count,
            },
        }
    }
}

/// An entry of a stream.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    pub(super) at: Position,
    pub(super) is_deleted: bool,
    pairs: Pairs<'a>,
}

impl<'a> Entry<'a> {
    /// Its fields and their values.
    #[must_use]
    pub fn pairs(&self) -> Pairs<'a> {
        self.pairs.clone()
    }
}

/// Fields and values of an entry.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    /// The fields, if they do not stand with the values.
    fields: Option<Iter<'a>>,
    rest: Iter<'a>,
    left: usize,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (StringRef<'a>, StringRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let field = match &mut self.fields {
            Some(fields) => fields.next(),
            None => self.rest.next(),
        };
        Some((field?, self.rest.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Pairs<'_> {}

/// Entries of a node in order.
#[derive(Debug, Clone)]
pub(super) struct Entries<'a> {
    pub(super) view: View<'a>,
    rest: Iter<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.view.read(self.rest.clone());
        self.rest = entry.pairs.rest.clone();
        let elements = if entry.pairs.fields.is_some() {
            entry.pairs.left
        } else {
            entry.pairs.left * 2
        };
        self.rest.pass(elements + 1);
        Some(entry)
    }
}

/// Entries of a node in reverse order.
#[derive(Debug, Clone)]
pub(super) struct EntriesBack<'a> {
    pub(super) view: View<'a>,
    rest: Iter<'a>,
}

impl<'a> Iterator for EntriesBack<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if self.rest.end_position() <= self.view.first {
            return None;
        }
        let elements = number(self.rest.next_back());
        self.rest.pass_back(elements as usize);
        let at = self.rest.end_position();
        Some(self.view.read(self.view.list.iter_from(at)))
    }
}
