//! Splits a line of a configuration file into words, and quotes a word so that it splits back.
//!
//! Rules (those of Redis): words are separated by white space; `"..."` understands `\n`, `\r`,
//! `\t`, `\a`, `\b`, `\\`, `\"` and `\xHH`; `'...'` understands only `\'`; a closing quote must be
//! followed by white space or the end of the line.
//!
//! Cost: one pass, one allocation per word. Not here: comments and file structure (`file`).

use super::bytes::{byte_of, to_text};

/// The words of a line, or `None` when a quote is not closed properly.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.as_bytes();
    loop {
        while let [first, tail @ ..] = rest
            && first.is_ascii_whitespace()
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(words);
        }
        let (word, tail) = word(rest)?;
        words.push(to_text(&word));
        rest = tail;
    }
}

/// Takes one word from the front of `rest`, which does not start with white space.
fn word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [b'"', tail @ ..] => return quoted(word, tail),
            [b'\'', tail @ ..] => return single_quoted(word, tail),
            [byte, ..] if byte.is_ascii_whitespace() => return Some((word, rest)),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

fn quoted(mut word: Vec<u8>, mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    loop {
        match rest {
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [b'"', tail @ ..] => return closed(word, tail),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn single_quoted(mut word: Vec<u8>, mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    loop {
        match rest {
            [b'\\', b'\'', tail @ ..] => {
                word.push(b'\'');
                rest = tail;
            }
            [b'\'', tail @ ..] => return closed(word, tail),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

/// What follows a closing quote must be white space or the end.
fn closed(word: Vec<u8>, rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    match rest {
        [] => Some((word, rest)),
        [byte, ..] if byte.is_ascii_whitespace() => Some((word, rest)),
        _ => None,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// Quotes a word so that [`split`] gives it back: bare when it is simple, else in double quotes.
pub fn quote(word: &str) -> String {
    let simple = !word.is_empty()
        && word.bytes().all(|byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'#') || byte >= 0x80
        })
        && !word.chars().any(|c| byte_of(c).is_some());
    if simple {
        return word.to_string();
    }
    let mut text = String::with_capacity(word.len() + 2);
    text.push('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                text.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => match byte_of(c) {
                Some(byte) => text.push_str(&format!("\\x{byte:02x}")),
                None => text.push(c),
            },
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, words: &[&str]) {
        assert_eq!(split(line).unwrap(), words, "{line}");
    }

    #[test]
    fn words_split_by_the_quoting_rules() {
        check("  port   6379\t", &["port", "6379"]);
        check(
            r#"requirepass "a b\n\x41\"" 'it\'s' x"#,
            &["requirepass", "a b\nA\"", "it's", "x"],
        );
        check(r#"save """#, &["save", ""]);
        check("", &[]);
        for broken in [r#"a "b"#, r#"a "b"c"#, "a 'b", "a 'b'c"] {
            assert_eq!(split(broken), None, "{broken}");
        }
    }

    #[test]
    fn quoted_words_split_back() {
        for word in [
            "",
            "plain",
            "two words",
            "q\"uo\\te",
            "tab\t\u{1}",
            "é",
            "#x",
            "it's",
            &to_text(b"\xff\x80 x"),
        ] {
            assert_eq!(split(&quote(word)).unwrap(), [word]);
        }
    }
}
