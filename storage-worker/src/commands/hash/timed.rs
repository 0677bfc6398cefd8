//! Reading and removing, reading and timing, writing and timing fields: HGETDEL HGETEX HSETEX.
//!
//! ```text
//!   HGETDEL key FIELDS numfields field [field ...]
//!   HGETEX  key [EX s | PX ms | EXAT s | PXAT ms | PERSIST] FIELDS numfields field [field ...]
//!   HSETEX  key [FNX | FXX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
//!               FIELDS numfields field value [field value ...]
//! ```
//!
//! HGETDEL and HGETEX check the type of the key before their arguments, HSETEX after them. A time
//! that has passed removes the fields at once.

use super::fields::{TimeUnit, parse_fields};
use super::value::{HashMut, Limits, is_over};
use super::write::pairs;
use crate::collections::hash::Ttl;
use crate::commands::prelude::*;
use crate::keyspace::Key;
use proto::time::UnixMillis;

/// HGETDEL key FIELDS numfields field [field ...]
pub(crate) fn hgetdel(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let hash = HashMut::find(ctx.keyspace, &key, ctx.now, limits)?;
    let first = parse_fields(args, 2, CommandError::FieldCountNotPositive)?;
    ctx.reply.array(args.len() - first);
    let Some(mut hash) = hash else {
        args.iter_from(first).for_each(|_| ctx.reply.null());
        return Ok(());
    };
    let (mut removed, mut expired) = (0, 0);
    for name in args.iter_from(first) {
        match hash.view().get(name) {
            None => {
                ctx.reply.null();
                continue;
            }
            Some((_, expiry)) if is_over(expiry, ctx.now) => {
                ctx.reply.null();
                expired += 1;
            }
            Some((value, _)) => {
                reply_string(&mut ctx.reply, value);
                removed += 1;
            }
        }
        hash.remove(name);
    }
    hash.finish();
    ctx.keyspace.count_expired_fields(expired);
    ctx.changed(removed);
    Ok(())
}

/// What HGETEX does to the expiry of the fields that it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewExpiry {
    Keep,
    Persist,
    At(UnixMillis),
}

/// HGETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST]
/// FIELDS numfields field [field ...]
pub(crate) fn hgetex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    const NAME: &str = "hgetex";
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let hash = HashMut::find(ctx.keyspace, &key, ctx.now, limits)?;
    let (wanted, fields_at) = if let Some(unit) = TimeUnit::named(args.get(2)) {
        let at = unit.parse(args.get(3), ctx.now, NAME)?;
        (NewExpiry::At(at), 4)
    } else if args.get(2).eq_ignore_ascii_case(b"PERSIST") {
        (NewExpiry::Persist, 3)
    } else {
        (NewExpiry::Keep, 2)
    };
    if fields_at + 1 >= args.len() {
        return Err(CommandError::Arity { name: NAME });
    }
    let first = parse_fields(args, fields_at, CommandError::FieldCountNotPositive)?;
    ctx.reply.array(args.len() - first);
    let Some(mut hash) = hash else {
        args.iter_from(first).for_each(|_| ctx.reply.null());
        return Ok(());
    };
    if wanted != NewExpiry::Keep {
        hash.become_timed();
    }
    let (mut changes, mut expired) = (0, 0);
    for name in args.iter_from(first) {
        let Some((value, before)) = hash.view().get(name) else {
            ctx.reply.null();
            continue;
        };
        if is_over(before, ctx.now) {
            ctx.reply.null();
            hash.remove(name);
            expired += 1;
            continue;
        }
        reply_string(&mut ctx.reply, value);
        match wanted {
            NewExpiry::At(at) if at <= ctx.now => {
                hash.remove(name);
            }
            NewExpiry::At(at) => hash.set_expiry(name, Some(at)),
            NewExpiry::Persist if before.is_some() => hash.set_expiry(name, None),
            NewExpiry::Persist | NewExpiry::Keep => continue,
        }
        changes += 1;
    }
    let next = hash.view().next_expiry();
    if !hash.finish() && changes > 0 && wanted != NewExpiry::Persist {
        ctx.keyspace.set_field_expiry(&key, next);
    }
    ctx.keyspace.count_expired_fields(expired);
    ctx.changed(changes);
    Ok(())
}

/// When HSETEX writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// No field is there.
    IfNone,
    /// Every field is there.
    IfAll,
}

/// The arguments of HSETEX behind the key.
#[derive(Debug)]
struct SetOptions {
    condition: Condition,
    /// What was said about the expiry.
    ttl: Option<Ttl>,
    /// Where names and values begin.
    first: usize,
}

impl SetOptions {
    const NAME: &str = "hsetex";

