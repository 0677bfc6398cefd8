//! Commands that take an element at one worker and put it in at another.

use super::{Crossing, Words};
use crate::blocking::Block;
use crate::keyspace::{Access, Key, ValueKind};
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::frame::Args;
use proto::slot::slot_of;

impl Crossing<'_, '_> {
    /// What a key holds.
    fn kind_of(&mut self, name: &[u8]) -> Option<ValueKind> {
        let key = Key::new(self.ground.hash_seed, self.manner.db, slot_of(name), name);
        let now = self.ground.now;
        let owner = self.near.owner_of(name);
        self.look(owner, |keyspace| {
            let found = keyspace.find(&key, now, Access::Write);
            found.map(|found| found.kind())
        })
    }

    fn check_kind(&mut self, name: &[u8], kind: ValueKind) -> Result<bool, CommandError> {
        match self.kind_of(name) {
            None => Ok(false),
            Some(found) if found == kind => Ok(true),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// LMOVE, RPOPLPUSH and their blocking forms.
    pub(super) fn move_element(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        use StorageCommand as C;
        let (from, to) = (args.get(1), args.get(2));
        let source = self.near.owner_of(from);
        // What is wrong with the arguments, and what is said when there is nothing, is the handler's business.
        let is_list = self.kind_of(from) == Some(ValueKind::List);
        if !is_list || !are_ends(command, args) {
            return self.at(source, command, args, out);
        }
        let timeout = match command {
            C::BLMove => Some(args.get(5)),
            C::BRPopLPush => Some(args.get(3)),
            _ => None,
        };
        if let Some(timeout) = timeout {
            let mut unwanted = Vec::new();
            self.with_context(source, 0, &mut unwanted, |context| {
                context.deadline_in_seconds(timeout).map(|_| ())
            })?;
        }
        self.check_kind(to, ValueKind::List)?;
        let is_head = |at: usize| args.get(at).eq_ignore_ascii_case(b"LEFT");
        let (takes_head, puts_head) = match command {
            C::LMove | C::BLMove => (is_head(3), is_head(4)),
            _ => (false, true),
        };
        let take = if takes_head { C::LPop } else { C::RPop };
        let put = if puts_head { C::LPush } else { C::RPush };
        let start = out.len();
        self.at(source, take, Words::of([from]).args(), out)?;
        let element = bulk(&out[start..]).ok_or(CommandError::Internal)?.to_vec();
        let mut length = Vec::new();
        let target = self.near.owner_of(to);
        self.at(
            target,
            put,
            Words::of([to, &element[..]]).args(),
            &mut length,
        )?;
        Ok(None)
    }

    /// SMOVE
    pub(super) fn move_member(
        &mut self,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        use StorageCommand as C;
        let (from, to, member) = (args.get(1), args.get(2), args.get(3));
        let source = self.near.owner_of(from);
        if !self.check_kind(from, ValueKind::Set)? {
            out.extend_from_slice(b":0\r\n");
            return Ok(None);
        }
        self.check_kind(to, ValueKind::Set)?;
        let start = out.len();
        self.at(source, C::SRem, Words::of([from, member]).args(), out)?;
        if &out[start..] == b":1\r\n" {
            let target = self.near.owner_of(to);
            let mut added = Vec::new();
            self.at(target, C::SAdd, Words::of([to, member]).args(), &mut added)?;
        }
        Ok(None)
    }
}

/// Whether the ends are named as they must be.
fn are_ends(command: StorageCommand, args: Args<'_>) -> bool {
    use StorageCommand as C;
    let is_end = |at: usize| {
        let word = args.get(at);
        word.eq_ignore_ascii_case(b"LEFT") || word.eq_ignore_ascii_case(b"RIGHT")
    };
    match command {
        C::LMove => is_end(3) && is_end(4),
        C::BLMove => is_end(3) && is_end(4),
        _ => true,
    }
}

/// The text of a bulk string.
fn bulk(reply: &[u8]) -> Option<&[u8]> {
    let line = memchr::memchr(b'\n', reply)?;
    if reply.first() != Some(&b'$') {
        return None;
    }
    reply.get(line + 1..reply.len().checked_sub(2)?)
}
