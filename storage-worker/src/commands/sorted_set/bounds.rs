//! Ranges as clients write them: by score, by name, by number; each becomes an interval of ranks.

use std::ops::Range;

use super::value::View;
use crate::collections::sorted_set::Bound;
use crate::commands::prelude::*;
use proto::number::parse_score_bound;

/// `min max` of scores; a bracket in front leaves the end itself out.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreRange {
    from: Bound<'static>,
    to: Bound<'static>,
}

impl ScoreRange {
    pub(super) fn parse(min: &[u8], max: &[u8]) -> Result<ScoreRange, CommandError> {
        let (min, is_min_out) = score_end(min)?;
        let (max, is_max_out) = score_end(max)?;
        Ok(ScoreRange {
            from: if is_min_out {
                Bound::Above(min)
            } else {
                Bound::Below(min)
            },
            to: if is_max_out {
                Bound::Below(max)
            } else {
                Bound::Above(max)
            },
        })
    }

    pub(super) fn ranks(&self, set: View<'_>) -> Range<usize> {
        set.count_before(&self.from)..set.count_before(&self.to)
    }
}

fn score_end(text: &[u8]) -> Result<(f64, bool), CommandError> {
    let (number, is_out) = match text {
        [b'(', number @ ..] => (number, true),
        number => (number, false),
    };
    let score = parse_score_bound(number).ok_or(CommandError::ScoreRange)?;
    Ok((score, is_out))
}

/// `min max` of names, for sets whose scores are all the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct LexRange<'a> {
    from: Bound<'a>,
    to: Bound<'a>,
}

impl<'a> LexRange<'a> {
    pub(super) fn parse(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, CommandError> {
        let from = match min {
            [b'(', name @ ..] => Bound::MemberAbove(name),
            [b'[', name @ ..] => Bound::MemberBelow(name),
            text => lex_end(text)?,
        };
        let to = match max {
            [b'(', name @ ..] => Bound::MemberBelow(name),
            [b'[', name @ ..] => Bound::MemberAbove(name),
            text => lex_end(text)?,
        };
        Ok(LexRange { from, to })
    }

    pub(super) fn ranks(&self, set: View<'_>) -> Range<usize> {
        if self.touches(set) {
            set.count_before(&self.from)..set.count_before(&self.to)
        } else {
            0..0
        }
    }

    /// As `ranks`, searched from the end. It makes a difference only for packed sets of several scores,
    /// where nothing is promised, but where Redis is as predictable as we are.
    pub(super) fn ranks_from_end(&self, set: View<'_>) -> Range<usize> {
        let View::Packed(packed) = set else {
            return self.ranks(set);
        };
        if !self.touches(set) {
            return 0..0;
        }
        let len = packed.len();
        let behind = packed
            .walk_back(len - 1)
            .take_while(|&member| !is_behind(&self.to, Some(member)))
            .count();
        let inside = packed
            .walk_back(len - 1)
            .skip(behind)
            .take_while(|&member| !is_behind(&self.from, Some(member)))
            .count();
        len - behind - inside..len - behind
    }

    /// Whether the last member is not before the range and the first one not behind it.
    fn touches(&self, set: View<'_>) -> bool {
        let last = set.len().checked_sub(1);
        last.is_some_and(|last| !is_behind(&self.from, set.at(last)))
            && is_behind(&self.to, set.at(0))
    }
}

/// Whether a bound stands behind a member.
fn is_behind(bound: &Bound<'_>, member: Option<(f64, StringRef<'_>)>) -> bool {
    member.is_some_and(|(score, member)| {
        bound.is_behind(score, |other| {
            with_bytes(member, |member| member.cmp(other))
        })
    })
}

/// `-` or `+`; what follows a NUL byte behind it is not looked at.
fn lex_end(text: &[u8]) -> Result<Bound<'static>, CommandError> {
    match text {
        [b'-'] | [b'-', 0, ..] => Ok(Bound::First),
        [b'+'] | [b'+', 0, ..] => Ok(Bound::Last),
        _ => Err(CommandError::LexRange),
    }
}

