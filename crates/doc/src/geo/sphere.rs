//! Places as vectors of length one.

use std::f64::consts::PI;

use super::Place;

pub type Vector = [f64; 3];

pub fn point(place: Place) -> Vector {
    let ((sin_lon, cos_lon), (sin_lat, cos_lat)) =
        (place[0].to_radians().sin_cos(), place[1].to_radians().sin_cos());
    [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat]
}

pub fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The area to the left of a closed ring on the unit sphere, from 0 to 4 pi: the sum of the triangles between its
/// first corner and its edges.
pub fn steradians(ring: &[Vector]) -> f64 {
    let Some(first) = ring.first() else { return 0.0 };
    let triangle = |edge: &[Vector]| {
        let (b, c) = (edge[0], edge[1]);
        2.0 * dot(*first, cross(b, c)).atan2(1.0 + dot(*first, b) + dot(b, c) + dot(c, *first))
    };
    let sum: f64 = ring.windows(2).map(triangle).sum();
    if sum >= 0.0 { sum } else { 4.0 * PI + sum }
}
