//! The stream at a key, and what is said when there is none.

use crate::collections::stream::{NodeLimits, Stream};
use crate::commands::prelude::*;
use crate::keyspace::{Form, Key, Keyspace};
use crate::settings::EngineSettings;
use proto::time::UnixMillis;

/// Streams have one form only.
const FORM: Form = Form::STREAM;

/// When a node of a stream is full.
pub(super) fn node_limits(settings: &EngineSettings) -> NodeLimits {
    NodeLimits {
        bytes: settings.limits.stream_node_bytes as u64,
        entries: settings.limits.stream_node_entries as u64,
    }
}

/// The stream at a key, to be read.
pub(super) fn find<'k>(
    keyspace: &'k mut Keyspace,
    key: &Key<'_>,
    now: UnixMillis,
    access: Access,
) -> Result<Option<&'k Stream>, CommandError> {
    match keyspace.find(key, now, access) {
        None => Ok(None),
        Some(found) if found.kind() == ValueKind::Stream => Ok(Some(found.structure())),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The stream at a key, to be changed.
pub(super) fn find_mut<'k>(
    keyspace: &'k mut Keyspace,
    key: &Key<'_>,
    now: UnixMillis,
) -> Result<Option<&'k mut Stream>, CommandError> {
    match keyspace.value_mut(key, now) {
        None => Ok(None),
        Some(value) if value.kind() == ValueKind::Stream => Ok(Some(value.into_structure())),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Makes a stream at a key that does not exist.
pub(super) fn create(keyspace: &mut Keyspace, key: &Key<'_>, fill: impl FnOnce(&mut Stream)) {
    let mut stream = Stream::create();
    fill(&mut stream);
    keyspace.create_structure(key, FORM, stream.release());
}

/// What C's `%s` prints of client bytes.
fn printed(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The key or its group is missing; `command` says where.
pub(super) fn no_group(key: &[u8], group: &[u8], command: &str) -> CommandError {
    let mut line = b"NOGROUP No such key '".to_vec();
    line.extend_from_slice(printed(key));
    line.extend_from_slice(b"' or consumer group '");
    line.extend_from_slice(printed(group));
    line.extend_from_slice(b"'");
    line.extend_from_slice(command.as_bytes());
    CommandError::Line(line.into())
}

/// The stream has no such group.
pub(super) fn no_group_of(key: &[u8], group: &[u8]) -> CommandError {
    let mut line = b"NOGROUP No such consumer group '".to_vec();
    line.extend_from_slice(printed(group));
    line.extend_from_slice(b"' for key name '");
    line.extend_from_slice(printed(key));
    line.extend_from_slice(b"'");
    CommandError::Line(line.into())
}

/// XCLAIM does not know an option.
pub(super) fn unknown_option(word: &[u8]) -> CommandError {
    let mut line = b"ERR Unrecognized XCLAIM option '".to_vec();
    line.extend_from_slice(printed(word));
    line.extend_from_slice(b"'");
    CommandError::Line(line.into())
}
