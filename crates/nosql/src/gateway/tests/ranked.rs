//! ORDER BY RANK: answered where one partition has all that is asked for, and planned for clients elsewhere.

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";

/// Texts about rivers, the shorter the sooner they are found, and vectors that see them the other way round.
const TEXTS: [(&str, &str); 6] = [
    ("r1", "river"),
    ("r2", "river stone"),
    ("r3", "The river stone, and blue sand"),
    ("r4", "river stone sand mud clay gravel"),
    ("s1", "stone"),
    ("s2", "sand castle"),
];

async fn with_texts(keys: &[&str]) -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let throughput = [("x-ms-offer-throughput", "25000")];
    server.send("POST", "/dbs/d/colls", &throughput, &container("c")).await.expect(201);
    for (place, (id, text)) in TEXTS.iter().enumerate() {
        let key = keys[place % keys.len()];
        let item = json!({"id": id, "pk": key, "t": text, "v": [1, place]});
        let header = json!([key]).to_string();
        server.send("POST", DOCS, &[("x-ms-documentdb-partitionkey", &header)], &item).await.expect(201);
    }
    server
}

async fn asked(server: &Server, headers: &[(&str, &str)], query: &str, parameters: Value) -> Answer {
    let headers = [&[("x-ms-documentdb-isquery", "True")], headers].concat();
    server.send("POST", DOCS, &headers, &json!({"query": query, "parameters": parameters})).await
}

fn documents(answer: &Answer) -> String {
    let rows = answer.body["Documents"].as_array().expect("a page");
    rows.iter().map(|row| row.as_str().expect("an id")).collect::<Vec<_>>().join(" ")
}

const ONE_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const CROSSING: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
const MERGING: (&str, &str) = ("x-orrery-query-merge", "True");

