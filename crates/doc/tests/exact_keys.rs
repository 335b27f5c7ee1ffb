//! Keys of typed values: those that are equal, the places that they have, and the tokens of Cassandra.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use orrery_doc::{
    Decimal128, Doc, DocBuilder, Epk, EpkRange, PartitionKey, PartitionKeyDef, PartitionKeyKind,
    PartitionKeyVersion, Path, Value, boundaries, cassandra_token, cql, divide, epk, prefix_range,
};

/// What the Python driver computes; `cassandra_tokens.py` beside it wrote the file.
const TOKENS: &str = include_str!("data/cassandra_tokens.txt");

fn def(kind: PartitionKeyKind, paths: usize) -> PartitionKeyDef {
    let path = |i| Path::parse_property(&format!("/p{i}")).unwrap();
    PartitionKeyDef { kind, version: PartitionKeyVersion::V2, paths: (0..paths).map(path).collect() }
}

fn doc(put: impl FnOnce(&mut DocBuilder) -> &mut DocBuilder) -> Doc {
    let mut builder = DocBuilder::new();
    put(&mut builder);
    builder.finish()
}

fn key(def: &PartitionKeyDef, docs: &[Doc]) -> PartitionKey {
    PartitionKey::of_values(def, docs.iter().map(Doc::root))
}

fn bytes(hex: &str) -> Vec<u8> {
    Epk::from_hex(hex).unwrap().as_bytes().to_vec()
}

/// The hash bit by bit as Cassandra's own source has it: one byte after the other, each with its sign in the tail.
fn slow_token(data: &[u8]) -> i64 {
    let block = |at: usize| (0..8).fold(0u64, |word, i| word | u64::from(data[at + i]) << (8 * i));
    let (c1, c2) = (0x87c3_7b91_1142_53d5_u64, 0x4cf5_ad43_2745_937f_u64);
    let mix = |word: u64, first: u64, turn: u32, second: u64| {
        word.wrapping_mul(first).rotate_left(turn).wrapping_mul(second)
    };
    let (mut h1, mut h2, blocks) = (0u64, 0u64, data.len() / 16);
    for i in 0..blocks {
        h1 ^= mix(block(16 * i), c1, 31, c2);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix(block(16 * i + 8), c2, 33, c1);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (mut k1, mut k2) = (0i64, 0i64);
    for (i, byte) in data[16 * blocks..].iter().enumerate() {
        let signed = i64::from(*byte as i8);
        if i < 8 { k1 ^= signed << (8 * i) } else { k2 ^= signed << (8 * (i - 8)) }
    }
    h2 ^= mix(k2 as u64, c2, 33, c1);
    h1 ^= mix(k1 as u64, c1, 31, c2);
    h1 ^= data.len() as u64;
    h2 ^= data.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let last = |mut k: u64| {
        for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
            k = (k ^ k >> 33).wrapping_mul(factor);
        }
        k ^ k >> 33
    };
    let (h1, h2) = (last(h1), last(h2));
    let token = h1.wrapping_add(h2) as i64;
    if token == i64::MIN { i64::MAX } else { token }
}

#[test]
fn tokens_are_those_of_the_python_driver() {
    let lines = TOKENS.lines().filter_map(|line| line.strip_prefix("token "));
    let mut count = 0;
    for line in lines {
        let (hex, token) = line.split_once(' ').unwrap();
        assert_eq!(cassandra_token(&bytes(hex)), token.parse::<i64>().unwrap(), "{hex}");
        count += 1;
    }
    assert!(count > 50);
}

/// The same keys as in `cassandra_tokens.py`.
#[test]
fn ten_thousand_keys_with_high_bytes_have_the_tokens_of_the_python_driver() {
    let mut sums = TOKENS.lines().filter_map(|line| line.strip_prefix("sum "));
    let (mut state, mut sum) = (0x9e37_79b9_7f4a_7c15_u64, 0u64);
    for i in 0..10_000usize {
        let key: Vec<u8> = (0..i % 48 + 1)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8 | if i % 2 == 1 { 0x80 } else { 0 }
            })
            .collect();
        let token = cassandra_token(&key);
        assert_eq!(token, slow_token(&key), "{key:x?}");
        sum = sum.wrapping_mul(31).wrapping_add(token as u64);
        if (i + 1) % 1000 == 0 {
            assert_eq!(Some(format!("{} {sum}", i + 1).as_str()), sums.next());
        }
    }
    assert_eq!(sums.next(), None);
}

