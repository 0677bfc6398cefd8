//! Streams: nodes of entries, counts, and groups with what is pending.
//!
//! ```text
//!   nodes       count, then (id 16 big endian as a string, listpack as a string) ...
//!   counts      length, last id; from version 2 on: first id, greatest deleted id, entries added
//!   groups      count, then ...
//!     name, last id; from version 2 on: entries read
//!     pending   count, then (id 16, time of delivery 8, deliveries) ...
//!     consumers count, then (name, seen 8; in version 3: active 8; count, then id 16 ...) ...
//! ```
//!
//! What is pending stands twice: with the group, and as ids with the consumers. Both must say the same.

use proto::time::UnixMillis;

use super::{Decoder, Malformed, Reader, Result, Value};
use crate::collections::listpack::BYTES_MAX;
use crate::collections::stream::{ConsumerAt, Group, Log, Stream, StreamId, is_node};

/// How much is known about a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    One,
    Two,
    Three,
}

const PENDING: Malformed = Malformed("what is pending of a stream contradicts itself");

fn id(reader: &mut Reader<'_>) -> Result<StreamId> {
    let (ms, seq) = (reader.length()?, reader.length()?);
    Ok(StreamId { ms, seq })
}

fn raw_id(reader: &mut Reader<'_>) -> Result<StreamId> {
    reader.bits_128().map(StreamId::from_bits)
}

fn time(reader: &mut Reader<'_>) -> Result<UnixMillis> {
    // Nothing happens before 1970.
    let time = reader.millis()?;
    Ok(UnixMillis(u64::try_from(time).unwrap_or(0)))
}

impl Decoder<'_> {
    pub(super) fn stream<'a>(self, reader: &mut Reader<'a>, version: Version) -> Result<Value<'a>> {
        let mut stream = Stream::create();
        nodes(reader, &mut stream.log)?;
        counts(reader, &mut stream.log, version)?;
        let groups = reader.length()?;
        for _ in 0..groups {
            let name = reader.string()?;
            if stream.groups.get(&name).is_some() {
                return Err(Malformed::TWICE);
            }
            let last_id = id(reader)?;
            let entries_read = if version >= Version::Two {
                reader.length()?.cast_signed()
            } else {
                stream.log.added_up_to(last_id)
            };
            stream
                .groups
                .create(&name, Group::new(last_id, entries_read));
            if let Some(group) = stream.groups.get_mut(&name) {
                pending_and_consumers(reader, group, version)?;
            }
        }
        Ok(Value::Stream(stream))
    }
}

fn nodes(reader: &mut Reader<'_>, log: &mut Log) -> Result<()> {
    let count = reader.length()?;
    for _ in 0..count {
        let key = reader.string()?;
        let bytes = reader.string()?;
        let key: [u8; 16] = (*key)
            .try_into()
            .map_err(|_| Malformed("a node of a stream has no id"))?;
        let id = StreamId::from_bits(u128::from_be_bytes(key));
        if bytes.len() > BYTES_MAX || !is_node(id, &bytes) {
            return Err(Malformed("a node of a stream is broken"));
        }
        if !log.push_node(id, &bytes) {
            return Err(Malformed("nodes of a stream are out of order"));
        }
    }
    Ok(())
}

fn counts(reader: &mut Reader<'_>, log: &mut Log, version: Version) -> Result<()> {
    if reader.length()? != log.len() {
        return Err(Malformed("a stream has not as many entries as it says"));
    }
    let last_id = id(reader)?;
    if last_id < log.last_id {
        return Err(Malformed("a stream has entries behind its last one"));
    }
    log.last_id = last_id;
    log.entries_added = log.len();
    if version >= Version::Two {
        // The first id is known from the nodes.
        id(reader)?;
        log.max_deleted_id = id(reader)?;
        log.entries_added = reader.length()?;
    }
    Ok(())
}

/// Something pending: id, time of delivery, deliveries, and then who has it.
#[derive(Debug)]
struct Pending {
    id: StreamId,
    time: UnixMillis,
    count: u64,
    consumer: Option<ConsumerAt>,
}

fn pending_and_consumers(
    reader: &mut Reader<'_>,
    group: &mut Group,
    version: Version,
) -> Result<()> {
    let count = reader.length()?;
    let mut pending: Vec<Pending> = Vec::new();
    for _ in 0..count {
        let id = raw_id(reader)?;
        if pending.last().is_some_and(|last| last.id >= id) {
            return Err(PENDING);
        }
        pending.push(Pending {
            id,
            time: time(reader)?,
            count: reader.length()?,
            consumer: None,
        });
    }
    let count = reader.length()?;
    for _ in 0..count {
        consumer(reader, group, &mut pending, version)?;
    }
    for Pending {
        id,
        time,
        count,
        consumer,
    } in pending
    {
        group.give(id, consumer.ok_or(PENDING)?, time, |_| count);
    }
    Ok(())
}

fn consumer(
    reader: &mut Reader<'_>,
    group: &mut Group,
    pending: &mut [Pending],
    version: Version,
) -> Result<()> {
    let name = reader.string()?;
    if group.find_consumer(&name).is_some() {
        return Err(Malformed::TWICE);
    }
    let seen = time(reader)?;
    let consumer = group.create_consumer(&name, seen);
    group.consumer_mut(consumer).active = if version >= Version::Three {
        reader.millis()?
    } else {
        i64::try_from(seen.get()).unwrap_or(i64::MAX)
    };
    let count = reader.length()?;
    for _ in 0..count {
        let id = raw_id(reader)?;
        let at = pending.binary_search_by_key(&id, |pending| pending.id);
        let found = &mut pending[at.map_err(|_| PENDING)?];
        if found.consumer.replace(consumer).is_some() {
            return Err(PENDING);
        }
    }
    Ok(())
}
