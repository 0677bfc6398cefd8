//! The digest of a data set, as DEBUG DIGEST computes it: the same data has the same digest, in whatever
//! order, form and process it is kept.
//!
//! ```text
//!   add   xor with the SHA-1 of bytes          for what has no order: members, keys
//!   mix   add, then the SHA-1 of the sum       for what has one: elements of a list, field and value
//! ```

use std::fmt;

use crate::sha1::{DIGEST_BYTES, sha1};

/// See the module. That of nothing is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u8; DIGEST_BYTES]);

impl Digest {
    /// The digest that was written as these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// What travels to another process.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes bytes in whose order among others does not matter.
    pub fn add(&mut self, bytes: &[u8]) {
        self.join(&Self(sha1(bytes)));
    }

    /// Takes bytes in that come behind all before.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = sha1(&self.0);
    }

    /// Takes in what another digest is of.
    pub fn join(&mut self, other: &Self) {
        for (byte, other) in self.0.iter_mut().zip(other.0) {
            *byte ^= other;
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_set_of_one_member_has_the_digest_that_others_compute() {
        let mut member = Digest::default();
        member.mix(b"a");
        member.mix(b"0.1");
        let mut digest = Digest::default();
        digest.mix(&3u32.to_be_bytes());
        digest.add(member.as_bytes());
        assert_eq!(
            digest.to_string(),
            "6605f56364a85f2c14bc54c5b4318ac4616eb60a"
        );
        assert_eq!(Digest::from_bytes(digest.as_bytes()), Some(digest));
        assert_eq!(Digest::from_bytes(b"short"), None);
    }
}
