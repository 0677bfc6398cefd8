//! Intersections, unions and differences.
//!
//! All keys are looked up first (types are checked, dead keys go, clocks are touched), then looked at
//! again together, when nothing can change any more. What is only replied is never collected, with
//! two exceptions: a union of integers, which is replied in order, and one of many sets, whose
//! members have to be told from those that came before.
//!
//! A stored result goes through the same forms, in the same order, as in Redis: OBJECT ENCODING
//! shows it.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::build::{Limits, NewSet};
use super::value::{SetRef, number_of};
use crate::commands::prelude::*;
use crate::keyspace::{Key, Keyspace};
use proto::time::UnixMillis;

/// A union of at most so many sets looks into the earlier ones for members that came before.
const SETS_SEARCHED: usize = 3;

/// The sets of some keys, `None` where there is no key.
type Sets<'s> = Vec<Option<SetRef<'s>>>;

/// Looks keys up: any that is no set is an error, whatever the others are.
fn check<'k>(
    ctx: &mut Context<'_>,
    names: impl Iterator<Item = &'k [u8]>,
) -> Result<Vec<Key<'k>>, CommandError> {
    let keys: Vec<Key<'k>> = names.map(|name| ctx.key(name)).collect();
    for key in &keys {
        SetRef::find(ctx.keyspace, key, ctx.now, ctx.access)?;
    }
    Ok(keys)
}

/// The sets of keys that were checked.
fn sets_of<'s>(
    keyspace: &'s Keyspace,
    keys: &[Key<'_>],
    now: UnixMillis,
) -> Result<Sets<'s>, CommandError> {
    keys.iter()
        .map(|key| match keyspace.look(key, now) {
            Some(found) => SetRef::of(&found).map(Some),
            None => Ok(None),
        })
        .collect()
}

/// The sets of an intersection, the smallest first; `None` if one is missing, and with it all.
fn smallest_first(sets: Sets<'_>) -> Option<Vec<SetRef<'_>>> {
    let mut sets: Vec<SetRef<'_>> = sets.into_iter().collect::<Option<_>>()?;
    sets.sort_by_key(|set| set.len());
    Some(sets)
}

/// The members that all sets have, in the order of the first one.
fn common<'s>(sets: &[SetRef<'s>]) -> impl Iterator<Item = StringRef<'s>> {
    let (first, others) = sets.split_at(sets.len().min(1));
    first
        .iter()
        .flat_map(|set| set.iter())
        .filter(move |&member| others.iter().all(|set| set.contains(member)))
}

/// The members that only the first set has, in its order. `is_same`: it is subtracted from itself.
fn only_first<'s>(
    sets: &[Option<SetRef<'s>>],
    is_same: bool,
) -> impl Iterator<Item = StringRef<'s>> {
    let (first, others) = sets.split_at(sets.len().min(1));
    first
        .iter()
        .flatten()
        .filter(move |_| !is_same)
        .flat_map(|set| set.iter())
        .filter(move |&member| !others.iter().flatten().any(|set| set.contains(member)))
}

/// Whether the first key is named again: its difference is empty.
fn is_first_repeated(keys: &[Key<'_>]) -> bool {
    keys.split_first()
        .is_some_and(|(first, others)| others.iter().any(|key| key.bytes == first.bytes))
}

/// Writes members as a set.
fn reply_set<'m>(reply: &mut ReplyWriter<'_>, members: impl Iterator<Item = StringRef<'m>>) {
    let mark = reply.begin_array();
    let mut count = 0;
    for member in members {
        reply_string(reply, member);
        count += 1;
    }
    reply.set_set_len(mark, count);
}

/// SINTER key [key ...]
pub(crate) fn sinter(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let keys = check(ctx, args.iter_from(1))?;
    match smallest_first(sets_of(ctx.keyspace, &keys, ctx.now)?) {
        Some(sets) => reply_set(&mut ctx.reply, common(&sets)),
        None => ctx.reply.set(0),
    }
    Ok(())
}

/// SINTERCARD numkeys key [key ...] [LIMIT limit]
pub(crate) fn sintercard(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let count = parse_i64(args.get(1))
        .and_then(|count| usize::try_from(count).ok())
        .filter(|&count| count > 0)
        .ok_or(CommandError::NumkeysNotPositive)?;
    if count > args.len().saturating_sub(2) {
        return Err(CommandError::NumkeysTooLarge);
    }
    let mut limit = usize::MAX;
    let mut words = args.iter_from(2 + count);
    while let Some(word) = words.next() {
        let value = words.next().filter(|_| word.eq_ignore_ascii_case(b"LIMIT"));
        let value = value.ok_or(CommandError::Syntax)?;
        let number = parse_i64(value).and_then(|number| usize::try_from(number).ok());
        limit = match number.ok_or(CommandError::LimitNegative)? {
            0 => usize::MAX,
            number => number,
        };
    }
    let keys = check(ctx, args.iter_from(2).take(count))?;
    let sets = smallest_first(sets_of(ctx.keyspace, &keys, ctx.now)?);
    let size = sets.map_or(0, |sets| common(&sets).take(limit).count());
    ctx.reply.count(size);
    Ok(())
}

