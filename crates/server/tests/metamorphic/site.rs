//! A real server with the same documents in containers of one, four and eight physical partitions.

use std::path::Path;

use orrery_doc::{Doc, json};
use orrery_query::{Context, Parameters, Row, SystemProps, compile};
use orrery_testkit::sample::{self, MergePlan, Policy, Query};
use orrery_testkit::{Client, Random, Reply, Server, wait_for};
use serde_json::{Value, json};

const THROUGHPUTS: [&str; 3] = ["400", "24000", "48000"];
const PAGES_MAX: usize = 20_000;
const FEATURES: &str = "Aggregate,CompositeAggregate,Distinct,GroupBy,MultipleAggregates,MultipleOrderBy,\
                        NonValueAggregate,OffsetAndLimit,OrderBy,Top,DCount,NonStreamingOrderBy,CountIf";

pub enum Failure {
    OrderRefused,
    NeedsPlan,
    Other(String),
}

impl Failure {
    /// A query that was made to be answered cannot need a plan.
    fn of_rewritten(self, text: &str) -> Failure {
        match self {
            Failure::NeedsPlan => Failure::Other(format!("this needs a plan once more: {text}")),
            Failure::Other(reason) => Failure::Other(format!("{reason}, for {text}")),
            Failure::OrderRefused => Failure::OrderRefused,
        }
    }
}

pub type Answer = Result<Vec<String>, Failure>;

pub struct Site {
    /// Kept for its end: dropping it ends the process.
    _server: Server,
    client: Client,
    pub policy: Policy,
    /// The policy whose index is still in use while that of the new one is built.
    replaced: Option<Policy>,
    documents: Vec<Doc>,
}

impl Site {
    pub fn start(random: &mut Random, documents: usize) -> Site {
        let binary = Path::new(env!("CARGO_BIN_EXE_orrery"));
        let server = Server::start(binary, &["--in-memory", "--no-throttle"]);
        let client = Client::new(server.port());
        let mut site = Site {
            _server: server,
            client,
            policy: Policy::any(random),
            replaced: None,
            documents: Vec::new(),
        };
        site.must(201, "POST", "/dbs", &[], &json!({"id": "db"}));
        for (place, throughput) in THROUGHPUTS.into_iter().enumerate() {
            let headers = [("x-ms-offer-throughput", throughput)];
            let body = site.definition(place);
            site.must(201, "POST", "/dbs/db/colls", &headers, &body);
        }
        for number in 0..documents {
            let document = sample::document(random, number);
            let key = document.get("pk").map_or_else(|| json!([{}]), |key| json!([key])).to_string();
            for place in 0..THROUGHPUTS.len() {
                let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
                site.must(201, "POST", &items(place), &headers, &document);
            }
            site.documents.push(to_doc(&document));
        }
        site
    }

    fn definition(&self, place: usize) -> Value {
        json!({
            "id": format!("c{place}"),
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": self.policy.body,
        })
    }

    pub fn change_policy(&mut self, policy: Policy) {
        self.replaced = Some(std::mem::replace(&mut self.policy, policy));
        for place in 0..THROUGHPUTS.len() {
            let body = self.definition(place);
            self.must(200, "PUT", &format!("/dbs/db/colls/c{place}"), &[], &body);
        }
    }

    /// Waits until the new index is in use, as clients do: by asking for the container with its quota.
    pub fn await_index(&mut self) {
        for place in 0..THROUGHPUTS.len() {
            wait_for(|| {
                let headers = [("x-ms-documentdb-populatequotainfo", "True")];
                let reply = self.send("GET", &format!("/dbs/db/colls/c{place}"), &headers, &Value::Null);
                match reply.header("x-ms-documentdb-collection-index-transformation-progress") {
                    None | Some("100") => Ok(()),
                    Some(progress) => Err(format!("the index of c{place} stays at {progress} %")),
                }
            });
        }
        self.replaced = None;
    }

    /// Whether an order may be refused: by the policy, or by an index that has it no more or not yet.
    pub fn may_refuse(&self, order: &[(String, bool)]) -> bool {
        self.policy.may_refuse(order) || self.replaced.as_ref().is_some_and(|policy| policy.may_refuse(order))
    }

    pub fn oracle(&self, query: &Query, text: &str) -> Result<Vec<Value>, String> {
        let parameters = to_doc(&query.parameters_json());
        let parameters = Parameters::from_value(parameters.root()).map_err(|error| error.to_string())?;
        let program = compile(text, &parameters).map_err(|error| error.to_string())?;
        let system = SystemProps { ts: 1_800_000_000, ..SystemProps::default() };
        let row = |doc| Row { doc, system: Some(&system), place: &[] };
        let rows = program.run_all(self.documents.iter().map(|doc| row(doc.as_ref())), &Context::at(0, 0));
        let rows = rows.map_err(|error| error.to_string())?;
        Ok(rows.iter().map(|row| serde_json::from_slice(row).expect("rows are JSON")).collect())
    }

