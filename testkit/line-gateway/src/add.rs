//! Adding to a number where it is stored: an operator of the protocol as an [`Edit`].

use orrery_cluster::store::{Edit, EditRefusal, Edited, Item};
use orrery_doc::{Doc, DocBuilder, Typed, Value};

/// Adds to a field, which begins at zero where it, or the item, is not there.
#[derive(Debug)]
pub struct Add {
    /// The item as it is made where there is none.
    pub fresh: Doc,
    pub field: String,
    pub amount: i64,
}

/// What the field holds cannot be added to.
#[derive(Debug, thiserror::Error)]
#[error("the field does not hold an integer to which this can be added")]
pub struct NotANumber;

impl Edit for Add {
    fn edit(&self, stored: Option<&Item>, _: u64) -> Result<Edited, EditRefusal> {
        let doc = stored.map_or(&self.fresh, |item| &item.doc);
        let root = doc.root();
        let old = root.get(&self.field);
        let sum = match old {
            Value::Undefined => Some(self.amount),
            Value::Int(number) => number.checked_add(self.amount),
            Value::Typed(Typed::Int32(number)) => i64::from(number).checked_add(self.amount),
            _ => None,
        };
        let sum = sum.ok_or_else(|| EditRefusal::new(NotANumber))?;
        let mut edited = DocBuilder::new();
        edited.begin_object();
        for (name, value) in root.as_object().into_iter().flat_map(|object| object.iter()) {
            if name != self.field {
                edited.name(name).value(value);
            }
        }
        edited.name(&self.field);
        // An integer of 32 bits stays one as long as it can.
        match (old, i32::try_from(sum)) {
            (Value::Typed(Typed::Int32(_)), Ok(sum)) => edited.int32(sum),
            _ => edited.int(sum),
        };
        edited.end_object();
        Ok(Edited::To(edited.finish()))
    }

    fn may_create(&self) -> bool {
        true
    }

    fn value_bytes(&self) -> usize {
        self.fresh.bytes().len() + self.field.len()
    }

    fn properties(&self) -> u32 {
        1
    }
}
