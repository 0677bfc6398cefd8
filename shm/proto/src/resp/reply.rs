//! Writes replies: the one place that turns values into RESP.
//!
//! A [`ReplyWriter`] writes into memory that is lent to it, usually the free part of a reply ring.
//! When that is not enough, everything written so far moves to `spill` and the rest goes there: a
//! reply is then complete in `spill`, otherwise complete in the lent memory, never in both.
//!
//! ```text
//!   lent memory   [ reply reply rep|.......... ]          fits: as_bytes() is a slice of it
//!   spill         [ reply reply reply ...      ]          does not fit: as_bytes() is all of spill
//! ```
//!
//! Cost: a bulk is its header, built in a register-sized buffer, and one copy of the value.
//!
//! Not here: the order of replies, connections, output buffers (gateway).

use crate::bytes::copy;
use crate::error::CommandError;
use crate::number;

/// Longest header: type byte, 20 digits with sign, CRLF; rounded up so that it is copied whole.
const HEADER_BYTES: usize = 24;

/// Writes replies of one protocol version. See the module.
#[derive(Debug)]
pub struct ReplyWriter<'a> {
    buf: &'a mut [u8],
    len: usize,
    spill: &'a mut Vec<u8>,
    /// Length of `spill` when the writer was made: earlier bytes are somebody else's.
    spill_start: usize,
    spilled: bool,
    resp3: bool,
}

/// Where the header of a collection of unknown length belongs.
#[derive(Clone, Copy, Debug)]
#[must_use = "the collection has no header until its length is set"]
pub struct LengthMark(usize);

impl<'a> ReplyWriter<'a> {
    /// A writer into `buf`, and into `spill` behind what that already holds once `buf` is full.
    #[inline]
    pub fn new(buf: &'a mut [u8], spill: &'a mut Vec<u8>, resp3: bool) -> Self {
        let spill_start = spill.len();
        Self {
            buf,
            len: 0,
            spill,
            spill_start,
            spilled: false,
            resp3,
        }
    }

    /// A writer that appends to `out`.
    #[inline]
    pub fn to_vec(out: &'a mut Vec<u8>, resp3: bool) -> Self {
        let mut writer = Self::new(&mut [], out, resp3);
        writer.spilled = true;
        writer
    }

    /// Whether RESP3 is spoken.
    #[inline]
    #[must_use]
    pub fn resp3(&self) -> bool {
        self.resp3
    }

