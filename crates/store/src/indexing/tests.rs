use orrery_doc::{Doc, json};
use proptest::prelude::*;

use super::*;

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A policy of included and excluded paths, separated by spaces.
fn policy(included: &str, excluded: &str) -> Result<IndexingPolicy, IndexingPolicyError> {
    let list = |paths: &str| {
        let mut out = Vec::new();
        for path in paths.split(' ').filter(|path| !path.is_empty()) {
            out.extend_from_slice(if out.is_empty() { b"{\"path\":" } else { b",{\"path\":" });
            json::write_str(path, &mut out);
            out.push(b'}');
        }
        String::from_utf8(out).unwrap()
    };
    let text = format!(r#"{{"includedPaths":[{}],"excludedPaths":[{}]}}"#, list(included), list(excluded));
    IndexingPolicy::from_value(doc(&text).root())
}

/// The numbers of a document that a policy indexes, in the order of the walk.
fn indexed(policy: &IndexingPolicy, text: &str) -> Vec<i64> {
    let mut terms = Vec::new();
    for_each_term(policy, doc(text).as_ref(), &mut |_, term: &[u8], mark| {
        // The terms of arrays and objects have a test of their own.
        if mark.charged {
            terms.push(term.to_vec());
        }
    });
    let number = |term: &Vec<u8>| {
        let find = |number: &i64| {
            let mut out = Vec::new();
            encode_term(Value::Int(*number), TermOrder::Sql, &mut out);
            out == *term
        };
        (0..100).find(find).unwrap()
    };
    terms.iter().map(number).collect()
}

const ITEM: &str = r#"{"id":"x","_ts":90,"a":1,"b":{"c":2,"d":{"e":3}},"l":[4,{"m":5,"n":6},[7]],"q r":8}"#;

#[test]
fn the_more_specific_path_decides() {
    for (included, excluded, expected) in [
        ("/*", "", vec![1, 2, 3, 4, 5, 6, 7, 8]),
        ("", "/*", vec![]),
        ("/*", "/b/*", vec![1, 4, 5, 6, 7, 8]),
        ("/* /b/d/*", "/b/*", vec![1, 3, 4, 5, 6, 7, 8]),
        ("/* /b/d/e/?", "/b/*", vec![1, 3, 4, 5, 6, 7, 8]),
        ("/a/?", "/*", vec![1]),
        ("/b/?", "/*", vec![]),
        ("/b/*", "/*", vec![2, 3]),
        ("/b/c/?", "/*", vec![2]),
        ("/a/*", "/a/? /*", vec![]),
        ("/l/?", "/*", vec![]),
        ("/l/[]/?", "/*", vec![4]),
        ("/l/[]/*", "/*", vec![4, 5, 6, 7]),
        ("/l/[]/m/?", "/*", vec![5]),
        ("/l/[]/[]/?", "/*", vec![7]),
        ("/*", "/l/[]/m/?", vec![1, 2, 3, 4, 6, 7, 8]),
        ("/*", "/l/*", vec![1, 2, 3, 8]),
        ("/", "/a/?", vec![2, 3, 4, 5, 6, 7, 8]),
        ("/_ts/? /id/?", "/*", vec![]),
    ] {
        let policy = policy(included, excluded).unwrap();
        assert_eq!(indexed(&policy, ITEM), expected, "{included} without {excluded}");
    }
}

#[test]
fn names_may_be_quoted() {
    let read = |path: &str| {
        let text = format!(r#"{{"excludedPaths":[{{"path":"/*"}}],"includedPaths":[{{"path":{path}}}]}}"#);
        IndexingPolicy::from_value(doc(&text).root()).unwrap()
    };
    assert_eq!(indexed(&read(r#""/\"q r\"/?""#), ITEM), [8]);
    assert_eq!(indexed(&read(r#""/\"b\"/\"c\"/?""#), ITEM), [2]);
    assert_eq!(indexed(&read(r#""/\"a/b\"/?""#), r#"{"a/b":3,"a":{"b":4}}"#), [3]);
    assert_eq!(indexed(&read(r#""/\"[]\"/?""#), r#"{"[]":3}"#), [3]);
}

#[test]
fn the_default_policy_is_the_one_that_clients_read() {
    let read = IndexingPolicy::from_value(doc(DEFAULT_POLICY_JSON).root()).unwrap();
    for text in ["null", "{}", r#"{"includedPaths":[],"excludedPaths":[]}"#] {
        let policy = IndexingPolicy::from_value(doc(text).root()).unwrap();
        assert_eq!(indexed(&policy, ITEM), indexed(&read, ITEM));
        assert!(policy.automatic && policy.mode == IndexingMode::Consistent);
    }
    assert_eq!(indexed(&IndexingPolicy::default(), ITEM), indexed(&read, ITEM));
}

#[test]
fn mode_none_indexes_nothing() {
    let policy = IndexingPolicy::from_value(doc(r#"{"indexingMode":"None"}"#).root()).unwrap();
    assert!(indexed(&policy, ITEM).is_empty() && !policy.automatic);
    assert!(indexed(&IndexingPolicy::none(), ITEM).is_empty());
    assert!(!policy.covers(&[Step::Name("id")]));
}

#[test]
fn bad_policies_are_refused() {
    assert_eq!(policy("/a/?", "").unwrap_err(), IndexingPolicyError::NoRoot);
    assert_eq!(policy("/a/?", "/b/*").unwrap_err(), IndexingPolicyError::NoRoot);
    assert_eq!(policy("/*", "/*").unwrap_err(), IndexingPolicyError::Contradiction("/*".to_owned()));
    for (path, position) in [
        ("a", 0),
        ("/a", 2),
        ("/a/", 3),
        ("//?", 1),
        ("/a*/?", 1),
        ("/a/*/b", 3),
        ("/\"a/?", 1),
        ("/\"a\"b/?", 4),
        ("/[0]/?", 1),
    ] {
        let expected = IndexingPolicyError::Path { path: path.to_owned(), position };
        assert_eq!(policy("/*", path).unwrap_err(), expected);
    }
    for text in [
        "1",
        r#"{"indexingMode":1}"#,
        r#"{"indexingMode":"sometimes"}"#,
        r#"{"automatic":1}"#,
        r#"{"includedPaths":{}}"#,
        r#"{"includedPaths":[1]}"#,
        r#"{"includedPaths":[{"path":1}]}"#,
    ] {
        let error = IndexingPolicy::from_value(doc(text).root()).unwrap_err();
        assert!(matches!(error, IndexingPolicyError::Shape(_)), "{text}");
    }
    assert_eq!(policy(&"/* ".repeat(1501), "").unwrap_err(), IndexingPolicyError::TooManyPaths);
    assert!(policy("/*", &"/a".repeat(200)).is_err());
}

#[test]
fn tuple_paths_have_entries_of_their_own() {
    let read = |path: &str| {
        let mut text = Vec::new();
        json::write_str(path, &mut text);
        let text = String::from_utf8(text).unwrap();
        IndexingPolicy::from_value(
            doc(&format!(r#"{{"includedPaths":[{{"path":"/*"}},{{"path":{text}}}]}}"#)).root(),
        )
    };
    assert_eq!(indexed(&read("/l/[]/{m,n}/?").unwrap(), ITEM).len(), 8);
    let policy = read(r#"/l/[]/x/[]/{ m , "n ,}"/o }/?"#).unwrap();
    let [tuple] = policy.tuples() else { panic!("one tuple") };
    assert_eq!(tuple.path().count(), 4);
    assert_eq!(tuple.members, [vec!["m".to_owned()], vec!["n ,}".to_owned(), "o".to_owned()]]);
    let item = doc(r#"{"l":[{"x":[{"m":1},{"m":2,"n ,}":{"o":true}},{},3]},{"x":{"m":4}},5]}"#);
    let mut entries = Vec::new();
    tuple.for_each_element(item.root(), &mut |element| {
        let mut entry = Vec::new();
        tuple.encode(element, &mut entry);
        entries.push(entry);
    });
    let term = |value: Value<'_>| {
        let mut out = Vec::new();
        encode_term(value, TermOrder::Sql, &mut out);
        out
    };
    let first = [term(Value::Int(1)), term(Value::Undefined)].concat();
    assert_eq!(entries, [first, [term(Value::Int(2)), term(Value::Bool(true))].concat()]);
    for path in [
        "/l/{m}/?",
        "/l/[]/{}/?",
        "/l/[]/{m,}/?",
        "/l/[]/{m,n}",
        "/l/[]/{m,n}/*",
        "/l/[]/{m/[]/n}/?",
        "/l/[]/{m",
    ] {
        assert!(matches!(read(path), Err(IndexingPolicyError::Path { .. })), "{path}");
    }
}

fn full_policy(members: &str) -> IndexingPolicy {
    let text = format!(r#"{{"includedPaths":[{{"path":"/*"}}],{members}}}"#);
    IndexingPolicy::from_value(doc(&text).root()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn shapes_are_found_where_spatial_indexes_say() {
    use Step::{Elements, Name};
    let point = |x: u32| format!(r#"{{"type":"Point","coordinates":[{x},{x}]}}"#);
    let item = doc(&format!(
        r#"{{"a":{},"b":{{"c":{},"l":[{}, 7]}},"d":[[{}]],"e":{{"type":"Point"}}}}"#,
        point(1),
        point(2),
        point(3),
        point(4)
    ));
    let cells = |policy: &IndexingPolicy| {
        let mut found = Vec::new();
        policy.for_each_cell(item.root(), &mut |hash, term: &[u8]| found.push((hash, term.to_vec())));
        found
    };
    let entry = |path: &[Step<'_>], x: f64| {
        let hash = path.iter().fold(PathHash::ROOT, |hash, step| hash.step(*step)).cells();
        (hash.value(), orrery_doc::geo::Cell::at([x, x]).term().to_vec())
    };
    let (a, c) = (entry(&[Name("a")], 1.0), entry(&[Name("b"), Name("c")], 2.0));
    let l = entry(&[Name("b"), Name("l"), Elements], 3.0);
    let d = entry(&[Name("d"), Elements, Elements], 4.0);
    for (path, expected) in [
        ("/a/?", vec![a.clone()]),
        ("/a", vec![a.clone()]),
        ("/a/*", vec![a.clone()]),
        ("/b/?", vec![]),
        ("/b/*", vec![c.clone(), l.clone()]),
        ("/b/l/[]/?", vec![l.clone()]),
        ("/e/?", vec![]),
        ("/*", vec![a, c, l, d]),
    ] {
        let policy = full_policy(&format!(r#""spatialIndexes":[{{"path":"{path}","types":["Polygon"]}}]"#));
        assert_eq!(cells(&policy), expected, "{path}");
        assert!(cells(&policy.clone().without_spatial()).is_empty());
        assert!(expected.is_empty() || !policy.gives_same_terms(&IndexingPolicy::default()));
    }
    let policy = full_policy(r#""spatialIndexes":[{"path":"/b/*"},{"path":"/a/?"}]"#);
    for (path, expected) in [
        (vec![Name("b")], true),
        (vec![Name("b"), Name("l"), Elements], true),
        (vec![Name("a")], true),
        (vec![Name("a"), Name("x")], false),
        (vec![Name("d")], false),
        (vec![], false),
    ] {
        assert_eq!(policy.is_spatial(&path), expected, "{path:?}");
    }
    let refused = doc(r#"{"spatialIndexes":[{"path":"/a*/?"}]}"#);
    assert!(matches!(IndexingPolicy::from_value(refused.root()), Err(IndexingPolicyError::Path { .. })));
}

/// The length of the item's `s`.
#[derive(Debug)]
struct Length;

impl Computer for Length {
    fn value(&self, item: DocRef<'_>) -> Option<Doc> {
        Some(doc(&item.root().get("s").as_str()?.len().to_string()))
    }
}

fn length(definition: &str) -> ComputedValue {
    let computer = std::sync::Arc::new(Length);
    ComputedValue { name: "length".to_owned(), definition: definition.to_owned(), computer }
}

#[test]
fn computed_values_are_indexed_where_they_are_named() {
    let path = [Step::Computed("length")];
    let plain = full_policy(r#""excludedPaths":[]"#).with_computed(vec![length("1")]);
    assert!(!plain.covers(&path), "a wildcard is about what is stored");
    assert!(plain.gives_same_terms(&full_policy(r#""excludedPaths":[]"#)));
    let named = r#"{"includedPaths":[{"path":"/*"},{"path":"/length/?"}],
        "compositeIndexes":[[{"path":"/a"},{"path":"/length","order":"descending"}]]}"#;
    let named = |definition: &str| {
        let policy = IndexingPolicy::from_value(doc(named).root()).unwrap_or_else(|error| panic!("{error}"));
        policy.with_computed(vec![length(definition)])
    };
    let policy = named("1");
    assert!(policy.covers(&path) && !policy.covers(&[Step::Computed("other")]));
    assert!(policy.gives_same_terms(&named("1")) && !policy.gives_same_terms(&named("2")));
    assert_ne!(policy.composites(), named("2").composites(), "entries of another definition are others");
    let item = doc(r#"{"s":"abc","length":9}"#);
    let values = policy.compute(item.as_ref());
    let mut found = Vec::new();
    for_each_computed_term(&policy, &values, &mut |hash, term: &[u8], mark| {
        found.push((hash, term.to_vec(), mark.counted));
    });
    let term = |value: Value<'_>| {
        let mut out = Vec::new();
        encode_term(value, TermOrder::Sql, &mut out);
        out
    };
    let hash = PathHash::ROOT.step(path[0]);
    assert_eq!(found, [(hash.value(), term(Value::Int(3)), true)]);
    assert_ne!(hash, PathHash::ROOT.name("length"));
    let mut entry = Vec::new();
    policy.composites()[0].encode_with(item.root(), 0, &values, &mut entry);
    let turned: Vec<u8> = term(Value::Int(3)).iter().map(|byte| !byte).collect();
    assert_eq!(entry, [term(Value::Undefined), turned].concat());
    assert!(policy.compute(doc("{}").as_ref()).is_empty());
}

#[test]
fn a_query_can_ask_what_is_covered() {
    use Step::{Elements, Name};
    let policy = policy("/a/? /l/[]/m/?", "/*").unwrap();
    for (path, expected) in [
        (vec![Name("a")], true),
        (vec![Name("a"), Name("b")], false),
        (vec![Name("l"), Elements, Name("m")], true),
        (vec![Name("l"), Name("m")], false),
        (vec![Name("id")], true),
        (vec![Name("_ts")], true),
        (vec![Name("_etag")], false),
        (vec![], false),
    ] {
        assert_eq!(policy.covers(&path), expected, "{path:?}");
    }
}

#[test]
fn terms_carry_the_hash_of_their_path() {
    let mut found = Vec::new();
    let item = doc(r#"{"a":{"b":1},"l":[[2]]}"#);
    for_each_term(&IndexingPolicy::default(), item.as_ref(), &mut |hash, _: &[u8], mark| {
        found.push((hash, mark.charged, mark.counted))
    });
    let list = PathHash::ROOT.name("l");
    let expected = [
        (path_hash(&["a"]), false, true),
        (path_hash(&["a", "b"]), true, true),
        (list.value(), false, true),
        (list.elements().value(), false, false),
        (list.elements().elements().value(), true, false),
    ];
    assert_eq!(found, expected);
}

/// These hashes are in keys on disk.
#[test]
fn path_hashes_never_change() {
    let paths: [&[&str]; 5] = [&["id"], &["_ts"], &["a", "b"], &["ab"], &["a longer property name"]];
    let hashes: Vec<String> = paths.iter().map(|path| format!("{:016x}", path_hash(path))).collect();
    let expected =
        ["6642a0e43eed5b57", "75ae082e2135bb41", "ba394c756f62a74f", "21313c8279260021", "314e3bcbb1341c03"];
    assert_eq!(hashes, expected);
    let a = PathHash::ROOT.name("a");
    let others = [
        a.cells(),
        a.members([a, PathHash::ROOT.name("b")].into_iter()),
        PathHash::composite([(a, false), (a, true)].into_iter()),
        PathHash::ROOT.step(Step::Computed("a")),
    ];
    let others: Vec<String> = others.iter().map(|hash| format!("{:016x}", hash.value())).collect();
    assert_eq!(others, ["cca107b720eb5b16", "e4cd8c630271e15e", "ffa0ea3df17d6fb4", "2b3a80f590328b6f"]);
}

#[test]
fn paths_differ_in_their_hashes() {
    let mut hashes = vec![PathHash::ROOT.name("a").elements().value(), path_hash(&["a", "[]"])];
    for first in ["", "a", "b", "ab", "a\0", "aaaaaaaa", "aaaaaaaa\0"] {
        hashes.push(path_hash(&[first]));
        for second in ["", "a", "b", "\0"] {
            hashes.push(path_hash(&[first, second]));
        }
    }
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

proptest! {
    #[test]
    fn any_path_is_read_or_refused(path in "[/a\"\\\\*?\\[\\]{}é]{0,12}") {
        let _ = parse_rule(&path);
    }
}

/// So that an index gives what a scan gives, whatever API wrote the item.
#[test]
fn typed_values_are_indexed_as_what_json_shows() {
    let cell =
        orrery_doc::Cell { written: 1, expiry: None, content: orrery_doc::Content::Value(Value::Int(7)) };
    let gone = orrery_doc::Cell { content: orrery_doc::Content::Deleted { at: 2 }, ..cell };
    let mut builder = orrery_doc::DocBuilder::new();
    builder
        .begin_object()
        .name("n")
        .int32(5)
        .name("at")
        .date(0)
        .name("ids")
        .begin_list()
        .uuid([1; 16])
        .end_array();
    builder.name("map").begin_map().int32(1).str("one").str("two").day(3).end_map();
    builder.name("udt").begin_user_defined().name("x").float32(0.1).end_object();
    let typed = builder.name("cell").cell(&cell).name("gone").cell(&gone).end_object();
    let typed = std::mem::take(typed).finish();
    let shown = doc(&format!("{typed:?}"));
    let policy = policy("/*", "").expect("a policy");
    let terms = |doc: &Doc| {
        let mut all = Vec::new();
        for_each_term(&policy, doc.as_ref(), &mut |hash, term: &[u8], _| all.push((hash, term.to_vec())));
        all
    };
    assert_eq!(terms(&typed), terms(&shown), "{shown:?}");
    assert_eq!(terms(&typed).len(), 10);
}
