//! The database of the test: logical partitions that are all alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use orrery_cluster::store::{Action, Item, ItemHeader, ItemId, Op, Outcome, Precondition, Target};
use orrery_cluster::{
    AccessChoice, Child, ChildKind, Consistency, Container, ContainerDefinition, Cursor, Db, DbOptions,
    Durability, ErrorKind, Forms, ItemProperties, Outside, PageOptions, Scope, ScriptCollection, ScriptLink,
    ScriptOptions, ScriptRefusal, Storage, Throughput, WriteOptions,
};
use orrery_doc::{Doc, PartitionKey, json};
use orrery_query::{Parameters, SystemField, SystemValue};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scripts;
use crate::teller::Told;

/// Logical partitions; few, so that tellers meet.
pub const KEYS: usize = 6;
pub const ACCOUNTS: usize = 12;
const BALANCE: i64 = 100;

pub struct Bank {
    pub db: Db,
    pub container: Arc<Container>,
    pub procedures: BTreeMap<&'static str, Arc<Child>>,
    pub options: ScriptOptions,
    closed: AtomicBool,
    /// Where it is kept, if not in memory; removed with it.
    _folder: Option<TempDir>,
}

pub fn key(number: usize) -> PartitionKey {
    PartitionKey::from_header(&format!("[\"key{number}\"]")).expect("a key")
}

pub fn to_doc(value: &Value) -> Doc {
    json::parse(value.to_string().as_bytes(), 32).expect("JSON")
}

pub fn from_item(item: &Item) -> Value {
    let mut text = Vec::new();
    json::write(item.doc.root(), &mut text);
    serde_json::from_slice(&text).expect("items are JSON")
}

