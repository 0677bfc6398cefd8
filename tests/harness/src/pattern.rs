//! What a transcript expects: a reply, exactly, or with named holes.
//!
//! ```text
//!   +OK   -ERR some text   :1   "bulk"   $-1   *-1   _   #t   ,1.5   (123   ="txt:verbatim"
//!   *[ "a" :1 ]   %[ "key" "value" ]   ~[ ... ]   >[ ... ]
//! ```
//!
//! stand for exactly these bytes. Where a reply cannot be known beforehand, or may come in any order:
//!
//! ```text
//!   ?            any reply                        *{ "b" "a" }   these elements in any order
//!   :?  $?  ,?   any integer, bulk, double        *[ "a" ... ]   more may follow
//!   :5..10       an integer of this range         ~"v=*"         a bulk (or verbatim) that fits a glob
//!   :?name       any, remembered as `name`; where the name is known already, the same again
//!   -~ERR foo *  an error that fits a glob        lines["a:*" "b:1"]  a text that has such lines
//!   ${name}      the bulk remembered as `name`    ${"x"*1000}    a bulk of 1000 times x
//!   closed       the server closes the connection    nothing     no reply comes
//! ```
//!
//! Not here: where in a file these stand (`transcript`).

use std::collections::HashMap;

use crate::reply::{Aggregate, Reply};
use crate::words::{self, Cursor};

/// Values that a transcript remembers from replies.
pub type Memory = HashMap<String, Vec<u8>>;

/// A text inside a pattern.
#[derive(Debug, Clone)]
enum Text {
    Is(Vec<u8>),
    Fits(Vec<u8>),
    Any(String),
    Remembered(String),
}

/// An expected reply.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// The connection is closed.
    Closed,
    /// No reply.
    Nothing,
    /// Any reply.
    Any,
    /// Exactly this one, which has no parts.
    Exactly(Reply),
    #[doc(hidden)]
    Simple(TextPattern),
    #[doc(hidden)]
    Error(TextPattern),
    #[doc(hidden)]
    Bulk(TextPattern),
    #[doc(hidden)]
    Int(TextPattern),
    #[doc(hidden)]
    Double(TextPattern),
    /// An integer of a range, both ends included.
    Range(i64, i64),
    /// A text with such lines, each a glob.
    Lines(Vec<Vec<u8>>),
    /// An aggregate.
    Many {
        /// Which one.
        kind: Aggregate,
        /// Its elements.
        items: Vec<Pattern>,
        /// Whether they come in this order.
        ordered: bool,
        /// Whether there may be more.
        open: bool,
    },
}

/// A text with holes; opaque.
#[derive(Debug, Clone)]
pub struct TextPattern(Text);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let text = text.trim();
        match text {
            "closed" => return Ok(Pattern::Closed),
            "nothing" => return Ok(Pattern::Nothing),
            _ => {}
        }
        // A status or an error that stands alone takes the rest of the line as it is.
        if let Some(rest) = text.strip_prefix(['+', '-'])
            && !rest.starts_with('"')
        {
            let rest = match rest.strip_prefix('~') {
                Some(glob) => Text::Fits(glob.as_bytes().to_vec()),
                None => Text::Is(rest.as_bytes().to_vec()),
            };
            let rest = TextPattern(rest);
            return Ok(if text.starts_with('+') {
                Pattern::Simple(rest)
            } else {
                Pattern::Error(rest)
            });
        }
        let mut cursor = Cursor::new(text);
        let pattern = element(&mut cursor)?;
        cursor.skip_blanks();
        if cursor.is_done() {
            Ok(pattern)
        } else {
            Err(format!("unexpected {:?} after the reply", cursor.rest()))
        }
    }

    /// Whether a reply is as expected; names met for the first time are remembered.
    #[must_use]
    pub fn fits(&self, reply: &Reply, memory: &mut Memory) -> bool {
        match (self, reply) {
            (Pattern::Any, _) => true,
            (Pattern::Exactly(wanted), _) => wanted == reply,
            (Pattern::Simple(text), Reply::Simple(got))
            | (Pattern::Error(text), Reply::Error(got))
            | (Pattern::Bulk(text), Reply::Bulk(got)) => text.fits(got, memory),
            // A glob does not look at the format in front of a verbatim text.
            (Pattern::Bulk(text), Reply::Verbatim(got)) => match &text.0 {
                Text::Fits(_) => text.fits(got.get(4..).unwrap_or_default(), memory),
                _ => false,
            },
            (Pattern::Int(text), Reply::Int(got)) | (Pattern::Double(text), Reply::Double(got)) => {
                text.fits(got.as_bytes(), memory)
            }
            (Pattern::Range(low, high), Reply::Int(_)) => {
                reply.int().is_some_and(|got| (*low..=*high).contains(&got))
            }
            (Pattern::Lines(wanted), Reply::Bulk(_) | Reply::Verbatim(_)) => {
                let got: Vec<&[u8]> = reply
                    .text()
                    .unwrap_or_default()
                    .split(|byte| *byte == b'\n')
                    .map(<[u8]>::trim_ascii_end)
                    .collect();
                wanted
                    .iter()
                    .all(|glob| got.iter().any(|line| words::fits_glob(glob, line)))
            }
            (
                Pattern::Many {
                    kind,
                    items,
                    ordered,
                    open,
                },
                Reply::Many(got_kind, got),
            ) => {
                let size_fits = if *open {
                    got.len() >= items.len()
                } else {
                    got.len() == items.len()
                };
                if kind != got_kind || !size_fits {
                    return false;
                }
                if *ordered {
                    items
                        .iter()
                        .zip(got)
                        .all(|(wanted, got)| wanted.fits(got, memory))
                } else {
                    fits_unordered(items, got, memory)
                }
            }
            _ => false,
        }
    }
}

