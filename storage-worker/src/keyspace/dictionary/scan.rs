//! Walking a dictionary piecemeal while it changes.
//!
//! The walk goes by hash prefix, and inside a table by tag; a position names the next (prefix, tag).
//! Both orders do not depend on how many buckets a table has. Between two steps
//!
//! - a table that grows or shrinks keeps the order of tags;
//! - a table that splits leaves everything behind the position in its two halves: the walk goes on
//!   in the first half at the tag, and takes the second half from its beginning;
//! - two tables that merge may bring elements of the second one before the tag, so the walk takes
//!   the merged table from its beginning.
//!
//! So an element that is present from the first step to the last is always visited; others may be,
//! and some are visited twice.

use super::{Dictionary, Element, Form, Table, table};

/// Depth at which tables stop splitting and only grow: what a position has bits for.
pub const DEPTH_MAX: u8 = 30;

/// Bits of a packed position: prefix with its length marked by a one behind it, and the tag.
const PREFIX_BITS: u32 = DEPTH_MAX as u32 + 2;
const TAG_BITS: u32 = 16;

/// Where a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Leading bits of the hash, at the top of the word.
    prefix: u64,
    /// Number of those bits.
    depth: u8,
    /// First tag of the table that was not visited.
    tag: u16,
}

impl Position {
    /// Bits that [`Position::pack`] uses.
    pub const BITS: u32 = PREFIX_BITS + TAG_BITS;

    /// The position as a number below 2^`BITS` that is never 0.
    #[must_use]
    pub fn pack(self) -> u64 {
        let marked =
            (self.prefix >> (64 - PREFIX_BITS)) | 1 << (PREFIX_BITS - 1 - u32::from(self.depth));
        marked << TAG_BITS | u64::from(self.tag)
    }

    /// The position that was packed; any number gives some valid position.
    #[must_use]
    pub fn unpack(packed: u64) -> Position {
        let marked = packed >> TAG_BITS & ((1 << PREFIX_BITS) - 1);
        if marked == 0 {
            return Position::default();
        }
        let depth = (PREFIX_BITS - 1 - marked.trailing_zeros()).min(u32::from(DEPTH_MAX));
        let prefix = (marked & (marked - 1)) << (64 - PREFIX_BITS);
        Position {
            prefix,
            depth: depth as u8,
            tag: packed as u16,
        }
    }
}

impl Dictionary {
    /// Visits about `want` elements from `from` on and returns where to go on, or `None` at the end.
    /// Elements that share a home bucket are visited in one step, so a few more may come.
    pub fn scan(
        &self,
        from: Position,
        want: usize,
        mut visit: impl FnMut(Element),
    ) -> Option<Position> {
        let mut position = from;
        let mut visited = 0usize;
        loop {
            let table = self.table_at(position.prefix);
            let depth = table.depth;
            // Merged since: its beginning may hold elements that were behind the position.
            let tag = if position.depth > depth {
                0
            } else {
                position.tag
            };
            let start = if depth == 0 {
                0
            } else {
                position.prefix >> (64 - depth) << (64 - depth)
            };
            let next_tag = scan_table(table, tag, want.saturating_sub(visited), &mut |element| {
                visited += 1;
                visit(element);
            });
            if let Some(tag) = next_tag {
                return Some(Position {
                    prefix: start,
                    depth,
                    tag,
                });
            }
            if depth == 0 {
                return None;
            }
            let next = start.checked_add(1 << (64 - depth))?;
            position = Position {
                prefix: next,
                depth: self.table_at(next).depth,
                tag: 0,
            };
            if visited >= want {
                return Some(position);
            }
        }
    }

    fn table_at(&self, prefix: u64) -> &Table {
        if !self.is_directory() {
            return &self.root;
        }
        let (first, _) = self.family(self.index_of(prefix));
        // SAFETY: `family` names live headers, and `self` is borrowed.
        unsafe { self.header(first).as_ref() }
    }
}

/// Visits a table from `tag` on; returns the tag to go on with, or `None` when it is done.
fn scan_table(
    table: &Table,
    tag: u16,
    want: usize,
    visit: &mut impl FnMut(Element),
) -> Option<u16> {
    if table.form == Form::Single {
        table.for_each(visit);
        return None;
    }
    let buckets = usize::from(table.buckets);
    let tag = usize::from(tag);
    let mut visited = 0;
    for number in table::home(tag, buckets)..buckets {
        table.for_home(number, tag, &mut |element| {
            visited += 1;
            visit(element);
        });
        if visited >= want && number + 1 < buckets {
            return u16::try_from(((number + 1) << 16).div_ceil(buckets)).ok();
        }
    }
    None
}
