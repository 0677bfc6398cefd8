//! What a worker's successor is told before it serves anybody: which commands of this thread's clients
//! waited at its predecessor.
//!
//! ```text
//!   begins | memo and command of one client, in pieces that fit | ... | all said
//! ```
//!
//! It goes over the side ring, because the ring of requests may be full, and nobody empties it before
//! this is said. What is said is a copy: if the successor dies, too, its own successor asks again, and
//! whatever was being told to the dead one is dropped.
//!
//! Not here: how a command comes to wait (`blocking`).

use std::collections::VecDeque;

use proto::frame::{REQUEST_HEADER_BYTES, RequestHeader, RequestKind, padded};

use crate::core::Core;
use crate::lanes::Who;

/// What is being told to a successor of a worker.
#[derive(Debug)]
pub(crate) struct Telling {
    worker: usize,
    epoch: u32,
    has_begun: bool,
    /// Who may wait there and is not told yet.
    queue: VecDeque<Who>,
    /// Header and bytes of the one that is being sent, and how many of them are.
    current: Option<(RequestHeader, Vec<u8>, usize)>,
}

impl Core {
    /// A worker's successor asks who of this thread's clients waited at its predecessor.
    pub(crate) fn begin_telling(&mut self, worker: usize, epoch: u32) {
        self.tellings.retain(|telling| telling.worker != worker);
        let mut queue = VecDeque::new();
        for (index, place) in (0u32..).zip(&mut self.connections) {
            let Some(connection) = place else { continue };
            let who = connection.who(index);
            if let Some(blocking) = &mut connection.blocking
                && blocking.worker == worker
            {
                blocking.forget_begun_memo();
                queue.push_back(who);
            }
        }
        tracing::debug!(
            worker,
            epoch,
            waiting = queue.len(),
            "telling a successor who waits"
        );
        self.tellings.push(Telling {
            worker,
            epoch,
            has_begun: false,
            queue,
            current: None,
        });
        self.tell_successors();
    }

    /// Goes on telling successors who waits, as far as there is room.
    pub(crate) fn tell_successors(&mut self) {
        let mut tellings = std::mem::take(&mut self.tellings);
        tellings.retain_mut(|telling| !self.tell(telling));
        self.tellings = tellings;
    }

    /// True once everything is said.
    fn tell(&mut self, telling: &mut Telling) -> bool {
        let worker = telling.worker;
        let Some(largest) = self.lanes.side_mut(worker).map(|side| side.largest()) else {
            return true;
        };
        let mut any = false;
        let done = loop {
            let piece = self.next_piece(telling, largest - REQUEST_HEADER_BYTES);
            let Some((header, bytes)) = piece else {
                break true;
            };
            let len = REQUEST_HEADER_BYTES + bytes.len();
            let Some(side) = self.lanes.side_mut(worker) else {
                break true;
            };
            if side.reserve(padded(len)).is_none() {
                side.want_space();
            }
            // The room may have come between the look and the question.
            let Some(place) = side.reserve(padded(len)) else {
                break false;
            };
            let header = RequestHeader {
                len: u32::try_from(len).unwrap_or(u32::MAX),
                ..header
            };
            if let Some((head, body)) = place.split_first_chunk_mut() {
                header.encode(head);
                body[..bytes.len()].copy_from_slice(bytes);
                body[bytes.len()..].fill(0);
            }
            side.commit(padded(len));
            let sent = bytes.len();
            telling.pass(&header, sent);
            any = true;
            if header.kind == RequestKind::Resume && header.part == 1 {
                break true;
            }
        };
        if any {
            self.lanes.publish_side(worker);
        }
        done
    }

    /// What is to be sent next: a mark, or a piece of a command with at most `most` bytes.
    fn next_piece<'t>(
        &self,
        telling: &'t mut Telling,
        most: usize,
    ) -> Option<(RequestHeader, &'t [u8])> {
        if !telling.has_begun {
            return Some((telling.mark(0), &[]));
        }
        while telling.current.is_none() {
            let Some(who) = telling.queue.pop_front() else {
                return Some((telling.mark(1), &[]));
            };
            let connection = self.get(who.index);
            let connection = connection.filter(|it| it.generation == who.generation);
            let blocking = connection.and_then(|it| it.blocking.as_ref());
            // One that has not said that it waits is still in the request ring.
            if let Some(blocking) = blocking.filter(|it| it.waits()) {
                telling.current = Some((blocking.header, blocking.to_successor(), 0));
            }
        }
        let (header, bytes, offset) = telling.current.as_ref()?;
        let end = bytes.len().min(offset + most);
        let header = RequestHeader {
            kind: RequestKind::Parked,
            argc: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            part: u32::try_from(*offset).unwrap_or(u32::MAX),
            ..*header
        };
        Some((header, &bytes[*offset..end]))
    }
}

impl Telling {
    /// The frame that begins or ends it.
    fn mark(&self, part: u32) -> RequestHeader {
        RequestHeader::resume(self.epoch, part)
    }

    /// The piece with this header and so many bytes is sent.
    fn pass(&mut self, header: &RequestHeader, sent: usize) {
        if header.kind == RequestKind::Resume {
            self.has_begun = true;
        } else if let Some((_, bytes, offset)) = &mut self.current {
            *offset += sent;
            if *offset == bytes.len() {
                self.current = None;
            }
        }
    }
}
