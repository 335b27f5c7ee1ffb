//! The requests of the load on tables, as bytes. Azurite gets the same ones as our server.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use orrery_testkit::{Client, EMULATOR_KEY, Signer};

use crate::item::{self, Address};
use crate::load::Source;
use crate::requests::Reads;

/// The account that both servers know, and that stands in front of every path.
pub const ACCOUNT: &str = "devstoreaccount1";
const ENTITY_BYTES: usize = 1024;
/// How long one signature is used; the service takes it for a quarter of an hour.
const SIGNATURE_TIME: Duration = Duration::from_secs(60);
const JSON: &str = "content-type: application/json\r\n";
const BATCH: &str = "content-type: multipart/mixed; boundary=batch_0\r\n";

/// A table under load, as a client knows it.
#[derive(Clone, Debug)]
pub struct Table {
    pub address: SocketAddr,
    name: String,
}

impl Table {
    pub fn create(port: u16, name: &str) -> Result<Table> {
        let table = Table { address: SocketAddr::from(([127, 0, 0, 1], port)), name: name.to_owned() };
        let mut message = table.head("POST", "/Tables", JSON);
        let body = format!("{{\"TableName\":\"{name}\"}}");
        finish(&mut message, &body);
        let reply = Client::new(port).send_bytes(&message)?;
        ensure!(reply.status == 201, "no table: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
        Ok(table)
    }

    /// Everything up to the length of the body; the path is that behind the account.
    fn head(&self, verb: &str, path: &str, more: &str) -> Vec<u8> {
        let signer = Signer::new(EMULATOR_KEY);
        let mut out = Vec::with_capacity(1024);
        self.head_into(&signer, verb, path, more, &mut out);
        out
    }

    fn head_into(&self, signer: &Signer, verb: &str, path: &str, more: &str, out: &mut Vec<u8>) {
        let path = format!("/{ACCOUNT}{path}");
        write!(
            out,
            "{verb} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\nx-ms-date: {}\r\nx-ms-version: 2019-02-02\r\n\
             accept: application/json;odata=nometadata\r\ndataserviceversion: 3.0\r\n{more}",
            self.address,
            signer.shared_key_lite(ACCOUNT, path.split('?').next().unwrap_or_default()),
            signer.date(),
        )
        .expect("writing to memory does not fail");
    }

    /// Point reads of entities that batches loaded.
    pub fn reads(&self, loaded: u64) -> Reads {
        let path = |number: u64| {
            let Address { key, id } = item::loaded(number);
            format!("/{}(PartitionKey='{key}',RowKey='{id}')", self.name)
        };
        self.gets((0..loaded).map(|turn| path(item::mix(turn) % loaded)))
    }

    /// Queries for all entities of a partition.
    pub fn scans(&self, loaded: u64) -> Reads {
        let partitions = loaded / item::ITEMS_PER_KEY;
        self.gets((0..partitions).map(|partition| self.scan(partition)))
    }

    fn scan(&self, partition: u64) -> String {
        let key = item::loaded(partition * item::ITEMS_PER_KEY).key;
        format!("/{}()?$filter=PartitionKey%20eq%20'{key}'", self.name)
    }

    fn gets(&self, paths: impl Iterator<Item = String>) -> Reads {
        let signer = Signer::new(EMULATOR_KEY);
        let requests = paths.map(|path| {
            let mut request = Vec::with_capacity(512);
            self.head_into(&signer, "GET", &path, "\r\n", &mut request);
            request
        });
        Reads::from_requests(requests.collect())
    }

    /// How many entities a partition has.
    pub fn count_of_partition(&self, partition: u64) -> Result<usize> {
        let message = self.head("GET", &self.scan(partition), "\r\n");
        let answer = crate::load::ask(self.address, &message)?;
        Ok(answer.matches("\"RowKey\"").count())
    }
}

/// Single inserts of new entities. The signature is that of the table, so one serves all.
pub struct Inserts {
    head: Vec<u8>,
    next: u64,
    body: String,
}

impl Inserts {
    pub fn new(table: &Table, first: u64) -> Inserts {
        let more = format!("{JSON}prefer: return-no-content\r\n");
        let head = table.head("POST", &format!("/{}", table.name), &more);
        Inserts { head, next: first, body: String::new() }
    }
}

impl Source for Inserts {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        self.body.clear();
        write_entity(&item::created(self.next), self.next, &mut self.body);
        self.next += 1;
        request.extend_from_slice(&self.head);
        finish(request, &self.body);
        true
    }

