//! Offers that go up and down, and who is refused when throughput is short.

use orrery_cluster::limits::PartitionLimits;

use super::*;

/// A gateway that throttles, over partitions of 1,000 RU/s.
fn throttling() -> Server {
    throttling_at(1_000)
}

fn throttling_at(partition_throughput: u32) -> Server {
    throttling_in(World::Real, partition_throughput)
}

fn throttling_in(world: World, partition_throughput: u32) -> Server {
    let limits = PartitionLimits { partition_throughput, ..PartitionLimits::default() };
    Server::in_world(world, |options| DbOptions { limits, throttle: true, ..options })
}

impl Server {
    async fn container(&self, throughput: (&str, &str)) {
        self.post("/dbs", json!({"id": "d"})).await;
        let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        self.send("POST", "/dbs/d/colls", &[throughput], &body).await.expect(201);
    }

    async fn offer(&self) -> Value {
        self.get("/offers").await.expect(200).body["Offers"][0].clone()
    }

    async fn replace(&self, content: Value) -> Answer {
        let mut offer = self.offer().await;
        offer["content"] = content;
        let path = format!("/offers/{}", offer["id"].as_str().expect("a text"));
        self.send("PUT", &path, &[], &offer).await
    }

    async fn migrate(&self, header: &str) -> Answer {
        let offer = self.offer().await;
        let path = format!("/offers/{}", offer["id"].as_str().expect("a text"));
        self.send("PUT", &path, &[(header, "True")], &offer).await
    }

    /// Writes when there is budget for it, and answers what an offer that scales ran at then. What a second used is
    /// told for a second longer; if the machine stalled for all of it, the offer is idle again and another is written.
    async fn write_and_look(&self, id: &str, fill: usize) -> u64 {
        for attempt in 0..20 {
            self.write_patiently("k", &format!("{id}{attempt}"), fill).await;
            let current = self.offer().await["content"]["offerThroughput"].as_u64().expect("a number");
            if current != 100 {
                return current;
            }
        }
        panic!("what a write uses is never told");
    }

    /// Spends more than the budget for the first key until requests for both are refused, the first one because its key
    /// is hot. Of 400 RU/s a write takes 1,160: the debt outlasts the next requests unless the machine stalls.
    async fn spend_for(&self, hot: &str, cold: &str) -> (Answer, Answer) {
        for attempt in 0..20 {
            self.write_patiently(hot, &format!("{attempt}"), HUGE).await;
            let first = self.item("GET", hot, "0", NOTHING, 0).await;
            let second = self.item("GET", cold, "0", NOTHING, 0).await;
            let refused = (first.status, second.status) == (429, 429);
            if refused && first.header("x-ms-substatus") == "3214" {
                return (first, second);
            }
        }
        panic!("a debt is always paid before the next request");
    }

