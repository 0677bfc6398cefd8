//! Options of SET and GETEX, and the arithmetic of the times they carry.
//!
//! ```text
//!   SET    [NX | XX | IFEQ value] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
//!   GETEX  [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
//! ```
//!
//! Oddities that are kept: a unit may be repeated (`EX 1 EX 2`, the last one counts) but not
//! combined with another; a time is checked after the whole list has been read, and by GETEX only
//! if the key exists.

use proto::CommandError;
use proto::number::parse_i64;
use proto::time::UnixMillis;

/// Which command's options are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Set,
    GetEx,
}

/// When SET writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    Always,
    IfAbsent,
    IfPresent,
    /// Only over this very value.
    IfEqual(&'a [u8]),
}

/// What happens to the key's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpiryOption<'a> {
    /// Nothing was said.
    Unsaid,
    Keep,
    Persist,
    At(ExpiryUnit, &'a [u8]),
}

/// How the number behind the option is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryUnit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Millis,
    /// EXAT: seconds since 1970.
    UnixSeconds,
    /// PXAT: milliseconds since 1970.
    UnixMillis,
}

/// The options as given; times are still text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options<'a> {
    pub(super) condition: Condition<'a>,
    pub(super) returns_old: bool,
    pub(super) expiry: ExpiryOption<'a>,
}

impl<'a> Options<'a> {
    pub(super) const NONE: Options<'static> = Options {
        condition: Condition::Always,
        returns_old: false,
        expiry: ExpiryOption::Unsaid,
    };

    /// Reads the options of a command.
    pub(super) fn parse(
        mut words: impl Iterator<Item = &'a [u8]>,
        syntax: Syntax,
    ) -> Result<Self, CommandError> {
        let mut options = Self::NONE;
        let is_set = syntax == Syntax::Set;
        while let Some(word) = words.next() {
            if is_set && options.parse_condition(word, &mut words)? {
                continue;
            }
            if is_set && word.eq_ignore_ascii_case(b"GET") {
                options.returns_old = true;
            } else if is_set && word.eq_ignore_ascii_case(b"KEEPTTL") {
                options.keep(ExpiryOption::Keep)?;
            } else if !is_set && word.eq_ignore_ascii_case(b"PERSIST") {
                options.keep(ExpiryOption::Persist)?;
            } else {
                let unit = ExpiryUnit::named(word).ok_or(CommandError::Syntax)?;
                let number = words.next().ok_or(CommandError::Syntax)?;
                match options.expiry {
                    ExpiryOption::Unsaid => {}
                    ExpiryOption::At(earlier, _) if earlier == unit => {}
                    _ => return Err(CommandError::Syntax),
                }
                options.expiry = ExpiryOption::At(unit, number);
            }
        }
        Ok(options)
    }

    /// Takes NX, XX or IFEQ; false if `word` is none of them.
    fn parse_condition(
        &mut self,
        word: &'a [u8],
        words: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<bool, CommandError> {
        let condition = if word.eq_ignore_ascii_case(b"NX") {
            Condition::IfAbsent
        } else if word.eq_ignore_ascii_case(b"XX") {
            Condition::IfPresent
        } else if word.eq_ignore_ascii_case(b"IFEQ") {
            Condition::IfEqual(words.next().ok_or(CommandError::Syntax)?)
        } else {
            return Ok(false);
        };
        let is_repeated =
            self.condition == condition && !matches!(condition, Condition::IfEqual(_));
        if self.condition != Condition::Always && !is_repeated {
            return Err(CommandError::Syntax);
        }
        self.condition = condition;
        Ok(true)
    }

    /// Takes KEEPTTL or PERSIST, which may be repeated but not combined with a time.
    fn keep(&mut self, wanted: ExpiryOption<'a>) -> Result<(), CommandError> {
        if self.expiry != ExpiryOption::Unsaid && self.expiry != wanted {
            return Err(CommandError::Syntax);
        }
        self.expiry = wanted;
        Ok(())
    }
}

impl ExpiryUnit {
    fn named(word: &[u8]) -> Option<Self> {
        [
            (b"EX".as_slice(), Self::Seconds),
            (b"PX", Self::Millis),
            (b"EXAT", Self::UnixSeconds),
            (b"PXAT", Self::UnixMillis),
        ]
        .into_iter()
        .find_map(|(name, unit)| word.eq_ignore_ascii_case(name).then_some(unit))
    }

    /// The point in time that `text` means for command `name`.
    pub(crate) fn parse(
        self,
        text: &[u8],
        now: UnixMillis,
        name: &'static str,
    ) -> Result<UnixMillis, CommandError> {
        let number = parse_i64(text).ok_or(CommandError::NotAnInteger)?;
        let millis = match self {
            Self::Seconds | Self::UnixSeconds => number.checked_mul(1000),
            Self::Millis | Self::UnixMillis => Some(number),
        };
        let at = match self {
            Self::Seconds | Self::Millis => {
                millis.and_then(|millis| millis.checked_add_unsigned(now.get()))
            }
            Self::UnixSeconds | Self::UnixMillis => millis,
        };
        match at.and_then(|at| u64::try_from(at).ok()) {
            Some(at) if number > 0 => Ok(UnixMillis(at)),
            _ => Err(CommandError::InvalidExpire { name }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> Result<Options<'static>, CommandError> {
        let words: Vec<&'static [u8]> = words
            .iter()
            .map(|word| &*word.to_string().into_bytes().leak())
            .collect();
        Options::parse(words.into_iter(), Syntax::Set)
    }

    #[test]
    fn repeated_units_are_taken_and_mixed_ones_refused() {
        let options = set(&["ex", "1", "EX", "2"]).unwrap();
        assert_eq!(options.expiry, ExpiryOption::At(ExpiryUnit::Seconds, b"2"));
        assert!(set(&["EX", "1", "PX", "2"]).is_err());
        assert!(set(&["KEEPTTL", "PX", "2"]).is_err());
        assert!(set(&["KEEPTTL", "KEEPTTL"]).is_ok());
        assert!(set(&["PERSIST"]).is_err());
        assert!(set(&["EX"]).is_err());
    }

    #[test]
    fn conditions_exclude_each_other() {
        assert!(set(&["NX", "NX", "GET"]).is_ok());
        for words in [
            ["NX", "XX", "", ""],
            ["IFEQ", "a", "NX", ""],
            ["IFEQ", "a", "IFEQ", "a"],
        ] {
            assert!(set(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn times_beyond_a_signed_number_are_refused() {
        let parse =
            |unit: ExpiryUnit, text: &str| unit.parse(text.as_bytes(), UnixMillis(1000), "set");
        assert_eq!(parse(ExpiryUnit::Seconds, "1"), Ok(UnixMillis(2000)));
        assert_eq!(parse(ExpiryUnit::UnixMillis, "1"), Ok(UnixMillis(1)));
        assert!(parse(ExpiryUnit::Millis, "9223372036854775807").is_err());
        assert!(parse(ExpiryUnit::Millis, "9223372036854774807").is_ok());
        assert!(parse(ExpiryUnit::UnixSeconds, "9223372036854776").is_err());
        assert!(parse(ExpiryUnit::Seconds, "0").is_err());
        assert_eq!(
            parse(ExpiryUnit::Seconds, "x"),
            Err(CommandError::NotAnInteger)
        );
    }
}
