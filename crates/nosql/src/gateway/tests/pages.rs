//! Pages of queries while the ranges of their container split and merge and the server starts anew, for every way in which
//! SDKs ask for the rest of a range that is no more: every row comes once, and in its order.
//!
//! The seed is printed; `ORRERY_TEST_SEED` repeats a run, `ORRERY_ROUNDS` makes it longer.

use std::collections::HashMap;

use orrery_cluster::store::{Action, ItemId, Op, Precondition, Target};
use orrery_cluster::{Container, WriteOptions};
use orrery_doc::{Epk, EpkRange, PartitionKey};
use orrery_testkit::Random;
use tempfile::TempDir;

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";
const JAVASCRIPT: &str = "Node.js/22.0.0 (linux; x64) azure-cosmos-js/4.9.3";
const RANGES_MAX: usize = 6;
/// Rows at one place for each item, and values of `few`.
const FEW: usize = 7;

struct World {
    folder: TempDir,
    server: Server,
    random: Random,
    /// How often ranges were split or merged, and how often the server started anew.
    changes: usize,
    starts: usize,
}

/// How a client finds the rest of a range that was split or merged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// It asks for the range that it knows until it is told that this is gone, and then for the parts of it that are there.
    Told,
    /// The same, and at times it looks without being told, so that parts are asked for with the continuation of the whole.
    Looks,
    /// It asks for the range that it knew in the beginning, whatever happens.
    Keeps,
    /// It names no range, only a part of the key space.
    Feeds,
    /// It names nothing.
    Whole,
}

/// A part of the key space that a client reads page by page.
#[derive(Clone)]
struct Part {
    epk: EpkRange,
    /// The range that it lies in as far as the client knows.
    range: String,
    is_whole_range: bool,
    continuation: String,
    last: Option<i64>,
}

/// What is asked, and what a row stands for.
struct Case {
    text: &'static str,
    passes: fn(usize) -> bool,
    /// Rows for each item.
    rows: usize,
    /// Whether rows come in the order of the number that each begins with, and which way.
    order: Option<Order>,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Up,
    Down,
}

const ALL: fn(usize) -> bool = |_| true;

const CASES: [Case; 8] = [
    Case { text: "SELECT VALUE [0, c.n] FROM c", passes: ALL, rows: 1, order: None },
    Case {
        text: "SELECT VALUE [0, c.n] FROM c WHERE c.few = 3",
        passes: |n| n % FEW == 3,
        rows: 1,
        order: None,
    },
    Case { text: "SELECT VALUE [0, c.n] FROM c WHERE c.n >= 50", passes: |n| n >= 50, rows: 1, order: None },
    Case {
        text: "SELECT VALUE [0, c.n] FROM c WHERE ABS(c.n) % 5 = 2",
        passes: |n| n % 5 == 2,
        rows: 1,
        order: None,
    },
    Case { text: "SELECT VALUE [0, c.n] FROM c JOIN t IN c.t", passes: ALL, rows: 3, order: None },
    Case {
        text: "SELECT VALUE [c.n, c.n] FROM c ORDER BY c.n",
        passes: ALL,
        rows: 1,
        order: Some(Order::Up),
    },
    Case {
        text: "SELECT VALUE [c.few, c.n] FROM c ORDER BY c.few DESC",
        passes: ALL,
        rows: 1,
        order: Some(Order::Down),
    },
    Case {
        text: "SELECT VALUE [c.few, c.n] FROM c WHERE c.n >= 50 ORDER BY c.few",
        passes: |n| n >= 50,
        rows: 1,
        order: Some(Order::Up),
    },
];

/// What was closed before may be held by a task for a moment longer.
async fn open(folder: &TempDir) -> Server {
    let storage = || {
        let path = folder.path().to_owned();
        Storage::Disk { path, cache_bytes: 1 << 20, disk_bytes_max: None, write_buffer_bytes: None }
    };
    let open =
        || Server::open(orrery_cluster::World::Real, |options| DbOptions { storage: storage(), ..options });
    wait_for_async(|| open().map_err(|error| format!("the storage does not open: {error}"))).await
}

