//! Values of types that JSON does not have: their bytes, what JSON shows of them, and their place in each order.

#[path = "common/typed.rs"]
mod values;

use std::cmp::Ordering;

use bytes::Bytes;
use orrery_doc::{
    Decimal128, DecimalRef, Doc, DocBuilder, DocRef, MAX_INTEGER_BYTES, TermOrder, TermType, Value,
    VarintRef, compare, compare_in, encode_key, encode_term, json, term_length,
};
use proptest::prelude::*;
use values::{Any, any_value, pair, reference};

const ORDERS: [TermOrder; 3] = [TermOrder::Sql, TermOrder::Bson, TermOrder::Cql];

fn shown(doc: &Doc) -> String {
    format!("{doc:?}")
}

/// What JSON shows, read as JSON. Doubles that are not finite read as null, which they are not.
fn as_json(doc: &Doc) -> Doc {
    json::parse(shown(doc).as_bytes(), 512).expect("what is shown is JSON")
}

/// The slow order of values: for SQL that of what JSON shows, for the others that of the test.
fn slow(a: &Any, b: &Any, order: TermOrder) -> Ordering {
    match order {
        TermOrder::Sql => compare(as_json(&a.build()).root(), as_json(&b.build()).root()),
        order => reference(a, b, order),
    }
}

fn has_infinite_double(value: &Any) -> bool {
    let of_fields = |fields: &[(String, Any)]| fields.iter().any(|(_, value)| has_infinite_double(value));
    match value {
        Any::Double(number) => !number.is_finite(),
        Any::Array(_, elements) => elements.iter().any(has_infinite_double),
        Any::Object(_, fields) | Any::Scoped(_, fields) => of_fields(fields),
        Any::Map(entries) => entries.iter().any(|(a, b)| has_infinite_double(a) || has_infinite_double(b)),
        _ => false,
    }
}

fn check_pair(a: &Any, b: &Any, order: TermOrder) -> Result<(), TestCaseError> {
    let (a_doc, b_doc) = (a.build(), b.build());
    let (a_value, b_value) = (a_doc.root(), b_doc.root());
    let wanted = slow(a, b, order);
    prop_assert_eq!(compare_in(order, a_value, b_value), wanted, "values in {:?}", order);
    prop_assert_eq!(compare_in(order, b_value, a_value), wanted.reverse(), "values in {:?}", order);

    let key = |value| {
        let mut key = Vec::new();
        encode_key(value, order, &mut key);
        key
    };
    let (a_key, b_key) = (key(a_value), key(b_value));
    prop_assert_eq!(a_key.cmp(&b_key), wanted, "keys in {:?}: {:x?} {:x?}", order, a_key, b_key);
    prop_assert!(a_key == b_key || !a_key.starts_with(&b_key));

    let term = |value| {
        let mut term = Vec::new();
        let complete = encode_term(value, order, &mut term);
        (term, complete)
    };
    let ((a_term, a_whole), (b_term, b_whole)) = (term(a_value), term(b_value));
    let by_term = a_term.cmp(&b_term);
    let is_right = by_term == wanted || (by_term == Ordering::Equal && !(a_whole || b_whole));
    prop_assert!(is_right, "terms in {:?}: {:x?} {:x?}, {:?}", order, a_term, b_term, wanted);
    prop_assert!(a_term == b_term || !a_term.starts_with(&b_term));
    check_term(&a_term, a_whole, a_value, order)
}

