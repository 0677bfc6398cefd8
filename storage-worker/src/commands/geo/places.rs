//! Single places: GEOADD, GEODIST, GEOHASH, GEOPOS.

use super::{point, point_of, reply_distance, reply_point, unit_m};
use crate::collections::geohash::Point;
use crate::commands::prelude::*;
use crate::commands::sorted_set::value::View;
use crate::commands::sorted_set::{AddOptions, put_and_reply};

/// GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]
pub(crate) fn geoadd(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut options = AddOptions::default();
    let mut first = 2;
    while first < args.len() {
        let word = args.get(first);
        if word.eq_ignore_ascii_case(b"NX") {
            options.only_new = true;
        } else if word.eq_ignore_ascii_case(b"XX") {
            options.only_old = true;
        } else if word.eq_ignore_ascii_case(b"CH") {
            options.counts_changes = true;
        } else {
            break;
        }
        first += 1;
    }
    let left = args.len() - first;
    if left == 0 || !left.is_multiple_of(3) || (options.only_new && options.only_old) {
        return Err(CommandError::Syntax);
    }
    let places = (first..args.len()).step_by(3).map(|position| {
        let point = point(args.get(position), args.get(position + 1))?;
        Ok((point.to_bits() as f64, args.get(position + 2)))
    });
    let places = places.collect::<Result<Vec<_>, CommandError>>()?;
    put_and_reply(ctx, args, places.into_iter(), options)
}

/// GEODIST key member1 member2 [M | KM | FT | MI]
pub(crate) fn geodist(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let unit_m = match args.len() {
        4 => 1.0,
        5 => unit_m(args.get(4))?,
        _ => return Err(CommandError::Syntax),
    };
    let key = ctx.first_key(args);
    let points = match ctx.keyspace.find(&key, ctx.now, ctx.access) {
        Some(found) => {
            let set = View::of(&found)?;
            point_of(set, args.get(2)).zip(point_of(set, args.get(3)))
        }
        None => None,
    };
    match points {
        Some((from, to)) => reply_distance(&mut ctx.reply, from.distance_m(to) / unit_m),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// GEOHASH key [member ...]
pub(crate) fn geohash(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    for_each_member(ctx, args, |reply, point| match point {
        Some(point) => reply.bulk(&point.to_text()),
        None => reply.null(),
    })
}

/// GEOPOS key [member ...]
pub(crate) fn geopos(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    for_each_member(ctx, args, |reply, point| match point {
        Some(point) => reply_point(reply, point),
        None => reply.null_array(),
    })
}

/// Replies with an array of what `show` says of each member's place.
fn for_each_member(
    ctx: &mut Context<'_>,
    args: Args<'_>,
    mut show: impl FnMut(&mut ReplyWriter<'_>, Option<Point>),
) -> CommandResult {
    let key = ctx.first_key(args);
    let set = View::find(ctx.keyspace, &key, ctx.now, ctx.access)?;
    ctx.reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        let point = set.and_then(|set| point_of(set, member));
        show(&mut ctx.reply, point);
    }
    Ok(())
}
