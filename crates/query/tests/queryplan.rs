//! Query plans against those of the service.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod shared;

use orrery_doc::{PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::ast::Direction;
use orrery_query::{
    Features, Geospatial, Parameters, PinnedKeys, PlanSettings, QueryError, QueryPlan, TextStatistics,
    VectorDistance, VectorPath, compile, describe, describe_with, needs_plan,
};
use serde_json::Value;

fn definition(paths: &[&str], kind: PartitionKeyKind) -> PartitionKeyDef {
    let paths = paths.iter().map(|path| Path::parse_property(path).unwrap()).collect();
    PartitionKeyDef { kind, version: PartitionKeyVersion::V2, paths }
}

fn plan(text: &str, paths: &[&str], kind: PartitionKeyKind) -> Result<QueryPlan, QueryError> {
    describe(text, &Parameters::new(), &definition(paths, kind), &Features::all())
}

/// What the vectors and our plans are compared by.
fn outcome(case: &Value) -> Result<(Value, Vec<String>), Option<String>> {
    let paths: Vec<&str> =
        case["partition_key_paths"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
    let params = case.get("query_parameters").map_or("[]".to_owned(), Value::to_string);
    let params = json::parse(params.as_bytes(), 128).unwrap();
    let params = Parameters::from_value(params.root()).unwrap();
    let def = definition(&paths, PartitionKeyKind::Hash);
    match describe_with(case["query"].as_str().unwrap(), &params, &def, &Features::all(), &settings(case)) {
        Ok(plan) => {
            let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
            Ok((json["queryInfo"].clone(), ranges(&plan)))
        }
        Err(error) => {
            let json: Value = serde_json::from_str(&error.to_json()).unwrap();
            Err(codes(&json))
        }
    }
}

/// The container's policies. The vectors say the distance in their descriptions only.
fn settings(case: &Value) -> PlanSettings {
    let geospatial = match case["geospatial_type"].as_str() {
        Some("Geometry") => Geospatial::Geometry,
        _ => Geospatial::Geography,
    };
    let description = case["description"].as_str().unwrap_or_default();
    let distance = [
        ("Euclidean", VectorDistance::Euclidean),
        ("Cosine", VectorDistance::Cosine),
        ("Dot Product", VectorDistance::DotProduct),
    ]
    .into_iter()
    .find(|(start, _)| description.starts_with(start));
    let vectors = distance.map(|(_, distance)| VectorPath { path: vec!["embedding".into()], distance });
    PlanSettings { geospatial: Some(geospatial), vectors: vectors.into_iter().collect() }
}

fn ranges(plan: &QueryPlan) -> Vec<String> {
    let mut ranges = match &plan.keys {
        PinnedKeys::All => vec![r#"[[],"Infinity")"#.to_owned()],
        PinnedKeys::Only(keys) if keys.is_empty() => vec!["[[],[]]".to_owned()],
        PinnedKeys::Only(keys) => keys.iter().map(|key| format!("[{0},{0}]", key.to_json())).collect(),
    };
    ranges.sort();
    ranges
}

/// The codes and places of an error, or its text.
fn codes(error: &Value) -> Option<String> {
    let list = error.get("errors").and_then(Value::as_array);
    let text = |e: &Value| format!("{}@{}", e["code"], e.get("location").unwrap_or(&Value::Null));
    match list {
        Some(list) => Some(list.iter().map(text).collect::<Vec<_>>().join(";")),
        None => error.get("Errors").map(Value::to_string),
    }
}

/// The recorded plans write numbers of keys with a fraction and absent aggregates as text.
fn expected(case: &Value) -> Result<(Value, Vec<String>), Option<String>> {
    let Some(info) = case.get("query_info") else {
        return Err(codes(&case["error"]));
    };
    let mut info = info.clone();
    for (_, kind) in info["groupByAliasToAggregateType"].as_object_mut().unwrap() {
        if kind == "null" {
            *kind = Value::Null;
        }
    }
    let normal = |range: &Value| range.as_str().unwrap().replace(".0]", "]").replace(".0,", ",");
    let mut ranges: Vec<String> = case["query_ranges"].as_array().unwrap().iter().map(normal).collect();
    ranges.sort();
    Ok((info, ranges))
}

fn agrees(case: &Value) -> Result<(), String> {
    match (outcome(case), expected(case)) {
        (Ok((mut info, ranges)), Ok((wanted, wanted_ranges))) => {
            let info = info.as_object_mut().unwrap();
            info.retain(|name, _| wanted.get(name).is_some());
            if *info != *wanted.as_object().unwrap() {
                return Err(format!("got  {info:?}\n    want {wanted:?}"));
            }
            if ranges != wanted_ranges {
                return Err(format!("got ranges {ranges:?}\n    want {wanted_ranges:?}"));
            }
            Ok(())
        }
        (Err(got), Err(wanted)) if got == wanted => Ok(()),
        // The recorded failure is that of a client that keeps counts in 32 bits; the plan was made.
        (Ok(_), Err(None)) if case["error"].as_str().is_some_and(has_plan) => Ok(()),
        (got, wanted) => Err(format!("got  {got:?}\n    want {wanted:?}")),
    }
}

/// The refusal of that client shows the beginning of the plan.
fn has_plan(error: &str) -> bool {
    error.contains("queryInfo") || error.contains("queryRanges")
}

/// The recorded plan of a query that ranks is a tree of lists; what it says of counts and texts is compared.
fn agrees_in_ranking(query: &str, recorded: &Value) -> Result<(), String> {
    let plan = plan(query, &["/key"], PartitionKeyKind::Hash).map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
    let info = &json["hybridSearchQueryInfo"];
    let component = &info["componentQueryInfos"][0];
    for (name, ours) in [
        ("GlobalStatisticsQuery", &info["globalStatisticsQuery"]),
        ("Skip", &info["skip"]),
        ("Take", &info["take"]),
        ("Top", &component["top"]),
        ("Offset", &component["offset"]),
        ("Limit", &component["limit"]),
        ("SortOrder", &component["orderBy"][0]),
        ("OrderByExpression", &component["orderByExpressions"][0]),
        ("RewrittenQuery", &component["rewrittenQuery"]),
    ] {
        let ours = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
        let wanted = recorded_text(recorded, name).filter(|text| !text.is_empty()).unwrap_or("null");
        if ours != wanted {
            return Err(format!("{name}: got  {ours}\n    want {wanted}"));
        }
    }
    assert_eq!(info["requiresGlobalStatistics"], true);
    assert_eq!(component["hasNonStreamingOrderBy"], true);
    assert!(json.get("queryInfo").is_none());
    Ok(())
}

/// The text under a name, however deep it is.
fn recorded_text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| recorded_text(item, name)),
        Value::Object(fields) => {
            let own = fields.get(name).and_then(Value::as_str);
            own.or_else(|| fields.values().find_map(|field| recorded_text(field, name)))
        }
        _ => None,
    }
}

