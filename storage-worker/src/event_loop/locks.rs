//! Slots that commands over several workers have locked, and what these are to execute here.
//!
//! ```text
//!   gateway   Prepare(request) ──> worker: its slots are free?  lock them, keep the request     Lock 1
//!                                          locked by others?    "in turn": it queues            ...
//!                                                               otherwise it is dropped         Lock 0
//!             all workers said 1
//!   gateway   Go ───────────────> worker: executes the request, unlocks                         reply
//! ```
//!
//! All of this goes over the side ring. An ordinary request that needs a locked slot stops its link: it stays
//! at the head of its ring until the slot is unlocked, and those behind it with it, while other links go on.
//! Nothing of a lock ever waits behind it, so whoever holds one can always finish.
//!
//! Locks are shared by requests that only read. Nobody overtakes a request that queues for the same slot.
//! Everything is in private memory: a successor knows of no locks, and gateways prepare again what they have
//! not told it to execute.
//!
//! Not here: who asks for locks, in which order (the gateway's `atomic`).

use crate::engine::Engine;
use proto::catalogue::{KeyAt, Route, StorageCommand, extract_from};
use proto::frame::{
    Args, READY, REQUEST_HEADER_BYTES, RequestHeader, UnitItem, flags, lock_answer,
};
use proto::slot::slot_of;
use std::collections::HashMap;
use std::rc::Rc;

/// A request that is to be executed when its sender says so.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) link: u32,
    pub(crate) request: RequestHeader,
    pub(crate) command: StorageCommand,
    pub(crate) body: Rc<[u8]>,
    slots: Vec<u16>,
    is_granted: bool,
}

/// Who has locked a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    readers: u32,
    has_writer: bool,
}

/// An answer to somebody who prepares: link, request, `proto::frame::lock_answer`.
pub(crate) type LockAnswer = (u32, RequestHeader, u32);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: HashMap<u16, Hold>,
    prepared: Vec<Prepared>,
    /// To be sent.
    pub(crate) answers: Vec<LockAnswer>,
    /// Something was unlocked: links that were stopped go on.
    is_released: bool,
    found: Vec<KeyAt>,
}

impl Locks {
    /// Whether any slot is locked.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether something was unlocked since the last call.
    pub(crate) fn take_released(&mut self) -> bool {
        std::mem::take(&mut self.is_released)
    }

    /// Whether a request needs a slot that is locked by somebody else.
    pub(crate) fn block(&mut self, request: &RequestHeader, body: &[u8]) -> bool {
        let Some(command) = StorageCommand::from_u16(request.command) else {
            return false;
        };
        let writes = Engine::writes(command);
        let mut slots = Vec::new();
        let is_everywhere = self.slots_of(request, command, body, &mut slots);
        if is_everywhere {
            return self.held.values().any(|hold| writes || hold.has_writer);
        }
        slots.iter().any(|slot| self.conflicts(*slot, writes))
    }

    /// The same for a request that has come in parts and is whole.
    pub(crate) fn block_frame(&mut self, frame: &[u8]) -> bool {
        RequestHeader::decode(frame).is_ok_and(|header| {
            let body = frame.get(REQUEST_HEADER_BYTES..header.len as usize);
            self.block(&header, body.unwrap_or_default())
        })
    }

    fn conflicts(&self, slot: u16, writes: bool) -> bool {
        let hold = self.held.get(&slot);
        hold.is_some_and(|hold| hold.has_writer || writes && hold.readers > 0)
    }

