//! Work and memory are bounded, whatever is asked for.

use std::time::{Duration, Instant};

use orrery_doc::Doc;
use orrery_query::{Context, Features, Parameters, QueryError, Room, Row, Rows, Run, compile, describe};

use crate::{definition, doc};

/// A query that must answer or be refused within a time that only a blow-up would exceed. The bound
/// is generous, for slow machines and builds without optimisation.
fn soon(name: &str, query: &str, parameters: &str, item: &Doc) -> Result<Rows, QueryError> {
    let parameters = Parameters::from_value(doc(parameters).root()).unwrap();
    let start = Instant::now();
    let answer = compile(query, &parameters).and_then(|program| {
        let mut out = Rows::default();
        let cx = Context::at(0, 0);
        let mut run = Run::start(&program, &cx, Room { rows: 100, bytes: 4 << 20 }, None)?;
        run.feed(&Row::plain(item.as_ref()), &mut out)?;
        run.finish(&mut out)?;
        Ok(out)
    });
    let time = start.elapsed();
    let answered =
        answer.as_ref().map_or_else(|error| error.to_string(), |rows| format!("{} rows", rows.len()));
    println!("{name}: {time:?}, {answered}");
    assert!(time < Duration::from_secs(120), "{name} takes {time:?}");
    answer
}

