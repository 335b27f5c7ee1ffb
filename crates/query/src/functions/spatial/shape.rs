//! GeoJSON: reading shapes, and saying what is wrong with them.

use crate::limits;
use crate::value::{List, Val};

/// Longitude and latitude in degrees, or x and y.
pub(super) type Place = [f64; 2];

/// A shape of any kind: most have one part only.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub points: Vec<Place>,
    pub lines: Vec<Vec<Place>>,
    /// The rings of each polygon, closed (the last place is the first again): outline, then holes.
    pub polygons: Vec<Vec<Vec<Place>>>,
}

impl Shape {
    pub fn size(&self) -> usize {
        let lines: usize = self.lines.iter().map(Vec::len).sum();
        let rings: usize = self.polygons.iter().flatten().map(Vec::len).sum();
        self.points.len() + lines + rings
    }
}

/// Why a value is no shape; the words are those of ST_ISVALIDDETAILED.
pub(super) type Flaw = &'static str;

/// A point, without any allocation: by far the most common shape.
pub(super) fn read_point(value: &Val<'_>, planar: bool) -> Option<Place> {
    match value.get("type").as_str() {
        Some("Point") => Reader { planar, left: 1 }.place(&value.get("coordinates")).ok(),
        _ => None,
    }
}

/// Reads a shape. On the globe, longitudes and latitudes must exist.
pub(super) fn read(value: &Val<'_>, planar: bool) -> Result<Shape, Flaw> {
    let kind = value.get("type");
    let coordinates = value.get("coordinates");
    let mut reader = Reader { planar, left: limits::SHAPE_POINTS };
    let mut shape = Shape::default();
    match kind.as_str() {
        Some("Point") => shape.points.push(reader.place(&coordinates)?),
        Some("LineString") => shape.lines.push(reader.line(&coordinates)?),
        Some("Polygon") => shape.polygons.push(reader.polygon(&coordinates)?),
        Some("MultiPolygon") => {
            for polygon in list(&coordinates)?.iter() {
                shape.polygons.push(reader.polygon(&polygon)?);
            }
            if shape.polygons.is_empty() {
                return Err("A MultiPolygon must have at least one polygon.");
            }
        }
        Some(_) => return Err("The type must be Point, LineString, Polygon or MultiPolygon."),
        None => return Err("The value is not a GeoJSON object."),
    }
    Ok(shape)
}

struct Reader {
    planar: bool,
    /// Points that the shape may still have.
    left: usize,
}

impl Reader {
    fn place(&mut self, value: &Val<'_>) -> Result<Place, Flaw> {
        self.left = self.left.checked_sub(1).ok_or("The shape has too many points.")?;
        let list = list(value)?;
        let number = |i: usize| list.get(i).as_f64().ok_or("Coordinates must be numbers.");
        if list.len() < 2 {
            return Err("A position must have at least two coordinates.");
        }
        let place = [number(0)?, number(1)?];
        if !self.planar && !(-180.0..=180.0).contains(&place[0]) {
            return Err("Longitude values must be between -180 and 180 degrees.");
        }
        if !self.planar && !(-90.0..=90.0).contains(&place[1]) {
            return Err("Latitude values must be between -90 and 90 degrees.");
        }
        // Squares of larger numbers would leave the range of a double.
        if place.iter().any(|x| x.abs() > 1e100) {
            return Err("Coordinates must be smaller.");
        }
        Ok(place)
    }

    fn places(&mut self, value: &Val<'_>) -> Result<Vec<Place>, Flaw> {
        list(value)?.iter().map(|place| self.place(&place)).collect()
    }

    fn line(&mut self, value: &Val<'_>) -> Result<Vec<Place>, Flaw> {
        let line = self.places(value)?;
        if line.len() < 2 {
            return Err("A LineString must have at least two positions.");
        }
        Ok(line)
    }

    fn polygon(&mut self, value: &Val<'_>) -> Result<Vec<Vec<Place>>, Flaw> {
        let rings = list(value)?.iter().map(|ring| self.ring(&ring)).collect::<Result<Vec<_>, _>>()?;
        if rings.is_empty() {
            return Err("A Polygon must have at least one ring.");
        }
        Ok(rings)
    }

    fn ring(&mut self, value: &Val<'_>) -> Result<Vec<Place>, Flaw> {
        let ring = self.places(value)?;
        if ring.len() < 4 {
            return Err("A Polygon ring must have at least four positions.");
        }
        if ring.first() != ring.last() {
            return Err("A Polygon ring must be closed: its first and last positions must be the same.");
        }
        Ok(ring)
    }
}

fn list<'v, 'a>(value: &'v Val<'a>) -> Result<&'v List<'a>, Flaw> {
    value.as_list().ok_or("Coordinates must be arrays.")
}
