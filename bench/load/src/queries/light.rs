//! Queries that an index answers: many clients, as many as they can.

use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orrery_testkit::{Client, EMULATOR_KEY, Signer};
use serde_json::{Value, json};

use super::{CLIENTS, Target};
use crate::item;
use crate::load::{Plan, Source};
use crate::postgres::Postgres;
use crate::requests::Container;
use crate::settings::Settings;
use crate::site::Measured;

/// Items of a page of an ordered query, and those that a range is made to find.
pub const PAGE: u64 = 100;
/// Different values of `visits`, by which ranges and orders go.
const VISITS: u64 = 100_000;
/// Queries made beforehand.
const QUERIES: u64 = 5_000;

/// The indexes that an engineer who knows these queries would make, besides the one that serves any path.
pub const PEER_INDEXES: &[&str] = &[
    "create index items_doc on items using gin (doc jsonb_path_ops)",
    "create index items_mail on items (pk, (doc->>'mail'))",
    "create index items_visits on items (((doc->>'visits')::int))",
];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// One item of a logical partition, by another property than its id.
    Lookup,
    /// One item of all, by any property; PostgreSQL answers with the index that serves any path.
    Anywhere,
    Range,
    Order,
}

/// A query, and who merges what the partitions answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    ask: Ask,
    is_merged_by_server: bool,
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind { ask: Ask::Lookup, is_merged_by_server: false },
        Kind { ask: Ask::Anywhere, is_merged_by_server: false },
        Kind { ask: Ask::Range, is_merged_by_server: false },
        Kind { ask: Ask::Order, is_merged_by_server: false },
        Kind { ask: Ask::Order, is_merged_by_server: true },
    ];

    pub fn is_lookup(self) -> bool {
        self.ask == Ask::Lookup
    }

    /// Whether every partition answers a page of which the client needs a part, as ordered queries do.
    pub fn is_order_by_range(self) -> bool {
        self.ask == Ask::Order && !self.is_merged_by_server
    }

    pub fn name(self) -> String {
        let what = match self.ask {
            Ask::Lookup => return "equality in a logical partition, 1 result".to_owned(),
            Ask::Anywhere => "equality over all, 1 result",
            Ask::Range => "range over all, 100 results",
            Ask::Order => "ORDER BY over all, first page of 100",
        };
        if self.is_merged_by_server { format!("{what}, merged by the server") } else { what.to_owned() }
    }

    pub fn peer_name(self) -> &'static str {
        match self.ask {
            Ask::Lookup => "equality, expression index",
            Ask::Anywhere => "equality, GIN",
            Ask::Range => "range, expression index, 100 results",
            Ask::Order => "ORDER BY an expression index, 100 rows",
        }
    }

    /// Its requests, made beforehand.
    pub fn source(self, target: &Target<'_>) -> Asked {
        Asked::new(Rc::new(self.requests(target)))
    }

    pub fn measure(self, time: Duration, target: &Target<'_>, asked: Asked) -> Result<Measured> {
        let is_one = self.is_lookup() || self.is_merged_by_server;
        let parts = if is_one { 1 } else { target.ranges.len() as u64 };
        let plan = Plan { address: target.container.address, connections: CLIENTS, time };
        let mut measured = target.site.measure(plan, asked)?;
        measured.outcome.requests /= parts;
        measured.server_micros *= parts as f64;
        Ok(measured)
    }

    fn requests(self, target: &Target<'_>) -> Vec<Vec<u8>> {
        let (signer, mut requests) = (Signer::new(EMULATOR_KEY), Vec::new());
        for turn in 0..QUERIES {
            let body = self.body(turn, target.items).to_string();
            for place in self.places(turn, target) {
                requests.push(target.container.query(&signer, &place, &body));
            }
        }
        requests
    }

    /// The headers that say where the query runs, for each of its requests.
    fn places(self, turn: u64, target: &Target<'_>) -> Vec<String> {
        if self.is_lookup() {
            let key = item::loaded(chosen(turn, target.items)).key;
            return vec![format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n")];
        }
        // A range finds a hundred more or less; all of them are one page.
        let most = if self.ask == Ask::Range { 10 * PAGE } else { PAGE };
        if self.is_merged_by_server {
            return vec![format!(
                "x-ms-documentdb-query-enablecrosspartition: True\r\nx-orrery-query-merge: True\r\n\
                 x-ms-max-item-count: {most}\r\n"
            )];
        }
        let place = |range| {
            format!("x-ms-documentdb-partitionkeyrangeid: {range}\r\nx-ms-max-item-count: {most}\r\n")
        };
        target.ranges.iter().map(place).collect()
    }

    fn body(self, turn: u64, items: u64) -> Value {
        match self.ask {
            Ask::Lookup | Ask::Anywhere => json!({
                "query": "SELECT * FROM c WHERE c.mail = @mail",
                "parameters": [{"name": "@mail", "value": mail(chosen(turn, items))}],
            }),
            Ask::Range => {
                let (low, high) = bounds(turn, items);
                json!({
                    "query": "SELECT * FROM c WHERE c.visits >= @low AND c.visits < @high",
                    "parameters": [{"name": "@low", "value": low}, {"name": "@high", "value": high}],
                })
            }
            Ask::Order => json!({"query": "SELECT * FROM c ORDER BY c.visits", "parameters": []}),
        }
    }

    pub fn measure_peer(self, settings: &Settings, peer: &Postgres, items: u64) -> Result<Measured> {
        let statement = match self.ask {
            Ask::Lookup => "select doc::text from items where pk = $1 and doc->>'mail' = $2",
            Ask::Anywhere => "select doc::text from items where doc @> jsonb_build_object('mail', $1::text)",
            Ask::Range => {
                "select doc::text from items where (doc->>'visits')::int >= $1::text::int \
                 and (doc->>'visits')::int < $2::text::int"
            }
            Ask::Order => "select doc::text from items order by (doc->>'visits')::int limit 100",
        };
        let arguments = move |turn: u64| match self.ask {
            Ask::Lookup => vec![item::loaded(chosen(turn, items)).key, mail(chosen(turn, items))],
            Ask::Anywhere => vec![mail(chosen(turn, items))],
            Ask::Range => {
                let (low, high) = bounds(turn, items);
                vec![low.to_string(), high.to_string()]
            }
            Ask::Order => vec![],
        };
        let outcome = peer.measure_statement(statement, arguments, CLIENTS, settings.round())?;
        Ok(Measured { outcome, server_micros: 0.0 })
    }
}

