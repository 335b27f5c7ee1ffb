//! What a server answers about all of its data, in four ways: a scan, an index, the change feed, and single reads.

use orrery_testkit::{Client, Reply};
use serde_json::{Value, json};

use crate::world::{COLLECTION, KEY_HEADER};

const DOCS: &str = "/dbs/corruption/colls/items/docs";
/// Single reads for each comparison.
const POINTS: usize = 40;

/// One way of asking: the documents, or the words with which the server refused.
type Part = Result<Vec<Value>, String>;

pub struct Answers {
    parts: Vec<(&'static str, Part)>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    None,
    /// At least one way of asking met the damage, and no answer was wrong.
    Refused,
    Wrong(String),
}

impl Answers {
    /// Asks for everything. Single reads are those of items that are named.
    pub fn gather(port: u16, ids: &[(String, String)]) -> Answers {
        let mut client = Client::new(port);
        let query = json!({"query": "SELECT * FROM c WHERE c.number >= 0 ORDER BY c.number"}).to_string();
        let parts = vec![
            ("catalog", catalog(&mut client)),
            ("scan", pages(&mut client, "GET", &[], b"")),
            (
                "index",
                pages(
                    &mut client,
                    "POST",
                    &[("x-ms-documentdb-isquery", "true"), ("x-ms-documentdb-partitionkeyrangeid", "0")],
                    query.as_bytes(),
                ),
            ),
            ("feed", pages(&mut client, "GET", &[("a-im", "Incremental feed")], b"")),
            ("points", points(&mut client, ids)),
        ];
        Answers { parts }
    }

    pub fn documents(&self, name: &str) -> &[Value] {
        let part = self.parts.iter().find(|(part, _)| *part == name).expect("a part of this name");
        part.1.as_ref().expect("an undamaged directory answers")
    }

    /// Compares with what an undamaged directory answers.
    pub fn compare(&self, expected: &Answers) -> Difference {
        let mut difference = Difference::None;
        for ((name, found), (_, expected)) in self.parts.iter().zip(&expected.parts) {
            let expected = expected.as_ref().expect("an undamaged directory answers");
            match found {
                Ok(found) if found == expected => {}
                Ok(found) => {
                    let first = found.iter().zip(expected).position(|(found, expected)| found != expected);
                    let counts = (found.len(), expected.len());
                    return Difference::Wrong(format!(
                        "{name}: {counts:?} found and expected, first at {first:?}"
                    ));
                }
                Err(_) => difference = Difference::Refused,
            }
        }
        difference
    }
}

/// A reply that is no answer but a refusal.
fn refusal(reply: &Reply) -> Option<String> {
    (reply.status >= 500).then(|| format!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body)))
}

fn catalog(client: &mut Client) -> Part {
    let mut found = Vec::new();
    for path in ["/dbs", "/dbs/corruption/colls", COLLECTION] {
        let reply = client.send("GET", path, &[], b"").map_err(|error| error.to_string())?;
        if let Some(text) = refusal(&reply) {
            return Err(text);
        }
        found.push(json!([reply.status, reply.json()]));
    }
    Ok(found)
}

/// All pages of a feed or a query.
fn pages(client: &mut Client, verb: &str, headers: &[(&str, &str)], body: &[u8]) -> Part {
    let is_feed = headers.iter().any(|(name, _)| *name == "a-im");
    let mut found = Vec::new();
    let mut continuation: Option<String> = None;
    loop {
        let mut headers = headers.to_vec();
        headers.push(("x-ms-max-item-count", "200"));
        let name = if is_feed { "if-none-match" } else { "x-ms-continuation" };
        headers.extend(continuation.as_deref().map(|text| (name, text)));
        let reply = client.send(verb, DOCS, &headers, body).map_err(|error| error.to_string())?;
        if let Some(text) = refusal(&reply) {
            return Err(text);
        }
        match reply.json().get_mut("Documents") {
            Some(Value::Array(documents)) => found.append(documents),
            _ if reply.status == 304 => return Ok(found),
            _ => found.push(json!(reply.status)),
        }
        let next = reply.header(if is_feed { "etag" } else { "x-ms-continuation" }).map(str::to_owned);
        if next.is_none() || next == continuation || reply.status != 200 {
            return Ok(found);
        }
        continuation = next;
    }
}

fn points(client: &mut Client, ids: &[(String, String)]) -> Part {
    let step = (ids.len() / POINTS).max(1);
    let mut found = Vec::new();
    for (id, key) in ids.iter().step_by(step) {
        let key = json!([key]).to_string();
        let reply = client.send("GET", &format!("{DOCS}/{id}"), &[(KEY_HEADER, &key)], b"");
        let reply = reply.map_err(|error| error.to_string())?;
        if let Some(text) = refusal(&reply) {
            return Err(text);
        }
        found.push(json!([reply.status, reply.json()]));
    }
    Ok(found)
}
