//! Union, intersection and difference of sorted sets and sets.
//!
//! A member of a set counts as one with the score 1. The inputs are looked up twice: once so that the
//! keys count as used, then all together, so that members need not be copied.

use std::borrow::Cow;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::reply_pairs;
use super::value::{Builder, View};
use crate::commands::prelude::*;
use crate::commands::set::SetRef;
use crate::keyspace::{Found, Key, Keyspace};
use proto::number::parse_f64;
use proto::time::UnixMillis;

/// What is done with the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// What is replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Members,
    Stored,
    Count,
}

/// How the scores of one member in several inputs become one.
#[derive(Clone, Copy, Debug, Default)]
enum Aggregate {
    #[default]
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, score: f64, more: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(score + more),
            Aggregate::Min if more < score => more,
            Aggregate::Max if more > score => more,
            Aggregate::Min | Aggregate::Max => score,
        }
    }
}

/// Infinity minus infinity, and zero times infinity, count as 0.
fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// What the words behind the keys say.
#[derive(Debug)]
struct Options {
    weights: Option<Vec<f64>>,
    aggregate: Aggregate,
    with_scores: bool,
    /// 0 for none.
    limit: usize,
}

impl Options {
    fn parse(
        args: Args<'_>,
        from: usize,
        keys: usize,
        operation: Operation,
        output: Output,
    ) -> Result<Options, CommandError> {
        let mut options = Options {
            weights: None,
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        let has_scores = operation != Operation::Difference && output != Output::Count;
        let mut at = from;
        while at < args.len() {
            let (word, left) = (args.get(at), args.len() - at);
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if has_scores && left > keys && is(b"WEIGHTS") {
                let weights = (at + 1..=at + keys).map(|position| {
                    parse_f64(args.get(position)).ok_or(CommandError::WeightNotFloat)
                });
                options.weights = Some(weights.collect::<Result<_, _>>()?);
                at += keys;
            } else if has_scores && left > 1 && is(b"AGGREGATE") {
                options.aggregate = aggregate(args.get(at + 1))?;
                at += 1;
            } else if output == Output::Members && is(b"WITHSCORES") {
                options.with_scores = true;
            } else if output == Output::Count && left > 1 && is(b"LIMIT") {
                let limit = parse_i64(args.get(at + 1)).map(usize::try_from);
                options.limit = match limit {
                    Some(Ok(limit)) => limit,
                    _ => return Err(CommandError::LimitNegative),
                };
                at += 1;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn aggregate(word: &[u8]) -> Result<Aggregate, CommandError> {
    if word.eq_ignore_ascii_case(b"SUM") {
        Ok(Aggregate::Sum)
    } else if word.eq_ignore_ascii_case(b"MIN") {
        Ok(Aggregate::Min)
    } else if word.eq_ignore_ascii_case(b"MAX") {
        Ok(Aggregate::Max)
    } else {
        Err(CommandError::Syntax)
    }
}

/// What stands at a key.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Missing,
    Sorted(View<'a>),
    Plain(SetRef<'a>),
}

/// An input with its weight.
#[derive(Clone, Copy, Debug)]
struct Input<'a> {
    source: Source<'a>,
    weight: f64,
}

impl<'a> Input<'a> {
    fn of(found: Option<Found<'a>>) -> Result<Input<'a>, CommandError> {
        let source = match found {
            None => Source::Missing,
            Some(found) if found.kind() == ValueKind::Set => Source::Plain(SetRef::of(&found)?),
            Some(found) => Source::Sorted(View::of(&found)?),
        };
        Ok(Input {
            source,
            weight: 1.0,
        })
    }

    fn len(&self) -> usize {
        match self.source {
            Source::Missing => 0,
            Source::Sorted(set) => set.len(),
            Source::Plain(set) => set.len(),
        }
    }

    /// Calls `visit` with all members and their weighted scores, until it says false.
    fn visit(&self, mut visit: impl FnMut(f64, StringRef<'a>) -> bool) {
        let mut weighted = |(score, member)| visit(number_or_zero(self.weight * score), member);
        match self.source {
            Source::Missing => {}
            Source::Sorted(set) => {
                set.walk(0).all(&mut weighted);
            }
            Source::Plain(set) => {
                set.iter().map(|member| (1.0, member)).all(&mut weighted);
            }
        }
    }

    fn score(&self, member: StringRef<'_>) -> Option<f64> {
        match self.source {
            Source::Missing => None,
            Source::Sorted(set) => with_bytes(member, |member| set.score(member)),
            Source::Plain(set) => set.contains(member).then_some(1.0),
        }
    }
}

/// Looks all keys up.
fn inputs<'k>(
    keyspace: &'k mut Keyspace,
    keys: &[Key<'_>],
    now: UnixMillis,
    access: Access,
) -> Result<Vec<Input<'k>>, CommandError> {
    for key in keys {
        Input::of(keyspace.find(key, now, access))?;
    }
    let keyspace = &*keyspace;
    keys.iter()
        .map(|key| Input::of(keyspace.look(key, now)))
        .collect()
}

/// A member of the result.
type Scored<'a> = (f64, Cow<'a, [u8]>);

fn name(member: StringRef<'_>) -> Cow<'_, [u8]> {
    match member {
        StringRef::Bytes(bytes) => Cow::Borrowed(bytes),
        StringRef::Int(_) => Cow::Owned(member.to_vec()),
    }
}

fn union<'k>(inputs: &[Input<'k>], aggregate: Aggregate) -> Vec<Scored<'k>> {
    let largest = inputs.iter().map(Input::len).max().unwrap_or(0);
    let mut scores = HashMap::with_capacity(largest);
    for input in inputs {
        input.visit(|score, member| {
            match scores.entry(name(member)) {
                Entry::Vacant(entry) => {
                    entry.insert(score);
                }
                Entry::Occupied(mut entry) => {
                    let score = aggregate.of(*entry.get(), score);
                    entry.insert(score);
                }
            }
            true
        });
    }
    let members = scores.into_iter().map(|(member, score)| (score, member));
    members.collect()
}

/// Calls `visit` with the members that all inputs have, until it says false.
fn intersect<'k>(
    inputs: &[Input<'k>],
    aggregate: Aggregate,
    mut visit: impl FnMut(f64, StringRef<'k>) -> bool,
) {
    let Some((smallest, others)) = inputs.split_first() else {
        return;
    };
    smallest.visit(|score, member| {
        let mut sum = Some(score);
        for other in others {
            sum = sum
                .zip(other.score(member))
                .map(|(sum, more)| aggregate.of(sum, more * other.weight));
            if sum.is_none() {
                return true;
            }
        }
        sum.is_none_or(|score| visit(score, member))
    });
}

fn difference<'k>(inputs: &[Input<'k>]) -> Vec<Scored<'k>> {
    let Some((first, others)) = inputs.split_first() else {
        return Vec::new();
    };
    let mut members = Vec::new();
    first.visit(|score, member| {
        if others.iter().all(|other| other.score(member).is_none()) {
            members.push((score, name(member)));
        }
        true
    });
    members
}

/// The result of an operation, in order.
fn combine<'k>(
    mut inputs: Vec<Input<'k>>,
    operation: Operation,
    options: &Options,
) -> Vec<Scored<'k>> {
    if operation != Operation::Difference {
        // Sums are rounded in this order.
        inputs.sort_by_key(Input::len);
    }
    let mut members = match operation {
        Operation::Union => union(&inputs, options.aggregate),
        Operation::Difference => difference(&inputs),
        Operation::Intersection => {
            let mut members = Vec::new();
            intersect(&inputs, options.aggregate, |score, member| {
                members.push((score, name(member)));
                true
            });
            members
        }
    };
    members.sort_unstable_by(|(score, member), (other, next)| {
        let by_score = score.partial_cmp(other);
        by_score
            .unwrap_or(std::cmp::Ordering::Equal)
            .then_with(|| member.cmp(next))
    });
    members
}

