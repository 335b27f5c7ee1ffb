//! What a table service has besides tables and entities: properties, rules for browsers, stored access policies, roles; and
//! older clients, which speak the NoSQL protocol to the same port. In a real server.

use std::path::Path;
use std::process::Command;

use orrery_testkit::{Client, Reply, Server, development_token, eventually};
use serde_json::{Value, json};

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

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

fn create_table(client: &mut Client, name: &str) {
    let made = send(client, "POST", "/Tables", &format!(r#"{{"TableName":"{name}"}}"#));
    assert_eq!(made.status, 201, "{}", text(&made));
}

const PROPERTIES: &str = "/?restype=service&comp=properties";
const RULE: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://page.example</AllowedOrigins>\
    <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>etag</ExposedHeaders>\
    <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

#[test]
fn properties_outlive_the_server_and_browsers_are_told_what_they_allow() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let server = Server::start_on(Path::new(BINARY), folder.path(), &["--table-port", "0"]);
        let client = Client::new(server.table_port().expect("it was asked for"));
        (server, client)
    };
    let (server, mut client) = start();
    let told = send(&mut client, "GET", PROPERTIES, "");
    assert_eq!((told.status, told.header("content-type")), (200, Some("application/xml")));
    assert!(text(&told).contains("<Cors />"), "{}", text(&told));
    let ask = |client: &mut Client, origin: &str, method: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", method),
            ("access-control-request-headers", "x-ms-date"),
        ];
        client.send_raw("OPTIONS", "/t", &headers, b"").expect("an answer")
    };
    assert_eq!(ask(&mut client, "http://page.example", "GET").status, 403);
    assert_eq!(client.send_raw("OPTIONS", "/t", &[], b"").expect("an answer").status, 400);
    assert_eq!(send(&mut client, "PUT", PROPERTIES, RULE).status, 202);
    for wrong in
        ["", "<x/>", "<StorageServiceProperties><Cors><CorsRule /></Cors></StorageServiceProperties>"]
    {
        assert_eq!(send(&mut client, "PUT", PROPERTIES, wrong).status, 400, "{wrong}");
    }
    let stats = send(&mut client, "GET", "/?restype=service&comp=stats", "");
    assert!(stats.status == 200 && text(&stats).contains("<Status>unavailable</Status>"));
    server.kill();

    let (_server, mut client) = start();
    assert!(text(&send(&mut client, "GET", PROPERTIES, "")).contains("http://page.example"));
    let allowed = ask(&mut client, "http://page.example", "PUT");
    assert_eq!(
        (allowed.status, allowed.header("access-control-allow-origin")),
        (200, Some("http://page.example"))
    );
    assert_eq!(allowed.header("access-control-max-age"), Some("60"));
    assert_eq!(ask(&mut client, "http://other.example", "PUT").status, 403);
    assert_eq!(ask(&mut client, "http://page.example", "DELETE").status, 403);
    let authorization = client.signer().table_signature("/Tables");
    let date = client.signer().date().to_owned();
    for (origin, wanted) in
        [("http://page.example", Some("http://page.example")), ("http://other.example", None)]
    {
        let headers = [("authorization", authorization.as_str()), ("x-ms-date", &date), ("origin", origin)];
        let answer = client.send_raw("GET", "/Tables", &headers, b"").expect("an answer");
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, wanted));
    }
}

