//! The same load on a container of one physical partition and on one of four, in turns.

use anyhow::Result;

use crate::load::Plan;
use crate::report::{Line, Report};
use crate::requests::{Creates, Reads};
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{GROUPS, Ground};

const SECTION: &str = "One and four physical partitions, 64 clients";
const CLIENTS: usize = 64;
const ITEMS: u64 = 20_000;

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start()?;
    site.create_database()?;
    let (one, four) = (site.create_container("one", 1)?, site.create_container("four", 4)?);
    site.load(&one, 0, ITEMS)?;
    site.load(&four, 0, ITEMS)?;
    let mut reads = [Rounds::default(), Rounds::default()];
    let mut creates = [Rounds::default(), Rounds::default()];
    let (mut created, mut synced) = ([0, 0], [0.0, 0.0]);
    for _ in 0..settings.rounds() {
        for (side, container) in [&one, &four].into_iter().enumerate() {
            let plan = Plan { address: container.address, connections: CLIENTS, time: settings.round() };
            reads[side].add(&site.measure(plan, Reads::of_loaded(container, ITEMS, ITEMS))?);
            let groups = site.metric(GROUPS)?;
            let measured = site.measure(plan, Creates::new(container, created[side], u64::MAX))?;
            synced[side] += site.metric(GROUPS)? - groups;
            created[side] += measured.outcome.requests;
            creates[side].add(&measured);
        }
    }
    site.stop();
    for (what, [mut one, mut four]) in [("reads", reads), ("durable creates", creates)] {
        let ratio = four.ratio_to(&one);
        report.add(one.line(SECTION, format!("{what}, 1 partition")));
        report.add(four.line(SECTION, format!("{what}, 4 partitions")).ratio("1 partition", ratio, None));
    }
    let [one, four] = [0, 1].map(|side| created[side] as f64 / f64::max(synced[side], 1.0));
    report.add(Line::new(SECTION, "creates to a sync, 4 partitions").figure("", four).ratio(
        "1 partition",
        four / one,
        None,
    ));
    Ok(())
}