/// SUNION key [key ...]
pub(crate) fn sunion(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let keys = check(ctx, args.iter_from(1))?;
    let sets = sets_of(ctx.keyspace, &keys, ctx.now)?;
    let sets: Vec<SetRef<'_>> = sets.into_iter().flatten().collect();
    let reply = &mut ctx.reply;
    if let [only] = sets[..] {
        reply.set(only.len());
        only.iter().for_each(|member| reply_string(reply, member));
    } else if sets.iter().all(|set| matches!(set, SetRef::Intset(_))) {
        let mut numbers: Vec<i64> = sets
            .iter()
            .flat_map(|set| set.iter())
            .filter_map(number_of)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        reply.set(numbers.len());
        numbers.iter().for_each(|&number| reply.bulk_int(number));
    } else if sets.len() <= SETS_SEARCHED {
        let news = sets.iter().enumerate().flat_map(|(place, set)| {
            let earlier = &sets[..place];
            set.iter()
                .filter(move |&member| !earlier.iter().any(|set| set.contains(member)))
        });
        reply_set(reply, news);
    } else {
        let mut seen: HashTable<StringRef<'_>> = HashTable::new();
        let seed = ctx.hash_seed;
        let hash_of =
            |member: &StringRef<'_>| with_bytes(*member, |bytes| xxh3_64_with_seed(bytes, seed));
        let news = sets.iter().flat_map(|set| set.iter()).filter(|&member| {
            // One text, one form.
            let member = number_of(member).map_or(member, StringRef::Int);
            let entry = seen.entry(hash_of(&member), |other| *other == member, hash_of);
            match entry {
                hashbrown::hash_table::Entry::Occupied(_) => false,
                hashbrown::hash_table::Entry::Vacant(place) => {
                    place.insert(member);
                    true
                }
            }
        });
        reply_set(reply, news);
    }
    Ok(())
}

/// SDIFF key [key ...]
pub(crate) fn sdiff(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let keys = check(ctx, args.iter_from(1))?;
    let sets = sets_of(ctx.keyspace, &keys, ctx.now)?;
    let is_same = is_first_repeated(&keys);
    reply_set(&mut ctx.reply, only_first(&sets, is_same));
    Ok(())
}

/// SINTERSTORE destination key [key ...]
pub(crate) fn sinterstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(ctx);
    let keys = check(ctx, args.iter_from(2))?;
    let sets = smallest_first(sets_of(ctx.keyspace, &keys, ctx.now)?);
    let result = sets.map(|sets| {
        let mut result = match sets[0] {
            SetRef::Intset(_) => NewSet::intset(limits),
            _ => NewSet::listpack(limits),
        };
        let mut is_integers = true;
        for member in common(&sets) {
            is_integers = is_integers && number_of(member).is_some();
            result.add(member);
        }
        if is_integers {
            result.pack_integers();
        }
        result
    });
    store(ctx, args, result)
}

/// SUNIONSTORE destination key [key ...]
pub(crate) fn sunionstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(ctx);
    let keys = check(ctx, args.iter_from(2))?;
    let sets = sets_of(ctx.keyspace, &keys, ctx.now)?;
    let mut result = NewSet::intset(limits);
    for member in sets.iter().flatten().flat_map(|set| set.iter()) {
        result.add(member);
    }
    store(ctx, args, Some(result))
}

/// SDIFFSTORE destination key [key ...]
pub(crate) fn sdiffstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(ctx);
    let keys = check(ctx, args.iter_from(2))?;
    let sets = sets_of(ctx.keyspace, &keys, ctx.now)?;
    let is_same = is_first_repeated(&keys);
    let mut result = NewSet::intset(limits);
    if is_same || is_filtered(&sets) {
        for member in only_first(&sets, is_same) {
            result.add(member);
        }
    } else {
        for member in sets[..1].iter().flatten().flat_map(|set| set.iter()) {
            result.add(member);
        }
        for member in sets[1..].iter().flatten().flat_map(|set| set.iter()) {
            if result.as_ref().len() == 0 {
                break;
            }
            result.remove(member);
        }
    }
    store(ctx, args, Some(result))
}

/// Whether Redis would look each member of the first set up in the others, instead of taking the
/// members of the others out of a copy of the first one, which may then have a larger form.
fn is_filtered(sets: &[Option<SetRef<'_>>]) -> bool {
    let first = sets.first().copied().flatten().map_or(0, SetRef::len);
    let present = sets.iter().flatten();
    let filter_work: usize = present.clone().map(|_| first).sum();
    let remove_work: usize = present.map(|set| set.len()).sum();
    filter_work / 2 <= remove_work
}

/// Stores a result under argument 1, whatever was there, and replies with its size. An empty one
/// deletes the key.
fn store(ctx: &mut Context<'_>, args: Args<'_>, result: Option<NewSet>) -> CommandResult {
    let key = ctx.key(args.get(1));
    let size = result.as_ref().map_or(0, |result| result.as_ref().len());
    match result {
        Some(result) if size > 0 => {
            result.store(ctx.keyspace, &key);
            ctx.changed(1);
        }
        _ => {
            if ctx.keyspace.find(&key, ctx.now, Access::Write).is_some() {
                ctx.keyspace.unlink(&key);
                ctx.changed(1);
            }
        }
    }
    ctx.reply.count(size);
    Ok(())
}
