//! The ways in which one query is asked, and what its answers are held against.

use orrery_cluster::Scope;
use orrery_doc::PartitionKey;
use orrery_testkit::Random;
use orrery_testkit::sample::{self, Expected, Query};

use super::Tally;
use super::world::{Answer, Failure, Paging, World};

/// One query over one world.
pub struct Case<'w> {
    pub world: &'w World,
    pub query: Query,
    pub seed: u64,
}

impl Case<'_> {
    pub async fn check(&self, random: &mut Random, tally: &mut Tally) {
        tally.queries += 1;
        let Some(expected) = self.expect(&|_| true, tally) else { return };
        tally.filled += usize::from(!expected.is_empty());
        self.one_partition(random, &expected, tally).await;
        self.many_partitions(random, &expected, tally).await;
        if random.one_in(6) {
            self.part_of_the_keys(random, tally).await;
        }
        if random.one_in(8) {
            self.thirds(random, tally).await;
        }
        if random.one_in(4) {
            self.resumed(random, tally).await;
        }
    }

    fn expect(&self, within: &dyn Fn(&PartitionKey) -> bool, tally: &mut Tally) -> Option<Expected> {
        let expected = Expected::of(&self.query, &mut |text| self.world.oracle(&self.query, text, within));
        expected.map_err(|error| self.fail("the oracle", &error, tally)).ok()
    }

    /// A scan in large pages, then other ways; what is ordered must come in the very same sequence.
    async fn one_partition(&self, random: &mut Random, expected: &Expected, tally: &mut Tally) {
        let text = self.query.text();
        let whole = self.world.ask(0, &self.query, &text, &Scope::Container, &Paging::scan(1_000)).await;
        let Some(whole) = self.judge("one partition, scanned", expected, whole, tally) else { return };
        let paging = self.world.any_paging(random);
        let paged = self.world.ask(0, &self.query, &text, &Scope::Container, &paging).await;
        let name = format!("one partition, {paging:?}");
        let Some(paged) = self.judge(&name, expected, paged, tally) else { return };
        if !self.query.order_by.is_empty() && paged != whole {
            self.fail(&name, "equal keys come in another order than in a scan", tally);
        }
    }

    async fn many_partitions(&self, random: &mut Random, expected: &Expected, tally: &mut Tally) {
        let (place, paging) = (1 + random.below(2), self.world.any_paging(random));
        let merged = self.world.ask_as_client(place, &self.query, &paging).await;
        self.judge(&format!("merged by the client, container {place}, {paging:?}"), expected, merged, tally);
        let text = self.query.text();
        match self.world.ask(place, &self.query, &text, &Scope::Container, &paging).await {
            // One partition after the other cannot answer it.
            Err(Failure::NeedsPlan) => {}
            direct => {
                let name = format!("one partition after the other, container {place}, {paging:?}");
                self.judge(&name, expected, direct, tally);
            }
        }
        let paging = Paging { is_merged: true, ..self.world.any_paging(random) };
        let merged = self.world.ask(place, &self.query, &text, &Scope::Container, &paging).await;
        self.judge(&format!("merged by the server, container {place}, {paging:?}"), expected, merged, tally);
    }

    /// One logical partition, or all on one side of a place in the key space.
    async fn part_of_the_keys(&self, random: &mut Random, tally: &mut Tally) {
        let (place, paging) = (random.below(3), self.world.any_paging(random));
        let (scope, expected) = if random.one_in(2) {
            let key = self.world.any_key(random);
            (Scope::Key(key.clone()), self.expect(&|other| *other == key, tally))
        } else {
            let range = self.world.any_range(random);
            (Scope::Epk(range.clone()), self.expect(&|key| self.world.is_within(key, &range), tally))
        };
        let Some(expected) = expected else { return };
        match self.world.ask(place, &self.query, &self.query.text(), &scope, &paging).await {
            Err(Failure::NeedsPlan) => {}
            answer => {
                let name = format!("{scope:?}, container {place}, {paging:?}");
                self.judge(&name, &expected, answer, tally);
            }
        }
    }

    /// A client that goes on behind a row gets the rows that come behind it.
    async fn resumed(&self, random: &mut Random, tally: &mut Tally) {
        let chosen = random.below(1_000);
        let mut oracle = |text: &str| self.world.oracle(&self.query, text, |_| true);
        let found = Expected::behind(&self.query, chosen, &mut oracle);
        let found = found.map_err(|error| self.fail("the oracle", &error, tally));
        let Ok(Some((filter, expected))) = found else { return };
        let (place, paging) = (random.below(3), self.world.any_paging(random));
        let rest = self.world.resume_as_client(place, &self.query, &filter, &paging).await;
        self.judge(&format!("resumed with {filter}, container {place}, {paging:?}"), &expected, rest, tally);
    }

    /// The rows for which a condition is true, false or neither are all rows.
    async fn thirds(&self, random: &mut Random, tally: &mut Tally) {
        let condition = sample::condition(random);
        let Some(thirds) = self.query.thirds(&condition) else { return };
        let (paging, name) = (self.world.any_paging(random), format!("rows split by {condition}"));
        let (mut whole, mut rows) = (Vec::new(), Vec::new());
        for (place, part) in [self.query.clone()].iter().chain(&thirds).enumerate() {
            match self.world.ask(0, part, &part.text(), &Scope::Container, &paging).await {
                Ok(found) if place == 0 => whole = found,
                Ok(found) => rows.extend(found),
                Err(Failure::OrderRefused) if self.world.may_refuse(&part.order_by) => return,
                Err(failure) => return self.fail(&name, &format!("{failure:?} for {}", part.text()), tally),
            }
        }
        tally.comparisons += 1;
        rows.sort_unstable();
        whole.sort_unstable();
        if rows != whole {
            let wrong = format!("{} rows instead of {}, {paging:?}", rows.len(), whole.len());
            self.fail(&name, &wrong, tally);
        }
    }

    /// The rows, when there are some and they are right; nothing when the order was rightly refused.
    fn judge(
        &self,
        way: &str,
        expected: &Expected,
        answer: Answer,
        tally: &mut Tally,
    ) -> Option<Vec<String>> {
        match answer {
            Ok(rows) => {
                tally.comparisons += 1;
                match expected.check(&rows) {
                    Ok(()) => return Some(rows),
                    Err(wrong) => self.fail(way, &wrong, tally),
                }
            }
            Err(Failure::OrderRefused) if self.world.may_refuse(&self.query.order_by) => {
                tally.refused += 1;
            }
            Err(failure) => self.fail(way, &format!("{failure:?}"), tally),
        }
        None
    }

    fn fail(&self, way: &str, wrong: &str, tally: &mut Tally) {
        tally.failures.push(format!(
            "{}\nparameters {}\nindexing policy {}\n{way}: {wrong}\nORRERY_TEST_SEED={} repeats this",
            self.query.text(),
            self.query.parameters_json(),
            self.world.policy.body,
            self.seed,
        ));
    }
}
