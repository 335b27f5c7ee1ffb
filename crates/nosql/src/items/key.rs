//! Which logical partition a request is about.
//!
//! Clients say it in a header, and documents say it again at the container's paths; the two must agree.
//! `[{}]` is a key whose property is not there, `[null]` one whose property is null, and `[]` what clients
//! of containers without a key of their own send, which means the same as all properties missing. Clients from before
//! such containers could have a key at all send no header.

use orrery_cluster::ContainerDefinition;
use orrery_doc::{Doc, KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyError, PartitionKeyKind};

use crate::errors::{Own, Refusal};
use crate::headers::RequestHeaders;

/// The first API version whose clients name the partition that items without a key are in.
const FIRST_VERSION_WITH_KEYS: &str = "2018-12-31";

/// Whether the client is from before containers without a key of their own could have items with one.
pub(crate) fn is_from_before_keys(headers: &RequestHeaders<'_>) -> bool {
    headers.version.is_some_and(|version| version.trim() < FIRST_VERSION_WITH_KEYS)
}

/// The header that names the key.
pub(crate) fn named<'a>(definition: &ContainerDefinition, headers: &RequestHeaders<'a>) -> Option<&'a str> {
    match headers.partition_key {
        None if is_from_before_keys(headers) && definition.has_system_key() => Some("[]"),
        named => named,
    }
}

/// The key of an operation that brings no document: read, delete, patch, batch.
pub(crate) fn of_request(def: &PartitionKeyDef, header: Option<&str>) -> Result<PartitionKey, Refusal> {
    let Some(header) = header else {
        return Err(Refusal::bad_request("PartitionKey value must be supplied for this operation."));
    };
    full(def, parse(header)?)
}

/// The key of an operation that brings a document: create, upsert, replace.
pub(crate) fn of_document(
    def: &PartitionKeyDef,
    header: Option<&str>,
    doc: &Doc,
) -> Result<PartitionKey, Refusal> {
    let key = of_request(def, header)?;
    check_document(def, &key, doc)?;
    Ok(key)
}

/// The same for a container that may have been given another key while clients knew the old one: they name the old one
/// for a while, but the document says where it belongs. Then the key is not the one that was looked at when the request
/// came in, so the grant must be asked for it again.
pub(crate) fn of_written(
    definition: &ContainerDefinition,
    header: Option<&str>,
    doc: &Doc,
) -> Result<PartitionKey, Refusal> {
    let named = of_document(&definition.key, header, doc);
    let previous = definition.previous_key.as_ref().filter(|_| named.is_err());
    match previous {
        Some(previous) if of_document(previous, header, doc).is_ok() => {
            full(&definition.key, PartitionKey::extract(&definition.key, doc.as_ref()))
        }
        _ => named,
    }
}

/// Refuses a document that belongs to another logical partition.
pub(crate) fn check_document(def: &PartitionKeyDef, key: &PartitionKey, doc: &Doc) -> Result<(), Refusal> {
    let extracted = PartitionKey::extract(def, doc.as_ref());
    if same(&extracted, key) { Ok(()) } else { Err(Own::KeyMismatch.into()) }
}

/// The key that a query or feed is limited to: all of a key, or the first levels of a hierarchical one.
/// An empty key limits nothing, unless the container has no key of its own: there it is that of the items without
/// one. One client writes nothing as `[[]]`.
pub(crate) fn of_scope(
    def: &PartitionKeyDef,
    is_system_key: bool,
    header: Option<&str>,
) -> Result<Option<PartitionKey>, Refusal> {
    let Some(header) = header.filter(|header| !is_empty_list(header)) else {
        return Ok(None);
    };
    let key = parse(header)?;
    if key.is_empty() && !is_system_key {
        return Ok(None);
    }
    let is_prefix = def.kind == PartitionKeyKind::MultiHash && key.components().len() < def.paths.len();
    if is_prefix {
        key.check_length().map_err(invalid)?;
        return Ok(Some(key));
    }
    full(def, key).map(Some)
}

/// Reads the text of a key without asking what the container wants.
pub(crate) fn parse(text: &str) -> Result<PartitionKey, Refusal> {
    PartitionKey::from_header(text).map_err(invalid)
}

