//! The parser against texts that real clients send, and against noise.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod shared;

use orrery_query::ast::{Expr, SelectSpec};
use orrery_query::parse::{parse, parse_condition, parse_expression};
use orrery_query::print::{Layout, print};
use proptest::prelude::*;

/// What one text must do.
fn check(text: &str, expected: &str) {
    let got = match parse(text) {
        Ok(query) => print(&query, Layout::Line),
        Err(error) => error.to_json(),
    };
    assert_eq!(got, expected, "for {text}");
}

#[test]
fn canonical_text_has_every_operator_in_parentheses() {
    check("select * from c", "SELECT * FROM c");
    check("SELECT VALUE 1 + 2 * 3", "SELECT VALUE (1 + (2 * 3))");
    check("SELECT VALUE a.b[0]['x'] FROM a", "SELECT VALUE a.b[0][\"x\"] FROM a");
    check("SELECT VALUE NOT a = b", "SELECT VALUE ((NOT a) = b)");
    check("SELECT VALUE a ? b : c ? d : e", "SELECT VALUE (a ? b : (c ? d : e))");
    check("SELECT VALUE a AND b AND c OR d", "SELECT VALUE (((a AND b) AND c) OR d)");
    check("SELECT VALUE a || b = 'x'", "SELECT VALUE ((a || b) = \"x\")");
    check("SELECT VALUE -1 - -2 - - 3", "SELECT VALUE ((-1 - -2) - (- 3))");
    check(
        "SELECT VALUE a NOT IN (1,2) AND b BETWEEN 1 AND 2 AND c LIKE 'x%' ESCAPE '!'",
        concat!(
            "SELECT VALUE (((a NOT IN (1, 2)) AND (b BETWEEN 1 AND 2))",
            " AND (c LIKE \"x%\" ESCAPE \"!\"))"
        ),
    );
    check("SELECT VALUE 0x1F >>> 2", "SELECT VALUE (31 >>> 2)");
    check("SELECT VALUE [2., .0, -0.0, 1e3, 1e17, 0.5e-1]", "SELECT VALUE [2, 0, 0, 1000, 1e+17, 0.05]");
    check("SELECT udf.f(1), udf.g.h()", "SELECT udf.f(1), udf.g.h()");
    check("SELECT VALUE [1.5, 1e3, .25, 'a\\u00e9\\n']", "SELECT VALUE [1.5, 1000, 0.25, \"aé\\n\"]");
    check("SELECT VALUE x FROM (c) JOIN x IN (c.y['z'][0])", "SELECT VALUE x FROM c JOIN x IN c.y[\"z\"][0]");
    check("SELECT VALUE x FROM x IN ((SELECT c.y))", "SELECT VALUE x FROM x IN (SELECT c.y)");
    check("SELECT * FROM c -- all of it\nWHERE /* only */ c.x", "SELECT * FROM c WHERE c.x");
}

fn syntax_error(start: u32, end: u32, near: &str) -> String {
    format!(
        "{{\"errors\":[{{\"severity\":\"Error\",\"location\":{{\"start\":{start},\"end\":{end}}},\
         \"code\":\"SC1001\",\"message\":\"Syntax error, incorrect syntax near '{near}'.\"}}]}}"
    )
}

#[test]
fn aliases_need_no_as() {
    check("SELECT c.id x FROM c", "SELECT c.id AS x FROM c");
    check("SELECT TOP @n c.x y, c.z FROM c", "SELECT TOP @n c.x AS y, c.z FROM c");
    check("SELECT COUNT(1) count, MAX(c.n) AS n FROM c", "SELECT COUNT(1) AS count, MAX(c.n) AS n FROM c");
    check("SELECT c.a + 1 left, c['b'] last FROM c", "SELECT (c.a + 1) AS left, c[\"b\"] AS last FROM c");
    check("SELECT VALUE c.id x FROM c", "SELECT VALUE c.id FROM c");
    check("SELECT DISTINCT VALUE c.id AS x FROM c", "SELECT DISTINCT VALUE c.id FROM c");
    check(
        "SELECT ARRAY(SELECT VALUE t.x y FROM t IN c.l) l FROM c",
        "SELECT ARRAY(SELECT VALUE t.x FROM t IN c.l) AS l FROM c",
    );
    check("SELECT c.x y z FROM c", &syntax_error(13, 14, "z"));
    check("SELECT c.x from FROM c", &syntax_error(16, 20, "FROM"));
    check("SELECT * y FROM c", &syntax_error(9, 10, "y"));
    check("SELECT VALUE c.x AS FROM c", &syntax_error(20, 24, "FROM"));
}

