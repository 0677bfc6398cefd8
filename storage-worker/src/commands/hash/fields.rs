//! The part of an argument list that names fields: `FIELDS numfields field ...`, and times of fields.

use crate::commands::prelude::*;
use proto::time::UnixMillis;

/// Latest time at which a field may expire, in milliseconds since 1970: 46 bits.
const TIME_MAX: u64 = (1 << 46) - 1;

/// Checks `FIELDS numfields field ...` with the word at `at`, up to the end of the arguments.
/// `not_positive` is the error for a number below 1. Returns where the fields begin.
pub(super) fn parse_fields(
    args: Args<'_>,
    at: usize,
    not_positive: CommandError,
) -> Result<usize, CommandError> {
    if !args.get(at).eq_ignore_ascii_case(b"FIELDS") {
        return Err(CommandError::FieldsMissing);
    }
    let count = parse_i64(args.get(at + 1)).filter(|&count| count > 0);
    let count = count.ok_or(not_positive)?;
    let first = at + 2;
    let given = args.len().saturating_sub(first);
    if u64::try_from(given).ok() != u64::try_from(count).ok() {
        return Err(CommandError::FieldCountMismatch);
    }
    Ok(first)
}

/// How the number that a time is given by is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeUnit {
    pub(super) is_seconds: bool,
    pub(super) is_absolute: bool,
}

impl TimeUnit {
    /// The unit that an option names.
    pub(super) fn named(word: &[u8]) -> Option<Self> {
        let (is_seconds, is_absolute) = match word.to_ascii_uppercase().as_slice() {
            b"EX" => (true, false),
            b"PX" => (false, false),
            b"EXAT" => (true, true),
            b"PXAT" => (false, true),
            _ => return None,
        };
        Some(Self {
            is_seconds,
            is_absolute,
        })
    }

    /// The point in time that `text` means for command `name`. It may have passed.
    pub(super) fn parse(
        self,
        text: &[u8],
        now: UnixMillis,
        name: &'static str,
    ) -> Result<UnixMillis, CommandError> {
        let number = u64::try_from(integer(text)?).map_err(|_| CommandError::NegativeExpire)?;
        let millis = if self.is_seconds {
            number.checked_mul(1000)
        } else {
            Some(number)
        };
        let at = match (millis, self.is_absolute) {
            (Some(millis), false) => millis.checked_add(now.get()),
            (millis, _) => millis,
        };
        match at {
            Some(at) if at <= TIME_MAX => Ok(UnixMillis(at)),
            _ => Err(CommandError::InvalidExpire { name }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_end_where_those_of_the_reference_end() {
        let unit = |word: &str| TimeUnit::named(word.as_bytes()).expect("a unit");
        let parse =
            |word: &str, text: &str| unit(word).parse(text.as_bytes(), UnixMillis(1000), "x");
        assert_eq!(parse("pxat", "70368744177663"), Ok(UnixMillis(TIME_MAX)));
        assert_eq!(parse("Px", "70368744176663"), Ok(UnixMillis(TIME_MAX)));
        assert_eq!(parse("EX", "0"), Ok(UnixMillis(1000)));
        for (word, text) in [
            ("PXAT", "70368744177664"),
            ("PX", "70368744176664"),
            ("EXAT", "70368744178"),
            ("EX", "9223372036854775807"),
        ] {
            assert_eq!(
                parse(word, text),
                Err(CommandError::InvalidExpire { name: "x" })
            );
        }
        assert_eq!(parse("EX", "-1"), Err(CommandError::NegativeExpire));
        assert_eq!(parse("EX", "x"), Err(CommandError::NotAnInteger));
        assert!(TimeUnit::named(b"KEEPTTL").is_none());
    }
}