    /// Writes an item as soon as there is budget.
    async fn write_patiently(&self, key: &str, id: &str, fill: usize) {
        for _ in 0..1_000 {
            let written = self.item("POST", key, id, NOTHING, fill).await;
            if written.status != 429 {
                written.expect(201);
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("budget never comes back");
    }

    async fn item(&self, method: &str, key: &str, id: &str, header: (&str, &str), fill: usize) -> Answer {
        let key_header = json!([key]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key_header.as_str()), header];
        match method {
            "POST" => {
                let body = json!({"id": id, "pk": key, "fill": "x".repeat(fill)});
                self.send("POST", "/dbs/d/colls/c/docs", &headers, &body).await
            }
            _ => self.send(method, &format!("/dbs/d/colls/c/docs/{id}"), &headers, &Value::Null).await,
        }
    }
}

fn manual(units: u32) -> Value {
    json!({"offerThroughput": units})
}

fn autoscale(max: u32) -> Value {
    json!({"offerThroughput": max / 10, "offerAutopilotSettings": {"maxThroughput": max}})
}

/// Bytes of an item that costs more than any second has.
const HUGE: usize = 1_900_000;
const NOTHING: (&str, &str) = ("x-ms-activity-id", "");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offers_scale_at_once_as_far_as_the_partitions_go_and_wait_above() {
    let server = throttling();
    server.container(("x-ms-offer-throughput", "400")).await;
    for units in [1_000, 700, 400] {
        let replaced = server.replace(manual(units)).await.expect(200);
        assert_eq!(replaced.header("x-ms-offer-replace-pending"), "false");
        assert!(replaced.body["content"].get("isOfferReplacePending").is_none());
        assert_eq!(replaced.body["content"]["offerThroughput"], units);
    }
    let raised = server.replace(manual(2_500)).await;
    assert_eq!(raised.body["content"]["offerThroughput"], 2_500);
    // Partitions split in the background, perhaps before the answer is written.
    let pending = raised.body["content"].get("isOfferReplacePending").is_some();
    let wanted = if pending { (202, "true") } else { (200, "false") };
    assert_eq!((raised.status, raised.header("x-ms-offer-replace-pending")), wanted);
}

#[tokio::test]
async fn what_was_once_provisioned_decides_how_low_an_offer_may_go() {
    for (throughput, highest, too_low, lowest) in [
        (("x-ms-offer-throughput", "50000"), 50_000, manual(400), manual(500)),
        (
            ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":50000}"#),
            50_000,
            autoscale(4_000),
            autoscale(5_000),
        ),
    ] {
        let server = Server::start(false);
        server.container(throughput).await;
        let refused = server.replace(too_low.clone()).await.expect(400);
        let units = |content: &Value| {
            let max = content["offerAutopilotSettings"]["maxThroughput"].as_u64();
            max.or(content["offerThroughput"].as_u64()).expect("an amount")
        };
        let (asked, least) = (units(&too_low), units(&lowest));
        let words = format!("Requested throughput {asked} is less than required minimum throughput {least}.");
        assert!(refused.message().contains(&words), "{}", refused.message());
        let lowered = server.replace(lowest).await.expect(200);
        assert_eq!(lowered.header("x-ms-cosmos-min-throughput"), least.to_string());
        let ever = &lowered.body["content"]["offerMinimumThroughputParameters"];
        assert_eq!(ever["maxThroughputEverProvisioned"], highest);
    }
}

#[tokio::test]
async fn an_offer_changes_its_kind_and_keeps_what_it_had() {
    let server = Server::start(false);
    server.container(("x-ms-offer-throughput", "12100")).await;
    let scaled = server.migrate("x-ms-cosmos-migrate-offer-to-autopilot").await.expect(200);
    assert_eq!(scaled.body["content"]["offerAutopilotSettings"]["maxThroughput"], 13_000);
    assert_eq!(scaled.body["content"]["offerThroughput"], 1_300, "an idle one runs at a tenth");
    assert_eq!(scaled.header("x-ms-cosmos-min-throughput"), "2000");
    let manual = server.migrate("x-ms-cosmos-migrate-offer-to-manual-throughput").await.expect(200);
    assert_eq!(manual.body["content"]["offerThroughput"], 13_000);
    assert!(manual.body["content"].get("offerAutopilotSettings").is_none());
}

#[tokio::test]
async fn autoscale_tells_what_it_runs_at() {
    let server = throttling();
    server.container(("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":1000}"#)).await;
    assert_eq!(server.offer().await["content"]["offerThroughput"], 100);
    let current = server.write_and_look("large", 512 * 1024).await;
    assert!((185..300).contains(&current), "{current}");
    let current = server.write_and_look("huge", HUGE).await;
    assert_eq!(current, 1_000, "never above its ceiling");
}

#[tokio::test]
async fn a_key_that_fills_a_whole_partition_is_told_so_and_others_are_not() {
    let server = throttling_at(400);
    server.container(("x-ms-offer-throughput", "400")).await;
    let (hot, cold) = server.spend_for("hot", "cold").await;
    for (refused, substatus, words) in
        [(hot, "3214", "would not help"), (cold, "3200", "More Request Units may be needed")]
    {
        assert_eq!(refused.header("x-ms-substatus"), substatus);
        assert!(refused.message().contains(words), "{}", refused.message());
        assert!(refused.header("x-ms-retry-after-ms").parse::<u32>().expect("a wait") > 0);
    }
}

#[tokio::test]
async fn a_throughput_bucket_is_refused_alone() {
    let server = throttling();
    server.container(("x-ms-offer-throughput", "1000")).await;
    let bucket = |id| ("x-ms-cosmos-throughput-bucket", id);
    for (buckets, unnamed) in [
        (json!([{"id": 2, "maxThroughputPercentage": 1}]), 404),
        (json!([{"id": 2, "maxThroughputPercentage": 1, "isDefaultBucket": true}]), 429),
        (json!([]), 404),
    ] {
        let limited = !buckets.as_array().expect("a list").is_empty();
        server.set_buckets(buckets).await;
        if limited {
            // One percent of 1,000 RU/s: the debt outlasts the requests that follow.
            server.item("POST", "k", "large", bucket("2"), 256 * 1024).await;
            let refused = server.item("GET", "k", "none", bucket("2"), 0).await.expect(429);
            assert_eq!(refused.header("x-ms-substatus"), "3212");
            assert!(refused.header("x-ms-retry-after-ms").parse::<u32>().expect("a wait") > 1_000);
        } else {
            server.item("GET", "k", "none", bucket("2"), 0).await.expect(404);
        }
        server.item("GET", "k", "none", bucket("3"), 0).await.expect(404);
        server.item("GET", "k", "none", NOTHING, 0).await.expect(unnamed);
    }
    server.item("GET", "k", "none", bucket("6"), 0).await.expect(400);
}

#[tokio::test]
async fn low_priority_waits_while_high_priority_is_served() {
    let (world, hand) = World::by_hand(Duration::from_secs(1_790_000_000), 1);
    let server = throttling_in(world, 1_000);
    server.container(("x-ms-offer-throughput", "1000")).await;
    let priority = |level| ("x-ms-cosmos-priority-level", level);
    for level in ["Low", "high"] {
        server.item("GET", "k", "none", priority(level), 0).await.expect(404);
    }
    server.item("GET", "k", "none", priority("Medium"), 0).await.expect(400);
    // A write of 1,160 RU leaves a debt. While that is paid and the bucket fills again, there is a quarter of a second
    // in which only high priority is served. Time passes only where nobody is.
    for step in 0..1_000 {
        let low = server.item("GET", "k", "none", priority("Low"), 0).await;
        let high = server.item("GET", "k", "none", priority("High"), 0).await;
        match (low.status, high.status) {
            (429, 404) => return assert_eq!(low.header("x-ms-substatus"), "3200"),
            (429, 429) => hand.advance(Duration::from_millis(5)),
            (404, 404) => {
                _ = server.item("POST", &format!("large-{step}"), &format!("{step}"), NOTHING, HUGE).await;
            }
            other => panic!("{other:?}: high priority is never refused alone"),
        }
    }
    panic!("low priority was never refused before high priority");
}

impl Server {
    async fn set_buckets(&self, buckets: Value) {
        let db = &self.0.0.db;
        let rid = db.catalog().containers().next().expect("a container").resource.rid;
        let buckets = serde_json::from_value(buckets).expect("buckets");
        let settings = orrery_cluster::throughput::Settings { buckets, ..Default::default() };
        db.replace_throughput_settings(rid, settings).await.expect("settings are accepted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_shares_throughput_says_so_when_it_is_made() {
    let server = Server::start(false);
    const SHARED: &str = "x-ms-share-throughput";
    let throughput = ("x-ms-offer-throughput", "20000");
    server.send("POST", "/dbs", &[throughput], &json!({"id": "shared"})).await.expect(201);
    server.post("/dbs", json!({"id": "alone"})).await.expect(201);
    let shares = server.post("/dbs/shared/colls", super::container("a")).await.expect(201);
    assert_eq!(shares.header(SHARED), "true");
    let own = ("x-ms-offer-throughput", "400");
    let owns = server.send("POST", "/dbs/shared/colls", &[own], &super::container("b")).await.expect(201);
    assert_eq!(owns.header(SHARED), "");
    let alone = server.post("/dbs/alone/colls", super::container("a")).await.expect(201);
    assert_eq!(alone.header(SHARED), "");
}
