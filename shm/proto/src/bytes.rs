//! Copies of short byte strings.
//!
//! Why: keys and small values are most of the traffic; for up to 16 bytes two register moves that
//! overlap cost a third of a call of `memcpy` (2 ns against 6 in the reply writer).

/// Copies `from` to the start of `to`, which is at least as long.
#[inline]
pub fn copy(to: &mut [u8], from: &[u8]) {
    let to = &mut to[..from.len()];
    if from.len() <= 16
        && let (Some(head), Some(tail)) = (from.first_chunk::<8>(), from.last_chunk::<8>())
    {
        if let Some(place) = to.first_chunk_mut() {
            *place = *head;
        }
        if let Some(place) = to.last_chunk_mut() {
            *place = *tail;
        }
    } else {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_length_is_copied_whole() {
        let from: Vec<u8> = (1..=40).collect();
        for length in 0..=from.len() {
            let mut to = [0u8; 48];
            super::copy(&mut to, &from[..length]);
            assert_eq!(&to[..length], &from[..length]);
            assert!(to[length..].iter().all(|&byte| byte == 0));
        }
    }
}
