//! What runs hold is told to their steward, and they end when it says so.

use std::sync::atomic::{AtomicUsize, Ordering};

use orrery_doc::{Doc, json};
use orrery_query::{Carry, Context, Flow, Parameters, QueryError, Room, Row, Rows, Run, Steward, compile};

/// Allows so many bytes at a time.
struct Purse {
    most: usize,
    held: AtomicUsize,
    highest: AtomicUsize,
    rests: AtomicUsize,
}

impl Purse {
    fn of(most: usize) -> Purse {
        Purse { most, held: 0.into(), highest: 0.into(), rests: 0.into() }
    }
}

impl Steward for Purse {
    fn hold(&self, bytes: usize) -> orrery_query::Result<()> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held > self.most {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
            return Err(QueryError::Busy);
        }
        self.highest.fetch_max(held, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn rest(&self) {
        self.rests.fetch_add(1, Ordering::Relaxed);
    }

    fn row_bytes_max(&self) -> usize {
        self.most.max(1 << 20)
    }
}

/// Items of about 1.6 KB with a list of a hundred numbers and one of texts.
fn items(count: usize) -> Vec<Doc> {
    let numbers: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let texts: Vec<String> = (0..50).map(|n| format!("\"text-{n:012}\"")).collect();
    let item = |n: usize| {
        let text = format!(
            "{{\"id\":\"item-{n}\",\"n\":{n},\"numbers\":[{}],\"texts\":[{}]}}",
            numbers.join(","),
            texts.join(",")
        );
        json::parse(text.as_bytes(), 64).expect("JSON")
    };
    (0..count).map(item).collect()
}

/// A page of a query over the items.
fn page(query: &str, items: &[Doc], purse: &Purse, room: Room) -> Result<Rows, QueryError> {
    let program = compile(query, &Parameters::default()).expect("a query");
    let cx = Context { steward: Some(purse), ..Context::at(0, 0) };
    let mut out = Rows::default();
    let mut run = Run::start(&program, &cx, room, None::<&Carry>)?;
    for item in items {
        if run.feed(&Row::plain(item.as_ref()), &mut out)? != Flow::More {
            break;
        }
    }
    run.finish(&mut out)?;
    Ok(out)
}

const PAGE: Room = Room { rows: 100, bytes: 4 << 20 };

/// Queries that hold much, each in a way of its own.
const HEAVY: [(&str, &str); 13] = [
    (
        "keys of groups",
        "SELECT a, b, COUNT(1) AS n FROM c JOIN a IN c.numbers JOIN b IN c.texts GROUP BY a, b, c.id",
    ),
    ("keys that are lists", "SELECT COUNT(1) AS n FROM c JOIN a IN c.numbers GROUP BY c.numbers, a, c.id"),
    ("MAKELIST", "SELECT VALUE MAKELIST(c.numbers) FROM c JOIN a IN c.numbers JOIN b IN c.texts"),
    ("MAKESET", "SELECT VALUE MAKESET({a: a, b: b, c: c.id}) FROM c JOIN a IN c.numbers JOIN b IN c.texts"),
    (
        "DISTINCT",
        "SELECT DISTINCT a, b, c.id, c.numbers FROM c JOIN a IN c.numbers JOIN b IN c.texts OFFSET 1000000 LIMIT 1",
    ),
    (
        "ORDER BY",
        "SELECT c.numbers, c.texts, a, b FROM c JOIN a IN c.numbers JOIN b IN c.texts ORDER BY c.n OFFSET 20000 LIMIT 1",
    ),
    (
        "ORDER BY a distance",
        "SELECT c.numbers, c.texts, a, b FROM c JOIN a IN c.numbers JOIN b IN c.texts
         ORDER BY VectorDistance(c.numbers, c.numbers) OFFSET 20000 LIMIT 1",
    ),
    (
        "DISTINCT with an order",
        "SELECT DISTINCT a, b, c.id FROM c JOIN a IN c.numbers JOIN b IN c.texts ORDER BY c.n",
    ),
    (
        "an array of a subquery",
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT a, b, d FROM a IN c.numbers JOIN b IN c.numbers JOIN d IN c.texts)) FROM c",
    ),
    (
        "texts that double",
        "SELECT VALUE LENGTH(CONCAT(x, x, x, x)) FROM (SELECT VALUE CONCAT(z, z, z, z, z, z, z, z) FROM (SELECT VALUE CONCAT(y, y, y, y, y, y, y, y) FROM (SELECT VALUE REPLICATE(c.id, 1400) FROM c) AS y) AS z) AS x",
    ),
    (
        "a row that names an item often",
        "SELECT ARRAY(SELECT c FROM a IN c.numbers JOIN b IN c.numbers) AS all FROM c",
    ),
    (
        "rows of a level below",
        "SELECT VALUE COUNT(1) FROM (SELECT c.numbers, c.texts, a, b FROM c JOIN a IN c.numbers JOIN b IN c.texts) AS x",
    ),
    (
        "groups of a level below",
        "SELECT VALUE COUNT(1) FROM (SELECT a, b, c.id, COUNT(1) AS n FROM c JOIN a IN c.numbers JOIN b IN c.texts GROUP BY a, b, c.id) AS x",
    ),
];

