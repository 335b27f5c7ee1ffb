use orrery_doc::json::parse;

use orrery_doc::PartitionKeyVersion;
use serde_json::json;

use super::*;

mod admission;

fn doc(value: &Value) -> Doc {
    parse(value.to_string().as_bytes(), 128).expect("the test is JSON")
}

fn with(extra: Value) -> Value {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
    body
}

fn completed(body: &Value) -> Value {
    match ContainerDefinition::parse(&doc(body)) {
        Ok(definition) => to_json(&definition.body).expect("a definition is shallow"),
        Err(error) => panic!("{body} was refused: {}", error.kind),
    }
}

fn refusal(body: &Value) -> String {
    match ContainerDefinition::parse(&doc(body)) {
        Ok(definition) => panic!("{body} was accepted as {:?}", definition.body),
        Err(error) => error.kind.to_string(),
    }
}

#[test]
fn the_defaults_are_those_of_the_service() {
    let body = json!({"id": "c", "partitionKey": {"paths": ["/id"], "kind": "Hash"}});
    let expected = json!({
        "id": "c",
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/\"_etag\"/?"}]
        },
        "partitionKey": {"paths": ["/id"], "kind": "Hash"},
        "conflictResolutionPolicy": {
            "mode": "LastWriterWins",
            "conflictResolutionPath": "/_ts",
            "conflictResolutionProcedure": ""
        },
        "geospatialConfig": {"type": "Geography"}
    });
    assert_eq!(completed(&body).to_string(), expected.to_string());
}

#[test]
fn parsing_again_changes_nothing() {
    let bodies = [
        json!({"id": "c"}),
        with(json!({})),
        with(json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}})),
        with(
            json!({"indexingPolicy": {"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]}}),
        ),
        with(
            json!({"defaultTtl": -1, "mine": {"kept": [1, 2.5, null]}, "_rid": "gone", "changeFeedPolicy": null}),
        ),
        with(json!({"partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash"}})),
        with(json!({"conflictResolutionPolicy": {"mode": "Custom"}})),
        with(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a", "/b/c"]}]}})),
    ];
    for body in bodies {
        let once = completed(&body);
        assert_eq!(completed(&once).to_string(), once.to_string());
    }
}

#[test]
fn unknown_properties_stay_and_system_properties_go() {
    let body =
        completed(&with(json!({"mine": {"a": [1]}, "_rid": "x", "_self": "y", "_ts": 1, "_docs": "docs/"})));
    assert_eq!(body["mine"], json!({"a": [1]}));
    assert!(["_rid", "_self", "_ts", "_docs"].iter().all(|name| body.get(name).is_none()));
}

#[test]
fn the_partition_key_is_echoed_as_it_was_sent() {
    for (sent, shown) in [
        (
            json!({"paths": ["/a"], "kind": "Hash", "version": 2}),
            json!({"paths": ["/a"], "kind": "Hash", "version": 2}),
        ),
        (
            json!({"paths": ["/a"], "kind": "Hash", "version": 1}),
            json!({"paths": ["/a"], "kind": "Hash", "version": 1}),
        ),
        (json!({"paths": ["/a"], "kind": "Hash"}), json!({"paths": ["/a"], "kind": "Hash"})),
        (
            json!({"paths": ["/\"le/vel' 1*()\"/b"]}),
            json!({"paths": ["/\"le/vel' 1*()\"/b"], "kind": "Hash"}),
        ),
        (json!({"paths": ["/a/b/\"c d\""]}), json!({"paths": ["/a/b/\"c d\""], "kind": "Hash"})),
        (
            json!({"paths": ["/a", "/b"], "kind": "MultiHash"}),
            json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}),
        ),
    ] {
        assert_eq!(completed(&with(json!({"partitionKey": sent})))["partitionKey"], shown);
    }
    let without = completed(&json!({"id": "c"}));
    assert_eq!(
        without["partitionKey"],
        json!({"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": true})
    );
}

