//! Results without an ORDER BY come in the order of creation where there are few items.

use orrery_store::limits::CREATION_ITEMS_MAX;

use super::*;
use crate::ItemOrder;

const EVERYTHING: &str = r#"{"includedPaths":[{"path":"/*"}]}"#;

/// Ids whose order is another one than that of their numbers.
fn scrambled(number: u64) -> String {
    format!("{:05}", number * 7_919 % 10_007)
}

/// Quoted, as rows show them.
fn rows_of(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    numbers.map(|number| format!("\"{}\"", scrambled(number))).collect()
}

async fn filled(keys: u64, numbers: std::ops::Range<u64>) -> World {
    let world = World::new(EVERYTHING, 400).await;
    world.fill(keys, numbers).await;
    world
}

impl World {
    async fn fill(&self, keys: u64, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let rest =
                format!(r#","n":{number},"few":{},"t":["{id}","{id}"]"#, number % 3, id = scrambled(number));
            self.put(&format!("p{}", number % keys), &scrambled(number), &rest, true).await;
        }
    }

    /// The ids of a feed, by pages.
    async fn feed(&self, scope: &Scope, size: usize) -> Vec<String> {
        let mut page = PageOptions { items_max: size, ..page_options() };
        let mut ids = Vec::new();
        loop {
            let found = self.db.read_feed(&self.container, scope, &page).await.expect("a page");
            ids.extend(found.items.iter().map(|item| id_of(item.root().root())));
            page.continuation = found.continuation;
            if page.continuation.is_none() {
                return ids;
            }
        }
    }

    /// Goes on with a query, with the container as it is now.
    async fn rest(&self, text: &str, size: usize, mut continuation: Option<crate::Cursor>) -> Vec<String> {
        let catalog = self.db.catalog();
        let container = catalog.database("db").and_then(|database| database.container("c"));
        let container = container.expect("it is there").clone();
        let program = compile(text, &Parameters::default()).expect(text);
        let mut rows = Vec::new();
        while continuation.is_some() {
            let page = PageOptions { items_max: size, continuation, ..page_options() };
            let page = self.db.query(&container, &Scope::Container, &program, &page).await.expect(text);
            rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
            continuation = page.continuation;
        }
        rows
    }
}