    /// Appends the slots of a request's keys. True if it may need any slot.
    fn slots_of(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        slots: &mut Vec<u16>,
    ) -> bool {
        let mut spans = Vec::new();
        let Ok(args) = Args::new(body, request.argc, &mut spans) else {
            return false;
        };
        if matches!(command, StorageCommand::Unit | StorageCommand::UnitOfReads) {
            return args.iter_from(2).any(|item| {
                let Some((item, body)) =
                    UnitItem::decode(item).filter(|(item, _)| item.flags & READY == 0)
                else {
                    return false;
                };
                let inner = RequestHeader {
                    argc: item.argc,
                    ..*request
                };
                match StorageCommand::from_u16(item.command) {
                    Some(command) if !Engine::is_by_loop(command) => {
                        self.slots_of(&inner, command, body, slots)
                    }
                    _ => false,
                }
            });
        }
        let mut found = std::mem::take(&mut self.found);
        extract_from(command, args, &mut found);
        slots.extend(
            found
                .iter()
                .map(|key| slot_of(args.get(key.position as usize))),
        );
        self.found = found;
        matches!(
            command.spec().route,
            Route::Every(_) | Route::Cursor | Route::RandomWorker | Route::Script
        )
    }

    /// Takes a request that is to be executed later.
    pub(crate) fn prepare(&mut self, link: u32, frame: &[u8]) {
        let Ok(request) = RequestHeader::decode(frame) else {
            return;
        };
        let body = frame
            .get(REQUEST_HEADER_BYTES..request.len as usize)
            .unwrap_or_default();
        let Some(command) = StorageCommand::from_u16(request.command) else {
            return self.answers.push((link, request, lock_answer::REFUSED));
        };
        self.drop_prepared(|it| is_of(it, link, &request));
        let mut slots = Vec::new();
        self.slots_of(&request, command, body, &mut slots);
        slots.sort_unstable();
        slots.dedup();
        let mut prepared = Prepared {
            link,
            request,
            command,
            body: body.into(),
            slots,
            is_granted: false,
        };
        let is_free = self.is_free(&prepared, self.prepared.len());
        if is_free {
            self.grant(&mut prepared);
        } else if request.flags & flags::IN_TURN == 0 {
            return self.answers.push((link, request, lock_answer::REFUSED));
        }
        self.prepared.push(prepared);
    }

    /// Whether nobody holds a lock that a request needs, and none of the first `before` queues for one.
    fn is_free(&self, wanted: &Prepared, before: usize) -> bool {
        let writes = Engine::writes(wanted.command);
        let queued = self.prepared[..before].iter().filter(|it| !it.is_granted);
        let is_behind = |other: &Prepared| {
            let may_share = !writes && !Engine::writes(other.command);
            !may_share
                && other
                    .slots
                    .iter()
                    .any(|slot| wanted.slots.binary_search(slot).is_ok())
        };
        !wanted
            .slots
            .iter()
            .any(|slot| self.conflicts(*slot, writes))
            && !queued.into_iter().any(is_behind)
    }

    fn grant(&mut self, prepared: &mut Prepared) {
        prepared.is_granted = true;
        let writes = Engine::writes(prepared.command);
        for slot in &prepared.slots {
            let hold = self.held.entry(*slot).or_default();
            hold.has_writer |= writes;
            hold.readers += u32::from(!writes);
        }
        self.answers
            .push((prepared.link, prepared.request, lock_answer::LOCKED));
    }

    /// What a connection has prepared and has its locks for; they are held until [`Locks::release`].
    pub(crate) fn take(&mut self, link: u32, header: &RequestHeader) -> Option<Prepared> {
        let at = self.prepared.iter().position(|it| {
            it.is_granted && is_of(it, link, header) && it.request.sequence == header.sequence
        })?;
        Some(self.prepared.remove(at))
    }

    /// Unlocks what was taken.
    pub(crate) fn release(&mut self, prepared: &Prepared) {
        self.unlock(prepared);
        self.grant_waiting();
    }

    fn unlock(&mut self, prepared: &Prepared) {
        let writes = Engine::writes(prepared.command);
        for slot in prepared.slots.iter().filter(|_| prepared.is_granted) {
            if let Some(hold) = self.held.get_mut(slot) {
                hold.has_writer &= !writes;
                hold.readers -= u32::from(!writes);
                if hold.readers == 0 && !hold.has_writer {
                    self.held.remove(slot);
                }
            }
        }
        self.is_released = true;
    }

