//! The indexing policy: its defaults and its paths.

use orrery_doc::Doc;
use orrery_query::Geospatial;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{COMPOSITE_INDEX_PATHS_MAX, COMPOSITE_INDEXES_MAX, INDEX_PATHS_MAX};
use serde_json::{Value, json};

use super::computed::computed_values;
use super::{Object, Result, child_object, list, spatial, wrong_type};
use crate::catalog::record::{to_doc, to_json};
use crate::error::Error;

/// Every version of an item has another etag, so nobody looks one up by it.
const ETAG_PATH: &str = "/\"_etag\"/?";
const ROOT_PATH: &str = "/*";
/// What kinds of index a path has, which lost its meaning long ago.
const KINDS: &str = "indexes";

/// Fills in the defaults and checks the shape; which paths are well formed is checked when they are compiled.
pub(super) fn complete(object: &mut Object) -> Result<()> {
    let has_ttl = object.contains_key("defaultTtl");
    let is_old = object.get("partitionKey").is_some_and(|key| key["systemKey"] == true);
    let policy = child_object(object, "indexingPolicy")?;
    let mode = indexing_mode(policy)?;
    let automatic = match policy.get("automatic") {
        None | Some(Value::Null) => mode == "consistent",
        // A consistent index is automatic whatever is asked for, as the service answers to its SDKs.
        Some(Value::Bool(automatic)) => *automatic || mode == "consistent",
        Some(_) => return Err(wrong_type("automatic", "true or false")),
    };
    if mode == "none" && automatic {
        return Err(Error::invalid("An indexing policy of mode 'none' cannot be automatic."));
    }
    if mode == "none" && has_ttl {
        return Err(Error::invalid("Time to live needs an index, so the indexing mode cannot be 'none'."));
    }
    let (included, excluded) = if mode == "none" { (Vec::new(), Vec::new()) } else { paths(policy, is_old)? };
    composites(policy)?;
    spatial::complete(policy)?;
    let mut out = Object::new();
    out.insert(String::from("indexingMode"), Value::from(mode));
    out.insert(String::from("automatic"), Value::from(automatic));
    out.insert(String::from("includedPaths"), Value::from(included));
    out.insert(String::from("excludedPaths"), Value::from(excluded));
    out.extend(std::mem::take(policy).into_iter().filter(|(name, value)| {
        let is_done =
            matches!(name.as_str(), "indexingMode" | "automatic" | "includedPaths" | "excludedPaths");
        !is_done && !value.is_null()
    }));
    *policy = out;
    Ok(())
}

/// A stored definition without the kinds of index of its included paths.
pub(super) fn without_kinds(body: &Doc) -> Doc {
    const STORED: &str = "a stored definition is JSON of bounded depth";
    let mut json = to_json(body).expect(STORED);
    let included = json["indexingPolicy"]["includedPaths"].as_array_mut();
    for entry in included.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.shift_remove(KINDS);
    }
    to_doc(&json).expect(STORED)
}

/// What of a definition decides which entries items have in the index.
const INDEX_PROPERTIES: [&str; 3] = ["indexingPolicy", "geospatialConfig", "computedProperties"];

/// The part of a definition that decides about the index.
pub(in crate::catalog) fn index_part(body: &Value) -> Value {
    let part = INDEX_PROPERTIES.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?.clone())));
    Value::Object(part.collect())
}

/// The policy in the form in which partitions use it.
pub(in crate::catalog) fn compile(body: &Doc) -> Result<IndexingPolicy> {
    let policy = IndexingPolicy::from_value(body.root().get("indexingPolicy"))
        .map_err(|error| Error::invalid(error.to_string()))?
        .with_computed(computed_values(body));
    Ok(match super::geospatial(body) {
        Geospatial::Geography => policy,
        Geospatial::Geometry => policy.without_spatial(),
    })
}

fn indexing_mode(policy: &Object) -> Result<&'static str> {
    let mode = match policy.get("indexingMode") {
        None | Some(Value::Null) => "consistent",
        Some(mode) => mode.as_str().unwrap_or(""),
    };
    // A lazy index is a thing of the past: who asks for one gets one that is never behind.
    if mode.eq_ignore_ascii_case("consistent") || mode.eq_ignore_ascii_case("lazy") {
        return Ok("consistent");
    }
    if mode.eq_ignore_ascii_case("none") {
        return Ok("none");
    }
    Err(Error::invalid(format!("The indexing mode '{mode}' is invalid; it is 'consistent' or 'none'.")))
}