#[test]
fn integers_are_not_merged_through_doubles() {
    let (even, odd) = (9_007_199_254_740_992i64, 9_007_199_254_740_993i64);
    for kind in [PartitionKeyKind::Exact, PartitionKeyKind::Token] {
        let def = def(kind, 1);
        let of = |number: i64| key(&def, &[doc(|b| b.int(number))]);
        assert_ne!(of(even), of(odd), "{kind:?}");
        assert_ne!(epk(&def, &of(even)), epk(&def, &of(odd)), "{kind:?}");
    }
    // The service's own keys are doubles, and stay so.
    let hash = def(PartitionKeyKind::Hash, 1);
    assert_eq!(key(&hash, &[doc(|b| b.int(even))]), key(&hash, &[doc(|b| b.int(odd))]));
}

#[test]
fn equal_numbers_are_one_key_where_they_are_to_mongodb() {
    let exact = def(PartitionKeyKind::Exact, 1);
    let one = key(&exact, &[doc(|b| b.int32(1))]);
    let decimal = Decimal128::from_bytes((10u128 | (6176 - 1) << 113).to_le_bytes());
    for other in [doc(|b| b.int(1)), doc(|b| b.double(1.0)), doc(|b| b.decimal128(decimal))] {
        let other = key(&exact, &[other]);
        assert_eq!(one, other);
        assert_eq!(epk(&exact, &one), epk(&exact, &other));
    }
    for other in [doc(|b| b.str("1")), doc(|b| b.bool(true)), doc(|b| b.binary(0, &[1])), doc(|b| b.null())] {
        assert_ne!(one, key(&exact, &[other]));
    }
    // To Cassandra an int and a bigint are two types.
    let token = def(PartitionKeyKind::Token, 1);
    assert_ne!(key(&token, &[doc(|b| b.int32(1))]), key(&token, &[doc(|b| b.int(1))]));
}

