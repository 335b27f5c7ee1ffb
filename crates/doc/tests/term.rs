//! The order of values and of their terms.

mod common;

use std::cmp::Ordering;

use common::tree;
use orrery_doc::{TermOrder, Value, compare, encode_term, json};
use proptest::prelude::*;

fn term(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_term(value, TermOrder::Sql, &mut out);
    out
}

#[test]
fn types_and_values_in_order() {
    let ladder = [
        "null",
        "false",
        "true",
        "-1e300",
        "-9223372036854775808",
        "-9007199254740993",
        "-9007199254740992",
        "-1.5",
        "-1",
        "-5e-324",
        "0",
        "5e-324",
        "0.5",
        "1",
        "1.5",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775806",
        "9223372036854775807",
        "9223372036854775808",
        "1e300",
        r#""""#,
        r#""\u0000""#,
        r#""\u0000a""#,
        r#""A""#,
        r#""a""#,
        r#""a\u0000""#,
        r#""aa""#,
        r#""b""#,
        r#""é""#,
        "[]",
        "[null]",
        "[1]",
        "[1,0]",
        "[2]",
        "[[]]",
        "{}",
        r#"{"a":1}"#,
        r#"{"a":1,"b":0}"#,
        r#"{"a":2}"#,
        r#"{"b":0}"#,
    ];
    let docs: Vec<_> = ladder.iter().map(|text| json::parse(text.as_bytes(), 128).unwrap()).collect();
    assert_eq!(compare(Value::Undefined, Value::Null), Ordering::Less);
    assert!(term(Value::Undefined) < term(Value::Null));
    for (i, a) in docs.iter().enumerate() {
        for (j, b) in docs.iter().enumerate() {
            assert_eq!(compare(a.root(), b.root()), i.cmp(&j), "{a:?} {b:?}");
            assert_eq!(term(a.root()).cmp(&term(b.root())), i.cmp(&j), "{a:?} {b:?}");
        }
    }
}

#[test]
fn equal_numbers_meet_in_one_term() {
    for (a, b) in [
        (Value::Int(1), Value::Double(1.0)),
        (Value::Double(0.0), Value::Double(-0.0)),
        (Value::Int(0), Value::Double(-0.0)),
        (Value::Int(1 << 60), Value::Double((1i64 << 60) as f64)),
    ] {
        assert_eq!(compare(a, b), Ordering::Equal);
        assert_eq!(term(a), term(b));
    }
}

#[test]
fn the_order_of_fields_does_not_matter() {
    let a = json::parse(br#"{"a":1,"b":[{"x":1,"y":2}]}"#, 128).unwrap();
    let b = json::parse(br#"{"b":[{"y":2,"x":1}],"a":1}"#, 128).unwrap();
    assert_eq!(a, b);
    assert_eq!(term(a.root()), term(b.root()));
}

#[test]
fn long_values_are_cut_and_say_so() {
    let long = "a".repeat(129);
    let mut out = Vec::new();
    assert!(encode_term(Value::Str(&long[..128]), TermOrder::Sql, &mut out));
    let exact = std::mem::take(&mut out);
    assert!(!encode_term(Value::Str(&long), TermOrder::Sql, &mut out));
    assert!(exact < out && out.len() == 131);
    let bomb = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let doc = json::parse(bomb.as_bytes(), 128).unwrap();
    out.clear();
    assert!(!encode_term(doc.root(), TermOrder::Sql, &mut out));
    assert!(out.len() < 400);
}

#[test]
fn bson_puts_booleans_last() {
    let term = |value| {
        let mut out = Vec::new();
        encode_term(value, TermOrder::Bson, &mut out);
        out
    };
    assert!(term(Value::Bool(false)) > term(Value::Str("z")));
    assert!(term(Value::Int(1)) < term(Value::Str("")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn term_order_is_value_order(a in tree(), b in tree()) {
        let (a, b) = (a.build(), b.build());
        let (mut a_term, mut b_term) = (Vec::new(), Vec::new());
        let a_whole = encode_term(a.root(), TermOrder::Sql, &mut a_term);
        let b_whole = encode_term(b.root(), TermOrder::Sql, &mut b_term);
        let by_value = compare(a.root(), b.root());
        let by_term = a_term.cmp(&b_term);
        prop_assert_eq!(compare(b.root(), a.root()), by_value.reverse());
        if a_whole || b_whole {
            prop_assert_eq!(by_term, by_value);
        } else {
            prop_assert!(by_term == by_value || by_term == Ordering::Equal);
        }
        // What follows a term in a key must not matter.
        prop_assert!(a_term == b_term || !a_term.starts_with(&b_term));
    }
}
