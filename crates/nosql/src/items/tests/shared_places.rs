//! Long keys of version 1 containers: those that begin alike lie at one place, and are different keys all the same.

use orrery_doc::{PartitionKey, epk};

use super::queries::{ACCESS, MERGE};
use super::*;

/// How far the hash of version 1 looks.
const SEEN: usize = 100;

fn long(end: &str) -> String {
    format!("{}{end}", "k".repeat(SEEN))
}

fn header(key: &str) -> String {
    format!("[\"{key}\"]")
}

/// A container whose definition names version 1, or none, which is the same.
async fn world(more: &str) -> World {
    let world = World::new(&format!(r#""partitionKey":{{"paths":["/pk"],"kind":"Hash"}}{more}"#), 400).await;
    let container = address::container(&world.db.catalog(), "db", "items").expect("the container").container;
    let place = |key: &str| {
        let key = PartitionKey::from_header(&header(key)).expect("a key");
        epk(&container.definition.key, &key)
    };
    assert_eq!(place(&long("a")), place(&long("b")), "the two keys have one place");
    assert_eq!(place(&long("a")), place(&long("")));
    world
}

impl World {
    async fn put_item(&self, key: &str, id: &str, n: u32) -> Answer {
        self.create(&header(key), &format!(r#"{{"id":"{id}","pk":"{key}","n":{n}}}"#)).await
    }

    async fn on_item(&self, method: Method, key: &str, id: &str, body: &str) -> u16 {
        let key = header(key);
        let headers = [(KEY, key.as_str())];
        self.send(method, Some(id), &headers, body).await.status
    }

    async fn feed_of(&self, key: &str, headers: &[(&str, &str)]) -> Vec<String> {
        let key = header(key);
        let headers = [&[(KEY, key.as_str())], headers].concat();
        let page = self.send(Method::GET, None, &headers, "").await;
        if page.status == 304 { Vec::new() } else { page.ids() }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_2048_bytes_are_taken_in_version_1() {
    let world = world("").await;
    for (bytes, status) in [(100, 201), (101, 201), (127, 201), (2048, 201), (2049, 400)] {
        let (key, id) = ("x".repeat(bytes), bytes.to_string());
        assert_eq!(world.put_item(&key, &id, 1).await.status, status, "{bytes} bytes");
        if status == 201 {
            assert_eq!(world.read(&header(&key), &id).await.field("pk"), format!("\"{key}\""));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_item_is_read_or_changed_under_another_key_of_its_place() {
    let mut world = world("").await;
    let (a, b, short) = (long("a"), long("b"), long(""));
    let created = world.put_item(&a, "1", 1).await;
    assert_eq!(created.status, 201);
    for other in [&b, &short, &long("ab")] {
        assert_eq!(world.on_item(Method::GET, other, "1", "").await, 404);
        let replace = format!(r#"{{"id":"1","pk":"{other}"}}"#);
        assert_eq!(world.on_item(Method::PUT, other, "1", &replace).await, 404);
        let renamed = format!(r#"{{"id":"new","pk":"{other}"}}"#);
        assert_eq!(world.on_item(Method::PUT, other, "1", &renamed).await, 404);
        let patch = r#"{"operations":[{"op":"set","path":"/n","value":9}]}"#;
        assert_eq!(world.on_item(Method::PATCH, other, "1", patch).await, 404);
        assert_eq!(world.on_item(Method::DELETE, other, "1", "").await, 404);
        // The same id has one place, so it is taken.
        assert_eq!(world.put_item(other, "1", 2).await.status, 409);
        let key = header(other);
        let upsert = [(KEY, key.as_str()), (UPSERT, "True")];
        let body = format!(r#"{{"id":"1","pk":"{other}"}}"#);
        assert_eq!(world.send(Method::POST, None, &upsert, &body).await.status, 409);
    }
    assert_eq!(world.put_item(&b, "2", 2).await.status, 201);
    let taken = format!(r#"{{"id":"2","pk":"{a}"}}"#);
    assert_eq!(world.on_item(Method::PUT, &a, "1", &taken).await, 409, "a rename overwrites nothing");
    assert_eq!(world.read(&header(&a), "1").await.body, created.body);
    assert_eq!(world.read(&header(&b), "2").await.field("n"), "2");
    world.by_rid = true;
    let rid = created.field("_rid").replace('"', "");
    assert_eq!(world.on_item(Method::GET, &a, &rid, "").await, 200);
    assert_eq!(world.on_item(Method::GET, &b, &rid, "").await, 404);
    assert_eq!(world.on_item(Method::DELETE, &b, &rid, "").await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_and_bulk_keep_to_their_key() {
    let world = world("").await;
    let (a, b) = (long("a"), long("b"));
    assert_eq!(world.put_item(&a, "1", 1).await.status, 201);
    for (op, status) in [
        (r#"{"operationType":"Read","id":"1"}"#.to_owned(), 404),
        (r#"{"operationType":"Delete","id":"1"}"#.to_owned(), 404),
        (format!(r#"{{"operationType":"Upsert","resourceBody":{{"id":"1","pk":"{b}"}}}}"#), 409),
        (format!(r#"{{"operationType":"Replace","id":"1","resourceBody":{{"id":"1","pk":"{b}"}}}}"#), 404),
    ] {
        let create = format!(r#"{{"operationType":"Create","resourceBody":{{"id":"2","pk":"{b}"}}}}"#);
        let batch = world.batch(&header(&b), &format!("[{create},{op}]")).await;
        assert_eq!(batch.codes(), [424, status], "{op}");
        let keyed = op.replacen('{', &format!("{{\"partitionKey\":[\"{b}\"],"), 1);
        let headers = [(BATCH, "true"), (ATOMIC, "false"), (CONTINUE, "true")];
        let bulk = world.send(Method::POST, None, &headers, &format!("[{keyed}]")).await;
        assert_eq!(bulk.codes(), [status], "{keyed}");
    }
    // What a batch writes itself is its own.
    let ops = format!(
        r#"[{{"operationType":"Create","resourceBody":{{"id":"2","pk":"{b}"}}}},{{"operationType":"Read","id":"2"}}]"#
    );
    assert_eq!(world.batch(&header(&b), &ops).await.codes(), [201, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_of_a_key_see_its_items_only() {
    let world = world("").await;
    let (a, b) = (long("a"), long("b"));
    for n in 0..30 {
        let key = [&a, &b, &b][n as usize % 3];
        assert_eq!(world.put_item(key, &format!("{n:02}"), n).await.status, 201);
    }
    let key = header(&a);
    let numbers = "0,3,6,9,12,15,18,21,24,27";
    let by_filter = format!("SELECT VALUE c.n FROM c WHERE c.pk = '{a}'");
    for (text, rows) in [
        ("SELECT VALUE c.n FROM c", numbers.to_owned()),
        ("SELECT VALUE c.n FROM c WHERE c.n > 24", "27".to_owned()),
        ("SELECT VALUE COUNT(1) FROM c", "10".to_owned()),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n < 10", "4".to_owned()),
        ("SELECT VALUE MAX(c.n) FROM c", "27".to_owned()),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 0", "3".to_owned()),
        ("SELECT VALUE SUM(c.n) FROM c", "135".to_owned()),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", "27,24,21,18,15,12,9,6,3,0".to_owned()),
        ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n", "0,3".to_owned()),
        ("SELECT DISTINCT VALUE c.n FROM c", numbers.to_owned()),
        ("SELECT COUNT(1) AS k FROM c GROUP BY c.pk", r#"{"k":10}"#.to_owned()),
        (by_filter.as_str(), numbers.to_owned()),
    ] {
        for access in ["auto", "scan", "index"] {
            for merge in ["false", "true"] {
                let headers = [(KEY, key.as_str()), (ACCESS, access), (MERGE, merge)];
                let answer = world.query(&headers, text).await;
                let wanted = format!("\"Documents\":[{rows}]");
                assert!(answer.body.contains(&wanted), "{text} {access} {merge}: {}", answer.body);
            }
        }
    }
    // Page by page, and by the filter alone.
    let mut found = Vec::new();
    let mut token = String::new();
    for _ in 0..40 {
        let headers = [(KEY, key.as_str()), (COUNT, "1"), (CONTINUATION, token.as_str())];
        let page = world.query(&headers[..if token.is_empty() { 2 } else { 3 }], "SELECT * FROM c").await;
        found.extend(page.ids());
        let Some(next) = page.continuation else { break };
        token = next;
    }
    assert_eq!(found.len(), 10, "{found:?}");
    let free = world.query(&[], &by_filter).await;
    assert!(free.body.contains(&format!("\"Documents\":[{numbers}]")), "{}", free.body);
    let all = world.query(&[(RANGE, "0")], "SELECT VALUE COUNT(1) FROM c").await;
    assert!(all.body.contains("\"Documents\":[30]"), "{}", all.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_and_deletes_of_a_key_leave_the_others_alone() {
    let world = world(r#","changeFeedPolicy":{"retentionDuration":10}"#).await;
    let (a, b) = (long("a"), long("b"));
    let latest = ("a-im", "Incremental feed");
    let versions = ("a-im", "Full-Fidelity Feed");
    let key = header(&a);
    let now = world.send(Method::GET, None, &[versions, (KEY, &key), ("if-none-match", "*")], "").await;
    let start = now.header("etag").expect("a continuation").to_owned();
    for n in 0..6 {
        let key = if n % 2 == 0 { &a } else { &b };
        assert_eq!(world.put_item(key, &n.to_string(), n).await.status, 201);
    }
    assert_eq!(world.feed_of(&a, &[]).await, ["0", "2", "4"]);
    assert_eq!(world.feed_of(&a, &[latest]).await, ["0", "2", "4"]);
    assert_eq!(world.feed_of(&b, &[latest]).await, ["1", "3", "5"]);
    assert_eq!(world.feed_of(&long("c"), &[latest]).await, [] as [&str; 0]);
    let all = world.send(Method::GET, None, &[versions, (KEY, &key), ("if-none-match", &start)], "").await;
    assert_eq!(all.count, Some(3), "{}", all.body);
    let deleted = world.send(Method::POST, Some("partitionkeydelete!"), &[(KEY, &key)], "").await;
    assert_eq!(deleted.status, 200);
    assert_eq!(world.feed_of(&a, &[]).await, [] as [&str; 0]);
    assert_eq!(world.feed_of(&b, &[]).await, ["1", "3", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_keys_hold_for_all_keys_of_a_place() {
    let world = world(r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]}"#).await;
    let (a, b) = (long("a"), long("b"));
    assert_eq!(world.put_item(&a, "1", 7).await.status, 201);
    let refused = world.put_item(&b, "2", 7).await;
    assert_eq!((refused.status, refused.substatus), (409, 3301));
    assert_eq!(world.put_item("elsewhere", "2", 7).await.status, 201);
    assert_eq!(world.put_item(&b, "2", 8).await.status, 201);
}
