//! Merges of entities: an item keeps the properties that a change does not name.

use std::sync::Arc;

use orrery_cluster::store::{Action, Edit, EditRefusal, Edited, Item};
use orrery_doc::{Doc, DocBuilder, Value};

use crate::shapes::entity;

/// The properties that are changed, as an item that has only these.
#[derive(Debug)]
struct Merge {
    doc: Doc,
    /// Where there is no item, it becomes one.
    creates: bool,
}

/// A merge as a write.
pub fn action(doc: Doc, creates: bool) -> Action {
    Action::Edit(Arc::new(Merge { doc, creates }))
}

impl Edit for Merge {
    fn edit(&self, stored: Option<&Item>, _now: u64) -> Result<Edited, EditRefusal> {
        let doc = match stored {
            Some(item) => merged(item.doc.root(), self.doc.root()),
            None => self.doc.clone(),
        };
        // Both were checked when they came; how many properties they have together is known only now.
        entity::check_count(doc.root()).map_err(EditRefusal::new)?;
        Ok(Edited::To(doc))
    }

    fn may_create(&self) -> bool {
        self.creates
    }

    fn value_bytes(&self) -> usize {
        self.doc.bytes().len()
    }

    fn properties(&self) -> u32 {
        fields(self.doc.root()).count() as u32
    }
}

/// The properties of both, in the order of the first; where both have one, it is the second's.
fn merged(stored: Value<'_>, changes: Value<'_>) -> Doc {
    let mut doc = DocBuilder::new();
    doc.begin_object();
    for (name, value) in fields(stored) {
        let change = changes.get(name);
        doc.name(name).value(if change.is_undefined() { value } else { change });
    }
    for (name, value) in fields(changes).filter(|(name, _)| stored.get(name).is_undefined()) {
        doc.name(name).value(value);
    }
    doc.end_object();
    doc.finish()
}

fn fields(value: Value<'_>) -> impl Iterator<Item = (&str, Value<'_>)> {
    value.as_object().into_iter().flat_map(|object| object.iter())
}

#[cfg(test)]
mod tests {
    use orrery_doc::json;

    use super::*;

    #[test]
    fn a_merge_changes_what_it_names_and_leaves_the_rest() {
        let doc = |text: &str| json::parse(text.as_bytes(), 8).expect("JSON");
        for (stored, changes, wanted) in [
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"b":3,"d":4}"#, r#"{"a":1,"b":3,"d":4}"#),
            (r#"{"a":1}"#, "{}", r#"{"a":1}"#),
            ("{}", r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            let mut text = Vec::new();
            json::write(merged(doc(stored).root(), doc(changes).root()).root(), &mut text);
            assert_eq!(String::from_utf8(text).expect("UTF-8"), wanted, "{stored} {changes}");
        }
    }
}
