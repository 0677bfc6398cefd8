//! Geohashes of 52 bits: points on the globe as numbers that are near each other when the points are.
//!
//! ```text
//!   longitude -180 ..= 180            each halved `step` times, a bit per halving;
//!   latitude  -85.05... ..= 85.05...  the bits of both take turns: lo la lo la ... lo la
//!
//!   bits of a cell of step s, shifted to 52 bits, is the lowest number of all points in it, so a
//!   circle is searched as up to nine ranges: its cell and the eight around
//! ```
//!
//! All of it is done in the order of operations that Redis does it in, so that the last digit of a
//! distance is the same.
//!
//! Cost: a distance is some 50 ns of sines; everything else is a few instructions.
//! Not here: members, units, replies (`commands::geo`).

/// Halvings of a point.
pub const STEP_MAX: u32 = 26;
/// The globe as far as it is covered.
pub const LONGITUDE_MAX: f64 = 180.0;
/// As far as the Mercator projection is a square.
pub const LATITUDE_MAX: f64 = 85.051_128_78;

const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half of the equator in the Mercator projection.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// The bits of latitudes: every second one from the lowest on.
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// A point in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// East is positive.
    pub longitude: f64,
    /// North is positive.
    pub latitude: f64,
}

/// A range of coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    min: f64,
    max: f64,
}

/// Both coordinates' ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    longitude: Range,
    latitude: Range,
}

/// The globe that numbers are made of.
const GLOBE: Area = Area {
    longitude: Range {
        min: -LONGITUDE_MAX,
        max: LONGITUDE_MAX,
    },
    latitude: Range {
        min: -LATITUDE_MAX,
        max: LATITUDE_MAX,
    },
};

/// The globe that texts are made of.
const WHOLE_GLOBE: Area = Area {
    latitude: Range {
        min: -90.0,
        max: 90.0,
    },
    ..GLOBE
};

/// A cell: all points whose coordinates begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    bits: u64,
    step: u32,
}

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its middle.
    pub center: Point,
    /// Its size.
    pub extent: Extent,
    /// Metres per unit of the size.
    pub unit_m: f64,
}

/// The size of a shape in its unit.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// All points up to this distance.
    Radius(f64),
    /// All points up to half of these distances to the east and west, and to the north and south.
    Box {
        /// West to east.
        width: f64,
        /// South to north.
        height: f64,
    },
}

impl Point {
    /// Whether both coordinates are on the globe as far as it is covered.
    #[must_use]
    pub fn is_covered(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// The number of a covered point.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        encode(GLOBE, self, STEP_MAX)
    }

    /// The middle of the cell of a number, which may be any score.
    #[must_use]
    pub fn from_score(score: f64) -> Point {
        let cell = Cell {
            bits: truncated(score),
            step: STEP_MAX,
        };
        let area = cell.area();
        let middle =
            |range: Range, limit: f64| ((range.min + range.max) / 2.0).min(limit).max(-limit);
        Point {
            longitude: middle(area.longitude, LONGITUDE_MAX),
            latitude: middle(area.latitude, LATITUDE_MAX),
        }
    }

    /// The text that geohash services understand, of 11 letters; the last one says nothing.
    #[must_use]
    pub fn to_text(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = encode(WHOLE_GLOBE, self, STEP_MAX);
        let mut text = [b'0'; 11];
        for (place, letter) in text[..10].iter_mut().enumerate() {
            *letter = LETTERS[(bits >> (47 - 5 * place) & 31) as usize];
        }
        text
    }

    /// Metres to another point along the surface.
    #[must_use]
    pub fn distance_m(self, other: Point) -> f64 {
        let longitude = self.longitude * RADIANS_PER_DEGREE;
        let other_longitude = other.longitude * RADIANS_PER_DEGREE;
        let v = ((other_longitude - longitude) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance_m(self.latitude, other.latitude);
        }
        let latitude = self.latitude * RADIANS_PER_DEGREE;
        let other_latitude = other.latitude * RADIANS_PER_DEGREE;
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        2.0 * EARTH_RADIUS_M * a.sqrt().asin()
    }
}

