//! A server with one container, and short words for what the tests do with scripts.

use std::path::Path;

use orrery_testkit::{Client, Reply, Server};
use serde_json::{Value, json};

pub const CONTAINER: &str = "/dbs/db/colls/shop";
const KEY: &str = "x-ms-documentdb-partitionkey";

pub struct World {
    pub server: Server,
    pub client: Client,
}

pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

pub fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// One client of a server; several may work at the same time.
pub fn execute(client: &mut Client, name: &str, key: &str, arguments: &Value) -> Reply {
    let key = json!([key]).to_string();
    let path = format!("{CONTAINER}/sprocs/{name}");
    client.send("POST", &path, &[(KEY, &key)], arguments.to_string().as_bytes()).expect("an answer")
}

pub fn read(client: &mut Client, key: &str, id: &str) -> Reply {
    let key = json!([key]).to_string();
    client.send("GET", &format!("{CONTAINER}/docs/{id}"), &[(KEY, &key)], b"").expect("an answer")
}

impl World {
    pub fn start() -> World {
        World::on(Server::start(binary(), &["--in-memory", "--no-throttle"]))
    }

    pub fn on(server: Server) -> World {
        let mut client = Client::new(server.port());
        client.send("POST", "/dbs", &[], br#"{"id":"db"}"#).expect("the server is up");
        let body = json!({"id": "shop", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        client.send("POST", "/dbs/db/colls", &[], body.to_string().as_bytes()).expect("the server is up");
        World { server, client }
    }

    pub fn send(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.send(verb, path, headers, body.as_bytes()).expect("an answer")
    }

    /// Stores a script; `kind` is the word of its path.
    pub fn script(&mut self, kind: &str, id: &str, body: &str) -> Value {
        let reply = self.send("POST", &format!("{CONTAINER}/{kind}"), &[], &json!({"id": id, "body": body}));
        assert_eq!(reply.status, 201, "{}", text(&reply));
        reply.json()
    }

    pub fn trigger(&mut self, id: &str, kind: &str, operation: &str, body: &str) {
        let body = json!({"id": id, "body": body, "triggerType": kind, "triggerOperation": operation});
        let reply = self.send("POST", &format!("{CONTAINER}/triggers"), &[], &body);
        assert_eq!(reply.status, 201, "{}", text(&reply));
    }

    pub fn execute(&mut self, name: &str, key: &str, arguments: Value) -> Reply {
        execute(&mut self.client, name, key, &arguments)
    }

    pub fn create(&mut self, item: &Value, headers: &[(&str, &str)]) -> Reply {
        let key = json!([item["pk"]]).to_string();
        let headers = [&[(KEY, key.as_str())], headers].concat();
        self.send("POST", &format!("{CONTAINER}/docs"), &headers, item)
    }

    pub fn read(&mut self, key: &str, id: &str) -> Reply {
        read(&mut self.client, key, id)
    }

    pub fn query(&mut self, key: &str, query: &str) -> Reply {
        let key = json!([key]).to_string();
        let headers = [(KEY, key.as_str()), ("x-ms-documentdb-isquery", "true")];
        self.send("POST", &format!("{CONTAINER}/docs"), &headers, &json!({"query": query}))
    }
}
