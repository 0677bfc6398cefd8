//! Finds the keys in an argument list: one routine for routing, ACL and COMMAND GETKEYS.
//!
//! Cost: `One`, `At` and `Range` are arithmetic on positions; the others walk the arguments.

use super::StorageCommand;
use super::flags::{Access, access, flag};
use super::key_options::KeyOptions;
use super::spec::{Begin, Find, KeyArea, Keys, Spec};
use crate::error::CommandError;
use crate::frame::Args;

/// Which arguments of a command are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySpec {
    /// None.
    None,
    /// The first one.
    One,
    /// All of them.
    All,
    /// The one at this position (the name is 0).
    At(u8),
    /// From `first` to `last` (negative: from the end, -1 is the last one), every `step`th.
    Range {
        /// Position of the first one.
        first: u8,
        /// Position of the last one.
        last: i8,
        /// Distance between them.
        step: u8,
    },
    /// As the key specifications say, which look at arguments; true: argument 1 is one of the keys.
    Walk(bool),
    /// As the options of the command say, which only a reader of its own understands.
    Options(KeyOptions),
}

/// A key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAt {
    /// Which argument; the name is 0.
    pub position: u32,
    /// What happens to it.
    pub access: Access,
}

impl KeySpec {
    /// First, last and step of the keys of a request of `argc` arguments, where they follow from
    /// positions alone. `last` is at least `first` and below `argc` for a request of right arity.
    #[inline]
    #[must_use]
    pub const fn range(self, argc: usize) -> Option<(usize, usize, usize)> {
        match self {
            Self::One => Some((1, 1, 1)),
            Self::At(at) => Some((at as usize, at as usize, 1)),
            Self::All => Some((1, argc.wrapping_sub(1), 1)),
            Self::Range { first, last, step } => {
                let last = if last < 0 {
                    argc.wrapping_sub(last.unsigned_abs() as usize)
                } else {
                    last as usize
                };
                Some((first as usize, last, step as usize))
            }
            Self::None | Self::Walk(_) | Self::Options(_) => None,
        }
    }

    /// First, last and step as COMMAND INFO shows them; zeros if there is no such range.
    #[must_use]
    pub const fn legacy_range(self) -> (i64, i64, i64) {
        match self {
            Self::One => (1, 1, 1),
            Self::All => (1, -1, 1),
            Self::At(at) => (at as i64, at as i64, 1),
            Self::Range { first, last, step } => (first as i64, last as i64, step as i64),
            Self::Walk(true) | Self::Options(KeyOptions::Sort { .. } | KeyOptions::Radius(_)) => {
                (1, 1, 1)
            }
            Self::None | Self::Walk(false) | Self::Options(KeyOptions::Streams) => (0, 0, 0),
        }
    }

    /// Whether argument 1 is a key.
    #[must_use]
    pub const fn starts_with_key(self) -> bool {
        matches!(self.legacy_range(), (1, _, _))
    }
}

/// Appends the keys of a request to `out`. `argument` returns argument `i`, the name being 0.
///
/// # Errors
/// `InvalidKeyArguments` if the arguments do not have the form that the command wants.
pub fn extract<'a>(
    spec: &Spec,
    argc: usize,
    argument: impl Fn(usize) -> &'a [u8],
    out: &mut Vec<KeyAt>,
) -> Result<(), CommandError> {
    let before = out.len();
    if let KeySpec::Options(options @ KeyOptions::Sort { .. }) = spec.keys {
        options.extract(argc, &argument, out);
    } else if let Err(error) = extract_specified(spec, argc, &argument, out) {
        out.truncate(before);
        counted_loosely(spec.details().areas(), argc, &argument, out).ok_or(error)?;
    }
    if spec.flags.has(flag::VARIABLE_ACCESS) {
        let access = variable_access(spec.name, argc, &argument);
        for key in &mut out[before..] {
            key.access = access;
        }
    }
    if out.len() == before && !spec.flags.has(flag::NO_MANDATORY_KEYS) {
        return Err(CommandError::InvalidKeyArguments);
    }
    Ok(())
}

