//! The elements that are sorted, copied out of the keyspace.

use std::ops::Range;

use super::options::Options;
use crate::commands::list::value::ListRef;
use crate::commands::prelude::*;
use crate::commands::set::SetRef;
use crate::commands::sorted_set::value::View;
use crate::keyspace::Key;

/// A text among the copied ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: usize,
    len: usize,
}

/// Texts, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
}

impl Texts {
    /// Copies a text.
    pub(super) fn add(&mut self, text: StringRef<'_>) -> Span {
        let start = self.bytes.len();
        with_bytes(text, |text| self.bytes.extend_from_slice(text));
        Span {
            start,
            len: self.bytes.len() - start,
        }
    }

    /// The text at a span.
    pub(super) fn get(&self, span: Span) -> &[u8] {
        &self.bytes[span.start..span.start + span.len]
    }
}

/// The elements, and which of them are wanted once they are in order.
#[derive(Debug)]
pub(super) struct Elements {
    pub(super) texts: Texts,
    pub(super) spans: Vec<Span>,
    pub(super) part: Range<usize>,
}

impl Elements {
    /// Copies the elements of a key. If their order stays, only those that are wanted, in the
    /// direction that is wanted.
    ///
    /// # Errors
    /// `WrongType` for a key that is no list, set or sorted set.
    pub(super) fn read(
        ctx: &mut Context<'_>,
        key: &Key<'_>,
        options: &mut Options<'_>,
    ) -> Result<Elements, CommandError> {
        let is_in_script = ctx.is_in_script();
        let Some(found) = ctx.keyspace.find(key, ctx.now, ctx.access) else {
            return Ok(Elements::copy(options, 0, |_, _| {}));
        };
        let elements = match found.kind() {
            ValueKind::List => {
                let (list, len) = (ListRef::of(&found)?, ListRef::of(&found)?.len());
                Elements::copy(options, len, |taken, copy| {
                    let mut left = taken.count;
                    if left > 0 {
                        list.visit(taken.first, taken.is_backward, |element| {
                            copy(element);
                            left -= 1;
                            left > 0
                        });
                    }
                })
            }
            ValueKind::Set => {
                let set = SetRef::of(&found)?;
                if options.is_unsorted && (options.destination.is_some() || is_in_script) {
                    // What is stored must not depend on how the set is kept.
                    options.is_unsorted = false;
                    options.is_alpha = true;
                    options.by = None;
                }
                Elements::copy(options, set.len(), |taken, copy| {
                    // A set has no direction.
                    let first = taken.start;
                    set.iter().skip(first).take(taken.count).for_each(copy);
                })
            }
            ValueKind::SortedSet => {
                let set = View::of(&found)?;
                Elements::copy(options, set.len(), |taken, copy| {
                    if taken.count == 0 {
                        return;
                    }
                    let walk = if taken.is_backward {
                        set.walk_back(taken.first)
                    } else {
                        set.walk(taken.first)
                    };
                    walk.take(taken.count).for_each(|(_, member)| copy(member));
                })
            }
            _ => return Err(CommandError::WrongType),
        };
        Ok(elements)
    }

    /// Decides which of `len` elements are needed and lets `walk` hand them over.
    fn copy(
        options: &Options<'_>,
        len: usize,
        walk: impl FnOnce(Taken, &mut dyn FnMut(StringRef<'_>)),
    ) -> Elements {
        let mut texts = Texts::default();
        let mut spans = Vec::new();
        let part = options.part(len);
        let (start, count, part) = if options.is_unsorted {
            (part.start, part.len(), 0..part.len())
        } else {
            (0, len, part)
        };
        let is_backward = options.is_unsorted && options.is_descending;
        let taken = Taken {
            start,
            first: if is_backward {
                (len - start).saturating_sub(1)
            } else {
                start
            },
            count,
            is_backward,
        };
        walk(taken, &mut |element| spans.push(texts.add(element)));
        Elements { texts, spans, part }
    }
}

/// Which elements are copied.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// How many are passed over.
    start: usize,
    /// Position of the first one, counted from the head.
    first: usize,
    count: usize,
    is_backward: bool,
}
