//! LZF: a fast, light compression, in the format that snapshots and lists of Redis use.
//!
//! ```text
//!   000nnnnn  then n + 1 bytes                     those bytes
//!   nnnooooo [n'] o'   offset o * 256 + o' + 1     n + 2 bytes from so far back (n = 7: 9 + n' bytes)
//! ```
//!
//! Compressing looks three bytes up in a table of places where such bytes were last, with the hash and
//! the steps of the reference, so that payloads are equal byte for byte; decompressing checks
//! everything, so that garbage gives an error and not a panic.
//!
//! The table is kept from one call to the next: clearing its 256 KiB would cost more than compressing
//! a short string. Places are counted on from call to call, so older ones are known by being too small.

use std::cell::RefCell;

/// Most bytes in one run of literal ones.
const LITERALS_MAX: usize = 32;
/// Furthest way back.
const OFFSET_MAX: usize = 1 << 13;
/// Longest match.
const MATCH_MAX: usize = 264;
/// Bytes that a match compares before it looks at where it has to end.
const COMPARED_AT_ONCE: usize = 16;
const TABLE_BITS: u32 = 16;

/// Places where three bytes were last, by their hash.
#[derive(Debug)]
struct Places {
    /// `base` and the offset; what is not above `base` belongs to an earlier call.
    table: Box<[u32]>,
    base: u32,
}

thread_local! {
    static PLACES: RefCell<Places> = RefCell::new(Places {
        table: vec![0; 1 << TABLE_BITS].into_boxed_slice(),
        base: 0,
    });
}

impl Places {
    /// Makes room for the offsets of an input; false if no table could have it.
    fn begin(&mut self, len: usize) -> bool {
        let Ok(len) = u32::try_from(len) else {
            return false;
        };
        if self.base.checked_add(len).is_none() {
            self.table.fill(0);
            self.base = 0;
        }
        true
    }

    fn end(&mut self, len: usize) {
        // `begin` has seen that it fits.
        self.base += len as u32;
    }

    /// Where the three bytes at `at` were last; they are now here. The very first place does not count.
    #[inline]
    fn exchange(&mut self, input: &[u8], at: usize) -> Option<usize> {
        let [a, b, c] = [input[at], input[at + 1], input[at + 2]];
        let bytes = u32::from_be_bytes([0, a, b, c]);
        let slot = (bytes >> 8).wrapping_sub(bytes.wrapping_mul(5)) & ((1 << TABLE_BITS) - 1);
        let before = std::mem::replace(&mut self.table[slot as usize], self.base + at as u32);
        (before > self.base).then(|| (before - self.base) as usize)
    }
}

/// Compresses bytes, if the result has at most `len_max` of them.
#[must_use]
pub fn compress(input: &[u8], len_max: usize) -> Option<Vec<u8>> {
    PLACES.with_borrow_mut(|places| {
        if input.is_empty() || !places.begin(input.len()) {
            return None;
        }
        let output = compress_with(places, input, len_max);
        places.end(input.len());
        output
    })
}

/// Output whose last run of literal bytes is still open: its control byte is there already.
#[derive(Debug)]
struct Output {
    bytes: Vec<u8>,
    literals: usize,
    len_max: usize,
}

impl Output {
    fn open_run(&mut self) {
        self.bytes.push(0);
        self.literals = 0;
    }

    fn close_run(&mut self) {
        match self.literals {
            0 => drop(self.bytes.pop()),
            count => {
                let control = self.bytes.len() - count - 1;
                self.bytes[control] = count as u8 - 1;
            }
        }
    }

    #[inline]
    fn literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.literals += 1;
        if self.literals == LITERALS_MAX {
            self.close_run();
            self.open_run();
        }
    }

    /// Whether a match may be too long for the limit.
    fn is_short_of_room(&self) -> bool {
        let unused_run = usize::from(self.literals == 0);
        self.bytes.len() - unused_run + 4 >= self.len_max
    }

    fn matched(&mut self, back: usize, len: usize) {
        self.close_run();
        let (high, more) = ((back >> 8) as u8, len - 2);
        if more < 7 {
            self.bytes.push((more as u8) << 5 | high);
        } else {
            self.bytes.push(7 << 5 | high);
            self.bytes.push((more - 7) as u8);
        }
        self.bytes.push(back as u8);
        self.open_run();
    }
}

fn compress_with(places: &mut Places, input: &[u8], len_max: usize) -> Option<Vec<u8>> {
    let end = input.len();
    let mut output = Output {
        bytes: Vec::with_capacity(len_max.min(end)),
        literals: 0,
        len_max,
    };
    output.open_run();
    let mut at = 0;
    while at + 2 < end {
        let before = places.exchange(input, at);
        let before = before
            .filter(|&from| at - from <= OFFSET_MAX && input[from..from + 3] == input[at..at + 3]);
        let Some(from) = before else {
            if output.bytes.len() >= len_max {
                return None;
            }
            output.literal(input[at]);
            at += 1;
            continue;
        };
        if output.is_short_of_room() {
            return None;
        }
        let len = match_len(input, from, at);
        output.matched(at - from - 1, len);
        at += len;
        if at + 2 >= end {
            break;
        }
        // The last two places inside of the match are worth finding again.
        places.exchange(input, at - 2);
        places.exchange(input, at - 1);
    }
    if output.bytes.len() + 3 > len_max {
        return None;
    }
    input[at..].iter().for_each(|&byte| output.literal(byte));
    output.close_run();
    Some(output.bytes)
}

/// Bytes that are equal from two places on: three are known to be. As in the reference, the last two
/// bytes of the input belong to a match only if it got there without looking.
#[inline]
fn match_len(input: &[u8], from: usize, at: usize) -> usize {
    let room = (input.len() - at - 2).min(MATCH_MAX);
    let least = if room > COMPARED_AT_ONCE {
        3 + COMPARED_AT_ONCE
    } else {
        3
    };
    input[from..]
        .iter()
        .zip(&input[at..])
        .take(room.max(least))
        .take_while(|(a, b)| a == b)
        .count()
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
        if input.is_empty() {
            assert_eq!(compress(input, 16), None);
            return;
        }
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
