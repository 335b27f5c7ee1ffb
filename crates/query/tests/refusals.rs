//! What the service refuses: every finding, with its code, its words and its place in the text.
//!
//! Codes, words, places and their order are those of the baselines of the .NET SDK.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

use orrery_doc::{PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path};
use orrery_query::{Code, Features, Parameters, QueryError, compile, describe};

fn plan_error(text: &str) -> QueryError {
    let paths = vec![Path::parse_property("/pk").unwrap()];
    let def = PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths };
    describe(text, &Parameters::new(), &def, &Features::all()).expect_err(text)
}

/// Code and text of each finding.
fn findings<'t>(text: &'t str, error: &QueryError) -> Vec<(u16, &'t str)> {
    let QueryError::Invalid(list) = error else { panic!("{text}: {error:?}") };
    list.iter()
        .map(|finding| match (finding.code, finding.location) {
            (Code::Sc(code), Some(span)) => (code, span.text(text)),
            (Code::Number(code), None) => (code, ""),
            other => panic!("{text}: {other:?}"),
        })
        .collect()
}

#[track_caller]
fn refused(text: &str, expected: &[(u16, &str)]) {
    assert_eq!(findings(text, &plan_error(text)), expected, "{text}");
}

#[test]
fn clauses_of_subqueries_are_all_told_from_the_inside_out() {
    refused(
        "SELECT VALUE r FROM (SELECT DISTINCT TOP 8 VALUE c.x FROM c ORDER BY c.x DESC, c.y OFFSET 1 LIMIT 2) r",
        &[(2202, "ORDER BY c.x DESC, c.y"), (2203, "TOP 8"), (2204, "OFFSET 1 LIMIT 2")],
    );
    refused(
        "SELECT VALUE b FROM (SELECT TOP 3 VALUE a FROM (SELECT TOP 4 VALUE c FROM c) a) b WHERE b.x > 1",
        &[(2203, "TOP 4"), (2203, "TOP 3")],
    );
    refused(
        "SELECT VALUE [v, w] FROM c JOIN (SELECT VALUE ARRAY(SELECT TOP 1 VALUE t FROM t IN c.t)) v \
         JOIN (SELECT VALUE EXISTS(SELECT VALUE u FROM u IN c.u ORDER BY u)) w",
        &[(2203, "TOP 1"), (2202, "ORDER BY u")],
    );
}

#[test]
fn refusals_of_order_by_rank() {
    refused(
        "SELECT VALUE d FROM c JOIN d IN c.ds ORDER BY RANK FullTextScore(c.t, 'a')",
        &[(2224, "c JOIN d IN c.ds"), (2223, "d IN c.ds")],
    );
    refused(
        "SELECT * FROM (SELECT TOP 1 VALUE c FROM c) AS r ORDER BY RANK FullTextScore(r.t, 'a')",
        &[(2225, "(SELECT TOP 1 VALUE c FROM c)"), (2203, "TOP 1")],
    );
    refused(
        "SELECT VALUE r FROM (SELECT VALUE c FROM c ORDER BY RANK FullTextScore(c.t, 'a')) r",
        &[(2228, "ORDER BY RANK FullTextScore(c.t, 'a')")],
    );
    refused(
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'))",
        &[(2221, "ORDER BY RANK RRF(FullTextScore(c.t, 'a'))")],
    );
    refused(
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), [1])",
        &[(2229, "ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), [1])")],
    );
    for direction in ["ASC", "DESC"] {
        let order = format!("ORDER BY RANK FullTextScore(c.t, 'a') {direction}");
        refused(&format!("SELECT TOP 1 * FROM c {order}"), &[(2222, order.as_str())]);
    }
    refused(
        "SELECT * FROM c WHERE RRF(FullTextScore(c.t, 'a'), 1) > 0",
        &[(2240, "FullTextScore(c.t, 'a')"), (2005, "RRF")],
    );
}

#[test]
fn the_words_are_those_of_the_service() {
    for (text, words) in [
        (
            "SELECT VALUE r FROM (SELECT VALUE c FROM c OFFSET 1 LIMIT 3) AS r",
            "'OFFSET LIMIT' clause is not supported in subqueries.",
        ),
        ("SELECT VALUE r FROM (SELECT TOP 3 VALUE c FROM c) AS r", "'TOP' is not supported in subqueries."),
        (
            "SELECT VALUE r FROM (SELECT VALUE c FROM c ORDER BY c.x) AS r",
            "'ORDER BY' is not supported in subqueries.",
        ),
        (
            "SELECT VALUE VectorDistance(c.v, [1], true, {'searchListSizeMultiplier': -100}) FROM c",
            "The 'searchListSizeMultiplier' value -100 specified in the VectorDistance function is outside the \
             supported range. The value must be between 1 and 100.",
        ),
        (
            "SELECT * FROM c ORDER BY RANK LOWER(c.t)",
            "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.",
        ),
        (
            "SELECT VALUE c.t[c.n] FROM c",
            "The specified query includes 'member indexer' which is currently not supported.",
        ),
    ] {
        assert_eq!(plan_error(text).to_string(), words, "{text}");
    }
}

#[test]
fn findings_of_all_clauses_are_told() {
    let text = "SELECT x.a, NOFUNC(c.b), LOWER() FROM c WHERE y.z = NONE(c.t[c.n]) AND ABS(1, 2) = 1";
    let all = [
        (2001, "y"),
        (2990, "c.t[c.n]"),
        (2005, "NONE"),
        (2050, "ABS(1, 2)"),
        (2001, "x"),
        (2005, "NOFUNC"),
        (2050, "LOWER()"),
    ];
    assert_eq!(findings(text, &compile(text, &Parameters::new()).unwrap_err()), all);
    refused(text, &all);
    refused(
        "SELECT * FROM c JOIN (SELECT * FROM d JOIN e IN d.e) f WHERE BAD(1)",
        &[(2001, "d"), (2042, "*"), (2005, "BAD"), (2042, "*")],
    );
    let many = vec!["NOFUNC(1)"; 100].join(", ");
    let error = compile(&format!("SELECT {many} FROM c"), &Parameters::new()).unwrap_err();
    assert!(matches!(&error, QueryError::Invalid(list) if list.len() == 20), "{error:?}");
}

