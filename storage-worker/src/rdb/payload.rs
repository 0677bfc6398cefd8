//! What DUMP puts around a value, and RESTORE takes off.
//!
//! ```text
//!   | type 1 | value ... | version 2, little endian | CRC-64 of all before it 8, little endian |
//! ```

use super::Dialect;
use super::crc64;

/// The version of the format that is written: that of the reference.
pub const VERSION: u16 = 12;
/// The first version that Valkey counts for itself; those between belong to nobody.
const VALKEY_FROM: u16 = 80;
const VALKEY_TO: u16 = 80;
const SUM_BYTES: usize = 8;

/// Adds version and checksum.
pub fn seal(payload: &mut Vec<u8>) {
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let sum = crc64::update(0, payload);
    payload.extend_from_slice(&sum.to_le_bytes());
}

/// Takes version and checksum off, if they are right: what is left is a type and a value.
#[must_use]
pub fn open(payload: &[u8]) -> Option<(&[u8], Dialect)> {
    let (summed, sum) = payload.split_last_chunk::<SUM_BYTES>()?;
    let (value, version) = summed.split_last_chunk::<2>()?;
    let dialect = match u16::from_le_bytes(*version) {
        0..=VERSION => Dialect::Redis,
        VALKEY_FROM..=VALKEY_TO => Dialect::Valkey,
        _ => return None,
    };
    (crc64::update(0, summed) == u64::from_le_bytes(*sum)).then_some((value, dialect))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened() {
        let mut payload = b"\x00\x05hello".to_vec();
        seal(&mut payload);
        assert_eq!(
            open(&payload),
            Some((&b"\x00\x05hello"[..], Dialect::Redis))
        );
        for at in 0..payload.len() {
            let mut other = payload.clone();
            other[at] ^= 0x10;
            assert_eq!(open(&other), None, "{at}");
            assert_eq!(open(&payload[..at]), None, "{at}");
        }
    }

    #[test]
    fn versions_of_nobody_are_refused() {
        for (version, is_known) in [
            (0, true),
            (12, true),
            (13, false),
            (79, false),
            (80, true),
            (81, false),
        ] {
            let mut payload = vec![0, 0, version, 0];
            let sum = crc64::update(0, &payload);
            payload.extend_from_slice(&sum.to_le_bytes());
            assert_eq!(open(&payload).is_some(), is_known, "{version}");
        }
    }
}
