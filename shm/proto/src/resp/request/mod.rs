//! Cuts requests out of the bytes of a connection, without copying them.
//!
//! The parser is fed the unconsumed bytes of one connection, from the start of the current command
//! on. It answers with the places of the arguments inside those bytes. A command that has arrived
//! only in part is not scanned again from its start: the parser remembers how many arguments are
//! missing and where it stands.
//!
//! ```text
//!   fresh ──"*n"──> in multibulk ──last argument──> Complete, fresh again
//!     │                 └── bytes end ──> Incomplete, stays
//!     ├──"*0", "*-1", empty line ──> Empty, fresh
//!     └──other byte──> one line ──> Inline, fresh
//! ```
//!
//! What Redis accepts is accepted, by the letter: the two bytes behind a length or an argument are
//! not looked at, a NUL hides everything behind it while the end of a line is searched, a length
//! must be a canonical decimal. Limits and texts are Redis' too; after an error the connection is
//! closed behind the error reply.
//!
//! Cost: one pass; a `GET` with a 16-byte key takes about 15 ns. Nothing is allocated except for
//! inline commands and for commands of many arguments that arrive in pieces.
//!
//! Not here: the size of the query buffer (gateway), what a command means (`catalogue`).

use crate::limits::{
    ARGUMENTS_MAX, ARGUMENTS_RESERVED_MAX, INLINE_BYTES_MAX, UNAUTHENTICATED_ARGUMENTS_MAX,
    UNAUTHENTICATED_BULK_BYTES_MAX,
};
use crate::number::parse_i64;
use crate::resp::inline::split_words;
use std::fmt;

/// What a connection may send.
#[derive(Clone, Copy, Debug)]
pub struct ParseLimits {
    /// `proto-max-bulk-len`: longest argument in bytes.
    pub bulk_bytes_max: u64,
    /// False while the connection must still authenticate; then far less is accepted.
    pub authenticated: bool,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self {
            bulk_bytes_max: crate::limits::BULK_BYTES_MAX,
            authenticated: true,
        }
    }
}

/// What the bytes given so far hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A command; its arguments are `(start, end)` spans of the given bytes.
    Complete {
        /// Bytes of the command.
        consumed: usize,
    },
    /// An inline command; its arguments are spans of [`RequestParser::inline_bytes`].
    Inline {
        /// Bytes of the line, its end included.
        consumed: usize,
    },
    /// Nothing to run: an empty line, or a multibulk of no arguments.
    Empty {
        /// Bytes to skip.
        consumed: usize,
    },
    /// More bytes are needed; call again with the same bytes and more behind them.
    Incomplete,
}

/// Bytes that are not RESP: send [`ProtocolError::line`] as an error, then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// A line without an end.
    TooBigInline,
    /// Quotes of an inline command do not match.
    UnbalancedQuotes,
    /// The line announcing a number of arguments does not end.
    TooBigMultibulkLine,
    /// The number of arguments is not one.
    InvalidMultibulkLength,
    /// Too many arguments before authentication.
    UnauthenticatedMultibulk,
    /// The line announcing an argument does not end.
    TooBigBulkLine,
    /// Something else stands where an argument should begin.
    ExpectedDollar(u8),
    /// The length of an argument is not one, or is too large.
    InvalidBulkLength,
    /// Too long an argument before authentication.
    UnauthenticatedBulk,
    /// A command beyond 4 GiB; the query buffer limit is reached long before.
    TooBigCommand,
}

impl ProtocolError {
    /// The error line as the client sees it, without `-` and CRLF. Bytes, since it may repeat one
    /// that the client sent.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut line = b"ERR Protocol error: ".to_vec();
        match *self {
            Self::ExpectedDollar(got) => {
                line.extend_from_slice(b"expected '$', got '");
                line.push(if matches!(got, b'\r' | b'\n') {
                    b' '
                } else {
                    got
                });
                line.push(b'\'');
            }
            ref other => line.extend_from_slice(other.text().as_bytes()),
        }
        line
    }

    fn text(&self) -> &'static str {
        match self {
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::TooBigMultibulkLine => "too big mbulk count string",
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::UnauthenticatedMultibulk => "unauthenticated multibulk length",
            Self::TooBigBulkLine => "too big bulk count string",
            Self::ExpectedDollar(_) => "expected '$'",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulk => "unauthenticated bulk length",
            Self::TooBigCommand => "too big command",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.line()))
    }
}

