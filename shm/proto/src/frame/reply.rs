//! Reply frames: from a storage worker to a gateway thread.
//!
//! ```text
//!    0        4      5       6      8            12           16         20      24
//!   +--------+------+-------+------+------------+------------+----------+-------+-----------
//!   | len    | kind | flags | part | connection | generation | sequence | count | RESP bytes
//!   | u32    | u8   | u8    | u16  | u32        | u32        | u32      | u32   |
//!   +--------+------+-------+------+------------+------------+----------+-------+-----------
//! ```
//!
//! One frame carries `count` consecutive replies of one connection, the first one answering
//! `sequence`. A worker extends an open frame while connection, generation and `part == 0` stay the
//! same, sequences follow each other and the frame stays below a quarter of the ring; so a
//! pipelining client costs one header per batch, not one per reply.

use super::{FrameError, u16_at, u32_at};

/// Bytes of a reply header.
pub const REPLY_HEADER_BYTES: usize = 24;

/// What a reply frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReplyKind {
    /// Whole replies.
    Reply = 1,
    /// A piece of one reply that is too big for a frame; more follows.
    ReplyPart = 2,
    /// The last piece of such a reply.
    ReplyEnd = 3,
    /// Answers `RequestKind::Ping`.
    Pong = 4,
    /// The beginning of a request in pieces went down with the worker's predecessor: send the whole
    /// request again. Names it by connection, generation, sequence and part; carries no replies.
    Again = 5,
    /// The worker is a successor: it asks for the commands that wait and belong to it, in the name
    /// of the number in `sequence`. Whatever its predecessor has sent stands before this frame.
    Resume = 6,
    /// No reply: the command that this frame names took longer than `slowlog-log-slower-than`. Holds
    /// the microseconds as u64, then the arguments as RESP (`slow_call`).
    Slow = 7,
}

/// Bits of [`ReplyHeader::flags`].
pub mod reply_flags {
    /// No reply: the command waits. The body holds [`crate::frame::PARKED_PREFIX_BYTES`], then for
    /// each argument that has become another one its number and its length as u32, and its bytes.
    pub const PARKED: u8 = 1 << 0;
    /// The wait was ended by `RequestKind::Unblock`.
    pub const UNBLOCKED: u8 = 1 << 1;
}

impl ReplyKind {
    /// The kind with this number.
    #[inline]
    #[must_use]
    pub const fn from_u8(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(Self::Reply),
            2 => Some(Self::ReplyPart),
            3 => Some(Self::ReplyEnd),
            4 => Some(Self::Pong),
            5 => Some(Self::Again),
            6 => Some(Self::Resume),
            7 => Some(Self::Slow),
            _ => None,
        }
    }
}

/// The header of a reply frame; see the module for its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// Header and RESP bytes, without padding.
    pub len: u32,
    /// What this frame is.
    pub kind: ReplyKind,
    /// Bits of [`reply_flags`]; a frame with any of them holds one reply.
    pub flags: u8,
    /// Piece of the split command that these bytes answer, 0 otherwise.
    pub part: u16,
    /// Place of the connection in its gateway thread.
    pub connection: u32,
    /// Generation of that place.
    pub generation: u32,
    /// Number of the first answered command.
    pub sequence: u32,
    /// Replies in this frame.
    pub count: u32,
}

impl ReplyHeader {
    /// Writes the header.
    #[inline]
    pub fn encode(&self, out: &mut [u8; REPLY_HEADER_BYTES]) {
        out[0..4].copy_from_slice(&self.len.to_le_bytes());
        out[4] = self.kind as u8;
        out[5] = self.flags;
        out[6..8].copy_from_slice(&self.part.to_le_bytes());
        out[8..12].copy_from_slice(&self.connection.to_le_bytes());
        out[12..16].copy_from_slice(&self.generation.to_le_bytes());
        out[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        out[20..24].copy_from_slice(&self.count.to_le_bytes());
    }

    /// Reads the header at the start of `bytes` and checks its length against them.
    ///
    /// # Errors
    /// `Truncated`, `Length` or `Kind`; see [`FrameError`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let Some(head) = bytes.first_chunk::<REPLY_HEADER_BYTES>() else {
            return Err(FrameError::Truncated { found: bytes.len() });
        };
        let len = u32_at(head, 0);
        if (len as usize) < REPLY_HEADER_BYTES || len as usize > bytes.len() {
            return Err(FrameError::Length {
                len,
                found: bytes.len(),
            });
        }
        let Some(kind) = ReplyKind::from_u8(head[4]) else {
            return Err(FrameError::Kind(head[4]));
        };
        Ok(Self {
            len,
            kind,
            flags: head[5],
            part: u16_at(head, 6),
            connection: u32_at(head, 8),
            generation: u32_at(head, 12),
            sequence: u32_at(head, 16),
            count: u32_at(head, 20),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip(numbers in any::<(u8, u16, u32, u32, u32, u32)>(), kind in 1u8..=7) {
            let (flags, part, connection, generation, sequence, count) = numbers;
            let kind = ReplyKind::from_u8(kind).unwrap();
            let header = ReplyHeader { len: 24, kind, flags, part, connection, generation, sequence, count };
            let mut bytes = [0u8; REPLY_HEADER_BYTES];
            header.encode(&mut bytes);
            prop_assert_eq!(ReplyHeader::decode(&bytes), Ok(header));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(header) = ReplyHeader::decode(&bytes) {
                prop_assert!(header.len as usize <= bytes.len());
            }
        }
    }
}