    /// The locks of those that queue and need not any more, first come first served.
    fn grant_waiting(&mut self) {
        for at in 0..self.prepared.len() {
            if !self.prepared[at].is_granted && self.is_free(&self.prepared[at], at) {
                let mut prepared = self.prepared.remove(at);
                self.grant(&mut prepared);
                self.prepared.insert(at, prepared);
            }
        }
    }

    /// A connection does not want any more what it has prepared.
    pub(crate) fn abort(&mut self, link: u32, header: &RequestHeader) {
        self.drop_prepared(|it| is_of(it, link, header));
    }

    /// All connections of a link are gone.
    pub(crate) fn remove_link(&mut self, link: u32) {
        self.answers.retain(|(to, ..)| *to != link);
        self.drop_prepared(|it| it.link == link);
    }

    fn drop_prepared(&mut self, is_it: impl Fn(&Prepared) -> bool) {
        let mut at = 0;
        let mut any = false;
        while at < self.prepared.len() {
            if is_it(&self.prepared[at]) {
                let prepared = self.prepared.remove(at);
                self.unlock(&prepared);
                any = true;
            } else {
                at += 1;
            }
        }
        if any {
            self.grant_waiting();
        }
    }
}

fn is_of(prepared: &Prepared, link: u32, header: &RequestHeader) -> bool {
    let of = &prepared.request;
    (prepared.link, of.connection, of.generation) == (link, header.connection, header.generation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::frame::{RequestKind, write_request};

    fn frame(connection: u32, command: StorageCommand, in_turn: bool, keys: &[&str]) -> Vec<u8> {
        let header = RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: if in_turn { flags::IN_TURN } else { 0 },
            command: command as u16,
            connection,
            generation: 1,
            sequence: 7,
            slot: 0,
            database: 0,
            argc: keys.len() as u32 + 1,
            part: 1,
        };
        let mut frame = vec![0; 200];
        let words = keys.iter().map(|key| key.as_bytes());
        let len = write_request(&mut frame, header, words).unwrap();
        frame.truncate(len);
        frame
    }

    fn answers(locks: &mut Locks) -> Vec<(u32, u32)> {
        locks
            .answers
            .drain(..)
            .map(|(_, request, is_granted)| (request.connection, is_granted))
            .collect()
    }

    fn header(connection: u32) -> RequestHeader {
        RequestHeader::decode(&frame(connection, StorageCommand::Del, false, &["x"])).unwrap()
    }

    #[test]
    fn locks_are_shared_by_readers_and_given_in_turn() {
        use StorageCommand::{Del, Exists, Get, Set};
        let mut locks = Locks::default();
        locks.prepare(1, &frame(1, Exists, false, &["a", "b"]));
        locks.prepare(1, &frame(2, Exists, false, &["b"]));
        locks.prepare(1, &frame(3, Del, false, &["b", "c"]));
        assert_eq!(answers(&mut locks), [(1, 1), (2, 1), (3, 0)]);
        locks.prepare(1, &frame(3, Del, true, &["b", "c"]));
        // It queues, and nobody overtakes it.
        locks.prepare(1, &frame(4, Exists, false, &["b"]));
        locks.prepare(1, &frame(5, Del, true, &["c"]));
        locks.prepare(1, &frame(6, Del, false, &["d"]));
        assert_eq!(answers(&mut locks), [(4, 0), (6, 1)]);
        assert!(!locks.block_frame(&frame(9, Get, false, &["a"])));
        assert!(locks.block_frame(&frame(9, Set, false, &["a", "1"])));
        assert!(locks.block_frame(&frame(9, Get, false, &["d"])));
        assert!(!locks.block_frame(&frame(9, Set, false, &["e", "1"])));
        let first = locks.take(1, &header(1)).unwrap();
        locks.release(&first);
        assert_eq!(answers(&mut locks), []);
        locks.abort(1, &header(2));
        assert_eq!(answers(&mut locks), [(3, 1)]);
        assert!(locks.take(1, &header(5)).is_none());
        assert!(locks.take_released());
        locks.remove_link(1);
        assert!(!locks.is_any());
    }
}
