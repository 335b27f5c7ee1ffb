//! What a client may say about a container, checked and completed.
//!
//! A definition is JSON. Each property that the service knows has its own rules in a module of its own; what it
//! does not know is kept, because clients read it back. Defaults are filled in as the service does, so that
//! reading a container shows the policy that is in force. Parsing what was parsed before changes nothing:
//! stored definitions are read back through the same door.

mod computed;
mod full_text;
pub(super) mod index_paths;
mod policies;
mod replace;
mod vectors;

use std::time::Duration;

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path};
use orrery_query::Geospatial;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{KEY_LEVELS_MAX, NAME_CHARS_MAX};
use orrery_store::{DefaultTtl, UniqueKeys};
use serde_json::{Map, Value, json};

use super::record::{to_doc, to_json};
use crate::error::{Error, ErrorKind};

type Result<T> = std::result::Result<T, Error>;
type Object = Map<String, Value>;

/// A container as its creator described it.
#[derive(Clone, Debug)]
pub struct ContainerDefinition {
    pub id: String,
    /// Normalised JSON with defaults filled in; no system properties, unknown fields kept.
    pub body: Doc,
    pub key: PartitionKeyDef,
    pub indexing: IndexingPolicy,
    /// A job copies the container elsewhere while it changes, so every change is recorded, whatever its policy says.
    /// The jobs of the catalog decide this; it is no part of the body.
    pub is_followed: bool,
    /// The key that the container had before it got this one in place; clients may still think so. As above, no part of
    /// the body.
    pub previous_key: Option<PartitionKeyDef>,
}

/// What the server itself adds to a container; clients send it back.
const SYSTEM_PROPERTIES: [&str; 10] =
    ["_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts", "statistics"];

/// Properties in the order in which the service shows them; all others follow as they came.
const FIRST_PROPERTIES: [&str; 6] = [
    "id",
    "indexingPolicy",
    "partitionKey",
    "uniqueKeyPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
];

/// Properties for which `null` says the same as leaving them out.
const OPTIONAL_PROPERTIES: [&str; 13] = [
    "indexingPolicy",
    "partitionKey",
    "uniqueKeyPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "defaultTtl",
    "analyticalStorageTtl",
    "changeFeedPolicy",
    "clientEncryptionPolicy",
    "computedProperties",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "dataMaskingPolicy",
];

impl ContainerDefinition {
    /// Whether spatial functions measure on the globe or on a plane.
    pub fn geospatial(&self) -> Geospatial {
        geospatial(&self.body)
    }

    /// Whether the container was made without a key: the server then chose one, which items need not have.
    pub fn has_system_key(&self) -> bool {
        self.body.root().get("partitionKey").get("systemKey").as_bool() == Some(true)
    }

    /// How long items live that do not say it themselves.
    pub fn ttl(&self) -> DefaultTtl {
        match self.body.root().get("defaultTtl").as_i64() {
            None => DefaultTtl::Off,
            Some(seconds) => u32::try_from(seconds).map_or(DefaultTtl::Never, DefaultTtl::Seconds),
        }
    }

    /// Combinations of values that no two items of a logical partition may share.
    pub fn unique_keys(&self) -> UniqueKeys {
        let keys = self.body.root().get("uniqueKeyPolicy").get("uniqueKeys").as_array();
        let paths = |key: orrery_doc::Value<'_>| {
            let paths = key.get("paths").as_array();
            paths
                .iter()
                .flat_map(|paths| paths.iter())
                .filter_map(|path| plain_path(path.as_str()?))
                .collect()
        };
        UniqueKeys::new(keys.iter().flat_map(|keys| keys.iter()).map(paths).collect())
    }

    /// For how long every version and delete is kept; none when the container does not ask for it.
    pub fn retention(&self) -> Option<Duration> {
        let minutes = self.body.root().get("changeFeedPolicy").get("retentionDuration").as_f64()?;
        (minutes >= 1.0).then(|| Duration::from_secs(minutes as u64 * 60))
    }

    /// Checks every property and fills in the defaults.
    pub fn parse(body: &Doc) -> Result<ContainerDefinition> {
        let Value::Object(object) = to_json(body)? else {
            return Err(Error::invalid("The input content is invalid because it is not a JSON object."));
        };
        ContainerDefinition::from_json(object)
    }

    /// The definition after a replace, which may not change everything.
    pub fn replaced_by(&self, body: &Doc) -> Result<ContainerDefinition> {
        replace::replace(self, body)
    }

    fn from_json(mut object: Object) -> Result<ContainerDefinition> {
        object.retain(|name, value| {
            !(SYSTEM_PROPERTIES.contains(&name.as_str())
                || value.is_null() && OPTIONAL_PROPERTIES.contains(&name.as_str()))
        });
        let id = check_id(&object)?;
        let key = partition_key(&mut object)?;
        index_paths::complete(&mut object)?;
        policies::check(&mut object)?;
        vectors::check(&object)?;
        full_text::check(&object)?;
        refuse_unsupported(&object)?;
        let body = to_doc(&Value::Object(ordered(object))).map_err(Error::invalid)?;
        let indexing = index_paths::compile(&body)?;
        Ok(ContainerDefinition { id, body, key, indexing, is_followed: false, previous_key: None })
    }
}

