//! Key to slot: CRC16 (XMODEM) of the key, or of its hash tag, modulo 16384.
//!
//! The hash tag is what stands between the first `{` and the first `}` behind it, if that is not
//! empty; keys with one tag share a slot.
//!
//! Why tables: the worker and the gateway need the slot of every key of every request. One table of
//! 256 entries costs a dependent load per byte (about 2 ns each); with 8 tables, 8 bytes are folded
//! per step by loads that do not depend on each other.
//!
//! Cost: 4 KiB of tables; a key of 16 bytes takes two steps. The search for `{` rides along on the
//! same 8-byte words.

/// Number of slots, as in Redis Cluster.
pub const SLOT_COUNT: u16 = 16_384;

/// XMODEM: x^16 + x^12 + x^5 + 1, most significant bit first, starting at 0.
const POLYNOMIAL: u16 = 0x1021;

/// `TABLES[n][b]` is the CRC of byte `b` followed by `n` zero bytes.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ POLYNOMIAL
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[zeros - 1][byte];
            tables[zeros][byte] = (crc << 8) ^ tables[0][(crc >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The slot of `key`, below [`SLOT_COUNT`].
#[inline]
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    let tagged = if has_open_brace(key) {
        hash_tag(key)
    } else {
        key
    };
    crc16(tagged) % SLOT_COUNT
}

/// The part of `key` that decides its slot: its hash tag, or all of it.
#[must_use]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else {
        return key;
    };
    let behind = &key[open + 1..];
    match memchr::memchr(b'}', behind) {
        None | Some(0) => key,
        Some(length) => &behind[..length],
    }
}

/// CRC16 (XMODEM) of `bytes`.
#[inline]
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0u16;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        // The first two bytes meet the CRC so far; the other six are independent of it.
        let first = word[0] ^ (crc >> 8) as u8;
        let second = word[1] ^ crc as u8;
        crc = TABLES[7][first as usize]
            ^ TABLES[6][second as usize]
            ^ TABLES[5][word[2] as usize]
            ^ TABLES[4][word[3] as usize]
            ^ TABLES[3][word[4] as usize]
            ^ TABLES[2][word[5] as usize]
            ^ TABLES[1][word[6] as usize]
            ^ TABLES[0][word[7] as usize];
    }
    // A shorter step of the same kind: as many tables as bytes are left.
    match *rest {
        [] => {}
        [only] => crc = (crc << 8) ^ TABLES[0][(only ^ (crc >> 8) as u8) as usize],
        [first, second, ref more @ ..] => {
            let tables = &TABLES[..rest.len()];
            let (first, second) = (first ^ (crc >> 8) as u8, second ^ crc as u8);
            crc = tables[more.len() + 1][first as usize] ^ tables[more.len()][second as usize];
            for (table, &byte) in tables[..more.len()].iter().rev().zip(more) {
                crc ^= table[byte as usize];
            }
        }
    }
    crc
}

/// Whether `{` occurs, eight bytes at a time: keys are short, so this beats a call of `memchr`.
#[inline]
fn has_open_brace(key: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let braces = |word: u64| {
        let zero_where_brace = word ^ (ONES * b'{' as u64);
        zero_where_brace.wrapping_sub(ONES) & !zero_where_brace & HIGHS
    };
    let (words, rest) = key.as_chunks::<8>();
    let mut found = 0u64;
    for word in words {
        found |= braces(u64::from_le_bytes(*word));
    }
    // The rest: the last eight bytes once more, or two overlapping halves of a short key.
    if let Some(last) = key.last_chunk::<8>() {
        found |= braces(u64::from_le_bytes(*last));
    } else if let (Some(head), Some(tail)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        found |= braces(u64::from(head) | u64::from(tail) << 32);
    } else {
        return rest.contains(&b'{');
    }
    found != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive_crc(bytes: &[u8]) -> u16 {
        let mut crc = 0u16;
        for &byte in bytes {
            crc ^= u16::from(byte) << 8;
            for _ in 0..8 {
                crc = if crc & 0x8000 == 0 {
                    crc << 1
                } else {
                    (crc << 1) ^ POLYNOMIAL
                };
            }
        }
        crc
    }

    #[test]
    fn known_slots_of_redis_cluster() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"somekey"), 11058);
        assert_eq!(slot_of(b"foo{hash_tag}"), 2515);
        assert_eq!(slot_of(b""), 0);
    }

    #[test]
    fn tables_equal_the_bitwise_definition_at_every_length() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 167 + 13) as u8).collect();
        for length in 0..bytes.len() {
            assert_eq!(
                crc16(&bytes[..length]),
                naive_crc(&bytes[..length]),
                "{length}"
            );
        }
    }

    #[test]
    fn hash_tags_follow_the_first_pair_of_braces() {
        assert_eq!(hash_tag(b"{user1000}.following"), b"user1000");
        assert_eq!(hash_tag(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(hash_tag(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hash_tag(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hash_tag(b"foo}bar{"), b"foo}bar{");
        assert_eq!(
            slot_of(b"{user1000}.following"),
            slot_of(b"{user1000}.followers")
        );
    }

    proptest::proptest! {
        #[test]
        fn slot_equals_its_definition(key in proptest::collection::vec(proptest::sample::select(
            vec![b'{', b'}', b'a', b'b', 0, 0xFB, 0x7A, 0x7C]), 0..40))
        {
            proptest::prop_assert_eq!(slot_of(&key), naive_crc(hash_tag(&key)) % SLOT_COUNT);
        }
    }
}
