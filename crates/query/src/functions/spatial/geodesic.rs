//! Distances and areas on the ellipsoid of the Earth (WGS 84).

use super::shape::Place;

const EQUATOR_METRES: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// The length of the shortest line on the ellipsoid, by Vincenty's iteration. Near the opposite side
/// of the Earth the iteration does not settle, and the sphere's distance is answered.
pub(super) fn distance(a: Place, b: Place) -> f64 {
    let polar = EQUATOR_METRES * (1.0 - FLATTENING);
    let length = (b[0] - a[0]).to_radians();
    let reduced = |latitude: f64| ((1.0 - FLATTENING) * latitude.to_radians().tan()).atan();
    let ((sin1, cos1), (sin2, cos2)) = (reduced(a[1]).sin_cos(), reduced(b[1]).sin_cos());
    let mut lambda = length;
    for _ in 0..100 {
        let (sin_lambda, cos_lambda) = lambda.sin_cos();
        let sin_sigma =
            ((cos2 * sin_lambda).powi(2) + (cos1 * sin2 - sin1 * cos2 * cos_lambda).powi(2)).sqrt();
        if sin_sigma == 0.0 {
            return 0.0;
        }
        let cos_sigma = sin1 * sin2 + cos1 * cos2 * cos_lambda;
        let sigma = sin_sigma.atan2(cos_sigma);
        let sin_alpha = cos1 * cos2 * sin_lambda / sin_sigma;
        let cos_sq_alpha = 1.0 - sin_alpha * sin_alpha;
        let middle = if cos_sq_alpha == 0.0 { 0.0 } else { cos_sigma - 2.0 * sin1 * sin2 / cos_sq_alpha };
        let c = FLATTENING / 16.0 * cos_sq_alpha * (4.0 + FLATTENING * (4.0 - 3.0 * cos_sq_alpha));
        let last = lambda;
        let turn = middle + c * cos_sigma * (2.0 * middle * middle - 1.0);
        lambda = length + (1.0 - c) * FLATTENING * sin_alpha * (sigma + c * sin_sigma * turn);
        if (lambda - last).abs() < 1e-12 {
            let square = cos_sq_alpha * (EQUATOR_METRES.powi(2) - polar * polar) / (polar * polar);
            return polar * along(square, sigma, sin_sigma, cos_sigma, middle);
        }
    }
    haversine(a, b)
}

/// The length of the arc in units of the polar radius.
fn along(square: f64, sigma: f64, sin_sigma: f64, cos_sigma: f64, middle: f64) -> f64 {
    let big_a = 1.0 + square / 16_384.0 * (4_096.0 + square * (-768.0 + square * (320.0 - 175.0 * square)));
    let big_b = square / 1_024.0 * (256.0 + square * (-128.0 + square * (74.0 - 47.0 * square)));
    let inner = cos_sigma * (2.0 * middle * middle - 1.0)
        - big_b / 6.0 * middle * (4.0 * sin_sigma * sin_sigma - 3.0) * (4.0 * middle * middle - 3.0);
    big_a * (sigma - big_b * sin_sigma * (middle + big_b / 4.0 * inner))
}

fn haversine(a: Place, b: Place) -> f64 {
    let half = |x: f64| (x.to_radians() / 2.0).sin().powi(2);
    let cosines = a[1].to_radians().cos() * b[1].to_radians().cos();
    let h = half(b[1] - a[1]) + cosines * half(b[0] - a[0]);
    2.0 * 6_371_008.8 * h.sqrt().min(1.0).asin()
}

/// The place on the sphere that stands for a place on the ellipsoid when areas are compared: the
/// sphere has the same surface, and so has every zone between two latitudes.
pub(super) fn equal_area(place: Place) -> Place {
    let latitude = (zone(place[1].to_radians().sin()) / zone(1.0)).clamp(-1.0, 1.0).asin();
    [place[0], latitude.to_degrees()]
}

/// Square metres of one steradian of that sphere.
pub(super) fn square_metres() -> f64 {
    EQUATOR_METRES * EQUATOR_METRES * zone(1.0) / 2.0
}

/// Grows with the surface between the equator and a latitude.
fn zone(sine: f64) -> f64 {
    let squared = FLATTENING * (2.0 - FLATTENING);
    let eccentricity = squared.sqrt();
    (1.0 - squared) * (sine / (1.0 - squared * sine * sine) + (eccentricity * sine).atanh() / eccentricity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distances_on_the_ellipsoid() {
        // Published examples: a tenth of a degree at 20 N, one degree on the equator and on a
        // meridian, and nearly opposite points.
        for (a, b, metres, tolerance) in [
            ([20.0, 20.0], [20.1, 20.0], 10_464.7, 1.0),
            ([0.0, 0.0], [1.0, 0.0], 111_319.491, 0.01),
            ([0.0, 0.0], [0.0, 1.0], 110_574.389, 0.01),
            ([0.0, 0.0], [179.9, 0.1], 19_990_000.0, 20_000.0),
            ([5.0, 5.0], [5.0, 5.0], 0.0, 0.0),
        ] {
            let found = distance(a, b);
            assert!((found - metres).abs() <= tolerance, "{a:?} to {b:?}: {found}");
        }
    }

    #[test]
    fn the_sphere_of_equal_area_has_the_surface_of_the_earth() {
        assert!((square_metres() * 4.0 * std::f64::consts::PI - 510_065_621_724_089.0).abs() < 1e6);
        assert_eq!(equal_area([3.0, 0.0]), [3.0, 0.0]);
        assert!((equal_area([3.0, 90.0])[1] - 90.0).abs() < 1e-6);
    }
}
