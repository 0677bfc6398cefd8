//! Ids as clients write them, and how replies show them and the entries that have them.

use crate::collections::stream::{Entry, StreamId};
use crate::commands::prelude::*;

/// Longest text that is looked at.
const TEXT_MAX: usize = 127;

/// The text up to the first NUL, where the reference stops.
fn c_text(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A number of 64 bits without sign, as strtoull reads it: blanks and a sign in front are fine.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(|byte| is_blank(byte)).count()..];
    let (digits, is_negative) = match text {
        [b'+', digits @ ..] => (digits, false),
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    Some(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// An id with or without its second part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// Both parts, or the first one and what is assumed for the second.
    Id(StreamId),
    /// `ms-*`: the next free id of a millisecond.
    NextOf(u64),
}

/// Reads `ms-seq` or `ms`, which leaves `missing` for the second part; `may_be_open` allows `ms-*`.
fn read(text: &[u8], missing: u64, may_be_open: bool) -> Result<Given, CommandError> {
    let invalid = || CommandError::StreamId;
    if text.len() > TEXT_MAX {
        return Err(invalid());
    }
    let text = c_text(text);
    let dash = text.iter().position(|&byte| byte == b'-');
    let (first, second) = match dash {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let ms = number(first).ok_or_else(invalid)?;
    let seq = match second {
        None => missing,
        Some(b"*") if may_be_open => return Ok(Given::NextOf(ms)),
        Some(second) => number(second).ok_or_else(invalid)?,
    };
    Ok(Given::Id(StreamId { ms, seq }))
}

/// The id of an entry; `missing` stands for a second part that is not given.
pub(super) fn exact_or(text: &[u8], missing: u64) -> Result<StreamId, CommandError> {
    match read(text, missing, false)? {
        Given::Id(id) => Ok(id),
        Given::NextOf(_) => Err(CommandError::StreamId),
    }
}

/// The id of an entry; a missing second part is 0.
pub(super) fn exact(text: &[u8]) -> Result<StreamId, CommandError> {
    exact_or(text, 0)
}

/// The id of a new entry.
pub(super) fn new(text: &[u8]) -> Result<Given, CommandError> {
    read(text, 0, true)
}

/// As [`exact_or`], with `-` for the least id and `+` for the greatest.
pub(super) fn bound(text: &[u8], missing: u64) -> Result<StreamId, CommandError> {
    match c_text(text) {
        b"-" if text.len() <= TEXT_MAX => Ok(StreamId::MIN),
        b"+" if text.len() <= TEXT_MAX => Ok(StreamId::MAX),
        _ => exact_or(text, missing),
    }
}

/// The first id of an interval; `(` in front leaves the id itself out.
pub(super) fn start(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            exact(rest)?.next().ok_or(CommandError::StreamIntervalStart)
        }
        _ => bound(text, 0),
    }
}

/// The last id of an interval; `(` in front leaves the id itself out.
pub(super) fn end(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => exact_or(rest, u64::MAX)?
            .previous()
            .ok_or(CommandError::StreamIntervalEnd),
        _ => bound(text, u64::MAX),
    }
}

/// Ids from argument `from` on.
pub(super) fn all(args: Args<'_>, from: usize) -> Result<Vec<StreamId>, CommandError> {
    args.iter_from(from).map(exact).collect()
}

/// Replies with an id.
#[inline]
pub(super) fn reply_id(reply: &mut ReplyWriter<'_>, id: StreamId) {
    reply.bulk(id.text().as_bytes());
}

/// Replies with an entry: its id, and its fields with their values.
pub(super) fn reply_entry(reply: &mut ReplyWriter<'_>, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    let pairs = entry.pairs();
    reply.array(pairs.len() * 2);
    for (field, value) in pairs {
        reply_string(reply, field);
        reply_string(reply, value);
    }
}

/// Replies with entries, `count` at most if it is not 0.
pub(super) fn reply_entries<'e>(
    reply: &mut ReplyWriter<'_>,
    entries: impl Iterator<Item = Entry<'e>>,
    count: usize,
) {
    let mark = reply.begin_array();
    let mut len = 0;
    for entry in entries {
        reply_entry(reply, &entry);
        len += 1;
        if len == count {
            break;
        }
    }
    reply.set_array_len(mark, len);
}

/// A COUNT as the reference reads it: below zero is none.
pub(super) fn count(text: &[u8]) -> Result<usize, CommandError> {
    Ok(usize::try_from(integer(text)?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_the_reference_reads_them() {
        let id = |ms, seq| Ok(StreamId { ms, seq });
        let invalid = Err(CommandError::StreamId);
        for (text, want) in [
            ("1-2", id(1, 2)),
            ("1", id(1, 7)),
            (
                "18446744073709551615-18446744073709551615",
                id(u64::MAX, u64::MAX),
            ),
            ("18446744073709551616-0", invalid.clone()),
            ("007- +5", id(7, 5)),
            ("5- -6", id(5, u64::MAX - 5)),
            ("5--6", invalid.clone()),
            (" -6", invalid.clone()),
            ("", invalid.clone()),
            ("-", invalid.clone()),
            ("+", invalid.clone()),
            ("*", invalid.clone()),
            ("1-*", invalid.clone()),
            ("1-2x", invalid.clone()),
            ("1-2\0x", id(1, 2)),
        ] {
            assert_eq!(exact_or(text.as_bytes(), 7), want, "{text:?}");
        }
        assert_eq!(new(b"5-*"), Ok(Given::NextOf(5)));
        assert_eq!(new(b"5-**"), Err(CommandError::StreamId));
        assert_eq!(exact(&[b'1'; 128]), Err(CommandError::StreamId));
        assert_eq!(
            (bound(b"-", 1), bound(b"+", 1)),
            (id(0, 0), id(u64::MAX, u64::MAX))
        );
        assert_eq!(
            (start(b"(1-1"), end(b"(2")),
            (id(1, 2), id(2, u64::MAX - 1))
        );
        assert_eq!(start(b"(+"), Err(CommandError::StreamId));
        assert_eq!(start(b"("), Err(CommandError::StreamId));
        assert_eq!(end(b"(0-0"), Err(CommandError::StreamIntervalEnd));
        let greatest = b"(18446744073709551615-18446744073709551615";
        assert_eq!(start(greatest), Err(CommandError::StreamIntervalStart));
    }
}
