//! What changes of the catalog write, as golden scripts: `scripts/*.txt`.
//!
//! After each step the records of the catalog are compared with those of before: new ones (`+`), changed ones (`~`) and those
//! that are gone (`-`). What tasks in the background write in their own time is left out: which index is built by now, what
//! is erased already, and the number of the last generation of entries.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use orrery_doc::{Doc, TermOrder, json};
use orrery_store::Item;
use orrery_store::engine::Keyspace;
use orrery_testkit::script::{self, Runner};

use super::{Api, Container, ContainerDefinition, Record};
use crate::db::Db;
use crate::error::Result;
use crate::options::{DbOptions, Durability};
use crate::request::Throughput;

struct World {
    runtime: Arc<tokio::runtime::Runtime>,
    db: Db,
}

impl World {
    fn new(runtime: Arc<tokio::runtime::Runtime>) -> World {
        let options =
            DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("scripts", "here") };
        let _inside = runtime.enter();
        let db = Db::open(options).expect("memory opens");
        World { runtime, db }
    }

    fn step(&mut self, step: &str) -> String {
        let before = if step == "records" { BTreeMap::new() } else { self.records() };
        let mut said = String::new();
        for line in step.lines() {
            if let Err(error) = self.runtime.block_on(change(&self.db, line)) {
                said.push_str(&format!("refused: {}\n", error.kind));
            }
        }
        let after = self.records();
        for (id, text) in &before {
            if !after.contains_key(id) {
                said.push_str(&format!("- {text}\n"));
            }
        }
        for (id, text) in &after {
            match before.get(id) {
                None => said.push_str(&format!("+ {text}\n")),
                Some(old) if old != text => said.push_str(&format!("~ {text}\n")),
                Some(_) => {}
            }
        }
        if said.is_empty() { "nothing changed\n".to_owned() } else { said }
    }

    /// The records of the catalog as they are stored, by their ids.
    fn records(&self) -> BTreeMap<String, String> {
        let snapshot = self.db.inner.committer.snapshot();
        let (lower, upper) = orrery_store::keys::item_range(0, &orrery_doc::EpkRange::full());
        let rows = snapshot.range(Keyspace::Item, Bound::Included(&lower), Bound::Excluded(&upper), false);
        let mut records = BTreeMap::new();
        for row in rows {
            let (key, value) = row.expect("memory does not fail");
            let id = orrery_store::keys::parse_item(&key).expect("the key of an item").1.id.to_string();
            let mut record = Record::from_doc(&Item::decode(&value).expect("an item").doc).expect("a record");
            match &mut record {
                Record::Index(_) | Record::Retired(_) | Record::Dropped(_) | Record::Hours(_) => continue,
                Record::Counters(counters) => counters.generation = 0,
                _ => {}
            }
            records.insert(id, serde_json::to_string(&record).expect("plain data"));
        }
        records
    }
}

/// Carries out one line.
async fn change(db: &Db, line: &str) -> Result<()> {
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    match words[..] {
        ["records"] => {}
        ["database", name, ref units @ ..] => {
            db.create_database(name, parse(&format!(r#"{{"id":"{name}"}}"#)), throughput(units)).await?;
        }
        ["drop", name] => {
            let database = db.catalog().database(name).expect("a database").resource.rid;
            db.delete_database(database, None).await?;
        }
        ["drop", database, name] => {
            db.delete_container(container(db, database, name).resource.rid, None).await?
        }
        ["container", database, name, ref units @ ..] => {
            create(db, database, ContainerDefinition::parse(&body(name, "Hash"))?, units).await?;
        }
        ["mongo", database, name, ref units @ ..] => {
            let definition = ContainerDefinition::of_api(Api::Mongo, TermOrder::Bson, &body(name, "Exact"))?;
            create(db, database, definition, units).await?;
        }
        ["cassandra", database, name, ref units @ ..] => {
            let definition =
                ContainerDefinition::of_api(Api::Cassandra, TermOrder::Cql, &body(name, "Token"))?;
            create(db, database, definition, units).await?;
        }
        ["policy", database, name, policy] => {
            let current = container(db, database, name);
            let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
            let new = parse(&format!(r#"{{"id":"{name}",{key},"indexingPolicy":{policy}}}"#));
            let definition = current.definition.replaced_by(&new)?;
            db.replace_container(current.resource.rid, definition, None).await?;
        }
        ["offer", database, name, units] => {
            let units: Vec<&str> = units.split(' ').collect();
            let rid = container(db, database, name).resource.rid;
            let offer = db.catalog().offer_of(rid).expect("an offer").rid;
            db.replace_offer(offer, throughput(&units).expect("RU/s"), None).await?;
        }
        ["split", database, name, rest] => {
            let mut numbers = rest.split(' ').map(|number| number.parse::<u32>().expect("a number"));
            let (range, children) = (numbers.next().expect("a range"), numbers.next().unwrap_or(2));
            db.split(&container(db, database, name), range, children).await?;
        }
        _ => panic!("no command: {line}"),
    }
    Ok(())
}

async fn create(db: &Db, database: &str, definition: ContainerDefinition, units: &[&str]) -> Result<()> {
    let owner = db.catalog().database(database).expect("a database").resource.rid;
    db.create_container(owner, definition, throughput(units)).await.map(drop)
}

fn container(db: &Db, database: &str, name: &str) -> Arc<Container> {
    let catalog = db.catalog();
    catalog.database(database).and_then(|database| database.container(name).cloned()).expect("a container")
}

fn body(name: &str, kind: &str) -> Doc {
    let version = if kind == "Hash" { r#","version":2"# } else { "" };
    parse(&format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"kind":"{kind}"{version}}}}}"#))
}

fn parse(text: &str) -> Doc {
    json::parse(text.as_bytes(), 32).expect("a script has JSON")
}

fn throughput(words: &[&str]) -> Option<Throughput> {
    let number = |text: &str| text.parse().expect("RU/s");
    match words {
        [] => None,
        ["auto", max] => Some(Throughput::Autoscale { max: number(max), increment_percent: None }),
        [units, ..] => Some(Throughput::Manual(number(units))),
    }
}

#[test]
fn records_of_the_catalog_are_those_of_the_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/catalog/scripts");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let runtime = Arc::new(runtime);
    let begin = || -> Runner {
        let mut world = World::new(runtime.clone());
        Box::new(move |step| world.step(step))
    };
    assert!(script::run(&folder, begin) >= 13);
}
