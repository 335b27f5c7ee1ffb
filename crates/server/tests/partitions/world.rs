//! A server with one database, and short words for what the tests do.

use std::path::Path;

use orrery_testkit::{Client, Reply, Server};
use serde_json::{Value, json};

pub struct World {
    pub server: Server,
    pub client: Client,
}

pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

impl World {
    pub fn start(args: &[&str]) -> World {
        World::on(Server::start(binary(), &[&["--in-memory"], args].concat()))
    }

    pub fn on(server: Server) -> World {
        let mut client = Client::new(server.port());
        client.send("POST", "/dbs", &[], br#"{"id":"db"}"#).expect("the server is up");
        World { server, client }
    }

    pub fn container(&mut self, id: &str, throughput: u32) -> Value {
        self.container_with(id, throughput, json!({"paths": ["/pk"], "kind": "Hash", "version": 2}))
    }

    pub fn container_with(&mut self, id: &str, throughput: u32, key: Value) -> Value {
        let body = json!({"id": id, "partitionKey": key}).to_string();
        let throughput = throughput.to_string();
        let headers = [("x-ms-offer-throughput", throughput.as_str())];
        let reply = self.send("POST", "/dbs/db/colls", &headers, body.as_bytes());
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
        reply.json()
    }

    pub fn create(&mut self, container: &str, key: &str, id: &str, fill: usize) -> Reply {
        let body = json!({"id": id, "pk": key, "fill": "x".repeat(fill)}).to_string();
        self.with_key("POST", container, key, "", &[], body.as_bytes())
    }

    pub fn with_key(
        &mut self,
        verb: &str,
        container: &str,
        key: &str,
        id: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let header = json!([key]).to_string();
        let headers = [&[("x-ms-documentdb-partitionkey", header.as_str())], headers].concat();
        let path = format!("/dbs/db/colls/{container}/docs{}{id}", if id.is_empty() { "" } else { "/" });
        self.send(verb, &path, &headers, body)
    }

    pub fn send(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.client.send(verb, path, headers, body).expect("the server is up")
    }

    /// Reads a feed to its end and returns what it holds.
    pub fn drain(&mut self, container: &str, headers: &[(&str, &str)]) -> Vec<Value> {
        let path = format!("/dbs/db/colls/{container}/docs");
        let (mut found, mut continuation) = (Vec::new(), None::<String>);
        for _ in 0..10_000 {
            let mut all = headers.to_vec();
            all.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
            let reply = self.send("GET", &path, &all, b"");
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
            found.extend(reply.json()["Documents"].as_array().expect("a feed").iter().cloned());
            continuation = reply.header("x-ms-continuation").map(str::to_owned);
            if continuation.is_none() {
                return found;
            }
        }
        panic!("the feed never ends");
    }

    pub fn ranges(&mut self, container: &str) -> Vec<Value> {
        let reply = self.send("GET", &format!("/dbs/db/colls/{container}/pkranges"), &[], b"");
        reply.json()["PartitionKeyRanges"].as_array().expect("a feed").clone()
    }

    pub fn metric(&mut self, name: &str) -> f64 {
        let reply = self.client.send_raw("GET", "/metrics", &[], b"").expect("the server is up");
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        let values = text.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
        values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

pub fn charge(reply: &Reply) -> f64 {
    reply.header("x-ms-request-charge").and_then(|text| text.parse().ok()).expect("a charge")
}
