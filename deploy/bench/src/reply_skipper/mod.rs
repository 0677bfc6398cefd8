//! Counts complete RESP replies in a stream of bytes without storing or allocating anything.
//!
//! Why: the generator shares its cores with the server under test, so every nanosecond it spends on
//! replies is taken from the measurement. It needs to know only how many replies are complete,
//! whether one is an error, and whether a value has the right size; so bodies are jumped over and
//! nothing is kept but a few counters.
//!
//! ```text
//!   Start --type byte--> Line --CR--> LineFeed --LF--> Start            simple, integer, aggregate header
//!                                        |
//!                                        +--------> Body --> BodyCr --> BodyLf --> Start       bulk of n bytes
//! ```
//!
//! Nesting needs no stack: `outstanding` is the number of elements that are still to come until the
//! reply at the top is complete. It starts at 1, an aggregate of n adds n (a map 2n), every
//! finished element takes 1 away.
//!
//! Invariants
//!   K1  the result does not depend on how the stream is cut into calls of `feed`.
//!   K2  a malformed stream is an error, never a panic and never a wrong count before the error.
//!
//! Cost: about 10 ns per small reply, independent of the size of a bulk that is complete in the
//! buffer. Not here: what a reply should be (`workload`), reading values (`client`).

use std::fmt;

/// Longest part of an error reply that is kept for the report.
const ERROR_TEXT_MAX: usize = 120;

/// Upper bound of a length or count in a header: larger ones are taken for garbage.
const HEADER_VALUE_MAX: u64 = 1 << 40;

/// Facts about one complete reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reply {
    /// RESP type byte of the outermost element.
    pub kind: u8,
    /// Number in the outermost header: length of a bulk, count of an aggregate, value of an
    /// integer; -1 for null.
    pub number: i64,
    /// Sum of the lengths of all bulks inside, the outermost one included.
    pub bulk_bytes: u64,
    /// Null elements inside, the outermost one included.
    pub nulls: u32,
    /// Error elements inside, the outermost one included.
    pub errors: u32,
}

/// The stream is not RESP; the connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedReply {
    /// Byte that was not expected.
    pub found: u8,
    /// What would have been right there.
    pub expected: &'static str,
}

impl fmt::Display for MalformedReply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "malformed reply: byte 0x{:02x} where {} was expected",
            self.found, self.expected
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Line,
    LineFeed,
    Body,
    BodyCr,
    BodyLf,
}

/// Incremental counter of replies; one per connection.
#[derive(Debug)]
pub struct ReplySkipper {
    state: State,
    /// Type byte of the element being read.
    kind: u8,
    /// Number being read in a header line.
    number: u64,
    digits: u32,
    negative: bool,
    /// Whether the element being read is the reply itself, not a part of it.
    outermost: bool,
    /// Bytes of a bulk's body that are still to come.
    body_left: u64,
    /// Elements still to come for the current reply; 0 = between replies.
    outstanding: u64,
    current: Reply,
    error_text: [u8; ERROR_TEXT_MAX],
    error_len: usize,
    error_complete: bool,
}

impl Default for ReplySkipper {
    fn default() -> Self {
        Self {
            state: State::Start,
            kind: 0,
            number: 0,
            digits: 0,
            negative: false,
            outermost: false,
            body_left: 0,
            outstanding: 0,
            current: Reply::default(),
            error_text: [0; ERROR_TEXT_MAX],
            error_len: 0,
            error_complete: false,
        }
    }
}

impl ReplySkipper {
    /// First error text that was seen on this connection, without its `-`, cut to 120 bytes.
    pub fn first_error(&self) -> Option<String> {
        (self.error_len > 0)
            .then(|| String::from_utf8_lossy(&self.error_text[..self.error_len]).into_owned())
    }