#[test]
fn plans_of_fusions_have_a_component_for_each_score() {
    let text = "SELECT TOP 70 c.a FROM c WHERE c.b = 1 ORDER BY RANK RRF(FullTextScore(c.t, ['x', 'y']), \
                VectorDistance(c.v, [1, 2]), FullTextScore(c.u, 'z'), [2, -1, 0.5])";
    let plan = plan(text, &["/key"], PartitionKeyKind::Hash).unwrap();
    let ranking = plan.ranking.clone().unwrap();
    assert_eq!(ranking.weights, [2.0, 1.0, 0.5]);
    assert_eq!((ranking.skip, ranking.take), (None, Some(70)));
    assert_eq!(
        ranking.statistics_query,
        "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.t)), \"hitCounts\": \
         [COUNTIF(FullTextContains(c.t, \"x\")), COUNTIF(FullTextContains(c.t, \"y\"))]}, {\"totalWordCount\": \
         SUM(_FullTextWordCount(c.u)), \"hitCounts\": [COUNTIF(FullTextContains(c.u, \"z\"))]}] AS \
         fullTextStatistics\nFROM c"
    );
    let directions: Vec<_> = ranking.components.iter().map(|component| component.order_by[0].0).collect();
    assert_eq!(directions, [Direction::Descending, Direction::Ascending, Direction::Descending]);
    assert!(ranking.components.iter().all(|component| component.top == Some(140)));
    // What was counted takes the place of all marks, and the queries run.
    let found = TextStatistics { items: 5, texts: vec![(40, vec![1, 2]), (30, vec![3])] };
    let queries = ranking.component_queries(&found);
    assert!(queries[2].contains("_FullTextScore(c.u, [\"z\"], 5, 30, [3])"), "{}", queries[2]);
    for query in queries {
        assert!(!query.contains("documentdb"), "{query}");
        compile(&query, &Parameters::new()).unwrap();
    }
    let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
    assert_eq!(json["hybridSearchQueryInfo"]["componentWeights"], serde_json::json!([2, 1, 0.5]));
}

