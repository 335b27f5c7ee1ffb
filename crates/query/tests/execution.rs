//! Queries over items in memory: query text in, JSON out.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

use orrery_doc::{Doc, json};
use orrery_query::{
    Carry, Context, Flow, PageEnd, Parameters, Room, Row, Rows, Run, SystemProps, compile, compile_condition,
};
use proptest::prelude::*;

const ITEMS: [&str; 5] = [
    r#"{"id":"1","pk":"a","n":1,"s":"apple","tags":["x","y"],"o":{"p":1,"q":[{"r":1},{"r":2}]},"b":true}"#,
    r#"{"id":"2","pk":"a","n":2.5,"s":"Banana","tags":["y"],"o":{"p":2},"b":false,"z":null}"#,
    r#"{"id":"3","pk":"b","n":10,"s":"cherry","tags":[],"o":{"p":1},"z":"late"}"#,
    r#"{"id":"4","pk":"b","n":"ten","s":"date","tags":["x","z",3]}"#,
    r#"{"id":"5","pk":"c","s":"éclair","n":-4}"#,
];

fn docs() -> Vec<Doc> {
    ITEMS.iter().map(|item| doc(item)).collect()
}

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap()
}

fn system(i: usize) -> SystemProps {
    SystemProps {
        rid: format!("rid{i}"),
        self_link: format!("self{i}"),
        etag: format!("\"etag{i}\""),
        attachments: Some("attachments/".into()),
        ts: 1_000 + i as i64,
    }
}

fn context() -> Context<'static> {
    // 2024-02-29T12:34:56.7890123Z
    Context::at(17_092_100_967_890_123, 7)
}

fn parameters(text: &str) -> Parameters {
    Parameters::from_value(doc(text).root()).unwrap()
}

fn joined(rows: &Rows) -> String {
    let mut out = vec![b'['];
    rows.write_joined(&mut out);
    out.push(b']');
    String::from_utf8(out).unwrap()
}

fn answer_with(query: &str, params: &str) -> String {
    let docs = docs();
    let systems: Vec<_> = (0..docs.len()).map(system).collect();
    let rows = docs.iter().zip(&systems).map(|(doc, system)| Row {
        doc: doc.as_ref(),
        system: Some(system),
        place: &[],
    });
    match compile(query, &parameters(params)).and_then(|program| program.run_all(rows, &context())) {
        Ok(rows) => joined(&rows),
        Err(error) => format!("error: {error}"),
    }
}

fn check(query: &str, expected: &str) {
    assert_eq!(answer_with(query, "[]"), expected, "for {query}");
}

/// One expression without items.
fn value(expr: &str, expected: &str) {
    let expected = if expected == "undefined" { "[]".to_owned() } else { format!("[{expected}]") };
    check(&format!("SELECT VALUE {expr}"), &expected);
}

