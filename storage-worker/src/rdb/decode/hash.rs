//! Hashes: of strings with or without times, zipmaps, ziplists and listpacks.

use std::borrow::Cow;

use proto::time::UnixMillis;

use super::{Decoder, Malformed, Names, Reader, Result, Value, check_names, listpack, zipmap};
use crate::collections::hash::{Packed, Table, Width, form, packed};
use crate::collections::listpack::{self as pack, BYTES_MAX, Listpack};
use crate::collections::{Owned, StringRef};
use crate::keyspace::{Form, ValueKind};

/// The last time that a field can have.
const TIME_MAX: i64 = (1 << 48) - 1;
const TIME: Malformed = Malformed("a field has an impossible time");

/// Where the time of a field stands, and what it counts from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Times {
    /// There are none.
    None,
    /// In front of the field, as a length: 0 for none, 1 for this time.
    From(i64),
    /// Behind the value, as a time: -1 for none.
    Behind,
}

/// A hash that is read field by field.
#[derive(Debug)]
enum Growing {
    Packed(Vec<u8>),
    Table(Owned<Table>),
}

fn time(at: i64) -> Result<Option<UnixMillis>> {
    match at {
        1..=TIME_MAX => Ok(Some(UnixMillis(at.cast_unsigned()))),
        _ => Err(TIME),
    }
}

fn value(form: u8, bytes: Cow<'_, [u8]>) -> Value<'_> {
    Value::packed(ValueKind::Hash, Form(form), bytes)
}

impl Times {
    fn read_before(self, reader: &mut Reader<'_>) -> Result<Option<UnixMillis>> {
        let Times::From(first) = self else {
            return Ok(None);
        };
        let distance = i64::try_from(reader.length()?).map_err(|_| TIME)?;
        if distance == 0 {
            return Ok(None);
        }
        time(first.checked_add(distance - 1).ok_or(TIME)?)
    }

    fn read_behind(self, reader: &mut Reader<'_>) -> Result<Option<UnixMillis>> {
        if !matches!(self, Times::Behind) {
            return Ok(None);
        }
        match reader.millis()? {
            -1 => Ok(None),
            at => time(at),
        }
    }

    fn width(self) -> Width {
        match self {
            Times::None => Width::Pairs,
            Times::From(_) | Times::Behind => Width::Triples,
        }
    }
}

impl Decoder<'_> {
    pub(super) fn hash_of_strings<'a>(
        self,
        reader: &mut Reader<'a>,
        times: Times,
    ) -> Result<Value<'a>> {
        let count = reader.length()?;
        if count == 0 {
            return Err(Malformed::EMPTY);
        }
        let mut hash = if count > self.limits().hash_entries as u64 {
            Growing::Table(Table::create_owned(self.seed))
        } else {
            Growing::Packed(pack::EMPTY.to_vec())
        };
        let width = times.width();
        let mut names = Names::default();
        for _ in 0..count {
            let before = times.read_before(reader)?;
            let (name, value) = (reader.string()?, reader.string()?);
            let expiry = times.read_behind(reader)?.or(before);
            self.add_field(&mut hash, width, (&name, &value), expiry);
            names.add(name)?;
        }
        Ok(match (hash, width) {
            (Growing::Packed(bytes), Width::Pairs) => value(form::PAIRS, bytes.into()),
            (Growing::Packed(bytes), Width::Triples) => value(form::TRIPLES, bytes.into()),
            (Growing::Table(table), _) => Value::Hash(table),
        })
    }

    /// Adds a field. If it is there already, the hash will be refused.
    fn add_field(
        self,
        hash: &mut Growing,
        width: Width,
        (name, value): (&[u8], &[u8]),
        expiry: Option<UnixMillis>,
    ) {
        let bytes_max = self.limits().hash_value_bytes;
        if let Growing::Packed(bytes) = hash {
            let fits = name.len() <= bytes_max
                && value.len() <= bytes_max
                && bytes.len() + name.len() + value.len() < BYTES_MAX;
            if fits {
                return packed::insert(bytes, width, name.into(), value.into(), expiry);
            }
            *hash = Growing::Table(self.hash_table(Packed::new(bytes, width)));
        }
        if let Growing::Table(table) = hash
            && table.get(name).is_none()
        {
            table.insert(name, value, expiry);
        }
    }

    /// A table with the fields of a packed hash, whose names differ.
    fn hash_table(self, packed: Packed<'_>) -> Owned<Table> {
        let mut table = Table::create_owned(self.seed);
        for field in packed.iter() {
            field.name.with_bytes(|name| {
                field
                    .value
                    .with_bytes(|value| table.insert(name, value, field.expiry));
            });
        }
        table
    }

    pub(super) fn hash_of_pairs(self, bytes: Cow<'_, [u8]>) -> Result<Value<'_>> {
        let list = Listpack::new(&bytes);
        if !list.len().is_multiple_of(2) {
            return Err(Malformed("a field has no value"));
        }
        if list.is_empty() {
            return Err(Malformed::EMPTY);
        }
        check_names(list, 2)?;
        if list.len() / 2 > self.limits().hash_entries {
            return Ok(Value::Hash(
                self.hash_table(Packed::new(&bytes, Width::Pairs)),
            ));
        }
        Ok(value(form::PAIRS, bytes))
    }

    pub(super) fn hash_of_triples<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let bytes = listpack(reader)?;
        let list = Listpack::new(&bytes);
        check_times(list)?;
        check_names(list, 3)?;
        if list.len() / 3 > self.limits().hash_entries {
            return Ok(Value::Hash(
                self.hash_table(Packed::new(&bytes, Width::Triples)),
            ));
        }
        Ok(value(form::TRIPLES, bytes))
    }

    pub(super) fn hash_of_zipmap<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let limits = self.limits();
        let bytes = reader.string()?;
        let pairs = zipmap::pairs(&bytes)?;
        if pairs.is_empty() {
            return Err(Malformed::EMPTY);
        }
        let mut names = Names::default();
        pairs
            .iter()
            .try_for_each(|(name, _)| names.add(Cow::Borrowed(name)))?;
        let elements = pairs.iter().flat_map(|&(name, value)| [name, value]);
        let is_small = pairs.len() <= limits.hash_entries
            && elements
                .clone()
                .all(|bytes| bytes.len() <= limits.hash_value_bytes);
        if is_small {
            let mut pack = pack::EMPTY.to_vec();
            pack::push_back_all(&mut pack, elements);
            return Ok(value(form::PAIRS, pack.into()));
        }
        let mut table = Table::create_owned(self.seed);
        for (name, value) in pairs {
            table.insert(name, value, None);
        }
        Ok(Value::Hash(table))
    }
}

/// Whether these are names, values and times, those that come ascending and then those that never do.
fn check_times(list: Listpack<'_>) -> Result<()> {
    if list.is_empty() {
        return Err(Malformed::EMPTY);
    }
    let mut elements = list.iter();
    let mut last = Some(UnixMillis(0));
    while elements.next().is_some() {
        elements.next().ok_or(Malformed("a field has no value"))?;
        let expiry = match elements.next() {
            Some(StringRef::Int(0)) => None,
            Some(StringRef::Int(at)) => time(at)?,
            _ => return Err(TIME),
        };
        let is_ordered = match (last, expiry) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(last), Some(at)) => last <= at,
        };
        if !is_ordered {
            return Err(Malformed("times of fields are out of order"));
        }
        last = expiry;
    }
    Ok(())
}