#[test]
fn a_run_ends_where_its_steward_says_so_and_gives_everything_back() {
    let items = items(30);
    for (what, query) in HEAVY {
        let purse = Purse::of(1 << 20);
        let ended = page(query, &items, &purse, PAGE);
        let refused = matches!(ended, Err(QueryError::Busy | QueryError::LimitExceeded(_)));
        assert!(refused, "{what}: {:?}", ended.map(|rows| rows.len()));
        assert_eq!(purse.held.load(Ordering::Relaxed), 0, "{what}: everything is given back");
    }
}

#[test]
fn with_enough_memory_the_same_queries_answer_and_give_everything_back() {
    let items = items(2);
    let mut rests = 0;
    for (what, query) in HEAVY {
        let purse = Purse::of(1 << 30);
        page(query, &items, &purse, PAGE).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(purse.held.load(Ordering::Relaxed), 0, "{what}");
        rests += purse.rests.load(Ordering::Relaxed);
    }
    assert!(rests > 100, "others had their chance");
}

#[test]
fn small_queries_ask_for_nothing() {
    let items = items(20);
    for query in [
        "SELECT c.id FROM c WHERE c.n = 3",
        "SELECT c.id, c.n FROM c ORDER BY c.n",
        "SELECT DISTINCT c.n FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
    ] {
        let purse = Purse::of(0);
        page(query, &items, &purse, PAGE).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}

#[test]
fn what_the_rows_of_a_page_make_is_forgotten_with_each_row() {
    // Each row makes some 17 KB of text, all of them together forty times what may be held.
    let items = items(1);
    let purse = Purse::of(1 << 20);
    let query = "SELECT VALUE LENGTH(REPLICATE(CONCAT(c.id, 'xx'), 1200)) FROM c JOIN a IN c.numbers JOIN b IN c.texts
                 WHERE LENGTH(REPLICATE(CONCAT(c.id, 'yy'), 999)) > 0 AND a < 10";
    let rows = page(query, &items, &purse, Room { rows: 10_000, bytes: 4 << 20 }).expect("it fits");
    assert_eq!(rows.len(), 500);
}

#[test]
fn a_list_of_small_numbers_counts_as_what_it_takes() {
    // In JSON two bytes each; in memory many times that.
    let items = items(30);
    let purse = Purse::of(1 << 30);
    let query = "SELECT VALUE MAKELIST(c.numbers) FROM c JOIN a IN c.numbers";
    page(query, &items, &purse, PAGE).expect("it fits");
    let lists = 30 * 100 * 100 * size_of::<orrery_query::Val<'_>>();
    assert!(purse.highest.load(Ordering::Relaxed) > lists, "{purse:?}", purse = purse.highest);
}
