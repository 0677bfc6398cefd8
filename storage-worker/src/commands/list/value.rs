//! A list as a value: one listpack, or nodes, and when one becomes the other.
//!
//! ```text
//!   "listpack"   up to `list-max-listpack-size`: one node's worth
//!   "quicklist"  beyond; back as soon as one node is left and half of the limit holds it
//! ```
//!
//! As in Redis, a list grows into nodes before an element is added, judged by the length of what is
//! to come, and shrinks after a removal (or after LSET).

use crate::collections::list::{End, Fill, List};
use crate::collections::listpack::{self, EMPTY, Listpack, Wanted};
use crate::collections::{Splice, Structure};
use crate::commands::prelude::*;
use crate::keyspace::{Form, Found, Key, Keyspace, ValueMut};
use crate::settings::EngineSettings;
use proto::time::UnixMillis;
use std::ptr::NonNull;

/// One listpack.
const PACKED: Form = Form::LIST_LISTPACK;
/// A `collections::list::List`.
const NODES: Form = Form::LIST_NODES;

/// The settings that say how lists are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    fill: Fill,
    depth: u32,
    plain_from: u32,
}

impl Limits {
    pub(crate) fn of(settings: &EngineSettings) -> Self {
        Self {
            fill: settings.list_fill,
            depth: settings.list_compress_depth,
            plain_from: settings.list_plain_from,
        }
    }

    fn list(self) -> List {
        let mut list = List::new(self.fill, self.depth);
        list.set_plain_from(self.plain_from);
        list
    }
}