#[test]
fn hostile_patterns_and_texts_end_soon() {
    let item = doc(&format!(r#"{{"s":"{}"}}"#, "a".repeat(500_000)));
    let pattern = |text: &str| format!(r#"[{{"name":"@p","value":"{text}"}}]"#);
    for (name, query, parameter) in [
        ("long text", "SELECT VALUE c.s LIKE @p FROM c", format!("%{}b%", "a".repeat(100_000))),
        ("many runs", "SELECT VALUE c.s LIKE @p FROM c", format!("{}b", "%a".repeat(100_000))),
        ("wild text", "SELECT VALUE c.s LIKE @p FROM c", format!("%{}_b%", "a".repeat(100))),
        ("long wild text", "SELECT VALUE c.s LIKE @p FROM c", format!("%{}_b%", "a".repeat(10_000))),
        ("large class", "SELECT VALUE c.s LIKE @p FROM c", format!("%[^{}]%", "bcdefg".repeat(20_000))),
        ("late pattern", "SELECT VALUE c.s LIKE c.s FROM c", String::new()),
        ("open classes", "SELECT VALUE c.s LIKE @p FROM c", "[".repeat(400_000)),
        ("late open classes", "SELECT VALUE 'a' LIKE c.s FROM c", "[".repeat(400_000)),
        ("states", "SELECT VALUE REGEXMATCH(c.s, @p) FROM c", "(a|b)*a(a|b){500}c".into()),
        ("nested stars", "SELECT VALUE REGEXMATCH(c.s, @p) FROM c", "(a*)*(a*)*b".into()),
        ("backtracking", "SELECT VALUE REGEXMATCH(c.s, @p) FROM c", "(a+a+)+b".into()),
        ("large regex", "SELECT VALUE REGEXMATCH(c.s, @p) FROM c", "(a{500}){500}".into()),
        ("regex of the item", "SELECT VALUE REGEXMATCH(c.s, c.s) FROM c", String::new()),
        ("contains", "SELECT VALUE CONTAINS(c.s, @p) FROM c", format!("{}b", "a".repeat(100_000))),
        ("replace", "SELECT VALUE REPLACE(c.s, 'a', @p) FROM c", "b".repeat(100_000)),
        ("trim", "SELECT VALUE TRIM(c.s, @p) FROM c", format!("{}a", "bcdefghi".repeat(20_000))),
        ("split", "SELECT VALUE ARRAY_LENGTH(STRINGSPLIT(c.s, 'a')) FROM c", String::new()),
    ] {
        let _ = soon(name, query, &pattern(&parameter), &item);
    }
}

#[test]
fn loops_over_loops_end_soon() {
    let numbers = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let item = doc(&format!(r#"{{"l":[{}],"s":"{}"}}"#, numbers(3_000), "b".repeat(100_000)));
    let list = format!(r#"[{{"name":"@l","value":[{}]}}]"#, numbers(3_000));
    for (name, query) in [
        ("joins", "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l"),
        (
            "nested subqueries",
            "SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE [a, b] FROM b IN c.l) FROM a IN c.l) FROM c",
        ),
        (
            "array contains",
            "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN @l WHERE ARRAY_CONTAINS(@l, a + 0.5)",
        ),
        ("text in loops", "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN @l WHERE CONTAINS(c.s, 'x')"),
        ("like in loops", "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN @l WHERE c.s LIKE '%x'"),
        (
            "regex in loops",
            "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN @l WHERE REGEXMATCH('abc', TOSTRING(a))",
        ),
        ("equality in loops", "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN @l WHERE c.l = @l"),
        ("copies in loops", "SELECT VALUE ARRAY(SELECT VALUE CONCAT(c.s, c.s) FROM a IN c.l) FROM c"),
        (
            "json in loops",
            "SELECT VALUE ARRAY(SELECT VALUE STRINGTOARRAY(TOSTRING(c.l)) FROM a IN c.l) FROM c",
        ),
        ("slices in loops", "SELECT VALUE ARRAY(SELECT VALUE ARRAY_CONCAT(c.l, c.l) FROM a IN c.l) FROM c"),
        (
            "groups in loops",
            "SELECT VALUE ARRAY(SELECT b, COUNT(1) FROM a IN c.l JOIN b IN c.l GROUP BY b) FROM c",
        ),
        (
            "sort in loops",
            "SELECT VALUE ARRAY(SELECT VALUE ARRAY(SELECT VALUE b FROM b IN c.l ORDER BY b DESC) FROM a IN c.l) FROM c",
        ),
    ] {
        let _ = soon(name, query, &list, &item);
    }
}

#[test]
fn values_that_hold_themselves_twice_are_refused() {
    let item = doc(r#"{"id":"1","a":[1]}"#);
    let nested = (0..40)
        .fold("c".to_owned(), |inner, i| format!("(SELECT VALUE [x{i}, x{i}] FROM x{i} IN [{inner}])"));
    let concat = (0..40).fold("'text'".to_owned(), |inner, i| {
        format!("(SELECT VALUE CONCAT(x{i}, x{i}) FROM x{i} IN [{inner}])")
    });
    let lists = (0..40).fold("[1]".to_owned(), |inner, i| {
        format!("(SELECT VALUE ARRAY_CONCAT(x{i}, x{i}) FROM x{i} IN [{inner}])")
    });
    for (name, expr) in [("arrays", nested), ("texts", concat), ("lists", lists)] {
        let answer = soon(name, &format!("SELECT VALUE {expr} FROM c"), "[]", &item);
        let small = answer.map_or(true, |rows| rows.byte_len() < 1_000);
        assert!(small, "{name} grow without bound");
    }
}

#[test]
fn rows_that_are_too_long_are_refused() {
    let item = doc(&format!(r#"{{"s":"{}"}}"#, "a".repeat(1_000_000)));
    let copies = vec!["c"; 80].join(",");
    for query in [
        format!("SELECT VALUE [{copies}] FROM c"),
        format!("SELECT DISTINCT VALUE [{copies}] FROM c"),
        format!("SELECT VALUE [{copies}] FROM c ORDER BY c.id"),
        format!("SELECT VALUE MAKELIST([{copies}]) FROM c"),
    ] {
        let error = soon("long rows", &query, "[]", &item).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }
    let few = soon("rows", "SELECT VALUE [c, c, c] FROM c", "[]", &item).unwrap();
    assert!(few.byte_len() > 3_000_000);
}

#[test]
fn wide_queries_end_soon() {
    let item = doc(r#"{"id":"1","a":1}"#);
    let many = |n: usize, unit: &dyn Fn(usize) -> String, joint: &str| {
        (0..n).map(unit).collect::<Vec<_>>().join(joint)
    };
    for (name, query) in [
        ("properties", format!("SELECT VALUE {{{}}} FROM c", many(40_000, &|i| format!("'p{i}':1"), ","))),
        (
            "members",
            format!(
                "SELECT VALUE [{}] FROM c JOIN (SELECT VALUE {{{}}}) AS x",
                many(12_000, &|i| format!("x.p{i}"), ","),
                many(12_000, &|i| format!("'p{i}':c"), ",")
            ),
        ),
        ("same property", format!("SELECT VALUE {{{}}} FROM c", many(40_000, &|_| "'p':1".into(), ","))),
        ("columns", format!("SELECT {} FROM c", many(20_000, &|i| format!("c.a AS p{i}"), ","))),
        ("elements", format!("SELECT VALUE [{}] FROM c", many(100_000, &|_| "c.a".into(), ","))),
        (
            "alternatives",
            format!("SELECT * FROM c WHERE {}", many(30_000, &|i| format!("c.a = {i}"), " OR ")),
        ),
        (
            "differences",
            format!("SELECT * FROM c WHERE {}", many(30_000, &|i| format!("c.a != {i}"), " AND ")),
        ),
        ("open comments", format!("SELECT {}", many(160_000, &|_| "/*".into(), " "))),
        ("not grouped", format!("SELECT {} FROM c GROUP BY c.b", many(60_000, &|i| format!("c.a{i}"), ","))),
        ("list", format!("SELECT * FROM c WHERE c.a IN ({})", many(60_000, &|i| format!("{i}"), ","))),
        ("keys", format!("SELECT * FROM c WHERE c.pk IN ({})", many(60_000, &|i| format!("{i}"), ","))),
        (
            "group keys",
            format!("SELECT COUNT(1) FROM c GROUP BY {}", many(3_000, &|i| format!("c.a{i}"), ",")),
        ),
        ("aggregates", format!("SELECT {} FROM c", many(5_000, &|i| format!("SUM(c.a{i})"), ","))),
        ("order", format!("SELECT * FROM c ORDER BY {}", many(3_000, &|i| format!("c.a{i}"), ","))),
        ("arguments", format!("SELECT VALUE CONCAT({}) FROM c", many(50_000, &|_| "'a'".into(), ","))),
        (
            "texts",
            format!("SELECT VALUE CONTAINS_ANY_CI('b', {}) FROM c", many(50_000, &|_| "'a'".into(), ",")),
        ),
    ] {
        let start = Instant::now();
        let _ = describe(&query, &Parameters::new(), &definition(), &Features::all());
        println!("{name}: plan {:?}", start.elapsed());
        let _ = soon(name, &query, "[]", &item);
        assert!(start.elapsed() < Duration::from_secs(120), "{name}");
    }
}

#[test]
fn only_the_first_findings_are_told() {
    let items = (0..1_000).map(|i| format!("c.a{i}")).collect::<Vec<_>>().join(",");
    let query = format!("SELECT {items} FROM c GROUP BY c.b");
    let Err(QueryError::Invalid(list)) = compile(&query, &Parameters::new()) else { panic!("it is wrong") };
    assert_eq!(list.len(), 20);
}

#[test]
fn patterns_that_are_too_long_are_refused() {
    let item = doc(r#"{"s":"a"}"#);
    let parameters = format!(r#"[{{"name":"@p","value":"{}"}}]"#, "a".repeat(600_000));
    for query in ["SELECT VALUE c.s LIKE @p FROM c", "SELECT VALUE c.s LIKE CONCAT(@p, c.s) FROM c"] {
        let error = soon("long patterns", query, &parameters, &item).unwrap_err();
        assert!(error.to_string().contains("pattern of a LIKE is too long"), "{error}");
    }
}

/// What is held of rows counts, whatever it is held for.
#[test]
fn values_kept_of_many_rows_are_bounded() {
    let text = "a".repeat(1_000_000);
    let items: Vec<Doc> = (0..30)
        .map(|i| (i * 10..i * 10 + 10).map(|n| n.to_string()).collect::<Vec<_>>().join(","))
        .map(|numbers| doc(&format!(r#"{{"l":[{numbers}],"s":"{text}"}}"#)))
        .collect();
    for (query, words) in [
        ("SELECT VALUE l FROM c JOIN l IN c.l ORDER BY c.s, c.l[0]", "ORDER BY needs too much memory"),
        ("SELECT l, MIN(c.s) FROM c JOIN l IN c.l GROUP BY l", "need too much memory"),
        ("SELECT l, MAX(c.s) FROM c JOIN l IN c.l GROUP BY l", "need too much memory"),
    ] {
        let program = compile(query, &Parameters::new()).unwrap();
        let cx = Context::at(0, 0);
        let mut run = Run::start(&program, &cx, Room { rows: 1_000_000, bytes: 4 << 20 }, None).unwrap();
        let fed = items
            .iter()
            .try_for_each(|item| run.feed(&Row::plain(item.as_ref()), &mut Rows::default()).map(|_| ()));
        let error = fed.unwrap_err();
        assert!(error.to_string().contains(words), "{query}: {error}");
    }
}

/// Each of these would do far more than the work that one item is worth.
#[test]
fn work_of_operators_is_bounded() {
    let numbers = (0..1_000).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let text = "a".repeat(200_000);
    let item = doc(&format!(r#"{{"l":[{numbers}],"x":1,"y":2,"s":"{text}","t":"{text}","u":"{text}b"}}"#));
    let many = |unit: &str, joint: &str| vec![unit; 40_000].join(joint);
    let tree = (0..14).fold("c.x".to_owned(), |inner, _| format!("({inner} + {inner})"));
    let parameters = r#"[{"name":"@p","value":"(a|b)*a(a|b){500}c"}]"#;
    for (name, filter) in [
        ("list", format!("c.x IN ({})", many("c.y", ","))),
        ("conjunction", many("c.x", " AND ")),
        ("disjunction", many("c.x", " OR ")),
        ("sums", format!("{tree} = 1")),
        ("texts", "c.s != c.t".to_owned()),
        ("order of texts", "c.s > c.u".to_owned()),
        ("between", "c.s BETWEEN c.t AND c.u".to_owned()),
        ("listed texts", "c.u IN (c.s, c.t)".to_owned()),
        ("slow regex", "REGEXMATCH(c.s, @p)".to_owned()),
    ] {
        let query = format!("SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l WHERE {filter}");
        let error = soon(name, &query, parameters, &item).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("too much work") || words.contains("too costly"), "{name}: {error}");
    }
    for (name, query) in [
        ("sorted texts", "SELECT VALUE a FROM c JOIN a IN c.l JOIN b IN c.l ORDER BY c.s"),
        ("distinct items", "SELECT DISTINCT VALUE c FROM c JOIN a IN c.l JOIN b IN c.l"),
        ("sets", "SELECT VALUE MAKESET(c) FROM c JOIN a IN c.l JOIN b IN c.l"),
        ("groups", "SELECT COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l GROUP BY c"),
    ] {
        let error = soon(name, query, "[]", &item).unwrap_err();
        assert!(error.to_string().contains("too much"), "{name}: {error}");
    }
}
