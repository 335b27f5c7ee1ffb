//! Whatever way items are found, the rows and their order are the same, page by page.

mod creation;

use std::sync::Arc;
use std::time::Duration;

use orrery_doc::{Doc, PartitionKey, json};
use orrery_query::{Documents, Parameters, Rows, SystemField, SystemValue, compile};
use orrery_store::{Action, ItemHeader, ItemId, Op, Precondition, Target};

use super::QuerySteward;
use crate::turns::shortly;
use crate::{
    AccessChoice, Consistency, Consumer, Container, ContainerDefinition, Db, DbOptions, ErrorKind,
    ItemProperties, Method, PageOptions, QueryPage, Scope, Throughput, WriteOptions,
};

const ACCESSES: [AccessChoice; 3] = [AccessChoice::ScanOnly, AccessChoice::Auto, AccessChoice::IndexAlways];

struct World {
    db: Db,
    container: Arc<Container>,
}

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 64).expect("test documents are JSON")
}

fn key(name: &str) -> PartitionKey {
    PartitionKey::from_header(&format!("[\"{name}\"]")).expect("a plain key")
}

fn page_options() -> PageOptions {
    PageOptions {
        items_max: 10,
        bytes_max: 4 << 20,
        time_max: orrery_testkit::PATIENCE,
        continuation: None,
        consistency: Consistency::Session,
        session: None,
        access: AccessChoice::Auto,
        properties: Some(&Stamps),
        order: Default::default(),
    }
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

impl World {
    async fn new(policy: &str, throughput: u32) -> World {
        let options = DbOptions::in_memory("test", "Test");
        let db = Db::open(options).expect("memory opens");
        let database = db.create_database("db", doc(r#"{"id":"db"}"#), None).await.expect("a new database");
        let body = format!(
            r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},"indexingPolicy":{policy}}}"#
        );
        let definition = ContainerDefinition::parse(&doc(&body)).expect("a good definition");
        let throughput = Some(Throughput::Manual(throughput));
        let container = db.create_container(database.resource.rid, definition, throughput).await;
        World { db, container: container.expect("a new container") }
    }

    async fn put(&self, pk: &str, id: &str, rest: &str, indexed: bool) {
        let body = doc(&format!(r#"{{"id":"{id}","pk":"{pk}"{rest}}}"#));
        let op = Op {
            target: Target::Id(ItemId::new(id).expect("a short id")),
            action: Action::Upsert(body),
            precondition: Precondition::None,
            indexed,
            unlinked: false,
        };
        let written = self.db.write(&self.container, &key(pk), vec![op], &WriteOptions::default()).await;
        written.expect("a good write");
    }

    /// Deletes an item of the first logical partition.
    async fn delete(&self, id: &str) {
        let op = Op {
            target: Target::Id(ItemId::new(id).expect("a short id")),
            action: Action::Delete,
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        let written = self.db.write(&self.container, &key("p0"), vec![op], &WriteOptions::default()).await;
        written.expect("a good delete");
    }

    async fn page(
        &self,
        scope: &Scope,
        text: &str,
        access: AccessChoice,
        size: usize,
        continuation: Option<crate::Cursor>,
        merged: bool,
    ) -> QueryPage {
        let program = self.db.compile(&self.container, text, &Parameters::default()).expect(text);
        let page = PageOptions { items_max: size, continuation, access, ..page_options() };
        let answer = match merged {
            true => self.db.query_merged(&self.container, scope, &program, &page).await,
            false => self.db.query(&self.container, scope, &program, &page).await,
        };
        answer.unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    /// The rows as documents, in pages of a few, shown as JSON.
    async fn documents(&self, scope: &Scope, text: &str, access: AccessChoice, merged: bool) -> Vec<String> {
        let program = compile(text, &Parameters::default()).expect(text);
        let mut page = PageOptions { items_max: 3, access, ..page_options() };
        let mut rows = Vec::new();
        loop {
            let answer = match merged {
                true => self.db.query_merged_into(&self.container, scope, &program, &page).await,
                false => self.db.query_into(&self.container, scope, &program, &page).await,
            };
            let answer: QueryPage<Documents> = answer.unwrap_or_else(|error| panic!("{text}: {error:?}"));
            rows.extend(answer.rows.iter().map(|row| {
                let mut out = Vec::new();
                json::write(row.root(), &mut out);
                String::from_utf8(out).expect("JSON is UTF-8")
            }));
            page.continuation = answer.continuation;
            if page.continuation.is_none() {
                return rows;
            }
        }
    }

    /// All rows, with pages that take the ways in turn.
    async fn rows(
        &self,
        scope: &Scope,
        text: &str,
        ways: &[AccessChoice],
        size: usize,
        merged: bool,
    ) -> Vec<String> {
        let mut rows = Vec::new();
        let mut continuation = None;
        for turn in 0.. {
            assert!(turn < 10_000, "{text} does not end");
            let access = ways[turn % ways.len()];
            let page = self.page(scope, text, access, size, continuation, merged).await;
            assert!(page.rows.len() <= size, "{text}");
            rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
            continuation = page.continuation;
            if continuation.is_none() {
                break;
            }
        }
        rows
    }

    /// Compares every way with a plain scan in one page.
    async fn check(&self, scope: &Scope, text: &str, merged: bool) {
        let expected = self.rows(scope, text, &[AccessChoice::ScanOnly], 10_000, merged).await;
        for size in [1, 7, 1_000] {
            for access in ACCESSES {
                let found = self.rows(scope, text, &[access], size, merged).await;
                assert_eq!(found, expected, "{text} with {access:?}, pages of {size}");
            }
            let found = self.rows(scope, text, &ACCESSES, size, merged).await;
            assert_eq!(found, expected, "{text} with changing ways, pages of {size}");
        }
        for access in ACCESSES {
            let found = self.documents(scope, text, access, merged).await;
            assert_eq!(found, expected, "{text} with {access:?}, as documents");
        }
    }
}

/// Values that are hard to order: missing, of all types, long with equal beginnings, equal in many items.
fn value(number: u64) -> String {
    let long = "x".repeat(130);
    match number % 13 {
        0 => String::new(),
        1 => r#","a":null"#.into(),
        2 => format!(r#","a":{}"#, number.is_multiple_of(2)),
        3 => format!(r#","a":{}"#, number % 5),
        4 => format!(r#","a":{}.5"#, number % 7),
        5 => format!(r#","a":"{}""#, number % 4),
        6 | 7 => format!(r#","a":"{long}{}""#, 100 - number % 50),
        8 => format!(r#","a":[{},"{long}",{number}]"#, number % 2),
        9 => format!(r#","a":{{"b":{}}}"#, number % 3),
        10 => r#","a":[]"#.into(),
        _ => r#","a":"same""#.into(),
    }
}

async fn varied(throughput: u32, policy: &str) -> World {
    let world = World::new(policy, throughput).await;
    for number in 0..240u64 {
        // Ids do not follow the order of creation, which is what breaks ties.
        let id = format!("i{:03}", number * 77 % 240);
        let rest =
            format!(r#"{},"n":{number},"t":[{},{}]"#, value(number * 31 % 240), number % 5, number % 3);
        world.put(&format!("p{}", number % 3), &id, &rest, true).await;
    }
    for number in (0..240u64).step_by(9) {
        let id = format!("i{:03}", number * 77 % 240);
        let rest = format!(r#"{},"n":{}"#, value(number + 3), number % 20);
        world.put(&format!("p{}", number % 3), &id, &rest, true).await;
    }
    world
}

const COMPOSITE: &str = r#"{"includedPaths":[{"path":"/*"}],"compositeIndexes":[
    [{"path":"/a","order":"ascending"},{"path":"/n","order":"descending"}]]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn rows_do_not_depend_on_the_way() {
    let world = varied(400, COMPOSITE).await;
    let queries = [
        "SELECT * FROM c WHERE c.n < 30",
        "SELECT c.id, c.a FROM c ORDER BY c.a",
        "SELECT VALUE c.id FROM c ORDER BY c.a DESC",
        "SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.a) ORDER BY c.a",
        "SELECT VALUE c.id FROM c WHERE c.a >= 'same' ORDER BY c.a DESC",
        "SELECT VALUE c.id FROM c WHERE c.n < 40 ORDER BY c.a OFFSET 3 LIMIT 20",
        "SELECT TOP 30 VALUE c.id FROM c ORDER BY c._ts DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.a, c.n DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.n",
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.t ORDER BY c.a DESC",
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.t WHERE c.a = 'same'",
        "SELECT VALUE c.id FROM c WHERE c.a = 'same' ORDER BY c.id",
        "SELECT VALUE c.id FROM c WHERE c.a = 'same' AND c.n > 100",
        "SELECT VALUE c.id FROM c WHERE c.a = 'same' OR c.n < 5",
        "SELECT VALUE c.id FROM c WHERE c.a IN (1, 'same', null, true)",
        "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.t, 4)",
        "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.t WHERE t > 3)",
        "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.a, 'xx') OFFSET 4 LIMIT 9",
        "SELECT VALUE c.id FROM c WHERE c.pk = 'p1' AND c.n > 200",
        "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.a)",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.a = 'same'",
        "SELECT VALUE COUNT(c.a) FROM c WHERE c.n > 17",
        "SELECT VALUE COUNT(1) FROM c WHERE c.n > 17 AND c.a IN ('same', 1)",
        "SELECT VALUE MIN(c.n) FROM c",
        "SELECT VALUE MAX(c.n) FROM c WHERE c.n < 100",
        "SELECT VALUE MIN(c.a) FROM c",
        "SELECT VALUE MAX(c.a) FROM c WHERE IS_STRING(c.a)",
        "SELECT MIN(c.n) AS m, COUNT(c.n) AS k FROM c WHERE c.n >= 20",
        "SELECT c.a, COUNT(1) AS k FROM c WHERE c.n > 9 GROUP BY c.a",
        "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
        "SELECT c.few, COUNT(1) AS k, COUNT('x') + 1 AS j FROM c GROUP BY c.few",
        "SELECT COUNT(1) AS k, c.t FROM c GROUP BY c.t",
        "SELECT DISTINCT VALUE c.a FROM c",
        "SELECT DISTINCT c.few FROM c",
        "SELECT DISTINCT VALUE c.few FROM c WHERE c.few > 1",
        "SELECT DISTINCT VALUE c.n % 7 FROM c WHERE c.a = 'same' ORDER BY c.n",
    ];
    for scope in [Scope::Container, Scope::Key(key("p1"))] {
        for text in queries {
            world.check(&scope, text, false).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_merges_as_one_partition_would_answer() {
    let (one, many) = (varied(400, COMPOSITE).await, varied(24_000, COMPOSITE).await);
    assert!(many.container.ranges().len() > 1);
    for text in [
        "SELECT VALUE c.id FROM c ORDER BY c.a",
        "SELECT VALUE c.id FROM c WHERE c.n > 30 ORDER BY c.a DESC, c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC OFFSET 5 LIMIT 50",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.a = 'same'",
        "SELECT VALUE MAX(c.n) FROM c",
        "SELECT c.a, SUM(c.n) AS s FROM c GROUP BY c.a",
        "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
        "SELECT COUNT(1) AS k, c.missing FROM c GROUP BY c.missing",
        "SELECT VALUE c.id FROM c WHERE c.n < 50",
        "SELECT VALUE 1",
    ] {
        one.check(&Scope::Container, text, true).await;
        many.check(&Scope::Container, text, true).await;
        let mut rows = many.rows(&Scope::Container, text, &[AccessChoice::Auto], 7, true).await;
        let mut expected = one.rows(&Scope::Container, text, &[AccessChoice::ScanOnly], 1_000, false).await;
        // Rids, which break ties, are given by each partition for itself.
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_page_over_the_only_partition_is_answered_at_once() {
    let world = World::new(r#"{"includedPaths":[{"path":"/*"}]}"#, 400).await;
    for (id, rest) in [("a", r#","n":2"#), ("b", ""), ("c", r#","n":1"#)] {
        world.put("p", id, rest, true).await;
    }
    // An item without the value is in no index of it, so that no order can be merged.
    let text = "SELECT VALUE c.id FROM c ORDER BY c.n";
    let program = world.db.compile(&world.container, text, &Parameters::default()).expect(text);
    let (options, steward) = (page_options(), QuerySteward::new(&world.db.inner.memory, None));
    let (container, scope) = (&world.container, &Scope::Container);
    let page = shortly(|| world.db.merged_page::<Rows>(container, scope, &program, &options, &steward));
    let page = page.expect("nobody else is waited for").expect(text);
    let rows: Vec<&[u8]> = page.rows.iter().collect();
    assert_eq!(rows, [b"\"b\"", b"\"c\"", b"\"a\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_vanishes_between_pages_takes_only_its_own_rows_along() {
    let world = World::new(r#"{"includedPaths":[{"path":"/*"}]}"#, 400).await;
    for id in ["a", "b", "c"] {
        world.put("p", id, r#","t":[1,2,3]"#, true).await;
    }
    let text = "SELECT VALUE CONCAT(c.id, ToString(t)) FROM c JOIN t IN c.t";
    for (access, next) in
        [(AccessChoice::Auto, AccessChoice::ScanOnly), (AccessChoice::ScanOnly, AccessChoice::Auto)]
    {
        let first = world.page(&Scope::Key(key("p")), text, access, 4, None, false).await;
        assert_eq!(first.rows.len(), 4);
        world.put("p", "b", r#","t":[]"#, true).await;
        let rest = world.page(&Scope::Key(key("p")), text, next, 10, first.continuation, false).await;
        let rows: Vec<&[u8]> = rest.rows.iter().collect();
        assert_eq!(rows, [b"\"c1\"", b"\"c2\"", b"\"c3\""]);
        world.put("p", "b", r#","t":[1,2,3]"#, true).await;
    }
    let first = world.page(&Scope::Key(key("p")), text, AccessChoice::Auto, 4, None, false).await;
    let op = Op {
        target: Target::Id("b".into()),
        action: Action::Delete,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    };
    let deleted = world.db.write(&world.container, &key("p"), vec![op], &WriteOptions::default()).await;
    deleted.expect("the item is there");
    let rest =
        world.page(&Scope::Key(key("p")), text, AccessChoice::Auto, 10, first.continuation, false).await;
    assert_eq!(rest.rows.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_kept_out_of_the_index_are_still_found() {
    let world = varied(400, COMPOSITE).await;
    world.put("p1", "hidden", r#","a":"same","n":1000"#, false).await;
    for text in [
        "SELECT VALUE c.id FROM c WHERE c.n = 1000",
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT VALUE COUNT(1) FROM c WHERE c.a = 'same'",
        "SELECT VALUE MAX(c.n) FROM c",
    ] {
        world.check(&Scope::Container, text, false).await;
    }
    let found =
        world.rows(&Scope::Container, "SELECT VALUE c.id FROM c WHERE c.n = 1000", &ACCESSES, 10, false);
    assert_eq!(found.await, [r#""hidden""#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_saves_the_work() {
    let world = World::new(r#"{"includedPaths":[{"path":"/*"}]}"#, 400).await;
    for number in 0..3_000u64 {
        let rest = format!(r#","n":{number},"few":{},"s":"{}""#, number % 3, number % 1_000);
        world.put(&format!("p{}", number % 50), &format!("i{}", number * 7 % 3_000), &rest, true).await;
    }
    let cases = [
        // Query, way, the most documents and the most entries it may take.
        ("SELECT VALUE COUNT(1) FROM c", Method::Count, 0, 0),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.few = 1", Method::Count, 0, 1_100),
        ("SELECT VALUE [{\"item\": COUNT(1)}] FROM c", Method::Count, 0, 0),
        ("SELECT VALUE MAX(c.n) FROM c", Method::Extreme, 1, 4),
        ("SELECT VALUE c.id FROM c WHERE c.s = '77'", Method::Index, 3, 16),
        ("SELECT VALUE c.id FROM c WHERE c.n BETWEEN 100 AND 119", Method::Index, 20, 60),
        ("SELECT VALUE c.id FROM c WHERE c.few = 1 AND c.s IN ('77', '78')", Method::Index, 6, 200),
        ("SELECT TOP 10 VALUE c.id FROM c ORDER BY c.n DESC", Method::Order, 10, 20),
        ("SELECT VALUE c.id FROM c ORDER BY c.n", Method::Order, 11, 20),
        ("SELECT VALUE c.id FROM c ORDER BY c.few", Method::Order, 12, 260),
        ("SELECT VALUE c.id FROM c WHERE c.n > 1500 ORDER BY c.n", Method::Order, 12, 160),
        ("SELECT DISTINCT VALUE c.few FROM c", Method::Order, 3, 40),
        ("SELECT c.few, COUNT(1) AS k FROM c GROUP BY c.few", Method::Groups, 3, 3_010),
        ("SELECT VALUE c.id FROM c WHERE ABS(c.n) = 5", Method::Scan, 3_000, 0),
    ];
    for (text, method, documents, entries) in cases {
        let page = world.page(&Scope::Container, text, AccessChoice::Auto, 10, None, false).await;
        let plan = &page.plan;
        assert_eq!(plan.method, method, "{text}: {plan:?}");
        assert!(plan.documents_loaded <= documents && plan.index_entries <= entries, "{text}: {plan:?}");
        assert_eq!(page.meter.index_entries_read, plan.index_entries);
        assert!(!page.rows.is_empty(), "{text}");
    }
    let scope = Scope::Key(key("p4"));
    let text = "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p4'";
    let page = world.page(&scope, text, AccessChoice::Auto, 10, None, false).await;
    assert_eq!((page.plan.documents_loaded, page.rows.iter().next()), (0, Some(b"60".as_slice())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_of_plane_geometry_measures_on_a_plane() {
    let world = World::new(r#"{},"geospatialConfig":{"type":"Geometry"}"#, 400).await;
    world.put("p", "1", r#","at":{"type":"Point","coordinates":[3,4]}"#, true).await;
    let text = "SELECT VALUE ST_DISTANCE(c.at, {'type':'Point','coordinates':[0,0]}) FROM c";
    for merged in [false, true] {
        let rows = world.rows(&Scope::Container, text, &[AccessChoice::Auto], 10, merged).await;
        assert_eq!(rows, ["5"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_measured_as_the_policy_of_their_container_says() {
    let policy = |distance: &str| {
        format!(
            r#"{{}},"vectorEmbeddingPolicy":{{"vectorEmbeddings":[{{"path":"/a/v","dataType":"float32",
               "distanceFunction":"{distance}","dimensions":2}}]}}"#
        )
    };
    for (distance, best_first) in [
        ("euclidean", [r#"{"id":"none"}"#, r#"{"id":"near","d":0.5}"#, r#"{"id":"far","d":45}"#]),
        ("dotproduct", [r#"{"id":"far","d":250}"#, r#"{"id":"near","d":23}"#, r#"{"id":"none"}"#]),
    ] {
        let world = World::new(&policy(distance), 400).await;
        for (id, rest) in [("far", r#","a":{"v":[30,40]}"#), ("near", r#","a":{"v":[3,3.5]}"#), ("none", "")]
        {
            world.put("p", id, rest, true).await;
        }
        let text =
            "SELECT c.id, VectorDistance(c.a.v, [3,4]) AS d FROM c ORDER BY VectorDistance(c.a.v, [3,4])";
        let scope = Scope::Key(key("p"));
        for items_max in [1, 10] {
            let rows = world.rows(&scope, text, &[AccessChoice::Auto], items_max, false).await;
            assert_eq!(rows, best_first, "{distance}");
        }
    }
}

/// The rows of an order by long strings, page by page, with tokens that have no room for them. The
/// last row may be deleted on the way.
async fn rows_with_short_tokens(world: &World, text: &str, merged: bool, delete_last: bool) -> Vec<String> {
    let (scope, mut rows, mut continuation) = (Scope::Container, Vec::<String>::new(), None);
    for turn in 0.. {
        assert!(turn < 1_000, "{text} does not end");
        let access = ACCESSES[turn % ACCESSES.len()];
        let page = world.page(&scope, text, access, 2, continuation, merged).await;
        rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        let Some(token) = page.continuation else { break };
        let short = token.shortened(512).expect("a long token");
        let bytes = |cursor: &crate::Cursor| cursor.state.as_ref().expect("a state").to_bytes().len();
        assert!(bytes(&short) <= 512 && bytes(&token) > 2048, "{} {}", bytes(&short), bytes(&token));
        continuation = Some(short);
        if delete_last && turn == 3 {
            let id = rows.last().expect("a row").trim_matches('"').to_owned();
            world.delete(&id).await;
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn short_tokens_name_the_last_row_of_an_order_by_long_strings() {
    let long = "y".repeat(3_000);
    for throughput in [400, 40_000] {
        let world = World::new(r#"{"includedPaths":[{"path":"/*"}]}"#, throughput).await;
        for number in 0..40 {
            let rest = format!(r#","s":"{long}{:02}","n":{number}"#, number * 7 % 20);
            world.put("p0", &format!("i{number:02}"), &rest, true).await;
        }
        for direction in ["ASC", "DESC"] {
            let text = format!("SELECT VALUE c.id FROM c ORDER BY c.s {direction}");
            let merged = throughput > 400;
            let expected =
                world.rows(&Scope::Container, &text, &[AccessChoice::ScanOnly], 1_000, merged).await;
            assert_eq!(expected.len(), 40);
            assert_eq!(rows_with_short_tokens(&world, &text, merged, false).await, expected, "{text}");
        }
        // The row that a token names is gone: what shares its beginning comes once more, and nothing is missing.
        let text = "SELECT VALUE c.id FROM c ORDER BY c.s DESC";
        let found = rows_with_short_tokens(&world, text, throughput > 400, true).await;
        let all: std::collections::BTreeSet<String> = found.into_iter().collect();
        assert_eq!(all.len(), 40);
    }
}

/// Rows that take megabytes to be told apart.
const WIDE: &str =
    "SELECT DISTINCT a, b, c.list FROM c JOIN a IN c.list JOIN b IN c.list OFFSET 9999 LIMIT 1";

async fn with_lists() -> World {
    let world = World::new(r#"{"indexingMode":"consistent"}"#, 400).await;
    let list: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    world.put("p0", "one", &format!(r#","list":[{}]"#, list.join(",")), true).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_finds_no_memory_waits_for_it_and_starts_over() {
    let world = with_lists().await;
    let memory = world.db.memory().clone();
    let all = memory.try_take(Consumer::Queries, memory.shares().queries).expect("nobody uses any");
    let (db, container) = (world.db.clone(), world.container.clone());
    let asks = tokio::spawn(async move {
        let world = World { db, container };
        world.page(&Scope::Key(key("p0")), WIDE, AccessChoice::Auto, 100, None, false).await.rows.len()
    });
    while memory.usage()[Consumer::Queries as usize].waiting == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // One that holds next to nothing is not concerned.
    let small = "SELECT VALUE COUNT(1) FROM c";
    let page = world.page(&Scope::Key(key("p0")), small, AccessChoice::Auto, 100, None, false).await;
    assert_eq!(page.rows.len(), 1);
    assert!(!asks.is_finished());
    drop(all);
    assert_eq!(asks.await.expect("it is answered"), 1);
    assert_eq!(memory.usage()[Consumer::Queries as usize].used_bytes, 0, "everything was given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_gets_no_memory_in_time_is_told_to_come_again() {
    let world = with_lists().await;
    let memory = world.db.memory();
    let _all = memory.try_take(Consumer::Queries, memory.shares().queries).expect("nobody uses any");
    let program = compile(WIDE, &Parameters::default()).expect("a query");
    let page = PageOptions {
        items_max: 100,
        bytes_max: 4 << 20,
        time_max: Duration::from_secs(5),
        continuation: None,
        consistency: Consistency::Session,
        session: None,
        access: AccessChoice::Auto,
        properties: None,
        order: Default::default(),
    };
    let scope = Scope::Key(key("p0"));
    let refused = world.db.query(&world.container, &scope, &program, &page).await.expect_err("no memory");
    assert!(matches!(refused.kind, ErrorKind::Overloaded), "{refused:?}");
}
