//! Queries that go on where the client says, and what of a query body is not understood.

use serde_json::{Value, json};

use super::*;

const ORDERED: &str = "SELECT c._rid, [{\"item\": c.v}] AS orderByItems, c AS payload FROM c ORDER BY c.v";
const FOUR: &str = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;

/// Items of one partition with these values, in the order of their creation; an empty text is an item without one.
async fn with_values(definition: &str, values: &[&str]) -> World {
    let world = World::new(&format!("{FOUR}{definition}"), 400).await;
    for (n, value) in values.iter().enumerate() {
        let member = if value.is_empty() { String::new() } else { format!(",\"v\":{value}") };
        // Ids go the other way than creation does.
        let body = format!("{{\"id\":\"{:02}\",\"pk\":{},\"n\":{n}{member}}}", 99 - n, n % 3);
        assert_eq!(world.create(&format!("[{}]", n % 3), &body).await.status, 201, "{body}");
    }
    world
}

impl World {
    async fn resume(&self, text: &str, filter: &Value, more: &[(&str, &str)]) -> Answer {
        let headers = [&[(QUERY, "True"), (RANGE, "0")], more].concat();
        let body = json!({"query": text, "resumeFilter": filter}).to_string();
        self.send(Method::POST, None, &headers, &body).await
    }

    /// All rows of a query, as values: what is ordered by, the rid and the number of the item.
    async fn rows(&self, text: &str) -> Vec<(Value, String, u64)> {
        let answer = self.resume(text, &Value::Null, &[]).await;
        answer.rows()
    }
}

impl Answer {
    fn rows(&self) -> Vec<(Value, String, u64)> {
        let body: Value = serde_json::from_str(&self.body).expect("JSON");
        let row = |row: &Value| {
            let rid = row["_rid"].as_str().expect("a rid").to_owned();
            (row["orderByItems"].clone(), rid, row["payload"]["n"].as_u64().expect("a number"))
        };
        body["Documents"].as_array().unwrap_or_else(|| panic!("{body}")).iter().map(row).collect()
    }

    fn numbers(&self) -> Vec<u64> {
        self.rows().into_iter().map(|(_, _, n)| n).collect()
    }
}