#[test]
fn who_cannot_rank_is_not_given_such_a_plan() {
    let fused =
        "SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), FullTextScore(c.u, 'y'), [1, 2])";
    let definition = definition(&["/key"], PartitionKeyKind::Hash);
    for (features, missing) in [
        ("Top,OrderBy", Some("HybridSearch, WeightedRankFusion")),
        ("HybridSearch", Some("WeightedRankFusion")),
        ("HybridSearch,WeightedRankFusion", None),
    ] {
        let made = describe(fused, &Parameters::new(), &definition, &Features::from_header(features));
        match missing {
            None => assert!(made.unwrap().ranking.is_some()),
            Some(missing) => assert!(made.unwrap_err().to_string().contains(missing), "{features}"),
        }
    }
}

#[test]
fn plans_equal_those_of_the_service() {
    let Some(text) = shared::vector("queryplan.json") else { return };
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let (mut matching, mut differing, mut ranking, mut legacy) = (0, Vec::new(), 0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        let query = case["query"].as_str().unwrap();
        let compared = match &case["raw_output"] {
            Value::Null if case["partition_kind"] == "Range" => {
                legacy += 1;
                continue;
            }
            Value::Null => agrees(case),
            recorded => {
                ranking += 1;
                agrees_in_ranking(query, recorded)
            }
        };
        match compared {
            Ok(()) => matching += 1,
            Err(difference) => {
                differing.push(format!("{}: {query}\n    {difference}", case["description"]));
            }
        }
    }
    println!(
        "plans: {matching} match, {ranking} of them rank, {} differ, {legacy} range-partitioned not compared",
        differing.len()
    );
    assert!(ranking > 0, "there are plans that rank");
    for difference in &differing {
        println!("{difference}");
    }
    assert!(differing.is_empty(), "{} plans differ", differing.len());
}

#[test]
fn what_the_service_does_not_plan_has_its_code() {
    for (text, code) in [
        ("SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.t ORDER BY t) FROM c", 2202),
        ("SELECT VALUE r FROM (SELECT TOP 3 VALUE c FROM c) AS r", 2203),
        ("SELECT VALUE r FROM (SELECT VALUE c FROM c OFFSET 1 LIMIT 3) AS r", 2204),
        ("SELECT VALUE r FROM (SELECT VALUE c FROM c ORDER BY RANK FullTextScore(c.t, 'a')) AS r", 2228),
        ("SELECT * FROM c ORDER BY RANK LOWER(c.t)", 2221),
        ("SELECT * FROM c ORDER BY RANK BADFUNC(c.t)", 2005),
        ("SELECT VALUE t FROM t IN c.t ORDER BY RANK FullTextScore(t, 'a')", 2223),
        ("SELECT VALUE t FROM c JOIN t IN c.t ORDER BY RANK FullTextScore(c.t, 'a')", 2224),
        ("SELECT VALUE r FROM (SELECT VALUE c FROM c) AS r ORDER BY RANK FullTextScore(r.t, 'a')", 2225),
        ("SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), [1])", 2229),
        ("SELECT FullTextScore(c.t, 'a') FROM c", 2240),
        ("SELECT * FROM c WHERE FullTextScore(c.t, 'a') > 1", 2240),
        (
            "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1], true, {'searchListSizeMultiplier': 0})",
            2213,
        ),
    ] {
        let error = plan(text, &["/pk"], PartitionKeyKind::Hash).unwrap_err();
        assert_eq!(error.sc_code(), Some(code), "{text}: {error}");
    }
}

