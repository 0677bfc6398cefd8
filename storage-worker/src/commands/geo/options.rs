//! The arguments of searches: what is searched for, and what is replied.

use super::{point, point_of, unit_m};
use crate::collections::geohash::{Extent, Point, Shape};
use crate::commands::prelude::*;
use crate::commands::sorted_set::value::View;
use proto::number::parse_f64;

/// Which command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// GEOSEARCH: words say what is searched for.
    Search,
    /// GEOSEARCHSTORE.
    SearchStore,
    /// GEORADIUS: point, radius and unit come first; `true`: it may store.
    Radius(bool),
    /// GEORADIUSBYMEMBER: member, radius and unit come first; `true`: it may store.
    RadiusByMember(bool),
}

/// Order of the replies by distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Near,
    Far,
}

/// What the words say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) with_distance: bool,
    pub(super) with_hash: bool,
    pub(super) with_point: bool,
    /// Places at most; 0 for all.
    pub(super) count: usize,
    /// Any places are good, not only the nearest ones.
    pub(super) is_any: bool,
    pub(super) order: Option<Order>,
    /// The position of the key to store at.
    pub(super) store_at: Option<usize>,
    pub(super) stores_distance: bool,
    center: Option<Point>,
    extent: Option<(Extent, f64)>,
    has_member: bool,
    has_point: bool,
}

/// Where the source of a command is.
pub(super) fn source_position(form: Form) -> usize {
    if form == Form::SearchStore { 2 } else { 1 }
}

impl Options {
    /// Reads all arguments behind the source. `set` is what was found there: without it, members are
    /// not looked up.
    pub(super) fn parse(
        args: Args<'_>,
        form: Form,
        set: Option<View<'_>>,
    ) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let mut at = match form {
            Form::Search => 2,
            Form::SearchStore => {
                options.store_at = Some(1);
                3
            }
            Form::Radius(_) => {
                options.center = Some(point(args.get(2), args.get(3))?);
                options.extent = Some(radius(args, 4)?);
                6
            }
            Form::RadiusByMember(_) => {
                if let Some(set) = set {
                    let center = point_of(set, args.get(2));
                    options.center = Some(center.ok_or(CommandError::GeoMember)?);
                    options.extent = Some(radius(args, 3)?);
                }
                5
            }
        };
        while at < args.len() {
            at += options.word(args, at, form, set)?;
        }
        options.check(form)?;
        Ok(options)
    }

    /// Reads the option at `at`; returns how many arguments it has.
    fn word(
        &mut self,
        args: Args<'_>,
        at: usize,
        form: Form,
        set: Option<View<'_>>,
    ) -> Result<usize, CommandError> {
        let (word, more) = (args.get(at), args.len() - at - 1);
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let searches = matches!(form, Form::Search | Form::SearchStore);
        let may_store = matches!(form, Form::Radius(true) | Form::RadiusByMember(true));
        if is(b"WITHDIST") {
            self.with_distance = true;
        } else if is(b"WITHHASH") {
            self.with_hash = true;
        } else if is(b"WITHCOORD") {
            self.with_point = true;
        } else if is(b"ANY") {
            self.is_any = true;
        } else if is(b"ASC") {
            self.order = Some(Order::Near);
        } else if is(b"DESC") {
            self.order = Some(Order::Far);
        } else if is(b"COUNT") && more > 0 {
            let count = usize::try_from(integer(args.get(at + 1))?);
            self.count = count
                .ok()
                .filter(|&count| count > 0)
                .ok_or(CommandError::GeoCount)?;
            return Ok(2);
        } else if may_store && more > 0 && (is(b"STORE") || is(b"STOREDIST")) {
            self.store_at = Some(at + 1);
            self.stores_distance = is(b"STOREDIST");
            return Ok(2);
        } else if searches && more > 0 && !self.has_point && is(b"FROMMEMBER") {
            if let Some(set) = set {
                let center = point_of(set, args.get(at + 1));
                self.center = Some(center.ok_or(CommandError::GeoMember)?);
            }
            self.has_member = true;
            return Ok(2);
        } else if searches && more > 1 && !self.has_member && is(b"FROMLONLAT") {
            self.center = Some(point(args.get(at + 1), args.get(at + 2))?);
            self.has_point = true;
            return Ok(3);
        } else if searches && more > 1 && !self.is_box() && is(b"BYRADIUS") {
            self.extent = Some(radius(args, at + 1)?);
            return Ok(3);
        } else if searches && more > 2 && !self.is_circle() && is(b"BYBOX") {
            self.extent = Some(rectangle(args, at + 1)?);
            return Ok(4);
        } else if form == Form::SearchStore && is(b"STOREDIST") {
            self.stores_distance = true;
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(1)
    }

    fn is_circle(&self) -> bool {
        matches!(self.extent, Some((Extent::Radius(_), _)))
    }

    fn is_box(&self) -> bool {
        matches!(self.extent, Some((Extent::Box { .. }, _)))
    }

    /// Whether all words go together.
    fn check(&self, form: Form) -> CommandResult {
        let shows_more = self.with_distance || self.with_hash || self.with_point;
        if self.store_at.is_some() && shows_more {
            return Err(if form == Form::SearchStore {
                CommandError::GeoSearchStoreShows
            } else {
                CommandError::GeoRadiusStoreShows
            });
        }
        let name = match form {
            Form::Search => "GEOSEARCH",
            Form::SearchStore => "GEOSEARCHSTORE",
            Form::Radius(_) | Form::RadiusByMember(_) => "",
        };
        if !name.is_empty() && !self.has_member && !self.has_point {
            let words = "FROMMEMBER or FROMLONLAT";
            return Err(CommandError::ExactlyOne { words, name });
        }
        if !name.is_empty() && self.extent.is_none() {
            let words = "BYRADIUS and BYBOX";
            return Err(CommandError::ExactlyOne { words, name });
        }
        if self.is_any && self.count == 0 {
            return Err(CommandError::GeoAny);
        }
        Ok(())
    }

    /// What is searched for; known if the source was found.
    pub(super) fn shape(&self) -> Option<Shape> {
        let (extent, unit_m) = self.extent?;
        Some(Shape {
            center: self.center?,
            extent,
            unit_m,
        })
    }
}

fn radius(args: Args<'_>, at: usize) -> Result<(Extent, f64), CommandError> {
    let radius = parse_f64(args.get(at)).ok_or(CommandError::GeoRadius)?;
    if radius < 0.0 {
        return Err(CommandError::GeoRadiusNegative);
    }
    Ok((Extent::Radius(radius), unit_m(args.get(at + 1))?))
}

fn rectangle(args: Args<'_>, at: usize) -> Result<(Extent, f64), CommandError> {
    let width = parse_f64(args.get(at)).ok_or(CommandError::GeoWidth)?;
    let height = parse_f64(args.get(at + 1)).ok_or(CommandError::GeoHeight)?;
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::GeoBoxNegative);
    }
    Ok((Extent::Box { width, height }, unit_m(args.get(at + 2))?))
}
