//! Reads and creates with many items, chosen at random among all, and starts with as many.

use anyhow::Result;

use super::contest::Contest;
use super::turns::for_each;
use super::{creates, start};
use crate::requests::RandomReads;

const SECTION: &str = "Many items, 64 clients, durable";
const CLIENTS: usize = 64;

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let items = contest.settings.items();
    let grounds = contest.grounds()?;
    let sites = grounds.start_relaxed()?;
    let containers = sites.create("growth", 1)?;
    for_each(|side| sites.of(side).load(&containers[side as usize], 0, items))?;
    sites.stop();
    let rounds = start::fewer(contest, 3);
    contest.rounds(SECTION, &format!("start with {items} items"), rounds, |side, _| {
        start::start(grounds.of(side))
    })?;
    let sites = grounds.start()?;
    sites.rest();
    let containers = for_each(|side| Ok(sites.of(side).container("growth")))?;
    let mut turn = 0;
    contest.load(SECTION, &format!("reads among {items} items"), (&sites, CLIENTS), |side| {
        turn += items;
        let container = &containers[side as usize];
        (container.clone(), RandomReads::new(container, items, turn))
    })?;
    creates::single(contest, SECTION, &format!("creates beside {items} items"), &sites, &containers)?;
    sites.stop();
    Ok(())
}
