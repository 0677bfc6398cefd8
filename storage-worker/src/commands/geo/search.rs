//! Searches: GEOSEARCH and its older names, and those that store what they find.

use std::cmp::Ordering;

use super::options::{Form, Options, Order, source_position};
use super::{reply_distance, reply_point};
use crate::collections::geohash::{Point, Shape};
use crate::collections::partial_sort;
use crate::collections::sorted_set::Bound;
use crate::commands::prelude::*;
use crate::commands::sorted_set::value::{Builder, View};

/// A place that was found.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    member: StringRef<'a>,
    score: f64,
    point: Point,
    distance_m: f64,
}

/// GEOSEARCH key FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius unit | BYBOX width
/// height unit [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]
pub(crate) fn geosearch(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(ctx, args, Form::Search)
}

/// GEOSEARCHSTORE destination source (as GEOSEARCH) [STOREDIST]
pub(crate) fn geosearchstore(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(ctx, args, Form::SearchStore)
}

/// GEORADIUS key longitude latitude radius unit (as GEOSEARCH) [STORE key | STOREDIST key]
pub(crate) fn georadius(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(ctx, args, Form::Radius(true))
}

/// GEORADIUS_RO key longitude latitude radius unit (as GEOSEARCH)
pub(crate) fn georadius_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(ctx, args, Form::Radius(false))
}

/// GEORADIUSBYMEMBER key member radius unit (as GEOSEARCH) [STORE key | STOREDIST key]
pub(crate) fn georadiusbymember(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(ctx, args, Form::RadiusByMember(true))
}

/// GEORADIUSBYMEMBER_RO key member radius unit (as GEOSEARCH)
pub(crate) fn georadiusbymember_ro(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(ctx, args, Form::RadiusByMember(false))
}

fn search(ctx: &mut Context<'_>, args: Args<'_>, form: Form) -> CommandResult {
    let source = ctx.key(args.get(source_position(form)));
    let (limits, seed) = (ctx.settings.limits, ctx.hash_seed);
    let pause = ctx.pause_write();
    let set = View::find(ctx.keyspace, &source, ctx.now, ctx.access)?;
    let options = Options::parse(args, form, set)?;
    let places = match set.zip(options.shape()) {
        Some((set, shape)) => find(set, &shape, &options),
        None => Vec::new(),
    };
    let unit_m = options.shape().map_or(1.0, |shape| shape.unit_m);
    let Some(position) = options.store_at else {
        reply(&mut ctx.reply, &places, unit_m, &options);
        return Ok(());
    };
    drop(pause);
    let mut result = Builder::new(limits, seed, places.len(), 0);
    for place in &places {
        let score = if options.stores_distance {
            place.distance_m / unit_m
        } else {
            place.score
        };
        with_bytes(place.member, |member| result.add(score, member));
    }
    let count = places.len();
    drop(places);
    let destination = ctx.key(args.get(position));
    let changes = result.store(ctx, &destination);
    ctx.changed(changes.max(count as u64));
    ctx.reply.count(count);
    Ok(())
}

/// The places inside a shape, as many and in the order that was asked for.
fn find<'a>(set: View<'a>, shape: &Shape, options: &Options) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    let enough = if options.is_any {
        options.count
    } else {
        usize::MAX
    };
    shape.search(|first, behind| {
        let start = set.count_before(&Bound::Below(first));
        let members = set.walk(start).take_while(|&(score, _)| score < behind);
        for (score, member) in members {
            let point = Point::from_score(score);
            if let Some(distance_m) = shape.distance_m(point) {
                places.push(Place {
                    member,
                    score,
                    point,
                    distance_m,
                });
                if places.len() >= enough {
                    break;
                }
            }
        }
        places.len() < enough
    });
    // The nearest ones are only known in order.
    let is_limited = options.count > 0 && !options.is_any;
    let order = options.order.or(is_limited.then_some(Order::Near));
    let wanted = match options.count {
        0 => places.len(),
        count => count.min(places.len()),
    };
    if let Some(order) = order {
        let mut compare = |a: &Place<'_>, b: &Place<'_>| {
            let ordering = a.distance_m.partial_cmp(&b.distance_m);
            let ordering = ordering.unwrap_or(Ordering::Equal);
            match order {
                Order::Near => ordering,
                Order::Far => ordering.reverse(),
            }
        };
        if wanted == places.len() {
            places.sort_by(compare);
        } else {
            partial_sort(&mut places, &mut compare, 0, wanted.saturating_sub(1));
        }
    }
    places.truncate(wanted);
    places
}

fn reply(reply: &mut ReplyWriter<'_>, places: &[Place<'_>], unit_m: f64, options: &Options) {
    let parts = [options.with_distance, options.with_hash, options.with_point];
    let parts = parts.into_iter().filter(|&is_shown| is_shown).count();
    reply.array(places.len());
    for place in places {
        if parts > 0 {
            reply.array(parts + 1);
        }
        reply_string(reply, place.member);
        if options.with_distance {
            reply_distance(reply, place.distance_m / unit_m);
        }
        if options.with_hash {
            reply.int(place.score as i64);
        }
        if options.with_point {
            reply_point(reply, place.point);
        }
    }
}
