//! A value that was read and belongs to no key yet.

use std::borrow::Cow;

use crate::collections::Owned;
use crate::collections::hash::{Table, form};
use crate::collections::list::List;
use crate::collections::set_table::SetTable;
use crate::collections::sorted_set::SortedSet;
use crate::collections::stream::Stream;
use crate::keyspace::{Expiry, Form, Key, Keyspace, StringValue, ValueKind};

/// See the module. What it has in the arena goes with it.
#[derive(Debug)]
pub enum Value<'a> {
    /// A string.
    String(Cow<'a, [u8]>),
    /// A collection in packed bytes.
    Packed {
        /// Its type.
        kind: ValueKind,
        /// How the bytes are meant.
        form: Form,
        /// They.
        bytes: Cow<'a, [u8]>,
    },
    /// A long list.
    List(List),
    /// A large set.
    Set(Owned<SetTable>),
    /// A large sorted set.
    SortedSet(Owned<SortedSet>),
    /// A large hash.
    Hash(Owned<Table>),
    /// A stream.
    Stream(Owned<Stream>),
}

impl<'a> Value<'a> {
    pub(super) fn packed(
        kind: ValueKind,
        form: Form,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> Value<'a> {
        Value::Packed {
            kind,
            form,
            bytes: bytes.into(),
        }
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::String(_) => ValueKind::String,
            Value::Packed { kind, .. } => *kind,
            Value::List(_) => ValueKind::List,
            Value::Set(_) => ValueKind::Set,
            Value::SortedSet(_) => ValueKind::SortedSet,
            Value::Hash(_) => ValueKind::Hash,
            Value::Stream(_) => ValueKind::Stream,
        }
    }

    /// Puts it at a key, in the place of whatever is there; it has no expiry then. The caller brackets
    /// that as a write.
    pub fn store(self, keyspace: &mut Keyspace, key: &Key<'_>) {
        match self {
            Value::String(bytes) => {
                keyspace.set_string(key, StringValue::Auto(&bytes), Expiry::Clear);
            }
            Value::Packed { kind, form, bytes } => {
                keyspace.replace_with_packed(key, kind, form, &bytes);
            }
            Value::List(list) => {
                keyspace.replace_with_structure(key, Form::LIST_NODES, list.into_arena());
            }
            Value::Set(table) => {
                keyspace.replace_with_structure(key, Form::SET_TABLE, table.release());
            }
            Value::SortedSet(set) => {
                keyspace.replace_with_structure(key, Form::SORTED_SET_TABLE, set.release());
            }
            Value::Hash(table) => {
                keyspace.replace_with_structure(key, Form(form::TABLE), table.release());
            }
            Value::Stream(stream) => {
                keyspace.replace_with_structure(key, Form::STREAM, stream.release());
            }
        }
    }
}