    /// From now on the other protocol version is written (`HELLO` answers in the new one).
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }

    /// Bytes written.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        if self.spilled {
            self.spill.len() - self.spill_start
        } else {
            self.len
        }
    }

    /// Whether nothing has been written.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the bytes are in `spill` rather than in the lent memory.
    #[inline]
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.spilled
    }

    /// Everything written.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        if self.spilled {
            &self.spill[self.spill_start..]
        } else {
            &self.buf[..self.len]
        }
    }

    /// Drops everything behind the first `len` bytes, for instance a reply that turned into an error.
    pub fn truncate(&mut self, len: usize) {
        if self.spilled {
            self.spill.truncate(self.spill_start + len);
        } else {
            self.len = self.len.min(len);
        }
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// A simple string; must not hold CR or LF.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.bytes().any(|byte| matches!(byte, b'\r' | b'\n')));
        self.raw(b"+");
        self.raw(text.as_bytes());
        self.raw(b"\r\n");
    }

    /// A simple string from any bytes; CR and LF become spaces.
    pub fn status_bytes(&mut self, text: &[u8]) {
        self.line(b"+", text);
    }

    /// An error reply.
    pub fn error(&mut self, error: &CommandError) {
        if let Some(text) = error.fixed_text() {
            self.raw(b"-");
            self.raw(text.as_bytes());
            self.raw(b"\r\n");
        } else {
            let mut line = Vec::with_capacity(64);
            error.write_resp(&mut line);
            self.raw(&line);
        }
    }

    /// An error reply from its line (first word included, without `-` and CRLF).
    pub fn error_bytes(&mut self, line: &[u8]) {
        self.line(b"-", line);
    }

    fn line(&mut self, kind: &[u8], text: &[u8]) {
        self.raw(kind);
        let start = self.len();
        self.raw(text);
        for byte in self.written_mut(start) {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.raw(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.signed_header(b':', value);
    }

    /// A number of things as an integer.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.header(b':', value as u64);
    }

    /// A binary-safe string.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        let needed = HEADER_BYTES + value.len() + 2;
        if !self.spilled && self.buf.len() - self.len >= needed {
            let room = &mut self.buf[self.len..self.len + needed];
            let used = put_header(room, b'$', value.len() as u64);
            let body = &mut room[used..used + value.len() + 2];
            let (body, end) = body.split_at_mut(value.len());
            copy(body, value);
            end.copy_from_slice(b"\r\n");
            self.len += used + value.len() + 2;
        } else {
            let (header, used) = header(b'$', value.len() as u64);
            self.raw(&header[..used]);
            self.raw(value);
            self.raw(b"\r\n");
        }
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Nothing, where a string would stand.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Nothing, where an array would stand.
    #[inline]
    pub fn null_array(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// Header of an array of `count` elements.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count as u64);
    }

    /// Header of a map of `count` pairs; in RESP2 an array of twice as many elements.
    #[inline]
    pub fn map(&mut self, count: usize) {
        if self.resp3 {
            self.header(b'%', count as u64);
        } else {
            self.header(b'*', count as u64 * 2);
        }
    }

    /// Header of a set; in RESP2 an array.
    #[inline]
    pub fn set(&mut self, count: usize) {
        self.header(if self.resp3 { b'~' } else { b'*' }, count as u64);
    }

    /// Header of a push; in RESP2 an array.
    #[inline]
    pub fn push(&mut self, count: usize) {
        self.header(if self.resp3 { b'>' } else { b'*' }, count as u64);
    }

    /// A floating point number, in the shortest form that reads back as the same one.
    pub fn double(&mut self, value: f64) {
        let mut text = number::DoubleText::new();
        let text = text.format(value);
        if self.resp3 {
            self.raw(b",");
            self.raw(text);
            self.raw(b"\r\n");
        } else {
            self.bulk(text);
        }
    }

    /// A truth value; in RESP2 1 or 0.
    pub fn bool(&mut self, value: bool) {
        self.raw(match (self.resp3, value) {
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
        });
    }

    /// Text with a three-letter format (`txt`, `mkd`); in RESP2 a bulk string.
    pub fn verbatim(&mut self, format: &str, value: &[u8]) {
        self.verbatim_bytes(format.as_bytes(), value);
    }

    /// The same with a format of any length: what is missing of its three letters are spaces.
    pub fn verbatim_bytes(&mut self, format: &[u8], value: &[u8]) {
        if self.resp3 {
            self.header(b'=', value.len() as u64 + 4);
            let mut letters = *b"   ";
            for (letter, given) in letters.iter_mut().zip(format) {
                *letter = *given;
            }
            self.raw(&letters);
            self.raw(b":");
            self.raw(value);
            self.raw(b"\r\n");
        } else {
            self.bulk(value);
        }
    }

    /// A number of any size from its digits; in RESP2 a bulk string.
    pub fn big_number(&mut self, digits: &[u8]) {
        if self.resp3 {
            self.line(b"(", digits);
        } else {
            self.bulk(digits);
        }
    }

    /// An array whose length is not known yet. Write its elements, then call
    /// [`Self::set_array_len`]. Marks may nest; set the inner one first.
    pub fn begin_array(&mut self) -> LengthMark {
        LengthMark(self.len())
    }

    /// Puts the header of the array begun at `mark` in front of its elements, which move by the
    /// header's length: one copy of the array's bytes.
    pub fn set_array_len(&mut self, mark: LengthMark, count: usize) {
        self.insert_header(mark, b'*', count);
    }

    /// As [`Self::set_array_len`], for a map of `count` pairs.
    pub fn set_map_len(&mut self, mark: LengthMark, count: usize) {
        if self.resp3 {
            self.insert_header(mark, b'%', count);
        } else {
            self.insert_header(mark, b'*', count * 2);
        }
    }

    /// As [`Self::set_array_len`], for a set.
    pub fn set_set_len(&mut self, mark: LengthMark, count: usize) {
        self.insert_header(mark, if self.resp3 { b'~' } else { b'*' }, count);
    }

    /// Bytes that are RESP already.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        if !self.spilled {
            if let Some(room) = self.buf.get_mut(self.len..self.len + bytes.len()) {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
                return;
            }
            self.spill_over();
        }
        self.spill.extend_from_slice(bytes);
    }

    #[inline]
    fn header(&mut self, kind: u8, value: u64) {
        if !self.spilled && self.buf.len() - self.len >= HEADER_BYTES {
            self.len += put_header(&mut self.buf[self.len..], kind, value);
        } else {
            let (bytes, used) = header(kind, value);
            self.raw(&bytes[..used]);
        }
    }

    #[inline]
    fn signed_header(&mut self, kind: u8, value: i64) {
        if value >= 0 {
            self.header(kind, value as u64);
        } else {
            let mut digits = itoa::Buffer::new();
            self.raw(&[kind]);
            self.raw(digits.format(value).as_bytes());
            self.raw(b"\r\n");
        }
    }

    fn insert_header(&mut self, mark: LengthMark, kind: u8, count: usize) {
        let (bytes, used) = header(kind, count as u64);
        self.raw(&bytes[..used]);
        self.written_mut(mark.0).rotate_right(used);
    }

    fn written_mut(&mut self, from: usize) -> &mut [u8] {
        if self.spilled {
            &mut self.spill[self.spill_start + from..]
        } else {
            &mut self.buf[from..self.len]
        }
    }

    #[cold]
    fn spill_over(&mut self) {
        self.spill.extend_from_slice(&self.buf[..self.len]);
        self.spilled = true;
    }
}

