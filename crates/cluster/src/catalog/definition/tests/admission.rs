//! What the service refuses in a new definition, and the words that clients look for.

use super::*;

/// All of it, for texts that a client compares whole.
fn assert_refused(cases: impl IntoIterator<Item = (Value, &'static str)>) {
    for (body, expected) in cases {
        assert_eq!(refusal(&body), expected, "{body}");
    }
}

fn key(path: &str) -> Value {
    with(json!({"partitionKey": {"paths": [path], "version": 2}}))
}

#[test]
fn key_paths_are_made_of_names_and_quoted_names() {
    for path in ["/a", "/a_1/B2", "/\"a-b c\"/'d/e'", "/größe", "/\"a\\\"b\"", "/a/\"*\""] {
        completed(&key(path));
    }
    for (path, position) in [
        ("id", 0),
        ("//Document/MyId", 1),
        ("/id ds", 4),
        ("/asdwqr31 @#$#$WRadf", 10),
        ("/a-b", 2),
        ("/a.b", 2),
        ("/a/", 3),
        ("/größe/", 7),
        ("/", 1),
        ("", 0),
        ("/a/*", 3),
        ("/a/?", 3),
        ("/a/[]/b", 3),
        ("/a/\"open", 8),
        ("/\"\"", 1),
        ("/\"a\"b", 4),
    ] {
        let expected = format!(
            "The partition key component definition path '{path}' could not be accepted, failed near position \
             '{position}'. Partition key paths must contain only valid characters and not contain a trailing slash or \
             wildcard character."
        );
        assert_eq!(refusal(&key(path)), expected);
    }
    let second = with(json!({"partitionKey": {"paths": ["/a", "b"], "kind": "MultiHash"}}));
    assert!(refusal(&second).contains("path 'b' could not be accepted, failed near position '0'"));
}

#[test]
fn a_key_that_was_taken_before_still_opens_and_may_be_sent_back() {
    let old = key("/a-b");
    let stored = ContainerDefinition::stored(&doc(&old)).expect("it was taken once");
    let mut back = to_json(&stored.body).expect("a definition is shallow");
    back["defaultTtl"] = json!(5);
    stored.replaced_by(&doc(&back)).expect("the key is as it was");
}

fn spatial(geospatial: &str, index: Value) -> Value {
    with(json!({"indexingPolicy": {"spatialIndexes": [index]}, "geospatialConfig": {"type": geospatial}}))
}

#[test]
fn spatial_indexes_need_types_and_a_plane_needs_bounds() {
    let bounds = |x: i64, y: i64| json!({"xmin": 0, "ymin": 0, "xmax": x, "ymax": y});
    let index = |bounds: Value| json!({"path": "/at/?", "types": ["Point"], "boundingBox": bounds});
    let missing =
        "Required parameter 'boundingBox' for 'Geometry' collection is missing in spatial path '/at/?'";
    let empty = "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array \
                 for the path '/at/?'.";
    assert_refused([
        (spatial("Geography", json!({"path": "/at/?"})), empty),
        (spatial("Geometry", json!({"path": "/at/?", "types": [], "boundingBox": bounds(1, 1)})), empty),
        (spatial("Geometry", index(Value::Null)), missing),
        (
            spatial("Geography", index(bounds(1, 1))),
            "Incorrect parameter 'boundingBox' specified for 'Geography' collection",
        ),
        (
            spatial("Geometry", index(bounds(0, 0))),
            "The value of parameter 'xmax' must be greater than the value of parameter 'xmin' in 'boundingBox' for \
             spatial path '/at/?'",
        ),
        (
            spatial("geometry", index(bounds(1, -1))),
            "The value of parameter 'ymax' must be greater than the value of parameter 'ymin' in 'boundingBox' for \
             spatial path '/at/?'",
        ),
        (
            spatial("Geometry", index(json!({"xmin": 0, "xmax": 1, "ymin": "0", "ymax": 1}))),
            "Required parameter 'ymin' in 'boundingBox' is missing or not a number for spatial path '/at/?'",
        ),
    ]);
    completed(&spatial("Geography", index(Value::Null)));
    let shown = completed(&spatial("Geometry", index(bounds(10, 10))));
    assert_eq!(shown["indexingPolicy"]["spatialIndexes"][0]["boundingBox"], bounds(10, 10));
    let plane = ContainerDefinition::parse(&doc(&spatial("Geometry", index(bounds(1, 1))))).expect("right");
    let without = with(json!({"indexingPolicy": {"spatialIndexes": [index(Value::Null)]}}));
    let error = plane.replaced_by(&doc(&without)).expect_err("it stays on the plane");
    assert_eq!(error.kind.to_string(), missing);
}

#[test]
fn spatial_indexes_read_back_with_all_types() {
    let shown = completed(&spatial("Geography", json!({"path": "/at/*", "types": ["LineString"]})));
    let types = json!(["Point", "LineString", "Polygon", "MultiPolygon"]);
    assert_eq!(shown["indexingPolicy"]["spatialIndexes"], json!([{"path": "/at/*", "types": types}]));
}

#[test]
fn computed_properties_are_refused_in_the_service_s_words() {
    let computed = |list: Value| {
        let index = json!({"path": "/spatial/*", "types": ["Point"]});
        let mut body = spatial("Geography", index);
        body["computedProperties"] = list;
        body
    };
    let query = "SELECT VALUE LOWER(c.name) FROM c";
    let invalid = "One of the specified inputs is invalid";
    let cases = [
        (
            json!([{"name": "low", "query": query}, {"name": "low", "query": "SELECT VALUE LOWER(c.last) FROM c"}]),
            "Computed property name 'low' cannot be used in multiple definitions.",
        ),
        (json!([{"query": query}]), invalid),
        (json!([{"name": null, "query": query}]), invalid),
        (json!([{"name": 7, "query": query}]), invalid),
        (json!(["low"]), invalid),
        (json!([{"name": "", "query": query}]), "Computed property 'name' is either empty or unspecified."),
        (json!([{"name": "low"}]), invalid),
        (json!([{"name": "low", "query": ""}]), "Computed property 'query' is either empty or unspecified."),
        (
            json!([{"name": "_ts", "query": query}]),
            "The system property name '_ts' cannot be used as a computed property name.",
        ),
        (
            json!([{"name": "low", "query": query}, {"name": "spatial", "query": query}]),
            "Computed property 'spatial' at index (1) has a spatial index. Remove the spatial index on this path.",
        ),
        (
            json!([{"name": "low", "query": "SELECT LOWER(c.name) FROM c"}]),
            "Required VALUE expression missing from computed property query 'SELECT LOWER(c.name) FROM c' at index (0).",
        ),
        (
            json!([{"name": "low", "query": "SELECT LOWER(c.name) FROM r"}]),
            "Computed property at index (0) has a malformed query: 'SELECT LOWER(c.name) FROM r' Error details: \
             '{\"errors\":[{\"severity\":\"Error\",\"code\":2001,\"message\":\"Identifier 'c' could not be resolved.\"}]}'",
        ),
    ];
    assert_refused(cases.map(|(list, expected)| (computed(list), expected)));
    let syntax = refusal(&computed(json!([{"name": "low", "query": "SELECT VALUE"}])));
    assert!(
        syntax.contains("has a malformed query: 'SELECT VALUE' Error details: '{\"errors\":["),
        "{syntax}"
    );
    for query in
        ["SELECT VALUE c.a FROM c WHERE c.b", "SELECT TOP 1 VALUE c.a FROM c", "SELECT VALUE x FROM x IN c.a"]
    {
        refusal(&computed(json!([{"name": "low", "query": query}])));
    }
    completed(&computed(json!([{"name": "low", "query": query}, {"name": "other", "query": query}])));
}

#[test]
fn a_replace_is_refused_in_the_same_words() {
    let current = ContainerDefinition::parse(&doc(&with(json!({})))).expect("right");
    for (body, words) in [
        (
            with(json!({"computedProperties": [{"name": "id", "query": "SELECT VALUE 1 FROM c"}]})),
            "system property name",
        ),
        (spatial("Geography", json!({"path": "/a/?"})), "spatial data types array"),
        (with(json!({"ttlPropertyPath": "/at"})), "'defaultTtl'"),
    ] {
        let error = current.replaced_by(&doc(&body)).expect_err("it may not be so");
        assert!(error.kind.to_string().contains(words), "{body}");
    }
}

#[test]
fn languages_have_numbers_too() {
    let text = |language: Value| {
        with(
            json!({"fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": language}]}}),
        )
    };
    for language in [json!("1033"), json!(1033), json!("3082"), json!("pt-BR"), json!("2070"), Value::Null] {
        let shown = completed(&text(language.clone()));
        assert_eq!(shown["fullTextPolicy"]["fullTextPaths"][0]["language"], language);
    }
    for (language, shown) in [("xx-YY", "xx-YY"), ("", ""), ("1034", "1034")] {
        let expected = format!(
            "The Full Text Policy contains an unsupported language {shown}. Supported languages are: \"en-US\""
        );
        let message = refusal(&text(json!(language)));
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_full_text_policy_without_a_language_is_english() {
    let policy =
        |policy: Value| completed(&with(json!({"fullTextPolicy": policy})))["fullTextPolicy"].clone();
    let paths = json!([{"path": "/t"}]);
    let english = policy(json!({"defaultLanguage": null, "fullTextPaths": paths}));
    assert_eq!(english["defaultLanguage"], "en-US");
    assert_eq!(english["defaultSpec"], json!({"language": "en-US"}));
    assert_eq!(english["fullTextPaths"], paths);
    let spec = json!({"language": "fr-FR", "tokenizer": "word"});
    let french = policy(json!({"package": "standard", "defaultSpec": spec, "fullTextPaths": paths}));
    assert_eq!((&french["defaultLanguage"], &french["defaultSpec"]), (&json!("fr-FR"), &spec));
    let said = json!({"defaultLanguage": "de-DE", "fullTextPaths": paths});
    assert_eq!(policy(said.clone()), said);
}

#[test]
fn analyzers_are_those_of_the_standard_package() {
    let policy = |package: &str, spec: Value| {
        with(
            json!({"fullTextPolicy": {"package": package, "defaultSpec": spec, "fullTextPaths": [{"path": "/t"}]}}),
        )
    };
    let all = json!({"language": "en-US", "tokenizer": "word", "filters": ["stop", "lowercase", "stem", "ascii"],
        "stopWordListKind": "extended", "addStopWords": ["a"], "removeStopWords": []});
    let shown = completed(&policy("standard", all.clone()));
    assert_eq!(shown["fullTextPolicy"]["defaultSpec"], all);
    completed(&policy("legacy", Value::Null));
    for (package, spec, words) in [
        ("odd", json!({"language": "en-US"}), "package 'odd'"),
        ("standard", json!({"tokenizer": "odd"}), "tokenizer"),
        ("standard", json!({"filters": ["stop", "odd"]}), "filters"),
        ("standard", json!({"stopWordListKind": "odd"}), "stopWordListKind"),
        ("standard", json!({"language": "odd"}), "unsupported language odd"),
        ("legacy", json!({"tokenizer": "word"}), "'standard'"),
        ("legacy", json!({"removeStopWords": ["a"]}), "'standard'"),
    ] {
        let message = refusal(&policy(package, spec));
        assert!(message.contains(words), "{message}");
    }
    let mut path = policy("legacy", Value::Null);
    path["fullTextPolicy"]["fullTextPaths"][0]["filters"] = json!(["stop"]);
    refusal(&path);
}

#[test]
fn a_path_to_the_time_of_items_needs_a_time_to_live() {
    assert!(refusal(&with(json!({"ttlPropertyPath": "/at"}))).contains("'defaultTtl'"));
    let shown = completed(&with(json!({"ttlPropertyPath": "/at", "defaultTtl": 10})));
    assert_eq!(shown["ttlPropertyPath"], "/at");
    completed(&with(json!({"ttlPropertyPath": null})));
}

#[test]
fn the_encryption_policy_stays_as_it_was() {
    let path = json!({"path": "/a", "clientEncryptionKeyId": "k", "encryptionType": "Randomized",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"});
    let policy = |paths: Value| {
        with(json!({"clientEncryptionPolicy": {"includedPaths": paths, "policyFormatVersion": 1}}))
    };
    let current = ContainerDefinition::parse(&doc(&policy(json!([path, path])))).expect("right");
    assert_eq!(current.encryption_keys(), ["k"]);
    current.replaced_by(&doc(&policy(json!([path, path])))).expect("nothing has changed");
    for body in [with(json!({})), with(json!({"clientEncryptionPolicy": null})), policy(json!([path]))] {
        let error = current.replaced_by(&doc(&body)).expect_err("it must stay");
        let words = "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.";
        assert_eq!(error.kind.to_string(), words, "{body}");
    }
    refusal(&policy(json!([{"path": "/a"}])));
    refusal(&policy(json!("k")));
}

#[test]
fn a_lazy_index_is_a_consistent_one() {
    for automatic in [json!({"indexingMode": "lazy"}), json!({"indexingMode": "Lazy", "automatic": false})] {
        let policy = completed(&with(json!({"indexingPolicy": automatic})))["indexingPolicy"].clone();
        assert_eq!(policy["indexingMode"], "consistent");
    }
}
