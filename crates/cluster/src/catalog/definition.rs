//! What a client may say about a container, checked and completed.
//!
//! A definition is JSON. Each property that the service knows has its own rules in a module of its own; what it
//! does not know is kept, because clients read it back. Defaults are filled in as the service does, so that
//! reading a container shows the policy that is in force. Completing what was completed before changes nothing:
//! stored definitions are read back through the same door, except that they are not admitted anew. The rules
//! for admission may become stricter; what was stored under older ones still opens.

mod computed;
mod encryption;
mod full_text;
pub(super) mod index_paths;
mod key;
mod policies;
mod replace;
mod spatial;
mod vectors;

use std::sync::Arc;
use std::time::Duration;

use orrery_doc::{Doc, PartitionKeyDef, Path, TermOrder};
use orrery_query::{Geospatial, VectorPath, Vocabulary};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::NAME_CHARS_MAX;
use orrery_store::{DefaultTtl, UniqueKeys};
use serde_json::{Map, Value};

use super::record::{to_doc, to_json};
use super::spec::Api;
use crate::error::{Error, ErrorKind};

type Result<T> = std::result::Result<T, Error>;
type Object = Map<String, Value>;

/// A container as its creator described it.
#[derive(Clone, Debug)]
pub struct ContainerDefinition {
    pub id: String,
    /// Through whose gateway it was made.
    pub api: Api,
    /// How terms of its values sort; it stays as it is.
    pub order: TermOrder,
    /// Normalised JSON with defaults filled in; no system properties, unknown fields kept.
    pub body: Doc,
    pub key: PartitionKeyDef,
    pub indexing: IndexingPolicy,
    /// What its queries mean, read from the body once. What is legal but cannot be read yet is told to queries.
    pub(super) vocabulary: orrery_query::Result<Arc<Vocabulary>>,
    /// A job copies the container elsewhere while it changes, so every change is recorded, whatever its policy says.
    /// The jobs of the catalog decide this; it is no part of the body.
    pub is_followed: bool,
    /// The key that the container had before it got this one in place; clients may still think so. As above, no part of
    /// the body.
    pub previous_key: Option<PartitionKeyDef>,
    /// For how long every version is kept if the container does not say it. The server's configuration decides this; as
    /// above, no part of the body.
    pub retention_default: Option<Duration>,
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
const OPTIONAL_PROPERTIES: [&str; 14] = [
    "indexingPolicy",
    "partitionKey",
    "uniqueKeyPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "defaultTtl",
    "ttlPropertyPath",
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

    /// The vectors of its policy.
    pub fn vectors(&self) -> Vec<VectorPath> {
        vectors::paths(&self.body)
    }

    /// What queries may name, and how their vectors are measured.
    pub fn vocabulary(&self) -> orrery_query::Result<&Arc<Vocabulary>> {
        self.vocabulary.as_ref().map_err(Clone::clone)
    }

    /// Whether the container was made without a key: the server then chose one, which items need not have.
    pub fn has_system_key(&self) -> bool {
        self.body.root().get("partitionKey").get("systemKey").as_bool() == Some(true)
    }

    /// The body as clients know it that have never heard of kinds of index: without those that a container from before partition
    /// keys was made with.
    pub fn body_without_index_kinds(&self) -> Doc {
        index_paths::without_kinds(&self.body)
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

    /// For how long every version and delete is kept, if at all. A container that asks for no minutes has none, whatever the
    /// server does with others.
    pub fn retention(&self) -> Option<Duration> {
        let policy = self.body.root().get("changeFeedPolicy");
        let Some(minutes) = policy.get("retentionDuration").as_f64() else { return self.retention_default };
        (minutes >= 1.0).then(|| Duration::from_secs(minutes as u64 * 60))
    }

    /// The keys by which clients encrypt items, each once.
    pub fn encryption_keys(&self) -> Vec<&str> {
        encryption::keys(&self.body)
    }

    /// Reads what a client wants to create: checks every property and fills in the defaults.
    pub fn parse(body: &Doc) -> Result<ContainerDefinition> {
        let object = object_of(body)?;
        key::admit(&object)?;
        admit(&object)?;
        ContainerDefinition::complete(object)
    }

    /// Reads what a gateway of another protocol made of its client's request: the order of terms is its own, and so may be
    /// the kind of the key: `Exact` tells typed values apart as MongoDB does, `Token` places keys as Cassandra does.
    pub fn of_api(api: Api, order: TermOrder, body: &Doc) -> Result<ContainerDefinition> {
        let object = object_of(body)?;
        admit(&object)?;
        Ok(ContainerDefinition { api, order, ..ContainerDefinition::complete(object)? })
    }

    /// Reads what was parsed once, perhaps by an earlier release.
    pub(crate) fn stored(body: &Doc) -> Result<ContainerDefinition> {
        ContainerDefinition::complete(object_of(body)?)
    }

    /// The definition after a replace, which may not change everything.
    pub fn replaced_by(&self, body: &Doc) -> Result<ContainerDefinition> {
        replace::replace(self, body)
    }

    fn complete(mut object: Object) -> Result<ContainerDefinition> {
        object.retain(|name, value| {
            !(SYSTEM_PROPERTIES.contains(&name.as_str())
                || value.is_null() && OPTIONAL_PROPERTIES.contains(&name.as_str()))
        });
        let id = check_id(&object)?;
        let key = key::complete(&mut object)?;
        index_paths::complete(&mut object)?;
        policies::check(&mut object)?;
        vectors::check(&object)?;
        full_text::complete(&mut object)?;
        refuse_unsupported(&object)?;
        let body = to_doc(&Value::Object(ordered(object))).map_err(Error::invalid)?;
        let indexing = index_paths::compile(&body)?;
        let vocabulary =
            computed::vocabulary(&body).map(|known| Arc::new(known.with_vectors(vectors::paths(&body))));
        Ok(ContainerDefinition {
            id,
            api: Api::NoSql,
            order: TermOrder::Sql,
            body,
            key,
            indexing,
            vocabulary,
            is_followed: false,
            previous_key: None,
            retention_default: None,
        })
    }
}

fn object_of(body: &Doc) -> Result<Object> {
    match to_json(body)? {
        Value::Object(object) => Ok(object),
        _ => Err(Error::invalid("The input content is invalid because it is not a JSON object.")),
    }
}

/// What a client may not ask for, in a create or a replace, beside what no definition may be.
fn admit(object: &Object) -> Result<()> {
    spatial::admit(object)?;
    computed::admit(object)?;
    policies::admit(object)?;
    full_text::admit(object)?;
    encryption::admit(object)
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

/// The rules for names of databases, containers and most of what they have.
pub fn check_name(id: &str) -> Result<()> {
    check_script_name(id)?;
    match id.chars().any(char::is_control) {
        true => Err(invalid_name(id, "It must not contain control characters.")),
        false => Ok(()),
    }
}

/// The rules for names of scripts, which may contain what no path can carry; such are reached by RID.
pub(super) fn check_script_name(id: &str) -> Result<()> {
    let reason = if id.is_empty() || id.chars().count() > NAME_CHARS_MAX {
        "Ensure to provide a unique non-empty string less than '255' characters."
    } else if id.contains(['/', '\\', '?', '#']) {
        "It must not contain any of '/', '\\', '?' and '#'."
    } else if id.ends_with(' ') {
        "It must not end with a space."
    } else {
        return Ok(());
    };
    Err(invalid_name(id, reason))
}

fn invalid_name(id: &str, reason: &str) -> Error {
    let shown: String = id.chars().take(NAME_CHARS_MAX).collect();
    Error::invalid(format!("The input name '{shown}' is invalid. {reason}"))
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