/// Type byte, decimal, CRLF, and how many of the bytes they take.
#[inline]
fn header(kind: u8, value: u64) -> ([u8; HEADER_BYTES], usize) {
    let mut bytes = [0u8; HEADER_BYTES];
    bytes[0] = kind;
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    bytes[1..=digits.len()].copy_from_slice(digits);
    bytes[digits.len() + 1] = b'\r';
    bytes[digits.len() + 2] = b'\n';
    (bytes, digits.len() + 3)
}

/// Writes a header to the start of `room`, which has at least [`HEADER_BYTES`]; returns its length.
#[inline]
fn put_header(room: &mut [u8], kind: u8, value: u64) -> usize {
    if value < 1000 {
        let (word, used) = short_header(kind, value as u32);
        room[..8].copy_from_slice(&word.to_le_bytes());
        used
    } else if value < 100_000_000 {
        let (digits, count) = digits_of(value as u32);
        room[0] = kind;
        room[1..9].copy_from_slice(&digits.to_le_bytes());
        room[1 + count..3 + count].copy_from_slice(b"\r\n");
        count + 3
    } else {
        let (bytes, used) = header(kind, value);
        room[..HEADER_BYTES].copy_from_slice(&bytes);
        used
    }
}

/// The decimal digits of a `value` below 10^8, not 0, as one little-endian word, and how many there are.
#[inline]
fn digits_of(value: u32) -> (u64, usize) {
    // Halves, quarters, digits: each step divides in all lanes at once by multiplication, exact for the
    // two or four digits of a lane.
    let halves = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let quarters = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((quarters * 103) >> 10) & 0x000F_000F_000F_000F;
    let digits = tens | (quarters - tens * 10) << 8;
    let zeros = digits.trailing_zeros() as usize / 8;
    ((digits | 0x3030_3030_3030_3030) >> (8 * zeros), 8 - zeros)
}