#[test]
fn errors_count_in_utf16_units() {
    check("SELECT '😀' FROM FROM", &syntax_error(17, 21, "FROM"));
}

#[test]
fn reserved_words_are_no_names() {
    check("SELECT c.value FROM c", &syntax_error(9, 14, "value"));
    check("SELECT c.first, c.left FROM c AS all", "SELECT c.first, c.left FROM c AS all");
}

#[test]
fn a_patch_condition_is_a_query_without_select() {
    let query = parse_condition("from c where c.taskNum = 3").unwrap();
    assert_eq!(print(&query, Layout::Line), "SELECT * FROM c WHERE (c.taskNum = 3)");
    assert!(parse("from c where c.taskNum = 3").is_err());
    assert!(parse_condition("where c.taskNum = 3").is_err());
}

#[test]
fn nesting_ends_in_an_error_at_any_depth() {
    for unit in [
        "(",
        "[",
        "{'a':",
        "NOT ",
        "- ",
        "a.",
        "ABS(",
        "a ? ",
        "(SELECT VALUE ",
        "EXISTS(SELECT ",
        "1 + ",
        "c[",
        "1 IN (",
    ] {
        for depth in [50, 1_000, 20_000] {
            let text = format!("SELECT VALUE {}1", unit.repeat(depth));
            let _ = parse(&text);
        }
    }
    let balanced = |n: usize| format!("SELECT VALUE {}1{}", "(".repeat(n), ")".repeat(n));
    assert!(parse(&balanced(100)).is_ok());
    assert_eq!(parse(&balanced(100_000)).unwrap_err().sc_code(), Some(1020));
    // Chains in parentheses on the left make a tree that is much taller than the recursion.
    let mut text = String::from("1");
    for _ in 0..20 {
        text = format!("({text}{})", " + 1".repeat(20));
    }
    assert_eq!(parse(&format!("SELECT VALUE {text}")).unwrap_err().sc_code(), Some(1020));
}

#[test]
fn long_chains_of_and_and_or_are_flat() {
    for word in [" OR ", " AND "] {
        let text = format!("SELECT * FROM c WHERE {}", vec!["c.a = 1"; 20_000].join(word));
        let query = parse(&text).unwrap();
        assert_eq!(parse(&print(&query, Layout::Clauses)).unwrap(), query);
    }
}

#[test]
fn limits_are_kept() {
    assert!(parse(&format!("SELECT '{}'", "x".repeat(600 * 1024))).is_err());
    let joins = |n: usize| format!("SELECT VALUE 1 FROM c{}", " JOIN x IN c.x".repeat(n));
    assert!(parse(&joins(10)).is_ok());
    assert!(parse(&joins(11)).is_err());
    assert_eq!(parse("SELECT TOP 4294967296 * FROM c").unwrap_err().sc_code(), Some(2060));
    assert_eq!(parse("SELECT * FROM c OFFSET 4294967296 LIMIT 1").unwrap_err().sc_code(), Some(2062));
    assert_eq!(parse("SELECT * FROM c OFFSET 1 LIMIT 4294967296").unwrap_err().sc_code(), Some(2061));
}

