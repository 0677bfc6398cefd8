//! Says that something could not be tested here, where a green run would hide it.
//!
//! The test runner swallows what a passing test prints with `print!`; bytes written to standard error itself go
//! through. With `SIROCCO_SKIP_REPORT` set to a file the line is appended there as well, so that `.ci/run` can
//! print all of them at its end.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports one thing that is skipped, and why.
pub fn report(what: &str, why: &str) {
    let line = format!("SKIPPED: {what}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("SIROCCO_SKIP_REPORT")
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}

/// A program of this name on the search path, or reports that `what` is skipped.
#[must_use]
pub fn program(name: &str, what: &str) -> Option<std::path::PathBuf> {
    let found = find_program(name);
    if found.is_none() {
        report(what, &format!("{name} is not installed"));
    }
    found
}

/// A program of this name on the search path.
#[must_use]
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
