//! The golden bytes of sections 1 to 3 of `docs/format.md`, written by the code and read back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use orrery_doc::{
    Cell, Content, Decimal128, DecimalRef, Doc, DocBuilder, Duration, Epk, Expiry, PartitionKey,
    PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, TermOrder, TermType, TimeOfDay, Value,
    VarintRef, cassandra_token, encode_key, encode_term, epk, json, term_length,
};
use orrery_testkit::golden;

const ID: [u8; 12] = [0x57, 0xe1, 0x93, 0xd7, 0xa9, 0xcc, 0x81, 0xb4, 0x02, 0x74, 0x98, 0xb5];
/// A uuid of version 4 and one of version 1.
const UUID: [u8; 16] = *b"\x12\x3e\x45\x67\xe8\x9b\x42\xd3\xa4\x56\x42\x66\x14\x17\x40\x00";
const TIME_UUID: [u8; 16] = *b"\x50\x55\x4d\x6e\x29\xbb\x11\xe5\xb3\x45\xfe\xff\x81\x9c\xdc\x9f";

/// A document of one value.
fn doc(put: impl FnOnce(&mut DocBuilder) -> &mut DocBuilder) -> Doc {
    let mut builder = DocBuilder::new();
    put(&mut builder);
    builder.finish()
}

fn varint(bytes: &[u8]) -> VarintRef<'_> {
    VarintRef::new(bytes).expect("a varint")
}

/// The numbers 1.50 and 123456789012345678901234567890 as BSON has them.
fn decimal128(coefficient: u128, exponent: i128) -> Decimal128 {
    Decimal128::from_bytes((coefficient | ((6176 + exponent) as u128) << 113).to_le_bytes())
}

/// What JSON has.
fn json_values() -> Vec<(String, Doc)> {
    let texts = [
        "null",
        "false",
        "true",
        "0",
        "1",
        "-1",
        "9007199254740993",
        "1.5",
        "-0.0",
        "\"\"",
        "\"a\\u0000b\"",
        "[]",
        "[1,\"a\"]",
        "{}",
        "{\"b\":1,\"a\":null}",
    ];
    texts.iter().map(|text| ((*text).to_owned(), json::parse(text.as_bytes(), 8).expect("JSON"))).collect()
}

/// One or two values of each type that JSON does not have.
fn typed_values() -> Vec<(String, Doc)> {
    let scope = json::parse(b"{\"x\":1}", 8).expect("JSON");
    let scope = scope.root().as_object().expect("an object");
    let v4 = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let v6 = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    let noon = TimeOfDay::from_nanoseconds(43_200_000_000_001).expect("a time");
    let duration = Duration::new(-1, -2, -3).expect("of one sign");
    let mut all: Vec<(&str, Doc)> = vec![
        ("int32 42", doc(|b| b.int32(42))),
        ("int16 -1", doc(|b| b.int16(-1))),
        ("int8 127", doc(|b| b.int8(127))),
        ("float32 0.1", doc(|b| b.float32(0.1))),
        ("decimal128 1.50", doc(|b| b.decimal128(decimal128(150, -2)))),
        ("decimal128 1E+40", doc(|b| b.decimal128(decimal128(1, 40)))),
        ("decimal 1.50", doc(|b| b.decimal(DecimalRef::new(2, &[0, 150]).expect("a decimal")))),
        ("varint 9007199254740993", doc(|b| b.varint(varint(&[0x20, 0, 0, 0, 0, 0, 1])))),
        ("varint -2^71", doc(|b| b.varint(varint(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0])))),
        ("binary 0 00ff", doc(|b| b.binary(0, &[0, 0xff]))),
        ("binary 128 (empty)", doc(|b| b.binary(128, &[]))),
        ("date -1 ms", doc(|b| b.date(-1))),
        ("timestamp 42:1", doc(|b| b.timestamp(42, 1))),
        ("objectid 57e193d7a9cc81b4027498b5", doc(|b| b.object_id(ID))),
        ("uuid", doc(|b| b.uuid(UUID))),
        ("timeuuid", doc(|b| b.time_uuid(TIME_UUID))),
        ("regex /a.b/im", doc(|b| b.regex("a.b", "im"))),
        ("code f()", doc(|b| b.code("f()"))),
        ("code f() with scope {\"x\":1}", doc(|b| b.scoped_code("f()", scope))),
        ("symbol s", doc(|b| b.symbol("s"))),
        ("dbpointer c 57e1...", doc(|b| b.db_pointer("c", ID))),
        ("undefined of BSON", doc(|b| b.undefined())),
        ("minkey", doc(|b| b.min_key())),
        ("maxkey", doc(|b| b.max_key())),
        ("inet 192.0.2.1", doc(|b| b.inet(v4))),
        ("inet 2001:db8::1", doc(|b| b.inet(v6))),
        ("day -1", doc(|b| b.day(-1))),
        ("time 12:00:00.000000001", doc(|b| b.time(noon))),
        ("duration -1mo2d3ns", doc(|b| b.duration(duration))),
    ];
    all.extend(containers());
    all.into_iter().map(|(name, doc)| (name.to_owned(), doc)).collect()
}