#[test]
fn a_key_without_version_is_of_version_1() {
    let version = |key: Value| {
        let body = with(json!({ "partitionKey": key }));
        ContainerDefinition::parse(&doc(&body)).expect("it is right").key.version
    };
    assert_eq!(version(json!({"paths": ["/a"]})), PartitionKeyVersion::V1);
    assert_eq!(version(json!({"paths": ["/a"], "version": 2})), PartitionKeyVersion::V2);
    assert_eq!(version(json!({"paths": ["/a"], "kind": "MultiHash"})), PartitionKeyVersion::V2);
}

#[test]
fn versions_of_keys_have_names() {
    for (sent, shown) in [(json!("V1"), 1), (json!("V2"), 2), (json!("v2"), 2), (json!(1), 1)] {
        let key = completed(&with(json!({"partitionKey": {"paths": ["/a"], "version": sent}})));
        assert_eq!(key["partitionKey"]["version"], shown, "{sent}");
    }
    let levels = json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": "V2"});
    assert_eq!(completed(&with(json!({ "partitionKey": levels })))["partitionKey"]["version"], 2);
    for version in [json!("V3"), json!("2"), json!(""), json!(1.5), json!([1])] {
        let body = with(json!({"partitionKey": {"paths": ["/a"], "version": version}}));
        assert!(ContainerDefinition::parse(&doc(&body)).is_err(), "{version}");
    }
}

#[test]
fn containers_without_a_key_show_the_index_kinds_they_were_made_with() {
    let indexes = json!([{"dataType": "String", "precision": -1, "kind": "Range"},
        {"dataType": "Number", "precision": -1, "kind": "Range"}]);
    let policy = json!({"includedPaths": [{"path": "/*", "indexes": indexes}]});
    let old = completed(&json!({"id": "c", "indexingPolicy": policy}));
    assert_eq!(old["indexingPolicy"]["includedPaths"][0], json!({"path": "/*", "indexes": indexes}));
    let again = completed(&old);
    assert_eq!(again, old, "what is stored is read back");
    let new = completed(&with(json!({"indexingPolicy": policy, "partitionKey": {"paths": ["/a"]}})));
    assert_eq!(new["indexingPolicy"]["includedPaths"][0], json!({"path": "/*"}));
    let wrong = json!({"id": "c", "indexingPolicy": {"includedPaths": [{"path": "/*", "indexes": 1}]}});
    assert!(ContainerDefinition::parse(&doc(&wrong)).is_err());
}

#[test]
fn partial_indexing_policies_are_completed() {
    let etag = json!({"path": "/\"_etag\"/?"});
    let root = json!({"path": "/*"});
    for (sent, included, excluded) in [
        (json!({}), json!([root]), json!([etag])),
        (json!({"automatic": true, "includedPaths": [], "excludedPaths": []}), json!([root]), json!([etag])),
        (
            json!({"includedPaths": [{"path": "/", "indexes": [{"kind": "Hash"}]}]}),
            json!([root]),
            json!([etag]),
        ),
        (json!({"excludedPaths": [{"path": "/a/*"}]}), json!([root]), json!([{"path": "/a/*"}, etag])),
        (json!({"excludedPaths": [root]}), json!([]), json!([root, etag])),
        (json!({"excludedPaths": [etag]}), json!([root]), json!([etag])),
        (json!({"indexingMode": "none"}), json!([]), json!([])),
    ] {
        let policy = completed(&with(json!({"indexingPolicy": sent.clone()})))["indexingPolicy"].clone();
        assert_eq!((&policy["includedPaths"], &policy["excludedPaths"]), (&included, &excluded), "{sent}");
    }
}

