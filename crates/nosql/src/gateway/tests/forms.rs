//! The form and the order in which several items come.

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";
const LISTED: (&str, &str) = ("x-ms-cosmos-supported-serialization-formats", "JsonText,CosmosBinary");
const FORMAT: &str = "x-ms-documentdb-content-serialization-format";
const CROSSES: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");

async fn filled(ids: &[&str]) -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    for (place, id) in ids.iter().enumerate() {
        let key = format!("[\"{}\"]", place % 3);
        let item = json!({"id": id, "pk": (place % 3).to_string(), "n": place, "half": place as f64 / 2.0, "t": [id, null]});
        server.send("POST", DOCS, &[("x-ms-documentdb-partitionkey", &key)], &item).await.expect(201);
    }
    server
}

async fn query(server: &Server, text: &str, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("x-ms-documentdb-isquery", "True"), CROSSES], headers].concat();
    server.send("POST", DOCS, &headers, &json!({"query": text})).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_binary_for_clients_that_list_it() {
    let server = filled(&["b", "c", "a"]).await;
    for text in [
        "SELECT * FROM c",
        "SELECT VALUE c.half FROM c WHERE c.n > 0",
        "SELECT c.id, c.t FROM c ORDER BY c.n DESC",
        "SELECT VALUE COUNT(1) FROM c WHERE c.n < 0",
        "SELECT DISTINCT VALUE c.pk FROM c",
    ] {
        let merged = ("x-orrery-query-merge", "True");
        let text_form = query(&server, text, &[merged]).await;
        let binary = query(&server, text, &[merged, LISTED]).await;
        assert!(binary.is_binary && !text_form.is_binary, "{text}");
        assert_eq!(binary.body, text_form.body, "{text}");
        assert!(query(&server, text, &[merged, (FORMAT, "CosmosBinary")]).await.is_binary);
        assert!(!query(&server, text, &[merged, LISTED, (FORMAT, "JsonText")]).await.is_binary);
    }
    let explained = query(&server, "SELECT * FROM c", &[LISTED, ("x-orrery-explain", "True")]).await;
    assert!(explained.is_binary && explained.body["_explain"]["text"].is_string());
    // An error is text.
    let headers = [("x-ms-documentdb-isquery", "True"), LISTED];
    let refused = server.send("POST", DOCS, &headers, &json!({"query": "SELECT"})).await.expect(400);
    assert!(!refused.is_binary);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_binary_where_the_header_names_it() {
    let server = filled(&["b", "c", "a"]).await;
    let changes = [("a-im", "Incremental feed"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    for headers in [&[][..], &changes[..]] {
        let text = server.send("GET", DOCS, headers, &Value::Null).await.expect(200);
        let listed = server.send("GET", DOCS, &[headers, &[LISTED]].concat(), &Value::Null).await;
        assert!(!text.is_binary && !listed.is_binary);
        let named = [headers, &[(FORMAT, "CosmosBinary")]].concat();
        let binary = server.send("GET", DOCS, &named, &Value::Null).await.expect(200);
        assert!(binary.is_binary);
        assert_eq!(binary.body, text.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_come_in_the_order_in_which_they_were_created() {
    let ids = ["m", "z", "a", "q", "0", "k", "ä", "b"];
    let server = filled(&ids).await;
    let in_pages = async |text: Option<&str>| {
        let (mut found, mut continuation) = (Vec::new(), String::new());
        loop {
            let headers = [("x-ms-max-item-count", "3"), ("x-ms-continuation", continuation.as_str())];
            let page = match text {
                Some(text) => query(&server, text, &headers).await,
                None => server.send("GET", DOCS, &headers, &Value::Null).await.expect(200),
            };
            let rows = page.body["Documents"].as_array().expect("a list");
            found.extend(rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()));
            continuation = page.header("x-ms-continuation").to_owned();
            if continuation.is_empty() {
                return found;
            }
        }
    };
    for text in [None, Some("SELECT * FROM c"), Some("SELECT c.id FROM c WHERE c.n >= 0")] {
        assert_eq!(in_pages(text).await, ids, "{text:?}");
    }
}

/// As `ValidateExcludeSystemProperties` of .NET has it: who wrote the item decides, and then who reads it.
#[tokio::test(flavor = "multi_thread")]
async fn links_are_left_out_where_both_the_write_and_the_read_ask_for_it() {
    const EXCLUDE: &str = "x-ms-exclude-system-properties";
    let server = filled(&[]).await;
    let key = ("x-ms-documentdb-partitionkey", "[\"p\"]");
    let wishes = [&[key][..], &[key, (EXCLUDE, "false")], &[key, (EXCLUDE, "True")]];
    let is_linked = |body: &Value| {
        assert!(body["_rid"].is_string() && body["_etag"].is_string() && body["_ts"].is_number(), "{body}");
        assert_eq!(body.get("_self").is_some(), body.get("_attachments").is_some(), "{body}");
        body.get("_self").is_some()
    };
    for (place, written) in wishes.into_iter().enumerate() {
        let item = json!({"id": place.to_string(), "pk": "p", "city": "x"});
        let path = format!("{DOCS}/{place}");
        let made = server.send("POST", DOCS, written, &item).await.expect(201);
        let is_excluded = place == 2;
        assert_eq!(is_linked(&made.body), !is_excluded);
        for (asked, read) in wishes.into_iter().enumerate() {
            let shown = server.send("GET", &path, read, &Value::Null).await.expect(200);
            assert_eq!(
                is_linked(&shown.body),
                !(is_excluded && asked == 2),
                "written {place}, asked {asked}"
            );
        }
    }
    let last = |body: Answer| is_linked(&body.expect(200).body);
    // A copy keeps it, and each write decides anew.
    server.rekey(json!({"paths": ["/city"], "kind": "Hash", "version": 2})).await;
    let wish = [("x-ms-documentdb-partitionkey", "[\"x\"]"), (EXCLUDE, "True")];
    let path = format!("{DOCS}/2");
    assert!(!last(server.send("GET", &path, &wish, &Value::Null).await), "it was copied");
    let item = json!({"id": "2", "pk": "p", "city": "x"});
    assert!(last(server.send("PUT", &path, &wish[..1], &item).await));
    assert!(last(server.send("GET", &path, &wish, &Value::Null).await), "it was replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_items_are_binary_for_clients_that_list_it() {
    let server = filled(&[]).await;
    let key = ("x-ms-documentdb-partitionkey", "[\"p\"]");
    let binary = ("x-ms-cosmos-supported-serialization-formats", "CosmosBinary");
    let item = |n: i64| json!({"id": "i", "pk": "p", "n": n, "half": 0.5, "t": [{"deep": null}, "é"]});
    let path = format!("{DOCS}/i");
    let upsert = ("x-ms-documentdb-is-upsert", "True");
    let patch = json!([{"op": "set", "path": "/n", "value": 4}]);
    for (method, path, more, body, status) in [
        ("POST", DOCS, None, item(1), 201),
        ("POST", DOCS, Some(upsert), item(2), 200),
        ("PUT", path.as_str(), None, item(3), 200),
        ("PATCH", &path, None, patch, 200),
        ("GET", &path, None, Value::Null, 200),
    ] {
        let headers: Vec<_> = [key, binary].into_iter().chain(more).collect();
        let shown = server.send(method, path, &headers, &body).await.expect(status);
        let text = server.send("GET", &format!("{DOCS}/i"), &[key], &Value::Null).await.expect(200);
        assert!(shown.is_binary && !text.is_binary, "{method}");
        assert_eq!(shown.body, text.body, "{method}");
    }
    let wanted = [key, ("x-ms-cosmos-supported-serialization-formats", "JsonText")];
    assert!(!server.send("GET", &path, &wanted, &Value::Null).await.expect(200).is_binary);
    let quiet = server.send("PUT", &path, &[key, binary, ("prefer", "return=minimal")], &item(5)).await;
    assert_eq!((quiet.status, quiet.body), (200, Value::Null));
    let refused = server.send("GET", &format!("{DOCS}/none"), &[key, binary], &Value::Null).await.expect(404);
    assert!(!refused.is_binary);
    assert_eq!(
        server.send("DELETE", &path, &[key, binary], &Value::Null).await.expect(204).body,
        Value::Null
    );
}
