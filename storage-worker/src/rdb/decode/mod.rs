//! Reading values: each type in a file of its own.

mod hash;
mod list;
mod set;
mod sorted_set;
mod stream;
mod ziplist;
mod zipmap;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use proto::number::parse_i64;

use super::{Dialect, Reader, Value, types};
use crate::collections::StringRef;
use crate::collections::listpack::{BYTES_MAX, Listpack};
use crate::settings::{EngineSettings, Limits};

/// Bytes are no value; says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl Malformed {
    pub(super) const TOO_SHORT: Malformed = Malformed("the bytes end too early");
    const EMPTY: Malformed = Malformed("a collection has no elements");
    const TWICE: Malformed = Malformed("an element comes twice");
    const LISTPACK: Malformed = Malformed("a listpack is broken");
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

type Result<T> = std::result::Result<T, Malformed>;

/// Makes values of bytes, in the forms that the settings ask for.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'s> {
    settings: &'s EngineSettings,
    seed: u64,
    keeps_large: bool,
}

impl<'s> Decoder<'s> {
    /// `seed` is the hash seed of the whole system.
    #[must_use]
    pub fn new(settings: &'s EngineSettings, seed: u64) -> Self {
        Self {
            settings,
            seed,
            keeps_large: false,
        }
    }

    /// What was written as a structure becomes one again, however small it is.
    #[must_use]
    pub fn keeping_large(self) -> Self {
        Self {
            keeps_large: true,
            ..self
        }
    }

    /// Up to where values are packed.
    fn limits(self) -> Limits {
        if self.keeps_large {
            Limits::default()
        } else {
            self.settings.limits
        }
    }

    /// Reads a type and a value of it. What follows is ignored, as in the reference.
    ///
    /// # Errors
    /// If that is not what the bytes are.
    pub fn decode_payload<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Value<'a>> {
        let mut reader = Reader::new(bytes, self.settings.bulk_bytes_max);
        let kind = reader.byte()?;
        self.decode(kind, &mut reader, dialect)
    }

    /// Reads a value of the type with this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn decode<'a>(
        self,
        kind: u8,
        reader: &mut Reader<'a>,
        dialect: Dialect,
    ) -> Result<Value<'a>> {
        match kind {
            types::STRING => reader.string().map(Value::String),
            types::LIST => self.list_of_strings(reader),
            types::LIST_ZIPLIST => self.list_of_ziplist(reader),
            types::LIST_OF_ZIPLISTS => self.list_of_ziplists(reader),
            types::LIST_OF_NODES => self.list_of_nodes(reader),
            types::SET => self.set_of_strings(reader),
            types::SET_INTSET => self.set_of_intset(reader),
            types::SET_LISTPACK => self.set_of_listpack(reader),
            types::SORTED_SET => self.sorted_set_of_strings(reader, Reader::double),
            types::SORTED_SET_TEXT => self.sorted_set_of_strings(reader, sorted_set::text_score),
            types::SORTED_SET_LISTPACK => self.sorted_set_of_listpack(reader),
            types::SORTED_SET_ZIPLIST => self.sorted_set_of_ziplist(reader),
            types::HASH => self.hash_of_strings(reader, hash::Times::None),
            types::HASH_TIMED_EARLY if dialect == Dialect::Valkey => {
                self.hash_of_strings(reader, hash::Times::Behind)
            }
            types::HASH_TIMED_EARLY => self.hash_of_strings(reader, hash::Times::From(1)),
            types::HASH_TIMED => {
                let first = reader.millis()?;
                self.hash_of_strings(reader, hash::Times::From(first))
            }
            types::HASH_LISTPACK => self.hash_of_pairs(listpack(reader)?),
            types::HASH_ZIPLIST => {
                self.hash_of_pairs(ziplist::to_listpack(&reader.string()?)?.into())
            }
            types::HASH_ZIPMAP => self.hash_of_zipmap(reader),
            types::HASH_TRIPLES_EARLY => self.hash_of_triples(reader),
            types::HASH_TRIPLES => {
                // The first time stands in the listpack, too.
                reader.millis()?;
                self.hash_of_triples(reader)
            }
            types::STREAM_1 => self.stream(reader, stream::Version::One),
            types::STREAM_2 => self.stream(reader, stream::Version::Two),
            types::STREAM_3 => self.stream(reader, stream::Version::Three),
            _ => Err(Malformed("the type is unknown")),
        }
    }
}

/// A string that is a listpack.
fn listpack<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>> {
    let bytes = reader.string()?;
    check_listpack(&bytes)?;
    Ok(bytes)
}

fn check_listpack(bytes: &[u8]) -> Result<Listpack<'_>> {
    if bytes.len() > BYTES_MAX {
        return Err(Malformed("a listpack is too long"));
    }
    Listpack::check(bytes).ok_or(Malformed::LISTPACK)
}

/// An element by which others are told apart: numbers as such, however they are kept.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Name<'a> {
    Number(i64),
    Bytes(Cow<'a, [u8]>),
}

/// Elements that must differ.
#[derive(Debug, Default)]
struct Names<'a>(HashSet<Name<'a>>);

impl<'a> Names<'a> {
    /// Takes another one.
    fn add(&mut self, bytes: Cow<'a, [u8]>) -> Result<()> {
        let name = parse_i64(&bytes).map_or(Name::Bytes(bytes), Name::Number);
        self.insert(name)
    }

    /// Takes another one.
    fn add_element(&mut self, element: StringRef<'a>) -> Result<()> {
        match element {
            StringRef::Int(number) => self.insert(Name::Number(number)),
            StringRef::Bytes(bytes) => self.add(Cow::Borrowed(bytes)),
        }
    }

    fn insert(&mut self, name: Name<'a>) -> Result<()> {
        if self.0.insert(name) {
            Ok(())
        } else {
            Err(Malformed::TWICE)
        }
    }
}

/// Whether every `step`-th element of a listpack differs from the others.
fn check_names(list: Listpack<'_>, step: usize) -> Result<()> {
    let mut names = Names::default();
    list.iter()
        .step_by(step)
        .try_for_each(|element| names.add_element(element))
}
