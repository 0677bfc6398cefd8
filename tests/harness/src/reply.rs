//! A reply as a tree, read from and written as RESP bytes.
//!
//! Why: the tests must not read replies with the code they test, and they must tell apart what many clients
//! fold together: `$-1`, `*-1` and `_` are three different nothings, `:1`, `+1` and `"1"` three different ones.
//! So nothing is interpreted here: numbers stay text, and [`Reply::encode`] gives back the bytes that were read.
//!
//! Not here: what a test expects (`pattern`), sockets (`client`).

use std::fmt::Write as _;

/// The aggregate types of RESP, by their first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// `*`
    Array,
    /// `%`: its items are key, value, key, value ...
    Map,
    /// `~`
    Set,
    /// `>`
    Push,
    /// `|`: like a map, followed by the reply that it describes
    Attribute,
}

impl Aggregate {
    /// The type byte.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Aggregate::Array => '*',
            Aggregate::Map => '%',
            Aggregate::Set => '~',
            Aggregate::Push => '>',
            Aggregate::Attribute => '|',
        }
    }

    /// The aggregate that a type byte announces.
    #[must_use]
    pub fn from_sign(sign: char) -> Option<Self> {
        Some(match sign {
            '*' => Aggregate::Array,
            '%' => Aggregate::Map,
            '~' => Aggregate::Set,
            '>' => Aggregate::Push,
            '|' => Aggregate::Attribute,
            _ => return None,
        })
    }

    fn items_per_count(self) -> usize {
        match self {
            Aggregate::Map | Aggregate::Attribute => 2,
            Aggregate::Array | Aggregate::Set | Aggregate::Push => 1,
        }
    }
}

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+text`
    Simple(Vec<u8>),
    /// `-text`
    Error(Vec<u8>),
    /// `:number`, as text
    Int(String),
    /// `$length` and bytes
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `#t` or `#f`
    Bool(bool),
    /// `,number`, as text
    Double(String),
    /// `(number`, as text
    Big(String),
    /// `=length`, three letters of format, a colon and the text
    Verbatim(Vec<u8>),
    /// Any of the aggregates.
    Many(Aggregate, Vec<Reply>),
}

/// Why no reply could be taken from some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    /// The bytes end inside a reply, which has at least so many.
    Incomplete(usize),
    /// These bytes are no RESP.
    Malformed(String),
}

impl Reply {
    /// Takes the first reply of `bytes`; gives it with the count of bytes that it took.
    ///
    /// # Errors
    /// When the reply is not complete yet, or is no RESP.
    pub fn parse(bytes: &[u8]) -> Result<(Reply, usize), ParseError> {
        let mut at = 0;
        let reply = parse_at(bytes, &mut at)?;
        let mut again = Vec::with_capacity(at);
        reply.encode(&mut again);
        if again != bytes[..at] {
            let text = String::from_utf8_lossy(&bytes[..at.min(200)]).into_owned();
            return Err(ParseError::Malformed(format!(
                "not in canonical form: {text:?}"
            )));
        }
        Ok((reply, at))
    }

    /// Appends the RESP bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Simple(text) => line(out, b'+', text),
            Reply::Error(text) => line(out, b'-', text),
            Reply::Int(text) => line(out, b':', text.as_bytes()),
            Reply::Double(text) => line(out, b',', text.as_bytes()),
            Reply::Big(text) => line(out, b'(', text.as_bytes()),
            Reply::NullBulk => out.extend_from_slice(b"$-1\r\n"),
            Reply::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Reply::Null => out.extend_from_slice(b"_\r\n"),
            Reply::Bool(true) => out.extend_from_slice(b"#t\r\n"),
            Reply::Bool(false) => out.extend_from_slice(b"#f\r\n"),
            Reply::Bulk(text) => counted(out, b'$', text),
            Reply::Verbatim(text) => counted(out, b'=', text),
            Reply::Many(kind, items) => {
                let count = items.len() / kind.items_per_count();
                line(out, kind.sign() as u8, count.to_string().as_bytes());
                for item in items {
                    item.encode(out);
                }
            }
        }
    }

    /// The text of a simple string, error, bulk or verbatim string, without the format of the latter.
    #[must_use]
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Reply::Simple(text) | Reply::Error(text) | Reply::Bulk(text) => Some(text),
            Reply::Verbatim(text) => text.get(4..),
            _ => None,
        }
    }

    /// The text, with anything that is not UTF-8 replaced; empty when there is none.
    #[must_use]
    pub fn text_lossy(&self) -> String {
        String::from_utf8_lossy(self.text().unwrap_or_default()).into_owned()
    }

    /// The value of an integer reply.
    #[must_use]
    pub fn int(&self) -> Option<i64> {
        match self {
            Reply::Int(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether this is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// Writes the reply the way transcripts do: on one line if it fits, else one element a line.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Reply::Simple(text) if plain(text) => format!("+{}", String::from_utf8_lossy(text)),
            Reply::Error(text) if plain(text) => format!("-{}", String::from_utf8_lossy(text)),
            _ => {
                let mut text = String::new();
                self.render_into(&mut text, 1);
                text
            }
        }
    }

    fn render_into(&self, out: &mut String, depth: usize) {
        match self {
            Reply::Simple(text) => word(out, '+', text),
            Reply::Error(text) => word(out, '-', text),
            Reply::Int(text) => drop(write!(out, ":{text}")),
            Reply::Double(text) => drop(write!(out, ",{text}")),
            Reply::Big(text) => drop(write!(out, "({text}")),
            Reply::NullBulk => out.push_str("$-1"),
            Reply::NullArray => out.push_str("*-1"),
            Reply::Null => out.push('_'),
            Reply::Bool(value) => out.push_str(if *value { "#t" } else { "#f" }),
            Reply::Bulk(text) => out.push_str(&quote(text)),
            Reply::Verbatim(text) => drop(write!(out, "={}", quote(text))),
            Reply::Many(kind, items) => render_many(out, *kind, items, depth),
        }
    }
}