/// Puts the keys of a request in a frame into `out`, in place of what is there; none if the arguments do not
/// have the form that the command wants.
pub fn extract_from(command: StorageCommand, args: Args<'_>, out: &mut Vec<KeyAt>) {
    out.clear();
    let argument = |at: usize| match at {
        0 => command.name().as_bytes(),
        at => args.get(at),
    };
    // On an error nothing was added.
    let _ = extract(command.spec(), args.len(), argument, out);
}

/// Appends the keys that the key specifications find; those in front of a place that is not understood
/// are appended, too.
pub(super) fn extract_specified<'a>(
    spec: &Spec,
    argc: usize,
    argument: &impl Fn(usize) -> &'a [u8],
    out: &mut Vec<KeyAt>,
) -> Result<(), CommandError> {
    let mut areas = spec.details().areas();
    areas.try_for_each(|area| area_keys(area, argc, argument, out))
}

/// The keys that one key specification finds.
fn area_keys<'a>(
    area: &KeyArea,
    argc: usize,
    argument: &impl Fn(usize) -> &'a [u8],
    out: &mut Vec<KeyAt>,
) -> Result<(), CommandError> {
    let begin = match area.begin {
        Begin::Index(index) => index as usize,
        Begin::Keyword(word, from) => match behind_word(word, from, argc, argument) {
            Some(begin) => begin,
            None => return Ok(()),
        },
        Begin::Unknown => return Err(CommandError::InvalidKeyArguments),
    };
    if begin >= argc {
        return Err(CommandError::InvalidKeyArguments);
    }
    let (first, last, step) = match area.find {
        Find::Range { last, step, limit } => {
            let last = if last >= 0 {
                begin + last as usize
            } else if limit <= 1 {
                argc.saturating_sub(last.unsigned_abs() as usize)
            } else {
                (begin + (argc - begin) / limit as usize)
                    .saturating_sub(last.unsigned_abs() as usize)
            };
            (begin, last, step as usize)
        }
        Find::Count {
            number,
            first,
            step,
        } => {
            let at = begin + number as usize;
            let count = (at < argc)
                .then(|| crate::number::parse_i64(argument(at)))
                .flatten()
                .filter(|&count| count > 0)
                .ok_or(CommandError::InvalidKeyArguments)? as usize;
            let first = begin + first as usize;
            let step = step as usize;
            let last = (count - 1)
                .checked_mul(step)
                .and_then(|more| more.checked_add(first))
                .ok_or(CommandError::InvalidKeyArguments)?;
            (first, last, step)
        }
        Find::Unknown => return Err(CommandError::InvalidKeyArguments),
    };
    if last >= argc || last < first {
        return Err(CommandError::InvalidKeyArguments);
    }
    if area.access.has(access::NOT_KEY) {
        return Ok(());
    }
    let keys = (first..=last).step_by(step.max(1));
    out.extend(keys.map(|position| KeyAt {
        position: position as u32,
        access: area.access,
    }));
    Ok(())
}

/// Where the number of keys is none, Redis' older search reads it as C does (`01`, `1.0` and ` 1` are 1),
/// knows no flags, and names a destination last. `None` if there is no such number either.
fn counted_loosely<'a, 'b>(
    mut areas: impl Iterator<Item = &'b KeyArea>,
    argc: usize,
    argument: &impl Fn(usize) -> &'a [u8],
    out: &mut Vec<KeyAt>,
) -> Option<()> {
    let (mut area, mut destination) = (areas.next()?, None);
    if let Some(second) = areas.next() {
        destination = Some(1);
        area = second;
    }
    let (Begin::Index(begin), Find::Count { .. }) = (area.begin, area.find) else {
        return None;
    };
    let first = usize::from(begin) + 1;
    let count = (first <= argc).then(|| number_in_front(argument(first - 1)))?;
    let count = usize::try_from(count).ok().filter(|&count| count > 0)?;
    if count > argc - first {
        return None;
    }
    out.extend(
        (first..first + count)
            .chain(destination)
            .map(|position| KeyAt {
                position: position as u32,
                access: Access(0),
            }),
    );
    Some(())
}

