//! Collections to load: hashes, lists, sets, sorted sets and streams of any number of elements.
//!
//! Elements are numbered, and which text belongs to a number depends on nothing else, so every server
//! gets the same bytes. The numbers are scrambled on the way: neither the order of words nor that of
//! scores is that of insertion, as it would hardly be in real data.
//!
//! Not here: what is measured with them (`measure`, `stalls`).

use std::ops::Range;

use crate::client::{Client, Target, render};
use crate::error::BenchError;

/// Bytes of requests after which replies are read.
const BATCH_BYTES: usize = 64 * 1024;

/// Elements that one command adds at most while a load is made.
const ELEMENTS_PER_COMMAND: u64 = 100;

/// Odd, so multiplication by it is one to one below 2^32.
const SCRAMBLER: u64 = 0x9E37_79B1;

/// A prime: its multiples modulo another prime differ below that.
const INTEGER_STEP: u64 = 7_919;
const INTEGER_MODULUS: u64 = 1_000_003;

/// A kind of collection, with the kind of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collection {
    /// Fields of 7 letters with values of 8 digits.
    Hash,
    /// Words of 7 letters.
    List,
    /// Integers below a million.
    IntegerSet,
    /// Words of 7 letters.
    WordSet,
    /// Words of 7 letters with integers as scores.
    SortedSet,
    /// Entries of two fields, ten per millisecond.
    Stream,
}

/// Seven letters that belong to this number below 2^32 alone.
fn word(number: u64) -> String {
    let mut rest = number.wrapping_mul(SCRAMBLER) & 0xFFFF_FFFF;
    let mut letters = String::with_capacity(7);
    for _ in 0..7 {
        let letter = u8::try_from(rest % 26).expect("a remainder of 26 fits a byte");
        letters.push(char::from(b'a' + letter));
        rest /= 26;
    }
    letters
}

impl Collection {
    fn command(self) -> &'static str {
        match self {
            Self::Hash => "HSET",
            Self::List => "RPUSH",
            Self::IntegerSet | Self::WordSet => "SADD",
            Self::SortedSet => "ZADD",
            Self::Stream => "XADD",
        }
    }

    /// Appends what adds the element with this number to the arguments of a command.
    fn add_element(self, number: u64, arguments: &mut Vec<String>) {
        let scrambled = number.wrapping_mul(SCRAMBLER) & 0xFFFF_FFFF;
        match self {
            Self::Hash => {
                arguments.push(word(number));
                arguments.push(format!("{:08}", scrambled % 100_000_000));
            }
            Self::List | Self::WordSet => arguments.push(word(number)),
            Self::IntegerSet => {
                arguments.push((number * INTEGER_STEP % INTEGER_MODULUS).to_string());
            }
            Self::SortedSet => {
                arguments.push((scrambled % 1_000_000).to_string());
                arguments.push(word(number));
            }
            Self::Stream => {
                arguments.push(format!(
                    "{}-{}",
                    1_700_000_000_000 + number / 10,
                    number % 10
                ));
                for (field, value) in [("sensor", scrambled % 10_000), ("value", scrambled % 997)] {
                    arguments.push(field.into());
                    arguments.push(value.to_string());
                }
            }
        }
    }

    /// Appends one command that adds these elements to `key`, for a stream one per element; tells
    /// how many replies will come.
    pub(crate) fn render(self, key: &str, elements: Range<u64>, out: &mut Vec<u8>) -> usize {
        let begin = || vec![self.command().to_owned(), key.to_owned()];
        if self == Self::Stream {
            let count = elements.clone().count();
            for number in elements {
                let mut arguments = begin();
                self.add_element(number, &mut arguments);
                render(&arguments, out);
            }
            return count;
        }
        let mut arguments = begin();
        for number in elements {
            self.add_element(number, &mut arguments);
        }
        render(&arguments, out);
        1
    }

    /// Its name in the singular.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::List => "list",
            Self::IntegerSet | Self::WordSet => "set",
            Self::SortedSet => "sorted set",
            Self::Stream => "stream",
        }
    }
}