#[tokio::test(flavor = "multi_thread")]
async fn a_logical_partition_is_ranked_by_the_server() {
    let server = with_texts(&["a"]).await;
    let text = "FullTextScore(c.t, 'river')";
    let vector = "VectorDistance(c.v, [0, 1])";
    for (filter, order, clause, expected) in [
        ("FullTextContains(c.t, 'river')", text.to_owned(), "", "r1 r2 r3 r4"),
        ("FullTextContains(c.t, 'river')", text.to_owned(), "OFFSET 1 LIMIT 2", "r2 r3"),
        ("true", "FullTextScore(c.t, @words)".to_owned(), "OFFSET 0 LIMIT 3", "s2 r3 r4"),
        ("c.id < 's'", vector.to_owned(), "", "r4 r3 r2 r1"),
        // The last of one is the first of the other, but one of them counts more.
        ("c.id < 's'", format!("RRF({text}, {vector}, [1, 0.1])"), "", "r1 r2 r3 r4"),
        ("c.id < 's'", format!("RRF({text}, {vector}, @weights)"), "", "r4 r3 r2 r1"),
        ("c.id < 's'", format!("RRF({text}, {vector}, [-1, 0.1])"), "", "r4 r3 r2 r1"),
        ("c.id < 's'", format!("RRF({text}, FullTextScore(c.t, 'mud'))"), "", "r1 r2 r4 r3"),
    ] {
        let query = format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY RANK {order} {clause}");
        let parameters =
            json!([{"name": "@words", "value": ["sand", "castle"]}, {"name": "@weights", "value": [0.1, 1]}]);
        let answer = asked(&server, &[ONE_KEY], &query, parameters).await.expect(200);
        assert_eq!(documents(&answer), expected, "{query}");
        assert!(answer.header("x-ms-request-charge").parse::<f64>().expect("a charge") > 2.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranked_rows_come_in_pages() {
    let server = with_texts(&["a"]).await;
    let query = "SELECT VALUE c.id FROM c WHERE FullTextContains(c.t, 'river') ORDER BY RANK FullTextScore(c.t, 'river')";
    let (mut rows, mut token) = (Vec::new(), String::new());
    loop {
        let mut headers = vec![ONE_KEY, ("x-ms-max-item-count", "3")];
        if !token.is_empty() {
            headers.push(("x-ms-continuation", &token));
        }
        let answer = asked(&server, &headers, query, json!([])).await.expect(200);
        rows.push(documents(&answer));
        token = answer.header("x-ms-continuation").to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(rows, ["r1 r2 r3", "r4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_partitions_are_ranked_by_who_merges() {
    let server = with_texts(&["a", "b", "c", "d"]).await;
    let query = "SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, 'river')";
    let refused = asked(&server, &[CROSSING], query, json!([])).await.expect(400);
    assert_eq!(refused.header("x-ms-substatus"), "1004");
    assert!(refused.body.to_string().contains("hybridSearchQueryInfo"), "{}", refused.body);
    let merged = asked(&server, &[CROSSING, MERGING], query, json!([])).await.expect(200);
    assert_eq!(documents(&merged), "r1 r2 r3");
    let pinned = "SELECT VALUE c.id FROM c WHERE c.pk = 'a' ORDER BY RANK FullTextScore(c.t, 'river')";
    assert_eq!(documents(&asked(&server, &[], pinned, json!([])).await.expect(200)), "r1 s1");
    asked(&server, &[], query, json!([])).await.expect(400);
}

/// As a client does it: one page of each range for the statistics, then for the component.
#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_a_plan_that_ranks_are_answered_by_each_range() {
    let server = with_texts(&["a", "b", "c", "d"]).await;
    let query = "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.t, 'river')";
    let plan = [
        ("x-ms-cosmos-is-query-plan-request", "True"),
        ("x-ms-cosmos-supported-query-features", "HybridSearch,WeightedRankFusion"),
    ];
    let plan = asked(&server, &plan, query, json!([])).await.expect(200).body;
    let info = &plan["hybridSearchQueryInfo"];
    let ranges = server.get("/dbs/d/colls/c/pkranges").await.expect(200).body["PartitionKeyRanges"].clone();
    let ranges: Vec<String> = ranges
        .as_array()
        .expect("a list")
        .iter()
        .map(|range| range["id"].as_str().expect("an id").to_owned())
        .collect();
    assert!(ranges.len() > 1);
    let (mut items, mut words, mut hits) = (0, 0, 0);
    for range in &ranges {
        let headers = [("x-ms-documentdb-partitionkeyrangeid", range.as_str()), CROSSING];
        let text = info["globalStatisticsQuery"].as_str().expect("a query");
        let answer = asked(&server, &headers, text, json!([])).await.expect(200);
        let counts = &answer.body["Documents"][0];
        items += counts["documentCount"].as_u64().expect("a number");
        words += counts["fullTextStatistics"][0]["totalWordCount"].as_u64().expect("a number");
        hits += counts["fullTextStatistics"][0]["hitCounts"][0].as_u64().expect("a number");
    }
    assert_eq!((items, words, hits), (6, 16, 4));
    let query = info["componentQueryInfos"][0]["rewrittenQuery"].as_str().expect("a query");
    let query = query
        .replace("{documentdb-formattableorderbyquery-filter}", "true")
        .replace("{documentdb-formattablehybridsearchquery-totaldocumentcount}", &items.to_string())
        .replace("{documentdb-formattablehybridsearchquery-totalwordcount-0}", &words.to_string())
        .replace("{documentdb-formattablehybridsearchquery-hitcountsarray-0}", &format!("[{hits}]"));
    let mut scored = Vec::new();
    for range in &ranges {
        let headers = [("x-ms-documentdb-partitionkeyrangeid", range.as_str()), CROSSING];
        let answer = asked(&server, &headers, &query, json!([])).await.expect(200);
        for row in answer.body["Documents"].as_array().expect("a page") {
            let score = row["payload"]["componentScores"][0].as_f64().expect("a score");
            assert_eq!(row["orderByItems"][0]["item"].as_f64(), Some(score));
            assert!(row["_rid"].is_string());
            scored.push((score, row["payload"]["payload"]["id"].as_str().expect("an id").to_owned()));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best: Vec<&str> = scored.iter().take(4).map(|(_, id)| id.as_str()).collect();
    assert_eq!(best, ["r1", "r2", "r3", "r4"]);
    assert_eq!((scored.len(), scored[4].0), (6, 0.0));
}
