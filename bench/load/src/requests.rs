//! The requests of the load, as bytes.

use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use orrery_testkit::{EMULATOR_KEY, Signer};

use crate::item::{self, Address};
use crate::load::Source;

/// How long one signature is used; the service takes it for a quarter of an hour.
const SIGNATURE_TIME: Duration = Duration::from_secs(60);

/// A container under load, as a client knows it.
#[derive(Clone, Debug)]
pub struct Container {
    pub address: SocketAddr,
    /// `/dbs/{database}/colls/{container}/docs`.
    pub items: String,
}

impl Container {
    pub fn new(port: u16, database: &str, container: &str) -> Container {
        let items = format!("/dbs/{database}/colls/{container}/docs");
        Container { address: SocketAddr::from(([127, 0, 0, 1], port)), items }
    }

    fn start(&self, signer: &Signer, verb: &str, path: &str, out: &mut Vec<u8>) {
        write!(
            out,
            "{verb} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\nx-ms-date: {}\r\n\
             x-ms-version: 2020-07-15\r\naccept: application/json\r\ncontent-type: application/json\r\n",
            self.address,
            signer.authorization(verb, path),
            signer.date(),
        )
        .expect("writing to memory does not fail");
    }

    /// A query with these header lines about its place, each with its end.
    pub fn query(&self, signer: &Signer, place: &str, body: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(768);
        self.start(signer, "POST", &self.items, &mut out);
        write!(out, "x-ms-documentdb-isquery: True\r\n{place}content-length: {}\r\n\r\n{body}", body.len())
            .expect("writing to memory does not fail");
        out
    }

    fn read(&self, signer: &Signer, item: &Address) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.read_into(signer, item, &mut out);
        out
    }

    fn read_into(&self, signer: &Signer, item: &Address, out: &mut Vec<u8>) {
        self.start(signer, "GET", &format!("{}/{}", self.items, item.id), out);
        write!(out, "x-ms-documentdb-partitionkey: [\"{}\"]\r\n\r\n", item.key)
            .expect("writing to memory does not fail");
    }
}

/// Point reads, signed beforehand and sent round and round in a random order.
#[derive(Clone)]
pub struct Reads {
    requests: Rc<Vec<Vec<u8>>>,
    turn: u64,
}

impl Reads {
    pub fn new(container: &Container, items: impl Iterator<Item = Address>) -> Reads {
        let signer = Signer::new(EMULATOR_KEY);
        Reads::from_requests(items.map(|item| container.read(&signer, &item)).collect())
    }

    /// Whole requests, however they were made.
    pub fn from_requests(requests: Vec<Vec<u8>>) -> Reads {
        Reads { requests: Rc::new(requests), turn: 0 }
    }

    /// Reads of items that batches loaded, chosen at random.
    pub fn of_loaded(container: &Container, loaded: u64, count: u64) -> Reads {
        let chosen = (0..count.min(loaded)).map(move |turn| item::loaded(item::mix(turn) % loaded));
        Reads::new(container, chosen)
    }
}

impl Source for Reads {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        self.turn += 1;
        let place = item::mix(self.turn) % self.requests.len() as u64;
        request.extend_from_slice(&self.requests[place as usize]);
        true
    }

    fn status(&self) -> u16 {
        200
    }
}

/// Point reads of items that batches loaded, each chosen at random among all and signed when it is sent.
///
/// Requests made beforehand would be a part of the items only, and a part fits into a cache that the whole does not.
#[derive(Clone)]
pub struct RandomReads {
    container: Container,
    signer: Signer,
    loaded: u64,
    turn: u64,
    end: u64,
}

impl RandomReads {
    /// Without an end; successive sources should start at different turns, or they read the same items.
    pub fn new(container: &Container, loaded: u64, turn: u64) -> RandomReads {
        RandomReads {
            container: container.clone(),
            signer: Signer::new(EMULATOR_KEY),
            loaded,
            turn,
            end: u64::MAX,
        }
    }

    pub fn at_most(mut self, count: u64) -> RandomReads {
        self.end = self.turn + count;
        self
    }
}

impl Source for RandomReads {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if self.turn == self.end {
            return false;
        }
        self.turn += 1;
        let item = item::loaded(item::mix(self.turn) % self.loaded);
        self.container.read_into(&self.signer, &item, request);
        true
    }

    fn status(&self) -> u16 {
        200
    }
}

/// Single creates of new items. The signature is that of the feed, so one serves all.
pub struct Creates {
    head: Vec<u8>,
    next: u64,
    end: u64,
    body: String,
}

impl Creates {
    /// The items `first` and following, at most `count` of them.
    pub fn new(container: &Container, first: u64, count: u64) -> Creates {
        let mut head = Vec::new();
        container.start(&Signer::new(EMULATOR_KEY), "POST", &container.items, &mut head);
        Creates { head, next: first, end: first.saturating_add(count), body: String::new() }
    }
}

impl Source for Creates {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if self.next == self.end {
            return false;
        }
        let address = item::created(self.next);
        self.body.clear();
        item::write_json(&address, self.next, &mut self.body);
        self.next += 1;
        finish(request, &self.head, &address.key, "", &self.body);
        true
    }

    fn status(&self) -> u16 {
        201
    }
}

/// Batches of creates, each filling one logical partition.
pub struct Batches {
    container: Container,
    head: Vec<u8>,
    signed: Instant,
    next_key: u64,
    end_key: u64,
    body: String,
}

impl Batches {
    /// All items from `first` up to `end`, both multiples of a batch.
    pub fn new(container: &Container, first: u64, end: u64) -> Batches {
        let (next_key, end_key) = (first / item::ITEMS_PER_KEY, end / item::ITEMS_PER_KEY);
        let mut batches = Batches {
            container: container.clone(),
            head: Vec::new(),
            signed: Instant::now(),
            next_key,
            end_key,
            body: String::new(),
        };
        batches.sign();
        batches
    }

    /// A signature is good for minutes, and loading may take longer.
    fn sign(&mut self) {
        self.head.clear();
        self.container.start(&Signer::new(EMULATOR_KEY), "POST", &self.container.items, &mut self.head);
        self.signed = Instant::now();
    }
}

impl Source for Batches {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if self.next_key == self.end_key {
            return false;
        }
        if self.signed.elapsed() > SIGNATURE_TIME {
            self.sign();
        }
        let first = self.next_key * item::ITEMS_PER_KEY;
        self.next_key += 1;
        self.body.clear();
        for number in first..first + item::ITEMS_PER_KEY {
            self.body.push_str(if number == first { "[" } else { "," });
            self.body.push_str("{\"operationType\":\"Create\",\"resourceBody\":");
            item::write_json(&item::loaded(number), number, &mut self.body);
            self.body.push('}');
        }
        self.body.push(']');
        let headers = "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\nprefer: return=minimal\r\n";
        finish(request, &self.head, &item::loaded(first).key, headers, &self.body);
        true
    }

    fn status(&self) -> u16 {
        200
    }
}

fn finish(request: &mut Vec<u8>, head: &[u8], key: &str, headers: &str, body: &str) {
    request.extend_from_slice(head);
    write!(
        request,
        "x-ms-documentdb-partitionkey: [\"{key}\"]\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("writing to memory does not fail");
}
