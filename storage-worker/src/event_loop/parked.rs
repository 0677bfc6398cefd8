//! A command that waits, and the memo of it that its gateway keeps.
//!
//! What a worker knows of those who wait is in its private memory and dies with it. So when it parks
//! a command it tells the gateway, in a frame whose body is a memo; a successor gets memo and command
//! back and has again what the predecessor had, the ticket above all: the order of those who wait.
//! Only workers read a memo.
//!
//! ```text
//!   memo    ticket u64 | deadline u64, 0 none | kind u8 | flags u8 | keys u32   | (len u32, bytes) ...
//!                                                                  | replaced u32 | (at u32, len u32, bytes) ...
//!   parked  memo's len u32 | memo | request frame
//! ```
//!
//! Not here: who is served when (`waiters`, `wake`).

use crate::blocking::{Block, WaitKey};
use crate::keyspace::ValueKind;
use proto::catalogue::StorageCommand;
use proto::frame::{Args, REQUEST_HEADER_BYTES, RequestHeader};
use proto::time::UnixMillis;
use std::rc::Rc;

const WAKES_WITHOUT_KEY: u8 = 1;

/// A command that waits.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    /// Its place among all who wait: who has the lower one came first.
    pub(crate) ticket: u64,
    /// The link that its client's gateway is at.
    pub(crate) link: u32,
    pub(crate) request: RequestHeader,
    pub(crate) command: StorageCommand,
    /// The packed arguments.
    pub(crate) body: Rc<[u8]>,
    pub(crate) kind: ValueKind,
    pub(crate) keys: Vec<WaitKey>,
    pub(crate) deadline: Option<UnixMillis>,
    pub(crate) wakes_without_key: bool,
    /// A predecessor died while it served the command: all it can get is that its outcome is unknown.
    pub(crate) is_lost: bool,
}

impl Parked {
    /// The command with `body` waits, as `block` wishes. Also returns the memo.
    pub(crate) fn new(
        ticket: u64,
        link: u32,
        (request, command): (&RequestHeader, StorageCommand),
        body: &[u8],
        block: Block,
    ) -> (Self, Vec<u8>) {
        let memo = memo(ticket, &block);
        let parked = Self {
            ticket,
            link,
            request: *request,
            command,
            body: with_replaced(body, request.argc, &block.replaced),
            kind: block.kind,
            keys: block.keys,
            deadline: block.deadline,
            wakes_without_key: block.wakes_without_key,
            is_lost: false,
        };
        (parked, memo)
    }

    /// What a gateway has sent back for `link`; `None` if it makes no sense.
    pub(crate) fn from_gateway(link: u32, bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let memo_len = bytes.u32()?;
        let mut memo = Reader(bytes.take(memo_len as usize)?);
        let frame = bytes.0;
        let request = RequestHeader::decode(frame).ok()?;
        let body = frame.get(REQUEST_HEADER_BYTES..request.len as usize)?;
        let command = StorageCommand::from_u16(request.command)?;
        let ticket = memo.u64()?;
        let deadline = memo.u64()?;
        let kind = *ValueKind::ALL.get(usize::from(memo.u8()?))?;
        let flags = memo.u8()?;
        let mut keys = Vec::new();
        for _ in 0..memo.u32()? {
            keys.push((request.database, memo.bytes()?.into()));
        }
        let mut replaced = Vec::new();
        for _ in 0..memo.u32()? {
            replaced.push((memo.u32()? as usize, memo.bytes()?.to_vec()));
        }
        Some(Self {
            ticket,
            link,
            request,
            command,
            body: with_replaced(body, request.argc, &replaced),
            kind,
            keys,
            deadline: (deadline > 0).then_some(UnixMillis(deadline)),
            wakes_without_key: flags & WAKES_WITHOUT_KEY != 0,
            is_lost: false,
        })
    }
}

