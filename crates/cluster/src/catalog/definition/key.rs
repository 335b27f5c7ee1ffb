//! The partition key of a container.

use orrery_doc::partition_key::MAX_COMPONENTS;
use orrery_doc::{PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path};
use orrery_store::limits::KEY_LEVELS_MAX;
use serde_json::{Value, json};

use super::{Object, Result, child_object, plain_path};
use crate::error::Error;

/// Refuses what the service would refuse of a new key. Keys that were taken before stay as they are.
pub(super) fn admit(object: &Object) -> Result<()> {
    let kind = object.get("partitionKey").and_then(|key| key.get("kind")).and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| matches!(kind_of(kind), Some((_, Maker::Gateways)))) {
        return Err(refused_kind(kind));
    }
    let paths = object.get("partitionKey").and_then(|key| key.get("paths")).and_then(Value::as_array);
    for path in paths.into_iter().flatten().filter_map(Value::as_str) {
        if let Some(position) = refused_at(path) {
            return Err(refused_path(path, position));
        }
    }
    Ok(())
}

/// Who may ask for a kind of key: the service's clients, or gateways of other protocols for their own containers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Clients,
    Gateways,
}

/// The kinds of keys by their names in definitions. The kind that very old containers have is not made any more.
const KINDS: [(&str, PartitionKeyKind, Maker); 4] = [
    ("Hash", PartitionKeyKind::Hash, Maker::Clients),
    ("MultiHash", PartitionKeyKind::MultiHash, Maker::Clients),
    ("Exact", PartitionKeyKind::Exact, Maker::Gateways),
    ("Token", PartitionKeyKind::Token, Maker::Gateways),
];

fn kind_of(name: &str) -> Option<(PartitionKeyKind, Maker)> {
    let row = KINDS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
    Some((row.1, row.2))
}

fn refused_kind(name: &str) -> Error {
    Error::invalid(format!(
        "The 'kind' value '{name}' specified in the partition key definition is invalid. Please choose 'Hash' or \
         'MultiHash' partition type."
    ))
}

/// The service's words. It counts characters from 0.
fn refused_path(path: &str, position: usize) -> Error {
    Error::invalid(format!(
        "The partition key component definition path '{path}' could not be accepted, failed near position '{position}'. \
         Partition key paths must contain only valid characters and not contain a trailing slash or wildcard character."
    ))
}

/// Where a path is not one any more. Names are made of letters, digits and underscores; others stand in quotes.
fn refused_at(path: &str) -> Option<usize> {
    let mut rest = path;
    let end = loop {
        let Some(segment) = rest.strip_prefix('/') else { break rest };
        match after_name(segment) {
            Ok("") => return None,
            Ok(after) => rest = after,
            Err(at) => break at,
        }
    };
    // Blanks are passed over before the service notices that they were the end.
    let end = end.trim_start();
    Some(path[..path.len() - end.len()].chars().count())
}

/// What follows a name, or where it is not one.
fn after_name(text: &str) -> std::result::Result<&str, &str> {
    let Some(quote @ ('"' | '\'')) = text.chars().next() else {
        let after = text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        return if after.len() < text.len() { Ok(after) } else { Err(text) };
    };
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return if at > 1 { Ok(&text[at + 1..]) } else { Err(text) },
            _ => {}
        }
    }
    Err("")
}

/// Reads the key and completes it. The version stays out when it was left out: its absence means version 1.
pub(super) fn complete(object: &mut Object) -> Result<PartitionKeyDef> {
    if !object.contains_key("partitionKey") {
        // What the service gives to containers that are made without a key.
        let none = json!({"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": true});
        object.insert(String::from("partitionKey"), none);
    }
    let key = child_object(object, "partitionKey")?;
    let name = key.get("kind").and_then(Value::as_str).unwrap_or("Hash");
    let (kind, _) = kind_of(name).ok_or_else(|| refused_kind(name))?;
    let paths = key_paths(key, kind)?;
    let version = key_version(key, kind)?;
    let name = KINDS.iter().find(|row| row.1 == kind).map_or("Hash", |row| row.0);
    key.insert(String::from("kind"), Value::from(name));
    Ok(PartitionKeyDef { kind, version, paths })
}

fn key_paths(key: &Object, kind: PartitionKeyKind) -> Result<Vec<Path>> {
    let texts = key.get("paths").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if texts.is_empty() {
        return Err(Error::invalid("The partition key definition must name at least one path in 'paths'."));
    }
    let most = match kind {
        PartitionKeyKind::MultiHash => KEY_LEVELS_MAX,
        PartitionKeyKind::Exact | PartitionKeyKind::Token => MAX_COMPONENTS,
        PartitionKeyKind::Hash | PartitionKeyKind::Range => 1,
    };
    if texts.len() > most {
        return Err(Error::invalid(format!(
            "Too many partition key paths ({}) specified. A maximum of {most} is allowed.",
            texts.len()
        )));
    }
    let mut paths: Vec<Path> = Vec::with_capacity(texts.len());
    for text in texts {
        let shown = text.as_str().unwrap_or("");
        let path = text.as_str().and_then(plain_path).ok_or_else(|| refused_path(shown, 0))?;
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
        // These have had one form only.
        (PartitionKeyKind::Exact | PartitionKeyKind::Token, _) => {
            key.remove("version");
            Ok(PartitionKeyVersion::V2)
        }
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
