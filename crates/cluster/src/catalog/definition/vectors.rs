//! Vector embeddings and the indexes over them.

use orrery_doc::{Doc, Segment};
use orrery_query::{VectorDistance, VectorPath};
use serde_json::Value;

use super::{Object, Result, list, plain_path, wrong_type};
use crate::error::Error;

const DIMENSIONS_MAX: i64 = 4_096;
/// A flat index keeps whole vectors, so they must be short.
const FLAT_DIMENSIONS_MAX: i64 = 505;
const QUANTIZATION_BYTES_MAX: i64 = 512;
const SEARCH_LIST: std::ops::RangeInclusive<i64> = 25..=500;
const SHARD_PATHS_MAX: usize = 1;

const DATA_TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];
const DISTANCE_FUNCTIONS: [&str; 3] = ["cosine", "dotproduct", "euclidean"];
const INDEX_TYPES: [&str; 3] = ["flat", "quantizedFlat", "diskANN"];

pub(super) fn check(object: &Object) -> Result<()> {
    let embeddings = embeddings(object)?;
    for (place, embedding) in embeddings.iter().enumerate() {
        check_embedding(embedding)?;
        let path = text(embedding, "path");
        if embeddings[..place].iter().any(|earlier| text(earlier, "path") == path) {
            return Err(Error::invalid(format!("The Vector Embedding Policy has the Path:{path} twice.")));
        }
    }
    indexes(object)?.iter().try_for_each(|index| check_index(index, embeddings))
}

/// What queries have to know of the embeddings.
pub(super) fn paths(body: &Doc) -> Vec<VectorPath> {
    let embeddings = body.root().get("vectorEmbeddingPolicy").get("vectorEmbeddings").as_array();
    embeddings.into_iter().flat_map(|list| list.iter()).filter_map(vector_path).collect()
}

fn vector_path(embedding: orrery_doc::Value<'_>) -> Option<VectorPath> {
    let name = |segment: &Segment| match segment {
        Segment::Name(name) => Some(name.clone()),
        Segment::Index(_) => None,
    };
    let path = plain_path(embedding.get("path").as_str()?)?;
    let path = path.segments().iter().map(name).collect::<Option<Vec<String>>>()?;
    let distance = VectorDistance::from_name(embedding.get("distanceFunction").as_str()?)?;
    Some(VectorPath { path, distance })
}

/// The embeddings of a definition, each by its path.
pub(super) fn embeddings(object: &Object) -> Result<&[Value]> {
    let Some(policy) = object.get("vectorEmbeddingPolicy") else { return Ok(&[]) };
    let policy = policy.as_object().ok_or_else(|| wrong_type("vectorEmbeddingPolicy", "an object"))?;
    list(policy, "vectorEmbeddings")
}

pub(super) fn indexes(object: &Object) -> Result<&[Value]> {
    match object.get("indexingPolicy").and_then(Value::as_object) {
        Some(policy) => list(policy, "vectorIndexes"),
        None => Ok(&[]),
    }
}

pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn check_embedding(embedding: &Value) -> Result<()> {
    let path = text(embedding, "path");
    if plain_path(path).is_none() {
        return Err(Error::invalid(format!("The Vector Embedding Policy has an invalid Path:{path}.")));
    }
    let data_type = text(embedding, "dataType");
    if !is_one_of(data_type, &DATA_TYPES) {
        return Err(Error::invalid(format!(
            "The Vector Embedding Policy has an invalid DataType:{data_type}."
        )));
    }
    let distance = text(embedding, "distanceFunction");
    if !is_one_of(distance, &DISTANCE_FUNCTIONS) {
        return Err(Error::invalid(format!(
            "The Vector Embedding Policy has an invalid DistanceFunction:{distance}."
        )));
    }
    match embedding.get("dimensions").and_then(Value::as_i64) {
        Some(dimensions) if dimensions > DIMENSIONS_MAX => Err(Error::invalid(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported \
             value:{DIMENSIONS_MAX}."
        ))),
        Some(1..) => Ok(()),
        Some(dimensions) => Err(Error::invalid(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum supported \
             value:1."
        ))),
        None => Err(Error::invalid("The Vector Embedding Policy needs Dimensions as a whole number.")),
    }
}

fn check_index(index: &Value, embeddings: &[Value]) -> Result<()> {
    let (path, kind) = (text(index, "path"), text(index, "type"));
    if !is_one_of(kind, &INDEX_TYPES) {
        return Err(Error::invalid(format!("The Vector Indexing Policy's Index Type::{kind} is invalid.")));
    }
    let Some(embedding) = embeddings.iter().find(|embedding| text(embedding, "path") == path) else {
        return Err(Error::invalid(format!(
            "The Vector Indexing Policy's path::{path} not matching in Embedding's path."
        )));
    };
    let dimensions = embedding.get("dimensions").and_then(Value::as_i64).unwrap_or(0);
    if kind.eq_ignore_ascii_case("flat") && dimensions > FLAT_DIMENSIONS_MAX {
        return Err(Error::invalid(format!(
            "The Vector Indexing Policy's Index Type::flat allows {FLAT_DIMENSIONS_MAX} dimensions at most, \
             and the embedding {path} has {dimensions}."
        )));
    }
    let quantizer = text(index, "quantizerType");
    if !quantizer.is_empty() && !is_one_of(quantizer, &["product", "spherical"]) {
        return Err(Error::invalid(format!(
            "The Vector Indexing Policy's QuantizerType::{quantizer} is invalid."
        )));
    }
    in_range(index, "quantizationByteSize", 1..=QUANTIZATION_BYTES_MAX.min(dimensions))?;
    in_range(index, "indexingSearchListSize", SEARCH_LIST)?;
    check_shards(index)
}

fn in_range(index: &Value, name: &str, allowed: std::ops::RangeInclusive<i64>) -> Result<()> {
    let Some(value) = index.get(name).filter(|value| !value.is_null()) else { return Ok(()) };
    if value.as_i64().is_some_and(|value| allowed.contains(&value)) {
        return Ok(());
    }
    let mut shown = name.to_owned();
    shown[..1].make_ascii_uppercase();
    Err(Error::invalid(format!(
        "The Vector Indexing Policy parameter {shown} value :: {value} is out of range. \
         The allowed range is between {} and {}.",
        allowed.start(),
        allowed.end()
    )))
}

fn check_shards(index: &Value) -> Result<()> {
    let Some(index) = index.as_object() else { return Err(wrong_type("vectorIndexes", "a list of objects")) };
    let shards = list(index, "vectorIndexShardKey")?;
    if shards.len() > SHARD_PATHS_MAX {
        return Err(Error::invalid(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: \
             {SHARD_PATHS_MAX}.",
            shards.len()
        )));
    }
    for shard in shards {
        let shown = shard.as_str().unwrap_or("");
        if plain_path(shown).is_none() {
            return Err(Error::invalid(format!(
                "The Vector Indexing Policy has an invalid Shard Path: {shown}."
            )));
        }
    }
    Ok(())
}

pub(super) fn is_one_of(value: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(value))
}