impl std::error::Error for ProtocolError {}

/// Whether a command's name is the start of an HTTP request: a web page is being used to reach us.
/// Such a connection is closed at once: replies that have not been written yet are dropped too.
#[must_use]
pub fn is_cross_protocol_attack(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// One connection's parser. See the module.
#[derive(Debug, Default)]
pub struct RequestParser {
    /// Arguments still missing of the command that has begun; 0 = at the start of a command.
    missing: u32,
    /// Bytes of the command dealt with so far.
    offset: usize,
    /// Length of the argument at `offset`, once its line has been read.
    bulk: Option<usize>,
    /// Spans of a command that has arrived in part.
    saved: Vec<(u32, u32)>,
    /// Unescaped arguments of the last inline command.
    inline: Vec<u8>,
}

/// A line holding a length.
enum Line {
    Number { value: i64, next: usize },
    Invalid,
    Unfinished,
    TooBig,
}

impl RequestParser {
    /// A parser at the start of a command.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            missing: 0,
            offset: 0,
            bulk: None,
            saved: Vec::new(),
            inline: Vec::new(),
        }
    }

    /// Forgets a command that has begun.
    pub fn reset(&mut self) {
        self.missing = 0;
        self.offset = 0;
        self.bulk = None;
        self.saved.clear();
    }

    /// Arguments of the last inline command, unescaped, one behind the other.
    #[must_use]
    pub fn inline_bytes(&self) -> &[u8] {
        &self.inline
    }

    /// After `Incomplete`: the least number of bytes, counted from the start of the command, with
    /// which calling again makes sense. Lets the caller grow its buffer once for a big argument.
    #[must_use]
    pub fn wanted(&self) -> usize {
        match self.bulk {
            Some(length) => self.offset + length + 2,
            None => self.offset + 1,
        }
    }

    /// Looks for one command at the start of `buf`. `out` receives the spans of its arguments (old
    /// content is dropped); what it holds after anything but `Complete` and `Inline` is of no use.
    ///
    /// # Errors
    /// The bytes are not RESP; the parser is fresh afterwards.
    #[inline]
    pub fn parse(
        &mut self,
        buf: &[u8],
        out: &mut Vec<(u32, u32)>,
        limits: ParseLimits,
    ) -> Result<Parsed, ProtocolError> {
        if self.missing != 0 {
            std::mem::swap(out, &mut self.saved);
            return self.arguments(buf, out, limits);
        }
        out.clear();
        match buf.first() {
            None => return Ok(Parsed::Incomplete),
            Some(b'*') => {}
            Some(_) => return self.line(buf, out),
        }
        let (count, next) = match length_line(buf, 0) {
            Line::Number { value, next } if value <= ARGUMENTS_MAX => (value, next),
            Line::Number { .. } | Line::Invalid => {
                return Err(ProtocolError::InvalidMultibulkLength);
            }
            Line::Unfinished => return Ok(Parsed::Incomplete),
            Line::TooBig => return Err(ProtocolError::TooBigMultibulkLine),
        };
        if count > UNAUTHENTICATED_ARGUMENTS_MAX && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulk);
        }
        if count <= 0 {
            return Ok(Parsed::Empty { consumed: next });
        }
        self.missing = count as u32;
        self.offset = next;
        out.reserve((count as usize).min(ARGUMENTS_RESERVED_MAX));
        self.arguments(buf, out, limits)
    }

    /// Arguments from `self.offset` on.
    #[inline]
    fn arguments(
        &mut self,
        buf: &[u8],
        out: &mut Vec<(u32, u32)>,
        limits: ParseLimits,
    ) -> Result<Parsed, ProtocolError> {
        let mut offset = self.offset;
        let mut missing = self.missing;
        let mut bulk = self.bulk.take();
        while missing != 0 {
            let length = match bulk.take() {
                Some(length) => length,
                None => match bulk_line(buf, offset, limits) {
                    Ok(Some((length, next))) => {
                        offset = next;
                        length
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.reset();
                        return Err(error);
                    }
                },
            };
            let end = offset + length;
            if buf.len() < end + 2 {
                bulk = Some(length);
                break;
            }
            let (Ok(start), Ok(stop)) = (u32::try_from(offset), u32::try_from(end)) else {
                self.reset();
                return Err(ProtocolError::TooBigCommand);
            };
            out.push((start, stop));
            offset = end + 2;
            missing -= 1;
        }
        if missing == 0 {
            self.missing = 0;
            self.offset = 0;
            return Ok(Parsed::Complete { consumed: offset });
        }
        self.missing = missing;
        self.offset = offset;
        self.bulk = bulk;
        self.saved.clear();
        std::mem::swap(out, &mut self.saved);
        Ok(Parsed::Incomplete)
    }

    /// An inline command.
    #[cold]
    fn line(&mut self, buf: &[u8], out: &mut Vec<(u32, u32)>) -> Result<Parsed, ProtocolError> {
        let end = match memchr::memchr2(b'\n', 0, buf) {
            Some(end) if buf[end] == b'\n' => end,
            _ if buf.len() > INLINE_BYTES_MAX => return Err(ProtocolError::TooBigInline),
            _ => return Ok(Parsed::Incomplete),
        };
        let consumed = end + 1;
        let line = buf[..end].strip_suffix(b"\r").unwrap_or(&buf[..end]);
        self.inline.clear();
        if split_words(line, &mut self.inline, out).is_err() {
            return Err(ProtocolError::UnbalancedQuotes);
        }
        if out.is_empty() {
            return Ok(Parsed::Empty { consumed });
        }
        Ok(Parsed::Inline { consumed })
    }
}