#[test]
fn a_key_is_extracted_from_typed_fields() {
    let mut builder = DocBuilder::new();
    builder.begin_object().name("p0").uuid([7; 16]).name("p1").int32(5).end_object();
    let item = builder.finish();
    let token = def(PartitionKeyKind::Token, 2);
    let found = PartitionKey::extract(&token, item.as_ref());
    assert_eq!(found, key(&token, &[doc(|b| b.uuid([7; 16])), doc(|b| b.int32(5))]));
    assert_eq!(found.to_json(), r#"["07070707-0707-0707-0707-070707070707",5]"#);
    let composite = [&[0, 16][..], &[7; 16], &[0, 0, 4, 0, 0, 0, 5, 0]].concat();
    let place = epk(&token, &found);
    assert!(place.as_bytes().starts_with(Epk::at_token(cassandra_token(&composite)).as_bytes()));
    assert!(place.as_bytes().ends_with(&composite));
    assert_eq!(found.byte_length(), 20);
}

#[test]
fn a_range_of_tokens_is_a_range_of_places() {
    let token = def(PartitionKeyKind::Token, 1);
    let mut all: Vec<(i64, Epk)> = (0..500i32)
        .map(|number| {
            let key = key(&token, &[doc(|b| b.int32(number * 7919))]);
            (cassandra_token(&(number * 7919).to_be_bytes()), epk(&token, &key))
        })
        .collect();
    all.sort_unstable_by_key(|(token, _)| *token);
    assert!(all.is_sorted_by(|(_, a), (_, b)| a < b));
    for (found, place) in &all {
        assert!(EpkRange::full().contains(place));
        assert!(EpkRange::new(Epk::at_token(*found), Epk::at_token(found + 1)).contains(place));
    }
    for (a, b) in [(i64::MIN, i64::MIN + 1), (-1, 0), (0, 1), (i64::MAX - 1, i64::MAX)] {
        assert!(Epk::at_token(a) < Epk::at_token(b));
    }
}

#[test]
fn partitions_of_tokens_begin_at_tokens() {
    let token = def(PartitionKeyKind::Token, 1);
    let starts = boundaries(&token, 4);
    assert_eq!(starts.len(), 3);
    // The highest hash is one less than a power of two, so that a boundary is one token below the even one.
    assert_eq!(starts[1], Epk::at_token(-1));
    assert!(
        starts.iter().chain(&divide(&token, &EpkRange::full(), 16)).all(|start| start.as_bytes().len() == 9)
    );
    let left = EpkRange::new(Epk::MIN, starts[0].clone());
    assert!(divide(&token, &left, 2).iter().all(|start| left.contains(start)));
}

#[test]
fn the_range_of_a_typed_key_holds_no_other() {
    for kind in [PartitionKeyKind::Exact, PartitionKeyKind::Token] {
        let def = def(kind, 1);
        let blobs = [vec![], vec![0], vec![0, 0], vec![1], vec![0xff; 3], vec![0xff; 4]];
        let keys: Vec<PartitionKey> =
            blobs.iter().map(|blob| key(&def, &[doc(|b| b.binary(0, blob))])).collect();
        for (i, a) in keys.iter().enumerate() {
            assert_eq!(
                def.may_share_place(a),
                kind == PartitionKeyKind::Exact,
                "tokens have the key behind them"
            );
            let range = prefix_range(&def, a);
            for (j, b) in keys.iter().enumerate() {
                assert_eq!(range.contains(&epk(&def, b)), i == j, "{kind:?} {i} {j}");
            }
        }
    }
}

/// Bytes that the Python driver gives for the same values.
#[test]
fn values_have_the_bytes_of_cql() {
    use orrery_doc::{DecimalRef, Duration, TimeOfDay, VarintRef};
    let duration = |months, days, nanoseconds| Duration::new(months, days, nanoseconds).unwrap();
    for (value, hex) in [
        (doc(|b| b.bool(true)), "01"),
        (doc(|b| b.int8(-1)), "ff"),
        (doc(|b| b.int16(258)), "0102"),
        (doc(|b| b.int32(-2)), "fffffffe"),
        (doc(|b| b.int(1)), "0000000000000001"),
        (doc(|b| b.float32(1.5)), "3fc00000"),
        (doc(|b| b.double(-1.5)), "bff8000000000000"),
        (doc(|b| b.str("é")), "c3a9"),
        (doc(|b| b.varint(VarintRef::new(&[0, 0x80]).unwrap())), "0080"),
        (doc(|b| b.decimal(DecimalRef::new(2, &[0x7b]).unwrap())), "000000027b"),
        (doc(|b| b.date(-1)), "ffffffffffffffff"),
        (doc(|b| b.day(0)), "80000000"),
        (doc(|b| b.day(-1)), "7fffffff"),
        (doc(|b| b.time(TimeOfDay::from_nanoseconds(1).unwrap())), "0000000000000001"),
        (doc(|b| b.inet([127, 0, 0, 1].into())), "7f000001"),
        (doc(|b| b.duration(duration(1, 2, 3))), "020406"),
        (doc(|b| b.duration(duration(-100, -1, -1_000_000_000_000))), "80c701f9d1a94a1fff"),
        (doc(|b| b.begin_list().int32(1).end_array()), "000000010000000400000001"),
        (doc(|b| b.begin_tuple().int32(1).null().end_array()), "0000000400000001ffffffff"),
        (doc(|b| b.begin_map().str("a").int32(1).end_map()), "0000000100000001610000000400000001"),
        (doc(|b| b.begin_user_defined().name("x").int32(1).end_object()), "0000000400000001"),
    ] {
        let mut out = Vec::new();
        assert!(cql::write(value.root(), &mut out), "{value:?}");
        assert_eq!(Epk::from_bytes(&out), Epk::from_hex(hex).unwrap(), "{value:?}");
    }
    let mut out = Vec::new();
    assert!(!cql::write(Value::Null, &mut out) && !cql::write(doc(|b| b.min_key()).root(), &mut out));
}
