//! The binary format: building, copying, validating, and reading damaged bytes.

mod common;

use std::cmp::Ordering;

use bytes::Bytes;
use common::tree;
use orrery_doc::{
    Doc, DocBuilder, DocRef, FormatError, MAX_DEPTH, ObjectRef, TermOrder, Value, compare, encode_term, json,
};
use proptest::prelude::*;

/// Reads everything that a document offers.
fn walk(bytes: &[u8]) {
    let root = DocRef::new(bytes).root();
    let mut out = Vec::new();
    json::write(root, &mut out);
    assert_eq!(json::size(root), out.len());
    encode_term(root, TermOrder::Sql, &mut out);
    assert_eq!(compare(root, DocRef::new(bytes).root()), Ordering::Equal);
    if let Some(object) = root.as_object() {
        for (name, _) in object.iter_by_name() {
            let _ = object.get(name);
        }
        let mut written = Vec::new();
        json::write_fields(object, &[], &mut written);
        assert_eq!(written, fields_one_by_one(object));
    }
}

/// What writing gives for the fields as they are read: text goes there without being read first.
fn fields_one_by_one(object: ObjectRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in object.iter() {
        if !out.is_empty() {
            out.push(b',');
        }
        json::write_str(name, &mut out);
        out.push(b':');
        json::write(value, &mut out);
    }
    out
}

#[test]
fn a_document_is_built_and_read() {
    let mut builder = DocBuilder::new();
    builder.begin_object().name("a").int(1).name("list").begin_array();
    builder.double(1.5).str("x").bool(true).null().end_array().field("gone", Value::Undefined).end_object();
    let doc = builder.finish();
    assert_eq!(format!("{doc:?}"), r#"{"a":1,"list":[1.5,"x",true,null]}"#);
    assert_eq!(doc.root().get("list").index(1).as_str(), Some("x"));
    assert_eq!(doc.root().get("list").index(4), Value::Undefined);
    assert_eq!(doc.root().get("gone"), Value::Undefined);
    assert_eq!(Doc::from_bytes(doc.bytes().clone()).unwrap(), doc);
}

#[test]
fn bytes_that_are_no_document_are_refused() {
    let check = |bytes: &[u8]| Doc::from_bytes(Bytes::copy_from_slice(bytes)).map(drop);
    assert_eq!(check(&[]), Err(FormatError::Empty));
    assert_eq!(check(&[9, 1]), Err(FormatError::UnknownVersion(9)));
    assert_eq!(check(&[1]), Err(FormatError::Corrupt(1)));
    assert_eq!(check(&[1, 0]), Err(FormatError::Corrupt(1)));
    assert_eq!(check(&[1, 1, 1]), Err(FormatError::Corrupt(2)));
    assert_eq!(check(&[1, 6, 1, 0xff]), Err(FormatError::Corrupt(1)));
    assert_eq!(check(&[1, 1]), Ok(()));
    // A tag that nobody knows, a uuid of one byte, a time behind midnight, a cell in a cell.
    assert_eq!(check(&[1, 0x7f, 0]), Err(FormatError::Corrupt(3)));
    assert_eq!(check(&[1, 0x48, 1, 0]), Err(FormatError::Corrupt(3)));
    assert_eq!(check(&[1, 0x54, 8, 0, 0, 0, 0, 0, 0, 0, 0x7f]), Err(FormatError::Corrupt(3)));
    let cell: [&[u8]; 3] = [&[1, 0x60, 21, 0], &[0; 8], &[0x60, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]];
    assert_eq!(check(&cell.concat()), Err(FormatError::Corrupt(3)));
}

#[test]
fn text_that_is_not_utf8_is_never_written() {
    let doc = json::parse(br#"{"one":"abc","two":"d\"f","six":"\u00e9x","ten":[1]}"#, 128).unwrap();
    for (text, damaged) in [
        ("abc", r#"{"one":null,"two":"d\"f","six":"\u00e9x","ten":[1]}"#),
        ("d\"f", r#"{"one":"abc","two":null,"six":"\u00e9x","ten":[1]}"#),
        ("\u{e9}x", r#"{"one":"abc","two":"d\"f","six":null,"ten":[1]}"#),
        ("two", r#"{"one":"abc","six":"\u00e9x","ten":[1]}"#),
    ] {
        let mut bytes = doc.bytes().to_vec();
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        bytes[at + text.len() - 1] = 0xff;
        let mut out = Vec::new();
        json::write(DocRef::new(&bytes).root(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), damaged.replace("\\u00e9", "\u{e9}"));
    }
}

#[test]
fn nesting_beyond_the_limit_is_refused_and_read_without_harm() {
    let mut builder = DocBuilder::new();
    for _ in 0..MAX_DEPTH + 100 {
        builder.begin_array();
    }
    for _ in 0..MAX_DEPTH + 100 {
        builder.end_array();
    }
    let doc = builder.finish();
    assert_eq!(Doc::from_bytes(doc.bytes().clone()), Err(FormatError::TooDeep));
    walk(doc.bytes());
}

proptest! {
    #[test]
    fn what_is_built_is_valid_and_copies_to_itself(tree in tree()) {
        let doc = tree.build();
        prop_assert!(Doc::from_bytes(doc.bytes().clone()).is_ok());
        let mut builder = DocBuilder::new();
        builder.begin_array().value(doc.root()).value(doc.root()).end_array();
        let pair = Doc::from_bytes(builder.finish().into_bytes()).unwrap();
        prop_assert_eq!(pair.root().index(1), doc.root());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut bytes = bytes;
        bytes.insert(0, 1);
        walk(&bytes);
        let _ = Doc::from_bytes(Bytes::from(bytes));
    }

    #[test]
    fn damaged_documents_are_read_without_panic(
        tree in tree(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = tree.build().bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        walk(&bytes);
        let _ = Doc::from_bytes(Bytes::from(bytes.clone()));
        walk(&bytes[..cut.index(bytes.len())]);
    }
}
