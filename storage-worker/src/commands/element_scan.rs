//! What SSCAN and ZSCAN have in common: their options.

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
}

impl<'a> ScanOptions<'a> {
    /// Reads the words behind the cursor.
    ///
    /// # Errors
    /// `Syntax`, `NotAnInteger`, `NoValuesOutsideHscan`: whichever word comes first.
    pub(crate) fn parse(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: None,
            count: COUNT_DEFAULT,
        };
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"NOVALUES") {
                return Err(CommandError::NoValuesOutsideHscan);
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
