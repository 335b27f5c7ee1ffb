//! Each of the three orders of terms, asked for as a gateway asks for it: by the order that the container's definition
//! names, with an index and without, over four partitions.
//!
//! The values are of all types that the document format has. What is wanted is said by the slow reference that the tests
//! of the format have for the orders of BSON and CQL, and for SQL by the comparison that they hold to theirs.

#[path = "../../../crates/doc/tests/common/typed.rs"]
#[expect(dead_code, reason = "the tests of the format use the rest")]
mod typed;

use std::cmp::Ordering;
use std::sync::Arc;

use orrery_cluster::store::{Action, ItemId, Op, Precondition, Target};
use orrery_cluster::{
    AccessChoice, Account, Api, Consistency, Container, ContainerDefinition, Db, DbOptions, Durability,
    ItemOrder, PageOptions, QueryPage, Scope, Storage, Throughput, WriteOptions, limits,
};
use orrery_doc::{Doc, DocBuilder, KeyComponent, PartitionKey, TermOrder, Value, compare_in, json};
use orrery_query::{Documents, Parameters, compile_with, order_key};
use orrery_testkit::Random;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use typed::{Any, any_value, reference};

/// RU/s that start a container with four physical partitions.
const FOUR_PARTITIONS: u32 = 24_000;
const VALUES: usize = 120;
/// Of the values, with how many all are compared.
const COMPARED: usize = 12;
const PAGE_ITEMS: usize = 17;

/// A container of one order, and what is in it.
struct World {
    db: Db,
    container: Arc<Container>,
    values: Vec<Any>,
}

impl World {
    async fn new(api: Api, order: TermOrder, values: Vec<Any>) -> World {
        let account = Account {
            name: "orders".into(),
            region: "here".into(),
            consistency: Consistency::Session,
            serverless: false,
        };
        let options = DbOptions {
            storage: Storage::Memory,
            durability: Durability::Durable,
            limits: Default::default(),
            throttle: false,
            account,
            memory: Default::default(),
        };
        let db = Db::open(options).expect("a database in memory");
        let mut body = DocBuilder::new();
        body.begin_object().name("id").str("d").end_object();
        let database = db.create_database("d", body.finish(), None).await.expect("a database");
        let definition = ContainerDefinition::of_api(api, order, &definition_of(order)).expect("a container");
        let container = db
            .create_container(database.resource.rid, definition, Some(Throughput::Manual(FOUR_PARTITIONS)))
            .await
            .expect("a container");
        let world = World { db, container, values };
        for place in 0..world.values.len() {
            world.write(place).await;
        }
        world
    }

    /// The order that the definition names, as a gateway would ask for it.
    fn order(&self) -> TermOrder {
        self.container.definition.order
    }

    async fn write(&self, place: usize) {
        let (key, id) = (format!("key {place}"), place.to_string());
        let mut item = DocBuilder::new();
        item.begin_object().name("id").str(&id).name("pk").str(&key).name("v");
        self.values[place].put(&mut item);
        item.end_object();
        let target = Target::Id(ItemId::new(id.as_str()).expect("a short id"));
        let action = Action::Create(item.finish());
        let op = Op { target, action, precondition: Precondition::None, indexed: true, unlinked: false };
        let key = PartitionKey(vec![KeyComponent::Str(key)]);
        self.db.write(&self.container, &key, vec![op], &WriteOptions::default()).await.expect("a write");
    }

    /// The places of the values that a query finds, in the order in which they come.
    async fn found(&self, rest: &str, key: &str, access: AccessChoice) -> Vec<usize> {
        let mut parameters = Parameters::new();
        parameters.set("@key", Value::Str(key));
        let vocabulary =
            self.container.definition.vocabulary().expect("its computed property is a right one");
        let text = format!("SELECT VALUE c.id FROM c {rest}");
        let program = compile_with(&text, &parameters, vocabulary).expect("a query");
        let mut options = PageOptions {
            items_max: PAGE_ITEMS,
            bytes_max: limits::PAGE_BYTES_MAX,
            time_max: std::time::Duration::from_secs(60),
            continuation: None,
            consistency: self.db.account().consistency,
            session: None,
            access,
            properties: None,
            order: ItemOrder::Keys,
        };
        let mut found = Vec::new();
        loop {
            let page: QueryPage<Documents> = self
                .db
                .query_merged_into(&self.container, &Scope::Container, &program, &options)
                .await
                .expect("an answer");
            let place =
                |row: &Doc| row.root().as_str().and_then(|id| id.parse::<usize>().ok()).expect("an id");
            found.extend(page.rows.iter().map(place));
            options.continuation = page.continuation;
            if options.continuation.is_none() {
                return found;
            }
        }
    }