fn id_of(value: orrery_doc::Value<'_>) -> String {
    match value.get("id") {
        orrery_doc::Value::Str(id) => format!("\"{id}\""),
        other => panic!("an id: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_small_range_come_as_they_were_created() {
    let world = filled(7, 0..300).await;
    // A replaced item keeps its place, one that is created again comes last.
    world.put("p3", &scrambled(3), r#","n":3,"few":0,"t":[]"#, true).await;
    type Chosen = fn(&u64) -> bool;
    let cases: [(&str, Chosen); 6] = [
        ("SELECT VALUE c.id FROM c", |_| true),
        ("SELECT VALUE c.id FROM c WHERE c.n >= 290", |n| *n >= 290),
        ("SELECT VALUE c.id FROM c WHERE c.few = 1", |n| *n % 3 == 1),
        ("SELECT VALUE c.id FROM c WHERE c.n IN (250, 4, 9, 77)", |n| [250, 4, 9, 77].contains(n)),
        ("SELECT VALUE c.id FROM c WHERE ABS(c.n) % 5 = 2", |n| *n % 5 == 2),
        ("SELECT VALUE c.id FROM c WHERE c.pk = 'p2' OR c.n = 299", |n| *n % 7 == 2 || *n == 299),
    ];
    for (text, passes) in cases {
        let expected = rows_of((0..300).filter(passes));
        for size in [1, 10, 299, 300, 1_000] {
            for access in ACCESSES {
                let rows = world.rows(&Scope::Container, text, &[access], size, false).await;
                assert_eq!(rows, expected, "{text} with {access:?} and pages of {size}");
            }
            let merged = world.rows(&Scope::Container, text, &ACCESSES, size, true).await;
            assert_eq!(merged, expected, "{text}, merged");
        }
    }
    for size in [1, 10, 1_000] {
        assert_eq!(world.feed(&Scope::Container, size).await, rows_of(0..300));
        let of_key = rows_of((0..300).filter(|n| n % 7 == 5));
        assert_eq!(world.feed(&Scope::Key(key("p5")), size).await, of_key);
    }
}

/// As the service was recorded to answer: groups as their first items are met, those that an index knows in the order of their
/// keys.
#[tokio::test(flavor = "multi_thread")]
async fn groups_of_a_small_range_come_as_their_first_items_were_created() {
    let world = filled(7, 5..65).await;
    for (text, expected) in [
        ("SELECT VALUE [c.few, COUNT(c.n)] FROM c GROUP BY c.few", ["[2,20]", "[0,20]", "[1,20]"]),
        ("SELECT VALUE [SUM(1), c.few] FROM c GROUP BY c.few", ["[20,2]", "[20,0]", "[20,1]"]),
        (
            "SELECT VALUE [c.few, COUNT(t)] FROM c JOIN t IN c.t GROUP BY c.few",
            ["[2,40]", "[0,40]", "[1,40]"],
        ),
        ("SELECT VALUE ABS(c.few) FROM c GROUP BY ABS(c.few)", ["2", "0", "1"]),
        ("SELECT VALUE [c.few, COUNT(1)] FROM c GROUP BY c.few", ["[0,20]", "[1,20]", "[2,20]"]),
        ("SELECT VALUE c.few FROM c GROUP BY c.few", ["0", "1", "2"]),
        ("SELECT VALUE MAKELIST(c.n) FROM c WHERE c.n < 12 GROUP BY c.few", ["[5,8,11]", "[6,9]", "[7,10]"]),
    ] {
        for size in [1, 2, 1_000] {
            for access in ACCESSES {
                let rows = world.rows(&Scope::Container, text, &[access], size, false).await;
                assert_eq!(rows, expected, "{text} with {access:?} and pages of {size}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_keep_the_order_of_their_first_page() {
    let world = filled(5, 2..50).await;
    let text = "SELECT c.few, SUM(1) AS k FROM c GROUP BY c.few";
    let first = world.page(&Scope::Container, text, AccessChoice::Auto, 1, None, false).await;
    let rows: Vec<&[u8]> = first.rows.iter().collect();
    assert_eq!(rows, [br#"{"few":2,"k":16}"#]);
    let count = (CREATION_ITEMS_MAX + 100) / 3;
    world.fill(5, 50..3 * count).await;
    let others = |few: u64, taken: u64| format!(r#"{{"few":{few},"k":{}}}"#, count - taken);
    assert_eq!(world.rest(text, 1, first.continuation).await, [others(0, 1), others(1, 1)]);
    // By now there are many, and no page came before.
    let page = world.page(&Scope::Container, text, AccessChoice::Auto, 10, None, false).await;
    let rows: Vec<String> = page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
    assert_eq!(rows, [others(0, 1), others(1, 1), others(2, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn joined_rows_that_do_not_fit_go_on_in_the_order_of_creation() {
    let world = filled(5, 0..40).await;
    let text = "SELECT VALUE t FROM c JOIN t IN c.t";
    let twice = (0..40).flat_map(|number| [number, number]);
    let expected = rows_of(twice);
    for size in [1, 3, 50] {
        assert_eq!(world.rows(&Scope::Container, text, &ACCESSES, size, false).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_that_began_in_the_order_of_creation_goes_on_in_it() {
    let world = filled(5, 0..60).await;
    for (text, size, passes) in [
        ("SELECT VALUE c.id FROM c", 7, 1),
        ("SELECT VALUE c.id FROM c WHERE c.n % 2 = 0", 9, 2),
        ("SELECT VALUE c.id FROM c WHERE c.n >= 0", 500, 1),
    ] {
        let first = world.page(&Scope::Container, text, AccessChoice::Auto, 5, None, false).await;
        // By the second round there are many.
        if passes == 1 && size == 7 {
            world.fill(5, 60..CREATION_ITEMS_MAX + 100).await;
        }
        let mut rows: Vec<String> =
            first.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
        rows.extend(world.rest(text, size, first.continuation).await);
        if size == 7 {
            let expected = rows_of(0..CREATION_ITEMS_MAX + 100);
            assert!(rows == expected, "{text}: {} rows of {}", rows.len(), expected.len());
        } else {
            let expected = rows_of((0..CREATION_ITEMS_MAX + 100).filter(|n| n % passes == 0));
            rows.sort();
            let mut expected = expected;
            expected.sort();
            assert!(rows == expected, "{text}: {} rows of {}", rows.len(), expected.len());
        }
    }
    // A walk that begins now has the order of keys, which costs less.
    let found = world.feed(&Scope::Epk(orrery_doc::EpkRange::full()), 1_000).await;
    assert_ne!(found, rows_of(0..CREATION_ITEMS_MAX + 100));
    // One logical partition is still small.
    let of_key = rows_of((0..CREATION_ITEMS_MAX + 100).filter(|n| n % 5 == 4));
    assert!(world.feed(&Scope::Key(key("p4")), 10).await == of_key);
    let text = "SELECT VALUE c.id FROM c WHERE c.n < 500";
    let rows = world.rows(&Scope::Key(key("p4")), text, &ACCESSES, 10, false).await;
    assert_eq!(rows, rows_of((0..500).filter(|n| n % 5 == 4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_between_pages_loses_and_repeats_nothing() {
    let text = "SELECT VALUE c.id FROM c";
    for parts in [2, 4] {
        let world = filled(50, 0..200).await;
        let first = world.page(&Scope::Container, text, AccessChoice::Auto, 50, None, false).await;
        let range = world.container.ranges()[0].id;
        world.db.split(&world.container, range, parts).await.expect("a split");
        world.put("p1", "new", r#","n":1000"#, true).await;
        let mut rows: Vec<String> =
            first.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
        assert_eq!(rows, rows_of(0..50));
        let mut rest = world.rest(text, 11, first.continuation).await;
        rest.retain(|row| row != "\"new\"");
        rows.append(&mut rest);
        rows.sort();
        let mut expected = rows_of(0..200);
        expected.sort();
        assert_eq!(rows, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_come_and_go_between_pages_move_no_other() {
    let world = filled(1, 0..20).await;
    let text = "SELECT VALUE c.id FROM c";
    let first = world.page(&Scope::Container, text, AccessChoice::Auto, 5, None, false).await;
    // The last one shown, one before, one that is to come; and the first of all is created again.
    for number in [4, 2, 10, 0] {
        world.delete(&scrambled(number)).await;
    }
    world.put("p0", &scrambled(0), "", true).await;
    let rest = world.rest(text, 3, first.continuation).await;
    assert_eq!(rest, rows_of((5..20).filter(|n| *n != 10).chain([0])));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_may_ask_for_the_order_of_keys() {
    let world = filled(1, 0..50).await;
    let options =
        |continuation| PageOptions { items_max: 7, order: ItemOrder::Keys, continuation, ..page_options() };
    let by_id = rows_of(0..50).into_iter().collect::<std::collections::BTreeSet<_>>();
    let program = compile("SELECT VALUE c.id FROM c WHERE c.n >= 0", &Parameters::default()).expect("SQL");
    let (mut fed, mut queried) = (Vec::new(), Vec::new());
    let (mut feed, mut query) = (Some(None), Some(None));
    while let Some(continuation) = feed.take() {
        let scope = Scope::Container;
        let page =
            world.db.read_feed(&world.container, &scope, &options(continuation)).await.expect("a page");
        fed.extend(page.items.iter().map(|item| id_of(item.root().root())));
        feed = page.continuation.map(Some);
    }
    while let Some(continuation) = query.take() {
        let (container, scope) = (&world.container, Scope::Container);
        let page = world.db.query(container, &scope, &program, &options(continuation)).await.expect("a page");
        queried.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        query = page.continuation.map(Some);
    }
    assert!(fed.iter().eq(&by_id), "{fed:?}");
    assert!(queried.iter().eq(&by_id), "{queried:?}");
}

/// What all pages of a query cost together, and what the first one does.
async fn costs(
    world: &World,
    text: &str,
    size: usize,
    access: AccessChoice,
    order: ItemOrder,
) -> (Vec<String>, f64, f64) {
    let program = compile(text, &Parameters::default()).expect(text);
    let (mut rows, mut first, mut sum, mut continuation) = (Vec::new(), None, 0.0, None);
    loop {
        let page = PageOptions { items_max: size, continuation, access, order, ..page_options() };
        let page = world.db.query(&world.container, &Scope::Container, &program, &page).await.expect(text);
        rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        let cost = page.receipt.charge.total();
        first.get_or_insert(cost);
        sum += cost;
        continuation = page.continuation;
        if continuation.is_none() {
            return (rows, first.expect("a page"), sum);
        }
    }
}

/// Rows of one state may lie anywhere in the order of creation: spread over it, or together at either end of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_creation_costs_hardly_more_than_that_of_keys() {
    const ITEMS: u64 = 4_900;
    let world = World::new(EVERYTHING, 400).await;
    for number in 0..ITEMS {
        let rest = format!(
            r#","n":{number},"spread":{},"old":{},"new":{},"most":{},"text":"{:0>200}""#,
            number % 25,
            number >= 200,
            number < ITEMS - 1_500,
            number % 50 != 7,
            number
        );
        world.put(&format!("p{}", number % 40), &scrambled(number), &rest, true).await;
    }
    type Chosen = fn(&u64) -> bool;
    let cases: [(&str, Chosen); 8] = [
        ("c.spread = 3", |n| n % 25 == 3),
        ("c.old = false", |n| *n < 200),
        ("c.new = false", |n| *n >= ITEMS - 1_500),
        ("c.n >= 4700", |n| *n >= 4_700),
        ("c.n < 130", |n| *n < 130),
        ("c.spread IN (1, 2)", |n| n % 25 == 1 || n % 25 == 2),
        ("c.spread = 3 AND c.new = false", |n| n % 25 == 3 && *n >= ITEMS - 1_500),
        ("c.most = true", |n| n % 50 != 7),
    ];
    for (filter, passes) in cases {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        for size in [1, 10, 100, 1_000] {
            let (auto, keys) = (AccessChoice::Auto, AccessChoice::IndexAlways);
            let (rows, first, sum) = costs(&world, &text, size, auto, ItemOrder::Creation).await;
            assert!(rows == rows_of((0..ITEMS).filter(passes)), "{filter}, pages of {size}");
            let (_, first_by_key, sum_by_key) = costs(&world, &text, size, keys, ItemOrder::Keys).await;
            let case = format!("{filter} by {size}: {first} of {first_by_key}, {sum} of {sum_by_key}");
            // Each page reads the list of the index anew; where it has one row, that is much beside it.
            let most = if size == 1 { 1.5 } else { 1.3 };
            assert!(sum <= most * sum_by_key, "{case}");
            let entries = 0.001 * rows.len() as f64;
            assert!(size == 1 || first <= 1.3 * first_by_key + entries, "{case}");
        }
    }
}
