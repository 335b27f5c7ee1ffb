//! What a client sees that does not know of a split.

use orrery_cluster::Container;

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";

async fn with_items(count: usize) -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    server.post("/dbs/d/colls", body).await.expect(201);
    for number in 0..count {
        let key = json!([number]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        let body = json!({"id": number.to_string(), "pk": number, "n": number * 7 % count});
        server.send("POST", DOCS, &headers, &body).await.expect(201);
    }
    server
}

impl Server {
    fn ranged(&self) -> Arc<Container> {
        let catalog = self.0.0.db.catalog();
        catalog.database("d").and_then(|database| database.container("c")).expect("made before").clone()
    }

    async fn split(&self, range: u32, children: u32) {
        self.0.0.db.split(&self.ranged(), range, children).await.expect("it can be split");
    }

    async fn merge(&self, left: u32, right: u32) {
        self.0.0.db.merge(&self.ranged(), left, right).await.expect("they can be merged");
    }

    /// All pages of a query that names a range, as the JavaScript SDK asks for them.
    async fn query_range(
        &self,
        range: &str,
        text: &str,
        mut after_page: impl AsyncFnMut(usize),
    ) -> Vec<Value> {
        let (mut rows, mut continuation, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let headers = [
                ("user-agent", "Node.js/22.0.0 (linux; x64) azure-cosmos-js/4.9.3"),
                ("x-ms-documentdb-isquery", "True"),
                ("x-ms-documentdb-partitionkeyrangeid", range),
                ("x-ms-max-item-count", "7"),
                ("x-ms-continuation", continuation.as_str()),
            ];
            let answer = self.send("POST", DOCS, &headers, &json!({"query": text})).await.expect(200);
            rows.extend(answer.body["Documents"].as_array().expect("rows").iter().cloned());
            continuation = answer.header("x-ms-continuation").to_owned();
            if continuation.is_empty() {
                return rows;
            }
            pages += 1;
            after_page(pages).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_that_go_on_naming_a_range_which_was_split_are_answered_as_they_were_meant() {
    let server = with_items(40).await;
    let ordered: Vec<Value> = (0..40).map(Value::from).collect();
    let text = "SELECT VALUE c.n FROM c ORDER BY c.n";
    // The split comes between two pages.
    let rows = server
        .query_range("0", text, async |pages| {
            if pages == 2 {
                server.split(0, 3).await;
            }
        })
        .await;
    assert_eq!(rows, ordered);
    server.split(1, 2).await;
    assert_eq!(server.query_range("0", text, async |_| {}).await, ordered);
    assert_eq!(server.query_range("0", "SELECT VALUE COUNT(1) FROM c", async |_| {}).await, [json!(40)]);
    assert_eq!(server.query_range("0", "SELECT VALUE c.n FROM c", async |_| {}).await.len(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_look_again_are_told_by_queries_that_the_range_is_gone() {
    let server = with_items(4).await;
    server.split(0, 2).await;
    let headers = [("x-ms-documentdb-isquery", "True"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let query = json!({"query": "SELECT * FROM c"});
    for _ in 0..3 {
        let answer = server.send("POST", DOCS, &headers, &query).await.expect(410);
        assert_eq!(answer.header("x-ms-substatus"), "1002");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_query_is_told_twice_that_its_range_is_gone() {
    let server = with_items(4).await;
    server.split(0, 2).await;
    let query = json!({"query": "SELECT * FROM c ORDER BY c.n"});
    for name in ["one", "another"] {
        let headers = [
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-documentdb-partitionkeyrangeid", "0"),
            ("x-ms-cosmos-correlated-activityid", name),
        ];
        server.send("POST", DOCS, &headers, &query).await.expect(410);
        let answer = server.send("POST", DOCS, &headers, &query).await.expect(200);
        assert_eq!(answer.body["_count"], 4);
        // Shown the range that it named, azure-cosmos for Python would not learn which ranges there are now.
        assert_ne!(answer.header("x-ms-documentdb-partitionkeyrangeid"), "0");
    }
}

/// The Java SDK asks each range that overlaps the one that is gone for all that it holds, also what lies beyond. Its request
/// for the neighbour returns the same rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_over_a_range_whose_part_was_merged_with_its_neighbour_are_answered_as_they_were_meant() {
    let server = with_items(40).await;
    server.split(0, 3).await;
    let count = async |range: &str, part: &[(&str, &str)]| {
        let headers = [("x-ms-documentdb-isquery", "True"), ("x-ms-documentdb-partitionkeyrangeid", range)];
        let query = json!({"query": "SELECT VALUE c.n FROM c ORDER BY c.n"});
        let answer = server.send("POST", DOCS, &[&headers[..], part].concat(), &query).await;
        answer.body["_count"].as_u64().ok_or(answer.status)
    };
    let whole: &[(&str, &str)] = &[];
    let before = [count("2", whole).await, count("3", whole).await];
    server.split(2, 2).await;
    assert_eq!(count("2", whole).await, Err(410), "its parts are all that it was");
    // The right part of 2, and 3.
    server.merge(5, 3).await;
    assert_eq!([count("2", whole).await, count("3", whole).await], before);
    let parts = [count("4", whole).await, count("5", whole).await];
    assert_eq!(parts.into_iter().sum::<Result<u64, u16>>(), before[0]);
    // A client that followed a merge asks for a part of what it made, which is gone in turn.
    let container = server.ranged();
    let part = container.gone_range(3).expect("it is remembered").range.clone();
    server.split(6, 2).await;
    let (min, max) = (part.min.to_hex(), part.max.to_hex());
    let part = [
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
        ("x-ms-start-epk", min.as_str()),
        ("x-ms-end-epk", max.as_str()),
    ];
    assert_eq!(count("6", &part).await, before[1]);
    assert_eq!(count("6", whole).await, Err(410), "its parts are all that it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn further_pages_of_a_range_that_was_split_are_answered_as_they_were_meant() {
    let server = with_items(40).await;
    let first = [("x-ms-documentdb-partitionkeyrangeid", "0"), ("x-ms-max-item-count", "7")];
    let query = json!({"query": "SELECT VALUE c.n FROM c ORDER BY c.n"});
    let headers = [&first[..], &[("x-ms-documentdb-isquery", "True")]].concat();
    let page = server.send("POST", DOCS, &headers, &query).await.expect(200);
    let continuation = page.header("x-ms-continuation").to_owned();
    server.split(0, 3).await;
    let headers = [&headers[..], &[("x-ms-continuation", continuation.as_str())]].concat();
    let page = server.send("POST", DOCS, &headers, &query).await.expect(200);
    assert_eq!(page.body["Documents"], json!([7, 8, 9, 10, 11, 12, 13]));
    // The Java SDK looks which ranges there are when it is shown another than it has asked.
    assert_eq!(page.header("x-ms-documentdb-partitionkeyrangeid"), "0");
    assert!(!page.header("x-ms-session-token").starts_with("0:"), "{}", page.header("x-ms-session-token"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_changes_are_told_that_their_range_is_gone() {
    let server = with_items(4).await;
    server.split(0, 2).await;
    let headers = [("a-im", "Incremental feed"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let answer = server.send("GET", DOCS, &headers, &Value::Null).await.expect(410);
    assert_eq!(answer.header("x-ms-substatus"), "1002");
    let ranges = server.get("/dbs/d/colls/c/pkranges").await.expect(200);
    let parents = |range: &Value| range["parents"].clone();
    let ranges: Vec<Value> =
        ranges.body["PartitionKeyRanges"].as_array().expect("ranges").iter().map(parents).collect();
    assert_eq!(ranges, [json!(["0"]), json!(["0"])]);
}

/// The Go SDK names both when it reads the changes of a key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_answered_by_the_range_that_it_lies_in_and_by_no_other() {
    let server = with_items(12).await;
    server.split(0, 3).await;
    let ranges = server.get("/dbs/d/colls/c/pkranges").await.expect(200).body["PartitionKeyRanges"].clone();
    let ranges = ranges.as_array().expect("ranges").iter().map(|range| range["id"].as_str().expect("an id"));
    let (mut changes, mut rows, mut counted, mut items) = (0, 0, 0, 0);
    for range in ranges {
        let scope = [("x-ms-documentdb-partitionkeyrangeid", range), ("x-ms-documentdb-partitionkey", "[5]")];
        let with = |name: &'static str, value: &'static str| [&[(name, value)], &scope[..]].concat();
        let page = server.send("GET", DOCS, &with("a-im", "Incremental feed"), &Value::Null).await;
        assert!(!page.header("etag").is_empty());
        changes += page.body["_count"].as_u64().unwrap_or(0);
        let is_query = with("x-ms-documentdb-isquery", "True");
        let page =
            server.send("POST", DOCS, &is_query, &json!({"query": "SELECT * FROM c"})).await.expect(200);
        rows += page.body["_count"].as_u64().expect("a count");
        let count = json!({"query": "SELECT VALUE COUNT(1) FROM c"});
        let page = server.send("POST", DOCS, &is_query, &count).await.expect(200);
        counted += page.body["Documents"][0].as_u64().expect("a number");
        items += server.send("GET", DOCS, &scope, &Value::Null).await.expect(200).body["_count"]
            .as_u64()
            .expect("a count");
    }
    assert_eq!((changes, rows, counted, items), (1, 1, 1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_token_of_a_script_that_a_split_overtook_is_good_everywhere() {
    let server = with_items(8).await;
    let body = "function () { for (var end = Date.now() + 150; Date.now() < end;) {} \
        var context = getContext(), items = context.getCollection(); \
        items.createDocument(items.getSelfLink(), {id: 'made', pk: 0}); context.getResponse().setBody('done'); }";
    server.post("/dbs/d/colls/c/sprocs", json!({"id": "slow", "body": body})).await.expect(201);
    let key = [("x-ms-documentdb-partitionkey", "[0]")];
    let no_parameters = json!([]);
    let running = server.send("POST", "/dbs/d/colls/c/sprocs/slow", &key, &no_parameters);
    let (done, ()) = tokio::join!(running, async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        server.split(0, 2).await;
    });
    let token = done.expect(200).header("x-ms-session-token").to_owned();
    for number in 0..8 {
        let key = json!([number]).to_string();
        let headers =
            [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-session-token", token.as_str())];
        server.send("GET", &format!("{DOCS}/{number}"), &headers, &Value::Null).await.expect(200);
    }
}
