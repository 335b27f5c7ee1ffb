//! Laws that values and patterns keep, whatever the values and patterns are.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

use std::cmp::Ordering;

use orrery_doc::{Doc, TermOrder, encode_term, json};
use orrery_query::{LikePattern, Val};
use proptest::prelude::*;

/// JSON texts of few different values, so that equal ones are frequent.
fn texts() -> impl Strategy<Value = String> {
    let scalars = prop::sample::select(vec![
        "null",
        "true",
        "false",
        "0",
        "-0.0",
        "0.0",
        "1",
        "1.0",
        "-1",
        "2.5",
        "1e2",
        "100",
        "9007199254740993",
        "9007199254740992",
        "1e300",
        "-9223372036854775808",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "\"ab\"",
        "\"\\u0000\"",
        "\"é\"",
    ]);
    let leaf = scalars.prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]), inner), 0..3).prop_map(
                |members| {
                    let mut seen: Vec<&str> = Vec::new();
                    let members: Vec<String> = members
                        .into_iter()
                        .filter(|(name, _)| {
                            let new = !seen.contains(name);
                            seen.push(name);
                            new
                        })
                        .map(|(name, value)| format!("\"{name}\":{value}"))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }
            ),
        ]
    })
}

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap()
}

fn canonical(value: &Val<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    value.write_canonical(&mut key);
    key
}

/// LIKE as its definition says it, without any cleverness. Patterns are of `%`, `_` and letters.
fn like(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skip| like(rest, &text[skip..])),
        Some(('_', rest)) => !text.is_empty() && like(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && like(rest, &text[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_order_is_total(a in texts(), b in texts(), c in texts()) {
        let (a, b, c) = (doc(&a), doc(&b), doc(&c));
        // Stored and made values are compared by different code, and must agree.
        let (a, b, c) = (Val::from(a.root()), Val::from(b.root()).to_owned_val(), Val::from(c.root()));
        prop_assert_eq!(a.order(&a), Ordering::Equal);
        prop_assert_eq!(a.order(&b), b.order(&a).reverse());
        prop_assert_eq!(a.order(&b), a.to_owned_val().order(&b));
        if a.order(&b).is_le() && b.order(&c).is_le() {
            prop_assert!(a.order(&c).is_le(), "{:?} {:?} {:?}", a, b, c);
        }
    }

    /// What is read in the order of index terms is in the order of the language.
    #[test]
    fn index_terms_keep_the_order(a in texts(), b in texts()) {
        let (a, b) = (doc(&a), doc(&b));
        let term = |doc: &Doc| {
            let mut term = Vec::new();
            let complete = encode_term(doc.root(), TermOrder::Sql, &mut term);
            (term, complete)
        };
        let ((a_term, a_complete), (b_term, b_complete)) = (term(&a), term(&b));
        let order = Val::from(a.root()).order(&Val::from(b.root()));
        if a_complete && b_complete {
            prop_assert_eq!(a_term.cmp(&b_term), order, "{:?} {:?}", Val::from(a.root()), Val::from(b.root()));
        } else if order.is_lt() {
            prop_assert!(a_term <= b_term);
        }
    }

    #[test]
    fn equal_values_have_equal_keys(a in texts(), b in texts()) {
        let (a, b) = (doc(&a), doc(&b));
        let (a, b) = (Val::from(a.root()), Val::from(b.root()).to_owned_val());
        prop_assert_eq!(a.order(&b).is_eq(), canonical(&a) == canonical(&b), "{:?} {:?}", a, b);
    }

    #[test]
    fn json_brings_values_back(a in texts()) {
        let stored = doc(&a);
        let made = Val::from(stored.root()).to_owned_val();
        let mut text = Vec::new();
        made.write_json(&mut text);
        let again = json::parse(&text, 128).unwrap();
        prop_assert!(made.order(&Val::from(again.root())).is_eq(), "{}", a);
    }

    #[test]
    fn like_does_what_its_definition_says(pattern in "[ab_%]{0,8}", text in "[ab]{0,10}") {
        let chars = |s: &str| s.chars().collect::<Vec<char>>();
        let expected = like(&chars(&pattern), &chars(&text));
        prop_assert_eq!(LikePattern::new(&pattern, None).matches(&text), expected);
    }

    #[test]
    fn what_a_pattern_promises_holds(pattern in "[ab_%!\\[\\]^-]{0,8}", text in "[ab%_]{0,6}") {
        let like = LikePattern::new(&pattern, Some('!'));
        if like.matches(&text) {
            prop_assert!(text.starts_with(&like.literal_prefix()));
            prop_assert!(like.exact().is_none_or(|exact| exact == text));
        }
        if let Some(exact) = like.exact() {
            prop_assert!(like.matches(&exact));
        }
    }
}

/// Values of types that JSON does not have are to queries what JSON shows of them.
#[test]
fn typed_values_are_what_json_shows() {
    let mut builder = orrery_doc::DocBuilder::new();
    builder.begin_object().name("n").int32(5).name("at").date(0).name("id").object_id([0xab; 12]);
    builder.name("list").begin_list().float32(0.1).undefined().end_array();
    builder.name("map").begin_map().int32(1).str("one").end_map().end_object();
    let typed = builder.finish();
    let shown = doc(&format!("{typed:?}"));
    let (typed, shown) = (Val::from(typed.root()), Val::from(shown.root()));
    assert_eq!(typed.order(&shown), Ordering::Equal);
    assert_eq!(canonical(&typed), canonical(&shown));
    for name in ["n", "at", "id", "list", "map"] {
        assert_eq!(typed.get(name).kind(), shown.get(name).kind(), "{name}");
        assert_eq!(typed.get(name).to_owned_val().order(&shown.get(name)), Ordering::Equal, "{name}");
    }
    assert_eq!(typed.get("n").as_i64(), Some(5));
    assert_eq!(typed.get("at").as_str(), Some("1970-01-01T00:00:00.0000000Z"));
    assert_eq!(typed.get("map").get("1").as_str(), Some("one"));
    assert_eq!(typed.get("list").index(0).as_f64(), Some(0.1));
}
