//! XREAD and XREADGROUP over streams of several workers: each stream is read where it is.
//!
//! What can go wrong with any of them is looked for before the first one is read, so that a group is given
//! entries of all streams or of none.

use super::{Crossing, Words};
use crate::blocking::Block;
use crate::commands::stream::check_read;
use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::frame::Args;
use proto::resp::reply::ReplyWriter;
use proto::slot::slot_of;

/// Where the streams of a request are: the argument with the first key, and their number.
fn streams_of(args: Args<'_>) -> Option<(usize, usize)> {
    let is = |at: usize, word: &str| args.get(at).eq_ignore_ascii_case(word.as_bytes());
    let mut at = 1;
    while at < args.len() {
        at += match () {
            () if is(at, "STREAMS") => {
                let words = args.len() - at - 1;
                return (words > 0 && words.is_multiple_of(2)).then_some((at + 1, words / 2));
            }
            () if is(at, "GROUP") => 3,
            () if is(at, "BLOCK") || is(at, "COUNT") => 2,
            () => 1,
        };
    }
    None
}

impl Crossing<'_, '_> {
    pub(super) fn read_streams(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let Some((first, streams)) = streams_of(args) else {
            // It says what is wrong, before it looks at any key.
            return self.at(self.near.own(), command, args, out);
        };
        let one = |number: usize| {
            let options = (1..first).map(|at| args.get(at));
            let stream = [args.get(first + number), args.get(first + streams + number)];
            Words::of(options.chain(stream))
        };
        let is_group = command == StorageCommand::XReadGroup;
        for number in 0..streams {
            let words = one(number);
            let owner = self.near.owner_of(args.get(first + number));
            let slot = slot_of(args.get(first + number));
            let mut unwanted = Vec::new();
            self.with_context(owner, slot, &mut unwanted, |context| {
                check_read(context, words.args(), is_group)
            })?;
        }
        let mut elements = Vec::new();
        let mut served = 0;
        let mut waits: Option<Box<Block>> = None;
        let mut part = Vec::new();
        for number in 0..streams {
            let owner = self.near.owner_of(args.get(first + number));
            part.clear();
            match self.at(owner, command, one(number).args(), &mut part)? {
                Some(mut block) => {
                    for (at, _) in &mut block.replaced {
                        *at = first + streams + number;
                    }
                    match &mut waits {
                        Some(all) => {
                            all.keys.extend(block.keys);
                            all.replaced.extend(block.replaced);
                        }
                        None => waits = Some(block),
                    }
                }
                None => {
                    let head = part.get(..2);
                    if head == Some(b"*1") || head == Some(b"%1") {
                        elements.extend_from_slice(part.get(4..).unwrap_or_default());
                        served += 1;
                    }
                }
            }
        }
        let mut reply = ReplyWriter::to_vec(out, self.manner.is_resp3);
        if served > 0 {
            if reply.resp3() {
                reply.map(served);
            } else {
                reply.array(served);
            }
            reply.raw(&elements);
            return Ok(None);
        }
        if waits.is_none() {
            reply.null_array();
        }
        Ok(waits)
    }
}
