//! What queries tell besides their rows, and what they are refused for.

use super::*;

const EXPLAIN: &str = "x-orrery-explain";
pub(super) const ACCESS: &str = "x-orrery-query-access";
pub(super) const MERGE: &str = "x-orrery-query-merge";

async fn stock(definition: &str, throughput: u32) -> World {
    let definition =
        format!("\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}{definition}");
    let world = World::new(&definition, throughput).await;
    for n in 0..60 {
        let (pk, name) = (n % 4, ["Ada", "Bob", "Cid"][n % 3]);
        let body =
            format!("{{\"id\":\"{n}\",\"pk\":{pk},\"n\":{n},\"third\":{},\"name\":\"{name}\"}}", n % 3);
        assert_eq!(world.create(&format!("[{pk}]"), &body).await.status, 201);
    }
    world
}

impl World {
    pub(super) async fn query(&self, headers: &[(&str, &str)], text: &str) -> Answer {
        let headers = [&[(QUERY, "True")], headers].concat();
        self.send(Method::POST, None, &headers, &format!("{{\"query\":\"{text}\"}}")).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chosen_plan_is_told_on_request() {
    let world = stock("", 400).await;
    let text = "SELECT VALUE c.n FROM c WHERE c.n = 5";
    let silent = world.query(&[(KEY, "[1]")], text).await;
    assert!(silent.header(ACCESS).is_none() && !silent.body.contains("_explain"), "{}", silent.body);
    for (wanted, told) in [("auto", "index"), ("index", "index"), ("scan", "scan")] {
        let answer = world.query(&[(KEY, "[1]"), (EXPLAIN, "true"), (ACCESS, wanted)], text).await;
        assert!(answer.body.contains("\"Documents\":[5],\"_count\":1,\"_explain\":{"), "{}", answer.body);
        assert_eq!(answer.header(ACCESS), Some(told));
        let explained = answer.field("_explain");
        assert!(explained.contains(&format!("\"text\":\"method: {told}")), "{explained}");
        assert!(explained.contains("\"plan\":{"), "{explained}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_advice_come_in_the_forms_that_clients_read() {
    let world = stock("", 400).await;
    let text = "SELECT * FROM c WHERE c.n = 5 AND CONTAINS(c.name, 'd')";
    let asked = [
        (KEY, "[1]"),
        ("x-ms-documentdb-populatequerymetrics", "True"),
        ("x-ms-cosmos-populateindexmetrics-v2", "True"),
        ("x-ms-cosmos-populatequeryadvice", "True"),
    ];
    let answer = world.query(&asked, text).await;
    let metrics = answer.header("x-ms-documentdb-query-metrics").expect("metrics");
    assert!(metrics.contains(";retrievedDocumentCount=1;"), "{metrics}");
    let index = answer.header("x-ms-cosmos-index-utilization").expect("index metrics");
    assert!(index.starts_with("{\"UtilizedIndexes\":{\"SingleIndexes\":["), "{index}");
    for path in ["\"/n/?\"", "\"/pk/?\""] {
        assert!(index.contains(path), "{index}");
    }
    assert_eq!(answer.header("x-ms-cosmos-query-advice"), Some(r#"[{"Id":"QA1002","Params":[]}]"#));
    let flat = world.query(&[(KEY, "[1]"), ("x-ms-cosmos-populateindexmetrics", "True")], text).await;
    let flat = flat.header("x-ms-cosmos-index-utilization").expect("index metrics").to_owned();
    assert!(flat.starts_with("eyJVdGlsaXplZFNpbmdsZUluZGV4ZXMi"), "base64 of the older form: {flat}");
    let plain = world.query(&[(KEY, "[1]")], text).await;
    assert!(plain.headers.iter().all(|(name, _)| !name.contains("metrics") && !name.contains("advice")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_needs_an_index() {
    let policy = r#","indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/name/?"}],
        "compositeIndexes":[[{"path":"/third","order":"ascending"},{"path":"/n","order":"descending"}]]}"#;
    let world = stock(policy, 400).await;
    for (order, refusal) in [
        ("c.n", None),
        ("c.id DESC", None),
        ("c._ts", None),
        ("c.third, c.n DESC", None),
        ("c.third DESC, c.n", None),
        ("c.third, c.n", Some("composite index")),
        ("c.n DESC, c.third", Some("composite index")),
        ("c.name", Some("order-by item is excluded")),
    ] {
        let answer = world.query(&[(KEY, "[1]")], &format!("SELECT * FROM c ORDER BY {order}")).await;
        assert_eq!(answer.status, if refusal.is_some() { 400 } else { 200 }, "{order}: {}", answer.body);
        assert!(answer.body.contains(refusal.unwrap_or_default()), "{order}: {}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ties_of_a_descending_order_are_told_to_go_backwards() {
    let world = stock("", 400).await;
    for (order, backwards) in [("c.third", false), ("c.third ASC", false), ("c.third DESC", true)] {
        let answer = world.query(&[(KEY, "[1]")], &format!("SELECT * FROM c ORDER BY {order}")).await;
        let info = answer.header("x-ms-cosmos-query-execution-info").expect("it is always there");
        assert_eq!(info, format!("{{\"reverseRidEnabled\":false,\"reverseIndexScan\":{backwards}}}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_merges_on_request() {
    let world = stock("", 24_000).await;
    for (text, rows) in [
        ("SELECT VALUE COUNT(1) FROM c", "[60]"),
        ("SELECT COUNT(1) AS k FROM c", r#"[{"k":60}]"#),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 3", "[58,57,56]"),
        ("SELECT DISTINCT VALUE c.third FROM c ORDER BY c.third", "[0,1,2]"),
    ] {
        let refused = world.query(&[(CROSS, "True")], text).await;
        assert_eq!((refused.status, refused.substatus), (400, 1004), "{text}");
        let merged = world.query(&[(CROSS, "True"), (MERGE, "True")], text).await;
        assert!(merged.body.contains(&format!("\"Documents\":{rows},")), "{text}: {}", merged.body);
    }
    let forbidden = world.query(&[(MERGE, "True")], "SELECT VALUE COUNT(1) FROM c").await;
    assert_eq!(forbidden.status, 400, "merging is no leave to visit all partitions");
}

#[tokio::test(flavor = "multi_thread")]
async fn computed_properties_stand_for_expressions() {
    let computed = r#","computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.name) FROM c"}]"#;
    let world = stock(computed, 400).await;
    let count = world.query(&[(KEY, "[1]")], "SELECT VALUE COUNT(1) FROM c WHERE c.low = 'ada'").await;
    assert!(count.body.contains("\"Documents\":[5]"), "{}", count.body);
    let shown = world.query(&[(KEY, "[1]")], "SELECT c.low FROM c WHERE c.n = 1").await;
    assert!(shown.body.contains(r#"[{"low":"bob"}]"#), "{}", shown.body);
    let all = world.query(&[(KEY, "[1]")], "SELECT * FROM c WHERE c.n = 1").await;
    assert!(!all.body.contains("\"low\""), "{}", all.body);
}

/// Three items in order of a value that has about 20,000 bytes.
async fn long_values(value: impl Fn(&str) -> String) -> World {
    let world = World::simple().await;
    for n in 0..3 {
        let long = value(&format!("{}{n}", "x".repeat(20_000)));
        let body = format!("{{\"id\":\"{n}\",\"pk\":1,\"long\":{long}}}");
        assert_eq!(world.create("[1]", &body).await.status, 201);
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_keep_within_what_the_client_asks_for() {
    let world = long_values(|text| format!("\"{text}\"")).await;
    for (limit, most) in [("1", 1024), ("4", 4096), ("64", 8_000)] {
        let mut continuation = String::new();
        for n in 0..3 {
            let mut headers = vec![(KEY, "[1]"), (COUNT, "1")];
            headers.push(("x-ms-documentdb-responsecontinuationtokenlimitinkb", limit));
            if n > 0 {
                headers.push(("x-ms-continuation", &continuation));
            }
            let page = world.query(&headers, "SELECT VALUE c.id FROM c ORDER BY c.long").await;
            assert!(page.body.contains(&format!("\"Documents\":[\"{n}\"]")), "{}", page.body);
            let token = page.continuation.unwrap_or_default();
            assert!(n == 2 || (1..=most).contains(&token.len()), "{limit}: {}", token.len());
            continuation = token;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_large_arrays_are_short() {
    let world = long_values(|text| format!("[\"{text}\"]")).await;
    let text = "SELECT VALUE c.id FROM c ORDER BY c.long";
    let whole = world.query(&[(KEY, "[1]")], text).await;
    let (mut rows, mut token) = (Vec::new(), None::<String>);
    for _ in 0..3 {
        let mut headers = vec![(KEY, "[1]"), (COUNT, "1")];
        headers.extend(token.as_deref().map(|token| (CONTINUATION, token)));
        let page = world.query(&headers, text).await;
        assert_eq!(page.status, 200, "{}", page.body);
        rows.push(page.field("Documents").trim_matches(['[', ']']).to_owned());
        token = page.continuation;
        assert!(token.as_ref().is_none_or(|token| token.len() < 400), "{token:?}");
    }
    assert_eq!((format!("[{}]", rows.join(",")), token), (whole.field("Documents"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn continuations_over_several_partitions_name_the_range_they_go_on_in() {
    let world = stock("", 30_000).await;
    let ranges: Vec<(String, String)> = {
        let catalog = world.db.catalog();
        let found = address::container(&catalog, "db", "items").expect("the container");
        found.container.ranges().iter().map(|r| (r.range.min.to_hex(), r.range.max.to_hex())).collect()
    };
    let body = r#"{"query":"SELECT * FROM c WHERE c.n >= 0"}"#;
    let page = |token: Option<String>| {
        let world = &world;
        async move {
            let mut headers = vec![(QUERY, "True"), (CROSS, "True"), (COUNT, "7")];
            headers.extend(token.as_deref().map(|token| (CONTINUATION, token)));
            world.send(Method::POST, None, &headers, body).await
        }
    };
    // As it came, in a list, and only what is inside: all go on at the same place.
    type Form = fn(&serde_json::Value) -> String;
    let forms: [Form; 3] = [
        |token| token.to_string(),
        |token| serde_json::json!([token]).to_string(),
        |token| token["token"].as_str().expect("a token").to_owned(),
    ];
    for form in forms {
        let (mut ids, mut token) = (Vec::new(), None);
        loop {
            let found = page(token).await;
            assert_eq!(found.status, 200, "{}", found.body);
            ids.extend(found.ids());
            let Some(next) = found.continuation else { break };
            let next: serde_json::Value = serde_json::from_str(&next).expect("a continuation in JSON");
            let text = |name: &str| next["range"][name].as_str().expect(name).to_owned();
            assert!(ranges.contains(&(text("min"), text("max"))), "{next}");
            token = Some(form(&next));
        }
        ids.sort_unstable_by_key(|id| id.parse::<u32>().expect("a number"));
        assert_eq!(ids, (0..60).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    let (last, rest) = ranges.split_last().expect("ranges");
    assert!(!rest.is_empty(), "there are several partitions");
    let from_last =
        page(Some(format!(r#"{{"token":null,"range":{{"min":"{}","max":"FF"}}}}"#, last.0))).await;
    assert!(from_last.status == 200 && from_last.ids().len() < 60);
    assert_eq!(page(Some("{\"token\":1}".to_owned())).await.status, 400);
    let inside = [(QUERY, "True"), (COUNT, "2"), (KEY, "[1]")];
    let inside = world.send(Method::POST, None, &inside, body).await;
    assert!(inside.continuation.expect("more").starts_with("+RID:~"), "one partition needs no wrapping");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_over_a_list_of_its_own_is_answered_once() {
    let world = World::new(r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#, 40_000).await;
    let list = (0..25).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let ask = async |text: &str, count: &'static str| {
        let body = format!("{{\"query\":\"{text}\"}}");
        let (mut rows, mut token) = (Vec::new(), None::<String>);
        for _ in 0..100 {
            let mut headers = vec![(QUERY, "True"), (COUNT, count)];
            headers.extend(token.as_deref().map(|token| (CONTINUATION, token)));
            let page = world.send(Method::POST, None, &headers, &body).await;
            assert_eq!(page.status, 200, "{}", page.body);
            rows.push((page.count, page.body));
            token = page.continuation;
            if token.is_none() {
                break;
            }
        }
        rows
    };
    for items in 0..3 {
        for count in ["1", "7", "25", "100"] {
            let pages = ask(&format!("SELECT VALUE x FROM x IN [{list}]"), count).await;
            let rows: Vec<String> = pages
                .iter()
                .filter_map(|(_, body)| body.split_once("\"Documents\":[")?.1.split_once(']'))
                .map(|(rows, _)| rows.to_owned())
                .collect();
            assert_eq!(rows.join(","), list, "pages of {count} beside {items} items");
            assert!(pages.iter().all(|(count, _)| *count != Some(0)), "no empty page");
        }
        let sum = ask(&format!("SELECT VALUE SUM(x) FROM x IN [{list}]"), "10").await;
        assert!(sum.len() == 1 && sum[0].1.contains("\"Documents\":[300]"), "{sum:?}");
        let body = format!("{{\"id\":\"{items}\",\"pk\":{items}}}");
        assert_eq!(world.create(&format!("[{items}]"), &body).await.status, 201);
    }
}
