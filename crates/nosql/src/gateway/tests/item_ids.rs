//! Which ids items may have, and which of them a path can name. `COMPAT.md` has the same table.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY_HEADER: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"k\"]");

/// An id, and how an operation on its name is answered. What the SDKs' suites expect of the classic gateway.
const IDS: [(&str, u16); 27] = [
    ("Test", 200),
    ("This is a test", 200),
    ("  Test", 200),
    ("WithUnicode鱀", 200),
    ("táá", 200),
    ("WithAllowedSpecial,=.:~+-@()^${}[]!_Chars", 200),
    ("BQE1D3PdG4N4bzU9TKaCIM3qc0TVcZ2-Y3jnsRfwdHC1ombkX3F1dot-SG0=", 200),
    ("Allowed?Chars", 200),
    ("?", 200),
    ("100%", 200),
    ("100%zz", 200),
    ("%2", 200),
    ("a;b&c", 200),
    ("\"quoted\"", 200),
    ("Test ", 401),
    ("Test  ", 401),
    (" ", 401),
    ("PercentEncodedWhitespace%20", 401),
    ("%20in the middle%20 of it", 401),
    ("PercentEncoded%E9%B1%80", 401),
    ("a%2fb", 401),
    ("Disallowed#Chars", 401),
    ("With\rCarriageReturn", 400),
    ("With\tTab", 400),
    ("With\nLineFeed", 400),
    ("\u{1}", 400),
    ("a\u{7f}", 400),
];

async fn server() -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server
}

async fn create(server: &Server, id: &str) -> Answer {
    server.send("POST", DOCS, &[KEY_HEADER], &json!({"id": id, "pk": "k"})).await.expect(201)
}

fn named(id: &str) -> String {
    format!("{DOCS}/{}", utf8_percent_encode(id, NON_ALPHANUMERIC))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_id_can_be_made_found_and_deleted() {
    let server = server().await;
    for (id, by_name) in IDS {
        let made = create(&server, id).await;
        assert_eq!(made.body["id"], *id);
        let query = json!({"query": "SELECT * FROM c WHERE c.id = @id", "parameters": [{"name": "@id", "value": id}]});
        let headers = [("x-ms-documentdb-isquery", "True"), KEY_HEADER];
        let found = server.send("POST", DOCS, &headers, &query).await.expect(200);
        assert_eq!(found.body["Documents"][0]["id"], *id);

        for method in ["GET", "PUT", "PATCH"] {
            let body = match method {
                "PUT" => json!({"id": id, "pk": "k", "n": 1}),
                "PATCH" => json!({"operations": [{"op": "set", "path": "/n", "value": 2}]}),
                _ => Value::Null,
            };
            let answer = server.send(method, &named(id), &[KEY_HEADER], &body).await;
            assert_eq!(answer.status, by_name, "{method} {id:?}: {}", answer.body);
        }
        let by_rid = format!("/{}", found.body["Documents"][0]["_self"].as_str().expect("a link"));
        let read = server.send("GET", &by_rid, &[KEY_HEADER], &Value::Null).await.expect(200);
        assert_eq!(read.body["id"], *id);
        let path = if by_name == 200 { named(id) } else { by_rid };
        if by_name != 200 {
            let refused = server.send("DELETE", &named(id), &[KEY_HEADER], &Value::Null).await;
            assert_eq!(refused.status, by_name, "{id:?}");
        }
        server.send("DELETE", &path, &[KEY_HEADER], &Value::Null).await.expect(204);
    }
}

/// JavaScript sends it so, and signs the name with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_mark_that_is_not_encoded_belongs_to_the_name() {
    let server = server().await;
    for id in ["Allowed?Chars", "a?", "a?b=c&d?e"] {
        create(&server, id).await;
        let path = format!("{DOCS}/{id}");
        let read = server.send("GET", &path, &[KEY_HEADER], &Value::Null).await.expect(200);
        assert_eq!(read.body["id"], *id);
        server.send("PUT", &path, &[KEY_HEADER], &json!({"id": id, "pk": "k", "n": 1})).await.expect(200);
        server.send("DELETE", &path, &[KEY_HEADER], &Value::Null).await.expect(204);
        server.send("GET", &named(id), &[KEY_HEADER], &Value::Null).await.expect(404);
    }
}

