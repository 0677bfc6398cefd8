//! Counting, finding and combining bits of byte strings, a machine word (or several) at a time.
//!
//! Bits are numbered as the bitmap commands number them: bit 0 is the most significant bit of byte
//! 0, so a byte string is one big-endian number read from the left.
//!
//! Why not byte tables: a popcount per byte reads eight times as often and defeats vectorisation.
//! Counting uses carry-save adders over blocks of sixteen lanes: five logical operations per word
//! and one real popcount per sixteen words, which the compiler turns into vector code on every
//! target without asking for a CPU feature (the portable popcount of one word is a dozen
//! dependent operations).
//!
//! Cost: one pass over the bytes; combining writes every result byte once.
//! Not here: fields of arbitrary width (`bit_field`), ranges given by clients (the commands).

use std::ops::Range;

/// Words per lane of the counting kernel: four 64-bit words fill one 256-bit or two 128-bit
/// registers.
const LANE_WORDS: usize = 4;
/// Bytes that one round of the counting kernel consumes: sixteen lanes.
const BLOCK_BYTES: usize = 16 * LANE_WORDS * 8;

type Lane = [u64; LANE_WORDS];

/// How `combine` joins its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// Bits set in every source.
    And,
    /// Bits set in at least one source.
    Or,
    /// Bits set in an odd number of sources.
    Xor,
    /// The complement of the only source.
    Not,
}

/// Number of one bits in `bytes`.
pub fn count_ones(bytes: &[u8]) -> u64 {
    let mut total = 0u64;
    let mut ones = [0u64; LANE_WORDS];
    let mut twos = [0u64; LANE_WORDS];
    let mut fours = [0u64; LANE_WORDS];
    let mut eights = [0u64; LANE_WORDS];
    let blocks = bytes.chunks_exact(BLOCK_BYTES);
    let tail = blocks.remainder();
    for block in blocks {
        let mut lanes = [[0u64; LANE_WORDS]; 16];
        for (lane, chunk) in lanes.iter_mut().zip(block.chunks_exact(LANE_WORDS * 8)) {
            *lane = load_lane(chunk);
        }
        let mut carries_8 = [[0u64; LANE_WORDS]; 2];
        for (half, carry_8) in lanes.chunks_exact(8).zip(carries_8.iter_mut()) {
            let mut carries_4 = [[0u64; LANE_WORDS]; 2];
            for (quarter, carry_4) in half.chunks_exact(4).zip(carries_4.iter_mut()) {
                let carry_a = add_lanes(&mut ones, quarter[0], quarter[1]);
                let carry_b = add_lanes(&mut ones, quarter[2], quarter[3]);
                *carry_4 = add_lanes(&mut twos, carry_a, carry_b);
            }
            *carry_8 = add_lanes(&mut fours, carries_4[0], carries_4[1]);
        }
        let sixteens = add_lanes(&mut eights, carries_8[0], carries_8[1]);
        total += lane_ones(sixteens);
    }
    let in_blocks = 16 * total
        + 8 * lane_ones(eights)
        + 4 * lane_ones(fours)
        + 2 * lane_ones(twos)
        + lane_ones(ones);
    in_blocks + count_ones_in_tail(tail)
}

/// Number of one bits in `bytes[range]` where the range is given in bits and lies inside `bytes`.
pub fn count_ones_in_bits(bytes: &[u8], range: Range<u64>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    let first_byte = byte_of(range.start);
    let last_byte = byte_of(range.end - 1);
    let lead = low_bits(8 - bit_in_byte(range.start));
    let trail = !low_bits(7 - bit_in_byte(range.end - 1));
    if first_byte == last_byte {
        return u64::from((bytes[first_byte] & lead & trail).count_ones());
    }
    u64::from((bytes[first_byte] & lead).count_ones())
        + count_ones(&bytes[first_byte + 1..last_byte])
        + u64::from((bytes[last_byte] & trail).count_ones())
}

