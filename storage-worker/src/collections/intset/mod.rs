//! Intsets: small sets of integers in one piece of memory, byte for byte as Redis lays them out.
//!
//! Why literally: DUMP and snapshots copy them, RESTORE takes them, and nothing is smaller.
//!
//! ```text
//!   +-----------------+----------+------+------+- - -+
//!   | bytes of each 4 | count 4  | int  | int  |     |    2, 4 or 8 bytes each, all of one width
//!   +-----------------+----------+------+------+- - -+    little endian, ascending
//! ```
//!
//! Invariants of what [`Intset::new`] is given
//!   I1  the width is 2, 4 or 8, and the length of all is 8 + count * width.
//!   I2  the integers ascend, and none comes twice.
//!
//! Bytes from outside go through [`Intset::check`], which establishes both.
//!
//! Cost: finding is a binary search; an edit moves what is behind it. A wider integer widens all
//! others once; they stay wide when it goes.
//! Not here: how large an intset may become before a set uses something else (`commands`).

mod edit;
#[cfg(test)]
mod tests;

pub use edit::{insert, remove, remove_at};

/// Bytes in front of the first integer.
pub const HEADER_BYTES: usize = 8;
/// An intset without integers.
pub const EMPTY: [u8; HEADER_BYTES] = [2, 0, 0, 0, 0, 0, 0, 0];

/// An intset to be read.
#[derive(Debug, Clone, Copy)]
pub struct Intset<'a> {
    integers: &'a [u8],
    width: usize,
}

impl<'a> Intset<'a> {
    /// Reads bytes that are known to be an intset (I1, I2).
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let width = usize::from(bytes[0]);
        debug_assert!(matches!(width, 2 | 4 | 8), "I1");
        let integers = &bytes[HEADER_BYTES..];
        debug_assert_eq!(integers.len(), count_of(bytes) * width, "I1");
        Self { integers, width }
    }

    /// Reads bytes from outside, if they are an intset in every detail and not empty.
    #[must_use]
    pub fn check(bytes: &'a [u8]) -> Option<Self> {
        let (header, integers) = bytes.split_at_checked(HEADER_BYTES)?;
        let width = usize::try_from(word_of(header)).ok()?;
        let is_sound = matches!(width, 2 | 4 | 8)
            && !integers.is_empty()
            && integers.len() as u64 == count_of(header) as u64 * width as u64;
        let intset = Self { integers, width };
        (is_sound && intset.iter().is_sorted_by(|one, next| one < next)).then_some(intset)
    }

    /// Number of integers.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        // A division by 2, 4 or 8.
        self.integers.len() >> self.width.trailing_zeros()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.integers.is_empty()
    }

    /// Integer number `index`.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> i64 {
        read(self.integers, self.width, index)
    }

    /// The smallest integer.
    #[must_use]
    pub fn first(self) -> Option<i64> {
        (!self.is_empty()).then(|| self.get(0))
    }

    /// The largest integer.
    #[must_use]
    pub fn last(self) -> Option<i64> {
        self.len().checked_sub(1).map(|index| self.get(index))
    }

    /// Whether the integer is there.
    #[inline]
    #[must_use]
    pub fn contains(self, wanted: i64) -> bool {
        self.find(wanted).is_ok()
    }

    /// Where the integer is, or else where it would be.
    #[inline]
    pub fn find(self, wanted: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        // Numbers often come in ascending order.
        if high > 0 && self.get(high - 1) < wanted {
            return Err(high);
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.get(middle).cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// All integers, ascending; from both ends.
    #[inline]
    #[must_use]
    pub fn iter(self) -> Iter<'a> {
        Iter {
            intset: self,
            from: 0,
            to: self.len(),
        }
    }
}

/// See [`Intset::iter`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    intset: Intset<'a>,
    from: usize,
    to: usize,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        (self.from < self.to).then(|| {
            self.from += 1;
            self.intset.get(self.from - 1)
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.to - self.from, Some(self.to - self.from))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<i64> {
        (self.from < self.to).then(|| {
            self.to -= 1;
            self.intset.get(self.to)
        })
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for Intset<'a> {
    type Item = i64;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Fewest bytes, of 2, 4 and 8, that hold the integer.
#[inline]
fn width_of(integer: i64) -> usize {
    if i16::try_from(integer).is_ok() {
        2
    } else if i32::try_from(integer).is_ok() {
        4
    } else {
        8
    }
}

/// Integer number `index` of packed ones.
#[inline]
fn read(integers: &[u8], width: usize, index: usize) -> i64 {
    let at = &integers[index * width..(index + 1) * width];
    match *at {
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Writes the integer into exactly `to`, which is wide enough.
#[inline]
fn write(to: &mut [u8], integer: i64) {
    to.copy_from_slice(&integer.to_le_bytes()[..to.len()]);
}

/// The first four bytes as a number.
fn word_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The count in the header.
fn count_of(bytes: &[u8]) -> usize {
    word_of(&bytes[4..]) as usize
}