    /// Takes the next bytes of the stream and calls `on_reply` for each reply that they complete.
    ///
    /// # Errors
    /// [`MalformedReply`] if the bytes are not RESP; the skipper must not be fed again then.
    #[inline]
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on_reply: impl FnMut(&Reply),
    ) -> Result<(), MalformedReply> {
        while let Some(&first) = bytes.first() {
            match self.state {
                State::Start => {
                    if self.outstanding == 0
                        && let Some((reply, used)) = whole_reply(bytes)
                    {
                        on_reply(&reply);
                        bytes = &bytes[used..];
                        continue;
                    }
                    self.begin(first)?;
                    bytes = &bytes[1..];
                }
                State::Line => bytes = self.line(bytes)?,
                State::LineFeed => {
                    expect(first, b'\n', "LF")?;
                    bytes = &bytes[1..];
                    if self.header_complete()? {
                        on_reply(&self.current);
                    }
                }
                State::Body => {
                    let here = usize::try_from(self.body_left)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len());
                    self.body_left -= here as u64;
                    bytes = &bytes[here..];
                    if self.body_left == 0 {
                        self.state = State::BodyCr;
                    }
                }
                State::BodyCr => {
                    expect(first, b'\r', "CR after a bulk")?;
                    bytes = &bytes[1..];
                    self.state = State::BodyLf;
                }
                State::BodyLf => {
                    expect(first, b'\n', "LF after a bulk")?;
                    bytes = &bytes[1..];
                    if self.element_complete() {
                        on_reply(&self.current);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a type byte.
    fn begin(&mut self, kind: u8) -> Result<(), MalformedReply> {
        if !matches!(
            kind,
            b'+' | b'-'
                | b':'
                | b'$'
                | b'*'
                | b'%'
                | b'~'
                | b'>'
                | b'_'
                | b'#'
                | b','
                | b'('
                | b'='
                | b'!'
                | b'|'
        ) {
            return Err(MalformedReply {
                found: kind,
                expected: "a RESP type",
            });
        }
        self.outermost = self.outstanding == 0;
        if self.outermost {
            self.outstanding = 1;
            self.current = Reply {
                kind,
                ..Reply::default()
            };
        }
        self.kind = kind;
        self.number = 0;
        self.digits = 0;
        self.negative = false;
        self.state = State::Line;
        Ok(())
    }

    /// Reads a header line up to its CR, or as much of it as there is.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], MalformedReply> {
        let numeric = has_number(self.kind);
        for (position, &byte) in bytes.iter().enumerate() {
            if byte == b'\r' {
                if numeric && self.digits == 0 {
                    return Err(MalformedReply {
                        found: byte,
                        expected: "a digit",
                    });
                }
                self.state = State::LineFeed;
                return Ok(&bytes[position + 1..]);
            }
            if numeric {
                match byte {
                    b'0'..=b'9' => {
                        self.digits = self.digits.saturating_add(1);
                        self.number = self
                            .number
                            .wrapping_mul(10)
                            .wrapping_add(u64::from(byte - b'0'));
                        if self.kind != b':' && self.number > HEADER_VALUE_MAX {
                            return Err(MalformedReply {
                                found: byte,
                                expected: "a length",
                            });
                        }
                    }
                    b'-' if self.digits == 0 && !self.negative => self.negative = true,
                    _ => {
                        return Err(MalformedReply {
                            found: byte,
                            expected: "a digit",
                        });
                    }
                }
            } else if self.kind == b'-' && !self.error_complete && self.error_len < ERROR_TEXT_MAX {
                self.error_text[self.error_len] = byte;
                self.error_len += 1;
            }
        }
        Ok(&[])
    }

    /// Acts on a complete header line; true if that completes a whole reply.
    fn header_complete(&mut self) -> Result<bool, MalformedReply> {
        let signed = if self.negative {
            (self.number as i64).wrapping_neg()
        } else {
            self.number as i64
        };
        if self.outermost && has_number(self.kind) {
            self.current.number = signed;
        }
        match self.kind {
            b'$' | b'=' | b'!' if !self.negative => {
                self.current.bulk_bytes += self.number;
                self.current.errors += u32::from(self.kind == b'!');
                self.body_left = self.number;
                self.state = if self.number == 0 {
                    State::BodyCr
                } else {
                    State::Body
                };
                return Ok(false);
            }
            b'*' | b'~' | b'>' | b'%' | b'|' if !self.negative => {
                let pairs = matches!(self.kind, b'%' | b'|');
                self.outstanding += if pairs { 2 * self.number } else { self.number };
                if self.kind == b'|' {
                    // Attributes precede the element that they describe and do not stand for one.
                    self.outstanding += 1;
                }
            }
            b'$' | b'*' | b'_' => {
                self.current.nulls += 1;
                if self.outermost {
                    self.current.number = -1;
                }
            }
            b'-' => {
                self.current.errors += 1;
                self.error_complete = true;
            }
            _ if has_number(self.kind) && self.negative && self.kind != b':' => {
                return Err(MalformedReply {
                    found: b'-',
                    expected: "a length",
                });
            }
            _ => {}
        }
        Ok(self.element_complete())
    }

    /// Counts a finished element; true if it was the last of its reply.
    fn element_complete(&mut self) -> bool {
        self.state = State::Start;
        self.outstanding -= 1;
        self.outstanding == 0
    }
}

/// Types whose header line is a number that matters here.
fn has_number(kind: u8) -> bool {
    matches!(
        kind,
        b'$' | b'*' | b':' | b'%' | b'~' | b'>' | b'=' | b'!' | b'|'
    )
}

fn expect(found: u8, wanted: u8, expected: &'static str) -> Result<(), MalformedReply> {
    if found == wanted {
        Ok(())
    } else {
        Err(MalformedReply { found, expected })
    }
}

/// The three replies that fill a measurement (a value, an integer, a short status), complete in the
/// buffer. Anything else, or anything odd, is left to the state machine.
#[inline]
fn whole_reply(bytes: &[u8]) -> Option<(Reply, usize)> {
    let kind = *bytes.first()?;
    match kind {
        b'$' | b':' => {
            let mut number = 0_u64;
            let mut at = 1;
            // 18 digits cannot overflow; longer numbers take the slow path.
            loop {
                match *bytes.get(at)? {
                    digit @ b'0'..=b'9' if at <= 18 => {
                        number = number * 10 + u64::from(digit - b'0');
                    }
                    b'\r' if at > 1 => break,
                    _ => return None,
                }
                at += 1;
            }
            if *bytes.get(at + 1)? != b'\n' {
                return None;
            }
            at += 2;
            let mut reply = Reply {
                kind,
                number: number as i64,
                ..Reply::default()
            };
            if kind == b'$' {
                let end = at.checked_add(usize::try_from(number).ok()?)?;
                if bytes.get(end..end.checked_add(2)?)? != b"\r\n" {
                    return None;
                }
                reply.bulk_bytes = number;
                at = end + 2;
            }
            Some((reply, at))
        }
        b'+' => {
            let line = bytes.get(..bytes.len().min(16))?;
            let at = line.iter().position(|&byte| byte == b'\r')?;
            (*bytes.get(at + 1)? == b'\n').then(|| {
                (
                    Reply {
                        kind,
                        ..Reply::default()
                    },
                    at + 2,
                )
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
