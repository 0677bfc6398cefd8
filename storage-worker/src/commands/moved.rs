//! Values on their way from one keyspace to another one of the same build.
//!
//! ```text
//!   | kind u8 | string: encoding u8 | its bytes (an integer as text) ... |
//!             | packed: form u8     | packed bytes ...                   |
//!             | structures: 255     | as DUMP writes them                |
//! ```

use crate::commands::prelude::*;
use crate::keyspace::{Encoding, Form, Found, Key, Keyspace};
use crate::rdb::{self, Decoder, Dialect};
use crate::settings::EngineSettings;
use proto::time::UnixMillis;

const ENCODING_AUTO: u8 = 0;
const ENCODING_RAW: u8 = 1;
/// Instead of a form: what follows is a type and a value as `rdb` writes them.
const WRITTEN: u8 = 255;

/// A value as bytes.
pub(crate) fn payload_of(found: &Found<'_>) -> Vec<u8> {
    let mut payload = vec![found.kind() as u8];
    if found.is_structure() {
        payload.extend([WRITTEN, rdb::type_of(found)]);
        rdb::write_value(found, &mut rdb::Writer::new(&mut payload, false));
    } else if found.kind() == ValueKind::String {
        payload.push(if found.encoding() == Encoding::Raw {
            ENCODING_RAW
        } else {
            ENCODING_AUTO
        });
        with_bytes(found.string(), |bytes| payload.extend_from_slice(bytes));
    } else {
        payload.push(found.form().0);
        payload.extend_from_slice(found.packed());
    }
    payload
}

/// Gives a key the value that `payload` is, in place of what it was, and this expiry.
///
/// # Errors
/// `Internal` if the payload is none; nothing has happened then.
pub(crate) fn store_payload(
    keyspace: &mut Keyspace,
    settings: &EngineSettings,
    hash_seed: u64,
    key: &Key<'_>,
    payload: &[u8],
    expiry: Option<UnixMillis>,
) -> CommandResult {
    let [kind, how, bytes @ ..] = payload else {
        return Err(CommandError::Internal);
    };
    let mut kinds = ValueKind::ALL.into_iter();
    let kind = kinds.find(|known| *known as u8 == *kind);
    let kind = kind.ok_or(CommandError::Internal)?;
    if kind == ValueKind::String {
        let value = match *how {
            ENCODING_RAW => StringValue::Raw(bytes),
            _ => StringValue::Auto(bytes),
        };
        keyspace.set_string(key, value, expiry.map_or(Expiry::Clear, Expiry::At));
        return Ok(());
    }
    if *how == WRITTEN {
        let decoder = Decoder::new(settings, hash_seed).keeping_large();
        let value = decoder.decode_payload(bytes, Dialect::Redis);
        value
            .map_err(|_| CommandError::Internal)?
            .store(keyspace, key);
    } else {
        keyspace.replace_with_packed(key, kind, Form(*how % 8), bytes);
    }
    if expiry.is_some() {
        keyspace.set_expiry(key, expiry);
    }
    Ok(())
}