/// What .NET sends for the value of a row.
fn resume_value(items: &Value) -> Value {
    let of = |item: &Value| match item.get("item") {
        None => json!([]),
        Some(value) => value.clone(),
    };
    Value::Array(items.as_array().expect("a list").iter().map(of).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_goes_on_at_the_resume_point() {
    let values = ["3", "", "\"b\"", "1", "true", "null", "3", "\"a\"", "3", "", "2.5", "false", "1", "\"b\""];
    let world = with_values("", &values).await;
    for order in ["", " DESC"] {
        let text = format!("{ORDERED}{order}");
        let all = world.rows(&text).await;
        assert_eq!(all.len(), values.len());
        for (at, (items, rid, _)) in all.iter().enumerate() {
            let value = resume_value(items);
            let numbers = |rows: &[(Value, String, u64)]| rows.iter().map(|row| row.2).collect::<Vec<_>>();
            let first = all.iter().position(|row| row.0 == *items).expect("itself");
            let behind = all.iter().rposition(|row| row.0 == *items).expect("itself") + 1;
            for (filter, wanted) in [
                (json!({"value": value, "rid": rid, "exclude": false}), &all[at..]),
                (json!({"value": value, "rid": rid, "exclude": true}), &all[at + 1..]),
                (json!({"value": value, "exclude": false}), &all[first..]),
                (json!({"value": value, "exclude": true}), &all[behind..]),
            ] {
                for access in ["scan", "index"] {
                    let answer = world.resume(&text, &filter, &[("x-orrery-query-access", access)]).await;
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    assert_eq!(answer.numbers(), numbers(wanted), "{order} {filter} {access}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_behind_a_resume_point_end() {
    let world = with_values("", &["1"; 12]).await;
    let all = world.rows(ORDERED).await;
    let filter = json!({"value": [1], "rid": all[4].1, "exclude": false});
    let (mut numbers, mut token) = (Vec::new(), None::<String>);
    for _ in 0..20 {
        let mut more = vec![(COUNT, "3")];
        more.extend(token.as_deref().map(|token| (CONTINUATION, token)));
        let page = world.resume(ORDERED, &filter, &more).await;
        numbers.extend(page.numbers());
        token = page.continuation;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(numbers, (4..12).collect::<Vec<_>>());
    // Of a continuation and a resume point the later one counts.
    let token = world.resume(ORDERED, &Value::Null, &[(COUNT, "2")]).await.continuation.expect("more");
    let later = world.resume(ORDERED, &filter, &[(CONTINUATION, &token)]).await;
    assert_eq!(later.numbers(), (4..12).collect::<Vec<_>>());
    let token = world.resume(ORDERED, &Value::Null, &[(COUNT, "7")]).await.continuation.expect("more");
    let later = world.resume(ORDERED, &filter, &[(CONTINUATION, &token)]).await;
    assert_eq!(later.numbers(), (7..12).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_item_still_marks_its_place() {
    let world = with_values("", &["1"; 9]).await;
    let rid = world.rows(ORDERED).await[4].1.clone();
    assert_eq!(world.send(Method::DELETE, Some("95"), &[(KEY, "[1]")], "").await.status, 204);
    let filter = json!({"value": [1], "rid": rid, "exclude": false});
    for (order, wanted) in [("", [5, 6, 7, 8]), (" DESC", [3, 2, 1, 0])] {
        let answer = world.resume(&format!("{ORDERED}{order}"), &filter, &[]).await;
        assert_eq!(answer.numbers(), wanted, "{order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_and_objects_resume_by_their_hash() {
    let values = [
        "[1]",
        "{\"a\":1}",
        "[]",
        "7",
        "{}",
        "[1,[2]]",
        "{\"b\":[]}",
        "[\"x\"]",
        "\"s\"",
        "{\"a\":2}",
        "[1]",
    ];
    let world = with_values("", &values).await;
    // The hashes as the .NET SDK makes them, halves as signed numbers.
    let empty_array =
        json!({"type": "array", "low": -6706074647855398782_i64, "high": 9031114912533472255_i64});
    let empty_object =
        json!({"type": "object", "low": 1457042291250783704_i64, "high": 1493060239874959160_i64});
    for order in ["", " DESC"] {
        let text = format!("{ORDERED}{order}");
        let all = world.rows(&text).await;
        for (number, value) in [(2, &empty_array), (4, &empty_object)] {
            let at = all.iter().position(|row| row.2 == number).expect("it is there");
            let wanted: Vec<u64> = all[at..].iter().map(|row| row.2).collect();
            for access in ["scan", "index"] {
                let access = [("x-orrery-query-access", access)];
                let from = world.resume(&text, &json!({"value": [value], "exclude": false}), &access).await;
                assert_eq!(from.numbers(), wanted, "{order} {value} {access:?}");
                let with_rid = json!({"value": [value], "rid": all[at].1, "exclude": false});
                assert_eq!(world.resume(&text, &with_rid, &access).await.numbers(), wanted);
                let behind = world.resume(&text, &json!({"value": [value], "exclude": true}), &access).await;
                assert_eq!(behind.numbers(), wanted[1..], "{order} {value} {access:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_values_resume_a_composite_order() {
    let composite = r#","indexingPolicy":{"compositeIndexes":[[{"path":"/v","order":"ascending"},
        {"path":"/n","order":"descending"}]]}"#;
    let world = with_values(composite, &["2", "1", "2", "", "[3]", "1", "2", "[3]", "[2]"]).await;
    let text = "SELECT c._rid, [{\"item\": c.v}, {\"item\": c.n}] AS orderByItems, c AS payload FROM c \
        ORDER BY c.v, c.n DESC";
    let all = world.rows(text).await;
    for access in ["scan", "index"] {
        let access = [("x-orrery-query-access", access)];
        for (value, from) in [(json!([2, 2]), 2), (json!([2, 5]), 6), (json!([1, 9]), 5), (json!([[], 0]), 5)]
        {
            let answer = world.resume(text, &json!({"value": value, "exclude": false}), &access).await;
            let wanted = match from {
                6 => all.iter().position(|row| row.2 == 2),
                from => all.iter().position(|row| row.2 == from),
            };
            let wanted: Vec<u64> = all[wanted.expect("a row")..].iter().map(|row| row.2).collect();
            assert_eq!(answer.numbers(), wanted, "{value} {access:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_query_body_says_is_never_passed_over() {
    let world = with_values("", &["1", "2"]).await;
    for filter in [
        json!([]),
        json!("x"),
        json!({}),
        json!({"value": []}),
        json!({"value": 1}),
        json!({"value": [1, 2]}),
        json!({"value": [[1]]}),
        json!({"value": [{"type": "list", "low": 1, "high": 2}]}),
        json!({"value": [{"type": "array", "low": 1}]}),
        json!({"value": [{"type": "array", "low": 1.5, "high": 2}]}),
        json!({"value": [{"type": "array", "low": 1, "high": 2, "more": 3}]}),
        json!({"value": [1], "exclude": 1}),
        json!({"value": [1], "rid": 1}),
        json!({"value": [1], "rid": "nonsense"}),
        json!({"value": [1], "rid": "AAAAAA=="}),
        json!({"value": [1], "skip": 1}),
    ] {
        let answer = world.resume(ORDERED, &filter, &[]).await;
        assert_eq!(answer.status, 400, "{filter}: {}", answer.body);
    }
    for text in ["SELECT * FROM c", "SELECT VALUE COUNT(1) FROM c", "SELECT c.v FROM c GROUP BY c.v"] {
        let answer = world.resume(text, &json!({"value": [1], "exclude": false}), &[]).await;
        assert_eq!(answer.status, 400, "{text}: {}", answer.body);
    }
    let headers = [(QUERY, "True"), (RANGE, "0")];
    for (member, status) in [
        ("\"limit\":1", 400),
        ("\"Parameters\":[]", 400),
        ("\"clientQLCompatibilityLevel\":1", 200),
        // The JavaScript SDK sends what its user put beside the text.
        ("\"maxItemCount\":1", 200),
        ("\"enableCrossPartitionQuery\":true,\"populateQueryMetrics\":false", 200),
        ("\"partitionKey\":1", 400),
        ("\"continuation\":\"x\"", 400),
    ] {
        let body = format!("{{\"query\":\"SELECT * FROM c\",{member}}}");
        let answer = world.send(Method::POST, None, &headers, &body).await;
        assert_eq!(answer.status, status, "{member}: {}", answer.body);
        assert!(
            status == 200 || answer.body.contains(member.split('"').nth(1).expect("a name")),
            "{}",
            answer.body
        );
    }
    for (name, value) in [
        ("x-ms-start-id", "AAAA"),
        ("x-ms-end-id", "AAAA"),
        ("x-ms-enumeration-direction", "Reverse"),
        ("x-ms-documentdb-filterby-schema-rid", "AAAA"),
        ("x-ms-cosmos-changefeed-wire-format-version", "2030-01-01"),
    ] {
        let feed = world
            .send(Method::GET, None, &[(RANGE, "0"), ("a-im", "Incremental feed"), (name, value)], "")
            .await;
        assert_eq!(feed.status, 400, "{name}: {}", feed.body);
        assert!(feed.body.contains(name), "{}", feed.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_query_with_a_malformed_resume_filter_is_refused() {
    let world = with_values("", &["1"]).await;
    let plan = async |filter: Value| {
        let headers = [(QUERY, "True"), ("x-ms-cosmos-is-query-plan-request", "True")];
        let body = json!({"query": "SELECT * FROM c ORDER BY c.v", "resumeFilter": filter}).to_string();
        world.send(Method::POST, None, &headers, &body).await.status
    };
    for wrong in [
        json!(1),
        json!({"value": 1}),
        json!({"value": [1], "exclude": 1}),
        json!({"value": [1], "rid": 1}),
        json!({"value": [1], "rid": "AAAA"}),
        json!({"value": [1], "more": true}),
    ] {
        assert_eq!(plan(wrong.clone()).await, 400, "{wrong}");
    }
    for right in [Value::Null, json!({"value": [1], "exclude": true})] {
        assert_eq!(plan(right.clone()).await, 200, "{right}");
    }
}
