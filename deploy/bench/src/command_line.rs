//! Start lines of servers: splitting them into words as a shell would, and showing them without the
//! paths of this machine.
//!
//! Results are meant to be published. A path says nothing about a server but much about a machine,
//! so every absolute path is cut to its last part before it is kept.

/// Splits a line into words: blanks separate, quotes of both kinds and backslashes work as in a
/// shell. No variables, no globs. `None` if a quote is not closed.
pub(crate) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '\\' => word.push(letters.next()?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// A start line as it may be published: paths cut to their last part, empty words quoted.
pub(crate) fn public_line(words: &[String]) -> String {
    let shown: Vec<String> = words
        .iter()
        .map(|word| match without_path(word) {
            word if word.is_empty() => "\"\"".to_owned(),
            word if word.contains(' ') => format!("\"{word}\""),
            word => word,
        })
        .collect();
    shown.join(" ")
}

/// `text` without the directories of any absolute path in it.
pub(crate) fn without_path(text: &str) -> String {
    let cut = |word: &str| match word.find('/') {
        // An address such as tcp://host is not a path.
        Some(start) if !word[start..].starts_with("//") => {
            let (before, path) = word.split_at(start);
            let absolute = before.is_empty() || before.ends_with(['=', ':', '"', '\'', '.', '~']);
            if absolute {
                let last = path
                    .trim_end_matches('/')
                    .rsplit('/')
                    .next()
                    .unwrap_or_default();
                format!("{}{last}", before.trim_end_matches(['.', '~']))
            } else {
                word.to_owned()
            }
        }
        _ => word.to_owned(),
    };
    text.split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_a_shell_does() {
        let split = |line| words(line).unwrap();
        assert_eq!(split("a  b\tc"), ["a", "b", "c"]);
        assert_eq!(
            split(r#"x --save "" --name 'a b' c\ d"#),
            ["x", "--save", "", "--name", "a b", "c d"]
        );
        assert_eq!(split(r#""a \" b""#), [r#"a " b"#]);
        assert_eq!(split("pre'fix'ed"), ["prefixed"]);
        assert!(split("  ").is_empty());
        for open in ["'a", "\"a", "a\\"] {
            assert_eq!(words(open), None, "{open}");
        }
    }

    #[test]
    fn shows_no_paths() {
        let line = words(r#"/opt/x/redis-server --port {port} --save "" --dir=/srv/data ./y/z"#);
        assert_eq!(
            public_line(&line.unwrap()),
            r#"redis-server --port {port} --save "" --dir=data z"#
        );
        assert_eq!(without_path("/var/lib/redis/"), "redis");
        assert_eq!(
            without_path("normal 0 0 0 slave 1/2"),
            "normal 0 0 0 slave 1/2"
        );
        assert_eq!(without_path("tcp://127.0.0.1:1"), "tcp://127.0.0.1:1");
        assert_eq!(without_path("/"), "");
    }
}
