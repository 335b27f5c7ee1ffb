//! Query texts: soups of the words of the language, and shapes that cost a careless engine its stack or its time.

use orrery_testkit::Random;
use serde_json::json;

use crate::{json, junk};

const WORDS: [&str; 78] = [
    "SELECT",
    "SELECT VALUE",
    "SELECT DISTINCT",
    "SELECT TOP 1",
    "TOP",
    "*",
    "FROM",
    "FROM c",
    "IN",
    "JOIN",
    "JOIN x IN c.tags",
    "WHERE",
    "ORDER BY",
    "ORDER BY c.n DESC",
    "GROUP BY",
    "GROUP BY c.pk",
    "OFFSET 1 LIMIT 1",
    "OFFSET",
    "LIMIT",
    "AS",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "EXISTS(",
    "ARRAY(",
    "c",
    "c.pk",
    "c.n",
    "c.tags",
    "c.tags[0]",
    "c[\"n\"]",
    "c.*",
    "root",
    "@p",
    "@",
    "x",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{\"a\":",
    ",",
    ".",
    ":",
    "=",
    "!=",
    "<>",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "??",
    "?",
    "||",
    "|",
    "&",
    "^",
    "~",
    "<<",
    ">>",
    ">>>",
    "1",
    "1e400",
    "'a'",
    "\"a\"",
    "null",
    "undefined",
    "COUNT(1)",
    "udf.f(1)",
    "--",
];

const FUNCTIONS: [&str; 36] = [
    "ABS",
    "AVG",
    "SUM",
    "MIN",
    "MAX",
    "COUNT",
    "CONCAT",
    "CONTAINS",
    "STARTSWITH",
    "SUBSTRING",
    "REPLICATE",
    "REVERSE",
    "REGEXMATCH",
    "REPLACE",
    "LEFT",
    "RIGHT",
    "INDEX_OF",
    "STRINGTOARRAY",
    "STRINGTONUMBER",
    "TOSTRING",
    "ARRAY_CONTAINS",
    "ARRAY_SLICE",
    "ARRAY_CONCAT",
    "SETUNION",
    "POWER",
    "EXP",
    "ROUND",
    "TRUNC",
    "INTADD",
    "INTBITLEFTSHIFT",
    "INTDIV",
    "DATETIMEADD",
    "DATETIMEPART",
    "TICKSTODATETIME",
    "ST_DISTANCE",
    "VECTORDISTANCE",
];

const GOOD: [&str; 8] = [
    "SELECT * FROM c",
    "SELECT c.id, c.n AS number FROM c WHERE c.pk = 'k' AND c.n > 1 ORDER BY c.n DESC OFFSET 1 LIMIT 2",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT c.pk, AVG(c.n) AS mean FROM c GROUP BY c.pk",
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags WHERE STARTSWITH(t, 'a')",
    "SELECT VALUE {\"a\": [c.n, -c.n], \"b\": c.tags[0] ?? 'none'} FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags)",
    "SELECT TOP 3 c.id FROM c WHERE c.id IN ('a', 'b') AND c.n BETWEEN 1 AND 5 AND c.pk LIKE 'k%' ESCAPE '!'",
    "SELECT VALUE ARRAY(SELECT VALUE x + 1 FROM x IN c.numbers WHERE IS_DEFINED(x)) FROM c",
];

/// The body of a query request, text and parameters.
pub fn body(random: &mut Random) -> Vec<u8> {
    let query = text(random);
    if random.one_in(12) {
        return query;
    }
    let query = String::from_utf8_lossy(&query).into_owned();
    let mut body = json!({"query": query, "parameters": [{"name": "@p", "value": json::nasty(random, 2)}]});
    if random.one_in(10) {
        body["parameters"] = json::nasty(random, 3);
    }
    body.to_string().into_bytes()
}

fn text(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => junk::text(random),
        1 | 2 => words(random).join(" ").into_bytes(),
        3 => format!("SELECT {} FROM c WHERE {}", words(random).join(" "), words(random).join(" "))
            .into_bytes(),
        4 if random.one_in(4) => deep(random).into_bytes(),
        5 | 6 => call(random).into_bytes(),
        7 => costly(random).into_bytes(),
        _ => {
            let good = *random.pick(&GOOD);
            junk::mutate(random, good.as_bytes())
        }
    }
}

