//! Queries that an index answers, with many clients, and queries that look at everything, one at a time.

use std::time::Instant;

use anyhow::Result;

use super::contest::{Contest, Sites, figures};
use super::turns::{By, for_each};
use crate::machine::Threads;
use crate::queries::{HEAVY, Kind, PARTITIONS, SECTION, SMALL_ITEMS, SMALL_LINE, SMALL_NAME, Small, Target};

const NAME: &str = "queries";

pub fn run(contest: &mut Contest<'_>) -> Result<()> {
    let items = contest.settings.query_items();
    let grounds = contest.grounds()?;
    let sites = grounds.start_relaxed()?;
    let containers = sites.create(NAME, PARTITIONS)?;
    for_each(|side| sites.of(side).load(&containers[side as usize], 0, items))?;
    let small = sites.create(SMALL_NAME, 1)?;
    for_each(|side| sites.of(side).load(&small[side as usize], 0, SMALL_ITEMS))?;
    sites.stop();
    let sites = grounds.start()?;
    sites.rest();
    measure(contest, &sites, items)?;
    sites.stop();
    Ok(())
}

fn measure(contest: &mut Contest<'_>, sites: &Sites, items: u64) -> Result<()> {
    let targets = for_each(|side| Target::new(sites.of(side), items))?;
    let time = contest.settings.round();
    for kind in Kind::ALL {
        // Made and signed for each line: making them costs more than a round of them.
        let asked = targets.each_ref().map(|target| kind.source(target));
        contest.line(SECTION, &kind.name(), |side| {
            let target = &targets[side as usize];
            Ok(figures(&kind.measure(time, target, asked[side as usize].clone())?))
        })?;
    }
    let small = for_each(|side| Small::new(sites.of(side)))?;
    let asked = small.each_ref().map(Small::source);
    contest.line(SECTION, SMALL_LINE, |side| {
        let (small, asked) = (&small[side as usize], asked[side as usize].clone());
        Ok(figures(&small.measure(time, sites.of(side), asked)?))
    })?;
    for heavy in &HEAVY {
        contest.line(SECTION, heavy.name, |side| {
            let target = &targets[side as usize];
            let (began, before) = (Instant::now(), Threads::of(target.site.id()));
            let mut asked = 0.0;
            while began.elapsed() < time {
                heavy.ask(target)?;
                asked += 1.0;
            }
            let rate = asked / began.elapsed().as_secs_f64();
            Ok(vec![(By::Rate, rate), (By::Processor, before.seconds_since() * 1e6 / asked)])
        })?;
    }
    Ok(())
}
