//! Replacing a definition: what must stay as it was.

use orrery_doc::Doc;
use serde_json::Value;

use super::vectors::{embeddings, indexes, text};
use super::{ContainerDefinition, Object, Result, admit};
use crate::catalog::record::to_json;
use crate::error::Error;

pub(super) fn replace(current: &ContainerDefinition, body: &Doc) -> Result<ContainerDefinition> {
    let (Value::Object(old), Value::Object(mut new)) = (to_json(&current.body)?, to_json(body)?) else {
        return Err(Error::invalid("The input content is invalid because it is not a JSON object."));
    };
    // What cannot change needs no repeating.
    for name in ["partitionKey", "uniqueKeyPolicy", "conflictResolutionPolicy", "geospatialConfig"] {
        if let (None | Some(Value::Null), Some(kept)) = (new.get(name), old.get(name)) {
            new.insert(name.to_owned(), kept.clone());
        }
    }
    admit(&new)?;
    let replaced = ContainerDefinition::complete(new)?;
    let Value::Object(new) = to_json(&replaced.body)? else {
        return Err(Error::invalid("The input content is invalid because it is not a JSON object."));
    };
    if replaced.id != current.id {
        return Err(Error::invalid("Replacing a container cannot change its 'id'."));
    }
    if replaced.key != current.key {
        return Err(Error::invalid("Document collection partition key cannot be changed."));
    }
    if unique_keys(&old) != unique_keys(&new) {
        return Err(Error::invalid(
            "Unique index cannot be modified. To change the unique index, remove the collection and re-create \
             a new one.",
        ));
    }
    if old.get("conflictResolutionPolicy") != new.get("conflictResolutionPolicy") {
        return Err(Error::invalid("The conflict resolution policy of a container cannot be changed."));
    }
    if old.get("clientEncryptionPolicy") != new.get("clientEncryptionPolicy") {
        return Err(Error::invalid(
            "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.",
        ));
    }
    unmodified(embeddings(&old)?, embeddings(&new)?, "embedding policy")?;
    unmodified(indexes(&old)?, indexes(&new)?, "vector indexing policy")?;
    Ok(ContainerDefinition {
        api: current.api,
        order: current.order,
        is_followed: current.is_followed,
        previous_key: current.previous_key.clone(),
        retention_default: current.retention_default,
        ..replaced
    })
}

/// No policy and an empty one say the same.
fn unique_keys(object: &Object) -> &[Value] {
    object
        .get("uniqueKeyPolicy")
        .and_then(|policy| policy.get("uniqueKeys"))
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Vector paths may come and go, but one that stays must stay what it is.
fn unmodified(old: &[Value], new: &[Value], what: &str) -> Result<()> {
    let is_modified = |entry: &Value| {
        let path = text(entry, "path");
        new.iter().any(|candidate| text(candidate, "path") == path && candidate != entry)
    };
    if old.iter().any(is_modified) {
        return Err(Error::invalid(format!(
            "Paths in existing {what} cannot be modified in Collection Replace. They can only be added or removed."
        )));
    }
    Ok(())
}
