//! Writers that own their partition keys, so that each knows exactly what must be there: what was acknowledged, and
//! perhaps what the one request under way would have made of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use orrery_testkit::{Client, Random, Reply, Server};
use serde_json::{Value, json};

use crate::TABLE;

const KEYS: usize = 6;
const ROWS: usize = 5;
/// Rows that are only written all at once, so they must always have one version.
const BATCH: usize = 5;

/// The partition key and the row key of an entity.
pub type Place = (String, String);
/// The version of an entity, or nothing.
type State = Option<u64>;

/// One connection to each port.
pub struct Clients {
    pub nosql: Client,
    table: Client,
}

impl Clients {
    pub fn ports(server: &Server) -> (u16, u16) {
        (server.port(), server.table_port().expect("it was asked for"))
    }

    pub fn at((nosql, table): (u16, u16)) -> Clients {
        Clients { nosql: Client::new(nosql), table: Client::new(table) }
    }

    pub fn of(server: &Server) -> Clients {
        Clients::at(Clients::ports(server))
    }

    pub fn table(&mut self, verb: &str, path: &str, body: &[u8]) -> io::Result<Reply> {
        self.table_as(verb, path, "application/json", &[], body)
    }

    fn table_as(
        &mut self,
        verb: &str,
        path: &str,
        kind: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let headers = [("content-type", kind), ("accept", "application/json;odata=nometadata")];
        self.table.send_table(verb, path, &[&headers, more].concat(), body)
    }

    fn items(
        &mut self,
        verb: &str,
        key: &str,
        id: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let key = json!([key]).to_string();
        let headers = [&[("x-ms-documentdb-partitionkey", key.as_str())], more].concat();
        let path = format!("{TABLE}/docs{}{id}", if id.is_empty() { "" } else { "/" });
        self.nosql.send(verb, &path, &headers, body)
    }
}

pub struct Writer {
    name: usize,
    random: Random,
    version: u64,
    acknowledged: BTreeMap<Place, State>,
    /// The request under way: all of these changes, or none.
    in_flight: Vec<(Place, State)>,
}

impl Writer {
    pub fn new(name: usize, seed: u64) -> Writer {
        let random = Random::new(seed + name as u64 + 1);
        Writer { name, random, version: 0, acknowledged: BTreeMap::new(), in_flight: Vec::new() }
    }

    /// What must be there.
    pub fn entities(&self) -> impl Iterator<Item = (Place, u64)> {
        self.acknowledged.iter().filter_map(|(place, state)| Some((place.clone(), (*state)?)))
    }

