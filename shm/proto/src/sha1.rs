//! SHA-1 (FIPS 180-4): a name for scripts and data sets that others compute, too. Not for secrets.
//!
//! Cost: about 5 ns per byte; nothing is allocated.

const BLOCK_BYTES: usize = 64;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 20;

/// A digest as 40 hexadecimal digits in lower case.
pub type Sha1Text = [u8; 2 * DIGEST_BYTES];

/// The digest of `bytes` as text.
#[must_use]
pub fn digest_text(bytes: &[u8]) -> Sha1Text {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 2 * DIGEST_BYTES];
    for (pair, byte) in text.chunks_exact_mut(2).zip(sha1(bytes)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// What a client takes for a digest, in lower case; `None` if its length is another one.
#[must_use]
pub fn sha1_text(text: &[u8]) -> Option<Sha1Text> {
    let mut lower: Sha1Text = text.try_into().ok()?;
    lower.make_ascii_lowercase();
    Some(lower)
}

/// The digest of `bytes`.
#[must_use]
pub fn sha1(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut state = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        mix(&mut state, block);
    }
    // The rest, a one bit, zeros, and the length in bits at the end of a block.
    let mut last = [0; BLOCK_BYTES * 2];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let length = (bytes.len() as u64).wrapping_mul(8).to_be_bytes();
    let used = if rest.len() + 1 + length.len() <= BLOCK_BYTES {
        BLOCK_BYTES
    } else {
        BLOCK_BYTES * 2
    };
    last[used - length.len()..used].copy_from_slice(&length);
    for block in last[..used].as_chunks::<BLOCK_BYTES>().0 {
        mix(&mut state, block);
    }
    let mut digest = [0; DIGEST_BYTES];
    for (place, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_be_bytes();
    }
    digest
}

fn mix(state: &mut [u32; 5], block: &[u8; BLOCK_BYTES]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.into_iter().enumerate() {
        let (chosen, constant) = match at / 20 {
            0 => (b & c | !b & d, 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(chosen)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d, e]) {
        *old = old.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: &[u8]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        let long = "a".repeat(1_000_000);
        for (text, digest) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
            (&long, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ] {
            assert_eq!(hex(&sha1(text.as_bytes())), digest);
        }
    }

    #[test]
    fn the_padding_fits_at_every_length() {
        let digests: std::collections::HashSet<_> =
            (0..200).map(|length| sha1(&vec![b'x'; length])).collect();
        assert_eq!(digests.len(), 200);
    }
}
