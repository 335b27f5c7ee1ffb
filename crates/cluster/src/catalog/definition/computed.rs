//! Computed properties, for the index.

use std::sync::Arc;

use orrery_doc::{Doc, DocRef};
use orrery_query::ComputedProperty;
use orrery_store::indexing::{ComputedValue, Computer};

/// A property whose value depends on nothing but the item.
#[derive(Debug)]
struct Property(ComputedProperty);

impl Computer for Property {
    fn value(&self, item: DocRef<'_>) -> Option<Doc> {
        self.0.value(item)
    }
}

/// The computed properties of a definition that an index can hold.
pub(super) fn computed_values(body: &Doc) -> Vec<ComputedValue> {
    let geospatial = super::geospatial(body);
    let list = body.root().get("computedProperties").as_array();
    let read = |entry: orrery_doc::Value<'_>| {
        let (name, query) = (entry.get("name").as_str()?, entry.get("query").as_str()?);
        let property = ComputedProperty::new(name, query, geospatial)?;
        let definition = format!("{geospatial:?}: {query}");
        Some(ComputedValue { name: name.to_owned(), definition, computer: Arc::new(Property(property)) })
    };
    list.iter().flat_map(|list| list.iter()).filter_map(read).collect()
}
