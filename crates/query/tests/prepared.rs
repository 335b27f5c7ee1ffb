//! A text that was compiled before its parameters were known gives the same programs as one that was compiled with
//! them: the same answers, and the same plans.

use std::sync::Arc;

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::{
    Context, IndexPath, Indexes, Parameters, Prepared, Program, Row, Vocabulary, compile_with,
    partition_key_filter, plan_access,
};

/// Everything is indexed.
struct All;

impl Indexes for All {
    fn covers(&self, _: &IndexPath) -> bool {
        true
    }
}

/// The texts, and whether the values of their parameters may wait.
const TEXTS: [(&str, bool); 24] = [
    ("SELECT * FROM c", true),
    ("SELECT * FROM c WHERE c.a = @a", true),
    ("SELECT * FROM c WHERE @a = c.a AND c.b = @b", true),
    ("SELECT c.a, c.a < @a AS less FROM c WHERE c.a != @a", true),
    ("SELECT VALUE c.a FROM c WHERE c.a BETWEEN @a AND @b", true),
    ("SELECT * FROM c WHERE c.a >= @a OR NOT (c.b < @b)", true),
    ("SELECT * FROM c WHERE c.a = @missing", true),
    ("SELECT * FROM c WHERE @a = @b", true),
    ("SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.list WHERE t = @a)", true),
    ("SELECT VALUE t FROM c JOIN t IN c.list WHERE t > @a", true),
    ("SELECT COUNT(1) AS n FROM c WHERE c.a > @a", true),
    ("SELECT c.b, COUNT(1) AS n FROM c WHERE c.a > @a GROUP BY c.b", true),
    ("SELECT DISTINCT VALUE c.b FROM c WHERE c.a != @a", true),
    ("SELECT * FROM c WHERE c.a > @a ORDER BY c.a DESC", true),
    ("SELECT VALUE r.a FROM (SELECT c.a FROM c WHERE c.a > @a ORDER BY c.a OFFSET 0 LIMIT 2) AS r", true),
    ("SELECT * FROM c WHERE c.low = @a", true),
    ("SELECT TOP @n * FROM c WHERE c.a = @a", false),
    ("SELECT * FROM c WHERE c[@name] = @a", false),
    ("SELECT * FROM c WHERE c.b LIKE @b", false),
    ("SELECT * FROM c WHERE RegexMatch(c.b, @b)", false),
    ("SELECT * FROM c WHERE c.a IN (@a, @b)", false),
    ("SELECT * FROM c WHERE ARRAY_CONTAINS(@list, c.a)", false),
    ("SELECT VALUE {x: @a, y: [@b, 1]} FROM c", false),
    ("SELECT VALUE @a FROM c", false),
];

const VALUES: [&str; 8] = ["2", "2.5", r#""x""#, "null", "true", "[1,2]", r#"{"k":1}"#, "-1"];

fn parameters(a: &str, b: &str) -> Parameters {
    let body = format!(
        r#"[{{"name":"@a","value":{a}}},{{"name":"@b","value":{b}}},{{"name":"@n","value":2}},
            {{"name":"@name","value":"a"}},{{"name":"@list","value":[1,2,"x"]}}]"#
    );
    let doc = json::parse(body.as_bytes(), 8).expect("test parameters");
    Parameters::from_value(doc.root()).expect("test parameters")
}

fn items() -> Vec<Doc> {
    let texts = [
        r#"{"id":"1","a":1,"b":"x","list":[1,2,3]}"#,
        r#"{"id":"2","a":2,"b":"y","list":["x",true]}"#,
        r#"{"id":"3","a":3,"b":"x","list":[]}"#,
        r#"{"id":"4","a":"x","b":2}"#,
        r#"{"id":"5","a":null,"b":[1,2],"list":[2.5]}"#,
        r#"{"id":"6","a":true,"b":{"k":1}}"#,
        r#"{"id":"7","a":[1,2]}"#,
        r#"{"id":"8","a":{"k":1},"b":null,"list":"x"}"#,
        r#"{"id":"9","b":"X"}"#,
    ];
    texts.iter().map(|text| json::parse(text.as_bytes(), 8).expect("a test item")).collect()
}

fn rows(program: &Program, items: &[Doc]) -> orrery_query::Result<Vec<String>> {
    let rows = items.iter().map(|item| Row::plain(item.as_ref()));
    let rows = program.run_all(rows, &Context::at(0, 0))?;
    Ok(rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect())
}

#[test]
fn programs_bound_later_answer_and_plan_as_those_compiled_with_their_values() {
    let properties = Vocabulary::new([("low", "SELECT VALUE LOWER(c.b) FROM c")]).expect("a property");
    let properties = Arc::new(properties);
    let key = PartitionKeyDef {
        kind: PartitionKeyKind::Hash,
        version: PartitionKeyVersion::V2,
        paths: vec![Path::parse_property("/a").expect("a path")],
    };
    let items = items();
    let mut answered = 0;
    for (text, can_wait) in TEXTS {
        let prepared = Prepared::new(text, properties.clone()).expect("a test query");
        assert_eq!(prepared.is_compiled(), can_wait, "{text}");
        for (a, b) in VALUES.iter().flat_map(|a| VALUES.iter().map(move |b| (a, b))) {
            let parameters = parameters(a, b);
            let expected = compile_with(text, &parameters, &properties);
            let found = prepared.bind(&parameters);
            let (expected, found) = match (expected, found) {
                (Ok(expected), Ok(found)) => (expected, found),
                (expected, found) => {
                    assert_eq!(found.err(), expected.err(), "{text} with {a}, {b}");
                    continue;
                }
            };
            let wanted = rows(&expected, &items);
            answered += wanted.as_ref().map_or(0, Vec::len);
            assert_eq!(rows(&found, &items), wanted, "{text} with {a}, {b}");
            assert_eq!(plan_access(&found, &All), plan_access(&expected, &All), "{text} with {a}, {b}");
            assert_eq!(partition_key_filter(&found, &key), partition_key_filter(&expected, &key), "{text}");
            assert_eq!(found.query(), expected.query());
            assert_eq!(found.is_light(), expected.is_light(), "{text}");
            assert_eq!(found.text_bytes(), expected.text_bytes(), "{text}");
        }
    }
    assert!(answered > 1_000, "{answered} rows say too little");
}