/// Checks that a key has the right number of components, none of them too long.
pub(crate) fn full(def: &PartitionKeyDef, key: PartitionKey) -> Result<PartitionKey, Refusal> {
    let key = match key.is_empty() && def.kind != PartitionKeyKind::MultiHash {
        true => PartitionKey(vec![KeyComponent::Undefined; def.paths.len()]),
        false => key,
    };
    if !key.is_full(def) {
        return Err(Own::KeyMismatch.into());
    }
    key.check_length().map_err(invalid)?;
    Ok(key)
}

/// Keys are the same when all their components are, which tells 0 from -0.
pub(crate) fn same(left: &PartitionKey, right: &PartitionKey) -> bool {
    left.components().len() == right.components().len() && starts_with(left, right)
}

/// Whether the first levels of a key are those of the other.
pub(crate) fn starts_with(key: &PartitionKey, prefix: &PartitionKey) -> bool {
    let mut pairs = key.components().iter().zip(prefix.components());
    key.components().len() >= prefix.components().len()
        && pairs.all(|pair| match pair {
            (KeyComponent::Number(left), KeyComponent::Number(right)) => left.to_bits() == right.to_bits(),
            (left, right) => left == right,
        })
}

fn is_empty_list(header: &str) -> bool {
    header.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"[[]]")
}

