//! The entries of intervals of terms, brought into key order.

use super::places::Places;

pub struct Collected {
    places: Places,
    at: usize,
}

impl Collected {
    /// `places` must be sorted.
    pub fn new(places: Places) -> Collected {
        Collected { places, at: 0 }
    }

    /// What the places take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.places.memory_bytes()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
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