#[test]
fn an_index_must_not_depend_on_the_item() {
    for (text, part) in [
        ("SELECT VALUE c.tags[c.n] FROM c", "c.tags[c.n]"),
        ("SELECT VALUE @list[c.n % 2] FROM c", "@list[c.n % 2]"),
        ("SELECT VALUE [1, 2, 3][c.x] FROM c WHERE c.x >= 0", "[1, 2, 3][c.x]"),
        ("SELECT VALUE c[c.name].x FROM c", "c[c.name]"),
        (
            "SELECT * FROM c WHERE c.a[(SELECT VALUE COUNT(1) FROM t IN c.t)] = 1",
            "c.a[(SELECT VALUE COUNT(1) FROM t IN c.t)]",
        ),
    ] {
        let error = compile(text, &Parameters::new()).expect_err(text);
        assert_eq!(findings(text, &error), [(2990, part)], "{text}");
    }
    for text in [
        "SELECT VALUE c.tags[@n] FROM c",
        "SELECT VALUE c.tags[1 + 1] FROM c",
        "SELECT VALUE c[LOWER('X')] FROM c",
        "SELECT VALUE [c.a, c.b][@n % 2] FROM c",
        "SELECT VALUE c['a']['b'] FROM c",
    ] {
        assert!(compile(text, &Parameters::new()).is_ok(), "{text}");
    }
}

#[test]
fn an_order_needs_a_path_also_within_one_partition() {
    const UNMAPPED: &str =
        "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.";
    const CORRELATED: &str = "Order-by over correlated collections is not supported.";
    for (text, words) in [
        ("SELECT * FROM c ORDER BY LOWER(c.x)", UNMAPPED),
        ("SELECT * FROM c ORDER BY c.x + 1, c.y", UNMAPPED),
        ("SELECT * FROM c ORDER BY 1", UNMAPPED),
        ("SELECT * FROM c ORDER BY udf.f(c.x)", UNMAPPED),
        ("SELECT VALUE c FROM c JOIN (SELECT VALUE COUNT(1) FROM t IN c.t) AS n ORDER BY n", UNMAPPED),
        (
            "SELECT VALUE c FROM c JOIN (SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.t)) AS v ORDER BY v[0]",
            UNMAPPED,
        ),
        ("SELECT VALUE r FROM (SELECT VALUE {'a': c.a, 'n': ABS(c.n)} FROM c) AS r ORDER BY r.n", UNMAPPED),
        ("SELECT VALUE r FROM (SELECT c.a, c.b FROM c) AS r ORDER BY r.missing", UNMAPPED),
        ("SELECT VALUE t FROM c JOIN t IN c.t ORDER BY t", CORRELATED),
        ("SELECT VALUE t FROM c JOIN t IN c.t ORDER BY c.x, t.y", CORRELATED),
        (
            "SELECT DISTINCT VALUE v FROM c JOIN (SELECT DISTINCT VALUE t FROM c JOIN t IN c.t) AS v ORDER BY v",
            CORRELATED,
        ),
        ("SELECT VALUE v FROM c JOIN (SELECT VALUE t.x FROM t IN c.t) AS v ORDER BY v", CORRELATED),
    ] {
        let error = compile(text, &Parameters::new()).expect_err(text);
        assert_eq!(error.to_string(), words, "{text}");
        let json = format!(r#"{{"errors":[{{"severity":"Error","code":2206,"message":"{words}"}}]}}"#);
        assert_eq!(error.to_json(), json);
    }
    for text in [
        "SELECT * FROM c ORDER BY c.x.y[0]['z'] DESC, c.w",
        "SELECT * FROM c ORDER BY c",
        "SELECT VALUE t FROM c JOIN t IN c.t ORDER BY c.x",
        "SELECT VALUE r FROM (SELECT VALUE {'a': c.a, 'n': ABS(c.n)} FROM c) AS r ORDER BY r.a",
        "SELECT VALUE r FROM (SELECT c.a AS x FROM c) AS r ORDER BY r.x",
        "SELECT VALUE r FROM (SELECT DISTINCT VALUE c.n FROM c) AS r ORDER BY r",
        "SELECT VALUE a FROM c JOIN c.x AS a ORDER BY a.b",
        "SELECT c.x, COUNT(1) AS n FROM c GROUP BY c.x",
    ] {
        assert!(compile(text, &Parameters::new()).is_ok(), "{text}");
    }
}

/// Each level doubles the object; what is known of it must not.
#[test]
fn origins_are_found_soon_in_objects_of_objects() {
    let mut rows = "(SELECT VALUE {'a': c.x, 'b': c.x} FROM c) AS r0".to_owned();
    for i in 0..40 {
        rows = format!("(SELECT VALUE {{'a': r{i}, 'b': r{i}}} FROM {rows}) AS r{}", i + 1);
    }
    let began = std::time::Instant::now();
    let path = ".a".repeat(41);
    let order =
        |path: &str| compile(&format!("SELECT VALUE r40 FROM {rows} ORDER BY r40{path}"), &Parameters::new());
    assert!(order(&path).is_ok(), "{:?}", order(&path).err());
    assert!(order(".a").is_err() && order(&format!("{path}.a.b")).is_ok());
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "it took {:?}", began.elapsed());
}