impl World {
    async fn with(items: usize) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let server = open(&folder).await;
        server.post("/dbs", json!({"id": "d"})).await.expect(201);
        server.post("/dbs/d/colls", super::container("c")).await.expect(201);
        let world = World { folder, server, random: Random::from_environment(), changes: 0, starts: 0 };
        // The items of a logical partition are not created one after the other.
        let keys = items.div_ceil(100).max(40);
        for round in 0..items.div_ceil(keys * 10) {
            for key in 0..keys {
                let numbers: Vec<usize> =
                    (0..10).map(|i| (round * 10 + i) * keys + key).filter(|n| *n < items).collect();
                world.put(&format!("k{key}"), &numbers).await;
            }
        }
        world
    }

    async fn put(&self, key: &str, numbers: &[usize]) {
        let op = |n: &usize| {
            let id = format!("{:05}", n * 7_919 % 10_007);
            let item = json!({"id": id, "pk": key, "n": n, "few": n % FEW, "t": [1, 2, 3]});
            let body = orrery_doc::json::parse(item.to_string().as_bytes(), 8).expect("JSON");
            Op {
                target: Target::Id(ItemId::new(id.as_str()).expect("a short id")),
                action: Action::Create(body),
                precondition: Precondition::None,
                indexed: true,
                unlinked: false,
            }
        };
        let ops: Vec<Op> = numbers.iter().map(op).collect();
        if ops.is_empty() {
            return;
        }
        let key = PartitionKey::from_header(&json!([key]).to_string()).expect("a key");
        let options = WriteOptions::default();
        self.db().write(&self.container(), &key, ops, &options).await.expect("they are new");
    }

    fn db(&self) -> &Db {
        &self.server.0.0.db
    }

    fn container(&self) -> Arc<Container> {
        let catalog = self.db().catalog();
        catalog.database("d").and_then(|database| database.container("c")).expect("made before").clone()
    }

    /// What happens between two pages.
    async fn something_happens(&mut self) {
        let (container, ranges) = (self.container(), self.container().ranges());
        match self.random.below(30) {
            0 => {
                self.db().close().await;
                self.server = Server::start(false);
                self.server = open(&self.folder).await;
                self.starts += 1;
            }
            1..=4 if ranges.len() < RANGES_MAX => {
                let range = self.random.pick(&ranges).id;
                let children = 2 + self.random.below(2) as u32;
                // One that holds few keys may not be divided.
                self.changes += usize::from(self.db().split(&container, range, children).await.is_ok());
            }
            1..=7 if ranges.len() > 1 => {
                let place = self.random.below(ranges.len() - 1);
                let (left, right) = (ranges[place].id, ranges[place + 1].id);
                self.db().merge(&container, left, right).await.expect("there is room for both");
                self.changes += 1;
            }
            _ => {}
        }
    }

    /// The ranges as clients read them.
    async fn ranges(&self) -> Vec<(String, EpkRange)> {
        let answer = self.server.get("/dbs/d/colls/c/pkranges").await.expect(200);
        let bound = |range: &Value, name: &str| {
            Epk::from_hex(range[name].as_str().expect("a bound")).expect("an EPK")
        };
        let rows = answer.body["PartitionKeyRanges"].as_array().expect("ranges").clone();
        rows.iter()
            .map(|range| {
                let epk = EpkRange::new(bound(range, "minInclusive"), bound(range, "maxExclusive"));
                (range["id"].as_str().expect("an id").to_owned(), epk)
            })
            .collect()
    }

    /// What is left of a part, by the ranges that are there now.
    async fn cut(&self, part: &Part) -> Vec<Part> {
        let ranges = self.ranges().await;
        let overlapping = ranges.into_iter().filter(|(_, epk)| epk.overlaps(&part.epk));
        overlapping
            .map(|(range, epk)| {
                let cut = epk.intersection(&part.epk);
                Part { range, is_whole_range: cut == epk, epk: cut, ..part.clone() }
            })
            .collect()
    }

    async fn ask(&self, way: Way, part: &Part, text: &str, size: usize, id: &str) -> Answer {
        let (min, max, size) = (part.epk.min.to_hex(), part.epk.max.to_hex(), size.to_string());
        let mut headers = vec![
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-max-item-count", size.as_str()),
            ("x-ms-continuation", part.continuation.as_str()),
            ("x-ms-cosmos-correlated-activityid", id),
        ];
        match way {
            Way::Whole => headers.push(("x-ms-documentdb-query-enablecrosspartition", "True")),
            Way::Feeds => headers.push(("x-ms-documentdb-query-enablecrosspartition", "True")),
            Way::Keeps => headers.push(("user-agent", JAVASCRIPT)),
            Way::Told | Way::Looks => {}
        }
        if matches!(way, Way::Told | Way::Looks | Way::Keeps) {
            headers.push(("x-ms-documentdb-partitionkeyrangeid", part.range.as_str()));
        }
        if way == Way::Feeds || !part.is_whole_range && way != Way::Whole {
            headers.push(("x-ms-read-key-type", "EffectivePartitionKeyRange"));
            headers.push(("x-ms-start-epk", min.as_str()));
            headers.push(("x-ms-end-epk", max.as_str()));
        }
        self.server.send("POST", DOCS, &headers, &json!({"query": text})).await
    }

    /// Reads all that a query answers, and counts the rows of each item.
    async fn read(&mut self, way: Way, case: &Case, size: usize) -> HashMap<i64, usize> {
        let id = self.random.number().to_string();
        let everything = Part {
            epk: EpkRange::full(),
            range: String::new(),
            is_whole_range: true,
            continuation: String::new(),
            last: None,
        };
        let mut parts = match way {
            Way::Whole => vec![everything],
            _ => self.cut(&everything).await,
        };
        let mut found = HashMap::new();
        while !parts.is_empty() {
            self.something_happens().await;
            let part = parts.swap_remove(self.random.below(parts.len()));
            if way == Way::Looks && self.random.one_in(2) {
                parts.extend(self.cut(&part).await);
                continue;
            }
            let answer = self.ask(way, &part, case.text, size, &id).await;
            if answer.status == 410 {
                assert_eq!(answer.header("x-ms-substatus"), "1002", "{way:?} {}", case.text);
                parts.extend(self.cut(&part).await);
                continue;
            }
            let answer = answer.expect(200);
            let mut part = part;
            for row in answer.body["Documents"].as_array().expect("rows") {
                let key = row[0].as_i64().expect("a number");
                if let (Some(order), Some(last)) = (case.order, part.last) {
                    let is_behind = if order == Order::Up { key >= last } else { key <= last };
                    assert!(is_behind, "{way:?} {}: {key} behind {last}", case.text);
                }
                part.last = Some(key);
                *found.entry(row[1].as_i64().expect("a number")).or_default() += 1;
            }
            part.continuation = answer.header("x-ms-continuation").to_owned();
            if !part.continuation.is_empty() {
                parts.push(part);
            }
        }
        found
    }

    async fn check(&mut self, items: usize, sizes: &[usize]) {
        let rounds = std::env::var("ORRERY_ROUNDS").ok().and_then(|text| text.parse().ok());
        for _ in 0..rounds.unwrap_or(1) {
            for case in &CASES {
                for way in [Way::Told, Way::Looks, Way::Keeps, Way::Feeds, Way::Whole] {
                    // Rows of several ranges are merged by the client, which names one at a time.
                    if case.order.is_some() && matches!(way, Way::Feeds | Way::Whole) {
                        continue;
                    }
                    let size = *self.random.pick(sizes);
                    let found = self.read(way, case, size).await;
                    let wanted: HashMap<i64, usize> =
                        (0..items).filter(|n| (case.passes)(*n)).map(|n| (n as i64, case.rows)).collect();
                    let mut wrong: Vec<_> =
                        found.iter().filter(|(n, rows)| wanted.get(n) != Some(rows)).collect();
                    wrong.sort_unstable();
                    let missing = wanted.keys().filter(|n| !found.contains_key(n)).count();
                    assert!(
                        wrong.is_empty() && missing == 0,
                        "{way:?} {} by {size}: {missing} are missing, and these come otherwise: {wrong:?}",
                        case.text
                    );
                }
            }
        }
        assert!(self.changes > 10 && self.starts > 0, "{} changes, {} starts", self.changes, self.starts);
        println!("{} changes, {} starts", self.changes, self.starts);
    }
}

/// Their items come in the order of creation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_small_ranges_hold_every_row_once_whatever_becomes_of_ranges() {
    World::with(150).await.check(150, &[2, 7, 40, 1_000]).await;
}

/// Their items come in the order of their places, until splits have made them small.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_large_ranges_hold_every_row_once_whatever_becomes_of_ranges() {
    World::with(6_000).await.check(6_000, &[400, 2_000, 5_000]).await;
}
