//! What a server answers about everything in the directory: each request with its answer, in the order in which they were sent.

use orrery_testkit::{Client, Reply, wait_for};
use serde_json::{Value, json};

use crate::make::DATABASE;

const CONTINUATION: &str = "x-ms-continuation";
const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";

/// One request.
#[derive(Clone, PartialEq)]
struct Ask {
    verb: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Ask {
    fn get(path: String) -> Ask {
        Ask { verb: "GET", path, headers: vec![], body: String::new() }
    }

    fn with(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn key(self, key: &Value) -> Ask {
        self.with("x-ms-documentdb-partitionkey", &ascii(key))
    }

    fn of(record: &Value) -> Ask {
        let text = |name: &str| record[name].as_str().expect("text").to_owned();
        let verb = if record["verb"] == "GET" { "GET" } else { "POST" };
        let headers = serde_json::from_value(record["headers"].clone()).expect("headers");
        Ask { verb, path: text("path"), headers, body: text("body") }
    }

    fn send(&self, client: &mut Client) -> Result<Reply, String> {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        let reply = client.send(self.verb, &self.path, &headers, self.body.as_bytes());
        reply.map_err(|error| error.to_string())
    }

    fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|(name, _)| name == header)
    }

    /// A feed or query of items that asks for no order: builds differ in the one that they give.
    fn is_unordered(&self) -> bool {
        let is_query = self.has("x-ms-documentdb-isquery") && !self.body.contains("ORDER BY");
        let is_feed = self.verb == "GET" && !self.has("a-im");
        self.path.ends_with("/docs") && (is_feed || is_query)
    }

    /// The page goes on from an item, in the order that it came in.
    fn is_behind_an_item(&self) -> bool {
        let continuation = self.headers.iter().find(|(name, _)| name == CONTINUATION);
        continuation.is_some_and(|(_, text)| !text.ends_with('#'))
    }

    /// The same without the page that it goes on from.
    fn begun_anew(&self) -> Ask {
        let mut ask = self.clone();
        ask.headers.retain(|(name, _)| name != CONTINUATION);
        ask
    }

    fn query(container: &str, text: &str) -> Ask {
        let body = json!({"query": text}).to_string();
        let path = format!("{DATABASE}/colls/{container}/docs");
        let ask = Ask { verb: "POST", path, headers: vec![], body };
        ask.with("x-ms-documentdb-isquery", "true").with("content-type", "application/query+json")
    }
}

