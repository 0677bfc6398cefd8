//! What HSCAN, SSCAN and ZSCAN have in common: their options.

use crate::commands::prelude::*;
use proto::glob;

/// Elements per call unless COUNT says otherwise.
const COUNT_DEFAULT: usize = 10;

/// The options of a scan through one collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// About how many elements are wanted.
    pub(crate) count: usize,
    /// Whether the fields of a hash come with their values.
    pub(crate) with_values: bool,
}

impl<'a> ScanOptions<'a> {
    /// Reads the words behind the cursor.
    ///
    /// # Errors
    /// `Syntax`, `NotAnInteger`, `NoValuesOutsideHscan`: whichever word comes first.
    pub(crate) fn parse(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        Self::parse_for(words, Err(CommandError::NoValuesOutsideHscan))
    }

    /// As `parse`, for HSCAN.
    ///
    /// # Errors
    /// `Syntax`, `NotAnInteger`.
    pub(crate) fn parse_for_hash(
        words: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, CommandError> {
        Self::parse_for(words, Ok(()))
    }

    fn parse_for(
        mut words: impl Iterator<Item = &'a [u8]>,
        no_values: CommandResult,
    ) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: None,
            count: COUNT_DEFAULT,
            with_values: true,
        };
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"NOVALUES") {
                no_values.clone()?;
                options.with_values = false;
                continue;
            }
            let value = words.next().ok_or(CommandError::Syntax)?;
            if word.eq_ignore_ascii_case(b"COUNT") {
                let count = integer(value)?;
                if count < 1 {
                    return Err(CommandError::Syntax);
                }
                options.count = usize::try_from(count).unwrap_or(usize::MAX);
            } else if word.eq_ignore_ascii_case(b"MATCH") {
                // Everything matches a lone star; not looking is faster.
                options.pattern = (value != b"*").then_some(value);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether an element is to be returned.
    pub(crate) fn accept(&self, element: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob::matches(pattern, element, false))
    }
}