pub fn op(id: &str, action: Action) -> Op {
    Op {
        target: Target::Id(ItemId::new(id).expect("a short id")),
        action,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

pub fn create(item: &Value) -> Op {
    let id = item["id"].as_str().expect("items have ids");
    op(id, Action::Create(to_doc(item)))
}

impl Bank {
    /// A bank that forgets everything.
    pub async fn in_memory() -> Bank {
        Bank::open(Storage::Memory, Durability::Relaxed, None).await
    }

    /// A bank whose every write waits for the disk, which is when the next ones are worked out.
    pub async fn on_disk() -> Bank {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::Disk {
            path: folder.path().join("data"),
            cache_bytes: 8 << 20,
            disk_bytes_max: None,
            write_buffer_bytes: None,
        };
        Bank::open(storage, Durability::Durable, Some(folder)).await
    }

    async fn open(storage: Storage, durability: Durability, folder: Option<TempDir>) -> Bank {
        let db = Db::open(options(storage, durability)).expect("what is new opens");
        let database = db.create_database("bank", to_doc(&json!({"id": "bank"})), None).await.expect("new");
        let definition = json!({
            "id": "accounts",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"includedPaths": [{"path": "/kind/?"}], "excludedPaths": [{"path": "/*"}]},
        });
        let definition = ContainerDefinition::parse(&to_doc(&definition)).expect("a definition");
        let throughput = Some(Throughput::Manual(24_000));
        let container =
            db.create_container(database.resource.rid, definition, throughput).await.expect("new");
        let rid = container.resource.rid;
        let mut procedures = BTreeMap::new();
        for (name, text) in scripts::PROCEDURES {
            let body = to_doc(&json!({"id": name, "body": text}));
            let child = db.create_child(ChildKind::Procedure, rid, body).await.expect("new");
            procedures.insert(name, child);
        }
        for (name, kind, text) in
            [("countAfter", "Post", scripts::COUNT_TRIGGER), ("markBefore", "Pre", scripts::MARK_TRIGGER)]
        {
            let body = json!({"id": name, "body": text, "triggerType": kind, "triggerOperation": "Create"});
            db.create_child(ChildKind::Trigger, rid, to_doc(&body)).await.expect("new");
        }
        let options = ScriptOptions { forms: Arc::new(PlainForms::default()), logging: false };
        let bank =
            Bank { db, container, procedures, options, closed: AtomicBool::new(false), _folder: folder };
        for number in 0..KEYS {
            bank.fill(number).await;
        }
        bank
    }

    async fn fill(&self, number: usize) {
        let pk = format!("key{number}");
        let mut ops: Vec<Op> = (0..ACCOUNTS)
            .map(|account| json!({"id": format!("a{account}"), "pk": pk, "kind": "account", "balance": BALANCE}))
            .map(|item| create(&item))
            .collect();
        ops.push(create(&json!({"id": "counter", "pk": pk, "kind": "counter", "value": 0})));
        for who in ["x", "y"] {
            ops.push(create(&json!({"id": who, "pk": pk, "kind": "duty", "on": true})));
        }
        self.write(number, ops).await.expect("the bank opens");
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub async fn write(&self, number: usize, ops: Vec<Op>) -> Result<Vec<Outcome>, ErrorKind> {
        let reply = self.db.write(&self.container, &key(number), ops, &WriteOptions::default()).await;
        reply.map(|reply| reply.outcomes).map_err(|error| error.kind)
    }

    pub async fn execute(&self, name: &str, number: usize, arguments: Value) -> Result<Value, ErrorKind> {
        let (procedure, arguments) = (&self.procedures[name], arguments.to_string().into_bytes());
        let reply = self.db.execute(&self.container, procedure, &key(number), arguments, &self.options).await;
        let body = reply.map_err(|error| error.kind)?.body.expect("all procedures here answer");
        Ok(serde_json::from_slice(&body).expect("answers are JSON"))
    }

    /// What must be so at any moment.
    pub fn expected_sum() -> i64 {
        ACCOUNTS as i64 * BALANCE
    }

    /// Compares what is stored with what was acknowledged.
    pub async fn check(&self, told: &Told) -> Vec<String> {
        let mut wrong = Vec::new();
        for number in 0..KEYS {
            let items = self.items(number).await;
            let of_kind = |kind: &'static str| items.iter().filter(move |item| item["kind"] == kind);
            let mut balances: BTreeMap<String, i64> =
                (0..ACCOUNTS).map(|account| (format!("a{account}"), BALANCE)).collect();
            for entry in of_kind("entry") {
                let (from, to) = (entry["from"].as_str().expect("text"), entry["to"].as_str().expect("text"));
                let amount = entry["amount"].as_i64().expect("a number");
                *balances.get_mut(from).expect("an account") -= amount;
                *balances.get_mut(to).expect("an account") += amount;
            }
            for account in of_kind("account") {
                let (id, balance) = (account["id"].as_str().expect("text"), &account["balance"]);
                if Some(balances[id]) != balance.as_i64() {
                    wrong.push(format!("key {number}: {id} has {balance}, its entries say {}", balances[id]));
                }
            }
            let ids = |kind| -> BTreeSet<String> {
                of_kind(kind).map(|item| item["id"].as_str().expect("text").to_owned()).collect()
            };
            for (kind, acknowledged) in [("entry", &told.entries[number]), ("made", &told.made[number])] {
                let stored = ids(kind);
                let lost: Vec<_> = acknowledged.difference(&stored).take(3).collect();
                let ghosts: Vec<_> = stored.difference(acknowledged).take(3).collect();
                if !lost.is_empty() || !ghosts.is_empty() {
                    wrong.push(format!("key {number}: {kind} lost {lost:?}, not acknowledged {ghosts:?}"));
                }
            }
            if of_kind("made").any(|item| item["marked"] == Value::Null && item["triggered"] == true) {
                wrong.push(format!("key {number}: a pre-trigger did not mark its item"));
            }
            if !ids("ghost").is_empty() {
                wrong.push(format!("key {number}: there are items that only failed scripts made"));
            }
            wrong.extend(told.check_counts(number, &items));
        }
        wrong
    }

    async fn items(&self, number: usize) -> Vec<Value> {
        let page = PageOptions {
            items_max: 1_000_000,
            bytes_max: usize::MAX / 2,
            time_max: std::time::Duration::from_secs(60),
            continuation: None,
            consistency: Consistency::Session,
            session: None,
            access: AccessChoice::Auto,
            properties: Some(&LINKS),
            order: Default::default(),
        };
        let scope = Scope::Key(key(number));
        let feed = self.db.read_feed(&self.container, &scope, &page).await.expect("a feed");
        feed.items.iter().map(from_item).collect()
    }
}

fn options(storage: Storage, durability: Durability) -> DbOptions {
    DbOptions { storage, durability, ..DbOptions::in_memory("test", "here") }
}

/// Items as scripts see them, with only those system properties that the scripts here use.
#[derive(Default)]
struct PlainForms {
    /// What scripts were given to go on with; they hold its place in this list.
    cursors: Mutex<Vec<Cursor>>,
}

/// Queries show links, and nothing else besides what is stored.
#[derive(Debug)]
struct Links;

static LINKS: Links = Links;

impl ItemProperties for Links {
    fn read(&self, container: &Container, header: &ItemHeader, field: SystemField) -> SystemValue {
        match field {
            SystemField::SelfLink => SystemValue::Text(format!("{}/rids/{}", link_of(container), header.rid)),
            SystemField::Etag => SystemValue::Text(header.etag.to_header()),
            _ => SystemValue::Absent,
        }
    }

    fn write_json(&self, container: &Container, header: &ItemHeader, out: &mut Vec<u8>) {
        let link = json!(format!("{}/rids/{}", link_of(container), header.rid));
        let etag = json!(header.etag.to_header());
        out.extend_from_slice(format!("\"_self\":{link},\"_etag\":{etag}").as_bytes());
    }
}

fn link_of(container: &Container) -> String {
    format!("dbs/{}/colls/{}", container.database_id, container.resource.id)
}

impl Forms for PlainForms {
    fn read_item(&self, _: &Container, text: &[u8], _: bool) -> Result<(ItemId, Doc), ScriptRefusal> {
        let mut item: Value = serde_json::from_slice(text).expect("scripts write JSON");
        let object = item.as_object_mut().expect("scripts write objects");
        object.retain(|name, _| !name.starts_with('_'));
        let id = ItemId::new(object["id"].as_str().expect("items have ids")).expect("a short id");
        Ok((id, to_doc(&item)))
    }

    fn write_item(&self, container: &Container, item: &Item, out: &mut Vec<u8>) {
        let mut shown = from_item(item);
        let id = shown["id"].as_str().expect("items have ids");
        shown["_self"] = json!(format!("{}/docs/{id}", link_of(container)));
        shown["_etag"] = json!(item.header.etag.to_header());
        out.extend_from_slice(shown.to_string().as_bytes());
    }

    fn refusal(&self, error: &ErrorKind) -> ScriptRefusal {
        ScriptRefusal { status: 400, message: error.to_string() }
    }

    fn collection(&self, container: &Container) -> ScriptCollection {
        let link = link_of(container);
        ScriptCollection { self_link: link.clone(), alt_link: link, ..Default::default() }
    }

    fn resolve(&self, container: &Container, link: &str) -> Option<ScriptLink> {
        match link.strip_prefix(&link_of(container))? {
            "" => Some(ScriptLink::Container),
            rest => Some(ScriptLink::Item(match rest.strip_prefix("/rids/") {
                Some(rid) => Target::Rid(rid.parse().ok()?),
                None => Target::Id(ItemId::new(rest.strip_prefix("/docs/")?).ok()?),
            })),
        }
    }

    fn properties(&self) -> &'static dyn ItemProperties {
        &LINKS
    }

    fn read_query(&self, text: &str) -> Result<(String, Parameters), ScriptRefusal> {
        let query: Value = serde_json::from_str(text).expect("scripts ask in JSON");
        let parameters = to_doc(&query["parameters"]);
        let parameters = Parameters::from_value(parameters.root()).expect("good parameters");
        Ok((query["query"].as_str().expect("a text").to_owned(), parameters))
    }

    fn outside(&self, what: Outside) -> ScriptRefusal {
        ScriptRefusal { status: 400, message: format!("{what:?}") }
    }

    fn write_cursor(&self, cursor: &Cursor) -> String {
        let mut cursors = self.cursors.lock().expect("no thread panics with it");
        cursors.push(cursor.clone());
        (cursors.len() - 1).to_string()
    }

    fn read_cursor(&self, text: &str) -> Result<Cursor, ScriptRefusal> {
        let number: usize = text.parse().expect("what was written");
        Ok(self.cursors.lock().expect("no thread panics with it")[number].clone())
    }
}