#[test]
fn spatial_composite_vector_and_text_indexes_are_echoed() {
    let policy = json!({
        "spatialIndexes": [{"path": "/a/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"]}],
        "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
        "vectorIndexes": [{"path": "/v", "type": "diskANN", "quantizationByteSize": 64, "vectorIndexShardKey": ["/x/y"]}],
        "fullTextIndexes": [{"path": "/t"}]
    });
    let body = with(json!({
        "indexingPolicy": policy,
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding(256)]},
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t"}]}
    }));
    let shown = completed(&body);
    for (name, sent) in policy.as_object().expect("an object") {
        assert_eq!(&shown["indexingPolicy"][name], sent, "{name}");
    }
    assert_eq!(shown["vectorEmbeddingPolicy"], body["vectorEmbeddingPolicy"]);
    assert_eq!(shown["fullTextPolicy"], body["fullTextPolicy"]);
}

fn embedding(dimensions: i64) -> Value {
    json!({"path": "/v", "dataType": "float32", "dimensions": dimensions, "distanceFunction": "cosine"})
}

fn vector_index(index: Value, dimensions: i64) -> Value {
    with(json!({
        "indexingPolicy": {"vectorIndexes": [index]},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding(dimensions)]}
    }))
}

#[test]
fn wrong_ids_and_keys_are_refused() {
    for (body, words) in [
        (json!({}), "'id; '"),
        (json!({"id": 5}), "'id; '"),
        (json!({"id": ""}), "non-empty"),
        (json!({"id": "a/b"}), "contain"),
        (json!({"id": "a\\b"}), "contain"),
        (json!({"id": "a?"}), "contain"),
        (json!({"id": "a#"}), "contain"),
        (json!({"id": "a "}), "space"),
        (json!({"id": "x".repeat(256)}), "255"),
        (with(json!({"partitionKey": []})), "object"),
        (with(json!({"partitionKey": {}})), "at least one path"),
        (with(json!({"partitionKey": {"paths": [], "kind": "Hash"}})), "at least one path"),
        (
            with(json!({"partitionKey": {"paths": ["/a", "/b"], "kind": "Hash"}})),
            "Too many partition key paths (2)",
        ),
        (
            with(json!({"partitionKey": {"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash"}})),
            "Too many partition key paths (4) specified. A maximum of 3 is allowed.",
        ),
        (with(json!({"partitionKey": {"paths": ["/a", "/a"], "kind": "MultiHash"}})), "twice"),
        (with(json!({"partitionKey": {"paths": ["a"]}})), "could not be accepted"),
        (with(json!({"partitionKey": {"paths": ["/a/*"]}})), "could not be accepted"),
        (with(json!({"partitionKey": {"paths": [7]}})), "could not be accepted"),
        (with(json!({"partitionKey": {"paths": ["/a"], "kind": "Spatial"}})), "'kind' value 'Spatial'"),
        (with(json!({"partitionKey": {"paths": ["/a"], "version": 3}})), "'version' value '3'"),
        (with(json!({"partitionKey": {"paths": ["/a"], "kind": "MultiHash", "version": 1}})), "version 2"),
    ] {
        let message = refusal(&body);
        assert!(message.contains(words), "{body}: {message}");
    }
}

