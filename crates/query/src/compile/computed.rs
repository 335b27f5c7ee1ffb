//! Computed properties: names that a container gives to expressions.
//!
//! A computed property is not stored. Wherever a query names it on the item itself, the expression of its
//! definition stands instead; `SELECT *` does not show it.

use super::Compiler;
use crate::ast::{Binding, Collection, Expr, Query, SelectSpec};
use crate::error::{QueryError, Result};
use crate::parse;
use crate::program::Node;

/// The computed properties of a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ComputedProperties {
    definitions: Vec<Definition>,
}

#[derive(Debug, Clone, PartialEq)]
struct Definition {
    name: String,
    /// What the definition calls the item.
    alias: String,
    value: Expr,
}

impl ComputedProperties {
    /// Reads definitions: a name and a query such as `SELECT VALUE LOWER(c.name) FROM c`.
    pub fn new<'t>(definitions: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Self> {
        let read = |(name, text)| definition(name, text);
        Ok(Self { definitions: definitions.into_iter().map(read).collect::<Result<_>>()? })
    }

    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }
}

fn definition(name: &str, text: &str) -> Result<Definition> {
    let refused = |why: &str| {
        QueryError::bare(format!("One of the specified inputs is invalid: computed property '{name}' {why}."))
    };
    let Query { select, from, filter, group_by, order_by, offset_limit, .. } = parse::parse(text)?;
    let plain = filter.is_none() && group_by.is_empty() && order_by.is_none() && offset_limit.is_none();
    if !plain || select.distinct || select.top.is_some() {
        return Err(refused("must be a SELECT VALUE of one expression and nothing else"));
    }
    let SelectSpec::Value(value) = select.spec else {
        return Err(refused("must use SELECT VALUE"));
    };
    let mut sources = from.map(|from| from.sources).unwrap_or_default();
    let (Some(source), true) = (sources.pop(), sources.is_empty()) else {
        return Err(refused("must be FROM the item"));
    };
    let is_item = matches!(&source.collection, Collection::Path { steps, .. } if steps.is_empty())
        && !matches!(source.binding, Binding::Each(_));
    match source.name().filter(|_| is_item) {
        Some(alias) => Ok(Definition { name: name.to_owned(), alias: alias.to_owned(), value: *value }),
        None => Err(refused("must be FROM the item")),
    }
}

impl Compiler<'_> {
    /// The expression behind `item.name`, if it is a computed property.
    pub(super) fn computed(&mut self, base: &Node, name: &str) -> Result<Option<Node>> {
        let Some(properties) = self.properties else { return Ok(None) };
        let Node::Slot(slot) = base else { return Ok(None) };
        if !self.items.contains(slot) {
            return Ok(None);
        }
        let Some(found) = properties.definitions.iter().find(|definition| definition.name == name) else {
            return Ok(None);
        };
        // The definition knows the item by its own name and nothing else, and it may not name others.
        let names = std::mem::replace(&mut self.names, vec![(found.alias.clone(), *slot)]);
        let group = self.group.take();
        self.properties = None;
        let node = self.expr(&found.value);
        self.properties = Some(properties);
        self.group = group;
        self.names = names;
        node.map(Some)
    }
}
