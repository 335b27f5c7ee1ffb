//! Durable creates, one by one and in batches.

use anyhow::Result;

use super::contest::{Contest, Sites, figures};
use super::turns::Side;
use crate::item::ITEMS_PER_KEY;
use crate::load::Plan;
use crate::requests::{Batches, Container, Creates};

const SECTION: &str = "Durable creates, default indexing, 1 KiB items of 12 properties";
const CLIENTS: usize = 64;
const BATCH_CLIENTS: usize = 8;

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let grounds = contest.grounds()?;
    let sites = grounds.start()?;
    let containers = sites.create("creates", 1)?;
    single(contest, SECTION, &format!("{CLIENTS} clients"), &sites, &containers)?;
    let time = contest.settings.round();
    let mut made = [0; 3];
    let what = format!("batches of {ITEMS_PER_KEY}, {BATCH_CLIENTS} clients");
    contest.line(SECTION, &what, |side: Side| {
        let (container, first) = (&containers[side as usize], made[side as usize]);
        let plan = Plan { address: container.address, connections: BATCH_CLIENTS, time };
        let measured = sites.of(side).measure(plan, Batches::new(container, first, u64::MAX))?;
        made[side as usize] += measured.outcome.requests * ITEMS_PER_KEY;
        Ok(figures(&measured))
    })?;
    sites.stop();
    Ok(())
}

/// A line of single creates; each round goes on where the one before it stopped.
pub fn single(
    contest: &mut Contest<'_>,
    section: &'static str,
    what: &str,
    sites: &Sites,
    containers: &[Container; 3],
) -> Result<()> {
    let (time, mut made) = (contest.settings.round(), [0; 3]);
    contest.line(section, what, |side| {
        let container = &containers[side as usize];
        let plan = Plan { address: container.address, connections: CLIENTS, time };
        let source = Creates::new(container, made[side as usize], u64::MAX);
        let measured = sites.of(side).measure(plan, source)?;
        made[side as usize] += measured.outcome.requests;
        Ok(figures(&measured))
    })
}
