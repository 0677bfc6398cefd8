//! Fields by chance: HRANDFIELD.
//!
//! ```text
//!   (nothing)          one field
//!   count >= 0         that many different ones, or all if there are not so many
//!   count < 0          that many, each drawn anew
//! ```
//!
//! All fields whose time has come are removed first, so that a draw never has to be repeated.

use hashbrown::HashSet;

use super::value::HashRef;
use crate::collections::hash::{Packed, Table};
use crate::commands::prelude::*;
use crate::keyspace::{Key, Keyspace};
use crate::random::Random;
use proto::time::UnixMillis;

/// From a third of a table on, walking over all of it is cheaper than drawing single fields.
const DRAWN_SHARE_MAX: usize = 3;

/// HRANDFIELD key [count [WITHVALUES]]
pub(crate) fn hrandfield(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    if args.len() == 2 {
        return one(ctx, &key);
    }
    let count = integer(args.get(2))?;
    if count == i64::MIN {
        return Err(CommandError::NotInSymmetricRange);
    }
    let with_values = match args.len() {
        3 => false,
        4 if args.get(3).eq_ignore_ascii_case(b"WITHVALUES") => true,
        _ => return Err(CommandError::Syntax),
    };
    if with_values && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(CommandError::OutOfRange);
    }
    let hash = find_live(ctx.keyspace, &key, ctx.now, ctx.access)?;
    let Some(hash) = hash.filter(|_| count != 0) else {
        ctx.reply.array(0);
        return Ok(());
    };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let mut shown = Shown {
        reply: &mut ctx.reply,
        with_values,
    };
    if count < 0 {
        check_drawn_count(wanted)?;
        shown.header(wanted);
        return repeated(hash, wanted, ctx.rng, &mut shown);
    }
    let wanted = wanted.min(hash.len());
    shown.header(wanted);
    match hash {
        HashRef::Packed(packed) => different_of_packed(packed, wanted, ctx.rng, &mut shown),
        HashRef::Table(table) => different_of_table(table, wanted, ctx.rng, &mut shown),
    }
    Ok(())
}

fn one(ctx: &mut Context<'_>, key: &Key<'_>) -> CommandResult {
    let name = match find_live(ctx.keyspace, key, ctx.now, ctx.access)? {
        None => None,
        Some(HashRef::Packed(packed)) => {
            let index = ctx.rng.below(packed.len() as u64) as usize;
            packed.nth(index).map(|field| field.name)
        }
        Some(HashRef::Table(table)) => {
            let field = table.random(|| ctx.rng.next_u64());
            field.map(|field| StringRef::Bytes(field.name))
        }
    };
    match name {
        Some(name) => reply_string(&mut ctx.reply, name),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// The hash at a key after all fields whose time has come were removed.
fn find_live<'k>(
    keyspace: &'k mut Keyspace,
    key: &Key<'_>,
    now: UnixMillis,
    access: Access,
) -> Result<Option<HashRef<'k>>, CommandError> {
    match HashRef::find(keyspace, key, now, access)? {
        None => return Ok(None),
        Some(hash) if hash.has_expired(now) => keyspace.expire_all_fields(key),
        Some(_) => {}
    }
    // The second look does not count as one.
    HashRef::find(keyspace, key, now, Access::Write)
}

/// Where drawn fields are shown, and how.
struct Shown<'r, 'w> {
    reply: &'r mut ReplyWriter<'w>,
    with_values: bool,
}

impl Shown<'_, '_> {
    /// With values, RESP3 has an array of pairs, RESP2 one of all parts.
    fn header(&mut self, count: usize) {
        let is_flat = self.with_values && !self.reply.resp3();
        self.reply.array(if is_flat {
            count.saturating_mul(2)
        } else {
            count
        });
    }

    fn field(&mut self, name: StringRef<'_>, value: StringRef<'_>) {
        if self.with_values && self.reply.resp3() {
            self.reply.array(2);
        }
        reply_string(self.reply, name);
        if self.with_values {
            reply_string(self.reply, value);
        }
    }
}

/// `count` draws, each among all fields.
fn repeated(
    hash: HashRef<'_>,
    count: usize,
    rng: &mut Random,
    shown: &mut Shown<'_, '_>,
) -> CommandResult {
    // Once through the packed fields, so that a draw is a look into an array.
    let packed: Vec<_> = match hash {
        HashRef::Packed(packed) => packed.iter().collect(),
        HashRef::Table(_) => Vec::new(),
    };
    for _ in 0..count {
        match hash {
            HashRef::Packed(_) => {
                let field = &packed[rng.below(packed.len() as u64) as usize];
                shown.field(field.name, field.value);
            }
            HashRef::Table(table) => {
                if let Some(field) = table.random(|| rng.next_u64()) {
                    shown.field(field.name.into(), field.value.into());
                }
            }
        }
        check_drawn_bytes(shown.reply)?;
    }
    Ok(())
}

/// Whether the next of `left` elements is among the `wanted` that are still to be chosen of them.
fn is_chosen(wanted: &mut usize, left: usize, rng: &mut Random) -> bool {
    let is_chosen = rng.below(left as u64) < *wanted as u64;
    *wanted -= usize::from(is_chosen);
    is_chosen
}

fn different_of_packed(
    packed: Packed<'_>,
    mut wanted: usize,
    rng: &mut Random,
    shown: &mut Shown<'_, '_>,
) {
    let count = packed.len();
    for (number, field) in packed.iter().enumerate() {
        if is_chosen(&mut wanted, count - number, rng) {
            shown.field(field.name, field.value);
        }
    }
}

fn different_of_table(
    table: &Table,
    mut wanted: usize,
    rng: &mut Random,
    shown: &mut Shown<'_, '_>,
) {
    let fields = table.iter();
    let count = fields.len();
    if wanted > count / DRAWN_SHARE_MAX {
        for (number, field) in fields.enumerate() {
            if is_chosen(&mut wanted, count - number, rng) {
                shown.field(field.name.into(), field.value.into());
            }
        }
        return;
    }
    let mut drawn = HashSet::with_capacity(wanted);
    while drawn.len() < wanted {
        let Some(field) = table.random(|| rng.next_u64()) else {
            return;
        };
        if drawn.insert(field.name.as_ptr()) {
            shown.field(field.name.into(), field.value.into());
        }
    }
}
