//! Control words of a storage worker's page: what must not wait in a ring.
//!
//! ```text
//!   0  the script that runs: number << 8 | bits; 0 if none has run for long   written by the worker
//!   1  the number of the script that is to end                                written by gateways
//!   2  when it began, in milliseconds since 1970                              written by the worker
//!   3  name of the function that runs: length, then 8 bytes in each word      written by the worker
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
/// Length of its name; the name follows.
pub const SCRIPT_NAME: usize = 3;
/// Most bytes of a name that is told.
pub const SCRIPT_NAME_BYTES_MAX: usize = 128;

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
