//! Where a shape lies on the globe, in terms of an index.
//!
//! The map of longitudes and latitudes is cut in four, each quarter in four again, and so on: a [`Cell`] is one of
//! these rectangles. A shape is covered by a few cells, of any size, that together hold all of it. Two shapes
//! can meet only where a cell of one holds, is, or lies in a cell of the other, so an index of the cells finds
//! everything that may meet a shape, and some that does not.
//!
//! What a shape *is* on a globe is decided elsewhere, by the function that answers whether two shapes meet. The cover must
//! hold everything that may count as part of the shape there, and this is where it is easy to go wrong: an edge
//! is an arc of a great circle and runs nearer to the pole than its ends; a ring that runs with the clock
//! stands for the rest of the world; a ring that crosses itself holds places on the other side of the Earth; a
//! longitude means nothing at the poles. Whenever a shape is out of the ordinary its cover is the whole world,
//! which is never wrong.

mod bounds;
mod cell;
mod shape;
pub mod sphere;

use std::ops::Range;

use bounds::Bounds;
pub use cell::{Cell, TERM_BYTES};
use shape::Shape;

use crate::Value;

/// Longitude and latitude in degrees.
pub type Place = [f64; 2];

/// Most positions of a shape; one with more is no shape.
pub const SHAPE_POINTS: usize = 4_096;
/// Cells that cover a stored shape, and one that is looked for.
const STORED_CELLS: usize = 16;
const WANTED_CELLS: usize = 32;

/// The cells under which a stored value is found; none if it is no shape.
pub fn cells_of(value: Value<'_>) -> Vec<Cell> {
    match Shape::read(value) {
        None => Vec::new(),
        Some(Shape { points, lines, polygons }) if lines.is_empty() && polygons.is_empty() => {
            points.into_iter().map(Cell::at).collect()
        }
        Some(shape) => Bounds::of(&shape).cover(STORED_CELLS),
    }
}

/// The terms of all stored shapes that may come nearer than `metres` to the shape that a value is; of those that may
/// meet it, for zero. None if it is no shape.
pub fn terms_near(value: Value<'_>, metres: f64) -> Option<Vec<Range<Vec<u8>>>> {
    let shape = Shape::read(value)?;
    let cover = Bounds::of(&shape).grown(metres).cover(WANTED_CELLS);
    let mut ranges: Vec<(u64, u64)> = cover.iter().map(|cell| cell.descendants()).collect();
    // A larger shape is found under the cells that hold these.
    ranges.extend(cover.iter().flat_map(|cell| cell.ancestors()).map(|cell| (cell.id(), cell.id())));
    ranges.sort_unstable();
    // The cell that stands between two neighbours holds both, so it is among them.
    ranges.dedup_by(|next, last| {
        let touches = next.0 <= last.1.saturating_add(1);
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    Some(ranges.into_iter().map(|(first, last)| cell::term(first).to_vec()..cell::behind(last)).collect())
}

#[cfg(test)]
mod tests;
