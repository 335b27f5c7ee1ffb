//! What scripts have written and not committed yet takes memory from the share for writes.

use orrery_cluster::{Consumer, MemoryShares, MemoryUse};

use super::*;

const MIB: u64 = 1024 * 1024;
/// The share for writes, of which a transaction may have three quarters, and a script half of that before its last write.
const WRITES: u64 = 8 * MIB;
const KEY_HEADER: (&str, &str) = ("x-ms-documentdb-partitionkey", "[1]");
const PROCEDURE: &str = "/dbs/d/colls/c/sprocs/fill";
/// Writes items of so many bytes for as long as it may, and answers how many.
const FILL: &str = "function (bytes) {
    var c = getContext().getCollection(), text = new Array(bytes + 1).join('x'), n = 0;
    function next() {
        var ok = n < 200 && c.createDocument(c.getSelfLink(), { id: 'i' + n, pk: 1, text: text }, function (e) {
            if (!e) n++;
            next();
        });
        if (!ok) getContext().getResponse().setBody(n);
    }
    next();
}";

async fn server() -> Server {
    let memory = MemoryShares { writes: WRITES, ..Default::default() };
    let server = Server::with(|options| DbOptions { memory, ..options });
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server.post("/dbs/d/colls/c/sprocs", json!({"id": "fill", "body": FILL})).await.expect(201);
    server
}

fn writes(server: &Server) -> MemoryUse {
    server.0.0.db.memory().usage()[Consumer::Writes as usize]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_writes_as_much_as_it_may_hold() {
    let server = server().await;
    let answer = server.send("POST", PROCEDURE, &[KEY_HEADER], &json!([100_000])).await.expect(200);
    let count = answer.body.as_u64().expect("a number");
    let held = count * 200_000;
    assert!(held > WRITES / 4 && held < WRITES / 2, "{count} items");
    let used = writes(&server);
    assert!(used.highest_bytes >= held - MIB && used.highest_bytes <= WRITES / 4 * 3, "{used:?}");
    assert_eq!(server.get("/dbs/d/colls/c/docs").await.expect(200).body["_count"], count);
    let given_back = wait_for_async(|| match writes(&server).used_bytes {
        0 => Ok(()),
        bytes => Err(format!("{bytes} bytes are held")),
    });
    given_back.await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_finds_no_memory_is_told_to_come_again_whatever_it_makes_of_that() {
    let server = server().await;
    let others = server.0.0.db.memory().try_take(Consumer::Writes, WRITES).expect("nobody else has any");
    let refused = server.send("POST", PROCEDURE, &[KEY_HEADER], &json!([100_000])).await;
    assert_eq!((refused.status, refused.headers["x-ms-substatus"].as_bytes()), (429, &b"3092"[..]));
    assert!(refused.headers.contains_key("x-ms-retry-after-ms"));
    drop(others);
    assert_eq!(server.get("/dbs/d/colls/c/docs").await.expect(200).body["_count"], 0);
    assert!(server.send("POST", PROCEDURE, &[KEY_HEADER], &json!([100_000])).await.expect(200).body.is_u64());
}