/// The header of a `value` below 1000 as one little-endian word, and its length.
#[inline]
fn short_header(kind: u8, value: u32) -> (u64, usize) {
    // n / 100 and n / 10 by multiplication; exact below 1000.
    let hundreds = (value * 656) >> 16;
    let tens = ((value * 6554) >> 16) - hundreds * 10;
    let ones = value - hundreds * 100 - tens * 10;
    let three = (hundreds | tens << 8 | ones << 16) | 0x3030_3030;
    let digits = 1 + usize::from(value >= 10) + usize::from(value >= 100);
    // The digits without leading zeros, then CRLF in the place behind them.
    let shown = u64::from((three & 0x00FF_FFFF) >> (8 * (3 - digits)));
    let word = u64::from(kind) | shown << 8 | 0x0A0D << (8 * (digits + 1));
    (word, digits + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut ReplyWriter<'_>)) -> (String, String) {
        let text = |resp3| {
            let mut reference = Vec::new();
            write(&mut ReplyWriter::to_vec(&mut reference, resp3));
            // Whatever the size of the lent memory, the bytes are the same and in one place.
            for size in 0..reference.len() + 40 {
                let (mut buf, mut spill) = (vec![0u8; size], b"before".to_vec());
                let mut writer = ReplyWriter::new(&mut buf, &mut spill, resp3);
                write(&mut writer);
                assert_eq!(writer.as_bytes(), reference, "size {size}");
                assert_eq!(writer.len(), reference.len());
            }
            String::from_utf8(reference).unwrap()
        };
        (text(false), text(true))
    }

    fn check(write: impl Fn(&mut ReplyWriter<'_>), resp2: &str, resp3: &str) {
        assert_eq!(both(write), (resp2.to_owned(), resp3.to_owned()));
    }

    #[test]
    fn every_kind_in_both_versions() {
        check(|w| w.ok(), "+OK\r\n", "+OK\r\n");
        check(|w| w.simple("PONG"), "+PONG\r\n", "+PONG\r\n");
        check(
            |w| w.error(&CommandError::Syntax),
            "-ERR syntax error\r\n",
            "-ERR syntax error\r\n",
        );
        check(
            |w| w.error_bytes(b"ERR a\nb"),
            "-ERR a b\r\n",
            "-ERR a b\r\n",
        );
        check(|w| w.bulk(b"hello"), "$5\r\nhello\r\n", "$5\r\nhello\r\n");
        check(|w| w.bulk_int(-12), "$3\r\n-12\r\n", "$3\r\n-12\r\n");
        check(|w| w.null(), "$-1\r\n", "_\r\n");
        check(|w| w.null_array(), "*-1\r\n", "_\r\n");
        check(|w| w.map(2), "*4\r\n", "%2\r\n");
        check(|w| w.set(12), "*12\r\n", "~12\r\n");
        check(|w| w.push(123), "*123\r\n", ">123\r\n");
        check(|w| w.double(3.5), "$3\r\n3.5\r\n", ",3.5\r\n");
        check(|w| w.bool(true), ":1\r\n", "#t\r\n");
        check(
            |w| w.verbatim("txt", b"hi"),
            "$2\r\nhi\r\n",
            "=6\r\ntxt:hi\r\n",
        );
        check(|w| w.big_number(b"123"), "$3\r\n123\r\n", "(123\r\n");
    }

    #[test]
    fn integers_of_every_length() {
        let mut value = 1i64;
        for _ in 0..19 {
            for n in [value, value - 1, -value, i64::MIN, i64::MAX] {
                let want = format!(":{n}\r\n");
                check(|w| w.int(n), &want, &want);
            }
            value = value.saturating_mul(10);
        }
    }

    #[test]
    fn lengths_that_come_late() {
        check(
            |w| {
                let outer = w.begin_array();
                w.int(1);
                let inner = w.begin_array();
                w.bulk(b"x");
                w.set_map_len(inner, 1);
                w.set_array_len(outer, 2);
            },
            "*2\r\n:1\r\n*2\r\n$1\r\nx\r\n",
            "*2\r\n:1\r\n%1\r\n$1\r\nx\r\n",
        );
    }

    #[test]
    fn headers_are_decimal() {
        let steps = (0..9).map(|digits| 10u64.pow(digits));
        let around = steps.flat_map(|step| [step - 1, step, step + 1, step * 7 + step / 3]);
        for value in around.chain((0..100_000_000).step_by(9_973)) {
            let mut out = Vec::new();
            ReplyWriter::to_vec(&mut out, false).header(b':', value);
            let mut room = [0u8; HEADER_BYTES];
            let used = put_header(&mut room, b':', value);
            assert_eq!(out, format!(":{value}\r\n").as_bytes());
            assert_eq!(&room[..used], &out[..]);
        }
    }

    #[test]
    fn truncated_replies_leave_what_was_before() {
        check(
            |w| {
                w.ok();
                let start = w.len();
                w.bulk(b"half a reply");
                w.truncate(start);
                w.null();
            },
            "+OK\r\n$-1\r\n",
            "+OK\r\n_\r\n",
        );
    }
}