fn latitude_distance_m(latitude: f64, other: f64) -> f64 {
    EARTH_RADIUS_M * (other * RADIANS_PER_DEGREE - latitude * RADIANS_PER_DEGREE).abs()
}

/// A score as the processor turns it into an unsigned number: what is below zero or too large gives
/// something, too.
fn truncated(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if score < HALF {
        // Below -2^63 the processor gives -2^63, as this does.
        (score as i64).cast_unsigned()
    } else if score < 2.0 * HALF {
        (score - HALF) as u64 ^ 1 << 63
    } else {
        0
    }
}

fn encode(globe: Area, point: Point, step: u32) -> u64 {
    let fraction = |range: Range, value: f64| (value - range.min) / (range.max - range.min);
    let cells = (1u64 << step) as f64;
    let latitude = (fraction(globe.latitude, point.latitude) * cells) as u32;
    let longitude = (fraction(globe.longitude, point.longitude) * cells) as u32;
    spread(latitude) | spread(longitude) << 1
}

/// Puts a zero between any two bits.
fn spread(bits: u32) -> u64 {
    let mut bits = u64::from(bits);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & LATITUDE_BITS
}

/// Takes every second bit.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

impl Cell {
    fn of(point: Point, step: u32) -> Cell {
        Cell {
            bits: encode(GLOBE, point, step),
            step,
        }
    }

    /// The coordinates that it covers.
    fn area(self) -> Area {
        let cells = (1u64 << self.step) as f64;
        let range = |globe: Range, number: u32| {
            let scale = globe.max - globe.min;
            // Numbers beyond the last cell come from scores that are no geohash; they wrap.
            let next = number.wrapping_add(1);
            Range {
                min: globe.min + f64::from(number) / cells * scale,
                max: globe.min + f64::from(next) / cells * scale,
            }
        };
        Area {
            longitude: range(GLOBE.longitude, gather(self.bits >> 1)),
            latitude: range(GLOBE.latitude, gather(self.bits)),
        }
    }

    /// The cell so many cells to the east and to the north, each -1, 0 or 1; around the globe.
    fn neighbor(self, east: i8, north: i8) -> Cell {
        let unused = 64 - 2 * self.step;
        let longitude = stepped(self.bits, LONGITUDE_BITS, LATITUDE_BITS, unused, east);
        let latitude = stepped(self.bits, LATITUDE_BITS, LONGITUDE_BITS, unused, north);
        Cell {
            bits: longitude | latitude,
            step: self.step,
        }
    }

    /// The scores of all points in it: from the first number up to, not including, the second.
    fn scores(self) -> (f64, f64) {
        let shift = 52 - 2 * self.step;
        let first = self.bits << shift;
        let behind = (self.bits + 1) << shift;
        (first as f64, behind as f64)
    }
}

/// One coordinate's bits, moved by one cell; the carry runs through the bits of the other one.
fn stepped(bits: u64, own: u64, other: u64, unused: u32, direction: i8) -> u64 {
    let value = bits & own;
    let filler = other >> unused;
    match direction {
        0 => value,
        1.. => value.wrapping_add(filler + 1) & own >> unused,
        _ => (value | filler).wrapping_sub(filler + 1) & own >> unused,
    }
}

