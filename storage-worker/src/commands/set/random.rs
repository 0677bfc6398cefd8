//! Members by chance: SPOP and SRANDMEMBER.
//!
//! How `count` different members are chosen, each choice equally likely:
//!
//! | form | few of many | many |
//! |---|---|---|
//! | packed | one walk that takes each member with the chance (wanted / left) | the same |
//! | table | draws, those that came before are drawn again | the same walk |
//!
//! SPOP removes what it draws from a table one by one, unless so few remain that it is quicker to
//! move these to a new set (which then chooses its form anew, as in Redis).

use hashbrown::HashSet;

use super::build::{Limits, NewSet, SetMut};
use super::value::SetRef;
use crate::collections::Structure;
use crate::collections::set_table::SetTable;
use crate::commands::prelude::*;
use crate::random::Random;

/// A table is walked if more than one in so many members is wanted.
const WALK_SHARE: usize = 3;
/// The rest is moved if it is so many times smaller than what is popped.
const MOVE_SHARE: usize = 5;

/// Decides one by one which `wanted` of `left` things are taken.
struct Choice<'r> {
    wanted: usize,
    left: usize,
    rng: &'r mut Random,
}

impl<'r> Choice<'r> {
    fn new(wanted: usize, left: usize, rng: &'r mut Random) -> Self {
        Choice { wanted, left, rng }
    }

    /// Whether the next one is taken. After the last wanted one, nothing is.
    fn next(&mut self) -> bool {
        let is_taken = (self.rng.below(self.left as u64) as usize) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(is_taken);
        is_taken
    }
}

/// SPOP key [count]
pub(crate) fn spop(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::of(ctx);
    let count = match args.len() {
        ..=2 => None,
        3 => {
            let count = parse_i64(args.get(2)).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::NotPositive)?)
        }
        _ => return Err(CommandError::Syntax),
    };
    let Some(value) = ctx.keyspace.value_mut(&key, ctx.now) else {
        match count {
            None => ctx.reply.null(),
            Some(_) => ctx.reply.set(0),
        }
        return Ok(());
    };
    let mut set = SetMut::new(value, limits)?;
    let reply = &mut ctx.reply;
    let size = set.as_ref().len();
    let popped = match count {
        None => {
            set.pop(ctx.rng, |member| reply_string(reply, member));
            1
        }
        Some(count) => {
            let count = count.min(size);
            reply.set(count);
            if count == size {
                reply_all(reply, set.as_ref().iter());
            } else {
                pop_some(&mut set, count, limits, ctx.rng, reply);
            }
            count
        }
    };
    if popped == size {
        set.delete();
    }
    ctx.changed(popped as u64);
    Ok(())
}

fn reply_all<'m>(reply: &mut ReplyWriter<'_>, members: impl Iterator<Item = StringRef<'m>>) {
    members.for_each(|member| reply_string(reply, member));
}

/// Removes `count` members, not all, and writes them to the reply.
fn pop_some(
    set: &mut SetMut<'_>,
    count: usize,
    limits: Limits,
    rng: &mut Random,
    reply: &mut ReplyWriter<'_>,
) {
    let left = set.as_ref().len() - count;
    let rest = match set.table() {
        Some(table) if left.saturating_mul(MOVE_SHARE) > count => {
            for _ in 0..count {
                table.pop(|| rng.next_u64(), |member| reply.bulk(member));
            }
            return;
        }
        Some(table) => {
            let mut rest = NewSet::listpack(limits);
            for _ in 0..left {
                table.pop(
                    || rng.next_u64(),
                    |member| {
                        rest.add(StringRef::Bytes(member));
                    },
                );
            }
            table.iter().for_each(|member| reply.bulk(member));
            rest
        }
        None => {
            let mut rest = match set.as_ref() {
                SetRef::Intset(_) => NewSet::intset(limits),
                _ => NewSet::listpack(limits),
            };
            let mut choice = Choice::new(count, count + left, rng);
            for member in set.as_ref().iter() {
                if choice.next() {
                    reply_string(reply, member);
                } else {
                    rest.keep(member);
                }
            }
            rest
        }
    };
    set.replace(rest);
}

/// SRANDMEMBER key [count]
pub(crate) fn srandmember(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let count = match args.len() {
        ..=2 => None,
        3 => Some(random_count(args.get(2))?),
        _ => return Err(CommandError::Syntax),
    };
    let reply = &mut ctx.reply;
    let Some(set) = SetRef::find(ctx.keyspace, &key, ctx.now, ctx.access)? else {
        match count {
            None => reply.null(),
            Some(_) => reply.array(0),
        }
        return Ok(());
    };
    match count {
        None => match set.random(ctx.rng) {
            Some(member) => reply_string(reply, member),
            None => reply.null(),
        },
        Some(Count::Different(count)) => {
            let count = count.min(set.len());
            reply.array(count);
            match set {
                SetRef::Table(table) if count < table.len() / WALK_SHARE => {
                    draw_different(table, count, ctx.rng, reply);
                }
                _ => {
                    let mut choice = Choice::new(count, set.len(), ctx.rng);
                    reply_all(reply, set.iter().filter(|_| choice.next()));
                }
            }
        }
        Some(Count::Any(count)) => {
            check_drawn_count(count)?;
            reply.array(count);
            draw_any(set, count, ctx.rng, reply)?;
        }
    }
    Ok(())
}

/// How many members SRANDMEMBER returns.
#[derive(Clone, Copy, Debug)]
enum Count {
    /// So many different ones, at most all.
    Different(usize),
    /// So many, whether or not they came before.
    Any(usize),
}

/// Reads a count that says by its sign whether members may come twice.
fn random_count(text: &[u8]) -> Result<Count, CommandError> {
    let count = integer(text)?;
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 {
        return Ok(Count::Different(size));
    }
    if count == i64::MIN {
        return Err(CommandError::NotInSymmetricRange);
    }
    Ok(Count::Any(size))
}

/// Writes `count` different members of a much larger table.
fn draw_different(table: &SetTable, count: usize, rng: &mut Random, reply: &mut ReplyWriter<'_>) {
    let mut drawn = HashSet::with_capacity(count);
    while drawn.len() < count {
        let Some(member) = table.random(|| rng.next_u64()) else {
            return;
        };
        // A member of the set has one address.
        if drawn.insert(member.as_ptr()) {
            reply.bulk(member);
        }
    }
}

/// Writes `count` members, each drawn from all.
fn draw_any(
    set: SetRef<'_>,
    count: usize,
    rng: &mut Random,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    // To find one in a listpack takes a walk, so all are found at once.
    let listed: Option<Vec<StringRef<'_>>> = match set {
        SetRef::Listpack(listpack) if count > 1 => Some(listpack.iter().collect()),
        _ => None,
    };
    for _ in 0..count {
        let member = match &listed {
            Some(members) => Some(members[rng.below(members.len() as u64) as usize]),
            None => set.random(rng),
        };
        let Some(member) = member else { break };
        reply_string(reply, member);
        check_drawn_bytes(reply)?;
    }
    Ok(())
}