fn containers() -> Vec<(&'static str, Doc)> {
    vec![
        ("list [int32 1]", doc(|b| b.begin_list().int32(1).end_array())),
        ("set {\"a\"}", doc(|b| b.begin_set().str("a").end_array())),
        ("tuple (int32 1, null)", doc(|b| b.begin_tuple().int32(1).null().end_array())),
        ("udt {x: int32 1}", doc(|b| b.begin_user_defined().name("x").int32(1).end_object())),
        ("map {int32 1: \"a\"}", doc(|b| b.begin_map().int32(1).str("a").end_map())),
    ]
}

fn cells() -> Vec<(String, Doc)> {
    let value = Content::Value(Value::Str("a"));
    let expiry = Some(Expiry { at: 1_700_000_060_000_000, seconds: 60 });
    let cell = |expiry, content| doc(|b| b.cell(&Cell { written: 1_700_000_000_000_001, expiry, content }));
    vec![
        ("cell \"a\"".to_owned(), cell(None, value)),
        ("cell \"a\" for 60 s".to_owned(), cell(expiry, value)),
        ("cell, deleted".to_owned(), cell(None, Content::Deleted { at: 1_700_000_000_000_002 })),
    ]
}

fn check_documents(title: &str, docs: Vec<(String, Doc)>) {
    let written: Vec<(String, Vec<u8>)> =
        docs.iter().map(|(name, doc)| (name.clone(), doc.bytes().to_vec())).collect();
    golden::check(title, &written);
    for line in golden::of_formats(title) {
        let read = Doc::from_bytes(Bytes::from(line.bytes.clone())).expect("the bytes are a document");
        if title != "cells" {
            assert_eq!(Doc::from_value(read.root()).bytes().as_ref(), line.bytes, "{}", line.name);
        }
    }
}

#[test]
fn documents_are_those_of_the_page() {
    check_documents("documents", json_values());
    check_documents("typed documents", typed_values());
    check_documents("cells", cells());
}

