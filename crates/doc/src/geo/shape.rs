//! GeoJSON, read for its positions only.
//!
//! The functions that compare shapes have stricter rules for what a valid one is. Every shape that they accept is one here, so
//! that nothing is missing in the index.

use super::{Place, SHAPE_POINTS};
use crate::Value;

/// The parts of a shape: most have one only.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub points: Vec<Place>,
    pub lines: Vec<Vec<Place>>,
    /// The rings of each polygon: outline, then holes.
    pub polygons: Vec<Vec<Vec<Place>>>,
}

impl Shape {
    pub fn read(value: Value<'_>) -> Option<Shape> {
        let (kind, coordinates) = (value.get("type").as_str()?, value.get("coordinates"));
        let mut reader = Reader { left: SHAPE_POINTS };
        let mut shape = Shape::default();
        match kind {
            "Point" => shape.points.push(reader.place(coordinates)?),
            "LineString" => shape.lines.push(reader.places(coordinates)?),
            "Polygon" => shape.polygons.push(reader.rings(coordinates)?),
            "MultiPolygon" => {
                let polygons = coordinates.as_array()?;
                shape.polygons =
                    polygons.iter().map(|polygon| reader.rings(polygon)).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        Some(shape)
    }
}

struct Reader {
    /// Positions that the shape may still have.
    left: usize,
}

impl Reader {
    fn place(&mut self, value: Value<'_>) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        let list = value.as_array()?;
        let [longitude, latitude] = [list.get(0).as_f64()?, list.get(1).as_f64()?];
        let exists = (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude);
        exists.then_some([longitude, latitude])
    }

    /// A line or a ring, which has at least one position.
    fn places(&mut self, value: Value<'_>) -> Option<Vec<Place>> {
        let list = value.as_array()?;
        let places: Vec<Place> = list.iter().map(|place| self.place(place)).collect::<Option<_>>()?;
        (!places.is_empty()).then_some(places)
    }

    fn rings(&mut self, value: Value<'_>) -> Option<Vec<Vec<Place>>> {
        value.as_array()?.iter().map(|ring| self.places(ring)).collect()
    }
}
