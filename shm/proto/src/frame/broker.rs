//! Frames between the pub/sub broker and those who publish or subscribe: the same form in both directions.
//!
//! ```text
//!    0        4      5      6       8            12           16         20      24         28
//!   +--------+------+------+-------+------------+------------+----------+-------+----------+--------
//!   | len    | kind | flags| space | connection | generation | sequence | count | name_len | 0
//!   | u32    | u8   | u8   | u16   | u32        | u32        | u32      | u32   | u32      | u32
//!   +--------+------+------+-------+------------+------------+----------+-------+----------+--------
//!    32
//!   | name (`name_len` bytes) | body (the rest)
//! ```
//!
//! What is larger than a frame may be travels as pieces of the whole frame, one behind the other; nothing
//! else of the sender comes between them. `connection`, `generation` and `sequence` name the command of a
//! client that wants an answer and come back with it; the broker does not look at them.
//!
//! Not here: what is done with them (`pubsub-broker`, `gateway`), rings (`runtime::outbox`).

use super::{FrameError, u16_at, u32_at};

/// Bytes of a header.
pub const BROKER_HEADER_BYTES: usize = 32;

/// Where [`BrokerHeader::flags`] stands in a frame.
pub const BROKER_FLAGS_OFFSET: usize = 5;

/// Bits of [`BrokerHeader::flags`].
pub mod broker_flags {
    /// Of a subscription: answer with [`super::BrokerKind::Answer`]. Of a message to be published: answer
    /// with its number of receivers.
    pub const ANSWER: u8 = 1 << 0;
    /// Of a message: somebody there has subscribed to its very channel.
    pub const DIRECT: u8 = 1 << 1;
    /// Of a piece: it is the last one.
    pub const LAST: u8 = 1 << 2;
    /// Of a question: it has a pattern.
    pub const PATTERN: u8 = 1 << 3;
    /// Set in the ring by the broker, never sent: it has begun with this frame, so nobody may send it again
    /// to a successor.
    pub const BEGUN: u8 = 1 << 7;
}

/// Which names are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Space {
    /// Channels.
    Channel = 0,
    /// Patterns of channels.
    Pattern = 1,
    /// Channels of shards.
    Shard = 2,
}

impl Space {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];

    fn from_u16(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BrokerKind {
    /// To the broker: `count` more clients here listen to `name`.
    Subscribe = 1,
    /// To the broker: `count` of them do not any more.
    Unsubscribe = 2,
    /// To the broker: `body` is published in `name`.
    Publish = 3,
    /// To the broker: how many, or which, are there? `count` is a [`Question`], `name` a pattern, `body` a
    /// list of names.
    Ask = 4,
    /// To the broker: everything that was there before is said; ordinary frames follow.
    Restored = 5,
    /// A piece of a larger frame, in `body`.
    Piece = 6,
    /// From the broker: the subscription is in force, or so many clients got the message (`count`), or what
    /// was asked for, as RESP in `body`.
    Answer = 7,
    /// From the broker: a message in `name`. `body` begins with a list of `count` patterns that somebody
    /// there has subscribed to; the rest is the message.
    Message = 8,
}

impl BrokerKind {
    fn from_u8(kind: u8) -> Option<Self> {
        Some(match kind {
            1 => Self::Subscribe,
            2 => Self::Unsubscribe,
            3 => Self::Publish,
            4 => Self::Ask,
            5 => Self::Restored,
            6 => Self::Piece,
            7 => Self::Answer,
            8 => Self::Message,
            _ => return None,
        })
    }
}

/// What is asked of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Question {
    /// The names that are in use.
    Names = 0,
    /// For each name of the list its subscribers.
    Counts = 1,
    /// How many patterns there are.
    Patterns = 2,
}

impl Question {
    /// The question with this number.
    #[must_use]
    pub fn from_u32(number: u32) -> Option<Self> {
        [Self::Names, Self::Counts, Self::Patterns]
            .get(number as usize)
            .copied()
    }
}

/// The header of a frame; see the module. Lengths are filled in when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerHeader {
    /// What it is.
    pub kind: BrokerKind,
    /// Bits of [`broker_flags`].
    pub flags: u8,
    /// Which names.
    pub space: Space,
    /// Place of a connection.
    pub connection: u32,
    /// Generation of that place.
    pub generation: u32,
    /// Number of its command.
    pub sequence: u32,
    /// Depends on the kind.
    pub count: u32,
}

impl BrokerHeader {
    /// A header in nobody's name.
    #[must_use]
    pub const fn new(kind: BrokerKind, space: Space) -> Self {
        Self {
            kind,
            flags: 0,
            space,
            connection: 0,
            generation: 0,
            sequence: 0,
            count: 0,
        }
    }

