//! Clients whose small requests make the server hold much on its way to the disk.

use std::sync::atomic::{AtomicBool, Ordering};

use orrery_testkit::{Client, Random};
use serde_json::{Value, json};

use crate::attackers::{Answers, Attack, rest};
use crate::site;

/// So that attackers are not merely throttled.
const THROUGHPUT: u64 = 100_000;
const LARGE_BYTES: usize = 1_900_000;
/// Numbers that fill an item of the largest size.
const NUMBERS: usize = 270_000;
/// Large items that one batch changes.
const BATCHED: usize = 20;

/// What a writer does again and again; it answers a status.
type Act = fn(&mut Client, &mut Random, &str) -> u16;

pub const KINDS: [Attack; 4] = [Attack::Numbers, Attack::Batches, Attack::Expiry, Attack::Fillers];

pub fn furnish(client: &mut Client) -> anyhow::Result<()> {
    for name in ["numbers", "batches", "fillers"] {
        site::container(client, name, THROUGHPUT)?;
    }
    let expiring = json!({"id": "expiry", "partitionKey": {"paths": ["/key"], "kind": "Hash", "version": 2}, "defaultTtl": 3});
    let throughput = THROUGHPUT.to_string();
    site::create(client, "/dbs/db/colls", &[("x-ms-offer-throughput", &throughput)], &expiring)?;
    let procedure = json!({"id": "fill", "body": "function (key, bytes) { let c = getContext().getCollection(), \
        text = new Array(bytes + 1).join('f'), n = 0; function next() { if (n < 1000 && c.upsertDocument(c.getSelfLink(), \
        {id: 'f' + n, key: key, text: text, all: [n, n + 1, n + 2]}, next)) n++; else \
        getContext().getResponse().setBody(n); } next(); }"});
    site::create(client, "/dbs/db/colls/fillers/sprocs", &[], &procedure)
}

pub fn write(kind: Attack, port: u16, number: usize, stop: &AtomicBool, answers: &Answers) {
    let act: Act = match kind {
        Attack::Numbers => numbers,
        Attack::Batches => batch,
        Attack::Expiry => expire,
        _ => fill,
    };
    let (mut client, mut random) = (Client::new(port), Random::new(number as u64));
    let key = format!("writer-{number}");
    while !stop.load(Ordering::Relaxed) {
        let status = act(&mut client, &mut random, &key);
        answers.add(kind, status);
        rest(status);
    }
}

/// An item with a term for every few bytes.
fn numbers(client: &mut Client, random: &mut Random, key: &str) -> u16 {
    let first = random.below(700_000);
    let count = if random.one_in(3) { NUMBERS } else { NUMBERS / 20 };
    let all: Vec<usize> = (first..first + count).collect();
    site::upsert(client, "numbers", key, &json!({"id": random.below(5).to_string(), "key": key, "all": all}))
}

/// Changes or deletes large items with a small request, and brings them back one by one.
fn batch(client: &mut Client, random: &mut Random, key: &str) -> u16 {
    if random.one_in(2) {
        let id = random.below(BATCHED).to_string();
        let item = json!({"id": id, "key": key, "n": 0, "text": "b".repeat(LARGE_BYTES)});
        return site::upsert(client, "batches", key, &item);
    }
    let deletes = random.one_in(8);
    let (from, count) = (random.below(BATCHED), 1 + random.below(if deletes { 4 } else { BATCHED }));
    let operation = |place: usize| match (deletes, place % BATCHED) {
        (true, id) => json!({"operationType": "Delete", "id": id.to_string()}),
        (false, id) => json!({"operationType": "Patch", "id": id.to_string(),
            "resourceBody": {"operations": [{"op": "incr", "path": "/n", "value": 1}]}}),
    };
    let body = Value::from_iter((from..from + count).map(operation)).to_string();
    let key = json!([key]).to_string();
    let headers = [
        (site::KEY, key.as_str()),
        ("x-ms-cosmos-is-batch-request", "true"),
        ("x-ms-cosmos-batch-atomic", "true"),
    ];
    client.send("POST", &site::docs("batches"), &headers, body.as_bytes()).map_or(0, |reply| reply.status)
}

/// Large items that all expire soon.
fn expire(client: &mut Client, random: &mut Random, key: &str) -> u16 {
    let id = random.below(1_000).to_string();
    let item = json!({"id": id, "key": key, "text": "e".repeat(LARGE_BYTES / 4)});
    site::upsert(client, "expiry", key, &item)
}

/// A script that writes as much as it may.
fn fill(client: &mut Client, random: &mut Random, key: &str) -> u16 {
    let header = json!([key]).to_string();
    let arguments = json!([key, random.pick(&[1_000, 20_000, 200_000])]).to_string();
    let path = "/dbs/db/colls/fillers/sprocs/fill";
    client.send("POST", path, &[(site::KEY, &header)], arguments.as_bytes()).map_or(0, |reply| reply.status)
}
