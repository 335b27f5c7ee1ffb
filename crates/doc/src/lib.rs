//! The typed value, its bytes, its order, JSON text in and out, and the effective partition key.
//!
//! Everything here is pure and synchronous. A [`Doc`] owns one document in the binary format of
//! `format`, a [`DocRef`] borrows it, and a [`Value`] is a view of any part of it that costs no
//! allocation; a [`Typed`] is one of a type that JSON does not have. [`json`] turns text into documents and back, [`term`] gives values an order in bytes,
//! [`epk`] places a partition key in the key space, and [`geo`] shapes on the globe.

mod builder;
mod cell;
pub mod cql;
pub mod epk;
mod format;
pub mod geo;
pub mod json;
mod map;
mod murmur3;
pub mod partition_key;
pub mod path;
pub mod term;
mod typed;
mod value;

pub use builder::DocBuilder;
pub use cell::{Cell, Content, Expiry};
pub use epk::{Epk, EpkRange, boundaries, boundary_between, divide, epk, prefix_range};
pub use format::{Doc, DocRef, FormatError};
pub use map::MapRef;
pub use murmur3::{cassandra_token, murmur3_128};
pub use partition_key::{
    ExactKey, KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyError, PartitionKeyKind,
    PartitionKeyVersion,
};
pub use path::{Path, PathError, Segment};
pub use term::{
    Bounds, TermOrder, TermType, compare, compare_in, encode_key, encode_term, read_scalar, term_length,
};
pub use typed::{
    ArrayKind, Decimal128, DecimalRef, Duration, MAX_INTEGER_BYTES, Plain, ScopedCode, TimeOfDay, Typed,
    VarintRef,
};
pub use value::{ArrayRef, ObjectRef, Value};

/// The deepest nesting that readers follow. JSON text is held to [`json::DEFAULT_MAX_DEPTH`]; the
/// room above it is for values that queries build around stored documents.
pub const MAX_DEPTH: usize = 512;
