//! Every file: header, size, width, and what must not be in it.

use std::path::Path;

use crate::{has_extension, read, rust_files, tracked};

/// Code lines at which a file has to be split; tests at its end do not count.
const CODE_LINES_MAX: usize = 600;
/// Columns, comments included.
const WIDTH_MAX: usize = 120;

/// Files, or folders of them, that may be longer and wider, and why.
const LONG_FILES: [(&str, &str); 2] = [
    (
        "shm/proto/src/catalogue/storage/",
        "one row for each command: a table is read from top to bottom",
    ),
    (
        "shm/proto/src/settings/table.rs",
        "one row for each setting: the same",
    ),
];

#[track_caller]
fn assert_none(offenders: &[String], rule: &str) {
    assert!(
        offenders.is_empty(),
        "{rule}:\n  {}",
        offenders.join("\n  ")
    );
}

fn is_table(file: &Path) -> bool {
    LONG_FILES.iter().any(|(long, _)| file.starts_with(long))
}

fn code_lines(text: &str) -> usize {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end]
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

#[test]
fn every_rust_file_says_first_what_it_is() {
    let offenders: Vec<String> = rust_files()
        .iter()
        .filter(|file| !read(file).starts_with("//!"))
        .map(|file| file.display().to_string())
        .collect();
    assert_none(&offenders, "the first line of a file begins with //!");
}

#[test]
fn every_script_and_transcript_says_first_what_it_is() {
    let offenders: Vec<String> = tracked()
        .iter()
        .filter(|file| has_extension(file, "resp"))
        .filter(|file| !read(file).starts_with("# "))
        .map(|file| file.display().to_string())
        .collect();
    assert_none(&offenders, "the first line of a transcript is a comment");
}

#[test]
fn no_file_is_too_long() {
    let offenders: Vec<String> = rust_files()
        .iter()
        .filter(|file| !is_table(file))
        .map(|file| (file, code_lines(&read(file))))
        .filter(|(_, lines)| *lines > CODE_LINES_MAX)
        .map(|(file, lines)| format!("{} has {lines}", file.display()))
        .collect();
    assert_none(&offenders, "a file has at most 600 lines of code");
}

#[test]
fn no_line_is_too_wide() {
    let mut offenders = Vec::new();
    for file in rust_files().iter().filter(|file| !is_table(file)) {
        for (number, line) in read(file).lines().enumerate() {
            if line.chars().count() > WIDTH_MAX && !line.contains("http") && !line.contains('"') {
                offenders.push(format!("{}:{}", file.display(), number + 1));
            }
        }
    }
    assert_none(&offenders, "a line has at most 120 columns");
}

#[test]
fn nothing_unfinished_lands() {
    let words = [
        "FIX".to_owned() + "ME",
        "XX".to_owned() + "X",
        "to".to_owned() + "do!(",
        "unim".to_owned() + "plemented!(",
    ];
    let mut offenders = Vec::new();
    for file in rust_files() {
        for (number, line) in read(&file).lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                offenders.push(format!("{}:{} {word}", file.display(), number + 1));
            }
            let ignored = "#[".to_owned() + "ignore";
            if line.trim_start().starts_with(&ignored) {
                offenders.push(format!("{}:{} an ignored test", file.display(), number + 1));
            }
        }
    }
    assert_none(&offenders, "no reminders and no ignored tests");
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    let places = [
        "/ho".to_owned() + "me/",
        "/wo".to_owned() + "rk/",
        "/ro".to_owned() + "ot/",
        "/Us".to_owned() + "ers/",
    ];
    let mut offenders = Vec::new();
    for file in tracked() {
        if has_extension(&file, "lock") || has_extension(&file, "svg") {
            continue;
        }
        for (number, line) in read(&file).lines().enumerate() {
            // A sample path in a test is no machine's.
            let line = line.replace("/home/me/", "");
            if let Some(place) = places.iter().find(|place| line.contains(place.as_str())) {
                offenders.push(format!("{}:{} {place}", file.display(), number + 1));
            }
        }
    }
    assert_none(&offenders, "no path of a machine");
}

#[test]
fn every_exception_for_long_files_is_still_needed() {
    let offenders: Vec<String> = LONG_FILES
        .iter()
        .filter(|(file, _)| !harness::workspace().join(file).exists())
        .map(|(file, _)| (*file).to_owned())
        .collect();
    assert_none(&offenders, "an exception names a file that exists");
}