    /// How two of the values sort.
    fn wanted(&self, one: usize, other: usize) -> Ordering {
        let (one, other) = (&self.values[one], &self.values[other]);
        match self.order() {
            TermOrder::Sql => compare_in(TermOrder::Sql, one.build().root(), other.build().root()),
            order => reference(one, other, order),
        }
    }

    async fn check_sorting(&self, access: AccessChoice) {
        for (direction, last) in [("ASC", Ordering::Greater), ("DESC", Ordering::Less)] {
            let found = self.found(&format!("ORDER BY c.k {direction}"), "", access).await;
            for pair in found.windows(2) {
                let (one, other) = (&self.values[pair[0]], &self.values[pair[1]]);
                let text = format!("{direction} in the order {:?}: {one:?} before {other:?}", self.order());
                assert_ne!(self.wanted(pair[0], pair[1]), last, "{text}");
            }
            assert_eq!(sorted(found), (0..VALUES).collect::<Vec<_>>(), "{direction}: each value once");
        }
    }

    async fn check_comparing(&self, with: usize, access: AccessChoice) {
        type Holds = fn(Ordering) -> bool;
        let operators: [(&str, Holds); 5] = [
            ("=", Ordering::is_eq),
            ("<", Ordering::is_lt),
            ("<=", Ordering::is_le),
            (">", Ordering::is_gt),
            (">=", Ordering::is_ge),
        ];
        let key = order_key(self.values[with].build().root(), self.order());
        for (operator, holds) in operators {
            let found = sorted(self.found(&format!("WHERE c.k {operator} @key"), &key, access).await);
            let wanted: Vec<usize> = (0..VALUES).filter(|place| holds(self.wanted(*place, with))).collect();
            let text = format!("{operator} {:?} in the order {:?}", self.values[with], self.order());
            assert_eq!(found, wanted, "{text}");
        }
    }
}

/// Only the keys of values are indexed, in the container's own order.
fn definition_of(order: TermOrder) -> Doc {
    let name = match order {
        TermOrder::Sql => "sql",
        TermOrder::Bson => "bson",
        TermOrder::Cql => "cql",
    };
    let text = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},
            "computedProperties":[{{"name":"k","query":"SELECT VALUE ORDERKEY('{name}', c.v) FROM c"}}],
            "indexingPolicy":{{"includedPaths":[{{"path":"/k/?"}}],"excludedPaths":[{{"path":"/*"}}]}}}}"#
    );
    json::parse(text.as_bytes(), 8).expect("JSON")
}

fn sorted(mut places: Vec<usize>) -> Vec<usize> {
    places.sort_unstable();
    places
}

/// Values of all types, of which some are there twice.
fn values(random: &mut Random) -> Vec<Any> {
    let mut seed = [0; 32];
    seed.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut made: Vec<Any> = Vec::with_capacity(VALUES);
    while made.len() < VALUES {
        let next = match made.is_empty() || !random.one_in(10) {
            true => any_value().new_tree(&mut runner).expect("a value").current(),
            false => made[random.below(made.len())].clone(),
        };
        made.push(next);
    }
    made
}

#[tokio::test(flavor = "multi_thread")]
async fn each_order_sorts_and_compares_as_it_should_with_an_index_and_without() {
    let mut random = Random::from_environment();
    for (api, order) in
        [(Api::NoSql, TermOrder::Sql), (Api::Mongo, TermOrder::Bson), (Api::Cassandra, TermOrder::Cql)]
    {
        let world = World::new(api, order, values(&mut random)).await;
        assert!(world.container.ranges().len() == 4, "the server merges over partitions");
        for access in [AccessChoice::ScanOnly, AccessChoice::IndexAlways] {
            world.check_sorting(access).await;
            for _ in 0..COMPARED {
                world.check_comparing(random.below(VALUES), access).await;
            }
        }
    }
}