/// What C's `atoi` makes of a text where `int` has 32 bits: the digits in front, 0 if there are none.
fn number_in_front(text: &[u8]) -> i32 {
    let blanks = |byte: &&u8| byte.is_ascii_whitespace() || **byte == 0x0B;
    let text = &text[text.iter().take_while(blanks).count()..];
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let sign = if negative { -1 } else { 1 };
        number.saturating_mul(10).saturating_add(sign * digit)
    });
    number as i32
}

/// The argument behind `word`; the search starts at `from`, or, if that is negative, that far from
/// the end and goes backwards. The last argument is not looked at: nothing is behind it.
fn behind_word<'a>(
    word: &str,
    from: i8,
    argc: usize,
    argument: &impl Fn(usize) -> &'a [u8],
) -> Option<usize> {
    let is_word = |&at: &usize| argument(at).eq_ignore_ascii_case(word.as_bytes());
    let found = if from >= 0 {
        (from as usize..argc.saturating_sub(1)).find(is_word)
    } else {
        let last = argc.checked_sub(from.unsigned_abs() as usize)?;
        (1..=last).rev().find(is_word)
    };
    found.map(|at| at + 1)
}

/// Access of commands that write only with certain arguments.
fn variable_access<'a>(name: &str, argc: usize, argument: &impl Fn(usize) -> &'a [u8]) -> Access {
    let is = |at: usize, word: &str| argument(at).eq_ignore_ascii_case(word.as_bytes());
    match name {
        "set" if (3..argc).any(|at| is(at, "GET")) => {
            Access(access::RW | access::ACCESS | access::UPDATE)
        }
        "set" => Access(access::OW | access::UPDATE),
        _ => {
            // BITFIELD: read-only if nothing but GET and OVERFLOW is found.
            let mut at = 2;
            loop {
                match argc - at.min(argc) {
                    3.. if is(at, "GET") => at += 3,
                    2.. if is(at, "OVERFLOW") => at += 2,
                    _ => break,
                }
            }
            if at >= argc {
                Access(access::RO | access::ACCESS)
            } else {
                Access(access::RW | access::ACCESS | access::UPDATE)
            }
        }
    }
}

const fn area(begin: u8, last: i8, step: u8, bits: u16) -> KeyArea {
    KeyArea {
        access: Access(bits),
        notes: None,
        begin: Begin::Index(begin),
        find: Find::Range {
            last,
            step,
            limit: 0,
        },
    }
}

const fn keys(spec: KeySpec, first: KeyArea, second: Option<KeyArea>) -> Keys {
    Keys {
        spec,
        areas: [Some(first), second, None],
    }
}

/// Columns: no keys.
pub(super) const fn none() -> Keys {
    Keys {
        spec: KeySpec::None,
        areas: [None; 3],
    }
}

/// Columns: the first argument is the key.
pub(super) const fn one(access: u16) -> Keys {
    keys(KeySpec::One, area(1, 0, 1, access), None)
}

/// Columns: argument `at` is the key.
pub(super) const fn at(at: u8, access: u16) -> Keys {
    keys(KeySpec::At(at), area(at, 0, 1, access), None)
}

/// Columns: every argument is a key.
pub(super) const fn all(access: u16) -> Keys {
    keys(KeySpec::All, area(1, -1, 1, access), None)
}

/// Columns: key, value, key, value, ...
pub(super) const fn pairs(access: u16) -> Keys {
    keys(
        KeySpec::Range {
            first: 1,
            last: -1,
            step: 2,
        },
        area(1, -1, 2, access),
        None,
    )
}

/// Columns: two keys that are used alike.
pub(super) const fn two(access: u16) -> Keys {
    keys(
        KeySpec::Range {
            first: 1,
            last: 2,
            step: 1,
        },
        area(1, 1, 1, access),
        None,
    )
}