fn chosen(turn: u64, items: u64) -> u64 {
    item::mix(turn) % items
}

/// The `mail` of an item, as it is written into it.
fn mail(number: u64) -> String {
    format!("{:x}@example.org", item::mix(item::mix(number)))
}

/// A range of `visits` that about a page of items is in.
fn bounds(turn: u64, items: u64) -> (u64, u64) {
    let width = (PAGE * VISITS / items).max(1);
    let low = item::mix(turn) % (VISITS - width);
    (low, low + width)
}

const ORDER: Kind = Kind { ask: Ask::Order, is_merged_by_server: false };

/// How many items a partition looks at for the first page of an order.
pub fn loaded_for_a_page(target: &Target<'_>) -> Result<f64> {
    let body = ORDER.body(0, target.items).to_string();
    target
        .ranges
        .iter()
        .try_fold(0.0, |most, range| Ok(f64::max(most, loaded(&target.container, range, &body)?)))
}

/// How many items a range looks at for the first page of a query.
pub fn loaded(container: &Container, range: &str, body: &str) -> Result<f64> {
    let mut client = Client::new(container.address.port());
    let count = PAGE.to_string();
    let headers = [
        ("x-ms-documentdb-isquery", "True"),
        ("x-ms-max-item-count", count.as_str()),
        ("x-ms-documentdb-populatequerymetrics", "True"),
        ("x-ms-documentdb-partitionkeyrangeid", range),
    ];
    let reply = client.send("POST", &container.items, &headers, body.as_bytes())?;
    ensure!(reply.status == 200, "{}", String::from_utf8_lossy(&reply.body));
    let metrics = reply.header("x-ms-documentdb-query-metrics").context("no query metrics")?;
    let loaded = metrics.split(';').find_map(|pair| pair.strip_prefix("retrievedDocumentCount="));
    loaded.and_then(|text| text.parse().ok()).context("no count of documents")
}

/// Requests made beforehand, sent in their order, so that the parts of one query stay together.
#[derive(Clone)]
pub struct Asked {
    requests: Rc<Vec<Vec<u8>>>,
    turn: usize,
}

impl Asked {
    pub fn new(requests: Rc<Vec<Vec<u8>>>) -> Asked {
        Asked { requests, turn: 0 }
    }
}

impl Source for Asked {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let next = &self.requests[self.turn % self.requests.len()];
        request.write_all(next).expect("writing to memory does not fail");
        self.turn += 1;
        true
    }

    fn status(&self) -> u16 {
        200
    }
}
