//! Which properties clients encrypt, and with which keys. The server never sees either.

use orrery_doc::Doc;
use serde_json::Value;

use super::{Object, Result, list, wrong_type};
use crate::catalog::{Catalog, ChildKind, ContainerDefinition};
use crate::error::Error;
use crate::rid::Rid;

/// Every path must name its key; whether the key exists is for the catalog to say.
pub(super) fn admit(object: &Object) -> Result<()> {
    let policy = object.get("clientEncryptionPolicy").and_then(Value::as_object);
    for path in policy.map_or(Ok(&[][..]), |policy| list(policy, "includedPaths"))? {
        let is_named =
            |name: &str| path.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !is_named("path") || !is_named("clientEncryptionKeyId") {
            return Err(wrong_type(
                "includedPaths",
                "a list of objects with 'path' and 'clientEncryptionKeyId'",
            ));
        }
    }
    Ok(())
}

/// The ids of the keys that a definition names, each once.
pub(super) fn keys(body: &Doc) -> Vec<&str> {
    let paths = body.root().get("clientEncryptionPolicy").get("includedPaths").as_array();
    let mut keys = Vec::new();
    for path in paths.iter().flat_map(|paths| paths.iter()) {
        keys.extend(path.get("clientEncryptionKeyId").as_str().filter(|key| !keys.contains(key)));
    }
    keys
}

impl Catalog {
    /// Refuses a container that is to be encrypted with keys which its database does not have.
    pub(in crate::catalog) fn check_encryption_keys(
        &self,
        database: Rid,
        definition: &ContainerDefinition,
    ) -> Result<()> {
        let is_missing = |key: &&str| self.child(ChildKind::EncryptionKey, database, key).is_none();
        let missing: Vec<&str> = definition.encryption_keys().into_iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!("ClientEncryptionKey with id '[{}]' does not exist.", missing.join(", "))))
    }
}