/// A list to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListRef<'a> {
    Packed(Listpack<'a>),
    Nodes(&'a List),
}

impl<'a> ListRef<'a> {
    /// The value of a list key.
    #[inline]
    pub(crate) fn of(found: &Found<'a>) -> Result<Self, CommandError> {
        if found.kind() != ValueKind::List {
            return Err(CommandError::WrongType);
        }
        Ok(if found.is_structure() {
            Self::Nodes(found.structure())
        } else {
            Self::Packed(Listpack::new(found.packed()))
        })
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::Packed(pack) => pack.len(),
            Self::Nodes(list) => list.len(),
        }
    }

    /// Calls `look` with the element at a position.
    pub(super) fn get<R>(
        self,
        position: usize,
        look: impl FnOnce(StringRef<'_>) -> R,
    ) -> Option<R> {
        match self {
            Self::Packed(pack) => pack.seek(position as i64).map(|at| look(pack.get(at))),
            Self::Nodes(list) => list.get(position, look),
        }
    }

    /// Calls `look` with the element at an end.
    pub(super) fn get_end<R>(self, end: End, look: impl FnOnce(StringRef<'_>) -> R) -> Option<R> {
        match (self, end) {
            (Self::Packed(pack), End::Head) => pack.first().map(|at| look(pack.get(at))),
            (Self::Packed(pack), End::Tail) => pack.last().map(|at| look(pack.get(at))),
            (Self::Nodes(list), End::Head) => list.get(0, look),
            (Self::Nodes(list), End::Tail) => list.get(list.len().checked_sub(1)?, look),
        }
    }

    /// Calls `each` with every element from a position on, or backwards from there, until it says
    /// false.
    #[inline]
    pub(crate) fn visit(
        self,
        from: usize,
        backward: bool,
        mut each: impl FnMut(StringRef<'_>) -> bool,
    ) {
        match self {
            Self::Nodes(list) => list.visit(from, backward, each),
            Self::Packed(pack) => {
                let Some(start) = pack.seek(from as i64) else {
                    return;
                };
                if backward {
                    pack.iter_to(start).rev().all(each);
                } else {
                    pack.iter_from(start).all(&mut each);
                }
            }
        }
    }

    /// Replies with `count` elements, which exist, from a position on.
    pub(super) fn reply_range(
        self,
        reply: &mut ReplyWriter<'_>,
        from: usize,
        count: usize,
        backward: bool,
    ) {
        reply.array(count);
        let mut rest = count;
        if rest == 0 {
            return;
        }
        self.visit(from, backward, |element| {
            reply_string(reply, element);
            rest -= 1;
            rest > 0
        });
    }
}

/// A list to be changed.
#[derive(Debug)]
pub(crate) struct ListMut<'a> {
    value: ValueMut<'a>,
    limits: Limits,
}

impl<'a> ListMut<'a> {
    /// The list at a key, if there is one.
    pub(super) fn find(
        keyspace: &'a mut Keyspace,
        key: &Key<'_>,
        now: UnixMillis,
        limits: Limits,
    ) -> Result<Option<Self>, CommandError> {
        let Some(mut value) = keyspace.value_mut(key, now) else {
            return Ok(None);
        };
        if value.kind() != ValueKind::List {
            return Err(CommandError::WrongType);
        }
        if value.is_structure() {
            value
                .structure_mut::<List>()
                .set_plain_from(limits.plain_from);
        }
        Ok(Some(Self { value, limits }))
    }

    /// Makes a list of elements that are pushed one after the other, at a key that is absent.
    pub(crate) fn create<'v>(
        keyspace: &mut Keyspace,
        key: &Key<'_>,
        limits: Limits,
        end: End,
        elements: impl ExactSizeIterator<Item = &'v [u8]> + Clone,
    ) {
        let bytes: usize = elements.clone().map(<[u8]>::len).sum();
        if limits.fill.is_exceeded(EMPTY.len() + bytes, elements.len()) {
            let mut list = limits.list();
            for element in elements {
                list.push(end, StringRef::Bytes(element));
            }
            keyspace.create_structure(key, NODES, list.into_arena());
            return;
        }
        let mut pack = EMPTY.to_vec();
        match end {
            End::Tail => listpack::push_back_all(&mut pack, elements),
            End::Head => elements.for_each(|element| listpack::push_front(&mut pack, element)),
        }
        keyspace.create_packed(key, ValueKind::List, PACKED, &pack);
    }

    #[inline]
    pub(super) fn view(&self) -> ListRef<'_> {
        if self.value.is_structure() {
            ListRef::Nodes(self.value.structure())
        } else {
            ListRef::Packed(Listpack::new(self.value.packed()))
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.view().len()
    }

    #[inline]
    fn nodes(&mut self) -> Option<&mut List> {
        if self.value.is_structure() {
            Some(self.value.structure_mut())
        } else {
            None
        }
    }

    /// Turns the list into nodes if so many more bytes and elements are too much for one listpack.
    #[inline]
    pub(super) fn make_room(&mut self, bytes: usize, count: usize) {
        if self.value.is_structure() {
            return;
        }
        let pack = Listpack::new(self.value.packed());
        let len = pack.len();
        if !self
            .limits
            .fill
            .is_exceeded(pack.bytes_len() + bytes, len + count)
        {
            return;
        }
        let mut list = self.limits.list();
        list.push_pack(pack.bytes(), len);
        self.value.set_structure(NODES, list.into_arena());
    }

    /// Adds an element; `make_room` was called for it.
    #[inline]
    pub(super) fn push(&mut self, end: End, element: &[u8]) {
        match (self.nodes(), end) {
            (Some(list), _) => list.push(end, StringRef::Bytes(element)),
            (None, End::Head) => listpack::push_front(&mut self.value, element),
            (None, End::Tail) => listpack::push_back(&mut self.value, element),
        }
    }

    /// Removes the element at an end.
    #[inline]
    pub(super) fn pop(&mut self, end: End) {
        if let Some(list) = self.nodes() {
            list.pop(end);
            return;
        }
        let pack = Listpack::new(self.value.packed());
        let position = match end {
            End::Head => pack.first(),
            End::Tail => pack.last(),
        };
        if let Some(position) = position {
            listpack::delete(&mut self.value, position, 1);
        }
    }

    /// Overwrites the element at a position.
    pub(super) fn set(&mut self, position: usize, element: &[u8]) {
        if let Some(list) = self.nodes() {
            list.set(position, element);
        } else if let Some(at) = Listpack::new(self.value.packed()).seek(position as i64) {
            listpack::replace(&mut self.value, at, element);
        }
    }

    /// Adds an element in front of the first one that is `pivot`, or behind it; says whether there is
    /// one.
    pub(super) fn insert(&mut self, pivot: &[u8], element: &[u8], behind: bool) -> bool {
        if let Some(list) = self.nodes() {
            return match list.position_of(pivot) {
                Some(index) => list.insert(index, element, behind),
                None => false,
            };
        }
        let pack = Listpack::new(self.value.packed());
        let found = pack.first().and_then(|first| pack.find(first, pivot, 0));
        match found {
            Some(at) if behind => {
                listpack::insert_after(&mut self.value, at, element);
            }
            Some(at) => {
                listpack::insert_before(&mut self.value, at, element);
            }
            None => return false,
        }
        true
    }

    /// Removes `count` elements from a position on.
    pub(super) fn delete_range(&mut self, position: usize, count: usize) {
        if count == 0 {
            return;
        }
        if let Some(list) = self.nodes() {
            list.delete_range(position, count);
        } else if let Some(at) = Listpack::new(self.value.packed()).seek(position as i64) {
            listpack::delete(&mut self.value, at, count);
        }
    }

    /// Removes elements that are `what`: all, or the first `limit` ones, or the last ones. Returns
    /// how many.
    pub(super) fn remove_equal(&mut self, what: &[u8], limit: Option<usize>, last: bool) -> usize {
        if let Some(list) = self.nodes() {
            return list.remove_equal(what, limit, last);
        }
        let wanted = Wanted::new(what);
        let count = Listpack::new(self.value.packed()).count_equal(&wanted);
        let removed = limit.unwrap_or(count).min(count);
        let skip = if last { count - removed } else { 0 };
        if removed > 0 {
            listpack::remove_equal(&mut self.value, &wanted, skip, removed);
        }
        removed
    }

    /// To be called once elements were removed or replaced: an empty list goes, and nodes that have
    /// become few become one listpack.
    pub(super) fn settle(mut self) {
        if self.len() == 0 {
            self.value.remove();
            return;
        }
        let fill = self.limits.fill;
        let Some(list) = self.nodes() else { return };
        let is_small = list
            .single_pack()
            .is_some_and(|node| fill.is_small(node.bytes_len(), node.len(), true));
        if !is_small {
            return;
        }
        if let Some(pack) = list.take_pack() {
            let list = NonNull::from(list);
            self.value.set_packed(PACKED, pack.bytes());
            List::free(list);
        }
    }
}
