//! The scenarios of the Rust driver: items, a query and the expected rows, over several partitions.
//!
//! A small client stands in for an SDK: it asks for the plan, sends the rewritten query to every
//! partition, page by page, and merges as the plan says.

// A helper of a test fails the test by panicking, as the test itself does.
#![allow(clippy::unwrap_used)]

mod shared;

use std::cmp::Ordering;

use orrery_doc::{Doc, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, json};
use orrery_query::ast::Direction;
use orrery_query::{
    Carry, Context, DistinctType, Features, Flow, PageEnd, Parameters, QueryInfo, Room, Row, Rows, Run,
    SystemProps, Val, compile, describe,
};
use serde_json::Value;

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap()
}

/// An item with its number in the container, which is its place.
struct Item {
    doc: Doc,
    system: SystemProps,
    place: [u8; 8],
}

fn items(documents: &[Value]) -> Vec<Item> {
    let item = |(i, document): (usize, &Value)| Item {
        doc: doc(&document.to_string()),
        system: SystemProps { rid: format!("rid{i:03}"), ..SystemProps::default() },
        place: (i as u64).to_be_bytes(),
    };
    documents.iter().enumerate().map(item).collect()
}

/// All rows of one partition, in pages.
fn partition(query: &str, parameters: &Parameters, items: &[&Item], rows_per_page: usize) -> Vec<Value> {
    let program = compile(query, parameters).unwrap();
    let (cx, room) = (Context::at(0, 0), Room { rows: rows_per_page, bytes: usize::MAX });
    let (mut all, mut carry, mut position) = (Vec::new(), None::<Carry>, 0);
    loop {
        let mut out = Rows::default();
        let mut run = Run::start(&program, &cx, room, carry.as_ref()).unwrap();
        let mut at = if program.is_blocking() { 0 } else { position };
        while let Some(item) = items.get(at) {
            let row = Row { doc: item.doc.as_ref(), system: Some(&item.system), place: &item.place };
            match run.feed(&row, &mut out).unwrap() {
                Flow::More => at += 1,
                Flow::Full | Flow::Done => break,
            }
        }
        let end = run.finish(&mut out).unwrap();
        all.extend(out.iter().map(|row| serde_json::from_slice::<Value>(row).unwrap()));
        match end {
            PageEnd::Continue(next) if program.is_blocking() || at < items.len() => {
                carry = Some(next);
                position = at;
            }
            _ => return all,
        }
    }
}

/// What an SDK would answer.
fn client(
    query: &str,
    parameters: &Parameters,
    partitions: &[Vec<&Item>],
    rows_per_page: usize,
) -> Vec<Value> {
    let def = PartitionKeyDef {
        kind: PartitionKeyKind::Hash,
        version: PartitionKeyVersion::V2,
        paths: vec![Path::parse_property("/pk").unwrap()],
    };
    let info = describe(query, parameters, &def, &Features::all()).unwrap().info;
    assert!(info.aggregates.is_empty() && info.group_by_aliases.is_empty(), "{query}");
    let sent = info.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true");
    let sent = if sent.is_empty() { query.to_owned() } else { sent };
    let mut rows: Vec<Value> =
        partitions.iter().flat_map(|items| partition(&sent, parameters, items, rows_per_page)).collect();
    if !info.order_by.is_empty() {
        rows.sort_by(|a, b| order(&info, a, b));
        rows = rows.into_iter().filter_map(|mut row| row.as_object_mut()?.remove("payload")).collect();
    }
    if info.distinct != DistinctType::None {
        let mut seen = Vec::new();
        rows.retain(|row| {
            let key = serde_json::to_string(row).unwrap();
            let new = !seen.contains(&key);
            seen.push(key);
            new
        });
    }
    let skip = info.offset.unwrap_or(0) as usize;
    let take = info.top.or(info.limit).map_or(usize::MAX, |n| n as usize);
    rows.into_iter().skip(skip).take(take).collect()
}

fn order(info: &QueryInfo, a: &Value, b: &Value) -> Ordering {
    for (i, (direction, _)) in info.order_by.iter().enumerate() {
        let key = |row: &Value| row["orderByItems"][i].get("item").map(|key| doc(&key.to_string()));
        let (a, b) = (key(a), key(b));
        let val = |key: &Option<Doc>| {
            key.as_ref().map_or(Val::Undefined, |key| Val::from(key.root()).to_owned_val())
        };
        let order = val(&a).order(&val(&b));
        let order = if *direction == Direction::Descending { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    a["_rid"].as_str().cmp(&b["_rid"].as_str())
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    rows.sort();
    rows
}

fn check(scenario: &Value, rows: &[Value]) {
    let name = scenario["id"].as_str().unwrap();
    let ordered = scenario["query"]["text"].as_str().unwrap().contains("ORDER BY");
    let expected_ids: Vec<&str> =
        scenario["expectedIds"].as_array().into_iter().flatten().map(|id| id.as_str().unwrap()).collect();
    let expected = scenario["expectedValues"].as_array().cloned().unwrap_or_default();
    if let Some(count) = scenario["expectedCount"].as_u64() {
        assert_eq!(rows.len() as u64, count, "{name}");
    } else if !expected.is_empty() && ordered {
        assert_eq!(rows, expected, "{name}");
    } else if !expected.is_empty() {
        assert_eq!(sorted(rows), sorted(&expected), "{name}");
    } else if ordered || scenario["assertion"] == "exactOrdered" {
        assert_eq!(ids(rows), expected_ids, "{name}");
    } else {
        let mut got = ids(rows);
        got.sort_unstable();
        assert_eq!(got, expected_ids, "{name}");
    }
}

#[test]
fn the_drivers_scenarios_give_their_rows() {
    let (mut ran, mut other) = (0, 0);
    for file in ["distinct", "skip_take", "streaming_order_by"] {
        let Some(text) = shared::vector(&format!("nosql-rust-fixtures/{file}_scenarios.json")) else {
            return;
        };
        let file: Value = serde_json::from_str(&text).unwrap();
        for scenario in file["scenarios"].as_array().unwrap() {
            let documents = scenario["documents"].as_array().unwrap();
            // The others are about the client alone: its tokens, its refusals and recorded pages.
            if documents.is_empty() || !scenario["expectedError"].is_null() {
                other += 1;
                continue;
            }
            ran += 1;
            let items = items(documents);
            let query = scenario["query"]["text"].as_str().unwrap();
            let parameters = doc(&scenario["query"]["parameters"].to_string());
            let parameters = Parameters::from_value(parameters.root()).unwrap();
            for partitions in [1, 2, 4] {
                let mut split: Vec<Vec<&Item>> = (0..partitions).map(|_| Vec::new()).collect();
                for item in &items {
                    let key = item.doc.root().get("pk").as_str().unwrap_or_default().bytes().map(usize::from);
                    split[key.sum::<usize>() % partitions].push(item);
                }
                for rows_per_page in [1, 2, 10] {
                    check(scenario, &client(query, &parameters, &split, rows_per_page));
                }
            }
        }
    }
    println!("{ran} scenarios run, {other} are about the client alone");
    assert!(ran > 0);
}