fn geospatial(body: &Doc) -> Geospatial {
    match body.root().get("geospatialConfig").get("type").as_str() {
        Some(kind) if kind.eq_ignore_ascii_case("Geometry") => Geospatial::Geometry,
        _ => Geospatial::Geography,
    }
}

fn check_id(object: &Object) -> Result<String> {
    let Some(id) = object.get("id").and_then(Value::as_str) else {
        return Err(Error::invalid(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        ));
    };
    check_name(id)?;
    Ok(id.to_owned())
}

/// The rules for names of databases and containers.
pub fn check_name(id: &str) -> Result<()> {
    let reason = if id.is_empty() || id.chars().count() > NAME_CHARS_MAX {
        "Ensure to provide a unique non-empty string less than '255' characters."
    } else if id.contains(['/', '\\', '?', '#']) {
        "It must not contain any of '/', '\\', '?' and '#'."
    } else if id.ends_with(' ') {
        "It must not end with a space."
    } else if id.chars().any(char::is_control) {
        "It must not contain control characters."
    } else {
        return Ok(());
    };
    let shown: String = id.chars().take(NAME_CHARS_MAX).collect();
    Err(Error::invalid(format!("The input name '{shown}' is invalid. {reason}")))
}

/// Reads the key and completes it. The version stays out when it was left out: its absence means version 1.
fn partition_key(object: &mut Object) -> Result<PartitionKeyDef> {
    if !object.contains_key("partitionKey") {
        // What the service gives to containers that are made without a key.
        let none = json!({"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": true});
        object.insert(String::from("partitionKey"), none);
    }
    let key = child_object(object, "partitionKey")?;
    let kind = match key.get("kind").and_then(Value::as_str).unwrap_or("Hash") {
        kind if kind.eq_ignore_ascii_case("Hash") => PartitionKeyKind::Hash,
        kind if kind.eq_ignore_ascii_case("MultiHash") => PartitionKeyKind::MultiHash,
        kind if kind.eq_ignore_ascii_case("Range") => PartitionKeyKind::Range,
        other => {
            return Err(Error::invalid(format!(
                "The 'kind' value '{other}' specified in the partition key definition is invalid. Please \
                 choose 'Hash' or 'MultiHash' partition type."
            )));
        }
    };
    if kind == PartitionKeyKind::Range {
        return Err(Error::invalid(
            "The 'kind' value 'Range' specified in the partition key definition is invalid. Please choose \
             'Hash' or 'MultiHash' partition type.",
        ));
    }
    let paths = key_paths(key, kind)?;
    let version = key_version(key, kind)?;
    let name = if kind == PartitionKeyKind::MultiHash { "MultiHash" } else { "Hash" };
    key.insert(String::from("kind"), Value::from(name));
    Ok(PartitionKeyDef { kind, version, paths })
}