#[test]
fn the_best_vectors_come_first() {
    let order = |text: &str, settings: &PlanSettings| {
        let def = definition(&["/pk"], PartitionKeyKind::Hash);
        let plan = describe_with(text, &Parameters::new(), &def, &Features::all(), settings).unwrap();
        assert!(plan.info.has_non_streaming_order_by);
        let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
        assert_eq!(json["queryInfo"]["hasNonStreamingOrderBy"], true);
        json["queryInfo"]["orderBy"][0].as_str().unwrap().to_owned()
    };
    let text = "SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.a.v, [1])";
    let policy = |distance| PlanSettings {
        geospatial: None,
        vectors: vec![VectorPath { path: vec!["a".into(), "v".into()], distance }],
    };
    assert_eq!(order(text, &PlanSettings::default()), "Descending");
    assert_eq!(order(text, &policy(VectorDistance::Euclidean)), "Ascending");
    assert_eq!(order(text, &policy(VectorDistance::DotProduct)), "Descending");
    let own = text.replace("[1])", "[1], false, {'distanceFunction': 'euclidean'})");
    assert_eq!(order(&own, &policy(VectorDistance::Cosine)), "Ascending");
    let other_path = text.replace("c.a.v", "c.a.w");
    assert_eq!(order(&other_path, &policy(VectorDistance::Euclidean)), "Descending");
    // A list element has no entry of its own in a policy.
    let element = text.replace("c.a.v", "c.a[0].v");
    assert_eq!(order(&element, &policy(VectorDistance::Euclidean)), "Descending");
}

