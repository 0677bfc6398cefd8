//! From the words of the command line to settings, or to a list of everything that is wrong.
//!
//! Order, as in Redis: defaults, then the file, then standard input if `-` is given, then the
//! command line; `include` lines stand for the files they name.
//!
//! Not here: the format (`proto::settings`), options that are not settings (`cli`).

use crate::exit::Failure;
use proto::settings::{self, Settings, Source};
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Name of the command line among the sources of settings.
const COMMAND_LINE: &str = "command line";

/// Settings and where they came from.
#[derive(Debug)]
pub struct Loaded {
    /// The settings; `dir` is absolute.
    pub settings: Settings,
    /// The configuration file, absolute.
    pub file: Option<PathBuf>,
}

/// Reads everything that the words name.
///
/// # Errors
/// All problems at once, ready to print.
pub fn load(words: &[String]) -> Result<Loaded, Failure> {
    let line = settings::parse_command_line(words);
    let mut sources = Vec::new();
    let mut file = None;
    if let Some(name) = &line.file {
        let text = read(name).map_err(|error| format!("{error} (see sirocco --help)"));
        sources.push(text.map_err(Failure::Configuration)?);
        file = fs::canonicalize(name).ok();
    }
    if line.stdin {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::Configuration(format!("standard input: {error}")))?;
        sources.push(Source {
            name: "standard input".to_string(),
            text,
        });
    }
    sources.push(Source {
        name: COMMAND_LINE.to_string(),
        text: line.lines,
    });
    let mut loaded = Settings::default();
    let problems = settings::apply_files(&mut loaded, &sources, &mut include);
    let mut lines: Vec<String> = problems.iter().map(describe).collect();
    match directory(loaded.dir()) {
        Ok(absolute) => {
            let set = loaded.set_text(settings::Setting::Dir, &absolute.to_string_lossy());
            lines.extend(set.err().map(|reason| format!("  dir: {reason}")));
        }
        Err(reason) => lines.push(format!("  dir {}: {reason}", loaded.dir())),
    }
    if lines.is_empty() {
        return Ok(Loaded {
            settings: loaded,
            file,
        });
    }
    let count = if lines.len() == 1 {
        "1 error".to_string()
    } else {
        format!("{} errors", lines.len())
    };
    let mut text = format!("{count} in the configuration, nothing was started");
    for line in lines {
        write!(text, "\n{line}").expect("writing to a string cannot fail");
    }
    Err(Failure::Configuration(text))
}

/// One line per problem, as compilers print them.
fn describe(problem: &settings::Problem) -> String {
    if problem.source == COMMAND_LINE {
        return format!("  {COMMAND_LINE}: {}: '--{}'", problem.reason, problem.text);
    }
    format!(
        "  {}:{}: {}: '{}'",
        problem.source, problem.line, problem.reason, problem.text
    )
}

/// The absolute path of a directory that exists.
///
/// # Errors
/// The system's reason.
pub fn directory(path: &str) -> Result<PathBuf, String> {
    let absolute = fs::canonicalize(path).map_err(|error| reason(&error))?;
    if absolute.is_dir() {
        Ok(absolute)
    } else {
        Err("Not a directory".to_string())
    }
}

/// The text of a system error without its number.
pub fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_string(),
        None => error.to_string(),
    }
}

fn read(name: &str) -> Result<Source, String> {
    let bytes = fs::read(name).map_err(|error| {
        format!(
            "cannot open the configuration file '{name}': {}",
            reason(&error)
        )
    })?;
    Ok(Source {
        name: name.to_string(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// The files that an `include` names: one, or all that match wildcards in the last part of a path.
fn include(pattern: &str) -> Result<Vec<Source>, String> {
    if !pattern.contains(['*', '?', '[']) {
        return Ok(vec![read(pattern)?]);
    }
    let path = Path::new(pattern);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    let mut names: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|error| format!("cannot list {}: {}", folder.display(), reason(&error)))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            wildcard(last.as_bytes(), name.as_bytes())
        })
        .collect();
    names.sort();
    names
        .iter()
        .map(|name| read(&name.to_string_lossy()))
        .collect()
}

/// File name wildcards: `*` and `?`.
fn wildcard(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            wildcard(rest, name) || (!name.is_empty() && wildcard(pattern, &name[1..]))
        }
        ([b'?', rest @ ..], [_, tail @ ..]) => wildcard(rest, tail),
        ([first, rest @ ..], [byte, tail @ ..]) => first == byte && wildcard(rest, tail),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_includes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let name = |file: &str| folder.path().join(file).to_string_lossy().into_owned();
        fs::write(
            name("a.conf"),
            format!("port 1\nhz 20\ninclude {}\n", name("inc-*.conf")),
        )
        .unwrap();
        fs::write(name("inc-1.conf"), "timeout 5\nport 2\n").unwrap();
        fs::write(name("inc-2.conf"), "timeout 6\n").unwrap();
        let loaded = load(&words(&[&name("a.conf"), "--port", "3"])).unwrap();
        assert_eq!(loaded.settings.port(), 3);
        assert_eq!(loaded.settings.hz(), 20);
        assert_eq!(loaded.settings.timeout(), 6);
        assert!(loaded.settings.dir().starts_with('/'));
        assert!(loaded.file.unwrap().ends_with("a.conf"));
    }

    #[test]
    fn every_error_of_file_and_command_line_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder
            .path()
            .join("bad.conf")
            .to_string_lossy()
            .into_owned();
        fs::write(&name, "port abc\n\nfoo bar\n").unwrap();
        let error = load(&words(&[&name, "--hz", "x", "--dir", "/nonexistent"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "4 errors in the configuration, nothing was started\n  \
                 {name}:1: argument couldn't be parsed into an integer: 'port abc'\n  \
                 {name}:3: Bad directive or wrong number of arguments: 'foo bar'\n  \
                 command line: argument couldn't be parsed into an integer: '--hz x'\n  \
                 dir /nonexistent: No such file or directory"
            )
        );
        let error = load(&words(&["/nonexistent.conf"])).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot open the configuration file")
        );
    }
}