fn memo(ticket: u64, block: &Block) -> Vec<u8> {
    let mut memo = Vec::with_capacity(64);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    memo.extend_from_slice(&ticket.to_le_bytes());
    let deadline = block.deadline.map_or(0, UnixMillis::get);
    memo.extend_from_slice(&deadline.to_le_bytes());
    let flags = if block.wakes_without_key {
        WAKES_WITHOUT_KEY
    } else {
        0
    };
    memo.extend_from_slice(&[block.kind as u8, flags]);
    memo.extend_from_slice(&number(block.keys.len()));
    for (_, key) in &block.keys {
        memo.extend_from_slice(&number(key.len()));
        memo.extend_from_slice(key);
    }
    memo.extend_from_slice(&number(block.replaced.len()));
    for (at, bytes) in &block.replaced {
        memo.extend_from_slice(&number(*at));
        memo.extend_from_slice(&number(bytes.len()));
        memo.extend_from_slice(bytes);
    }
    memo
}

/// The packed arguments with some of them replaced.
fn with_replaced(body: &[u8], argc: u32, replaced: &[(usize, Vec<u8>)]) -> Rc<[u8]> {
    let mut spans = Vec::new();
    let Ok(args) = Args::new(body, argc, &mut spans) else {
        return body.into();
    };
    if replaced.is_empty() {
        return body.into();
    }
    let mut out = Vec::with_capacity(body.len() + 64);
    for at in 1..args.len() {
        let new = replaced.iter().find(|(place, _)| *place == at);
        let bytes = new.map_or(args.get(at), |(_, bytes)| bytes);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out.into()
}

/// Reads numbers and bytes; `None` where they end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::TimeoutReply;
    use proptest::prelude::*;
    use proto::frame::{RequestKind, write_request};

    fn header(argc: usize) -> RequestHeader {
        RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: 1,
            command: StorageCommand::GetDel as u16,
            connection: 2,
            generation: 3,
            sequence: 4,
            slot: 5,
            database: 6,
            argc: u32::try_from(argc).unwrap(),
            part: 0,
        }
    }

    fn block(keys: &[&[u8]], replaced: Vec<(usize, Vec<u8>)>) -> Block {
        Block {
            kind: ValueKind::String,
            keys: keys.iter().map(|key| (6, (*key).into())).collect(),
            deadline: Some(UnixMillis(77)),
            on_timeout: TimeoutReply::Null,
            wakes_without_key: true,
            replaced,
        }
    }

    fn frame(arguments: &[&[u8]]) -> Vec<u8> {
        let mut frame = vec![0; 1000];
        let header = header(arguments.len() + 1);
        let len = write_request(&mut frame, header, arguments.iter().copied()).unwrap();
        frame.truncate(len);
        frame
    }

    fn sent_back(memo: &[u8], frame: &[u8]) -> Vec<u8> {
        let len = u32::try_from(memo.len()).unwrap().to_le_bytes();
        [&len, memo, frame].concat()
    }

    #[test]
    fn a_parked_command_comes_back_as_it_was() {
        let frame = frame(&[b"a", b"$", b"b"]);
        let request = RequestHeader::decode(&frame).unwrap();
        let body = &frame[REQUEST_HEADER_BYTES..];
        let block = block(&[b"a", b"b"], vec![(2, b"12-3".to_vec())]);
        let whom = (&request, StorageCommand::GetDel);
        let (before, memo) = Parked::new(9, 1, whom, body, block);
        assert_eq!(&*before.body, b"\x01\0\0\0a\x04\0\0\x0012-3\x01\0\0\0b");
        let after = Parked::from_gateway(1, &sent_back(&memo, &frame)).unwrap();
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
    }

    proptest! {
        #[test]
        fn garbage_makes_no_sense_and_no_panic(
            cut in 0usize..200,
            at in 0usize..200,
            byte: u8,
        ) {
            let frame = frame(&[b"key", b"0"]);
            let request = RequestHeader::decode(&frame).unwrap();
            let whom = (&request, StorageCommand::GetDel);
            let body = &frame[REQUEST_HEADER_BYTES..];
            let (_, memo) = Parked::new(9, 1, whom, body, block(&[b"key"], Vec::new()));
            let mut bytes = sent_back(&memo, &frame);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            let _ = Parked::from_gateway(1, &bytes);
        }
    }
}