fn key_paths(key: &Object, kind: PartitionKeyKind) -> Result<Vec<Path>> {
    let texts = key.get("paths").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if texts.is_empty() {
        return Err(Error::invalid("The partition key definition must name at least one path in 'paths'."));
    }
    let most = if kind == PartitionKeyKind::MultiHash { KEY_LEVELS_MAX } else { 1 };
    if texts.len() > most {
        return Err(Error::invalid(format!(
            "Too many partition key paths ({}) specified. A maximum of {most} is allowed.",
            texts.len()
        )));
    }
    let mut paths: Vec<Path> = Vec::with_capacity(texts.len());
    for text in texts {
        let shown = text.as_str().unwrap_or("");
        let path = text.as_str().and_then(plain_path).ok_or_else(|| {
            Error::invalid(format!(
                "The partition key component definition path '{shown}' could not be accepted. \
                 It is not a path such as '/a/b'."
            ))
        })?;
        if paths.contains(&path) {
            return Err(Error::invalid(format!("The partition key path '{shown}' is given twice.")));
        }
        paths.push(path);
    }
    Ok(paths)
}

fn key_version(key: &mut Object, kind: PartitionKeyKind) -> Result<PartitionKeyVersion> {
    let version = match key.get("version") {
        None | Some(Value::Null) => None,
        Some(value) => Some(version_number(value).ok_or_else(|| {
            Error::invalid(format!(
                "The 'version' value '{value}' specified in the partition key definition is invalid."
            ))
        })?),
    };
    match (kind, version) {
        (PartitionKeyKind::MultiHash, Some(1)) => {
            Err(Error::invalid("A partition key definition of kind 'MultiHash' needs version 2."))
        }
        // Hierarchical keys exist in version 2 only, so it needs no saying; it is shown all the same.
        (PartitionKeyKind::MultiHash, _) => {
            key.insert(String::from("version"), Value::from(2));
            Ok(PartitionKeyVersion::V2)
        }
        (_, Some(2)) => {
            key.insert(String::from("version"), Value::from(2));
            Ok(PartitionKeyVersion::V2)
        }
        (_, Some(_)) => {
            key.insert(String::from("version"), Value::from(1));
            Ok(PartitionKeyVersion::V1)
        }
        (_, None) => {
            key.remove("version");
            Ok(PartitionKeyVersion::V1)
        }
    }
}

/// Java gives versions their names.
fn version_number(value: &Value) -> Option<u64> {
    match value.as_str() {
        Some(name) if name.eq_ignore_ascii_case("V1") => Some(1),
        Some(name) if name.eq_ignore_ascii_case("V2") => Some(2),
        Some(_) => None,
        None => value.as_u64().filter(|version| matches!(version, 1 | 2)),
    }
}

/// A container whose contents would silently not be what was asked for is better refused.
fn refuse_unsupported(object: &Object) -> Result<()> {
    for name in ["materializedViewDefinition", "globalSecondaryIndexDefinition"] {
        if object.get(name).is_some_and(|value| !value.is_null()) {
            return Err(ErrorKind::Unsupported("A global secondary index").into());
        }
    }
    Ok(())
}

fn ordered(mut object: Object) -> Object {
    let mut out = Object::new();
    for name in FIRST_PROPERTIES {
        if let Some(value) = object.shift_remove(name) {
            out.insert(name.to_owned(), value);
        }
    }
    out.extend(object);
    out
}

/// A path to one property. Wildcards belong to indexing paths; in a quoted name their letters mean nothing.
fn plain_path(text: &str) -> Option<Path> {
    let unquoted = text.split('"').step_by(2);
    let has_wildcard = unquoted.flat_map(|part| part.split('/')).any(|name| matches!(name, "*" | "?" | "[]"));
    if has_wildcard { None } else { Path::parse_property(text).ok() }
}

/// The property as an object, which it must be; it is made if it is not there.
fn child_object<'o>(object: &'o mut Object, name: &str) -> Result<&'o mut Object> {
    let child = object.entry(name).or_insert_with(|| Value::Object(Object::new()));
    child.as_object_mut().ok_or_else(|| wrong_type(name, "an object"))
}

/// The property as a list, or an empty one if it is not there.
fn list<'o>(object: &'o Object, name: &str) -> Result<&'o [Value]> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(values)) => Ok(values),
        Some(_) => Err(wrong_type(name, "a list")),
    }
}

fn wrong_type(name: &str, wanted: &str) -> Error {
    Error::invalid(format!("One of the specified inputs is invalid: '{name}' must be {wanted}."))
}

#[cfg(test)]
mod tests;
