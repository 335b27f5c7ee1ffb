//! Traces and metrics as a collector gets them.

use orrery_testkit::wait_for;
use serde_json::{Value, json};

use crate::collector::{Collector, Manner};
use crate::world::{World, binary};

fn attribute<'s>(holder: &'s Value, key: &str) -> Option<&'s Value> {
    let attributes = holder["attributes"].as_array()?;
    let found = attributes.iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object()?.values().next()
}

fn told(collector: &Collector, further: &[&str]) -> World {
    World::start(&[&["--otlp-endpoint", &collector.url(), "--otlp-metrics-seconds", "1"], further].concat())
}

/// A number of the metrics page.
fn counted(world: &mut World, name: &str) -> f64 {
    let reply = world.client.send_raw("GET", "/metrics", &[], b"").expect("an answer");
    let page = String::from_utf8_lossy(&reply.body).into_owned();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {page}"))
}

#[test]
fn requests_become_spans_with_the_words_of_the_conventions() {
    let collector = Collector::new(Manner::Takes);
    let mut world = told(&collector, &["--otlp-headers", "api-key=a%20b", "--otlp-service-name", "shop-db"]);
    world.container("c ä", 400);
    assert_eq!(world.create("c%20%C3%A4", "k", "secret-id", 10).status, 201);
    assert_eq!(world.read("c%20%C3%A4", "k", "none").status, 404);
    let query = br#"{"query":"SELECT * FROM c"}"#;
    let headers = [
        ("x-ms-documentdb-isquery", "True"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("user-agent", "a-client/1"),
    ];
    let asked =
        world.client.send("POST", "/dbs/db/colls/c%20%C3%A4/docs", &headers, query).expect("an answer");
    assert_eq!(asked.status, 200);

    let created = collector.span("creation", |span| span["name"] == "create_item c ä");
    for (key, value) in [
        ("db.system.name", json!("azure.cosmosdb")),
        ("db.operation.name", json!("create_item")),
        ("db.namespace", json!("db")),
        ("db.collection.name", json!("c ä")),
        ("db.response.status_code", json!("201")),
        ("azure.cosmosdb.connection.mode", json!("gateway")),
        ("server.port", json!(world.server.port().to_string())),
    ] {
        assert_eq!(attribute(&created, key), Some(&value), "{key}: {created:#}");
    }
    let charge = attribute(&created, "azure.cosmosdb.operation.request_charge").and_then(Value::as_f64);
    assert!(charge.is_some_and(|charge| charge > 1.0), "{created:#}");
    assert_eq!((&created["kind"], &created["parentSpanId"]), (&json!(2), &Value::Null));
    assert_eq!(created["traceId"].as_str().map(str::len), Some(32));
    let time =
        |name: &str| created[name].as_str().and_then(|text| text.parse::<u128>().ok()).expect("a time");
    assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    assert!(time("startTimeUnixNano") > 1_700_000_000_000_000_000);

    let missing = collector.span("reading", |span| span["name"] == "read_item c ä");
    assert_eq!(attribute(&missing, "error.type"), Some(&json!("404")));
    assert_eq!(missing["status"], json!({"code": 0}), "the client is to blame, not the server");

    let queried = collector.span("query", |span| span["name"] == "query_items c ä");
    assert_eq!(queried["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(queried["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(attribute(&queried, "db.response.returned_rows"), Some(&json!("1")));
    assert_eq!(attribute(&queried, "user_agent.original"), Some(&json!("a-client/1")));

    let all = collector.messages();
    assert!(!format!("{all:?}").contains("secret-id"), "ids of items are nobody's business");
    for message in &all {
        assert!(message.headers.contains(&("api-key".to_owned(), "a b".to_owned())), "{:?}", message.headers);
        assert!(message.headers.contains(&("content-type".to_owned(), "application/json".to_owned())));
        let kind = if message.path.ends_with("traces") { "resourceSpans" } else { "resourceMetrics" };
        let resource = &message.body[kind][0]["resource"];
        assert_eq!(attribute(resource, "service.name"), Some(&json!("shop-db")), "{message:?}");
    }
}

#[test]
fn clients_decide_what_is_traced_and_the_share_decides_for_the_others() {
    let collector = Collector::new(Manner::Takes);
    let mut world = told(&collector, &["--otlp-sample", "0"]);
    let trace = |flag: &str| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flag}");
    for (name, parent) in [("alone", None), ("unwanted", Some(trace("00"))), ("wanted", Some(trace("01")))] {
        let parent = parent.unwrap_or_default();
        let headers = [("traceparent", parent.as_str())];
        let headers = if parent.is_empty() { &[] } else { &headers[..] };
        let path = format!("/dbs/{name}");
        assert_eq!(world.client.send("GET", &path, headers, b"").expect("an answer").status, 404);
    }
    // The spans come in the order of the requests, so that one of the first two would be here too.
    collector.span("wanted request", |span| span["name"] == "read_database wanted");
    assert_eq!(collector.spans().len(), 1, "{:#?}", collector.spans());
}

#[test]
fn a_collector_gets_the_metrics_that_prometheus_reads() {
    let collector = Collector::new(Manner::Takes);
    let mut world = told(&collector, &[]);
    world.container("c", 400);
    assert_eq!(world.create("c", "k", "1", 10).status, 201);
    let page = world.client.send_raw("GET", "/metrics", &[], b"").expect("an answer");
    let page = String::from_utf8_lossy(&page.body).into_owned();
    let listed: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let metrics = wait_for(|| {
        let messages = collector.messages();
        let newest =
            messages.iter().rfind(|message| message.path == "/otlp/v1/metrics").ok_or("no metrics")?;
        let metrics = newest.body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
        let items =
            metrics.as_array().into_iter().flatten().find(|one| one["name"] == "orrery_partition_items");
        let is_there = items.is_some_and(|items| items["gauge"]["dataPoints"][0]["asDouble"] == 1.0);
        if is_there { Ok(metrics) } else { Err(format!("the item is not in {metrics:#}")) }
    });
    let metrics = metrics.as_array().expect("an array");
    assert_eq!(metrics.iter().filter_map(|metric| metric["name"].as_str()).collect::<Vec<_>>(), listed);
    let items = metrics.iter().find(|one| one["name"] == "orrery_partition_items").expect("it is listed");
    let point = &items["gauge"]["dataPoints"][0];
    assert_eq!(attribute(point, "container"), Some(&json!("c")), "{point:#}");
    let requests = metrics.iter().find(|one| one["name"] == "orrery_requests_total").expect("it is listed");
    assert_eq!(
        (&requests["sum"]["isMonotonic"], &requests["sum"]["aggregationTemporality"]),
        (&json!(true), &json!(2))
    );
}

#[test]
fn a_collector_that_is_silent_or_away_costs_spans_and_no_request() {
    let collector = Collector::new(Manner::IsSilent);
    let mut world = told(&collector, &[]);
    // More than the queue and a batch hold; none of the answers may wait for the collector.
    for _ in 0..4_000 {
        assert_eq!(world.client.send("GET", "/dbs/none", &[], b"").expect("an answer").status, 404);
    }
    assert!(counted(&mut world, "orrery_otlp_spans_dropped_total") > 0.0);
    assert_eq!(counted(&mut world, "orrery_otlp_spans_total"), 0.0);

    let refusing = Collector::new(Manner::Refuses);
    let mut world = told(&refusing, &[]);
    assert_eq!(world.client.send("GET", "/dbs/none", &[], b"").expect("an answer").status, 404);
    wait_for(|| {
        let dropped = counted(&mut world, "orrery_otlp_spans_dropped_total");
        let failures = counted(&mut world, "orrery_otlp_failures_total");
        if dropped >= 1.0 && failures >= 1.0 {
            Ok(())
        } else {
            Err(format!("{dropped} dropped, {failures} failures"))
        }
    });
    // It takes them again, and so the server tells them again.
    refusing.behaves(Manner::Takes);
    assert_eq!(world.client.send("GET", "/dbs/later", &[], b"").expect("an answer").status, 404);
    refusing.span("later request", |span| span["name"] == "read_database later");
}

#[test]
fn a_stopping_server_sends_what_is_left() {
    let collector = Collector::new(Manner::Takes);
    let mut world = told(&collector, &[]);
    assert_eq!(world.client.send("GET", "/dbs/last", &[], b"").expect("an answer").status, 404);
    world.server.stop();
    assert!(
        collector.spans().iter().any(|span| span["name"] == "read_database last"),
        "{:#?}",
        collector.spans()
    );
}

#[test]
fn without_a_collector_nothing_is_noted_and_a_wrong_one_is_refused_at_the_start() {
    let mut world = World::start(&[]);
    assert_eq!(world.client.send("GET", "/dbs/none", &[], b"").expect("an answer").status, 404);
    assert_eq!(counted(&mut world, "orrery_otlp_spans_dropped_total"), 0.0);
    let wrong = std::process::Command::new(binary())
        .args(["serve", "--in-memory", "--otlp-endpoint", "grpc://c:4317"])
        .output();
    let wrong = wrong.expect("it runs");
    assert!(!wrong.status.success());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("http://HOST:PORT"), "{wrong:?}");
}
