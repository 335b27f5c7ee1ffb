//! One set of documents in containers of one, four and eight physical partitions, and an oracle beside them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use orrery_cluster::store::{Action, ItemHeader, ItemId, Op, Precondition, Target};
use orrery_cluster::{
    AccessChoice, Consistency, Container, ContainerDefinition, Db, DbOptions, Durability, ErrorKind,
    ItemProperties, PageOptions, Scope, Throughput, WriteOptions,
};
use orrery_doc::{Doc, Epk, PartitionKey, epk, json};
use orrery_query::{
    Context, Features, Parameters, Program, Row, SystemField, SystemProps, SystemValue, Vocabulary,
    compile_with, describe,
};
use orrery_testkit::Random;
use orrery_testkit::sample::{self, MergePlan, Policy, Query};
use serde_json::{Value, json};

/// RU/s that start a container with 1, 4 and 8 physical partitions.
const THROUGHPUTS: [u32; 3] = [400, 24_000, 48_000];
/// More pages than any answer here has.
const PAGES_MAX: usize = 20_000;

/// How pages are asked for. Neither the size of a page nor the way to its items is part of a continuation, so
/// both may change from one page to the next.
#[derive(Clone, Debug)]
pub struct Paging {
    pub sizes: Vec<usize>,
    pub accesses: Vec<AccessChoice>,
    /// Whether the server merges what partitions answer.
    pub is_merged: bool,
}

impl Paging {
    pub fn scan(size: usize) -> Paging {
        Paging { sizes: vec![size], accesses: vec![AccessChoice::ScanOnly], is_merged: false }
    }

    fn any(random: &mut Random, sizes: &[usize]) -> Paging {
        const ACCESSES: [AccessChoice; 3] =
            [AccessChoice::Auto, AccessChoice::IndexAlways, AccessChoice::ScanOnly];
        let size = *random.pick(sizes);
        if random.one_in(8) {
            return Paging {
                sizes: vec![size, 2 * size, 5 * size],
                accesses: ACCESSES.to_vec(),
                is_merged: false,
            };
        }
        // Mostly through an index: that a scan is right is seen soon enough.
        let access = ACCESSES[random.below(5) % 3];
        Paging { sizes: vec![size], accesses: vec![access], is_merged: false }
    }
}

/// Why there are no rows.
#[derive(Debug)]
pub enum Failure {
    /// The order is one that the indexing policy does not serve.
    OrderRefused,
    NeedsPlan,
    Other(String),
}

pub type Answer = Result<Vec<String>, Failure>;

pub struct World {
    db: Db,
    /// With 1, 4 and 8 partitions.
    containers: Vec<Arc<Container>>,
    pub policy: Policy,
    /// Policies of which one's index is still in use while that of the new one is built.
    replaced: Vec<Policy>,
    documents: BTreeMap<usize, Stored>,
    /// How often each way to items was taken, by its name.
    methods: Mutex<BTreeMap<&'static str, usize>>,
}

struct Stored {
    doc: Doc,
    key: PartitionKey,
    epk: Epk,
}

impl World {
    /// Starts in memory and stores so many documents, some of which have been changed or removed since.
    pub async fn start(random: &mut Random, documents: usize) -> World {
        let db = Db::open(options()).expect("memory opens");
        let name = json!({"id": "db"});
        let database = db.create_database("db", to_doc(&name), None).await.expect("a new database");
        let policy = Policy::any(random);
        let mut containers = Vec::new();
        for units in THROUGHPUTS {
            let definition = ContainerDefinition::parse(&body(units, &policy)).expect("a valid definition");
            let throughput = Some(Throughput::Manual(units));
            let made = db.create_container(database.resource.rid, definition, throughput).await;
            containers.push(made.expect("a new container"));
        }
        let partitions: Vec<usize> = containers.iter().map(|container| container.ranges().len()).collect();
        assert_eq!(partitions, [1, 4, 8]);
        let mut world = World {
            db,
            containers,
            policy,
            replaced: Vec::new(),
            documents: BTreeMap::new(),
            methods: Mutex::default(),
        };
        for number in 0..documents {
            world.put(random, number).await;
        }
        world.disturb(random, documents / 3).await;
        world
    }

    /// Changes, removes and brings back documents.
    pub async fn disturb(&mut self, random: &mut Random, changes: usize) {
        for _ in 0..changes {
            let number = random.below(self.documents.len() + 5);
            if random.one_in(3) {
                self.remove(number).await;
            } else {
                self.put(random, number).await;
            }
        }
    }

    /// Replaces the indexing policy of all containers; the new index is built while queries go on.
    pub async fn change_policy(&mut self, policy: Policy) {
        for (container, units) in self.containers.iter_mut().zip(THROUGHPUTS) {
            let definition = container.definition.replaced_by(&body(units, &policy));
            let definition = definition.expect("an indexing policy may change");
            let replaced = self.db.replace_container(container.resource.rid, definition, None).await;
            *container = replaced.expect("the container is there");
        }
        self.replaced.push(std::mem::replace(&mut self.policy, policy));
    }

