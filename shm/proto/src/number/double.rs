//! 64-bit floats as text: scores and RESP3 doubles.
//!
//! Printing takes the fewest digits that read back as the same number, laid out as Redis does it:
//! plain while the exponent is small, `1e+20` beyond.

use std::io::Write;

/// Bytes that any printed double fits.
const TEXT_BYTES: usize = 32;

/// Scratch memory for one printed number.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubleText {
    bytes: [u8; TEXT_BYTES],
}

impl DoubleText {
    /// Empty memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; TEXT_BYTES],
        }
    }

    /// The text of `value`.
    pub fn format(&mut self, value: f64) -> &[u8] {
        let mut rest = &mut self.bytes[..];
        // The longest double has 24 characters, so this cannot fail.
        let written = write!(rest, "{value}").map(|()| TEXT_BYTES - rest.len());
        &self.bytes[..written.unwrap_or(0)]
    }
}

/// The float that `text` is, as Redis reads scores and increments.
#[must_use]
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
