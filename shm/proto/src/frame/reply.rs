//! Reply frames: from a storage worker to a gateway thread.
//!
//! ```text
//!    0        4      5       6      8            12           16         20      24
//!   +--------+------+-------+------+------------+------------+----------+-------+-----------
//!   | len    | kind | flags | part | connection | generation | sequence | count | RESP bytes
//!   | u32    | u8   | u8    | u16  | u32        | u32        | u32      | u32   |
//!   +--------+------+-------+------+------------+------------+----------+-------+-----------
//!
//!    0        4      5     6       8
//!   +--------+------+-----+-------+-----------
//!   | len    | More | gap | count | RESP bytes         goes on with the connection of the frame before
//!   | u32    | u8   | u8  | u16   |
//!   +--------+------+-----+-------+-----------
//! ```
//!
//! One frame carries `count` consecutive replies of one connection, the first one answering
//! `sequence`. A worker extends an open frame while connection, generation and `part == 0` stay the
//! same, sequences follow each other and the frame stays below a quarter of the ring; so a
//! pipelining client costs one header per batch, not one per reply.
//!
//! Where a pipeline is spread over several workers, each sees gaps in the sequence. What follows a gap
//! of at most 255 goes into a `More` frame, whose header says only how many numbers were left out. It
//! is a frame of its own, complete or not by itself, but it is never the first of a published batch.

use super::{FrameError, padded, u16_at, u32_at};

/// Bytes of a reply header.
pub const REPLY_HEADER_BYTES: usize = 24;

/// Bytes of the header of a [`ReplyKind::More`] frame.
pub const MORE_HEADER_BYTES: usize = 8;

/// Replies in one frame at most: what the header of a `More` frame can count.
pub const REPLIES_MAX: u32 = u16::MAX as u32;

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
    /// Whole replies of the connection of the frame before, behind a gap in its sequence. Readers see
    /// it as a `Reply`.
    More = 8,
    /// No reply: the request that this frame names was called back and has not been executed
    /// (`RequestKind::Recalled`).
    Returned = 9,
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
            8 => Some(Self::More),
            9 => Some(Self::Returned),
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
    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
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
        let kind = match ReplyKind::from_u8(head[4]) {
            Some(kind) if kind != ReplyKind::More => kind,
            _ => return Err(FrameError::Kind(head[4])),
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

/// Writes the header of a `More` frame whose first reply follows `gap` numbers that are left out. Its
/// length and count are missing until [`complete_reply`].
#[inline]
pub fn begin_more(out: &mut [u8; MORE_HEADER_BYTES], gap: u8) {
    *out = [0, 0, 0, 0, ReplyKind::More as u8, gap, 0, 0];
}

/// Fills in length and count of a frame of replies: `frame` is all of it, without padding.
#[inline]
pub fn complete_reply(frame: &mut [u8], count: u32) {
    let len = frame.len() as u32;
    if let Some(place) = frame.first_chunk_mut() {
        *place = len.to_le_bytes();
    }
    if is_more(frame) {
        if let Some(place) = frame.get_mut(6..8) {
            place.copy_from_slice(&(count as u16).to_le_bytes());
        }
    } else if let Some(place) = frame.get_mut(20..24) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

#[inline]
fn is_more(frame: &[u8]) -> bool {
    frame.get(4) == Some(&(ReplyKind::More as u8))
}

/// Replies to consecutive commands in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyRun<'a> {
    /// Number of the first answered command.
    pub sequence: u32,
    /// How many are answered.
    pub count: u32,
    /// Where the RESP bytes begin.
    pub start: usize,
    /// The RESP bytes.
    pub body: &'a [u8],
}

/// A reply frame in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFrame<'a> {
    /// Its header; that of a `More` frame is filled in from the frame before and says `Reply`.
    pub header: ReplyHeader,
    /// Its header was a short one.
    pub is_more: bool,
    /// Its replies.
    pub run: ReplyRun<'a>,
}