/// Where a reply first differs from a pattern, for long replies: the path to the place, and both sides there.
#[must_use]
pub fn first_difference(wanted: &Pattern, got: &Reply) -> Option<String> {
    if wanted.fits(got, &mut Memory::new()) {
        return None;
    }
    match (wanted, got) {
        (Pattern::Lines(globs), Reply::Bulk(_) | Reply::Verbatim(_)) => {
            let lines = got.text_lossy();
            let missing = globs.iter().filter(|glob| {
                !lines
                    .lines()
                    .any(|line| words::fits_glob(glob, line.as_bytes()))
            });
            let told = missing.map(|glob| {
                let glob = String::from_utf8_lossy(glob);
                let name = glob.split([':', '=']).next().unwrap_or_default();
                let near = lines
                    .lines()
                    .find(|line| line.starts_with(name))
                    .unwrap_or("(no such line)");
                format!("no line {glob:?}, but {near:?}")
            });
            Some(told.collect::<Vec<_>>().join("; "))
        }
        (
            Pattern::Many {
                kind,
                items,
                ordered: true,
                ..
            },
            Reply::Many(got_kind, replies),
        ) if kind == got_kind => {
            for (place, (wanted, got)) in items.iter().zip(replies).enumerate() {
                if let Some(inner) = first_difference(wanted, got) {
                    return Some(format!("element {place}: {inner}"));
                }
            }
            Some(format!(
                "{} elements instead of {}",
                replies.len(),
                items.len()
            ))
        }
        _ => Some(format!("{wanted:?} expected, got {}", got.render())),
    }
}

/// Each pattern takes the first reply that is left and fits: enough for elements that differ.
fn fits_unordered(items: &[Pattern], got: &[Reply], memory: &mut Memory) -> bool {
    let mut left: Vec<&Reply> = got.iter().collect();
    items.iter().all(|wanted| {
        let place = left.iter().position(|reply| wanted.fits(reply, memory));
        place.map(|place| left.remove(place)).is_some()
    })
}

impl TextPattern {
    fn fits(&self, got: &[u8], memory: &mut Memory) -> bool {
        match &self.0 {
            Text::Is(wanted) => wanted == got,
            Text::Fits(glob) => words::fits_glob(glob, got),
            Text::Any(name) if name.is_empty() => true,
            Text::Any(name) => memory.entry(name.clone()).or_insert_with(|| got.to_vec()) == got,
            Text::Remembered(name) => memory.get(name).is_some_and(|known| known == got),
        }
    }
}

fn element(cursor: &mut Cursor<'_>) -> Result<Pattern, String> {
    cursor.skip_blanks();
    if cursor.take_str("lines[") {
        let mut globs = Vec::new();
        while !cursor.take_after_blanks(']') {
            cursor.skip_blanks();
            globs.push(cursor.quoted()?);
        }
        return Ok(Pattern::Lines(globs));
    }
    let sign = cursor.peek().ok_or("a reply is missing")?;
    match sign {
        '"' => return Ok(Pattern::Bulk(TextPattern(Text::Is(cursor.quoted()?)))),
        '?' => {
            cursor.bump();
            return Ok(Pattern::Any);
        }
        '$' if cursor.rest().starts_with("${") => return remembered(cursor),
        '~' if cursor.rest().starts_with("~\"") => {
            cursor.bump();
            return Ok(Pattern::Bulk(TextPattern(Text::Fits(cursor.quoted()?))));
        }
        '=' => {
            cursor.bump();
            return Ok(Pattern::Exactly(Reply::Verbatim(cursor.quoted()?)));
        }
        _ => {}
    }
    if let Some(kind) = Aggregate::from_sign(sign)
        && cursor.rest()[1..].starts_with(['[', '{'])
    {
        return aggregate(cursor, kind);
    }
    cursor.bump();
    if (sign == '+' || sign == '-') && cursor.peek() == Some('"') {
        let text = TextPattern(Text::Is(cursor.quoted()?));
        return Ok(if sign == '+' {
            Pattern::Simple(text)
        } else {
            Pattern::Error(text)
        });
    }
    let word = cursor.word();
    scalar(sign, word)
}