#[test]
fn wrong_policies_are_refused() {
    let many = |count: usize, each: Value| Value::from(vec![each; count]);
    let unique = |keys: Value| with(json!({"uniqueKeyPolicy": {"uniqueKeys": keys}}));
    for (body, words) in [
        (with(json!({"indexingPolicy": {"indexingMode": "eager"}})), "'eager'"),
        (with(json!({"indexingPolicy": {"indexingMode": "none", "automatic": true}})), "automatic"),
        (with(json!({"indexingPolicy": {"indexingMode": "none"}, "defaultTtl": 5})), "Time to live"),
        (with(json!({"indexingPolicy": "all"})), "object"),
        (with(json!({"indexingPolicy": {"includedPaths": [{"path": "/a/?"}]}})), "mandatory indexing path"),
        (with(json!({"indexingPolicy": {"includedPaths": [{"path": "a"}]}})), "could not be accepted"),
        (with(json!({"indexingPolicy": {"includedPaths": many(1501, json!({"path": "/*"}))}})), "1500"),
        (
            with(
                json!({"indexingPolicy": {"excludedPaths": [{"path": "/*"}], "includedPaths": [{"path": "/*"}]}}),
            ),
            "both",
        ),
        (with(json!({"indexingPolicy": {"compositeIndexes": [[{"path": "/a"}]]}})), "composite"),
        (with(json!({"indexingPolicy": {"spatialIndexes": [{"path": "/a", "types": ["Dot"]}]}})), "Dot"),
        (with(json!({"defaultTtl": 0})), "input ttl '0'"),
        (with(json!({"defaultTtl": -2})), "input ttl '-2'"),
        (with(json!({"defaultTtl": 2147483648i64})), "input ttl"),
        (with(json!({"defaultTtl": "1"})), "input ttl"),
        (unique(many(11, json!({"paths": ["/a"]}))), "unique keys"),
        (unique(json!([{"paths": []}])), "1 to 16"),
        (unique(json!([{"paths": vec!["/a"; 17]}])), "1 to 16"),
        (unique(json!([{"paths": ["a"]}])), "unique key path"),
        (unique(json!([{"paths": ["/a"]}, {"paths": ["/a"]}])), "twice"),
        (with(json!({"conflictResolutionPolicy": {"mode": "First"}})), "'First'"),
        (with(json!({"conflictResolutionPolicy": {"conflictResolutionPath": "x"}})), "'x'"),
        (with(json!({"geospatialConfig": {"type": "Flat"}})), "'Flat'"),
        (with(json!({"changeFeedPolicy": {"retentionDuration": -1}})), "retention"),
        (with(json!({"computedProperties": {"name": "a"}})), "One of the specified inputs is invalid"),
        (with(json!({"computedProperties": [{"name": "a"}]})), "One of the specified inputs is invalid"),
        (with(json!({"globalSecondaryIndexDefinition": {}})), "not supported yet"),
    ] {
        let message = refusal(&body);
        assert!(message.contains(words), "{body}: {message}");
    }
}

#[test]
fn wrong_vector_and_text_policies_are_refused_in_the_service_s_words() {
    let embedded = |change: Value| {
        let mut entry = embedding(256);
        entry.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        with(json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [entry]}}))
    };
    let text = |policy: Value| with(json!({ "fullTextPolicy": policy }));
    for (body, words) in [
        (embedded(json!({"dataType": "float1"})), "Vector Embedding Policy has an invalid DataType"),
        (
            embedded(json!({"dimensions": 8000})),
            "Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value",
        ),
        (embedded(json!({"dimensions": -1})), "The Vector Embedding Policy has Dimensions:-1"),
        (
            embedded(json!({"distanceFunction": "handMeasured"})),
            "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured",
        ),
        (
            with(json!({"indexingPolicy": {"vectorIndexes": [{"path": "/v", "type": "flat"}]}})),
            "The Vector Indexing Policy's path::/v not matching in Embedding's path.",
        ),
        (vector_index(json!({"path": "/v", "type": "notFlat"}), 256), "Index Type::notFlat is invalid"),
        (
            vector_index(json!({"path": "/v", "type": "quantizedFlat", "quantizationByteSize": 0}), 256),
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. \
             The allowed range is between 1 and 256.",
        ),
        (
            vector_index(json!({"path": "/v", "type": "quantizedFlat", "quantizationByteSize": 513}), 550),
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 513 is out of range.",
        ),
        (
            vector_index(json!({"path": "/v", "type": "diskANN", "indexingSearchListSize": 5}), 256),
            "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
        ),
        (
            vector_index(json!({"path": "/v", "type": "diskANN", "vectorIndexShardKey": ["country"]}), 256),
            "The Vector Indexing Policy has an invalid Shard Path: country.",
        ),
        (
            vector_index(
                json!({"path": "/v", "type": "diskANN", "vectorIndexShardKey": ["/a", "/b", "/c"]}),
                256,
            ),
            "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
        ),
        (
            vector_index(json!({"path": "/v", "type": "diskANN", "vectorIndexShardKey": "/a"}), 256),
            "One of the specified inputs is invalid",
        ),
        (vector_index(json!({"path": "/v", "type": "flat"}), 506), "505"),
        (
            text(json!({"fullTextPaths": [{"path": "abstract"}]})),
            "The Full Text Policy contains an invalid Path: abstract",
        ),
        (text(json!({"defaultLanguage": "spa-SPA"})), "unsupported language"),
        (text(json!({"fullTextPaths": [{"path": "/a", "language": "spa-SPA"}]})), "unsupported language"),
        (
            with(json!({"indexingPolicy": {"fullTextIndexes": [{"path": "/a"}]}})),
            "not one of the Full Text Policy",
        ),
        (with(json!({"indexingPolicy": {"fullTextIndexes": [{"not_path": "a"}]}})), "invalid Path"),
    ] {
        let message = refusal(&body);
        assert!(message.contains(words), "{body}: {message}");
    }
}

