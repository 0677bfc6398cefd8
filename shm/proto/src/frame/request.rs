//! Request frames: from a gateway thread to a storage worker.
//!
//! ```text
//!    0        4      5      6         8            12           16          20     22
//!   +--------+------+------+---------+------------+------------+----------+------+----------+
//!   | len    | kind | flags| command | connection | generation | sequence | slot | database |
//!   | u32    | u8   | u8   | u16     | u32        | u32        | u32      | u16  | u16      |
//!   +--------+------+------+---------+------------+------------+----------+------+----------+
//!    24       28       32
//!   +--------+--------+----------------------------------------------------------------------
//!   | argc   | part   | argv[1]: u32 length, bytes; argv[2]: ...
//!   +--------+--------+----------------------------------------------------------------------
//! ```
//!
//! argv[0] is not sent (`command` says it) but `argc` counts it. The second word of a command with
//! subcommands is an ordinary argument: in `OBJECT ENCODING key`, argv[1] is `ENCODING`.
//!
//! `part` numbers the pieces of a command that was split over workers; replies carry it back. In a
//! `RequestPart`, `argc` is the length of the whole inner frame, `part` the offset of this piece, and
//! `slot` the `part` of the inner frame, so that a piece can be refused without the beginning.

use super::{FrameError, u16_at, u32_at};
use crate::bytes::copy;

/// Bytes of a request header.
pub const REQUEST_HEADER_BYTES: usize = 32;

/// Where [`RequestHeader::kind`] stands in a frame.
pub const REQUEST_KIND_OFFSET: usize = 4;

/// Where [`RequestHeader::flags`] stands in a frame.
pub const REQUEST_FLAGS_OFFSET: usize = 5;

/// Bits of [`RequestHeader::flags`].
pub mod flags {
    /// The reply is written as RESP3.
    pub const RESP3: u8 = 1 << 0;
    /// `CLIENT NO-TOUCH`: the access clock of keys stays as it is.
    pub const NO_TOUCH: u8 = 1 << 1;
    /// `CLIENT REPLY OFF` or `SKIP`: run the command, send no reply.
    pub const DISCARD: u8 = 1 << 2;
    /// Refuse the command if it could use more memory: the system is above `maxmemory`.
    pub const DENY_OOM: u8 = 1 << 3;
    /// The command may touch keys of several workers: the one that gets it visits the others.
    pub const CROSSING: u8 = 1 << 4;
    /// Of a crossing script: it touches only keys that it declares.
    pub const ONLY_ITS_KEYS: u8 = 1 << 5;
    /// Set by a worker in the ring, never sent: the command has changed data but its reply may be
    /// lost, so a successor must not run it again.
    pub const EXECUTED: u8 = 1 << 7;
}

/// What a request frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RequestKind {
    /// A whole command.
    Request = 1,
    /// A piece of a request that is too big for one frame.
    RequestPart = 2,
    /// On the side ring: a gateway thread begins to send (`part` 0), or has sent (`part` 1),
    /// everything that a restarted worker must have. `sequence` repeats what the worker asked with
    /// (`ReplyKind::Resume`).
    Resume = 3,
    /// Asks for a sign of life.
    Ping = 4,
    /// On the side ring: a piece of a command that waited at the worker's predecessor, as a
    /// `RequestPart` of a frame with [`PARKED_PREFIX_BYTES`] in front: its ticket, its deadline.
    Parked = 5,
    /// The connection is gone: nothing of it waits any more. No reply.
    Cancel = 6,
    /// The command `sequence` of the connection shall not wait any longer: it is answered as if its
    /// time were over (`part` 0) or with an error (`part` 1), unless it has been answered. No reply
    /// of its own.
    Unblock = 7,
    /// A `Request` that its sender calls back: never sent, but written over the kind of one that is
    /// in the ring. It is not executed but answered with `ReplyKind::Returned`, unless it has been
    /// executed already. If one command of a connection is called back, so is each behind it.
    Recalled = 8,
}

