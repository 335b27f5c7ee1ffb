//! Partition keys: how a container defines them, and the values that items and requests bring.

use crate::epk::CUT_BYTES_MIN;
use crate::format::DocRef;
use crate::json;
use crate::path::Path;
use crate::value::Value;

/// The most bytes a key may have.
pub const MAX_KEY_BYTES: usize = 2048;
/// The most components that are read. Definitions of today have three at most, old ones had more.
pub const MAX_COMPONENTS: usize = 16;
/// The longest header text that is read: a key of full length in which every byte is escaped.
const MAX_HEADER_BYTES: usize = 6 * MAX_KEY_BYTES + 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionKeyKind {
    Hash,
    /// Hierarchical: each level is hashed on its own, so that a prefix is a range.
    MultiHash,
    /// Not hashed at all; only very old containers have it.
    Range,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionKeyVersion {
    V1 = 1,
    V2 = 2,
}

/// A container's partition key definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionKeyDef {
    pub kind: PartitionKeyKind,
    pub version: PartitionKeyVersion,
    pub paths: Vec<Path>,
}

impl PartitionKeyDef {
    /// Whether other keys may lie at the same place as this one. The older forms of the EPK look at the beginning of a
    /// string only, so keys that are as long as this beginning or longer share a place with all that begin alike. Such
    /// keys are one logical partition for its size, its unique keys and its transactions, and yet different keys.
    pub fn may_share_place(&self, key: &PartitionKey) -> bool {
        let is_cut = match (self.kind, self.version) {
            (PartitionKeyKind::MultiHash, _) | (PartitionKeyKind::Hash, PartitionKeyVersion::V2) => false,
            (PartitionKeyKind::Hash, PartitionKeyVersion::V1) | (PartitionKeyKind::Range, _) => true,
        };
        let is_long = |component: &KeyComponent| match component {
            KeyComponent::Str(text) => text.len() >= CUT_BYTES_MIN,
            _ => false,
        };
        is_cut && key.components().iter().any(is_long)
    }
}

/// The value of one partition key path.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyComponent {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Str(String),
    /// Behind every key; no item has it.
    Infinity,
}

/// A partition key value: one component for each path, fewer in a prefix, none in `[]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartitionKey(pub Vec<KeyComponent>);

/// Why something is not a partition key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitionKeyError {
    #[error("the partition key is not valid JSON: {0}")]
    Json(#[from] json::JsonError),
    #[error("the partition key must be a JSON array")]
    NotAnArray,
    /// The service answers 400 when an item has such a value at a partition key path.
    #[error("a partition key value must be a string, number, boolean or null, not an array or object")]
    NotAScalar,
    #[error("the partition key has {found} components, which is more than {limit}")]
    TooManyComponents { found: usize, limit: usize },
    #[error("the partition key has {found} bytes, which is more than {limit}")]
    TooLong { found: usize, limit: usize },
}

impl PartitionKey {
    /// The key behind all keys.
    pub fn infinity() -> PartitionKey {
        PartitionKey(vec![KeyComponent::Infinity])
    }

    /// Reads the JSON array of a request header: `["a",1]`; `[{}]` is undefined and `[]` no key.
    pub fn from_header(text: &str) -> Result<PartitionKey, PartitionKeyError> {
        if text.len() > MAX_HEADER_BYTES {
            return Err(PartitionKeyError::TooLong { found: text.len(), limit: MAX_HEADER_BYTES });
        }
        // Most keys are one plain string, which needs no parser.
        let inside = text.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]"));
        if let Some(inside) = inside.filter(|inside| json::plain_length(inside.as_bytes()) == inside.len()) {
            return Ok(PartitionKey(vec![KeyComponent::Str(inside.to_owned())]));
        }
        // An array of scalars and empty objects is two levels deep.
        let doc = json::parse(text.as_bytes(), 2)?;
        PartitionKey::from_value(doc.root())
    }

    /// Reads the same array from a value.
    pub fn from_value(value: Value<'_>) -> Result<PartitionKey, PartitionKeyError> {
        let array = value.as_array().ok_or(PartitionKeyError::NotAnArray)?;
        if array.len() > MAX_COMPONENTS {
            return Err(PartitionKeyError::TooManyComponents { found: array.len(), limit: MAX_COMPONENTS });
        }
        let component = |value: Value<'_>| match value {
            Value::Object(object) if object.is_empty() => Ok(KeyComponent::Undefined),
            value => KeyComponent::from_value(value),
        };
        array.iter().map(component).collect::<Result<_, _>>().map(PartitionKey)
    }

    /// The key of an item. A path that leads nowhere, or to an array or object, gives undefined, as the SDKs
    /// send it.
    pub fn extract(def: &PartitionKeyDef, doc: DocRef<'_>) -> PartitionKey {
        let component =
            |path: &Path| KeyComponent::from_value(doc.get(path)).unwrap_or(KeyComponent::Undefined);
        PartitionKey(def.paths.iter().map(component).collect())
    }

    pub fn components(&self) -> &[KeyComponent] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the key has a component for each path of the definition.
    pub fn is_full(&self, def: &PartitionKeyDef) -> bool {
        self.0.len() == def.paths.len()
    }

    /// The bytes that count towards the limit.
    pub fn byte_length(&self) -> usize {
        let bytes = |component: &KeyComponent| match component {
            KeyComponent::Str(text) => text.len(),
            KeyComponent::Number(_) => 8,
            _ => 1,
        };
        self.0.iter().map(bytes).sum()
    }

    pub fn check_length(&self) -> Result<(), PartitionKeyError> {
        let (found, limit) = (self.byte_length(), MAX_KEY_BYTES);
        if found > limit { Err(PartitionKeyError::TooLong { found, limit }) } else { Ok(()) }
    }

    /// The key as a request header shows it.
    pub fn to_json(&self) -> String {
        if self.0 == [KeyComponent::Infinity] {
            return "\"Infinity\"".to_owned();
        }
        let mut out = vec![b'['];
        for (i, component) in self.0.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match component {
                KeyComponent::Undefined | KeyComponent::Infinity => out.extend_from_slice(b"{}"),
                component => json::write(component.as_value(), &mut out),
            }
        }
        out.push(b']');
        String::from_utf8(out).expect("JSON is written as UTF-8")
    }
}

impl KeyComponent {
    fn from_value(value: Value<'_>) -> Result<KeyComponent, PartitionKeyError> {
        Ok(match value {
            Value::Undefined => KeyComponent::Undefined,
            Value::Null => KeyComponent::Null,
            Value::Bool(value) => KeyComponent::Bool(value),
            Value::Int(value) => KeyComponent::Number(value as f64),
            Value::Double(value) => KeyComponent::Number(value),
            Value::Str(value) => KeyComponent::Str(value.to_owned()),
            Value::Array(_) | Value::Object(_) | Value::Ext(_) => {
                return Err(PartitionKeyError::NotAScalar);
            }
        })
    }

    pub fn as_value(&self) -> Value<'_> {
        match self {
            KeyComponent::Undefined | KeyComponent::Infinity => Value::Undefined,
            KeyComponent::Null => Value::Null,
            KeyComponent::Bool(value) => Value::Bool(*value),
            KeyComponent::Number(value) => Value::Double(*value),
            KeyComponent::Str(value) => Value::Str(value),
        }
    }
}
