use std::path::PathBuf;

use super::*;
use crate::format::Doc;
use crate::json;
use crate::path::Path;
use crate::value::Value;

/// Reads one of the shared vector files, or says that its tests do not run.
fn shared(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors").join(name);
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        println!("not run: the shared vectors {name} are not there");
    }
    text
}

fn def(kind: PartitionKeyKind, version: PartitionKeyVersion, paths: usize) -> PartitionKeyDef {
    let path = |i| Path::parse_property(&format!("/p{i}")).unwrap();
    PartitionKeyDef { kind, version, paths: (0..paths).map(path).collect() }
}

fn v1() -> PartitionKeyDef {
    def(PartitionKeyKind::Hash, PartitionKeyVersion::V1, 1)
}

fn v2() -> PartitionKeyDef {
    def(PartitionKeyKind::Hash, PartitionKeyVersion::V2, 1)
}

fn hex(text: &str) -> Epk {
    Epk::from_hex(text).unwrap()
}

fn key(text: &str) -> PartitionKey {
    PartitionKey::from_header(text).unwrap()
}

fn vectors() -> Option<Doc> {
    shared("epk.json").map(|text| json::parse(text.as_bytes(), 128).unwrap())
}

#[test]
fn published_vectors() {
    let Some(doc) = vectors() else { return };
    let vectors = doc.root().get("vectors").as_array().unwrap();
    assert!(vectors.len() > 100);
    for vector in vectors.iter() {
        let kind = match vector.get("kind").as_str().unwrap() {
            "Hash" => PartitionKeyKind::Hash,
            "MultiHash" => PartitionKeyKind::MultiHash,
            "Range" => PartitionKeyKind::Range,
            other => panic!("unknown kind {other}"),
        };
        let version = match vector.get("version").as_i64() {
            Some(2) => PartitionKeyVersion::V2,
            _ => PartitionKeyVersion::V1,
        };
        let key = key(vector.get("pk_json").as_str().unwrap());
        let found = epk(&def(kind, version, 1), &key);
        assert_eq!(found.to_hex(), vector.get("epk").as_str().unwrap(), "{vector:?}");
    }
    assert_eq!(epk(&v2(), &PartitionKey::infinity()).to_hex(), "FF");
}

#[test]
fn published_raw_hashes() {
    let Some(doc) = vectors() else { return };
    let cases = doc.root().get("raw_hash_baseline").get("cases").as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases.iter() {
        let value = case.get("value").as_str().unwrap();
        let key = match (value, case.get("f64_bits").as_str()) {
            ("UNDEFINED", _) => key("[{}]"),
            (_, Some(bits)) => {
                let bits = u64::from_str_radix(bits, 16).unwrap();
                PartitionKey(vec![KeyComponent::Number(f64::from_bits(bits))])
            }
            (list, _) if list.starts_with('[') => key(list),
            (scalar, _) => key(&format!("[{scalar}]")),
        };
        let (mut hashes_32, mut hashes_128) = (String::new(), String::new());
        for component in key.components() {
            let mut bytes = Vec::new();
            put_hashed(component, None, 0, &mut bytes);
            hashes_32 += &format!("{:032X}", murmur3::x86_32(&bytes));
            bytes.clear();
            put_hashed(component, None, 0xff, &mut bytes);
            let (h1, h2) = murmur3::x64_128(&bytes);
            hashes_128 += &format!("{h2:016X}{h1:016X}");
        }
        assert_eq!(Some(hashes_32.as_str()), case.get("murmur3_32_of_v1_bytes").as_str(), "{case:?}");
        assert_eq!(Some(hashes_128.as_str()), case.get("murmur3_128_unmasked").as_str(), "{case:?}");
    }
}