    fn status(&self) -> u16 {
        204
    }
}

/// Batches of inserts, each filling one partition.
pub struct Batches {
    table: Table,
    head: Vec<u8>,
    signed: Instant,
    next: u64,
    end: u64,
    body: String,
}

impl Batches {
    /// All entities from `first` up to `end`, both multiples of a batch.
    pub fn new(table: &Table, first: u64, end: u64) -> Batches {
        let head = table.head("POST", "/$batch", BATCH);
        Batches { table: table.clone(), head, signed: Instant::now(), next: first, end, body: String::new() }
    }
}

impl Source for Batches {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if self.next >= self.end {
            return false;
        }
        if self.signed.elapsed() > SIGNATURE_TIME {
            self.head = self.table.head("POST", "/$batch", BATCH);
            self.signed = Instant::now();
        }
        let (first, table) = (self.next, &self.table);
        self.next += item::ITEMS_PER_KEY;
        self.body.clear();
        self.body.push_str("--batch_0\r\nContent-Type: multipart/mixed; boundary=changeset_0\r\n\r\n");
        for number in first..self.next {
            write!(
                self.body,
                "--changeset_0\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST http://{}/{ACCOUNT}/{} HTTP/1.1\r\nContent-Type: application/json\r\n\
                 Accept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n\r\n",
                table.address, table.name
            )
            .expect("writing to memory does not fail");
            write_entity(&item::loaded(number), number, &mut self.body);
            self.body.push_str("\r\n");
        }
        self.body.push_str("--changeset_0--\r\n--batch_0--\r\n");
        request.extend_from_slice(&self.head);
        finish(request, &self.body);
        true
    }

    fn status(&self) -> u16 {
        202
    }
}

fn finish(request: &mut Vec<u8>, body: &str) {
    write!(request, "content-length: {}\r\n\r\n{body}", body.len()).expect("writing to memory does not fail");
}

/// Appends an entity: as many properties as an item has, of the types that entities have.
fn write_entity(address: &Address, number: u64, out: &mut String) {
    let start = out.len();
    let seed = item::mix(number);
    write!(
        out,
        "{{\"PartitionKey\":\"{}\",\"RowKey\":\"{}\",\"name\":\"name {seed:x}\",\"mail\":\"{:x}@example.org\",\
         \"city\":\"city {}\",\"age\":{},\"score\":{:.3},\"active\":{},\"visits\":\"{}\",\
         \"visits@odata.type\":\"Edm.Int64\",\"since\":\"2026-{:02}-{:02}T00:00:00Z\",\
         \"since@odata.type\":\"Edm.DateTime\",\"place\":\"{:016x}\",\"text\":\"",
        address.key,
        address.id,
        item::mix(seed),
        seed % 1000,
        seed % 90,
        (seed % 1_000_000) as f64 / 1000.0,
        seed & 1 == 0,
        seed % 100_000,
        seed % 12 + 1,
        seed % 28 + 1,
        item::mix(seed ^ 1),
    )
    .expect("writing to memory does not fail");
    item::write_text(seed, start + ENTITY_BYTES - 2 - out.len(), out);
    out.push_str("\"}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entity_is_a_kibibyte_of_twelve_properties() {
        for number in [0, 1, 999_999, 123_456_789] {
            for address in [item::loaded(number), item::created(number)] {
                let mut text = String::new();
                write_entity(&address, number, &mut text);
                assert_eq!(text.len(), ENTITY_BYTES);
                let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                let properties = value.as_object().expect("an object").keys();
                assert_eq!(properties.filter(|name| !name.contains('@')).count(), 12);
            }
        }
    }
}
