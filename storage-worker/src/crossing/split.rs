//! Commands that are the same for each of their keys, or for each worker: their parts run where they belong,
//! and the replies become one.

use super::Crossing;
use crate::blocking::Block;
use crate::random::Random;
use proto::CommandError;
use proto::catalogue::{Merge, StorageCommand};
use proto::cursor;
use proto::frame::Args;
use proto::number::{parse_i64, parse_u64};
use proto::resp::reply::ReplyWriter;
use proto::slot::SLOT_COUNT;

/// Replies of parts on their way to become one.
#[derive(Debug)]
struct Joined {
    merge: Merge,
    sum: i64,
    /// Elements and their number.
    elements: Vec<u8>,
    count: usize,
    first: Option<Vec<u8>>,
}

impl Joined {
    fn new(merge: Merge) -> Self {
        Self {
            merge,
            sum: 0,
            elements: Vec::new(),
            count: 0,
            first: None,
        }
    }

    /// Takes the reply of a part, which is no error.
    fn take(&mut self, reply: &[u8]) -> Result<(), CommandError> {
        match self.merge {
            Merge::Sum => {
                let digits = reply.strip_prefix(b":").unwrap_or_default();
                let digits = digits.strip_suffix(b"\r\n").unwrap_or_default();
                let number = parse_i64(digits).ok_or(CommandError::Internal)?;
                self.sum = self.sum.saturating_add(number);
            }
            Merge::Zip | Merge::Concat => {
                let end = memchr::memchr(b'\n', reply).ok_or(CommandError::Internal)?;
                let digits = reply.get(1..end.saturating_sub(1)).unwrap_or_default();
                let count = parse_u64(digits).ok_or(CommandError::Internal)?;
                self.count += usize::try_from(count).unwrap_or(usize::MAX);
                self.elements.extend_from_slice(&reply[end + 1..]);
            }
            Merge::AllOk | Merge::First => {
                self.first.get_or_insert_with(|| reply.to_vec());
            }
        }
        Ok(())
    }

    fn finish(self, reply: &mut ReplyWriter<'_>) {
        match self.merge {
            Merge::Sum => reply.int(self.sum),
            Merge::Zip | Merge::Concat => {
                reply.array(self.count);
                reply.raw(&self.elements);
            }
            Merge::AllOk | Merge::First => reply.raw(&self.first.unwrap_or_default()),
        }
    }
}

impl Crossing<'_, '_> {
    /// A command that is split by key: each run of keys with one owner is a part.
    pub(super) fn split(
        &mut self,
        command: StorageCommand,
        merge: Merge,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let spec = command.spec();
        let (first, last, step) = spec.keys.range(args.len()).ok_or(CommandError::Internal)?;
        // MSET a 1 b
        if !(last + 1 - first).is_multiple_of(step) || last >= args.len() {
            return Err(CommandError::Arity { name: spec.name });
        }
        let mut joined = Joined::new(merge);
        let mut part = Vec::new();
        let mut from = first;
        let mut owner = self.near.owner_of(args.get(first));
        let mut at = first;
        while at <= last {
            at += step;
            let next = (at <= last).then(|| self.near.owner_of(args.get(at)));
            if next == Some(owner) {
                continue;
            }
            let (bytes, spans) = args.spans(from, at);
            part.clear();
            self.at(owner, command, Args::from_spans(bytes, spans), &mut part)?;
            joined.take(&part)?;
            if let Some(next) = next {
                (from, owner) = (at, next);
            }
        }
        joined.finish(&mut ReplyWriter::to_vec(out, self.manner.is_resp3));
        Ok(None)
    }

    /// A command that every worker runs.
    pub(super) fn everywhere(
        &mut self,
        command: StorageCommand,
        merge: Merge,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let mut joined = Joined::new(merge);
        let mut part = Vec::new();
        for worker in self.near.all().iter() {
            part.clear();
            // What is wrong with it is found before anything changes, by the first one.
            self.at_part(worker, command, args, worker == 0, &mut part)?;
            joined.take(&part)?;
        }
        joined.finish(&mut ReplyWriter::to_vec(out, self.manner.is_resp3));
        Ok(None)
    }

    /// RANDOMKEY: a worker that is as likely as it has keys; then the others, should its keys all be dead.
    pub(super) fn random_key(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let db = self.manner.db;
        let workers: Vec<usize> = self.near.all().iter().collect();
        let mut keys: Vec<u64> = Vec::new();
        for &worker in &workers {
            keys.push(self.look(worker, |keyspace| keyspace.len(db)));
        }
        let total: u64 = keys.iter().sum();
        let mut ticket = match total {
            0 => 0,
            total => Random::next_u64(self.ground.rng) % total,
        };
        let chosen = keys.iter().position(|&keys| {
            let is_here = ticket < keys;
            ticket = ticket.saturating_sub(keys);
            is_here
        });
        let start = out.len();
        for offset in 0..workers.len() {
            let worker = workers[(chosen.unwrap_or(0) + offset) % workers.len()];
            out.truncate(start);
            self.at(worker, command, args, out)?;
            // Nothing is `$-1` or `_`.
            if out.get(start) == Some(&b'$') && out.get(start + 1) != Some(&b'-') {
                break;
            }
        }
        Ok(None)
    }

    /// SCAN: the page of the worker whose slot the cursor names; behind its last one it goes on at the first
    /// slot of the next one.
    pub(super) fn scan(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let at = parse_u64(args.get(1)).unwrap_or(0);
        let slot = cursor::slot(at);
        let owner = self.near.owner(slot);
        let start = out.len();
        self.at(owner, command, args, out)?;
        let mut end = slot;
        while end + 1 < SLOT_COUNT && self.near.owner(end + 1) == owner {
            end += 1;
        }
        if end + 1 < SLOT_COUNT
            && let Some((next, rest)) = page_cursor(&out[start..])
            && (next == 0 || cursor::slot(next) > end)
        {
            let rest = rest.to_vec();
            out.truncate(start);
            let mut reply = ReplyWriter::to_vec(out, self.manner.is_resp3);
            reply.array(2);
            reply.bulk(cursor::start_of(end + 1).to_string().as_bytes());
            reply.raw(&rest);
        }
        Ok(None)
    }
}

/// Cursor of a page of SCAN, and what stands behind it.
fn page_cursor(page: &[u8]) -> Option<(u64, &[u8])> {
    let rest = page.strip_prefix(b"*2\r\n$")?;
    let line = memchr::memchr(b'\n', rest)?;
    let rest = &rest[line + 1..];
    let end = memchr::memchr(b'\r', rest)?;
    Some((parse_u64(&rest[..end])?, rest.get(end + 2..)?))
}
