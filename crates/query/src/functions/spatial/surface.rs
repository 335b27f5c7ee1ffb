//! The two surfaces that shapes live on: the globe, where edges are arcs of great circles, and the
//! plane, where they are straight. All that the relations between shapes need to know of a surface is
//! here.

use std::f64::consts::PI;

use orrery_doc::geo::sphere::{self, Vector, cross, dot, steradians};

use super::geodesic;
use super::shape::Place;

pub(super) trait Surface {
    type Point: Copy;

    fn point(place: Place) -> Self::Point;

    /// Whether a point lies on an edge, its ends included.
    fn touches(p: Self::Point, a: Self::Point, b: Self::Point) -> bool;

    /// Whether two edges cross between their ends.
    fn crosses(a: Self::Point, b: Self::Point, c: Self::Point, d: Self::Point) -> bool;

    /// The point of an edge that is nearest to `p`.
    fn nearest(p: Self::Point, a: Self::Point, b: Self::Point) -> Self::Point;

    /// The point halfway along an edge.
    fn middle(a: Self::Point, b: Self::Point) -> Self::Point;

    /// Grows with the distance, and is cheap.
    fn gap(p: Self::Point, q: Self::Point) -> f64;

    fn distance(p: Self::Point, q: Self::Point) -> f64;

    /// How often a closed ring runs around a point, against the clock.
    fn turns(ring: &[Self::Point], p: Self::Point) -> i32;

    /// Whether the region to the left of a ring is the larger one of the two that it bounds.
    fn is_inverse(ring: &[Self::Point]) -> bool;

    /// The area to the left of a closed ring, in square metres (or in square units of the plane).
    fn area(ring: &[Place]) -> f64;
}

pub(super) struct Globe;

/// Sine of the angle under which things are the same: some micrometres on the Earth.
const SAME: f64 = 1e-12;

impl Surface for Globe {
    type Point = Vector;

    fn point(place: Place) -> Vector {
        sphere::point(place)
    }

    fn touches(p: Vector, a: Vector, b: Vector) -> bool {
        let normal = cross(a, b);
        let length = dot(normal, normal).sqrt();
        if length <= SAME {
            return Self::gap(p, a) <= SAME * SAME;
        }
        dot(normal, p).abs() <= SAME * length
            && dot(cross(a, p), normal) >= -SAME * length
            && dot(cross(p, b), normal) >= -SAME * length
    }

    fn crosses(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
        let (ab, cd) = (cross(a, b), cross(c, d));
        let sides = [dot(ab, c), dot(ab, d), dot(cd, a), dot(cd, b)];
        if sides.contains(&0.0) {
            return false;
        }
        let left = sides.map(|side| side > 0.0);
        left[0] != left[1] && left[2] != left[3] && left[0] == left[3]
    }

    fn nearest(p: Vector, a: Vector, b: Vector) -> Vector {
        let normal = cross(a, b);
        let square = dot(normal, normal);
        if square > SAME * SAME {
            let off = dot(normal, p) / square;
            let foot = [p[0] - off * normal[0], p[1] - off * normal[1], p[2] - off * normal[2]];
            let length = dot(foot, foot).sqrt();
            if length > SAME && dot(cross(a, foot), normal) >= 0.0 && dot(cross(foot, b), normal) >= 0.0 {
                return foot.map(|x| x / length);
            }
        }
        if Self::gap(p, a) <= Self::gap(p, b) { a } else { b }
    }

    fn middle(a: Vector, b: Vector) -> Vector {
        let sum = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
        let length = dot(sum, sum).sqrt();
        if length > SAME { sum.map(|x| x / length) } else { a }
    }

    fn gap(p: Vector, q: Vector) -> f64 {
        let between = [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
        dot(between, between)
    }

    fn distance(p: Vector, q: Vector) -> f64 {
        let place = |v: Vector| [v[1].atan2(v[0]).to_degrees(), v[2].clamp(-1.0, 1.0).asin().to_degrees()];
        geodesic::distance(place(p), place(q))
    }

    /// The ring as seen from the point: the sum of the angles between the directions to its corners.
    fn turns(ring: &[Vector], p: Vector) -> i32 {
        let angle = |edge: &[Vector]| {
            let (v, w) = (edge[0], edge[1]);
            dot(p, cross(v, w)).atan2(dot(v, w) - dot(v, p) * dot(w, p))
        };
        (ring.windows(2).map(angle).sum::<f64>() / (2.0 * PI)).round() as i32
    }

    fn is_inverse(ring: &[Vector]) -> bool {
        steradians(ring) > 2.0 * PI
    }

    fn area(ring: &[Place]) -> f64 {
        let ring: Vec<Vector> = ring.iter().map(|place| Self::point(geodesic::equal_area(*place))).collect();
        steradians(&ring) * geodesic::square_metres()
    }
}

pub(super) struct Plane;

impl Surface for Plane {
    type Point = Place;

    fn point(place: Place) -> Place {
        place
    }

    fn touches(p: Place, a: Place, b: Place) -> bool {
        let foot = Self::nearest(p, a, b);
        let scale = p.iter().chain(&a).chain(&b).fold(1.0, |most: f64, x| most.max(x.abs()));
        Self::gap(p, foot) <= (SAME * scale) * (SAME * scale)
    }

    fn crosses(a: Place, b: Place, c: Place, d: Place) -> bool {
        let apart = |x: f64, y: f64| (x > 0.0 && y < 0.0) || (x < 0.0 && y > 0.0);
        apart(side(a, b, c), side(a, b, d)) && apart(side(c, d, a), side(c, d, b))
    }

    fn nearest(p: Place, a: Place, b: Place) -> Place {
        let (x, y) = (b[0] - a[0], b[1] - a[1]);
        let square = x * x + y * y;
        if square == 0.0 {
            return a;
        }
        let along = (((p[0] - a[0]) * x + (p[1] - a[1]) * y) / square).clamp(0.0, 1.0);
        [a[0] + along * x, a[1] + along * y]
    }

    fn middle(a: Place, b: Place) -> Place {
        [a[0] + (b[0] - a[0]) / 2.0, a[1] + (b[1] - a[1]) / 2.0]
    }

    fn gap(p: Place, q: Place) -> f64 {
        (p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2)
    }

    fn distance(p: Place, q: Place) -> f64 {
        Self::gap(p, q).sqrt()
    }

    /// The plane has no end, so nobody means the region outside of a ring: its direction does not
    /// matter, and turns are counted without their sign.
    fn turns(ring: &[Place], p: Place) -> i32 {
        let turn = |edge: &[Place]| {
            let (a, b) = (edge[0], edge[1]);
            match (a[1] <= p[1], b[1] <= p[1]) {
                (true, false) if side(a, b, p) > 0.0 => 1,
                (false, true) if side(a, b, p) < 0.0 => -1,
                _ => 0,
            }
        };
        ring.windows(2).map(turn).sum::<i32>().abs()
    }

    fn is_inverse(_: &[Place]) -> bool {
        false
    }

    fn area(ring: &[Place]) -> f64 {
        let Some(first) = ring.first() else { return 0.0 };
        (ring.windows(2).map(|edge| side(*first, edge[0], edge[1])).sum::<f64>() / 2.0).abs()
    }
}

/// Positive to the left of the line from `a` to `b`.
fn side(a: Place, b: Place, p: Place) -> f64 {
    (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
}
