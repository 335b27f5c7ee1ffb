//! Going on where the client says.
//!
//! A client that merges partitions remembers the last row it gave out. To go on it names the row's order keys, and to
//! the partition that the row came from also its item. Partitions before that one have given out all rows with the
//! same keys, those behind it none: the former leave them out, the latter begin with them. Such a point is a
//! [`Position`] like that of a page's last row, so that an index is walked from there.

use orrery_doc::Value;

use super::carry::Carry;
use super::sorted::Position;
use crate::ast::Direction;
use crate::compile::Program;
use crate::error::{QueryError, Result};
use crate::sort_key::{hashed_array, hashed_object};
use crate::value::Val;

/// Where a query with ORDER BY begins.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumePoint {
    keys: Vec<Val<'static>>,
    /// The item among those with the same keys; all of them if there is none.
    place: Option<Vec<u8>>,
    /// What is there is out already.
    exclude: bool,
}

/// Behind every place of an item.
const BEHIND: [u8; 9] = [0xff; 9];

impl ResumePoint {
    /// Reads the values of a `resumeFilter`: scalars, `[]` for undefined, and the hash of an array or object.
    pub fn new(values: Value<'_>, place: Option<Vec<u8>>, exclude: bool) -> Result<Self> {
        let values = values.as_array().filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| malformed("'value' must be a list of values"))?;
        let keys = values.iter().map(key).collect::<Result<Vec<_>>>()?;
        Ok(Self { keys, place, exclude })
    }

    /// The position that all rows to come are behind of. Ties go the way of the first key.
    fn position(&self, first: Direction) -> Position {
        let at_end = self.exclude != (first == Direction::Descending);
        let (place, row_of_item) = match (&self.place, at_end) {
            (None, false) => (Vec::new(), 0),
            (None, true) => (BEHIND.to_vec(), u64::MAX),
            (Some(place), false) => (place.clone(), 0),
            (Some(place), true) => (place.clone(), u64::MAX),
        };
        Position { keys: self.keys.clone(), place, row_of_item }
    }
}

impl Position {
    /// Whether no row with these keys is left, because the client has them all.
    pub fn is_behind_ties(&self, descending: bool) -> bool {
        if descending { self.place.is_empty() } else { self.place == BEHIND }
    }
}

fn key(value: Value<'_>) -> Result<Val<'static>> {
    match value {
        Value::Array(list) if list.is_empty() => Ok(Val::Undefined),
        Value::Object(object) => {
            let half = |name| object.get(name).as_i64().map(|half| u128::from(half as u64));
            let hash = half("low").zip(half("high")).filter(|_| object.len() == 3);
            let hash = hash.map(|(low, high)| high << 64 | low);
            match (object.get("type").as_str(), hash) {
                (Some("array"), Some(hash)) => Ok(hashed_array(hash)),
                (Some("object"), Some(hash)) => Ok(hashed_object(hash)),
                _ => Err(malformed("an array or object is given by its 'type', 'low' and 'high'")),
            }
        }
        Value::Array(_) | Value::Map(_) => Err(malformed("an array is given by its hash")),
        scalar => Ok(Val::from(scalar).to_owned_val()),
    }
}

fn malformed(reason: &str) -> QueryError {
    QueryError::bare(format!("The resume filter of the query is invalid: {reason}."))
}

impl Program {
    /// Makes the program begin at a point of its order.
    pub fn resume_at(&mut self, point: ResumePoint) -> Result<()> {
        let level = &self.code.last.level;
        let is_ordered = !level.order_by.is_empty() && !level.order_is_implied;
        if !is_ordered || level.grouping.is_some() || !self.code.earlier.is_empty() {
            return Err(malformed(
                "only a query that orders the rows of items by ORDER BY can go on from a value",
            ));
        }
        if point.keys.len() != level.order_by.len() {
            return Err(malformed("it must have one value for each item of ORDER BY"));
        }
        self.resume = Some(point);
        Ok(())
    }

    /// The carry from which a page begins. Of what the page before ended with and of the point where the program
    /// begins, the one that leaves fewer rows counts.
    pub fn resumed(&self, carry: Option<Carry>) -> Option<Carry> {
        let level = &self.code.last.level;
        let (Some(point), Some((_, first))) = (&self.resume, level.order_by.first()) else { return carry };
        let point = point.position(*first);
        match carry {
            None => Some(Carry::From(point)),
            Some(Carry::Sorted { after, taken })
                if after.keys.len() == point.keys.len() && point.is_behind(&after, level) =>
            {
                Some(Carry::Sorted { after: point, taken })
            }
            other => other,
        }
    }
}
