//! Turns the words of a command line into lines of a configuration file, by the rules of Redis.
//!
//! ```text
//!   sirocco [FILE | -] [--name word ...] ...
//! ```
//! A first word without `--` is a file. Every word that starts with `--` begins a setting, the
//! words up to the next one are its values. A setting without a value is an error when the lines are
//! applied, except that `--save` alone means `save ""`.
//!
//! Not here: options that are not settings (`--help`, ...), see the executable.

use super::words::quote;

/// What a command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The configuration file, if one is named.
    pub file: Option<String>,
    /// A `-` stands somewhere: more lines come on standard input.
    pub stdin: bool,
    /// The settings as lines of a file, one per setting.
    pub lines: String,
}

/// Sorts out the words after the program's name.
pub fn parse(words: &[String]) -> CommandLine {
    let mut result = CommandLine::default();
    let mut words = words;
    if let Some((first, rest)) = words.split_first()
        && !first.starts_with("--")
        && first != "-"
    {
        result.file = Some(first.clone());
        words = rest;
    }
    let mut position = 0;
    // The name that has no value yet, if the last word was one.
    let mut open_name: Option<&str> = None;
    while let Some(word) = words.get(position) {
        let is_last = position + 1 == words.len();
        if word == "-" && (is_last || position == 0) && open_name.is_none() {
            result.stdin = true;
        } else if let Some(name) = word.strip_prefix("--").filter(|name| !name.is_empty()) {
            if open_name == Some("save") {
                result.lines.push_str(" \"\"");
            }
            if !result.lines.is_empty() {
                result.lines.push('\n');
            }
            result.lines.push_str(name);
            open_name = Some(name);
        } else {
            result.lines.push(' ');
            result.lines.push_str(&quote(word));
            open_name = None;
        }
        position += 1;
    }
    if open_name == Some("save") {
        result.lines.push_str(" \"\"");
    }
    result
}