    /// All pages of the query as the server itself runs it, one partition after the other.
    pub fn ask(&mut self, place: usize, query: &Query, page: usize, access: &str) -> Answer {
        let headers = [("x-orrery-query-access", access)];
        let rows = self.pages(place, query, &query.text(), &headers, page)?;
        Ok(rows.iter().map(sample::canonical).collect())
    }

    /// The same, merged by the server from all partitions.
    pub fn ask_merged(&mut self, place: usize, query: &Query, page: usize, access: &str) -> Answer {
        let headers = [("x-orrery-query-access", access), ("x-orrery-query-merge", "true")];
        let rows = self.pages(place, query, &query.text(), &headers, page);
        let rows = rows.map_err(|failure| failure.of_rewritten(&query.text()))?;
        Ok(rows.iter().map(sample::canonical).collect())
    }

    /// The query as an SDK runs it.
    pub fn ask_as_client(&mut self, place: usize, query: &Query, page: usize, access: &str) -> Answer {
        let text = query.text();
        let headers = [
            ("x-ms-cosmos-is-query-plan-request", "True"),
            ("x-ms-cosmos-supported-query-features", FEATURES),
            ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ];
        let reply = self.send("POST", &items(place), &headers, &query.body());
        if reply.status != 200 {
            return Err(failure(&reply));
        }
        let plan = MergePlan::new(reply.json());
        let rewritten = plan.rewritten(&text);
        let ranges = self.send("GET", &format!("/dbs/db/colls/c{place}/pkranges"), &[], &Value::Null).json();
        let mut answers = Vec::new();
        for range in ranges["PartitionKeyRanges"].as_array().expect("a feed of ranges") {
            let end = |name: &str| range[name].as_str().expect("ends are text").to_owned();
            if plan.asks(&end("minInclusive"), &end("maxExclusive")) {
                let id = end("id");
                let headers =
                    [("x-ms-documentdb-partitionkeyrangeid", id.as_str()), ("x-orrery-query-access", access)];
                let answer = self.pages(place, query, &rewritten, &headers, page);
                answers.push(answer.map_err(|failure| failure.of_rewritten(&rewritten))?);
            }
        }
        Ok(sample::merge(&plan, answers).iter().map(sample::canonical).collect())
    }

    fn pages(
        &mut self,
        place: usize,
        query: &Query,
        text: &str,
        headers: &[(&str, &str)],
        page: usize,
    ) -> Result<Vec<Value>, Failure> {
        let (count, body) = (page.to_string(), query.body_of(text));
        let (mut rows, mut continuation) = (Vec::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let mut all = vec![
                ("x-ms-documentdb-isquery", "True"),
                ("x-ms-documentdb-query-enablecrosspartition", "True"),
                ("x-ms-max-item-count", count.as_str()),
            ];
            all.extend_from_slice(headers);
            all.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
            let reply = self.send("POST", &items(place), &all, &body);
            if reply.status != 200 {
                return Err(failure(&reply));
            }
            let mut found = reply.json();
            let found = found["Documents"].take();
            rows.extend(found.as_array().expect("a page of rows").iter().cloned());
            continuation = reply.header("x-ms-continuation").map(str::to_owned);
            if continuation.is_none() {
                return Ok(rows);
            }
        }
        Err(Failure::Other("the pages never end".to_owned()))
    }

    fn must(&mut self, status: u16, verb: &str, path: &str, headers: &[(&str, &str)], body: &Value) {
        let reply = self.send(verb, path, headers, body);
        assert_eq!(reply.status, status, "{verb} {path}: {}", String::from_utf8_lossy(&reply.body));
    }

    fn send(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.send(verb, path, headers, body.as_bytes()).expect("the server answers")
    }
}

fn items(place: usize) -> String {
    format!("/dbs/db/colls/c{place}/docs")
}

fn to_doc(value: &Value) -> Doc {
    json::parse(value.to_string().as_bytes(), 128).expect("generated JSON is JSON")
}

fn failure(reply: &Reply) -> Failure {
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    if reply.sub_status() == 1004 {
        Failure::NeedsPlan
    } else if text.contains("composite index") || text.contains("order-by item is excluded") {
        Failure::OrderRefused
    } else {
        Failure::Other(format!("{}: {text}", reply.status))
    }
}
