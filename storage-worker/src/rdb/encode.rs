//! Writing values: each form as the reference writes it.
//!
//! What is packed is copied; what is not is written element by element, in the order in which it is
//! kept (sorted sets from the highest score down, as the reference has it).

use super::{Sink, Writer, container, types};
use crate::collections::Structure;
use crate::collections::hash::{Packed, Table, Width, form};
use crate::collections::list::List;
use crate::collections::set_table::SetTable;
use crate::collections::sorted_set::SortedSet;
use crate::collections::stream::{Group, Stream, StreamId};
use crate::keyspace::{Form, Found, ValueKind};
use proto::time::UnixMillis;

/// The type under which a value is written.
#[must_use]
pub fn type_of(found: &Found<'_>) -> u8 {
    match (found.kind(), found.form()) {
        (ValueKind::String, _) => types::STRING,
        (ValueKind::List, _) => types::LIST_OF_NODES,
        (ValueKind::Set, Form::SET_INTSET) => types::SET_INTSET,
        (ValueKind::Set, Form::SET_LISTPACK) => types::SET_LISTPACK,
        (ValueKind::Set, _) => types::SET,
        (ValueKind::SortedSet, Form::SORTED_SET_LISTPACK) => types::SORTED_SET_LISTPACK,
        (ValueKind::SortedSet, _) => types::SORTED_SET,
        (ValueKind::Hash, form) => match form::width(form.0) {
            Some(Width::Pairs) => types::HASH_LISTPACK,
            Some(Width::Triples) => types::HASH_TRIPLES,
            None if found.structure::<Table>().next_expiry().is_some() => types::HASH_TIMED,
            None => types::HASH,
        },
        (ValueKind::Stream, _) => types::STREAM_3,
    }
}

/// Writes what follows the type.
pub fn write_value<S: Sink>(found: &Found<'_>, writer: &mut Writer<'_, S>) {
    match found.kind() {
        ValueKind::String => writer.element(found.string()),
        ValueKind::List if !found.is_structure() => {
            writer.length(1);
            writer.length(container::PACKED);
            writer.string(found.packed());
        }
        ValueKind::List => list(found.structure(), writer),
        ValueKind::Hash if form::width(found.form().0) == Some(Width::Triples) => {
            let first = Packed::new(found.packed(), Width::Triples).next_expiry();
            writer.millis(signed(first.unwrap_or(UnixMillis(0))));
            writer.string(found.packed());
        }
        _ if !found.is_structure() => writer.string(found.packed()),
        ValueKind::Set => set(found.structure(), writer),
        ValueKind::SortedSet => sorted_set(found.structure(), writer),
        ValueKind::Hash => hash(found.structure(), writer),
        ValueKind::Stream => stream(found.structure(), writer),
    }
}

fn signed(time: UnixMillis) -> i64 {
    i64::try_from(time.get()).unwrap_or(i64::MAX)
}

fn list<S: Sink>(list: &List, writer: &mut Writer<'_, S>) {
    writer.length(list.nodes().len() as u64);
    list.nodes().visit(0, false, |node| {
        writer.length(if node.is_plain() {
            container::PLAIN
        } else {
            container::PACKED
        });
        match node.compressed() {
            Some(compressed) => writer.compressed(compressed, node.bytes_len()),
            None => writer.string(&node.bytes()),
        }
        true
    });
}

fn set<S: Sink>(set: &SetTable, writer: &mut Writer<'_, S>) {
    writer.length(set.len() as u64);
    set.iter().for_each(|member| writer.string(member));
}

fn sorted_set<S: Sink>(set: &SortedSet, writer: &mut Writer<'_, S>) {
    writer.length(set.len() as u64);
    let Some(highest) = set.len().checked_sub(1) else {
        return;
    };
    for (score, member) in set.walk_back(highest) {
        writer.string(member);
        writer.raw(&score.to_le_bytes());
    }
}

/// Times are written as their distance to the first one, and one more, so that 0 is none.
fn hash<S: Sink>(table: &Table, writer: &mut Writer<'_, S>) {
    let first = table.next_expiry();
    if let Some(first) = first {
        writer.millis(signed(first));
    }
    writer.length(table.len() as u64);
    for field in table.iter() {
        if let Some(first) = first {
            let distance = field.expiry.map(|at| at.get() - first.get() + 1);
            writer.length(distance.unwrap_or(0));
        }
        writer.string(field.name);
        writer.string(field.value);
    }
}

fn stream<S: Sink>(stream: &Stream, writer: &mut Writer<'_, S>) {
    let log = &stream.log;
    writer.length(log.node_count() as u64);
    for (id, bytes) in log.nodes() {
        writer.string(&id.to_bits().to_be_bytes());
        writer.string(bytes);
    }
    writer.length(log.len());
    for id in [log.last_id, log.first_id(), log.max_deleted_id] {
        write_id(id, writer);
    }
    writer.length(log.entries_added);
    writer.length(stream.groups.len() as u64);
    for (name, of_name) in stream.groups.iter() {
        writer.string(name);
        group(of_name, writer);
    }
}

fn write_id<S: Sink>(id: StreamId, writer: &mut Writer<'_, S>) {
    writer.length(id.ms);
    writer.length(id.seq);
}

fn group<S: Sink>(group: &Group, writer: &mut Writer<'_, S>) {
    write_id(group.last_id, writer);
    writer.length(group.entries_read.cast_unsigned());
    writer.length(group.pending().len() as u64);
    for pending in group.pending().iter() {
        writer.raw(&pending.id().to_bits().to_be_bytes());
        writer.millis(signed(pending.time()));
        writer.length(pending.count());
    }
    writer.length(group.consumer_count() as u64);
    for at in group.consumers() {
        let consumer = group.consumer(at);
        writer.string(group.consumer_name(at));
        writer.millis(signed(consumer.seen));
        writer.millis(consumer.active);
        writer.length(consumer.pending_count() as u64);
        for pending in group.pending_of(at, StreamId::MIN) {
            writer.raw(&pending.id().to_bits().to_be_bytes());
        }
    }
}
