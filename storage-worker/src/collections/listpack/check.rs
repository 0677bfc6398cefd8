//! Whether bytes from outside are a listpack, so that reading them cannot go wrong afterwards.

use super::element::{LENGTH_BYTES_MAX, content_len, length_bytes, write_length};
use super::{COUNT_UNKNOWN, EMPTY, HEADER_BYTES, TERMINATOR, count_of, total_of};

/// Walks over all elements and compares everything that is said twice.
pub(super) fn is_listpack(bytes: &[u8]) -> bool {
    if bytes.len() < EMPTY.len() || total_of(bytes) != bytes.len() {
        return false;
    }
    let end = bytes.len() - 1;
    if bytes[end] != TERMINATOR {
        return false;
    }
    let mut offset = HEADER_BYTES;
    let mut count = 0;
    while offset < end {
        match checked_span(bytes, offset, end) {
            Some(span) => offset += span,
            None => return false,
        }
        count += 1;
    }
    // A checked element never reaches behind the end.
    count_of(bytes) == COUNT_UNKNOWN || usize::from(count_of(bytes)) == count
}

/// Bytes of the element at `offset` if it is one, ends in front of `end`, and is followed by its length.
fn checked_span(bytes: &[u8], offset: usize, end: usize) -> Option<usize> {
    let len = content_len(bytes, offset);
    if len == 0 {
        return None;
    }
    let length_len = length_bytes(len);
    let from = offset.checked_add(len)?;
    let to = from.checked_add(length_len)?;
    if to > end {
        return None;
    }
    let mut expected = [0; LENGTH_BYTES_MAX];
    write_length(&mut expected[..length_len], len);
    (bytes[from..to] == expected[..length_len]).then_some(to - offset)
}
