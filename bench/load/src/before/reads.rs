//! Point reads of items that fit into the cache.

use anyhow::Result;

use super::contest::Contest;
use super::turns::for_each;
use crate::requests::Reads;

const SECTION: &str = "Point reads of 1 KiB items, keep-alive HTTP/1.1";
const ITEMS: u64 = 20_000;

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let grounds = contest.grounds()?;
    let sites = grounds.start()?;
    let containers = sites.create("reads", 1)?;
    for_each(|side| sites.of(side).load(&containers[side as usize], 0, ITEMS))?;
    sites.rest();
    for connections in [1, 16, 64] {
        // Signed for each line: a signature is good for minutes.
        let reads = containers.each_ref().map(|container| Reads::of_loaded(container, ITEMS, ITEMS));
        let what = format!("{connections} connections");
        contest.load(SECTION, &what, (&sites, connections), |side| {
            (containers[side as usize].clone(), reads[side as usize].clone())
        })?;
    }
    sites.stop();
    Ok(())
}