fn invalid(error: PartitionKeyError) -> Refusal {
    match error {
        PartitionKeyError::TooLong { found, limit } => Refusal::bad_request(format!(
            "The partition key value has {found} bytes, which is more than the {limit} that a key may have."
        )),
        error => Refusal::bad_request(format!("The partition key supplied is invalid: {error}.")),
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::{PartitionKeyVersion, Path, json};
    use proptest::prelude::*;

    use super::*;

    fn def(paths: &[&str]) -> PartitionKeyDef {
        let kind = if paths.len() > 1 { PartitionKeyKind::MultiHash } else { PartitionKeyKind::Hash };
        let paths = paths.iter().map(|path| Path::parse_property(path).expect("a path")).collect();
        PartitionKeyDef { kind, version: PartitionKeyVersion::V2, paths }
    }

    fn outcome<T>(result: Result<T, Refusal>) -> (u16, u32) {
        match result {
            Ok(_) => (200, 0),
            Err(refusal) => (refusal.wire().status.as_u16(), refusal.wire().substatus),
        }
    }

    #[test]
    fn headers_of_point_operations() {
        let (one, three) = (def(&["/pk"]), def(&["/a", "/b", "/c"]));
        for (def, header, wanted) in [
            (&one, Some(r#"["x"]"#), (200, 0)),
            (&one, Some("[null]"), (200, 0)),
            (&one, Some("[{}]"), (200, 0)),
            (&one, Some("[]"), (200, 0)),
            (&one, Some(r#"["\u00e9"]"#), (200, 0)),
            (&one, None, (400, 0)),
            (&one, Some("x"), (400, 0)),
            (&one, Some("\"x\""), (400, 0)),
            (&one, Some("[[]]"), (400, 0)),
            (&one, Some(r#"[{"a":1}]"#), (400, 0)),
            (&one, Some(r#"["x","y"]"#), (400, 1001)),
            (&three, Some(r#"["x",1,true]"#), (200, 0)),
            (&three, Some(r#"["x",1]"#), (400, 1001)),
            (&three, Some("[]"), (400, 1001)),
            (&three, Some(r#"["x",1,true,null]"#), (400, 1001)),
        ] {
            assert_eq!(outcome(of_request(def, header)), wanted, "{header:?}");
        }
    }

    #[test]
    fn documents_must_agree_with_the_header() {
        let (one, two, id) = (def(&["/pk"]), def(&["/a", "/b"]), def(&["/id"]));
        for (def, header, body, wanted) in [
            (&one, r#"["x"]"#, r#"{"pk":"x"}"#, (200, 0)),
            (&one, r#"["x"]"#, r#"{"pk":"y"}"#, (400, 1001)),
            (&one, r#"["x"]"#, "{}", (400, 1001)),
            (&one, "[1]", r#"{"pk":1.0}"#, (200, 0)),
            (&one, "[0]", r#"{"pk":-0}"#, (400, 1001)),
            (&one, "[{}]", "{}", (200, 0)),
            (&one, "[]", "{}", (200, 0)),
            (&one, "[null]", "{}", (400, 1001)),
            (&one, "[{}]", r#"{"pk":null}"#, (400, 1001)),
            (&one, r#"["x"]"#, r#"{"pk":{"x":1}}"#, (400, 1001)),
            (&two, r#"["x",null]"#, r#"{"a":"x","b":null}"#, (200, 0)),
            (&two, r#"["x"]"#, r#"{"a":"x"}"#, (400, 1001)),
            (&two, r#"["x",{}]"#, r#"{"a":"x"}"#, (200, 0)),
            (&two, "[{},{}]", "{}", (200, 0)),
            // What azure-cosmos for Python sends for a level that is missing; its suite expects the refusal.
            (&two, r#"[null,"x"]"#, r#"{"b":"x"}"#, (400, 1001)),
            (&two, "[null,null]", "{}", (400, 1001)),
            (&id, r#"["7"]"#, r#"{"id":"7"}"#, (200, 0)),
        ] {
            let doc = json::parse(body.as_bytes(), 128).expect("a body");
            assert_eq!(outcome(of_document(def, Some(header), &doc)), wanted, "{header} {body}");
        }
    }

    #[test]
    fn documents_may_name_the_key_that_their_container_had_before() {
        let body = br#"{"id":"c","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}"#;
        let body = json::parse(body, 128).expect("a body");
        let mut definition = ContainerDefinition::parse(&body).expect("a definition");
        let doc = json::parse(br#"{"pk":"x","a":"y","b":1}"#, 128).expect("a document");
        let of = |definition: &ContainerDefinition, header| {
            of_written(definition, Some(header), &doc).map(|key| key.to_json()).map_err(|_| ())
        };
        assert_eq!(of(&definition, r#"["x"]"#), Err(()));
        definition.previous_key = Some(def(&["/pk"]));
        for (header, wanted) in [
            (r#"["x"]"#, Ok(r#"["y",1]"#.to_owned())),
            (r#"["y",1]"#, Ok(r#"["y",1]"#.to_owned())),
            (r#"["other"]"#, Err(())),
            (r#"["y",2]"#, Err(())),
        ] {
            assert_eq!(of(&definition, header), wanted, "{header}");
        }
    }

    #[test]
    fn scopes_may_be_prefixes_or_nothing() {
        let (one, three) = (def(&["/pk"]), def(&["/a", "/b", "/c"]));
        let levels = |def: &PartitionKeyDef, header| {
            of_scope(def, false, header).map(|key| key.map(|key| key.components().len())).map_err(|_| ())
        };
        for (def, header, wanted) in [
            (&one, None, Ok(None)),
            (&one, Some("[]"), Ok(None)),
            (&one, Some("[[]]"), Ok(None)),
            (&one, Some(" [ [ ] ]"), Ok(None)),
            (&one, Some("[{}]"), Ok(Some(1))),
            (&one, Some("[1,2]"), Err(())),
            (&three, Some("[1]"), Ok(Some(1))),
            (&three, Some("[1,null]"), Ok(Some(2))),
            (&three, Some("[1,2,3]"), Ok(Some(3))),
            (&three, Some("[1,2,3,4]"), Err(())),
            (&three, Some("[[1]]"), Err(())),
        ] {
            assert_eq!(levels(def, header), wanted, "{header:?}");
        }
    }

    #[test]
    fn keys_of_more_than_2048_bytes_are_refused_in_every_version() {
        let mut def = def(&["/pk"]);
        for version in [PartitionKeyVersion::V1, PartitionKeyVersion::V2] {
            def.version = version;
            let header = |length: usize| format!("[\"{}\"]", "k".repeat(length));
            assert_eq!(outcome(of_request(&def, Some(&header(2048)))), (200, 0));
            assert_eq!(outcome(of_request(&def, Some(&header(2049)))), (400, 0));
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(header in "\\PC{0,60}") {
            let _ = of_scope(&def(&["/a", "/b"]), false, Some(&header));
            let _ = of_request(&def(&["/a"]), Some(&header));
        }

        #[test]
        fn near_headers_do_not_panic(header in r#"[\[\]{}",:0-9a-z\\.-]{0,40}"#) {
            let _ = of_scope(&def(&["/a", "/b"]), true, Some(&header));
            let _ = of_request(&def(&["/a"]), Some(&header));
        }
    }
}