/// Whole replies of one connection, in a frame without anything special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainReply<'a> {
    /// Place of the connection in its gateway thread.
    pub connection: u32,
    /// Generation of that place.
    pub generation: u32,
    /// Its replies.
    pub run: ReplyRun<'a>,
}

/// Reads frames one after the other, from the start of a published batch on.
#[derive(Clone, Copy, Debug)]
pub struct ReplyFrames<'a> {
    /// What has not been read, and how much has.
    rest: &'a [u8],
    at: usize,
    /// The frame before may be followed by `More`.
    is_open: bool,
    connection: u32,
    generation: u32,
    /// The number behind the last one that was answered.
    next: u32,
}

impl<'a> ReplyFrames<'a> {
    /// Frames in `bytes`.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            at: 0,
            is_open: false,
            connection: 0,
            generation: 0,
            next: 0,
        }
    }

    /// Bytes that are dealt with, padding included.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next frame if it is of kind `Reply`, without flags or part, and makes sense.
    #[inline]
    pub fn next_plain(&mut self) -> Option<PlainReply<'a>> {
        const PLAIN: u64 = ReplyKind::Reply as u64;
        let head = self.rest.first_chunk::<REPLY_HEADER_BYTES>()?;
        let first = u64::from(u32_at(head, 0)) | u64::from(u32_at(head, 4)) << 32;
        if first >> 32 != PLAIN {
            return None;
        }
        let len = first as u32 as usize;
        let run = ReplyRun {
            sequence: u32_at(head, 16),
            count: u32_at(head, 20),
            start: self.at + REPLY_HEADER_BYTES,
            body: self.rest.get(REPLY_HEADER_BYTES..len)?,
        };
        self.is_open = true;
        self.connection = u32_at(head, 8);
        self.generation = u32_at(head, 12);
        self.pass(len, &run);
        Some(PlainReply {
            connection: self.connection,
            generation: self.generation,
            run,
        })
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// It makes no sense: see [`FrameError`]. The position stays before it.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<ReplyFrame<'a>>, FrameError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if is_more(self.rest) {
            return self.next_more_frame().map(Some);
        }
        let header = ReplyHeader::decode(self.rest)?;
        self.is_open = header.kind == ReplyKind::Reply && header.part == 0;
        self.connection = header.connection;
        self.generation = header.generation;
        let body = self.rest.get(REPLY_HEADER_BYTES..header.len as usize);
        let run = ReplyRun {
            sequence: header.sequence,
            count: header.count,
            start: self.at + REPLY_HEADER_BYTES,
            body: body.unwrap_or_default(),
        };
        self.pass(header.len as usize, &run);
        let is_more = false;
        Ok(Some(ReplyFrame {
            header,
            is_more,
            run,
        }))
    }

    /// The replies of the next frame if it goes on with the connection of the last one.
    #[inline]
    pub fn next_more(&mut self) -> Option<ReplyRun<'a>> {
        let head = u64::from_le_bytes(*self.rest.first_chunk()?);
        if (head >> 32) as u8 != ReplyKind::More as u8 || !self.is_open {
            return None;
        }
        let len = head as u32 as usize;
        let run = ReplyRun {
            sequence: self.next.wrapping_add((head >> 40) as u32 & 0xFF),
            count: (head >> 48) as u32,
            start: self.at + MORE_HEADER_BYTES,
            body: self.rest.get(MORE_HEADER_BYTES..len)?,
        };
        self.pass(len, &run);
        Some(run)
    }

    /// A `More` frame as if it were a whole one.
    #[cold]
    fn next_more_frame(&mut self) -> Result<ReplyFrame<'a>, FrameError> {
        let rest = self.rest;
        let Some(run) = self.next_more() else {
            let found = rest.len();
            return Err(match rest.first_chunk::<MORE_HEADER_BYTES>() {
                None => FrameError::Truncated { found },
                Some(head) if !self.is_open => FrameError::Kind(head[4]),
                Some(head) => FrameError::Length {
                    len: u32_at(head, 0),
                    found,
                },
            });
        };
        let header = ReplyHeader {
            len: (MORE_HEADER_BYTES + run.body.len()) as u32,
            kind: ReplyKind::Reply,
            flags: 0,
            part: 0,
            connection: self.connection,
            generation: self.generation,
            sequence: run.sequence,
            count: run.count,
        };
        let is_more = true;
        Ok(ReplyFrame {
            header,
            is_more,
            run,
        })
    }

    /// Moves over a frame of `len` bytes, which are there.
    #[inline]
    fn pass(&mut self, len: usize, run: &ReplyRun<'a>) {
        self.next = run.sequence.wrapping_add(run.count);
        // Only what no ring holds ends within the padding.
        let passed = padded(len).min(self.rest.len());
        self.rest = self.rest.get(passed..).unwrap_or_default();
        self.at += passed;
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
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut frames = ReplyFrames::new(&bytes);
            if let Some(plain) = frames.clone().next_plain() {
                let frame = frames.clone().next_frame();
                prop_assert_eq!(frame.map(|frame| frame.map(|frame| frame.run)), Ok(Some(plain.run)));
            }
            while let Ok(Some(frame)) = frames.next_frame() {
                prop_assert!(frame.run.start + frame.run.body.len() <= bytes.len());
            }
            prop_assert!(frames.position() <= bytes.len());
        }

        /// A chain of frames is read as what was written, wherever the sequence starts.
        #[test]
        fn gaps_add_up(
            first in any::<u32>(),
            runs in proptest::collection::vec((1u8..=255, 1u32..5, 0usize..30), 0..20),
        ) {
            let mut bytes = vec![0u8; REPLY_HEADER_BYTES + 5];
            let header = ReplyHeader {
                len: 0, kind: ReplyKind::Reply, flags: 0, part: 0, connection: 7, generation: 8,
                sequence: first, count: 0,
            };
            header.encode(bytes.first_chunk_mut().unwrap());
            complete_reply(&mut bytes, 3);
            let mut expected = vec![(first, 3, 5)];
            let mut next = first.wrapping_add(3);
            for (gap, count, len) in runs {
                bytes.resize(padded(bytes.len()), 0);
                let start = bytes.len();
                bytes.resize(start + MORE_HEADER_BYTES + len, 0);
                begin_more(bytes[start..].first_chunk_mut().unwrap(), gap);
                complete_reply(&mut bytes[start..], count);
                let sequence = next.wrapping_add(u32::from(gap));
                expected.push((sequence, count, len));
                next = sequence.wrapping_add(count);
            }
            let mut frames = ReplyFrames::new(&bytes);
            let mut found = Vec::new();
            while let Some(frame) = frames.next_frame().unwrap() {
                prop_assert_eq!((frame.header.connection, frame.header.generation), (7, 8));
                prop_assert_eq!(frame.is_more, !found.is_empty());
                found.push((frame.header.sequence, frame.header.count, frame.run.body.len()));
            }
            prop_assert_eq!(&found, &expected);
            let mut frames = ReplyFrames::new(&bytes);
            let plain = frames.next_plain().unwrap();
            prop_assert_eq!((plain.connection, plain.generation), (7, 8));
            let mut runs = vec![plain.run];
            runs.extend(std::iter::from_fn(|| frames.next_more()));
            let runs: Vec<_> = runs.iter().map(|run| (run.sequence, run.count, run.body.len())).collect();
            prop_assert_eq!(runs, expected);
            prop_assert_eq!(frames.position(), bytes.len());
        }
    }

    #[test]
    fn a_batch_does_not_begin_with_more() {
        let mut bytes = [0u8; MORE_HEADER_BYTES];
        begin_more(&mut bytes, 1);
        complete_reply(&mut bytes, 1);
        let error = ReplyFrames::new(&bytes).next_frame();
        assert_eq!(error, Err(FrameError::Kind(ReplyKind::More as u8)));
    }
}
