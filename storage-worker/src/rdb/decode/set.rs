//! Sets: of strings, an intset, a listpack.

use std::borrow::Cow;

use proto::number::parse_i64;

use super::{Decoder, Malformed, Reader, Result, Value, check_names, listpack};
use crate::collections::intset::{self, Intset};
use crate::collections::listpack::{self as pack, BYTES_MAX, Listpack};
use crate::collections::set_table::SetTable;
use crate::collections::{Owned, StringRef};
use crate::keyspace::{Form, ValueKind};

/// Members of an intset, whatever the setting says: its count has 32 bits.
const INTSET_MAX: usize = 1 << 30;

/// A set that is read member by member.
#[derive(Debug)]
enum Growing {
    Integers(Vec<u8>),
    Packed(Vec<u8>),
    Table(Owned<SetTable>),
}

impl Decoder<'_> {
    fn integers_max(self) -> usize {
        self.limits().set_integers.min(INTSET_MAX)
    }

    /// A table with these members, which differ.
    fn set_table<'m>(self, members: impl Iterator<Item = StringRef<'m>>) -> Owned<SetTable> {
        let mut table = SetTable::create(self.seed);
        for member in members {
            member.with_bytes(|member| table.insert(member));
        }
        table
    }

    pub(super) fn set_of_intset<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let bytes = reader.string()?;
        let intset = Intset::check(&bytes).ok_or(Malformed("an intset is broken"))?;
        if intset.len() > self.integers_max() {
            return Ok(Value::Set(
                self.set_table(intset.iter().map(StringRef::Int)),
            ));
        }
        Ok(Value::packed(ValueKind::Set, Form::SET_INTSET, bytes))
    }

    pub(super) fn set_of_listpack<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let bytes = listpack(reader)?;
        let list = Listpack::new(&bytes);
        if list.is_empty() {
            return Err(Malformed::EMPTY);
        }
        check_names(list, 1)?;
        if list.len() > self.limits().set_entries {
            return Ok(Value::Set(self.set_table(list.iter())));
        }
        Ok(Value::packed(ValueKind::Set, Form::SET_LISTPACK, bytes))
    }

    pub(super) fn set_of_strings<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let count = reader.length()?;
        if count == 0 {
            return Err(Malformed::EMPTY);
        }
        let mut set = if count > self.integers_max() as u64 {
            Growing::Table(SetTable::create(self.seed))
        } else {
            Growing::Integers(intset::EMPTY.to_vec())
        };
        let mut longest = 0;
        for _ in 0..count {
            let member = reader.string()?;
            longest = longest.max(member.len());
            if !self.add_member(&mut set, &member, longest) {
                return Err(Malformed::TWICE);
            }
        }
        Ok(match set {
            Growing::Integers(bytes) => packed(Form::SET_INTSET, bytes),
            Growing::Packed(bytes) => packed(Form::SET_LISTPACK, bytes),
            Growing::Table(table) => Value::Set(table),
        })
    }

    /// Adds a member, the longest of which has so many bytes; says whether it is new.
    fn add_member(self, set: &mut Growing, member: &[u8], longest: usize) -> bool {
        let limits = self.limits();
        if let Growing::Integers(bytes) = set {
            if let Some(number) = parse_i64(member) {
                return intset::insert(bytes, number);
            }
            let integers = Intset::new(bytes);
            *set = if integers.len() < limits.set_entries && longest <= limits.set_value_bytes {
                let mut packed = pack::EMPTY.to_vec();
                pack::push_back_all(&mut packed, integers.iter());
                Growing::Packed(packed)
            } else {
                Growing::Table(self.set_table(integers.iter().map(StringRef::Int)))
            };
        }
        if let Growing::Packed(bytes) = set {
            let list = Listpack::new(bytes);
            let is_known = list
                .first()
                .is_some_and(|first| list.find(first, member, 0).is_some());
            if is_known {
                return false;
            }
            let fits = list.len() < limits.set_entries
                && member.len() <= limits.set_value_bytes
                && bytes.len() + member.len() < BYTES_MAX;
            if fits {
                pack::push_back(bytes, member);
                return true;
            }
            *set = Growing::Table(self.set_table(list.iter()));
        }
        match set {
            Growing::Table(table) => table.insert(member),
            Growing::Integers(_) | Growing::Packed(_) => false,
        }
    }
}

fn packed<'a>(form: Form, bytes: Vec<u8>) -> Value<'a> {
    Value::packed(ValueKind::Set, form, Cow::Owned(bytes))
}