    /// Writes until it is stopped or the server is gone.
    pub fn storm(&mut self, mut clients: Clients, stop: &AtomicBool, acknowledged: &AtomicU64) {
        while !stop.load(Ordering::Relaxed) {
            let key = format!("w{}-{}", self.name, self.random.below(KEYS));
            self.version += 1;
            let by_table = self.random.one_in(2);
            let answered = match self.random.below(3) {
                0 => self.batch(&mut clients, &key, by_table),
                _ => self.single(&mut clients, &key, by_table),
            };
            match answered {
                Ok((reply, wanted)) => {
                    let text = String::from_utf8_lossy(&reply.body);
                    assert!(wanted.contains(&reply.status), "{}: {text}", reply.status);
                }
                Err(_) => return,
            }
            self.acknowledged.extend(std::mem::take(&mut self.in_flight));
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn single(
        &mut self,
        clients: &mut Clients,
        key: &str,
        by_table: bool,
    ) -> io::Result<(Reply, &'static [u16])> {
        let row = format!("r{}", self.random.below(ROWS));
        let place = (key.to_owned(), row.clone());
        let exists = self.acknowledged.get(&place).copied().flatten().is_some();
        let is_delete = exists && self.random.one_in(4);
        let verb = *self.random.pick(&["PUT", "MERGE"]);
        self.in_flight = vec![(place, (!is_delete).then_some(self.version))];
        let path = format!("/shared(PartitionKey='{key}',RowKey='{row}')");
        match (by_table, is_delete) {
            (true, true) => {
                let any = [("if-match", "*")];
                let reply = clients.table_as("DELETE", &path, "application/json", &any, b"")?;
                Ok((reply, &[204]))
            }
            (true, false) => {
                let reply = clients.table(verb, &path, entity(self.version).as_bytes())?;
                Ok((reply, &[204]))
            }
            (false, true) => Ok((clients.items("DELETE", key, &row, &[], b"")?, &[204])),
            (false, false) => {
                let upsert = [("x-ms-documentdb-is-upsert", "True")];
                let body = item(key, &row, self.version).to_string();
                Ok((clients.items("POST", key, "", &upsert, body.as_bytes())?, &[200, 201]))
            }
        }
    }

    fn batch(
        &mut self,
        clients: &mut Clients,
        key: &str,
        by_table: bool,
    ) -> io::Result<(Reply, &'static [u16])> {
        let rows: Vec<String> = (0..BATCH).map(|row| format!("b{row}")).collect();
        self.in_flight = rows.iter().map(|row| ((key.to_owned(), row.clone()), Some(self.version))).collect();
        if by_table {
            let body = changeset(key, &rows, self.version);
            let reply =
                clients.table_as("POST", "/$batch", "multipart/mixed; boundary=b", &[], body.as_bytes())?;
            let text = String::from_utf8_lossy(&reply.body);
            assert_eq!(text.matches("HTTP/1.1 204").count(), BATCH, "{text}");
            return Ok((reply, &[202]));
        }
        let operations: Vec<Value> = rows
            .iter()
            .map(|row| json!({"operationType": "Upsert", "resourceBody": item(key, row, self.version)}))
            .collect();
        let atomic = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
        Ok((clients.items("POST", key, "", &atomic, json!(operations).to_string().as_bytes())?, &[200]))
    }

    /// Compares what both protocols show with what must be there, and learns what became of the request under way.
    pub fn settle(&mut self, clients: &mut Clients) -> Result<(), String> {
        let in_flight = std::mem::take(&mut self.in_flight);
        if let Some((place, after)) = in_flight.first() {
            // Its first entity tells whether it was carried out; then all of it must have been.
            if shown(clients, place)? == *after {
                self.acknowledged.extend(in_flight);
            }
        }
        for (place, state) in &self.acknowledged {
            let found = shown(clients, place)?;
            if found != *state {
                return Err(format!("{place:?} has the version {found:?} and not {state:?}"));
            }
        }
        Ok(())
    }
}

/// The version of an entity, on which both protocols agree.
fn shown(clients: &mut Clients, (key, row): &Place) -> Result<State, String> {
    let path = format!("/shared(PartitionKey='{key}',RowKey='{row}')");
    let entity = clients.table("GET", &path, b"").map_err(|error| error.to_string())?;
    let item = clients.items("GET", key, row, &[], b"").map_err(|error| error.to_string())?;
    let states = match (entity.status, item.status) {
        (404, 404) => (None, None),
        (200, 200) => {
            let entity = entity.json()["n"].as_str().and_then(|text| text.parse().ok());
            (entity, number_of(&item.json()))
        }
        statuses => return Err(format!("{key} {row}: {statuses:?}")),
    };
    if states.0 == states.1 { Ok(states.0) } else { Err(format!("{key} {row}: {states:?}")) }
}

/// The version in an item.
pub fn number_of(item: &Value) -> State {
    item["n"]["$v"].as_str()?.parse().ok()
}

fn entity(version: u64) -> String {
    json!({"n": version.to_string(), "n@odata.type": "Edm.Int64"}).to_string()
}

/// The same as an item.
fn item(key: &str, row: &str, version: u64) -> Value {
    json!({"id": row, "$id": row, "$pk": key, "n": {"$t": 18, "$v": format!("{version:020}")}})
}

fn changeset(key: &str, rows: &[String], version: u64) -> String {
    let part = |row: &String| {
        format!(
            "--c\r\nContent-Type: application/http\r\n\r\nPUT http://localhost/shared(PartitionKey='{key}',RowKey='{row}') \
             HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}\r\n",
            entity(version)
        )
    };
    let parts: String = rows.iter().map(part).collect();
    format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n")
}
