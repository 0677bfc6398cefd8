//! Kinds of settings and their values: parse from words, check bounds, print for CONFIG GET.
//!
//! Why: `redis.conf`, the command line, CONFIG SET and the registry all give words; everything
//! that can be wrong with a word is found here once, with the text that clients of Redis know.
//!
//! Invariants
//!   K1  print(parse(words)) parses to the same value (checked for every default).
//!   K2  a value that exists is within the bounds of its kind.
//!
//! Cost: a parse allocates only for text kinds. Not here: which setting has which kind (`table`).

use super::special::{self, OutputLimit, SavePoint};
use std::fmt;

/// What a setting accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A decimal integer within bounds.
    Int {
        /// Smallest accepted value.
        min: i64,
        /// Largest accepted value.
        max: i64,
    },
    /// As `Int`, but an accepted value is moved into a narrower range instead of refused.
    Clamped {
        /// Smallest and largest accepted value.
        accepted: (i64, i64),
        /// Smallest and largest value that results.
        used: (i64, i64),
    },
    /// Bytes with an optional unit (`kb` = 1024, `k` = 1000, ...).
    Memory {
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
        /// Values below it are raised to it.
        at_least: u64,
    },
    /// Bytes, or a percentage of `maxmemory`.
    MemoryOrPercent,
    /// An octal number within bounds.
    Octal {
        /// Largest accepted value.
        max: i64,
    },
    /// Any text, checked by a function.
    Text(fn(&str) -> Result<(), SettingError>),
    /// One word of a closed set.
    Choice(&'static [&'static str]),
    /// Several words of a closed set; the first alone means "no bit".
    Flags(&'static [&'static str]),
    /// Any number of words, at most this many.
    Words(usize),
    /// Points of `save`.
    Save,
    /// Limits of `client-output-buffer-limit`.
    OutputLimits,
    /// Classes of `notify-keyspace-events`.
    Events,
    /// Scores of `oom-score-adj-values`.
    OomScores,
    /// Percentiles of `latency-tracking-info-percentiles`.
    Percentiles,
}

/// A setting's value. The variant always fits the kind of its row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of `Bool`.
    Bool(bool),
    /// Of `Int`, `Clamped` and `Octal`.
    Int(i64),
    /// Of `Memory` and `MemoryOrPercent`: bytes.
    Memory(u64),
    /// Of `MemoryOrPercent`.
    Percent(u8),
    /// Of `Text`.
    Text(String),
    /// Of `Choice`: position in the list of words.
    Choice(usize),
    /// Of `Flags` and `Events`.
    Bits(u64),
    /// Of `Words`.
    Words(Vec<String>),
    /// Of `Save`.
    Save(Vec<SavePoint>),
    /// Of `OutputLimits`.
    OutputLimits([OutputLimit; 3]),
    /// Of `OomScores`.
    Integers(Vec<i64>),
    /// Of `Percentiles`.
    Percentiles(Vec<f64>),
}

