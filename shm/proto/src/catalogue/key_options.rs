//! Commands whose keys depend on their options, and the keys that decide where a request runs.
//!
//! What COMMAND GETKEYS shows follows the key specifications, as Redis does it, and these miss some
//! requests: the word `STREAMS` may be the name of a group, and of two `STORE` the last one counts.
//! Routing must not miss a key, so for these commands it reads the options in the way in which their
//! handlers read them. Where both disagree, routing finds more.
//!
//! Cost: one pass over the arguments.

use super::flags::{Access, access};
use super::keys::{KeyAt, KeySpec, extract_specified};
use super::spec::Spec;

/// Commands whose options must be read to find their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOptions {
    /// `SORT`, `SORT_RO`: keys made from patterns behind `BY` and `GET`; a destination behind `STORE`, if
    /// there can be one.
    Sort {
        /// `STORE` is an option.
        stores: bool,
    },
    /// `GEORADIUS`, `GEORADIUSBYMEMBER`: options from this argument on, destinations among them.
    Radius(u8),
    /// `XREAD`, `XREADGROUP`: the first half of what follows `STREAMS`.
    Streams,
}

/// Which workers a request concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The owners of the keys that were found.
    Keys,
    /// Perhaps any: keys of it are not known before it runs.
    Anywhere,
}

/// Appends the keys that decide where a request runs to `out`. There are none if the request is not
/// understood; then any worker can refuse it.
pub fn routing_keys<'a>(
    spec: &Spec,
    argc: usize,
    argument: impl Fn(usize) -> &'a [u8],
    out: &mut Vec<KeyAt>,
) -> Reach {
    if let KeySpec::Options(options) = spec.keys {
        return options.routing_keys(argc, argument, out);
    }
    // Keys in front of the place that was not understood stay: one of them is enough to refuse.
    let _ = extract_specified(spec, argc, &argument, out);
    Reach::Keys
}

impl KeyOptions {
    /// The keys that COMMAND GETKEYS shows of a command without complete key specifications.
    pub(super) fn extract<'a>(
        self,
        argc: usize,
        argument: &impl Fn(usize) -> &'a [u8],
        out: &mut Vec<KeyAt>,
    ) {
        if let Self::Sort { stores } = self {
            out.push(key(1, access::RO | access::ACCESS));
            if stores {
                let destination = store_word(argc, argument).map(|at| at + 1);
                out.extend(destination.map(|at| key(at, access::OW | access::UPDATE)));
            }
        }
    }

    /// Whether a request with these options may wait for its keys.
    pub(super) fn may_wait<'a>(self, argc: usize, argument: impl Fn(usize) -> &'a [u8]) -> bool {
        let is = |at: usize, word: &str| argument(at).eq_ignore_ascii_case(word.as_bytes());
        match self {
            Self::Sort { .. } | Self::Radius(_) => false,
            // The word may also be the name of a group or stream; then nothing waits, only slower.
            Self::Streams => (1..argc).any(|at| is(at, "BLOCK")),
        }
    }

    fn routing_keys<'a>(
        self,
        argc: usize,
        argument: impl Fn(usize) -> &'a [u8],
        out: &mut Vec<KeyAt>,
    ) -> Reach {
        let is = |at: usize, word: &str| argument(at).eq_ignore_ascii_case(word.as_bytes());
        let mut reach = Reach::Keys;
        match self {
            Self::Sort { stores } => {
                out.push(key(1, access::RO | access::ACCESS));
                sort_options(argc, &argument, |option, at| match option {
                    SortOption::Store if stores => out.push(key(at, access::OW | access::UPDATE)),
                    SortOption::Store => {}
                    SortOption::Pattern => match pattern_reach(argument(at)) {
                        PatternReach::Nothing => {}
                        PatternReach::OneSlot => out.push(key(at, access::RO | access::ACCESS)),
                        PatternReach::Anywhere => reach = Reach::Anywhere,
                    },
                });
            }
            Self::Radius(from) => {
                out.push(key(1, access::RO | access::ACCESS));
                let options = usize::from(from)..argc.saturating_sub(1);
                let stores = options.filter(|&at| is(at, "STORE") || is(at, "STOREDIST"));
                out.extend(stores.map(|at| key(at + 1, access::OW | access::UPDATE)));
            }
            Self::Streams => {
                let mut at = 1;
                while at < argc {
                    at += match () {
                        () if is(at, "STREAMS") => {
                            let keys = at + 1..at + 1 + (argc - at - 1) / 2;
                            out.extend(keys.map(|at| key(at, access::RO | access::ACCESS)));
                            break;
                        }
                        () if is(at, "GROUP") => 3,
                        () if is(at, "BLOCK") || is(at, "COUNT") || is(at, "CLAIM") => 2,
                        () => 1,
                    };
                }
            }
        }
        reach
    }
}

