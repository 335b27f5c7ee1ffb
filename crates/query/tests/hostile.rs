//! Noise, malice and bad luck: whatever the text, the parameters and the items, the language answers
//! or refuses, soon, and within a bounded memory and stack.
//!
//! Every run uses the same seed, so that a failure in CI can be had again; `ORRERY_FUZZ_SEED` and
//! `ORRERY_FUZZ_ROUNDS` ask for other runs and longer ones.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod shared;

use std::time::{Duration, Instant};

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::parse::parse;
use orrery_query::print::{Layout, print};
use orrery_query::{
    Context, Features, Geospatial, Parameters, QueryError, Room, Row, Rows, Run, compile, describe,
};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn new(test: &str) -> Self {
        let seed = std::env::var("ORRERY_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2026);
        println!("{test}: ORRERY_FUZZ_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn pick<'t, T: ?Sized>(&mut self, list: &[&'t T]) -> &'t T {
        list[self.below(list.len())]
    }
}

fn rounds(usual: usize) -> usize {
    let times: usize = std::env::var("ORRERY_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    usual * times
}

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap()
}

fn definition() -> PartitionKeyDef {
    PartitionKeyDef {
        kind: PartitionKeyKind::MultiHash,
        version: PartitionKeyVersion::V2,
        paths: vec![Path::parse_property("/pk").unwrap(), Path::parse_property("/a/b").unwrap()],
    }
}

/// Does with a text all that can be done with one.
fn exercise(text: &str, parameters: &Parameters, docs: &[Doc]) -> Result<Rows, QueryError> {
    let parsed = parse(text);
    if let Ok(query) = &parsed {
        for layout in [Layout::Line, Layout::Clauses] {
            let printed = print(query, layout);
            // Printed text has more parentheses, so near the limit of depth it may be refused.
            if let Ok(again) = parse(&printed) {
                assert_eq!(again, *query, "{text}\n  printed as {printed}");
            }
        }
    }
    let _ = describe(text, parameters, &definition(), &Features::all());
    let program = compile(text, parameters).inspect_err(|error| {
        serde_json::from_str::<serde_json::Value>(&error.to_json()).expect("errors are JSON");
    })?;
    assert!(parsed.is_ok());
    let rows = docs.iter().map(|doc| Row::plain(doc.as_ref()));
    let cx = Context { geospatial: Geospatial::Geometry, ..Context::at(17_092_100_967_890_123, 7) };
    let all = program.run_all(rows, &cx)?;
    for row in all.iter().take(20) {
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(row) {
            assert!(error.to_string().contains("recursion limit"), "{text} answers no JSON: {error}");
        }
    }
    Ok(all)
}

const TOKENS: &[&str] = &[
    "SELECT",
    "VALUE",
    "DISTINCT",
    "TOP 3",
    "TOP @n",
    "FROM",
    "FROM c",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "ORDER BY RANK",
    "OFFSET 1 LIMIT 2",
    "JOIN",
    "IN",
    "AS",
    "ASC",
    "DESC",
    "NOT",
    "AND",
    "OR",
    "BETWEEN",
    "LIKE",
    "ESCAPE '!'",
    "EXISTS(",
    "ARRAY(",
    "ALL(",
    "FIRST(",
    "LAST(",
    "(SELECT VALUE",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{'k':",
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
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "'a'",
    "\"b\"",
    "'%a_[a-c]'",
    "''",
    "0",
    "1",
    "-3",
    "2.5",
    "1e-7",
    "1e308",
    "0xff",
    "9223372036854775807",
    "@p",
    "@n",
    "@s",
    "true",
    "null",
    "undefined",
    "udf.f(1)",
    "c",
    "c.a",
    "c.a.b",
    "c.s",
    "c.list",
    "c['k']",
    "c.list[0]",
    "x",
    "root",
    "COUNT(1)",
    "SUM(c.a)",
    "MIN(",
    "ABS(",
    "CONCAT(c.s, ",
    "UPPER(",
    "ARRAY_CONCAT(c.list, ",
    "REPLICATE(c.s, 9)",
    "TOSTRING(c)",
    "STRINGTOOBJECT(",
    "REGEXMATCH(c.s, ",
    "ST_DISTANCE(c.g, ",
    "ST_WITHIN(c.g, c.g)",
    "SETUNION(",
    "DateTimeAdd('mm', 1, ",
    "VectorDistance(",
    "-- note\n",
    "/* note */",
    "/*",
    "'",
    "\\",
    "é",
    "😀",
    "\0",
];

#[test]
fn token_soup() {
    let mut random = Random::new("token_soup");
    let docs = [doc(r#"{"id":"1","pk":"x","a":{"b":1},"s":"text","list":[1,"a",null,{"k":2}],"k":true}"#)];
    let parameters = Parameters::from_value(
        doc(
            r#"[{"name":"@p","value":[1,"x",{"a":-0.0}]},{"name":"@n","value":2},{"name":"@s","value":"%"}]"#,
        )
        .root(),
    )
    .unwrap();
    let (count, mut ran) = (rounds(4_000), 0);
    for _ in 0..count {
        let length = 1 + random.below(40);
        let mut text = String::from(random.pick(&["", "SELECT ", "SELECT VALUE ", "SELECT * FROM c WHERE "]));
        for _ in 0..length {
            text.push_str(random.pick(TOKENS));
            text.push(' ');
        }
        text.push_str(random.pick(&["", "", " FROM c", " FROM c ORDER BY c.a", " FROM c GROUP BY c.k"]));
        ran += usize::from(exercise(&text, &parameters, &docs).is_ok());
    }
    println!("{count} texts, {ran} of them queries");
}

/// A random expression that the grammar allows.
fn expression(random: &mut Random, depth: usize) -> String {
    let leaves = [
        "c",
        "c.a",
        "c.a.b",
        "c.s",
        "c.list",
        "c.list[0]",
        "c['k']",
        "c.nothing",
        "@p",
        "@n",
        "@s",
        "null",
        "true",
        "false",
        "undefined",
        "0",
        "-1",
        "2.5",
        "1e300",
        "''",
        "'text'",
        "'2020-02-29'",
        "[]",
        "{}",
        "GetCurrentTicks()",
        "RAND()",
    ];
    if depth == 0 {
        return random.pick(&leaves).to_owned();
    }
    let next = |random: &mut Random| expression(random, depth - 1);
    let (a, b) = (next(random), next(random));
    match random.below(14) {
        0 | 1 => random.pick(&leaves).to_owned(),
        2..=4 => {
            let operators = [
                "+", "-", "*", "/", "%", "&", "|", "^", "||", "<<", ">>", ">>>", "=", "!=", "<", "<=", ">",
                ">=", "AND", "OR", "??",
            ];
            format!("({a} {} {b})", random.pick(&operators))
        }
        5 => format!("({} {a})", random.pick(&["NOT", "-", "+", "~"])),
        6 => format!("({a} ? {b} : {})", next(random)),
        7 => format!("({a} {} ({b}, 1, 'a'))", random.pick(&["IN", "NOT IN"])),
        8 => format!("({a} {} {b} AND 9)", random.pick(&["BETWEEN", "NOT BETWEEN"])),
        9 => format!("({a} LIKE {})", random.pick(&["'%e_t'", "'t[a-f]%'", "@s", "c.s"])),
        10 => format!("[{a}, {b}]"),
        11 => format!("{{'a': {a}, 'b': {b}}}"),
        12 => {
            let subqueries = [
                "ARRAY(SELECT VALUE [t, #] FROM t IN c.list WHERE t != #)",
                "EXISTS(SELECT VALUE t FROM t IN [#] WHERE t = #)",
                "(SELECT VALUE MAX(t) FROM t IN [#, #])",
                "FIRST(SELECT DISTINCT VALUE t FROM t IN [#, #] ORDER BY t DESC)",
                "ALL(SELECT VALUE t FROM t IN [#])",
                "LAST(SELECT t AS k, COUNT(1) AS n FROM t IN [#, #] GROUP BY t)",
            ];
            random.pick(&subqueries).replacen('#', &a, 1).replace('#', &b)
        }
        _ => random.pick(FUNCTIONS).replace("c.a", &a).replace("c.b", &b),
    }
}

#[test]
fn random_expressions() {
    let mut random = Random::new("random_expressions");
    let docs = [
        doc(r#"{"id":"1","pk":"x","a":{"b":1},"s":"text","list":[1,"a",null,{"k":2}],"k":true}"#),
        doc(r#"{"id":"2","pk":"y","a":2.5,"s":7,"list":"no","k":[]}"#),
    ];
    let parameters = Parameters::from_value(
        doc(
            r#"[{"name":"@p","value":[1,"x",{"a":-0.0}]},{"name":"@n","value":2},{"name":"@s","value":"%"}]"#,
        )
        .root(),
    )
    .unwrap();
    let (count, mut ran) = (rounds(3_000), 0);
    for _ in 0..count {
        let depth = 1 + random.below(4);
        let shape = random.pick(&[
            "SELECT VALUE # FROM c",
            "SELECT # AS x, c.id FROM c ORDER BY c.a",
            "SELECT * FROM c WHERE #",
            "SELECT DISTINCT VALUE # FROM c",
            "SELECT VALUE COUNT(#) FROM c",
            "SELECT VALUE MIN(#) FROM c GROUP BY c.pk",
            "SELECT VALUE t FROM c JOIN t IN c.list WHERE #",
        ]);
        let text = shape.replace('#', &expression(&mut random, depth));
        ran += usize::from(exercise(&text, &parameters, &docs).is_ok());
    }
    println!("{count} expressions, {ran} answered");
    assert!(ran > count / 2, "most expressions are right, but only {ran} of {count} were answered");
}

/// Queries to change when the outside corpus is not there.
const QUERIES: &[&str] = &[
    "SELECT VALUE c FROM c WHERE c.a.b = 1 AND c.s LIKE 'te%' OR NOT IS_DEFINED(c.k)",
    "SELECT c.id, ARRAY(SELECT VALUE t FROM t IN c.list WHERE t != null) AS l FROM c ORDER BY c.s DESC OFFSET 0 LIMIT 5",
    "SELECT c.pk, COUNT(1) AS n, AVG(c.a.b) FROM c JOIN t IN c.list GROUP BY c.pk",
    "SELECT DISTINCT TOP 2 VALUE {'x': c.a ?? 1, 'y': [c.list[0], c['k'] ? 'a' : 2]} FROM c",
    "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c) AS r",
    "SELECT * FROM c WHERE c.a.b IN (1, 2, 'x') AND c.s BETWEEN 'a' AND 'z' AND EXISTS(SELECT VALUE t FROM t IN c.list)",
    "SELECT VALUE ST_DISTANCE(c.g, {'type': 'Point', 'coordinates': [1, 2]}) FROM c WHERE STARTSWITH(c.s, 't', true)",
    "SELECT VALUE CONCAT(UPPER(c.s), SUBSTRING(c.s, 1, 2), TOSTRING(c.a)) || 'x' FROM c WHERE (c.a.b & 3) << 2 > 1",
];

fn change(random: &mut Random, text: &str, other: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        let (at, to) = (random.below(chars.len() + 1), random.below(chars.len() + 1));
        let (low, high) = (at.min(to), at.max(to).min(at.min(to) + 12));
        match random.below(6) {
            0 => drop(chars.drain(low..high)),
            1 => {
                let copy: Vec<char> = chars[low..high].to_vec();
                chars.splice(at..at, copy);
            }
            2 => chars.splice(at..at, random.pick(TOKENS).chars()).for_each(drop),
            3 => {
                let other: Vec<char> = other.chars().collect();
                let from = random.below(other.len() + 1);
                chars.truncate(at);
                chars.extend(&other[from..]);
            }
            4 if at < chars.len() => chars[at] = char::from(32 + random.below(95) as u8),
            _ => chars.truncate(chars.len().saturating_sub(random.below(5))),
        }
    }
    chars.into_iter().collect()
}

#[test]
fn changed_queries() {
    let mut random = Random::new("changed_queries");
    let corpus = shared::vector("nosql-sql-corpus/queries.jsonl").unwrap_or_default();
    let mut texts: Vec<String> = QUERIES.iter().map(|text| text.to_string()).collect();
    texts.extend(corpus.lines().filter_map(|line| {
        let case: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(case["query"].as_str()?.to_owned())
    }));
    let docs = [doc(r#"{"id":"1","pk":"x","a":{"b":1},"s":"text","list":[1,"a",null,{"k":2}],"k":true}"#)];
    let (count, mut ran) = (rounds(4_000), 0);
    for _ in 0..count {
        let (text, other) = (random.below(texts.len()), random.below(texts.len()));
        let text = change(&mut random, &texts[text].clone(), &texts[other].clone());
        ran += usize::from(exercise(&text, &Parameters::new(), &docs).is_ok());
    }
    println!("{count} texts of {} queries, {ran} still queries", texts.len());
}

/// A random value as JSON text.
fn value(random: &mut Random, depth: usize) -> String {
    let scalars = [
        "null",
        "true",
        "false",
        "0",
        "-0.0",
        "1",
        "-1",
        "2.5",
        "1e300",
        "-9223372036854775808",
        "9007199254740993",
        "\"\"",
        "\"a\"",
        "\"text\"",
        "\"%_[\"",
        "\"2020-02-29T00:00:00Z\"",
        "\"\\ud83d\\ude00é\"",
        "\"\\u0000\"",
        "\"(a+)+$\"",
        "\"Point\"",
        "\"Polygon\"",
    ];
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0..=5 => random.pick(&scalars).to_owned(),
        6 | 7 => {
            let items: Vec<String> = (0..random.below(5)).map(|_| value(random, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => {
            let mut members = Vec::new();
            for name in ["a", "b", "s", "list", "k", "type", "coordinates", "é"] {
                if random.below(3) == 0 {
                    members.push(format!("\"{name}\":{}", value(random, depth - 1)));
                }
            }
            format!("{{{}}}", members.join(","))
        }
    }
}

#[test]
fn random_items_and_parameters() {
    let mut random = Random::new("random_items_and_parameters");
    let calls: Vec<String> = FUNCTIONS.iter().map(|call| format!("SELECT VALUE {call} FROM c")).collect();
    let count = rounds(80);
    let mut ran = 0;
    for _ in 0..count {
        let docs: Vec<Doc> = (0..6)
            .map(|i| {
                let (a, b, s, list) = (
                    value(&mut random, 3),
                    value(&mut random, 3),
                    value(&mut random, 1),
                    value(&mut random, 4),
                );
                doc(&format!(r#"{{"id":"{i}","a":{a},"b":{b},"s":{s},"list":{list}}}"#))
            })
            .collect();
        let p = value(&mut random, 3);
        let parameters =
            Parameters::from_value(doc(&format!(r#"[{{"name":"@p","value":{p}}}]"#)).root()).unwrap();
        for query in calls.iter().map(String::as_str).chain(SHAPES.iter().copied()) {
            let answer = exercise(query, &parameters, &docs);
            if let Err(error) = &answer {
                assert!(matches!(error, QueryError::LimitExceeded(_)), "{query}: {error}");
            }
            ran += 1;
        }
    }
    println!("{ran} runs over random items");
}

const FUNCTIONS: &[&str] = &[
    "c.a = c.b",
    "c.a != @p",
    "c.a < c.b",
    "c.a >= @p",
    "c.a + c.b",
    "c.a * @p",
    "c.a % c.b",
    "c.a / c.b",
    "- c.a",
    "~c.a",
    "c.a << c.b",
    "c.a >>> c.b",
    "c.a || c.s",
    "c.a ?? c.b",
    "c.a ? c.b : c.s",
    "c.a[c.b]",
    "c.list[@p]",
    "c.a BETWEEN c.b AND @p",
    "c.a IN (c.b, @p, 1)",
    "c.s LIKE c.a",
    "c.s LIKE @p ESCAPE 'a'",
    "ROUND(c.a, c.b)",
    "POWER(c.a, c.b)",
    "NUMBERBIN(c.a, c.b)",
    "INTDIV(c.a, c.b)",
    "INTBITLEFTSHIFT(c.a, c.b)",
    "ARRAY_CONTAINS(c.list, @p, true)",
    "ARRAY_SLICE(c.list, c.a, c.b)",
    "[ARRAY_MIN(c.list), ARRAY_MAX(c.list), ARRAY_MEDIAN(c.list)]",
    "SETUNION(c.list, @p)",
    "SETDIFFERENCE(c.list, c.a)",
    "CHOOSE(c.a, c.b, @p)",
    "OBJECTTOARRAY(c.a, c.s, c.s)",
    "CONTAINS(c.s, c.a, c.b)",
    "INDEX_OF(c.s, c.a, c.b)",
    "LASTINDEXOF(c.s, c.a, c.b)",
    "SUBSTRING(c.s, c.a, c.b)",
    "[LEFT(c.s, c.a), RIGHT(c.s, c.a)]",
    "TRIM(c.s, c.a)",
    "REPLACE(c.s, c.a, c.b)",
    "REPLICATE(c.s, c.a)",
    "REGEXMATCH(c.s, c.a, c.b)",
    "STRINGJOIN(c.list, c.s)",
    "STRINGSPLIT(c.s, c.a)",
    "STRINGTOOBJECT(TOSTRING(c))",
    "DATETIMEADD(c.a, c.b, c.s)",
    "DATETIMEADD('mm', c.b, c.s)",
    "DATETIMEBIN(c.s, 'yyyy', c.a, c.s)",
    "DATETIMEDIFF('ns', c.s, @p)",
    "DATETIMEFORMAT(c.s, c.a)",
    "DATETIMEFROMPARTS(c.a, c.b, 1)",
    "[TICKSTODATETIME(c.a), TIMESTAMPTODATETIME(c.a)]",
    "ST_AREA(c.a)",
    "ST_WITHIN(c.a, c.b)",
    "ST_DISTANCE(c.a, @p)",
    "ST_ISVALIDDETAILED(c.a)",
    "DOCUMENTID(c.a)",
    "IIF(c.a, c.b, @p)",
];

const SHAPES: &[&str] = &[
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT * FROM c ORDER BY c.a DESC, c.b",
    "SELECT c.s, COUNT(1), SUM(c.a), AVG(c.a), MIN(c.a), MAX(c.b), MAKELIST(c.a), MAKESET(c.b), COUNTIF(c.a) FROM c GROUP BY c.s",
    "SELECT VALUE ARRAY(SELECT DISTINCT VALUE t FROM t IN c.list ORDER BY t DESC) FROM c",
    "SELECT VALUE [t, u] FROM c JOIN t IN c.list JOIN u IN t WHERE t = u",
    "SELECT VALUE ALL(SELECT VALUE t = @p FROM t IN c.list) FROM c",
];

/// Runs on a stack as small as that of a server's thread.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(body).unwrap().join().unwrap();
}

#[test]
fn no_depth_overflows_the_stack() {
    on_a_small_stack(|| {
        let pairs: &[(&str, &str)] = &[
            ("(", ")"),
            ("[", "]"),
            ("{'a': ", "}"),
            ("NOT ", ""),
            ("- ", ""),
            ("ABS(", ")"),
            ("1 + (", ")"),
            ("1 + ", ""),
            ("true AND (", ")"),
            ("c ? 1 : ", ""),
            ("(c ? ", " : 1)"),
            ("1 ?? ", ""),
            ("c[", "]"),
            ("1 IN (", ")"),
            ("'a' LIKE (", ")"),
            ("(SELECT VALUE ", ")"),
            ("ARRAY(SELECT VALUE ", " FROM c)"),
            ("EXISTS(SELECT VALUE ", ")"),
            ("(SELECT VALUE x FROM (SELECT VALUE ", ") AS x)"),
            ("ARRAY(SELECT k, COUNT(1) FROM k IN ", " GROUP BY k)"),
            ("IIF(true, ", ", 1)"),
            ("[(SELECT VALUE {'a': ", "})]"),
        ];
        let docs = [doc(&format!(r#"{{"id":"1","a":{}1{}}}"#, "[".repeat(100), "]".repeat(100)))];
        for (open, close) in pairs {
            for depth in
                [1, 5, 20, 30, 40, 41, 42, 43, 60, 63, 64, 100, 125, 126, 127, 128, 129, 200, 5_000, 50_000]
            {
                let text = format!("SELECT VALUE {}c{} FROM c", open.repeat(depth), close.repeat(depth));
                if text.len() < 400_000 {
                    let _ = exercise(&text, &Parameters::new(), &docs);
                }
            }
        }
        let members = format!("SELECT VALUE c{} FROM c", ".a".repeat(100_000));
        assert!(exercise(&members, &Parameters::new(), &docs).is_err());
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = doc(&format!(r#"{{"id":"1","a":{}1{}}}"#, open.repeat(120), close.repeat(120)));
            let docs = [deep.clone(), deep];
            for query in [
                "SELECT VALUE [[[c.a]]] FROM c WHERE c.a = c.a",
                "SELECT DISTINCT VALUE {'x': c} FROM c ORDER BY c.a",
                "SELECT VALUE TOSTRING([c, c]) FROM c",
                "SELECT VALUE STRINGTOARRAY(TOSTRING([[c.a]])) FROM c",
                "SELECT c.a, COUNT(1) FROM c GROUP BY c.a",
                "SELECT VALUE SETUNION([c.a], [[c.a]]) FROM c",
                "SELECT VALUE MAKESET([c.a]) FROM c",
                "SELECT VALUE ST_AREA({'type': 'Polygon', 'coordinates': c.a}) FROM c",
            ] {
                let _ = exercise(query, &Parameters::new(), &docs);
            }
        }
    });
}

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
        ("SELECT VALUE l FROM c JOIN l IN c.l ORDER BY c.s, l", "ORDER BY needs too much memory"),
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

/// What a client is given to send must be accepted when it sends it.
#[test]
fn rewritten_queries_parse_again() {
    for (operand, joint) in [("c.a", " + "), ("'a'", " || "), ("c.a", " - "), ("c.a", " & ")] {
        for count in [2, 63, 64, 65, 100, 120] {
            let chain = vec![operand; count].join(joint);
            let text = format!("SELECT {chain} AS x FROM c WHERE {chain} = 1 ORDER BY c.a");
            let plan = describe(&text, &Parameters::new(), &definition(), &Features::all()).unwrap();
            let rewritten =
                plan.info.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true");
            assert!(!rewritten.is_empty());
            compile(&rewritten, &Parameters::new()).unwrap_or_else(|error| panic!("{count}{joint}: {error}"));
        }
    }
}

/// Parentheses do not make the tree taller, so they alone never decide whether a chain is too long.
#[test]
fn trees_in_parentheses_are_as_tall_as_without() {
    on_a_small_stack(|| {
        let docs = [doc(r#"{"id":"1","a":1}"#)];
        for count in [10, 100, 124, 125, 126, 127, 128, 200, 5_000] {
            let chain = |n: usize| vec!["c.a"; n].join(" + ");
            for text in [
                format!("SELECT VALUE ({}) FROM c", chain(count)),
                format!("SELECT VALUE {}{}{} FROM c", "(".repeat(100), chain(count), ")".repeat(100)),
                format!("SELECT VALUE ({}) + ({}) FROM c", chain(count), chain(count)),
                format!("SELECT VALUE {}c.a{} FROM c", "(".repeat(count), " + c.a)".repeat(count)),
                format!("SELECT VALUE ({}){} FROM c", chain(count / 2), ".a".repeat(count / 2)),
            ] {
                let answer = exercise(&text, &Parameters::new(), &docs);
                assert!(answer.is_ok() || count > 100, "{count}: {text}");
                assert!(answer.is_err() || count < 200, "{count}: {}", &text[..60]);
            }
        }
    });
}