/// The line that announces an argument: its length and where it begins. `None`: not there yet.
#[inline]
fn bulk_line(
    buf: &[u8],
    offset: usize,
    limits: ParseLimits,
) -> Result<Option<(usize, usize)>, ProtocolError> {
    let mut line = length_line(buf, offset);
    if buf.get(offset) != Some(&b'$') {
        line = length_line_by_the_letter(buf, offset);
        if matches!(line, Line::Number { .. } | Line::Invalid) {
            return Err(ProtocolError::ExpectedDollar(buf[offset]));
        }
    }
    match line {
        Line::Number { value, next } => {
            if value < 0 || value as u64 > limits.bulk_bytes_max {
                return Err(ProtocolError::InvalidBulkLength);
            }
            if value > UNAUTHENTICATED_BULK_BYTES_MAX && !limits.authenticated {
                return Err(ProtocolError::UnauthenticatedBulk);
            }
            Ok(Some((value as usize, next)))
        }
        Line::Invalid => Err(ProtocolError::InvalidBulkLength),
        Line::Unfinished => Ok(None),
        Line::TooBig => Err(ProtocolError::TooBigBulkLine),
    }
}

/// The number between the type byte at `at` and the next CR. The byte behind the CR must be there
/// but is not looked at.
#[inline]
fn length_line(buf: &[u8], at: usize) -> Line {
    // Nearly every line holds one to four digits: read them as they come.
    let digits = &buf[(at + 1).min(buf.len())..];
    let mut value = 0i64;
    for (count, &byte) in digits.iter().take(8).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 && (digit != 0 || count != 0) {
            value = value * 10 + i64::from(digit);
        } else if byte == b'\r' && count != 0 && count + 1 < digits.len() {
            return Line::Number {
                value,
                next: at + 1 + count + 2,
            };
        } else {
            break;
        }
    }
    length_line_by_the_letter(buf, at)
}

#[cold]
fn length_line_by_the_letter(buf: &[u8], at: usize) -> Line {
    let rest = &buf[at.min(buf.len())..];
    let end = match memchr::memchr2(b'\r', 0, rest) {
        Some(end) if rest[end] == b'\r' => end,
        _ if rest.len() > INLINE_BYTES_MAX => return Line::TooBig,
        _ => return Line::Unfinished,
    };
    if end + 2 > rest.len() {
        return Line::Unfinished;
    }
    match rest.get(1..end).and_then(parse_i64) {
        Some(value) => Line::Number {
            value,
            next: at + end + 2,
        },
        None => Line::Invalid,
    }
}

#[cfg(test)]
mod tests;
