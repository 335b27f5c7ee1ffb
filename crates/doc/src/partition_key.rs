//! Partition keys: how a container defines them, and the values that items and requests bring.

use crate::cql;
use crate::epk::CUT_BYTES_MIN;
use crate::format::{Doc, DocRef};
use crate::json;
use crate::path::Path;
use crate::term::{TermOrder, encode_key};
use crate::typed::Plain;
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
    /// Hashed as version 2 does, from typed values: numbers are one key exactly if they are equal.
    Exact,
    /// Placed by the token that Cassandra gives to the bytes of the key.
    Token,
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
    /// Whether other keys may lie at the same place as this one, so that an item there has to be asked whose it is.
    ///
    /// The older forms of the EPK look at the beginning of a string only: keys that are as long as this beginning or
    /// longer share a place with all that begin alike. And a hash is no identity. Murmur's can be computed backwards, so a
    /// string that has the place of a given key, however short that is, is found in a second. Such keys are one logical
    /// partition for its size, its unique keys and its transactions, and yet different keys.
    pub fn may_share_place(&self, key: &PartitionKey) -> bool {
        let is_long = |component: &KeyComponent| match component {
            KeyComponent::Str(text) => text.len() >= CUT_BYTES_MIN,
            _ => false,
        };
        match (self.kind, self.version) {
            (PartitionKeyKind::Token, _) => false,
            (PartitionKeyKind::MultiHash | PartitionKeyKind::Exact, _)
            | (PartitionKeyKind::Hash, PartitionKeyVersion::V2) => !key.is_empty(),
            (PartitionKeyKind::Hash, PartitionKeyVersion::V1) | (PartitionKeyKind::Range, _) => {
                key.components().iter().any(is_long)
            }
        }
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
    /// A value that is told apart from others by its own type and not by what JSON shows of it.
    Exact(ExactKey),
    /// Behind every key; no item has it.
    Infinity,
}

/// A typed value as a part of a key.
#[derive(Clone)]
pub struct ExactKey {
    /// Two parts are the same exactly if these are.
    bytes: Box<[u8]>,
    value: Doc,
}

impl ExactKey {
    /// The part of a key that has MongoDB's idea of what is equal: `1`, `1.0` and `NumberDecimal("1")` are.
    fn of_bson(value: Value<'_>) -> ExactKey {
        let mut bytes = Vec::new();
        encode_key(value, TermOrder::Bson, &mut bytes);
        ExactKey { bytes: bytes.into(), value: Doc::from_value(value) }
    }

    /// The part of a key in the bytes that CQL sends; none for a value that it does not have.
    fn of_cql(value: Value<'_>) -> Option<ExactKey> {
        let mut bytes = Vec::new();
        cql::write(value, &mut bytes).then(|| ExactKey { bytes: bytes.into(), value: Doc::from_value(value) })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn value(&self) -> Value<'_> {
        self.value.root()
    }
}

impl PartialEq for ExactKey {
    fn eq(&self, other: &ExactKey) -> bool {
        self.bytes == other.bytes
    }
}

impl std::fmt::Debug for ExactKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
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
        PartitionKey::of_values(def, def.paths.iter().map(|path| doc.get(path)))
    }

    /// The key that these values make under a definition; one that cannot be a part of a key counts as undefined.
    pub fn of_values<'v>(def: &PartitionKeyDef, values: impl Iterator<Item = Value<'v>>) -> PartitionKey {
        let component =
            |value: Value<'v>| KeyComponent::of(def.kind, value).unwrap_or(KeyComponent::Undefined);
        PartitionKey(values.map(component).collect())
    }

    /// Whether an item has this key, or one that begins with it: whether [`PartitionKey::extract`] would give that. Every
    /// item that is read is asked, so what it has is compared where it stands.
    pub fn is_of(&self, def: &PartitionKeyDef, doc: DocRef<'_>) -> bool {
        let has = |(component, path): (&KeyComponent, &Path)| component.is(def.kind, doc.get(path));
        self.0.len() <= def.paths.len() && self.0.iter().zip(&def.paths).all(has)
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
            KeyComponent::Exact(key) => key.bytes.len(),
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
    /// The part of a key that a value gives in a container of this kind.
    fn of(kind: PartitionKeyKind, value: Value<'_>) -> Result<KeyComponent, PartitionKeyError> {
        match kind {
            PartitionKeyKind::Hash | PartitionKeyKind::MultiHash | PartitionKeyKind::Range => {
                KeyComponent::from_value(value)
            }
            _ if value.is_undefined() => Ok(KeyComponent::Undefined),
            PartitionKeyKind::Exact => Ok(KeyComponent::Exact(ExactKey::of_bson(value))),
            PartitionKeyKind::Token => {
                ExactKey::of_cql(value).map(KeyComponent::Exact).ok_or(PartitionKeyError::NotAScalar)
            }
        }
    }

    /// Whether a value gives this part of a key in a container of this kind.
    fn is(&self, kind: PartitionKeyKind, value: Value<'_>) -> bool {
        match (kind, self, value) {
            (
                PartitionKeyKind::Hash | PartitionKeyKind::MultiHash | PartitionKeyKind::Range,
                KeyComponent::Str(text),
                Value::Str(value),
            ) => text == value,
            _ => *self == KeyComponent::of(kind, value).unwrap_or(KeyComponent::Undefined),
        }
    }

    /// What the service makes a key of: JSON's scalars, with all numbers as doubles.
    fn from_value(value: Value<'_>) -> Result<KeyComponent, PartitionKeyError> {
        Ok(match value {
            Value::Undefined => KeyComponent::Undefined,
            Value::Null => KeyComponent::Null,
            Value::Bool(value) => KeyComponent::Bool(value),
            Value::Int(value) => KeyComponent::Number(value as f64),
            Value::Double(value) => KeyComponent::Number(value),
            Value::Str(value) => KeyComponent::Str(value.to_owned()),
            Value::Typed(value) => match value.plain() {
                Plain::Null => KeyComponent::Null,
                Plain::Int(number) => KeyComponent::Number(number as f64),
                Plain::Double(number) => KeyComponent::Number(number),
                Plain::Text(text) => KeyComponent::Str(text.into_owned()),
            },
            Value::Array(_) | Value::Object(_) | Value::Map(_) => {
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
            KeyComponent::Exact(key) => key.value(),
        }
    }
}
