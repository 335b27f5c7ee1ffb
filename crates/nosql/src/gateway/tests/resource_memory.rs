//! Queries over the resources of the catalog hold all of them, and take memory for that where they are many.

use orrery_cluster::{Consumer, MemoryShares};

use super::*;

const MIB: u64 = 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_query_over_many_containers_takes_memory_for_them() {
    let memory = MemoryShares { queries: 8 * MIB, ..Default::default() };
    let server = Server::with(|options| DbOptions { memory, ..options });
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let text = json!({"query": "SELECT VALUE c.id FROM c", "parameters": []});
    let queries = |bytes| server.0.0.db.memory().try_take(Consumer::Queries, bytes).expect("it is free");
    let paths: Vec<_> =
        (0..200).map(|number| json!({"path": format!("/some/long/path/{number}/*")})).collect();
    for number in 0..30 {
        let policy = json!({"includedPaths": paths, "excludedPaths": [{"path": "/*"}]});
        let container = json!({"id": number.to_string(), "indexingPolicy": policy,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        server.post("/dbs/d/colls", container).await.expect(201);
        if number == 2 {
            // A few are not worth counting.
            let _others = queries(8 * MIB);
            server.query("/dbs/d/colls", text.clone()).await.expect(200);
        }
    }
    let others = queries(8 * MIB);
    let refused = server.query("/dbs/d/colls", text.clone()).await.expect(429);
    assert_eq!(refused.header("x-ms-substatus"), "3092");
    drop(others);
    let answer = server.query("/dbs/d/colls", text).await.expect(200);
    assert_eq!(answer.body["_count"], 30);
    assert_eq!(server.0.0.db.memory().free(Consumer::Queries), 8 * MIB);
}