#[test]
fn a_policy_gives_rights_and_takes_them_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let server = Server::start_on(Path::new(BINARY), folder.path(), &["--table-port", "0"]);
        let client = Client::new(server.table_port().expect("it was asked for"));
        (server, client)
    };
    let (server, mut client) = start();
    create_table(&mut client, "t");
    assert_eq!(send(&mut client, "POST", "/t", r#"{"PartitionKey":"p","RowKey":"r"}"#).status, 201);
    let policy = |rights: &str| {
        // Older clients put the mark of the byte order in front.
        format!(
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>mine</Id><AccessPolicy>\
             <Start>2020-01-01T00:00:00.0000000Z</Start><Expiry>2099-01-01T00:00:00.0000000Z</Expiry>\
             <Permission>{rights}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        )
    };
    assert_eq!(send(&mut client, "PUT", "/t?comp=acl", &policy("r")).status, 204);
    assert_eq!(send(&mut client, "PUT", "/t?comp=acl", &policy("x")).status, 400);
    assert_eq!(send(&mut client, "GET", "/nothing?comp=acl", "").status, 404);
    server.kill();

    let (_server, mut client) = start();
    assert!(text(&send(&mut client, "GET", "/t?comp=acl", "")).contains("<Id>mine</Id>"));
    let sas = |client: &mut Client, terms: &[(&str, &str)]| client.signer().table_sas_with("t", terms);
    let by_policy = sas(&mut client, &[("si", "mine")]);
    let read = |client: &mut Client, sas: &str| {
        client
            .send_raw("GET", &format!("/t(PartitionKey='p',RowKey='r')?{sas}"), &[], b"")
            .expect("an answer")
            .status
    };
    let write = |client: &mut Client, sas: &str| {
        let path = format!("/t(PartitionKey='p',RowKey='r')?{sas}");
        client
            .send_raw("PUT", &path, &[("content-type", "application/json")], b"{}")
            .expect("an answer")
            .status
    };
    assert_eq!((read(&mut client, &by_policy), write(&mut client, &by_policy)), (200, 403));
    for wrong in [
        sas(&mut client, &[("si", "other")]),
        sas(&mut client, &[("si", "mine"), ("sp", "r")]),
        sas(&mut client, &[("si", "mine"), ("se", "2099-01-01")]),
        sas(&mut client, &[("sp", "r"), ("se", "2020-01-01")]),
        sas(&mut client, &[("sp", "r"), ("se", "2099-01-01"), ("st", "2098-01-01")]),
        sas(&mut client, &[("sp", "r"), ("se", "2099-01-01"), ("sip", "10.0.0.1")]),
        sas(&mut client, &[("sp", "r"), ("se", "2099-01-01"), ("spr", "https")]),
        sas(&mut client, &[("sp", "r"), ("se", "2099-01-01"), ("spk", "q"), ("epk", "z")]),
        format!("{by_policy}x"),
    ] {
        assert_eq!(read(&mut client, &wrong), 403, "{wrong}");
    }
    // Rights are not given by who was given them.
    let acl = format!("/t?comp=acl&{}", sas(&mut client, &[("sp", "raud"), ("se", "2099-01-01")]));
    assert_eq!(client.send_raw("GET", &acl, &[], b"").expect("an answer").status, 403);

    assert_eq!(send(&mut client, "PUT", "/t?comp=acl", &policy("ru")).status, 204);
    assert_eq!(write(&mut client, &by_policy), 403, "to insert or replace needs the right to add, too");
    assert_eq!(send(&mut client, "PUT", "/t?comp=acl", &policy("rau")).status, 204);
    assert_eq!((read(&mut client, &by_policy), write(&mut client, &by_policy)), (200, 204));
    assert_eq!(send(&mut client, "PUT", "/t?comp=acl", "").status, 204);
    assert_eq!(read(&mut client, &by_policy), 403, "the policy was taken back");
    assert!(text(&send(&mut client, "GET", "/t?comp=acl", "")).contains("<SignedIdentifiers />"));
}

#[test]
fn roles_allow_what_they_say() {
    let (server, mut client) = started(&["--in-memory", "--entra-development"]);
    create_table(&mut client, "t");
    create_table(&mut client, "u");
    assert_eq!(send(&mut client, "POST", "/t", r#"{"PartitionKey":"p","RowKey":"r"}"#).status, 201);
    let mut account = Client::new(server.port());
    let mut make = |path: &str, body: Value| {
        let made = account.send("POST", path, &[], body.to_string().as_bytes()).expect("an answer");
        assert_eq!(made.status, 201, "{}", text(&made));
    };
    let tables = "Microsoft.DocumentDB/databaseAccounts/tables/";
    let definition = |id: &str, actions: &[&str]| {
        let actions: Vec<String> = actions.iter().map(|action| format!("{tables}{action}")).collect();
        json!({"id": id, "roleName": id, "assignableScopes": ["/"], "permissions": [{"dataActions": actions}]})
    };
    make("/roledefinitions", definition("read", &["containers/entities/read"]));
    make("/roledefinitions", definition("transact", &["containers/executeStoredProcedure"]));
    make(
        "/roledefinitions",
        definition("write", &["containers/entities/*", "containers/executeQuery", "write", "delete"]),
    );
    for (principal, role, scope) in [
        ("reader", "read", "/dbs/TablesDB/colls/t"),
        ("transactor", "transact", "/dbs/TablesDB/colls/t"),
        ("writer", "write", "/dbs/TablesDB"),
        ("elsewhere", "write", "/dbs/TablesDB/colls/u"),
    ] {
        let id = format!("{principal}-{role}");
        make(
            "/roleassignments",
            json!({"id": id, "principalId": principal, "roleDefinitionId": role, "scope": scope}),
        );
    }
    let entity = "/t(PartitionKey='p',RowKey='r')";
    let batch = "--b\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n--set\r\nContent-Type: application/http\r\n\r\n\
        PUT http://localhost/t(PartitionKey='p',RowKey='s') HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}\r\n--set--\r\n--b--\r\n";
    let mut ask = |principal: &str, verb: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {}", development_token(principal));
        let kind = if path == "/$batch" { "multipart/mixed; boundary=b" } else { "application/json" };
        let headers = [("authorization", bearer.as_str()), ("content-type", kind)];
        let answer = client.send_raw(verb, path, &headers, body.as_bytes()).expect("an answer");
        match answer.status {
            202 if text(&answer).contains("HTTP/1.1 403") => 403,
            status => status,
        }
    };
    for (principal, wanted) in [
        ("reader", [200, 403, 403, 403, 403, 403, 403]),
        ("transactor", [403, 403, 403, 202, 403, 403, 403]),
        ("writer", [200, 200, 204, 403, 201, 403, 403]),
        ("elsewhere", [403, 403, 403, 403, 403, 403, 403]),
        // Nobody has given this one a role, so in development it may do what a contributor may.
        ("nobody", [200, 200, 204, 202, 201, 403, 403]),
    ] {
        let name = format!(r#"{{"TableName":"of{principal}"}}"#);
        let got = [
            ask(principal, "GET", entity, ""),
            ask(principal, "GET", "/t()", ""),
            ask(principal, "PUT", entity, "{}"),
            ask(principal, "POST", "/$batch", batch),
            ask(principal, "POST", "/Tables", &name),
            ask(principal, "GET", "/?restype=service&comp=properties", ""),
            ask(principal, "PUT", "/t?comp=acl", ""),
        ];
        assert_eq!(got, wanted, "{principal}");
    }
    let mut refused = |authorization: &str| {
        client.send_raw("GET", "/Tables", &[("authorization", authorization)], b"").expect("an answer").status
    };
    assert_eq!((refused("Bearer x"), refused("Bearer")), (401, 403));
    let (_server, mut client) = started(&["--in-memory"]);
    let bearer = format!("Bearer {}", development_token("nobody"));
    let without = client.send_raw("GET", "/Tables", &[("authorization", bearer.as_str())], b"");
    assert_eq!(without.expect("an answer").status, 401, "no issuer is configured");
}

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["Smith"]"#);
const PROCEDURE: &str = "/dbs/TablesDB/colls/people/sprocs/__.sys.tablesBatchOperation";

/// What an older client stores of an entity.
fn item(row: &str, age: i64) -> Value {
    json!({"Age": {"$t": 16, "$v": age}, "id": row, "$pk": "Smith", "$id": row})
}

/// As these clients send a query.
fn query(client: &mut Client, sql: &str) -> Reply {
    let headers = [
        KEY,
        ("x-ms-version", "2018-09-17"),
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
    ];
    let body = json!({"query": sql, "parameters": []}).to_string();
    client.send("POST", "/dbs/TablesDB/colls/people/docs", &headers, body.as_bytes()).expect("an answer")
}

/// A request as older clients of tables send it.
fn older(client: &mut Client, verb: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.send(verb, path, headers, body.as_bytes()).expect("an answer")
}

/// The table `people`, made as older clients make one, with the entity `Ben` in it, whose version is returned.
fn made_by_older_clients(client: &mut Client) -> String {
    assert_eq!(older(client, "POST", "/dbs", &[], &json!({"id": "TablesDB"})).status, 201);
    let table = json!({"id": "people", "partitionKey": {"paths": ["/'$pk'"], "kind": "Hash"}});
    let made = older(client, "POST", "/dbs/TablesDB/colls", &[("x-ms-offer-throughput", "700")], &table);
    assert_eq!(made.status, 201, "{}", text(&made));
    let made = older(client, "POST", "/dbs/TablesDB/colls/people/docs", &[KEY], &item("Ben", 4));
    assert_eq!(made.status, 201, "{}", text(&made));
    let version = made.json()["_etag"].as_str().expect("a version").to_owned();
    assert!(version.starts_with("\"00000000-0000-0000-"), "clients read a time out of it: {version}");
    version
}

/// Entities and their ages, as clients of the Table API read them.
fn ages(client: &mut Client) -> Vec<(String, i64)> {
    let listed = send(client, "GET", "/people()", "").json();
    let age_of = |row: &Value| {
        (row["RowKey"].as_str().expect("a key").to_owned(), row["Age"].as_i64().expect("an age"))
    };
    listed["value"].as_array().expect("rows").iter().map(age_of).collect()
}

#[test]
fn older_clients_make_tables_and_write_batches_through_the_other_protocol() {
    let (_server, mut client) = started(&["--in-memory"]);
    let version = made_by_older_clients(&mut client);
    let mut batch = |arguments: Value| older(&mut client, "POST", PROCEDURE, &[KEY], &arguments);
    // 0 inserts, 1 deletes, 2 replaces, 3 merges, 4 and 5 insert what is not there, 6 reads.
    let more = json!({"Name": {"$t": 2, "$v": "x"}, "id": "Ben", "$pk": "Smith", "$id": "Ben"});
    let done = batch(json!([[item("Ann", 1), more, item("Cat", 3)], [0, 3, 4], ["", version, null]]));
    assert_eq!(done.status, 200, "{}", text(&done));
    let list: Value = serde_json::from_str(done.json().as_str().expect("a text")).expect("a list");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    assert_eq!((&list[1]["Age"]["$v"], &list[1]["Name"]["$v"]), (&json!(4), &json!("x")));
    let version = list[1]["_etag"].as_str().expect("a version").to_owned();
    let replaced = batch(json!([[item("Ben", 9), item("Ann", 0)], [2, 1], [version, "*"]]));
    assert_eq!(replaced.status, 200, "{}", text(&replaced));
    assert!(
        text(&replaced).ends_with(",null]\""),
        "of what was deleted there is nothing: {}",
        text(&replaced)
    );
    assert_eq!(ages(&mut client), [("Ben".to_owned(), 9), ("Cat".to_owned(), 3)]);
}

#[test]
fn a_batch_of_older_clients_that_fails_says_where_and_does_nothing() {
    let (_server, mut client) = started(&["--in-memory"]);
    made_by_older_clients(&mut client);
    let mut batch = |arguments: &Value| older(&mut client, "POST", PROCEDURE, &[KEY], arguments);
    for (arguments, place, words) in [
        (
            json!([[item("New", 1), item("Ben", 1)], [0, 0], ["", ""]]),
            1,
            "Resource with specified id or name already exists",
        ),
        (
            json!([[item("Ben", 5)], [2], ["\"00000000-0000-0000-60e2-e809e40801d8\""]]),
            0,
            "One of the specified",
        ),
        (json!([[item("Nobody", 5)], [1], ["*"]]), 0, "Resource Not Found"),
        (json!([[item("Nobody", 5)], [6], [""]]), 0, "Resource Not Found"),
        (
            json!([[json!({"id": "x", "$id": "x", "$pk": "Smith", "Age": 5})], [0], [""]]),
            0,
            "'Age' must be an object",
        ),
        (json!([[item("Ann", 5)], [9], [""]]), 0, "a number from 0 to 6"),
    ] {
        let refused = batch(&arguments);
        let said = text(&refused);
        assert_eq!(refused.status, 400, "{arguments}: {said}");
        assert!(said.contains(&format!("OperationCount:{place}.")) && said.contains(words), "{said}");
    }
    for arguments in [json!([]), json!([[], [], []]), json!([[item("x", 1)], [0], []]), json!([1, 2, 3])] {
        assert_eq!(batch(&arguments).status, 400, "{arguments}");
    }
    assert_eq!(ages(&mut client), [("Ben".to_owned(), 4)], "nothing is left of batches that failed");
}

/// Their queries, and how they ask whether there is a table: by an item that nobody has.
#[test]
fn older_clients_find_what_they_ask_for() {
    let (_server, mut client) = started(&["--in-memory"]);
    made_by_older_clients(&mut client);
    let found = query(
        &mut client,
        "select * from entity where (entity['$pk'] = \"Smith\") and (entity['Age']['$v'] > 3)",
    );
    assert_eq!(found.status, 200, "{}", text(&found));
    assert_eq!((&found.json()["Documents"][0]["$id"], &found.json()["_count"]), (&json!("Ben"), &json!(1)));
    for database in ["TablesDB", "nothing"] {
        let path = format!("/dbs/{database}/colls/people/docs/7c0b4e3e-9d5f-4d0c-8f0a-1c4b1f7d2a90");
        let missing = older(&mut client, "GET", &path, &[KEY], &Value::Null);
        let wanted = if database == "TablesDB" { 0 } else { 1003 };
        assert_eq!((missing.status, missing.sub_status()), (404, wanted), "{database}: {}", text(&missing));
    }
}

/// An entity with so many properties, whose names begin with a letter.
fn many(letter: char, count: usize) -> Value {
    let mut item = json!({"id": "Ben", "$pk": "Smith", "$id": "Ben"});
    (0..count).for_each(|place| item[format!("{letter}{place}")] = json!({"$t": 16, "$v": 1}));
    item
}

#[test]
fn no_merge_makes_an_entity_of_too_many_properties() {
    let (_server, mut client) = started(&["--in-memory", "--no-throttle"]);
    create_table(&mut client, "people");
    let batch = |client: &mut Client, arguments: Value| {
        client.send("POST", PROCEDURE, &[KEY], arguments.to_string().as_bytes()).expect("an answer")
    };
    let made = batch(&mut client, json!([[many('a', 200)], [0], [""]]));
    assert_eq!(made.status, 200, "{}", text(&made));
    for kind in [3, 5] {
        let refused = batch(&mut client, json!([[item("Ann", 1), many('b', 53)], [4, kind], ["", ""]]));
        let said = text(&refused);
        assert!(
            refused.status == 400 && said.contains("OperationCount:1."),
            "{kind}: {} {said}",
            refused.status
        );
        assert!(said.contains("253 properties, and 252 are allowed"), "{kind}: {said}");
    }
    let entity = "/people(PartitionKey='Smith',RowKey='Ben')";
    let body = |letter: char, count: usize| {
        let fields: Vec<String> = (0..count).map(|place| format!("\"{letter}{place}\":1")).collect();
        format!("{{{}}}", fields.join(","))
    };
    let whole = |verb: &str| {
        format!(
            "--b\r\nContent-Type: multipart/mixed; boundary=set\r\n\r\n--set\r\nContent-Type: application/http\r\n\r\n\
             {verb} http://localhost{entity} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}\r\n--set--\r\n--b--\r\n",
            body('b', 53)
        )
    };
    for verb in ["MERGE", "PATCH"] {
        let refused = send(&mut client, verb, entity, &body('b', 53));
        assert!(
            refused.status == 400 && text(&refused).contains("TooManyProperties"),
            "{verb}: {}",
            text(&refused)
        );
        let headers = [("content-type", "multipart/mixed; boundary=b")];
        let refused =
            client.send_table("POST", "/$batch", &headers, whole(verb).as_bytes()).expect("an answer");
        let said = text(&refused);
        assert!(
            said.contains("HTTP/1.1 400") && said.contains("TooManyProperties") && said.contains("0:The"),
            "{said}"
        );
    }
    assert_eq!(send(&mut client, "MERGE", entity, &body('b', 52)).status, 204, "as many as there may be");
    let again = send(&mut client, "MERGE", entity, &body('a', 200));
    assert_eq!(again.status, 204, "what is there already is not counted twice");
    // An entity of 252 properties can be written back through the other protocol.
    let path = "/dbs/TablesDB/colls/people/docs/Ben";
    let read = client.send("GET", path, &[KEY], b"").expect("an answer");
    assert_eq!(client.send("PUT", path, &[KEY], &read.body).expect("an answer").status, 200);
}

#[test]
fn no_merge_makes_an_entity_that_is_too_large() {
    let (_server, mut client) = started(&["--in-memory", "--no-throttle"]);
    create_table(&mut client, "people");
    let entity = "/people(PartitionKey='Smith',RowKey='Ben')";
    let half = |name: &str| format!("{{\"{name}\":\"{}\"}}", "x".repeat(1_200_000));
    assert_eq!(send(&mut client, "MERGE", entity, &half("a")).status, 204);
    let refused = send(&mut client, "MERGE", entity, &half("b"));
    assert!(
        refused.status == 413 && text(&refused).contains("EntityTooLarge"),
        "{} {}",
        refused.status,
        text(&refused)
    );
    assert_eq!(send(&mut client, "MERGE", entity, &half("a")).status, 204);
}

#[test]
fn versions_are_the_same_instant_in_both_protocols() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "people");
    let made = send(&mut client, "POST", "/people", r#"{"PartitionKey":"Smith","RowKey":"Ben"}"#);
    let etag = made.header("etag").expect("a version").to_owned();
    let path = "/dbs/TablesDB/colls/people/docs/Ben";
    let read = client.send("GET", path, &[KEY], b"").expect("an answer");
    let version = read.json()["_etag"].as_str().expect("a version").to_owned();
    assert_eq!(read.header("etag"), Some(version.as_str()));
    // The digits of the time since 1601, the upper two bytes last.
    let digits: Vec<&str> = version.trim_matches('"').split('-').collect();
    let (low, high) = digits[4].split_at(8);
    let time = u64::from_str_radix(&format!("{high}{}{low}", digits[3]), 16).expect("digits")
        - 116_444_736_000_000_000;
    let seconds =
        etag.split("%3A").nth(2).and_then(|rest| rest.split('Z').next()).expect("seconds").to_owned();
    assert_eq!(format!("{:02}.{:07}", time / 10_000_000 % 60, time % 10_000_000), seconds);

    let body = item("Ben", 5).to_string();
    let stale = [KEY, ("if-match", "\"00000000-0000-0000-60e2-e809e40801d8\"")];
    assert_eq!(client.send("PUT", path, &stale, body.as_bytes()).expect("an answer").status, 412);
    let replaced =
        client.send("PUT", path, &[KEY, ("if-match", &version)], body.as_bytes()).expect("an answer");
    assert_eq!(replaced.status, 200);
    let query = json!({"query": "SELECT VALUE c._etag FROM c"}).to_string();
    let asked = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let found =
        client.send("POST", "/dbs/TablesDB/colls/people/docs", &asked, query.as_bytes()).expect("an answer");
    assert_eq!(Some(found.json()["Documents"][0].as_str().expect("a version")), replaced.header("etag"));
}

#[test]
fn a_write_of_another_shape_is_refused_by_name() {
    let (_server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "people");
    let docs = "/dbs/TablesDB/colls/people/docs";
    let mut nosql = |verb: &str, path: &str, headers: &[(&str, &str)], body: &Value| {
        let headers = [&[KEY], headers].concat();
        client.send(verb, path, &headers, body.to_string().as_bytes()).expect("an answer")
    };
    assert_eq!(nosql("POST", docs, &[], &item("Ben", 4)).status, 201);
    let wrong = json!({"id": "Ben", "$id": "Ben", "$pk": "Smith", "Age": 4});
    let upsert = [("x-ms-documentdb-is-upsert", "true")];
    let batch = [("x-ms-cosmos-is-batch-request", "true"), ("x-ms-cosmos-batch-atomic", "true")];
    let one = "/dbs/TablesDB/colls/people/docs/Ben";
    for (verb, path, headers, body) in [
        ("POST", docs, &[][..], wrong.clone()),
        ("POST", docs, &upsert[..], wrong.clone()),
        ("PUT", one, &[][..], wrong.clone()),
        ("PATCH", one, &[][..], json!({"operations": [{"op": "add", "path": "/Age", "value": 4}]})),
        (
            "POST",
            "/dbs/TablesDB/colls/people/sprocs/__.sys.commonBulkInsert",
            &[][..],
            json!([[wrong.clone()], {}]),
        ),
        ("POST", docs, &batch[..], json!([{"operationType": "Upsert", "resourceBody": wrong.clone()}])),
    ] {
        let refused = nosql(verb, path, headers, &body);
        let said = text(&refused);
        assert!(
            refused.status == 400 || said.contains("\"statusCode\":400"),
            "{verb} {body}: {} {said}",
            refused.status
        );
        assert!(said.contains("'Age' must be an object"), "{verb} {body}: {said}");
    }
    let patch = json!({"operations": [{"op": "set", "path": "/Age/$v", "value": 7}]});
    assert_eq!(nosql("PATCH", one, &[], &patch).status, 200);
    let read = send(&mut client, "GET", "/people(PartitionKey='Smith',RowKey='Ben')", "").json();
    assert_eq!(read["Age"], 7);
}

#[test]
fn tables_share_throughput_when_the_operator_says_so() {
    let (server, mut client) = started(&["--in-memory", "--table-shared-throughput", "1000"]);
    create_table(&mut client, "shares");
    let own = r#"{"TableName":"own"}"#;
    let date = client.signer().date().to_owned();
    let authorization = client.signer().table_signature("/Tables");
    let headers =
        [("authorization", authorization.as_str()), ("x-ms-date", &date), ("x-ms-offer-throughput", "600")];
    assert_eq!(client.send_raw("POST", "/Tables", &headers, own.as_bytes()).expect("an answer").status, 201);
    let mut account = Client::new(server.port());
    let offers = account.send("GET", "/offers", &[], b"").expect("an answer").json();
    let mut units: Vec<i64> = offers["Offers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|offer| offer["content"]["offerThroughput"].as_i64().expect("a number"))
        .collect();
    units.sort_unstable();
    assert_eq!(units, [600, 1000]);
}

#[test]
fn the_server_tells_the_api_of_containers_and_counts_by_protocol() {
    let (server, mut client) = started(&["--in-memory"]);
    create_table(&mut client, "t");
    let mut account = Client::new(server.port());
    let told = account.send("GET", "/_orrery/server", &[], b"").expect("an answer").json();
    assert_eq!(told["ports"]["table"], server.table_port().expect("it was asked for"));
    let containers = account.send("GET", "/_orrery/containers", &[], b"").expect("an answer").json();
    assert_eq!(containers["containers"][0]["api"], "table");
    let metrics = text(&account.send_raw("GET", "/metrics", &[], b"").expect("an answer"));
    assert!(metrics.contains("orrery_requests_total{protocol=\"table\",class=\"2xx\"} 1\n"), "{metrics}");
}

/// All entities of a table.
fn entities(client: &mut Client, table: &str) -> Vec<Value> {
    let listed = send(client, "GET", &format!("/{table}()?$select=PartitionKey,RowKey,Age,Long"), "").json();
    listed["value"].as_array().expect("rows").clone()
}

/// Runs a command of the program against a server.
fn command(server: &Server, line: &[&str]) {
    let endpoint = format!("http://127.0.0.1:{}/", server.port());
    let output =
        Command::new(BINARY).args(line).env("ORRERY_ENDPOINT", endpoint).output().expect("the binary runs");
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn tables_are_copied_exported_and_imported_and_their_entities_end_as_items_do() {
    let (server, mut client) = started(&["--in-memory", "--no-throttle"]);
    let folder = tempfile::tempdir().expect("a folder");
    for table in ["people", "copied", "imported"] {
        create_table(&mut client, table);
    }
    for (partition_key, row_key) in [("Jones", "Ann"), ("Smith", "Ann"), ("Smith", "Ben")] {
        let body = format!(
            r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","Age":4,"Long":"5","Long@odata.type":"Edm.Int64"}}"#
        );
        assert_eq!(send(&mut client, "POST", "/people", &body).status, 201);
    }
    let people = entities(&mut client, "people");
    assert_eq!(people.len(), 3);

    let mut account = Client::new(server.port());
    let mut manage = |verb: &str, path: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = account.send(verb, path, &[], body.as_bytes()).expect("an answer");
        assert!((200..300).contains(&reply.status), "{verb} {path}: {}", text(&reply));
        reply.json()
    };
    let place = |container: &str| json!({"database": "TablesDB", "container": container});
    let job = json!({"kind": "copy", "source": place("people"), "target": place("copied")});
    let id = manage("POST", "/_orrery/jobs", job)["id"].as_str().expect("an id").to_owned();
    let job = format!("/_orrery/jobs/{id}");
    eventually("the copy follows its source", || manage("GET", &job, Value::Null)["phase"] == "following");
    manage("POST", &format!("{job}/complete"), Value::Null);
    eventually("the copy is complete", || manage("GET", &job, Value::Null)["state"] == "completed");
    assert_eq!(entities(&mut client, "copied"), people);

    let file = folder.path().join("people.jsonl");
    let file = file.to_str().expect("a path is text");
    command(
        &server,
        &["export", "--out", file, "--format", "jsonl", "--database", "TablesDB", "--container", "people"],
    );
    let exported = std::fs::read_to_string(file).expect("the file is there");
    assert_eq!(
        exported.lines().filter(|line| line.contains(r#""$v":"00000000000000000005""#)).count(),
        3,
        "{exported}"
    );
    command(&server, &["import", "--database", "TablesDB", "--container", "imported", file]);
    assert_eq!(entities(&mut client, "imported"), people);

    let path = "/dbs/TablesDB/colls/people";
    let mut definition = manage("GET", path, Value::Null);
    definition["defaultTtl"] = json!(1);
    manage("PUT", path, definition);
    eventually("entities end with their time", || entities(&mut client, "people").is_empty());
    let gone = send(&mut client, "GET", "/people(PartitionKey='Smith',RowKey='Ben')", "");
    assert_eq!(gone.status, 404);
    assert_eq!(entities(&mut client, "copied"), people, "the copy has no time to live");
}
