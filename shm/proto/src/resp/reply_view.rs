//! Reads replies back: to merge those of several workers, and for tests.
//!
//! ```text
//!   *2\r\n  $1\r\na\r\n  :1\r\n        View::Array(elements) -> "$1\r\na\r\n", ":1\r\n"
//! ```
//!
//! Elements stay RESP bytes: a merge mostly copies them into another reply.
//!
//! Invariants
//!   - No recursion: nesting is counted, so a hostile reply cannot exhaust the stack.
//!   - Nothing is believed about lengths: a reply that does not fit its bytes is [`BadReply`].
//!
//! Cost: one pass over headers; the content of bulks is skipped. Nothing is allocated.

use crate::number::parse_i64;
use std::fmt;

/// Bytes that are not a whole reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReply {
    /// The reply goes on behind the given bytes.
    Unfinished,
    /// This cannot become a reply.
    Malformed,
}

impl fmt::Display for BadReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfinished => "reply ends in the middle",
            Self::Malformed => "reply is not RESP",
        })
    }
}

impl std::error::Error for BadReply {}

/// One reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View<'a> {
    /// `+text`.
    Simple(&'a [u8]),
    /// `-text`, or RESP3's `!` error.
    Error(&'a [u8]),
    /// `:1`.
    Integer(i64),
    /// `$`, or RESP3's `=` with its format.
    Bulk(&'a [u8]),
    /// `$-1`, `*-1` or `_`.
    Null,
    /// `,` as text.
    Double(&'a [u8]),
    /// `#`.
    Bool(bool),
    /// `(` as text.
    BigNumber(&'a [u8]),
    /// `*`.
    Array(Elements<'a>),
    /// `%`: name, value, name, value, ...
    Map(Elements<'a>),
    /// `~`.
    Set(Elements<'a>),
    /// `>`.
    Push(Elements<'a>),
}

/// The elements of a collection, each as the RESP bytes of one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl Elements<'_> {
    /// How many are left; a map counts names and values.
    #[must_use]
    pub fn count(&self) -> usize {
        self.left
    }

    /// Their bytes, one behind the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.left == 0 {
            return None;
        }
        // The collection was walked when it was viewed, so its elements are whole.
        let length = reply_len(self.bytes).ok()?;
        let (element, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        self.left -= 1;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// One header: its type, its line, where what follows begins.
struct Header<'a> {
    kind: u8,
    line: &'a [u8],
    end: usize,
}

/// Bytes of the first whole reply in `bytes`.
///
/// # Errors
/// It is not whole, or not a reply.
#[inline]
pub fn reply_len(bytes: &[u8]) -> Result<usize, BadReply> {
    let mut at = 0;
    let mut missing = 1usize;
    while missing != 0 {
        missing -= 1;
        let Header { kind, line, end } = header(&bytes[at..])?;
        at += end;
        match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => {}
            b'$' | b'=' | b'!' => {
                if let Some(length) = length(line)? {
                    at = at.checked_add(length + 2).ok_or(BadReply::Malformed)?;
                    if at > bytes.len() {
                        return Err(BadReply::Unfinished);
                    }
                }
            }
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                // Attributes are pairs in front of a reply, which is then still missing.
                let each = 1 + usize::from(matches!(kind, b'%' | b'|'));
                let inner = length(line)?.unwrap_or(0);
                let more = inner.checked_mul(each).ok_or(BadReply::Malformed)?;
                missing = missing.checked_add(more).ok_or(BadReply::Malformed)?;
                missing += usize::from(kind == b'|');
            }
            _ => return Err(BadReply::Malformed),
        }
    }
    Ok(at)
}

/// The first reply in `bytes`; attributes in front of it are skipped.
///
/// # Errors
/// It is not whole, or not a reply.
pub fn view(bytes: &[u8]) -> Result<View<'_>, BadReply> {
    let total = reply_len(bytes)?;
    let mut bytes = &bytes[..total];
    loop {
        let Header { kind, line, end } = header(bytes)?;
        let body = &bytes[end..];
        let elements = |count: usize| Elements {
            bytes: body,
            left: count,
        };
        return Ok(match kind {
            b'+' => View::Simple(line),
            b'-' => View::Error(line),
            b':' => View::Integer(parse_i64(line).ok_or(BadReply::Malformed)?),
            b',' => View::Double(line),
            b'(' => View::BigNumber(line),
            b'_' => View::Null,
            b'#' => View::Bool(line == b"t"),
            b'|' => {
                let pairs = length(line)?.unwrap_or(0);
                let skipped = elements(pairs * 2).fold(0, |sum, element| sum + element.len());
                bytes = &body[skipped..];
                continue;
            }
            _ => match (kind, length(line)?) {
                (_, None) => View::Null,
                (b'!', Some(length)) => View::Error(&body[..length]),
                (b'=' | b'$', Some(length)) => View::Bulk(&body[..length]),
                (b'*', Some(count)) => View::Array(elements(count)),
                (b'~', Some(count)) => View::Set(elements(count)),
                (b'>', Some(count)) => View::Push(elements(count)),
                (_, Some(count)) => View::Map(elements(count * 2)),
            },
        });
    }
}

/// Whether the reply in `bytes` is an error.
#[inline]
#[must_use]
pub fn is_error(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(b'-' | b'!'))
}

/// The value of an integer reply.
#[inline]
#[must_use]
pub fn integer(bytes: &[u8]) -> Option<i64> {
    let line = bytes.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    parse_i64(line)
}

#[inline]
fn header(bytes: &[u8]) -> Result<Header<'_>, BadReply> {
    let end = memchr::memchr(b'\n', bytes).ok_or(BadReply::Unfinished)?;
    match &bytes[..end] {
        [kind, line @ .., b'\r'] => Ok(Header {
            kind: *kind,
            line,
            end: end + 1,
        }),
        _ => Err(BadReply::Malformed),
    }
}

/// A length; `None` stands for nothing (-1).
#[inline]
fn length(line: &[u8]) -> Result<Option<usize>, BadReply> {
    match parse_i64(line) {
        Some(-1) => Ok(None),
        Some(length) if (0..=1 << 40).contains(&length) => Ok(Some(length as usize)),
        _ => Err(BadReply::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CommandError;
    use crate::resp::ReplyWriter;
    use proptest::prelude::*;

    fn written(resp3: bool, write: impl Fn(&mut ReplyWriter<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut ReplyWriter::to_vec(&mut out, resp3));
        out
    }

    #[test]
    fn every_kind_is_seen() {
        let see = |resp3, write: &dyn Fn(&mut ReplyWriter<'_>), want: View<'_>| {
            let bytes = written(resp3, write);
            assert_eq!(reply_len(&bytes), Ok(bytes.len()));
            assert_eq!(view(&bytes), Ok(want));
            for cut in 0..bytes.len() {
                assert_eq!(reply_len(&bytes[..cut]), Err(BadReply::Unfinished));
            }
        };
        see(false, &|w| w.ok(), View::Simple(b"OK"));
        see(
            false,
            &|w| w.error(&CommandError::Syntax),
            View::Error(b"ERR syntax error"),
        );
        see(false, &|w| w.int(-7), View::Integer(-7));
        see(false, &|w| w.bulk(b"a\r\nb"), View::Bulk(b"a\r\nb"));
        see(false, &|w| w.null(), View::Null);
        see(false, &|w| w.null_array(), View::Null);
        see(true, &|w| w.null(), View::Null);
        see(true, &|w| w.double(1.5), View::Double(b"1.5"));
        see(true, &|w| w.bool(true), View::Bool(true));
        see(true, &|w| w.big_number(b"12"), View::BigNumber(b"12"));
        see(true, &|w| w.verbatim("txt", b"x"), View::Bulk(b"txt:x"));
        assert_eq!(integer(b":12\r\n"), Some(12));
        assert_eq!(integer(b"$1\r\n1\r\n"), None);
    }

    #[test]
    fn elements_are_replies_themselves() {
        let bytes = written(true, |w| {
            w.map(2);
            w.bulk(b"a");
            w.array(2);
            w.int(1);
            w.null();
            w.bulk(b"b");
            w.set(0);
        });
        let Ok(View::Map(elements)) = view(&bytes) else {
            panic!("a map")
        };
        let elements: Vec<_> = elements.collect();
        assert_eq!(
            elements,
            [
                &b"$1\r\na\r\n"[..],
                b"*2\r\n:1\r\n_\r\n",
                b"$1\r\nb\r\n",
                b"~0\r\n"
            ]
        );
    }

    #[test]
    fn attributes_are_skipped() {
        let bytes = b"|1\r\n+a\r\n*1\r\n:1\r\n:5\r\n";
        assert_eq!(reply_len(bytes), Ok(bytes.len()));
        assert_eq!(view(bytes), Ok(View::Integer(5)));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let bytes = [b"*1\r\n".repeat(1_000_000), b":1\r\n".to_vec()].concat();
        assert_eq!(reply_len(&bytes), Ok(bytes.len()));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(
            proptest::sample::select(b"*$+-:%~>_,#(|=!\r\n0129a".to_vec()), 0..60))
        {
            if let Ok(View::Array(elements) | View::Map(elements) | View::Set(elements)
                | View::Push(elements)) = view(&bytes)
            {
                let count = elements.count();
                prop_assert_eq!(elements.collect::<Vec<_>>().len(), count);
            }
        }
    }
}
