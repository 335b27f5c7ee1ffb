//! The entries of intervals of terms, brought into key order.

use super::places::Places;
use super::reader::IndexReader;
use super::{OpResult, TermRange};

pub struct Collected {
    places: Places,
    at: usize,
}

impl Collected {
    /// Collects the places; `None` when that takes more than `most` entries.
    pub fn open(
        reader: &IndexReader<'_>,
        path_hash: u64,
        ranges: &[TermRange],
        most: usize,
    ) -> OpResult<Option<Collected>> {
        let mut places = Places::default();
        let mut left = most;
        for range in ranges {
            if !reader.visit_range(path_hash, range, &mut left, |place| places.push(place))? {
                return Ok(None);
            }
        }
        places.sort();
        Ok(Some(Collected { places, at: 0 }))
    }

    pub fn current(&self) -> Option<&[u8]> {
        self.places.get(self.at)
    }

    pub fn advance(&mut self) {
        self.at = (self.at + 1).min(self.places.len());
    }

    pub fn seek(&mut self, place: &[u8]) {
        self.at = self.places.lower_bound(self.at, place);
    }
}