/// So many collections of so many elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) collection: Collection,
    pub(crate) keys: u64,
    pub(crate) elements: u64,
}

/// The loads whose memory is compared.
pub(super) const LOADS: [Load; 6] = [
    Load::new("hashes of 10 fields", Collection::Hash, 100_000, 10),
    Load::new("lists of 100", Collection::List, 10_000, 100),
    Load::new("sets of 10 integers", Collection::IntegerSet, 100_000, 10),
    Load::new("sets of 10 words", Collection::WordSet, 100_000, 10),
    Load::new("sorted sets of 100", Collection::SortedSet, 10_000, 100),
    Load::new("stream of 1 M entries", Collection::Stream, 1, 1_000_000),
];

impl Load {
    const fn new(name: &'static str, collection: Collection, keys: u64, elements: u64) -> Self {
        Self {
            name,
            collection,
            keys,
            elements,
        }
    }

    /// A thousandth of it: as many keys less, or as many elements if there is one key only.
    pub(super) fn few(self) -> Self {
        let part = |number: u64| number.div_ceil(1_000);
        if self.keys > 1 {
            Self {
                keys: part(self.keys),
                ..self
            }
        } else {
            Self {
                elements: part(self.elements),
                ..self
            }
        }
    }

    /// Makes it, over one connection.
    pub(super) fn make(self, target: &Target) -> Result<(), BenchError> {
        let mut client = Client::connect(target)?;
        let (mut requests, mut replies) = (Vec::new(), 0);
        for number in 0..self.keys {
            // As long as the keys of the strings.
            let key = format!("key:{number:012}");
            let first = number * self.elements;
            let mut next = first;
            while next < first + self.elements {
                let end = (first + self.elements).min(next + ELEMENTS_PER_COMMAND);
                replies += self.collection.render(&key, next..end, &mut requests);
                next = end;
                if requests.len() >= BATCH_BYTES {
                    client.batch(&requests, replies)?;
                    requests.clear();
                    replies = 0;
                }
            }
        }
        client.batch(&requests, replies)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn elements_of_a_collection_differ() {
        for collection in [Collection::WordSet, Collection::IntegerSet] {
            let mut arguments = Vec::new();
            for number in 700_000..750_000 {
                collection.add_element(number, &mut arguments);
            }
            let different: HashSet<&String> = arguments.iter().collect();
            assert_eq!(different.len(), 50_000, "{collection:?}");
        }
        assert!(
            word(12_345)
                .bytes()
                .all(|letter| letter.is_ascii_lowercase())
        );
    }

    #[test]
    fn commands_are_rendered() {
        let text = |collection: Collection, range| {
            let mut out = Vec::new();
            let replies = collection.render("k", range, &mut out);
            (replies, String::from_utf8(out).unwrap())
        };
        let (replies, set) = text(Collection::IntegerSet, 1..3);
        assert_eq!(replies, 1);
        assert_eq!(
            set,
            "*4\r\n$4\r\nSADD\r\n$1\r\nk\r\n$4\r\n7919\r\n$5\r\n15838\r\n"
        );
        let (replies, stream) = text(Collection::Stream, 9..11);
        assert_eq!(
            (replies, stream.matches("*7\r\n$4\r\nXADD").count()),
            (2, 2)
        );
        assert!(stream.contains("1700000000000-9") && stream.contains("1700000000001-0"));
        for (collection, count) in [(Collection::Hash, 6), (Collection::SortedSet, 6)] {
            assert!(
                text(collection, 0..2)
                    .1
                    .starts_with(&format!("*{count}\r\n"))
            );
        }
    }

    #[test]
    fn few_is_less_of_the_same() {
        assert_eq!(LOADS[0].few().keys, 100);
        assert_eq!(
            LOADS[5].few(),
            Load {
                elements: 1_000,
                ..LOADS[5]
            }
        );
    }
}