/// A term tells its length and its type, also with bytes behind it and with all its bits turned.
fn check_term(term: &[u8], whole: bool, value: Value<'_>, order: TermOrder) -> Result<(), TestCaseError> {
    prop_assert_eq!(TermType::of_term(term, order), Some(TermType::of(value, order)));
    let behind = [term, &[0, 0x55, 0xff]].concat();
    let turned: Vec<u8> = behind.iter().map(|byte| !byte).collect();
    prop_assert_eq!(term_length(&behind, order, false), Some((term.len(), whole)), "{:?} {:x?}", order, term);
    prop_assert_eq!(term_length(&turned, order, true), Some((term.len(), whole)));
    prop_assert_eq!(term_length(&term[..term.len() - 1], order, false), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_value_sorts_the_same_as_bytes_and_as_values((a, b) in pair()) {
        for order in ORDERS {
            if order != TermOrder::Sql || !(has_infinite_double(&a) || has_infinite_double(&b)) {
                check_pair(&a, &b, order)?;
            }
        }
    }

    #[test]
    fn every_value_round_trips(value in any_value()) {
        let doc = value.build();
        let checked = Doc::from_bytes(doc.bytes().clone());
        prop_assert!(checked.is_ok(), "{:?}", checked);
        let copied = Doc::from_value(doc.root());
        prop_assert_eq!(copied.bytes(), doc.bytes());
        let mut builder = DocBuilder::new();
        builder.begin_object().name("list").begin_list().value(doc.root()).value(doc.root()).end_array();
        builder.name("map").begin_map().value(doc.root()).value(doc.root()).end_map().end_object();
        let around = Doc::from_bytes(builder.finish().into_bytes()).unwrap();
        let inside = Doc::from_value(around.root().get("list").index(1));
        prop_assert_eq!(inside.bytes(), doc.bytes());
        let Value::Map(map) = around.root().get("map") else { panic!("a map") };
        for (key, value) in map.iter() {
            prop_assert_eq!(&Doc::from_value(key).into_bytes(), doc.bytes());
            prop_assert_eq!(&Doc::from_value(value).into_bytes(), doc.bytes());
        }
    }

    #[test]
    fn what_is_shown_is_json_of_the_size_that_is_told(value in any_value()) {
        let doc = value.build();
        prop_assert_eq!(json::size(doc.root()), shown(&doc).len());
        let _ = as_json(&doc);
    }

    #[test]
    fn damaged_values_are_read_without_panic(
        value in any_value(),
        other in any_value(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = value.build().bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let root = DocRef::new(&bytes).root();
        let _ = Doc::from_bytes(Bytes::from(bytes.clone()));
        let (mut out, other) = (Vec::new(), other.build());
        json::write(root, &mut out);
        for order in ORDERS {
            encode_term(root, order, &mut out);
            encode_key(root, order, &mut out);
            let _ = compare_in(order, root, other.root());
            let _ = term_length(&bytes, order, false);
        }
    }
}

/// The examples of the table in `docs/format.md`.
#[test]
fn json_shows_what_the_page_says() {
    let of = |value: Any| shown(&value.build());
    let decimal128 = |coefficient, exponent| Any::Decimal128(Ok((coefficient, exponent)));
    for (value, json) in [
        (Any::Int32(42), "42"),
        (Any::Int16(-1), "-1"),
        (Any::Int8(127), "127"),
        (Any::Float32(0.1), "0.1"),
        (Any::Float32(f32::NAN), "null"),
        (decimal128(150, -2), "1.50"),
        (decimal128(1, 40), "1E+40"),
        (decimal128(-1, -8), "-1E-8"),
        (decimal128(0, -3), "0.000"),
        (decimal128(1, 400), "\"1E+400\""),
        (Any::Decimal128(Err(0x1f << 122)), "null"),
        (Any::Decimal(150, 2), "1.50"),
        (Any::Varint(1 << 100), "1267650600228229401496703205376"),
        (Any::Binary(0, vec![0, 0xff]), "\"AP8=\""),
        (Any::Binary(2, b"any carnal".to_vec()), "\"YW55IGNhcm5hbA==\""),
        (Any::Binary(4, (0..16).collect()), "\"00010203-0405-0607-0809-0a0b0c0d0e0f\""),
        (Any::Date(1_577_934_245_006), "\"2020-01-02T03:04:05.0060000Z\""),
        (Any::Timestamp(42, 1), "\"42:1\""),
        (Any::ObjectId(*b"0123456789ab"), "\"303132333435363738396162\""),
        (Any::Uuid([0xab; 16]), "\"abababab-abab-abab-abab-abababababab\""),
        (Any::Regex("a\"b".into(), "im".into()), "\"/a\\\"b/im\""),
        (Any::Code("f()".into()), "\"f()\""),
        (Any::Scoped("f()".into(), vec![("x".into(), Any::Null)]), "\"f()\""),
        (Any::Symbol("s".into()), "\"s\""),
        (Any::DbPointer("c".into(), [0x57; 12]), "\"c/575757575757575757575757\""),
        (Any::Undefined, "null"),
        (Any::MinKey, "\"MinKey\""),
        (Any::MaxKey, "\"MaxKey\""),
        (Any::Inet([192, 0, 2, 1].into()), "\"192.0.2.1\""),
        (Any::Inet([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()), "\"2001:db8::1\""),
        (Any::Day(-1), "\"1969-12-31\""),
        (Any::Time(43_200_000_000_001), "\"12:00:00.000000001\""),
        (Any::Duration(-1, -2, -3), "\"-1mo2d3ns\""),
        (Any::Array(2, vec![Any::Int32(1)]), "[1]"),
        (Any::Object(true, vec![("x".into(), Any::Int32(1))]), "{\"x\":1}"),
        (Any::Map(vec![(Any::Int32(1), Any::Str("a".into()))]), "{\"1\":\"a\"}"),
        (
            Any::Map(vec![(Any::Array(3, vec![Any::Day(0), Any::Null]), Any::Null)]),
            "{\"[\\\"1970-01-01\\\",null]\":null}",
        ),
    ] {
        assert_eq!(of(value.clone()), json, "{value:?}");
    }
}

#[test]
fn maps_are_read_by_the_text_of_their_keys() {
    let map = Any::Map(vec![(Any::Int32(1), Any::Bool(true)), (Any::Str("a".into()), Any::Int32(2))]).build();
    assert_eq!(map.root().get("1"), Value::Bool(true));
    assert_eq!(map.root().get("a").as_i64(), Some(2));
    assert_eq!(map.root().get("b"), Value::Undefined);
}

/// The name of such a key would be text in text in text.
#[test]
fn maps_in_keys_of_maps_stay_short() {
    let mut value = Any::Null;
    for _ in 0..60 {
        value = Any::Map(vec![(value, Any::Null)]);
    }
    assert!(json::size(value.build().root()) < 5_000);
}

#[test]
fn integers_of_a_thousand_bytes_are_read_and_longer_ones_are_refused() {
    let longest = vec![0x7f; MAX_INTEGER_BYTES];
    let doc = |bytes: &[u8]| {
        let mut builder = DocBuilder::new();
        builder.varint(VarintRef::new(bytes).expect("not too long"));
        builder.finish()
    };
    let text = shown(&doc(&longest));
    assert_eq!(text.len(), 2466 + 2);
    assert!(text.starts_with("\"543235"), "{}", &text[..20]);
    assert_eq!(shown(&doc(&[&[0xff; 40][..], &[0x80; 3]].concat())), "-8355712");
    assert_eq!(shown(&doc(&[&[0x80][..], &[0; 16]].concat())), "-43556142965880123323311949751266331066368");
    assert!(VarintRef::new(&[]).is_none() && VarintRef::new(&vec![1; MAX_INTEGER_BYTES + 1]).is_none());
    assert!(DecimalRef::new(1, &[]).is_none());
}

#[test]
fn decimals_of_any_scale_have_a_place() {
    let decimal = |unscaled: i8, scale| {
        let mut builder = DocBuilder::new();
        builder.decimal(DecimalRef::new(scale, &unscaled.to_be_bytes()).expect("a decimal"));
        builder.finish()
    };
    let ladder = [
        decimal(-1, i32::MIN),
        decimal(-1, i32::MAX),
        decimal(0, i32::MAX),
        decimal(1, i32::MAX),
        decimal(2, i32::MAX),
        decimal(1, -400),
        decimal(1, i32::MIN),
        decimal(20, i32::MIN),
    ];
    for order in [TermOrder::Bson, TermOrder::Cql] {
        for pair in ladder.windows(2) {
            assert_eq!(compare_in(order, pair[0].root(), pair[1].root()), Ordering::Less, "{pair:?}");
            let term = |doc: &Doc| {
                let mut term = Vec::new();
                assert!(encode_term(doc.root(), order, &mut term));
                term
            };
            assert!(term(&pair[0]) < term(&pair[1]), "{pair:?}");
        }
    }
    assert_eq!(shown(&ladder[6]), "\"1E+2147483648\"");
}

#[test]
fn equal_numbers_of_other_types_are_one_key() {
    let same = [
        Any::Int(1).build(),
        Any::Double(1.0).build(),
        Any::Int32(1).build(),
        Any::Decimal128(Ok((100, -2))).build(),
        Any::Decimal(10, 1).build(),
        Any::Varint(1).build(),
    ];
    for order in [TermOrder::Bson, TermOrder::Cql] {
        for (a, b) in same.iter().zip(&same[1..]) {
            assert_eq!(compare_in(order, a.root(), b.root()), Ordering::Equal);
        }
    }
    let decimal = Decimal128::from_bytes([7; 16]);
    assert_eq!(decimal.to_bytes(), [7; 16]);
}