    fn parse(args: Args<'_>, now: UnixMillis) -> Result<Self, CommandError> {
        let mut options = Self {
            condition: Condition::Always,
            ttl: None,
            first: 0,
        };
        let mut at = 2;
        while at < args.len() {
            let word = args.get(at);
            at += 1;
            if word.eq_ignore_ascii_case(b"FIELDS") {
                options.first = at + 1;
                return options.check_count(args, at);
            }
            if word.eq_ignore_ascii_case(b"FNX") {
                options.take_condition(Condition::IfNone)?;
            } else if word.eq_ignore_ascii_case(b"FXX") {
                options.take_condition(Condition::IfAll)?;
            } else if word.eq_ignore_ascii_case(b"KEEPTTL") {
                options.check_ttl()?;
                options.ttl = Some(Ttl::Keep);
            } else if let Some(unit) = TimeUnit::named(word) {
                options.check_ttl()?;
                if at >= args.len() {
                    return Err(CommandError::Arity { name: Self::NAME });
                }
                let time = unit.parse(args.get(at), now, Self::NAME)?;
                options.ttl = Some(Ttl::At(time));
                at += 1;
            } else {
                return Err(CommandError::UnknownArgument(word.into()));
            }
        }
        Err(CommandError::Arity { name: Self::NAME })
    }

    /// The number of fields, at `at`, must be that of the pairs which follow it, and one at least.
    fn check_count(self, args: Args<'_>, at: usize) -> Result<Self, CommandError> {
        if at + 3 > args.len() {
            return Err(CommandError::Arity { name: Self::NAME });
        }
        let count = parse_i64(args.get(at)).and_then(|count| i32::try_from(count).ok());
        let count = count.and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|&count| count > 0);
        let count = count.ok_or(CommandError::InvalidFieldCount)?;
        if args.len() - self.first != count * 2 {
            return Err(CommandError::Arity { name: Self::NAME });
        }
        Ok(self)
    }

    fn take_condition(&mut self, condition: Condition) -> Result<(), CommandError> {
        if self.condition != Condition::Always {
            return Err(CommandError::FieldConditions);
        }
        self.condition = condition;
        Ok(())
    }

    fn check_ttl(&self) -> Result<(), CommandError> {
        match self.ttl {
            None => Ok(()),
            Some(_) => Err(CommandError::FieldExpiries),
        }
    }
}

/// HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL]
/// FIELDS numfields field value [field value ...]
pub(crate) fn hsetex(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let options = SetOptions::parse(args, ctx.now)?;
    let key = ctx.first_key(args);
    let limits = Limits::new(ctx.settings);
    let is_met = match HashMut::find(ctx.keyspace, &key, ctx.now, limits)? {
        None => options.condition != Condition::IfAll,
        Some(hash) => {
            let (is_met, expired) = meets(hash, &options, args, ctx.now);
            ctx.keyspace.count_expired_fields(expired);
            is_met
        }
    };
    if is_met {
        write(ctx, &key, &options, args)?;
    }
    ctx.reply.int(i64::from(is_met));
    Ok(())
}

/// Whether the condition holds, and how many fields were removed because their time had come: all
/// that were looked at. If it does not hold, a hash without fields is removed.
fn meets(
    mut hash: HashMut<'_>,
    options: &SetOptions,
    args: Args<'_>,
    now: UnixMillis,
) -> (bool, u64) {
    let (mut is_met, mut expired) = (true, 0);
    if options.condition == Condition::Always {
        return (is_met, expired);
    }
    for (name, _) in pairs(args, options.first) {
        let found = hash.view().get(name).map(|(_, expiry)| expiry);
        let is_dead = found.is_some_and(|expiry| is_over(expiry, now));
        if is_dead {
            hash.remove(name);
            expired += 1;
        }
        let is_there = found.is_some() && !is_dead;
        if is_there != (options.condition == Condition::IfAll) {
            is_met = false;
            break;
        }
    }
    if !is_met {
        hash.finish();
    }
    (is_met, expired)
}

fn write(
    ctx: &mut Context<'_>,
    key: &Key<'_>,
    options: &SetOptions,
    args: Args<'_>,
) -> CommandResult {
    let limits = Limits::new(ctx.settings);
    let pairs = pairs(args, options.first);
    let ttl = options.ttl.unwrap_or(Ttl::Clear);
    let is_past = matches!(ttl, Ttl::At(at) if at <= ctx.now);
    ctx.changed(pairs.len() as u64);
    let hash = match HashMut::find(ctx.keyspace, key, ctx.now, limits)? {
        Some(mut hash) => {
            hash.prepare(pairs.clone());
            for (name, value) in pairs {
                hash.set(name, value, ttl);
                // One by one, so that the hash does not grow beyond its limits meanwhile.
                if is_past {
                    hash.remove(name);
                }
            }
            hash
        }
        None if is_past => return Ok(()),
        None => HashMut::create(ctx.keyspace, key, limits, pairs, ttl).0,
    };
    if let Ttl::At(_) = ttl {
        let next = hash.view().next_expiry();
        if !hash.finish() {
            ctx.keyspace.set_field_expiry(key, next);
        }
    }
    Ok(())
}
