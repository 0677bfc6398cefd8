//! SORT: the elements of a list, a set or a sorted set in another order.
//!
//! ```text
//!   options -> elements -> weights (their own, or those of keys made from them) -> order
//!                                                            -> part -> reply or list
//! ```
//!
//! The elements are copied first: looking a key up changes the keyspace (dead keys go, clocks are
//! touched), and weights and replies look up many. Elements of equal weight stay in order.
//!
//! A fault of the reference that is not copied: it turns a packed sorted set into a skip list for
//! good, even in SORT_RO.
//!
//! Cost: a copy of the elements, O(N log N) comparisons, a look-up per element and pattern.

mod elements;
mod options;
mod pattern;

use std::cmp::Ordering;

use crate::collections::list::End;
use crate::commands::list::value::{Limits, ListMut};
use crate::commands::prelude::*;

use elements::{Elements, Span, Texts};
use options::{Options, Syntax};
use pattern::until_nul;

/// SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA]
///     [STORE destination]
pub(crate) fn sort(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Syntax::Sort)
}

/// SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC | DESC] [ALPHA]
pub(crate) fn sort_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    run(ctx, args, Syntax::SortRo)
}

fn run(ctx: &mut Context<'_>, args: Args<'_>, syntax: Syntax) -> CommandResult {
    let mut options = Options::parse(args, syntax)?;
    let key = ctx.first_key(args);
    // What takes long only reads, whether or not something is stored at the end.
    let pause = ctx.pause_write();
    let Elements {
        texts,
        mut spans,
        part,
    } = Elements::read(ctx, &key, &mut options)?;
    if !options.is_unsorted {
        let (mut items, weights) = weigh(ctx, &texts, &spans, &options)?;
        items.sort_by(|one, other| {
            let order = compare(&texts, &weights, &options, one, other);
            if options.is_descending {
                order.reverse()
            } else {
                order
            }
        });
        spans = items.into_iter().map(|item| item.element).collect();
    }
    let Some(destination) = options.destination else {
        reply(ctx, &texts, &options, &spans[part]);
        return Ok(());
    };
    let (values, spans) = gather(ctx, &texts, &options, &spans[part]);
    drop(pause);
    store(ctx, &values, &spans, destination);
    Ok(())
}

