//! Rectangles that hold all of a shape, and the cells that cover them.
//!
//! An edge runs along a great circle. The tangent of its latitude is a sine of the longitude, so between two places
//! that are `d` degrees of longitude apart it rises above the higher tangent by no more than a division by
//! `cos(d/2)`.
//!
//! A ring that does not run around a pole, and is less than half the world wide, leaves at least half of the sphere
//! in one piece outside its rectangle. If the area to its left is less than that, it is within the rectangle. A ring
//! that crosses itself may run around a place the wrong way; the sum of angles that tells what a ring surrounds
//! then takes the opposite place for one inside.

use std::collections::VecDeque;

use super::Place;
use super::cell::{Cell, Tile, column, row};
use super::shape::Shape;
use super::sphere::{Vector, cross, dot, point, steradians};

/// What lies this near may count as touching, in degrees. It is a thousand times what rounding can do.
const MARGIN: f64 = 1e-6;
/// Nearer to a pole longitudes are no help.
const LATITUDE_MAX: f64 = 89.9;
/// An edge that spans more longitudes may run either way around.
const EDGE_MAX: f64 = 170.0;
const RING_WIDTH_MAX: f64 = 180.0;
const LINE_WIDTH_MAX: f64 = 340.0;
/// Rings are held to be ordinary if the area to their left, in steradians, is below half of the sphere for certain, and
/// if rounding cannot have changed its sign.
const AREA_MAX: f64 = 3.0;
const AREA_MIN_OF_CORNER: f64 = 1e-15;
/// Rings of more corners are not examined for crossings.
const CORNERS_EXAMINED: usize = 64;
/// Sides nearer than this are not told apart.
const SAME: f64 = 1e-13;
/// Metres of a degree on a sphere that is smaller than the Earth everywhere.
const METRES_OF_DEGREE: f64 = 109_000.0;

/// Where a shape lies.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bounds {
    World,
    Within(Vec<Rectangle>),
}

/// In degrees. The east may lie beyond 180.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Bounds {
    pub fn of(shape: &Shape) -> Bounds {
        let rectangles = Rectangle::all_of(shape).and_then(|rectangles| {
            rectangles.into_iter().map(|r| r.widened(MARGIN, MARGIN)).collect::<Option<Vec<_>>>()
        });
        rectangles.map_or(Bounds::World, Bounds::Within)
    }

    /// Everything that is not farther from the shape.
    pub fn grown(self, metres: f64) -> Bounds {
        let Bounds::Within(rectangles) = self else { return self };
        if metres <= 0.0 {
            return Bounds::Within(rectangles);
        }
        let angle = metres / METRES_OF_DEGREE;
        let grow = |r: Rectangle| {
            let highest = r.north.max(-r.south);
            // So the quotient stays below one.
            if !angle.is_finite() || highest + angle >= LATITUDE_MAX {
                return None;
            }
            let turn = (angle.to_radians().sin() / highest.to_radians().cos()).asin().to_degrees();
            r.widened(turn, angle)?.widened(MARGIN, MARGIN)
        };
        let grown: Option<Vec<Rectangle>> = rectangles.into_iter().map(grow).collect();
        grown.map_or(Bounds::World, Bounds::Within)
    }

    /// At most so many cells that together hold all of it, the largest divided first.
    pub fn cover(&self, cells_max: usize) -> Vec<Cell> {
        let Bounds::Within(rectangles) = self else { return vec![Cell::WORLD] };
        let tiles: Vec<Tile> = rectangles.iter().flat_map(|r| r.tiles()).collect();
        let mut pending = VecDeque::from([Cell::WORLD]);
        let mut cover = Vec::new();
        while let Some(cell) = pending.pop_front() {
            let tile = cell.tile();
            let parts: Vec<Cell> =
                cell.children().filter(|part| tiles.iter().any(|t| t.meets(&part.tile()))).collect();
            let is_full = cover.len() + pending.len() + parts.len() > cells_max;
            if is_full || parts.is_empty() || tiles.iter().any(|t| t.holds(&tile)) {
                cover.push(cell);
            } else {
                pending.extend(parts);
            }
        }
        cover
    }
}

