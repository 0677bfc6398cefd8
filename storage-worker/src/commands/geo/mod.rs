//! Places on the globe: sorted sets whose scores are geohashes of 52 bits.
//!
//! Not here: the geohashes themselves (`collections::geohash`), the sets (`sorted_set`).

mod options;
mod places;
mod search;

pub(crate) use places::{geoadd, geodist, geohash, geopos};
pub(crate) use search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};

use crate::collections::geohash::Point;
use crate::commands::prelude::*;
use crate::commands::sorted_set::value::View;
use proto::number::parse_f64;

/// Metres per unit.
fn unit_m(name: &[u8]) -> Result<f64, CommandError> {
    const UNITS: [(&[u8], f64); 4] = [
        (b"m", 1.0),
        (b"km", 1000.0),
        (b"ft", 0.3048),
        (b"mi", 1609.34),
    ];
    let found = UNITS
        .iter()
        .find(|(unit, _)| name.eq_ignore_ascii_case(unit));
    found
        .map(|(_, metres)| *metres)
        .ok_or(CommandError::GeoUnit)
}

/// Reads a point that must be on the covered part of the globe.
fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point, CommandError> {
    let longitude = parse_f64(longitude).ok_or(CommandError::NotAFloat)?;
    let latitude = parse_f64(latitude).ok_or(CommandError::NotAFloat)?;
    let point = Point {
        longitude,
        latitude,
    };
    if point.is_covered() {
        return Ok(point);
    }
    let line = format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}");
    Err(CommandError::Line(line.into_bytes().into()))
}

/// Where a member of a set is.
fn point_of(set: View<'_>, member: &[u8]) -> Option<Point> {
    set.score(member).map(Point::from_score)
}

/// Replies with a distance, with four digits behind the point.
fn reply_distance(reply: &mut ReplyWriter<'_>, distance: f64) {
    let scaled = distance * 10_000.0;
    // As the processor rounds: to even, and what is too large becomes the smallest number.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let rounded = if scaled.abs() < LIMIT {
        scaled.round_ties_even() as i64
    } else {
        i64::MIN
    };
    let sign = if rounded < 0 { "-" } else { "" };
    let digits = rounded.unsigned_abs();
    let text = format!("{sign}{}.{:04}", digits / 10_000, digits % 10_000);
    reply.bulk(text.as_bytes());
}

/// Replies with the coordinates of a point.
fn reply_point(reply: &mut ReplyWriter<'_>, point: Point) {
    reply.array(2);
    reply.double(point.longitude);
    reply.double(point.latitude);
}
