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

/// What an item has is compared where it stands, and must come to the same as taking its key out.
#[test]
fn an_item_is_asked_for_its_key_in_place() {
    let v2 = def(PartitionKeyVersion::V2, &["/a", "/b"]);
    let kinds = [PartitionKeyKind::Hash, PartitionKeyKind::MultiHash, PartitionKeyKind::Range];
    let kinds = kinds.into_iter().chain([PartitionKeyKind::Exact, PartitionKeyKind::Token]);
    let values = ["\"x\"", "\"xy\"", "\"\"", "1", "1.0", "-1", "null", "true", "false", "[1]", "{}"];
    let pairs = values.iter().flat_map(|a| values.iter().map(move |b| format!(r#"{{"a":{a},"b":{b}}}"#)));
    let texts = pairs.chain(["{}".to_owned(), r#"{"a":"x"}"#.to_owned(), r#"{"b":"x"}"#.to_owned()]);
    let docs: Vec<_> = texts.map(|text| json::parse(text.as_bytes(), 8).unwrap()).collect();
    for kind in kinds {
        let def = PartitionKeyDef { kind, ..v2.clone() };
        let keys: Vec<PartitionKey> =
            docs.iter().map(|doc| PartitionKey::extract(&def, doc.as_ref())).collect();
        for (doc, own) in docs.iter().zip(&keys) {
            for key in &keys {
                assert_eq!(key.is_of(&def, doc.as_ref()), key == own, "{kind:?} {key:?} {own:?}");
                let first = PartitionKey(key.components()[..1].to_vec());
                let begins = first.components()[0] == own.components()[0];
                assert_eq!(first.is_of(&def, doc.as_ref()), begins, "{kind:?} {first:?} {own:?}");
            }
        }
    }
    let longer = PartitionKey(vec![KeyComponent::Null; 3]);
    assert!(!longer.is_of(&v2, docs[0].as_ref()), "no item has more than the definition names");
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
    assert!(!v1.may_share_place(&key(&"a".repeat(99))));
    assert!(!v1.may_share_place(&PartitionKey(vec![KeyComponent::Number(1.0), KeyComponent::Null])));
}

/// A string with the hash of a given key is computed backwards from that hash, for keys of all types and lengths.
#[test]
fn any_key_that_is_hashed_may_share_its_place() {
    let v2 = def(PartitionKeyVersion::V2, &["/a"]);
    let multi = PartitionKeyDef { kind: PartitionKeyKind::MultiHash, ..v2.clone() };
    let text = |text: &str| KeyComponent::Str(text.to_owned());
    for (victim, found) in [
        (text("victim-user-name-0123456789abcd"), r#"toh6nzmhqhx83gozLB"t@}IQFbb^3/M"#),
        (text("6f1c2a34-9b7d-4e0f-8a21-5c3d7e9f0b12"), "6gJM54RCppbG5DK%.`di~cEDb9x`|'d"),
        (text("a"), "YM73YNh4yoWSgYf|p9^;g>k0>]_'K>1"),
        (KeyComponent::Number(7.0), "v3lC2yCcniC0gW2/@Z9[TPx2;@?!EjN"),
        (KeyComponent::Null, "5cR77F3TuYlMu5lYHAn]RG/6kIs}?4:"),
        (KeyComponent::Undefined, "C99MXGzkQ4VRX7c}U)beHuJI)~up'%^"),
    ] {
        let (victim, found) = (PartitionKey(vec![victim]), PartitionKey(vec![text(found)]));
        for def in [&v2, &multi] {
            assert_eq!(epk(def, &victim), epk(def, &found), "{victim:?}");
            assert!(def.may_share_place(&victim) && def.may_share_place(&found), "{victim:?}");
        }
    }
    assert!(!v2.may_share_place(&PartitionKey::default()), "without a key there is no other");
}