impl Shape {
    /// Metres to a point, if it is inside.
    #[must_use]
    pub fn distance_m(&self, point: Point) -> Option<f64> {
        match self.extent {
            Extent::Radius(radius) => {
                let distance = self.center.distance_m(point);
                // Of opposite points the distance may not be a number; they are inside then.
                let is_outside = distance > radius * self.unit_m;
                (!is_outside).then_some(distance)
            }
            Extent::Box { width, height } => {
                let (width_m, height_m) = (width * self.unit_m, height * self.unit_m);
                // The cheap one first.
                let to_north = latitude_distance_m(point.latitude, self.center.latitude);
                if to_north > height_m / 2.0 {
                    return None;
                }
                let beside = Point {
                    latitude: point.latitude,
                    ..self.center
                };
                if point.distance_m(beside) > width_m / 2.0 {
                    return None;
                }
                Some(self.center.distance_m(point))
            }
        }
    }

    /// West, south, east and north end.
    fn bounds(&self) -> (f64, f64, f64, f64) {
        let (width, height) = match self.extent {
            Extent::Radius(radius) => (radius, radius),
            Extent::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let (width_m, height_m) = (self.unit_m * width, self.unit_m * height);
        let Point {
            longitude,
            latitude,
        } = self.center;
        let to_north = height_m / EARTH_RADIUS_M / RADIANS_PER_DEGREE;
        // A degree of longitude is shortest at the end that is nearer to the pole.
        let far = if latitude < 0.0 {
            latitude - to_north
        } else {
            latitude + to_north
        };
        let to_east =
            width_m / EARTH_RADIUS_M / (far * RADIANS_PER_DEGREE).cos() / RADIANS_PER_DEGREE;
        (
            longitude - to_east,
            latitude - to_north,
            longitude + to_east,
            latitude + to_north,
        )
    }

    /// Metres from the middle to the farthest point.
    fn reach_m(&self) -> f64 {
        let reach = match self.extent {
            Extent::Radius(radius) => radius,
            Extent::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        };
        reach * self.unit_m
    }

    /// Calls `search` with ranges of scores (the second end not included) that hold all points of the
    /// shape, until it says false.
    pub fn search(&self, mut search: impl FnMut(f64, f64) -> bool) {
        /// East and north of the cells around, in the order in which they are looked at.
        const AROUND: [(i8, i8); 8] = [
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ];
        let (west, south, east, north) = self.bounds();
        let cell = self.cell(west, south, east, north);
        let area = cell.area();
        let is_needed = |(to_east, to_north): (i8, i8)| {
            cell.step < 2
                || !(to_north < 0 && area.latitude.min < south
                    || to_north > 0 && area.latitude.max > north
                    || to_east < 0 && area.longitude.min < west
                    || to_east > 0 && area.longitude.max > east)
        };
        if !search_cell(cell, &mut search) {
            return;
        }
        // With huge shapes a cell can be its own neighbour; the reference looks again only at the first
        // of them, and so do we.
        let mut last = None;
        for (to_east, to_north) in AROUND {
            let next = cell.neighbor(to_east, to_north);
            if !is_needed((to_east, to_north)) || last == Some(next) {
                continue;
            }
            if !search_cell(next, &mut search) {
                return;
            }
            last = Some(next);
        }
    }

    /// The smallest cell that covers the shape together with those around it.
    fn cell(&self, west: f64, south: f64, east: f64, north: f64) -> Cell {
        let step = steps_for(self.reach_m(), self.center.latitude);
        let cell = Cell::of(self.center, step);
        let around = |to_east, to_north| cell.neighbor(to_east, to_north).area();
        // Near the edge of the cell, the next one may end too early.
        let is_too_small = around(0, 1).latitude.max < north
            || around(0, -1).latitude.min > south
            || around(1, 0).longitude.max < east
            || around(-1, 0).longitude.min > west;
        if step > 1 && is_too_small {
            Cell::of(self.center, step - 1)
        } else {
            cell
        }
    }
}

fn search_cell(cell: Cell, search: &mut impl FnMut(f64, f64) -> bool) -> bool {
    let (first, behind) = cell.scores();
    search(first, behind)
}

/// Halvings after which a cell is about as large as the distance.
fn steps_for(mut distance_m: f64, latitude: f64) -> u32 {
    if distance_m == 0.0 {
        return STEP_MAX;
    }
    let mut step = 1i32;
    while distance_m < MERCATOR_MAX_M {
        distance_m *= 2.0;
        step += 1;
    }
    // The distance is to be covered from any point of the cell.
    step -= 2;
    // Cells get narrow towards the poles.
    if latitude.abs() > 66.0 {
        step -= 1;
        if latitude.abs() > 80.0 {
            step -= 1;
        }
    }
    step.clamp(1, STEP_MAX as i32).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn point(longitude: f64, latitude: f64) -> Point {
        Point {
            longitude,
            latitude,
        }
    }

    // As Redis 8.0.6 answers.
    #[test]
    fn numbers_texts_and_distances_are_those_of_the_reference() {
        let palermo = point(13.361389, 38.115556);
        let catania = point(15.087269, 37.502669);
        assert_eq!(palermo.to_bits(), 3_479_099_956_230_698);
        assert_eq!(catania.to_bits(), 3_479_447_370_796_909);
        assert_eq!(point(180.0, LATITUDE_MAX).to_bits(), 13_510_798_882_111_488);
        let palermo = Point::from_score(3_479_099_956_230_698.0);
        let catania = Point::from_score(3_479_447_370_796_909.0);
        assert_eq!(palermo, point(13.361389338970184, 38.1155563954963));
        assert_eq!(&palermo.to_text(), b"sqc8b49rny0");
        assert_eq!(&catania.to_text(), b"sqdtr74hyu0");
        assert_eq!(format!("{:.4}", palermo.distance_m(catania)), "166274.1516");
    }

    #[test]
    fn scores_that_are_no_geohash_have_points_too() {
        assert_eq!(Point::from_score(-1.0), point(180.0, LATITUDE_MAX));
        let first = Point::from_score(0.0);
        assert_eq!(Point::from_score(1e300), first);
        assert_eq!(Point::from_score(f64::INFINITY), first);
        for score in [f64::NEG_INFINITY, -1e19, 9.3e18, 1.8e19, 1.5] {
            assert!(Point::from_score(score).is_covered());
        }
    }

    fn points() -> impl Strategy<Value = Point> {
        let latitude = -LATITUDE_MAX..LATITUDE_MAX;
        (-180.0..180.0, latitude).prop_map(|(longitude, latitude)| point(longitude, latitude))
    }

    proptest! {
        #[test]
        fn a_number_leads_back_to_its_cell(point in points()) {
            let bits = point.to_bits();
            let middle = Point::from_score(bits as f64);
            prop_assert!(point.distance_m(middle) < 1.0);
            prop_assert_eq!(middle.to_bits(), bits);
        }

        #[test]
        fn the_cells_of_a_circle_hold_its_points(
            center in points(),
            bearing in 0.0f64..7.0,
            share in 0.0f64..1.0,
            radius in 1.0f64..100_000.0,
        ) {
            prop_assume!(center.latitude.abs() < 80.0 && center.longitude.abs() < 175.0);
            let shape = Shape { center, extent: Extent::Radius(radius), unit_m: 1.0 };
            let degrees = radius / EARTH_RADIUS_M / RADIANS_PER_DEGREE * share;
            let inside = point(
                center.longitude + degrees * bearing.sin() / (center.latitude * RADIANS_PER_DEGREE).cos() * 0.98,
                center.latitude + degrees * bearing.cos(),
            );
            prop_assume!(shape.distance_m(inside).is_some());
            let score = inside.to_bits() as f64;
            let mut is_found = false;
            shape.search(|first, behind| {
                is_found |= (first..behind).contains(&score);
                true
            });
            prop_assert!(is_found);
        }

        #[test]
        fn bits_take_turns(latitude: u32, longitude: u32) {
            let bits = spread(latitude) | spread(longitude) << 1;
            prop_assert_eq!((gather(bits), gather(bits >> 1)), (latitude, longitude));
        }
    }
}