    /// Writes the header of a frame of `len` bytes with a name of `name_len`.
    pub fn encode(&self, out: &mut [u8; BROKER_HEADER_BYTES], len: u32, name_len: u32) {
        out[0..4].copy_from_slice(&len.to_le_bytes());
        out[4] = self.kind as u8;
        out[5] = self.flags;
        out[6..8].copy_from_slice(&(self.space as u16).to_le_bytes());
        out[8..12].copy_from_slice(&self.connection.to_le_bytes());
        out[12..16].copy_from_slice(&self.generation.to_le_bytes());
        out[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        out[20..24].copy_from_slice(&self.count.to_le_bytes());
        out[24..28].copy_from_slice(&name_len.to_le_bytes());
        out[28..32].fill(0);
    }
}

/// A frame, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerFrame<'a> {
    /// Its header.
    pub header: BrokerHeader,
    /// A channel or a pattern.
    pub name: &'a [u8],
    /// What follows.
    pub body: &'a [u8],
    /// All of its bytes, without padding.
    pub bytes: &'a [u8],
}

impl<'a> BrokerFrame<'a> {
    /// Reads the frame at the start of `bytes`.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let found = bytes.len();
        let Some(head) = bytes.first_chunk::<BROKER_HEADER_BYTES>() else {
            return Err(FrameError::Truncated { found });
        };
        let len = u32_at(head, 0);
        let wrong_length = FrameError::Length { len, found };
        let frame = bytes.get(..len as usize).ok_or(wrong_length)?;
        let rest = frame.get(BROKER_HEADER_BYTES..).ok_or(wrong_length)?;
        let kind = BrokerKind::from_u8(head[4]).ok_or(FrameError::Kind(head[4]))?;
        let space = Space::from_u16(u16_at(head, 6)).ok_or(FrameError::Kind(head[6]))?;
        let name_len = u32_at(head, 24) as usize;
        let (name, body) = rest.split_at_checked(name_len).ok_or(wrong_length)?;
        Ok(Self {
            header: BrokerHeader {
                kind,
                flags: head[5],
                space,
                connection: u32_at(head, 8),
                generation: u32_at(head, 12),
                sequence: u32_at(head, 16),
                count: u32_at(head, 20),
            },
            name,
            body,
            bytes: frame,
        })
    }
}

/// Bytes of a frame with this name and these parts of a body, without padding.
#[must_use]
pub fn broker_frame_len(name: &[u8], body: &[&[u8]]) -> usize {
    let body: usize = body.iter().map(|part| part.len()).sum();
    BROKER_HEADER_BYTES + name.len() + body
}

/// Writes a whole frame. False if `out` is too small; it may then hold part of the frame.
pub fn write_broker_frame(
    out: &mut [u8],
    header: &BrokerHeader,
    name: &[u8],
    body: &[&[u8]],
) -> bool {
    let len = broker_frame_len(name, body);
    let (Ok(len32), Ok(name_len)) = (u32::try_from(len), u32::try_from(name.len())) else {
        return false;
    };
    let Some((head, mut rest)) = out
        .get_mut(..len)
        .and_then(|out| out.split_first_chunk_mut())
    else {
        return false;
    };
    header.encode(head, len32, name_len);
    for part in std::iter::once(&name).chain(body) {
        let (place, behind) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = behind;
    }
    true
}

/// Appends a name to a list of names.
pub fn push_name(list: &mut Vec<u8>, name: &[u8]) {
    list.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
    list.extend_from_slice(name);
}

/// Takes the first name off a list; `None` if there is no whole one.
#[must_use]
pub fn split_name(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = list.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_written_frame_reads_back() {
        let header = BrokerHeader {
            flags: broker_flags::DIRECT,
            connection: 1,
            generation: 2,
            sequence: 3,
            count: 4,
            ..BrokerHeader::new(BrokerKind::Message, Space::Shard)
        };
        let mut out = [0; 64];
        assert!(write_broker_frame(
            &mut out,
            &header,
            b"news",
            &[b"a", b"bc"]
        ));
        let frame = BrokerFrame::decode(&out).unwrap();
        assert_eq!(
            (frame.header, frame.name, frame.body),
            (header, &b"news"[..], &b"abc"[..])
        );
        assert_eq!(frame.bytes.len(), broker_frame_len(b"news", &[b"a", b"bc"]));
        assert!(!write_broker_frame(
            &mut out[..38],
            &header,
            b"news",
            &[b"abc"]
        ));
    }

    #[test]
    fn lists_of_names_read_back() {
        let mut list = Vec::new();
        push_name(&mut list, b"");
        push_name(&mut list, b"two");
        let (first, rest) = split_name(&list).unwrap();
        let (second, rest) = split_name(rest).unwrap();
        assert_eq!((first, second, rest), (&b""[..], &b"two"[..], &b""[..]));
        assert_eq!(split_name(&list[4..9]), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(frame) = BrokerFrame::decode(&bytes) {
                let _ = split_name(frame.body);
            }
        }
    }
}
