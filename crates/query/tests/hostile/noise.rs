//! Texts, items and parameters made at random.

use orrery_doc::Doc;
use orrery_query::{Parameters, QueryError};

use crate::random::{Random, rounds};
use crate::words::{FUNCTIONS, QUERIES, SHAPES, TOKENS};
use crate::{doc, exercise, shared};

/// An item that has what the words speak of.
fn item() -> Doc {
    doc(r#"{"id":"1","pk":"x","a":{"b":1},"s":"text","list":[1,"a",null,{"k":2}],"k":true}"#)
}

/// The parameters that the words name.
fn parameters() -> Parameters {
    let list =
        r#"[{"name":"@p","value":[1,"x",{"a":-0.0}]},{"name":"@n","value":2},{"name":"@s","value":"%"}]"#;
    Parameters::from_value(doc(list).root()).unwrap()
}

#[test]
fn token_soup() {
    let mut random = Random::new("token_soup");
    let docs = [item()];
    let parameters = parameters();
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
    let docs = [item(), doc(r#"{"id":"2","pk":"y","a":2.5,"s":7,"list":"no","k":[]}"#)];
    let parameters = parameters();
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
    let docs = [item()];
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
