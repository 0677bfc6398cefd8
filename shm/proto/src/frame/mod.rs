//! Frames: what travels over a ring.
//!
//! A frame is a fixed header, then a body, then up to 7 bytes of padding so that the next frame
//! starts at a multiple of 8. All numbers are little endian. A ring maps its bytes twice back to
//! back, so a frame is always one contiguous slice.
//!
//! ```text
//!   request   header of 32 bytes, then argv[1..] as u32 length + bytes each
//!   reply     header of 24 bytes (8 if it goes on with the connection of the frame before), then the
//!             RESP bytes of `count` replies, one after the other
//! ```
//!
//! A request bigger than a quarter of the ring travels as `RequestPart` frames, a reply bigger than
//! that as `ReplyPart` frames ended by `ReplyEnd`.
//!
//! Invariants
//!   F1  `len` counts header and body, not the padding; it is at least the header's size.
//!   F2  decoding never reads outside the given slice, whatever stands in it: a peer may be of
//!       another build or broken. Every failure is a [`FrameError`].
//!
//! Cost: encoding and decoding a header is a few loads and stores; nothing is allocated.
//! Not here: rings (`shm`), who sends what when (gateway, storage worker).

mod args;
mod broker;
mod reply;
mod request;
mod unit;

pub use args::Args;
pub use broker::{
    BROKER_FLAGS_OFFSET, BROKER_HEADER_BYTES, BrokerFrame, BrokerHeader, BrokerKind, Question,
    Space, broker_flags, broker_frame_len, push_name, split_name, write_broker_frame,
};
pub use reply::{
    MORE_HEADER_BYTES, PlainReply, REPLIES_MAX, REPLY_HEADER_BYTES, ReplyFrame, ReplyFrames,
    ReplyHeader, ReplyKind, ReplyRun, begin_more, complete_reply, reply_flags,
};
pub use request::{
    PARKED_PREFIX_BYTES, REQUEST_FLAGS_OFFSET, REQUEST_HEADER_BYTES, REQUEST_KIND_OFFSET,
    RequestHeader, RequestKind, flags, request_len, write_request,
};

pub use unit::{READY, UNIT_ITEM_BYTES, UnitHead, UnitItem};

use std::fmt;

/// Frames start at multiples of this many bytes.
pub const FRAME_ALIGN: usize = 8;

/// `len` rounded up to the next multiple of [`FRAME_ALIGN`]: where the next frame starts.
#[inline]
#[must_use]
pub const fn padded(len: usize) -> usize {
    (len + (FRAME_ALIGN - 1)) & !(FRAME_ALIGN - 1)
}

/// A frame that its reader must not trust: detach the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Fewer bytes than a header.
    Truncated {
        /// Bytes that are there.
        found: usize,
    },
    /// `len` is smaller than the header or larger than what is there.
    Length {
        /// The header's `len`.
        len: u32,
        /// Bytes that are there.
        found: usize,
    },
    /// A kind that this build does not know, or that must not stand here.
    Kind(u8),
    /// An argument reaches beyond the body, or bytes are left behind the last one.
    Arguments {
        /// Arguments announced, the name included.
        argc: u32,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { found } => write!(f, "frame header cut off after {found} bytes"),
            Self::Length { len, found } => {
                write!(f, "frame claims {len} bytes where {found} are readable")
            }
            Self::Kind(kind) => write!(f, "unknown frame kind {kind}"),
            Self::Arguments { argc } => {
                write!(f, "the {argc} arguments of a frame do not fit its length")
            }
        }
    }
}

impl std::error::Error for FrameError {}

#[inline]
fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
