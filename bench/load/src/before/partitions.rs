//! Reads and creates over four physical partitions.

use anyhow::Result;

use super::contest::Contest;
use super::creates;
use super::turns::for_each;
use crate::requests::Reads;

const SECTION: &str = "Four physical partitions, 64 clients";
const CLIENTS: usize = 64;
const ITEMS: u64 = 20_000;

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let grounds = contest.grounds()?;
    let sites = grounds.start()?;
    let containers = sites.create("four", 4)?;
    for_each(|side| sites.of(side).load(&containers[side as usize], 0, ITEMS))?;
    sites.rest();
    let reads = containers.each_ref().map(|container| Reads::of_loaded(container, ITEMS, ITEMS));
    contest.load(SECTION, "reads", (&sites, CLIENTS), |side| {
        (containers[side as usize].clone(), reads[side as usize].clone())
    })?;
    creates::single(contest, SECTION, "durable creates", &sites, &containers)?;
    sites.stop();
    Ok(())
}
