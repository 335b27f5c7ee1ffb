//! Small rules of the language whose answers were once others than the service's.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

use orrery_doc::{Doc, json};
use orrery_query::{Context, Parameters, QueryError, Row, advice, compile};

fn answer(query: &str, items: &[&str]) -> Result<String, QueryError> {
    let docs: Vec<Doc> = items.iter().map(|item| json::parse(item.as_bytes(), 128).unwrap()).collect();
    let rows = docs.iter().map(|doc| Row::plain(doc.as_ref()));
    let rows = compile(query, &Parameters::new())?.run_all(rows, &Context::at(0, 7))?;
    let mut out = Vec::new();
    rows.write_joined(&mut out);
    Ok(String::from_utf8(out).unwrap())
}

#[track_caller]
fn value(expr: &str, expected: &str) {
    let got = answer(&format!("SELECT VALUE {expr}"), &[]).unwrap_or_else(|error| format!("error: {error}"));
    assert_eq!(got, expected, "for {expr}");
}

const UNDEFINED: &str = "";

#[test]
fn a_subquery_of_a_query_without_from_has_no_container() {
    for text in [
        "SELECT VALUE EXISTS (SELECT 1 FROM root c WHERE c.id = 'there')",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM root)",
        "SELECT VALUE ARRAY(SELECT VALUE r.id FROM root r)",
        "SELECT VALUE ARRAY(SELECT VALUE c.id FROM c)",
        "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags)",
        "SELECT VALUE ARRAY(SELECT VALUE x FROM (SELECT VALUE r FROM root r) AS x)",
        "SELECT VALUE ARRAY(SELECT VALUE [n, r] FROM n IN [1, 2] JOIN r IN root.tags)",
        "SELECT VALUE n FROM n IN [1, 2] WHERE EXISTS (SELECT 1 FROM root)",
    ] {
        let error = answer(text, &[r#"{"id":"there"}"#]).unwrap_err();
        assert_eq!(error.sc_code(), Some(2001), "{text}: {error}");
    }
    let item = [r#"{"id":"there","tags":[1,2]}"#];
    for (text, rows) in [
        ("SELECT VALUE ARRAY(SELECT VALUE n FROM n IN [1, 2])", "[1,2]"),
        ("SELECT VALUE EXISTS (SELECT 1 FROM root r WHERE r.id = 'there') FROM c", "true"),
        ("SELECT VALUE x.id FROM (SELECT VALUE c FROM c) AS x", r#""there""#),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN root.tags) FROM root", "2"),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN x.tags) FROM (SELECT VALUE c FROM c) x", "2"),
    ] {
        assert_eq!(answer(text, &item).unwrap(), rows, "{text}");
    }
}

#[test]
fn date_times_with_an_offset_are_their_time_in_utc() {
    for (expr, expected) in [
        ("DateTimeToTimestamp('1998-05-04T15:30:10+01:30')", "894290410000"),
        ("DateTimeToTimestamp('1998-05-04T14:00:10Z')", "894290410000"),
        ("DateTimeToTimestamp('1998-05-04 12:30:10.0000000-01:30')", "894290410000"),
        ("DateTimeToTicks('2020-01-01T00:30:00.1234567+00:30')", "15778368001234567"),
        ("[YEAR('2020-01-01T00:30:00+01:00'), MONTH('2020-01-01T00:30:00+01:00')]", "[2019,12]"),
        ("DAY('2019-12-31T23:30:00-01:00')", "1"),
        ("DateTimePart('hh', '2020-01-01T20:00:00+14:00')", "6"),
        ("DateTimeAdd('dd', 1, '2020-01-01T00:30:00+01:00')", r#""2020-01-01T23:30:00.0000000Z""#),
        ("DateTimeDiff('hh', '2020-01-01T00:00:00+02:00', '2020-01-01T00:00:00Z')", "2"),
        ("DateTimeBin('2020-01-01T00:30:00+01:00', 'dd')", r#""2019-12-31T00:00:00.0000000Z""#),
        ("DateTimeFormat('2020-01-01T00:30:00+01:00', 'yyyy-MM-dd')", r#""2019-12-31""#),
        ("IS_DATETIME('2020-01-01T00:30:00-12:00')", "true"),
        ("IS_DATETIME('2020-01-01T00:30:00+15:00')", "false"),
        ("IS_DATETIME('2020-01-01T00:30:00+14:01')", "false"),
        ("IS_DATETIME('2020-01-01T00:30:00+01:60')", "false"),
        ("IS_DATETIME('2020-01-01T00:30:00+1:00')", "false"),
        ("IS_DATETIME('2020-01-01T00:30:00+01:00Z')", "false"),
        ("IS_DATETIME('2020-01-01+01:00')", "false"),
        ("IS_DATETIME('0001-01-01T00:30:00+01:00')", "false"),
    ] {
        value(expr, expected);
    }
}

#[test]
fn an_aggregate_of_a_subquery_may_be_over_what_a_subquery_makes() {
    let items = [r#"{"A":[{"N":[{"x":1},{"x":5}]},{"N":[{"x":2}]},{"N":[]}]}"#, r#"{"A":[{"N":[{"x":7}]}]}"#];
    for (aggregate, rows) in [
        ("SUM((SELECT VALUE MAX(n.x) FROM n IN a.N))", "7,7"),
        ("COUNT((SELECT VALUE n FROM n IN a.N))", "2,1"),
        ("MAX(ARRAY_LENGTH(ARRAY(SELECT VALUE n FROM n IN a.N)))", "2,1"),
    ] {
        let inner = format!("(SELECT VALUE {aggregate} FROM a IN c.A)");
        assert_eq!(answer(&format!("SELECT VALUE {inner} FROM c"), &items).unwrap(), rows, "{inner}");
        assert_eq!(
            answer(&format!("SELECT VALUE s FROM c JOIN {inner} s"), &items).unwrap(),
            rows,
            "{inner}"
        );
    }
    for text in [
        "SELECT VALUE MAX(MIN(c.x)) FROM c",
        "SELECT VALUE SUM((SELECT VALUE MAX(n.x) FROM n IN c.N)) FROM c",
        "SELECT VALUE (SELECT VALUE MAX(MIN(a.x)) FROM a IN c.A) FROM c",
        "SELECT COUNT(EXISTS(SELECT 1 FROM a IN c.A)) FROM c",
    ] {
        assert_eq!(answer(text, &items).unwrap_err().sc_code(), Some(2101), "{text}");
    }
}

#[test]
fn lists_of_wanted_values_follow_and_and_or() {
    for (expr, expected) in [
        ("ARRAY_CONTAINS_ANY([1, 2], undefined)", UNDEFINED),
        ("ARRAY_CONTAINS_ANY([1, 2], 5, undefined)", UNDEFINED),
        ("ARRAY_CONTAINS_ANY([1, 2], 1, undefined)", "true"),
        ("ARRAY_CONTAINS_ANY([1, 2], 5, 6)", "false"),
        ("ARRAY_CONTAINS_ALL([1, 2], undefined)", UNDEFINED),
        ("ARRAY_CONTAINS_ALL([1, 2], 1, undefined)", UNDEFINED),
        ("ARRAY_CONTAINS_ALL([1, 2], undefined, 5)", "false"),
        ("ARRAY_CONTAINS_ALL([1, 2], 2, 1)", "true"),
        ("ARRAY_CONTAINS_ALL(undefined, 1)", UNDEFINED),
        ("ARRAY_CONTAINS_ANY('ab', 'a')", UNDEFINED),
    ] {
        value(expr, expected);
    }
    for name in [
        "ARRAY_CONTAINS_ANY",
        "ARRAY_CONTAINS_ALL",
        "CONTAINS_ANY_CI",
        "CONTAINS_ALL_CI",
        "CONTAINS_ANY_CS",
        "CONTAINS_ALL_CS",
    ] {
        let error = answer(&format!("SELECT VALUE {name}(c.x) FROM c"), &[]).unwrap_err();
        assert_eq!(error.sc_code(), Some(2050), "{name}: {error}");
        assert_eq!(error.to_string(), format!("The {name} function requires at least 2 argument(s)."));
    }
}

#[test]
fn nan_and_infinity_are_numbers() {
    for (expr, expected) in [
        ("[IS_NUMBER(NaN), IS_NUMBER(Infinity), IS_FINITE_NUMBER(NaN)]", "[true,true,false]"),
        ("[1 < Infinity, 1 > -Infinity, 'a' < Infinity, Infinity = Infinity]", "[true,true,true]"),
        ("[IS_DEFINED(NaN), 1 = NaN, 1 != NaN]", "[true,false,true]"),
        ("{'NaN': 1, Infinity: 2}", r#"{"NaN":1,"Infinity":2}"#),
        ("{'NaN': 3}.NaN", "3"),
    ] {
        value(expr, expected);
    }
    let items = [r#"{"n":1,"Infinity":5}"#, r#"{"n":-7}"#, r#"{"n":"x"}"#, "{}"];
    for (text, rows) in [
        ("SELECT VALUE c.n FROM c WHERE c.n < Infinity", "1,-7"),
        ("SELECT VALUE c.n FROM c WHERE c.n > Infinity", ""),
        ("SELECT VALUE c.n FROM c WHERE c.n = NaN", ""),
        ("SELECT VALUE c.n FROM c WHERE c.n != NaN AND IS_NUMBER(c.n)", "1,-7"),
        ("SELECT VALUE c.Infinity FROM c", "5"),
    ] {
        assert_eq!(answer(text, &items).unwrap(), rows, "{text}");
    }
    let printed = |text: &str| {
        let query = orrery_query::parse::parse(text).unwrap();
        orrery_query::print::print(&query, orrery_query::print::Layout::Clauses)
    };
    assert!(printed("SELECT VALUE [NaN, Infinity, -Infinity]").contains("[NaN, Infinity, -Infinity]"));
    let error = answer("SELECT VALUE nan", &[]).unwrap_err();
    assert_eq!(error.sc_code(), Some(2001), "letter case counts: {error}");
}

#[test]
fn bits_are_those_of_the_number_without_its_fraction() {
    for (expr, expected) in [
        ("3.7 | 0", "3"),
        ("-3.7 | 0", "-3"),
        ("0 | 0.5", "0"),
        ("3.7 & 2.9", "2"),
        ("5.9 ^ 1", "4"),
        ("~1.5", "-2"),
        ("1.9 << 2.9", "4"),
        ("-9.5 >> 1", "-5"),
        ("-1.5 >>> 0", "4294967295"),
        ("4294967297 | 0", "1"),
        ("4294967297.5 | 0", "1"),
        ("1e300 | 0", "0"),
        ("NaN | 1", "1"),
        ("'3' | 0", UNDEFINED),
        ("undefined | 0", UNDEFINED),
    ] {
        value(expr, expected);
    }
}

#[test]
fn bins_begin_with_the_year_1601() {
    for (expr, expected) in [
        ("DateTimeBin('1600-12-31T23:59:59.9999999Z', 'dd')", UNDEFINED),
        ("DateTimeBin('0900-01-01', 'hh', 5)", UNDEFINED),
        ("DateTimeBin('2020-01-01', 'dd', 1, '1600-12-31')", UNDEFINED),
        ("DateTimeBin('1601-01-01T12:00:00Z', 'dd')", r#""1601-01-01T00:00:00.0000000Z""#),
        ("DateTimeBin('2020-01-03', 'dd', 1, '1601-01-01')", r#""2020-01-03T00:00:00.0000000Z""#),
        ("DateTimeBin('1601-06-01', 'yyyy', 1000)", UNDEFINED),
        ("DateTimePart('yyyy', '0900-01-01')", "900"),
    ] {
        value(expr, expected);
    }
}

#[test]
fn a_query_over_a_list_of_its_own_needs_no_items() {
    let item = r#"{"id":"a"}"#;
    for (text, rows) in [
        ("SELECT VALUE x FROM x IN [1, 2]", "1,2"),
        ("SELECT VALUE [x, y] FROM x IN [1, 2] JOIN y IN ['a', 'b'] WHERE y = 'b'", "[1,\"b\"],[2,\"b\"]"),
        ("SELECT VALUE x FROM (SELECT VALUE y FROM y IN [3, 4]) x", "3,4"),
        ("SELECT VALUE s.a FROM (SELECT 1 AS a) s", "1"),
        ("SELECT VALUE COUNT(1) FROM x IN [1, 2, 3]", "3"),
        ("SELECT DISTINCT VALUE x FROM x IN [1, 1, 2]", "1,2"),
        ("SELECT VALUE x FROM x IN [1, 2, 3] OFFSET 1 LIMIT 1", "2"),
    ] {
        assert!(!compile(text, &Parameters::new()).unwrap().needs_items(), "{text}");
        for items in [&[][..], &[item], &[item; 3]] {
            let found = answer(text, items).unwrap();
            assert_eq!(found, rows, "{text} over {} items", items.len());
        }
    }
    for text in ["SELECT VALUE c.id FROM c", "SELECT VALUE x.id FROM (SELECT VALUE c FROM c) x"] {
        assert!(compile(text, &Parameters::new()).unwrap().needs_items(), "{text}");
    }
}

#[test]
fn every_endswith_gets_its_advice() {
    for text in [
        "SELECT * FROM c WHERE ENDSWITH(c.s, 'x')",
        "SELECT * FROM c WHERE EndsWith(c.s, 'x', false)",
        "SELECT VALUE ENDSWITH(c.s, 'x', true) FROM c",
    ] {
        let found = advice(&compile(text, &Parameters::new()).unwrap());
        assert_eq!(found.iter().map(|advice| advice.id).collect::<Vec<_>>(), ["QA1004"], "{text}");
    }
}

#[test]
fn what_no_automaton_can_match_is_refused_by_name() {
    for (pattern, name) in [
        ("(?=x)y", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\\1", "back-reference"),
        (r"(?<n>a)\\k<n>", "back-reference"),
        ("(?>ab)c", "atomic group"),
        ("a(?#comment)b", "comment"),
        (r"\\Gab", r"\G"),
        ("(a)?(?(1)b|c)", "conditional group"),
    ] {
        let constant = format!("SELECT VALUE REGEXMATCH('ab', '{pattern}')");
        let late = format!("SELECT VALUE REGEXMATCH('ab', p) FROM p IN ['{pattern}']");
        for text in [constant, late] {
            let error = answer(&text, &["{}"]).unwrap_err();
            assert!(matches!(error, QueryError::Unsupported(_)), "{text}: {error:?}");
            assert!(error.to_string().contains(name) && error.to_string().contains("REGEXMATCH"), "{error}");
        }
    }
    // What only looks like it is taken as it is meant.
    value(r"REGEXMATCH('(?=', '\\(\\?=')", "true");
    value(r"REGEXMATCH('(?=', '[(][?]=')", "true");
    value(r"REGEXMATCH('aa', '(?<name>a)a')", "true");
    value(r"REGEXMATCH('a', '(a')", UNDEFINED);
}

#[test]
fn more_than_ten_calls_of_user_defined_functions_are_refused_with_their_code() {
    let calls = |n: usize| vec!["udf.f(c.x)"; n].join(", ");
    assert!(compile(&format!("SELECT {} FROM c", calls(10)), &Parameters::new()).is_ok());
    let text = format!("SELECT {} FROM c WHERE udf.g(c.y)", calls(10));
    let error = compile(&text, &Parameters::new()).unwrap_err();
    assert_eq!(error.sc_code(), Some(3005), "{error:?}");
    assert_eq!(
        error.to_string(),
        "The SQL query exceeded the maximum number of user-defined function calls. The allowed limit is 10."
    );
}
