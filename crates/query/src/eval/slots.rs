//! The values that names stand for while a row is evaluated.

use std::ops::{Index, IndexMut};

use crate::value::Val;

/// Most queries have an item and a source or two: those slots need no allocation for each row.
const FEW: usize = 3;

pub(crate) struct Slots<'a> {
    few: [Val<'a>; FEW],
    many: Vec<Val<'a>>,
}

impl Slots<'_> {
    pub fn new(count: usize) -> Self {
        let few = [const { Val::Undefined }; FEW];
        Self { few, many: vec![Val::Undefined; count.saturating_sub(FEW)] }
    }
}

impl<'a> Index<usize> for Slots<'a> {
    type Output = Val<'a>;

    fn index(&self, slot: usize) -> &Val<'a> {
        self.few.get(slot).unwrap_or_else(|| &self.many[slot - FEW])
    }
}

impl<'a> IndexMut<usize> for Slots<'a> {
    fn index_mut(&mut self, slot: usize) -> &mut Val<'a> {
        if slot < FEW { &mut self.few[slot] } else { &mut self.many[slot - FEW] }
    }
}
