//! The containers that clients work on.

use anyhow::ensure;
use orrery_testkit::Client;
use serde_json::{Value, json};

pub const KEY: &str = "x-ms-documentdb-partitionkey";

pub fn docs(container: &str) -> String {
    format!("/dbs/db/colls/{container}/docs")
}

pub fn create(client: &mut Client, path: &str, headers: &[(&str, &str)], body: &Value) -> anyhow::Result<()> {
    let reply = client.send("POST", path, headers, body.to_string().as_bytes())?;
    ensure!(
        [200, 201].contains(&reply.status),
        "{path}: {} {}",
        reply.status,
        String::from_utf8_lossy(&reply.body)
    );
    Ok(())
}

pub fn container(client: &mut Client, name: &str, throughput: u64) -> anyhow::Result<()> {
    let body = json!({"id": name, "partitionKey": {"paths": ["/key"], "kind": "Hash", "version": 2}});
    create(client, "/dbs/db/colls", &[("x-ms-offer-throughput", &throughput.to_string())], &body)
}

/// Writes an item over whatever has its id; how it was answered, 0 for not at all.
pub fn upsert(client: &mut Client, container: &str, key: &str, item: &Value) -> u16 {
    let key = json!([key]).to_string();
    let headers = [(KEY, key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    client
        .send("POST", &docs(container), &headers, item.to_string().as_bytes())
        .map_or(0, |reply| reply.status)
}

/// Writes it until it is taken.
pub fn load(client: &mut Client, container: &str, key: &str, item: &Value) -> anyhow::Result<()> {
    for _ in 0..100 {
        match upsert(client, container, key, item) {
            200 | 201 => return Ok(()),
            429 => std::thread::sleep(std::time::Duration::from_millis(100)),
            status => anyhow::bail!("an item was answered with {status}"),
        }
    }
    anyhow::bail!("an item was throttled a hundred times")
}
