//! Computed properties: what a definition may say, and what of it an index can hold.

use std::sync::Arc;

use orrery_doc::{Doc, DocRef};
use orrery_query::ast::SelectSpec;
use orrery_query::{Code, ComputedProperty, Diagnostic, Parameters, QueryError, Vocabulary, compile, parse};
use orrery_store::indexing::{ComputedValue, Computer};
use orrery_store::limits::COMPUTED_PROPERTIES_MAX;
use serde_json::{Value, json};

use super::vectors::text;
use super::{Object, Result, list};
use crate::error::Error;

const RESERVED_NAMES: [&str; 6] = ["id", "_rid", "_ts", "_self", "_etag", "_attachments"];

/// The service's rules for new definitions, in its words.
pub(super) fn admit(object: &Object) -> Result<()> {
    let properties = list(object, "computedProperties")?;
    if properties.len() > COMPUTED_PROPERTIES_MAX {
        return Err(Error::invalid(format!(
            "The number of computed properties ({}) exceeds the maximum of {COMPUTED_PROPERTIES_MAX}.",
            properties.len()
        )));
    }
    for (place, property) in properties.iter().enumerate() {
        let name = required(property, "name")?;
        let query = required(property, "query")?;
        if RESERVED_NAMES.contains(&name) {
            return Err(Error::invalid(format!(
                "The system property name '{name}' cannot be used as a computed property name."
            )));
        }
        if properties[..place].iter().any(|earlier| text(earlier, "name") == name) {
            return Err(Error::invalid(format!(
                "Computed property name '{name}' cannot be used in multiple definitions."
            )));
        }
        if has_spatial_index(object, name) {
            return Err(Error::invalid(format!(
                "Computed property '{name}' at index ({place}) has a spatial index. Remove the spatial index on this path."
            )));
        }
        check_query(name, query, place)?;
    }
    Ok(())
}

fn required<'v>(property: &'v Value, member: &str) -> Result<&'v str> {
    match property.get(member).and_then(Value::as_str) {
        None => Err(Error::invalid("One of the specified inputs is invalid")),
        Some("") => {
            Err(Error::invalid(format!("Computed property '{member}' is either empty or unspecified.")))
        }
        Some(text) => Ok(text),
    }
}

/// Whether a spatial index begins at the property.
fn has_spatial_index(object: &Object, name: &str) -> bool {
    let indexes = object.get("indexingPolicy").and_then(|policy| policy.get("spatialIndexes"));
    let first = |path: &str| {
        let path = path.trim_start_matches('/');
        path.split('/').next().unwrap_or("").trim_matches('"') == name
    };
    let mut indexes = indexes.and_then(Value::as_array).into_iter().flatten();
    indexes.any(|index| first(text(index, "path")))
}

/// One value, computed from one item. What is legal but cannot be run yet is kept; queries say so.
fn check_query(name: &str, query: &str, place: usize) -> Result<()> {
    if let Err(QueryError::Invalid(findings)) = compile(query, &Parameters::default()) {
        return Err(Error::invalid(format!(
            "Computed property at index ({place}) has a malformed query: '{query}' Error details: '{}'",
            details(&findings)
        )));
    }
    let is_value = |query: orrery_query::ast::Query| matches!(query.select.spec, SelectSpec::Value(_));
    if !parse::parse(query).is_ok_and(is_value) {
        return Err(Error::invalid(format!(
            "Required VALUE expression missing from computed property query '{query}' at index ({place})."
        )));
    }
    match Vocabulary::new([(name, query)]) {
        Err(error @ QueryError::Invalid(_)) => Err(Error::invalid(error.to_string())),
        _ => Ok(()),
    }
}

/// The findings about a query as the service tells them here: with bare numbers, and without places.
fn details(findings: &[Diagnostic]) -> Value {
    let finding = |finding: &Diagnostic| match finding.code {
        Code::Sc(code) | Code::Number(code) => {
            json!({"severity": "Error", "code": code, "message": finding.message})
        }
        Code::None => json!({"severity": "Error", "message": finding.message}),
    };
    json!({"errors": findings.iter().map(finding).collect::<Vec<Value>>()})
}

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
    let read = |(name, query): (&str, &str)| {
        let property = ComputedProperty::new(name, query, geospatial)?;
        let definition = format!("{geospatial:?}: {query}");
        Some(ComputedValue { name: name.to_owned(), definition, computer: Arc::new(Property(property)) })
    };
    entries(body).filter_map(read).collect()
}

/// All computed properties of a definition, for queries.
pub(super) fn vocabulary(body: &Doc) -> orrery_query::Result<Vocabulary> {
    Vocabulary::new(entries(body))
}

/// The name and the query of each; they were admitted, so they have both.
fn entries(body: &Doc) -> impl Iterator<Item = (&str, &str)> {
    let list = body.root().get("computedProperties").as_array();
    list.into_iter().flat_map(|list| list.iter()).map(|entry| {
        let text = |member| entry.get(member).as_str().unwrap_or_default();
        (text("name"), text("query"))
    })
}