/// Included and excluded paths with what the service adds to them. Containers from before partition keys show the kinds
/// of index that they were made with.
fn paths(policy: &Object, is_old: bool) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut included = entries(policy, "includedPaths", is_old)?;
    let mut excluded = entries(policy, "excludedPaths", false)?;
    let has = |entries: &[Value], path: &str| entries.iter().any(|entry| entry["path"] == path);
    if included.is_empty() && !has(&excluded, ROOT_PATH) {
        included.push(json!({"path": ROOT_PATH}));
    }
    if !has(&included, ROOT_PATH) && !has(&excluded, ROOT_PATH) {
        return Err(Error::invalid(
            "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Please \
             provide this path in one of the sets.",
        ));
    }
    if !has(&excluded, ETAG_PATH) && !has(&included, ETAG_PATH) {
        excluded.push(json!({"path": ETAG_PATH}));
    }
    if let Some(both) = included.iter().find(|entry| has(&excluded, entry["path"].as_str().unwrap_or(""))) {
        return Err(Error::invalid(format!(
            "The indexing path {} is both included and excluded.",
            both["path"]
        )));
    }
    Ok((included, excluded))
}

fn entries(policy: &Object, name: &str, keeps_kinds: bool) -> Result<Vec<Value>> {
    let given = list(policy, name)?;
    if given.len() > INDEX_PATHS_MAX {
        return Err(Error::invalid(format!(
            "The number of paths in '{name}' ({}) exceeds the maximum of {INDEX_PATHS_MAX}.",
            given.len()
        )));
    }
    let entry = |given: &Value| {
        let mut entry = given.as_object().cloned().ok_or_else(|| wrong_type(name, "a list of objects"))?;
        let path = path_of(&entry, name)?;
        // The old spelling of the root.
        let path = if path == "/" { ROOT_PATH.to_owned() } else { path };
        entry.insert(String::from("path"), Value::from(path));
        list(&entry, KINDS)?;
        if !keeps_kinds {
            entry.shift_remove(KINDS);
        }
        Ok(Value::Object(entry))
    };
    given.iter().map(entry).collect()
}

pub(super) fn path_of(entry: &Object, name: &str) -> Result<String> {
    match entry.get("path").and_then(Value::as_str) {
        Some(path) if path.starts_with('/') => Ok(path.to_owned()),
        Some(path) => Err(Error::invalid(format!(
            "The indexing path '{path}' could not be accepted, failed near position '0'. Please ensure that the \
             path is valid. Paths start with '/'."
        ))),
        None => Err(wrong_type(name, "a list of objects that have a 'path'")),
    }
}

fn composites(policy: &Object) -> Result<()> {
    let composites = list(policy, "compositeIndexes")?;
    if composites.len() > COMPOSITE_INDEXES_MAX {
        return Err(Error::invalid(format!(
            "The number of composite indexes ({}) exceeds the maximum of {COMPOSITE_INDEXES_MAX}.",
            composites.len()
        )));
    }
    for composite in composites {
        let entries =
            composite.as_array().ok_or_else(|| wrong_type("compositeIndexes", "a list of lists"))?;
        if !(2..=COMPOSITE_INDEX_PATHS_MAX).contains(&entries.len()) {
            return Err(Error::invalid(format!(
                "A composite index must have 2 to {COMPOSITE_INDEX_PATHS_MAX} paths, and one has {}.",
                entries.len()
            )));
        }
        for entry in entries {
            let object =
                entry.as_object().ok_or_else(|| wrong_type("compositeIndexes", "made of objects"))?;
            path_of(object, "compositeIndexes")?;
            let order = object.get("order").and_then(Value::as_str).unwrap_or("ascending");
            if !["ascending", "descending"].iter().any(|known| known.eq_ignore_ascii_case(order)) {
                return Err(Error::invalid(format!("The order '{order}' of a composite index is invalid.")));
            }
        }
    }
    Ok(())
}
