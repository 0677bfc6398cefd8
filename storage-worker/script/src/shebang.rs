//! First lines: `#!lua name=... flags=...`.

use crate::{flags, library};
use proto::resp::inline::split_words;

/// What the first line of a library says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library<'a> {
    /// The name that it gives itself.
    pub name: Vec<u8>,
    /// What follows the first line, the line break included.
    pub code: &'a [u8],
}

fn first_line(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', body)?;
    Some(body.split_at(end))
}

/// The words of the line, in which quotes mean what they mean in inline commands.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    split_words(line, &mut bytes, &mut spans).ok()?;
    let word = |&(start, end): &(u32, u32)| bytes[start as usize..end as usize].to_vec();
    Some(spans.iter().map(word).collect())
}

fn text(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// What a script promises, and its code: what follows its first line, if that says something.
///
/// # Errors
/// What is wrong with the first line.
pub fn of_script(body: &[u8]) -> Result<(u8, &[u8]), Vec<u8>> {
    if !body.starts_with(b"#!") {
        return Ok((flags::COMPATIBLE, body));
    }
    let Some((line, code)) = first_line(body) else {
        return Err(b"Invalid script shebang".to_vec());
    };
    let Some(words) = words(line) else {
        return Err(b"Invalid engine in script shebang".to_vec());
    };
    let (engine, words) = words
        .split_first()
        .map_or((&[][..], &[][..]), |(engine, words)| (&engine[..], words));
    if engine != b"#!lua" {
        return Err(text(&[b"Unexpected engine in script shebang: ", engine]));
    }
    let mut all = 0;
    for word in words {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(text(&[b"Unknown lua shebang option: ", word]));
        };
        if names.is_empty() {
            continue;
        }
        for name in names.split(|byte| *byte == b',') {
            let Some(flag) = flags::by_name(name) else {
                return Err(text(&[b"Unexpected flag in script shebang: ", name]));
            };
            all |= flag;
        }
    }
    Ok((all, code))
}

/// Name and code of a library.
///
/// # Errors
/// What is wrong with the first line.
pub fn of_library(body: &[u8]) -> Result<Library<'_>, Vec<u8>> {
    if !body.starts_with(b"#!") {
        return Err(b"Missing library metadata".to_vec());
    }
    let Some((line, code)) = first_line(body) else {
        return Err(b"Invalid library metadata".to_vec());
    };
    let Some(words) = words(line) else {
        return Err(b"Invalid library metadata".to_vec());
    };
    let (engine, words) = words
        .split_first()
        .map_or((&[][..], &[][..]), |(engine, words)| (&engine[..], words));
    let engine = engine.strip_prefix(b"#!").unwrap_or_default();
    let mut name: Option<Vec<u8>> = None;
    for word in words {
        let has_name = word
            .get(..5)
            .is_some_and(|key| key.eq_ignore_ascii_case(b"name="));
        if !has_name {
            return Err(text(&[b"Invalid metadata value given: ", word]));
        }
        if name.is_some() {
            return Err(b"Invalid metadata value, name argument was given multiple times".to_vec());
        }
        name = word.get(5..).map(<[u8]>::to_vec);
    }
    let Some(name) = name else {
        return Err(b"Library name was not given".to_vec());
    };
    if !library::is_name(&name) {
        return Err(library::BAD_NAME.as_bytes().to_vec());
    }
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(text(&[b"Engine '", engine, b"' not found"]));
    }
    Ok(Library { name, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_of_scripts_are_read() {
        assert_eq!(
            of_script(b"return 1"),
            Ok((flags::COMPATIBLE, &b"return 1"[..]))
        );
        assert_eq!(of_script(b"#!lua\nx"), Ok((0, &b"\nx"[..])));
        let both = flags::NO_WRITES | flags::ALLOW_OOM;
        assert_eq!(
            of_script(b"#!lua flags=no-writes,allow-oom\n"),
            Ok((both, &b"\n"[..]))
        );
        assert!(of_script(b"#!lua flags=x\n").is_err());
        assert!(of_script(b"#!").is_err());
    }

    #[test]
    fn names_of_libraries_are_read() {
        let library = of_library(b"#!LUA name=a_1\ncode").unwrap();
        assert_eq!(
            (&library.name[..], library.code),
            (&b"a_1"[..], &b"\ncode"[..])
        );
        for bad in [
            "",
            "#!lua",
            "#!lua\n",
            "#!lua name=\n",
            "#!lua name=a name=b\n",
            "#!js name=a\n",
        ] {
            assert!(of_library(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
