//! JSON text in and out.

mod common;

use common::{Tree, tree};
use orrery_doc::json::{self, JsonErrorKind};
use orrery_doc::{Doc, Typed, Value};
use proptest::prelude::*;

fn parse(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn write(value: Value<'_>) -> String {
    let mut out = Vec::new();
    json::write(value, &mut out);
    assert_eq!(json::size(value), out.len());
    String::from_utf8(out).expect("JSON is UTF-8")
}

#[test]
fn integers_beyond_64_bits_stay_integers_for_those_who_ask() {
    let wide = |text: &str| json::parse_wide(text.as_bytes(), 8);
    for text in ["9223372036854775807", "-1", "-0", "1.0", "1e20"] {
        assert_eq!(wide(text).expect(text).root(), parse(text).root(), "{text}");
    }
    for text in ["9223372036854775808", "-9223372036854775809", "100000000000000000000"] {
        let doc = wide(text).expect(text);
        assert!(matches!(doc.root(), Value::Typed(Typed::Varint(_))), "{text}");
        assert_eq!(write(doc.root()), text);
        assert!(matches!(parse(text).root(), Value::Double(_)), "{text}");
    }
    let refused = wide(&format!("[1{}]", "0".repeat(60))).expect_err("no integer of 128 bits");
    assert_eq!((refused.kind, refused.offset), (JsonErrorKind::NumberOutOfRange, 1));
}

#[test]
fn texts_are_written_as_they_were_read() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        "-0.000001",
        "1e-7",
        "1e21",
        "1.7976931348623157e308",
        "5e-324",
        "123456789.125",
        r#""""#,
        r#""a""#,
        r#""\"\\\b\f\n\r\t\u0000\u001f/""#,
        r#""é😀""#,
        "[]",
        "{}",
        "[[]]",
        r#"{"a":{}}"#,
        r#"[1,[2,"x"],{"b":null,"a":[true]}]"#,
    ] {
        assert_eq!(write(parse(text).root()), text);
    }
}