impl RequestKind {
    /// The kind with this number.
    #[inline]
    #[must_use]
    pub const fn from_u8(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(Self::Request),
            2 => Some(Self::RequestPart),
            3 => Some(Self::Resume),
            4 => Some(Self::Ping),
            5 => Some(Self::Parked),
            6 => Some(Self::Cancel),
            7 => Some(Self::Unblock),
            8 => Some(Self::Recalled),
            _ => None,
        }
    }
}

/// What stands in front of the frame in a [`RequestKind::Parked`], and is the body of the frame that
/// tells a gateway that a command waits ([`super::reply_flags::PARKED`]): ticket, deadline in
/// milliseconds since 1970 (0 for none), each a u64.
pub const PARKED_PREFIX_BYTES: usize = 16;

/// The header of a request frame; see the module for its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Header and body in bytes, without padding.
    pub len: u32,
    /// What this frame is.
    pub kind: RequestKind,
    /// Bits of [`flags`].
    pub flags: u8,
    /// `StorageCommand` as a number.
    pub command: u16,
    /// Place of the connection in its gateway thread.
    pub connection: u32,
    /// Generation of that place.
    pub generation: u32,
    /// Number of the command within its connection; wraps.
    pub sequence: u32,
    /// Slot of the first key, 0 if there is none.
    pub slot: u16,
    /// Selected database.
    pub database: u16,
    /// Arguments, the name included.
    pub argc: u32,
    /// Piece number of a split command, 0 otherwise.
    pub part: u32,
}

impl RequestHeader {
    /// The frame that begins (`part` 0) or ends (1) what a restarted worker, which asked with `epoch`, is
    /// told.
    #[must_use]
    pub const fn resume(epoch: u32, part: u32) -> Self {
        Self {
            len: REQUEST_HEADER_BYTES as u32,
            kind: RequestKind::Resume,
            flags: 0,
            command: 0,
            connection: 0,
            generation: 0,
            sequence: epoch,
            slot: 0,
            database: 0,
            argc: 0,
            part,
        }
    }

    /// Writes the header.
    #[inline]
    pub fn encode(&self, out: &mut [u8; REQUEST_HEADER_BYTES]) {
        out[0..4].copy_from_slice(&self.len.to_le_bytes());
        out[4] = self.kind as u8;
        out[5] = self.flags;
        out[6..8].copy_from_slice(&self.command.to_le_bytes());
        out[8..12].copy_from_slice(&self.connection.to_le_bytes());
        out[12..16].copy_from_slice(&self.generation.to_le_bytes());
        out[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        out[20..22].copy_from_slice(&self.slot.to_le_bytes());
        out[22..24].copy_from_slice(&self.database.to_le_bytes());
        out[24..28].copy_from_slice(&self.argc.to_le_bytes());
        out[28..32].copy_from_slice(&self.part.to_le_bytes());
    }

    /// Reads the header at the start of `bytes` and checks its length against them.
    ///
    /// # Errors
    /// `Truncated`, `Length` or `Kind`; see [`FrameError`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let Some(head) = bytes.first_chunk::<REQUEST_HEADER_BYTES>() else {
            return Err(FrameError::Truncated { found: bytes.len() });
        };
        let len = u32_at(head, 0);
        if (len as usize) < REQUEST_HEADER_BYTES || len as usize > bytes.len() {
            return Err(FrameError::Length {
                len,
                found: bytes.len(),
            });
        }
        let Some(kind) = RequestKind::from_u8(head[4]) else {
            return Err(FrameError::Kind(head[4]));
        };
        Ok(Self {
            len,
            kind,
            flags: head[5],
            command: u16_at(head, 6),
            connection: u32_at(head, 8),
            generation: u32_at(head, 12),
            sequence: u32_at(head, 16),
            slot: u16_at(head, 20),
            database: u16_at(head, 22),
            argc: u32_at(head, 24),
            part: u32_at(head, 28),
        })
    }
}

