//! List commands: pushing, popping, reading, changing, moving, and waiting for elements.
//!
//! A short list is one listpack in its entry, a long one is a `collections::list`; `value` knows when
//! one becomes the other, and nobody else does.

mod blocking;
mod change;
mod debug;
mod moving;
mod pop;
mod push;
mod read;
pub(crate) mod value;

pub(crate) use blocking::{blmove, blmpop, blpop, brpop, brpoplpush};
pub(crate) use change::{linsert, lrem, lset, ltrim};
pub(crate) use debug::debug_facts;
pub(crate) use moving::{lmove, rpoplpush};
pub(crate) use pop::{lmpop, lpop, rpop};
pub(crate) use push::{lpush, lpushx, rpush, rpushx};
pub(crate) use read::{lindex, llen, lpos, lrange};

use crate::collections::list::End;
use crate::commands::prelude::*;

/// LEFT or RIGHT.
fn end_named(word: &[u8]) -> Result<End, CommandError> {
    if word.eq_ignore_ascii_case(b"LEFT") {
        Ok(End::Head)
    } else if word.eq_ignore_ascii_case(b"RIGHT") {
        Ok(End::Tail)
    } else {
        Err(CommandError::Syntax)
    }
}

/// A number from `least` on; anything else is `error`.
fn number_from(least: i64, text: &[u8], error: CommandError) -> Result<usize, CommandError> {
    parse_i64(text)
        .filter(|&number| number >= least)
        .and_then(|number| usize::try_from(number).ok())
        .ok_or(error)
}

/// A number whose opposite is one, too.
fn symmetric_number(text: &[u8]) -> Result<i64, CommandError> {
    match integer(text)? {
        i64::MIN => Err(CommandError::NotInSymmetricRange),
        number => Ok(number),
    }
}

/// The position that a client means by an index, which may count from the end.
fn position(index: i64, len: usize) -> Option<usize> {
    let position = if index < 0 {
        index.checked_add_unsigned(len as u64)?
    } else {
        index
    };
    usize::try_from(position)
        .ok()
        .filter(|&position| position < len)
}

/// First position and number of the elements from `start` to `stop`, both included, as a client gives
/// them; None if there are none.
fn span(start: i64, stop: i64, len: usize) -> Option<(usize, usize)> {
    let total = i64::try_from(len).unwrap_or(i64::MAX);
    let from_head = |index: i64| if index < 0 { index + total } else { index };
    let first = from_head(start).max(0);
    let last = from_head(stop).min(total - 1);
    if first > last {
        return None;
    }
    let first = usize::try_from(first).ok()?;
    Some((first, usize::try_from(last).ok()? - first + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_both_ends() {
        for (index, want) in [
            (0, Some(0)),
            (2, Some(2)),
            (3, None),
            (-1, Some(2)),
            (-3, Some(0)),
            (-4, None),
        ] {
            assert_eq!(position(index, 3), want, "{index}");
        }
        assert_eq!(position(i64::MIN, 3), None);
        assert_eq!(position(i64::MAX, 3), None);
    }

    #[test]
    fn spans_are_cut_at_both_ends() {
        for (start, stop, want) in [
            (0, -1, Some((0, 3))),
            (1, 1, Some((1, 1))),
            (-2, 100, Some((1, 2))),
            (-100, 0, Some((0, 1))),
            (0, -100, None),
            (3, 5, None),
            (2, 1, None),
            (i64::MIN, i64::MAX, Some((0, 3))),
            (i64::MAX, i64::MIN, None),
        ] {
            assert_eq!(span(start, stop, 3), want, "{start} {stop}");
        }
        assert_eq!(span(0, -1, 0), None);
    }
}
