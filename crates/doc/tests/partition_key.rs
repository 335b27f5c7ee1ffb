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
fn keys_are_limited_by_version() {
    let key = |length: usize| PartitionKey(vec![KeyComponent::Str("a".repeat(length))]);
    for (version, limit) in [(PartitionKeyVersion::V1, 100), (PartitionKeyVersion::V2, 2048)] {
        let def = def(version, &["/a"]);
        assert_eq!(key(limit).check_length(&def), Ok(()));
        let refused = PartitionKeyError::TooLong { found: limit + 1, limit };
        assert_eq!(key(limit + 1).check_length(&def), Err(refused));
    }
}

#[test]
fn version_1_refuses_keys_that_its_hash_cannot_tell_apart() {
    let def = def(PartitionKeyVersion::V1, &["/a"]);
    let key = |text: String| PartitionKey(vec![KeyComponent::Str(text)]);
    let (left, right) = (key(format!("{}x", "a".repeat(100))), key(format!("{}y", "a".repeat(100))));
    assert_eq!(epk(&def, &left), epk(&def, &right));
    assert!(left.check_length(&def).is_err() && right.check_length(&def).is_err());
    // Bytes alone do not matter: the hash counts UTF-16 code units, of which these have 50 and 51.
    for text in ["é".repeat(50), format!("{}a", "é".repeat(50))] {
        assert_eq!(key(text).check_length(&def), Ok(()));
    }
}
