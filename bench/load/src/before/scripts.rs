//! Procedures that create items, and procedures that do nothing.

use anyhow::Result;

use super::contest::Contest;
use super::turns::for_each;
use crate::scripts::{CLIENTS, NAME, Posts, PostsOf, SECTION, create_scripts};

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let grounds = contest.grounds()?;
    let sites = grounds.start()?;
    let containers = sites.create(NAME, 1)?;
    for_each(|side| create_scripts(sites.of(side)))?;
    let mut round = 0;
    for (what, kind) in [
        ("procedures that create 100 small items", PostsOf::Make),
        ("procedures that do nothing", PostsOf::Empty),
    ] {
        contest.load(SECTION, what, (&sites, CLIENTS), |side| {
            // Each has logical partitions of its own.
            round += 1;
            let container = &containers[side as usize];
            (container.clone(), Posts::new(container, kind, round))
        })?;
    }
    sites.stop();
    Ok(())
}
