//! Reading partition keys from headers and items.

use orrery_doc::{
    KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyError, PartitionKeyKind, PartitionKeyVersion,
    Path, epk, json,
};

fn def(version: PartitionKeyVersion, paths: &[&str]) -> PartitionKeyDef {
    let paths = paths.iter().map(|path| Path::parse_property(path).expect("a path")).collect();
    PartitionKeyDef { kind: PartitionKeyKind::Hash, version, paths }
}

#[test]
fn headers_read_and_show_themselves() {
    for text in [r#"["a"]"#, "[1,true,null,{}]", "[]", r#"["q\"\\ü"]"#, "[-0]", "[5.5]"] {
        assert_eq!(PartitionKey::from_header(text).unwrap().to_json(), text);
    }
    assert_eq!(PartitionKey::from_header(" [ 1.0 ] ").unwrap().to_json(), "[1]");
    assert_eq!(PartitionKey::infinity().to_json(), r#""Infinity""#);
}

#[test]
fn headers_that_are_no_key_are_refused() {
    for (text, expected) in [
        (r#""a""#, PartitionKeyError::NotAnArray),
        ("{}", PartitionKeyError::NotAnArray),
        (r#"[{"a":1}]"#, PartitionKeyError::NotAScalar),
        ("[[]]", PartitionKeyError::NotAScalar),
    ] {
        assert_eq!(PartitionKey::from_header(text), Err(expected), "{text}");
    }
    for text in ["", "[", "[1", "[[[1]]]", "a"] {
        assert!(matches!(PartitionKey::from_header(text), Err(PartitionKeyError::Json(_))), "{text}");
    }
    let many = format!("[{}1]", "1,".repeat(20));
    assert!(matches!(PartitionKey::from_header(&many), Err(PartitionKeyError::TooManyComponents { .. })));
    let long = format!("[\"{}\"]", "a".repeat(1 << 20));
    assert!(matches!(PartitionKey::from_header(&long), Err(PartitionKeyError::TooLong { .. })));
}

#[test]
fn an_item_brings_its_key() {
    let def = def(PartitionKeyVersion::V2, &["/a/b", "/c", "/\"d e\"", "/missing"]);
    let doc = json::parse(br#"{"a":{"b":7},"c":null,"d e":"x"}"#, 128).unwrap();
    let key = PartitionKey::extract(&def, doc.as_ref());
    let expected = [
        KeyComponent::Number(7.0),
        KeyComponent::Null,
        KeyComponent::Str("x".to_owned()),
        KeyComponent::Undefined,
    ];
    assert_eq!(key.components(), expected);
    assert!(key.is_full(&def));
    for text in [r#"{"c":{}}"#, r#"{"c":[1]}"#] {
        let doc = json::parse(text.as_bytes(), 128).unwrap();
        assert_eq!(
            PartitionKey::extract(&def, doc.as_ref()).components()[2],
            KeyComponent::Undefined,
            "{text}"
        );
    }
}

#[test]
fn keys_are_limited() {
    let key = |length: usize| PartitionKey(vec![KeyComponent::Str("a".repeat(length))]);
    assert_eq!(key(2048).check_length(), Ok(()));
    assert_eq!(key(2049).check_length(), Err(PartitionKeyError::TooLong { found: 2049, limit: 2048 }));
}

#[test]
fn long_keys_of_the_older_forms_may_share_a_place() {
    let key = |text: &str| PartitionKey(vec![KeyComponent::Str(text.to_owned())]);
    let v1 = def(PartitionKeyVersion::V1, &["/a"]);
    let range = PartitionKeyDef { kind: PartitionKeyKind::Range, ..v1.clone() };
    let v2 = def(PartitionKeyVersion::V2, &["/a"]);
    let (ascii, accents) = ("a".repeat(100), "é".repeat(100));
    // The definition, two keys, and whether they have one place.
    for (def, left, right, one_place) in [
        (&v1, ascii.clone(), format!("{ascii}x"), true),
        (&v1, format!("{ascii}x"), format!("{ascii}y and more"), true),
        (&v1, accents.clone(), format!("{accents}x"), true),
        (&v1, "é".repeat(99), accents.clone(), false),
        (&v1, ascii[1..].to_owned(), ascii.clone(), false),
        (&range, format!("{ascii}x"), format!("{ascii}xy"), true),
        (&range, format!("{ascii}x"), format!("{ascii}yx"), false),
        (&range, ascii.clone(), format!("{ascii}x"), false),
        (&v2, ascii.clone(), format!("{ascii}x"), false),
    ] {
        let (left, right) = (key(&left), key(&right));
        assert_eq!(epk(def, &left) == epk(def, &right), one_place, "{left:?} {right:?}");
        // What shares a place must say so; what says so need not share one.
        let may_share = def.may_share_place(&left) && def.may_share_place(&right);
        assert!(may_share || !one_place, "{left:?} {right:?}");
    }
    assert!(!v2.may_share_place(&key(&"a".repeat(2048))));
    assert!(!v1.may_share_place(&key(&"a".repeat(99))));
    assert!(!v1.may_share_place(&PartitionKey(vec![KeyComponent::Number(1.0), KeyComponent::Null])));
}