fn words(random: &mut Random) -> Vec<&'static str> {
    (0..random.below(20)).map(|_| *random.pick(&WORDS)).collect()
}

/// One shape inside itself, thousands of times.
fn deep(random: &mut Random) -> String {
    let shapes = [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{\"a\":", "1", "}"),
        ("NOT ", "true", ""),
        ("-", "1", ""),
        ("- ", "1", ""),
        ("1+", "1", ""),
        ("true AND ", "true", ""),
        ("ABS(", "1", ")"),
        ("(SELECT VALUE ", "1", ")"),
        ("ARRAY(SELECT VALUE ", "1", ")"),
        ("true ? ", "1", " : 0"),
        ("EXISTS(SELECT VALUE ", "1", ")"),
        ("c.a ?? ", "1", ""),
        ("c", "", ".a"),
        ("c", "", "[0]"),
        ("'a' || ", "'b'", ""),
        ("1 IN (", "1", ")"),
    ];
    let (open, middle, close) = *random.pick(&shapes);
    let times = *random.pick(&[50, 200, 1_000, 10_000, 30_000]);
    if open == "c" {
        return format!("SELECT VALUE c{} FROM c", close.repeat(times));
    }
    format!("SELECT VALUE {}{middle}{} FROM c", open.repeat(times), close.repeat(times))
}

/// A function with arguments that it was not made for.
fn call(random: &mut Random) -> String {
    let function = *random.pick(&FUNCTIONS);
    let arguments: Vec<String> = (0..random.below(5)).map(|_| argument(random)).collect();
    let clause =
        *random.pick(&["", " WHERE c.n > 0", " ORDER BY c.n", " GROUP BY c.pk", " OFFSET 0 LIMIT 1"]);
    format!("SELECT VALUE {function}({}) FROM c{clause}", arguments.join(", "))
}

fn argument(random: &mut Random) -> String {
    match random.below(6) {
        0 => json::nasty(random, 1).to_string(),
        1 => random.pick(&["c", "c.n", "c.tags", "c.pk", "@p", "undefined", "c.missing", "null"]).to_string(),
        2 => random
            .pick(&["9007199254740993", "-9223372036854775808", "1e308", "-1", "0", "64", "0.1"])
            .to_string(),
        3 => random
            .pick(&[
                "'(a+)+$'",
                "'((((((((((a*)*)*)*)*)*)*)*)*)*'",
                "'[\\\\p{L}]{1000}{1000}'",
                "'%_%'",
                "'\\\\'",
                "'['",
            ])
            .to_string(),
        4 => random
            .pick(&["'2024-02-30T25:61:61Z'", "'9999-12-31T23:59:59.9999999Z'", "'yyyy'", "'dd'", "'ns'"])
            .to_string(),
        _ => random
            .pick(&["'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'", "''", "'\\u0000'", "[1, 2, 3]", "{}", "true"])
            .to_string(),
    }
}

/// Texts that ask for far more work or far larger answers than they look.
fn costly(random: &mut Random) -> String {
    // Each join multiplies by five; more of them would test patience rather than limits.
    let count = random.below(6);
    let joins: String = (0..count).map(|n| format!(" JOIN j{n} IN c.numbers")).collect();
    match random.below(7) {
        0 => format!("SELECT VALUE 1 FROM c{joins}"),
        1 => format!("SELECT VALUE COUNT(1) FROM c{joins} WHERE c.n < 0"),
        2 => "SELECT VALUE REPLICATE(REPLICATE(REPLICATE('xxxxxxxxxx', 10000), 10000), 10000) FROM c"
            .to_owned(),
        3 => format!("SELECT * FROM c WHERE c.id IN ({})", vec!["'a'"; random.below(20_000) + 1].join(",")),
        4 => format!("SELECT * FROM c WHERE {}", vec!["c.n = 1"; random.below(5_000) + 1].join(" OR ")),
        5 => "SELECT VALUE REGEXMATCH(REPLICATE('a', 5000), '(a|aa)+$', 'imsx') FROM c".to_owned(),
        _ => format!("SELECT VALUE [{}] FROM c", vec!["c"; random.below(3_000) + 1].join(",")),
    }
}