/// Position of the first bit equal to `bit` within a range of bits that lies inside `bytes`.
pub fn find_bit(bytes: &[u8], bit: bool, range: Range<u64>) -> Option<u64> {
    if range.is_empty() {
        return None;
    }
    // Looking for zeros is looking for ones in the complement.
    let flip = if bit { 0u8 } else { 0xff };
    let first_byte = byte_of(range.start);
    let last_byte = byte_of(range.end - 1);
    let masked = |position: usize| {
        let mut byte = bytes[position] ^ flip;
        if position == first_byte {
            byte &= low_bits(8 - bit_in_byte(range.start));
        }
        if position == last_byte {
            byte &= !low_bits(7 - bit_in_byte(range.end - 1));
        }
        byte
    };
    let found_in = |position: usize| {
        let byte = masked(position);
        (byte != 0).then(|| position as u64 * 8 + u64::from(byte.leading_zeros()))
    };
    if let Some(found) = found_in(first_byte) {
        return Some(found);
    }
    if first_byte == last_byte {
        return None;
    }
    let middle = first_byte + 1..last_byte;
    if let Some(position) = first_byte_other_than(&bytes[middle.clone()], flip) {
        return found_in(middle.start + position);
    }
    found_in(last_byte)
}

/// Position of the first byte that differs from `skip`.
fn first_byte_other_than(bytes: &[u8], skip: u8) -> Option<usize> {
    let mut position = 0;
    let skip_word = u64::from_ne_bytes([skip; 8]);
    let mut blocks = bytes.chunks_exact(32);
    for block in blocks.by_ref() {
        let differs = load_lane(block)
            .iter()
            .fold(0, |seen, word| seen | (word ^ skip_word));
        if differs != 0 {
            break;
        }
        position += 32;
    }
    bytes[position..]
        .iter()
        .position(|byte| *byte != skip)
        .map(|offset| position + offset)
}

/// Joins `sources` bit by bit into `target`, which is cleared first and becomes as long as the
/// longest source; shorter sources count as followed by zero bytes.
///
/// With `BitOp::Not` only the first source is read.
pub fn combine<'a>(
    op: BitOp,
    sources: impl Iterator<Item = &'a [u8]> + Clone,
    target: &mut Vec<u8>,
) {
    target.clear();
    let len = sources.clone().map(<[u8]>::len).max().unwrap_or(0);
    let mut sources = sources;
    let Some(first) = sources.next() else {
        return;
    };
    target.reserve_exact(len);
    target.extend_from_slice(first);
    target.resize(len, 0);
    if op == BitOp::Not {
        target.iter_mut().for_each(|byte| *byte = !*byte);
        return;
    }
    for source in sources {
        let (shared, beyond) = target.split_at_mut(source.len());
        match op {
            BitOp::And => {
                merge_words(shared, source, |a, b| a & b);
                beyond.fill(0);
            }
            BitOp::Or => merge_words(shared, source, |a, b| a | b),
            BitOp::Xor => merge_words(shared, source, |a, b| a ^ b),
            BitOp::Not => {}
        }
    }
}

/// Applies `join` to two slices of equal length; a byte loop that compiles to vector code.
#[inline]
fn merge_words(target: &mut [u8], source: &[u8], join: impl Fn(u8, u8) -> u8) {
    for (into, from) in target.iter_mut().zip(source) {
        *into = join(*into, *from);
    }
}

/// Full adder over whole lanes: adds `a` and `b` to `sum` and returns the carries.
#[inline]
fn add_lanes(sum: &mut Lane, a: Lane, b: Lane) -> Lane {
    let mut carry = [0u64; LANE_WORDS];
    for word in 0..LANE_WORDS {
        let partial = sum[word] ^ a[word];
        carry[word] = (sum[word] & a[word]) | (partial & b[word]);
        sum[word] = partial ^ b[word];
    }
    carry
}