#[test]
fn cells_read_back_and_are_seen_through() {
    let roots = [Value::Str("a"), Value::Str("a"), Value::Undefined];
    for (line, root) in golden::of_formats("cells").into_iter().zip(roots) {
        let doc = Doc::from_bytes(Bytes::from(line.bytes)).expect("a document");
        assert_eq!(doc.root(), root, "{}", line.name);
    }
    let expiry = Some(Expiry { at: 5, seconds: 4 });
    let mut builder = DocBuilder::new();
    builder.begin_object().name("plain");
    builder
        .cell(&Cell { written: 1, expiry: None, content: Content::Value(Value::Str("a")) })
        .name("expiring");
    builder.cell(&Cell { written: -2, expiry, content: Content::Value(Value::Int(7)) }).name("deleted");
    builder.cell(&Cell { written: 3, expiry: None, content: Content::Deleted { at: 4 } }).end_object();
    let row = Doc::from_bytes(builder.finish().into_bytes()).expect("a document");
    assert_eq!(format!("{row:?}"), r#"{"plain":"a","expiring":7}"#);
    let object = row.root().as_object().expect("an object");
    assert!(object.iter().count() == 2 && !object.contains("deleted"));
    let cells: Vec<(&str, Cell<'_>)> = object.cells().collect();
    assert_eq!(cells.iter().map(|(_, cell)| cell.written).collect::<Vec<_>>(), [1, -2, 3]);
    assert_eq!(cells[1].1.expiry, expiry);
    assert!(cells[1].1.is_live(4) && !cells[1].1.is_live(5));
    assert_eq!(cells[2].1.content, Content::Deleted { at: 4 });
    assert!(!cells[2].1.is_live(0) && cells[0].1.is_live(i64::MAX));
}

#[test]
fn terms_are_those_of_the_page() {
    for (title, order) in
        [("terms sql", TermOrder::Sql), ("terms bson", TermOrder::Bson), ("terms cql", TermOrder::Cql)]
    {
        let values = || json_values().into_iter().chain(typed_values());
        let written: Vec<(String, Vec<u8>)> = values()
            .map(|(name, doc)| {
                let mut term = Vec::new();
                assert!(encode_term(doc.root(), order, &mut term), "{name} is not cut");
                let mut key = Vec::new();
                encode_key(doc.root(), order, &mut key);
                assert_eq!(key, term, "{name}: a key is a term that is not cut");
                (name, term)
            })
            .collect();
        golden::check(title, &written);
        for (line, (_, doc)) in golden::of_formats(title).iter().zip(values()) {
            assert_eq!(
                term_length(&line.bytes, order, false),
                Some((line.bytes.len(), true)),
                "{}",
                line.name
            );
            assert_eq!(TermType::of_term(&line.bytes, order), Some(TermType::of(doc.root(), order)));
        }
    }
}

#[test]
fn marks_are_those_of_the_page() {
    for (title, order) in
        [("marks sql", TermOrder::Sql), ("marks bson", TermOrder::Bson), ("marks cql", TermOrder::Cql)]
    {
        let row = |kind: TermType| {
            kind.bounds(order).map(|bounds| (format!("{kind:?}"), vec![bounds.first, bounds.behind]))
        };
        golden::check(title, &TermType::all().filter_map(row).collect::<Vec<_>>());
    }
}

fn def(kind: PartitionKeyKind, version: PartitionKeyVersion, paths: usize) -> PartitionKeyDef {
    let path = |i| Path::parse_property(&format!("/p{i}")).expect("a path");
    PartitionKeyDef { kind, version, paths: (0..paths).map(path).collect() }
}

#[test]
fn places_are_those_of_the_page() {
    let hash = |version, paths| def(PartitionKeyKind::Hash, version, paths);
    let multi = def(PartitionKeyKind::MultiHash, PartitionKeyVersion::V2, 2);
    let exact = def(PartitionKeyKind::Exact, PartitionKeyVersion::V2, 1);
    let token = |paths| def(PartitionKeyKind::Token, PartitionKeyVersion::V2, paths);
    let header = |text: &str| PartitionKey::from_header(text).expect("a key");
    let key = |def: &PartitionKeyDef, doc: &Doc| PartitionKey::of_values(def, [doc.root()].into_iter());
    let (one, long) = (doc(|b| b.int32(1)), doc(|b| b.int(9_007_199_254_740_993)));
    let pair = [Value::Str("a"), Value::Int(1)];
    let places = [
        ("version 1 [\"a\"]", epk(&hash(PartitionKeyVersion::V1, 1), &header("[\"a\"]"))),
        ("version 2 [\"a\"]", epk(&hash(PartitionKeyVersion::V2, 1), &header("[\"a\"]"))),
        ("version 2 [1]", epk(&hash(PartitionKeyVersion::V2, 1), &header("[1]"))),
        ("multihash [\"a\",1]", epk(&multi, &header("[\"a\",1]"))),
        ("exact int32 1", epk(&exact, &key(&exact, &one))),
        ("exact 1.0", epk(&exact, &key(&exact, &doc(|b| b.double(1.0))))),
        ("exact 9007199254740993", epk(&exact, &key(&exact, &long))),
        ("token int32 1", epk(&token(1), &key(&token(1), &one))),
        ("token int64 9007199254740993", epk(&token(1), &key(&token(1), &long))),
        ("token (\"a\", int64 1)", epk(&token(2), &PartitionKey::of_values(&token(2), pair.into_iter()))),
        ("at token 0", Epk::at_token(0)),
        ("at token -2^63", Epk::at_token(i64::MIN)),
        ("at token 2^63-1", Epk::at_token(i64::MAX)),
    ];
    let written: Vec<(String, Vec<u8>)> =
        places.iter().map(|(name, epk)| ((*name).to_owned(), epk.as_bytes().to_vec())).collect();
    golden::check("places", &written);
    for line in golden::of_formats("places") {
        let place = Epk::from_bytes(&line.bytes);
        let mut key = Vec::new();
        place.encode_key(&mut key);
        assert_eq!(Epk::decode_key(&key), Some((place, &[][..])), "{}", line.name);
    }
    assert_eq!(
        epk(&token(1), &key(&token(1), &one)).as_bytes()[..9],
        *Epk::at_token(cassandra_token(&[0, 0, 0, 1])).as_bytes()
    );
}
