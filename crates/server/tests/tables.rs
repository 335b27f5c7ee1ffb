//! The port of the Table API in a real server: both of its protocols, hostile requests, and batches that are cut off.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Sender;

use orrery_testkit::{Client, Random, Reply, Server};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

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

const ACL: &str = "/t?comp=acl";
const PROPERTIES: &str = "/?restype=service&comp=properties";

#[test]
fn hostile_requests_are_refused_and_cost_little() {
    let (mut server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let deep = format!("/t()?$filter={}a%20eq%201{}", "not(".repeat(5_000), ")".repeat(5_000));
    let open = format!("/t()?$filter={}a%20eq%201", "(".repeat(10_000));
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
        ACL,
        PROPERTIES,
        "/t()?$filter=a%20eq%20X'zz'",
        "/$batch",
        "/Tables('t",
        "/a/b/c",
        &deep,
        &open,
        &long,
        &wide,
    ];
    for path in paths {
        for verb in ["GET", "POST", "PUT", "MERGE", "PATCH", "DELETE"] {
            for body in ["", "{", "[]", r#"{"PartitionKey":1}"#, "--b\n\n--b--"] {
                let answer = send(&mut client, verb, path, body);
                let is_refused = (400..500).contains(&answer.status) || answer.status == 501;
                // What is right of these: to ask, and to take all policies back.
                let is_right = matches!((verb, path, body), ("GET", ACL | PROPERTIES, _) | ("PUT", ACL, ""));
                let place = &path[..path.len().min(60)];
                assert_eq!(is_refused, !is_right, "{verb} {place} {body}: {}", answer.status);
                assert!(is_refused || answer.status < 300, "{verb} {place} {body}: {}", answer.status);
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

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// The row keys that a filter finds.
fn found(client: &mut Client, filter: &str) -> Vec<String> {
    let filter = utf8_percent_encode(filter, NON_ALPHANUMERIC);
    let listed = send(client, "GET", &format!("/t()?$filter={filter}"), "");
    assert_eq!(listed.status, 200, "{filter}: {}", text(&listed));
    let rows = listed.json()["value"].as_array().expect("rows").clone();
    rows.iter().map(|row| row["RowKey"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn filters_that_clients_build_up_in_a_loop_are_answered() {
    let (_server, mut client) = started(&["--in-memory", "--no-throttle"]);
    create_table(&mut client, "t");
    for number in [7, 150, 300] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{number}","n":{number}}}"#);
        assert_eq!(send(&mut client, "POST", "/t", &body).status, 201);
    }
    let combined = |joint: &str, operator: &str| {
        (1..200).fold(format!("(n {operator} 0)"), |filter, number| {
            format!("({filter}) {joint} (n {operator} {number})")
        })
    };
    assert_eq!(found(&mut client, &combined("or", "eq")), ["150", "7"]);
    assert_eq!(found(&mut client, &combined("and", "ne")), ["300"]);
    let parentheses = format!("{}n eq 7{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(found(&mut client, &parentheses), ["7"], "parentheses alone make nothing deeper");
}

#[test]
fn infinite_doubles_are_found_with_an_index_and_without() {
    let (_server, mut client) = started(&["--in-memory", "--no-throttle"]);
    create_table(&mut client, "t");
    let infinite = |text: &str| format!(r#""d":"{text}","d@odata.type":"Edm.Double""#);
    for (row, property) in [
        ("five", r#""d":5.0"#.to_owned()),
        ("int", r#""d":6"#.to_owned()),
        ("long", r#""d":"7","d@odata.type":"Edm.Int64""#.to_owned()),
        ("minus", infinite("-Infinity")),
        ("nan", infinite("NaN")),
        ("plus", infinite("Infinity")),
        ("text", r#""d":"Infinity""#.to_owned()),
        ("without", r#""e":1"#.to_owned()),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{property}}}"#);
        assert_eq!(send(&mut client, "POST", "/t", &body).status, 201);
    }
    for (filter, wanted) in [
        ("d eq INF", &["plus"][..]),
        ("d eq +INF", &["plus"]),
        ("d eq -INF", &["minus"]),
        ("d eq -Infinity", &["minus"]),
        ("d eq NaN", &[]),
        ("d ne NaN", &["five", "int", "long", "minus", "nan", "plus"]),
        ("d gt 5", &["int", "long", "plus"]),
        ("d gt 5.0", &["int", "long", "plus"]),
        ("d ge 5.5", &["int", "long", "plus"]),
        ("d lt 5.5", &["five", "minus"]),
        ("d lt INF", &["five", "int", "long", "minus"]),
        ("d le INF", &["five", "int", "long", "minus", "plus"]),
        ("d ne INF", &["five", "int", "long", "minus", "nan"]),
        ("d gt -INF", &["five", "int", "long", "plus"]),
        ("d ne 5", &["int", "long", "minus", "nan", "plus"]),
        ("d eq 'Infinity'", &["text"]),
    ] {
        assert_eq!(found(&mut client, filter), wanted, "{filter}");
        // With one partition key items are looked at in turn where that is cheaper; with a range of keys the index may serve.
        assert_eq!(found(&mut client, &format!("PartitionKey eq 'p' and ({filter})")), wanted, "{filter}");
    }
}

#[test]
fn a_table_that_can_be_made_can_be_used() {
    let (_server, mut client) = started(&["--in-memory"]);
    for name in ["Tables", "$batch", "t()", "Tables('t')"] {
        let refused = send(&mut client, "POST", "/Tables", &format!(r#"{{"TableName":"{name}"}}"#));
        assert!(
            refused.status == 400 && text(&refused).contains("InvalidInput"),
            "{name}: {}",
            text(&refused)
        );
    }
    create_table(&mut client, "a(b");
    let body = r#"{"PartitionKey":"(p","RowKey":"r)"}"#;
    assert_eq!(send(&mut client, "POST", "/a%28b()", body).status, 201);
    assert_eq!(send(&mut client, "GET", "/a(b(PartitionKey='(p',RowKey='r)')", "").status, 200);
    assert_eq!(send(&mut client, "DELETE", "/Tables('a(b')", "").status, 204);
}

const IN_BATCH: [(&str, &str); 2] =
    [("content-type", "multipart/mixed; boundary=b"), ("accept", "application/json;odata=fullmetadata")];

/// A read directly in the batch, as clients send a lone one: without a changeset, by a whole address.
fn read_in_batch(client: &mut Client, accept: &str) -> Reply {
    let batch = format!(
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         GET http://localhost/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\n{accept}\r\n\r\n--b--\r\n"
    );
    client.send_table("POST", "/$batch", &IN_BATCH, batch.as_bytes()).expect("an answer")
}

#[test]
fn a_read_alone_in_a_batch_is_answered_as_it_asks() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let missing = read_in_batch(&mut client, "");
    assert!(missing.status == 202 && text(&missing).contains("HTTP/1.1 404 Not Found"), "{}", text(&missing));
    assert_eq!(send(&mut client, "POST", "/t", r#"{"PartitionKey":"p","RowKey":"r","n":1}"#).status, 201);
    for (accept, has_etag, has_link) in [
        ("Accept: application/json;odata=nometadata\r\n", false, false),
        ("Accept: application/json; odata=minimalmetadata\r\n", true, false),
        ("", true, true),
    ] {
        let read = read_in_batch(&mut client, accept);
        assert_eq!(read.status, 202);
        let said = text(&read);
        let boundary =
            read.header("content-type").and_then(|kind| kind.split_once("boundary=")).expect("a boundary").1;
        assert!(
            said.starts_with(&format!("--{boundary}\r\n")) && said.ends_with(&format!("--{boundary}--\r\n"))
        );
        assert!(!said.contains("changesetresponse"), "a read stands outside of changesets: {said}");
        // Clients find the body behind the second empty line: that of the part, and that of the inner answer.
        let (head, rest) = said.split_once("\r\n\r\n").expect("the head of the part");
        assert!(head.contains("Content-Type: application/http"), "{said}");
        let (inner, body) = rest.split_once("\r\n\r\n").expect("the head of the answer");
        assert!(inner.starts_with("HTTP/1.1 200 OK\r\n") && inner.contains("ETag: W/"), "{said}");
        let entity: serde_json::Value =
            serde_json::from_str(body.split("\r\n").next().unwrap_or_default()).expect("JSON");
        assert_eq!((&entity["RowKey"], &entity["n"]), (&"r".into(), &1.into()));
        assert_eq!(
            (entity.get("odata.etag").is_some(), entity.get("odata.editLink").is_some()),
            (has_etag, has_link)
        );
    }
}

#[test]
fn an_insert_in_a_batch_is_echoed_as_its_part_asks() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let part = |row: &str, accept: &str| {
        format!(
            "--set\r\nContent-Type: application/http\r\n\r\nPOST http://localhost/t HTTP/1.1\r\n{accept}\
             Content-Type: application/json\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}\r\n"
        )
    };
    let batch = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n{}{}--set--\r\n--b--\r\n",
        part("bare", "Accept: application/json;odata=nometadata\r\n"),
        part("whole", "")
    );
    let answer = client.send_table("POST", "/$batch", &IN_BATCH, batch.as_bytes()).expect("an answer");
    let said = text(&answer);
    let echoes: Vec<&str> = said.lines().filter(|line| line.starts_with('{')).collect();
    let [bare, whole] = echoes[..] else { panic!("{said}") };
    assert!(bare.contains("bare") && !bare.contains("odata."), "{bare}");
    assert!(whole.contains("whole") && whole.contains("odata.editLink"), "{whole}");
    assert!(said.contains("odata=nometadata") && said.contains("odata=fullmetadata"), "{said}");
}

/// What a client needs to know in order to come again.
fn waits(reply: &Reply) -> bool {
    let number = |name: &str| reply.header(name).and_then(|text| text.parse::<u64>().ok());
    let (seconds, milliseconds) = (number("retry-after"), number("x-ms-retry-after-ms"));
    seconds.zip(milliseconds).is_some_and(|(seconds, wait)| wait > 0 && seconds * 1000 >= wait)
}

/// Writes that cost several seconds of a table's throughput, of which one must be refused.
const LARGE_WRITES: usize = 50;

#[test]
fn who_is_throttled_is_told_when_to_come_again() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"r","x":"{}"}}"#, "x".repeat(1_000_000));
    let put = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n--set\r\nContent-Type: application/http\r\n\r\n\
        PUT http://localhost/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{body}\r\n--set--\r\n--b--\r\n"
    );
    let entity = "/t(PartitionKey='p',RowKey='r')";
    // The debt of a large write outlasts the next requests, unless the machine takes a break just then.
    let refused = (0..LARGE_WRITES).find_map(|_| {
        let spent = send(&mut client, "PUT", entity, &body).status;
        assert!(spent == 204 || spent == 429, "{spent}");
        let all = [
            send(&mut client, "GET", entity, ""),
            read_in_batch(&mut client, ""),
            client.send_table("POST", "/$batch", &IN_BATCH, put.as_bytes()).expect("an answer"),
            send(&mut client, "GET", "/t()", ""),
            send(&mut client, "PUT", entity, "{}"),
        ];
        all.iter().all(|reply| reply.status == 429).then_some(all)
    });
    for reply in refused.expect("400 RU/s do not last for so many large writes") {
        assert!(waits(&reply), "{reply:?}");
        assert!(text(&reply).contains("TooManyRequests"), "{}", text(&reply));
    }
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

/// The port that the Table API has when nobody names one.
const DEFAULT_PORT: u16 = 8902;

#[test]
fn a_default_port_that_is_taken_is_left_out_with_a_warning() {
    // Where it cannot be bound here another process has it, which is all that this test needs.
    let _ours = TcpListener::bind(("127.0.0.1", DEFAULT_PORT));
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut command = Command::new("env");
    // The testkit says none where a test does not name a port.
    command.args(["--unset=ORRERY_TABLE_PORT", BINARY]);
    let file = std::fs::File::create(&log).expect("the log can be written");
    let data = folder.path().join("data");
    let server = Server::start_as_logged(command, &data, &["--bind", "127.0.0.1"], file);
    assert_eq!(server.table_port(), None);
    assert_eq!(Client::new(server.port()).send("GET", "/dbs", &[], b"").expect("an answer").status, 200);
    let said = std::fs::read_to_string(&log).expect("the log can be read");
    assert!(said.contains("WARN") && said.contains("choose a port with --table-port"), "{said}");
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
fn a_query_for_one_key_is_a_point_read_and_is_charged_as_one() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    for row in ["r", "it''s"] {
        let entity = format!("/t(PartitionKey='p',RowKey='{row}')");
        assert_eq!(send(&mut client, "PUT", &entity, r#"{"a":1,"b":"x"}"#).status, 204);
    }
    let units =
        |reply: &Reply| reply.header("x-ms-request-charge").and_then(|units| units.parse::<f64>().ok());
    let mut query = |filter: &str, more: &str| {
        let filter = utf8_percent_encode(filter, NON_ALPHANUMERIC);
        let reply = send(&mut client, "GET", &format!("/t()?$filter={filter}{more}"), "");
        assert_eq!(reply.status, 200, "{}", text(&reply));
        assert_eq!(reply.header("x-ms-continuation-nextpartitionkey"), None);
        let mut rows = reply.json()["value"].as_array().expect("rows").clone();
        for row in &mut rows {
            row.as_object_mut().expect("an entity").remove("Timestamp").expect("the time of its write");
        }
        (rows, units(&reply))
    };
    let entity = serde_json::json!({"PartitionKey": "p", "RowKey": "it's", "a": 1, "b": "x"});
    let wanted = std::slice::from_ref(&entity);
    let (found, by_key) = query("PartitionKey eq 'p' and RowKey eq 'it''s'", "");
    assert_eq!(found, wanted);
    let (found, by_query) = query("PartitionKey eq 'p' and RowKey eq 'it''s' and a eq 1", "");
    assert_eq!(found, wanted, "what a query finds looks the same");
    let (found, _) = query("'it''s' eq RowKey and (PartitionKey eq 'p')", "&$top=5&$select=a,Timestamp,z");
    assert_eq!(found, [serde_json::json!({"a": 1, "z": null})]);
    let (found, of_nothing) = query("PartitionKey eq 'p' and RowKey eq 'none'", "");
    assert_eq!((found.len(), of_nothing), (0, by_key));
    let long = format!("PartitionKey eq 'p' and RowKey eq '{}'", "k".repeat(2_000));
    let (found, _) = query(&long, "");
    assert_eq!(found.len(), 0);
    let read = units(&send(&mut client, "GET", "/t(PartitionKey='p',RowKey='it%27%27s')", ""));
    assert!(by_key.is_some() && by_key == read && by_query > by_key, "{by_key:?} {read:?} {by_query:?}");
}

#[test]
fn a_query_for_one_key_shows_a_signature_only_what_it_covers() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let terms = [("sp", "r"), ("se", "2099-01-01"), ("spk", "p"), ("srk", "b"), ("epk", "p"), ("erk", "c")];
    let signature = client.signer().table_sas_with("t", &terms);
    for row in ["a", "b"] {
        let entity = format!("/t(PartitionKey='p',RowKey='{row}')");
        assert_eq!(send(&mut client, "PUT", &entity, "{}").status, 204);
        let filter = format!("PartitionKey%20eq%20'p'%20and%20RowKey%20eq%20'{row}'");
        let reply = client.send_raw("GET", &format!("/t()?$filter={filter}&{signature}"), &[], b"");
        let reply = reply.expect("an answer");
        assert_eq!(reply.status, 200, "{}", text(&reply));
        let rows = reply.json()["value"].as_array().map(Vec::len);
        assert_eq!(rows, Some(usize::from(row == "b")), "{row}");
    }
}

/// A batch with so many inserts, each of an entity of its own.
fn inserts(count: usize) -> String {
    let part = |row: usize| {
        format!(
            "--set\r\nContent-Type: application/http\r\n\r\nPOST http://localhost/t() HTTP/1.1\r\n\
             Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n\
             {{\"PartitionKey\":\"many\",\"RowKey\":\"{row:03}\"}}\r\n"
        )
    };
    let parts: String = (0..count).map(part).collect();
    format!("--b\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n{parts}--set--\r\n--b--\r\n")
}

#[test]
fn a_batch_of_too_many_operations_names_the_last_that_there_was_room_for() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let mut sent = |count: usize| {
        text(&client.send_table("POST", "/$batch", &IN_BATCH, inserts(count).as_bytes()).expect("an answer"))
    };
    let refused = sent(101);
    assert!(refused.contains("HTTP/1.1 400") && refused.contains(r#""code":"InvalidInput""#), "{refused}");
    let message =
        r#""value":"99:The batch request operation exceeds the maximum 100 changes per change set."#;
    assert!(refused.contains(message), "{refused}");
    assert_eq!(sent(100).matches("HTTP/1.1 204").count(), 100, "nothing of the other one was done");
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

/// All rows that a path shows at a level of metadata, and how many each page had.
fn walked(client: &mut Client, path: &str, level: &str) -> (Vec<serde_json::Value>, Vec<usize>) {
    let accept = format!("application/json;odata={level}");
    let (mut rows, mut pages, mut next) = (Vec::new(), Vec::new(), String::new());
    loop {
        let (mark, rest) = (if path.contains('?') { '&' } else { '?' }, &next);
        let reply = client.send_table("GET", &format!("{path}{mark}{rest}"), &[("accept", &accept)], b"");
        let reply = reply.expect("an answer");
        assert_eq!(reply.status, 200, "{}", text(&reply));
        let found = reply.json()["value"].as_array().expect("rows").clone();
        pages.push(found.len());
        rows.extend(found);
        match reply.header("x-ms-continuation-nextpartitionkey") {
            Some(token) => next = format!("NextPartitionKey={token}&NextRowKey=x"),
            None => return (rows, pages),
        }
    }
}

#[test]
fn pages_are_whole_however_they_end_and_show_entities_as_reads_do() {
    let (_server, mut client) = started(&["--in-memory", "--no-throttle"]);
    create_table(&mut client, "t");
    let keys = [("a", 3), ("b", 12)].into_iter().flat_map(|(key, rows)| (0..rows).map(move |row| (key, row)));
    let keys: Vec<(&str, String)> = keys.map(|(key, row)| (key, format!("{row:02}"))).collect();
    // A page has room for six of them.
    let long = format!(r#"{{"n":1,"d":2.0,"text":"{}"}}"#, "x\\n".repeat(250_000));
    for (key, row) in &keys {
        let entity = format!("/t(PartitionKey='{key}',RowKey='{row}')");
        assert_eq!(send(&mut client, "PUT", &entity, &long).status, 204);
    }
    for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
        let accept = format!("application/json;odata={level}");
        let mut reads = Vec::new();
        for (key, row) in &keys {
            let entity = format!("/t(PartitionKey='{key}',RowKey='{row}')");
            let reply = client.send_table("GET", &entity, &[("accept", &accept)], b"").expect("an answer");
            let mut read = reply.json();
            read.as_object_mut().expect("an entity").remove("odata.metadata");
            reads.push(read);
        }
        let (rows, pages) = walked(&mut client, "/t()", level);
        assert!(pages.len() > 1 && rows == reads, "{level}: {pages:?}");
        let (rows, pages) = walked(&mut client, "/t()?$filter=PartitionKey%20eq%20'b'", level);
        assert!(pages.len() > 1 && rows == reads[3..], "{level}: {pages:?}");
        // The first page ends with the last entity of its partition.
        let (rows, pages) = walked(&mut client, "/t()?$top=3&$select=RowKey,n,none", level);
        assert_eq!(pages, [3; 5], "{level}");
        for (row, (_, key)) in rows.iter().zip(&keys) {
            let wanted = [&serde_json::json!(key), &serde_json::json!(1), &serde_json::Value::Null];
            assert_eq!(["RowKey", "n", "none"].map(|name| &row[name]), wanted, "{level}");
        }
        let (rows, _) = walked(&mut client, "/t()?$filter=PartitionKey%20eq%20'c'", level);
        assert_eq!(rows.len(), 0, "{level}");
    }
}