/// `offset count` as LIMIT has it, applied to an interval; a negative count is no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) offset: i64,
    pub(super) count: i64,
}

impl Limit {
    pub(super) const NONE: Limit = Limit {
        offset: 0,
        count: -1,
    };

    /// What is left of an interval that is walked upwards, or, if `reverse`, downwards. An offset below
    /// zero leaves nothing; in a table it counts from the other end, as Redis does it.
    pub(super) fn apply(self, ranks: Range<usize>, reverse: bool, is_table: bool) -> Range<usize> {
        let len = ranks.end.saturating_sub(ranks.start);
        let passed = match usize::try_from(self.offset) {
            Ok(offset) => Some(offset),
            Err(_) if is_table => {
                let from_other_end = usize::try_from(self.offset.unsigned_abs()).ok();
                from_other_end.and_then(|number| len.checked_sub(number))
            }
            Err(_) => None,
        };
        let left = passed.map_or(0, |passed| len.saturating_sub(passed));
        let count = usize::try_from(self.count).map_or(left, |count| count.min(left));
        let passed = passed.unwrap_or(0);
        if count == 0 {
            0..0
        } else if reverse {
            let end = ranks.end - passed;
            end - count..end
        } else {
            let start = ranks.start + passed;
            start..start + count
        }
    }
}

/// The interval of ranks between two numbers, both included, which count from the end if they are
/// negative.
pub(super) fn index_ranks(start: i64, end: i64, len: usize) -> Range<usize> {
    let total = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |number: i64| {
        if number < 0 {
            number.saturating_add(total)
        } else {
            number
        }
    };
    let first = from_end(start).max(0);
    let last = from_end(end).min(total - 1);
    match (usize::try_from(first), usize::try_from(last)) {
        (Ok(first), Ok(last)) if first <= last => first..last + 1,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_takes_from_the_side_where_the_walk_begins() {
        let limit = |offset, count, reverse| Limit { offset, count }.apply(10..20, reverse, false);
        assert_eq!(limit(0, -1, false), 10..20);
        assert_eq!(limit(3, 2, false), 13..15);
        assert_eq!(limit(3, 2, true), 15..17);
        assert_eq!(limit(8, 5, false), 18..20);
        assert_eq!(limit(8, 5, true), 10..12);
        assert_eq!(limit(-1, 5, false), 0..0);
        assert_eq!(limit(i64::MAX, i64::MAX, true), 0..0);
        let backwards = Range { start: 5, end: 3 };
        assert_eq!(Limit::NONE.apply(backwards, true, true), 0..0);
    }

    #[test]
    fn in_a_table_offsets_below_zero_count_from_the_other_end() {
        let limit = |offset, count, reverse| Limit { offset, count }.apply(10..20, reverse, true);
        assert_eq!(limit(-1, 5, false), 19..20);
        assert_eq!(limit(-3, 2, false), 17..19);
        assert_eq!(limit(-1, 5, true), 10..11);
        assert_eq!(limit(-3, 2, true), 11..13);
        assert_eq!(limit(-10, -1, true), 10..20);
        assert_eq!(limit(-11, -1, false), 0..0);
        assert_eq!(limit(i64::MIN, -1, false), 0..0);
    }

    #[test]
    fn numbers_from_the_end_do_not_wrap() {
        assert_eq!(index_ranks(0, -1, 3), 0..3);
        assert_eq!(index_ranks(-2, 1, 3), 1..2);
        assert_eq!(index_ranks(i64::MIN, i64::MAX, 3), 0..3);
        assert_eq!(index_ranks(0, -4, 3), 0..0);
        assert_eq!(index_ranks(3, 5, 3), 0..0);
        assert_eq!(index_ranks(0, -1, 0), 0..0);
    }
}
