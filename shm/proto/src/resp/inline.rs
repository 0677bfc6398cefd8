//! Splits a line into words as Redis does it for inline commands and for configuration lines.
//!
//! Words are separated by white space. A word may hold quoted stretches: in double quotes the
//! escapes `\n \r \t \b \a \\ \" \xHH` mean what they mean in C, in single quotes only `\'` is
//! special. A closing quote must end its word.
//!
//! Oddities kept on purpose, because clients can see them: a quote may open in the middle of a word
//! (`a"b"` is `ab`), and vertical tab and form feed separate words but do not end one.

/// A line whose quotes do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnbalancedQuotes;

/// Appends the words of `line` to `bytes`, unescaped, and their `(start, end)` in `bytes` to `spans`.
///
/// # Errors
/// A quote that does not close, or closes inside a word.
pub fn split_words(
    line: &[u8],
    bytes: &mut Vec<u8>,
    spans: &mut Vec<(u32, u32)>,
) -> Result<(), UnbalancedQuotes> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&byte| is_space(byte)) {
            at += 1;
        }
        if at >= line.len() {
            return Ok(());
        }
        let start = bytes.len() as u32;
        at = word(line, at, bytes)?;
        spans.push((start, bytes.len() as u32));
    }
}

/// One word from `at` on; returns where it ends.
fn word(line: &[u8], mut at: usize, bytes: &mut Vec<u8>) -> Result<usize, UnbalancedQuotes> {
    loop {
        match line.get(at) {
            None | Some(b' ' | b'\n' | b'\r' | b'\t') => return Ok(at),
            Some(b'"') => return after_quote(line, double_quoted(line, at + 1, bytes)?),
            Some(b'\'') => return after_quote(line, single_quoted(line, at + 1, bytes)?),
            Some(&byte) => bytes.push(byte),
        }
        at += 1;
    }
}

/// A closing quote ends the word: white space or the end of the line must follow.
fn after_quote(line: &[u8], at: usize) -> Result<usize, UnbalancedQuotes> {
    match line.get(at) {
        Some(&byte) if !is_space(byte) => Err(UnbalancedQuotes),
        _ => Ok(at),
    }
}

fn double_quoted(
    line: &[u8],
    mut at: usize,
    bytes: &mut Vec<u8>,
) -> Result<usize, UnbalancedQuotes> {
    loop {
        match (line.get(at), line.get(at + 1)) {
            (None, _) => return Err(UnbalancedQuotes),
            (Some(b'"'), _) => return Ok(at + 1),
            (Some(b'\\'), Some(&escaped)) => {
                if let Some(byte) = hex_escape(&line[at..]) {
                    bytes.push(byte);
                    at += 4;
                    continue;
                }
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                at += 2;
            }
            (Some(&byte), _) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

fn single_quoted(
    line: &[u8],
    mut at: usize,
    bytes: &mut Vec<u8>,
) -> Result<usize, UnbalancedQuotes> {
    loop {
        match (line.get(at), line.get(at + 1)) {
            (None, _) => return Err(UnbalancedQuotes),
            (Some(b'\''), _) => return Ok(at + 1),
            (Some(b'\\'), Some(b'\'')) => {
                bytes.push(b'\'');
                at += 2;
            }
            (Some(&byte), _) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// The byte that `\xHH` at the start of `text` stands for.
fn hex_escape(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low] = text.first_chunk::<4>()? else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(*high)? * 16 + digit(*low)?) as u8)
}

/// C's `isspace` in the C locale.
#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<Vec<u8>>> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        split_words(line.as_bytes(), &mut bytes, &mut spans).ok()?;
        Some(
            spans
                .iter()
                .map(|&(a, b)| bytes[a as usize..b as usize].to_vec())
                .collect(),
        )
    }

    #[test]
    fn words_and_quotes() {
        let check = |line: &str, want: &[&[u8]]| assert_eq!(words(line).unwrap(), want, "{line}");
        check("", &[]);
        check("  GET  key ", &[b"GET", b"key"]);
        check(r#"SET k "a b\n\x41\q""#, &[b"SET", b"k", b"a b\nAq"]);
        check(r"SET k 'it\'s \n'", &[b"SET", b"k", br"it's \n"]);
        check(r#"a"b" c"#, &[b"ab", b"c"]);
        check("\"\" ''", &[b"", b""]);
        check("\x0ba\x0bb", &[b"a\x0bb"]);
        check(r#""\x4""#, &[b"x4"]);
    }

    #[test]
    fn quotes_that_do_not_match_are_refused() {
        for line in ["\"a", "'a", "\"a\"b", "'a'b", "\"a\\", "\"a\\\"", "'a\\'"] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