#[test]
fn other_spellings_are_understood() {
    for (text, expected) in [
        (" \t\r\n{ \"a\" : [ 1 , 2 ] } ", r#"{"a":[1,2]}"#),
        ("\u{feff}[1]", "[1]"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1E+2", "100"),
        ("-0.0", "-0"),
        ("0e10", "0"),
        ("100000000000000000000", "100000000000000000000"),
        ("9223372036854775808", "9223372036854776000"),
        ("147349491293956480.0", "147349491293956480"),
        (r#""\u00e9\ud83d\ude00\/""#, "\"é😀/\""),
    ] {
        assert_eq!(write(parse(text).root()), expected, "{text}");
    }
    assert!(matches!(parse("1").root(), Value::Int(1)));
    assert!(matches!(parse("1.0").root(), Value::Double(_)));
    assert!(matches!(parse("-0").root(), Value::Double(zero) if zero.is_sign_negative()));
}

#[test]
fn texts_that_are_not_json_are_refused_where_they_go_wrong() {
    use JsonErrorKind::*;
    for (text, kind, offset) in [
        ("", UnexpectedEnd, 0),
        ("  ", UnexpectedEnd, 2),
        ("nul", UnexpectedEnd, 3),
        ("nulL", UnexpectedByte, 3),
        ("NaN", UnexpectedByte, 0),
        ("Infinity", UnexpectedByte, 0),
        ("[1,]", UnexpectedByte, 3),
        ("[1 2]", UnexpectedByte, 3),
        ("[1}", UnexpectedByte, 2),
        ("{\"a\":1]", UnexpectedByte, 6),
        ("{,}", UnexpectedByte, 1),
        ("{\"a\":1,}", UnexpectedByte, 7),
        ("{\"a\" 1}", UnexpectedByte, 5),
        ("{a:1}", UnexpectedByte, 1),
        ("'a'", UnexpectedByte, 0),
        ("[1] x", TrailingText, 4),
        ("1 2", TrailingText, 2),
        ("01", InvalidNumber, 0),
        ("-", InvalidNumber, 1),
        ("1.", InvalidNumber, 2),
        (".5", UnexpectedByte, 0),
        ("1e", InvalidNumber, 2),
        ("+1", UnexpectedByte, 0),
        ("1e999", NumberOutOfRange, 0),
        ("[-1e999]", NumberOutOfRange, 1),
        ("\"a", UnexpectedEnd, 2),
        ("\"a\nb\"", ControlCharacter, 2),
        ("\"\\x\"", InvalidEscape, 1),
        ("\"\\u12\"", InvalidEscape, 1),
        ("\"\\ud800\"", InvalidEscape, 1),
        ("\"\\ud800\\u0041\"", InvalidEscape, 1),
        ("\"\\udc00\"", InvalidEscape, 1),
        ("\"\\", UnexpectedEnd, 2),
    ] {
        let error = json::parse(text.as_bytes(), 128).expect_err(text);
        assert_eq!((error.kind, error.offset), (kind, offset), "{text}");
    }
    let error = json::parse(b"[\"a\xff\"]", 128).unwrap_err();
    assert_eq!((error.kind, error.offset), (InvalidUtf8, 3));
    assert_eq!(error.to_string(), "the text is not valid UTF-8 at byte 3");
}

#[test]
fn depth_is_limited_without_using_the_stack() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(json::parse(nested(128).as_bytes(), 128).is_ok());
        for bomb in [nested(129), nested(1_000_000), open.repeat(1_000_000)] {
            let error = json::parse(bomb.as_bytes(), 128).unwrap_err();
            assert_eq!(error.kind, JsonErrorKind::TooDeep);
        }
    }
}

#[test]
fn the_last_value_of_a_repeated_name_wins_at_the_first_place() {
    assert_eq!(write(parse(r#"{"a":1,"b":[2],"a":{"c":3},"d":4,"a":5}"#).root()), r#"{"a":5,"b":[2],"d":4}"#);
    assert_eq!(write(parse(r#"{"":1,"":2}"#).root()), r#"{"":2}"#);
    let many: Vec<String> = (0..60).map(|i| format!("\"n{}\":{i}", i % 40)).collect();
    let doc = parse(&format!("{{{}}}", many.join(",")));
    let object = doc.root().as_object().unwrap();
    assert_eq!(object.len(), 40);
    assert_eq!(object.get("n5"), Value::Int(45));
    assert_eq!(object.get("n25"), Value::Int(25));
    assert!(Doc::from_bytes(doc.bytes().clone()).is_ok());
}

#[test]
fn system_fields_can_be_left_out_and_added() {
    let doc = parse(r#"{"_ts":1,"id":"a","_etag":"x","n":[1]}"#);
    let mut out = Vec::new();
    let any = json::write_fields(doc.root().as_object().unwrap(), &["_ts", "_etag"], &mut out);
    assert_eq!((any, out.as_slice()), (true, br#""id":"a","n":[1]"#.as_slice()));
    out.clear();
    let doc = parse(r#"{"_ts":1}"#);
    assert!(!json::write_fields(doc.root().as_object().unwrap(), &["_ts"], &mut out));
    assert!(out.is_empty());
}

#[test]
fn large_objects_find_their_fields() {
    for count in [16, 17, 300, 70_000] {
        let fields: Vec<String> = (0..count).map(|i| format!("\"f{}\":{i}", i * 7919 % count)).collect();
        let doc = parse(&format!("{{{}}}", fields.join(",")));
        let object = doc.root().as_object().unwrap();
        for (name, value) in object.iter() {
            assert_eq!(object.get(name), value);
        }
        assert!(object.get("missing").is_undefined());
        assert!(Doc::from_bytes(doc.bytes().clone()).is_ok());
    }
}

#[test]
fn escapes_are_found_at_any_place() {
    for special in ['"', '\\', '\n', '\u{0}', '\u{1f}', 'é', '\u{80}'] {
        for before in 0..20 {
            for after in [0, 1, 9] {
                let text = format!("{}{special}{}", " ".repeat(before), "\u{7f}".repeat(after));
                let written = write(Value::Str(&text));
                assert_eq!(parse(&written).root().as_str(), Some(text.as_str()), "{written}");
                if special < ' ' {
                    let raw = format!("\"{text}\"");
                    let error = json::parse(raw.as_bytes(), 128).unwrap_err();
                    assert_eq!((error.kind, error.offset), (JsonErrorKind::ControlCharacter, before + 1));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn trees_survive_text(tree in tree()) {
        let doc = tree.build();
        let text = write(doc.root());
        let again = parse(&text);
        prop_assert_eq!(write(again.root()), text);
        prop_assert_eq!(&again, &doc);
        prop_assert!(Doc::from_bytes(again.bytes().clone()).is_ok());
    }

    #[test]
    fn doubles_survive_text(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let doc = parse(&write(Value::Double(number)));
        prop_assert_eq!(doc.root().as_f64(), Some(number));
    }

    #[test]
    fn any_bytes_parse_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json::parse(&bytes, 128);
    }

    #[test]
    fn damaged_texts_parse_or_fail(tree in tree(), at in any::<prop::sample::Index>(), with in "[\\[\\]{}:,\"\\\\0-9e.tfn-]") {
        let mut text = write(tree.build().root()).into_bytes();
        let at = at.index(text.len());
        text[at] = with.as_bytes()[0];
        if let Ok(doc) = json::parse(&text, 128) {
            prop_assert!(Doc::from_bytes(doc.bytes().clone()).is_ok());
        }
    }

    #[test]
    fn strings_survive_text(text in ".*") {
        let doc = Tree::Str(text.clone()).build();
        let again = parse(&write(doc.root()));
        prop_assert_eq!(again.root().as_str(), Some(text.as_str()));
    }
}