#[test]
fn published_range_boundaries() {
    let Some(doc) = vectors() else { return };
    let cases = doc.root().get("range_boundaries_observed").as_array().unwrap();
    let mut checked = 0;
    for case in cases.iter() {
        let Some(n) = case.get("partitions").as_i64() else {
            // The one case without a count is the middle of the last of 25 ranges.
            let middle = (u64::from(u32::MAX / 25 * 24) + u64::from(u32::MAX)) / 2;
            let mut bytes = Vec::new();
            put_number(middle as f64, &mut bytes);
            assert_eq!(Value::Str(&Epk::from_bytes(&bytes).to_hex()), case.get("epk"));
            checked += 1;
            continue;
        };
        let def = if case.get("version") == Value::Int(1) { v1() } else { v2() };
        let found: Vec<String> = boundaries(&def, n as u32).iter().map(Epk::to_hex).collect();
        let check_seen = |expected: Value<'_>| {
            assert!(found.iter().any(|hex| Value::Str(hex) == expected), "{case:?} {found:?}");
        };
        if let Some(all) = case.get("boundaries").as_array() {
            assert_eq!(all.len(), found.len(), "{case:?}");
        }
        for name in ["boundaries", "boundaries_seen"] {
            case.get(name).as_array().into_iter().flat_map(|list| list.iter()).for_each(check_seen);
        }
        if !case.get("boundary").is_undefined() {
            check_seen(case.get("boundary"));
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn even_division_of_the_key_space() {
    const PARTITIONS: [u32; 14] = [2, 3, 4, 5, 8, 20, 53, 64, 117, 127, 128, 129, 255, 256];
    for (name, def) in [("V1", v1()), ("V2", v2())] {
        let file = format!("nosql-feedrange-split/FeedRangeSplit_Hash{name}_Baseline.head.txt");
        let Some(text) = shared(&file) else { return };
        for (line, n) in text.lines().zip(PARTITIONS) {
            let found: Vec<String> = boundaries(&def, n).iter().map(Epk::to_hex).collect();
            assert_eq!(found.join("|"), line, "{name} in {n} ranges");
        }
        assert!(text.lines().count() >= 9);
    }
}

#[test]
fn boundaries_of_one_range_or_none() {
    assert!(boundaries(&v2(), 0).is_empty());
    assert!(boundaries(&v2(), 1).is_empty());
    assert_eq!(boundaries(&v1(), 70_000).len(), 69_999);
}

#[test]
fn a_full_key_is_a_range_of_its_own() {
    let range = prefix_range(&v2(), &key(r#"["1"]"#));
    assert_eq!(range.min, hex("3C80B1B7310BB39F29CC4EA05BDD461E"));
    assert_eq!(range.max, hex("3C80B1B7310BB39F29CC4EA05BDD461F"));
    for other in ["[\"2\"]", "[\"11\"]", "[1]", "[{}]"] {
        assert!(!range.contains(&epk(&v2(), &key(other))), "{other}");
        let v1_range = prefix_range(&v1(), &key(r#"["1"]"#));
        assert!(v1_range.contains(&epk(&v1(), &key(r#"["1"]"#))));
        assert!(!v1_range.contains(&epk(&v1(), &key(other))), "{other}");
    }
}

#[test]
fn a_prefix_holds_all_keys_that_start_with_it() {
    let def = def(PartitionKeyKind::MultiHash, PartitionKeyVersion::V2, 3);
    let range = prefix_range(&def, &key(r#"["Redmond","WA"]"#));
    assert!(range.max.to_hex().ends_with("FA73FF"));
    assert!(range.contains(&epk(&def, &key(r#"["Redmond","WA",5]"#))));
    assert!(range.contains(&epk(&def, &key(r#"["Redmond","WA",null]"#))));
    assert!(!range.contains(&epk(&def, &key(r#"["Redmond","OR",5]"#))));
    assert_eq!(prefix_range(&def, &key("[]")), EpkRange::full());
}

#[test]
fn boundaries_of_mixed_width_are_the_same_boundary() {
    let short = hex("06AB00AB");
    let long = hex("06AB00AB00000000");
    assert_eq!(short.compare_place(&long), Ordering::Equal);
    assert_ne!(short, long);
    let below = EpkRange::new(Epk::MIN, short.clone());
    let above = EpkRange::new(long.clone(), Epk::max());
    assert!(!below.overlaps(&above));
    assert!(!below.contains(&long) && above.contains(&short));
    assert!(EpkRange::new(short, long).is_empty());
    assert!(EpkRange::full().contains_range(&below) && !below.contains_range(&above));
    assert!(!EpkRange::full().contains(&Epk::max()));
}

#[test]
fn hexadecimal_digits_of_either_case() {
    assert_eq!(hex("0aBc").to_hex(), "0ABC");
    for bad in ["0", "0g", "é", "+1"] {
        assert_eq!(Epk::from_hex(bad), None, "{bad}");
    }
}

#[test]
fn version_1_cuts_strings_at_utf16_units() {
    let of = |text: &str| epk(&v1(), &PartitionKey(vec![KeyComponent::Str(text.to_owned())]));
    let emoji = "😀".repeat(50);
    assert_eq!(of(&emoji), of(&(emoji.clone() + "x")));
    assert_ne!(of(&"😀".repeat(49)), of(&emoji));
}

mod properties {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Bytes in which zeros and `FF` are common, because these are the escape's own.
    fn epk_bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0u8), Just(0xff), Just(1), any::<u8>()], 0..70)
    }

    proptest! {
        #[test]
        fn storage_keys_sort_as_epks(a in epk_bytes(), b in epk_bytes()) {
            let (a, b) = (Epk::from_bytes(&a), Epk::from_bytes(&b));
            let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
            a.encode_key(&mut key_a);
            b.encode_key(&mut key_b);
            prop_assert_eq!(key_a.cmp(&key_b), a.cmp(&b));
            prop_assert!(a == b || !key_a.starts_with(&key_b));
        }

        #[test]
        fn storage_keys_read_back(bytes in epk_bytes(), rest in vec(any::<u8>(), 0..10)) {
            let epk = Epk::from_bytes(&bytes);
            let mut key = Vec::new();
            epk.encode_key(&mut key);
            key.extend_from_slice(&rest);
            prop_assert_eq!(Epk::decode_key(&key), Some((epk, rest.as_slice())));
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in vec(0u8..3, 0..20)) {
            let _ = Epk::decode_key(&bytes);
        }

        #[test]
        fn any_header_is_read_without_panic(text in ".*") {
            let _ = PartitionKey::from_header(&text);
        }

        #[test]
        fn any_string_has_an_epk_inside_the_key_space(text in ".{0,300}") {
            let key = PartitionKey(vec![KeyComponent::Str(text)]);
            for def in [v1(), v2(), def(PartitionKeyKind::Range, PartitionKeyVersion::V1, 1)] {
                let epk = epk(&def, &key);
                prop_assert!(EpkRange::full().contains(&epk));
                prop_assert!(prefix_range(&def, &key).contains(&epk));
            }
        }
    }
}

#[test]
fn parts_of_the_key_space_are_divided_evenly() {
    let full = EpkRange::full();
    for (kind, version) in [
        (PartitionKeyKind::Hash, PartitionKeyVersion::V2),
        (PartitionKeyKind::Hash, PartitionKeyVersion::V1),
        (PartitionKeyKind::MultiHash, PartitionKeyVersion::V2),
    ] {
        let def = PartitionKeyDef { kind, version, paths: vec![] };
        let halves = divide(&def, &full, 2);
        assert_eq!(halves.len(), 1, "{version:?}");
        let left = EpkRange { min: Epk::MIN, max: halves[0].clone() };
        let quarters = divide(&def, &full, 4);
        assert_eq!(divide(&def, &left, 2), quarters[..1], "{version:?}");
        assert!(quarters.is_sorted() && quarters.len() == 3);
        let narrow = EpkRange { min: halves[0].clone(), max: halves[0].next().unwrap_or_else(Epk::max) };
        assert!(divide(&def, &narrow, 8).iter().all(|boundary| narrow.contains(boundary)));
    }
}

#[test]
fn the_boundary_between_two_keys_is_short() {
    let epk = |text| Epk::from_hex(text).expect("hexadecimal");
    for (below, above, boundary) in [("0512", "05A4FF", "05A4"), ("", "0102", "01"), ("01FF", "0200", "02")] {
        let found = boundary_between(&epk(below), &epk(above));
        assert_eq!(found, epk(boundary));
        assert!(epk(below) < found && found <= epk(above));
    }
}