/// ZUNION numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]
pub(crate) fn zunion(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, "zunion", Operation::Union, Output::Members)
}

/// ZINTER numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]
pub(crate) fn zinter(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let operation = Operation::Intersection;
    run(ctx, args, "zinter", operation, Output::Members)
}

/// ZDIFF numkeys key [key ...] [WITHSCORES]
pub(crate) fn zdiff(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, "zdiff", Operation::Difference, Output::Members)
}

/// ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]
pub(crate) fn zunionstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, "zunionstore", Operation::Union, Output::Stored)
}

/// ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]
pub(crate) fn zinterstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let operation = Operation::Intersection;
    run(ctx, args, "zinterstore", operation, Output::Stored)
}

/// ZDIFFSTORE destination numkeys key [key ...]
pub(crate) fn zdiffstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let operation = Operation::Difference;
    run(ctx, args, "zdiffstore", operation, Output::Stored)
}

/// ZINTERCARD numkeys key [key ...] [LIMIT limit]
pub(crate) fn zintercard(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let operation = Operation::Intersection;
    run(ctx, args, "zintercard", operation, Output::Count)
}

fn run(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    name: &'static str,
    operation: Operation,
    output: Output,
) -> CommandResult {
    let at = if output == Output::Stored { 2 } else { 1 };
    let count = integer(args.get(at))?;
    if count < 1 {
        return Err(CommandError::NoInputKey { name });
    }
    let first = at + 1;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > args.len() - first {
        return Err(CommandError::Syntax);
    }
    let keys: Vec<_> = (first..first + count)
        .map(|position| ctx.key(args.get(position)))
        .collect();
    let (limits, seed) = (ctx.settings.limits, ctx.hash_seed);
    let pause = ctx.pause_write();
    let mut inputs = inputs(ctx.keyspace, &keys, ctx.now, ctx.access)?;
    let options = Options::parse(args, first + count, count, operation, output)?;
    if let Some(weights) = &options.weights {
        for (input, &weight) in inputs.iter_mut().zip(weights) {
            input.weight = weight;
        }
    }
    match output {
        Output::Count => {
            inputs.sort_by_key(Input::len);
            let mut common = 0;
            intersect(&inputs, Aggregate::Sum, |_, _| {
                common += 1;
                common != options.limit
            });
            ctx.reply.count(common);
        }
        Output::Members => {
            let members = combine(inputs, operation, &options);
            if options.with_scores {
                let pairs = members.iter().map(|(score, member)| {
                    let member: &[u8] = member;
                    (*score, StringRef::Bytes(member))
                });
                reply_pairs(&mut ctx.reply, members.len(), pairs);
            } else {
                ctx.reply.array(members.len());
                members
                    .iter()
                    .for_each(|(_, member)| ctx.reply.bulk(member));
            }
        }
        Output::Stored => {
            let members = combine(inputs, operation, &options);
            let longest = members.iter().map(|(_, member)| member.len()).max();
            drop(pause);
            let mut result = Builder::new(limits, seed, members.len(), longest.unwrap_or(0));
            for (score, member) in &members {
                result.add(*score, member);
            }
            let count = members.len();
            drop(members);
            let destination = ctx.first_key(args);
            let changes = result.store(ctx, &destination);
            ctx.changed(changes);
            ctx.reply.count(count);
        }
    }
    Ok(())
}
