//! The typed value, its bytes, its order, JSON text in and out, and the effective partition key.
//!
//! Everything here is pure and synchronous. A [`Doc`] owns one document in the binary format of
//! `format`, a [`DocRef`] borrows it, and a [`Value`] is a view of any part of it that costs no
//! allocation. [`json`] turns text into documents and back, [`term`] gives values an order in bytes,
//! [`epk`] places a partition key in the key space, and [`geo`] shapes on the globe.

mod builder;
pub mod epk;
mod format;
pub mod geo;
pub mod json;
mod murmur3;
pub mod partition_key;
pub mod path;
pub mod term;
mod value;

pub use builder::DocBuilder;
pub use epk::{Epk, EpkRange, boundaries, boundary_between, divide, epk, prefix_range};
pub use format::{Doc, DocRef, FormatError};
pub use murmur3::murmur3_128;
pub use partition_key::{
    KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyError, PartitionKeyKind, PartitionKeyVersion,
};
pub use path::{Path, PathError, Segment};
pub use term::{TermOrder, compare, encode_term};
pub use value::{ArrayRef, ExtRef, ObjectRef, Value};

/// The deepest nesting that readers follow. JSON text is held to [`json::DEFAULT_MAX_DEPTH`]; the
/// room above it is for values that queries build around stored documents.
pub const MAX_DEPTH: usize = 512;
