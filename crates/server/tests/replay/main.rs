//! Replays exchanges that were recorded against the real service, and compares every answer with ours.
//!
//! The status must be the same, every header that the service sent must be there (those that are not are listed in
//! `headers.rs`, with the reason), and the body must have the same names and types at every level. Values are
//! compared too, except those that a server makes up: for these the first answer teaches which of our values stands
//! for which recorded one, and from then on they must agree. The same lesson rewrites later requests, so that an
//! `If-Match` or a continuation goes out with the value that our server gave.

mod compare;
mod exchange;
mod headers;

use std::path::Path;

use compare::Lessons;
use exchange::Exchange;
use orrery_testkit::{Client, Reply, Server};
use serde_json::{Value, json};

#[test]
fn recorded_exchanges_get_the_same_answers() {
    let Some(folder) = exchange::recordings() else {
        println!("not run: the recorded exchanges (shared/vectors/nosql-recorded-gateway) are not here");
        return;
    };
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_orrery")), &["--in-memory"]);
    let mut client = Client::new(server.port());
    let mut differences = Vec::new();
    let (mut replayed, mut left_out) = (0, 0);
    for scenario in exchange::SCENARIOS {
        let exchanges = exchange::load(&folder, scenario);
        prepare(&mut client, scenario, &exchanges);
        let mut lessons = Lessons::default();
        for exchange in &exchanges {
            if let Some(reason) = exchange::left_out(exchange) {
                println!("left out: {} {} {}: {reason}", exchange.name, exchange.verb, exchange.path);
                left_out += 1;
                continue;
            }
            let reply = send(&mut client, &lessons, exchange);
            differences.extend(compare::differences(exchange, &reply, &mut lessons));
            replayed += 1;
        }
        clean(&mut client);
    }
    println!("replayed {replayed} exchanges, left out {left_out}");
    assert!(replayed >= 20, "only {replayed} exchanges were found");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

fn send(client: &mut Client, lessons: &Lessons, exchange: &Exchange) -> Reply {
    client.signer().renew();
    let authorization = client.signer().authorization(&exchange.verb, &exchange.path);
    let date = client.signer().date().to_owned();
    let mut headers = vec![("authorization", authorization), ("x-ms-date", date)];
    for (name, value) in &exchange.headers {
        if !matches!(name.as_str(), "authorization" | "x-ms-date") {
            headers.push((name, lessons.rewrite(value)));
        }
    }
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = client.send_raw(&exchange.verb, &exchange.path, &headers, exchange.body.as_bytes());
    reply.unwrap_or_else(|error| panic!("{}: {error}", exchange.name))
}

/// Makes what was in the account before the recording began.
fn prepare(client: &mut Client, scenario: &str, exchanges: &[Exchange]) {
    match scenario {
        "database_operations" => create(client, "/dbs", &json!({"id": "test-cosmos-db-attachment"}), &[]),
        "query_operations" => {
            create(client, "/dbs", &json!({"id": "database1"}), &[]);
            // The recording does not say what the key was. Without a key both documents share a logical partition,
            // whose order is that of their ids, as in the recording.
            let key = json!({"paths": ["/none"], "kind": "Hash"});
            create(client, "/dbs/database1/colls", &json!({"id": "container1", "partitionKey": key}), &[]);
            for document in exchanges.iter().flat_map(|exchange| documents(&exchange.answer)) {
                let headers = [("x-ms-documentdb-partitionkey", "[{}]")];
                create(client, "/dbs/database1/colls/container1/docs", &document, &headers);
            }
        }
        _ => {}
    }
}

/// The documents of a recorded page as a client once created them, without what the service added.
fn documents(answer: &Value) -> Vec<Value> {
    let mut documents = answer["Documents"].as_array().cloned().unwrap_or_default();
    for document in &mut documents {
        document.as_object_mut().expect("a document is an object").retain(|name, _| !name.starts_with('_'));
    }
    documents
}

fn create(client: &mut Client, path: &str, body: &Value, headers: &[(&str, &str)]) {
    let reply = client.send("POST", path, headers, body.to_string().as_bytes()).expect("the server answers");
    assert_eq!(reply.status, 201, "{path}: {}", reply.json());
}

/// Each scenario was recorded on its own.
fn clean(client: &mut Client) {
    let listed = client.send("GET", "/dbs", &[], b"").expect("the server answers").json();
    for database in listed["Databases"].as_array().expect("a list of databases") {
        let path = format!("/dbs/{}", database["id"].as_str().expect("an id is a string"));
        let reply = client.send("DELETE", &path, &[], b"").expect("the server answers");
        assert_eq!(reply.status, 204, "{path}");
    }
}