/// Why a value was refused. `Display` is the text that CONFIG SET appends and the start prints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is described by its text below")]
pub enum SettingError {
    Bool,
    Choice(&'static [&'static str]),
    NotInteger,
    NotMemory,
    NotMemoryOrPercent,
    NotOctal,
    Percentage,
    BoundsInt(i64, i64),
    BoundsMemory(u64, u64),
    BoundsOctal(i64),
    ArgumentCount,
    BadDirective,
    UnbalancedQuotes,
    Immutable,
    Protected,
    Duplicate,
    EventClass,
    SavePoints,
    OutputLimitCount,
    OutputLimitClass,
    OutputLimitValue,
    OomScores,
    PercentileWord,
    Percentile,
    FileNameOnly(&'static str),
    TitleTemplate,
    Missing,
    TooManyClients(u64),
    Other(String),
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Bool => "argument must be 'yes' or 'no'",
            Self::Choice(words) => {
                return write!(
                    f,
                    "argument(s) must be one of the following: {}",
                    words.join(", ")
                );
            }
            Self::NotInteger => "argument couldn't be parsed into an integer",
            Self::NotMemory => "argument must be a memory value",
            Self::NotMemoryOrPercent => "argument must be a memory or percent value",
            Self::NotOctal => "argument couldn't be parsed as an octal number",
            Self::Percentage => "percentage argument must be less or equal to 100",
            Self::BoundsInt(min, max) => {
                return write!(f, "argument must be between {min} and {max} inclusive");
            }
            Self::BoundsMemory(min, max) => {
                return write!(f, "argument must be between {min} and {max} inclusive");
            }
            Self::BoundsOctal(max) => {
                return write!(f, "argument must be between 0 and {max:o} inclusive");
            }
            Self::ArgumentCount => "wrong number of arguments",
            Self::BadDirective => "Bad directive or wrong number of arguments",
            Self::UnbalancedQuotes => "Unbalanced quotes in configuration line",
            Self::Immutable => "can't set immutable config",
            Self::Protected => "can't set protected config",
            Self::Duplicate => "duplicate parameter",
            Self::EventClass => "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
            Self::SavePoints => "Invalid save parameters",
            Self::OutputLimitCount => "Wrong number of arguments in buffer limit configuration.",
            Self::OutputLimitClass => {
                "Invalid client class specified in buffer limit configuration."
            }
            Self::OutputLimitValue => {
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
            }
            Self::OomScores => {
                "Invalid oom-score-adj-values, elements must be between -2000 and 2000."
            }
            Self::PercentileWord => "Invalid latency-tracking-info-percentiles parameters",
            Self::Percentile => {
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
            }
            Self::FileNameOnly(name) => {
                return write!(f, "{name} can't be a path, just a filename");
            }
            Self::TitleTemplate => "template format is invalid or contains unknown variables",
            Self::Missing => "this version cannot do that yet",
            Self::TooManyClients(possible) => {
                return write!(
                    f,
                    "The operating system is not able to handle the specified number of clients, \
                     try with {possible}"
                );
            }
            Self::Other(text) => text,
        };
        f.write_str(text)
    }
}

/// Parses a decimal integer without sign `+`, spaces or leading zeros.
pub(super) fn parse_strict_i64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = text == "0" || (digits.starts_with(|c: char| ('1'..='9').contains(&c)));
    if canonical { text.parse().ok() } else { None }
}

/// Parses bytes with an optional unit. Too large numbers saturate, an empty text is zero.
#[must_use]
pub fn parse_memory(text: &str) -> Option<u64> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1000 * 1000,
        "mb" => 1 << 20,
        "g" => 1000 * 1000 * 1000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = match digits {
        "" if unit.is_empty() => 0,
        "" => return None,
        _ => digits.parse::<u64>().unwrap_or(u64::MAX),
    };
    Some(number.saturating_mul(factor))
}

impl Kind {
    /// Whether a line of a configuration file may give more than one word.
    pub fn takes_several_words(&self) -> bool {
        matches!(
            self,
            Self::Flags(_)
                | Self::Words(_)
                | Self::Save
                | Self::OutputLimits
                | Self::OomScores
                | Self::Percentiles
        )
    }

    /// Parses the words after a setting's name. `old` is the value so far: settings with several
    /// parts keep the parts that the words do not mention.
    ///
    /// # Errors
    /// The reason, with the text users of Redis know.
    pub fn parse(&self, words: &[&str], old: Option<&Value>) -> Result<Value, SettingError> {
        if !self.takes_several_words() && words.len() != 1 {
            return Err(SettingError::ArgumentCount);
        }
        let word = words.first().copied().unwrap_or("");
        Ok(match self {
            Self::Bool => Value::Bool(if word.eq_ignore_ascii_case("yes") {
                true
            } else if word.eq_ignore_ascii_case("no") {
                false
            } else {
                return Err(SettingError::Bool);
            }),
            Self::Int { min, max } => Value::Int(parse_int(word, *min, *max)?),
            Self::Clamped { accepted, used } => {
                Value::Int(parse_int(word, accepted.0, accepted.1)?.clamp(used.0, used.1))
            }
            Self::Memory { min, max, at_least } => {
                let bytes = parse_memory(word).ok_or(SettingError::NotMemory)?;
                if !(*min..=*max).contains(&bytes) {
                    return Err(SettingError::BoundsMemory(*min, *max));
                }
                Value::Memory(bytes.max(*at_least))
            }
            Self::MemoryOrPercent => parse_memory_or_percent(word)?,
            Self::Octal { max } => {
                let mode = i64::from_str_radix(word, 8).map_err(|_| SettingError::NotOctal)?;
                if !(0..=*max).contains(&mode) {
                    return Err(SettingError::BoundsOctal(*max));
                }
                Value::Int(mode)
            }
            Self::Text(check) => {
                check(word)?;
                Value::Text(word.to_string())
            }
            Self::Choice(list) => Value::Choice(find_word(list, word)?),
            Self::Flags(list) => Value::Bits(parse_flags(list, words)?),
            Self::Words(max) => {
                let kept: Vec<String> = words
                    .iter()
                    .filter(|w| !w.is_empty())
                    .map(ToString::to_string)
                    .collect();
                if kept.len() > *max {
                    return Err(SettingError::ArgumentCount);
                }
                Value::Words(kept)
            }
            Self::Save => Value::Save(special::parse_save(words)?),
            Self::OutputLimits => {
                let old = match old {
                    Some(Value::OutputLimits(limits)) => *limits,
                    _ => {
                        [OutputLimit {
                            hard_bytes: 0,
                            soft_bytes: 0,
                            soft_seconds: 0,
                        }; 3]
                    }
                };
                Value::OutputLimits(special::parse_output_limits(words, old)?)
            }
            Self::Events => Value::Bits(special::parse_events(word)?),
            Self::OomScores => Value::Integers(special::parse_oom_scores(words)?),
            Self::Percentiles => Value::Percentiles(special::parse_percentiles(words)?),
        })
    }