fn render_many(out: &mut String, kind: Aggregate, items: &[Reply], depth: usize) {
    let parts: Vec<String> = items
        .iter()
        .map(|item| {
            let mut text = String::new();
            item.render_into(&mut text, depth + 1);
            text
        })
        .collect();
    out.push(kind.sign());
    out.push('[');
    let width: usize = parts.iter().map(|part| part.len() + 1).sum();
    if width + depth * 4 < 96 && !parts.iter().any(|part| part.contains('\n')) {
        out.push_str(&parts.join(" "));
    } else {
        let pad = "    ".repeat(depth);
        for group in parts.chunks(kind.items_per_count()) {
            let _ = write!(out, "\n{pad}{}", group.join(" "));
        }
        let _ = write!(out, "\n{}", "    ".repeat(depth - 1));
        if depth == 1 {
            out.push_str("  ");
        }
    }
    out.push(']');
}

fn line(out: &mut Vec<u8>, sign: u8, text: &[u8]) {
    out.push(sign);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn counted(out: &mut Vec<u8>, sign: u8, text: &[u8]) {
    line(out, sign, text.len().to_string().as_bytes());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Whether a status or error can stand as it is behind its sign, up to the end of the line.
fn plain(text: &[u8]) -> bool {
    let printable = text.iter().all(|byte| (b' '..=b'~').contains(byte));
    printable
        && text.first() != Some(&b'~')
        && text.first() != Some(&b'"')
        && text.trim_ascii().len() == text.len()
}

fn word(out: &mut String, sign: char, text: &[u8]) {
    out.push(sign);
    let bare = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-@.:".contains(byte);
    if !text.is_empty() && text.iter().all(bare) {
        out.push_str(&String::from_utf8_lossy(text));
    } else {
        out.push_str(&quote(text));
    }
}

/// Bytes between double quotes, unprintable ones escaped.
#[must_use]
pub fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for &byte in text {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

fn parse_at(bytes: &[u8], at: &mut usize) -> Result<Reply, ParseError> {
    let incomplete = || ParseError::Incomplete(bytes.len() + 1);
    let sign = *bytes.get(*at).ok_or_else(incomplete)?;
    let rest = &bytes[*at + 1..];
    let end = rest
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .ok_or_else(incomplete)?;
    let head = &rest[..end];
    *at += 1 + end + 2;
    let text = || String::from_utf8_lossy(head).into_owned();
    Ok(match sign {
        b'+' => Reply::Simple(head.to_vec()),
        b'-' => Reply::Error(head.to_vec()),
        b':' => Reply::Int(text()),
        b',' => Reply::Double(text()),
        b'(' => Reply::Big(text()),
        b'_' => Reply::Null,
        b'#' => Reply::Bool(head == b"t"),
        b'$' if head == b"-1" => Reply::NullBulk,
        b'*' if head == b"-1" => Reply::NullArray,
        b'$' => Reply::Bulk(body(bytes, at, length(head)?)?),
        b'=' => Reply::Verbatim(body(bytes, at, length(head)?)?),
        b'*' | b'%' | b'~' | b'>' | b'|' => {
            let kind = Aggregate::from_sign(char::from(sign)).unwrap_or(Aggregate::Array);
            let count = length(head)? * kind.items_per_count();
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(parse_at(bytes, at)?);
            }
            Reply::Many(kind, items)
        }
        _ => {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
            return Err(ParseError::Malformed(format!(
                "type byte {sign:#04x} in {start:?}"
            )));
        }
    })
}

fn length(head: &[u8]) -> Result<usize, ParseError> {
    let text = String::from_utf8_lossy(head);
    text.parse()
        .map_err(|_| ParseError::Malformed(format!("length {text:?}")))
}

fn body(bytes: &[u8], at: &mut usize, length: usize) -> Result<Vec<u8>, ParseError> {
    let end = *at + length;
    if bytes.len() < end + 2 {
        return Err(ParseError::Incomplete(end + 2));
    }
    if &bytes[end..end + 2] != b"\r\n" {
        return Err(ParseError::Malformed("bulk without CRLF at its end".into()));
    }
    let text = bytes[*at..end].to_vec();
    *at = end + 2;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_and_written_back() {
        let bytes = b"*4\r\n$-1\r\n%1\r\n+a\r\n,1.5\r\n~2\r\n_\r\n#t\r\n=5\r\ntxt:x\r\n";
        let (reply, used) = Reply::parse(bytes).expect("this is RESP");
        assert_eq!(used, bytes.len());
        assert_eq!(reply.render(), r#"*[$-1 %[+a ,1.5] ~[_ #t] ="txt:x"]"#);
    }

    #[test]
    fn half_a_reply_is_incomplete_and_leading_zeros_are_refused() {
        assert_eq!(Reply::parse(b"$3\r\nab"), Err(ParseError::Incomplete(9)));
        assert!(matches!(
            Reply::parse(b"$03\r\nabc\r\n"),
            Err(ParseError::Malformed(_))
        ));
    }
}
