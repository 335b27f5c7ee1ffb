//! Generated queries against the real server: by its own pages and by an SDK's merge, the rows are the same.
//!
//! Most generated queries run without a server, in the tests of the cluster room; these few hundred add the
//! protocol: plans as JSON, rewritten queries by range, continuations in headers, a policy changed by a request.
//! The seed is printed; `ORRERY_TEST_SEED` repeats a run.

mod site;

use orrery_testkit::Random;
use orrery_testkit::sample::{self, Expected, Policy, Query};
use site::{Answer, Failure, Site};

const QUERIES: usize = 300;
const DOCUMENTS: usize = 120;
const PAGES: [usize; 3] = [1, 7, 1_000];
const ACCESSES: [&str; 3] = ["auto", "index", "scan"];

#[test]
fn the_server_and_a_client_that_merges_answer_the_same_rows() {
    let mut random = Random::from_environment();
    let mut site = Site::start(&mut random, DOCUMENTS);
    let mut filled = 0;
    for turn in 0..QUERIES {
        match turn {
            // A third of the queries meets an index in the making, the last third the finished one.
            _ if turn == QUERIES / 3 => site.change_policy(Policy::any(&mut random)),
            _ if turn == QUERIES * 2 / 3 => site.await_index(),
            _ => {}
        }
        let query = sample::query(&mut random);
        let expected = Expected::of(&query, &mut |text| site.oracle(&query, text));
        let expected = expected.unwrap_or_else(|error| panic!("{}: {error}", query.text()));
        filled += usize::from(!expected.is_empty());
        let (page, access) = (*random.pick(&PAGES), *random.pick(&ACCESSES));
        let answers = [
            ("one partition", site.ask(0, &query, page, access)),
            ("four partitions", site.ask(1, &query, page, access)),
            ("four, merged by the server", site.ask_merged(1, &query, page, access)),
            ("four, merged by the client", site.ask_as_client(1, &query, page, access)),
            ("eight, merged by the client", site.ask_as_client(2, &query, page, access)),
        ];
        for (way, answer) in answers {
            if let Err(wrong) = judge(&site, &query, &expected, answer) {
                let (text, parameters) = (query.text(), query.parameters_json());
                let (seed, policy) = (random.seed(), &site.policy.body);
                panic!(
                    "{text}\nparameters {parameters}\nindexing policy {policy}\n{way}, pages of {page}, access {access}: {wrong}\nORRERY_TEST_SEED={seed} repeats this"
                );
            }
        }
    }
    assert!(filled > QUERIES / 3, "only {filled} queries found anything");
}

fn judge(site: &Site, query: &Query, expected: &Expected, answer: Answer) -> Result<(), String> {
    match answer {
        Ok(rows) => expected.check(&rows),
        Err(Failure::NeedsPlan) => Ok(()),
        Err(Failure::OrderRefused) if site.may_refuse(&query.order_by) => Ok(()),
        Err(Failure::OrderRefused) => Err("the order is refused".to_owned()),
        Err(Failure::Other(reason)) => Err(reason),
    }
}