/// Headers are ASCII.
pub fn ascii(value: &Value) -> String {
    let escape = |letter: char| match letter.is_ascii() {
        true => letter.to_string(),
        false => letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    value.to_string().chars().map(escape).collect()
}

pub struct Answers {
    client: Client,
    recorded: Vec<Value>,
}

impl Answers {
    /// Asks for everything, and returns what was asked and answered.
    pub fn record(port: u16) -> Value {
        let mut answers = Answers { client: Client::new(port), recorded: Vec::new() };
        answers.catalog();
        for container in crate::make::CONTAINERS {
            answers.container(container);
        }
        answers.points();
        answers.refusals();
        answers.scripts();
        answers.recorded.into()
    }

    /// Sends each recorded request again; every answer must be the one that was recorded. What asked for no order must give
    /// the same rows, and where a page goes on from one of the build before, in the order of that build.
    pub fn compare(port: u16, recorded: &Value) {
        let mut client = Client::new(port);
        let recorded = recorded.as_array().expect("a list of answers");
        assert!(recorded.len() > 200, "{} answers were recorded", recorded.len());
        for (number, record) in recorded.iter().enumerate() {
            let ask = Ask::of(record);
            if ask.is_unordered() && !ask.is_behind_an_item() {
                compare_rows(&mut client, &ask, &recorded[number..]);
                continue;
            }
            let mut wanted = record["answer"].clone();
            forget(&ask.path, &mut wanted[4]);
            // A job that was paused is told to be so once its task has begun.
            wait_for(|| {
                let answer = answer(&ask.path, &ask.send(&mut client)?);
                let is_same = answer == wanted;
                let Ask { verb, path, headers, body } = &ask;
                let told = || format!("{verb} {path} {headers:?} {body}: {answer} instead of {wanted}");
                if is_same || !path.starts_with("/_orrery") {
                    assert!(is_same, "{}", told());
                    return Ok(());
                }
                Err(told())
            });
        }
    }

    fn ask(&mut self, ask: Ask) -> Reply {
        let reply = ask.send(&mut self.client).expect("an answer");
        let answer = answer(&ask.path, &reply);
        self.recorded
            .push(json!({"verb": ask.verb, "path": ask.path, "headers": ask.headers, "body": ask.body,
            "answer": answer}));
        reply
    }

    /// Asks for all pages; the continuation of each is part of the request for the next.
    fn pages(&mut self, ask: Ask, continuation: &str) {
        let is_feed = continuation == "if-none-match";
        let mut next: Option<String> = None;
        for _ in 0..1_000 {
            let mut page = ask.clone();
            page.headers.extend(next.take().map(|text| (continuation.to_owned(), text)));
            let reply = self.ask(page);
            next = reply.header(if is_feed { "etag" } else { "x-ms-continuation" }).map(str::to_owned);
            assert!(matches!(reply.status, 200 | 304), "{}", String::from_utf8_lossy(&reply.body));
            if reply.status == 304 || next.is_none() {
                return;
            }
        }
        panic!("no end of {}", ask.path);
    }

    fn catalog(&mut self) {
        for path in [
            "/dbs",
            "/offers",
            "/_orrery/jobs",
            &format!("{DATABASE}/colls"),
            &format!("{DATABASE}/users"),
            &format!("{DATABASE}/users/anna"),
            &format!("{DATABASE}/users/anna/permissions"),
        ] {
            self.ask(Ask::get(path.to_owned()));
        }
    }

    /// The definition, the partitions, all items, and the changes of each partition.
    fn container(&mut self, container: &str) {
        let path = format!("{DATABASE}/colls/{container}");
        self.ask(Ask::get(path.clone()));
        for children in ["sprocs", "triggers", "udfs"] {
            self.ask(Ask::get(format!("{path}/{children}")));
        }
        let ranges = self.ask(Ask::get(format!("{path}/pkranges"))).json();
        let docs = Ask::get(format!("{path}/docs"));
        self.pages(docs.clone().with("x-ms-max-item-count", "500"), "x-ms-continuation");
        for range in ranges["PartitionKeyRanges"].as_array().expect("ranges") {
            let id = range["id"].as_str().expect("an id");
            let feed = docs.clone().with(RANGE, id).with("a-im", "Incremental feed");
            self.pages(feed.with("x-ms-max-item-count", "70"), "if-none-match");
            let sorted = "SELECT c.id, c.city FROM c ORDER BY c.city DESC";
            let texts = crate::make::QUERIES.iter().filter(|(name, _)| *name == container);
            for text in texts.map(|(_, text)| *text).chain([sorted]) {
                let query = Ask::query(container, text).with(RANGE, id).with("x-ms-max-item-count", "90");
                self.pages(query, "x-ms-continuation");
            }
        }
    }

    fn points(&mut self) {
        for (container, key, id) in crate::make::points() {
            self.ask(Ask::get(format!("{DATABASE}/colls/{container}/docs/{id}")).key(&key));
        }
    }

    /// Creates that the stored values forbid.
    fn refusals(&mut self) {
        for (container, key, body) in crate::make::refused() {
            let path = format!("{DATABASE}/colls/{container}/docs");
            let ask = Ask { verb: "POST", path, headers: vec![], body: body.to_string() };
            let reply = self.ask(ask.key(&key));
            assert_eq!(reply.status, 409, "{container} {body}");
        }
    }

    fn scripts(&mut self) {
        let path = format!("{DATABASE}/colls/scripts/sprocs/count");
        let ask = Ask { verb: "POST", path, headers: vec![], body: json!(["p1"]).to_string() };
        let reply = self.ask(ask.key(&json!(["p1"])));
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
}

/// Reads all pages; their rows must be those of the pages that were recorded, in any order.
fn compare_rows(client: &mut Client, ask: &Ask, recorded: &[Value]) {
    let rows_of = |body: &Value| body["Documents"].as_array().cloned().unwrap_or_default();
    let pages = recorded.iter().enumerate().take_while(|(number, record)| {
        let page = Ask::of(record);
        page.begun_anew() == ask.begun_anew() && (*number == 0 || page.has(CONTINUATION))
    });
    let expected: Vec<Value> = pages.flat_map(|(_, record)| rows_of(&record["answer"][4])).collect();
    let mut found = Vec::new();
    let mut page = ask.clone();
    loop {
        let reply = page.send(client).expect("an answer");
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        found.extend(rows_of(&answer(&ask.path, &reply)[4]));
        let Some(next) = reply.header(CONTINUATION) else { break };
        page = ask.begun_anew().with(CONTINUATION, next);
    }
    let sorted = |rows: &[Value]| {
        let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        texts
    };
    assert_eq!(sorted(&found), sorted(&expected), "{} {}", ask.path, ask.body);
}

/// What is compared of an answer. LSNs of ranges move with the background's writes, and their versions are those of the record
/// that names them, which the first start on an old directory writes anew. Tokens of permissions move with the clock, and what
/// a continuation looks like is the server's own affair.
fn answer(path: &str, reply: &Reply) -> Value {
    let mut body = reply.json();
    forget(path, &mut body);
    if reply.status >= 400 {
        // The texts of errors name the request.
        body = body["code"].clone();
    }
    let is_continued = reply.header("x-ms-continuation").is_some();
    json!([reply.status, reply.sub_status(), reply.header("x-ms-item-count"), is_continued, body])
}

/// Takes out of a body what is not compared.
fn forget(path: &str, body: &mut Value) {
    let forget: &[&str] = match path.rsplit('/').next() {
        Some("pkranges") => &["_lsn", "_etag", "_ts"],
        Some("permissions") => &["_token"],
        Some("jobs") => &["itemsPerSecond", "secondsRemaining", "changesPending"],
        _ => &[],
    };
    for list in body.as_object_mut().into_iter().flat_map(|body| body.values_mut()) {
        for member in list.as_array_mut().into_iter().flatten() {
            forget.iter().for_each(|name| drop(member.as_object_mut().map(|member| member.remove(*name))));
        }
    }
}