#[test]
fn projections() {
    check("SELECT c.id, c.o.p FROM c WHERE c.n = 1", r#"[{"id":"1","p":1}]"#);
    check("SELECT VALUE c.n FROM c", r#"[1,2.5,10,"ten",-4]"#);
    check("SELECT VALUE c.z FROM c", r#"[null,"late"]"#);
    check("SELECT c.z, c.n + 1 FROM c WHERE c.id IN ('4', '2')", r#"[{"z":null,"$1":3.5},{}]"#);
    check(
        "SELECT c['s'] AS t, [c.nope, c.n], {'k': c.nope} AS k FROM c WHERE c.id = '5'",
        r#"[{"t":"éclair","$1":[-4],"k":{}}]"#,
    );
    check("SELECT VALUE c.o.q[1].r FROM c", "[2]");
    check("SELECT VALUE c.tags[3 - 2] FROM c WHERE c.id = '1'", r#"["y"]"#);
    check("SELECT TOP 2 VALUE c.id FROM c", r#"["1","2"]"#);
    check("SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2", r#"["2","3"]"#);
}

#[test]
fn system_properties_are_part_of_the_item() {
    check("SELECT VALUE c._ts FROM c WHERE c._rid = 'rid2'", "[1002]");
    check(
        "SELECT * FROM c WHERE c.id = '5'",
        concat!(
            r#"[{"id":"5","pk":"c","s":"éclair","n":-4,"_rid":"rid4","_self":"self4","#,
            r#""_etag":"\"etag4\"","_attachments":"attachments/","_ts":1004}]"#
        ),
    );
    check("SELECT VALUE {'k': c}.k._etag FROM c WHERE c.id = '1'", r#"["\"etag0\""]"#);
}

#[test]
fn sources() {
    check("SELECT VALUE t FROM t IN c.tags", r#"["x","y","y","x","z",3]"#);
    check(
        "SELECT c.id, t FROM c JOIN t IN c.tags WHERE t = 'x'",
        r#"[{"id":"1","t":"x"},{"id":"4","t":"x"}]"#,
    );
    check(
        "SELECT VALUE [a, b.r] FROM c JOIN a IN c.tags JOIN b IN c.o.q",
        r#"[["x",1],["x",2],["y",1],["y",2]]"#,
    );
    check("SELECT VALUE p FROM c.o.p", "[1,2,1]");
    check(
        "SELECT VALUE x FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t != 'y') AS x",
        r#"["x","x","z"]"#,
    );
    check("SELECT * FROM c.o AS o WHERE o.p = 2", r#"[{"p":2}]"#);
    check("SELECT VALUE root.id FROM root WHERE root.b", r#"["1"]"#);
}

#[test]
fn subqueries() {
    check(
        "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'y')",
        r#"["1","2"]"#,
    );
    check(
        "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE IS_STRING(t)) FROM c WHERE c.n = 'ten'",
        r#"[["x","z"]]"#,
    );
    check("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c", "[2,1,0,3,0]");
    check("SELECT VALUE (SELECT VALUE SUM(q.r) FROM q IN c.o.q) FROM c WHERE c.id = '1'", "[3]");
    check("SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.tags) FROM c", r#"["x","y","x"]"#);
    check("SELECT VALUE LAST(SELECT VALUE t FROM t IN c.tags) FROM c", r#"["y","y",3]"#);
    check("SELECT VALUE ALL(SELECT VALUE t = 'y' FROM t IN c.tags) FROM c", "[false,true,true,false,true]");
    check(
        "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN ['b','c','a'] ORDER BY t DESC OFFSET 0 LIMIT 2)",
        r#"[["c","b"]]"#,
    );
    check("SELECT VALUE ARRAY(SELECT DISTINCT VALUE t FROM t IN [1,1.0,'1',[1],[1]])", r#"[[1,"1",[1]]]"#);
    check(
        "SELECT VALUE ARRAY(SELECT k, COUNT(1) AS n FROM k IN ['a','b','a'] GROUP BY k)",
        r#"[[{"k":"a","n":2},{"k":"b","n":1}]]"#,
    );
}

#[test]
fn undefined_is_neither_true_nor_false() {
    for (expr, expected) in [
        ("undefined = undefined", "undefined"),
        ("1 = '1'", "undefined"),
        ("1 != null", "true"),
        ("null = null", "true"),
        ("1 = 1.0", "true"),
        ("[1,{'a':2}] = [1,{'a':2}]", "true"),
        ("{'a':1,'b':2} = {'b':2,'a':1}", "true"),
        ("[1] < [2]", "undefined"),
        ("false < true", "true"),
        ("'a' < 1", "undefined"),
        ("true AND undefined", "undefined"),
        ("false AND undefined", "false"),
        ("undefined OR true", "true"),
        ("undefined OR false", "undefined"),
        ("NOT undefined", "undefined"),
        ("NOT 1", "undefined"),
        ("1 AND true", "undefined"),
        ("undefined ?? 2", "2"),
        ("null ?? 2", "null"),
        ("undefined ? 1 : 2", "2"),
        ("1 IN ('1', 2)", "false"),
        ("undefined IN (1)", "undefined"),
        ("2 BETWEEN 1 AND 3", "true"),
        ("2 BETWEEN 1 AND 'x'", "undefined"),
        ("5 BETWEEN 1 AND 'x'", "undefined"),
        ("0 BETWEEN 1 AND 'x'", "false"),
        ("2 NOT BETWEEN 1 AND 3", "false"),
        ("[1, undefined, 2]", "[1,2]"),
        ("{'a': undefined, 'b': 1}", r#"{"b":1}"#),
        ("'abc' LIKE 'a%'", "true"),
        ("'abc' NOT LIKE '_b'", "true"),
        ("1 LIKE 'a'", "undefined"),
    ] {
        value(expr, expected);
    }
}

#[test]
fn arithmetic() {
    for (expr, expected) in [
        ("1 + 2 * 3 - 4 / 8", "6.5"),
        ("7 % 4", "3"),
        ("-7 % 4", "-3"),
        ("1 / 0", "undefined"),
        ("1 + '1'", "undefined"),
        ("'a' || 'b'", r#""ab""#),
        ("'a' || 1", "undefined"),
        ("6 & 3", "2"),
        ("6 | 3", "7"),
        ("6 ^ 3", "5"),
        ("~5", "-6"),
        ("1 << 4", "16"),
        ("-16 >> 2", "-4"),
        ("-1 >>> 28", "15"),
        ("9007199254740991 + 1", "9007199254740992"),
        ("9223372036854775807", "9223372036854775807"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1.5 + 1.5", "3"),
        ("- 'a'", "undefined"),
    ] {
        value(expr, expected);
    }
}

#[test]
fn aggregates() {
    check("SELECT VALUE COUNT(1) FROM c", "[5]");
    check("SELECT VALUE COUNT(c.z) FROM c", "[2]");
    check("SELECT VALUE SUM(c.o.p) FROM c", "[4]");
    check("SELECT VALUE SUM(c.n) FROM c", "[]");
    check("SELECT VALUE AVG(c.o.p) FROM c", "[1.3333333333333333]");
    check("SELECT MIN(c.n) AS low, MAX(c.n) AS high FROM c", r#"[{"low":-4,"high":"ten"}]"#);
    check("SELECT VALUE MAX(c.tags) FROM c", "[]");
    check("SELECT COUNT(1), SUM(c.o.p) FROM c WHERE false", r#"[{"$1":0,"$2":0}]"#);
    check("SELECT VALUE {'item': COUNT(1), 'twice': COUNT(1) * 2} FROM c", r#"[{"item":5,"twice":10}]"#);
    check("SELECT VALUE MAKESET(c.pk) FROM c", r#"[["a","b","c"]]"#);
    check("SELECT VALUE COUNTIF(c.b) FROM c", "[1]");
    check(
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
        r#"[{"pk":"a","n":2},{"pk":"b","n":2},{"pk":"c","n":1}]"#,
    );
    check(
        "SELECT UPPER(c.pk) AS k FROM c GROUP BY c.pk ORDER BY c.pk DESC OFFSET 1 LIMIT 1",
        r#"[{"k":"B"}]"#,
    );
    check("SELECT COUNT(1) AS n, c.o.p FROM c GROUP BY c.o.p", r#"[{"n":2},{"n":2,"p":1},{"n":1,"p":2}]"#);
    check("SELECT VALUE COUNT(1) FROM c GROUP BY c.nothing", "[5]");
}

#[test]
fn order_and_distinct() {
    check("SELECT VALUE c.id FROM c ORDER BY c.n", r#"["5","1","2","3","4"]"#);
    check("SELECT VALUE c.id FROM c ORDER BY c.n DESC", r#"["4","3","2","1","5"]"#);
    check("SELECT VALUE c.id FROM c ORDER BY c.pk DESC, c.id ASC", r#"["5","3","4","1","2"]"#);
    check("SELECT VALUE c.id FROM c ORDER BY c.z", r#"["1","4","5","2","3"]"#);
    check("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.s DESC", r#"["5","4"]"#);
    check("SELECT VALUE c.id FROM c ORDER BY c.s OFFSET 1 LIMIT 2", r#"["1","3"]"#);
    check("SELECT DISTINCT VALUE c.pk FROM c", r#"["a","b","c"]"#);
    check("SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk DESC", r#"["c","b","a"]"#);
    check("SELECT DISTINCT c.o.p FROM c", r#"[{},{"p":1},{"p":2}]"#);
    check(
        r#"SELECT c._rid, [{"item": c.n}] AS orderByItems, c.id AS payload FROM c WHERE (true) ORDER BY c.n DESC OFFSET 0 LIMIT 1"#,
        r#"[{"_rid":"rid3","orderByItems":[{"item":"ten"}],"payload":"4"}]"#,
    );
}

#[test]
fn subqueries_over_the_container_see_all_items() {
    check("SELECT VALUE r.id FROM (SELECT VALUE root FROM root OFFSET 1 LIMIT 2) AS r", r#"["2","3"]"#);
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c) AS r", "[3]");
    check(
        "SELECT TOP 2 VALUE t FROM (SELECT TOP 3 VALUE c FROM c ORDER BY c.id DESC) AS r JOIN t IN r.tags WHERE t != 'x'",
        r#"["z"]"#,
    );
    check(
        "SELECT VALUE AVG(r1) FROM (SELECT VALUE t FROM (SELECT TOP 2 VALUE c FROM c) AS r0 JOIN t IN r0.o.q OFFSET 0 LIMIT 5) AS r1",
        "[]",
    );
    check("SELECT VALUE (COUNT(v) > 0) FROM (SELECT VALUE c FROM c WHERE c.n = 10) AS v", "[true]");
    check(
        "SELECT VALUE g FROM (SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk) AS g WHERE g.n = 1",
        r#"[{"pk":"c","n":1}]"#,
    );
}

#[test]
fn distances_between_points() {
    value(
        "ROUND(ST_DISTANCE({type: 'Point', coordinates: [20.1, 20]}, {type: 'Point', coordinates: [20, 20]}))",
        "10465",
    );
    value(
        "ST_DISTANCE({type: 'Point', coordinates: [100, 100]}, {type: 'Point', coordinates: [20, 20]})",
        "undefined",
    );
    value("ST_DISTANCE(42, 1337)", "undefined");
}

#[test]
fn parameters_are_values() {
    let answer = answer_with(
        "SELECT TOP @n VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) AND c.o.p = @o.p",
        r#"[{"name":"@n","value":1},{"name":"@ids","value":["1","3"]},{"name":"@o","value":{"p":1}}]"#,
    );
    assert_eq!(answer, r#"["1"]"#);
}

#[test]
fn wrong_queries_are_refused_with_their_code() {
    let code = |query: &str| compile(query, &Parameters::new()).unwrap_err().sc_code();
    assert_eq!(code("SELECT x FROM c"), Some(2001));
    assert_eq!(code("SELECT NOSUCH(c) FROM c"), Some(2005));
    assert_eq!(code("SELECT ABS(1, 2) FROM c"), Some(2050));
    assert_eq!(code("SELECT * FROM c GROUP BY c.x"), Some(2041));
    assert_eq!(code("SELECT VALUE MAX(MIN(c.x)) FROM c"), Some(2101));
    assert_eq!(code("SELECT c.y FROM c GROUP BY c.x"), Some(2102));
    assert_eq!(code("SELECT * FROM c JOIN d IN e.f"), Some(2001));
    assert_eq!(code("SELECT VectorDistance(c.v) FROM c"), Some(2050));
    assert_eq!(
        code("SELECT VectorDistance(c.v, [1], true, {distanceFunction: 'manhattan'}) FROM c"),
        Some(2213)
    );
    assert_eq!(code("SELECT VectorDistance(c.v, [1], c.options) FROM c"), Some(2213));
    assert_eq!(code("SELECT FullTextContains(c.t, 'a', 'b') FROM c"), Some(2050));
    assert_eq!(code("SELECT _FullTextScore(c.t, ['a']) FROM c"), Some(2050));
}

#[test]
fn a_condition_accepts_or_refuses_one_item() {
    let item = doc(ITEMS[0]);
    let row = Row::plain(item.as_ref());
    for (condition, expected) in [
        ("from c where c.n = 1", true),
        ("FROM c WHERE c.n > 1", false),
        ("from x where x.missing = 1", false),
        ("from c", true),
        ("from c where not c.b", false),
    ] {
        let program = compile_condition(condition, &Parameters::new()).unwrap();
        assert_eq!(program.accepts(&row, &context()).unwrap(), expected, "{condition}");
    }
}

#[test]
fn functions() {
    for (expr, expected) in [
        (
            "[IS_ARRAY([]), IS_BOOL(true), IS_DEFINED(undefined), IS_INTEGER(1.5), IS_NULL(null)]",
            "[true,true,false,false,true]",
        ),
        ("[IS_NUMBER(1), IS_OBJECT({}), IS_PRIMITIVE([]), IS_STRING('')]", "[true,true,false,true]"),
        ("CONCAT('a', 'b', 'c')", r#""abc""#),
        ("CONCAT('a', 1)", "undefined"),
        ("CONTAINS('ABC', 'b', true)", "true"),
        ("CONTAINS('ABC', 'b')", "false"),
        ("STARTSWITH(1, 'a')", "undefined"),
        ("ENDSWITH('abc', 'bc')", "true"),
        ("INDEX_OF('abcabc', 'c', 3)", "5"),
        ("INDEX_OF('abc', 'x')", "-1"),
        ("LEFT('äbc', 2)", r#""äb""#),
        ("RIGHT('abc', 2)", r#""bc""#),
        ("LENGTH('äb')", "2"),
        ("LTRIM('  a ')", r#""a ""#),
        ("TRIM('xxaxx', 'x')", r#""a""#),
        ("REGEXMATCH('abcd', 'ABC', 'i')", "true"),
        ("REGEXMATCH('abcd', '(')", "undefined"),
        ("REPLACE('aXbX', 'X', '--')", r#""a--b--""#),
        ("REPLICATE('ab', 3)", r#""ababab""#),
        ("REPLICATE('ab', 10000)", "undefined"),
        ("REVERSE('abc')", r#""cba""#),
        ("STRINGTONUMBER(' 1.50 ')", "1.5"),
        ("STRINGTOOBJECT('{\"a\":[1]}')", r#"{"a":[1]}"#),
        ("STRINGTOARRAY('{}')", "undefined"),
        ("SUBSTRING('abcdef', 2, 3)", r#""cde""#),
        ("TOSTRING({'a': [1, 'b']})", r#""{\"a\":[1,\"b\"]}""#),
        ("STRINGJOIN(['a','b'], '-')", r#""a-b""#),
        ("STRINGSPLIT('a-b-c', '-')", r#"["a","b","c"]"#),
        ("UPPER('straße')", r#""STRASSE""#),
        (
            "[ABS(-3), CEILING(1.2), FLOOR(-1.2), SIGN(-0.5), TRUNC(-1.9), SQUARE(3), POWER(2, 10)]",
            "[3,2,-2,-1,-1,9,1024]",
        ),
        ("[ROUND(2.5), ROUND(-2.5), ROUND(1.005, 1), LOG(8, 2), LOG10(1000), SQRT(16)]", "[3,-3,1,3,3,4]"),
        (
            "[INTADD(1, 2), INTDIV(7, 2), INTMOD(7, 4), INTBITLEFTSHIFT(1, 40), INTBITNOT(0)]",
            "[3,3,3,1099511627776,-1]",
        ),
        ("INTDIV(1, 0)", "undefined"),
        ("NUMBERBIN(37, 10)", "30"),
        ("SQRT(-1)", "undefined"),
        ("ARRAY_CONCAT([1], [2], [3])", "[1,2,3]"),
        ("ARRAY_CONTAINS([1, 2], 2.0)", "true"),
        ("ARRAY_CONTAINS([{'a': 1, 'b': 2}], {'a': 1})", "false"),
        ("ARRAY_CONTAINS([{'a': 1, 'b': 2}], {'a': 1}, true)", "true"),
        ("ARRAY_CONTAINS_ALL([1,2,3], 1, 3)", "true"),
        ("ARRAY_CONTAINS_ANY([1,2,3], 7, 8)", "false"),
        ("ARRAY_LENGTH('a')", "undefined"),
        ("ARRAY_SLICE([1,2,3,4], -2, 1)", "[3]"),
        ("ARRAY_SLICE([1,2,3,4], 1)", "[2,3,4]"),
        (
            "[ARRAY_SUM([1,2.5]), ARRAY_AVG([1,2]), ARRAY_MEDIAN([3,1,2,10]), ARRAY_MIN([3,1]), ARRAY_MAX([3,1])]",
            "[3.5,1.5,2.5,1,3]",
        ),
        ("SETINTERSECT([1,2,2,3], [2,3,3])", "[2,3]"),
        ("SETUNION([1,1,2], [2,3])", "[1,2,3]"),
        ("[SETDIFFERENCE([1,2,3], [2]), SETEQUAL([1,2], [2,1,1])]", "[[1,3],true]"),
        ("OBJECTTOARRAY({'a': 1})", r#"[{"k":"a","v":1}]"#),
        ("CHOOSE(2, 'a', 'b')", r#""b""#),
        ("IIF(1 > 2, 'a', 'b')", r#""b""#),
        ("DateTimeAdd('mm', 1, '2020-01-31T00:00:00.0000000Z')", r#""2020-02-29T00:00:00.0000000Z""#),
        ("DateTimeDiff('yyyy', '2028-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z')", "-8"),
        ("DateTimeFromParts(2020, 9, 4)", r#""2020-09-04T00:00:00.0000000Z""#),
        ("DateTimePart('mcs', '2020-01-02T03:04:05.6789123Z')", "678912"),
        ("DateTimeToTicks('2020-01-02T03:04:05Z')", "15779342450000000"),
        ("DateTimeToTimestamp('2020-07-09')", "1594252800000"),
        ("TicksToDateTime(15943368134575530)", r#""2020-07-09T23:20:13.4575530Z""#),
        ("TimestampToDateTime(1594227912345)", r#""2020-07-08T17:05:12.3450000Z""#),
        ("DateTimeBin('2021-06-28T17:24:29.2991234Z', 'hh', 2)", r#""2021-06-28T16:00:00.0000000Z""#),
        ("GetCurrentDateTime()", r#""2024-02-29T12:34:56.7890123Z""#),
        ("GetCurrentTimestamp()", "1709210096789"),
        ("YEAR('2020-01-02') + MONTH('2020-01-02') + DAY('2020-01-02')", "2023"),
    ] {
        value(expr, expected);
    }
}

/// All pages of a query, with a page size, each carry passed through its bytes.
fn paged(query: &str, rows_per_page: usize) -> String {
    let (docs, cx) = (docs(), context());
    let program = compile(query, &Parameters::new()).unwrap();
    let room = Room { rows: rows_per_page, bytes: usize::MAX };
    let (mut all, mut carry, mut position) = (Vec::new(), None::<Carry>, 0);
    for _ in 0..100 {
        let mut out = Rows::default();
        let mut run = Run::start(&program, &cx, room, carry.as_ref()).unwrap();
        let mut at = if program.is_blocking() { 0 } else { position };
        while at < docs.len() {
            match run.feed(&Row::plain(docs[at].as_ref()), &mut out).unwrap() {
                Flow::More => at += 1,
                Flow::Full | Flow::Done => break,
            }
        }
        let end = run.finish(&mut out).unwrap();
        assert!(out.len() <= rows_per_page);
        all.extend(out.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()));
        match end {
            PageEnd::Continue(next) if program.is_blocking() || at < docs.len() => {
                carry = Some(Carry::from_bytes(&next.to_bytes()).unwrap());
                position = at;
            }
            _ => return format!("[{}]", all.join(",")),
        }
    }
    panic!("{query} does not end");
}

#[test]
fn any_page_size_gives_the_same_rows() {
    for query in [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE t FROM c JOIN t IN c.tags",
        "SELECT TOP 4 VALUE t FROM c JOIN t IN c.tags",
        "SELECT VALUE t FROM c JOIN t IN c.tags OFFSET 2 LIMIT 3",
        "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags",
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.tags ORDER BY c.n DESC",
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.tags ORDER BY c.pk, c.id DESC OFFSET 1 LIMIT 4",
        "SELECT VALUE c.id FROM c ORDER BY c.z",
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE t FROM (SELECT TOP 4 VALUE c FROM c ORDER BY c.id DESC) AS r JOIN t IN r.tags",
        "SELECT DISTINCT VALUE r.pk FROM (SELECT VALUE c FROM c OFFSET 1 LIMIT 3) AS r",
    ] {
        let whole = paged(query, 1_000);
        for rows_per_page in [1, 2, 3] {
            assert_eq!(paged(query, rows_per_page), whole, "{query} in pages of {rows_per_page}");
        }
    }
}

#[test]
fn damaged_carries_are_refused() {
    for bytes in [&b""[..], &[9], &[1, 0x80], &[3, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f], &[2, 1, 1]] {
        assert!(Carry::from_bytes(bytes).is_err());
    }
}

#[test]
fn hostile_expressions_stay_within_bounds() {
    let nested =
        |depth: usize, open: &str, close: &str| format!("{}c{}", open.repeat(depth), close.repeat(depth));
    for expr in [
        nested(100, "[", "]"),
        nested(60, "CONCAT('a', TOSTRING(", "))"),
        nested(40, "(SELECT VALUE ", ")"),
        "REPLACE(REPLICATE('a', 10000), 'a', REPLICATE('b', 10000))".to_owned(),
        format!("'x'{}", " || 'x'".repeat(100)),
    ] {
        let _ = answer_with(&format!("SELECT VALUE {expr} FROM c"), "[]");
    }
    let doubling = format!("{}'aaaaaaaa'{}", "CONCAT(".repeat(60), ", 'aaaaaaaa')".repeat(60));
    let _ = answer_with(&format!("SELECT VALUE {doubling} FROM c"), "[]");
    let product = "SELECT VALUE COUNT(1) FROM c JOIN a IN @l JOIN b IN @l JOIN d IN @l JOIN e IN @l";
    let list = format!(r#"[{{"name":"@l","value":[{}]}}]"#, vec!["1"; 200].join(","));
    assert_eq!(answer_with(product, &list), "error: The query visits too many rows for one item.");
}

#[test]
fn programs_and_values_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<orrery_query::Program>();
    shared::<Carry>();
    shared::<Rows>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Whatever compiles also runs, over any item, and answers JSON.
    #[test]
    fn random_queries_never_panic(
        words in prop::collection::vec(prop::sample::select(WORDS), 1..25),
        tail in prop::sample::select(TAILS),
    ) {
        let query = format!("SELECT VALUE {} FROM c {tail}", words.join(" "));
        let answer = answer_with(&query, r#"[{"name":"@p","value":[1,"x",null,{"a":-0.0}]}]"#);
        if answer.starts_with('[') {
            serde_json::from_str::<serde_json::Value>(&answer).expect("the answer is JSON");
        }
    }
}

const TAILS: &[&str] =
    &["", "ORDER BY c.n", "WHERE c.n > 1", "JOIN t IN c.tags", "OFFSET 1 LIMIT 1", "GROUP BY c.pk"];

const WORDS: &[&str] = &[
    "c",
    "c.n",
    "c.s",
    "c.tags",
    "c.o",
    "c['s']",
    "c.tags[0]",
    "1",
    "-2.5",
    "'ab'",
    "@p",
    "null",
    "undefined",
    "true",
    "[c.n, 1]",
    "{'a': c.s}",
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "!=",
    "<",
    "<<",
    ">>>",
    "|",
    "||",
    "??",
    "?",
    ":",
    "AND",
    "OR",
    "NOT",
    "IN ('a', 1)",
    "LIKE '%a_'",
    "BETWEEN 1 AND 'z'",
    "ABS(c.n)",
    "UPPER(c.s)",
    "COUNT(1)",
    "MAX(c.n)",
    "ARRAY_SLICE(c.tags, -1)",
    "SUBSTRING(c.s, 1, 2)",
    "REPLICATE(c.s, c.n)",
    "TOSTRING(c)",
    "EXISTS(SELECT VALUE t FROM t IN c.tags)",
    "ARRAY(SELECT VALUE t FROM t IN c.tags ORDER BY t)",
    "(",
    ")",
    "DateTimeAdd('mm', c.n, '2020-01-31')",
    "SETUNION(c.tags, @p)",
    "StringToObject(TOSTRING(c))",
    "ROUND(c.n, 400)",
    "INDEX_OF(c.s, 'a', c.n)",
    "POWER(c.n, 999)",
    "INTBITLEFTSHIFT(1, c.n)",
    "REGEXMATCH(c.s, c.s)",
];