#[test]
fn ranges_are_effective_partition_keys() {
    let range = |text: &str, paths: &[&str], kind| {
        let json = plan(text, paths, kind).unwrap().to_json();
        let json: Value = serde_json::from_str(&json).unwrap();
        json["queryRanges"].to_string()
    };
    assert_eq!(
        range("SELECT * FROM c", &["/pk"], PartitionKeyKind::Hash),
        r#"[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]"#
    );
    let point = range("SELECT * FROM c WHERE c.pk = 'a' AND c.x > 1", &["/pk"], PartitionKeyKind::Hash);
    assert!(point.contains(r#""isMaxInclusive":true"#), "{point}");
    let prefix = range("SELECT * FROM c WHERE c.a = 'x'", &["/a", "/b"], PartitionKeyKind::MultiHash);
    assert!(prefix.contains(r#""isMaxInclusive":false"#) && !prefix.contains(r#""max":"FF""#), "{prefix}");
    let second = range("SELECT * FROM c WHERE c.b = 'x'", &["/a", "/b"], PartitionKeyKind::MultiHash);
    assert!(second.contains(r#""max":"FF""#), "{second}");
}

#[test]
fn clients_get_no_plan_that_they_cannot_carry_out() {
    let features = Features::from_header("OrderBy, Top");
    let def = definition(&["/pk"], PartitionKeyKind::Hash);
    let plan = |text: &str| describe(text, &Parameters::new(), &def, &features);
    assert!(plan("SELECT TOP 1 * FROM c ORDER BY c.x").is_ok());
    assert!(plan("SELECT * FROM c ORDER BY c.x, c.y").unwrap_err().to_string().contains("MultipleOrderBy"));
    assert!(plan("SELECT VALUE COUNT(1) FROM c").unwrap_err().to_string().contains("Aggregate"));
}

#[test]
fn distinct_rows_are_counted_by_the_client() {
    let info = plan(
        "SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.x FROM c) AS r",
        &["/pk"],
        PartitionKeyKind::Hash,
    )
    .unwrap()
    .info;
    assert_eq!(info.distinct_count.as_deref(), Some("n"));
    assert_eq!(info.rewritten_query, "SELECT DISTINCT VALUE c.x\nFROM c");
    assert!(info.aggregates.is_empty() && info.group_by_aliases.is_empty());
}

#[test]
fn plain_queries_need_no_plan() {
    let needs = |text: &str| needs_plan(&orrery_query::parse::parse(text).unwrap());
    for text in [
        "SELECT * FROM c",
        "SELECT c.x FROM c JOIN d IN c.e WHERE c.y = 1",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.t) FROM c",
    ] {
        assert!(!needs(text), "{text}");
    }
    for text in [
        "SELECT TOP 1 * FROM c",
        "SELECT DISTINCT c.x FROM c",
        "SELECT * FROM c ORDER BY c.x",
        "SELECT * FROM c OFFSET 0 LIMIT 1",
        "SELECT COUNT(1) FROM c",
        "SELECT c.x FROM c GROUP BY c.x",
    ] {
        assert!(needs(text), "{text}");
    }
}

/// Clients refuse a plan whose ranges overlap.
#[test]
fn ranges_of_hierarchical_keys_are_apart() {
    let (paths, kind) = (["/tenant", "/user"], PartitionKeyKind::MultiHash);
    let of = |filter: &str| {
        let text = format!("SELECT * FROM c WHERE {filter} ORDER BY c._ts");
        plan(&text, &paths, kind).unwrap().ranges
    };
    let whole = of("c.tenant = 't1'");
    let one = of("c.tenant = 't1' AND c.user = 'u1'");
    let other = of("c.tenant = 't2' AND c.user = 'u1'");
    assert_eq!(of("(c.tenant = 't1' AND c.user = 'u1') OR (c.tenant = 't1' AND c.shared = true)"), whole);
    assert_eq!(of("c.tenant = 't1' AND (c.shared = true OR c.user IN ('u1', 'u2'))"), whole);
    let mut both = [one.clone(), other.clone()].concat();
    both.sort_by(|a, b| a.min.cmp(&b.min));
    assert_eq!(of("c.user = 'u1' AND c.tenant IN ('t1', 't2')"), both);
    let many = of("c.tenant = 't1' OR (c.user = 'u1' AND c.tenant IN ('t1', 't2'))");
    assert_eq!(many.len(), 2);
    assert!(many.contains(&whole[0]) && many.contains(&other[0]));
}

#[test]
fn lists_and_sets_need_no_leave_of_the_client() {
    // .NET carries them out and does not say so.
    let features = Features::from_header("Aggregate, GroupBy, NonValueAggregate");
    let def = definition(&["/pk"], PartitionKeyKind::Hash);
    for text in [
        "SELECT VALUE MAKELIST(c.x) FROM c",
        "SELECT VALUE MAKESET(c.x) FROM c",
        "SELECT c.g, MAKELIST(c.x) AS l FROM c GROUP BY c.g",
    ] {
        let plan = describe(text, &Parameters::new(), &def, &features);
        assert!(plan.is_ok(), "{text}: {plan:?}");
    }
}

#[test]
fn is_boolean_is_is_bool() {
    let text = "SELECT VALUE [IS_BOOLEAN(true), IS_BOOLEAN(false), is_boolean(1), IS_BOOLEAN(undefined)]";
    let program = orrery_query::compile(text, &Parameters::new()).unwrap();
    let rows = program.run_all([], &orrery_query::Context::at(0, 0)).unwrap();
    assert_eq!(rows.iter().next(), Some(&b"[true,true,false,false]"[..]));
}
