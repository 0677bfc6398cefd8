//! Reads configuration files in the format of `redis.conf` and reports every problem in them.
//!
//! Why all at once: somebody who moves a large file over should see the whole list, with file and
//! line, not one error per attempt.
//!
//! Format: a name and words per line; `#` begins a comment line; `include` stands for the lines of
//! another file. `save` and `client-output-buffer-limit` may appear several times and add up; for
//! everything else the last line counts.
//!
//! Not here: reading files (the caller hands texts in, and resolves `include`), quoting (`words`).

use super::kind::{SettingError, Value};
use super::table::Setting;
use super::{Settings, find, words};
use std::fmt;

/// Includes inside includes, at most; more is surely a file that includes itself.
const INCLUDE_DEPTH_MAX: usize = 16;

/// A text with the name that problems show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// File name, or a description such as `command line`.
    pub name: String,
    /// The lines.
    pub text: String,
}

/// One problem in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: name of the source.
    pub source: String,
    /// Line, from 1; 0 when the whole source is meant.
    pub line: u32,
    /// The line itself, trimmed.
    pub text: String,
    /// What is wrong.
    pub reason: SettingError,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "{}: {}", self.source, self.reason);
        }
        write!(
            f,
            "{}, line {}: {}: '{}'",
            self.source, self.line, self.reason, self.text
        )
    }
}

/// Directives of Redis that are not settings and mean something this version cannot do.
const MISSING_DIRECTIVES: [&str; 5] = [
    "rename-command",
    "user",
    "loadmodule",
    "loadmodule-ex",
    "sentinel",
];

/// Applies texts in order on top of `settings` and returns every problem. `include` finds the
/// files that a pattern names and reads them.
///
/// Values of lines without problems are applied, so a caller that gets problems must drop
/// `settings`.
pub fn apply(
    settings: &mut Settings,
    sources: &[Source],
    include: &mut dyn FnMut(&str) -> Result<Vec<Source>, String>,
) -> Vec<Problem> {
    let mut reader = Reader {
        settings,
        problems: Vec::new(),
        saw_save: false,
        include,
    };
    for source in sources {
        reader.source(source, 0);
    }
    reader.problems
}

struct Reader<'a> {
    settings: &'a mut Settings,
    problems: Vec<Problem>,
    saw_save: bool,
    include: &'a mut dyn FnMut(&str) -> Result<Vec<Source>, String>,
}

impl Reader<'_> {
    fn source(&mut self, source: &Source, depth: usize) {
        for (number, line) in source.text.lines().enumerate() {
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if let Err(reason) = self.line(text, depth) {
                self.problems.push(Problem {
                    source: source.name.clone(),
                    line: u32::try_from(number + 1).unwrap_or(u32::MAX),
                    text: text.to_string(),
                    reason,
                });
            }
        }
    }

    fn line(&mut self, text: &str, depth: usize) -> Result<(), SettingError> {
        let words = words::split(text).ok_or(SettingError::UnbalancedQuotes)?;
        let Some((name, values)) = words.split_first() else {
            return Ok(());
        };
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let lower = name.to_ascii_lowercase();
        if lower == "include" {
            return self.include(&values, depth);
        }
        if MISSING_DIRECTIVES.contains(&lower.as_str()) {
            return Err(SettingError::Missing);
        }
        let row = find(&lower).ok_or(SettingError::BadDirective)?;
        if values.is_empty() {
            return Err(SettingError::ArgumentCount);
        }
        // `save "900 1"` means `save 900 1`, here as on the command line.
        let values = match values.as_slice() {
            [one] if row.kind.takes_several_words() && !one.is_empty() => one.split(' ').collect(),
            _ => values,
        };
        match row.setting {
            Setting::Save => self.save(&values),
            Setting::Replicaof if is_no_one(&values) => Ok(()),
            setting => self.settings.set_words(setting, &values),
        }
    }

    fn include(&mut self, values: &[&str], depth: usize) -> Result<(), SettingError> {
        let [pattern] = values else {
            return Err(SettingError::ArgumentCount);
        };
        if depth >= INCLUDE_DEPTH_MAX {
            return Err(SettingError::Other(
                "too many files include each other".to_string(),
            ));
        }
        for source in (self.include)(pattern).map_err(SettingError::Other)? {
            self.source(&source, depth + 1);
        }
        Ok(())
    }

    /// The first `save` line replaces the default, later ones add to it; `save ""` empties it.
    fn save(&mut self, values: &[&str]) -> Result<(), SettingError> {
        let Value::Save(mut points) = Setting::Save.row().kind.parse(values, None)? else {
            return Ok(());
        };
        if self.saw_save && !points.is_empty() {
            points.splice(0..0, self.settings.save().iter().copied());
        }
        self.saw_save = true;
        let text = super::special::print_save(&points);
        self.settings.set_text(Setting::Save, &text)
    }
}

fn is_no_one(values: &[&str]) -> bool {
    matches!(values, [a, b] if a.eq_ignore_ascii_case("no") && b.eq_ignore_ascii_case("one"))
}
