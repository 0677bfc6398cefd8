//! ZADD and ZINCRBY.

use super::value::Edit;
use crate::commands::prelude::*;
use proto::number::parse_f64;

/// What is done with members that are there, or are not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) only_new: bool,
    pub(crate) only_old: bool,
    pub(crate) counts_changes: bool,
    only_greater: bool,
    only_less: bool,
    increments: bool,
}

impl Options {
    /// Reads words as long as they are options; returns the position of the first score.
    fn parse(&mut self, args: Args<'_>) -> usize {
        let mut at = 2;
        while at < args.len() {
            let word = args.get(at);
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if is(b"NX") {
                self.only_new = true;
            } else if is(b"XX") {
                self.only_old = true;
            } else if is(b"CH") {
                self.counts_changes = true;
            } else if is(b"INCR") {
                self.increments = true;
            } else if is(b"GT") {
                self.only_greater = true;
            } else if is(b"LT") {
                self.only_less = true;
            } else {
                break;
            }
            at += 1;
        }
        at
    }

    fn check(self, pairs: usize) -> CommandResult {
        if self.only_new && self.only_old {
            return Err(CommandError::XxAndNx);
        }
        let conditions = [self.only_new, self.only_greater, self.only_less];
        if conditions.into_iter().filter(|&is_set| is_set).count() > 1 {
            return Err(CommandError::GtLtAndNx);
        }
        if self.increments && pairs > 1 {
            return Err(CommandError::IncrOfOnePair);
        }
        Ok(())
    }

    /// The score that a member gets which has the score `old`; `None` if it stays as it is.
    fn new_score(self, old: f64, given: f64) -> Result<Option<f64>, CommandError> {
        if self.only_new {
            return Ok(None);
        }
        let score = if self.increments { old + given } else { given };
        if score.is_nan() {
            return Err(CommandError::ScoreNaN);
        }
        let is_refused = (self.only_less && score >= old) || (self.only_greater && score <= old);
        Ok((!is_refused).then_some(score))
    }
}

/// What became of the pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    added: usize,
    updated: usize,
    /// Of the last pair, unless nothing was done with it.
    score: Option<f64>,
}

/// ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]
pub(crate) fn zadd(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, args, Options::default())
}

/// ZINCRBY key increment member
pub(crate) fn zincrby(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let options = Options {
        increments: true,
        ..Options::default()
    };
    add(ctx, args, options)
}

fn add(ctx: &mut Context<'_>, args: Args<'_>, mut options: Options) -> CommandResult {
    let first = options.parse(args);
    let left = args.len() - first;
    if left == 0 || !left.is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    options.check(left / 2)?;
    // Most commands bring one pair; its score is read once.
    let first_score = score(args.get(first))?;
    for position in (first + 2..args.len()).step_by(2) {
        score(args.get(position))?;
    }
    let pairs = (first..args.len()).step_by(2).map(|position| {
        // All of them are known to be numbers.
        let score = if position == first {
            first_score
        } else {
            parse_f64(args.get(position)).unwrap_or_default()
        };
        (score, args.get(position + 1))
    });
    put_and_reply(ctx, args, pairs, options)
}

/// Puts pairs of score and member into the set at argument 1 and replies with what became of them.
///
/// # Errors
/// `WrongType`, or `ScoreNaN` from an increment; nothing has changed then.
pub(crate) fn put_and_reply<'a>(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    pairs: impl ExactSizeIterator<Item = (f64, &'a [u8])>,
    options: Options,
) -> CommandResult {
    let outcome = put(ctx, args, pairs, options)?;
    let changes = outcome.added + outcome.updated;
    ctx.changed(changes as u64);
    if options.increments {
        match outcome.score {
            Some(score) => ctx.reply.double(score),
            None => ctx.reply.null(),
        }
    } else if options.counts_changes {
        ctx.reply.count(changes);
    } else {
        ctx.reply.count(outcome.added);
    }
    Ok(())
}

#[inline]
fn score(text: &[u8]) -> Result<f64, CommandError> {
    parse_f64(text).ok_or(CommandError::NotAFloat)
}

fn put<'a>(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    pairs: impl ExactSizeIterator<Item = (f64, &'a [u8])>,
    options: Options,
) -> Result<Outcome, CommandError> {
    let key = ctx.first_key(args);
    let limits = ctx.settings.limits;
    if let Some(mut edit) = Edit::open(ctx.keyspace, &key, ctx.now, limits)? {
        edit.expect(pairs.len());
        return put_into(&mut edit, pairs, options);
    }
    if options.only_old {
        return Ok(Outcome::default());
    }
    let count = pairs.len();
    let mut pairs = pairs.peekable();
    let first_len = pairs.peek().map_or(0, |(_, member)| member.len());
    let mut edit = Edit::create(ctx.keyspace, &key, limits, count, first_len);
    let outcome = put_into(&mut edit, pairs, options)?;
    ctx.signal_ready(&key);
    Ok(outcome)
}

fn put_into<'a>(
    edit: &mut Edit<'_>,
    pairs: impl Iterator<Item = (f64, &'a [u8])>,
    options: Options,
) -> Result<Outcome, CommandError> {
    let mut outcome = Outcome::default();
    for (given, member) in pairs {
        outcome.score = match edit.find(member) {
            Some((place, old)) => {
                // An error can only come from an increment, which is the only pair.
                let new = options.new_score(old, given)?;
                if let Some(new) = new.filter(|&new| new != old) {
                    edit.set_score(place, member, new);
                    outcome.updated += 1;
                }
                new
            }
            None if options.only_old => None,
            None => {
                edit.insert(given, member);
                outcome.added += 1;
                Some(given)
            }
        };
    }
    Ok(outcome)
}
