//! Settings whose value is a small structure: snapshot points, output limits, event classes, ...
//!
//! Each has a parse from the words of a line and a print in the form that CONFIG GET shows. Error
//! texts are the ones clients of Redis know.
//!
//! Not here: plain kinds (numbers, words, memory sizes), which live in `kind`.

use super::kind::{SettingError, parse_memory, parse_strict_i64};
use std::fmt::Write;

/// Classes of clients that have limits of their own, in the order of CONFIG GET.
pub const CLIENT_CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// Limits on the output a client may leave unread, for one class of clients. Zero means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes at which a client is closed at once.
    pub hard_bytes: u64,
    /// Bytes at which it is closed when it stays above for `soft_seconds`.
    pub soft_bytes: u64,
    /// Seconds above `soft_bytes` before the client is closed.
    pub soft_seconds: u64,
}

/// A snapshot is due `seconds` after a change when at least `changes` writes happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last snapshot.
    pub seconds: u64,
    /// Writes since the last snapshot.
    pub changes: u64,
}

/// Letters of event classes and their bits, in the order in which CONFIG GET prints them.
const EVENT_CLASSES: &[(char, u64)] = &[
    ('g', 1 << 2),
    ('$', 1 << 3),
    ('l', 1 << 4),
    ('s', 1 << 5),
    ('h', 1 << 6),
    ('z', 1 << 7),
    ('x', 1 << 8),
    ('e', 1 << 9),
    ('t', 1 << 10),
    ('d', 1 << 13),
    ('n', 1 << 14),
];
/// Events on channels named after keyspaces.
pub const EVENT_KEYSPACE: u64 = 1;
/// Events on channels named after events.
pub const EVENT_KEYEVENT: u64 = 1 << 1;
/// Events for reads of keys that do not exist; not part of `A`.
pub const EVENT_KEY_MISS: u64 = 1 << 11;
/// Events for new keys; not part of `A`.
pub const EVENT_NEW_KEY: u64 = 1 << 14;
/// Every class that `A` stands for.
pub const EVENT_ALL: u64 = 0b10_0111_1111_1100;

/// Parses the letters of `notify-keyspace-events`.
pub(super) fn parse_events(text: &str) -> Result<u64, SettingError> {
    let mut bits = 0;
    for letter in text.chars() {
        bits |= match letter {
            'A' => EVENT_ALL,
            'K' => EVENT_KEYSPACE,
            'E' => EVENT_KEYEVENT,
            'm' => EVENT_KEY_MISS,
            _ => match EVENT_CLASSES.iter().find(|(known, _)| *known == letter) {
                Some((_, bit)) => *bit,
                None => return Err(SettingError::EventClass),
            },
        };
    }
    Ok(bits)
}

/// Prints event classes as CONFIG GET of Redis does: once every class of `A` is there, `n` is not
/// mentioned.
pub(super) fn print_events(bits: u64) -> String {
    print_classes(
        bits,
        bits & EVENT_ALL == EVENT_ALL && bits & EVENT_NEW_KEY != 0,
    )
}

/// Prints event classes so that nothing is lost.
pub(super) fn print_all_events(bits: u64) -> String {
    print_classes(bits, false)
}

fn print_classes(bits: u64, hides_new_keys: bool) -> String {
    let mut text = String::new();
    let mut rest = bits;
    if bits & EVENT_ALL == EVENT_ALL {
        text.push('A');
        rest &= !EVENT_ALL;
    }
    if hides_new_keys {
        rest &= !EVENT_NEW_KEY;
    }
    let classes = EVENT_CLASSES.iter().filter(|(_, bit)| rest & bit != 0);
    text.extend(classes.map(|(letter, _)| *letter));
    for (letter, bit) in [
        ('K', EVENT_KEYSPACE),
        ('E', EVENT_KEYEVENT),
        ('m', EVENT_KEY_MISS),
    ] {
        if bits & bit != 0 {
            text.push(letter);
        }
    }
    text
}