/// Bytes of the frame that carries `arguments` (argv without its name), without padding.
#[inline]
#[must_use]
pub fn request_len<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> usize {
    REQUEST_HEADER_BYTES + arguments.map(|argument| 4 + argument.len()).sum::<usize>()
}

/// Writes a whole frame: `header` with its `len` filled in, then `arguments` (argv without its name).
/// Returns the frame's length without padding, or `None` if `out` is too small or an argument does
/// not fit the format (4 GiB); `out` may then hold part of the frame.
#[inline]
pub fn write_request<'a>(
    out: &mut [u8],
    mut header: RequestHeader,
    arguments: impl Iterator<Item = &'a [u8]>,
) -> Option<usize> {
    let mut at = REQUEST_HEADER_BYTES;
    for argument in arguments {
        let end = at + 4 + argument.len();
        let place = out.get_mut(at..end)?;
        let (length, bytes) = place.split_at_mut(4);
        length.copy_from_slice(&u32::try_from(argument.len()).ok()?.to_le_bytes());
        copy(bytes, argument);
        at = end;
    }
    header.len = u32::try_from(at).ok()?;
    header.encode(out.first_chunk_mut()?);
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Args, padded};
    use proptest::prelude::*;

    fn header() -> RequestHeader {
        RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: flags::RESP3 | flags::DISCARD,
            command: 0x0102,
            connection: 7,
            generation: 9,
            sequence: u32::MAX,
            slot: 16383,
            database: 15,
            argc: 3,
            part: 1,
        }
    }

    #[test]
    fn layout_is_the_documented_one() {
        let mut out = [0u8; REQUEST_HEADER_BYTES];
        RequestHeader {
            len: 0x44332211,
            ..header()
        }
        .encode(&mut out);
        assert_eq!(
            out,
            [
                0x11, 0x22, 0x33, 0x44, 1, 5, 2, 1, 7, 0, 0, 0, 9, 0, 0, 0, 255, 255, 255, 255,
                255, 63, 15, 0, 3, 0, 0, 0, 1, 0, 0, 0
            ]
        );
    }

    #[test]
    fn a_written_frame_reads_back() {
        let arguments: [&[u8]; 2] = [b"key", b"some value"];
        let mut out = [0u8; 128];
        let len = write_request(&mut out, header(), arguments.into_iter()).unwrap();
        assert_eq!(len, request_len(arguments.into_iter()));
        let read = RequestHeader::decode(&out[..padded(len)]).unwrap();
        assert_eq!(
            read,
            RequestHeader {
                len: len as u32,
                ..header()
            }
        );
        let mut spans = Vec::new();
        let args = Args::new(&out[REQUEST_HEADER_BYTES..len], read.argc, &mut spans).unwrap();
        assert_eq!(args.iter_from(1).collect::<Vec<_>>(), arguments);
        assert_eq!(
            write_request(&mut out[..len - 1], header(), arguments.into_iter()),
            None
        );
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(header) = RequestHeader::decode(&bytes) {
                let body = &bytes[REQUEST_HEADER_BYTES..header.len as usize];
                let mut spans = Vec::new();
                if let Ok(args) = Args::new(body, header.argc, &mut spans) {
                    for at in 0..args.len() + 2 {
                        let _ = args.get(at);
                    }
                }
            }
        }

        #[test]
        fn headers_round_trip(numbers in any::<(u8, u16, u32, u32, u32, u16, u16, u32, u32)>()) {
            let (flags, command, connection, generation, sequence, slot, database, argc, part) = numbers;
            let header = RequestHeader {
                len: 32, kind: RequestKind::Request, flags, command, connection, generation, sequence,
                slot, database, argc, part,
            };
            let mut bytes = [0u8; REQUEST_HEADER_BYTES];
            header.encode(&mut bytes);
            prop_assert_eq!(RequestHeader::decode(&bytes), Ok(header));
        }
    }
}