/// The keys that BY and GET make from the elements, for whoever must have them at hand before.
///
/// # Errors
/// As SORT itself.
pub(crate) fn names_of_patterns(
    ctx: &mut Context<'_>,
    args: Args<'_>,
) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut options = Options::parse(args, Syntax::Sort)?;
    let key = ctx.first_key(args);
    let Elements { texts, spans, .. } = Elements::read(ctx, &key, &mut options)?;
    let mut names = Vec::new();
    for pattern in options.by.iter().chain(&options.gets) {
        for span in spans.iter().filter(|_| pattern.varies()) {
            let mut name = Vec::new();
            pattern.name_key(texts.get(*span), &mut name);
            names.push(name);
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// What the place of an element goes by.
#[derive(Clone, Copy, Debug)]
enum Weight {
    Number(f64),
    /// The text of the element.
    Own,
    /// The text at its key; `None` if there is no such key: in front of all others.
    Of(Option<Span>),
}

#[derive(Clone, Copy, Debug)]
struct Item {
    element: Span,
    weight: Weight,
}

/// Finds the weights of all elements, and the texts of those that are not their own.
///
/// # Errors
/// `ScoresNotNumbers`.
fn weigh(
    ctx: &mut Context<'_>,
    texts: &Texts,
    elements: &[Span],
    options: &Options<'_>,
) -> Result<(Vec<Item>, Texts), CommandError> {
    let mut items = Vec::with_capacity(elements.len());
    let (mut weights, mut name) = (Texts::default(), Vec::new());
    for &element in elements {
        let text = texts.get(element);
        let weight = match &options.by {
            None if options.is_alpha => Ok(Weight::Own),
            None => number(StringRef::Bytes(text)),
            Some(pattern) => pattern.with_value(ctx, text, &mut name, |value, _| match value {
                value if options.is_alpha => Ok(Weight::Of(value.map(|text| weights.add(text)))),
                Some(value) => number(value),
                None => Ok(Weight::Number(0.0)),
            }),
        };
        items.push(Item {
            element,
            weight: weight?,
        });
    }
    Ok((items, weights))
}

/// Reads a weight: decimal or infinite, too large is infinite, nothing is zero; up to the first NUL.
fn number(text: StringRef<'_>) -> Result<Weight, CommandError> {
    let number = match text {
        StringRef::Int(number) => Some(number as f64),
        StringRef::Bytes(bytes) => match until_nul(bytes) {
            b"" => Some(0.0),
            digits => std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse::<f64>().ok()),
        },
    };
    number
        .filter(|number| !number.is_nan())
        .map(Weight::Number)
        .ok_or(CommandError::ScoresNotNumbers)
}

/// The order of two elements. Equal numbers go by the elements; what is only replied compares texts
/// up to a NUL, as C does.
fn compare(
    texts: &Texts,
    weights: &Texts,
    options: &Options<'_>,
    one: &Item,
    other: &Item,
) -> Ordering {
    let by_text = |one: &[u8], other: &[u8]| {
        if options.destination.is_some() {
            one.cmp(other)
        } else {
            until_nul(one).cmp(until_nul(other))
        }
    };
    let (element, second) = (texts.get(one.element), texts.get(other.element));
    match (one.weight, other.weight) {
        (Weight::Number(one), Weight::Number(other)) => one
            .partial_cmp(&other)
            .unwrap_or(Ordering::Equal)
            .then_with(|| element.cmp(second)),
        (Weight::Of(Some(one)), Weight::Of(Some(other))) => {
            by_text(weights.get(one), weights.get(other))
        }
        (Weight::Of(one), Weight::Of(other)) => one.is_some().cmp(&other.is_some()),
        _ => by_text(element, second),
    }
}

/// Writes the elements, or what GET makes of them.
fn reply(ctx: &mut Context<'_>, texts: &Texts, options: &Options<'_>, chosen: &[Span]) {
    let mut name = Vec::new();
    ctx.reply.array(chosen.len() * options.gets.len().max(1));
    for &element in chosen {
        let element = texts.get(element);
        if options.gets.is_empty() {
            ctx.reply.bulk(element);
        }
        for pattern in &options.gets {
            pattern.with_value(ctx, element, &mut name, |value, reply| match value {
                Some(value) => reply_string(reply, value),
                None => reply.null(),
            });
        }
    }
}

/// The elements, or what GET makes of them, to be stored.
fn gather(
    ctx: &mut Context<'_>,
    texts: &Texts,
    options: &Options<'_>,
    chosen: &[Span],
) -> (Texts, Vec<Span>) {
    let (mut name, mut values) = (Vec::new(), Texts::default());
    let mut spans = Vec::new();
    for &element in chosen {
        let element = texts.get(element);
        if options.gets.is_empty() {
            spans.push(values.add(StringRef::Bytes(element)));
        }
        for pattern in &options.gets {
            pattern.with_value(ctx, element, &mut name, |value, _| {
                spans.push(values.add(value.unwrap_or(StringRef::Bytes(b""))));
            });
        }
    }
    (values, spans)
}

/// Stores a list; an empty one deletes the destination.
fn store(ctx: &mut Context<'_>, values: &Texts, spans: &[Span], destination: &[u8]) {
    let key = ctx.key(destination);
    let was_there = ctx.keyspace.find(&key, ctx.now, Access::Write).is_some();
    if was_there {
        ctx.keyspace.unlink(&key);
    }
    if spans.is_empty() {
        ctx.changed(u64::from(was_there));
    } else {
        let limits = Limits::of(ctx.settings);
        let elements = spans.iter().map(|&span| values.get(span));
        ListMut::create(ctx.keyspace, &key, limits, End::Tail, elements);
        ctx.changed(spans.len() as u64);
    }
    // Those who wait for what was there hear of it, too.
    ctx.signal_ready(&key);
    ctx.reply.count(spans.len());
}