    /// Takes the containers as they are now. Returns whether every partition uses the index that the policy asks for.
    pub fn look_again(&mut self) -> bool {
        let catalog = self.db.catalog();
        for container in &mut self.containers {
            if let Some(current) = catalog.container_by_rid(container.resource.rid) {
                *container = current.clone();
            }
        }
        let is_built = self.containers.iter().all(|container| container.index_progress() == 100);
        if is_built {
            self.replaced.clear();
        }
        is_built
    }

    /// Whether an order may be refused: by the policy, or by an index that has it no more or not yet.
    pub fn may_refuse(&self, order: &[(String, bool)]) -> bool {
        self.policy.may_refuse(order) || self.replaced.iter().any(|policy| policy.may_refuse(order))
    }

    async fn put(&mut self, random: &mut Random, number: usize) {
        self.remove(number).await;
        let doc = to_doc(&sample::document(random, number));
        let def = &self.containers[0].definition.key;
        let key = PartitionKey::extract(def, doc.as_ref());
        let epk = epk(def, &key);
        self.write(&key, number, Action::Create(doc.clone())).await;
        self.documents.insert(number, Stored { doc, key, epk });
    }

    async fn remove(&mut self, number: usize) {
        if let Some(stored) = self.documents.remove(&number) {
            self.write(&stored.key, number, Action::Delete).await;
        }
    }

    async fn write(&self, key: &PartitionKey, number: usize, action: Action) {
        for container in &self.containers {
            let target = Target::Id(ItemId::new(format!("d{number}")).expect("a short id"));
            let op = Op {
                target,
                action: action.clone(),
                precondition: Precondition::None,
                indexed: true,
                unlinked: false,
            };
            let written = self.db.write(container, key, vec![op], &WriteOptions::default()).await;
            written.expect("a generated document can be written");
        }
    }

    /// What a query answers when every document is simply looked at.
    pub fn oracle(
        &self,
        query: &Query,
        text: &str,
        within: impl Fn(&PartitionKey) -> bool,
    ) -> Result<Vec<Value>, String> {
        let program = program(query, text)?;
        let system = SystemProps { ts: 1_800_000_000, ..SystemProps::default() };
        let documents = self.documents.values().filter(|stored| within(&stored.key));
        let rows =
            documents.map(|stored| Row { doc: stored.doc.as_ref(), system: Some(&system), place: &[] });
        let rows = program.run_all(rows, &Context::at(0, 0)).map_err(|error| error.to_string())?;
        Ok(parse_rows(&rows))
    }

    /// Pages of a row each cost the square of what there is for a query that looks at everything, so only small
    /// worlds have them.
    pub fn any_paging(&self, random: &mut Random) -> Paging {
        let sizes = if self.documents.len() < 100 { [1, 7, 1_000] } else { [30, 100, 1_000] };
        Paging::any(random, &sizes)
    }

    pub fn any_key(&self, random: &mut Random) -> PartitionKey {
        let place = random.below(self.documents.len());
        self.documents.values().nth(place).map_or_else(PartitionKey::default, |stored| stored.key.clone())
    }

    /// All pages of a query over part of one container.
    pub async fn ask(
        &self,
        place: usize,
        query: &Query,
        text: &str,
        scope: &Scope,
        paging: &Paging,
    ) -> Answer {
        let rows = self.ask_values(place, query, text, scope, paging).await?;
        Ok(rows.iter().map(sample::canonical).collect())
    }

    async fn ask_values(
        &self,
        place: usize,
        query: &Query,
        text: &str,
        scope: &Scope,
        paging: &Paging,
    ) -> Result<Vec<Value>, Failure> {
        let program = program(query, text).map_err(Failure::Other)?;
        let (mut found, mut continuation) = (Vec::new(), None);
        for turn in 0..PAGES_MAX {
            let size = paging.sizes[turn % paging.sizes.len()];
            let access = paging.accesses[turn % paging.accesses.len()];
            let options = PageOptions { continuation, access, ..page_options(size) };
            let container = &self.containers[place];
            let answer = match paging.is_merged {
                true => self.db.query_merged(container, scope, &program, &options).await,
                false => self.db.query(container, scope, &program, &options).await,
            };
            let answer = answer.map_err(|error| failure(&error.kind))?;
            if answer.rows.len() > size {
                return Err(Failure::Other(format!(
                    "a page of {} rows instead of {size}",
                    answer.rows.len()
                )));
            }
            let mut methods = self.methods.lock().expect("nobody panics with it");
            *methods.entry(answer.plan.method.name()).or_default() += 1;
            drop(methods);
            found.extend(parse_rows(&answer.rows));
            continuation = answer.continuation;
            if continuation.is_none() {
                return Ok(found);
            }
        }
        Err(Failure::Other("the pages never end".to_owned()))
    }