/// Parses pairs of seconds and changes; a single empty word means no snapshots.
pub(super) fn parse_save(words: &[&str]) -> Result<Vec<SavePoint>, SettingError> {
    if words.is_empty() || (words.len() == 1 && words[0].is_empty()) {
        return Ok(Vec::new());
    }
    if !words.len().is_multiple_of(2) {
        return Err(SettingError::SavePoints);
    }
    let mut points = Vec::with_capacity(words.len() / 2);
    for pair in words.chunks_exact(2) {
        let seconds = parse_strict_i64(pair[0]).filter(|value| *value >= 1);
        let changes = parse_strict_i64(pair[1]).filter(|value| *value >= 0);
        let (Some(seconds), Some(changes)) = (seconds, changes) else {
            return Err(SettingError::SavePoints);
        };
        points.push(SavePoint {
            seconds: seconds.unsigned_abs(),
            changes: changes.unsigned_abs(),
        });
    }
    Ok(points)
}

/// Prints snapshot points as pairs.
pub(super) fn print_save(points: &[SavePoint]) -> String {
    let pairs: Vec<String> = points
        .iter()
        .map(|point| format!("{} {}", point.seconds, point.changes))
        .collect();
    pairs.join(" ")
}

/// Parses groups of four words and lays them over `limits`; other classes keep theirs.
pub(super) fn parse_output_limits(
    words: &[&str],
    mut limits: [OutputLimit; 3],
) -> Result<[OutputLimit; 3], SettingError> {
    if !words.len().is_multiple_of(4) {
        return Err(SettingError::OutputLimitCount);
    }
    for group in words.chunks_exact(4) {
        let class = match group[0].to_ascii_lowercase().as_str() {
            "normal" => 0,
            "slave" | "replica" => 1,
            "pubsub" => 2,
            _ => return Err(SettingError::OutputLimitClass),
        };
        let hard = parse_memory(group[1]);
        let soft = parse_memory(group[2]);
        let seconds = group[3]
            .trim()
            .parse::<u32>()
            .ok()
            .filter(|value| *value <= i32::MAX as u32);
        let (Some(hard_bytes), Some(soft_bytes), Some(soft_seconds)) = (hard, soft, seconds) else {
            return Err(SettingError::OutputLimitValue);
        };
        limits[class] = OutputLimit {
            hard_bytes,
            soft_bytes,
            soft_seconds: soft_seconds.into(),
        };
    }
    Ok(limits)
}

/// Prints all classes on one line.
pub(super) fn print_output_limits(limits: &[OutputLimit; 3]) -> String {
    let mut text = String::new();
    for (class, limit) in CLIENT_CLASSES.iter().zip(limits) {
        let space = if text.is_empty() { "" } else { " " };
        write!(
            text,
            "{space}{class} {} {} {}",
            limit.hard_bytes, limit.soft_bytes, limit.soft_seconds
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// Parses the three scores of `oom-score-adj-values`.
pub(super) fn parse_oom_scores(words: &[&str]) -> Result<Vec<i64>, SettingError> {
    if words.len() != 3 {
        return Err(SettingError::ArgumentCount);
    }
    words
        .iter()
        .map(|word| {
            parse_strict_i64(word)
                .filter(|value| (-2000..=2000).contains(value))
                .ok_or(SettingError::OomScores)
        })
        .collect()
}

/// Parses percentiles between 0 and 100; an empty word means none.
pub(super) fn parse_percentiles(words: &[&str]) -> Result<Vec<f64>, SettingError> {
    if words.len() == 1 && words[0].is_empty() {
        return Ok(Vec::new());
    }
    words
        .iter()
        .map(|word| {
            let value: f64 = word.parse().map_err(|_| SettingError::PercentileWord)?;
            if (0.0..=100.0).contains(&value) {
                Ok(value)
            } else {
                Err(SettingError::Percentile)
            }
        })
        .collect()
}