/// The service's web server answers with a page, which the JavaScript SDK shows as an error without a code.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_with_control_characters_is_refused_by_a_page() {
    let server = server().await;
    for id in ["With\rCarriageReturn", "\u{1}"] {
        let refused = server.send("GET", &named(id), &[KEY_HEADER], &Value::Null).await.expect(400);
        assert_eq!(refused.headers["content-type"], "text/html");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_deletes_what_no_path_can_name() {
    let server = server().await;
    for (id, _) in IDS {
        create(&server, id).await;
    }
    let delete = IDS.map(|(id, _)| json!({"operationType": "Delete", "id": id}));
    let headers =
        [KEY_HEADER, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let done = server.send("POST", DOCS, &headers, &json!(delete)).await.expect(200);
    assert!(done.body.as_array().expect("results").iter().all(|result| result["statusCode"] == 204));
    server.send("GET", DOCS, &[KEY_HEADER], &Value::Null).await.expect(200).body["_count"]
        .as_u64()
        .map(|count| assert_eq!(count, 0))
        .expect("a count");
}

#[tokio::test(flavor = "multi_thread")]
async fn slashes_are_refused() {
    let server = server().await;
    for id in ["a/b", "/", "a\\b", "Invalid#/\\?Id", "a/b\n"] {
        server.send("POST", DOCS, &[KEY_HEADER], &json!({"id": id, "pk": "k"})).await.expect(400);
    }
}

/// Some clients send a slash as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_slash_in_a_name_leads_nowhere() {
    let server = server().await;
    for name in ["a/b", "Invalid%23/%5C%3FId", "a%2Fb", "a%2fb", "%2F", "a%5Cb", "a%5c", "%2F%23%20"] {
        let path = format!("{DOCS}/{name}");
        for (method, body) in [
            ("GET", Value::Null),
            ("PUT", json!({"id": "a", "pk": "k"})),
            ("PATCH", json!({"operations": [{"op": "set", "path": "/n", "value": 2}]})),
            ("DELETE", Value::Null),
        ] {
            let answer = server.send(method, &path, &[KEY_HEADER], &body).await;
            assert_eq!(answer.status, 404, "{method} {name}: {}", answer.body);
        }
    }
    server.send("DELETE", "/dbs/d/colls/c/sprocs/a%2Fb", &[], &Value::Null).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_renamed_by_rid() {
    let server = server().await;
    let made = create(&server, "Invalid#?Id ").await;
    let by_rid = format!("/{}", made.body["_self"].as_str().expect("a link"));
    server.send("PUT", &by_rid, &[KEY_HEADER], &json!({"id": "good", "pk": "k"})).await.expect(200);
    server.send("GET", &named("good"), &[KEY_HEADER], &Value::Null).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_scripts_may_have_what_no_path_can_carry() {
    let server = server().await;
    let feed = "/dbs/d/colls/c/triggers";
    for (id, by_name) in
        [("With\rReturn", 400), ("With\tTab", 400), ("a%20b", 401), ("plain?", 0), ("sp ", 0)]
    {
        let body =
            json!({"id": id, "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"});
        let made = server.post(feed, body).await;
        if by_name == 0 {
            assert_eq!(made.status, 400, "{id:?}");
            continue;
        }
        let made = made.expect(201);
        assert_eq!(made.body["id"], *id);
        let path = format!("{feed}/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
        server.send("DELETE", &path, &[], &Value::Null).await.expect(by_name);
        let by_rid = format!("/{}", made.body["_self"].as_str().expect("a link"));
        server.send("DELETE", &by_rid, &[], &Value::Null).await.expect(204);
    }
    server.post("/dbs/d/users", json!({"id": "a\tb"})).await.expect(400);
}
