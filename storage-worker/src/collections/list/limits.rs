//! How much goes into one node of a list: what `list-max-listpack-size` means.
//!
//! A negative number is a class of bytes (-1: 4 KiB ... -5: 64 KiB), a positive one a number of
//! elements; a node that is bound by its number of elements still has at most 8 KiB.

/// Bytes that a node bound by its number of elements may have.
const SAFE_BYTES: usize = 8192;
/// Bytes that an element is thought to take besides its own when room is looked for.
const ELEMENT_OVERHEAD: usize = 8;

/// The setting, as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill(i32);

impl Default for Fill {
    fn default() -> Self {
        Self(-2)
    }
}

impl Fill {
    /// Takes a number as an operator gives it.
    #[must_use]
    pub fn new(number: i64) -> Self {
        Self(number.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
    }

    /// The number as DEBUG OBJECT shows it.
    #[must_use]
    pub fn shown(self) -> i32 {
        self.0.clamp(-5, i32::from(i16::MAX))
    }

    /// Most bytes of a node, if that is what binds it.
    #[inline]
    fn bytes_max(self) -> Option<usize> {
        (self.0 < 0).then(|| 4096 << (-1 - self.0.max(-5)))
    }

    /// Most elements of a node that has no bound in bytes.
    #[inline]
    fn count_max(self) -> usize {
        usize::try_from(self.0).unwrap_or(0).max(1)
    }

    /// Whether a listpack of so many bytes and elements is too much for one node.
    #[inline]
    #[must_use]
    pub fn is_exceeded(self, bytes: usize, count: usize) -> bool {
        match self.bytes_max() {
            Some(bytes_max) => bytes > bytes_max,
            None => bytes > SAFE_BYTES || count > self.count_max(),
        }
    }

    /// Whether a node of so many bytes and elements is small enough to be the whole list in one piece
    /// again; a list that is `shrinking` has to be half as small, so that it does not go to and fro.
    #[must_use]
    pub fn is_small(self, bytes: usize, count: usize, shrinking: bool) -> bool {
        let divisor = if shrinking { 2 } else { 1 };
        match self.bytes_max() {
            Some(bytes_max) => bytes <= bytes_max / divisor,
            None => count <= self.count_max() / divisor,
        }
    }

    /// Whether an element may be added to a node.
    #[inline]
    pub(super) fn has_room(self, bytes: usize, count: usize, element_len: usize) -> bool {
        !self.is_exceeded(bytes + element_len + ELEMENT_OVERHEAD, count + 1)
    }

    /// Whether an element is too large for any node with others.
    #[inline]
    pub(super) fn is_large(self, element_len: usize) -> bool {
        element_len > self.bytes_max().unwrap_or(SAFE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_class_of_bytes_or_a_count() {
        for (number, bytes) in [(-1, 4096), (-2, 8192), (-5, 65_536), (-77, 65_536)] {
            let fill = Fill::new(number);
            assert!(!fill.is_exceeded(bytes, usize::MAX), "{number}");
            assert!(fill.is_exceeded(bytes + 1, 1), "{number}");
            assert!(fill.is_small(bytes / 2, usize::MAX, true), "{number}");
            assert!(!fill.is_small(bytes / 2 + 1, 1, true), "{number}");
            assert!(
                !fill.is_large(bytes) && fill.is_large(bytes + 1),
                "{number}"
            );
        }
        for (number, count) in [(0, 1), (1, 1), (128, 128), (i64::MAX, i32::MAX as usize)] {
            let fill = Fill::new(number);
            assert!(!fill.is_exceeded(8192, count), "{number}");
            assert!(fill.is_exceeded(8192, count + 1), "{number}");
            assert!(fill.is_exceeded(8193, 1), "{number}");
            assert!(fill.is_small(usize::MAX, count / 2, true), "{number}");
            assert!(!fill.is_small(7, count / 2 + 1, true), "{number}");
        }
    }
}
