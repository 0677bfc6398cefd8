//! The options of SORT.

use std::ops::Range;

use super::pattern::Pattern;
use crate::commands::prelude::*;

/// Which of the two commands is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Sort,
    SortRo,
}

/// What a client wants of SORT.
#[derive(Debug)]
pub(super) struct Options<'a> {
    /// Keys that say what an element weighs, instead of itself.
    pub(super) by: Option<Pattern<'a>>,
    /// The order stays as it is: BY with a pattern that does not vary.
    pub(super) is_unsorted: bool,
    pub(super) is_alpha: bool,
    pub(super) is_descending: bool,
    /// What is returned instead of each element; itself if there are none.
    pub(super) gets: Vec<Pattern<'a>>,
    pub(super) destination: Option<&'a [u8]>,
    offset: i64,
    count: i64,
}

impl<'a> Options<'a> {
    /// Reads the words behind the key.
    ///
    /// # Errors
    /// `Syntax`, `NotAnInteger`.
    pub(super) fn parse(args: Args<'a>, syntax: Syntax) -> Result<Self, CommandError> {
        let mut options = Self {
            by: None,
            is_unsorted: false,
            is_alpha: false,
            is_descending: false,
            gets: Vec::new(),
            destination: None,
            offset: 0,
            count: -1,
        };
        let mut at = 2;
        while at < args.len() {
            let left = args.len() - at - 1;
            let is = |word: &[u8]| args.get(at).eq_ignore_ascii_case(word);
            at += if is(b"ASC") {
                options.is_descending = false;
                1
            } else if is(b"DESC") {
                options.is_descending = true;
                1
            } else if is(b"ALPHA") {
                options.is_alpha = true;
                1
            } else if is(b"LIMIT") && left >= 2 {
                options.offset = integer(args.get(at + 1))?;
                options.count = integer(args.get(at + 2))?;
                3
            } else if is(b"STORE") && left >= 1 && syntax == Syntax::Sort {
                options.destination = Some(args.get(at + 1));
                2
            } else if is(b"BY") && left >= 1 {
                let pattern = Pattern::new(args.get(at + 1));
                // One that does not vary says so for good, whatever BY follows.
                options.is_unsorted |= !pattern.varies();
                options.by = Some(pattern);
                2
            } else if is(b"GET") && left >= 1 {
                options.gets.push(Pattern::new(args.get(at + 1)));
                2
            } else {
                return Err(CommandError::Syntax);
            };
        }
        Ok(options)
    }

    /// Which of `len` elements are wanted, once they are in order.
    pub(super) fn part(&self, len: usize) -> Range<usize> {
        let clamp = |number: i64| usize::try_from(number).map_or(0, |number| number.min(len));
        let start = clamp(self.offset);
        if self.count < 0 {
            return start..len;
        }
        start..(start + clamp(self.count)).min(len)
    }
}
