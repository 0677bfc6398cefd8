//! Bytes of a client inside text, and back: settings are text, but a password may be any bytes.
//!
//! A byte that is not part of UTF-8 becomes a character of its own at the end of the last private
//! plane (U+10FF80 to U+10FFFF); where these characters themselves appear, their bytes do. So every
//! sequence of bytes has exactly one text, and UTF-8 stays as it is.
//!
//! Cost: one pass, one allocation.

use std::char;

/// The character that stands for byte 0.
const STAND_IN: u32 = 0x10_FF00;

fn stand_in(byte: u8) -> char {
    char::from_u32(STAND_IN + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that `c` stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    let byte = u8::try_from((c as u32).checked_sub(STAND_IN)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

/// The text of `bytes`.
#[must_use]
pub fn to_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if byte_of(c).is_some() {
                let mut utf8 = [0; 4];
                text.extend(c.encode_utf8(&mut utf8).bytes().map(stand_in));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    text
}

/// The bytes of a text that [`to_text`] made.
#[must_use]
pub fn to_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn utf8_stays_and_other_bytes_come_back() {
        assert_eq!(to_text("a é €".as_bytes()), "a é €");
        for bytes in [
            b"\xff\xfea".as_slice(),
            b"\xe2\x82",
            "\u{10FF80}\u{10FFFF}".as_bytes(),
            b"\0\x7f\x80",
            b"",
        ] {
            assert_eq!(to_bytes(&to_text(bytes)), bytes, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn every_sequence_of_bytes_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(to_bytes(&to_text(&bytes)), bytes);
        }
    }
}
