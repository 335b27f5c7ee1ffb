//! Generated shapes on the globe: points, lines and polygons of all sizes, also where the map ends, at the poles,
//! around them, and rings that run with the clock or cross themselves.

use serde_json::{Value, json};

use crate::Random;

/// Shapes gather here, so that some of them meet.
const CENTRES: [[f64; 2]; 8] = [
    [4.9, 52.4],
    [4.9, 52.4],
    [0.0, 0.0],
    [180.0, 10.0],
    [-179.95, -16.0],
    [30.0, 90.0],
    [-70.0, -89.95],
    [100.0, 45.0],
];
const SIZES: [f64; 6] = [0.0001, 0.01, 0.5, 5.0, 30.0, 75.0];

/// A distance in metres, from nothing to around the world.
pub fn metres(random: &mut Random) -> f64 {
    *random.pick(&[0.0, 5.0, 1_500.0, 60_000.0, 60_000.0, 900_000.0, 4e6, 1.2e7, 2.1e7])
}

pub fn shape(random: &mut Random) -> Value {
    match random.below(12) {
        0..=4 => point(random),
        5 => json!({"type": "LineString", "coordinates": corners(random, 3)}),
        6..=8 => json!({"type": "Polygon", "coordinates": [ring(random)]}),
        9 => json!({"type": "Polygon", "coordinates": [ring(random), ring(random)]}),
        10 => json!({"type": "MultiPolygon", "coordinates": [[ring(random)], [ring(random)]]}),
        // What only looks like a shape.
        _ => random
            .pick(&[
                json!({"type": "Point", "coordinates": [200, 0]}),
                json!({"type": "Point", "coordinates": ["4.9", 52.4]}),
                json!({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1]]]}),
                json!({"type": "Circle", "coordinates": [4.9, 52.4]}),
                json!("Point"),
            ])
            .clone(),
    }
}

pub fn point(random: &mut Random) -> Value {
    json!({"type": "Point", "coordinates": place(random)})
}

fn place(random: &mut Random) -> [f64; 2] {
    let centre = *random.pick(&CENTRES);
    match random.one_in(4) {
        true => centre,
        false => {
            let size = *random.pick(&SIZES);
            moved(centre, size * fraction(random), size * fraction(random))
        }
    }
}

fn corners(random: &mut Random, count: usize) -> Vec<[f64; 2]> {
    let (centre, size) = (*random.pick(&CENTRES), *random.pick(&SIZES));
    (0..count).map(|_| moved(centre, size * fraction(random), size * fraction(random))).collect()
}

/// Around a centre against the clock, now and then the other way or crossing itself.
fn ring(random: &mut Random) -> Vec<[f64; 2]> {
    let (centre, size) = (*random.pick(&CENTRES), *random.pick(&SIZES));
    let count = 3 + random.below(4);
    let corner = |random: &mut Random, at: usize| {
        let angle = (at as f64 + fraction(random).abs() / 2.0) / count as f64 * std::f64::consts::TAU;
        let far = size * (0.5 + fraction(random).abs() / 2.0);
        moved(centre, far * angle.cos(), far * angle.sin())
    };
    let mut ring: Vec<[f64; 2]> = (0..count).map(|at| corner(random, at)).collect();
    match random.below(6) {
        0 => ring.reverse(),
        1 => ring.swap(0, 1),
        _ => {}
    }
    ring.push(ring[0]);
    ring
}

/// From -1 to 1.
fn fraction(random: &mut Random) -> f64 {
    random.below(2_001) as f64 / 1_000.0 - 1.0
}

fn moved([longitude, latitude]: [f64; 2], east: f64, north: f64) -> [f64; 2] {
    let longitude = longitude + east;
    let turned = if longitude.abs() > 180.0 { longitude - longitude.signum() * 360.0 } else { longitude };
    [turned, (latitude + north).clamp(-90.0, 90.0)]
}
