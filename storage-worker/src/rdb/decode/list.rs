//! Lists: of strings, of ziplists, of listpacks and large elements.
//!
//! What fits into one node becomes the short form, except a list that was one ziplist: the reference
//! leaves that as a node.

use std::borrow::Cow;

use super::{Decoder, Malformed, Reader, Result, Value, check_listpack, ziplist};
use crate::collections::StringRef;
use crate::collections::list::{End, List};
use crate::collections::listpack::Listpack;
use crate::keyspace::{Form, ValueKind};
use crate::rdb::container;

impl Decoder<'_> {
    fn new_list(self) -> List {
        let settings = self.settings;
        let mut list = List::new(settings.list_fill, settings.list_compress_depth);
        list.set_plain_from(settings.list_plain_from);
        list
    }

    /// A list in the form that it is to have.
    fn finish_list<'a>(self, list: List) -> Result<Value<'a>> {
        if list.is_empty() {
            return Err(Malformed::EMPTY);
        }
        let short_pack = list
            .single_pack()
            .filter(|node| self.is_short(node.bytes_len(), node.len()))
            .map(|node| node.bytes().into_owned());
        Ok(short_pack.map_or(Value::List(list), |pack| short(Cow::Owned(pack))))
    }

    /// Whether one node with so much in it is a short list.
    fn is_short(self, bytes: usize, elements: usize) -> bool {
        !self.keeps_large && self.settings.list_fill.is_small(bytes, elements, false)
    }

    pub(super) fn list_of_strings<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let count = reader.length()?;
        let mut list = self.new_list();
        for _ in 0..count {
            list.push(End::Tail, StringRef::Bytes(&reader.string()?));
        }
        self.finish_list(list)
    }

    pub(super) fn list_of_ziplist<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let pack = ziplist::to_listpack(&reader.string()?)?;
        let mut list = self.new_list();
        list.push_pack(&pack, Listpack::new(&pack).len());
        if list.is_empty() {
            return Err(Malformed::EMPTY);
        }
        Ok(Value::List(list))
    }

    pub(super) fn list_of_ziplists<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let count = reader.length()?;
        let mut list = self.new_list();
        for _ in 0..count {
            let pack = ziplist::to_listpack(&reader.string()?)?;
            list.push_pack(&pack, Listpack::new(&pack).len());
        }
        self.finish_list(list)
    }

    pub(super) fn list_of_nodes<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let count = reader.length()?;
        let mut list = self.new_list();
        for _ in 0..count {
            let container = reader.length()?;
            let bytes = reader.string()?;
            match container {
                container::PLAIN if bytes.is_empty() => return Err(Malformed::EMPTY),
                container::PLAIN => list.push_plain(&bytes),
                container::PACKED => {
                    let elements = check_listpack(&bytes)?.len();
                    if count == 1 && elements > 0 && self.is_short(bytes.len(), elements) {
                        return Ok(short(bytes));
                    }
                    list.push_pack(&bytes, elements);
                }
                _ => return Err(Malformed("a node of a list is of an unknown kind")),
            }
        }
        self.finish_list(list)
    }
}

fn short(pack: Cow<'_, [u8]>) -> Value<'_> {
    Value::packed(ValueKind::List, Form::LIST_LISTPACK, pack)
}
