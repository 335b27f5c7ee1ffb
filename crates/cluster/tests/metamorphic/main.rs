//! Generated queries over generated documents: whatever way a query is run, its rows are the same.
//!
//! Each query is first answered by an oracle, which looks at every document in memory. Then it is asked in other
//! ways that must not matter: of one, four and eight physical partitions, in pages of 1, 7 and 1,000 rows, through
//! indexes and past them, before, while and after the indexing policy changes, of a part of the key space, by the
//! server and by a merge as SDKs do it. Where the order decides only some of the sequence, only that is compared;
//! see `sample::Expected`. Independent of the oracle's own opinion, the rows of a query are those for which any
//! condition is true, false, or neither.
//!
//! That the test finds what it is made to find was tried with bugs planted in a copy: terms that were cut taken for
//! whole ones, items without the property left out of a descending order, and a cursor that leaps one entry too far.
//! All were found within a few hundred queries, the last one in the large world only. Of the indexes that are not of
//! single paths: cells of larger shapes left out, a composite order that goes on without what its filter fixes, and
//! computed values that are missing in composite entries.
//!
//! The seed is printed; `ORRERY_TEST_SEED` repeats a run and `ORRERY_QUERIES` makes it longer.

mod case;
mod world;

use std::collections::BTreeMap;

use case::Case;
use orrery_testkit::Random;
use orrery_testkit::sample::{self, Policy};
use world::World;

/// Queries of a run, unless the environment asks for more.
const QUERIES: usize = 10_000;
/// Queries over one set of documents.
const QUERIES_PER_WORLD: usize = 400;
/// Most worlds are small, so that many queries fit into a run.
const DOCUMENTS: usize = 40;
/// For the large world, in which indexes have long lists and the cost of each way differs.
const DOCUMENTS_LARGE: usize = 1_500;
const QUERIES_LARGE: usize = 200;
/// For the rebuild that takes a while: documents, rebuilds, and queries after the end of each.
const DOCUMENTS_REBUILT: usize = 400;
const REBUILDS: usize = 40;
const QUERIES_AFTER_REBUILD: usize = 1;
/// Fewer than this would say little about an index in the making.
const QUERIES_DURING_MIN: usize = 40;
/// A machine on which so many rebuilds are over before a query looks is faster than any.
const REBUILDS_MAX: usize = 1_000;

/// What was done, so that a run that did nothing cannot pass.
#[derive(Debug, Default)]
struct Tally {
    queries: usize,
    /// Answers with at least one row.
    filled: usize,
    refused: usize,
    comparisons: usize,
    /// Pages by the way to their items.
    methods: BTreeMap<&'static str, usize>,
    /// What went wrong, in words for the reader who has to find out why.
    failures: Vec<String>,
}

/// A world in which so much is wrong needs no more queries.
const FAILURES_MAX: usize = 5;

impl Tally {
    fn add(&mut self, other: Tally) {
        self.queries += other.queries;
        self.filled += other.filled;
        self.refused += other.refused;
        self.comparisons += other.comparisons;
        self.failures.extend(other.failures);
        self.count(other.methods);
    }

    fn count(&mut self, methods: BTreeMap<&'static str, usize>) {
        for (method, pages) in methods {
            *self.methods.entry(method).or_default() += pages;
        }
    }

    /// A run of empty answers, or past all indexes, would prove nothing.
    fn must_be_worth_it(&self) {
        for method in ["scan", "index", "index order", "index count", "index end"] {
            assert!(self.methods.contains_key(method), "no query was answered by {method}: {self:?}");
        }
        assert!(self.filled > self.queries / 3, "most queries find nothing: {self:?}");
        assert!(self.refused < self.comparisons / 5, "too many orders are refused: {self:?}");
    }

    fn must_be_right(&self) {
        println!(
            "{} queries, {} comparisons, {} refused, {} with rows; pages {:?}",
            self.queries, self.comparisons, self.refused, self.filled, self.methods
        );
        assert!(
            self.failures.is_empty(),
            "{} answers are wrong:\n\n{}",
            self.failures.len(),
            self.failures.join("\n\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_a_query_is_run_does_not_change_its_rows() {
    let seed = Random::from_environment().seed();
    let wanted = std::env::var("ORRERY_QUERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(QUERIES);
    let (mut tally, mut seed) = (Tally::default(), seed);
    // Two at a time; every world has a seed of its own, so that a failure is repeated at once.
    while tally.queries < wanted && tally.failures.len() < 4 * FAILURES_MAX {
        let worlds = [seed, seed + 1].map(|seed| tokio::spawn(one_world(seed, DOCUMENTS, QUERIES_PER_WORLD)));
        for world in worlds {
            tally.add(world.await.expect("the reason is above"));
        }
        seed += 2;
    }
    tally.must_be_right();
    if wanted >= QUERIES {
        tally.must_be_worth_it();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_documents_change_nothing() {
    let seed = Random::from_environment().seed();
    let tally = tokio::spawn(one_world(seed, DOCUMENTS_LARGE, QUERIES_LARGE)).await;
    tally.expect("the reason is above").must_be_right();
}

/// Queries before and after, and perhaps during, a change of the indexing policy and of some documents.
async fn one_world(seed: u64, documents: usize, queries: usize) -> Tally {
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    let mut world = World::start(&mut random, documents).await;
    for turn in 0..queries {
        if turn == queries / 2 {
            world.change_policy(Policy::any(&mut random)).await;
            world.disturb(&mut random, 10).await;
        }
        world.look_again();
        let mut chance = Random::new(random.number());
        let query = sample::query(&mut chance);
        Case { world: &world, query, seed }.check(&mut chance, &mut tally).await;
        if tally.failures.len() >= FAILURES_MAX {
            break;
        }
    }
    tally.count(world.close().await);
    tally
}

/// A rebuild that takes a while, with writes and queries all the time, of all kinds that one world has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_in_the_making_changes_no_rows() {
    let seed = Random::from_environment().seed();
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    let mut world = World::start(&mut random, DOCUMENTS_REBUILT).await;
    let (mut during, mut rebuilds) = (0, 0);
    while rebuilds < REBUILDS || during < QUERIES_DURING_MIN && rebuilds < REBUILDS_MAX {
        rebuilds += 1;
        world.change_policy(Policy::any(&mut random)).await;
        let mut left = QUERIES_AFTER_REBUILD;
        while left > 0 {
            match world.look_again() {
                true => left -= 1,
                false => during += 1,
            }
            world.disturb(&mut random, 1).await;
            let mut chance = Random::new(random.number());
            let query = sample::query(&mut chance);
            Case { world: &world, query, seed }.check(&mut chance, &mut tally).await;
        }
    }
    println!("{during} queries while an index was built, in {rebuilds} rebuilds");
    assert!(during >= QUERIES_DURING_MIN, "only {during} queries met an index in the making");
    tally.count(world.close().await);
    tally.must_be_right();
}
