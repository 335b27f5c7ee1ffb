//! Where a page ended, which is where the next one begins.
//!
//! The server keeps nothing between two pages: a cursor and the request are all that it needs to go on, after a restart, after
//! a split, with pages of another size. Gateways give cursors the form of their protocols, and read them back.

use std::hash::{Hash, Hasher};

use orrery_doc::Epk;
use orrery_query::Carry;
use orrery_store::ItemId;

/// What a page hands to the one after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    /// None when the whole scope is visited again: by a program that must see all items before it answers.
    pub place: Option<CursorPlace>,
    /// The program's own state; feeds have none.
    pub state: Option<Carry>,
}

/// A place in the key space of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CursorPlace {
    /// Everything below it has been seen.
    pub epk: Epk,
    /// And so has everything in it up to and with this item; without one, nothing of it.
    pub id: Option<ItemId>,
    /// From the place on, parts whose items come in the order of creation; each begins where the one before it ends. There
    /// is more than one where a partition that was one leg was split meanwhile.
    pub legs: Vec<Leg>,
    /// That item, or the last one that was seen of the first leg, is not done with: some of its rows did not fit into the last page.
    pub again: bool,
}

/// A part of the key space whose items come in the order of creation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leg {
    /// The leg ends before this.
    pub end: Epk,
    /// Items up to the one with this rid are done.
    pub seen: Option<u64>,
}

impl Cursor {
    /// The same in about so many bytes of state, if it is long because the query orders by long strings. It names the last
    /// row instead of repeating all of its values.
    pub fn shortened(&self, state_bytes_max: usize) -> Option<Cursor> {
        let state = self.state.as_ref()?.shortened(state_bytes_max)?;
        Some(Cursor { place: self.place.clone(), state: Some(state) })
    }
}

/// For telling requests apart that go on at different places. States hold numbers that may be NaN, so their bytes count.
impl Hash for Cursor {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.place.hash(hasher);
        self.state.as_ref().map(Carry::to_bytes).hash(hasher);
    }
}