fn key(position: usize, bits: u16) -> KeyAt {
    KeyAt {
        position: position as u32,
        access: Access(bits),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SortOption {
    /// The argument is a pattern that becomes a key.
    Pattern,
    /// The argument is the destination.
    Store,
}

/// Calls `each` with the arguments of those options of SORT that name keys.
fn sort_options<'a>(
    argc: usize,
    argument: &impl Fn(usize) -> &'a [u8],
    mut each: impl FnMut(SortOption, usize),
) {
    let is = |at: usize, word: &str| argument(at).eq_ignore_ascii_case(word.as_bytes());
    let mut at = 2;
    while at < argc {
        let left = argc - at - 1;
        at += match () {
            () if is(at, "LIMIT") && left >= 2 => 3,
            () if (is(at, "BY") || is(at, "GET")) && left >= 1 => {
                each(SortOption::Pattern, at + 1);
                2
            }
            () if is(at, "STORE") && left >= 1 => {
                each(SortOption::Store, at + 1);
                2
            }
            () => 1,
        };
    }
}

/// The last `STORE` that is no argument of another option, as COMMAND GETKEYS searches it: what follows a
/// `STORE` may be one itself.
fn store_word<'a>(argc: usize, argument: &impl Fn(usize) -> &'a [u8]) -> Option<usize> {
    let is = |at: usize, word: &str| argument(at).eq_ignore_ascii_case(word.as_bytes());
    let (mut at, mut found) = (2, None);
    while at < argc {
        at += match () {
            () if is(at, "LIMIT") => 3,
            () if is(at, "BY") || is(at, "GET") => 2,
            () => {
                if is(at, "STORE") && at + 1 < argc {
                    found = Some(at);
                }
                1
            }
        };
    }
    found
}

enum PatternReach {
    /// No key is read.
    Nothing,
    /// Keys of the slot that the pattern itself has, taken as a key.
    OneSlot,
    /// Any keys.
    Anywhere,
}

fn pattern_reach(pattern: &[u8]) -> PatternReach {
    let Some(star) = pattern.iter().position(|&byte| byte == b'*') else {
        return PatternReach::Nothing;
    };
    // A hash tag in front of the star fixes the slot.
    let tag = pattern
        .iter()
        .position(|&byte| byte == b'{')
        .and_then(|open| {
            let close = pattern[open + 1..].iter().position(|&byte| byte == b'}')?;
            (close > 0).then_some(open + 1..open + 1 + close)
        });
    match tag {
        Some(tag) if tag.end < star => PatternReach::OneSlot,
        _ => PatternReach::Anywhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(options: KeyOptions, words: &str) -> (Vec<u32>, Reach) {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let mut out = Vec::new();
        let reach = options.routing_keys(words.len(), |at| words[at], &mut out);
        (out.iter().map(|key| key.position).collect(), reach)
    }

    #[test]
    fn routing_reads_options_as_handlers_do() {
        use KeyOptions::{Radius, Streams};
        const SORT: KeyOptions = KeyOptions::Sort { stores: true };
        const SORT_RO: KeyOptions = KeyOptions::Sort { stores: false };
        let here = |positions: &[u32]| (positions.to_vec(), Reach::Keys);
        for (options, words, want) in [
            (SORT, "sort k", here(&[1])),
            (SORT, "sort k store a store b", here(&[1, 3, 5])),
            (SORT_RO, "sort_ro k store a", here(&[1])),
            (SORT, "sort k limit store 1", here(&[1])),
            (SORT, "sort k store", here(&[1])),
            (SORT, "sort k by nosort get # store d", here(&[1, 7])),
            (SORT, "sort k get store x", here(&[1])),
            (SORT, "sort k by {t}*", here(&[1, 3])),
            (SORT, "sort k by {t}_*->f", here(&[1, 3])),
            (
                Radius(6),
                "georadius k 1 2 3 m store a STOREDIST b store c",
                here(&[1, 7, 9, 11]),
            ),
            (Radius(6), "georadius k 1 2 3 store x", here(&[1])),
            (Radius(6), "georadius k 1 2 3 m store", here(&[1])),
            (Streams, "xread count 1 streams a b 1 2", here(&[4, 5])),
            (
                Streams,
                "xreadgroup block 1 group streams c streams k 1",
                here(&[7]),
            ),
            (Streams, "xread streams a", here(&[])),
            (Streams, "xread streams", here(&[])),
            (Streams, "xread a b", here(&[])),
        ] {
            assert_eq!(found(options, words), want, "{words}");
        }
        for pattern in ["w_*", "{*}", "*{t}", "{}*", "{t*}x"] {
            let words = format!("sort k by {pattern}");
            let is_anywhere = found(SORT, &words).1 == Reach::Anywhere;
            assert!(is_anywhere, "{pattern}");
        }
    }
}