fn scalar(sign: char, word: &str) -> Result<Pattern, String> {
    let text = || match word.strip_prefix('?') {
        Some(name) => TextPattern(Text::Any(name.into())),
        None => TextPattern(Text::Is(word.as_bytes().to_vec())),
    };
    Ok(match (sign, word) {
        ('+', _) => Pattern::Simple(text()),
        ('-', _) => Pattern::Error(text()),
        ('$', "-1") => Pattern::Exactly(Reply::NullBulk),
        ('*', "-1") => Pattern::Exactly(Reply::NullArray),
        ('_', "") => Pattern::Exactly(Reply::Null),
        ('#', "t" | "f") => Pattern::Exactly(Reply::Bool(word == "t")),
        ('(', _) => Pattern::Exactly(Reply::Big(word.into())),
        (',', _) => Pattern::Double(text()),
        ('$', _) if word.starts_with('?') => Pattern::Bulk(text()),
        (':', _) => match word.split_once("..") {
            Some((low, high)) => {
                let bound = |text: &str| text.parse().map_err(|_| format!("range {word:?}"));
                Pattern::Range(bound(low)?, bound(high)?)
            }
            None => Pattern::Int(text()),
        },
        _ => return Err(format!("not a reply: {sign}{word}")),
    })
}

fn remembered(cursor: &mut Cursor<'_>) -> Result<Pattern, String> {
    Ok(Pattern::Bulk(TextPattern(match cursor.substitution()? {
        words::Word::Remembered(name) => Text::Remembered(name),
        words::Word::Bytes(bytes) => Text::Is(bytes),
        words::Word::Clock { .. } => return Err("a reply cannot be the clock".into()),
    })))
}

fn aggregate(cursor: &mut Cursor<'_>, kind: Aggregate) -> Result<Pattern, String> {
    cursor.bump();
    let ordered = cursor.peek() == Some('[');
    let end = if ordered { ']' } else { '}' };
    cursor.bump();
    let (mut items, mut open) = (Vec::new(), false);
    while !cursor.take_after_blanks(end) {
        cursor.skip_blanks();
        if cursor.is_done() {
            return Err(format!("{end} is missing"));
        }
        if cursor.take_str("...") {
            open = true;
        } else {
            items.push(element(cursor)?);
        }
    }
    Ok(Pattern::Many {
        kind,
        items,
        ordered,
        open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, bytes: &[u8]) -> bool {
        let (reply, _) = Reply::parse(bytes).expect("RESP");
        Pattern::parse(pattern)
            .expect("pattern")
            .fits(&reply, &mut Memory::new())
    }

    #[test]
    fn the_three_nothings_are_different() {
        assert!(fits("$-1", b"$-1\r\n") && !fits("$-1", b"*-1\r\n") && !fits("$-1", b"_\r\n"));
        assert!(fits("*-1", b"*-1\r\n") && fits("_", b"_\r\n"));
    }

    #[test]
    fn holes_orders_and_open_ends() {
        let pair = b"*2\r\n$1\r\na\r\n:7\r\n";
        assert!(fits(r#"*["a" :7]"#, pair) && fits(r#"*{:5..9 "a"}"#, pair));
        assert!(fits(r#"*["a" ...]"#, pair) && !fits(r#"*["a"]"#, pair));
        assert!(fits("-~ERR *", b"-ERR whatever\r\n") && !fits("-ERR", b"-ERR whatever\r\n"));
        assert!(fits(r#"lines["b:*"]"#, b"$8\r\na:1\r\nb:2\r\n"));
    }

    #[test]
    fn a_name_must_mean_the_same_twice() {
        assert!(fits("*[:?n :?n]", b"*2\r\n:4\r\n:4\r\n"));
        assert!(!fits("*[:?n :?n]", b"*2\r\n:4\r\n:5\r\n"));
    }

    #[test]
    fn what_is_rendered_fits_itself() {
        let bytes = b"*3\r\n+a b\r\n-ERR x\r\n%1\r\n$2\r\n\x00\"\r\n,inf\r\n";
        let (reply, _) = Reply::parse(bytes).expect("RESP");
        let text = reply.render();
        assert!(
            Pattern::parse(&text)
                .expect("own text")
                .fits(&reply, &mut Memory::new()),
            "{text}"
        );
    }
}