#[inline]
fn lane_ones(lane: Lane) -> u64 {
    lane.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[inline]
fn load_lane(chunk: &[u8]) -> Lane {
    let mut lane = [0u64; LANE_WORDS];
    for (word, bytes) in lane.iter_mut().zip(chunk.chunks_exact(8)) {
        let mut raw = [0u8; 8];
        raw.copy_from_slice(bytes);
        *word = u64::from_ne_bytes(raw);
    }
    lane
}

fn count_ones_in_tail(tail: &[u8]) -> u64 {
    let words = tail.chunks_exact(8);
    let rest = words.remainder();
    let mut total = 0u64;
    for word in words {
        let mut raw = [0u8; 8];
        raw.copy_from_slice(word);
        total += u64::from(u64::from_ne_bytes(raw).count_ones());
    }
    total
        + rest
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum::<u64>()
}

/// A byte whose `count` (0 to 8) least significant bits are set.
#[inline]
fn low_bits(count: u32) -> u8 {
    0xffu8.checked_shr(8 - count).unwrap_or(0)
}

#[inline]
fn byte_of(bit: u64) -> usize {
    usize::try_from(bit / 8).unwrap_or(usize::MAX)
}

#[inline]
fn bit_in_byte(bit: u64) -> u32 {
    (bit % 8) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive_bits(bytes: &[u8]) -> Vec<bool> {
        bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |at| byte >> (7 - at) & 1 == 1))
            .collect()
    }

    #[test]
    fn counting_agrees_with_a_byte_loop_at_every_block_border() {
        for len in (0..1100).chain([4096, 4097, 10_000]) {
            let bytes: Vec<u8> = (0..len)
                .map(|at: usize| (at.wrapping_mul(151) >> 2) as u8)
                .collect();
            let naive: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
            assert_eq!(count_ones(&bytes), naive, "length {len}");
        }
    }

    #[test]
    fn combining_nothing_gives_nothing() {
        let mut target = vec![1, 2, 3];
        combine(BitOp::Or, std::iter::empty(), &mut target);
        assert!(target.is_empty());
    }

    proptest! {
        #[test]
        fn ranges_are_counted_and_searched_like_a_list_of_bits(
            bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 1..120),
            ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            bit in any::<bool>(),
        ) {
            let bits = naive_bits(&bytes);
            let (a, b) = (ends.0.index(bits.len() + 1), ends.1.index(bits.len() + 1));
            let range = a.min(b)..a.max(b);
            let counted = bits[range.clone()].iter().filter(|bit| **bit).count() as u64;
            let found = bits[range.clone()].iter().position(|at| *at == bit).map(|at| (at + range.start) as u64);
            let range = range.start as u64..range.end as u64;
            prop_assert_eq!(count_ones_in_bits(&bytes, range.clone()), counted);
            prop_assert_eq!(find_bit(&bytes, bit, range), found);
        }

        #[test]
        fn combining_agrees_with_a_list_of_bits(
            sources in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..70), 1..5),
            op in prop_oneof![Just(BitOp::And), Just(BitOp::Or), Just(BitOp::Xor), Just(BitOp::Not)],
        ) {
            let mut target = Vec::new();
            combine(op, sources.iter().map(Vec::as_slice), &mut target);
            let len = sources.iter().map(Vec::len).max().unwrap_or(0);
            let byte = |source: &Vec<u8>, at: usize| source.get(at).copied().unwrap_or(0);
            let naive: Vec<u8> = (0..len).map(|at| {
                let values = sources.iter().map(|source| byte(source, at));
                match op {
                    BitOp::And => values.reduce(|a, b| a & b).unwrap_or(0),
                    BitOp::Or => values.reduce(|a, b| a | b).unwrap_or(0),
                    BitOp::Xor => values.reduce(|a, b| a ^ b).unwrap_or(0),
                    BitOp::Not => !byte(&sources[0], at),
                }
            }).collect();
            prop_assert_eq!(target, naive);
        }
    }
}
