//! The checksum of payloads and snapshots: CRC-64 with the polynomial of Jones, bits reflected, no
//! inversion before or after.
//!
//! Eight bytes at a time, with a table for each: about 1.5 GB/s.

/// The polynomial, reflected.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ POLYNOMIAL
            } else {
                sum >> 1
            };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        let mut table = 1;
        while table < 8 {
            let before = tables[table - 1][byte];
            tables[table][byte] = tables[0][(before & 0xFF) as usize] ^ before >> 8;
            table += 1;
        }
        byte += 1;
    }
    tables
}

/// The checksum of `bytes` behind those that have the checksum `sum`; 0 to begin.
#[must_use]
pub fn update(sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = sum;
    for word in words {
        let mixed = (sum ^ u64::from_le_bytes(*word)).to_le_bytes();
        sum = 0;
        for (distance, byte) in mixed.into_iter().enumerate() {
            sum ^= TABLES[7 - distance][usize::from(byte)];
        }
    }
    for &byte in rest {
        sum = TABLES[0][usize::from(sum as u8 ^ byte)] ^ sum >> 8;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_sum() {
        assert_eq!(update(0, b"123456789"), 0xE9C6_D914_C4B8_D9CA);
        assert_eq!(update(7, b""), 7);
    }

    #[test]
    fn parts_make_the_same_sum_as_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * n) as u8).collect();
        let whole = update(0, &bytes);
        for cut in [0, 1, 7, 8, 9, 500, 999] {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(update(update(0, head), tail), whole, "{cut}");
        }
    }
}
