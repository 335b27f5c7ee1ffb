//! The parts of OTLP's messages that traces and metrics have in common, in the JSON form of protobuf.

use std::fmt::Display;

use serde::{Serialize, Serializer};

/// A name and its value.
#[derive(Serialize)]
pub struct Attribute<'a> {
    pub key: &'a str,
    pub value: Any<'a>,
}

/// A value, under the name that protobuf gives its type.
#[derive(Serialize)]
pub enum Any<'a> {
    #[serde(rename = "stringValue")]
    Text(&'a str),
    #[serde(rename = "intValue", serialize_with = "as_text")]
    Whole(u64),
    #[serde(rename = "doubleValue")]
    Double(f64),
}

/// What sends it, so that a collector can tell servers apart.
#[derive(Serialize)]
pub struct Resource<'a> {
    pub attributes: Vec<Attribute<'a>>,
}

#[derive(Serialize)]
pub struct Scope {
    name: &'static str,
    version: &'static str,
}

pub const SCOPE: Scope = Scope { name: "orrery", version: env!("CARGO_PKG_VERSION") };

pub fn text<'a>(key: &'a str, value: &'a str) -> Attribute<'a> {
    Attribute { key, value: Any::Text(value) }
}

pub fn number(key: &str, value: u64) -> Attribute<'_> {
    Attribute { key, value: Any::Whole(value) }
}

/// Numbers of 64 bits are texts in this form, since not all readers of JSON have them.
pub fn as_text<S: Serializer>(value: impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&value)
}
