//! The small lexer that commands and expected replies share: words, quotes, substitutions, globs.
//!
//! Quoting is that of `redis-cli`: between double quotes `\n \r \t \\ \" \xHH`, between single quotes nothing.
//! A word `${name}` stands for what an earlier reply left under that name, `${"x"*1000}` for a repeated text,
//! `${now+5}` and `${now_ms-200}` for the clock, plus or minus.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::pattern::Memory;

/// One word of a command.
#[derive(Debug, Clone)]
pub enum Word {
    /// As it stands.
    Bytes(Vec<u8>),
    /// What a reply left.
    Remembered(String),
    /// The time now, in seconds or milliseconds, and something added.
    Clock {
        /// Milliseconds instead of seconds.
        millis: bool,
        /// What is added.
        offset: i64,
    },
}

impl Word {
    /// The bytes to send.
    ///
    /// # Errors
    /// When a name is not known.
    pub fn bytes(&self, memory: &Memory) -> Result<Vec<u8>, String> {
        match self {
            Word::Bytes(bytes) => Ok(bytes.clone()),
            Word::Remembered(name) => memory
                .get(name)
                .cloned()
                .ok_or_else(|| format!("nothing is remembered as {name}")),
            Word::Clock { millis, offset } => {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let now = if *millis {
                    now.as_millis()
                } else {
                    u128::from(now.as_secs())
                };
                let now = i64::try_from(now).unwrap_or(i64::MAX);
                Ok(now.saturating_add(*offset).to_string().into_bytes())
            }
        }
    }
}

/// The words of a command line.
///
/// # Errors
/// When a quote or a brace is not closed.
pub fn split(line: &str) -> Result<Vec<Word>, String> {
    let mut cursor = Cursor::new(line);
    let mut words = Vec::new();
    loop {
        cursor.skip_blanks();
        match cursor.peek() {
            None => return Ok(words),
            Some('"') => words.push(Word::Bytes(cursor.quoted()?)),
            Some('\'') => words.push(Word::Bytes(cursor.single_quoted()?)),
            Some('$') if cursor.rest().starts_with("${") => words.push(cursor.substitution()?),
            Some(_) => words.push(Word::Bytes(cursor.until_blank().as_bytes().to_vec())),
        }
    }
}

/// A place in a text.
#[derive(Debug)]
pub struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Cursor { rest: text }
    }

    /// What is left.
    #[must_use]
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next character.
    #[must_use]
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes one character.
    pub fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    /// Goes on to the next character that is not blank.
    pub fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes `text` if it comes next.
    pub fn take_str(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes `wanted` if it comes next, after blanks.
    pub fn take_after_blanks(&mut self, wanted: char) -> bool {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes everything up to a blank or a closing bracket.
    pub fn word(&mut self) -> &'a str {
        self.take_until(|next: char| next.is_whitespace() || next == ']' || next == '}')
    }

    /// Takes everything up to a blank.
    pub fn until_blank(&mut self) -> &'a str {
        self.take_until(char::is_whitespace)
    }

    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Takes a text between double quotes.
    ///
    /// # Errors
    /// When it does not start or does not end with one.
    pub fn quoted(&mut self) -> Result<Vec<u8>, String> {
        if self.bump() != Some('"') {
            return Err(format!("a quote is missing before {:?}", self.rest));
        }
        let mut bytes = Vec::new();
        loop {
            match self.bump().ok_or("the closing quote is missing")? {
                '"' => return Ok(bytes),
                '\\' => match self.bump().ok_or("the closing quote is missing")? {
                    'n' => bytes.push(b'\n'),
                    'r' => bytes.push(b'\r'),
                    't' => bytes.push(b'\t'),
                    'x' => {
                        let digits = self.rest.get(..2).ok_or("two digits must follow \\x")?;
                        bytes.push(
                            u8::from_str_radix(digits, 16).map_err(|error| error.to_string())?,
                        );
                        self.rest = &self.rest[2..];
                    }
                    other => push_char(&mut bytes, other),
                },
                other => push_char(&mut bytes, other),
            }
        }
    }

    fn single_quoted(&mut self) -> Result<Vec<u8>, String> {
        self.bump();
        let end = self.rest.find('\'').ok_or("the closing quote is missing")?;
        let text = self.rest.as_bytes()[..end].to_vec();
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    /// Takes `${...}`.
    ///
    /// # Errors
    /// When it is none.
    pub fn substitution(&mut self) -> Result<Word, String> {
        if !self.take_str("${") {
            return Err(format!("${{ is missing before {:?}", self.rest));
        }
        let word = if self.peek() == Some('"') {
            let text = self.quoted()?;
            let count = if self.take_str("*") {
                self.take_until(|next| next == '}')
            } else {
                "1"
            };
            let count = count
                .parse()
                .map_err(|_| format!("{count:?} is no count"))?;
            Word::Bytes(text.repeat(count))
        } else {
            let inner = self.take_until(|next| next == '}');
            clock(inner).unwrap_or_else(|| Word::Remembered(inner.into()))
        };
        if self.take_str("}") {
            Ok(word)
        } else {
            Err("} is missing".into())
        }
    }
}

fn clock(text: &str) -> Option<Word> {
    let rest = text.strip_prefix("now")?;
    let (millis, rest) = match rest.strip_prefix("_ms") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let offset = if rest.is_empty() {
        0
    } else {
        rest.parse().ok()?
    };
    Some(Word::Clock { millis, offset })
}

fn push_char(bytes: &mut Vec<u8>, next: char) {
    bytes.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Whether a text fits a glob of `*` and `?`.
#[must_use]
pub fn fits_glob(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == text[t] => {
                g += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((star_g, star_t)) => {
                    *star_t += 1;
                    g = *star_g + 1;
                    t = *star_t;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_substitutions() {
        let words = split(r#"SET {tag}a "x\x00\"y" 'p q' ${"ab"*2} ${v}"#).expect("words");
        let memory = Memory::from([("v".into(), b"remembered".to_vec())]);
        let bytes: Vec<Vec<u8>> = words
            .iter()
            .map(|word| word.bytes(&memory).expect("known"))
            .collect();
        let wanted: [&[u8]; 6] = [b"SET", b"{tag}a", b"x\0\"y", b"p q", b"abab", b"remembered"];
        assert_eq!(bytes, wanted);
    }

    #[test]
    fn globs() {
        assert!(fits_glob(b"a*c?", b"abbcd") && fits_glob(b"*", b"") && !fits_glob(b"a*c", b"abd"));
    }
}
