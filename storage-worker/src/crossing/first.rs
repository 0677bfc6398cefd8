//! Commands that take from the first of their keys that has something: LMPOP, BLPOP and the like.

use super::{Crossing, Words};
use crate::blocking::Block;
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::frame::Args;
use proto::number::parse_i64;

impl Crossing<'_, '_> {
    /// `BLPOP key ... timeout` and its relatives.
    pub(super) fn first_of(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let last = args.len() - 1;
        let requests = (1..last).map(|at| {
            let key = args.get(at);
            (key, Words::of([key, args.get(last)]))
        });
        self.try_each(command, requests, out)
    }

    /// `LMPOP numkeys key ... where [COUNT count]`; blocking ones have a timeout in front.
    pub(super) fn first_of_counted(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        use StorageCommand as C;
        let count_at = if matches!(command, C::BLMPop | C::BZMPop) {
            2
        } else {
            1
        };
        let count = parse_i64(args.get(count_at)).and_then(|count| usize::try_from(count).ok());
        // Otherwise no keys would have been found.
        let count = count.ok_or(CommandError::Internal)?;
        let behind = count_at + 1 + count;
        let requests = (count_at + 1..behind).map(|at| {
            let key = args.get(at);
            let front = (1..count_at).map(|at| args.get(at));
            let words = front.chain([&b"1"[..], key]).chain(args.iter_from(behind));
            (key, Words::of(words))
        });
        self.try_each(command, requests, out)
    }

    fn try_each<'k>(
        &mut self,
        command: StorageCommand,
        requests: impl Iterator<Item = (&'k [u8], Words)>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let start = out.len();
        let mut waits: Option<Box<Block>> = None;
        for (key, words) in requests {
            let owner = self.near.owner_of(key);
            out.truncate(start);
            match self.at(owner, command, words.args(), out)? {
                Some(block) => match &mut waits {
                    Some(all) => all.keys.extend(block.keys),
                    None => waits = Some(block),
                },
                // Nothing is a null of either version.
                None if matches!(out.get(start..start + 2), Some(b"*-" | b"_\r" | b"$-")) => {}
                None => return Ok(None),
            }
        }
        Ok(waits)
    }
}