    /// The query as an SDK runs it: a plan, the rewritten query to every range that the plan names, a merge.
    pub async fn ask_as_client(&self, place: usize, query: &Query, paging: &Paging) -> Answer {
        self.resume_as_client(place, query, "true", paging).await
    }

    /// The same for a client that goes on behind the rows for which the condition is false.
    pub async fn resume_as_client(
        &self,
        place: usize,
        query: &Query,
        filter: &str,
        paging: &Paging,
    ) -> Answer {
        let container = &self.containers[place];
        let text = query.text();
        let plan = describe(&text, &parameters(query), &container.definition.key, &Features::all());
        let plan = plan.map_err(|error| Failure::Other(format!("no plan: {error}")))?;
        let plan = MergePlan::new(serde_json::from_str(&plan.to_json()).expect("a plan is JSON"));
        let rewritten = plan.rewritten_behind(&text, filter);
        let mut answers = Vec::new();
        for range in container.ranges() {
            if !plan.asks(&range.range.min.to_hex(), &range.range.max.to_hex()) {
                continue;
            }
            let scope = Scope::Range { range_id: range.id, epk: None };
            let answer = self.ask_values(place, query, &rewritten, &scope, paging).await;
            answers.push(answer.map_err(|failure| failure.about(&rewritten))?);
        }
        Ok(sample::merge(&plan, answers).iter().map(sample::canonical).collect())
    }

    /// Splits the key space between two documents.
    pub fn any_range(&self, random: &mut Random) -> orrery_doc::EpkRange {
        let place = random.below(self.documents.len());
        let edge = self.documents.values().nth(place).map_or_else(Epk::max, |stored| stored.epk.clone());
        let full = orrery_doc::EpkRange::full();
        match random.one_in(2) {
            true => orrery_doc::EpkRange::new(full.min, edge),
            false => orrery_doc::EpkRange::new(edge, full.max),
        }
    }

    pub fn is_within(&self, key: &PartitionKey, range: &orrery_doc::EpkRange) -> bool {
        range.contains(&epk(&self.containers[0].definition.key, key))
    }

    /// Ends the database and says how often each way to items was taken.
    pub async fn close(self) -> BTreeMap<&'static str, usize> {
        self.db.close().await;
        self.methods.into_inner().expect("nobody panics with it")
    }
}

impl Failure {
    fn about(self, text: &str) -> Failure {
        match self {
            Failure::Other(reason) => Failure::Other(format!("{reason}, for {text}")),
            failure => failure,
        }
    }
}

fn options() -> DbOptions {
    DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("metamorphic", "here") }
}

/// Items show when they were written, and nothing else besides what is stored.
#[derive(Debug)]
struct Stamps;

impl ItemProperties for Stamps {
    fn read(&self, _: &Container, header: &ItemHeader, field: SystemField) -> SystemValue {
        match field {
            SystemField::Ts => SystemValue::Int(header.ts() as i64),
            _ => SystemValue::Absent,
        }
    }

    fn write_json(&self, _: &Container, header: &ItemHeader, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\"_ts\":{}", header.ts()).as_bytes());
    }
}

fn page_options(items_max: usize) -> PageOptions {
    PageOptions {
        items_max,
        bytes_max: orrery_cluster::limits::PAGE_BYTES_MAX,
        time_max: orrery_testkit::PATIENCE,
        continuation: None,
        consistency: Consistency::Session,
        session: None,
        access: AccessChoice::Auto,
        properties: Some(&Stamps),
        order: Default::default(),
    }
}

fn body(units: u32, policy: &Policy) -> Doc {
    let computed = sample::COMPUTED.iter().map(|(name, query)| json!({"name": name, "query": query}));
    to_doc(&json!({
        "id": format!("c{units}"),
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": policy.body,
        "computedProperties": computed.collect::<Vec<_>>(),
    }))
}

fn to_doc(value: &Value) -> Doc {
    json::parse(value.to_string().as_bytes(), 128).expect("generated JSON is JSON")
}

fn parameters(query: &Query) -> Parameters {
    Parameters::from_value(to_doc(&query.parameters_json()).root())
        .expect("generated parameters are parameters")
}

fn program(query: &Query, text: &str) -> Result<Program, String> {
    let properties = Vocabulary::new(sample::COMPUTED).expect("the definitions are valid");
    compile_with(text, &parameters(query), &properties).map_err(|error| format!("{text}: {error}"))
}

fn parse_rows(rows: &orrery_query::Rows) -> Vec<Value> {
    rows.iter().map(|row| serde_json::from_slice(row).expect("rows are JSON")).collect()
}

fn failure(kind: &ErrorKind) -> Failure {
    let text = kind.to_string();
    match kind {
        ErrorKind::NeedsQueryPlan => Failure::NeedsPlan,
        _ if text.contains("composite index") || text.contains("order-by item is excluded") => {
            Failure::OrderRefused
        }
        _ => Failure::Other(text),
    }
}
