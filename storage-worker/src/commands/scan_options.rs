//! What SCAN, HSCAN, SSCAN and ZSCAN have in common: their options.

use crate::commands::prelude::*;
use proto::glob;

/// Elements per call unless COUNT says otherwise.
const COUNT_DEFAULT: usize = 10;

/// The options of a scan through the keyspace or one collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// About how many elements are wanted.
    pub(crate) count: usize,
    /// Whether the fields of a hash come with their values.
    pub(crate) with_values: bool,
    /// The kind of keys that SCAN returns.
    type_name: Option<&'a [u8]>,
}

/// Words that not all of them know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scanned {
    Keys,
    Fields,
    Elements,
}

impl<'a> ScanOptions<'a> {
    /// Reads the words behind the cursor of SSCAN or ZSCAN.
    ///
    /// # Errors
    /// `Syntax`, `NotAnInteger`, `NoValuesOutsideHscan`: whichever word comes first.
    pub(crate) fn parse(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        Self::parse_for(words, Scanned::Elements)
    }

    /// As `parse`, for HSCAN.
    ///
    /// # Errors
    /// `Syntax`, `NotAnInteger`.
    pub(crate) fn parse_for_hash(
        words: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, CommandError> {
        Self::parse_for(words, Scanned::Fields)
    }

    /// As `parse`, for SCAN.
    ///
    /// # Errors
    /// As for `parse`.
    pub(crate) fn parse_for_keys(
        words: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, CommandError> {
        Self::parse_for(words, Scanned::Keys)
    }

    fn parse_for(
        mut words: impl Iterator<Item = &'a [u8]>,
        scanned: Scanned,
    ) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: None,
            count: COUNT_DEFAULT,
            with_values: true,
            type_name: None,
        };
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"NOVALUES") {
                if scanned != Scanned::Fields {
                    return Err(CommandError::NoValuesOutsideHscan);
                }
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
            } else if scanned == Scanned::Keys && word.eq_ignore_ascii_case(b"TYPE") {
                options.type_name = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether a key is to be returned.
    pub(crate) fn accept_key(&self, key: &[u8], kind: ValueKind) -> bool {
        self.accept(key)
            && self
                .type_name
                .is_none_or(|name| name.eq_ignore_ascii_case(kind.name().as_bytes()))
    }

    /// Whether an element is to be returned.
    pub(crate) fn accept(&self, element: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob::matches(pattern, element, false))
    }
}