#[test]
fn every_query_of_the_corpus_parses() {
    let Some(corpus) = shared::vector("nosql-sql-corpus/queries.jsonl") else { return };
    let (mut failures, mut fragments) = (Vec::new(), 0);
    for line in corpus.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = case["query"].as_str().unwrap();
        if text.matches(')').count() > text.matches('(').count() {
            // One line of the corpus is the inner part of a subquery, cut out with its closing end.
            fragments += 1;
            continue;
        }
        match parse(text) {
            Ok(query) => assert_eq!(parse(&print(&query, Layout::Clauses)).unwrap(), query, "{text}"),
            Err(error) => failures.push(format!("{}: {text}\n    {error}", case["source"])),
        }
    }
    println!(
        "{} queries, {fragments} are fragments, {} do not parse",
        corpus.lines().count(),
        failures.len()
    );
    assert!(fragments <= 1);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_recorded_parser_baselines_agree() {
    // That printer puts in the default direction and odd spaces; the service's own does not.
    let squeeze = |text: &str| text.replace(" ASC", "").split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut cases, mut failures) = (0, Vec::new());
    for (name, xml) in shared::vector_files("nosql-dotnet-baselines", "SqlParserBaselineTests") {
        // That parser keeps escape sequences as they are; the service, and we, decode them.
        let escapes_kept = name.contains("StringLiteral");
        for result in xml.split("<Result>").skip(1) {
            let text = shared::cdata(result, "Query").unwrap();
            cases += 1;
            match (parse(text), shared::cdata(result, "ParsedQuery")) {
                (Ok(_), Some(_)) if escapes_kept => {}
                (Ok(query), Some(expected)) => {
                    let printed = print(&query, Layout::Line);
                    if squeeze(&printed) != squeeze(expected) {
                        failures.push(format!("{name}: {text}\n  got  {printed}\n  want {expected}"));
                    }
                }
                (Err(error), Some(_)) => failures.push(format!("{name}: {text}\n  refused: {error}")),
                (Ok(_), None) => failures.push(format!("{name}: {text}\n  accepted")),
                (Err(_), None) => {}
            }
        }
    }
    println!("{cases} parser baselines, {} differ", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_recorded_canonical_texts_print_as_they_are() {
    let (mut cases, mut failures) = (0, Vec::new());
    for (name, xml) in shared::vector_files("nosql-dotnet-baselines", "SqlObjectVisitorBaselineTests") {
        // Those are clauses, with names that no text could have.
        if name.contains("SqlQueries") {
            continue;
        }
        for result in xml.split("<Result>").skip(1) {
            let text = shared::cdata(result, "TextOutput").unwrap();
            if ["NaN", "-Infinity"].contains(&text) {
                // Numbers of that library which the language cannot say.
                continue;
            }
            cases += 1;
            match parse_expression(text) {
                Ok(expr) => {
                    let printed = print_expression_line(&expr);
                    if !printed.eq_ignore_ascii_case(text) {
                        failures.push(format!("{text} is printed as {printed}"));
                    }
                }
                Err(error) => failures.push(format!("{text}: {error}")),
            }
        }
    }
    println!("{cases} canonical texts, {} differ", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// An expression as part of a query on one line.
fn print_expression_line(expr: &Expr) -> String {
    let mut query = parse("SELECT VALUE 1").unwrap();
    query.select.spec = SelectSpec::Value(Box::new(expr.clone()));
    print(&query, Layout::Line).trim_start_matches("SELECT VALUE ").to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn random_words_never_panic_and_print_to_the_same_tree(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..40)
    ) {
        let text = format!("SELECT VALUE {}", words.join(" "));
        if let Ok(query) = parse(&text) {
            for layout in [Layout::Line, Layout::Clauses] {
                let printed = print(&query, layout);
                prop_assert_eq!(parse(&printed).expect("printed text parses"), query.clone(), "{}", printed);
            }
        }
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "VALUE",
    "FROM",
    "WHERE",
    "c",
    "x",
    "JOIN",
    "IN",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "?",
    "??",
    "+",
    "-",
    "*",
    "/",
    "%",
    "~",
    "&",
    "|",
    "^",
    "||",
    "<<",
    ">>",
    ">>>",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "NOT",
    "AND",
    "OR",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "'a'",
    "\"b\"",
    "1",
    "2.5",
    "-3",
    "1e-7",
    "0xff",
    "@p",
    "true",
    "null",
    "undefined",
    "udf.f(",
    "ABS(",
    "EXISTS(SELECT",
    "ARRAY(SELECT VALUE",
    "GROUP BY",
    "ORDER BY",
    "ASC",
    "DESC",
    "OFFSET 1 LIMIT 2",
    "TOP 3",
    "DISTINCT",
    "AS",
    "LEFT(",
    "c.x",
    "c[0]",
    "c['k']",
];

#[test]
fn a_comment_that_never_ends_is_refused() {
    assert!(orrery_query::parse::parse("SELECT * FROM c /* closed */").is_ok());
    for text in ["SELECT * FROM c /* open", "SELECT 1 /*", "/* SELECT 1"] {
        assert!(orrery_query::parse::parse(text).is_err(), "{text}");
    }
}
