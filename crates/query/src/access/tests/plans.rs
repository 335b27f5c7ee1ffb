//! What is planned for queries that clients send.

use super::*;
use crate::compile::{Vocabulary, compile_with};
use crate::run::{Room, Rows, Run};
use crate::value::Val;

fn plan(text: &str) -> Access {
    plan_access(&program(text), &Ready::default())
}

fn filter_text(text: &str) -> String {
    let explained = explain(Some(&plan(text)), &Chosen::default()).text;
    explained.lines().skip(1).take_while(|line| !line.starts_with("order")).collect::<Vec<_>>().join("\n")
}

#[test]
fn conditions_become_intervals_of_terms() {
    for (condition, expected) in [
        ("c.a = 5", "filter (exact): /a = 5"),
        ("c.a = 'x' AND c.b > 1", "filter (exact): all of\n  /a = \"x\"\n  /b > 1"),
        ("c.a > 1 AND c.a <= 3", "filter (exact): /a > 1 and <= 3"),
        ("c.a > 1 AND c.a < 0", "filter (exact): no item"),
        ("c.a IN (1, 'x')", "filter (exact): /a = 1 or = \"x\""),
        ("c.a = 1 OR c.b = 2", "filter (exact): any of\n  /a = 1\n  /b = 2"),
        ("STARTSWITH(c.a, 'ab')", "filter (exact): /a starts with \"ab\""),
        ("c.a LIKE 'ab%c'", "filter: /a starts with \"ab\", to be checked"),
        ("ARRAY_CONTAINS(c.tags, 'x')", "filter (exact): /tags/[] = \"x\""),
        ("ARRAY_CONTAINS([1, 2], c.a)", "filter (exact): /a = 1 or = 2"),
        ("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.n = 1)", "filter (exact): /tags/[]/n = 1"),
        ("c.a != null", "filter (exact): /a > null"),
        ("c.a != 5", "filter (exact): /a is null or < 5 or > 5"),
        ("c.tags[0] = 'x'", "filter: /tags/[] = \"x\", to be checked"),
        ("NOT IS_DEFINED(c.a)", "filter: every item"),
        ("c.a + 1 = 2", "filter: every item"),
        ("c.a = -1", "filter (exact): /a = -1"),
        ("true", "filter (exact): every item"),
        ("(true) AND c.a = 1", "filter (exact): /a = 1"),
    ] {
        let found = filter_text(&format!("SELECT * FROM c WHERE {condition}"));
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn ordered_queries_of_clients_use_the_index() {
    let text = "SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY c.x DESC";
    let access = plan(text);
    let path = IndexPath::of_names(&["x"]);
    assert_eq!(access.order, Some(IndexOrder::Single { path, direction: Direction::Descending }));
    // A client that resumes says where; rows without the path come last in this direction.
    let text = "SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c AS payload FROM c \
                WHERE (c.x < 5 OR IS_NULL(c.x) OR IS_BOOL(c.x) OR NOT IS_DEFINED(c.x)) ORDER BY c.x DESC";
    let access = plan(text);
    assert_eq!(access.filter, Proposal::Everything);
    let (five, _) = term_of(&Val::Int(5));
    assert_eq!(access.order_terms.last().map(|span| span.upper.clone()), Some(five));
    assert!(access.order_terms[0].contains(&[0x10]));
    for text in [
        "SELECT DISTINCT VALUE c.x FROM c ORDER BY c.y",
        "SELECT DISTINCT c.x, c.y FROM c",
        "SELECT DISTINCT VALUE c.x FROM c WHERE c.y = 1",
        "SELECT DISTINCT VALUE c.x FROM c JOIN t IN c.tags",
        "SELECT VALUE c.x FROM c ORDER BY c.list[0]",
        "SELECT VALUE t FROM t IN c.list ORDER BY t.x",
        "SELECT c.x, COUNT(1) AS n FROM c GROUP BY c.x ORDER BY c.x",
    ] {
        assert_eq!(plan(text).order, None, "{text}");
    }
}

#[test]
fn distinct_values_of_a_path_come_in_its_order() {
    for text in [
        "SELECT DISTINCT VALUE c.x FROM c",
        "SELECT DISTINCT c.x FROM c WHERE c.x > 1",
        "SELECT DISTINCT VALUE c.x FROM c ORDER BY c.x",
    ] {
        let path = IndexPath::of_names(&["x"]);
        let expected = Some(IndexOrder::Single { path, direction: Direction::Ascending });
        assert_eq!(plan(text).order, expected, "{text}");
        assert!(plan(text).one_per_term, "{text}");
    }
    // Nobody asked for the order, so nobody is refused.
    let ready = Ready { excluded: vec![IndexPath::of_names(&["x"])], ..Ready::default() };
    check_order(&program("SELECT DISTINCT VALUE c.x FROM c"), &ready).expect("no order is asked for");
}

#[test]
fn composite_indexes_serve_both_directions() {
    let (a, b) = (IndexPath::of_names(&["a"]), IndexPath::of_names(&["b"]));
    let parts = vec![(a, Direction::Ascending), (b, Direction::Descending)];
    let ready = Ready { composites: vec![parts], ..Ready::default() };
    for (order, expected) in [
        ("c.a ASC, c.b DESC", Some(false)),
        ("c.a DESC, c.b ASC", Some(true)),
        ("c.a ASC, c.b ASC", None),
        ("c.b DESC, c.a ASC", None),
    ] {
        let program = program(&format!("SELECT * FROM c ORDER BY {order}"));
        let expected_order =
            expected.map(|reversed| IndexOrder::Composite { index: 0, reversed, fixed: 0, prefix: vec![] });
        assert_eq!(plan_access(&program, &ready).order, expected_order, "{order}");
        let refusal = check_order(&program, &ready).err().map(|error| error.to_json());
        let refused = expected.is_none().then(|| {
            "{\"Errors\":[\"The order by query does not have a corresponding composite index that it can be served \
             from.\"]}"
                .to_owned()
        });
        assert_eq!(refusal, refused, "{order}");
    }
}

#[test]
fn an_order_without_an_index_is_refused() {
    let ready = Ready { excluded: vec![IndexPath::of_names(&["x"])], ..Ready::default() };
    let refused = check_order(&program("SELECT * FROM c ORDER BY c.x"), &ready).expect_err("not indexed");
    assert_eq!(
        refused.to_json(),
        "{\"Errors\":[\"The index path corresponding to the specified order-by item is excluded.\"]}"
    );
    check_order(&program("SELECT * FROM c ORDER BY c.y"), &ready).expect("indexed");
    check_order(&program("SELECT * FROM c ORDER BY c._ts"), &ready).expect("always there");
}

#[test]
fn counts_and_extremes_need_no_items() {
    let x = || IndexPath::of_names(&["x"]);
    let first = |direction, counted| Shortcut::First { path: x(), direction, counted };
    for (text, expected) in [
        ("SELECT VALUE COUNT(1) FROM c", Shortcut::Count),
        ("SELECT VALUE COUNT(c) FROM c WHERE c.a = 1", Shortcut::Count),
        ("SELECT COUNT(1) AS n, COUNT(c) AS m FROM c", Shortcut::Count),
        ("SELECT VALUE [{\"item\": COUNT(1)}] FROM c", Shortcut::Count),
        ("SELECT VALUE COUNT(c.x) FROM c", Shortcut::Count),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.a LIKE '%b'", Shortcut::None),
        ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", Shortcut::None),
        ("SELECT COUNT(1) AS n FROM c GROUP BY c.x", Shortcut::None),
        ("SELECT VALUE SUM(c.x) FROM c", Shortcut::None),
        ("SELECT VALUE MIN(c.x) FROM c", first(Direction::Ascending, false)),
        ("SELECT VALUE MAX(c.x) FROM c", first(Direction::Descending, false)),
        (
            "SELECT VALUE [{\"item\": MAX(c.x), \"item2\": {\"max\": MAX(c.x), \"count\": COUNT(c.x)}}] FROM c",
            first(Direction::Descending, true),
        ),
        ("SELECT VALUE MAX(c.x) FROM c WHERE c.a LIKE '%b'", Shortcut::None),
        ("SELECT MIN(c.x) AS a, MAX(c.x) AS b FROM c", Shortcut::None),
        ("SELECT VALUE MIN(c.x[0]) FROM c", Shortcut::None),
    ] {
        assert_eq!(plan(text).shortcut, expected, "{text}");
    }
}

#[test]
fn items_that_add_nothing_are_not_proposed() {
    let defined =
        Proposal::Leaf(Leaf { path: IndexPath::of_names(&["x"]), spans: vec![Span::defined()], exact: true });
    for (text, expected) in [
        ("SELECT VALUE SUM(c.x) FROM c", true),
        ("SELECT VALUE AVG(c.x) FROM c", true),
        ("SELECT VALUE COUNT(c.x) FROM c", true),
        ("SELECT VALUE c.x FROM c", true),
        ("SELECT DISTINCT VALUE c.x FROM c", true),
        ("SELECT c.x FROM c", false),
        ("SELECT VALUE MIN(c.x) FROM c", false),
        ("SELECT SUM(c.x) AS a, COUNT(1) AS b FROM c", false),
        ("SELECT SUM(c.x) AS a FROM c GROUP BY c.y", false),
    ] {
        assert_eq!(plan(text).filter == defined, expected, "{text}");
    }
}

#[test]
fn a_shortcut_answers_like_the_items() {
    let docs: Vec<Doc> = ["{\"x\":3}", "{\"x\":1}", "{\"y\":1}"].map(document).into();
    let cx = Context::at(0, 0);
    for (text, count, extreme) in [
        ("SELECT VALUE COUNT(1) FROM c", 3, Val::Undefined),
        ("SELECT VALUE [{\"item\": COUNT(1)}] FROM c", 3, Val::Undefined),
        ("SELECT COUNT(c.x) AS n FROM c", 2, Val::Undefined),
        ("SELECT VALUE [{\"item\": MIN(c.x), \"item2\": {\"count\": COUNT(c.x)}}] FROM c", 2, Val::Int(1)),
    ] {
        let program = program(text);
        let mut out = Rows::default();
        let mut run = Run::start(&program, &cx, Room::UNLIMITED, None).expect("the run starts");
        run.feed_shortcut(count, &extreme).expect("the shortcut fits");
        run.finish(&mut out).expect("the run ends");
        let all =
            program.run_all(docs.iter().map(|doc| Row::plain(doc.as_ref())), &cx).expect("the query runs");
        assert_eq!(out, all, "{text}");
    }
    let value = program("SELECT VALUE MIN(c.x) FROM c").shortcut_value(&Row::plain(docs[1].as_ref()), &cx);
    assert_eq!(value.expect("the item has a value"), Val::Int(1));
}

#[test]
fn computed_properties_stand_for_their_expression() {
    let properties = Vocabulary::new([("lower", "SELECT VALUE LOWER(x.name) FROM x")]).expect("is valid");
    let doc = document("{\"id\":\"1\",\"name\":\"ABC\"}");
    for (text, expected) in [
        ("SELECT c.lower FROM c WHERE c.lower = 'abc'", "{\"lower\":\"abc\"}"),
        ("SELECT VALUE c[\"lower\"] FROM c", "\"abc\""),
        ("SELECT c.lower, COUNT(1) AS n FROM c GROUP BY c.lower", "{\"lower\":\"abc\",\"n\":1}"),
        ("SELECT VALUE c.name FROM c ORDER BY c.lower", "\"ABC\""),
        ("SELECT * FROM c", "{\"id\":\"1\",\"name\":\"ABC\"}"),
        ("SELECT VALUE 1 FROM c WHERE IS_DEFINED(c.n.lower)", ""),
    ] {
        let program = compile_with(text, &Parameters::default(), &properties).expect("the query is valid");
        let rows = program.run_all([Row::plain(doc.as_ref())], &Context::at(0, 0)).expect("the query runs");
        let rows: Vec<String> = rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
        assert_eq!(rows.join(","), expected, "{text}");
    }
    for wrong in ["SELECT c.name FROM c", "SELECT VALUE 1", "SELECT VALUE c.a FROM c WHERE c.b = 1"] {
        Vocabulary::new([("wrong", wrong)]).expect_err(wrong);
    }
}

#[test]
fn advice_is_given_by_number() {
    for (text, expected) in [
        ("SELECT VALUE r.id FROM root r WHERE CONTAINS(r.name, \"Abc\")", "QA1002"),
        ("SELECT GetCurrentTicks() FROM root r WHERE GetCurrentTimestamp() > 10", "QA1009 QA1008"),
        ("SELECT VALUE r.id FROM root r WHERE StringEquals(r.name, \"Abc\", false)", ""),
        ("SELECT VALUE r.id FROM root r WHERE StringEquals(r.name, \"Abc\", true)", "QA1003"),
        ("SELECT VALUE r.id FROM r WHERE ARRAY_CONTAINS(r.tags, {\"a\": 1}, true)", "QA1000"),
        ("SELECT VALUE r.id FROM r WHERE ENDSWITH(r.name, 'x', true) OR LOWER(r.a) = 'b'", "QA1004 QA1006"),
        ("SELECT DISTINCT VALUE t FROM r JOIN t IN r.tags", "QA1001"),
        ("SELECT COUNT(1) AS n FROM r GROUP BY LOWER(r.a)", "QA1005"),
        ("SELECT GetCurrentDateTime() AS t FROM r", "QA1007"),
    ] {
        let found: Vec<&str> = advice(&program(text)).iter().map(|advice| advice.id).collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }
    assert_eq!(advice_json(&[]), "[]");
    let found = advice(&program("SELECT * FROM c WHERE CONTAINS(c.a, 'x')"));
    assert_eq!(advice_json(&found), "[{\"Id\":\"QA1002\",\"Params\":[]}]");
}

#[test]
fn index_metrics_name_what_is_missing() {
    let ready = Ready { excluded: vec![IndexPath::of_names(&["b"])], ..Ready::default() };
    let metrics =
        index_metrics(&program("SELECT * FROM c WHERE c.b = 1"), &ready, &[IndexPath::of_names(&["pk"])]);
    assert_eq!(
        metrics.to_v1_json(),
        "{\"UtilizedSingleIndexes\":[{\"FilterExpression\":\"\",\"IndexSpec\":\"/pk/?\",\"FilterPreciseSet\":true,\
         \"IndexPreciseSet\":true,\"IndexImpactScore\":\"High\"}],\"PotentialSingleIndexes\":[{\"FilterExpression\":\"\",\
         \"IndexSpec\":\"/b/?\",\"FilterPreciseSet\":true,\"IndexPreciseSet\":true,\"IndexImpactScore\":\"High\"}],\
         \"UtilizedCompositeIndexes\":[],\"PotentialCompositeIndexes\":[]}"
    );
    let metrics = index_metrics(&program("SELECT * FROM c WHERE c.a = 1 ORDER BY c.t DESC"), &ready, &[]);
    assert_eq!(metrics.potential_composite, [["/a ASC", "/t DESC"]]);
    assert_eq!(metrics.utilized_single, ["/a/?", "/t/?"]);
}

/// A file of vectors that live beside the project, or none where they are not.
fn vector(name: &str) -> Option<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let text = std::fs::read_to_string(folder.join(name)).ok();
    if text.is_none() {
        println!("not run: {name} is not on this machine");
    }
    text
}

fn cdata(text: &str, tag: &str) -> Vec<String> {
    let (open, close) = (format!("<{tag}><![CDATA["), format!("]]></{tag}>"));
    text.split(&open).skip(1).filter_map(|rest| Some(rest.split_once(&close)?.0.to_owned())).collect()
}

#[test]
fn index_metrics_equal_the_recorded_ones() {
    for name in ["IndexUtilizationClientSideExistenceTest", "IndexUtilizationParse"] {
        let name = format!("nosql-dotnet-baselines/IndexMetricsParserBaselineTest.{name}.xml");
        let Some(text) = vector(&name) else { return };
        let (queries, expected) = (cdata(&text, "Query"), cdata(&text, "IndexMetric"));
        assert!(!queries.is_empty() && queries.len() == expected.len());
        for (query, expected) in queries.iter().zip(&expected) {
            assert_eq!(
                index_metrics(&program(query), &Ready::default(), &[]).to_v2_json(),
                *expected,
                "{query}"
            );
        }
    }
}

#[test]
fn advice_equals_the_recorded_one() {
    let name = "nosql-dotnet-baselines/QueryAdvisorBaselineTest.QueryAdviceParse.xml";
    let Some(text) = vector(name) else { return };
    let (queries, expected) = (cdata(&text, "Query"), cdata(&text, "QueryAdvice"));
    assert!(!queries.is_empty() && queries.len() == expected.len());
    for (query, expected) in queries.iter().zip(&expected) {
        let found: Vec<&str> = advice(&program(query)).iter().map(|advice| advice.id).collect();
        let expected: Vec<&str> = expected.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        assert_eq!(found, expected, "{query}");
    }
}

/// Every query of the corpus can be planned, and no item that has a row is missed.
#[test]
fn the_corpus_is_planned_without_loss() {
    let Some(corpus) = vector("nosql-sql-corpus/queries.jsonl") else { return };
    let docs: Vec<Doc> = [
        r#"{"id":"1","name":"a","age":30,"tags":["a","b"],"address":{"city":"x"},"children":[{"grade":5,"pets":[{"givenName":"f"}]}]}"#,
        r#"{"id":"2","name":null,"age":"old","tags":[],"children":[],"isRegistered":true,"lastName":"Wakefield"}"#,
    ]
    .map(document)
    .into();
    let mut planned = 0;
    for line in corpus.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("the corpus is JSON");
        let Some(text) = ["query", "sql", "text"].iter().find_map(|name| entry[*name].as_str()) else {
            continue;
        };
        let Ok(program) = crate::compile(text, &Parameters::default()) else { continue };
        let access = plan_access(&program, &Ready::default());
        let metrics = index_metrics(&program, &Ready::default(), &[]);
        for json in
            [explain(Some(&access), &Chosen::default()).json, metrics.to_v1_json(), metrics.to_v2_json()]
        {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&json);
            assert!(parsed.is_ok(), "{text}: {json}");
        }
        planned += 1;
        if program.needs_items()
            && program.first_stage().level.grouping.is_none()
            && program.code.earlier.is_empty()
        {
            for doc in &docs {
                let Ok(rows) = program.run_all([Row::plain(doc.as_ref())], &Context::at(0, 0)) else {
                    continue;
                };
                assert!(
                    rows.is_empty() || holds(&access.filter, &entries(doc)),
                    "{text}: {:?}",
                    access.filter
                );
            }
        }
    }
    assert!(planned > 100, "only {planned} queries of the corpus were planned");
}