impl Rectangle {
    /// None where only the world will do.
    fn all_of(shape: &Shape) -> Option<Vec<Rectangle>> {
        let mut all: Vec<Rectangle> = shape
            .points
            .iter()
            .map(|&[longitude, latitude]| Rectangle {
                west: longitude,
                east: longitude,
                south: latitude,
                north: latitude,
            })
            .collect();
        for line in &shape.lines {
            all.push(track(line)?);
        }
        for ring in shape.polygons.iter().flatten() {
            let bounds = track(ring)?;
            // One that runs around a pole is as wide as the world.
            if bounds.east - bounds.west >= RING_WIDTH_MAX || !is_ordinary(ring) {
                return None;
            }
            all.push(bounds);
            if !is_simple(ring) {
                all.push(bounds.opposite());
            }
        }
        Some(all)
    }

    fn widened(self, longitude: f64, latitude: f64) -> Option<Rectangle> {
        let wide = Rectangle {
            west: self.west - longitude,
            east: self.east + longitude,
            south: self.south - latitude,
            north: self.north + latitude,
        };
        let is_local =
            wide.south > -LATITUDE_MAX && wide.north < LATITUDE_MAX && wide.east - wide.west < LINE_WIDTH_MAX;
        is_local.then_some(wide)
    }

    /// The places on the other side of the Earth.
    fn opposite(self) -> Rectangle {
        Rectangle { west: self.west + 180.0, east: self.east + 180.0, south: -self.north, north: -self.south }
    }

    /// One tile, or two where the map ends in between.
    fn tiles(&self) -> impl Iterator<Item = Tile> + use<> {
        let turns = ((self.west + 180.0) / 360.0).floor() * 360.0;
        let (west, east) = (self.west - turns, self.east - turns);
        let (south, north) = (row(self.south), row(self.north));
        let tile = |west: f64, east: f64| Tile { west: column(west), east: column(east), south, north };
        let first = tile(west, east.min(180.0));
        let second = (east >= 180.0).then(|| tile(-180.0, east - 360.0));
        // A turn taken off may be rounded to the wrong side of the edge.
        let edge = (west <= -180.0 + MARGIN).then(|| tile(180.0, 180.0));
        [Some(first), second, edge].into_iter().flatten()
    }
}

/// The rectangle of a line or ring.
fn track(places: &[Place]) -> Option<Rectangle> {
    let &[start, latitude] = places.first()?;
    let mut bounds = Rectangle { west: start, east: start, south: latitude, north: latitude };
    let mut longitude = start;
    for edge in places.windows(2) {
        let ([from, a], [to, b]) = (edge[0], edge[1]);
        let step = (to - from + 540.0).rem_euclid(360.0) - 180.0;
        if step.abs() > EDGE_MAX {
            return None;
        }
        longitude += step;
        bounds.west = bounds.west.min(longitude);
        bounds.east = bounds.east.max(longitude);
        let rise = (step / 2.0).to_radians().cos();
        bounds.north = bounds.north.max(highest(a.max(b), rise));
        bounds.south = bounds.south.min(-highest(-a.min(b), rise));
    }
    Some(bounds)
}

fn highest(latitude: f64, rise: f64) -> f64 {
    if latitude <= 0.0 { latitude } else { (latitude.to_radians().tan() / rise).atan().to_degrees() }
}

/// Whether a ring stands for what it surrounds, and not for the rest of the world.
fn is_ordinary(ring: &[Place]) -> bool {
    let corners: Vec<Vector> = ring.iter().map(|place| point(*place)).collect();
    let area = steradians(&corners);
    area > AREA_MIN_OF_CORNER * corners.len() as f64 && area < AREA_MAX
}

/// Whether no two edges of a closed ring meet but at the corner that they share.
fn is_simple(ring: &[Place]) -> bool {
    if ring.len() > CORNERS_EXAMINED {
        return false;
    }
    let corners: Vec<Vector> = ring.iter().map(|place| point(*place)).collect();
    let edges: Vec<(Vector, Vector)> = corners.windows(2).map(|edge| (edge[0], edge[1])).collect();
    let last = edges.len().saturating_sub(1);
    let one_side = |(a, b): (Vector, Vector), c: Vector, d: Vector| {
        let normal = cross(a, b);
        let (c, d) = (dot(normal, c), dot(normal, d));
        (c > SAME && d > SAME) || (c < -SAME && d < -SAME)
    };
    let bends = |(a, b): (Vector, Vector), (_, d): (Vector, Vector)| dot(cross(a, b), d).abs() > SAME;
    edges.iter().enumerate().all(|(i, &first)| {
        edges.iter().enumerate().skip(i + 1).all(|(j, &second)| {
            if j == i + 1 {
                bends(first, second)
            } else if i == 0 && j == last {
                bends(second, first)
            } else {
                one_side(first, second.0, second.1) || one_side(second, first.0, first.1)
            }
        })
    })
}
