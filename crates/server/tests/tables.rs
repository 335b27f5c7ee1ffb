//! The port of the Table API in a real server: both of its protocols, hostile requests, and batches that are cut off.

use std::path::Path;
use std::sync::mpsc::Sender;

use orrery_testkit::{Client, Random, Reply, Server};

const BINARY: &str = env!("CARGO_BIN_EXE_orrery");

fn started(arguments: &[&str]) -> (Server, Client) {
    let server = Server::start(Path::new(BINARY), &[&["--table-port", "0"], arguments].concat());
    let client = Client::new(server.table_port().expect("it was asked for"));
    (server, client)
}

fn send(client: &mut Client, verb: &str, path: &str, body: &str) -> Reply {
    let headers = [("content-type", "application/json"), ("accept", "application/json;odata=nometadata")];
    client.send_table(verb, path, &headers, body.as_bytes()).expect("an answer")
}

fn create_table(client: &mut Client, name: &str) {
    let made = send(client, "POST", "/Tables()", &format!(r#"{{"TableName":"{name}"}}"#));
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
}

#[test]
fn one_port_speaks_two_protocols_over_the_same_entities() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "people");
    let body = r#"{"PartitionKey":"Smith","RowKey":"Ben","L":"1","L@odata.type":"Edm.Int64","D":1.0}"#;
    let made = send(&mut client, "POST", "/people()", body);
    assert_eq!(made.status, 201);
    assert!(
        made.header("x-ms-request-charge")
            .is_some_and(|charge| charge.parse::<f64>().is_ok_and(|units| units > 0.0))
    );

    // As older clients send it: items in the shape of entities, signed as those of NoSQL are.
    let key = [("x-ms-documentdb-partitionkey", r#"["Smith"]"#)];
    let item =
        client.send("GET", "/dbs/TablesDB/colls/people/docs/Ben", &key, b"").expect("an answer").json();
    assert_eq!((&item["$id"], &item["$pk"]), (&"Ben".into(), &"Smith".into()));
    assert_eq!(item["L"], serde_json::json!({"$t": 18, "$v": "00000000000000000001"}));
    let other = r#"{"id":"Ann","$id":"Ann","$pk":"Smith","Age":{"$t":16,"$v":4},"When":{"$t":9,"$v":"00639305639547455033"}}"#;
    let made =
        client.send("POST", "/dbs/TablesDB/colls/people/docs", &key, other.as_bytes()).expect("an answer");
    assert_eq!(made.status, 201);
    let read = send(&mut client, "GET", "/people(PartitionKey='Smith',RowKey='Ann')", "").json();
    assert_eq!((&read["Age"], &read["When"]), (&4.into(), &"2026-11-18T01:59:14.7455033Z".into()));
    let listed = send(&mut client, "GET", "/people()?$filter=Age%20gt%201%20or%20D%20eq%201", "").json();
    let rows: Vec<_> =
        listed["value"].as_array().expect("rows").iter().map(|row| row["RowKey"].clone()).collect();
    assert_eq!(rows, ["Ann", "Ben"]);
}

#[test]
fn hostile_requests_are_refused_and_cost_little() {
    let (mut server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let deep = format!("/t()?$filter={}a%20eq%201{}", "(".repeat(10_000), ")".repeat(10_000));
    let long = format!("/t()?$filter={}a%20eq%201", "not%20".repeat(6_000));
    let wide = format!("/t()?$select={}a", "a,".repeat(10_000));
    let paths = [
        "/",
        "//",
        "/t(",
        "/t(PartitionKey='')",
        "/%ff",
        "/t()?$filter=%ff",
        "/t()?$top=-1",
        "/t()?$top=x",
        "/t()?NextPartitionKey=!!",
        "/t()?NextPartitionKey=QUJD",
        "/t?comp=acl",
        "/?restype=service&comp=properties",
        "/t()?$filter=a%20eq%20X'zz'",
        "/$batch",
        "/Tables('t",
        "/a/b/c",
        &deep,
        &long,
        &wide,
    ];
    for path in paths {
        for verb in ["GET", "POST", "PUT", "MERGE", "PATCH", "DELETE"] {
            for body in ["", "{", "[]", r#"{"PartitionKey":1}"#, "--b\n\n--b--"] {
                let answer = send(&mut client, verb, path, body);
                let is_refused = (400..500).contains(&answer.status) || answer.status == 501;
                let place = &path[..path.len().min(60)];
                assert!(is_refused, "{verb} {place} {body}: {}", answer.status);
            }
        }
    }
    for content_type in
        ["", "multipart/mixed", "multipart/mixed; boundary=b", "multipart/mixed; boundary=\"\""]
    {
        let mut random = Random::new(7);
        for length in [0, 10, 1_000, 100_000] {
            let body: Vec<u8> = (0..length).map(|_| b"--b\r\n: PGT/'"[random.below(12)]).collect();
            let answer = client.send_table("POST", "/$batch", &[("content-type", content_type)], &body);
            let status = answer.expect("an answer").status;
            assert!(status == 400 || status == 202, "{content_type} {length}: {status}");
        }
    }
    for authorization in
        ["", "SharedKey", "SharedKeyLite orrery:", "SharedKey orrery:AAAA", "Bearer x", "Basic x"]
    {
        let date = client.signer().date().to_owned();
        let headers = [("authorization", authorization), ("x-ms-date", date.as_str())];
        let status = client.send_raw("GET", "/Tables", &headers, b"").expect("an answer").status;
        assert!(matches!(status, 401 | 403 | 501), "{authorization}: {status}");
    }
    assert!(server.is_alive());
    assert_eq!(send(&mut client, "GET", "/t()", "").json()["value"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_named_port_must_be_free_and_none_is_none() {
    let (server, _) = started(&["--in-memory"]);
    let taken = server.table_port().expect("it was asked for").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let refused = Server::try_start_on(Path::new(BINARY), folder.path(), &["--table-port", &taken]);
    let said = refused.err().expect("the port is taken");
    assert!(said.contains("--table-port"), "{said}");
    let without = Server::start(Path::new(BINARY), &["--in-memory", "--table-port", "none"]);
    assert_eq!(without.table_port(), None);
}

/// Entities of one batch.
const BATCH: usize = 5;
/// Batches that a server acknowledges before it is killed.
const BATCHES_BEFORE_KILL: usize = 20;

fn batch(number: usize) -> String {
    let part = |row: usize| {
        let body = format!(r#"{{"PartitionKey":"{number}","RowKey":"{row}","n":{number}}}"#);
        format!(
            "--set\r\nContent-Type: application/http\r\nContent-ID: {row}\r\n\r\nPOST http://localhost/t() HTTP/1.1\r\n\
             Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{body}\r\n"
        )
    };
    let parts: String = (0..BATCH).map(part).collect();
    format!("--b\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n{parts}--set--\r\n--b--\r\n")
}

/// Sends batches until the server is gone; returns how many it has acknowledged.
fn write_until_killed(mut client: Client, first: usize, acknowledged: &Sender<()>) -> usize {
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    for number in first.. {
        match client.send_table("POST", "/$batch", &headers, batch(number).as_bytes()) {
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!(text.matches("HTTP/1.1 204").count(), BATCH, "{text}");
                // The test counts the first of them only.
                let _ = acknowledged.send(());
            }
            Err(_) => return number,
        }
    }
    unreachable!("the server is killed")
}

#[test]
fn a_server_that_is_killed_loses_and_tears_no_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let server =
            Server::start_on(Path::new(BINARY), folder.path(), &["--table-port", "0", "--no-throttle"]);
        let client = Client::new(server.table_port().expect("it was asked for"));
        (server, client)
    };
    let (mut next, mut unknown) = (0, Vec::new());
    for round in 0..3 {
        let (server, mut client) = start();
        if round == 0 {
            create_table(&mut client, "t");
        }
        let first = next;
        let (acknowledged, writes) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || write_until_killed(client, first, &acknowledged));
        // The kill comes while the writer is at it, on a slow machine too.
        assert_eq!(writes.iter().take(BATCHES_BEFORE_KILL).count(), BATCHES_BEFORE_KILL);
        server.kill();
        let end = writer.join().expect("the writer does not panic");
        assert!(end > first, "something was written");
        // Nobody knows whether the one that was under way was carried out.
        unknown.push(end);
        next = end + 1;
        let (server, mut client) = start();
        for number in 0..next {
            let path = format!("/t()?$filter=PartitionKey%20eq%20'{number}'");
            let found = send(&mut client, "GET", &path, "").json()["value"].as_array().map_or(0, Vec::len);
            let is_whole = found == BATCH || found == 0 && unknown.contains(&number);
            assert!(is_whole, "batch {number} has {found} entities");
        }
        server.kill();
    }
}
