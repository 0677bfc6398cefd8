//! A request that is kept: too big for one frame, or written when its ring had no room.
//!
//! It owns the bytes of the command as the client sent them (the input buffer itself, when that is
//! possible) and produces any piece of the frame from them, so a value of 512 MiB exists once:
//!
//! ```text
//!   frame    | header 32 | len0 | arg0 ... | len1 | arg1 ... |      total bytes
//!   sent     |------------------->offset                            restart() goes back to 0
//! ```
//!
//! A frame that fits is sent whole as `Request`; otherwise in `RequestPart` frames whose header carries
//! the total length (`argc`) and the offset of the piece (`part`).

use proto::frame::{REQUEST_HEADER_BYTES, RequestHeader, RequestKind};

use crate::lanes::Who;

/// Start and length of an argument in the bytes that a transfer owns.
pub(crate) type Span = (u32, u32);

/// One request that waits to be sent, is being sent, or waits for its reply.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) who: Who,
    header: RequestHeader,
    bytes: Vec<u8>,
    /// The arguments without the name.
    spans: Vec<Span>,
    total: usize,
    offset: usize,
    /// Where `offset` stands: argument (`spans` index) and byte within its length prefix and bytes.
    argument: usize,
    within: usize,
    /// Its connection is gone: nobody will take the reply, so nothing is kept once it is sent.
    pub(crate) orphan: bool,
}

impl Transfer {
    /// `header.len` is filled in here. `spans` are the arguments after the name, within `bytes`.
    pub(crate) fn new(mut header: RequestHeader, bytes: Vec<u8>, spans: Vec<Span>) -> Self {
        let body: usize = spans.iter().map(|span| 4 + span.1 as usize).sum();
        let total = REQUEST_HEADER_BYTES + body;
        header.len = u32::try_from(total).unwrap_or(u32::MAX);
        let who = Who {
            index: header.connection,
            generation: header.generation,
        };
        Self {
            who,
            header,
            bytes,
            spans,
            total,
            offset: 0,
            argument: 0,
            within: 0,
            orphan: false,
        }
    }

    /// It tells something about an earlier request of its connection.
    pub(crate) fn is_about_another(&self) -> bool {
        matches!(self.header.kind, RequestKind::Cancel | RequestKind::Unblock)
    }

    /// True once every byte has been handed out.
    pub(crate) fn is_sent(&self) -> bool {
        self.offset == self.total
    }

    /// Begins again: the worker that had the first pieces is gone.
    pub(crate) fn restart(&mut self) {
        (self.offset, self.argument, self.within) = (0, 0, 0);
    }

    /// Bytes that a frame for the next piece would take, header included, if it may have `largest`.
    pub(crate) fn next_frame(&self, largest: usize) -> usize {
        if self.offset == 0 && self.total <= largest {
            return self.total;
        }
        (self.total - self.offset + REQUEST_HEADER_BYTES).min(largest)
    }

    /// Writes the next piece as a frame that fills `out` exactly (`next_frame` bytes).
    pub(crate) fn write_frame(&mut self, out: &mut [u8]) {
        if self.offset == 0 && out.len() == self.total {
            self.fill(out);
            return;
        }
        let piece = RequestHeader {
            len: u32::try_from(out.len()).unwrap_or(u32::MAX),
            kind: RequestKind::RequestPart,
            argc: u32::try_from(self.total).unwrap_or(u32::MAX),
            part: u32::try_from(self.offset).unwrap_or(u32::MAX),
            // The piece has no key: its slot tells which part of a split command the request is, for
            // a worker that refuses it without having seen its beginning.
            slot: u16::try_from(self.header.part).unwrap_or_default(),
            ..self.header
        };
        let Some((head, body)) = out.split_first_chunk_mut::<REQUEST_HEADER_BYTES>() else {
            return;
        };
        piece.encode(head);
        self.fill(body);
    }

    /// Copies the next `out.len()` bytes of the frame.
    fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() && self.offset < self.total {
            let step = if self.offset < REQUEST_HEADER_BYTES {
                let mut head = [0; REQUEST_HEADER_BYTES];
                self.header.encode(&mut head);
                copy_part(&head[self.offset..], out)
            } else {
                self.fill_argument(out)
            };
            self.offset += step;
            out = &mut out[step..];
        }
    }

    fn fill_argument(&mut self, out: &mut [u8]) -> usize {
        let Some(&(start, len)) = self.spans.get(self.argument) else {
            return 0;
        };
        let (start, len) = (start as usize, len as usize);
        let step = if self.within < 4 {
            let prefix = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
            copy_part(&prefix[self.within..], out)
        } else {
            let bytes = self.bytes.get(start..start + len).unwrap_or_default();
            copy_part(&bytes[self.within - 4..], out)
        };
        self.within += step;
        if self.within == 4 + len {
            self.argument += 1;
            self.within = 0;
        }
        step
    }
}

fn copy_part(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::frame::{Args, write_request};

    use super::*;

    fn header(argc: usize) -> RequestHeader {
        RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: 0,
            command: 3,
            connection: 1,
            generation: 2,
            sequence: 3,
            slot: 4,
            database: 5,
            argc: u32::try_from(argc).unwrap(),
            part: 0,
        }
    }

    proptest! {
        /// The pieces put together are the frame that would have been written at once, from any size
        /// of piece and after a restart in the middle.
        #[test]
        fn pieces_add_up_to_the_frame(
            arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..6),
            largest in 40usize..200,
            restart_after in 0usize..4,
        ) {
            let mut bytes = b"junk".to_vec();
            let mut spans = Vec::new();
            for argument in &arguments {
                spans.push((bytes.len() as u32, argument.len() as u32));
                bytes.extend_from_slice(argument);
                bytes.extend_from_slice(b"\r\n");
            }
            let mut expected = vec![0; 2000];
            let len = write_request(
                &mut expected,
                header(arguments.len() + 1),
                arguments.iter().map(Vec::as_slice),
            ).unwrap();
            expected.truncate(len);

            let mut transfer = Transfer::new(header(arguments.len() + 1), bytes, spans);
            let mut got = Vec::new();
            let mut frames = 0;
            while !transfer.is_sent() {
                let mut frame = vec![0; transfer.next_frame(largest)];
                prop_assert!(frame.len() <= largest);
                transfer.write_frame(&mut frame);
                let head = RequestHeader::decode(&frame).unwrap();
                if head.kind == RequestKind::Request {
                    got.extend_from_slice(&frame);
                } else {
                    prop_assert_eq!(head.part as usize, got.len());
                    prop_assert_eq!(head.argc as usize, len);
                    got.extend_from_slice(&frame[REQUEST_HEADER_BYTES..]);
                }
                frames += 1;
                if frames == restart_after {
                    transfer.restart();
                    got.clear();
                }
            }
            prop_assert_eq!(&got, &expected);
            let mut found = Vec::new();
            let args = Args::new(&got[REQUEST_HEADER_BYTES..], arguments.len() as u32 + 1, &mut found);
            prop_assert!(args.is_ok());
        }
    }
}