/// Columns: a source and a destination.
pub(super) const fn from_to(from: u16, to: u16) -> Keys {
    let to = Some(area(2, 0, 1, to));
    keys(
        KeySpec::Range {
            first: 1,
            last: 2,
            step: 1,
        },
        area(1, 0, 1, from),
        to,
    )
}

/// Columns: argument `at` is a destination, all behind it are sources.
pub(super) const fn to_from_rest(at: u8, to: u16, from: u16) -> Keys {
    let sources = Some(area(at + 1, -1, 1, from));
    keys(
        KeySpec::Range {
            first: at,
            last: -1,
            step: 1,
        },
        area(at, 0, 1, to),
        sources,
    )
}

/// Columns: all but the last argument are keys, which are used alike (`BLPOP`).
pub const fn all_but_last(access: u16) -> Keys {
    keys(
        KeySpec::Range {
            first: 1,
            last: -2,
            step: 1,
        },
        area(1, -2, 1, access),
        None,
    )
}

/// Columns: argument `at` says how many keys follow it.
pub const fn counted(at: u8, access: u16) -> Keys {
    keys(KeySpec::Walk(false), count_area(at, access), None)
}

/// Columns: a destination, then the number of sources, then these.
pub const fn to_counted(to: u16, from: u16) -> Keys {
    let sources = Some(count_area(2, from));
    keys(KeySpec::Walk(true), area(1, 0, 1, to), sources)
}

/// Columns: the first half of what follows the word `STREAMS`, searched from argument `from` on.
pub const fn streams(from: i8, access: u16) -> Keys {
    let area = KeyArea {
        access: Access(access),
        notes: None,
        begin: Begin::Keyword("STREAMS", from),
        find: Find::Range {
            last: -1,
            step: 1,
            limit: 2,
        },
    };
    keys(KeySpec::Options(KeyOptions::Streams), area, None)
}

/// Columns: the first argument; behind the words `STORE` and `STOREDIST`, searched from argument
/// `from` on, are destinations.
pub const fn radius(from: u8, access: u16, to: u16) -> Keys {
    Keys {
        spec: KeySpec::Options(KeyOptions::Radius(from)),
        areas: [
            Some(area(1, 0, 1, access)),
            Some(word_area("STORE", from as i8, to)),
            Some(word_area("STOREDIST", from as i8, to)),
        ],
    }
}

/// Columns: the first argument, keys made of its elements, and, where it is allowed, a destination.
pub const fn sort(access: u16, to: Option<u16>) -> Keys {
    const PATTERNS: &str = "For the optional BY/GET keyword. It is marked 'unknown' because the key names \
                            derive from the content of the key we sort";
    const STORE: &str = "For the optional STORE keyword. It is marked 'unknown' because the keyword can \
                         appear anywhere in the argument array";
    let to = match to {
        Some(to) => Some(unknown_area(to, STORE)),
        None => None,
    };
    Keys {
        spec: KeySpec::Options(KeyOptions::Sort {
            stores: to.is_some(),
        }),
        areas: [
            Some(area(1, 0, 1, access)),
            Some(unknown_area(access, PATTERNS)),
            to,
        ],
    }
}

/// The argument behind `word`.
const fn word_area(word: &'static str, from: i8, access: u16) -> KeyArea {
    KeyArea {
        begin: Begin::Keyword(word, from),
        ..area(0, 0, 1, access)
    }
}

const fn count_area(at: u8, access: u16) -> KeyArea {
    KeyArea {
        find: Find::Count {
            number: 0,
            first: 1,
            step: 1,
        },
        ..area(at, 0, 1, access)
    }
}

const fn unknown_area(access: u16, notes: &'static str) -> KeyArea {
    KeyArea {
        access: Access(access),
        notes: Some(notes),
        begin: Begin::Unknown,
        find: Find::Unknown,
    }
}

impl Keys {
    /// A remark on the first key specification.
    pub(super) const fn notes(mut self, notes: &'static str) -> Self {
        if let Some(area) = &mut self.areas[0] {
            area.notes = Some(notes);
        }
        self
    }
}
