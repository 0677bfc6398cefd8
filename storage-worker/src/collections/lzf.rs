//! LZF: a fast, light compression, in the format that snapshots and lists of Redis use.
//!
//! ```text
//!   000nnnnn  then n + 1 bytes                     those bytes
//!   nnnooooo [n'] o'   offset o * 256 + o' + 1     n + 2 bytes from so far back (n = 7: 9 + n' bytes)
//! ```
//!
//! Compressing looks three bytes up in a table of places where such bytes were last; decompressing
//! checks everything, so that garbage gives an error and not a panic.

/// Most bytes in one run of literal ones.
const LITERALS_MAX: usize = 32;
/// Furthest way back.
const OFFSET_MAX: usize = 1 << 13;
/// Shortest and longest match.
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 2 + 7 + 255;
const TABLE_BITS: u32 = 13;

/// Compresses bytes, if the result has at most `len_max` of them.
#[must_use]
pub fn compress(input: &[u8], len_max: usize) -> Option<Vec<u8>> {
    // Places in the table are one more than the offset, so that 0 is none.
    let mut table = vec![0u32; 1 << TABLE_BITS];
    let mut output = Vec::with_capacity(len_max.min(input.len()));
    let mut at = 0;
    let mut literals_from = 0;
    while at + MATCH_MIN < input.len() {
        let slot = slot_of(input, at);
        let place = std::mem::replace(&mut table[slot], at as u32 + 1) as usize;
        let matched = match place.checked_sub(1) {
            Some(from) if at - from <= OFFSET_MAX => match_len(input, from, at),
            _ => 0,
        };
        if matched < MATCH_MIN {
            at += 1;
            continue;
        }
        write_literals(&mut output, &input[literals_from..at]);
        write_match(&mut output, at - (place - 1), matched);
        if output.len() > len_max {
            return None;
        }
        // The last places inside of the match are worth finding again.
        let end = at + matched;
        for inside in (at + 1).max(end.saturating_sub(2))..end {
            if inside + MATCH_MIN <= input.len() {
                table[slot_of(input, inside)] = inside as u32 + 1;
            }
        }
        at = end;
        literals_from = at;
    }
    write_literals(&mut output, &input[literals_from..]);
    (output.len() <= len_max).then_some(output)
}

#[inline]
fn slot_of(input: &[u8], at: usize) -> usize {
    let key = u32::from_le_bytes([0, input[at], input[at + 1], input[at + 2]]);
    (key.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)) as usize
}

#[inline]
fn match_len(input: &[u8], from: usize, at: usize) -> usize {
    let len_max = MATCH_MAX.min(input.len() - at);
    input[from..]
        .iter()
        .zip(&input[at..at + len_max])
        .take_while(|(a, b)| a == b)
        .count()
}

fn write_literals(output: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERALS_MAX) {
        output.push(run.len() as u8 - 1);
        output.extend_from_slice(run);
    }
}

fn write_match(output: &mut Vec<u8>, offset: usize, len: usize) {
    let (back, len) = (offset - 1, len - 2);
    let high = (back >> 8) as u8;
    if len < 7 {
        output.push((len as u8) << 5 | high);
    } else {
        output.push(7 << 5 | high);
        output.push((len - 7) as u8);
    }
    output.push(back as u8);
}

/// What was compressed, if it has exactly `len` bytes; none if the input is not whole.
#[must_use]
pub fn decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    // What is said about the length may be wrong: no more than this input can make is taken at once.
    let len_max = input.len().saturating_mul(MATCH_MAX);
    let mut output = Vec::with_capacity(len.min(len_max));
    let mut rest = input;
    while let Some((&control, tail)) = rest.split_first() {
        rest = tail;
        if usize::from(control) < LITERALS_MAX {
            let (literals, tail) = rest.split_at_checked(usize::from(control) + 1)?;
            output.extend_from_slice(literals);
            rest = tail;
        } else {
            let mut matched = usize::from(control >> 5) + 2;
            if matched == 7 + 2 {
                let (&more, tail) = rest.split_first()?;
                matched += usize::from(more);
                rest = tail;
            }
            let (&low, tail) = rest.split_first()?;
            rest = tail;
            let back = usize::from(control & 0x1F) << 8 | usize::from(low);
            let from = output.len().checked_sub(back + 1)?;
            copy_match(&mut output, from, matched);
        }
        if output.len() > len {
            return None;
        }
    }
    (output.len() == len).then_some(output)
}

/// Appends `len` bytes from `from` on; they may reach into what is being appended.
fn copy_match(output: &mut Vec<u8>, from: usize, len: usize) {
    let mut rest = len;
    while rest > 0 {
        let step = rest.min(output.len() - from);
        output.extend_from_within(from..from + step);
        rest -= step;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(input: &[u8]) {
        let Some(compressed) = compress(input, input.len() + input.len() / 16 + 16) else {
            panic!("literals take a 32nd more at most");
        };
        assert_eq!(decompress(&compressed, input.len()).as_deref(), Some(input));
        assert_eq!(decompress(&compressed, input.len() + 1), None);
    }

    #[test]
    fn repetitions_become_short() {
        let text = b"the same words again and again, ".repeat(300);
        let compressed = compress(&text, text.len() / 20).expect("it repeats itself");
        assert_eq!(decompress(&compressed, text.len()), Some(text));
        check(b"");
        check(&[7; 100_000]);
        for len in 1..600 {
            check(&vec![b'a'; len]);
        }
    }

    #[test]
    fn the_reference_reads_the_same() {
        // "aaaaaaaaaa": one literal, then nine bytes from one place back.
        assert_eq!(decompress(&[0, b'a', 0xE0, 0, 0], 10), Some(vec![b'a'; 10]));
        assert_eq!(
            decompress(&[2, b'a', b'b', b'c', 0x80, 2], 9),
            Some(b"abcabcabc".to_vec())
        );
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(
            words in proptest::collection::vec((0usize..5000, 1usize..300), 0..40),
            seed in proptest::collection::vec(any::<u8>(), 1..64),
        ) {
            let mut input = seed;
            for (from, len) in words {
                let from = from % input.len();
                let to = (from + len).min(input.len());
                input.extend_from_within(from..to);
                input.push(len as u8);
            }
            check(&input);
        }

        #[test]
        fn garbage_is_refused_or_read(
            input in proptest::collection::vec(any::<u8>(), 0..200),
            len in 0usize..2000,
        ) {
            if let Some(output) = decompress(&input, len) {
                prop_assert_eq!(output.len(), len);
            }
        }
    }
}