#[test]
fn a_replace_changes_what_may_change() {
    let current = ContainerDefinition::parse(&doc(&with(json!({
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.a) FROM c"}],
        "defaultTtl": 5
    }))))
    .expect("it is right");
    let replaced = current.replaced_by(&doc(&with(json!({"defaultTtl": 9})))).expect("it may change");
    let shown = to_json(&replaced.body).expect("a definition is shallow");
    assert_eq!(shown["defaultTtl"], json!(9));
    assert_eq!(shown["uniqueKeyPolicy"], json!({"uniqueKeys": [{"paths": ["/u"]}]}));
    assert!(shown.get("computedProperties").is_none(), "a replace is not a merge");
}

#[test]
fn a_replace_keeps_what_must_stay() {
    let flat = json!({"path": "/v", "type": "flat"});
    let current = ContainerDefinition::parse(&doc(&vector_index(flat.clone(), 256))).expect("it is right");
    let vectors = |change: Value| {
        let mut body = vector_index(flat.clone(), 256);
        body.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        body
    };
    for (body, words) in [
        (vectors(json!({"id": "other"})), "id"),
        (
            vectors(json!({"partitionKey": {"paths": ["/other"], "version": 2}})),
            "partition key cannot be changed",
        ),
        (vectors(json!({"partitionKey": {"paths": ["/pk"]}})), "partition key cannot be changed"),
        (
            vectors(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]}})),
            "Unique index cannot be modified",
        ),
        (vectors(json!({"conflictResolutionPolicy": {"mode": "Custom"}})), "conflict resolution policy"),
        (
            vectors(json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding(384)]}})),
            "Paths in existing embedding policy cannot be modified in Collection Replace",
        ),
        (
            vectors(json!({"indexingPolicy": {"vectorIndexes": [{"path": "/v", "type": "quantizedFlat"}]}})),
            "Paths in existing vector indexing policy cannot be modified in Collection Replace",
        ),
        (
            with(json!({"indexingPolicy": {"vectorIndexes": [flat]}})),
            "The Vector Indexing Policy's path::/v not matching in Embedding's path.",
        ),
    ] {
        let error = current.replaced_by(&doc(&body)).expect_err("it must stay");
        let message = error.kind.to_string();
        assert!(message.contains(words), "{body}: {message}");
    }
    current.replaced_by(&doc(&with(json!({})))).expect("vectors may be removed");
}

/// Found by the hostile-input test: serde_json reads 127 levels, our own parser 128.
#[test]
fn a_definition_nested_too_deeply_is_refused_and_a_deep_one_reads_back() {
    let nested = |depth: usize| format!("{{\"id\":\"c\",\"x\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let parse = |depth: usize| {
        let doc = orrery_doc::json::parse(nested(depth).as_bytes(), 200).expect("JSON");
        ContainerDefinition::parse(&doc)
    };
    assert!(parse(60).is_ok());
    for depth in [64, 100, 126, 127, 128, 150] {
        assert!(parse(depth).is_err(), "{depth}");
    }
}
