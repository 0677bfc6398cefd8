//! Control words of a storage worker's page: what must not wait in a ring.
//!
//! ```text
//!   0  the script that runs: number << 8 | bits; 0 if none has run for long   written by the worker
//!   1  the number of the script that is to end                                written by gateways
//!   2  when it began, in milliseconds since 1970                              written by the worker
//!   3  if it is a function: its name and the words of its call                 written by the worker
//!  23  the workers that it holds, one bit each                                 written by the worker
//!  24  an asker and its number: is a key changed that ...                      written by another worker
//!  25  ... this client (link << 32 | connection) watches here, ...             the same, before
//!  26  ... which are so many (generation << 32 | keys)?                        the same
//!  27  asker and number << 1 | whether one is                                  written by the worker
//! ```
//!
//! A script that ends at once never appears here. Numbers are not used twice while a worker lives, so a
//! request to end one cannot meet the next.
//!
//! Not here: the memory of the words (`shm::Party`).

/// The script that runs.
pub const SCRIPT: usize = 0;
/// The script that is to end.
pub const SCRIPT_END: usize = 1;
/// When the script began.
pub const SCRIPT_BEGAN: usize = 2;
/// The call of a function: the words of [`call_words`] from here on.
pub const SCRIPT_CALL: usize = 3;
/// How many of them.
const CALL_WORDS: usize = 20;
/// The workers that the script holds.
pub const SCRIPT_HOLDS: usize = SCRIPT_CALL + CALL_WORDS;
/// Who asks about watched keys, and its number.
pub const WATCH_ASK: usize = SCRIPT_HOLDS + 1;
/// The client that watches.
pub const WATCH_CLIENT: usize = SCRIPT_HOLDS + 2;
/// Its generation, and how many keys it watches.
pub const WATCH_COUNT: usize = SCRIPT_HOLDS + 3;
/// The answer.
pub const WATCH_ANSWER: usize = SCRIPT_HOLDS + 4;

/// Texts as words: a byte that says how long each is, and its bytes; a 0 behind the last one. What does not
/// fit is left out.
#[must_use]
pub fn call_words(texts: &[&[u8]]) -> [u64; CALL_WORDS] {
    let mut bytes = [0u8; CALL_WORDS * 8];
    let mut at = 0;
    for text in texts {
        let text = &text[..text.len().min(usize::from(u8::MAX))];
        let Some(room) = bytes
            .get_mut(at..at + text.len() + 1)
            .filter(|room| at + room.len() < CALL_WORDS * 8)
        else {
            break;
        };
        // A length of 0 ends the texts, so lengths are counted from 1.
        room[0] = text.len().min(254) as u8 + 1;
        let len = usize::from(room[0]) - 1;
        room[1..=len].copy_from_slice(&text[..len]);
        at += len + 1;
    }
    let mut words = [0; CALL_WORDS];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = chunk
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// The texts of such words.
#[must_use]
pub fn call_texts(word: impl Fn(usize) -> u64) -> Vec<Vec<u8>> {
    let bytes: Vec<u8> = (0..CALL_WORDS)
        .flat_map(|at| word(SCRIPT_CALL + at).to_le_bytes())
        .collect();
    let mut rest = &bytes[..];
    let mut texts = Vec::new();
    while let Some((len @ 1.., after)) = rest
        .split_first()
        .map(|(len, after)| (usize::from(*len), after))
        && let Some((text, after)) = after.split_at_checked(len - 1)
    {
        texts.push(text.to_vec());
        rest = after;
    }
    texts
}

/// Bits of word 0.
const BUSY: u64 = 1 << 0;
const WROTE: u64 = 1 << 1;
const FUNCTION: u64 = 1 << 2;
const SHIFT: u32 = 8;

/// What word 0 says of a script that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningScript {
    /// Its number.
    pub number: u64,
    /// It runs for longer than `busy-reply-threshold`.
    pub is_busy: bool,
    /// It has written.
    pub has_written: bool,
    /// It is a function.
    pub is_function: bool,
}

impl RunningScript {
    /// Reads the word; `None` if no script has run for long.
    #[must_use]
    pub fn from_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self {
            number: word >> SHIFT,
            is_busy: word & BUSY != 0,
            has_written: word & WROTE != 0,
            is_function: word & FUNCTION != 0,
        })
    }

    /// The word.
    #[must_use]
    pub fn to_word(self) -> u64 {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        self.number << SHIFT
            | bit(self.is_busy, BUSY)
            | bit(self.has_written, WROTE)
            | bit(self.is_function, FUNCTION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_call_come_back() {
        let call: [&[u8]; 4] = [b"f", b"fcall", b"", b"0"];
        let words = call_words(&call);
        assert_eq!(call_texts(|word| words[word - SCRIPT_CALL]), call);
        let long = [b'x'; 300];
        for texts in [
            vec![&long[..]],
            vec![b"a", &long[..200], b"b", &long[..30]],
            vec![],
        ] {
            let words = call_words(&texts);
            let found = call_texts(|word| words[word - SCRIPT_CALL]);
            assert!(found.len() <= texts.len());
            assert!(
                found
                    .iter()
                    .zip(&texts)
                    .all(|(found, text)| text.starts_with(found))
            );
        }
    }

    #[test]
    fn a_word_says_what_was_put_in() {
        assert_eq!(RunningScript::from_word(0), None);
        for bits in 0..8 {
            let script = RunningScript {
                number: 1 << 40 | 7,
                is_busy: bits & 1 != 0,
                has_written: bits & 2 != 0,
                is_function: bits & 4 != 0,
            };
            assert_eq!(RunningScript::from_word(script.to_word()), Some(script));
        }
    }
}