    /// Prints a value as CONFIG GET shows it.
    pub fn print(&self, value: &Value) -> String {
        match value {
            Value::Bool(value) => if *value { "yes" } else { "no" }.to_string(),
            Value::Int(value) if matches!(self, Self::Octal { .. }) => format!("{value:o}"),
            Value::Int(value) => value.to_string(),
            Value::Memory(bytes) => bytes.to_string(),
            Value::Percent(percent) => format!("{percent}%"),
            Value::Text(text) => text.clone(),
            Value::Choice(position) => match self {
                Self::Choice(words) => words.get(*position).copied().unwrap_or("").to_string(),
                _ => String::new(),
            },
            Value::Bits(bits) => match self {
                Self::Flags(words) => print_flags(words, *bits),
                _ => special::print_events(*bits),
            },
            Value::Words(words) => words.join(" "),
            Value::Save(points) => special::print_save(points),
            Value::OutputLimits(limits) => special::print_output_limits(limits),
            Value::Integers(values) => join(values),
            Value::Percentiles(values) => join(values),
        }
    }
}

fn join<T: ToString>(values: &[T]) -> String {
    values
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn parse_int(word: &str, min: i64, max: i64) -> Result<i64, SettingError> {
    let value = parse_strict_i64(word).ok_or(SettingError::NotInteger)?;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(SettingError::BoundsInt(min, max))
    }
}

fn parse_memory_or_percent(word: &str) -> Result<Value, SettingError> {
    if let Some(number) = word.strip_suffix('%') {
        let percent = parse_strict_i64(number)
            .filter(|percent| *percent >= 0)
            .ok_or(SettingError::NotMemoryOrPercent)?;
        return match u8::try_from(percent) {
            Ok(percent) if percent <= 100 => Ok(Value::Percent(percent)),
            _ => Err(SettingError::Percentage),
        };
    }
    parse_memory(word)
        .map(Value::Memory)
        .ok_or(SettingError::NotMemoryOrPercent)
}

fn find_word(list: &'static [&'static str], word: &str) -> Result<usize, SettingError> {
    list.iter()
        .position(|known| known.eq_ignore_ascii_case(word))
        .ok_or(SettingError::Choice(list))
}

fn parse_flags(list: &'static [&'static str], words: &[&str]) -> Result<u64, SettingError> {
    if words.is_empty() {
        return Err(SettingError::Choice(list));
    }
    let mut bits = 0;
    for word in words {
        match find_word(list, word)? {
            0 => {}
            position => bits |= 1 << (position - 1),
        }
    }
    Ok(bits)
}

fn print_flags(list: &[&str], bits: u64) -> String {
    if bits == 0 {
        return list.first().copied().unwrap_or("").to_string();
    }
    let words: Vec<&str> = list
        .iter()
        .skip(1)
        .enumerate()
        .filter(|(position, _)| bits & (1 << position) != 0)
        .map(|(_, word)| *word)
        .collect();
    words.join(" ")
}
